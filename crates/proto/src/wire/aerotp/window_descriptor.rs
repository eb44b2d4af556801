//! The sources of a repair symbol over a window, and how it was made (RFC 8681, section 4.1.3).

use super::reject::Reject;

/// The most sources of one symbol: 12 bits.
const SOURCES_MAX: u16 = 0x0FFF;

/// The consecutive TPDUs that a repair symbol spans, from the number in its header on, and its coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDescriptor {
    threshold: u8,
    sources: u16,
    /// The key of the coefficients.
    pub key: u16,
}

impl WindowDescriptor {
    /// A symbol over `sources` TPDUs, 1 to 4095, with a density threshold of 0 to 15.
    pub const fn new(sources: u16, threshold: u8, key: u16) -> Option<Self> {
        if sources == 0 || sources > SOURCES_MAX || threshold > 15 {
            return None;
        }
        Some(Self {
            threshold,
            sources,
            key,
        })
    }

    /// The number of TPDUs.
    pub const fn sources(self) -> u16 {
        self.sources
    }

    /// The density threshold of the coefficients, 0 to 15.
    pub const fn threshold(self) -> u8 {
        self.threshold
    }

    pub(super) fn to_octets(self) -> [u8; 4] {
        let first = u16::from(self.threshold) << 12 | self.sources;
        let ([a, b], [c, d]) = (first.to_be_bytes(), self.key.to_be_bytes());
        [a, b, c, d]
    }

    pub(super) fn from_octets([a, b, c, d]: [u8; 4]) -> Result<Self, Reject> {
        let first = u16::from_be_bytes([a, b]);
        let key = u16::from_be_bytes([c, d]);
        Self::new(first & SOURCES_MAX, a >> 4, key).ok_or(Reject::BlockDescriptor)
    }
}
