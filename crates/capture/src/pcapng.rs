//! A capture: a section, its interfaces, and packets with their time, direction and comment.

use crate::block::{Block, ENHANCED_PACKET};
use crate::comment::Comment;
use crate::pdu::{self, Dissector, PacketEnds};
use core::time::Duration;
use fulmar_proto::units::Instant;
use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;

const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
const VERSION: [u16; 2] = [1, 0];
/// The link type of exported PDUs.
const LINK_TYPE: u16 = 252;
/// The limit on a packet's captured length: packets are never cut.
const NO_LIMIT: u32 = 0;
/// The resolution of times: units of 10^-9 s.
const NANOSECONDS: u8 = 9;

const OPTION_COMMENT: u16 = 1;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_TEXT: u16 = 3;
const INTERFACE_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;
const PACKET_DROP_COUNT: u16 = 4;

/// The description of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// The subject of the capture; empty for no comment.
    pub comment: String,
    /// The time of day, since 1970, of [`Instant::START`]; zero where time is virtual.
    pub origin: Duration,
}

/// An interface of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceId(u32);

/// The way a packet goes, seen from its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDirection {
    /// The packet comes in.
    Inbound,
    /// The packet goes out.
    Outbound,
}

impl PacketDirection {
    /// The direction's code in the lowest two bits of a packet's flags.
    const fn flags(self) -> u32 {
        match self {
            Self::Inbound => 1,
            Self::Outbound => 2,
        }
    }
}

/// A packet to be written.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The interface at which it was seen.
    pub interface: InterfaceId,
    /// The time at which it was seen.
    pub at: Instant,
    /// The way it went.
    pub direction: PacketDirection,
    /// The dissector of its octets.
    pub dissector: Dissector,
    /// The ends it travels between, where the octets do not say so.
    pub ends: Option<PacketEnds>,
    /// The whole packet.
    pub octets: &'a [u8],
    /// Remarks on the packet.
    pub comment: &'a Comment,
    /// Packets between this one and the one before that were not captured.
    pub missed: u64,
}

/// A writer of one capture.
#[derive(Debug)]
pub struct Pcapng<W> {
    out: W,
    origin: Duration,
    interfaces: u32,
    block: Block,
    tags: Vec<u8>,
    packets: u64,
    octets: u64,
}

impl<W: Write> Pcapng<W> {
    /// Begins a capture in `out`.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn new(out: W, section: &Section) -> io::Result<Self> {
        let mut capture = Self {
            out,
            origin: section.origin,
            interfaces: 0,
            block: Block::default(),
            tags: Vec::new(),
            packets: 0,
            octets: 0,
        };
        let block = &mut capture.block;
        block.begin(SECTION_HEADER);
        block.u32(BYTE_ORDER_MAGIC);
        for part in VERSION {
            block.u16(part);
        }
        // The length of the section is not known.
        block.octets(&u64::MAX.to_le_bytes());
        if !section.comment.is_empty() {
            block.option(OPTION_COMMENT, section.comment.as_bytes());
        }
        let application = concat!("fulmar ", env!("CARGO_PKG_VERSION"));
        block.option(SECTION_APPLICATION, application.as_bytes());
        block.end_options();
        capture.write()?;
        Ok(capture)
    }

    /// Describes another interface.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn interface(&mut self, name: &str, text: &str) -> io::Result<InterfaceId> {
        let block = &mut self.block;
        block.begin(INTERFACE_DESCRIPTION);
        block.u16(LINK_TYPE);
        block.u16(0);
        block.u32(NO_LIMIT);
        block.option(INTERFACE_NAME, name.as_bytes());
        block.option(INTERFACE_TEXT, text.as_bytes());
        block.option(INTERFACE_RESOLUTION, &[NANOSECONDS]);
        block.end_options();
        self.write()?;
        let id = InterfaceId(self.interfaces);
        self.interfaces += 1;
        Ok(id)
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// The errors of the writer; an error for a packet of 4 GiB.
    pub fn packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        pdu::tags(packet.dissector, packet.ends, &mut self.tags);
        let at = self.origin + packet.at.saturating_since(Instant::START);
        let nanos = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        // The higher half first, then the lower one.
        let [b7, b6, b5, b4, b3, b2, b1, b0] = nanos.to_be_bytes();
        let high = u32::from_be_bytes([b7, b6, b5, b4]);
        let low = u32::from_be_bytes([b3, b2, b1, b0]);
        let len = self.tags.len() + packet.octets.len();
        let len = u32::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        let block = &mut self.block;
        block.begin(ENHANCED_PACKET);
        for word in [packet.interface.0, high, low, len, len] {
            block.u32(word);
        }
        block.octets(&self.tags);
        block.octets(packet.octets);
        block.pad();
        let comment = packet.comment.as_str();
        if !comment.is_empty() {
            block.option(OPTION_COMMENT, comment.as_bytes());
        }
        block.option(PACKET_FLAGS, &packet.direction.flags().to_le_bytes());
        if packet.missed > 0 {
            block.option(PACKET_DROP_COUNT, &packet.missed.to_le_bytes());
        }
        block.end_options();
        self.write()?;
        self.packets += 1;
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        let block = self.block.finish();
        self.octets += block.len() as u64;
        self.out.write_all(block)
    }

    /// Packets written.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Octets written.
    pub const fn octets(&self) -> u64 {
        self.octets
    }

    /// The writer behind this one.
    pub const fn out(&mut self) -> &mut W {
        &mut self.out
    }
}
