//! The pacer: one budget for source, repair, retransmission and control.
//!
//! Datagrams leave at a rate counted in wire octets, lower headers included. The pacer keeps the
//! time at which the budget is even again. A burst allowance lets a real-time driver send a few
//! datagrams ahead, so that it need not wake for each.

use crate::units::{Bitrate, ByteCount, Duration, Instant};

/// The octets by which control may run ahead: two packets of the usual size.
const CONTROL_LEAD: ByteCount = ByteCount(3000);

/// The greatest delay of a wake-up that is made up for at once. Timers of a busy machine are late
/// by a millisecond or so; more than this back to back would fill the short queues of slow links.
const LATE_MAX: Duration = Duration::from_millis(4);

/// A pacer that spaces datagrams at a rate.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: Bitrate,
    burst: Duration,
    lower_overhead: ByteCount,
    even_at: Instant,
    backlogged: bool,
}

impl Pacer {
    /// A pacer at `rate` that may run ahead by `burst` and counts `lower_overhead` octets of
    /// network and carrier headers for every datagram.
    pub const fn new(rate: Bitrate, burst: Duration, lower_overhead: ByteCount) -> Self {
        Self {
            rate,
            burst,
            lower_overhead,
            even_at: Instant::START,
            backlogged: false,
        }
    }

    /// Changes the rate for later datagrams.
    pub const fn set_rate(&mut self, rate: Bitrate) {
        self.rate = rate;
    }

    /// Counts other headers for later datagrams.
    pub const fn set_lower_overhead(&mut self, lower_overhead: ByteCount) {
        self.lower_overhead = lower_overhead;
    }

    /// The rate.
    pub const fn rate(&self) -> Bitrate {
        self.rate
    }

    /// Whether a datagram may leave at `now`.
    pub fn allows(&self, now: Instant) -> bool {
        self.even_at <= now + self.burst
    }

    /// Whether the burst has room for a datagram of `wire` octets. Where it has none, running ahead saves no wake-up: it only puts two
    /// datagrams together when a third one wakes the driver.
    pub fn has_burst_of(&self, wire: ByteCount) -> bool {
        // Without a division: it is asked for each datagram.
        let bits = u128::from(wire.0) * 8 * 1_000_000_000;
        bits <= u128::from(self.rate.as_bits_per_second()) * self.burst.as_nanos()
    }

    /// Whether control may leave at `now`. Control is small and everything waits for it, so it may
    /// run ahead of the budget by two packets, and no further.
    pub fn allows_control(&self, now: Instant) -> bool {
        self.even_at <= now + self.control_lead()
    }

    fn control_lead(&self) -> Duration {
        self.burst + self.rate.time_to_send(CONTROL_LEAD)
    }

    /// Notes that a datagram was ready and had to wait: time lost by a late wake-up is then made up
    /// for.
    pub const fn on_refused(&mut self) {
        self.backlogged = true;
    }

    /// Notes that nothing is waiting any more: from now on, time earns no credit.
    pub const fn on_idle(&mut self) {
        self.backlogged = false;
    }

    /// Counts a datagram of `octets`. Time without anything to send earns no credit beyond the
    /// burst; time lost by a late wake-up does, within bounds.
    pub fn on_sent(&mut self, now: Instant, octets: usize) {
        let wire = self.wire_bytes(octets);
        let late = if self.backlogged {
            now.saturating_since(self.even_at).min(LATE_MAX)
        } else {
            Duration::ZERO
        };
        self.even_at = self.even_at.max(now) - late + self.rate.time_to_send(wire);
    }

    /// Counts `wire` octets of the layer below, headers included: they are taken from the budget.
    pub fn on_sent_below(&mut self, now: Instant, wire: ByteCount) {
        self.even_at = self.even_at.max(now) + self.rate.time_to_send(wire);
    }

    /// The size of a datagram of `octets` with the headers below.
    pub fn wire_bytes(&self, octets: usize) -> ByteCount {
        ByteCount::from_usize(octets) + self.lower_overhead
    }

    /// The time to ask again after [`Pacer::allows_control`] said no.
    pub fn control_at(&self) -> Instant {
        self.even_at - self.control_lead()
    }

    /// The time to ask again after [`Pacer::allows`] said no: once the budget is even, so that one
    /// wake-up serves a whole burst.
    pub const fn next_at(&self) -> Instant {
        self.even_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Bitrate = Bitrate::from_bits_per_second(8_000_000); // one octet a microsecond

    #[test]
    fn datagrams_are_spaced_by_their_wire_octets() {
        let mut pacer = Pacer::new(RATE, Duration::ZERO, ByteCount(20));
        let mut now = Instant::START;
        for _ in 0..10 {
            assert!(pacer.allows(now));
            pacer.on_sent(now, 1480);
            assert!(!pacer.allows(now));
            now = pacer.next_at();
        }
        assert_eq!(now, Instant::START + Duration::from_millis(15));
    }

    #[test]
    fn what_the_layer_below_sends_is_not_sent_above_it() {
        let mut pacer = Pacer::new(RATE, Duration::ZERO, ByteCount(20));
        let now = Instant::START + Duration::from_secs(1);
        pacer.on_sent_below(now, ByteCount(1500));
        assert_eq!(pacer.next_at(), now + Duration::from_micros(1500));
    }

    #[test]
    fn a_burst_runs_ahead_without_changing_the_mean_rate() {
        let mut pacer = Pacer::new(RATE, Duration::from_millis(1), ByteCount::ZERO);
        let mut now = Instant::START;
        let mut sent = 0_u32;
        while now < Instant::START + Duration::from_millis(100) {
            while pacer.allows(now) {
                pacer.on_sent(now, 100);
                sent += 1;
            }
            now = pacer.next_at();
        }
        // 100 ms at 8 mbit are 1000 datagrams; one burst of 10, and the one that crosses it, ahead.
        assert!((1000..=1011).contains(&sent), "{sent}");
    }

    #[test]
    fn a_burst_is_one_of_what_fits_in_it() {
        let pacer = Pacer::new(RATE, Duration::from_millis(1), ByteCount::ZERO);
        assert!(pacer.has_burst_of(ByteCount(1_000)));
        assert!(!pacer.has_burst_of(ByteCount(1_001)));
    }

    #[test]
    fn control_runs_ahead_by_two_packets_and_the_data_behind_it_pays() {
        let mut pacer = Pacer::new(RATE, Duration::ZERO, ByteCount::ZERO);
        let now = Instant::START + Duration::from_secs(1);
        let mut sent = 0;
        while pacer.allows_control(now) {
            pacer.on_sent(now, 100);
            sent += 100;
        }
        assert_eq!(sent, 3100, "3000, and the one that crosses it");
        assert_eq!(pacer.control_at(), now + Duration::from_micros(100));
        assert!(!pacer.allows(now + Duration::from_millis(3)));
    }

    #[test]
    fn late_wake_ups_cost_no_rate_unless_very_late() {
        let sent_with_lateness = |late: Duration| {
            let mut pacer = Pacer::new(RATE, Duration::ZERO, ByteCount::ZERO);
            let mut now = Instant::START;
            let mut sent = 0_u32;
            while now < Instant::START + Duration::from_secs(1) {
                while pacer.allows(now) {
                    pacer.on_sent(now, 100);
                    sent += 1;
                }
                pacer.on_refused();
                now = pacer.next_at() + late;
            }
            sent
        };
        // A second at 8 mbit is 10,000 datagrams of 100 octets.
        let late = sent_with_lateness(Duration::from_millis(3));
        assert!((9_960..=10_040).contains(&late), "{late}");
        // With 20 ms each time, 4 ms and one datagram are made up for.
        let very_late = sent_with_lateness(Duration::from_millis(20));
        assert!((1_900..=2_200).contains(&very_late), "{very_late}");
    }

    #[test]
    fn idle_time_earns_no_credit() {
        let mut pacer = Pacer::new(RATE, Duration::ZERO, ByteCount::ZERO);
        let late = Instant::START + Duration::from_secs(10);
        pacer.on_sent(late, 100);
        assert!(!pacer.allows(late));
        assert_eq!(pacer.next_at(), late + Duration::from_micros(100));
    }
}
