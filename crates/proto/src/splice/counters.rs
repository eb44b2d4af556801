//! Counters of the splice, for each class and as a whole. They only grow; gauges are named as such.

use super::class::ClassId;
use std::collections::BTreeMap;

/// One class's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Flows opened or accepted here.
    pub flows_opened: u64,
    /// Flows that ended complete.
    pub flows_finished: u64,
    /// Flows refused by the acceptor, by [`RefuseCode`](super::RefuseCode) in the order of `ALL`.
    pub flows_refused: [u64; 8],
    /// Flows cut off by this side, by [`ResetCode`](super::ResetCode) in the order of `ALL`.
    pub resets_local: [u64; 8],
    /// Flows cut off by the far side, by [`ResetCode`](super::ResetCode) in the order of `ALL`.
    pub resets_remote: [u64; 8],
    /// Times that a flow lost its connection and continued over another.
    pub resumed: u64,
    /// Octets of streams and messages received from the local side.
    pub octets_accepted: u64,
    /// Octets of streams that the far host acknowledged, and of messages that the peer handed to
    /// it.
    pub octets_delivered: u64,
    /// Octets delivered to the local side.
    pub octets_received: u64,
    /// Octets accepted again after a resumption.
    pub octets_repeated: u64,
    /// Messages received from the local side.
    pub messages_accepted: u64,
    /// Messages delivered to the local side.
    pub messages_received: u64,
    /// Messages towards the far side that the peer reports as past: delivered there, or no longer
    /// awaited.
    pub messages_expected: u64,
    /// Messages counted in `messages_expected` that were delivered to the far host.
    pub messages_delivered: u64,
    /// Messages not sent because they were older than their deadline.
    pub late_unsent: u64,
    /// Messages of the far side that were lost on the way, and that it did not send again because they would have been
    /// later than their deadline. Parts count each by itself.
    pub late_given_up: u64,
    /// Messages not delivered because they arrived later than their deadline.
    pub late_arrived: u64,
    /// Messages not sent because too much was waiting.
    pub dropped_full: u64,
    /// Packets of tunnels not sent, so that whoever sends them slows down: their queue never drained.
    pub queue_dropped: u64,
    /// Packets of tunnels marked instead, since their senders asked for marks.
    pub queue_marked: u64,
    /// Messages not sent because they exceed the longest message of this class.
    pub dropped_oversize: u64,
    /// Messages not delivered because the driver did not fetch them in time.
    pub dropped_unread: u64,
    /// Messages of which a fragment was missing for too long, or that gave way to newer ones.
    pub dropped_incomplete: u64,
    /// Messages or fragments that arrived before.
    pub duplicates: u64,
}

/// The counters of all classes, and those that belong to no class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplicerCounters {
    /// The counters by class; a class appears with its first flow.
    pub classes: BTreeMap<ClassId, ClassCounters>,
    /// Records that do not parse, or do not belong where they arrived.
    pub malformed: u64,
    /// Connections that brought no flow.
    pub orphans: u64,
    /// Gauge: flows at present.
    pub flows_now: u64,
    /// Gauge: octets of credit promised to peers and not used up, unread octets included.
    pub credit_reserved: u64,
    /// Gauge: octets of messages that wait to be sent; a short message counts as the memory of its place.
    pub waiting_bytes: u64,
}
