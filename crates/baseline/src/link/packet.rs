//! The packets that go into a link machine and come out of it, and its frames.

use super::{FrameClass, LinkCounters};
use fulmar_proto::machine::{Deadline, Priority, TransmitKind};
use fulmar_proto::units::{ByteCount, Instant};

/// One end of one hop: owns no clock, socket, thread or entropy source.
pub trait LinkMachine {
    /// Whether the machine may be offered a packet now.
    fn ready(&self) -> bool;

    /// The least precedence of packets that would go before all that the machine has to send, and that it takes for that reason
    /// although it has; `None` if it takes none now.
    fn overtaken_by(&self) -> Option<Priority> {
        None
    }

    /// Takes a packet to send. It is allowed only when [`LinkMachine::ready`], or when the packet has the precedence that
    /// [`LinkMachine::overtaken_by`] names; otherwise the packet is dropped and counted.
    fn offer(&mut self, now: Instant, packet: LinkPacket<'_>);

    /// A frame arrived, perhaps damaged. One that cannot be used is counted; it is never an error.
    fn handle_frame(&mut self, now: Instant, octets: &[u8]);

    /// The deadline last named by [`LinkMachine::next_deadline`] has come.
    fn handle_deadline(&mut self, now: Instant);

    /// Appends the next frame to `out`, exactly [`FrameTransmit::len`] octets. Its transmission
    /// begins at once: ask only when the medium takes a frame.
    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameTransmit>;

    /// Appends the next packet for the node above to `out`, and returns its number of octets.
    fn poll_packet(&mut self, out: &mut Vec<u8>) -> Option<usize>;

    /// The deadline at which to call [`LinkMachine::handle_deadline`], if nothing arrives before.
    /// Meaningful only after a complete drain.
    fn next_deadline(&self) -> Option<Deadline>;

    /// Octets of packets, and of parts and combinations of packets, that the machine keeps. Its
    /// settings and the longest packet bound them, whatever the peer sends.
    fn held(&self) -> ByteCount;

    /// The counters so far.
    fn counters(&self) -> &LinkCounters;
}

/// The flow of a packet: equal for all packets of one flow, and decided by whoever offers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowHash(pub u32);

/// A packet on its way down.
#[derive(Clone, Copy, Debug)]
pub struct LinkPacket<'a> {
    /// The whole network packet, header included.
    pub octets: &'a [u8],
    /// Its flow, for layers that keep flows apart.
    pub flow: FlowHash,
    /// Its precedence, for layers that have lanes.
    pub priority: Priority,
    /// The transport's reason to send it: the share of the wire to which its first transmission
    /// counts.
    pub kind: TransmitKind,
    /// The time from which on it is not worth sending, if that is known.
    pub deadline: Option<Instant>,
}

/// A frame to send: the octets were appended to the buffer given to [`LinkMachine::poll_frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTransmit {
    /// The number of octets appended.
    pub len: usize,
    /// The class of the frame.
    pub class: FrameClass,
    /// The share of the wire to which it counts: the packet's own for [`FrameClass::Data`].
    pub kind: TransmitKind,
    /// The precedence, for a medium that queues frames.
    pub priority: Priority,
}

impl FrameTransmit {
    /// A control frame of the layer, which goes before everything else.
    pub(super) const fn control(len: usize) -> Self {
        Self {
            len,
            class: FrameClass::Control,
            kind: TransmitKind::Control,
            priority: Priority(u8::MAX),
        }
    }
}
