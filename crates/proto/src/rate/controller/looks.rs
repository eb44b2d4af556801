//! Looks downwards: for a moment much less is sent, to see whether less arrives.
//!
//! Whoever sends a multiple of what the link carries sees the same as one whose link loses that much: a full queue
//! of three datagrams has the same delay all the time, a policer none, and a little more or less changes nothing
//! that could be told from chance. Half as much does, or half more than what arrives if that is still less: if what
//! was missing is missing because too much was sent, what arrives does not fall.

use super::super::epoch::{Epoch, LOOK};
use super::super::evidence::Shares;
use super::super::window::{Point, Window};
use super::levels::Levels;
use super::{EPOCH_MIN, RATE_MIN, RateController, seconds};
use crate::units::Instant;

/// The share that arrives above which nobody looks: as little is lost by whatever there is.
const USUAL: f64 = 0.9;
/// Datagrams that arrive in a look, if what arrives does not fall; more where losses come together.
const ARRIVE: f64 = 16.0;
const ARRIVE_MAX: f64 = 64.0;
/// The rate of a look, as a multiple of what arrives; and its least share of the estimate.
const OF_ARRIVING: f64 = 1.5;
const LEAST: f64 = 0.002;
/// The longest look, in seconds.
const LASTS_MAX: f64 = 3.0;
/// The time between two looks, in looks: after the first, fourfold each time up to the most, which is less beside
/// others; and in seconds.
const APART_FIRST: f64 = 6.0;
const APART_MAX: f64 = 100.0;
const APART_SHARED: f64 = 16.0;
const APART_MIN: f64 = 1.0;
/// Standard deviations, and the least difference as a part of the mean share, from which on it is no chance.
const DEVIATIONS: f64 = 3.0;
const DIFFERENCE: f64 = 0.03;
/// The datagrams that would have arrived besides, at the share of the looks.
const KNOWN: f64 = 8.0;
/// The arrivals that are remembered, in those of a look.
const REMEMBERED: f64 = 8.0;
/// The time in which a stretch arrives, in times of when it was sent, below which datagrams overtook others.
const OVERTAKEN: f64 = 0.8;
/// The change of the estimate that makes what was seen worthless.
const CHANGED: f64 = 1.25;

/// Octets sent and arrived, and the seconds for both.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sent: f64,
    arrived: f64,
    sending: f64,
    arriving: f64,
}

impl Tally {
    fn add(&mut self, stretch: &Window) {
        self.sent += stretch.sent();
        self.arrived += stretch.arrived();
        self.sending += stretch.sending();
        self.arriving += stretch.arriving().max(0.0);
    }

    /// Forgets so much that the octets arrived are at most these.
    fn fade(&mut self, most: f64) {
        let kept = (most / self.arrived.max(1.0)).min(1.0);
        self.sent *= kept;
        self.arrived *= kept;
        self.sending *= kept;
        self.arriving *= kept;
    }

    fn shares(&self, packet: f64) -> Shares {
        Shares::of((self.sent, self.arrived), self.sending, packet)
    }
}

/// The shares that the last looks saw, and those besides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looks {
    full: Tally,
    less: Tally,
    /// The estimate at the last look.
    capacity: f64,
    /// The time between looks, in looks.
    apart: f64,
    at: Instant,
    /// The first report on this stretch.
    began: Option<Point>,
}

impl Looks {
    /// Begins with the last round of the search.
    pub(super) fn from(last: Option<Shares>, packet: f64, capacity: f64) -> Self {
        let full = last.map_or_else(Tally::default, |last| {
            let sent = last.datagrams * packet;
            let seconds = sent / last.rate.max(1.0);
            Tally {
                sent,
                arrived: sent * last.share,
                sending: seconds,
                arriving: seconds,
            }
        });
        Self {
            full,
            apart: APART_FIRST,
            capacity,
            ..Self::default()
        }
    }

    /// Whether so much is missing that a look can tell why.
    pub(super) fn missing(&self) -> bool {
        self.full.arrived < USUAL * self.full.sent
    }

    /// Takes a report, which is the first on the first stretch if none was before.
    pub(super) fn begin(&mut self, point: Point) {
        self.began.get_or_insert(point);
    }
}

impl RateController {
    /// The octets that arrive in a look, if what arrives does not fall.
    fn look_octets(&self) -> f64 {
        let arrive = ARRIVE * self.evidence.together() * (1.0 - self.looks.full.shares(1.0).share);
        arrive.clamp(ARRIVE, ARRIVE_MAX) * self.packet
    }

    /// The share of the estimate that is sent in a look, and the seconds of it.
    pub(super) fn look_shape(&self) -> (f64, f64) {
        let full = self.looks.full;
        if full.arrived <= 0.0 {
            return (LOOK, EPOCH_MIN);
        }
        let gain = (OF_ARRIVING * full.arrived / full.sent).clamp(LEAST, LOOK);
        let lasts = self.look_octets() * full.arriving / full.arrived;
        (gain, lasts.clamp(EPOCH_MIN, LASTS_MAX))
    }

    /// Whether it is time to look whether less arrives of less.
    pub(super) fn looks_down(&self, now: Instant) -> bool {
        let full = &self.looks.full;
        now >= self.looks.at && full.arrived >= self.look_octets() && self.looks.missing()
    }

    /// Notes that a look begins.
    pub(super) fn begin_look(&mut self, now: Instant, lasts: f64) {
        let most = if self.others.share_it() {
            APART_SHARED
        } else {
            APART_MAX
        };
        let looks = &mut self.looks;
        let apart = (looks.apart.max(APART_FIRST) * lasts).max(APART_MIN);
        looks.at = now + seconds(apart);
        looks.apart = (4.0 * looks.apart).clamp(APART_FIRST, most);
    }

    /// Takes a stretch that ended before `point`, the first report on the next one. A stretch begins and ends with the
    /// first datagram to arrive after its first was sent: what is lost at its ends counts once.
    pub(super) fn take_look(&mut self, now: Instant, epoch: &Epoch, point: Point, alone: bool) {
        let began = self.looks.began.replace(point);
        let useful = !epoch.broken && epoch.busy && alone;
        let Some(began) = began.filter(|_| useful) else {
            return;
        };
        let mut stretch = Window::begin(began);
        stretch.add(point);
        // After a path has become shorter what is new overtakes what is under way.
        let overtaken = stretch.arriving() < OVERTAKEN * stretch.sending();
        if overtaken || stretch.arrived() > stretch.sent() {
            return;
        }
        let most = REMEMBERED * self.look_octets();
        let changed = self.capacity / self.looks.capacity.max(1.0);
        if !(1.0 / CHANGED..CHANGED).contains(&changed) {
            if self.looks.capacity > 0.0 && !self.others.share_it() {
                self.looks.full = Tally::default();
            }
            self.looks.less = Tally::default();
            self.looks.capacity = self.capacity;
        }
        if !epoch.is_look() {
            if stretch.sent_rate() > CHANGED * self.capacity {
                // It was sent when more was thought possible.
                return;
            }
            self.looks.full.add(&stretch);
            self.looks.full.fade(most);
            return;
        }
        let looks = &mut self.looks;
        looks.less.add(&stretch);
        looks.less.fade(most);
        let (full, less) = (
            looks.full.shares(self.packet),
            looks.less.shares(self.packet),
        );
        // The spread of both if the medium were the reason for both.
        let both = (full.share * full.datagrams + less.share * less.datagrams)
            / (full.datagrams + less.datagrams).max(1.0);
        let as_one = |shares: Shares| Shares {
            share: both,
            ..shares
        };
        let variance = self.evidence.variance(as_one(full), as_one(less));
        let ratio = (full.share - less.share) / both.max(1e-6);
        let known = full.datagrams * less.share >= KNOWN;
        if known && ratio < -DIFFERENCE && ratio < -DEVIATIONS * variance.sqrt() {
            let found = full.rate * full.share / less.share;
            let least = epoch.gain * self.capacity;
            self.come_down(now, found.max(least), less, point);
        }
    }

    /// Takes a rate below the estimate for the link's, and the share of the looks for the medium's.
    fn come_down(&mut self, now: Instant, found: f64, less: Shares, point: Point) {
        if self.others.share_it() {
            self.end_competing(now.as_secs_f64());
        }
        self.capacity = found.min(0.99 * self.capacity).clamp(RATE_MIN, self.bound);
        self.share = less.share;
        self.share_octets = self.looks.less.sent;
        self.levels = Levels::default();
        self.looks = Looks {
            apart: APART_FIRST,
            at: now,
            began: Some(point),
            ..Looks::default()
        };
        self.not_carried(now);
    }
}
