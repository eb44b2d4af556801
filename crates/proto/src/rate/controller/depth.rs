//! The depth of the queue, as far as it was seen.
//!
//! A queue of three packets is full before a delay of one and a half datagrams stands long enough to tell: small datagrams take
//! its places as well, and what it drops passes for the medium's loss. Ten datagrams leave at once in the first train, so whoever
//! never saw more than a few waiting is before a short queue, or before none. Where others may be in the queue the same signs are
//! theirs: nothing is concluded.

use super::super::config::RateSharing;
use super::{RATE_MIN, RateController};

/// The datagrams below which a queue is short: a train of ten shows nine, less what is lost.
const SHORT: f64 = 8.0;
/// The multiple of the estimate above which a train's rate is no figure of the queue: a policer passes its bucket at line rate.
const FAR_BELOW: f64 = 16.0;
/// The least delay that is a queue there, as a part of the least elsewhere: one datagram.
const SHORT_LEAST: f64 = 2.0 / 3.0;

/// The most that was seen waiting.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Depth {
    /// The longest delay of the search, of which the rate is not known yet.
    searched: f64,
    datagrams: f64,
}

impl RateController {
    /// Takes the delay of a report in queues.
    pub(super) fn note_depth(&mut self, queueing: f64) {
        if self.start.is_some() {
            self.depth.searched = self.depth.searched.max(queueing);
        } else {
            // One report may be late for other reasons.
            self.deepen(self.queueing());
        }
    }

    /// Takes the longest delay of a search that has just ended.
    pub(super) fn note_depth_of_search(&mut self) {
        let longest = core::mem::take(&mut self.depth.searched);
        self.deepen(longest);
    }

    fn deepen(&mut self, queueing: f64) {
        let datagrams = queueing * self.drains_at() / self.packet;
        self.depth.datagrams = self.depth.datagrams.max(datagrams);
    }

    /// The rate at which the queue drains, as far as is known. After a search that ended too high the estimate is another one.
    fn drains_at(&self) -> f64 {
        if self.others.link > 0.0 {
            self.others.link
        } else {
            self.capacity.max(RATE_MIN)
        }
    }

    /// Whether no more than a few datagrams were ever seen waiting, as far as delays show one, where the link is ours.
    pub(super) fn is_before_short_queue(&self) -> bool {
        let datagram = self.packet
            / self
                .drains_at()
                .min(self.capacity.max(RATE_MIN) * FAR_BELOW);
        let is_short = self.depth.datagrams < SHORT && self.delays.sees(datagram);
        is_short && self.sharing == RateSharing::Own
    }

    /// The least delay that is a queue, for a rate in octets a second.
    pub(super) fn queue_least_at(&self, rate: f64) -> f64 {
        let packet = if self.is_before_short_queue() {
            SHORT_LEAST * self.packet
        } else {
            self.packet
        };
        self.delays.queue_least(packet, rate)
    }
}
