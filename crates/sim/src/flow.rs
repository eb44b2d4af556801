//! A flow while it runs: the sending application, its transport's ends, and the meter.

use crate::app::AppSource;
use crate::measure::flow::{FlowMeter, Promise, PromisedOrder};
use crate::node::StackId;
use crate::pattern::Pattern;
use crate::scenario::{FlowPlan, TransportPlan};
use fulmar_proto::machine::PathId;
use fulmar_proto::trace::TraceRecord;
use fulmar_proto::units::Instant;
use fulmar_proto::wire::Port;
use fulmar_proto::wire::TpduSeq;

/// One flow of a running world.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) plan: FlowPlan,
    pub(crate) pattern: Pattern,
    pub(crate) source: AppSource,
    pub(crate) meter: FlowMeter,
    /// The machine at the sending end.
    pub(crate) sender: StackId,
    /// The machine at the receiving end.
    pub(crate) receiver: StackId,
    /// The path under which the sender knows the receiving node.
    pub(crate) path: PathId,
    /// The path under which the receiver knows the sending node.
    pub(crate) path_back: PathId,
    /// The receiver's port, which identifies the flow at both ends.
    pub(crate) port: Port,
    /// The places of TPDUs in the stream, where the transport may leave holes.
    pub(crate) positions: Option<Positions>,
    /// The decisions of the sender, if they are recorded.
    pub(crate) decisions: Option<Vec<(Instant, TraceRecord)>>,
    /// The first write waits for the connection.
    pub(crate) awaits_connection: bool,
    /// The reasons why the ends' connections closed, where the transport has connections.
    pub(crate) sender_closed: Option<&'static str>,
    pub(crate) receiver_closed: Option<&'static str>,
}

/// The positions in a flow's stream at which TPDUs begin, as the sender numbered them.
#[derive(Debug)]
pub(crate) struct Positions {
    first: TpduSeq,
    starts: Vec<u64>,
}

impl Positions {
    /// The positions that must be kept of a flow by `transport`; `None` if every delivery continues the one
    /// before.
    pub(crate) fn needed(transport: &TransportPlan) -> Option<Self> {
        match transport {
            TransportPlan::Aerotp(plan) if !plan.is_complete() => Some(Self {
                first: plan.connection.first_seq,
                starts: Vec::new(),
            }),
            _ => None,
        }
    }

    /// The TPDU of this number, which begins at `position`, was sent.
    pub(crate) fn note(&mut self, seq: TpduSeq, position: u64) {
        let index = seq.offset_from(self.first) as usize;
        if index >= self.starts.len() {
            self.starts.resize(index, u64::MAX);
            self.starts.push(position);
        }
    }

    /// The position of the TPDU of this number; beyond the stream if it was never sent.
    fn of(&self, seq: TpduSeq) -> u64 {
        let index = seq.offset_from(self.first) as usize;
        self.starts.get(index).copied().unwrap_or(u64::MAX)
    }
}

/// Ports are `FIRST_PORT` + the flow's number.
pub(crate) const FIRST_PORT: u16 = 20_000;

/// The flow that a port belongs to.
pub(crate) fn flow_of(port: Port) -> Option<usize> {
    port.0.checked_sub(FIRST_PORT).map(usize::from)
}

impl Flow {
    /// Copies the application's next octets, at most `max`, into `into`, and returns their position in the
    /// stream.
    pub(crate) fn fill(&self, max: u64, into: &mut Vec<u8>) -> u64 {
        let (offset, pending) = self.source.pending();
        into.clear();
        if pending > 0 {
            let len = usize::try_from(pending.min(max)).unwrap_or(usize::MAX);
            self.pattern.append(offset, len, into);
        }
        offset
    }

    /// The transport accepted `len` of the application's octets.
    pub(crate) fn accept(&mut self, now: Instant, len: u64) {
        self.source.accept(len);
        if !self.source.submits_when_made() {
            self.meter.submit(now, len);
        }
    }

    /// The position at which the TPDU of this number begins: where the delivery before it ended, if the
    /// transport leaves no holes.
    pub(crate) fn position_of(&self, seq: TpduSeq) -> u64 {
        let positions = self.positions.as_ref();
        positions.map_or_else(|| self.meter.next_offset(), |known| known.of(seq))
    }

    /// Whether data wait for a handshake.
    pub(crate) const fn has_handshake(&self) -> bool {
        matches!(
            self.plan.transport,
            TransportPlan::Tcp(_) | TransportPlan::LtTcp(_)
        )
    }

    /// A source of one's own plans its next write, when the transport has had the last. Returns whether it ends instead.
    pub(crate) fn plan_write(&mut self, now: Instant) -> bool {
        let total = self.source.total();
        self.source.ask_own(now);
        let ends = self.source.total() < total;
        if ends {
            self.meter.end_at(now, self.source.total());
        }
        ends
    }

    /// The application makes its next write.
    pub(crate) fn make_write(&mut self, now: Instant) {
        let len = self.source.make_write();
        if self.source.submits_when_made() {
            self.meter.submit(now, len);
        }
    }
}

/// The promise of the transport of `flow`.
pub(crate) fn promise(flow: &FlowPlan) -> Promise {
    let plan = match &flow.transport {
        // Nothing is known of the promise of a transport of one's own.
        TransportPlan::Datagram(_) | TransportPlan::Own(_) => return Promise::NOTHING,
        TransportPlan::Aerotp(plan) => plan.as_ref(),
        TransportPlan::Gateway(plan) => &plan.aerotp,
        // As with UDP, damage may cancel out in the checksum.
        TransportPlan::Tcp(_) | TransportPlan::LtTcp(_) => {
            return Promise {
                order: PromisedOrder::Complete,
                damage_permitted: true,
            };
        }
    };
    let rules = plan.rules();
    let in_order = plan.is_complete() || !rules.complete;
    Promise {
        order: match (rules.connection && in_order, rules.complete) {
            (false, _) => PromisedOrder::Any,
            (true, false) => PromisedOrder::Holes,
            (true, true) => PromisedOrder::Complete,
        },
        // Without a check damage goes unnoticed, and it may be asked for.
        damage_permitted: !plan.connection.payload_crc || plan.connection.deliver_damaged,
    }
}

/// Tells a flow's meter that data reached its receiver's transport. All transports begin with a
/// source and a destination port of two octets each, but where a seal hides them.
pub(crate) fn note_arrival(flows: &mut [Flow], stack: StackId, octets: &[u8], now: Instant) {
    let Some(&[_, _, high, low]) = octets.first_chunk() else {
        return;
    };
    let index = flow_of(Port(u16::from_be_bytes([high, low])));
    let flow = index.and_then(|index| flows.get_mut(index));
    let is_open = |flow: &&mut Flow| {
        flow.receiver == stack
            && !flow.plan.is_bonded()
            && !matches!(&flow.plan.transport, TransportPlan::Aerotp(plan) if plan.is_sealed())
    };
    if let Some(flow) = flow.filter(is_open) {
        flow.meter.arrive(now);
    }
}
