//! The receiver's report on a path.

/// The receiver's report on the path, in a cumulative MACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathReport {
    /// Octets that have arrived on the path, headers of the layers below included as far as the
    /// receiver knows them, modulo 2^32.
    pub arrived: u32,
    /// The time of the report by the receiver's clock: microseconds, modulo 2^32.
    pub clock: u32,
}

impl PathReport {
    pub(super) const BYTES: usize = 8;

    pub(super) fn to_octets(self) -> [u8; Self::BYTES] {
        let both = (u64::from(self.arrived) << 32) | u64::from(self.clock);
        both.to_be_bytes()
    }

    #[expect(clippy::cast_possible_truncation, reason = "each half has 32 bits")]
    pub(super) const fn from_octets(octets: [u8; Self::BYTES]) -> Self {
        let both = u64::from_be_bytes(octets);
        Self {
            arrived: (both >> 32) as u32,
            clock: both as u32,
        }
    }
}
