//! Segments that arrive (RFC 9293, section 3.10.7).

use super::{Agreed, MSS_DEFAULT, RTO_AFTER_SYN_LOSS, TcpConnection};
use crate::stream::{SHIFT_MAX, SegmentReply, asks_for_ecn, shift_for};
use crate::tcp::event::{TcpCloseReason, TcpState};
use crate::tcp::sender::AckArrival;
use crate::wire::tcp::{TcpFlags, TcpHeader, TcpSegment, TcpSeq};
use fulmar_proto::machine::Ecn;
use fulmar_proto::units::{Duration, Instant};

/// The silence after which a remembered timestamp may have wrapped (RFC 7323, section 5.5).
const TIMESTAMP_TRUST: Duration = Duration::from_secs(24 * 24 * 3600);
/// The least payload; it leaves room for the longest options (RFC 6691).
const PAYLOAD_MIN: u32 = 24;

impl TcpConnection {
    /// Makes this connection the answer to a SYN that came to a listener.
    pub(in crate::tcp) fn accept(&mut self, now: Instant, syn: &TcpHeader) {
        self.states.accept();
        self.take_syn(now, syn);
    }

    /// The peer's position for `seq`, near the one expected; -1 is its SYN.
    fn position(&self, seq: TcpSeq) -> i64 {
        self.numbers.position(seq, self.receiver.next())
    }

    /// Our position for `ack`; -1 is our SYN.
    fn acked_by(&self, ack: TcpSeq) -> i64 {
        self.numbers.acked_by(ack, self.sender.una())
    }

    /// Takes a segment of this connection.
    pub(in crate::tcp) fn on_segment(
        &mut self,
        now: Instant,
        segment: &TcpSegment<'_>,
        ecn: Ecn,
    ) -> SegmentReply {
        match self.states.state() {
            TcpState::Closed => SegmentReply::None,
            TcpState::SynSent => self.on_segment_in_syn_sent(now, segment),
            _ => self.on_segment_synchronized(now, segment, ecn),
        }
    }

    fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &TcpSegment<'_>) -> SegmentReply {
        let header = &segment.header;
        let acks = header.flags.has(TcpFlags::ACK);
        // Only the SYN was sent.
        if acks && header.ack != self.numbers.our_seq(0) {
            return reset_unless(header.flags.has(TcpFlags::RST));
        }
        if header.flags.has(TcpFlags::RST) {
            if acks {
                self.states.end(TcpCloseReason::Refused);
            }
            return SegmentReply::None;
        }
        if !header.flags.has(TcpFlags::SYN) {
            return SegmentReply::None;
        }
        self.take_syn(now, header);
        if acks {
            self.establish(now, header);
            self.receiver.answers.owe_now();
        } else {
            // A simultaneous open.
            self.states.cross();
        }
        SegmentReply::None
    }

    /// Takes the values in the peer's SYN.
    fn take_syn(&mut self, now: Instant, syn: &TcpHeader) {
        let options = &syn.options;
        self.numbers.theirs = syn.seq;
        let timestamps = options.timestamps.filter(|_| self.config.timestamps);
        self.ts_recent = timestamps.map(|stamps| (stamps.value, now));
        let shift = options.window_scale.filter(|_| self.config.window_scaling);
        let mss = options.mss.map_or(MSS_DEFAULT, u32::from);
        let mss = mss.min(u32::from(self.config.mss));
        let taken = if timestamps.is_some() { 12 } else { 0 };
        self.agreed = Agreed {
            timestamps: timestamps.is_some(),
            sack: options.sack_permitted && self.config.recovery.sack,
            ecn: asks_for_ecn(syn) && self.config.ecn,
            shifts: shift
                .map(|shift| (shift_for(self.config.receive_buffer), shift.min(SHIFT_MAX))),
            mss: mss.saturating_sub(taken).max(PAYLOAD_MIN),
        };
        let threshold = self.learned.threshold;
        let threshold = threshold.filter(|_| self.config.sharing.ssthresh);
        self.sender
            .agree(self.agreed.mss, self.agreed.sack, threshold);
        self.sender.set_peer_window(u64::from(syn.window));
    }

    /// Establishes the connection: our SYN is acknowledged.
    fn establish(&mut self, now: Instant, header: &TcpHeader) {
        let echo_age = self.echo_age(now, header);
        let handshake = self.states.establish(self.sender.is_finishing());
        let rtt = self.sender.rtt_mut();
        match (handshake.tries, handshake.sent_at, echo_age) {
            (0 | 1, Some(sent_at), _) => rtt.on_sample(now.saturating_since(sent_at)),
            (_, _, Some(age)) => rtt.on_sample(age),
            _ => rtt.at_least(RTO_AFTER_SYN_LOSS),
        }
        self.window_from = (0, 0);
        self.sender.set_peer_window(self.window_of(header));
        if self.states.is_passive() {
            self.receiver.expect_first();
        }
    }

    /// The peer's window in octets. Windows in SYNs are not shifted.
    fn window_of(&self, header: &TcpHeader) -> u64 {
        let shift = match self.agreed.shifts {
            Some((_, peer)) if !header.flags.has(TcpFlags::SYN) => peer,
            _ => 0,
        };
        u64::from(header.window) << shift
    }

    /// The age of the timestamp that the peer echoes.
    fn echo_age(&self, now: Instant, header: &TcpHeader) -> Option<Duration> {
        let stamps = header.options.timestamps?;
        if !self.agreed.timestamps || stamps.echo == 0 {
            return None;
        }
        let age = self.clock(now).wrapping_sub(stamps.echo);
        // An echo from the future is not ours.
        (age < 1 << 31).then(|| Duration::from_millis(u64::from(age)))
    }

    fn on_segment_synchronized(
        &mut self,
        now: Instant,
        segment: &TcpSegment<'_>,
        ecn: Ecn,
    ) -> SegmentReply {
        let header = &segment.header;
        let flags = header.flags;
        let position = self.position(header.seq);
        if !self.has_good_timestamp(now, header) {
            if !flags.has(TcpFlags::RST) {
                self.challenge(now, segment);
            }
            return SegmentReply::None;
        }
        if !self.is_acceptable(position, segment.sequence_len()) {
            if self.states.state() == TcpState::SynReceived
                && flags.has(TcpFlags::SYN)
                && position == -1
            {
                // The peer did not get our SYN-ACK.
                self.states.handshake.due = true;
            } else if !flags.has(TcpFlags::RST) {
                self.challenge(now, segment);
                if flags.has(TcpFlags::FIN) {
                    self.states.restart_wait(now);
                }
            }
            return SegmentReply::None;
        }
        if flags.has(TcpFlags::RST) {
            self.on_reset(now, position, segment);
            return SegmentReply::None;
        }
        if flags.has(TcpFlags::SYN) {
            // RFC 5961, section 4.
            self.challenge(now, segment);
            return SegmentReply::None;
        }
        if !flags.has(TcpFlags::ACK) {
            return SegmentReply::None;
        }
        if self.states.state() == TcpState::SynReceived {
            if self.acked_by(header.ack) < 0 || self.is_beyond_sent(header.ack) {
                return SegmentReply::Reset;
            }
            self.establish(now, header);
        }
        self.note_timestamp(now, header, position);
        if !self.take_ack(now, segment, position) {
            return SegmentReply::None;
        }
        if self.agreed.ecn {
            self.receiver.answers.on_ecn(ecn, flags.has(TcpFlags::CWR));
        }
        if self.states.state().may_receive() {
            self.take_octets(now, segment, position);
        }
        SegmentReply::None
    }

    fn is_beyond_sent(&self, ack: TcpSeq) -> bool {
        self.acked_by(ack) > self.sender.next().cast_signed()
    }

    /// Whether a segment is acceptable (RFC 9293, section 3.4), with one allowance: one that begins
    /// at the position expected is acceptable even when the window is shut, because its
    /// acknowledgement counts.
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

    /// Whether the timestamp passes the protection against wrapped sequence numbers (RFC 7323,
    /// sections 3.2 and 5.3).
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

    /// Notes the timestamp to echo: that of the segment for which the last acknowledgement waited
    /// (RFC 7323, section 4.3).
    fn note_timestamp(&mut self, now: Instant, header: &TcpHeader, position: i64) {
        if let Some(stamps) = header.options.timestamps
            && self.agreed.timestamps
            && position <= self.acked_position.cast_signed()
        {
            self.ts_recent = Some((stamps.value, now));
        }
    }

    /// Answers a segment that cannot be accepted. Data is answered each time: its sender repeats it
    /// until it hears that it arrived.
    fn challenge(&mut self, now: Instant, segment: &TcpSegment<'_>) {
        if !segment.payload.is_empty() || self.challenges.permits(now) {
            self.receiver.answers.owe_now();
        }
    }

    /// Handles a reset (RFC 5961, section 3): only the number that is exactly expected resets.
    fn on_reset(&mut self, now: Instant, position: i64, segment: &TcpSegment<'_>) {
        if position != self.receiver.next().cast_signed() {
            self.challenge(now, segment);
            return;
        }
        self.states.end(match self.states.state() {
            TcpState::SynReceived => TcpCloseReason::Refused,
            TcpState::TimeWait => TcpCloseReason::Finished,
            // Everything of both sides is acknowledged except our FIN. The peer is gone because it
            // sent its last acknowledgement often enough (RFC 9293, section 3.10.7.4).
            TcpState::Closing | TcpState::LastAck if self.sender.is_all_acked() => {
                TcpCloseReason::Finished
            }
            _ => TcpCloseReason::Reset,
        });
    }

    /// Takes the acknowledgement. Returns `false` if the segment is to be dropped.
    fn take_ack(&mut self, now: Instant, segment: &TcpSegment<'_>, position: i64) -> bool {
        let header = &segment.header;
        let (ack, una) = (self.acked_by(header.ack), self.sender.una());
        let oldest = una.saturating_sub(self.sender.window_max());
        if self.is_beyond_sent(header.ack) || ack < oldest.cast_signed() {
            // RFC 5961, section 5.
            self.challenge(now, segment);
            return false;
        }
        let Ok(ack) = u64::try_from(ack) else {
            return true;
        };
        if ack < una {
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
            blocks: self.numbers.runs_of(header.options.sack.as_slice(), una),
            echo_age: self.echo_age(now, header),
            echoes_congestion: self.agreed.ecn && header.flags.has(TcpFlags::ECE),
            updates_window,
        };
        if self.sender.on_ack(now, &arrival) > 0 {
            self.tell_room();
        }
        if self.sender.is_fin_acked() {
            self.states.on_fin_acked(now);
        }
        true
    }

    /// Takes the octets, and the FIN if there is one.
    fn take_octets(&mut self, now: Instant, segment: &TcpSegment<'_>, position: i64) {
        let fin = segment.header.flags.has(TcpFlags::FIN);
        if segment.payload.is_empty() && !fin {
            return;
        }
        // Position -1 would be the peer's SYN, which is not acceptable here any more. A segment
        // that begins before the stream is cut to the stream's beginning.
        let before = usize::try_from(position.min(0).unsigned_abs()).unwrap_or(usize::MAX);
        let octets = segment.payload.get(before..).unwrap_or_default();
        let start = u64::try_from(position).unwrap_or(0);
        let was_readable = self.receiver.is_readable();
        self.receiver.on_segment(now, start, octets, fin);
        if self.receiver.is_readable() && !was_readable {
            self.states.tell_readable();
        }
        if self.receiver.is_finished() {
            self.states.on_peer_finished(now);
            self.tell_finish();
        }
    }
}

const fn reset_unless(is_reset: bool) -> SegmentReply {
    if is_reset {
        SegmentReply::None
    } else {
        SegmentReply::Reset
    }
}
