//! pcapng's blocks and options: a length before and behind each block, all padded to 32 bits.

/// The type of a block with a packet.
pub(crate) const ENHANCED_PACKET: u32 = 6;
/// Octets of a block around its body: type and length before it, and the length again behind it.
const FRAME_OCTETS: usize = 12;

/// A block under construction.
#[derive(Debug, Default)]
pub(crate) struct Block {
    octets: Vec<u8>,
}

impl Block {
    /// Begins a block of this type and forgets the block before it.
    pub(crate) fn begin(&mut self, kind: u32) {
        self.octets.clear();
        self.u32(kind);
        // The length, once it is known.
        self.u32(0);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.octets.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.octets.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends octets as they are.
    pub(crate) fn octets(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// Appends zeros up to the next multiple of 32 bits.
    pub(crate) fn pad(&mut self) {
        let padded = self.octets.len().next_multiple_of(4);
        self.octets.resize(padded, 0);
    }

    /// Appends an option. A value that its length field cannot describe is cut.
    pub(crate) fn option(&mut self, code: u16, value: &[u8]) {
        let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.u16(code);
        self.u16(len);
        self.octets(value.get(..usize::from(len)).unwrap_or(value));
        self.pad();
    }

    /// Appends the end of the options.
    pub(crate) fn end_options(&mut self) {
        self.option(0, &[]);
    }

    /// The whole block.
    pub(crate) fn finish(&mut self) -> &[u8] {
        let len = self.octets.len() + 4;
        // Options are 64 KiB at most each, and a packet's length was checked.
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        self.octets[4..8].copy_from_slice(&len.to_le_bytes());
        self.u32(len);
        &self.octets
    }
}

/// Counts the packets in `blocks`, which must be whole and written by this crate.
pub fn packet_count(blocks: &[u8]) -> u64 {
    let mut rest = blocks;
    let mut count = 0;
    while let Some([k0, k1, k2, k3, l0, l1, l2, l3]) = rest.first_chunk() {
        count += u64::from(u32::from_le_bytes([*k0, *k1, *k2, *k3]) == ENHANCED_PACKET);
        let len = usize::try_from(u32::from_le_bytes([*l0, *l1, *l2, *l3])).unwrap_or(usize::MAX);
        rest = rest.get(len.max(FRAME_OCTETS)..).unwrap_or_default();
    }
    count
}

/// Counts the octets of whole blocks among the first `written` octets of `blocks`, which begin with
/// a block of ours. A file is cut there after a write that failed in the midst of a block.
pub fn whole_octets(blocks: &[u8], written: usize) -> usize {
    let mut whole = 0;
    while let Some(len) = blocks.get(whole + 4..).and_then(<[u8]>::first_chunk) {
        let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
        let Some(end) = whole.checked_add(len.max(FRAME_OCTETS)) else {
            break;
        };
        if end > written {
            break;
        }
        whole = end;
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_its_length_at_both_ends_and_is_padded() {
        let mut block = Block::default();
        block.begin(7);
        block.option(1, b"hello");
        block.end_options();
        let golden = [
            7, 0, 0, 0, 28, 0, 0, 0, 1, 0, 5, 0, b'h', b'e', b'l', b'l', b'o', 0, 0, 0, 0, 0, 0, 0,
            28, 0, 0, 0,
        ];
        assert_eq!(block.finish(), golden);
    }

    #[test]
    fn what_is_left_of_a_cut_is_whole_blocks() {
        let mut blocks = Vec::new();
        let mut block = Block::default();
        for value in 0..3 {
            block.begin(1);
            block.u32(value);
            blocks.extend_from_slice(block.finish());
        }
        for written in 0..=blocks.len() {
            assert_eq!(whole_octets(&blocks, written), written / 16 * 16);
        }
        assert_eq!(whole_octets(&[0; 64], 64), 60, "a length of zero ends too");
    }

    #[test]
    fn an_overlong_option_is_cut_to_what_its_length_says() {
        let mut block = Block::default();
        block.begin(1);
        block.option(1, &vec![b'x'; 70_000]);
        assert_eq!(block.finish().len(), 8 + 4 + 65_536 + 4);
    }
}
