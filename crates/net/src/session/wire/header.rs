//! The 12 octets in clear before every session datagram.
//!
//! ```text
//!  word 0:  version 4 | type 4 | FEC words 8 | HEC 16
//!  word 1:  the receiver's session index
//!  word 2:  low half of the packet counter; in handshakes the sender's session index
//! ```

use fulmar_proto::units::FecStrength;
use fulmar_proto::wire::checksum::hec;

/// Octets of the header.
pub(in crate::session) const HEADER_BYTES: usize = 12;

/// The version of this format.
pub const SESSION_VERSION: u8 = 1;

/// The type of a datagram, which tells what is behind the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum DatagramType {
    /// A sealed TPDU or control message.
    Data,
    /// The first message of a handshake.
    Initiation,
    /// The second message of a handshake.
    Response,
    /// "I am busy: prove your address."
    Cookie,
    /// A sealed message under a preset key, before the handshake is through.
    Early,
    /// "I speak another version": nothing follows.
    Version,
    /// "I cannot take this, and here is why": a hint, from anybody.
    Notice,
}

impl DatagramType {
    const fn code(self) -> u8 {
        match self {
            Self::Data => 0,
            Self::Initiation => 1,
            Self::Response => 2,
            Self::Cookie => 3,
            Self::Early => 4,
            Self::Version => 5,
            Self::Notice => 6,
        }
    }

    const fn of(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Data,
            1 => Self::Initiation,
            2 => Self::Response,
            3 => Self::Cookie,
            4 => Self::Early,
            5 => Self::Version,
            6 => Self::Notice,
            _ => return None,
        })
    }
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) struct Header {
    pub(in crate::session) kind: DatagramType,
    /// Parity words behind the datagram.
    pub(in crate::session) fec: FecStrength,
    pub(in crate::session) receiver: u32,
    /// The low half of the counter, or the sender's index.
    pub(in crate::session) low: u32,
}

/// The reason why octets are no header of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum HeaderReject {
    /// Shorter than a header.
    Truncated,
    /// The HEC does not match.
    Check,
    /// Sound, but of another version.
    Version {
        theirs: u8,
        /// The index for an answer, if it asks for one.
        initiation_from: Option<u32>,
    },
    /// A type without a meaning.
    Type,
}

fn check(octets: &[u8; HEADER_BYTES]) -> u16 {
    hec(&octets[..2], &octets[4..])
}

impl Header {
    pub(in crate::session) fn to_octets(self) -> [u8; HEADER_BYTES] {
        self.to_octets_of(SESSION_VERSION)
    }

    pub(in crate::session) fn to_octets_of(self, version: u8) -> [u8; HEADER_BYTES] {
        let mut octets = [0; HEADER_BYTES];
        octets[0] = version << 4 | self.kind.code();
        // `SessionConfig` refuses more than 255 words.
        octets[1] = u8::try_from(self.fec.words()).unwrap_or(u8::MAX);
        octets[4..8].copy_from_slice(&self.receiver.to_be_bytes());
        octets[8..12].copy_from_slice(&self.low.to_be_bytes());
        let hec = check(&octets);
        octets[2..4].copy_from_slice(&hec.to_be_bytes());
        octets
    }

    pub(in crate::session) fn parse(octets: &[u8]) -> Result<Self, HeaderReject> {
        let octets: &[u8; HEADER_BYTES] = octets.first_chunk().ok_or(HeaderReject::Truncated)?;
        let [first, fec, h0, h1, r0, r1, r2, r3, l0, l1, l2, l3] = *octets;
        if check(octets) != u16::from_be_bytes([h0, h1]) {
            return Err(HeaderReject::Check);
        }
        let kind = DatagramType::of(first & 0x0F);
        let low = u32::from_be_bytes([l0, l1, l2, l3]);
        let version = first >> 4;
        // A "version" datagram is how another version answers, so it is read in any.
        if version != SESSION_VERSION && kind != Some(DatagramType::Version) {
            return Err(HeaderReject::Version {
                theirs: version,
                initiation_from: (kind == Some(DatagramType::Initiation)).then_some(low),
            });
        }
        Ok(Self {
            kind: kind.ok_or(HeaderReject::Type)?,
            fec: FecStrength::from_words(u16::from(fec)).unwrap_or(FecStrength::NONE),
            receiver: u32::from_be_bytes([r0, r1, r2, r3]),
            low,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            kind: DatagramType::Response,
            fec: FecStrength::from_words(9).unwrap(),
            receiver: 0x0102_0304,
            low: 0xA0B0_C0D0,
        }
    }

    #[test]
    fn a_header_is_these_octets() {
        let octets = header().to_octets();
        assert_eq!(
            octets,
            [0x12, 9, 0x26, 0x5F, 1, 2, 3, 4, 0xA0, 0xB0, 0xC0, 0xD0]
        );
        assert_eq!(Header::parse(&octets), Ok(header()));
    }

    #[test]
    fn up_to_three_wrong_bits_are_always_noticed() {
        let sound = header().to_octets();
        let flip = |octets: &mut [u8], bit: usize| octets[bit / 8] ^= 1 << (bit % 8);
        for a in 0..96 {
            for b in a..96 {
                for c in b..96 {
                    let mut octets = sound;
                    flip(&mut octets, a);
                    flip(&mut octets, b);
                    flip(&mut octets, c);
                    let expected = if octets == sound {
                        Ok(header())
                    } else {
                        Err(HeaderReject::Check)
                    };
                    assert_eq!(Header::parse(&octets), expected, "{a} {b} {c}");
                }
            }
        }
    }

    #[test]
    fn cuts_unknown_types_and_other_versions_are_told_apart() {
        let sound = header().to_octets();
        for len in 0..HEADER_BYTES {
            assert_eq!(Header::parse(&sound[..len]), Err(HeaderReject::Truncated));
        }
        let sealed = |first: u8| {
            let mut octets = sound;
            octets[0] = first;
            let hec = check(&octets);
            octets[2..4].copy_from_slice(&hec.to_be_bytes());
            Header::parse(&octets)
        };
        assert_eq!(sealed(0x17), Err(HeaderReject::Type));
        let other = |initiation_from| HeaderReject::Version {
            theirs: 2,
            initiation_from,
        };
        assert_eq!(sealed(0x22), Err(other(None)));
        assert_eq!(sealed(0x21), Err(other(Some(0xA0B0_C0D0))));
        assert_eq!(sealed(0x25).unwrap().kind, DatagramType::Version);
    }
}
