//! The packets of a capture, one after another: pcap and pcapng, whatever is in them.

use crate::error::TraceError;
use core::fmt;
use core::time::Duration;
use pcap_parser::pcapng::{EnhancedPacketBlock, OptionCode};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use std::io::Read;

/// Magic numbers: pcap in microseconds and nanoseconds, both byte orders, and pcapng.
const MAGIC: [[u8; 4]; 5] = [
    [0xD4, 0xC3, 0xB2, 0xA1],
    [0xA1, 0xB2, 0xC3, 0xD4],
    [0x4D, 0x3C, 0xB2, 0xA1],
    [0xA1, 0xB2, 0x3C, 0x4D],
    [0x0A, 0x0D, 0x0D, 0x0A],
];

/// Whether a file that begins with these octets is a capture.
pub fn is_capture(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|head| MAGIC.contains(head))
}

/// The greatest length of a block: capture tools cut packets at 256 KiB.
const BLOCK_OCTETS_MAX: usize = 1 << 20;
const INTERFACES_MAX: usize = 1024;
/// The option of a packet whose lowest two bits say which way it went.
const PACKET_FLAGS: OptionCode = OptionCode(2);
/// The kind of a block with one packet.
const ENHANCED_PACKET: u32 = 6;

/// The end of a capture that was cut off, for instance because the capture program was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureCut {
    /// Octets of the file before the packet that is not whole.
    pub offset: usize,
    /// Packets of all flows before it.
    pub packets: u64,
}

impl fmt::Display for CaptureCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, packets } = self;
        write!(
            f,
            "ends in the midst of a packet, at octet {offset}; the {packets} packets before it were read"
        )
    }
}

/// The way a packet went, seen from its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PassedWay {
    In,
    Out,
}

/// A packet as the capture has it.
pub(crate) struct CapturedPacket<'a> {
    pub(crate) link: Linktype,
    pub(crate) data: &'a [u8],
    /// The time of day, or whatever the capture counts from.
    pub(crate) time: Duration,
    /// The name of its interface, if that has one.
    pub(crate) interface: Option<&'a str>,
    pub(crate) way: Option<PassedWay>,
}

#[derive(Clone)]
struct Interface {
    link: Linktype,
    offset: u64,
    /// Ticks in a second.
    resolution: u64,
    name: Option<String>,
}

/// Hands every packet of a capture to `each`, which may find a problem with it, and says how many there were. `name` is the
/// name of the capture in errors.
pub(crate) fn read_packets<R: Read + Send>(
    name: &str,
    reader: R,
    each: impl FnMut(&CapturedPacket<'_>) -> Result<(), String>,
) -> Result<(u64, Option<CaptureCut>), TraceError> {
    let mut packets = Packets {
        name,
        interfaces: Vec::new(),
        count: 0,
        each,
    };
    let mut blocks = create_reader(1 << 16, reader).map_err(|error| packets.broken(&error))?;
    let mut capacity = 1 << 16;
    // A reader that cannot continue returns `Incomplete` again at the same place.
    let mut stuck = None;
    loop {
        match blocks.next() {
            Ok((consumed, block)) => {
                packets.block(block)?;
                blocks.consume(consumed);
                stuck = None;
            }
            Err(PcapError::Eof | PcapError::UnexpectedEof) => break,
            Err(PcapError::Incomplete(_)) => {
                let at = blocks.position();
                if stuck == Some(at) && blocks.reader_exhausted() {
                    break;
                }
                stuck = Some(at);
                blocks.refill().map_err(|error| packets.broken(&error))?;
            }
            Err(PcapError::BufferTooSmall) if capacity < BLOCK_OCTETS_MAX => {
                capacity *= 2;
                if !blocks.grow(capacity) {
                    return Err(packets.error("has a block that is too long to be true"));
                }
            }
            Err(error) => return Err(packets.broken(&error)),
        }
    }
    let cut = (!blocks.data().is_empty()).then(|| CaptureCut {
        offset: blocks.consumed(),
        packets: packets.count,
    });
    Ok((packets.count, cut))
}

struct Packets<'a, F> {
    name: &'a str,
    interfaces: Vec<Interface>,
    count: u64,
    each: F,
}

impl<F: FnMut(&CapturedPacket<'_>) -> Result<(), String>> Packets<'_, F> {
    fn error(&self, problem: impl Into<String>) -> TraceError {
        TraceError::Packet {
            name: self.name.to_owned(),
            packet: self.count,
            problem: problem.into(),
        }
    }

    fn broken<I: fmt::Debug>(&self, error: &PcapError<I>) -> TraceError {
        let what = match error {
            PcapError::HeaderNotRecognized => "is no pcap or pcapng file".to_owned(),
            PcapError::BufferTooSmall => "has a block that is too long to be true".to_owned(),
            PcapError::ReadError => "cannot be read".to_owned(),
            PcapError::Eof | PcapError::UnexpectedEof | PcapError::Incomplete(_) => {
                "is cut off here".to_owned()
            }
            _ => "is damaged behind this".to_owned(),
        };
        self.error(what + "; write it anew with `tcpdump -w` or `editcap`")
    }

    fn block(&mut self, block: PcapBlockOwned<'_>) -> Result<(), TraceError> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let nanos = header.is_nanosecond_precision();
                self.interfaces = vec![Interface {
                    link: header.network,
                    offset: 0,
                    resolution: if nanos { 1_000_000_000 } else { 1_000_000 },
                    name: None,
                }];
                Ok(())
            }
            PcapBlockOwned::Legacy(packet) => {
                self.count += 1;
                let Some(interface) = self.interfaces.first() else {
                    return Ok(());
                };
                let packet = CapturedPacket {
                    link: interface.link,
                    data: packet.data,
                    time: time(
                        u64::from(packet.ts_sec),
                        u64::from(packet.ts_usec),
                        interface.resolution,
                    ),
                    interface: None,
                    way: None,
                };
                let found = (self.each)(&packet);
                found.map_err(|problem| self.error(problem))
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.interfaces.clear();
                Ok(())
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
                if self.interfaces.len() == INTERFACES_MAX {
                    return Err(self.error(format!("more than {INTERFACES_MAX} interfaces")));
                }
                let name = description.if_name().and_then(Result::ok);
                self.interfaces.push(Interface {
                    link: description.linktype,
                    offset: u64::try_from(description.if_tsoffset).unwrap_or_default(),
                    resolution: description.ts_resolution().unwrap_or(1_000_000).max(1),
                    name: name.map(str::to_owned),
                });
                Ok(())
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                self.count += 1;
                let interface = usize::try_from(packet.if_id).ok();
                let Some(interface) = interface.and_then(|id| self.interfaces.get(id)) else {
                    return Err(self.error("names an interface that was not described before"));
                };
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let (whole, rest) = (ticks / interface.resolution, ticks % interface.resolution);
                let data = packet.data.get(..packet.caplen as usize);
                let packet = CapturedPacket {
                    link: interface.link,
                    data: data.unwrap_or(packet.data),
                    time: time(
                        whole.saturating_add(interface.offset),
                        rest,
                        interface.resolution,
                    ),
                    interface: interface.name.as_deref(),
                    way: way(&packet),
                };
                let found = (self.each)(&packet);
                found.map_err(|problem| self.error(problem))
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                Err(self.error("has no time; capture with timestamps"))
            }
            PcapBlockOwned::NG(_) => Ok(()),
        }
    }
}

/// A time of so many seconds and `ticks` of a second that has `resolution`.
fn time(seconds: u64, ticks: u64, resolution: u64) -> Duration {
    const NANOS: u128 = 1_000_000_000;
    let nanos = u128::from(ticks) * NANOS / u128::from(resolution);
    let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
    Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanos))
}

fn way(packet: &EnhancedPacketBlock<'_>) -> Option<PassedWay> {
    let mut options = packet.options.iter();
    let flags = options.find(|option| option.code == PACKET_FLAGS)?;
    let flags = *flags.as_bytes().ok()?.first_chunk::<4>()?;
    let flags = if packet.block_type == ENHANCED_PACKET {
        u32::from_le_bytes(flags)
    } else {
        u32::from_be_bytes(flags)
    };
    match flags & 0b11 {
        1 => Some(PassedWay::In),
        2 => Some(PassedWay::Out),
        _ => None,
    }
}
