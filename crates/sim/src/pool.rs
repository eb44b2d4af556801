//! Packets in flight, in buffers that are used again.

use crate::tap::Came;
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::units::BitErrorRate;

/// A packet's place in the pool, valid until it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketId(u32);

/// A packet in flight: its real octets, and notes that only the measurement may read.
#[derive(Debug)]
pub(crate) struct PooledPacket {
    /// Network header and everything behind it.
    pub(crate) octets: Vec<u8>,
    /// The reason why the transport sent it.
    pub(crate) kind: TransmitKind,
    /// The application write that it carries, where a transport's octets do not say so.
    pub(crate) tag: u64,
    /// The short-term bit error rate at the end of the last hop that it crossed, if that hop fades: the
    /// reading of the receiver's power meter as the packet arrives.
    pub(crate) short_term_rate: Option<BitErrorRate>,
    /// The way on which it came to this node, if packets are captured.
    pub(crate) came: Option<Came>,
}

/// Buffers for packets; never more of them than there were packets at once.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    packets: Vec<PooledPacket>,
    free: Vec<PacketId>,
}

impl Pool {
    /// Takes over `octets`, and leaves an empty buffer for the next packet in its place.
    pub(crate) fn admit(&mut self, octets: &mut Vec<u8>, kind: TransmitKind, tag: u64) -> PacketId {
        let id = self.free.pop().unwrap_or_else(|| {
            let index = u32::try_from(self.packets.len()).expect("fewer than 2^32 in flight");
            self.packets.push(PooledPacket {
                octets: Vec::new(),
                kind,
                tag,
                short_term_rate: None,
                came: None,
            });
            PacketId(index)
        });
        let packet = &mut self.packets[id.0 as usize];
        core::mem::swap(&mut packet.octets, octets);
        octets.clear();
        packet.kind = kind;
        packet.tag = tag;
        packet.short_term_rate = None;
        packet.came = None;
        id
    }

    /// A second copy of a packet, for media that duplicate.
    pub(crate) fn duplicate(&mut self, id: PacketId) -> PacketId {
        let original = &self.packets[id.0 as usize];
        let (kind, tag, mut octets) = (original.kind, original.tag, original.octets.clone());
        let rate = original.short_term_rate;
        let id = self.admit(&mut octets, kind, tag);
        self.packet_mut(id).short_term_rate = rate;
        id
    }

    /// The number of packets that were admitted and not released.
    pub(crate) fn in_flight(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    pub(crate) fn packet(&self, id: PacketId) -> &PooledPacket {
        &self.packets[id.0 as usize]
    }

    pub(crate) fn packet_mut(&mut self, id: PacketId) -> &mut PooledPacket {
        &mut self.packets[id.0 as usize]
    }

    /// Ends a packet's life.
    pub(crate) fn release(&mut self, id: PacketId) {
        debug_assert!(!self.free.contains(&id) || self.free.len() > 64);
        self.free.push(id);
    }
}
