//! What the splice counts, for each class and as a whole. Counters only grow; gauges say so.

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
    /// Flows cut off by the far side, likewise.
    pub resets_remote: [u64; 8],
    /// Times that a flow lost its connection and went on with another.
    pub resumed: u64,
    /// Octets of streams and messages taken from the local side.
    pub octets_accepted: u64,
    /// Octets of streams that the far host acknowledged, and of messages that the peer gave to it.
    pub octets_delivered: u64,
    /// Octets given to the local side.
    pub octets_received: u64,
    /// Octets accepted again after a resumption.
    pub octets_repeated: u64,
    /// Messages taken from the local side.
    pub messages_accepted: u64,
    /// Messages given to the local side.
    pub messages_received: u64,
    /// Messages towards the far side whose turn has passed there, as the peer reports.
    pub messages_expected: u64,
    /// Messages counted in `messages_expected` that were given to the far host.
    pub messages_delivered: u64,
    /// Messages not sent because they were older than their deadline.
    pub late_unsent: u64,
    /// Messages not delivered because they arrived later than their deadline.
    pub late_arrived: u64,
    /// Messages not sent because too much was waiting.
    pub dropped_full: u64,
    /// Messages not sent because they are too long for a message of this class.
    pub dropped_oversize: u64,
    /// Messages not delivered because nobody fetched them in time.
    pub dropped_unread: u64,
    /// Messages of which a fragment was missing for too long, or that gave way to newer ones.
    pub dropped_incomplete: u64,
    /// Messages or fragments that arrived before.
    pub duplicates: u64,
}

/// All classes, and what belongs to none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplicerCounters {
    /// By class; a class appears with its first flow.
    pub classes: BTreeMap<ClassId, ClassCounters>,
    /// Records that do not parse or do not belong where they were.
    pub malformed: u64,
    /// Connections that brought no flow.
    pub orphans: u64,
    /// Gauge: flows now.
    pub flows_now: u64,
    /// Gauge: octets of credit promised to peers and not used up, unread octets included.
    pub credit_reserved: u64,
}
