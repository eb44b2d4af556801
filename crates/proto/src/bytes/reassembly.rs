//! Arriving TPDUs, put in order: holes are noticed and, where the mode allows, given up.
//!
//! A ring of slots from the next TPDU to read to the newest seen. Its length is bounded, so a
//! sender that ignores the window, or a forged number, cannot make it grow.

use crate::units::Instant;
use crate::wire::TpduSeq;
use std::collections::VecDeque;

#[derive(Debug)]
enum Slot {
    /// Noticed missing at `since`; `damaged` if something arrived that could not be repaired.
    Missing {
        since: Instant,
        damaged: bool,
    },
    Held {
        octets: Vec<u8>,
        intact: bool,
    },
    GivenUp,
    /// Read before its turn.
    Taken,
}

/// The result of inserting an arriving TPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The TPDU was the next one expected.
    Next,
    /// The TPDU filled a hole, which was not the next one expected or was noticed before.
    Filled,
    /// The TPDU lies ahead of missing ones; `new_holes` of these were not noticed before.
    Ahead {
        /// Holes noticed by this arrival.
        new_holes: u32,
    },
    /// The TPDU was held already, read already, or given up.
    Duplicate,
    /// The TPDU lies beyond the window.
    Beyond,
}

/// One TPDU's payload, handed to the application in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The TPDU's number.
    pub seq: TpduSeq,
    /// The TPDU's payload.
    pub octets: Vec<u8>,
    /// Whether its check was right (or it had none).
    pub intact: bool,
    /// The number of TPDUs directly before it that were given up.
    pub missing_before: u32,
}

/// The holes that [`Reassembly::make_room`] gave up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Holes for which nothing arrived.
    pub lost: u32,
    /// Holes for which something damaged arrived.
    pub damaged: u32,
    /// TPDUs that nothing had shown to be missing yet.
    pub unnoticed: u32,
}

/// The number of payload vectors kept for reuse, at most.
const SPARE_MAX: usize = 256;

/// A bounded reassembly ring.
#[derive(Debug)]
pub struct Reassembly {
    base: TpduSeq,
    slots: VecDeque<Slot>,
    capacity: usize,
    settled: usize,
    missing_before: u32,
    /// The TPDUs that came before their turn, in the order of arrival, if they may be read so.
    early: Option<VecDeque<TpduSeq>>,
    spare: Vec<Vec<u8>>,
    payload_memory_bytes: usize,
}

impl Reassembly {
    /// A ring that expects `first` and holds up to `capacity` TPDUs.
    pub const fn new(first: TpduSeq, capacity: usize) -> Self {
        Self {
            base: first,
            slots: VecDeque::new(),
            capacity,
            settled: 0,
            missing_before: 0,
            early: None,
            spare: Vec::new(),
            payload_memory_bytes: 0,
        }
    }

    /// Lets TPDUs be read as they come, from now on.
    pub fn read_in_any_order(&mut self) {
        if self.early.is_none() {
            let held = |(_, slot): &(u32, &Slot)| matches!(slot, Slot::Held { .. });
            let early = (0..).zip(&self.slots).skip(self.settled).filter(held);
            self.early = Some(early.map(|(at, _)| self.base.plus(at)).collect());
        }
    }

    /// Whether TPDUs are read as they come.
    pub const fn reads_in_any_order(&self) -> bool {
        self.early.is_some()
    }

    /// The next TPDU expected: all before it arrived or were given up.
    pub fn next_expected(&self) -> TpduSeq {
        self.base
            .plus(u32::try_from(self.settled).unwrap_or(u32::MAX))
    }

    /// One past the newest TPDU seen.
    pub fn end_seen(&self) -> TpduSeq {
        self.base
            .plus(u32::try_from(self.slots.len()).unwrap_or(u32::MAX))
    }

    /// Octets of memory taken by payloads, including vectors kept for reuse.
    pub const fn memory_bytes(&self) -> usize {
        self.payload_memory_bytes
    }

    /// The number of TPDUs beyond [`Reassembly::next_expected`] that there is room for.
    pub fn window(&self) -> u16 {
        u16::try_from(self.capacity.saturating_sub(self.settled)).unwrap_or(u16::MAX)
    }

    /// Whether TPDUs between the next expected and the newest are missing.
    pub fn has_holes(&self) -> bool {
        self.settled < self.slots.len()
    }

    fn index(&self, seq: TpduSeq) -> Result<usize, Inserted> {
        let distance = seq.distance_from(self.base);
        let Ok(index) = usize::try_from(distance) else {
            return Err(Inserted::Duplicate);
        };
        if index < self.capacity {
            Ok(index)
        } else {
            Err(Inserted::Beyond)
        }
    }

    /// Puts a TPDU in its place.
    pub fn insert(&mut self, now: Instant, seq: TpduSeq, octets: &[u8], intact: bool) -> Inserted {
        let index = match self.index(seq) {
            Ok(index) => index,
            Err(outcome) => return outcome,
        };
        let outcome = if index < self.slots.len() {
            match &self.slots[index] {
                Slot::Missing { .. } => Inserted::Filled,
                Slot::Held { .. } | Slot::GivenUp | Slot::Taken => return Inserted::Duplicate,
            }
        } else {
            let new_holes = u32::try_from(index - self.slots.len()).unwrap_or(u32::MAX);
            self.notice_until(now, index + 1);
            if index == self.settled {
                Inserted::Next
            } else {
                Inserted::Ahead { new_holes }
            }
        };
        let mut payload = self.spare.pop().unwrap_or_default();
        self.payload_memory_bytes -= payload.capacity();
        payload.clear();
        payload.extend_from_slice(octets);
        self.payload_memory_bytes += payload.capacity();
        self.slots[index] = Slot::Held {
            octets: payload,
            intact,
        };
        self.advance();
        if index >= self.settled {
            self.note_early(seq);
        }
        outcome
    }

    /// Notes that a TPDU came before its turn, if it may be read so. Those that were read in their turn meanwhile are
    /// forgotten once they are as many as the ring holds.
    fn note_early(&mut self, seq: TpduSeq) {
        let Some(mut early) = self.early.take() else {
            return;
        };
        if early.len() >= self.capacity * 2 {
            early.retain(|seq| self.is_held(*seq));
        }
        early.push_back(seq);
        self.early = Some(early);
    }

    /// Notes that something with this number arrived damaged beyond repair. Returns `true` if the
    /// TPDU is still wanted.
    pub fn note_damaged(&mut self, now: Instant, seq: TpduSeq) -> bool {
        let Ok(index) = self.index(seq) else {
            return false;
        };
        if index >= self.slots.len() {
            self.notice_until(now, index + 1);
        }
        match &mut self.slots[index] {
            Slot::Missing { damaged, .. } => {
                *damaged = true;
                true
            }
            Slot::Held { .. } | Slot::GivenUp | Slot::Taken => false,
        }
    }

    /// Whether [`Reassembly::insert`] would take a TPDU with this number.
    pub fn is_wanted(&self, seq: TpduSeq) -> bool {
        let place = self.index(seq).map(|index| self.slots.get(index));
        matches!(place, Ok(None | Some(Slot::Missing { .. })))
    }

    /// Whether `seq` lies before the newest TPDU seen and has neither arrived nor been given up.
    pub fn is_missing(&self, seq: TpduSeq) -> bool {
        let slot = self.index(seq).ok().and_then(|index| self.slots.get(index));
        matches!(slot, Some(Slot::Missing { .. }))
    }

    /// Notes that `end` is one past the sender's last TPDU: a TPDU before it that has not arrived
    /// is missing.
    pub fn note_end(&mut self, now: Instant, end: TpduSeq) {
        if let Ok(len) = usize::try_from(end.distance_from(self.base))
            && len <= self.capacity
        {
            self.notice_until(now, len);
        }
    }

    fn notice_until(&mut self, now: Instant, len: usize) {
        while self.slots.len() < len {
            self.slots.push_back(Slot::Missing {
                since: now,
                damaged: false,
            });
        }
    }

    fn advance(&mut self) {
        while self
            .slots
            .get(self.settled)
            .is_some_and(|s| !matches!(s, Slot::Missing { .. }))
        {
            self.settled += 1;
        }
        self.pass_given_up();
    }

    /// Passes TPDUs that were given up, or read already: they need no reader to make room.
    fn pass_given_up(&mut self) {
        while self.settled > 0 {
            match self.slots.front() {
                Some(Slot::GivenUp) => self.pass(1),
                Some(Slot::Taken) => self.base = self.base.plus(1),
                _ => return,
            }
            self.slots.pop_front();
            self.settled -= 1;
        }
    }

    fn pass(&mut self, count: u32) {
        self.base = self.base.plus(count);
        self.missing_before = self.missing_before.saturating_add(count);
    }

    /// Makes room for every TPDU before `end`: gives up the oldest holes, noticed or not, until it
    /// meets a TPDU that is not read yet. For modes that may lose data.
    pub fn make_room(&mut self, end: TpduSeq) -> Skipped {
        let mut skipped = Skipped::default();
        let distance = u32::try_from(end.distance_from(self.base)).unwrap_or(0);
        let capacity = u32::try_from(self.capacity).unwrap_or(u32::MAX);
        let mut excess = distance.saturating_sub(capacity);
        while excess > 0 {
            let passed = match self.slots.front() {
                Some(Slot::Missing { damaged, .. }) => {
                    if *damaged {
                        skipped.damaged += 1;
                    } else {
                        skipped.lost += 1;
                    }
                    self.slots.pop_front();
                    1
                }
                Some(Slot::Held { .. } | Slot::GivenUp | Slot::Taken) => break,
                None => {
                    skipped.unnoticed = excess;
                    excess
                }
            };
            self.pass(passed);
            excess -= passed;
        }
        self.advance();
        skipped
    }

    /// The first hole: when it was noticed, and whether something damaged arrived for it.
    pub fn first_hole(&self) -> Option<(Instant, bool)> {
        match self.slots.get(self.settled) {
            Some(Slot::Missing { since, damaged }) => Some((*since, *damaged)),
            _ => None,
        }
    }

    /// Gives up the first hole. Returns its number and whether it was damaged rather than lost.
    pub fn give_up_first_hole(&mut self) -> Option<(TpduSeq, bool)> {
        let (_, damaged) = self.first_hole()?;
        let seq = self.next_expected();
        self.slots[self.settled] = Slot::GivenUp;
        self.advance();
        Some((seq, damaged))
    }

    /// Up to `max` missing numbers, oldest first.
    pub fn holes(&self, max: usize) -> impl Iterator<Item = TpduSeq> + '_ {
        let missing = self.slots.iter().enumerate().skip(self.settled);
        missing
            .filter(|(_, slot)| matches!(slot, Slot::Missing { .. }))
            .filter_map(|(index, _)| Some(self.base.plus(u32::try_from(index).ok()?)))
            .take(max)
    }

    /// Whether [`Reassembly::read`] would return something.
    pub fn is_readable(&self) -> bool {
        self.slots
            .iter()
            .take(self.settled)
            .any(|slot| matches!(slot, Slot::Held { .. }))
            || self.early.as_ref().is_some_and(|early| {
                let mut early = early.iter();
                early.any(|seq| self.is_held(*seq))
            })
    }

    fn is_held(&self, seq: TpduSeq) -> bool {
        let slot = self.index(seq).ok().and_then(|index| self.slots.get(index));
        matches!(slot, Some(Slot::Held { .. }))
    }

    /// Takes the next TPDU in order and passes over those given up.
    pub fn read(&mut self) -> Option<Chunk> {
        while self.settled > 0 {
            let seq = self.base;
            let slot = self.slots.pop_front()?;
            self.base = self.base.plus(1);
            self.settled -= 1;
            match slot {
                Slot::Held { octets, intact } => {
                    self.payload_memory_bytes -= octets.capacity();
                    let missing_before = core::mem::take(&mut self.missing_before);
                    self.pass_given_up();
                    return Some(Chunk {
                        seq,
                        octets,
                        intact,
                        missing_before,
                    });
                }
                Slot::GivenUp | Slot::Missing { .. } => self.missing_before += 1,
                Slot::Taken => {}
            }
        }
        self.read_early()
    }

    /// Takes the next TPDU that came before its turn, if that is wanted.
    fn read_early(&mut self) -> Option<Chunk> {
        loop {
            let seq = self.early.as_mut()?.pop_front()?;
            let index = self
                .index(seq)
                .ok()
                .filter(|index| *index < self.slots.len());
            let slot = index.map(|index| &mut self.slots[index]);
            if let Some(slot @ Slot::Held { .. }) = slot
                && let Slot::Held { octets, intact } = core::mem::replace(slot, Slot::Taken)
            {
                self.payload_memory_bytes -= octets.capacity();
                return Some(Chunk {
                    seq,
                    octets,
                    intact,
                    missing_before: 0,
                });
            }
        }
    }

    /// Takes back a payload vector for reuse.
    pub fn recycle(&mut self, octets: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            self.payload_memory_bytes += octets.capacity();
            self.spare.push(octets);
        }
    }

    /// Frees memory that the held TPDUs do not need.
    pub fn give_back(&mut self) {
        let spare: usize = self.spare.iter().map(Vec::capacity).sum();
        self.payload_memory_bytes -= spare;
        self.spare = Vec::new();
        self.slots.shrink_to_fit();
        if let Some(early) = &mut self.early {
            early.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::START;
    const FIRST: TpduSeq = TpduSeq(u32::MAX - 1);

    fn ring() -> Reassembly {
        Reassembly::new(FIRST, 8)
    }

    fn put(ring: &mut Reassembly, i: u32) -> Inserted {
        ring.insert(NOW, FIRST.plus(i), &i.to_be_bytes(), true)
    }

    #[test]
    fn tpdus_come_out_in_order_however_they_arrive_and_once() {
        let mut ring = ring();
        assert_eq!(put(&mut ring, 2), Inserted::Ahead { new_holes: 2 });
        assert_eq!(put(&mut ring, 0), Inserted::Filled);
        assert_eq!(put(&mut ring, 2), Inserted::Duplicate);
        assert_eq!(put(&mut ring, 1), Inserted::Filled);
        assert_eq!(put(&mut ring, 3), Inserted::Next);
        let read: Vec<TpduSeq> = core::iter::from_fn(|| ring.read()).map(|c| c.seq).collect();
        assert_eq!(read, [FIRST, FIRST.plus(1), FIRST.plus(2), FIRST.plus(3)]);
        assert_eq!(put(&mut ring, 1), Inserted::Duplicate, "read already");
    }

    #[test]
    fn in_any_order_each_comes_as_it_arrives_and_once_and_makes_room_in_its_turn() {
        let mut ring = ring();
        let read = |ring: &mut Reassembly| ring.read().map(|chunk| chunk.seq.offset_from(FIRST));
        put(&mut ring, 2);
        assert!(!ring.is_readable());
        ring.read_in_any_order();
        put(&mut ring, 4);
        assert!(ring.is_readable());
        assert_eq!(read(&mut ring), Some(2));
        assert_eq!(put(&mut ring, 2), Inserted::Duplicate);
        put(&mut ring, 0);
        assert_eq!(read(&mut ring), Some(0));
        assert_eq!(read(&mut ring), Some(4));
        assert_eq!(read(&mut ring), None);
        assert!(!ring.is_readable());
        assert_eq!(ring.holes(9).count(), 2);
        assert_eq!(put(&mut ring, 1), Inserted::Filled);
        assert_eq!(ring.next_expected(), FIRST.plus(3));
        assert_eq!(read(&mut ring), Some(1));
        put(&mut ring, 3);
        assert_eq!(read(&mut ring), Some(3));
        assert_eq!((read(&mut ring), ring.window()), (None, 8));
        assert_eq!(put(&mut ring, 4), Inserted::Duplicate, "read before");
    }

    #[test]
    fn what_came_early_and_is_read_in_its_turn_is_not_remembered_for_ever() {
        let mut ring = ring();
        ring.read_in_any_order();
        // Each pair comes the wrong way round, and one of its two is read: the ring is never read empty.
        for pair in 0..1_000 {
            put(&mut ring, 2 * pair + 1);
            put(&mut ring, 2 * pair);
            while ring.slots.len() > 1 {
                assert!(ring.read().is_some());
            }
            let early = ring.early.as_ref().map_or(0, VecDeque::len);
            assert!(early <= 2 * 8, "{early}");
        }
    }

    #[test]
    fn the_window_is_exact_and_shrinks_by_what_is_unread() {
        let mut ring = ring();
        assert_eq!(ring.window(), 8);
        assert_eq!(put(&mut ring, 8), Inserted::Beyond);
        assert_eq!(put(&mut ring, 7), Inserted::Ahead { new_holes: 7 });
        for i in 0..7 {
            put(&mut ring, i);
        }
        assert_eq!(ring.window(), 0);
        ring.read();
        assert_eq!(ring.window(), 1);
        assert_eq!(put(&mut ring, 8), Inserted::Next);
    }

    #[test]
    fn holes_are_listed_and_given_up_in_order_and_counted_before_the_next_chunk() {
        let mut ring = ring();
        put(&mut ring, 3);
        assert!(ring.note_damaged(NOW, FIRST.plus(1)));
        assert_eq!(
            ring.holes(9).collect::<Vec<_>>(),
            [FIRST, FIRST.plus(1), FIRST.plus(2)]
        );
        assert_eq!(ring.give_up_first_hole(), Some((FIRST, false)));
        assert_eq!(ring.give_up_first_hole(), Some((FIRST.plus(1), true)));
        assert!(!ring.is_readable());
        assert_eq!(ring.give_up_first_hole(), Some((FIRST.plus(2), false)));
        assert_eq!(
            ring.read().map(|c| (c.seq, c.missing_before)),
            Some((FIRST.plus(3), 3))
        );
        assert_eq!(
            put(&mut ring, 1),
            Inserted::Duplicate,
            "given up is given up"
        );
    }

    #[test]
    fn a_gap_longer_than_the_window_is_passed_over_but_nothing_unread_is() {
        let mut ring = ring();
        put(&mut ring, 1);
        assert_eq!(put(&mut ring, 100), Inserted::Beyond);
        let first = Skipped {
            lost: 1,
            ..Skipped::default()
        };
        assert_eq!(ring.make_room(FIRST.plus(101)), first);
        assert_eq!(put(&mut ring, 100), Inserted::Beyond, "1 is unread");
        assert_eq!(
            ring.read().map(|c| (c.seq, c.missing_before)),
            Some((FIRST.plus(1), 1))
        );
        let rest = Skipped {
            unnoticed: 91,
            ..Skipped::default()
        };
        assert_eq!(ring.make_room(FIRST.plus(101)), rest);
        assert_eq!(put(&mut ring, 100), Inserted::Ahead { new_holes: 7 });
        for _ in 0..7 {
            ring.give_up_first_hole();
        }
        assert_eq!(
            ring.read().map(|c| (c.seq, c.missing_before)),
            Some((FIRST.plus(100), 98))
        );
    }

    #[test]
    fn holes_given_up_leave_the_ring_though_nobody_reads() {
        let mut ring = ring();
        ring.note_end(NOW, FIRST.plus(8));
        while ring.give_up_first_hole().is_some() {}
        assert_eq!(put(&mut ring, 8), Inserted::Next);
        assert_eq!(ring.read().map(|c| c.missing_before), Some(8));
    }

    #[test]
    fn the_end_makes_missing_tail_tpdus_known() {
        let mut ring = ring();
        put(&mut ring, 0);
        ring.note_end(NOW, FIRST.plus(3));
        assert_eq!(ring.holes(9).count(), 2);
        ring.note_end(NOW, FIRST.plus(1_000_000));
        assert_eq!(
            ring.holes(9).count(),
            2,
            "an end beyond the window is not believed"
        );
    }
}
