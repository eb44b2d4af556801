//! A byte stream put together from segments that come in any order and overlap.
//!
//! Positions count octets, whereas [`super::Reassembly`] numbers whole TPDUs. Two segments may hold
//! the same octet; the first copy stays.

use super::RangeSet;
use core::ops::Range;
use std::collections::{BTreeMap, VecDeque};

/// The memory counted for a fragment besides its octets; hostile fragments may have one octet each.
const FRAGMENT_COST: usize = 64;
/// Vectors kept for reuse, at most.
const SPARE_MAX: usize = 8;
/// The longest segment that a network layer hands over.
const SEGMENT_MAX: usize = 65_535;
/// Runs beyond the first hole, at most: a sender that leaves more has to retransmit them.
const RUNS_MAX: usize = 1024;

/// Octets received and not read.
#[derive(Debug)]
pub struct StreamReassembly {
    next: u64,
    ready: VecDeque<Vec<u8>>,
    ready_bytes: usize,
    fragments: BTreeMap<u64, Vec<u8>>,
    fragments_cost: usize,
    runs: RangeSet,
    capacity: usize,
    spare: Vec<Vec<u8>>,
}

impl StreamReassembly {
    /// A buffer for up to `capacity` octets.
    pub fn new(capacity: usize) -> Self {
        Self {
            next: 0,
            ready: VecDeque::new(),
            ready_bytes: 0,
            fragments: BTreeMap::new(),
            fragments_cost: 0,
            runs: RangeSet::default(),
            capacity,
            spare: Vec::new(),
        }
    }

    /// The position expected next: everything before it arrived.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The number of octets beyond [`StreamReassembly::next`] that there is room for.
    pub const fn room(&self) -> usize {
        self.capacity.saturating_sub(self.ready_bytes)
    }

    /// Whether octets beyond a hole are held.
    pub const fn has_holes(&self) -> bool {
        !self.runs.is_empty()
    }

    /// The run beyond a hole that holds `position`.
    pub fn run_at(&self, position: u64) -> Option<&Range<u64>> {
        self.runs.run_at(position)
    }

    /// The runs beyond the first hole, lowest first.
    pub fn runs(&self) -> core::slice::Iter<'_, Range<u64>> {
        self.runs.runs()
    }

    /// Octets of memory allocated, used or not.
    pub fn memory_bytes(&self) -> usize {
        let chunks = self.ready.iter().chain(&self.spare);
        let octets: usize = chunks.map(Vec::capacity).sum();
        let fragments: usize = self.fragments.values().map(Vec::capacity).sum();
        let places = self.ready.capacity() + self.spare.capacity();
        let entry = size_of::<(u64, Vec<u8>)>();
        octets
            + fragments
            + places * size_of::<Vec<u8>>()
            + self.fragments.len() * entry
            + self.runs.memory_bytes()
    }

    /// The most memory that it takes with room for `capacity` octets, each of which may come by
    /// itself.
    pub const fn memory_max(capacity: usize) -> usize {
        // A vector takes eight octets at least, and a list of vectors doubles as it grows.
        let ready = capacity * (2 * size_of::<Vec<u8>>() + 8);
        let entry = size_of::<(u64, Vec<u8>)>() + 8;
        let fragments = (2 * capacity / FRAGMENT_COST + RUNS_MAX) * entry + 2 * capacity;
        let runs = 4 * RUNS_MAX * size_of::<Range<u64>>();
        // Vectors kept for reuse keep the greatest length they had.
        ready + fragments + runs + 3 * SPARE_MAX * SEGMENT_MAX
    }

    /// Takes the part of `octets`, which begin at `position`, that is new and within the room.
    /// Returns the range that is now held around it; empty if no part of `octets` is of use.
    pub fn insert(&mut self, position: u64, octets: &[u8]) -> Range<u64> {
        let limit = self.next.saturating_add(self.room() as u64);
        let start = position.max(self.next);
        let end = position.saturating_add(octets.len() as u64).min(limit);
        if start >= end {
            return self.next..self.next;
        }
        let piece = |range: &Range<u64>| {
            let from = usize::try_from(range.start - position).unwrap_or(usize::MAX);
            let to = usize::try_from(range.end - position).unwrap_or(usize::MAX);
            octets.get(from..to).unwrap_or_default()
        };
        if start == self.next && self.runs.is_empty() {
            self.push_ready(piece(&(start..end)));
            return start..end;
        }
        if self.fragments_cost > 2 * self.capacity || self.runs.len() >= RUNS_MAX {
            // Only octets that close the first hole may still come.
            if start > self.next {
                return self.next..self.next;
            }
        }
        for range in self.runs.missing(&(start..end)) {
            let mut fragment = self.spare.pop().unwrap_or_default();
            fragment.extend_from_slice(piece(&range));
            self.fragments_cost += fragment.len() + FRAGMENT_COST;
            self.fragments.insert(range.start, fragment);
        }
        self.runs.insert(start..end);
        if let Some(run) = self.runs.take_at(self.next) {
            self.release(run.end);
        }
        start..end
    }

    fn push_ready(&mut self, octets: &[u8]) {
        let mut chunk = self.spare.pop().unwrap_or_default();
        chunk.extend_from_slice(octets);
        self.next += chunk.len() as u64;
        self.ready_bytes += chunk.len();
        self.ready.push_back(chunk);
    }

    /// Makes everything before `end` readable.
    fn release(&mut self, end: u64) {
        while let Some(entry) = self.fragments.first_entry() {
            if *entry.key() >= end {
                break;
            }
            let fragment = entry.remove();
            self.fragments_cost -= fragment.len() + FRAGMENT_COST;
            self.ready_bytes += fragment.len();
            self.next += fragment.len() as u64;
            self.ready.push_back(fragment);
        }
    }

    /// Whether something can be read.
    pub fn is_readable(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes the next octets in order.
    pub fn read(&mut self) -> Option<Vec<u8>> {
        let chunk = self.ready.pop_front()?;
        self.ready_bytes -= chunk.len();
        Some(chunk)
    }

    /// Takes back a vector for reuse.
    pub fn recycle(&mut self, mut octets: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            octets.clear();
            self.spare.push(octets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(range: Range<u64>) -> Vec<u8> {
        range.map(|p| u8::try_from(p % 251).unwrap()).collect()
    }

    proptest! {
        #[test]
        fn overlapping_segments_in_any_order_make_the_stream(
            mut pieces in proptest::collection::vec((0_u64..200, 1_u64..60), 0..60),
        ) {
            // The last round closes every hole, in any order of arrival.
            pieces.extend((0..26).map(|i| (i * 10, 10)));
            let mut reassembly = StreamReassembly::new(400);
            let mut read = Vec::new();
            for (start, len) in pieces {
                let taken = reassembly.insert(start, &stream(start..start + len));
                prop_assert!(taken.is_empty() || taken.end <= start + len);
                while let Some(chunk) = reassembly.read() {
                    read.extend_from_slice(&chunk);
                    reassembly.recycle(chunk);
                }
            }
            prop_assert_eq!(&read, &stream(0..read.len() as u64));
            prop_assert!(read.len() >= 260 && !reassembly.has_holes());
        }
    }

    #[test]
    fn nothing_beyond_the_room_is_taken_and_reading_makes_room() {
        let mut reassembly = StreamReassembly::new(100);
        assert_eq!(reassembly.insert(0, &[1; 150]), 0..100);
        assert_eq!(reassembly.room(), 0);
        assert_eq!(reassembly.insert(100, &[1; 10]), 100..100);
        reassembly.read();
        assert_eq!(reassembly.insert(100, &[1; 10]), 100..110);
    }

    #[test]
    fn a_flood_of_tiny_fragments_is_bounded_and_the_stream_goes_on() {
        let mut reassembly = StreamReassembly::new(1 << 20);
        for i in 1..500_000 {
            reassembly.insert(2 * i, &[7]);
        }
        assert!(reassembly.fragments.len() <= RUNS_MAX);
        reassembly.insert(0, &[7; 1000]);
        assert!(reassembly.next() >= 1000);
    }
}
