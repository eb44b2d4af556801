//! The transmissions under way on one of the paths to the peer.
//!
//! Order is judged on each path by itself: on a slower one everything is overtaken by what leaves later on a quicker one.

use super::Transmission;
use crate::units::{Duration, Instant};
use std::collections::VecDeque;

/// The latest transmission on a path that is known to have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewestOnPath {
    pub(super) sent_at: Instant,
    pub(super) learned_at: Instant,
}

/// The transmissions on one path, in the order of sending, with what is known of them.
#[derive(Debug, Default)]
pub(super) struct PathLog {
    pub(super) log: VecDeque<Transmission>,
    /// The time by which answers to what leaves here come later than on the quickest path.
    pub(super) lag: Duration,
    /// Kept where there are several paths; on a single one echoes tell order.
    pub(super) newest: Option<NewestOnPath>,
}

impl PathLog {
    /// Notes that the transmission of `sent_at` arrived.
    pub(super) fn on_arrived(&mut self, now: Instant, sent_at: Instant) {
        if self.newest.is_none_or(|newest| newest.sent_at < sent_at) {
            let learned_at = now;
            self.newest = Some(NewestOnPath {
                sent_at,
                learned_at,
            });
        }
    }

    /// Whether something that left here after `sent_at` arrived.
    pub(super) fn knows_later(&self, sent_at: Instant) -> bool {
        self.newest.is_some_and(|newest| newest.sent_at > sent_at)
    }
}
