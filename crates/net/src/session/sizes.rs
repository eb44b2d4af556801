//! The room in a packet of a path: the headers around a TPDU, by the family of the addresses.

use super::cipher::TAG_BYTES;
use super::dialect::{DataParity, Wire};
use super::early::SALT_BYTES;
use super::wire::{ARMOURED_HEADER_BYTES, DATA_HEADER_BYTES, HEADER_BYTES, MESSAGE_TYPE_BYTES};
use fulmar_proto::units::ByteCount;

/// Octets that a session adds at most to what the inner machine sends, parity not counted: those of [`Wire::One`].
pub const SESSION_OVERHEAD: ByteCount = Wire::One.around(DataParity::NONE);

impl Wire {
    /// Octets before the sealed content of data.
    pub(super) const fn header_bytes(self, parity: DataParity) -> usize {
        match self {
            Self::One => HEADER_BYTES,
            Self::Two if parity.is_armoured => ARMOURED_HEADER_BYTES,
            Self::Two => DATA_HEADER_BYTES,
        }
    }

    /// Octets of sealed content before what the inner machine sends: in wire 2 it begins with a type of its own.
    pub(super) const fn lead_bytes(self) -> usize {
        match self {
            Self::One => MESSAGE_TYPE_BYTES,
            Self::Two => 0,
        }
    }

    /// Octets before what the inner machine sends.
    pub(super) const fn before(self, parity: DataParity) -> usize {
        self.header_bytes(parity) + self.lead_bytes()
    }

    /// Octets around what the inner machine sends, with `parity` behind it.
    pub(super) const fn around(self, parity: DataParity) -> ByteCount {
        ByteCount((self.before(parity) + TAG_BYTES + parity.words.parity_bytes()) as u64)
    }
}

/// Headers of IPv4 (RFC 791, without options) and UDP.
const V4_HEADERS: ByteCount = ByteCount(20 + 8);
/// Headers of IPv6 (RFC 8200, without extensions) and UDP.
const V6_HEADERS: ByteCount = ByteCount(40 + 8);
/// The octet before a datagram in an Ethernet frame, whose payload is the packet then.
const FRAME_HEADERS: ByteCount = ByteCount(1);
/// A neighbour on a device stands for a link-local address and port 0 ([`crate::ethernet::Neighbour`]).
const LINK_LOCAL: [u8; 8] = [0xFE, 0x80, 0, 0, 0, 0, 0, 0];
/// An IPv4 address in the form of an IPv6 one begins so (RFC 4291, section 2.5.5.2).
pub(super) const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF];
/// Octets of a source with its port, see [`super::source_octets`].
const SOURCE_BYTES: usize = 18;

/// The headers of the network and of UDP, or of a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NetworkHeaders(pub(super) ByteCount);

impl NetworkHeaders {
    /// The larger ones, for a path of which nothing was heard.
    pub(super) const UNKNOWN: Self = Self(V6_HEADERS);

    /// The headers of packets to and from `source`; for a source in no known form, the larger ones.
    pub(super) fn of_source(source: &[u8]) -> Self {
        let is_address = source.len() == SOURCE_BYTES;
        Self(if is_address && source.starts_with(&MAPPED) {
            V4_HEADERS
        } else if is_address && source.starts_with(&LINK_LOCAL) && source.ends_with(&[0, 0]) {
            FRAME_HEADERS
        } else {
            V6_HEADERS
        })
    }
}

/// The sizes of what goes to a peer, layer by layer, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The IP packet that is known to arrive.
    pub packet: ByteCount,
    /// The UDP payload in it: a session datagram.
    pub datagram: ByteCount,
    /// The inner machine's part of it: a datagram of its own, or content in [`Wire::Two`].
    pub payload: ByteCount,
}

impl Sizes {
    /// The sizes in packets of `packet` octets with `parity` behind each datagram.
    pub(super) fn new(
        packet: ByteCount,
        headers: NetworkHeaders,
        wire: Wire,
        parity: DataParity,
        sends_early: bool,
    ) -> Self {
        let datagram = packet.saturating_sub(headers.0);
        let salt = if sends_early { SALT_BYTES } else { 0 };
        let taken = wire.around(parity) + ByteCount::from_usize(salt);
        Self {
            packet,
            datagram,
            payload: datagram.saturating_sub(taken),
        }
    }

    /// Octets around an inner datagram in its packet.
    pub fn overhead(&self) -> ByteCount {
        self.packet.saturating_sub(self.payload)
    }
}

#[cfg(test)]
mod tests {
    use super::super::source_octets;
    use super::*;
    use fulmar_proto::units::FecStrength;

    #[test]
    fn the_headers_follow_the_family_of_the_address_also_on_a_socket_for_both() {
        let headers = |from: &str| {
            let source = source_octets(from.parse().unwrap());
            NetworkHeaders::of_source(&source).0.0
        };
        assert_eq!(headers("192.0.2.1:4914"), 28);
        assert_eq!(headers("[::ffff:192.0.2.1]:4914"), 28);
        assert_eq!(headers("[2001:db8::1]:4914"), 48);
        assert_eq!(headers("[fe80::1]:4914"), 48);
        let everybody = crate::ethernet::Neighbour::everybody(3).address();
        let frame = NetworkHeaders::of_source(&source_octets(everybody));
        assert_eq!(frame.0.0, 1);
        assert_eq!(NetworkHeaders::of_source(&[1, 2, 3, 4]).0.0, 48);
    }

    #[test]
    fn a_packet_is_its_payload_and_what_surrounds_it() {
        let headers = NetworkHeaders(V4_HEADERS);
        let sizes = |wire, parity| Sizes::new(ByteCount(1_500), headers, wire, parity, false);
        let ten = DataParity {
            is_armoured: true,
            words: FecStrength::from_words(10).unwrap(),
        };
        let with_parity = sizes(Wire::One, ten);
        let (datagram, payload) = (with_parity.datagram.0, with_parity.payload.0);
        assert_eq!((datagram, payload), (1_472, 1_403));
        assert_eq!(with_parity.overhead().0, 97);
        // 24 octets around content, whose first is a type; 29 around a TPDU.
        let [one, two] = [Wire::One, Wire::Two].map(|wire| sizes(wire, DataParity::NONE));
        assert_eq!((one.payload.0, two.payload.0), (1_443, 1_448));
        assert_eq!(sizes(Wire::Two, ten).payload.0, 1_399);
        let none = ten.with(FecStrength::NONE);
        assert_eq!(
            sizes(Wire::Two, none).payload.0,
            1_439,
            "armoured all the same"
        );
    }
}
