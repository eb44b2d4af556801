//! The changes of connections' repair, for whoever shows them.

use super::AerotpEndpoint;
use crate::machine::PathId;
use crate::trace::RepairDecision;
use crate::units::Instant;
use std::collections::VecDeque;

/// Changes that are kept until somebody takes them, at most. Older ones give way.
const KEPT_MAX: usize = 64;

/// A change of a connection's repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairChange {
    /// The time.
    pub at: Instant,
    /// The path.
    pub path: PathId,
    /// The class of the connection's [`Share`](crate::transport::aerotp::Share).
    pub class: u8,
    /// The change and its reasons.
    pub decision: RepairDecision,
}

/// The changes that nobody has taken.
#[derive(Debug, Default)]
pub(super) struct RepairChanges(VecDeque<RepairChange>);

impl RepairChanges {
    pub(super) fn note(&mut self, change: RepairChange) {
        if self.0.len() >= KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(change);
    }
}

impl AerotpEndpoint {
    /// Takes the oldest change of a connection's repair. Each connection has one a second at most, and only with a goal;
    /// of those that nobody takes the last 64 are kept.
    pub fn take_repair_change(&mut self) -> Option<RepairChange> {
        self.repairs.0.pop_front()
    }
}
