//! Inner datagrams that were made for a larger path, cut to pieces and put together again.
//!
//! AeroTP's numbers stand for octets, so a TPDU keeps its size when it is retransmitted. After the path has
//! shrunk, the session cuts the few TPDUs that no longer fit. A lost piece loses the whole TPDU, which AeroTP
//! retransmits as any other.
//!
//! Memory is bounded: a limited number of datagrams at once, of a limited size. Only authenticated peers get this far.

use std::collections::VecDeque;

/// The most datagrams that are put together at once for one peer; the oldest gives way.
const PARTIAL_MAX: usize = 16;
/// The most pieces of one datagram.
const PIECES_MAX: u8 = 64;
/// The most octets of one datagram.
const OCTETS_MAX: usize = 65_000;
/// The distance behind the newest number at which a datagram's pieces are too old. Numbers come in order, but for
/// reordering by the network.
const BEHIND_MAX: u32 = 256;

/// One piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragment<'a> {
    /// The number of the whole datagram, the same in all pieces.
    pub(super) id: u32,
    /// The number of this piece, from 0.
    pub(super) index: u8,
    /// The number of pieces, 2 at least.
    pub(super) count: u8,
    /// Its octets.
    pub(super) octets: &'a [u8],
}

/// Cuts `octets` into equal pieces of at most `room` octets; nothing when that would be too many.
pub(super) fn cut(id: u32, octets: &[u8], room: usize) -> impl Iterator<Item = Fragment<'_>> {
    let count = octets.len().div_ceil(room.max(1)).max(2);
    let piece = octets.len().div_ceil(count).max(1);
    let count = u8::try_from(count)
        .ok()
        .filter(|count| *count <= PIECES_MAX);
    let pieces = (0..PIECES_MAX).zip(octets.chunks(piece));
    pieces.filter_map(move |(index, octets)| {
        Some(Fragment {
            id,
            index,
            count: count?,
            octets,
        })
    })
}

#[derive(Debug)]
struct Partial {
    id: u32,
    pieces: Vec<Option<Vec<u8>>>,
    octets: usize,
}

/// The pieces that arrived of datagrams that are not whole yet.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    partial: VecDeque<Partial>,
}

impl Reassembly {
    /// Forgets all pieces: the peer is a new process, whose numbers mean other datagrams.
    pub(super) fn clear(&mut self) {
        self.partial.clear();
    }

    /// Takes a piece; returns the whole datagram if that was the last one missing.
    pub(super) fn take(&mut self, piece: Fragment<'_>) -> Option<Vec<u8>> {
        let Fragment { id, index, .. } = piece;
        if !(2..=PIECES_MAX).contains(&piece.count) || index >= piece.count {
            return None;
        }
        // Modulo 2^32, half of the range is ahead.
        self.partial.retain(|partial| {
            let behind = id.wrapping_sub(partial.id);
            !(BEHIND_MAX..1 << 31).contains(&behind)
        });
        let found = self.partial.iter().position(|partial| partial.id == id);
        let place = found.unwrap_or_else(|| {
            if self.partial.len() == PARTIAL_MAX {
                self.partial.pop_front();
            }
            self.partial.push_back(Partial {
                id,
                pieces: vec![None; usize::from(piece.count)],
                octets: 0,
            });
            self.partial.len() - 1
        });
        let partial = self.partial.get_mut(place)?;
        let same = partial.pieces.len() == usize::from(piece.count);
        let slot = partial.pieces.get_mut(usize::from(index));
        let slot = slot.filter(|slot| same && slot.is_none());
        // Pieces that contradict each other, or are too many octets, are no datagram of ours.
        let Some(slot) = slot.filter(|_| partial.octets + piece.octets.len() <= OCTETS_MAX) else {
            self.partial.remove(place);
            return None;
        };
        *slot = Some(piece.octets.to_vec());
        partial.octets += piece.octets.len();
        if partial.pieces.iter().any(Option::is_none) {
            return None;
        }
        let whole = self.partial.remove(place)?;
        Some(whole.pieces.into_iter().flatten().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(len: u16) -> Vec<u8> {
        (0..len).flat_map(u16::to_be_bytes).collect()
    }

    fn piece(id: u32, index: u8, count: u8, octets: &[u8]) -> Fragment<'_> {
        Fragment {
            id,
            index,
            count,
            octets,
        }
    }

    #[test]
    fn what_was_cut_is_whole_again_in_any_order() {
        let whole = octets(4_500);
        for room in [4_500, 1_203, 200, 141] {
            let mut pieces: Vec<Fragment<'_>> = cut(9, &whole, room).collect();
            assert!(pieces.iter().all(|piece| piece.octets.len() <= room));
            assert_eq!(pieces.len(), usize::from(pieces[0].count));
            pieces.reverse();
            let mut reassembly = Reassembly::default();
            let last = pieces.pop().unwrap();
            assert!(pieces.iter().all(|piece| reassembly.take(*piece).is_none()));
            assert_eq!(reassembly.take(last), Some(whole.clone()));
            assert!(reassembly.partial.is_empty());
        }
    }

    #[test]
    fn too_many_pieces_are_not_made() {
        assert_eq!(cut(1, &octets(4_500), 140).count(), 0);
        assert_eq!(cut(1, &octets(4_500), 0).count(), 0);
    }

    #[test]
    fn pieces_without_the_others_take_bounded_memory() {
        let mut reassembly = Reassembly::default();
        for id in 0..10_000 {
            assert_eq!(reassembly.take(piece(id, 0, 64, &[7; 1_200])), None);
            assert!(reassembly.partial.len() <= PARTIAL_MAX);
        }
        let mut reassembly = Reassembly::default();
        let large = vec![7; 60_000];
        for index in 0..63 {
            assert_eq!(reassembly.take(piece(1, index, 64, &large)), None);
            let held: usize = reassembly.partial.iter().map(|p| p.octets).sum();
            assert!(held <= OCTETS_MAX);
        }
    }

    #[test]
    fn nonsense_is_dropped_and_old_pieces_never_complete_a_new_whole() {
        let mut reassembly = Reassembly::default();
        for (index, count) in [(0, 0), (0, 1), (2, 2), (0, 65), (255, 255)] {
            assert_eq!(reassembly.take(piece(1, index, count, b"x")), None);
        }
        assert!(reassembly.partial.is_empty());
        assert_eq!(reassembly.take(piece(1, 0, 2, b"old")), None);
        for id in 2..300 {
            reassembly.take(piece(id, 0, 2, b"a"));
            assert!(reassembly.take(piece(id, 1, 2, b"b")).is_some());
        }
        // The number comes round again.
        assert_eq!(reassembly.take(piece(1, 1, 2, b"new")), None);
        assert_eq!(reassembly.take(piece(5, 0, 2, b"x")), None);
        assert_eq!(reassembly.take(piece(5, 0, 3, b"x")), None, "contradiction");
        assert_eq!(reassembly.take(piece(5, 1, 2, b"x")), None);
    }
}
