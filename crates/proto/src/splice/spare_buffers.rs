//! Buffers of flows that were read empty, for those that fill next.

use std::collections::VecDeque;

/// The memory that all spare buffers have together: some bursts, whatever the number of flows.
const TOTAL_BYTES_MAX: usize = 4 << 20;
/// As many flows that fill at once find a buffer.
const COUNT_MAX: usize = 16;

/// Buffers without contents.
///
/// A flow that is read faster than it fills is empty after every burst. If it gave its memory back to the
/// system each time, each octet would come to a page that the kernel has to clear first; if it kept it, flows
/// that rest would have as much as those that work.
#[derive(Debug, Default)]
pub(super) struct SpareBuffers {
    buffers: Vec<VecDeque<u8>>,
    total_bytes: usize,
}

impl SpareBuffers {
    /// The buffer that was emptied last, or one without memory.
    pub(super) fn take(&mut self) -> VecDeque<u8> {
        let buffer = self.buffers.pop().unwrap_or_default();
        self.total_bytes -= buffer.capacity();
        buffer
    }

    /// Keeps an emptied buffer while there is room, and frees it otherwise.
    pub(super) fn keep(&mut self, mut buffer: VecDeque<u8>) {
        buffer.clear();
        let total_bytes = self.total_bytes + buffer.capacity();
        if buffer.capacity() > 0 && self.buffers.len() < COUNT_MAX && total_bytes <= TOTAL_BYTES_MAX
        {
            self.total_bytes = total_bytes;
            self.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_in_number_and_in_octets() {
        let mut spare = SpareBuffers::default();
        for _ in 0..COUNT_MAX * 2 {
            spare.keep(VecDeque::with_capacity(1_000));
        }
        assert_eq!(spare.buffers.len(), COUNT_MAX);
        spare.keep(VecDeque::with_capacity(TOTAL_BYTES_MAX));
        assert_eq!(spare.buffers.len(), COUNT_MAX);
        for _ in 0..COUNT_MAX {
            assert!(spare.take().capacity() >= 1_000);
        }
        assert_eq!((spare.take().capacity(), spare.total_bytes), (0, 0));
        spare.keep(VecDeque::with_capacity(TOTAL_BYTES_MAX));
        spare.keep(VecDeque::with_capacity(1));
        assert_eq!(spare.buffers.len(), 1);
    }

    #[test]
    fn octets_that_nobody_read_are_not_handed_on() {
        let mut spare = SpareBuffers::default();
        spare.keep(VecDeque::from(vec![1; 10]));
        assert!(spare.take().is_empty());
    }
}
