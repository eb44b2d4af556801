//! Typed records of events, in a bounded queue that the driver empties.
//!
//! A trace never changes a machine's behaviour: records are dropped, and counted, when the queue is
//! full, and nothing is drawn or computed for their sake.

use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;
use std::collections::VecDeque;

/// The reason why a sender holds a TPDU for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossSign {
    /// TPDUs sent later were acknowledged.
    Overtaken,
    /// The receiver asked for its retransmission.
    Nack,
    /// Its retransmission timeout passed.
    Timeout,
    /// The layer below says that its datagram arrived damaged beyond repair.
    Damaged,
}

/// An event, in the protocol's own terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceRecord {
    /// A data TPDU left.
    Sent {
        /// The TPDU's number.
        seq: TpduSeq,
        /// The stream position of its first octet.
        position: u64,
        /// Payload octets.
        len: u32,
        /// Whether it had been sent before.
        again: bool,
    },
    /// A repair symbol for the block that begins at `first` left.
    RepairSent {
        /// The block's first TPDU.
        first: TpduSeq,
        /// The repair index.
        index: u8,
    },
    /// The sender holds a TPDU for lost.
    HeldLost {
        /// The TPDU's number.
        seq: TpduSeq,
        /// The sign of the loss.
        sign: LossSign,
    },
    /// The receiver accepted a TPDU, after correcting `corrected_symbols` octets in it.
    Accepted {
        /// The TPDU's number.
        seq: TpduSeq,
        /// Octets that its parity words corrected.
        corrected_symbols: u32,
    },
    /// The sender chose another payload length or parity, for the bit error rate it expects.
    Adapted {
        /// Payload octets of TPDUs from now on.
        payload: u32,
        /// Parity words.
        words: u16,
        /// The rate expected, as a negative logarithm to base 2.
        rate_octaves: u8,
    },
    /// The sender repairs a flow in another way from now on.
    RepairPlanned(RepairDecision),
    /// The receiver rebuilt a TPDU from its block.
    Rebuilt {
        /// The TPDU's number.
        seq: TpduSeq,
    },
    /// A TPDU arrived damaged beyond repair.
    Damaged {
        /// The TPDU's number.
        seq: TpduSeq,
    },
    /// The receiver gave up a TPDU.
    GivenUp {
        /// The TPDU's number.
        seq: TpduSeq,
    },
    /// No acknowledgement came for a whole timeout: only probes are sent.
    Stalled,
    /// Acknowledgements arrive again.
    Resumed,
    /// The connection changed its state.
    State {
        /// The state's name in the papers.
        to: &'static str,
    },
}

/// A change of a flow's repair, with its reason. Shares are in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairDecision {
    /// Losses that were seen, and their standard error.
    pub loss: u32,
    /// The standard error of [`RepairDecision::loss`].
    pub loss_error: u32,
    /// Losses right behind a loss: more than the losses where they come in bursts.
    pub behind_a_loss: u32,
    /// The goal: messages that may take longer than the deadline, and the deadline.
    pub may_miss: u32,
    /// The deadline of the goal.
    pub deadline: Duration,
    /// Messages that the new plan is predicted to miss.
    pub will_miss: u32,
    /// Packets for each message that it is predicted to take, in millionths.
    pub packets: u32,
    /// Messages that came too late under the plan before, and those that had one.
    pub missed: u32,
    /// The messages of the plan before.
    pub messages: u32,
    /// Repair symbols ahead for eight messages.
    pub ahead_eighths: u8,
    /// Transmissions in the first rounds of repetition.
    pub times: [u8; 3],
    /// The time by which each repetition is put off.
    pub put_off: Duration,
}

/// A bounded queue of records; the default keeps none.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    records: VecDeque<(Instant, TraceRecord)>,
    capacity: usize,
    dropped: u64,
}

impl Trace {
    /// A trace that keeps up to `capacity` records between two calls of [`Trace::take`].
    pub const fn bounded(capacity: usize) -> Self {
        Self {
            records: VecDeque::new(),
            capacity,
            dropped: 0,
        }
    }

    /// Notes a record, or counts it as dropped when the queue is full.
    pub fn note(&mut self, now: Instant, record: TraceRecord) {
        if self.records.len() < self.capacity {
            self.records.push_back((now, record));
        } else if self.capacity > 0 {
            self.dropped += 1;
        }
    }

    /// Takes the oldest record.
    pub fn take(&mut self) -> Option<(Instant, TraceRecord)> {
        self.records.pop_front()
    }

    /// The number of records that did not fit since the last call.
    pub const fn take_dropped(&mut self) -> u64 {
        core::mem::replace(&mut self.dropped, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_trace_counts_what_it_drops_and_an_absent_one_keeps_nothing() {
        let mut off = Trace::default();
        off.note(Instant::START, TraceRecord::Stalled);
        assert_eq!((off.take(), off.take_dropped()), (None, 0));

        let mut one = Trace::bounded(1);
        one.note(Instant::START, TraceRecord::Stalled);
        one.note(Instant::START, TraceRecord::Resumed);
        assert_eq!(one.take(), Some((Instant::START, TraceRecord::Stalled)));
        assert_eq!((one.take(), one.take_dropped()), (None, 1));
        assert_eq!(one.take_dropped(), 0, "it is told once");
    }
}
