//! Custody in memory: octets that a client sent and that the far host has not acknowledged.
//!
//! A driver of flows that may resume puts every octet here before it gives it to
//! [`Splicer::accept`](super::Splicer::accept), reads it again from here after a
//! [`Resume`](super::FlowEvent::Resume), and drops it at
//! [`Delivered`](super::FlowEvent::Delivered). The store is bounded: a full store takes nothing,
//! and its driver reads no more from the client.

use std::collections::VecDeque;

/// The size of the pieces in which memory is allocated and freed, in octets.
const CHUNK_BYTES: usize = 16 << 10;

/// A bounded store of a stream's octets, addressed by their offset in it.
#[derive(Clone, Debug)]
pub struct Retention {
    chunks: VecDeque<Vec<u8>>,
    /// The offset of the first octet of the first chunk.
    start: u64,
    /// The offset of the first octet that may still be asked for.
    released: u64,
    end: u64,
    capacity: u64,
}

impl Retention {
    /// An empty store of up to `capacity_bytes` octets, the first of which is octet `from` of the
    /// stream. Besides the octets it holds, it takes up to 32 KiB of memory.
    pub const fn new(from: u64, capacity_bytes: u64) -> Self {
        Self {
            chunks: VecDeque::new(),
            start: from,
            released: from,
            end: from,
            capacity: capacity_bytes,
        }
    }

    /// The offset of the first octet that is held.
    pub const fn from(&self) -> u64 {
        self.released
    }

    /// The offset after the last octet that is held.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// The number of octets that fit.
    pub fn free(&self) -> usize {
        let held = self.end - self.released;
        usize::try_from(self.capacity.saturating_sub(held)).unwrap_or(usize::MAX)
    }

    /// Takes as much of `octets` as fits and returns that length.
    pub fn push(&mut self, octets: &[u8]) -> usize {
        let taken = octets.len().min(self.free());
        let mut rest = &octets[..taken];
        while !rest.is_empty() {
            let full = self.chunks.back().is_none_or(|c| c.len() == CHUNK_BYTES);
            if full {
                self.chunks.push_back(Vec::with_capacity(CHUNK_BYTES));
            }
            let Some(last) = self.chunks.back_mut() else {
                break;
            };
            let (now, later) = rest.split_at(rest.len().min(CHUNK_BYTES - last.len()));
            last.extend_from_slice(now);
            rest = later;
        }
        self.end += taken as u64;
        taken
    }

    /// The octets from `offset` on that lie in one piece. Empty at the end; `None` if they were
    /// dropped, or never came.
    pub fn read(&self, offset: u64) -> Option<&[u8]> {
        if offset < self.released || offset > self.end {
            return None;
        }
        if offset == self.end {
            return Some(&[]);
        }
        let index = usize::try_from(offset - self.start).ok()?;
        let chunk = self.chunks.get(index / CHUNK_BYTES)?;
        chunk.get(index % CHUNK_BYTES..)
    }

    /// Drops everything before `offset`.
    pub fn release(&mut self, offset: u64) {
        self.released = self.released.max(offset.min(self.end));
        while let Some(first) = self.chunks.front() {
            let after = self.start + first.len() as u64;
            // The last chunk may still be filled.
            if after > self.released || first.len() < CHUNK_BYTES {
                break;
            }
            self.start = after;
            self.chunks.pop_front();
        }
        if self.released == self.end {
            self.chunks.clear();
            self.start = self.end;
        }
    }

    /// Octets of memory allocated, used or not.
    pub fn memory_bytes(&self) -> usize {
        self.chunks.len() * CHUNK_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn octets(from: u64, len: usize) -> Vec<u8> {
        let octet = |i: u64| u8::try_from(i * 13 % 251).expect("below 251");
        (from..from + len as u64).map(octet).collect()
    }

    #[test]
    fn what_is_held_reads_back_at_its_offset_and_memory_follows() {
        let capacity = 100_000;
        let mut rng = Rng::from_seed(9);
        let mut held = Retention::new(7, capacity);
        for round in 0..20_000 {
            let len = usize::try_from(rng.below(9_000)).expect("small");
            let free = held.free();
            let end = held.end();
            let taken = held.push(&octets(end, len));
            assert_eq!(taken, len.min(free), "round {round}");
            if rng.chance(0.5) {
                let span = held.end() - held.from();
                held.release(held.from() + rng.below(span + 1));
            }
            let mut offset = held.from() + rng.below(held.end() - held.from() + 1);
            while offset < held.end() {
                let piece = held.read(offset).expect("held");
                assert!(!piece.is_empty());
                assert_eq!(piece, octets(offset, piece.len()), "round {round}");
                offset += piece.len() as u64;
            }
            assert!(held.end() - held.from() <= capacity);
            assert!(held.memory_bytes() as u64 <= held.end() - held.from() + (32 << 10));
        }
    }

    #[test]
    fn what_was_let_go_or_never_came_is_not_there() {
        let mut held = Retention::new(0, 10);
        assert_eq!(held.push(&octets(0, 12)), 10);
        assert_eq!(held.push(&[1]), 0, "full");
        held.release(4);
        assert_eq!(held.read(3), None);
        assert_eq!(held.read(4), Some(&octets(4, 6)[..]));
        assert_eq!(held.read(10), Some(&[][..]));
        assert_eq!(held.read(11), None);
        held.release(100);
        assert_eq!((held.from(), held.end()), (10, 10));
        assert_eq!(held.memory_bytes(), 0);
    }
}
