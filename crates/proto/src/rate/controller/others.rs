//! Others' senders in the same queue: whether they keep it full, and what is ours then.
//!
//! While the queue is ours, the stretches below the estimate empty it. A queue that stays although less
//! is sent is others', or the path has become longer; only the latter stands quite still.

use super::super::belief::RateCause;
use super::super::competing::{Competing, Signal, Turn};
use super::super::config::RateSharing;
use super::super::window::{Point, Window};
use super::alone::Response;
use super::holding::Holding;
use super::queues::Standing;
use super::{RATE_MIN, RateController};
use crate::units::Instant;

/// The span in which the delay's least and longest are compared: so many round trips, and seconds.
const SPAN_ROUNDS: f64 = 5.0;
const SPAN_MIN: f64 = 0.5;
/// A queue stands if its least delay in a span is above this share of the longest, and so many times
/// what counts as a queue.
const STANDING: f64 = 0.1;
const STANDING_TIMES: f64 = 2.0;
/// The longest queue that several of ours are taken to keep, in round trips, and the most of them: who is squeezed to less still sees
/// others (`docs/models/found-rate.md`, section 3).
const OURS_MAX: f64 = 0.1;
const OURS_MOST: f64 = 16.0;
/// A delay that is as many times what counts as a queue, and varies by less than that, is the path's.
const STILL_TIMES: f64 = 20.0;
/// The longest delay in a span without others, as a multiple of the least queue: our own trials'.
const QUEUE_OWN: f64 = 5.0;
/// The share of the delay at a span's beginning below which a queue is not standing but draining.
const DRAINS: f64 = 0.7;
/// The share of the bandwidth-delay product of the link as it was when empty that is our first window.
const ENTRY: f64 = 0.5;
/// The first window of one who never saw the link empty (RFC 6928).
const ENTRY_NEW: f64 = 10.0;
/// The share of the least queue within which the least delays of two spans are the same: the path's.
const SAME: f64 = 0.5;
/// The datagrams that must arrive in a round trip to tell what is carried.
const ROUND_PACKETS: f64 = 8.0;
/// The datagrams in a round trip that are the least estimate while a queue stands.
const SQUEEZED_PACKETS: f64 = 4.0;
/// The most that such an estimate is, as a share of the link's rate as it was: it may be six times slower by now.
const SQUEEZED: f64 = 0.1;
/// The time for which a window is resumed, in seconds.
const REMEMBERED: f64 = 10.0;
/// The share that may be missing besides chance on a longer path.
const DROPPED: f64 = 0.01;
/// Spans in a row in which the queue was empty, after which it is ours again.
const EMPTIED: u32 = 2;
/// The share of the empty link's rate that must be ours then, since others' windows empty a short queue
/// as well; or so many spans, when the link itself may have changed.
const ALL: f64 = 0.8;
const EMPTIED_LONG: u32 = 20;
/// The share that usually arrives above which losses are not usual.
const LOSSLESS: f64 = 0.99;
/// Standard deviations of what chance takes, below which a share is cut.
const CUT_DEVIATIONS: f64 = 1.5;
/// And below which much is.
const MUCH_LOST: f64 = 0.9;

/// The knowledge of others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Others {
    /// Whether others keep the queue full, as far as is known.
    shared: bool,
    /// Whether their queue did not show in the delay yet.
    hidden: bool,
    /// Our window beside them, in mode fair.
    competing: Option<Competing>,
    /// The report with which its round trip began.
    round: Option<Point>,
    /// The last one, and its end.
    resting: Option<(Competing, f64)>,
    /// The report with which this span began.
    began: Option<Point>,
    /// The end of this span, and its least and longest delay.
    until: f64,
    least: f64,
    longest: f64,
    /// Those of the span before.
    before: (f64, f64),
    emptied: u32,
    /// The link's rate by the first train, which finds it beside others too; 0 if there was none.
    pub(super) link: f64,
    /// The share that arrived in the first round of the search, which was the slowest.
    pub(super) first_share: f64,
    /// The estimate when the queue was last empty.
    free: f64,
    /// The sign of a full queue since the last report.
    signal: Signal,
    /// The part that is held beside senders that never make way.
    pub(super) holding: Holding,
}

impl Others {
    /// Whether others keep the queue full.
    pub(super) const fn share_it(&self) -> bool {
        self.shared
    }

    /// The longest delay in this span and in the one before.
    pub(super) const fn longest_of_late(&self) -> f64 {
        self.longest.max(self.before.1)
    }

    /// Whether a window of ours is beside theirs.
    pub(super) const fn compete(&self) -> bool {
        self.competing.is_some()
    }
}

impl RateController {
    /// Notes whether less arrived in a window than usual.
    pub(super) fn note_cut(&mut self, window: &Window) {
        if window.marked() {
            self.others.signal = Signal::Marked;
        }
        let datagrams = window.sent() / self.packet;
        if datagrams >= 1.0 {
            let usual = window.arrived() / window.sent() / self.share.clamp(0.02, 1.0);
            let chance = if self.share < LOSSLESS {
                CUT_DEVIATIONS * self.deviation(datagrams)
            } else {
                0.0
            };
            if usual < 1.0 - chance - 0.5 / datagrams {
                self.others.signal = self.others.signal.max(Signal::Cut);
            }
        }
    }

    /// Takes a report for what it says of others.
    pub(super) fn beside_others(&mut self, now: Instant, point: Point, before: Option<Point>) {
        let link = self
            .others
            .link
            .max(self.others.free)
            .max(self.capacity)
            .max(RATE_MIN);
        let queue = self.delays.queue_least(self.packet, link);
        let around = self.round_trip + point.queueing;
        let lossy = self.share < LOSSLESS;
        let used = self.epochs.back().is_some_and(|epoch| epoch.busy);
        if point.queueing > queue {
            // Who is squeezed still has some datagrams under way: without reports nothing is noticed.
            // A queue of our own is no squeeze: a short one on a slow link is full with as many.
            let floor = (SQUEEZED_PACKETS * self.packet / around).min(SQUEEZED * link);
            self.capacity = self.capacity.max(floor).min(self.bound);
        }
        let gap = before.map_or(0.0, |it| (point.arrived_at - it.arrived_at).clamp(0.0, 1.0));
        let held = if self.others.compete() {
            self.note_dips(point, gap, queue);
            self.held(point, around, link)
        } else {
            None
        };
        let others = &mut self.others;
        others.least = others.least.min(point.queueing);
        others.longest = others.longest.max(point.queueing);
        let turn = Turn {
            gap,
            queueing: point.queueing,
            round_trip: around,
            signal: core::mem::take(&mut others.signal),
            lossy,
            used,
        };
        if let Some(competing) = &mut others.competing {
            competing.on_report(now.as_secs_f64(), turn);
            let began = *others.round.get_or_insert(point);
            let seconds = point.arrived_at - began.arrived_at;
            let arrived = point.arrived.saturating_sub(began.arrived) as f64;
            if seconds > around && arrived > ROUND_PACKETS * self.packet {
                let carried = arrived / seconds / self.share.clamp(0.02, 1.0);
                let under_way = around / self.packet;
                let much_lost = self.share < MUCH_LOST;
                competing.limit(carried * under_way, link * under_way, much_lost);
                others.round = Some(point);
            }
            let rate = competing.window() * self.packet / around;
            self.capacity = rate
                .max(held.unwrap_or(RATE_MIN))
                .max(RATE_MIN)
                .min(self.bound);
        }
        if now.as_secs_f64() >= others.until {
            self.on_span(now, point, queue, around);
        }
    }

    fn on_span(&mut self, now: Instant, point: Point, queue: f64, around: f64) {
        let seconds = now.as_secs_f64();
        let usual = self.share.clamp(0.02, 1.0);
        let deviation = self.deviation(1.0);
        let ours = self.queue_of_ours(queue).max(queue);
        let others = &mut self.others;
        let (least, longest) = (others.least, others.longest);
        let began = others.began.replace(point);
        let (passed, share, datagrams) = began.map_or((0.0, 1.0, 1.0), |began| {
            let sent = (point.sent.octets - began.sent.octets) as f64;
            let arrived = point.arrived.saturating_sub(began.arrived) as f64;
            let seconds = (point.arrived_at - began.arrived_at).max(1e-3);
            (sent / seconds, arrived / sent.max(1.0), sent / self.packet)
        });
        let (least_before, longest_before) = others.before;
        let drained = began.map_or(0.0, |began| began.queueing);
        others.until = seconds + (SPAN_ROUNDS * around).max(SPAN_MIN);
        others.before = (least, longest);
        (others.least, others.longest) = (f64::MAX, 0.0);
        if !others.shared && longest < QUEUE_OWN * queue {
            others.free = self.capacity;
        }
        let stands = |least: f64| least > STANDING_TIMES * queue;
        let is_others = least.min(least_before) > STANDING_TIMES * ours;
        // A full queue stands as still as a longer path, but it drops.
        let arrives = share / usual > 1.0 - DROPPED - 2.0 * deviation / datagrams.max(1.0).sqrt();
        let differs = (least - least_before).abs() > SAME * queue;
        let standing = stands(least) && least > STANDING * longest.max(longest_before);
        let still = longest - least <= queue && least > STILL_TIMES * queue;
        if standing && still && arrives {
            self.delays.raise_base(now, least);
            self.capacity = self.capacity.max(others.free).min(self.bound);
            others.before = (0.0, 0.0);
            self.recent = [0.0; 3];
            self.standing = Standing::default();
            self.end_competing(seconds);
        } else if others.shared {
            others.hidden &= longest < QUEUE_OWN * queue;
            let empty = least < queue && !others.hidden;
            others.emptied = if empty { others.emptied + 1 } else { 0 };
            let all = passed > ALL * others.free || longest < QUEUE_OWN * queue;
            if others.emptied >= EMPTIED && (all || others.emptied >= EMPTIED_LONG) {
                self.end_competing(seconds);
            }
        } else if standing
            && is_others
            && (differs || !arrives)
            && point.queueing > DRAINS * drained
        {
            self.begin_sharing(seconds, around);
        }
    }

    /// The queue that several of ours keep: each waits for what counts as one at its own rate, whatever it knows of the link.
    /// Who found the link empty would else take theirs for others', while they see none. `queue` counts as one at the link's rate.
    fn queue_of_ours(&self, queue: f64) -> f64 {
        let most = (OURS_MAX * self.round_trip).min(OURS_MOST * queue);
        self.queue_least().min(most)
    }

    /// Takes a queue for others', although its delay does not show: it was there from the beginning.
    pub(super) fn share_hidden(&mut self, now: Instant) {
        self.others.free = 0.0;
        self.others.hidden = true;
        let around = self.round_trip + self.queueing();
        self.begin_sharing(now.as_secs_f64(), around);
    }

    fn begin_sharing(&mut self, seconds: f64, around: f64) {
        if self.others.free <= 0.0 {
            // Who never saw the link empty has added to a full queue, and what that dropped is not usual.
            self.share = self.share.max(self.others.first_share);
        }
        let others = &mut self.others;
        others.emptied = 0;
        others.shared = true;
        self.response = Response::default();
        others.round = None;
        self.tried = None;
        self.delays.hold_base(true);
        self.cause = RateCause::Shared;
        if self.sharing == RateSharing::Fair {
            let lately = others.resting.filter(|(_, at)| seconds < at + REMEMBERED);
            others.competing = Some(lately.map_or_else(
                || {
                    let window = if others.free > 0.0 {
                        ENTRY * others.free * self.round_trip / self.packet
                    } else {
                        (self.capacity * around / self.packet).min(ENTRY_NEW)
                    };
                    Competing::new(seconds, window)
                },
                |(window, _)| window.resumed(seconds),
            ));
        } else {
            self.capacity = others.free.clamp(RATE_MIN, self.bound);
        }
    }

    pub(super) fn end_competing(&mut self, seconds: f64) {
        self.others.shared = false;
        self.others.hidden = false;
        if let Some(window) = self.others.competing.take() {
            self.others.resting = Some((window, seconds));
        }
        self.delays.hold_base(false);
    }
}
