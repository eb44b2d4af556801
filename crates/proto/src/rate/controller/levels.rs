//! The level at which is sent without a queue to see, against a lower one from before.
//!
//! A step up that loses a little goes unnoticed where much is lost at random, and so does the next one,
//! from a share that has learnt of the first. So the share of the level from which the rate grew is
//! kept, and what grew is weighed against it for as long as no queue shows.

use super::super::evidence::{ENOUGH, Shares};
use super::super::window::Window;
use super::{RATE_MIN, RateController};
use crate::units::Instant;

/// Datagrams that make a level known, and those that may tell against it.
const KNOWN: f64 = 400.0;
const TELLS: f64 = 30.0;
/// The least growth above the level from before that is weighed.
const GROWN: f64 = 1.02;

/// Octets sent and arrived at about one rate.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    sent: f64,
    arrived: f64,
    sending: f64,
}

impl Level {
    fn shares(&self, packet: f64) -> Shares {
        Shares::of((self.sent, self.arrived), self.sending, packet)
    }
}

/// This level, and the one from which the rate grew.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Levels {
    now: Level,
    before: Option<Shares>,
}

impl Levels {
    /// Begins from a level whose shares are known.
    pub(super) fn from(before: Option<Shares>) -> Self {
        Self {
            now: Level::default(),
            before: before.filter(|shares| shares.datagrams >= KNOWN),
        }
    }
}

impl RateController {
    /// Notes that the estimate is about to grow without a queue.
    pub(super) fn leave_level(&mut self) {
        let now = self.levels.now.shares(self.packet);
        if self.levels.before.is_none() {
            if now.datagrams < KNOWN {
                return;
            }
            self.levels.before = Some(now);
        }
        self.levels.now = Level::default();
    }

    /// Takes a window without a queue.
    pub(super) fn weigh_level(&mut self, now: Instant, window: &Window) {
        let level = &mut self.levels.now;
        level.sent += window.sent();
        level.arrived += window.arrived();
        level.sending += window.sending();
        let Some(before) = self.levels.before else {
            return;
        };
        let shares = level.shares(self.packet);
        if shares.datagrams < TELLS || shares.rate < GROWN * before.rate {
            return;
        }
        let weight = self.evidence.weigh(shares, before);
        if weight >= ENOUGH {
            let found = shares.rate * shares.share / before.share.max(0.01);
            let found = found.max(before.rate).min(0.99 * self.capacity);
            self.capacity = found.clamp(RATE_MIN, self.bound);
            self.levels.now = Level::default();
            self.not_carried(now);
        } else if weight <= -ENOUGH {
            self.levels.before = Some(shares);
        }
    }
}
