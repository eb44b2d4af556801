//! The arrivals of one stream: counts and delays.

use super::figures::{Measured, Spread};
use super::message::{Cutter, Head};
use super::test::Test;
use fulmar_proto::transport::aerotp::{Counters, ModeRules};
use fulmar_proto::units::{Duration, Instant};
use hdrhistogram::Histogram;

/// The shortest and the longest delay that are told apart; longer ones count as the longest.
const DELAY_MIN_NS: u64 = 1;
const DELAY_MAX_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits of a percentile.
const DIGITS: u8 = 3;

/// The counters of one stream's messages.
#[derive(Debug)]
pub(super) struct Meter {
    test: Test,
    /// The cutter, in modes that deliver a stream.
    cutter: Option<Cutter>,
    /// The nanoseconds by which our clock is ahead of the sender's.
    ahead: i64,
    messages: u64,
    reordered: u64,
    highest: u64,
    /// The time at which the first message was handed over, by our clock.
    begun: Option<Instant>,
    last_arrival: Instant,
    delays: Histogram<u64>,
    delay_sum: f64,
    early: u64,
}

impl Meter {
    /// The counters of `test`'s messages, from a sender whose clock ours is `ahead` of.
    pub(super) fn new(test: Test, ahead: i64) -> Self {
        let is_stream = test.mode().is_ok_and(|mode| ModeRules::of(mode).complete);
        let length = usize::try_from(test.message_bytes).unwrap_or(usize::MAX);
        let delays = Histogram::new_with_bounds(DELAY_MIN_NS, DELAY_MAX_NS, DIGITS)
            .expect("the bounds are constant and sound");
        Self {
            cutter: is_stream.then(|| Cutter::new(length)),
            test,
            ahead,
            messages: 0,
            reordered: 0,
            highest: 0,
            begun: None,
            last_arrival: Instant::START,
            delays,
            delay_sum: 0.0,
            early: 0,
        }
    }

    /// Takes octets that the connection delivered: a piece of the stream, or a message.
    pub(super) fn take(&mut self, now: Instant, mut octets: &[u8]) {
        let Some(mut cutter) = self.cutter.take() else {
            if octets.len() == self.test.message_bytes as usize
                && let Some(head) = Head::read(octets)
            {
                self.count(now, head);
            }
            return;
        };
        while !octets.is_empty() {
            if let Some(head) = cutter.next(&mut octets) {
                self.count(now, head);
            }
        }
        self.cutter = Some(cutter);
    }

    fn count(&mut self, now: Instant, head: Head) {
        if head.id != self.test.id {
            return;
        }
        let sent = i128::from(head.sent.as_nanos()) + i128::from(self.ahead);
        let delay = i128::from(now.as_nanos()) - sent;
        self.early += u64::from(delay < 0);
        let delay = u64::try_from(delay.max(0)).unwrap_or(u64::MAX);
        self.delays.saturating_record(delay);
        self.delay_sum += delay as f64;
        if self.messages > 0 && head.sequence < self.highest {
            self.reordered += 1;
        }
        self.highest = self.highest.max(head.sequence);
        self.messages += 1;
        let sent = Instant::from_nanos(u64::try_from(sent.max(0)).unwrap_or_default());
        let begun = self.begun.get_or_insert(sent);
        *begun = (*begun).min(sent);
        self.last_arrival = now;
    }

    /// Whole messages so far.
    pub(super) const fn messages(&self) -> u64 {
        self.messages
    }

    /// The arrival of the last of them.
    pub(super) const fn last_arrival(&self) -> Instant {
        self.last_arrival
    }

    /// Adds the counts of `other`, another stream of the test.
    pub(super) fn merge(&mut self, other: &Self) {
        self.messages += other.messages;
        self.reordered += other.reordered;
        self.early += other.early;
        self.delay_sum += other.delay_sum;
        self.begun = [self.begun, other.begun].into_iter().flatten().min();
        self.last_arrival = self.last_arrival.max(other.last_arrival);
        self.delays
            .add(&other.delays)
            .expect("all meters' bounds are the same");
    }

    /// All figures, with the connection's counters.
    pub(super) fn measured(&self, counters: &Counters) -> Measured {
        let elapsed = match self.begun {
            Some(begun) => self.last_arrival.saturating_since(begun),
            None => Duration::ZERO,
        };
        Measured {
            messages: self.messages,
            bytes: self.messages * u64::from(self.test.message_bytes),
            reordered: self.reordered,
            elapsed,
            accepted_tpdus: counters.accepted_tpdus,
            wire_lost_tpdus: counters.wire_lost,
            wire_damaged_tpdus: counters.wire_damaged,
            recovered_fec_words_tpdus: counters.recovered_fec_words,
            recovered_fec_block_tpdus: counters.recovered_fec_block,
            residual_tpdus: counters.residual_lost + counters.residual_damaged,
            delay: (self.messages > 0).then(|| self.spread()),
        }
    }

    fn spread(&self) -> Spread {
        let at = |share: f64| self.delays.value_at_quantile(share);
        Spread {
            count: self.messages,
            early: self.early,
            min: self.delays.min(),
            mean: self.delay_sum / self.messages as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.delays.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test::TestDirection;
    use super::*;
    use fulmar_proto::wire::Mode;

    fn test(mode: Mode) -> Test {
        Test {
            message_bytes: 100,
            ..Test::new(7, mode, TestDirection::Up)
        }
    }

    fn message(sequence: u64, sent_ms: u64) -> Vec<u8> {
        let mut octets = vec![0; 100];
        let sent = Instant::from_nanos(sent_ms * 1_000_000);
        Head {
            id: 7,
            sequence,
            sent,
        }
        .write(&mut octets);
        octets
    }

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn delays_are_by_the_corrected_clock() {
        // Ours is 5 s ahead; messages take 1 to 100 ms.
        let mut meter = Meter::new(test(Mode::Unreliable), 5_000_000_000);
        for sequence in 0..100 {
            let arrival = at(5_000 + sequence * 10 + sequence + 1);
            meter.take(arrival, &message(sequence, sequence * 10));
        }
        let delay = meter.measured(&Counters::default()).delay.unwrap();
        let within = |found: u64, ms: u64| {
            let wanted = ms * 1_000_000;
            assert!(
                found.abs_diff(wanted) <= wanted / 1_000,
                "{found} for {ms} ms"
            );
        };
        within(delay.min, 1);
        within(delay.p50, 50);
        within(delay.p99, 99);
        within(delay.max, 100);
        assert!((delay.mean - 50.5e6).abs() < 1.0, "{}", delay.mean);
        assert_eq!((delay.count, delay.early), (100, 0));
        // From the first submission, 5 s on our clock, to the last arrival.
        assert_eq!(
            meter.measured(&Counters::default()).elapsed,
            Duration::from_millis(99 * 10 + 100)
        );
    }

    #[test]
    fn a_message_that_comes_before_it_was_sent_counts_as_early() {
        let mut meter = Meter::new(test(Mode::Unreliable), 0);
        meter.take(at(10), &message(0, 20));
        let delay = meter.measured(&Counters::default()).delay.unwrap();
        assert_eq!((delay.early, delay.min), (1, 0));
    }

    #[test]
    fn messages_of_another_test_or_length_do_not_count() {
        let mut meter = Meter::new(test(Mode::Unreliable), 0);
        let mut other = message(0, 0);
        other[3] = 8;
        meter.take(at(1), &other);
        meter.take(at(1), &message(0, 0)[..99]);
        assert_eq!(meter.measured(&Counters::default()).messages, 0);
        assert_eq!(meter.measured(&Counters::default()).delay, None);
    }

    #[test]
    fn a_stream_gives_the_same_as_messages_and_late_ones_are_counted() {
        let mut meter = Meter::new(test(Mode::Reliable), 0);
        let stream: Vec<u8> = [0, 2, 1, 3]
            .into_iter()
            .flat_map(|sequence| message(sequence, 0))
            .collect();
        for piece in stream.chunks(33) {
            meter.take(at(9), piece);
        }
        let measured = meter.measured(&Counters::default());
        assert_eq!((measured.messages, measured.reordered), (4, 1));
        assert_eq!(measured.bytes, 400);
    }

    #[test]
    fn meters_of_streams_together_say_what_one_of_all_would() {
        // Two streams that are told apart by their delays: 1 to 50 ms, and 51 to 100 ms.
        let arrivals = |from: u64| (from..from + 50).map(move |ms| (ms, at(1_000 + 10 * ms)));
        let mut whole = Meter::new(test(Mode::Unreliable), 0);
        let mut parts = [1, 51].map(|_| Meter::new(test(Mode::Unreliable), 0));
        for (part, from) in parts.iter_mut().zip([1, 51]) {
            for (sequence, (delay, arrival)) in arrivals(from).enumerate() {
                let sent = arrival.as_nanos() / 1_000_000 - delay;
                let octets = message(sequence as u64, sent);
                part.take(arrival, &octets);
                whole.take(arrival, &octets);
            }
        }
        let mut sum = Meter::new(test(Mode::Unreliable), 0);
        for part in &parts {
            sum.merge(part);
        }
        let (sum, whole) = (
            sum.measured(&Counters::default()),
            whole.measured(&Counters::default()),
        );
        assert_eq!((sum.messages, sum.elapsed), (100, whole.elapsed));
        assert_eq!(sum.delay, whole.delay);
        let medians = parts.map(|part| part.measured(&Counters::default()).delay.unwrap().p50);
        let all = sum.delay.unwrap().p50;
        assert!(medians[0] < all && all < medians[1], "{medians:?} {all}");
    }
}
