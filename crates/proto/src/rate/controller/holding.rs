//! Beside senders that never make way: a part of the link that is held.
//!
//! BBR follows the most that it delivered, and losses in a full queue change nothing about that. Whoever
//! reduces beside it is left with less each time. It betrays itself: each 10 s it stops for a fifth of a
//! second to see the path without its queue, so the queue is empty for that and a round trip, and is back
//! soon. Two such dips in time tell, if there was none between them. Then a part of the link is held for as
//! long as dips follow, and less of it while much is dropped, since others may hold a part as well.

use super::super::window::Point;
use super::RateController;

/// The part of the link that is held.
const PART: f64 = 0.45;
/// The share of the usual queue above which a dip is over.
const BACK: f64 = 0.4;
/// The time in seconds over which the usual queue is a mean, and the multiple of the least queue that it must be.
const USUAL_TIME: f64 = 1.0;
const USUAL_TIMES: f64 = 4.0;
/// The least length of a dip: seconds besides half a round trip. And the most: seconds besides two.
const DIP_MIN: f64 = 0.15;
const DIP_MIN_ROUNDS: f64 = 0.5;
const DIP_MAX: f64 = 0.22;
const DIP_MAX_ROUNDS: f64 = 2.0;
/// The round trips and the seconds within which the queue is back: beside what is held it grows slowly.
const BACK_ROUNDS: f64 = 15.0;
const BACK_MIN: f64 = 0.5;
/// The seconds from one dip to the next; the most besides some round trips.
const APART_MIN: f64 = 9.9;
const APART_MAX: f64 = 10.4;
const APART_ROUNDS: f64 = 5.0;
/// The round trips and the datagrams over which is weighed what is dropped.
const WEIGHED_ROUNDS: f64 = 4.0;
const WEIGHED_PACKETS: f64 = 100.0;
/// The part that may be dropped besides the usual: above the first less is held, below the second more again.
const DROPPED_MUCH: f64 = 0.12;
const DROPPED_LITTLE: f64 = 0.09;
const LESS: f64 = 0.8;
const MORE: f64 = 1.1;

/// A queue that is empty.
#[derive(Clone, Copy, Debug)]
struct Dip {
    began: f64,
    /// The time of the last low delay.
    low: f64,
    /// The usual queue before it.
    usual: f64,
}

/// The part of the link that is held, and what tells that it must be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Holding {
    /// The usual delay in the queue.
    usual: f64,
    dip: Option<Dip>,
    /// The time at which the queue was last empty for as long as in a dip.
    emptied_at: Option<f64>,
    /// The time of the last dip of that kind.
    seen: Option<f64>,
    /// The end of holding, by the receiver's clock.
    until: f64,
    /// The factor by which less than [`PART`] is held.
    part: f64,
    /// The report from which on is weighed what is dropped.
    weighed: Option<Point>,
}

impl Holding {
    /// Takes a delay in the queue and says whether a dip of that kind has just ended.
    fn ends_dip(&mut self, at: f64, gap: f64, queueing: f64, least: f64, round_trip: f64) -> bool {
        let Some(dip) = &mut self.dip else {
            if self.usual > USUAL_TIMES * least && queueing < least {
                self.dip = Some(Dip {
                    began: at,
                    low: at,
                    usual: self.usual,
                });
            } else {
                self.usual += (queueing - self.usual) * (gap / USUAL_TIME).min(1.0);
            }
            return false;
        };
        if queueing < least {
            dip.low = at;
        }
        let dip = *dip;
        let lasted = dip.low - dip.began;
        let late = at - dip.low > (BACK_ROUNDS * round_trip).max(BACK_MIN);
        let back = queueing > BACK * dip.usual;
        let long = lasted > DIP_MAX + DIP_MAX_ROUNDS * round_trip;
        if !(late || back || long) {
            return false;
        }
        self.dip = None;
        if late || long {
            self.usual = queueing;
        }
        if lasted < DIP_MIN + DIP_MIN_ROUNDS * round_trip {
            return false;
        }
        let quiet = self
            .emptied_at
            .replace(at)
            .is_none_or(|before| at - before > APART_MIN);
        quiet && !late && !long
    }

    /// Takes the end of a dip.
    fn on_dip(&mut self, at: f64, round_trip: f64) {
        let longest = APART_MAX + APART_ROUNDS * round_trip;
        let apart = self.seen.replace(at).map(|seen| at - seen);
        if !apart.is_some_and(|apart| (APART_MIN..longest).contains(&apart)) {
            return;
        }
        if at >= self.until {
            self.part = 1.0;
            self.weighed = None;
        }
        self.until = at + longest;
    }
}

impl RateController {
    /// Takes a report for what it says of senders that never make way. `queue` is the least delay that is a queue.
    pub(super) fn note_dips(&mut self, point: Point, gap: f64, queue: f64) {
        let (at, round_trip) = (point.arrived_at, self.round_trip);
        let holding = &mut self.others.holding;
        if holding.ends_dip(at, gap, point.queueing, queue, round_trip) {
            holding.on_dip(at, round_trip);
        }
    }

    /// The least rate that is sent at the time of a report, beside others that never make way. `link` is the link's rate
    /// as it was.
    pub(super) fn held(&mut self, point: Point, around: f64, link: f64) -> Option<f64> {
        let (usual, packet) = (self.share.clamp(0.02, 1.0), self.packet);
        let holding = &mut self.others.holding;
        if point.arrived_at >= holding.until {
            return None;
        }
        let began = *holding.weighed.get_or_insert(point);
        let sent = (point.sent.octets - began.sent.octets) as f64;
        let seconds = point.arrived_at - began.arrived_at;
        if seconds > WEIGHED_ROUNDS * around && sent > WEIGHED_PACKETS * packet {
            let arrived = point.arrived.saturating_sub(began.arrived) as f64;
            let missing = 1.0 - arrived / sent / usual;
            if missing > DROPPED_MUCH {
                holding.part *= LESS;
            } else if missing < DROPPED_LITTLE {
                holding.part = (holding.part * MORE).min(1.0);
            }
            holding.weighed = Some(point);
        }
        Some(PART * holding.part * link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: f64 = 0.001;
    const ROUND_TRIP: f64 = 0.04;

    /// Takes delays each 10 ms for some seconds.
    fn dips(holding: &mut Holding, from: f64, seconds: f64, queueing: impl Fn(f64) -> f64) {
        let mut at = from;
        while at < from + seconds {
            at += 0.01;
            if holding.ends_dip(at, 0.01, queueing(at), LEAST, ROUND_TRIP) {
                holding.on_dip(at, ROUND_TRIP);
            }
        }
    }

    /// A queue of 30 ms that is empty for a time at the end of each `apart` seconds, and takes `back` seconds to return.
    fn stops(apart: f64, empty: f64, back: f64) -> impl Fn(f64) -> f64 {
        move |at| {
            let phase = at % apart;
            let full = 0.03;
            if phase > apart - empty {
                0.0
            } else if at > apart {
                full * (phase / back).min(1.0)
            } else {
                full
            }
        }
    }

    #[test]
    fn whoever_stops_for_a_moment_each_ten_seconds_is_known_by_the_queue() {
        let mut holding = Holding::default();
        dips(&mut holding, 0.0, 15.0, stops(10.3, 0.25, 0.2));
        assert!(holding.until <= 0.0, "one alone: {holding:?}");
        dips(&mut holding, 15.0, 10.0, stops(10.3, 0.25, 0.2));
        assert!(holding.until > 31.0, "{holding:?}");
    }

    #[test]
    fn a_queue_that_is_back_slowly_or_empty_often_or_for_long_tells_nothing() {
        for (apart, empty, back) in [
            (10.3, 0.25, 4.0),
            (5.15, 0.25, 0.1),
            (10.3, 0.5, 0.1),
            (10.3, 0.05, 0.1),
            (11.5, 0.25, 0.1),
        ] {
            let mut holding = Holding::default();
            dips(&mut holding, 0.0, 60.0, stops(apart, empty, back));
            assert!(holding.until <= 0.0, "{apart} {empty} {back}: {holding:?}");
        }
    }

    #[test]
    fn a_hold_ends_when_no_dip_follows() {
        let mut holding = Holding::default();
        dips(&mut holding, 0.0, 22.0, stops(10.3, 0.25, 0.2));
        let until = holding.until;
        dips(&mut holding, 22.0, 30.0, |_| 0.03);
        assert!((holding.until - until).abs() < 1e-9, "{holding:?}");
    }
}
