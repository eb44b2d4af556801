//! A rate that the link tells: no more is sent, and that much is tried at once.

use super::super::belief::RateCause;
use super::super::epoch::{Epoch, EpochKind};
use super::levels::Levels;
use super::queues::Standing;
use super::{RateController, octets_of, seconds};
use crate::units::{Bitrate, Instant};

impl RateController {
    /// Tries the rate that the link tells, once: what arrives of it says whether the link carries it. During the search it is
    /// tried behind the train.
    pub fn try_told(&mut self, now: Instant, told: Bitrate) {
        let told = octets_of(Some(told)).min(self.bound);
        if let Some(start) = &mut self.start {
            start.try_first(told);
            return;
        }
        if self.epochs.is_empty() {
            self.first = Some(told);
            return;
        }
        if told <= self.capacity {
            return;
        }
        self.capacity = told;
        self.cause = if told >= 0.99 * self.bound {
            RateCause::Bound
        } else {
            RateCause::Free
        };
        // The link has changed: what it did before says nothing any more.
        self.queue_shows = true;
        self.is_cut = false;
        self.found_more = 0;
        self.tried = None;
        self.levels = Levels::default();
        self.standing = Standing::default();
        self.evidence.restart();
        let (_, lasts) = self.step();
        let first = self.log.newest() + 1;
        // One that has sent nothing says nothing: many words without a datagram leave one.
        if self.epochs.back().is_some_and(|last| last.first == first) {
            self.epochs.pop_back();
        }
        let epoch = Epoch::new(EpochKind::Cruise, first, now, seconds(lasts), 1.0);
        self.epochs.push_back(epoch);
        self.hold_until = now + seconds(2.0 * self.round_trip + lasts);
    }
}
