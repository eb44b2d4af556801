//! The two descriptor words: in-packet parity, and a block across packets.

use super::reject::Reject;
use crate::units::FecStrength;

/// The code id of byte-interleaved Reed-Solomon over GF(256), in the FEC descriptor.
const RS256_INTERLEAVED: u8 = 1;

/// The FEC descriptor of `strength`.
pub(super) fn strength_to_word(strength: FecStrength) -> [u8; 4] {
    let [high, low] = strength.words().to_be_bytes();
    [RS256_INTERLEAVED, 0, high, low]
}

/// The strength that an FEC descriptor names.
pub(super) fn strength_from_word(word: [u8; 4]) -> Result<FecStrength, Reject> {
    let words = u16::from_be_bytes([word[2], word[3]]);
    match FecStrength::from_words(words) {
        Some(strength) if word[..2] == [RS256_INTERLEAVED, 0] && words > 0 => Ok(strength),
        _ => Err(Reject::FecDescriptor),
    }
}

/// The block of a repair TPDU. The block's first source TPDU is in the header's sequence number;
/// the sources are consecutive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockDescriptor {
    /// The erasure code: [`Self::CAUCHY_GF256`], or one that this version does not know. It is not
    /// checked here, because only the code knows which k and index it can have.
    pub code: u8,
    sources_less_one: u8,
    /// The index of this repair symbol in the block, from 0.
    pub repair_index: u8,
}

impl BlockDescriptor {
    /// The code id of the Cauchy code over GF(256): k sources and at most 256 - k repair symbols.
    pub const CAUCHY_GF256: u8 = 1;

    /// The descriptor of repair symbol `repair_index` of a block of `sources` source TPDUs; `None`
    /// unless `sources` is 1 to 256.
    pub fn new(code: u8, sources: u16, repair_index: u8) -> Option<Self> {
        let sources_less_one = u8::try_from(sources.checked_sub(1)?).ok()?;
        Some(Self {
            code,
            sources_less_one,
            repair_index,
        })
    }

    /// The block's number of source TPDUs, k: 1 to 256.
    pub const fn sources(self) -> u16 {
        self.sources_less_one as u16 + 1
    }

    pub(super) const fn to_word(self) -> [u8; 4] {
        [self.code, self.sources_less_one, self.repair_index, 0]
    }

    pub(super) const fn from_word(word: [u8; 4]) -> Result<Self, Reject> {
        let [code, sources_less_one, repair_index, reserved] = word;
        if reserved != 0 {
            return Err(Reject::BlockDescriptor);
        }
        Ok(Self {
            code,
            sources_less_one,
            repair_index,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strength_stops_at_256_words() {
        assert_eq!(FecStrength::from_words(256), Some(FecStrength::MAX));
        assert_eq!(FecStrength::from_words(257), None);
        assert_eq!(FecStrength::MAX.parity_bytes(), 1024);
    }

    #[test]
    fn an_fec_descriptor_with_anything_unknown_is_refused() {
        assert_eq!(strength_from_word([1, 0, 1, 0]), Ok(FecStrength::MAX));
        for bad in [
            [0, 0, 0, 24],
            [2, 0, 0, 24],
            [1, 1, 0, 24],
            [1, 0, 1, 1],
            [1, 0, 2, 0],
            [1, 0, 0, 0],
        ] {
            assert_eq!(strength_from_word(bad), Err(Reject::FecDescriptor));
        }
    }

    #[test]
    fn a_block_has_one_to_256_sources() {
        assert_eq!(BlockDescriptor::new(1, 0, 0), None);
        assert_eq!(BlockDescriptor::new(1, 257, 0), None);
        for sources in [1, 256] {
            let block = BlockDescriptor::new(1, sources, 7).unwrap();
            assert_eq!(block.sources(), sources);
            assert_eq!(BlockDescriptor::from_word(block.to_word()), Ok(block));
        }
        assert_eq!(
            BlockDescriptor::from_word([1, 31, 0, 1]),
            Err(Reject::BlockDescriptor)
        );
    }
}
