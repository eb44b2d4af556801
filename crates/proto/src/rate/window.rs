//! A stretch of what arrived: octets sent and arrived, the time for both, and the delays in it.

use super::sent_log::Sent;

/// The part of a stretch's time above which one hold of the path is most of it.
const MOST: f64 = 0.5;

/// A report, with the record of the datagram that it names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) sent: Sent,
    /// Octets that had arrived.
    pub(super) arrived: u64,
    /// Datagrams that had arrived with a mark.
    pub(super) marked: u64,
    /// The receiver's clock in seconds.
    pub(super) arrived_at: f64,
    /// Its delay above the least, in seconds.
    pub(super) queueing: f64,
}

/// The reports between two points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) first: Point,
    pub(super) last: Point,
    /// The least delay.
    pub(super) least: f64,
    /// Reports after the first.
    pub(super) reports: u32,
    /// The longest delay.
    pub(super) most: f64,
    /// The longest time between two arrivals that reports tell of, in seconds.
    pause: f64,
    /// The same less the time between the departures of the two: losses leave gaps in both.
    held: f64,
}

impl Window {
    pub(super) const fn begin(first: Point) -> Self {
        Self {
            first,
            last: first,
            least: first.queueing,
            reports: 0,
            most: first.queueing,
            pause: 0.0,
            held: 0.0,
        }
    }

    pub(super) fn add(&mut self, point: Point) {
        let last = self.last;
        let sending = point.sent.at.saturating_since(last.sent.at).as_secs_f64();
        let pause = point.arrived_at - last.arrived_at;
        self.pause = self.pause.max(pause);
        self.held = self.held.max(pause - sending);
        self.last = point;
        self.least = self.least.min(point.queueing);
        self.most = self.most.max(point.queueing);
        self.reports += 1;
    }

    /// Octets sent.
    pub(super) fn sent(&self) -> f64 {
        (self.last.sent.octets - self.first.sent.octets) as f64
    }

    /// Octets that arrived.
    pub(super) fn arrived(&self) -> f64 {
        self.last.arrived.saturating_sub(self.first.arrived) as f64
    }

    /// Whether some arrived with a mark.
    pub(super) const fn marked(&self) -> bool {
        self.last.marked > self.first.marked
    }

    /// The seconds in which they were sent.
    pub(super) fn sending(&self) -> f64 {
        let (first, last) = (self.first.sent.at, self.last.sent.at);
        last.saturating_since(first).as_secs_f64()
    }

    /// The seconds in which they arrived.
    pub(super) fn arriving(&self) -> f64 {
        self.last.arrived_at - self.first.arrived_at
    }

    /// The octets sent in a second.
    pub(super) fn sent_rate(&self) -> f64 {
        self.sent() / self.sending().max(1e-9)
    }

    /// The octets sent, for each second in which they arrived. It is what the link carried, if a queue
    /// stood all the time and nothing was dropped before it.
    pub(super) fn passed_rate(&self) -> f64 {
        self.sent() / self.arriving().max(1e-9)
    }

    /// Whether the path held what was sent for most of the time, so that the rest says nothing of its rate. A link that is
    /// slow brings what it is sent evenly. Where nothing was ever missing, any pause says as little.
    pub(super) fn is_mostly_held(&self) -> bool {
        let held = if self.last.arrived < self.last.sent.octets {
            self.held
        } else {
            self.pause
        };
        held > MOST * self.arriving()
    }

    /// The octets that arrived in a second.
    pub(super) fn arrived_rate(&self) -> f64 {
        self.arrived() / self.arriving().max(1e-9)
    }

    /// The growth of the delay.
    pub(super) fn rise(&self) -> f64 {
        self.last.queueing - self.first.queueing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Duration, Instant};

    /// A window of datagrams with these numbers that left and arrived at these seconds.
    fn window(arrivals: &[(u64, f64, f64)]) -> Window {
        let points = (0..)
            .zip(arrivals)
            .map(|(count, (number, left, arrived_at))| Point {
                sent: Sent {
                    number: *number,
                    octets: 100 * number,
                    at: Instant::START + Duration::from_secs_f64(*left),
                },
                arrived: 100 * count,
                marked: 0,
                arrived_at: *arrived_at,
                queueing: 0.0,
            });
        let mut points = points;
        let mut window = Window::begin(points.next().expect("one"));
        points.for_each(|point| window.add(point));
        window
    }

    #[test]
    fn a_path_that_held_everything_for_a_time_is_told_from_a_slow_one() {
        let slow = [(0, 0.0, 0.1), (1, 0.0, 0.2), (2, 0.0, 0.3), (3, 0.0, 0.4)];
        assert!(!window(&slow).is_mostly_held(), "slow");
        let all = [(0, 0.0, 0.1), (1, 0.1, 0.2), (2, 0.2, 4.2), (3, 0.3, 4.3)];
        assert!(window(&all).is_mostly_held());
        // One of those that were held is lost as well.
        let most = [(0, 0.0, 0.1), (1, 0.1, 0.2), (3, 0.3, 4.2), (4, 0.4, 4.3)];
        assert!(window(&most).is_mostly_held());
    }

    #[test]
    fn a_gap_that_losses_leave_is_none_in_which_the_path_held_anything() {
        let burst = [
            (0, 0.0, 0.1),
            (1, 0.01, 0.11),
            (30, 0.3, 0.4),
            (31, 0.31, 0.41),
        ];
        assert!(!window(&burst).is_mostly_held());
    }
}
