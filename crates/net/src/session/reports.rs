//! The numbers of datagrams that left and that arrived, each told by the end that counts them.
//!
//! Sealed datagrams with TPDUs, with pieces of them, and heartbeats are counted. Probes are not: some are larger
//! than the path carries, some leave while the link is held for down, and the loss of either says nothing about
//! the link's loss. Each end reports the number it has sent. The other end notes how many of them it had when the
//! report came, and sends both numbers back.
//!
//! # Promises
//! - A report leaves at most once a second, and takes no more than a hundredth of a rate that is known.
//! - Both ends report the same numbers for a direction, but for the time that a report takes.
//! - Counts only grow, also when the peer starts again and counts from 0.

use super::wire::Capability;
use fulmar_proto::units::{Bitrate, Duration, Instant};

const CAPABILITY: &str = "reports";
const VERSION: &str = "1";

/// The time between two reports while something is counted, if the rate allows.
const EVERY: Duration = Duration::from_secs(1);
/// The bits of a report with all headers, for the pace on slow links.
const REPORT_BITS: u64 = 8 * 160;
/// The part of a link's rate for reports is one in so many.
const RATE_PART: u64 = 100;
/// The repetitions of a report after the last datagram that counts, more slowly each time: it may be lost.
const REPEATS: u8 = 4;

/// The capability that a hello states to get [`SessionEvent::ReportDue`](super::SessionEvent::ReportDue), if the
/// peer states the same.
pub fn reports() -> Capability {
    Capability {
        name: CAPABILITY.to_owned(),
        value: VERSION.to_owned(),
        must_agree: false,
    }
}

/// Whether an end that says this exchanges reports.
fn exchanges(capabilities: &[Capability]) -> bool {
    let mut said = capabilities.iter();
    said.any(|one| one.name == CAPABILITY && one.value == VERSION)
}

/// Datagrams of one direction, up to the last report that is known at this end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// Datagrams that left.
    pub sent: u64,
    /// Datagrams of them that arrived.
    pub arrived: u64,
}

impl Passage {
    const fn and(self, other: Self) -> Self {
        Self {
            sent: self.sent.saturating_add(other.sent),
            arrived: self.arrived.saturating_add(other.arrived),
        }
    }

    /// Takes a later state of the same counts; a state that came out of order is older, and ignored.
    const fn follow(&mut self, later: Self) {
        if later.sent >= self.sent && later.arrived >= self.arrived {
            *self = later;
        }
    }
}

/// The counts that are shared with one peer.
#[derive(Clone, Debug)]
pub(super) struct Reports {
    every: Duration,
    /// Whether both ends said that they exchange reports.
    agreed: bool,
    sent: u64,
    received: u64,
    /// The datagrams from the peer to here.
    inward: Passage,
    /// The datagrams from here to the peer, as it reports.
    outward: Passage,
    /// The sums of both over the peer's starts before this one.
    before: (Passage, Passage),
    due: Option<Instant>,
    repeats_left: u8,
}

impl Reports {
    pub(super) fn new(rate: Option<Bitrate>) -> Self {
        let rate = rate.map(|rate| rate.as_bits_per_second() / RATE_PART);
        let slow = rate.map(|rate| {
            let millis = (REPORT_BITS * 1_000).checked_div(rate);
            millis.map_or(EVERY, Duration::from_millis)
        });
        Self {
            every: slow.map_or(EVERY, |slow| slow.max(EVERY)),
            agreed: false,
            sent: 0,
            received: 0,
            inward: Passage::default(),
            outward: Passage::default(),
            before: (Passage::default(), Passage::default()),
            due: None,
            repeats_left: 0,
        }
    }

    /// Notes the capabilities of both ends when keys were agreed on.
    pub(super) fn agree(&mut self, ours: &[Capability], theirs: &[Capability]) {
        self.agreed = exchanges(ours) && exchanges(theirs);
    }

    /// Whether both ends tell what arrives.
    pub(super) const fn is_agreed(&self) -> bool {
        self.agreed
    }

    /// Begins again at 0: the peer has started again and counts from 0, and so does this end towards it.
    pub(super) fn begin_again(&mut self) {
        let before = (self.inward(), self.outward());
        *self = Self {
            every: self.every,
            before,
            ..Self::new(None)
        };
    }

    fn count(&mut self, now: Instant) {
        self.repeats_left = REPEATS;
        let soon = now + self.every;
        self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
    }

    /// Counts a datagram that left.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.sent += 1;
        self.count(now);
    }

    /// Counts a datagram that arrived.
    pub(super) fn on_received(&mut self, now: Instant) {
        self.received += 1;
        self.count(now);
    }

    /// Takes the peer's report: the number it has sent, and what it knows of our datagrams.
    pub(super) fn on_report(&mut self, sent: u64, ours: Passage) {
        self.inward.follow(Passage {
            sent,
            arrived: self.received.min(sent),
        });
        // More datagrams of ours than there are cannot have arrived.
        if ours.sent <= self.sent && ours.arrived <= ours.sent {
            self.outward.follow(ours);
        }
    }

    /// The numbers of a report now: the datagrams sent, and what is known of the peer's.
    pub(super) const fn report(&self) -> (u64, Passage) {
        (self.sent, self.inward)
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.due.filter(|_| self.agreed)
    }

    /// Whether a report is due; answered once.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        let is_due = self.next_at().is_some_and(|at| at <= now);
        if is_due {
            self.repeats_left = self.repeats_left.saturating_sub(1);
            let doublings = u32::from(REPEATS - self.repeats_left);
            self.due = (self.repeats_left > 0).then(|| now + self.every * (1 << doublings));
        }
        is_due
    }

    /// The datagrams from the peer to here.
    pub(super) const fn inward(&self) -> Passage {
        self.before.0.and(self.inward)
    }

    /// The datagrams from here to the peer.
    pub(super) const fn outward(&self) -> Passage {
        self.before.1.and(self.outward)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    fn agreed(rate: Option<u64>) -> Reports {
        let said = [reports()];
        let mut reports = Reports::new(rate.map(Bitrate::from_bits_per_second));
        reports.agree(&said, &said);
        reports
    }

    /// The times at which reports are due, up to `until`.
    fn dues(reports: &mut Reports, until: u64) -> Vec<u64> {
        let mut dues = Vec::new();
        while let Some(due) = reports.next_at().filter(|due| *due <= at(until)) {
            assert!(reports.take_due(due));
            assert!(!reports.take_due(due), "answered once");
            dues.push(due.as_nanos() / 1_000_000);
        }
        dues
    }

    #[test]
    fn both_ends_know_what_was_lost_of_each_direction() {
        let (mut a, mut b) = (agreed(None), agreed(None));
        for n in 0..1_000_u64 {
            a.on_sent(at(n));
            b.on_sent(at(n));
            if n % 5 != 0 {
                b.on_received(at(n));
            }
            if n % 10 != 0 {
                a.on_received(at(n));
            }
        }
        let (sent, known) = a.report();
        b.on_report(sent, known);
        let (sent, known) = b.report();
        a.on_report(sent, known);
        let (sent, known) = a.report();
        b.on_report(sent, known);
        let passage = |sent, arrived| Passage { sent, arrived };
        assert_eq!(a.outward(), passage(1_000, 800));
        assert_eq!(a.inward(), passage(1_000, 900));
        assert_eq!((b.inward(), b.outward()), (a.outward(), a.inward()));
    }

    #[test]
    fn reports_leave_once_a_second_and_a_few_times_after_the_last_datagram() {
        let mut reports = agreed(None);
        assert!(dues(&mut reports, 100_000).is_empty(), "nothing to say");
        let mut seen = Vec::new();
        for n in 0..50 {
            reports.on_sent(at(n * 100));
            seen.extend(dues(&mut reports, n * 100));
        }
        // A second after the first datagram that the last one does not cover.
        assert_eq!(seen, [1_000, 2_100, 3_200, 4_300]);
        assert_eq!(
            dues(&mut reports, 1_000_000),
            [5_400, 7_400, 11_400, 19_400]
        );
    }

    #[test]
    fn on_a_slow_link_they_take_a_hundredth_of_it() {
        let mut slow = agreed(Some(12_800));
        slow.on_sent(at(0));
        assert_eq!(slow.next_at(), Some(at(10_000)));
        let mut fast = agreed(Some(10_000_000));
        fast.on_sent(at(0));
        assert_eq!(fast.next_at(), Some(at(1_000)));
        // A rate below a hundred bit/s has no hundredth.
        let mut none = agreed(Some(99));
        none.on_sent(at(0));
        assert_eq!(none.next_at(), Some(at(1_000)));
    }

    #[test]
    fn without_the_same_word_of_both_nothing_is_due() {
        for (ours, theirs) in [(true, false), (false, true), (false, false)] {
            let said = |is_said: bool| is_said.then(reports).into_iter().collect::<Vec<_>>();
            let mut reports = Reports::new(None);
            reports.agree(&said(ours), &said(theirs));
            reports.on_sent(at(0));
            assert_eq!(reports.next_at(), None);
        }
    }

    #[test]
    fn counts_grow_on_when_the_peer_starts_again() {
        let mut reports = agreed(None);
        for _ in 0..10 {
            reports.on_sent(at(0));
            reports.on_received(at(0));
        }
        let ours = |sent, arrived| Passage { sent, arrived };
        reports.on_report(12, ours(10, 7));
        assert_eq!(reports.inward(), ours(12, 10));
        reports.begin_again();
        assert_eq!(reports.report(), (0, Passage::default()));
        reports.on_sent(at(1));
        reports.on_report(3, ours(1, 1));
        assert_eq!(reports.outward(), ours(11, 8));
        assert_eq!(reports.inward(), ours(15, 10));
    }

    #[test]
    fn what_cannot_be_is_left_aside() {
        let mut reports = agreed(None);
        reports.on_sent(at(0));
        reports.on_report(
            0,
            Passage {
                sent: 2,
                arrived: 1,
            },
        );
        reports.on_report(
            0,
            Passage {
                sent: 1,
                arrived: 2,
            },
        );
        assert_eq!(reports.outward(), Passage::default());
        // Received before the report that counts it: never more than were sent.
        reports.on_received(at(0));
        reports.on_received(at(0));
        reports.on_report(1, Passage::default());
        assert_eq!(
            reports.inward(),
            Passage {
                sent: 1,
                arrived: 1
            }
        );
        // An older one, late.
        reports.on_report(5, Passage::default());
        reports.on_report(4, Passage::default());
        assert_eq!(reports.inward().sent, 5);
    }
}
