//! Others' senders in the same queue: whether they keep it full, and what is ours then.
//!
//! While the queue is ours, the stretches below the estimate empty it. A queue that stays although less
//! is sent is others', or the path has become longer; only the latter stands quite still.

use super::super::competing::{Competing, Turn};
use super::super::window::{Point, Window};
use super::queues::Standing;
use super::{RATE_MIN, RateCause, RateController};
use crate::units::Instant;

/// The span in which the delay's least and longest are compared: so many round trips, and seconds.
const SPAN_ROUNDS: f64 = 5.0;
const SPAN_MIN: f64 = 0.5;
/// A queue stands if its least delay in a span is above this share of the longest, and so many times
/// what counts as a queue.
const STANDING: f64 = 0.1;
const STANDING_TIMES: f64 = 2.0;
/// A delay that is as many times what counts as a queue, and varies by less than that, is the path's.
const STILL_TIMES: f64 = 20.0;
/// Spans in a row in which the queue was empty, after which it is ours again.
const EMPTIED: u32 = 2;
/// The share that usually arrives above which losses are not usual.
const LOSSLESS: f64 = 0.99;

/// The knowledge of others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Others {
    competing: Option<Competing>,
    /// The end of this span, and its least and longest delay.
    until: f64,
    least: f64,
    longest: f64,
    /// Those of the span before.
    before: (f64, f64),
    emptied: u32,
    /// The estimate when the queue was last empty.
    free: f64,
    /// Whether less than usual arrived since the last report.
    cut: bool,
}

impl Others {
    /// Whether others keep the queue full.
    pub(super) const fn compete(&self) -> bool {
        self.competing.is_some()
    }
}

impl RateController {
    /// Notes whether less arrived in a window than usual.
    pub(super) fn note_cut(&mut self, window: &Window) {
        let datagrams = window.sent() / self.packet;
        if datagrams >= 1.0 {
            let usual = window.arrived() / window.sent() / self.share.clamp(0.02, 1.0);
            let chance = if self.share < LOSSLESS {
                2.5 * self.deviation(datagrams)
            } else {
                0.0
            };
            self.others.cut |= usual < 1.0 - chance - 0.5 / datagrams;
        }
    }

    /// Takes a report for what it says of others.
    pub(super) fn beside_others(&mut self, now: Instant, point: Point, before: Option<Point>) {
        let rate = self.others.free.max(self.capacity).max(RATE_MIN);
        let queue = self.delays.queue_least(self.packet, rate);
        let around = self.round_trip + point.queueing;
        let lossy = self.share < LOSSLESS;
        let used = self.epochs.back().is_some_and(|epoch| epoch.busy);
        let others = &mut self.others;
        others.least = others.least.min(point.queueing);
        others.longest = others.longest.max(point.queueing);
        let turn = Turn {
            gap: before.map_or(0.0, |it| (point.arrived_at - it.arrived_at).clamp(0.0, 1.0)),
            queueing: point.queueing,
            round_trip: around,
            cut: core::mem::take(&mut others.cut),
            lossy,
            used,
        };
        if let Some(competing) = &mut others.competing {
            competing.on_report(now.as_secs_f64(), turn);
            let rate = competing.window() * self.packet / around;
            self.capacity = rate.max(RATE_MIN).min(self.bound);
        }
        if now.as_secs_f64() >= others.until {
            self.on_span(now, queue, around);
        }
    }

    fn on_span(&mut self, now: Instant, queue: f64, around: f64) {
        let seconds = now.as_secs_f64();
        let others = &mut self.others;
        let (least, longest) = (others.least, others.longest);
        let (least_before, longest_before) = others.before;
        others.until = seconds + (SPAN_ROUNDS * around).max(SPAN_MIN);
        others.before = (least, longest);
        (others.least, others.longest) = (f64::MAX, 0.0);
        if least < STANDING_TIMES * queue || others.free < self.capacity {
            others.free = self.capacity;
        }
        let stands = |least: f64| least > STANDING_TIMES * queue;
        let standing = stands(least) && least > STANDING * longest.max(longest_before);
        if standing && longest - least <= queue && least > STILL_TIMES * queue {
            self.delays.raise_base(now, least);
            self.capacity = self.capacity.max(others.free).min(self.bound);
            others.before = (0.0, 0.0);
            self.recent = [0.0; 3];
            self.standing = Standing::default();
            self.end_competing();
        } else if others.competing.is_some() {
            others.emptied = if least < queue { others.emptied + 1 } else { 0 };
            if others.emptied >= EMPTIED {
                self.end_competing();
            }
        } else if standing && stands(least_before) {
            let window = self.capacity * around / self.packet;
            others.competing = Some(Competing::new(seconds, window));
            others.emptied = 0;
            self.delays.hold_base(true);
            self.tried = None;
            self.cause = RateCause::Shared;
        }
    }

    fn end_competing(&mut self) {
        self.others.competing = None;
        self.delays.hold_base(false);
    }
}
