//! The lab's network header: 20 octets in IPv4's shape, with nodes for addresses.
//!
//! It stands where AeroNP or IPv4 would, so that packets have their true length and damage has a
//! header to hit. Every hop of the simulator checks it, decrements its hop count and may mark it,
//! in place. A header that fails its checksum has no trustworthy destination, and the packet is
//! dropped.
//!
//! ```text
//!  0x45 | DSCP 6 ECN 2 | total length 16 | zero 32 | TTL 8 | protocol 8 | checksum 16 | source 32 | destination 32
//! ```
//!
//! # Does not
//! - Fragment, carry options, or route.
//! - Detect damage behind the header: that is the transport's work.
//!
//! # Sources
//! RFC 791 (shape), RFC 1071 and 1624 (checksum), RFC 2474 (DSCP), RFC 3168 (ECN). The papers do
//! not show AeroNP's own header.

use super::checksum::{InternetSum, internet_updated};
use crate::machine::{Ecn, Priority};

/// The header's length.
pub const NETWORK_HEADER_BYTES: usize = 20;

const VERSION_AND_LENGTH: u8 = 0x45;
const DSCP_MAX: u8 = 63;
const ECN_NOT_CAPABLE: u8 = 0b00;
const ECN_CAPABLE: u8 = 0b10;
const ECN_CONGESTED: u8 = 0b11;

/// A node's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAddress(pub u32);

/// The protocol of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NetworkProtocol(pub u8);

impl NetworkProtocol {
    /// TCP (RFC 9293).
    pub const TCP: Self = Self(6);
    /// UDP (RFC 768).
    pub const UDP: Self = Self(17);
    /// AeroTP: the first number that RFC 3692 leaves to experiments, because IANA assigned none.
    pub const AEROTP: Self = Self(253);
    /// LT-TCP: the other number that RFC 3692 leaves to experiments.
    pub const LT_TCP: Self = Self(254);
}

/// The reason why a packet is dropped at a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkReject {
    /// The packet is shorter than its header, or than the length the header states.
    #[error("shorter than its network header says")]
    Truncated,
    /// The checksum does not match.
    #[error("network header checksum failed")]
    Checksum,
    /// The packet is of another version, has options, is a fragment, or states a length below the
    /// header's.
    #[error("not a network header of this lab")]
    Shape,
    /// The time to live ran out here.
    #[error("time to live ran out")]
    Expired,
}

impl NetworkReject {
    /// The name of this reason's counter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Checksum => "checksum",
            Self::Shape => "shape",
            Self::Expired => "expired",
        }
    }
}

/// The fields of a network header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkHeader {
    /// The node it comes from.
    pub source: NodeAddress,
    /// The node it goes to.
    pub destination: NodeAddress,
    /// The protocol of the payload.
    pub protocol: NetworkProtocol,
    /// Precedence, carried as the DSCP; saturates at 63.
    pub priority: Priority,
    /// The ECN codepoint. Both capable codepoints, ECT(0) and ECT(1), read as capable.
    pub ecn: Ecn,
    /// The number of hops it may still take.
    pub hops_left: u8,
}

/// A packet whose header is intact.
#[derive(Clone, Copy, Debug)]
pub struct NetworkPacket<'a> {
    /// The header.
    pub header: NetworkHeader,
    /// The payload, unchecked.
    pub payload: &'a [u8],
}

impl NetworkHeader {
    /// The header's octets for a payload of `payload_bytes`, or `None` if header and payload
    /// exceed 65,535 octets together.
    pub fn to_octets(self, payload_bytes: usize) -> Option<[u8; NETWORK_HEADER_BYTES]> {
        let total = u16::try_from(payload_bytes.checked_add(NETWORK_HEADER_BYTES)?).ok()?;
        let mut octets = [0; NETWORK_HEADER_BYTES];
        octets[0] = VERSION_AND_LENGTH;
        octets[1] = self.priority.0.min(DSCP_MAX) << 2 | ecn_bits(self.ecn);
        octets[2..4].copy_from_slice(&total.to_be_bytes());
        octets[8] = self.hops_left;
        octets[9] = self.protocol.0;
        octets[12..16].copy_from_slice(&self.source.0.to_be_bytes());
        octets[16..20].copy_from_slice(&self.destination.0.to_be_bytes());
        let checksum = InternetSum::default().and(&octets).finish();
        octets[10..12].copy_from_slice(&checksum.to_be_bytes());
        Some(octets)
    }

    /// Reads the header at the front of `octets` and delimits its payload; octets behind the
    /// stated length are padding and are ignored.
    ///
    /// # Errors
    /// See [`NetworkReject`]; a header is trusted only once its checksum matches.
    pub fn parse(octets: &[u8]) -> Result<NetworkPacket<'_>, NetworkReject> {
        let (head, rest) = octets
            .split_first_chunk::<NETWORK_HEADER_BYTES>()
            .ok_or(NetworkReject::Truncated)?;
        check(head)?;
        let [_, class, t0, t1, .., s0, s1, s2, s3, d0, d1, d2, d3] = *head;
        let payload_bytes = usize::from(u16::from_be_bytes([t0, t1]))
            .checked_sub(NETWORK_HEADER_BYTES)
            .ok_or(NetworkReject::Shape)?;
        let payload = rest.get(..payload_bytes).ok_or(NetworkReject::Truncated)?;
        Ok(NetworkPacket {
            header: Self {
                source: NodeAddress(u32::from_be_bytes([s0, s1, s2, s3])),
                destination: NodeAddress(u32::from_be_bytes([d0, d1, d2, d3])),
                protocol: NetworkProtocol(head[9]),
                priority: Priority(class >> 2),
                ecn: ecn_of(class),
                hops_left: head[8],
            },
            payload,
        })
    }
}

/// Does a hop's work before a packet is queued: checks the header, counts the hop, updates the
/// checksum. Octets behind the header are neither read nor changed.
///
/// # Errors
/// See [`NetworkReject`]: the hop drops the packet.
pub fn count_hop(packet: &mut [u8]) -> Result<(), NetworkReject> {
    let head = packet
        .first_chunk_mut::<NETWORK_HEADER_BYTES>()
        .ok_or(NetworkReject::Truncated)?;
    check(head)?;
    let left = head[8].checked_sub(1).ok_or(NetworkReject::Expired)?;
    if left == 0 {
        return Err(NetworkReject::Expired);
    }
    replace(head, 8, left);
    Ok(())
}

/// Whether a packet may be marked in place of being dropped: [`mark_congested`] would mark it.
pub fn may_be_marked(packet: &[u8]) -> bool {
    packet
        .first_chunk::<NETWORK_HEADER_BYTES>()
        .is_some_and(|head| ecn_of(head[1]) != Ecn::NotCapable)
}

/// Marks a packet as having met congestion, as a full queue does. Returns `false`, and leaves the
/// packet alone, if it is not ECN-capable or too short: the queue then drops it instead.
pub fn mark_congested(packet: &mut [u8]) -> bool {
    let Some(head) = packet.first_chunk_mut::<NETWORK_HEADER_BYTES>() else {
        return false;
    };
    let class = head[1];
    if ecn_of(class) == Ecn::NotCapable {
        return false;
    }
    replace(head, 1, class | ECN_CONGESTED);
    true
}

fn check(head: &[u8; NETWORK_HEADER_BYTES]) -> Result<(), NetworkReject> {
    if InternetSum::default().and(head).finish() != 0 {
        return Err(NetworkReject::Checksum);
    }
    if head[0] != VERSION_AND_LENGTH || head[4..8] != [0; 4] {
        return Err(NetworkReject::Shape);
    }
    Ok(())
}

/// Replaces one octet and keeps the checksum right.
fn replace(head: &mut [u8; NETWORK_HEADER_BYTES], at: usize, octet: u8) {
    let word_at = at & !1;
    let old = u16::from_be_bytes([head[word_at], head[word_at + 1]]);
    head[at] = octet;
    let new = u16::from_be_bytes([head[word_at], head[word_at + 1]]);
    let checksum = internet_updated(u16::from_be_bytes([head[10], head[11]]), old, new);
    head[10..12].copy_from_slice(&checksum.to_be_bytes());
}

const fn ecn_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotCapable => ECN_NOT_CAPABLE,
        Ecn::Capable => ECN_CAPABLE,
        Ecn::Congested => ECN_CONGESTED,
    }
}

const fn ecn_of(class: u8) -> Ecn {
    match class & 0b11 {
        ECN_NOT_CAPABLE => Ecn::NotCapable,
        ECN_CONGESTED => Ecn::Congested,
        _ => Ecn::Capable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: NetworkHeader = NetworkHeader {
        source: NodeAddress(0x0A00_0001),
        destination: NodeAddress(0x0A00_0002),
        protocol: NetworkProtocol::AEROTP,
        priority: Priority(5),
        ecn: Ecn::Capable,
        hops_left: 8,
    };

    fn packet(header: NetworkHeader, payload: &[u8]) -> Vec<u8> {
        [&header.to_octets(payload.len()).unwrap()[..], payload].concat()
    }

    #[test]
    fn golden_octets() {
        let octets = packet(HEADER, b"hi");
        let golden = [
            0x45, 0x16, 0x00, 0x16, 0, 0, 0, 0, 0x08, 0xFD, 0x9D, 0xD3, 0x0A, 0, 0, 1, 0x0A, 0, 0,
            2, b'h', b'i',
        ];
        assert_eq!(octets, golden);
        let read = NetworkHeader::parse(&golden).unwrap();
        assert_eq!((read.header, read.payload), (HEADER, &b"hi"[..]));
    }

    #[test]
    fn a_hop_counts_down_and_the_last_one_drops() {
        let mut octets = packet(HEADER, b"payload");
        for left in (1..8).rev() {
            assert_eq!(count_hop(&mut octets), Ok(()));
            assert_eq!(
                NetworkHeader::parse(&octets).unwrap().header.hops_left,
                left
            );
        }
        assert_eq!(count_hop(&mut octets), Err(NetworkReject::Expired));
    }

    #[test]
    fn only_a_capable_packet_is_marked() {
        for (before, marked) in [
            (Ecn::NotCapable, false),
            (Ecn::Capable, true),
            (Ecn::Congested, true),
        ] {
            let mut octets = packet(
                NetworkHeader {
                    ecn: before,
                    ..HEADER
                },
                b"x",
            );
            assert_eq!(mark_congested(&mut octets), marked);
            let after = NetworkHeader::parse(&octets).unwrap().header.ecn;
            assert_eq!(after, if marked { Ecn::Congested } else { before });
        }
        assert!(!mark_congested(&mut [0; 19]));
    }

    #[test]
    fn any_single_wrong_bit_in_the_header_drops_the_packet() {
        let sound = packet(HEADER, b"payload");
        for bit in 0..NETWORK_HEADER_BYTES * 8 {
            let mut octets = sound.clone();
            octets[bit / 8] ^= 0x80 >> (bit % 8);
            assert!(NetworkHeader::parse(&octets).is_err(), "bit {bit}");
            assert!(count_hop(&mut octets).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_stated_length_is_held_to() {
        let octets = packet(HEADER, b"payload");
        for len in 0..octets.len() {
            let cut = NetworkHeader::parse(&octets[..len]);
            assert_eq!(cut.unwrap_err(), NetworkReject::Truncated);
        }
        let padded = [&octets[..], b"padding"].concat();
        assert_eq!(NetworkHeader::parse(&padded).unwrap().payload, b"payload");
        assert!(HEADER.to_octets(65_515).is_some());
        assert!(HEADER.to_octets(65_516).is_none());
        assert!(HEADER.to_octets(usize::MAX).is_none());
    }

    proptest! {
        #[test]
        fn any_header_comes_back(
            source: u32, destination: u32, protocol: u8, priority in 0_u8..=DSCP_MAX,
            ecn in prop::sample::select(vec![Ecn::NotCapable, Ecn::Capable, Ecn::Congested]),
            hops_left: u8, payload in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let header = NetworkHeader {
                source: NodeAddress(source),
                destination: NodeAddress(destination),
                protocol: NetworkProtocol(protocol),
                priority: Priority(priority),
                ecn,
                hops_left,
            };
            let mut octets = packet(header, &payload);
            let read = NetworkHeader::parse(&octets).unwrap();
            prop_assert_eq!((read.header, read.payload), (header, &payload[..]));
            // A header changed in place is the same as one written afresh.
            mark_congested(&mut octets);
            let counted = count_hop(&mut octets).is_ok();
            let rewritten = NetworkHeader {
                ecn: if ecn == Ecn::NotCapable { ecn } else { Ecn::Congested },
                hops_left: if counted { hops_left - 1 } else { hops_left },
                ..header
            };
            prop_assert_eq!(octets, packet(rewritten, &payload));
        }
    }
}
