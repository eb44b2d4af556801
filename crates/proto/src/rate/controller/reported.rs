//! The octets of a report that can have arrived: no more than were sent.
//!
//! Whoever is on the path can send a copy of what arrived, damaged, and the receiver then tells of it twice: as arrived,
//! and as arrived beyond repair. Counted twice, it would pass for a link that carries more than was sent.

/// Datagrams that may be told of ahead: what leaves alone counts with what follows it.
const AHEAD: f64 = 2.0;

/// Octets sent and told of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReportedOctets {
    /// Octets sent up to the last report, and those that were told of.
    sent: u64,
    told: u64,
    /// Octets of them that arrived.
    arrived: u64,
    /// Octets that were sent and not told of, which may be late; fewer than none if more was told of.
    missing: f64,
}

impl ReportedOctets {
    /// The octets that arrived until a report which tells of `told`, when `sent` had been sent: at most `late` octets are
    /// told of after datagrams that were sent later.
    pub(super) fn take(&mut self, sent: u64, told: u64, late: f64, packet: f64) -> u64 {
        let left = sent.saturating_sub(self.sent);
        self.sent = sent;
        let more = told.saturating_sub(self.told);
        self.told = self.told.max(told);
        let could = (self.missing + left as f64).max(-AHEAD * packet);
        let room = could + AHEAD * packet;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and a cast saturates"
        )]
        let arrived = more.min(room as u64);
        self.missing = (could - arrived as f64).min(late.max(AHEAD * packet));
        self.arrived += arrived;
        self.arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: f64 = 1_500.0;
    const LATE: f64 = 20.0 * PACKET;

    #[test]
    fn what_is_told_of_twice_counts_once() {
        let mut reported = ReportedOctets::default();
        for datagram in 1..=1_000_u64 {
            // Each as arrived, and as damaged.
            let arrived = reported.take(1_500 * datagram, 3_000 * datagram, LATE, PACKET);
            assert!(arrived <= 1_500 * (datagram + 2), "{datagram}: {arrived}");
        }
    }

    #[test]
    fn what_was_lost_long_ago_does_not_arrive_any_more() {
        let mut reported = ReportedOctets::default();
        // A half arrives for long, then twice as much is told of.
        let mut told = 0;
        for datagram in 1..=1_000_u64 {
            told += 750;
            assert_eq!(reported.take(1_500 * datagram, told, LATE, PACKET), told);
        }
        let before = reported.arrived;
        for datagram in 1_001..=1_100_u64 {
            told += 3_000;
            reported.take(1_500 * datagram, told, LATE, PACKET);
        }
        let counted = reported.arrived - before;
        assert!(counted <= 1_500 * (100 + 20 + 2), "{counted}");
    }

    #[test]
    fn datagrams_that_overtake_each_other_all_count() {
        let mut reported = ReportedOctets::default();
        // Of ten, the last arrives first, and each is told of.
        let mut told = 0;
        for ten in 1..=100_u64 {
            for _ in 0..10 {
                told += 1_500;
                reported.take(15_000 * ten, told, LATE, PACKET);
            }
        }
        assert_eq!(reported.arrived, told);
    }

    #[test]
    fn what_left_alone_and_is_told_of_ahead_counts() {
        let mut reported = ReportedOctets::default();
        let (mut sent, mut told) = (0, 0);
        for _ in 0..1_000 {
            // An answer of 100 octets counts as sent with the datagram behind it.
            told += 100;
            reported.take(sent, told, LATE, PACKET);
            sent += 1_600;
            told += 1_500;
            reported.take(sent, told, LATE, PACKET);
        }
        assert_eq!(reported.arrived, told);
    }
}
