//! A stretch of what arrived: octets sent and arrived, the time for both, and the delays in it.

use super::sent_log::Sent;

/// The part of a stretch's time above which one pause between two reports is most of it.
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
    /// The longest time between two arrivals that reports tell of, in seconds.
    pause: f64,
}

impl Window {
    pub(super) const fn begin(first: Point) -> Self {
        Self {
            first,
            last: first,
            least: first.queueing,
            reports: 0,
            pause: 0.0,
        }
    }

    pub(super) fn add(&mut self, point: Point) {
        self.pause = (self.pause).max(point.arrived_at - self.last.arrived_at);
        self.last = point;
        self.least = self.least.min(point.queueing);
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

    /// Whether nothing arrived for most of the time: the path held what was sent, or lost it, and says nothing of its rate. A
    /// link that is slow brings what it is sent evenly.
    pub(super) fn is_mostly_pause(&self) -> bool {
        self.pause > MOST * self.arriving()
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
    use crate::units::Instant;

    fn window(arrivals: &[f64]) -> Window {
        let points = (0..).zip(arrivals).map(|(number, arrived_at)| Point {
            sent: Sent {
                number,
                octets: 100 * number,
                at: Instant::START,
            },
            arrived: 100 * number,
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
        assert!(
            !window(&[0.0, 0.1, 0.2, 0.3, 0.4]).is_mostly_pause(),
            "slow"
        );
        let lost_a_report = window(&[0.0, 0.1, 0.3, 0.4]);
        assert!(!lost_a_report.is_mostly_pause());
        assert!(window(&[0.0, 0.1, 0.2, 4.2]).is_mostly_pause(), "held");
        assert!(window(&[0.0, 0.1, 4.2, 4.201, 4.3]).is_mostly_pause());
    }
}
