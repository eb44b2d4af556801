//! Octets that were written and may still have to be sent or retransmitted.

use std::collections::VecDeque;

/// A bounded window of a byte stream, addressed by stream position.
#[derive(Debug)]
pub struct SendBuffer {
    octets: VecDeque<u8>,
    base: u64,
    capacity_bytes: usize,
}

impl SendBuffer {
    /// An empty buffer for up to `capacity_bytes`; memory is taken only as it fills.
    pub const fn new(capacity_bytes: usize) -> Self {
        Self {
            octets: VecDeque::new(),
            base: 0,
            capacity_bytes,
        }
    }

    /// Takes as much of `octets` as fits and returns that length.
    pub fn write(&mut self, octets: &[u8]) -> usize {
        let taken = octets.len().min(self.free());
        self.octets.extend(&octets[..taken]);
        taken
    }

    /// The number of octets that fit.
    pub fn free(&self) -> usize {
        self.capacity_bytes.saturating_sub(self.octets.len())
    }

    /// Octets of memory allocated, used or not.
    pub fn memory_bytes(&self) -> usize {
        self.octets.capacity()
    }

    /// The stream position after the last octet written.
    pub fn end(&self) -> u64 {
        self.base + self.octets.len() as u64
    }

    /// Frees memory that the held octets do not need.
    pub fn give_back(&mut self) {
        self.octets.shrink_to_fit();
    }

    /// The `len` octets from `position` on: borrowed if they lie in one piece, else copied to
    /// `scratch`. Empty if they are not held, or no longer held.
    pub fn slice<'a>(&'a self, position: u64, len: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let Some(start) = position
            .checked_sub(self.base)
            .and_then(|s| usize::try_from(s).ok())
        else {
            return &[];
        };
        let Some(end) = start
            .checked_add(len)
            .filter(|end| *end <= self.octets.len())
        else {
            return &[];
        };
        let (front, back) = self.octets.as_slices();
        if end <= front.len() {
            return &front[start..end];
        }
        if let Some(start) = start.checked_sub(front.len()) {
            return &back[start..end - front.len()];
        }
        scratch.clear();
        scratch.extend_from_slice(&front[start..]);
        scratch.extend_from_slice(&back[..end - front.len()]);
        scratch
    }

    /// Forgets everything before `position`.
    pub fn release(&mut self, position: u64) {
        let Some(count) = position.checked_sub(self.base) else {
            return;
        };
        let count = usize::try_from(count)
            .unwrap_or(usize::MAX)
            .min(self.octets.len());
        self.octets.drain(..count);
        self.base += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_keep_their_positions_across_wraps_of_the_ring() {
        let mut buffer = SendBuffer::new(1000);
        let mut scratch = Vec::new();
        let mut written = 0_u64;
        let octet = |position: u64| u8::try_from(position % 251).expect("below 251");
        for round in 0..200_u64 {
            let more: Vec<u8> = (written..written + 137).map(octet).collect();
            written += buffer.write(&more) as u64;
            assert_eq!(buffer.end(), written);
            let start = written.saturating_sub(500).max(round * 100);
            buffer.release(start);
            let len = usize::try_from(written - start).expect("small");
            let expected: Vec<u8> = (start..written).map(octet).collect();
            assert_eq!(
                buffer.slice(start, len, &mut scratch),
                expected,
                "round {round}"
            );
        }
    }

    #[test]
    fn a_full_buffer_takes_only_what_fits() {
        let mut buffer = SendBuffer::new(10);
        assert_eq!(buffer.write(&[1; 8]), 8);
        assert_eq!(buffer.write(&[2; 8]), 2);
        assert_eq!(buffer.write(&[3; 8]), 0);
        buffer.release(5);
        assert_eq!(buffer.write(&[3; 8]), 5);
    }

    #[test]
    fn octets_that_are_gone_or_not_here_yet_are_an_empty_slice() {
        let mut buffer = SendBuffer::new(10);
        buffer.write(&[1; 8]);
        buffer.release(4);
        let mut scratch = Vec::new();
        assert!(buffer.slice(3, 2, &mut scratch).is_empty());
        assert!(buffer.slice(7, 2, &mut scratch).is_empty());
        assert_eq!(buffer.slice(4, 4, &mut scratch).len(), 4);
    }
}
