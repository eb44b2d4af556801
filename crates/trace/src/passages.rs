//! Datagrams that pass the points of a capture: those of one end of a link, or of both in one file.
//!
//! A point is an interface, a direction and a pair of sockets, as far as the capture tells them. A datagram is known by a
//! digest of its octets, so that it is found again at another point, behind whatever changed its addresses.

use crate::capture::{CapturedUdp, EXPORTED, udp};
use crate::error::TraceError;
use crate::packets::{CaptureCut, CapturedPacket, PassedWay, read_packets};
use core::hash::Hasher;
use core::time::Duration;
use fulmar_proto::units::ByteCount;
use std::collections::BTreeMap;
use std::hash::DefaultHasher;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};

/// A datagram at one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedDatagram {
    /// Its time, by the clock of the capture.
    pub at: Duration,
    /// A digest of its octets.
    pub digest: u64,
    /// Its length on the link, with the headers of IP and UDP where it has some.
    pub len: ByteCount,
}

/// A point that datagrams pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapturePoint {
    /// The name of the interface, if the capture has names.
    pub interface: Option<String>,
    /// Whether they leave the interface; none if the capture does not say.
    pub leaves: Option<bool>,
    /// The sockets from which and to which they go, if the capture says so.
    pub sockets: Option<(SocketAddr, SocketAddr)>,
}

/// The datagrams of a capture, by point and in the order of the capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CapturedPassages {
    /// The points.
    pub points: BTreeMap<CapturePoint, Vec<PassedDatagram>>,
    /// The place where the capture ends in the midst of a packet, if it does.
    pub cut: Option<CaptureCut>,
}

/// Points that are told apart, at most.
const POINTS_MAX: usize = 65_536;
/// Octets of UDP's header.
const UDP_OCTETS: u64 = 8;
/// Octets of an IP header without options.
const IPV4_OCTETS: u64 = 20;
const IPV6_OCTETS: u64 = 40;
/// The name that `fulmar` gives to the contents of sealed datagrams, which pass nothing.
const INNER: &[u8] = b"fulmar.inner";

/// Reads the datagrams of a capture: UDP as network interfaces show it, or what `fulmar` captures where it works.
///
/// # Errors
/// It is no capture, or is damaged.
pub fn read_passages<R: Read + Send>(
    name: &str,
    reader: R,
) -> Result<CapturedPassages, TraceError> {
    let mut points: BTreeMap<CapturePoint, Vec<PassedDatagram>> = BTreeMap::new();
    let (packets, cut) = read_packets(name, reader, |packet| {
        let Some((point, passage)) = passage(packet) else {
            return Ok(());
        };
        if points.len() == POINTS_MAX && !points.contains_key(&point) {
            let problem = "datagrams go between more pairs of sockets than are told apart";
            return Err(format!(
                "{problem} ({POINTS_MAX}); capture one flow: tcpdump -w FILE udp port PORT"
            ));
        }
        points.entry(point).or_default().push(passage);
        Ok(())
    })?;
    if points.is_empty() {
        return Err(TraceError::Whole {
            name: name.to_owned(),
            problem: format!("none of its {packets} packets are UDP, or of `fulmar`"),
        });
    }
    Ok(CapturedPassages { points, cut })
}

fn passage(packet: &CapturedPacket<'_>) -> Option<(CapturePoint, PassedDatagram)> {
    let point = |sockets| CapturePoint {
        interface: packet.interface.map(str::to_owned),
        leaves: packet.way.map(|way| way == PassedWay::Out),
        sockets,
    };
    let passage = |octets: &[u8], headers: u64| PassedDatagram {
        at: packet.time,
        digest: digest(octets),
        len: ByteCount((octets.len() as u64).saturating_add(headers)),
    };
    if packet.link == EXPORTED {
        let exported = Exported::parse(packet.data)?;
        if exported.dissector == Some(INNER) {
            return None;
        }
        let headers = exported.sockets.map_or(0, |(from, _)| headers(from.ip()));
        return Some((point(exported.sockets), passage(exported.octets, headers)));
    }
    let CapturedUdp { from, to, payload } = udp(packet.link, packet.data)?;
    let sockets = (SocketAddr::from(from), SocketAddr::from(to));
    Some((point(Some(sockets)), passage(payload, headers(from.0))))
}

const fn headers(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(_) => IPV4_OCTETS + UDP_OCTETS,
        IpAddr::V6(_) => IPV6_OCTETS + UDP_OCTETS,
    }
}

fn digest(octets: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(octets);
    hasher.finish()
}

/// A packet with tags before it that say what it is.
#[derive(Default)]
struct Exported<'a> {
    dissector: Option<&'a [u8]>,
    sockets: Option<(SocketAddr, SocketAddr)>,
    octets: &'a [u8],
}

impl<'a> Exported<'a> {
    const END: u16 = 0;
    const DISSECTOR: u16 = 12;
    const IPV4: [u16; 2] = [20, 21];
    const IPV6: [u16; 2] = [22, 23];
    const PORTS: [u16; 2] = [25, 26];

    fn parse(mut data: &'a [u8]) -> Option<Self> {
        let mut dissector = None;
        let mut addresses: [Option<IpAddr>; 2] = [None; 2];
        let mut ports: [Option<u16>; 2] = [None; 2];
        loop {
            let (head, rest) = data.split_first_chunk::<4>()?;
            let tag = u16::from_be_bytes([head[0], head[1]]);
            let len = usize::from(u16::from_be_bytes([head[2], head[3]]));
            let (value, rest) = (rest.get(..len)?, rest.get(len..)?);
            data = rest;
            let place = |tags: [u16; 2]| tags.iter().position(|wanted| *wanted == tag);
            if tag == Self::END {
                break;
            } else if tag == Self::DISSECTOR {
                let len = value.iter().position(|octet| *octet == 0);
                dissector = value.get(..len.unwrap_or(value.len()));
            } else if let Some(place) = place(Self::IPV4) {
                addresses[place] = Some(value.first_chunk::<4>().copied()?.into());
            } else if let Some(place) = place(Self::IPV6) {
                addresses[place] = Some(value.first_chunk::<16>().copied()?.into());
            } else if let Some(place) = place(Self::PORTS) {
                let port = value.first_chunk::<4>().copied().map(u32::from_be_bytes);
                ports[place] = port.and_then(|port| u16::try_from(port).ok());
            }
        }
        let socket = |end: usize| Some(SocketAddr::new(addresses[end]?, ports[end]?));
        Some(Self {
            dissector,
            sockets: socket(0).zip(socket(1)),
            octets: data,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_are_cut_off_are_no_packet() {
        let whole = [0, 12, 0, 4, b'i', b'p', 0, 0, 0, 0, 0, 0, 7, 8, 9];
        let exported = Exported::parse(&whole).expect("a packet");
        assert_eq!(exported.dissector, Some(&b"ip"[..]));
        assert_eq!(exported.octets, [7, 8, 9]);
        for len in 0..12 {
            assert!(Exported::parse(&whole[..len]).is_none(), "{len}");
        }
    }
}
