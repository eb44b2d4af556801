//! The glue between machines and the world: one file for each transport.
//!
//! A stack is one node's machine of one protocol, plus the application at that node that uses it. Every
//! input of a machine passes through here, and every stack is drained by the project's one drain loop. To
//! add a transport, add a file, a variant here, and its keys in `scenario`.

pub(crate) mod aerotp;
pub(crate) mod datagram;
pub(crate) mod gateway;
pub(crate) mod own;
pub(crate) mod seal;
pub(crate) mod stream;

use crate::flow::{Flow, flow_of};
use crate::network::Network;
use crate::node::NodeId;
use crate::tap::EventLog;
use aerotp::AerotpStack;
use datagram::DatagramStack;
use fulmar_baseline::lt_tcp::LtTcpEndpoint;
use fulmar_baseline::tcp::TcpEndpoint;
use fulmar_proto::machine::{Datagram, Deadline, Machine, PathId, Transmit};
use fulmar_proto::told::ToldFacts;
use fulmar_proto::units::{BitErrorRate, Instant};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::{NETWORK_HEADER_BYTES, NetworkProtocol, NodeAddress};
use gateway::GatewayStack;
use own::OwnStack;
use serde::Serialize;
use stream::StreamStack;

/// The parts of the world that a stack may touch while it is drained.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) network: &'a mut Network,
    pub(crate) flows: &'a mut [Flow],
    /// The node the stack is on.
    pub(crate) node: NodeId,
    /// The tag of the packet that is being handled.
    pub(crate) tag: u64,
}

impl Context<'_> {
    /// Sends a datagram of a machine that sets no precedence: the flow's is put in. The flow is found by the destination port.
    fn send_with_precedence(
        &mut self,
        now: Instant,
        protocol: NetworkProtocol,
        transmit: Transmit,
        tag: u64,
    ) {
        let ports = self.network.buffer().get(NETWORK_HEADER_BYTES..);
        let flow = match ports.and_then(<[u8]>::first_chunk) {
            Some(&[_, _, high, low]) => flow_of(Port(u16::from_be_bytes([high, low]))),
            None => None,
        };
        let flow = flow.and_then(|index| self.flows.get(index));
        let priority = flow.map_or(transmit.priority, |flow| flow.plan.priority);
        let transmit = Transmit {
            priority,
            ..transmit
        };
        self.network.send(now, self.node, protocol, transmit, tag);
    }
}

/// A machine of any transport.
#[derive(Debug)]
pub(crate) enum Stack {
    Datagram(Box<DatagramStack>),
    Aerotp(Box<AerotpStack>),
    Gateway(Box<GatewayStack>),
    Tcp(Box<StreamStack<TcpEndpoint>>),
    LtTcp(Box<StreamStack<LtTcpEndpoint>>),
    Own(Box<OwnStack>),
}

/// A transport's counts of lost pieces, summed over its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackCounts {
    pub(crate) recovered: RecoveredTpdus,
    /// The effect of following the bit error rate.
    pub(crate) adaptation: AdaptationCounts,
    /// Pieces that arrived, but damaged beyond use.
    pub(crate) damaged: u64,
    /// Retransmission timeouts.
    pub(crate) timeouts: u64,
    /// Retransmission timeouts that began a repair (TCP).
    pub(crate) timeout_repairs: u64,
}

/// Choices of senders that follow the bit error rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AdaptationCounts {
    /// The number of times that another shape was chosen.
    pub(crate) switched: u64,
    /// TPDUs that such a choice shaped, sent for the first time.
    pub(crate) tpdus: u64,
    /// Payload octets of those TPDUs.
    pub(crate) payload_bytes: u64,
    /// Parity words of those TPDUs.
    pub(crate) words: u64,
    /// The bit error rates that those TPDUs were expected to meet, as quarter octaves below 1, summed.
    pub(crate) quarter_octaves: u64,
}

/// TPDUs that were missing or damaged and were put right, by the means of repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct RecoveredTpdus {
    /// TPDUs repaired by parity inside the TPDU.
    pub fec_words: u64,
    /// TPDUs repaired by parity across TPDUs.
    pub fec_block: u64,
    /// TPDUs repaired by the first retransmission.
    pub arq_first: u64,
    /// TPDUs repaired by the second retransmission.
    pub arq_second: u64,
    /// TPDUs repaired by a later retransmission.
    pub arq_later: u64,
}

impl Stack {
    pub(crate) fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        match self {
            Self::Datagram(stack) => stack.machine.handle_datagram(now, datagram),
            Self::Aerotp(stack) => stack.handle_datagram(now, datagram),
            Self::Tcp(stack) => stack.machine.handle_datagram(now, datagram),
            Self::LtTcp(stack) => stack.machine.handle_datagram(now, datagram),
            Self::Gateway(stack) => stack.handle_datagram(now, datagram),
            Self::Own(stack) => stack.machine.handle_datagram(now, datagram),
        }
    }

    /// The receiver's electronics report the bit error rate that follows from the received power of a path.
    /// Returns whether the stack listens to that.
    pub(crate) fn note_short_term_rate(
        &mut self,
        now: Instant,
        path: PathId,
        rate: BitErrorRate,
    ) -> bool {
        match self {
            Self::Aerotp(stack) => stack.note_short_term_rate(now, path, rate),
            Self::Datagram(_) | Self::Tcp(_) | Self::LtTcp(_) | Self::Gateway(_) | Self::Own(_) => {
                false
            }
        }
    }

    /// The radios on a path tell what it is. Returns whether the stack listens to that.
    pub(crate) fn take_told(&mut self, now: Instant, path: PathId, told: ToldFacts) -> bool {
        match self {
            Self::Aerotp(stack) => stack.take_told(now, path, told),
            Self::Gateway(stack) => stack.take_told(now, path, told),
            Self::Datagram(_) | Self::Tcp(_) | Self::LtTcp(_) | Self::Own(_) => return false,
        }
        true
    }

    pub(crate) fn handle_deadline(&mut self, now: Instant) {
        match self {
            Self::Datagram(stack) => stack.machine.handle_deadline(now),
            Self::Aerotp(stack) => stack.machine.handle_deadline(now),
            Self::Tcp(stack) => stack.machine.handle_deadline(now),
            Self::LtTcp(stack) => stack.machine.handle_deadline(now),
            Self::Gateway(stack) => stack.handle_deadline(now),
            Self::Own(stack) => stack.machine.handle_deadline(now),
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Deadline> {
        match self {
            Self::Datagram(stack) => stack.machine.next_deadline(),
            Self::Aerotp(stack) => stack.machine.next_deadline(),
            Self::Tcp(stack) => stack.machine.next_deadline(),
            Self::LtTcp(stack) => stack.machine.next_deadline(),
            Self::Gateway(stack) => stack.next_deadline(),
            Self::Own(stack) => stack.machine.next_deadline(),
        }
    }

    /// The sending application of flow `index` asks for its connection.
    pub(crate) fn connect(&mut self, now: Instant, index: usize, flow: &mut Flow) {
        match self {
            // UDP has no connections, and a transport of one's own opens what it has with the first write.
            Self::Datagram(_) | Self::Own(_) => {}
            Self::Aerotp(stack) => stack.connect(now, index, flow),
            Self::Tcp(stack) => stack.connect(index, flow),
            Self::LtTcp(stack) => stack.connect(index, flow),
            Self::Gateway(stack) => stack.connect(now, index, flow),
        }
    }

    /// The sending application of flow `index` has something to write.
    pub(crate) fn write(&mut self, now: Instant, index: usize, flow: &mut Flow) {
        match self {
            Self::Datagram(stack) => stack.write(now, index, flow),
            Self::Aerotp(stack) => stack.write(now, index, flow),
            Self::Tcp(stack) => stack.write(now, index, flow),
            Self::LtTcp(stack) => stack.write(now, index, flow),
            Self::Gateway(stack) => stack.write(now, index, flow),
            Self::Own(stack) => stack.write(now, index, flow),
        }
    }

    /// Drains the machine and returns the deadline to wait for.
    pub(crate) fn drain(&mut self, now: Instant, context: &mut Context<'_>) -> Option<Deadline> {
        match self {
            Self::Datagram(stack) => stack.drain(now, context),
            Self::Aerotp(stack) => stack.drain(now, context),
            Self::Tcp(stack) => stack.drain(now, context),
            Self::LtTcp(stack) => stack.drain(now, context),
            Self::Gateway(stack) => stack.drain(now, context),
            Self::Own(stack) => stack.drain(now, context),
        }
    }

    /// Takes the notes that the machine made in the last drain, if it makes any, and shows them to `events`.
    pub(crate) fn take_notes(
        &mut self,
        now: Instant,
        node: NodeAddress,
        flows: &mut [Flow],
        events: Option<&mut EventLog>,
    ) {
        match (self, events) {
            (Self::Aerotp(stack), events) => stack.take_notes(now, node, flows, events),
            (Self::Gateway(stack), Some(events)) => stack.show_events(now, node, events),
            (Self::Gateway(_), None)
            | (Self::Datagram(_) | Self::Tcp(_) | Self::LtTcp(_) | Self::Own(_), _) => {}
        }
    }

    /// Octets of memory that connections take and may take, if the transport says so.
    pub(crate) fn memory(&self) -> Option<(usize, usize)> {
        match self {
            Self::Tcp(stack) => Some(stack.memory()),
            Self::Datagram(_)
            | Self::Aerotp(_)
            | Self::LtTcp(_)
            | Self::Gateway(_)
            | Self::Own(_) => None,
        }
    }

    /// The transport's counts.
    pub(crate) fn counts(&self) -> StackCounts {
        match self {
            Self::Datagram(stack) => stack.counts(),
            Self::Aerotp(stack) => stack.counts(),
            Self::Tcp(stack) => stack.counts(),
            Self::LtTcp(stack) => stack.counts(),
            Self::Gateway(stack) => stack.counts(),
            Self::Own(_) => OwnStack::counts(),
        }
    }
}

impl core::ops::AddAssign for AdaptationCounts {
    fn add_assign(&mut self, other: Self) {
        self.switched += other.switched;
        self.tpdus += other.tpdus;
        self.payload_bytes += other.payload_bytes;
        self.words += other.words;
        self.quarter_octaves += other.quarter_octaves;
    }
}

impl core::ops::AddAssign for RecoveredTpdus {
    fn add_assign(&mut self, other: Self) {
        self.fec_words += other.fec_words;
        self.fec_block += other.fec_block;
        self.arq_first += other.arq_first;
        self.arq_second += other.arq_second;
        self.arq_later += other.arq_later;
    }
}
