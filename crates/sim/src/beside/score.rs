//! The score that `auto` and the fixed settings are compared by.
//!
//! Messages: 1 / (1 + 5 m + (x - 1) / 10). m is the share of messages that missed the deadline beyond the share that may, and x
//! the octets sent for each octet of message. So twice the octets are worth it if they save two messages of a hundred.
//!
//! Bulk: the share of the slowest hop's rate that arrives, over 1 + (x - 1) / 10.
//!
//! A setting that loses what the goal wants delivered has no score, and neither has one that sends more than the goal's
//! `overhead` allows, in hundredths of what the data take alone: beyond repetition alone, or beyond the data alone where late
//! messages are given up.

use crate::measure::flow::FlowPunctuality;

/// The weight of a share of messages that missed.
const MISS_WEIGHT: f64 = 5.0;
/// The weight of octets beyond those of messages.
const OCTETS_WEIGHT: f64 = 0.1;
/// The share of what the data take alone by which a setting may exceed the overhead: answers and set-up.
pub(super) const OVERHEAD_TOLERATED: f64 = 0.02;

/// The part of a run of one setting, or all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Achieved {
    /// The fates of messages.
    pub fates: FlowPunctuality,
    /// Octets that were sent.
    pub sent: u64,
    /// Octets that applications wrote, as far as they count in this part.
    pub written: u64,
    /// Octets delivered.
    pub delivered: u64,
    /// The time that it took.
    pub seconds: f64,
}

/// The goal as far as the score knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScoredGoal {
    /// Messages, of which this share may miss the deadline.
    Messages {
        /// The share.
        may_miss: f64,
    },
    /// Bulk over this rate, in bits per second.
    Bulk {
        /// The rate.
        rate: f64,
    },
}

impl Achieved {
    /// Octets sent for each octet written.
    pub fn octets(&self) -> f64 {
        let of = match self.written {
            0 => self.delivered,
            written => written,
        };
        self.sent as f64 / of.max(1) as f64
    }

    /// Octets of message for each message.
    pub(super) fn octets_each(&self) -> f64 {
        self.written as f64 / self.fates.total().max(1) as f64
    }

    /// The share of messages that came in time.
    pub fn in_time(&self) -> f64 {
        self.fates.in_time as f64 / self.fates.total().max(1) as f64
    }

    /// The score.
    pub fn score(&self, goal: ScoredGoal) -> f64 {
        let octets = (self.octets() - 1.0).max(0.0) * OCTETS_WEIGHT;
        match goal {
            ScoredGoal::Messages { may_miss } => {
                let beyond = (1.0 - self.in_time() - may_miss).max(0.0);
                1.0 / (1.0 + MISS_WEIGHT * beyond + octets)
            }
            ScoredGoal::Bulk { rate } => {
                let goodput = self.delivered as f64 * 8.0 / self.seconds.max(1e-9);
                goodput / rate / (1.0 + octets)
            }
        }
    }
}

impl core::ops::AddAssign for Achieved {
    fn add_assign(&mut self, other: Self) {
        self.fates += other.fates;
        self.sent += other.sent;
        self.written += other.written;
        self.delivered += other.delivered;
        self.seconds += other.seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(in_time: u64, sent: u64) -> f64 {
        let achieved = Achieved {
            fates: FlowPunctuality {
                in_time,
                late: 1_000 - in_time,
                lost: 0,
            },
            sent,
            written: 1_000,
            ..Achieved::default()
        };
        achieved.score(ScoredGoal::Messages { may_miss: 0.01 })
    }

    #[test]
    fn what_may_miss_costs_nothing_and_twice_the_octets_as_much_as_two_messages_of_a_hundred() {
        assert!((messages(990, 1_000) - 1.0).abs() < 1e-12);
        assert!((messages(1_000, 1_000) - 1.0).abs() < 1e-12);
        assert!((messages(970, 1_000) - messages(990, 2_000)).abs() < 1e-12);
        assert!(messages(980, 1_000) > messages(970, 1_000));
    }

    #[test]
    fn bulk_is_scored_by_what_arrives_in_a_second() {
        let bulk = |seconds, sent| {
            let achieved = Achieved {
                sent,
                written: 1_000,
                delivered: 1_000,
                seconds,
                ..Achieved::default()
            };
            achieved.score(ScoredGoal::Bulk { rate: 8_000.0 })
        };
        assert!((bulk(1.0, 1_000) - 1.0).abs() < 1e-12);
        assert!((bulk(2.0, 1_000) - 0.5).abs() < 1e-12);
        assert!((bulk(1.0, 2_000) - 1.0 / 1.1).abs() < 1e-12);
    }
}
