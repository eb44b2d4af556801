//! A run in its single events: packets with their fates, pieces with their delays, decisions of senders.
//!
//! Recording changes nothing of what is recorded. It takes some 60 octets for each packet, so it is for one run and not for
//! sweeps.

use crate::measure::flow::FlowMeter;
use crate::measure::wire::WireLoss;
use crate::node::WayId;
use crate::scenario::AppDirection;
use fulmar_channel::{ChannelDropReason, ChannelVerdict, QueueState};
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::trace::TraceRecord;
use fulmar_proto::units::{ByteCount, Duration, Instant};

/// The single events of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRecording {
    /// Packets on measured hops, in the order in which they were handed to their links.
    pub packets: Vec<RecordedPacket>,
    /// Pieces of measured flows, flow by flow in the order of their deliveries.
    pub pieces: Vec<RecordedPiece>,
    /// Decisions of AeroTP's senders, flow by flow in the order of time.
    pub decisions: Vec<RecordedDecision>,
}

/// A packet, or a link layer's frame, on one direction of one hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPacket {
    /// The time at which the link took or refused it; where capacity comes on demand, at which it left.
    pub sent_at: Instant,
    /// The hop, from 0.
    pub hop: usize,
    /// The direction.
    pub direction: AppDirection,
    /// Its length, with the link's framing.
    pub len: ByteCount,
    /// Its purpose; that of a frame is the purpose of what it carries.
    pub kind: TransmitKind,
    /// Packets in the link's queue, with this one if it waits.
    pub queue_packets: usize,
    /// Octets in that queue.
    pub queue_bytes: ByteCount,
    /// The cause of its loss on this hop, if it was lost.
    pub lost: Option<WireLoss>,
    /// The arrival of its last octet, if it was not.
    pub arrived_at: Option<Instant>,
    /// Inverted bits.
    pub inverted_bits: usize,
}

/// A piece that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPiece {
    /// The flow, from 0.
    pub flow: usize,
    /// The time at which its last octet was delivered.
    pub delivered_at: Instant,
    /// The time from its submission.
    pub delay: Duration,
}

/// A decision of a flow's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedDecision {
    /// The flow, from 0.
    pub flow: usize,
    /// Its time.
    pub at: Instant,
    /// The decision.
    pub decision: TraceRecord,
}

/// The packets of a run under way.
#[derive(Debug, Default)]
pub(crate) struct PacketLog {
    /// The first way that belongs to a measured hop.
    pub(crate) first_way: usize,
    pub(crate) packets: Vec<RecordedPacket>,
}

impl PacketLog {
    /// Notes the verdict on a packet of a measured hop.
    pub(crate) fn note(
        &mut self,
        (now, way): (Instant, WayId),
        (len, kind): (ByteCount, TransmitKind),
        queue: QueueState,
        (verdict, frame_check): (&ChannelVerdict, bool),
    ) {
        let Some(place) = way.0.checked_sub(self.first_way) else {
            return;
        };
        let (lost, arrived_at, inverted_bits) = match verdict {
            ChannelVerdict::Waits => return,
            ChannelVerdict::Drop(reason) => (Some(cause(*reason)), None, 0),
            ChannelVerdict::Deliver(delivery) => {
                let bits = delivery.flips.len();
                if frame_check && bits > 0 {
                    (Some(WireLoss::FrameCheck), None, bits)
                } else {
                    (None, Some(delivery.at), bits)
                }
            }
        };
        self.packets.push(RecordedPacket {
            sent_at: now,
            hop: place / 2,
            direction: if place.is_multiple_of(2) {
                AppDirection::Forward
            } else {
                AppDirection::Reverse
            },
            len,
            kind,
            queue_packets: queue.packets,
            queue_bytes: queue.bytes,
            lost,
            arrived_at,
            inverted_bits,
        });
    }
}

/// The cause of a loss as the wire's counts have it.
pub(crate) const fn cause(reason: ChannelDropReason) -> WireLoss {
    match reason {
        reason if reason.is_before_the_link() => WireLoss::Queue,
        ChannelDropReason::Outage => WireLoss::Outage,
        _ => WireLoss::Loss,
    }
}

/// Whether a sender decided something, and did not merely send or receive.
pub(crate) const fn is_decision(record: &TraceRecord) -> bool {
    matches!(
        record,
        TraceRecord::HeldLost { .. }
            | TraceRecord::Adapted { .. }
            | TraceRecord::RepairPlanned(_)
            | TraceRecord::Stalled
            | TraceRecord::Resumed
    )
}

/// The pieces of a flow's meter that kept the times of its deliveries.
pub(crate) fn pieces(flow: usize, meter: &FlowMeter) -> impl Iterator<Item = RecordedPiece> {
    let times = meter.delivery_times().iter().zip(meter.delays());
    times.map(move |(&delivered_at, &delay)| RecordedPiece {
        flow,
        delivered_at,
        delay: delay.into(),
    })
}
