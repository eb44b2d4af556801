//! What windows of reports say: the share that arrives without a queue, and the link's rate while one
//! stands.

use super::super::belief::RateCause;
use super::super::config::RateSharing;
use super::super::epoch::EpochKind;
use super::super::evidence::{Shares, Verdict};
use super::super::window::Window;
use super::levels::Levels;
use super::{RATE_MIN, RateController};
use crate::units::Instant;

/// The share of a new window in the estimate, and of one that says something else altogether.
const GAIN: f64 = 0.3;
const FAR: f64 = 0.12;
/// Octets over which the share that arrives without a queue is averaged, in packets.
const SHARE_PACKETS: f64 = 1_000.0;
/// The share of the longest delay of late below which a queue has room.
const ROOM: f64 = 0.5;
/// The share of the estimate from which on it is in use, though there was not always something to send.
const USED: f64 = 0.8;
/// The share of what was sent that passes when a queue grows, whoever sent little.
const OVERLOADED: f64 = 0.9;
/// The factor by which less is sent while a delay stays for unknown reasons.
const PRESSED: f64 = 0.7;

/// Windows in which less was sent and the delay stayed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    windows: u32,
    sent: f64,
    arrived: f64,
    seconds: f64,
    /// The shares when it was first sent less, and the estimate before.
    before: Option<Shares>,
    capacity: Option<f64>,
}

impl RateController {
    /// Judges the open window, as far as it came.
    pub(super) fn close_window(&mut self, now: Instant) {
        let Some(window) = self.window.filter(|window| window.reports > 0) else {
            return;
        };
        let epoch = &mut self.epochs[0];
        epoch.sent += window.sent();
        epoch.arrived += window.arrived();
        epoch.sending += window.sending();
        epoch.arriving += window.arriving().max(0.0);
        let kind = epoch.kind;
        if window.arriving() <= 0.0 || window.sending() <= 0.0 {
            return;
        }
        if self.sharing != RateSharing::Own {
            self.note_cut(&window);
        }
        let least = self.queue_least();
        if self.others.share_it() {
            self.epochs[0].queued |= window.least > least;
            self.learn_share(&window);
            return;
        }
        let queued = (window.least > least && window.reports >= 2) || window.marked();
        if !queued {
            self.standing = Standing::default();
        }
        if queued {
            self.epochs[0].queued = true;
            self.levels = Levels::default();
            if self.is_used(&window) {
                self.on_queue(now, &window, least);
            }
        } else if kind != EpochKind::Up && window.sent_rate() < 1.05 * self.capacity {
            let octets = window.sent();
            let share = (window.arrived() / octets.max(1.0)).min(1.0);
            self.evidence.on_window(share, octets / self.packet);
            self.weigh_level(now, &window);
            if self.found_more > 0 {
                // While the rate grows, the share from before says whether what is more arrives.
                return;
            }
            if !self.may_have_dropped(&window, least) {
                self.add_share(share, octets);
            }
        }
    }

    /// Whether a queue may have been full at times in a window through which none stood: what is missing of it may be our own
    /// doing. Where delays differ by more than a datagram takes anyhow, they tell of no such queue; where the link is ours,
    /// trials tell.
    fn may_have_dropped(&self, window: &Window, least: f64) -> bool {
        let datagram = self.packet / self.capacity.max(RATE_MIN);
        self.sharing != RateSharing::Own && window.most > least && self.delays.noise() < datagram
    }

    /// Takes the share of so many octets that arrived without a queue.
    fn add_share(&mut self, share: f64, octets: f64) {
        self.share_octets = (self.share_octets + octets).min(SHARE_PACKETS * self.packet);
        // A stretch of datagrams that carry nothing has no octets.
        self.share += (share - self.share) * octets / self.share_octets.max(octets).max(1.0);
    }

    /// Takes a window beside others for the medium's share: a queue that has room drops nothing.
    pub(super) fn learn_share(&mut self, window: &Window) {
        if window.most < ROOM * self.others.longest_of_late() {
            let octets = window.sent();
            self.add_share((window.arrived() / octets.max(1.0)).min(1.0), octets);
        }
    }

    /// Whether what was sent in a window can be the reason for its queue, or tell of it: little that was sent because
    /// there was no more says nothing of the link's rate, and neither does a path that held it for a time.
    fn is_used(&self, window: &Window) -> bool {
        let sent = window.sent_rate();
        self.epochs[0].busy
            || sent > USED * self.capacity
            || (window.passed_rate() < OVERLOADED * sent && !window.is_mostly_held())
    }

    /// Takes a window in which a queue stood from its beginning to its end.
    fn on_queue(&mut self, now: Instant, window: &Window, least: f64) {
        let sent = window.sent_rate();
        let passed = window.passed_rate();
        let slower = 1.0 - sent / self.capacity;
        let steady = window.rise().abs() < 0.3 * slower * window.sending()
            && (passed / sent - 1.0).abs() < 0.3 * slower;
        let told_by_look = self.epochs[0].is_look() && self.looks.missing();
        if slower > 0.1 && steady && !told_by_look {
            self.on_standing(now, window, slower);
            return;
        }
        self.standing = Standing::default();
        let datagrams = window.sent() / self.packet;
        let mut found = passed;
        let share = self.share.clamp(0.02, 0.999);
        let deviation = self.deviation(datagrams);
        let arrived = window.arrived() / (window.sent() * share);
        let missing = arrived < 1.0 - 2.5 * deviation;
        if missing {
            found = window.arrived_rate() / share;
        }
        // While more is sent than passes, some may be dropped before the queue: that is no more than a
        // bound. While the queue drains it is what the link carries.
        if found > self.capacity && sent > 0.97 * found {
            found = self.capacity;
        }
        let ratio = found / self.capacity;
        let far = (ratio - 1.0).abs() > FAR && window.least > 2.0 * least;
        // What is missing may be a burst of the medium's: several windows tell.
        let gain = if far && ratio < 1.0 && !missing {
            1.0
        } else {
            GAIN
        };
        let found = self.capacity * (1.0 + (ratio - 1.0) * gain);
        self.capacity = found.clamp(RATE_MIN, self.bound);
        self.cause = RateCause::Queue;
        self.queue_shows = true;
        self.cuts = 0;
        self.is_cut = false;
        self.found_more = 0;
    }

    /// Takes a window in which less was sent, and the delay stayed: the path is longer, or a short
    /// queue is so full that still more is sent than it takes.
    fn on_standing(&mut self, now: Instant, window: &Window, slower: f64) {
        self.standing.windows += 1;
        self.standing.sent += window.sent();
        self.standing.arrived += window.arrived();
        self.standing.seconds += window.arriving();
        let standing = self.standing;
        let datagrams = standing.sent / self.packet;
        if standing.windows < 2 || datagrams < 8.0 {
            return;
        }
        let shares = Shares {
            rate: standing.sent / standing.seconds,
            share: standing.arrived / standing.sent,
            datagrams,
            edges: self.delays.noise() / standing.seconds,
        };
        let usual = shares.share / self.share.clamp(0.02, 0.999);
        let verdict = if 2.0 * self.deviation(datagrams) <= slower / 2.0 {
            if usual > 1.0 - slower / 2.0 {
                Verdict::Carried
            } else {
                Verdict::Full
            }
        } else {
            let alone = |before| self.evidence.of_pair(before, shares);
            standing.before.map_or(Verdict::Open, alone)
        };
        let capacity = standing.capacity.unwrap_or(self.capacity);
        match verdict {
            // A full queue of others looks the same: what stands still is told elsewhere.
            Verdict::Carried if self.sharing != RateSharing::Own => {}
            Verdict::Carried => {
                self.delays.raise_base(now, window.least);
                self.recent = [0.0; 3];
                self.capacity = capacity;
                self.standing = Standing::default();
            }
            Verdict::Full => {
                let found = shares.rate * shares.share / self.share.clamp(0.02, 0.999);
                self.capacity = found.clamp(RATE_MIN, self.capacity);
                self.cause = RateCause::Queue;
                self.found_more = 0;
                self.standing = Standing::default();
            }
            Verdict::Open => {
                // Still less, to see what it does to the delay and to the share.
                self.capacity = (self.capacity * PRESSED).max(RATE_MIN);
                self.standing = Standing {
                    before: standing.before.or(Some(shares)),
                    capacity: Some(capacity),
                    ..Standing::default()
                };
            }
        }
    }
}
