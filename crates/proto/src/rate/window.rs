//! A stretch of what arrived: octets sent and arrived, the time for both, and the delays in it.

use super::sent_log::Sent;

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
}

impl Window {
    pub(super) const fn begin(first: Point) -> Self {
        Self {
            first,
            last: first,
            least: first.queueing,
            reports: 0,
        }
    }

    pub(super) fn add(&mut self, point: Point) {
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

    /// The octets that arrived in a second.
    pub(super) fn arrived_rate(&self) -> f64 {
        self.arrived() / self.arriving().max(1e-9)
    }

    /// The growth of the delay.
    pub(super) fn rise(&self) -> f64 {
        self.last.queueing - self.first.queueing
    }
}
