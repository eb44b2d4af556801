//! The recovery of losses, as far as it decides how much may be under way: what was lost leaves again, and until all
//! that was under way at the first loss is delivered, a sender is in recovery. In the first round of a recovery no more is
//! under way than before it.
//!
//! # Sources
//! RFC 6937 (packet conservation); the states of Linux's congestion control (`Documentation/networking` and
//! draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.3.4, "Modulating cwnd in Loss Recovery").

use std::collections::{BTreeSet, VecDeque};

/// The data on their way, and the recovery of those that were lost.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// Data that left, perhaps more than once, and are not delivered.
    undelivered: BTreeSet<u64>,
    /// Those of them that were lost at least once.
    lost: BTreeSet<u64>,
    /// Those that wait to leave again.
    waiting: VecDeque<u64>,
    next: u64,
    /// The first data behind those whose delivery ends this recovery.
    ends: Option<u64>,
    /// Whether this is the first round of it.
    conserves: bool,
}

/// A change of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    None,
    Begins,
    Ends,
}

impl Recovery {
    /// The data that leave now: the oldest lost ones, else new ones.
    pub(super) fn leave(&mut self) -> u64 {
        self.waiting.pop_front().unwrap_or_else(|| {
            let data = self.next;
            self.next += 1;
            self.undelivered.insert(data);
            data
        })
    }

    pub(super) fn on_delivered(&mut self, data: u64) {
        self.undelivered.remove(&data);
        self.lost.remove(&data);
    }

    pub(super) fn on_lost(&mut self, data: u64) {
        if self.undelivered.contains(&data) {
            self.lost.insert(data);
            self.waiting.push_back(data);
        }
    }

    /// Forgets all, as after a timeout: everything begins anew.
    pub(super) fn restart(&mut self) {
        *self = Self {
            next: self.next,
            ..Self::default()
        };
    }

    /// Whether no more may be under way than was.
    pub(super) const fn conserves(&self) -> bool {
        self.conserves
    }

    /// Notes that a round began.
    pub(super) const fn on_round(&mut self) {
        self.conserves = false;
    }

    /// The change of the state after an acknowledgement.
    pub(super) fn step(&mut self) -> Change {
        match self.ends {
            None if !self.lost.is_empty() => {
                self.ends = Some(self.next);
                self.conserves = true;
                Change::Begins
            }
            Some(ends) if (self.undelivered.first()).is_none_or(|first| *first >= ends) => {
                self.ends = None;
                self.conserves = false;
                Change::Ends
            }
            _ => Change::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_lasts_until_what_left_before_it_is_delivered_and_the_next_one_follows() {
        let mut recovery = Recovery::default();
        let sent: Vec<u64> = (0..4).map(|_| recovery.leave()).collect();
        assert_eq!(sent, [0, 1, 2, 3]);
        recovery.on_delivered(1);
        recovery.on_lost(0);
        assert_eq!(recovery.step(), Change::Begins);
        assert!(recovery.conserves());
        recovery.on_round();
        assert!(!recovery.conserves());
        assert_eq!(recovery.leave(), 0, "what was lost goes first");
        let later = recovery.leave();
        assert_eq!(later, 4);
        for data in [2, 3] {
            recovery.on_delivered(data);
        }
        recovery.on_lost(later);
        assert_eq!(recovery.step(), Change::None, "one of before is missing");
        recovery.on_delivered(0);
        assert_eq!(recovery.step(), Change::Ends);
        assert_eq!(recovery.step(), Change::Begins, "one of later is missing");
        assert_eq!(recovery.leave(), later);
        recovery.on_delivered(later);
        assert_eq!(recovery.step(), Change::Ends);
        assert_eq!(recovery.step(), Change::None);
    }
}
