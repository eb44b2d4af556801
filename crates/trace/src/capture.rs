//! Captures of a flow with sequence numbers: pcap and pcapng, of RTP or AeroTP over UDP.
//!
//! The capture must have been made at the receiver, behind the loss. Numbers are read in the order
//! of the capture, with its timestamps as times of arrival.

use crate::error::TraceError;
use crate::losses::Losses;
use crate::sequence::{SequenceOptions, Tracker};
use core::fmt;
use etherparse::{LaxSlicedPacket, TransportSlice};
use fulmar_proto::wire::aerotp::{TpduKind, parse};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;

/// The protocol whose sequence numbers a flow carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CapturedProtocol {
    /// RTP (RFC 3550): 16 bits, a flow for each synchronisation source.
    #[default]
    Rtp,
    /// AeroTP: 32 bits, of data TPDUs. In modes with retransmission, a TPDU that is retransmitted
    /// within the window counts as received.
    Aerotp,
}

/// The choice of packets from a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// The UDP port they were sent to.
    pub port: u16,
    /// The packets' protocol.
    pub protocol: CapturedProtocol,
    /// RTP: the synchronisation source, if there are several.
    pub source: Option<u32>,
    /// A packet at most so many numbers behind the highest still counts as received.
    pub window: u32,
}

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
/// The link type of packets with tags before them that name their dissector.
const EXPORTED: Linktype = Linktype(252);
/// Flows to one port that are told apart, at most.
const FLOWS_MAX: usize = 64;
const INTERFACES_MAX: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FlowKey {
    from: (IpAddr, u16),
    to: IpAddr,
    source: u32,
}

#[derive(Clone, Copy)]
struct Interface {
    link: Linktype,
    offset: u64,
    /// Ticks in a second.
    resolution: u64,
}

/// The result of reading one flow from a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Captured {
    /// The flow's packets, and which of them were lost.
    pub losses: Losses,
    /// The place where the capture ends in the midst of a packet, if it does.
    pub cut: Option<CaptureCut>,
}

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

/// Reads the losses of one flow. `name` is the name of the capture in errors. Of a capture that was
/// cut off, the whole packets count.
///
/// # Errors
/// It is no capture, is damaged, or has no flow, or several, of the kind that is asked for.
pub fn read_capture<R: Read + Send>(
    name: &str,
    reader: R,
    options: CaptureOptions,
) -> Result<Captured, TraceError> {
    let mut capture = Capture {
        name,
        options,
        interfaces: Vec::new(),
        flows: BTreeMap::new(),
        packets: 0,
        to_port: 0,
        exported: 0,
    };
    let mut blocks = create_reader(1 << 16, reader).map_err(|error| capture.broken(&error))?;
    let mut capacity = 1 << 16;
    // A reader that cannot continue returns `Incomplete` again at the same place.
    let mut stuck = None;
    loop {
        match blocks.next() {
            Ok((consumed, block)) => {
                capture.block(block)?;
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
                blocks.refill().map_err(|error| capture.broken(&error))?;
            }
            Err(PcapError::BufferTooSmall) if capacity < BLOCK_OCTETS_MAX => {
                capacity *= 2;
                if !blocks.grow(capacity) {
                    return Err(capture.error("has a block that is too long to be true"));
                }
            }
            Err(error) => return Err(capture.broken(&error)),
        }
    }
    let cut = (!blocks.data().is_empty()).then(|| CaptureCut {
        offset: blocks.consumed(),
        packets: capture.packets,
    });
    drop(blocks);
    let losses = capture.finish()?;
    Ok(Captured { losses, cut })
}

struct Capture<'a> {
    name: &'a str,
    options: CaptureOptions,
    interfaces: Vec<Interface>,
    flows: BTreeMap<FlowKey, Tracker>,
    packets: u64,
    /// UDP datagrams to the port, of any kind.
    to_port: u64,
    /// Packets as `fulmar` itself captures them.
    exported: u64,
}

impl Capture<'_> {
    fn error(&self, problem: impl Into<String>) -> TraceError {
        TraceError::Packet {
            name: self.name.to_owned(),
            packet: self.packets,
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
                }];
                Ok(())
            }
            PcapBlockOwned::Legacy(packet) => {
                self.packets += 1;
                let Some(&interface) = self.interfaces.first() else {
                    return Ok(());
                };
                let fraction = f64::from(packet.ts_usec) / interface.resolution as f64;
                self.packet(
                    interface.link,
                    packet.data,
                    f64::from(packet.ts_sec) + fraction,
                )
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.interfaces.clear();
                Ok(())
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
                if self.interfaces.len() == INTERFACES_MAX {
                    return Err(self.error(format!("more than {INTERFACES_MAX} interfaces")));
                }
                self.interfaces.push(Interface {
                    link: description.linktype,
                    offset: u64::try_from(description.if_tsoffset).unwrap_or_default(),
                    resolution: description.ts_resolution().unwrap_or(1_000_000).max(1),
                });
                Ok(())
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                self.packets += 1;
                let interface = usize::try_from(packet.if_id).ok();
                let Some(&interface) = interface.and_then(|id| self.interfaces.get(id)) else {
                    return Err(self.error("names an interface that was not described before"));
                };
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let (whole, rest) = (ticks / interface.resolution, ticks % interface.resolution);
                let seconds = whole.saturating_add(interface.offset) as f64;
                let time = seconds + rest as f64 / interface.resolution as f64;
                let data = packet.data.get(..packet.caplen as usize);
                self.packet(interface.link, data.unwrap_or(packet.data), time)
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                Err(self.error("has no time; capture with timestamps"))
            }
            PcapBlockOwned::NG(_) => Ok(()),
        }
    }

    fn packet(&mut self, link: Linktype, data: &[u8], time: f64) -> Result<(), TraceError> {
        self.exported += u64::from(link == EXPORTED);
        let Some((from, to, payload)) = udp(link, data, self.options.port) else {
            return Ok(());
        };
        self.to_port += 1;
        let numbered = match self.options.protocol {
            CapturedProtocol::Rtp => rtp(payload),
            CapturedProtocol::Aerotp => aerotp(payload),
        };
        let Some((number, source)) = numbered else {
            return Ok(());
        };
        if self.options.source.is_some_and(|wanted| wanted != source) {
            return Ok(());
        }
        let key = FlowKey { from, to, source };
        if !self.flows.contains_key(&key) && self.flows.len() == FLOWS_MAX {
            return Err(self.error(format!(
                "more than {FLOWS_MAX} flows go to port {}; cut the capture down to one",
                self.options.port
            )));
        }
        let options = SequenceOptions {
            bits: Some(match self.options.protocol {
                CapturedProtocol::Rtp => 16,
                CapturedProtocol::Aerotp => 32,
            }),
            window: self.options.window,
        };
        let tracker = self
            .flows
            .entry(key)
            .or_insert_with(|| Tracker::new(options));
        let fed = tracker.feed(number, Some(time));
        fed.map_err(|problem| self.error(problem))
    }

    fn finish(mut self) -> Result<Losses, TraceError> {
        let whole = |problem: String| TraceError::Whole {
            name: self.name.to_owned(),
            problem,
        };
        let port = self.options.port;
        if self.flows.len() > 1 {
            let listed = self.flows.iter().map(|(key, tracker)| {
                let ((from, from_port), to) = (key.from, key.to);
                let source = match self.options.protocol {
                    CapturedProtocol::Rtp => format!(" --ssrc {:#010x}", key.source),
                    CapturedProtocol::Aerotp => String::new(),
                };
                let received = tracker.received();
                format!("{from} port {from_port} to {to}{source} ({received} packets)")
            });
            let listed: Vec<String> = listed.collect();
            return Err(whole(format!(
                "{} flows go to port {port}, choose one: {}",
                listed.len(),
                listed.join("; ")
            )));
        }
        let Some((_, tracker)) = self.flows.pop_first() else {
            let kind = match self.options.protocol {
                CapturedProtocol::Rtp => "RTP packets",
                CapturedProtocol::Aerotp => "AeroTP data TPDUs",
            };
            if self.exported > 0 {
                return Err(whole(format!(
                    "{} of its {} packets are exported PDUs, as `fulmar` captures them where it \
                     works; `fulmar fit` wants what a network interface sees at the receiver: \
                     `tcpdump -w FILE udp port {port}` there",
                    self.exported, self.packets
                )));
            }
            return Err(whole(format!(
                "none of its {} packets are {kind} to UDP port {port} ({} are UDP to that port); \
                 look at --port, --protocol and --ssrc",
                self.packets, self.to_port
            )));
        };
        tracker.finish().map_err(whole)
    }
}

type Endpoint = (IpAddr, u16);

/// Sender, receiver and payload of a UDP datagram to `port`; none of anything else.
fn udp(link: Linktype, data: &[u8], port: u16) -> Option<(Endpoint, IpAddr, &[u8])> {
    /// Octets of the "cooked" headers of Linux, and of BSD's loopback.
    const COOKED: usize = 16;
    const COOKED_2: usize = 20;
    const LOOPBACK: usize = 4;
    let sliced = match link {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok()?,
        Linktype::LINUX_SLL => LaxSlicedPacket::from_ip(data.get(COOKED..)?).ok()?,
        Linktype::LINUX_SLL2 => LaxSlicedPacket::from_ip(data.get(COOKED_2..)?).ok()?,
        Linktype::NULL | Linktype::LOOP => LaxSlicedPacket::from_ip(data.get(LOOPBACK..)?).ok()?,
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => LaxSlicedPacket::from_ip(data).ok()?,
        _ => return None,
    };
    let Some(TransportSlice::Udp(udp)) = sliced.transport else {
        return None;
    };
    let (from, to) = match sliced.net? {
        etherparse::LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            (
                IpAddr::from(header.source()),
                IpAddr::from(header.destination()),
            )
        }
        etherparse::LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            (
                IpAddr::from(header.source()),
                IpAddr::from(header.destination()),
            )
        }
        etherparse::LaxNetSlice::Arp(_) => return None,
    };
    (udp.destination_port() == port).then(|| ((from, udp.source_port()), to, udp.payload()))
}

/// Number and synchronisation source (RFC 3550, 5.1); none for RTCP on the same port (RFC 5761, 4).
fn rtp(payload: &[u8]) -> Option<(u64, u32)> {
    const VERSION: u8 = 2;
    let head: &[u8; 12] = payload.first_chunk()?;
    let is_control = (192..=223).contains(&head[1]);
    if head[0] >> 6 != VERSION || is_control {
        return None;
    }
    let number = u16::from_be_bytes([head[2], head[3]]);
    let source = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
    Some((u64::from(number), source))
}

/// Number of a data TPDU; its source port stands for the connection.
fn aerotp(payload: &[u8]) -> Option<(u64, u32)> {
    let tpdu = parse(payload).ok()?;
    matches!(tpdu.kind(), TpduKind::Data { .. }).then(|| {
        (
            u64::from(tpdu.header.seq.0),
            u32::from(tpdu.header.source.0),
        )
    })
}
