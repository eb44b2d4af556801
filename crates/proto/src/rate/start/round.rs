//! A round of the search: what is sent at one rate until enough of it has arrived.

use super::super::window::{Point, Window};

/// Datagrams that must arrive in a round: with half lost its share is known to a fifth.
pub(super) const ARRIVED: f64 = 24.0;

/// A round so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) window: Window,
    /// The reports with which a third and two thirds of [`ARRIVED`] had arrived.
    thirds: [Option<Point>; 2],
}

impl Round {
    pub(super) const fn begin(first: Point) -> Self {
        Self {
            window: Window::begin(first),
            thirds: [None; 2],
        }
    }

    pub(super) fn add(&mut self, point: Point, packet: f64) {
        self.window.add(point);
        let third = ARRIVED * packet / 3.0;
        let arrived = self.window.arrived();
        match &mut self.thirds {
            [first @ None, _] if arrived >= third => *first = Some(point),
            [Some(_), second @ None] if arrived >= 2.0 * third => *second = Some(point),
            _ => {}
        }
    }

    /// Whether less than this share arrives in the middle of the round, and still at its end. A policer lets a bucket pass and
    /// then drops evenly; losses of a medium that come together leave a part of a round as it was.
    pub(super) fn stays_below(&self, share: f64) -> bool {
        let [Some(first), Some(second)] = self.thirds else {
            return false;
        };
        // One report may tell of more than a third; of a third without octets nothing is known.
        let is_below = |from: Point, to: Point| {
            let sent = to.sent.octets.saturating_sub(from.sent.octets) as f64;
            let arrived = to.arrived.saturating_sub(from.arrived) as f64;
            sent > 0.0 && arrived < share * sent
        };
        is_below(first, second) && is_below(second, self.window.last)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::sent_log::Sent;
    use super::*;
    use crate::units::Instant;

    /// A round of which these datagrams arrive.
    fn round_of(arrive: impl Iterator<Item = u64>) -> Round {
        let points = (1..).zip(arrive).map(|(count, number)| Point {
            sent: Sent {
                number,
                octets: 1_500 * (number + 1),
                at: Instant::START,
            },
            arrived: 1_500 * count,
            marked: 0,
            arrived_at: 0.0,
            queueing: 0.0,
        });
        let mut points = points.take(25);
        let mut round = Round::begin(points.next().expect("a datagram arrives"));
        points.for_each(|point| round.add(point, 1_500.0));
        round
    }

    #[test]
    fn a_policer_drops_evenly_and_a_burst_does_not() {
        // A bucket of ten, then every fourth.
        let policed = round_of((0..10).chain((10..).step_by(4)));
        assert!(policed.stays_below(0.5));
        // Sixty are lost together.
        for from in [4, 12, 20] {
            let burst = round_of((0..from).chain(from + 60..));
            assert!(burst.window.arrived() < 0.5 * burst.window.sent());
            assert!(!burst.stays_below(0.5), "{from}");
        }
    }

    #[test]
    fn a_report_that_ends_the_round_with_its_second_third_says_nothing_of_the_last() {
        let arrive = (0..9).chain(69..);
        let whole = round_of(arrive);
        let mut round = Round::begin(whole.window.first);
        // Nine arrive, and one report tells of all behind a burst.
        let ninth = Point {
            arrived: 1_500 * 9,
            sent: Sent {
                number: 8,
                octets: 1_500 * 9,
                at: Instant::START,
            },
            ..whole.window.last
        };
        round.add(ninth, 1_500.0);
        round.add(whole.window.last, 1_500.0);
        assert!(!round.stays_below(0.5));
    }
}
