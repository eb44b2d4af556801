//! What the stretches above and below the estimate say: whether more is carried.

use super::super::belief::RateCause;
use super::super::config::RateSharing;
use super::super::epoch::{Epoch, EpochKind};
use super::super::evidence::{Shares, Verdict};
use super::{RATE_MIN, RateController, seconds};
use crate::units::Instant;

/// Steps up in a row after which a queue is expected to show again.
const FOUND_MORE: u32 = 3;
/// Pairs that say nothing after which a queue is expected to show again; twice as many after each cut.
const OPEN_PAIRS: u32 = 8;
/// The round trip in seconds from which on trials are so rare that one which grew into a queue says how much passed.
const LONG_WAY: f64 = 0.08;
/// The time for which nothing is tried after more was not carried, at most.
const HOLD: f64 = 0.5;
/// The stretches above the estimate over which is averaged what is missing of them, and the bounds of one.
const OVERFILLED_OF: f64 = 4.0;
const OVERFILLED_MIN: f64 = -1.0;
const OVERFILLED_MAX: f64 = 2.0;
/// The times by which that makes the time without trials longer, for each part of what was sent above the estimate, and the most.
const REST_FOR: f64 = 2.0;
const REST_MAX: f64 = 4.0;
/// The usual share above which one stretch tells whether what was sent above the estimate is missing, and the part of it that may
/// be: of that stretch, or of the last ones where chance takes more.
const CLEAR: f64 = 0.97;
const CLEAR_MISSING: f64 = 0.5;
const OVERFILLED_TOO_MUCH: f64 = 0.7;
/// The difference of what two stretches say that the link carries, as a part of it, up to which they agree.
const AGREES: f64 = 0.01;
/// The mean difference of delays that follow each other, as a part of a stretch, up to which it says what the link carries.
const EVEN: f64 = 0.02;
/// The most of what was sent in a stretch that is taken for waiting at its end.
const WAITS_MAX: f64 = 0.5;

/// Datagrams of a stretch above the estimate.
#[derive(Clone, Copy, Debug)]
struct Excess {
    /// Sent beyond the estimate.
    sent: f64,
    /// Missing beyond the usual.
    missing: f64,
}

impl RateController {
    pub(super) fn judge(&mut self, now: Instant, epoch: &Epoch) {
        if self.others.share_it() {
            self.take_response(now, epoch);
            return;
        }
        if self.sharing == RateSharing::Fair {
            self.take_hidden(now, epoch);
        }
        let useful = !epoch.broken && epoch.busy && epoch.sent > 4.0 * self.packet;
        match epoch.kind {
            EpochKind::Up => {
                self.tried = None;
                let excess = self.excess(epoch);
                if useful {
                    self.note_overfilled(excess);
                }
                let least = self.queue_least();
                if epoch.queued || epoch.tail > least {
                    let began_empty = useful && !epoch.queued && self.arrives(epoch);
                    if began_empty && self.found_more > 0 && self.round_trip > LONG_WAY {
                        self.raise_to_passed(epoch);
                    }
                    let is_even = self.delays.noise() < EVEN * epoch.arriving;
                    let carried = (began_empty && is_even).then(|| self.carried_by(epoch));
                    self.raise_to_agreed(carried);
                    self.found_more = 0;
                    self.queue_shows = true;
                    self.cause = RateCause::Queue;
                    self.hold(now);
                } else if useful {
                    self.tried = Some(*epoch);
                    if self.is_overfilled(excess) || !self.arrives(epoch) {
                        self.found_more = 0;
                    } else if self.queue_shows {
                        self.raise(epoch, 1.0);
                        self.search_if_far_below(now);
                    }
                }
            }
            EpochKind::Down => {
                let tried = self.tried.take().filter(|_| useful);
                if let Some(tried) = tried {
                    self.compare(now, &tried, epoch);
                }
            }
            EpochKind::Cruise | EpochKind::Start => {}
        }
    }

    /// The octets that a stretch sent above the estimate, and those of them that are missing beyond the usual.
    fn excess(&self, epoch: &Epoch) -> Excess {
        let sent = (epoch.sent - self.capacity * epoch.sending) / self.packet;
        let missing = (self.share * epoch.sent - epoch.arrived) / self.packet;
        Excess { sent, missing }
    }

    fn note_overfilled(&mut self, excess: Excess) {
        let part = excess.missing / excess.sent.max(1.0);
        let part = part.clamp(OVERFILLED_MIN, OVERFILLED_MAX);
        self.overfilled += (part - self.overfilled) / OVERFILLED_OF;
    }

    /// Whether a queue too short to show it drops what a stretch sent above the estimate. Beside others that may be theirs.
    fn is_overfilled(&self, excess: Excess) -> bool {
        if self.sharing != RateSharing::Own {
            return false;
        }
        if self.share > CLEAR {
            excess.missing > CLEAR_MISSING * excess.sent.max(0.0)
        } else {
            self.overfilled > OVERFILLED_TOO_MUCH
        }
    }

    /// The standard deviation of the share of so many datagrams that arrives, as a part of it.
    pub(super) fn deviation(&self, datagrams: f64) -> f64 {
        let share = self.share.clamp(0.02, 0.999);
        (self.evidence.together() * (1.0 - share) / (share * datagrams.max(1.0))).sqrt()
    }

    /// Whether as much of a stretch arrived as usual, as far as can be told.
    fn arrives(&self, epoch: &Epoch) -> bool {
        let share = self.share.clamp(0.02, 0.999);
        let datagrams = epoch.sent / self.packet;
        let deviation = self.deviation(datagrams);
        self.evidence.sum() < 2.0 && epoch.share() / share > 1.0 - 0.02 - 3.0 * deviation
    }

    fn shares(&self, epoch: &Epoch) -> Shares {
        Shares {
            rate: epoch.sent_rate(),
            share: epoch.share(),
            datagrams: epoch.sent / self.packet,
            edges: self.delays.noise() / epoch.sending.max(1e-3),
        }
    }

    fn compare(&mut self, now: Instant, high: &Epoch, low: &Epoch) {
        let (high_shares, low_shares) = (self.shares(high), self.shares(low));
        // A share above one is what was late before, or a queue that drains.
        let odd = high_shares.share.max(low_shares.share) > 1.02;
        if odd || high_shares.rate < 1.01 * low_shares.rate {
            return;
        }
        match self.evidence.on_pair(high_shares, low_shares) {
            Verdict::Carried => {
                if !self.queue_shows {
                    // So much of the higher rate as arrives of it for what arrives of the lower one.
                    let arrives = self.evidence.relative().min(1.0);
                    self.raise(high, arrives);
                    self.evidence.restart();
                    // The link has changed: what it did before says nothing any more.
                    self.queue_shows = self.found_more >= FOUND_MORE << self.cuts.min(4);
                }
            }
            Verdict::Full => {
                // Of the lower rate all arrived, or that is too much as well and comes down next.
                let found = high_shares.rate * self.evidence.relative();
                let found = found.clamp(0.5 * self.capacity, 0.99 * self.capacity);
                self.capacity = found.clamp(RATE_MIN, self.bound);
                self.not_carried(now);
            }
            Verdict::Open => {
                if !self.queue_shows {
                    self.hold(now);
                }
                self.open_pairs += 1;
                if self.open_pairs >= OPEN_PAIRS << self.cuts.min(4) {
                    // Losses hide the answer. More is tried, and the share from before is the guard.
                    self.open_pairs = 0;
                    self.queue_shows = true;
                }
            }
        }
    }

    /// Notes that more was not carried, and no queue showed it.
    pub(super) fn not_carried(&mut self, now: Instant) {
        self.queue_shows = false;
        self.is_cut = true;
        self.cuts += 1;
        self.open_pairs = 0;
        self.found_more = 0;
        self.cause = RateCause::Cut;
        self.evidence.restart();
        self.hold(now);
    }

    /// Tries nothing more for some time, which is longer where trials overfill a short queue.
    fn hold(&mut self, now: Instant) {
        let (_, lasts) = self.step();
        let times = if self.queue_shows { 2.0 } else { 8.0 };
        let rest = if self.sharing == RateSharing::Own {
            (REST_FOR * self.overfilled).clamp(1.0, REST_MAX)
        } else {
            1.0
        };
        let hold = rest * (times * lasts).min(lasts.max(HOLD));
        self.hold_until = now + seconds(self.round_trip + hold);
    }

    /// Takes what passed of a stretch on a long way that began without a queue and ended with one, while the rate grows and nothing of it
    /// was dropped: the link carries that.
    fn raise_to_passed(&mut self, tried: &Epoch) {
        let passed = tried.passed_rate().min(tried.sent_rate());
        self.capacity = self.capacity.max(passed.min(self.bound));
    }

    /// The rate that a stretch which ended with a queue shows at least: less, while the queue was empty in its beginning, or where some
    /// of it is missing.
    fn carried_by(&self, tried: &Epoch) -> f64 {
        let share = self.share.clamp(0.02, 0.999);
        let arrived = tried.arrived / share / tried.arriving.max(1e-9);
        tried.passed_rate().min(tried.sent_rate()).min(arrived)
    }

    /// Takes what two stretches in a row agree on that the link carries, though each ended with a queue. Else an estimate that is too low
    /// by less than a stretch adds would stay there.
    fn raise_to_agreed(&mut self, carried: Option<f64>) {
        let before = core::mem::replace(&mut self.carried, carried);
        if let (Some(before), Some(now)) = (before, carried)
            && (before - now).abs() < AGREES * now
            && self.share > CLEAR
        {
            let agreed = before.min(now).min(self.bound);
            self.capacity = self.capacity.max(agreed);
        }
    }

    /// The part of a stretch that waits at its end: a short queue holds most of what was sent above the link's rate.
    fn waits(&self, tried: &Epoch) -> f64 {
        if !self.is_before_short_queue() {
            return 0.0;
        }
        let waits = (tried.tail - self.delays.noise()).max(0.0) / tried.sending.max(1e-3);
        waits.min(WAITS_MAX)
    }

    fn raise(&mut self, tried: &Epoch, arrives: f64) {
        let carried = tried.sent_rate() * (1.0 - self.waits(tried)) * arrives;
        let carried = carried.min(self.bound);
        if carried > self.capacity {
            self.leave_level();
            self.capacity = carried;
            self.found_more += 1;
            self.cause = if carried >= 0.99 * self.bound {
                RateCause::Bound
            } else {
                RateCause::Free
            };
        }
    }
}
