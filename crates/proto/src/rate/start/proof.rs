//! The proof of a train's rate: a few times as many datagrams at that rate. If they arrive as they were sent, the link
//! carries it, and no growth is needed. A policer passes a train at any rate, and not that many.
//!
//! # Promises
//! - No more leave at that rate than would leave in a round trip of growth, or a few times as many where much is lost.
//! - Only what speaks for the rate is taken for it. Where too little arrives the search goes on from half the pace, otherwise as it was.

use super::super::evidence::Shares;
use super::super::window::{Point, Window};
use super::{Known, USED};

/// Datagrams, if all of the train arrived, and at most.
const DATAGRAMS: f64 = 40.0;
const DATAGRAMS_MAX: f64 = 96.0;
/// The share of the train's share that arrives at least.
const ARRIVES: f64 = 0.75;
/// The part of the rate at which what was sent arrives at least.
const PASSES: f64 = 0.85;
/// Datagrams over which that must be known.
const SPACED: f64 = 12.0;
/// Datagrams of the slow stretch behind it that say something about the medium's share.
const SLOW_MIN: f64 = 12.0;

/// The state of the proof.
#[derive(Clone, Copy, Debug)]
pub(super) enum Proof {
    /// None was tried.
    Open,
    /// It leaves, or is under way.
    UnderWay(Trial),
    /// The rate is proven. The stretch behind it left at the pace of before.
    Proven(Option<Window>),
    /// It is over.
    Over,
}

/// The end of a proof.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    /// The link carries this rate.
    Proven(f64),
    /// Less arrived than of the train: a policer's bucket, or the medium.
    Missing,
    /// It says nothing.
    Open,
}

/// Datagrams that leave at the train's rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    rate: f64,
    /// The last number before it, and the last of it so far.
    after: u64,
    last: u64,
    /// Datagrams of it that are still to leave.
    left: u64,
    /// The share of it that must arrive.
    arrives: f64,
    busy: bool,
    window: Option<Window>,
}

impl Proof {
    /// A proof of `rate` by what leaves behind `after`; `share` of the train arrived.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 40 and 96"
    )]
    pub(super) fn begin(after: u64, rate: f64, share: f64) -> Self {
        let datagrams = (DATAGRAMS / share.max(0.1)).min(DATAGRAMS_MAX);
        Self::UnderWay(Trial {
            rate,
            after,
            last: after,
            left: datagrams as u64,
            arrives: ARRIVES * share,
            busy: true,
            window: None,
        })
    }

    pub(super) const fn is_under_way(&self) -> bool {
        matches!(self, Self::UnderWay(_))
    }

    /// The pace of what may leave now, if it belongs to the proof.
    pub(super) fn pace(&self) -> Option<f64> {
        match self {
            Self::UnderWay(trial) => (trial.left > 0).then_some(trial.rate),
            _ => None,
        }
    }

    /// Notes a datagram that leaves; `more` says whether another one waits.
    pub(super) fn on_sent(&mut self, number: u64, more: bool) {
        if let Self::UnderWay(trial) = self
            && trial.left > 0
        {
            trial.left -= 1;
            trial.last = number;
            trial.busy &= more || trial.left == 0;
        }
    }

    /// Takes a report. Returns the outcome once there is one.
    pub(super) fn on_point(&mut self, point: Point, known: &Known<'_>) -> Option<Outcome> {
        let Self::UnderWay(trial) = self else {
            return None;
        };
        if point.sent.number <= trial.after {
            return None;
        }
        if point.sent.number <= trial.last {
            let window = trial.window.get_or_insert(Window::begin(point));
            window.add(point);
        }
        if point.sent.number < trial.last || trial.left > 0 {
            return None;
        }
        let outcome = trial.outcome(point, known);
        *self = match outcome {
            Outcome::Proven(_) => Self::Proven(None),
            Outcome::Missing | Outcome::Open => Self::Over,
        };
        Some(outcome)
    }

    /// Takes a report on what left behind the proof at the pace of before.
    pub(super) fn add_slow(&mut self, point: Point) {
        if let Self::Proven(slow) = self {
            slow.get_or_insert(Window::begin(point)).add(point);
        }
    }

    /// The shares of what left behind the proof, once.
    pub(super) fn take_slow(&mut self, packet: f64) -> Option<Shares> {
        let Self::Proven(slow) = core::mem::replace(self, Self::Over) else {
            return None;
        };
        let slow = slow.filter(|slow| slow.sent() >= SLOW_MIN * packet)?;
        Some(Shares {
            rate: slow.sent_rate(),
            share: slow.arrived() / slow.sent().max(1.0),
            datagrams: slow.sent() / packet,
            edges: 0.0,
        })
    }
}

impl Trial {
    /// The verdict of the reports, the last of which is `next`. That one may come after the last datagram: the first ones are
    /// told of one by one, and then only some.
    fn outcome(&self, next: Point, known: &Known<'_>) -> Outcome {
        let Some(window) = self.window.filter(|_| self.busy) else {
            return Outcome::Open;
        };
        let least = known.delays.queue_least(known.packet, self.rate);
        let has_queued = window.rise() > 2.0 * least || window.least > least;
        let mut all = window;
        all.add(next);
        let arrived = all.arrived() / known.packet + 1.0;
        let sent = all.sent() / known.packet + 1.0;
        if arrived < self.arrives * sent {
            return Outcome::Missing;
        }
        let is_proof = !has_queued
            && window.sent() >= SPACED * known.packet
            && window.sent_rate() >= USED * self.rate
            && window.passed_rate() >= PASSES * window.sent_rate();
        if is_proof {
            Outcome::Proven(self.rate)
        } else {
            Outcome::Open
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::queue_gauge::QueueGauge;
    use super::super::super::sent_log::Sent;
    use super::*;
    use crate::units::{Duration, Instant};

    const PACKET: u64 = 1_500;
    const APART: Duration = Duration::from_micros(1_200);

    /// The end of a proof by forty datagrams, of which those arrive that `passes` says, in `stretch` times of when
    /// they left.
    fn outcome(passes: impl Fn(u64) -> bool, stretch: f64) -> Outcome {
        let delays = QueueGauge::default();
        let known = Known {
            delays: &delays,
            sent_last: 100,
            round_trip: 0.6,
            packet: PACKET as f64,
            bound: f64::MAX,
        };
        let rate = PACKET as f64 / APART.as_secs_f64();
        let mut proof = Proof::begin(9, rate, 1.0);
        let mut arrived = 0;
        for number in 10..=49 {
            proof.on_sent(number, true);
        }
        assert_eq!(proof.pace(), None, "as many as that and no more");
        for number in (10..=49).filter(|number| passes(*number)) {
            arrived += PACKET;
            let after = APART * u32::try_from(number - 10).expect("small");
            let point = Point {
                sent: Sent {
                    number,
                    octets: PACKET * number,
                    at: Instant::START + after,
                },
                arrived,
                marked: 0,
                arrived_at: 0.3 + stretch * after.as_secs_f64(),
                queueing: (stretch - 1.0) * after.as_secs_f64(),
            };
            if let Some(outcome) = proof.on_point(point, &known) {
                return outcome;
            }
        }
        Outcome::Open
    }

    #[test]
    fn a_rate_is_proven_by_what_arrives_as_it_was_sent() {
        let proven = Outcome::Proven(PACKET as f64 / APART.as_secs_f64());
        assert_eq!(outcome(|_| true, 1.0), proven);
        assert_eq!(outcome(|number| number % 10 != 3, 1.0), proven);
    }

    #[test]
    fn what_a_bucket_passes_or_a_queue_holds_proves_nothing() {
        let passes = |number| number < 22 || number == 49;
        assert_eq!(outcome(passes, 1.0), Outcome::Missing, "a bucket");
        assert_eq!(outcome(|_| true, 1.3), Outcome::Open, "a queue");
    }
}
