//! The unit that a segment carries, and its block.

/// Octets of the unit extension.
pub const UNIT_EXTENSION_BYTES: usize = 12;
/// Octets by which a repair unit is longer than its block's units: the code's length prefix.
pub const REPAIR_PREFIX_BYTES: usize = 2;
/// The longest block: 255 units of the longest packet.
pub const BLOCK_OCTETS_MAX: u32 = 1 << 24;

/// The header of a unit. With `k` = 0 the segment belongs to no block: a FIN or a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitHeader {
    /// The number of this transmission, modulo 2^16; every transmission has its own.
    pub ordinal: u16,
    /// The block, modulo 2^16.
    pub block: u16,
    /// The unit in it: below `k` a source, from there on a repair unit.
    pub index: u8,
    /// The number of source units in the block.
    pub k: u8,
    /// The number of units sent before any feedback: sources and PFEC.
    pub n: u8,
    /// The number of octets of the stream in the block.
    pub length: u32,
}

impl UnitHeader {
    /// Whether the segment belongs to a block.
    pub const fn is_coded(&self) -> bool {
        self.k > 0
    }

    /// Whether the payload consists of octets of the stream.
    pub const fn is_source(&self) -> bool {
        self.index < self.k
    }

    /// Octets of every source unit except the last, which may be shorter.
    pub const fn unit_len(&self) -> u32 {
        if self.k == 0 {
            0
        } else {
            self.length.div_ceil(self.k as u32)
        }
    }

    /// The offset of source unit `index` in the block.
    pub const fn offset_of(&self, index: u8) -> u32 {
        index as u32 * self.unit_len()
    }

    /// Octets of source unit `index`.
    pub const fn source_len(&self, index: u8) -> u32 {
        let rest = self.length.saturating_sub(self.offset_of(index));
        let unit = self.unit_len();
        if rest < unit { rest } else { unit }
    }

    /// The length of the payload that this unit must have.
    pub const fn payload_len(&self) -> usize {
        if !self.is_coded() {
            0
        } else if self.is_source() {
            self.source_len(self.index) as usize
        } else {
            self.unit_len() as usize + REPAIR_PREFIX_BYTES
        }
    }

    /// Whether such a block can exist: every source unit has at least one octet, and the unit is
    /// one of the 256 that a block can have.
    pub(super) const fn is_possible(&self) -> bool {
        if self.k == 0 {
            return self.block == 0 && self.index == 0 && self.n == 0 && self.length == 0;
        }
        self.length > 0
            && self.length <= BLOCK_OCTETS_MAX
            && self.offset_of(self.k - 1) < self.length
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.index);
        out.extend_from_slice(&self.ordinal.to_be_bytes());
        out.extend_from_slice(&self.block.to_be_bytes());
        out.push(self.k);
        out.push(self.n);
        out.extend_from_slice(&self.length.to_be_bytes());
    }

    /// Reads the octets behind the extension's kind.
    pub(super) const fn parse(body: &[u8; UNIT_EXTENSION_BYTES - 1]) -> Option<Self> {
        let [index, o0, o1, b0, b1, k, n, l0, l1, l2, l3] = *body;
        let unit = Self {
            ordinal: u16::from_be_bytes([o0, o1]),
            block: u16::from_be_bytes([b0, b1]),
            index,
            k,
            n,
            length: u32::from_be_bytes([l0, l1, l2, l3]),
        };
        if unit.is_possible() { Some(unit) } else { None }
    }
}
