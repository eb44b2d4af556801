//! A search that begins again, where the link is ours: the rate is a small part of what a train showed, and neither a queue nor a
//! loss says why.
//!
//! A path that stalls, or a link that was slow for a while, leaves any rate, and from a small one growth by steps takes tens of
//! seconds: each step is some datagrams. A train alone is no evidence that more is carried: a policer passes its bucket at line
//! rate. So a search begins again only where a queue shows before something is dropped, and is seen empty. It begins with another
//! train, and is repeated more and more rarely where it finds no more. Where others may share the link it would take theirs.

use super::super::config::RateSharing;
use super::super::epoch::{Epoch, EpochKind};
use super::super::start::Start;
use super::doubt::SMALL;
use super::levels::Levels;
use super::looks::Looks;
use super::queues::Standing;
use super::{EPOCH_PACKETS, Point, RateCause, RateController, seconds};
use crate::units::{Duration, Instant};

/// The seconds until a search that found no more is repeated: the first, the factor for each further one, and the most.
const REPEATED: f64 = 1.0;
const REPEATED_MORE: f64 = 4.0;
const REPEATED_MAX: f64 = 640.0;
/// The growth by which a search found more.
const MORE: f64 = 2.0;

/// The searches that began again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Anew {
    /// The number of the last datagram of a search that ended at a small part of its train's rate, until a later one finds
    /// no queue.
    ended_small: Option<u64>,
    /// The time before which no search begins again, and the seconds to it from the last one.
    not_before: Instant,
    apart: f64,
    /// The estimate at which this search began again.
    from: Option<f64>,
}

impl RateController {
    /// Notes the end of a search, behind which `last` was the last datagram that had left.
    pub(super) fn end_search(&mut self, now: Instant, last: u64) {
        self.anew.ended_small = None;
        if let Some(from) = self.anew.from.take() {
            self.anew.apart = if self.capacity < MORE * from {
                // So much was carried before.
                self.capacity = self.capacity.max(from);
                (REPEATED_MORE * self.anew.apart).clamp(REPEATED, REPEATED_MAX)
            } else {
                REPEATED
            };
            self.anew.not_before = now + seconds(self.anew.apart);
        }
        if self.is_far_below_train() {
            self.anew.ended_small = Some(last);
        }
    }

    /// Takes a report for what it says of a search that ended far below its train: a datagram from behind it that found no
    /// queue shows that what ended the search is over.
    pub(super) fn search_if_queue_is_gone(&mut self, now: Instant, point: Point) {
        if (self.anew.ended_small).is_none_or(|last| point.sent.number <= last) {
            return;
        }
        if self.capacity >= SMALL * self.others.link {
            self.anew.ended_small = None;
        } else if self.queueing() < self.delays.queue_least(self.packet, self.others.link) {
            self.search_if_far_below(now);
        }
    }

    /// Begins the search again if the estimate is far below a train's, now that more was sent and no queue showed.
    pub(super) fn search_if_far_below(&mut self, now: Instant) {
        let is_busy = self.epochs.back().is_some_and(|epoch| epoch.busy);
        let is_ours = self.sharing == RateSharing::Own;
        if is_ours && is_busy && now >= self.anew.not_before && self.is_far_below_train() {
            self.search_again(now);
        }
    }

    fn search_again(&mut self, now: Instant) {
        self.anew.ended_small = None;
        self.anew.from = Some(self.capacity);
        self.start = Some(Start::again(self.capacity, self.others.link));
        self.cause = RateCause::Searching;
        self.window = None;
        self.tried = None;
        self.found_more = 0;
        self.levels = Levels::default();
        self.looks = Looks::default();
        self.standing = Standing::default();
        self.evidence.restart();
        self.begin_epochs(now, EpochKind::Start, Duration::MAX);
    }

    /// Ends a search that began again and of which nothing is heard: the rate is as before.
    pub(super) fn give_up_search(&mut self, now: Instant) {
        if self.anew.from.is_some() {
            self.start = None;
            self.cause = RateCause::Free;
            self.end_search(now, self.log.newest());
            let lasts = seconds(EPOCH_PACKETS * self.packet / self.capacity);
            self.begin_epochs(now, EpochKind::Cruise, lasts);
        }
    }

    /// Begins the stretches anew with one of this kind.
    fn begin_epochs(&mut self, now: Instant, kind: EpochKind, lasts: Duration) {
        self.epochs.clear();
        let first = self.log.newest() + 1;
        self.epochs
            .push_back(Epoch::new(kind, first, now, lasts, 1.0));
    }
}
