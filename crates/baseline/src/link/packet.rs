//! What goes into a link machine and comes out of it.

use super::LinkCounters;
use fulmar_proto::machine::{Deadline, Kind, Priority};
use fulmar_proto::units::{ByteCount, Instant};

/// One end of one hop: owns no clock, socket, thread or entropy source.
pub trait LinkMachine {
    /// Whether the machine may be offered a packet now.
    fn ready(&self) -> bool;

    /// Takes a packet to send. Only when [`LinkMachine::ready`]; otherwise it is dropped and
    /// counted.
    fn offer(&mut self, now: Instant, packet: LinkPacket<'_>);

    /// A frame arrived, perhaps damaged. What cannot be used is counted, never an error.
    fn handle_frame(&mut self, now: Instant, octets: &[u8]);

    /// The deadline last named by [`LinkMachine::next_deadline`] has come.
    fn handle_deadline(&mut self, now: Instant);

    /// Appends the next frame to `out`, exactly [`FrameTransmit::len`] octets. Its transmission
    /// begins at once: ask only when the medium takes a frame.
    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameTransmit>;

    /// Appends the next packet for the node above to `out`, and says how many octets it has.
    fn poll_packet(&mut self, out: &mut Vec<u8>) -> Option<usize>;

    /// When to call [`LinkMachine::handle_deadline`], if nothing arrives before. Meaningful only
    /// after a complete drain.
    fn next_deadline(&self) -> Option<Deadline>;

    /// Octets of packets, and of parts and combinations of them, that the machine keeps: bounded by its
    /// settings and the longest packet, whatever the peer sends.
    fn held(&self) -> ByteCount;

    /// What was counted so far.
    fn counters(&self) -> &LinkCounters;
}

/// Which flow a packet belongs to: equal for all packets of one, and decided by whoever offers them.
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
    /// Why the transport sends it: the share of the wire its first transmission counts to.
    pub kind: Kind,
    /// When it is no longer worth sending, if that is known.
    pub deadline: Option<Instant>,
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameClass {
    /// A packet or a part of one for the first time.
    Data,
    /// The same again.
    Again,
    /// Parity.
    Parity,
    /// Acknowledgements and other talk of the layer's own.
    Control,
}

impl FrameClass {
    /// All classes, in report order.
    pub const ALL: [Self; 4] = [Self::Data, Self::Again, Self::Parity, Self::Control];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Again => "again",
            Self::Parity => "parity",
            Self::Control => "control",
        }
    }
}

/// A frame to send: the octets were appended to the buffer given to [`LinkMachine::poll_frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTransmit {
    /// How many octets were appended.
    pub len: usize,
    /// What it is for.
    pub class: FrameClass,
    /// The share of the wire it counts to: the packet's own for [`FrameClass::Data`].
    pub kind: Kind,
    /// Precedence, for a medium that queues frames.
    pub priority: Priority,
}

impl FrameTransmit {
    /// Talk of the layer's own, before everything else.
    pub(super) const fn control(len: usize) -> Self {
        Self {
            len,
            class: FrameClass::Control,
            kind: Kind::Control,
            priority: Priority(u8::MAX),
        }
    }
}
