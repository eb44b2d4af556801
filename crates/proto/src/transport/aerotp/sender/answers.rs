//! The meaning of the peer's answers for the TPDUs in flight.

use super::super::counters::Counters;
use super::{Sender, SenderTimer};
use crate::trace::{LossSign, Trace, TraceRecord};
use crate::transport::parts::{FirstFate, Settled};
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;
use crate::wire::aerotp::{Acks, Mack, Nack};
use crate::wire::cut;

/// The unit of timestamps (`docs/protocol/aerotp.md`, section 2).
const STAMP_UNIT: Duration = Duration::from_micros(1);
/// The unit to which timestamps may be cut.
const STAMP_CUT: Duration = Duration::from_micros(cut::TIME_UNIT_MICROS as u64);
/// The longest life of a datagram in queues (twice RFC 9293's MSL of one minute).
const DATAGRAM_LIFE_MAX: Duration = Duration::from_secs(120);
/// The time that what mends a damaged TPDU may take beyond one and a half round trips: the receiver's words wait for 10 ms.
const MENDING_LATE: Duration = Duration::from_millis(20);
/// The precision to which the clocks of two ends agree on a span: one part in so many.
const CLOCKS_AGREE: u32 = 1_000;

impl Sender {
    /// Whether an acknowledgement comes from a peer that has forgotten this connection: it was sent
    /// after an earlier confirmation had arrived here, and takes that confirmation back.
    pub(in super::super) fn is_forgotten(&self, now: Instant, mack: &Mack<'_>) -> bool {
        let Acks::Cumulative {
            next_expected,
            receiver,
            ..
        } = &mack.acks
        else {
            return false;
        };
        // It was under way no longer than the round trip that it shows. Without a hold time it
        // shows none: nothing was received, or too long ago.
        let shown = age_of(now, mack.echo).zip(receiver.hold.to_duration());
        let way_max =
            shown.and_then(|(age, hold)| Some(age.checked_sub(hold)? + hold / CLOCKS_AGREE));
        self.is_taken_back(now, *next_expected, way_max)
    }

    /// Whether anything was ever confirmed by a MACK that says "everything before".
    pub(in super::super) const fn has_confirmation(&self) -> bool {
        self.advanced_at.is_some()
    }

    /// Whether a request comes from a peer that has forgotten this connection: it asks for TPDUs
    /// that it had confirmed.
    pub(in super::super) fn is_forgotten_in(&self, now: Instant, nack: &Nack<'_>) -> bool {
        let mut wanted = nack.wanted();
        // Without a hold time a cut echo may be any number of turns older than it looks.
        let way_max = age_of(now, nack.echo).filter(|_| !self.cuts_stamps());
        wanted
            .next()
            .is_some_and(|first| self.is_taken_back(now, first, way_max))
    }

    /// Whether the peer lacks TPDU `missing`, which it confirmed before it sent this answer;
    /// `way_max` is the longest time since it may have sent the answer.
    fn is_taken_back(&self, now: Instant, missing: TpduSeq, way_max: Option<Duration>) -> bool {
        let Some(advanced_at) = self.advanced_at else {
            return false;
        };
        let later = now.saturating_since(advanced_at);
        let sent_since = way_max.and_then(|way_max| later.checked_sub(way_max));
        missing.distance_from(self.confirmed) < 0
            && (later > DATAGRAM_LIFE_MAX || sent_since.is_some_and(|since| since > STAMP_UNIT))
    }

    /// Takes an acknowledgement. Returns whether it made sense.
    pub(in super::super) fn on_mack(
        &mut self,
        now: Instant,
        mack: &Mack<'_>,
        counters: &mut Counters,
        trace: &mut Trace,
    ) -> bool {
        self.heard(now, trace);
        // Nothing that left before the connection began can be echoed: what says so tells neither a round trip nor an order.
        let age_max = now.saturating_since(self.begun) + STAMP_CUT;
        let age = age_of(now, mack.echo).filter(|age| *age <= age_max);
        let hold = match &mack.acks {
            Acks::Cumulative { receiver, .. } => receiver.hold.to_duration(),
            Acks::Listed { .. } => Some(Duration::ZERO),
        };
        // Before anything was received there is nothing to echo.
        let echoes = self.board.has_sent();
        if let (Some(age), Some(hold), true) = (age, hold, echoes)
            && let Some(sample) = age.checked_sub(hold)
        {
            self.rtt.on_sample(sample);
        }
        if !self.rules.confirms() {
            // This answers the set-up or the close; it must not release payloads that parity still
            // needs.
            return true;
        }
        let rtt_min = self.rtt.min();
        // A cut echo that was held for too long may be of another turn of the clock.
        let tells_order = age.is_some() && (hold.is_some() || !self.cuts_stamps());
        self.board.on_echo(tells_order.then_some(mack.echo));
        let mut sane = true;
        let thin = &mut self.thin;
        let mut settle = |settled: Settled| {
            if let Some(thin) = thin.as_mut() {
                thin.on_settled(settled, rtt_min);
            }
            counters.confirmed_tpdus += 1;
            counters.confirmed_bytes += u64::from(settled.len);
            counters.confirmed_after.note(settled.took);
            // What had come before it was repeated, or was repeated as a precaution alone, was not recovered.
            let was_lost = settled.first == FirstFate::Lost;
            if let (true, Some(earlier)) = (was_lost, settled.repetitions.checked_sub(1)) {
                counters.recovered_arq[usize::from(earlier.min(2))] += 1;
            }
        };
        match &mack.acks {
            Acks::Cumulative {
                next_expected,
                receiver,
                above,
                ..
            } => {
                sane = next_expected.distance_from(self.board.next_seq()) <= 0;
                if sane {
                    // The TPDUs listed beyond do not count: a peer that has forgotten the
                    // connection lists what it received since.
                    if next_expected.distance_from(self.confirmed) > 0 {
                        self.confirmed = *next_expected;
                        self.advanced_at = Some(now);
                    }
                    self.peer_window = Some(receiver.window);
                    self.board
                        .on_acked_before(now, *next_expected, rtt_min, &mut settle);
                    for seq in above.clone() {
                        if let Some(settled) = self.board.on_acked(now, seq, rtt_min) {
                            settle(settled);
                        }
                    }
                }
            }
            Acks::Listed { first, further } => {
                for seq in core::iter::once(*first).chain(further.clone()) {
                    if let Some(settled) = self.board.on_acked(now, seq, rtt_min) {
                        settle(settled);
                    }
                }
            }
        }
        if sane && tells_order {
            self.board.on_arrival_of(now, mack.echo);
        }
        self.note_losses(now, counters, trace);
        self.release(now);
        self.arm_retransmission(now);
        sane
    }

    /// Takes the receiver's request for retransmissions.
    pub(in super::super) fn on_nack(
        &mut self,
        now: Instant,
        nack: &Nack<'_>,
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        self.heard(now, trace);
        if age_of(now, nack.echo).is_none() {
            counters.nonsense += 1;
            return;
        }
        for seq in nack.wanted() {
            // A copy that is about to leave anyway answers the request.
            if !self.copies.remain_of(seq) {
                self.board.on_nack(seq, nack.echo);
            }
        }
        self.note_losses(now, counters, trace);
        self.arm_retransmission(now);
    }

    /// Takes the word of the layer below that `seq`, as it left at `left_at`, arrived damaged beyond repair. It is sent
    /// again at once, if it was not since and somebody waits for it. The word shows that the path works.
    pub(in super::super) fn on_damaged(
        &mut self,
        now: Instant,
        (seq, left_at): (TpduSeq, Instant),
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        self.heard(now, trace);
        if self.rules.retransmits() && !self.copies.remain_of(seq) {
            self.board.on_damaged(seq, left_at);
            self.note_losses(now, counters, trace);
            self.arm_retransmission(now);
        }
    }

    /// Takes the word of the layer below that `seq`, as it left at `left_at`, arrived damaged, and that the parity that mends it
    /// has left. If nobody says within one and a half round trips and [`MENDING_LATE`] that `seq` arrived, it is sent again.
    pub(in super::super) fn on_mending(
        &mut self,
        now: Instant,
        (seq, left_at): (TpduSeq, Instant),
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        self.heard(now, trace);
        if self.rules.retransmits() && !self.copies.remain_of(seq) {
            let round_trip = self.rtt.smoothed().unwrap_or_default();
            let until = now + round_trip * 3 / 2 + MENDING_LATE;
            self.board.on_mending(now, seq, left_at, until);
            self.note_losses(now, counters, trace);
            self.arm_retransmission(now);
        }
    }

    /// Notes that the peer was heard: any TPDU of it shows that the path works.
    pub(super) fn heard(&mut self, now: Instant, trace: &mut Trace) {
        self.unanswered_since = None;
        self.silences = 0;
        self.new_in_silence = 0;
        if self.stalled {
            self.stalled = false;
            self.timers.stop(SenderTimer::Retransmission);
            trace.note(now, TraceRecord::Resumed);
        }
    }

    pub(super) fn note_losses(&mut self, now: Instant, counters: &mut Counters, trace: &mut Trace) {
        for (seq, sign) in self.board.take_held_lost() {
            match sign {
                LossSign::Overtaken => counters.held_lost_overtaken += 1,
                LossSign::Nack => counters.held_lost_nack += 1,
                LossSign::Timeout => counters.held_lost_timeout += 1,
                LossSign::Damaged => counters.held_lost_damaged += 1,
            }
            trace.note(now, TraceRecord::HeldLost { seq, sign });
        }
        self.look_for_tail(now, counters);
    }
}

/// The age of our own timestamp `stamp`; `None` if it lies in the future.
fn age_of(now: Instant, stamp: u32) -> Option<Duration> {
    let age = now.as_wrapping_micros().wrapping_sub(stamp);
    (age < 1 << 31).then(|| Duration::from_micros(u64::from(age)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::aerotp::{ConnectionConfig, ModeRules};
    use crate::units::FecStrength;
    use crate::wire::Port;
    use crate::wire::aerotp::{EcnField, Feedback, Handshake, ReceiverWord, parse};

    #[test]
    fn an_echo_from_before_the_connection_is_no_round_trip() {
        let config = ConnectionConfig::default();
        let begun = Instant::START + Duration::from_secs(100);
        let mut sender = Sender::new(begun, &config, ModeRules::of(config.mode), 1_000);
        assert_eq!(sender.write(begun, &[0; 1_000]), 1_000);
        assert!(sender.next_unit(begun, &mut Vec::new()).is_some());
        let mut learned = |after: Duration, echoed: Instant| {
            let feedback = Feedback {
                source: Port(1),
                destination: Port(2),
                mode: config.mode,
                ecn: EcnField::NONE,
                echo: echoed.as_wrapping_micros(),
                crc: true,
                fec_words: FecStrength::NONE,
            };
            let mut octets = Vec::new();
            let word = ReceiverWord::default();
            feedback.cumulative(Handshake::None, config.first_seq, word, [], &mut octets);
            let tpdu = parse(&octets).expect("a TPDU");
            let mack = Mack::of(&tpdu).expect("a MACK");
            let (mut counters, mut trace) = (Counters::default(), Trace::default());
            assert!(sender.on_mack(begun + after, &mack, &mut counters, &mut trace));
            sender.rtt().smoothed()
        };
        let (at, later) = (Duration::from_millis(20), Duration::from_millis(30));
        assert_eq!(learned(at, Instant::START + Duration::from_secs(40)), None);
        assert_eq!(learned(later, begun), Some(later));
    }
}
