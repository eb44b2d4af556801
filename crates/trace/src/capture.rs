//! Captures of a flow with sequence numbers: pcap and pcapng, of RTP or AeroTP over UDP.
//!
//! The capture must have been made at the receiver, behind the loss. Numbers are read in the order
//! of the capture, with its timestamps as times of arrival.

use crate::error::TraceError;
use crate::losses::Losses;
use crate::packets::{CaptureCut, CapturedPacket, read_packets};
use crate::sequence::{SequenceOptions, Tracker};
use etherparse::{LaxSlicedPacket, TransportSlice};
use fulmar_proto::wire::aerotp::{TpduKind, parse};
use pcap_parser::Linktype;
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

/// The link type of packets with tags before them that name their dissector.
pub(crate) const EXPORTED: Linktype = Linktype(252);
/// Flows to one port that are told apart, at most.
const FLOWS_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FlowKey {
    from: (IpAddr, u16),
    to: IpAddr,
    source: u32,
}

/// The result of reading one flow from a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Captured {
    /// The flow's packets, and which of them were lost.
    pub losses: Losses,
    /// The place where the capture ends in the midst of a packet, if it does.
    pub cut: Option<CaptureCut>,
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
        flows: BTreeMap::new(),
        packets: 0,
        to_port: 0,
        exported: 0,
    };
    let (packets, cut) = read_packets(name, reader, |packet| capture.packet(packet))?;
    capture.packets = packets;
    let losses = capture.finish()?;
    Ok(Captured { losses, cut })
}

struct Capture<'a> {
    name: &'a str,
    options: CaptureOptions,
    flows: BTreeMap<FlowKey, Tracker>,
    packets: u64,
    /// UDP datagrams to the port, of any kind.
    to_port: u64,
    /// Packets as `fulmar` itself captures them.
    exported: u64,
}

impl Capture<'_> {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), String> {
        self.exported += u64::from(packet.link == EXPORTED);
        let datagram = udp(packet.link, packet.data);
        let to_port = datagram.filter(|udp| udp.to.1 == self.options.port);
        let Some(CapturedUdp { from, to, payload }) = to_port else {
            return Ok(());
        };
        let to = to.0;
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
            return Err(format!(
                "more than {FLOWS_MAX} flows go to port {}; cut the capture down to one",
                self.options.port
            ));
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
        tracker.feed(number, Some(packet.time.as_secs_f64()))
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

/// A UDP datagram of a capture.
#[derive(Clone, Copy)]
pub(crate) struct CapturedUdp<'a> {
    pub(crate) from: Endpoint,
    pub(crate) to: Endpoint,
    pub(crate) payload: &'a [u8],
}

/// The UDP datagram in a captured packet, if there is one.
pub(crate) fn udp(link: Linktype, data: &[u8]) -> Option<CapturedUdp<'_>> {
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
    Some(CapturedUdp {
        from: (from, udp.source_port()),
        to: (to, udp.destination_port()),
        payload: udp.payload(),
    })
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
