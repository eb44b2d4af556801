//! UDP's header, for the plain-UDP baseline in the simulator. Its checksum covers the payload, so a
//! damaged datagram is noticed and dropped, as a kernel would do.
//!
//! # Sources
//! RFC 768; the pseudo header as in IPv4, over [`NodeAddress`]es.

use fulmar_proto::wire::Port;
use fulmar_proto::wire::checksum::InternetSum;
use fulmar_proto::wire::network::{NetworkProtocol, NodeAddress};

/// The header's length.
pub const UDP_HEADER_BYTES: usize = 8;

/// The reason why a datagram is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum UdpReject {
    /// The datagram is shorter than its header, or than the length the header states.
    #[error("shorter than its UDP header says")]
    Truncated,
    /// The stated length is below the header's.
    #[error("impossible UDP length")]
    Length,
    /// The checksum does not match: header, payload or addresses are damaged.
    #[error("UDP checksum failed")]
    Checksum,
}

impl UdpReject {
    /// The name of this reason's counter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Length => "length",
            Self::Checksum => "checksum",
        }
    }
}

/// The nodes between which a datagram travels: the network header's share of the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// The sending node.
    pub source: NodeAddress,
    /// The receiving node.
    pub destination: NodeAddress,
}

/// A UDP header's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpHeader {
    /// The sending port.
    pub source: Port,
    /// The receiving port.
    pub destination: Port,
}

/// A datagram that passed its checks.
#[derive(Clone, Copy, Debug)]
pub struct UdpDatagram<'a> {
    /// The ports.
    pub header: UdpHeader,
    /// The payload.
    pub payload: &'a [u8],
    /// Whether a checksum covers it; a sender may leave the checksum out.
    pub checked: bool,
}

impl UdpHeader {
    /// The header's octets, checksum included, or `None` if header and payload exceed 65,535
    /// octets together.
    pub fn to_octets(self, between: Between, payload: &[u8]) -> Option<[u8; UDP_HEADER_BYTES]> {
        let length = u16::try_from(payload.len().checked_add(UDP_HEADER_BYTES)?).ok()?;
        let mut octets = [0; UDP_HEADER_BYTES];
        octets[0..2].copy_from_slice(&self.source.0.to_be_bytes());
        octets[2..4].copy_from_slice(&self.destination.0.to_be_bytes());
        octets[4..6].copy_from_slice(&length.to_be_bytes());
        let checksum = match between
            .pseudo_header(length)
            .and(&octets)
            .and(payload)
            .finish()
        {
            // Zero would mean "not computed"; its other representation is all ones.
            0 => 0xFFFF,
            sum => sum,
        };
        octets[6..8].copy_from_slice(&checksum.to_be_bytes());
        Some(octets)
    }

    /// Reads the datagram in `octets`; octets behind the stated length are ignored.
    ///
    /// # Errors
    /// See [`UdpReject`].
    pub fn parse(between: Between, octets: &[u8]) -> Result<UdpDatagram<'_>, UdpReject> {
        let [a, b, c, d, l0, l1, s0, s1] = *octets.first_chunk().ok_or(UdpReject::Truncated)?;
        let length = u16::from_be_bytes([l0, l1]);
        if usize::from(length) < UDP_HEADER_BYTES {
            return Err(UdpReject::Length);
        }
        let datagram = octets
            .get(..usize::from(length))
            .ok_or(UdpReject::Truncated)?;
        let checked = [s0, s1] != [0; 2];
        if checked && between.pseudo_header(length).and(datagram).finish() != 0 {
            return Err(UdpReject::Checksum);
        }
        Ok(UdpDatagram {
            header: Self {
                source: Port(u16::from_be_bytes([a, b])),
                destination: Port(u16::from_be_bytes([c, d])),
            },
            payload: &datagram[UDP_HEADER_BYTES..],
            checked,
        })
    }
}

impl Between {
    fn pseudo_header(self, length: u16) -> InternetSum {
        InternetSum::default()
            .and(&self.source.0.to_be_bytes())
            .and(&self.destination.0.to_be_bytes())
            .and_word(u16::from(NetworkProtocol::UDP.0))
            .and_word(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BETWEEN: Between = Between {
        source: NodeAddress(0x0A00_0001),
        destination: NodeAddress(0x0A00_0002),
    };
    const HEADER: UdpHeader = UdpHeader {
        source: Port(4000),
        destination: Port(5000),
    };

    fn datagram(payload: &[u8]) -> Vec<u8> {
        [&HEADER.to_octets(BETWEEN, payload).unwrap()[..], payload].concat()
    }

    #[test]
    fn golden_octets() {
        let golden = [
            0x0F, 0xA0, 0x13, 0x88, 0x00, 0x0B, 0x00, 0x00, b'a', b'b', b'c',
        ];
        let sum = InternetSum::default()
            .and(&[10, 0, 0, 1, 10, 0, 0, 2, 0, 17, 0, 11])
            .and(&golden)
            .finish();
        let octets = datagram(b"abc");
        assert_eq!(octets[..6], golden[..6]);
        assert_eq!(octets[6..8], sum.to_be_bytes());
        assert_eq!(octets[8..], golden[8..]);
    }

    #[test]
    fn every_wrong_bit_is_noticed_wherever_it_is() {
        let sound = datagram(b"some payload");
        assert!(UdpHeader::parse(BETWEEN, &sound).unwrap().checked);
        for bit in 0..sound.len() * 8 {
            let mut octets = sound.clone();
            octets[bit / 8] ^= 0x80 >> (bit % 8);
            assert!(UdpHeader::parse(BETWEEN, &octets).is_err(), "bit {bit}");
        }
        let elsewhere = Between {
            destination: NodeAddress(3),
            ..BETWEEN
        };
        let misrouted = UdpHeader::parse(elsewhere, &sound);
        assert_eq!(misrouted.unwrap_err(), UdpReject::Checksum);
    }

    #[test]
    fn a_checksum_of_zero_was_not_computed() {
        let mut octets = datagram(b"some payload");
        octets[6..8].fill(0);
        octets[10] ^= 0xFF;
        assert!(!UdpHeader::parse(BETWEEN, &octets).unwrap().checked);
    }

    #[test]
    fn a_computed_zero_is_sent_as_all_ones() {
        let plain = InternetSum::default()
            .and(&datagram(&[0, 0])[6..8])
            .finish();
        let octets = datagram(&(!plain).to_be_bytes());
        assert_eq!(octets[6..8], [0xFF, 0xFF]);
        assert!(UdpHeader::parse(BETWEEN, &octets).unwrap().checked);
    }

    #[test]
    fn lengths_are_held_to() {
        let octets = datagram(b"abc");
        for len in 0..octets.len() {
            let cut = UdpHeader::parse(BETWEEN, &octets[..len]);
            assert_eq!(cut.unwrap_err(), UdpReject::Truncated);
        }
        let mut short = octets.clone();
        short[4..6].copy_from_slice(&[0, 7]);
        let impossible = UdpHeader::parse(BETWEEN, &short);
        assert_eq!(impossible.unwrap_err(), UdpReject::Length);
        assert!(HEADER.to_octets(BETWEEN, &vec![0; 65_527]).is_some());
        assert!(HEADER.to_octets(BETWEEN, &vec![0; 65_528]).is_none());
    }

    proptest! {
        #[test]
        fn any_payload_comes_back(payload in proptest::collection::vec(any::<u8>(), 0..100)) {
            let octets = datagram(&payload);
            let read = UdpHeader::parse(BETWEEN, &octets).unwrap();
            prop_assert_eq!((read.header, read.payload), (HEADER, &payload[..]));
        }
    }
}
