//! Segments that arrive.

use super::LtTcpConnection;
use crate::lt_tcp::sender::FeedbackArrival;
use crate::stream::{SHIFT_MAX, SegmentReply, asks_for_ecn, shift_for};
use crate::tcp::{TcpCloseReason, TcpState};
use crate::wire::lt_tcp::{Extension, LtSegment, LtTcpFeedback, UnitHeader};
use crate::wire::tcp::{TcpFlags, TcpHeader, TcpSeq};
use fulmar_proto::machine::Ecn;
use fulmar_proto::units::Instant;

/// SYNs that are kept until the first acknowledgement decides between them; older ones are
/// forgotten.
const SYNS_MAX: usize = 8;

impl LtTcpConnection {
    /// Makes this connection the answer to a SYN that came to a listener.
    pub(in crate::lt_tcp) fn accept(&mut self, syn: &TcpHeader) {
        self.states.accept();
        self.answer(syn);
    }

    /// Answers a SYN that came to the listener. Any of them may be the peer's, or nobody's. (RFC
    /// 9293, section 3.10.7.4, would keep to the first one, which lets a forger keep the peer out.)
    fn answer(&mut self, syn: &TcpHeader) {
        self.syns.retain(|known| known.seq != syn.seq);
        if self.syns.len() >= SYNS_MAX {
            self.syns.remove(0);
        }
        self.syns.push(*syn);
        self.take_syn(syn);
    }

    /// Picks the SYN to which a segment that acknowledges ours may belong. The peer has sent nothing
    /// that we could have acknowledged, so the segment is within the first window.
    fn take_peer(&mut self, header: &TcpHeader) -> bool {
        let window = self.config.receive_buffer.0;
        let is_peer = |syn: &&TcpHeader| {
            let ahead = header.seq.distance_from(syn.seq.plus(1));
            u64::try_from(ahead).is_ok_and(|ahead| ahead <= window)
        };
        let Some(syn) = self.syns.iter().rev().find(is_peer).copied() else {
            return false;
        };
        self.syns = Vec::new();
        self.take_syn(&syn);
        self.agree(&syn);
        true
    }

    /// The peer's position for `seq`, near the one expected; -1 is its SYN.
    fn position(&self, seq: TcpSeq) -> i64 {
        self.numbers.position(seq, self.receiver.next())
    }

    /// Our position for `ack`; -1 is our SYN.
    fn acked_by(&self, ack: TcpSeq) -> i64 {
        self.numbers.acked_by(ack, self.sender.una())
    }

    fn is_beyond_sent(&self, ack: TcpSeq) -> bool {
        self.acked_by(ack) > self.sender.sent_end().cast_signed()
    }

    /// Takes a segment of this connection.
    pub(in crate::lt_tcp) fn on_segment(
        &mut self,
        now: Instant,
        segment: LtSegment<'_>,
        ecn: Ecn,
    ) -> SegmentReply {
        match self.states.state() {
            TcpState::Closed => SegmentReply::None,
            TcpState::SynSent => self.on_segment_in_syn_sent(now, &segment),
            _ => self.on_segment_synchronized(now, segment, ecn),
        }
    }

    fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &LtSegment<'_>) -> SegmentReply {
        let header = &segment.header;
        let acks = header.flags.has(TcpFlags::ACK);
        let resets = header.flags.has(TcpFlags::RST);
        // Only the SYN was sent.
        if acks && header.ack != self.numbers.our_seq(0) {
            return if resets {
                SegmentReply::None
            } else {
                SegmentReply::Reset
            };
        }
        if resets {
            if acks {
                self.states.end(TcpCloseReason::Refused);
            }
            return SegmentReply::None;
        }
        if header.flags.has(TcpFlags::SYN) && acks {
            self.take_syn(header);
            self.agree(header);
            self.establish(now, header);
            self.receiver.answers.owe_now();
        }
        SegmentReply::None
    }

    /// Takes from the peer's SYN its numbers and what our answer must say. Another SYN may take its
    /// place.
    fn take_syn(&mut self, syn: &TcpHeader) {
        self.numbers.theirs = syn.seq;
        self.agreed.ecn = asks_for_ecn(syn) && self.config.ecn;
        self.agreed.shifts = match syn.options.window_scale {
            Some(shift) => (shift_for(self.config.receive_buffer), shift.min(SHIFT_MAX)),
            None => (0, 0),
        };
    }

    /// Takes from the peer's SYN its limits; the SYN must be the peer's.
    fn agree(&mut self, syn: &TcpHeader) {
        if let Some(mss) = syn.options.mss {
            self.sender.agree(mss);
        }
        self.sender.set_peer_window(u64::from(syn.window));
    }

    /// Establishes the connection: our SYN is acknowledged.
    fn establish(&mut self, now: Instant, header: &TcpHeader) {
        let handshake = self.states.establish(self.sender.is_finishing());
        let rtt = self.sender.rtt_mut();
        match handshake.sent_at.filter(|_| !self.syn_sent_again) {
            Some(sent_at) => rtt.on_sample(now.saturating_since(sent_at)),
            None => rtt.on_progress(),
        }
        let window = self.window_of(header);
        self.sender.set_peer_window(window);
    }

    /// The peer's window in octets. Windows in SYNs are not shifted.
    fn window_of(&self, header: &TcpHeader) -> u64 {
        let shift = if header.flags.has(TcpFlags::SYN) {
            0
        } else {
            self.agreed.shifts.1
        };
        u64::from(header.window) << shift
    }

    fn on_segment_synchronized(
        &mut self,
        now: Instant,
        segment: LtSegment<'_>,
        ecn: Ecn,
    ) -> SegmentReply {
        let header = &segment.header;
        let flags = header.flags;
        let mut position = self.position(header.seq);
        if flags.has(TcpFlags::RST) {
            if self.states.state() == TcpState::SynReceived {
                self.refuse(header.seq);
                return SegmentReply::None;
            }
            self.on_reset(now, position);
            return SegmentReply::None;
        }
        if flags.has(TcpFlags::SYN) {
            if self.states.state() == TcpState::SynReceived {
                // Our SYN got lost, or one of the SYNs is nobody's.
                self.answer(header);
                self.states.handshake.due = true;
                self.syn_asked = true;
            } else {
                // The peer did not get our answer to its SYN. Or the SYN is a stranger's: then the
                // answer makes its sender reset (RFC 5961, section 4).
                self.challenge(now);
            }
            return SegmentReply::None;
        }
        if !flags.has(TcpFlags::ACK) {
            return SegmentReply::None;
        }
        if self.states.state() == TcpState::SynReceived {
            if self.acked_by(header.ack) < 0 || self.is_beyond_sent(header.ack) {
                return SegmentReply::Reset;
            }
            if !self.take_peer(header) {
                return SegmentReply::None;
            }
            position = self.position(header.seq);
            self.establish(now, header);
        }
        let numbers = (
            self.acceptable_position(position),
            self.acceptable_ack(header),
        );
        let (Some(position), Some(ack)) = numbers else {
            self.disbelieve(now, &segment.extension);
            return SegmentReply::None;
        };
        match segment.extension {
            Extension::None => {}
            Extension::Unit(unit, octets) => {
                let window = self.window_of(header);
                let acked = self.sender.on_ack(now, ack, window);
                self.after_ack(now, acked);
                self.take_unit(now, header, (position, &unit, octets), ecn);
            }
            Extension::Feedback(feedback) => self.take_feedback(now, header, ack, feedback),
        }
        SegmentReply::None
    }

    /// The acknowledgement as a position, if the peer can mean it: not beyond the octets sent, and
    /// no older than those that a send buffer holds (RFC 5961, section 5).
    fn acceptable_ack(&self, header: &TcpHeader) -> Option<u64> {
        let ack = self.acked_by(header.ack);
        let oldest = self.sender.una().saturating_sub(self.config.send_buffer.0);
        if self.is_beyond_sent(header.ack) || ack < oldest.cast_signed() {
            return None;
        }
        Some(u64::try_from(ack).unwrap_or(0))
    }

    /// The position of a segment, if it is within the window or was received lately. A FIN may stand
    /// behind the window, and feedback behind that.
    fn acceptable_position(&self, position: i64) -> Option<u64> {
        let position = u64::try_from(position).ok()?;
        let oldest = self
            .receiver
            .next()
            .saturating_sub(self.config.receive_buffer.0);
        (oldest..=self.receiver.window_end() + 1)
            .contains(&position)
            .then_some(position)
    }

    /// Handles a segment whose numbers the peer cannot mean. Feedback is not answered, or two ends
    /// that do not trust each other would never fall silent.
    fn disbelieve(&mut self, now: Instant, extension: &Extension<'_>) {
        match extension {
            Extension::Unit(..) => self.challenge(now),
            Extension::None | Extension::Feedback(_) => self.unbelieved += 1,
        }
    }

    /// Answers a segment that is not trusted, but not too often: if the peer sent it, the answer
    /// shows it where this end stands.
    fn challenge(&mut self, now: Instant) {
        self.unbelieved += 1;
        if self.challenges.permits(now) {
            self.receiver.answers.owe_now();
        }
    }

    /// Drops the SYN before `seq`, of which the peer knows nothing; another one may be the peer's.
    fn refuse(&mut self, seq: TcpSeq) {
        self.syns.retain(|syn| syn.seq.plus(1) != seq);
        match self.syns.last().copied() {
            Some(syn) => self.take_syn(&syn),
            None => self.states.end(TcpCloseReason::Refused),
        }
    }

    /// Handles a reset (RFC 5961, section 3): only the number that is exactly expected resets; else
    /// an answer asks again.
    fn on_reset(&mut self, now: Instant, position: i64) {
        if position != self.receiver.next().cast_signed() {
            self.challenge(now);
            return;
        }
        self.states.end(match self.states.state() {
            // Everything of both sides except a FIN is acknowledged (RFC 9293, section 3.10.7.4).
            TcpState::Closing | TcpState::LastAck | TcpState::TimeWait => TcpCloseReason::Finished,
            _ => TcpCloseReason::Reset,
        });
    }

    fn take_feedback(
        &mut self,
        now: Instant,
        header: &TcpHeader,
        ack: u64,
        feedback: LtTcpFeedback,
    ) {
        let arrival = FeedbackArrival {
            ack,
            window: self.window_of(header),
            runs: self.numbers.runs_of(&feedback.runs, self.sender.una()),
            feedback,
            echoes_congestion: self.agreed.ecn && header.flags.has(TcpFlags::ECE),
        };
        let acked = self.sender.on_feedback(now, arrival);
        self.after_ack(now, acked);
    }

    fn after_ack(&mut self, now: Instant, acked: u64) {
        if acked > 0 {
            self.states.tell_room(!self.sender.is_finishing());
        }
        if self.sender.is_fin_acked() {
            self.states.on_fin_acked(now);
        }
    }

    /// Takes a unit, and the FIN if there is one.
    fn take_unit(
        &mut self,
        now: Instant,
        header: &TcpHeader,
        (position, unit, octets): (u64, &UnitHeader, &[u8]),
        ecn: Ecn,
    ) {
        if self.states.is_closed() {
            return;
        }
        if self.agreed.ecn {
            self.receiver
                .answers
                .on_ecn(ecn, header.flags.has(TcpFlags::CWR));
        }
        let fin = header.flags.has(TcpFlags::FIN);
        let was_readable = self.receiver.is_readable();
        self.receiver.on_unit(now, position, unit, octets, fin);
        if self.receiver.is_readable() && !was_readable {
            self.states.tell_readable();
        }
        if self.receiver.is_finished() {
            self.states.on_peer_finished(now);
            self.tell_finish();
        }
    }
}
