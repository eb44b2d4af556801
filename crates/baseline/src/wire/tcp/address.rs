//! The network header's share of the checksum.

use fulmar_proto::wire::checksum::InternetSum;
use fulmar_proto::wire::network::{NetworkProtocol, NodeAddress};

/// The addresses of a segment, as the pseudo header needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressPair {
    /// IPv4 (RFC 9293, section 3.1), and the lab's nodes, whose addresses have the same form.
    V4 {
        /// The sender's address.
        source: [u8; 4],
        /// The receiver's address.
        destination: [u8; 4],
    },
    /// IPv6 (RFC 8200, section 8.1).
    V6 {
        /// The sender's address.
        source: [u8; 16],
        /// The receiver's address.
        destination: [u8; 16],
    },
}

impl AddressPair {
    /// The addresses of two nodes of the lab, or two IPv4 addresses as numbers.
    pub const fn nodes(source: NodeAddress, destination: NodeAddress) -> Self {
        Self::V4 {
            source: source.0.to_be_bytes(),
            destination: destination.0.to_be_bytes(),
        }
    }

    /// The addresses for the way back.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::V4 {
                source,
                destination,
            } => Self::V4 {
                source: destination,
                destination: source,
            },
            Self::V6 {
                source,
                destination,
            } => Self::V6 {
                source: destination,
                destination: source,
            },
        }
    }

    /// The sum over the pseudo header of a segment of `length` octets.
    pub(super) fn pseudo_header(&self, length: u32) -> InternetSum {
        let sum = InternetSum::default();
        let sum = match self {
            Self::V4 {
                source,
                destination,
            } => sum.and(source).and(destination),
            Self::V6 {
                source,
                destination,
            } => sum.and(source).and(destination),
        };
        // The words sum up the same whether a field has two octets or four.
        sum.and(&length.to_be_bytes())
            .and_word(u16::from(NetworkProtocol::TCP.0))
    }
}
