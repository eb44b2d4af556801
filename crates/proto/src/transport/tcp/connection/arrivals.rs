//! Segments that arrive (RFC 9293, section 3.10.7).

use super::{Agreed, CHALLENGES_MAX, CHALLENGES_SPAN, Connection, MSS_DEFAULT, RTO_AFTER_SYN_LOSS};
use crate::machine::Ecn;
use crate::transport::tcp::event::{TcpCloseReason, TcpEvent, TcpState};
use crate::transport::tcp::sender::AckArrival;
use crate::units::{Duration, Instant};
use crate::wire::tcp::{TcpFlags, TcpHeader, TcpSegment, TcpSeq};

/// What the endpoint should do about a segment besides draining the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport::tcp) enum Reply {
    /// Nothing.
    None,
    /// Answer with a reset.
    Reset,
}

/// A silence after which a remembered timestamp may have wrapped (RFC 7323, section 5.5).
const TIMESTAMP_TRUST: Duration = Duration::from_secs(24 * 24 * 3600);
/// RFC 7323, section 2.3.
const SHIFT_MAX: u8 = 14;
/// A payload that leaves room for the longest options (RFC 6691).
const PAYLOAD_MIN: u32 = 24;

impl Connection {
    /// Becomes the answer to a SYN that came to a listener.
    pub(in crate::transport::tcp) fn accept(&mut self, now: Instant, syn: &TcpHeader) {
        self.passive = true;
        self.state = TcpState::SynReceived;
        self.take_syn(now, syn);
    }

    /// The peer's position of `seq`, near what is expected; -1 is its SYN.
    fn position(&self, seq: TcpSeq) -> i64 {
        let next = self.receiver.next();
        let expected = self.irs.plus(1).plus(wire(next));
        next.cast_signed() + i64::from(seq.distance_from(expected))
    }

    /// Our position that `ack` stands for, -1 for our SYN.
    fn acked_by(&self, ack: TcpSeq) -> i64 {
        let una = self.sender.una();
        let first = self.iss.plus(1).plus(wire(una));
        una.cast_signed() + i64::from(ack.distance_from(first))
    }

    /// A segment of this connection arrived.
    pub(in crate::transport::tcp) fn on_segment(
        &mut self,
        now: Instant,
        segment: &TcpSegment<'_>,
        ecn: Ecn,
    ) -> Reply {
        match self.state {
            TcpState::Closed => Reply::None,
            TcpState::SynSent => self.on_segment_in_syn_sent(now, segment),
            _ => self.on_segment_synchronized(now, segment, ecn),
        }
    }

    fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &TcpSegment<'_>) -> Reply {
        let header = &segment.header;
        let acks = header.flags.has(TcpFlags::ACK);
        // Nothing but the SYN was sent.
        if acks && header.ack != self.iss.plus(1) {
            return reset_unless(header.flags.has(TcpFlags::RST));
        }
        if header.flags.has(TcpFlags::RST) {
            if acks {
                self.end(TcpCloseReason::Refused);
            }
            return Reply::None;
        }
        if !header.flags.has(TcpFlags::SYN) {
            return Reply::None;
        }
        self.take_syn(now, header);
        if acks {
            self.establish(now, header);
            self.receiver.owe_now();
        } else {
            // Simultaneous open.
            self.state = TcpState::SynReceived;
            self.handshake.due = true;
        }
        Reply::None
    }

    /// What the peer's SYN says.
    fn take_syn(&mut self, now: Instant, syn: &TcpHeader) {
        let options = &syn.options;
        self.irs = syn.seq;
        let timestamps = options.timestamps.filter(|_| self.config.timestamps);
        self.ts_recent = timestamps.map(|stamps| (stamps.value, now));
        let shift = options.window_scale.filter(|_| self.config.window_scaling);
        let mss = options.mss.map_or(MSS_DEFAULT, u32::from);
        let mss = mss.min(u32::from(self.config.mss));
        let taken = if timestamps.is_some() { 12 } else { 0 };
        let both = TcpFlags::ECE | TcpFlags::CWR;
        // RFC 3168, section 6.1.1: a SYN asks with both bits, a SYN-ACK agrees with one.
        let ecn = if syn.flags.has(TcpFlags::ACK) {
            syn.flags.has(TcpFlags::ECE) && !syn.flags.has(TcpFlags::CWR)
        } else {
            syn.flags.has(both)
        };
        self.agreed = Agreed {
            timestamps: timestamps.is_some(),
            sack: options.sack_permitted && self.config.recovery.sack,
            ecn: ecn && self.config.ecn,
            shifts: shift.map(|shift| (self.own_shift(), shift.min(SHIFT_MAX))),
            mss: mss.saturating_sub(taken).max(PAYLOAD_MIN),
        };
        let threshold = self.learned.threshold;
        let threshold = threshold.filter(|_| self.config.sharing.ssthresh);
        self.sender
            .agree(self.agreed.mss, self.agreed.sack, threshold);
        self.sender.set_peer_window(u64::from(syn.window));
    }

    /// The shift that tells our whole receive buffer.
    pub(super) fn own_shift(&self) -> u8 {
        let buffer = self.config.receive_buffer.0;
        let fits = |shift: &u8| u16::try_from(buffer >> shift).is_ok();
        (0..=SHIFT_MAX).find(fits).unwrap_or(SHIFT_MAX)
    }

    /// Our SYN is acknowledged.
    fn establish(&mut self, now: Instant, header: &TcpHeader) {
        let echo_age = self.echo_age(now, header);
        let handshake = core::mem::take(&mut self.handshake);
        let rtt = self.sender.rtt_mut();
        match (handshake.tries, handshake.sent_at, echo_age) {
            (0 | 1, Some(sent_at), _) => rtt.on_sample(now.saturating_since(sent_at)),
            (_, _, Some(age)) => rtt.on_sample(age),
            _ => rtt.at_least(RTO_AFTER_SYN_LOSS),
        }
        self.state = if self.sender.is_finishing() {
            TcpState::FinWait1
        } else {
            TcpState::Established
        };
        self.window_from = (0, 0);
        self.sender.set_peer_window(self.window_of(header));
        if self.passive {
            self.receiver.expect_first();
        }
        self.events.push_back(if self.passive {
            TcpEvent::Incoming {
                id: self.id,
                path: self.key.path,
                local: self.key.local,
                remote: self.key.remote,
            }
        } else {
            TcpEvent::Connected(self.id)
        });
    }

    /// The peer's window in octets. Those of SYNs are not shifted.
    fn window_of(&self, header: &TcpHeader) -> u64 {
        let shift = match self.agreed.shifts {
            Some((_, peer)) if !header.flags.has(TcpFlags::SYN) => peer,
            _ => 0,
        };
        u64::from(header.window) << shift
    }

    /// How old the timestamp is that the peer echoes.
    fn echo_age(&self, now: Instant, header: &TcpHeader) -> Option<Duration> {
        let stamps = header.options.timestamps?;
        if !self.agreed.timestamps || stamps.echo == 0 {
            return None;
        }
        let age = self.clock(now).wrapping_sub(stamps.echo);
        // An echo from the future is none of ours.
        (age < 1 << 31).then(|| Duration::from_millis(u64::from(age)))
    }

    fn on_segment_synchronized(
        &mut self,
        now: Instant,
        segment: &TcpSegment<'_>,
        ecn: Ecn,
    ) -> Reply {
        let header = &segment.header;
        let flags = header.flags;
        let position = self.position(header.seq);
        if !self.has_good_timestamp(now, header) {
            if !flags.has(TcpFlags::RST) {
                self.challenge(now, segment);
            }
            return Reply::None;
        }
        if !self.is_acceptable(position, segment.sequence_len()) {
            if self.state == TcpState::SynReceived && flags.has(TcpFlags::SYN) && position == -1 {
                // The peer did not get our SYN-ACK.
                self.handshake.due = true;
            } else if !flags.has(TcpFlags::RST) {
                self.challenge(now, segment);
                self.restart_time_wait(now, flags);
            }
            return Reply::None;
        }
        if flags.has(TcpFlags::RST) {
            self.on_reset(now, position, segment);
            return Reply::None;
        }
        if flags.has(TcpFlags::SYN) {
            // RFC 5961, section 4.
            self.challenge(now, segment);
            return Reply::None;
        }
        if !flags.has(TcpFlags::ACK) {
            return Reply::None;
        }
        if self.state == TcpState::SynReceived {
            if self.acked_by(header.ack) < 0 || self.is_beyond_sent(header.ack) {
                return Reply::Reset;
            }
            self.establish(now, header);
        }
        self.note_timestamp(now, header, position);
        if !self.take_ack(now, segment, position) {
            return Reply::None;
        }
        if self.agreed.ecn {
            self.receiver.on_ecn(ecn, flags.has(TcpFlags::CWR));
        }
        if self.state.may_receive() {
            self.take_octets(now, segment, position);
        }
        Reply::None
    }

    fn is_beyond_sent(&self, ack: TcpSeq) -> bool {
        self.acked_by(ack) > self.sender.next().cast_signed()
    }

    /// RFC 9293, section 3.4, with one allowance: what begins where it should is acceptable even
    /// when the window is shut, for its acknowledgement counts.
    fn is_acceptable(&self, position: i64, len: u64) -> bool {
        let next = self.receiver.next().cast_signed();
        let end = self
            .receiver
            .window_end()
            .max(self.receiver.next())
            .cast_signed();
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        if position == next {
            return true;
        }
        if len == 0 {
            return (next..end).contains(&position);
        }
        position < end && position.saturating_add(len) > next
    }

    /// RFC 7323, sections 3.2 and 5.3: protection against wrapped sequence numbers.
    fn has_good_timestamp(&self, now: Instant, header: &TcpHeader) -> bool {
        if !self.agreed.timestamps || header.flags.has(TcpFlags::RST) {
            return true;
        }
        let Some(stamps) = header.options.timestamps else {
            return false;
        };
        self.ts_recent.is_none_or(|(recent, at)| {
            stamps.value.wrapping_sub(recent).cast_signed() >= 0
                || now.saturating_since(at) > TIMESTAMP_TRUST
        })
    }

    /// RFC 7323, section 4.3: the timestamp that is echoed is that of the segment the last
    /// acknowledgement waited for.
    fn note_timestamp(&mut self, now: Instant, header: &TcpHeader, position: i64) {
        if let Some(stamps) = header.options.timestamps
            && self.agreed.timestamps
            && position <= self.acked_position.cast_signed()
        {
            self.ts_recent = Some((stamps.value, now));
        }
    }

    /// An answer to what cannot be accepted, not too often if it carries no data (RFC 5961).
    fn challenge(&mut self, now: Instant, segment: &TcpSegment<'_>) {
        let (since, count) = &mut self.challenges;
        if now.saturating_since(*since) >= CHALLENGES_SPAN {
            (*since, *count) = (now, 0);
        }
        if segment.payload.is_empty() {
            *count = count.saturating_add(1);
            if *count > CHALLENGES_MAX {
                return;
            }
        }
        self.receiver.owe_now();
    }

    fn restart_time_wait(&mut self, now: Instant, flags: TcpFlags) {
        if self.time_wait.is_some() && flags.has(TcpFlags::FIN) {
            self.time_wait = Some(now + self.config.time_wait);
        }
    }

    /// RFC 5961, section 3: only what is exactly expected resets.
    fn on_reset(&mut self, now: Instant, position: i64, segment: &TcpSegment<'_>) {
        if position != self.receiver.next().cast_signed() {
            self.challenge(now, segment);
            return;
        }
        self.end(match self.state {
            TcpState::SynReceived => TcpCloseReason::Refused,
            TcpState::TimeWait => TcpCloseReason::Finished,
            _ => TcpCloseReason::Reset,
        });
    }

    /// Takes the acknowledgement; `false` if the segment is to be dropped.
    fn take_ack(&mut self, now: Instant, segment: &TcpSegment<'_>, position: i64) -> bool {
        let header = &segment.header;
        let ack = self.acked_by(header.ack);
        let oldest = self.sender.una().saturating_sub(self.sender.window_max());
        if self.is_beyond_sent(header.ack) || ack < oldest.cast_signed() {
            // RFC 5961, section 5.
            self.challenge(now, segment);
            return false;
        }
        let Ok(ack) = u64::try_from(ack) else {
            return true;
        };
        if ack < self.sender.una() {
            return true;
        }
        let position = u64::try_from(position).unwrap_or(0);
        let updates_window = self.window_from.0 < position
            || (self.window_from.0 == position && self.window_from.1 <= ack);
        if updates_window {
            self.window_from = (position, ack);
        }
        let fin = header.flags.has(TcpFlags::FIN);
        let arrival = AckArrival {
            ack,
            window: self.window_of(header),
            bare: segment.payload.is_empty() && !fin,
            blocks: self.blocks_of(header),
            echo_age: self.echo_age(now, header),
            echoes_congestion: self.agreed.ecn && header.flags.has(TcpFlags::ECE),
            updates_window,
        };
        if self.sender.on_ack(now, &arrival) > 0 {
            self.tell_room();
        }
        if self.sender.is_fin_acked() {
            self.on_fin_acked(now);
        }
        true
    }

    /// SACK blocks as positions of ours.
    fn blocks_of(&self, header: &TcpHeader) -> Vec<core::ops::Range<u64>> {
        let blocks = header.options.sack.as_slice().iter();
        let ranges = blocks.filter_map(|block| {
            let start = u64::try_from(self.acked_by(block.start)).ok()?;
            let end = u64::try_from(self.acked_by(block.end)).ok()?;
            (start < end).then_some(start..end)
        });
        ranges.collect()
    }

    fn on_fin_acked(&mut self, now: Instant) {
        match self.state {
            TcpState::FinWait1 => self.state = TcpState::FinWait2,
            TcpState::Closing => self.wait_time(now),
            TcpState::LastAck => self.end(TcpCloseReason::Finished),
            _ => {}
        }
    }

    fn wait_time(&mut self, now: Instant) {
        self.state = TcpState::TimeWait;
        self.time_wait = Some(now + self.config.time_wait);
    }

    /// Takes octets and FIN.
    fn take_octets(&mut self, now: Instant, segment: &TcpSegment<'_>, position: i64) {
        let fin = segment.header.flags.has(TcpFlags::FIN);
        if segment.payload.is_empty() && !fin {
            return;
        }
        // Position -1 would be the peer's SYN, which is not acceptable here any more; what begins
        // before the stream is cut to it.
        let before = usize::try_from(position.min(0).unsigned_abs()).unwrap_or(usize::MAX);
        let octets = segment.payload.get(before..).unwrap_or_default();
        let start = u64::try_from(position).unwrap_or(0);
        let was_readable = self.receiver.is_readable();
        self.receiver.on_segment(now, start, octets, fin);
        if self.receiver.is_readable() && !was_readable {
            self.events.push_back(TcpEvent::Readable(self.id));
        }
        if self.receiver.is_finished() {
            match self.state {
                TcpState::Established => self.state = TcpState::CloseWait,
                TcpState::FinWait1 => self.state = TcpState::Closing,
                TcpState::FinWait2 => self.wait_time(now),
                _ => {}
            }
            self.tell_finish();
        }
    }
}

/// A position modulo 2^32.
#[expect(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
pub(super) const fn wire(position: u64) -> u32 {
    position as u32
}

const fn reset_unless(is_reset: bool) -> Reply {
    if is_reset { Reply::None } else { Reply::Reset }
}
