//! The release of packets upwards: by number, in order or as they come, each once.
//!
//! A window begins at the lowest number still awaited. In order, a packet is held until all before
//! it were released or passed over; without order, only its number is remembered. Holes are passed
//! over when the layer says that no packet can fill them any more.

use crate::wire::link::FrameNumber;
use fulmar_proto::units::Instant;
use std::collections::VecDeque;

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The packet will be released.
    Taken,
    /// The packet was here before, or its turn has passed.
    Known,
    /// The packet's number is beyond the window.
    Beyond,
}

#[derive(Clone, Debug)]
enum Slot {
    Missing,
    Held {
        octets: Vec<u8>,
        since: Instant,
    },
    /// Released, or passed over.
    Done,
}

/// A window of packets on their way up.
#[derive(Clone, Debug)]
pub(crate) struct ReleaseWindow {
    in_order: bool,
    size: u16,
    next: FrameNumber,
    /// The state of the numbers from `next` on; at most `size`.
    slots: VecDeque<Slot>,
    outbox: VecDeque<Vec<u8>>,
    passed_over: u64,
}

impl ReleaseWindow {
    /// A window of `size` numbers from `next` on.
    pub(crate) fn new(in_order: bool, size: u16, next: FrameNumber) -> Self {
        Self {
            in_order,
            size,
            next,
            slots: VecDeque::new(),
            outbox: VecDeque::new(),
            passed_over: 0,
        }
    }

    /// The lowest number still awaited.
    pub(crate) const fn next(&self) -> FrameNumber {
        self.next
    }

    /// Holes that were passed over so far.
    pub(crate) const fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Whether `number` is in the window and still awaited.
    pub(crate) fn is_open(&self, number: FrameNumber) -> bool {
        let index = usize::from(number.ahead_of(self.next));
        index < usize::from(self.size)
            && matches!(self.slots.get(index), None | Some(Slot::Missing))
    }

    /// The fate that a packet of this number would have.
    pub(crate) fn look(&self, number: FrameNumber) -> Placed {
        if number.is_behind(self.next) {
            Placed::Known
        } else if number.ahead_of(self.next) >= self.size {
            Placed::Beyond
        } else if self.is_open(number) {
            Placed::Taken
        } else {
            Placed::Known
        }
    }

    /// Takes a packet.
    pub(crate) fn place(&mut self, now: Instant, number: FrameNumber, octets: Vec<u8>) -> Placed {
        let placed = self.look(number);
        if placed != Placed::Taken {
            return placed;
        }
        if self.in_order {
            self.set(number, Slot::Held { octets, since: now });
        } else {
            self.outbox.push_back(octets);
            self.set(number, Slot::Done);
        }
        self.settle();
        placed
    }

    /// Notes that no packet can come any more for the numbers before `base`: holes among them are
    /// passed over. A base that lies behind changes nothing.
    pub(crate) fn advance_to(&mut self, base: FrameNumber) {
        if base.is_behind(self.next) {
            return;
        }
        let distance = base.ahead_of(self.next);
        for _ in 0..distance.min(u16::try_from(self.slots.len()).unwrap_or(u16::MAX)) {
            match self.slots.pop_front() {
                Some(Slot::Held { octets, .. }) => self.outbox.push_back(octets),
                Some(Slot::Missing) => self.passed_over += 1,
                Some(Slot::Done) | None => {}
            }
            self.next = self.next.plus(1);
        }
        self.passed_over += u64::from(base.ahead_of(self.next));
        self.next = base;
        self.settle();
    }

    /// Releases all packets that are held, passes over every hole, and continues at `next`.
    pub(crate) fn restart_at(&mut self, next: FrameNumber) {
        for slot in core::mem::take(&mut self.slots) {
            match slot {
                Slot::Held { octets, .. } => self.outbox.push_back(octets),
                Slot::Missing => self.passed_over += 1,
                Slot::Done => {}
            }
        }
        self.next = next;
    }

    /// The next packet for the node above.
    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop_front()
    }

    /// Octets of the packets that are held or to be fetched.
    pub(crate) fn held_octets(&self) -> usize {
        let slot = |slot: &Slot| match slot {
            Slot::Held { octets, .. } => octets.len(),
            Slot::Missing | Slot::Done => 0,
        };
        let outbox = self.outbox.iter().map(Vec::len);
        self.slots.iter().map(slot).chain(outbox).sum()
    }

    /// The number of packets held and to be fetched, for bounds.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        let held = |slot: &&Slot| matches!(slot, Slot::Held { .. });
        self.slots.iter().filter(held).count() + self.outbox.len()
    }

    /// The time since when the packet that came first among those held behind holes has been
    /// waiting.
    pub(crate) fn blocked_since(&self) -> Option<Instant> {
        let since = |slot: &Slot| match slot {
            Slot::Held { since, .. } => Some(*since),
            Slot::Missing | Slot::Done => None,
        };
        self.slots.iter().filter_map(since).min()
    }

    /// Passes over the holes before the first packet that is held.
    pub(crate) fn pass_first_holes(&mut self) {
        let held = |slot: &Slot| matches!(slot, Slot::Held { .. });
        if let Some(index) = self.slots.iter().position(held)
            && let Ok(distance) = u16::try_from(index)
        {
            self.advance_to(self.next.plus(distance));
        }
    }

    /// Whether each number behind the lowest awaited one, in turn from distance 1 on, has arrived
    /// or was passed over.
    pub(crate) fn beyond_next(&self) -> impl Iterator<Item = bool> {
        self.slots
            .iter()
            .skip(1)
            .map(|slot| !matches!(slot, Slot::Missing))
    }

    fn set(&mut self, number: FrameNumber, slot: Slot) {
        let index = usize::from(number.ahead_of(self.next));
        if self.slots.len() <= index {
            self.slots.resize(index + 1, Slot::Missing);
        }
        self.slots[index] = slot;
    }

    fn settle(&mut self) {
        while !matches!(self.slots.front(), None | Some(Slot::Missing)) {
            if let Some(Slot::Held { octets, .. }) = self.slots.pop_front() {
                self.outbox.push_back(octets);
            }
            self.next = self.next.plus(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const FIRST: FrameNumber = FrameNumber(u16::MAX - 1);

    fn window(in_order: bool) -> ReleaseWindow {
        ReleaseWindow::new(in_order, 4, FIRST)
    }

    fn place(window: &mut ReleaseWindow, distance: u16) -> Placed {
        let octets = vec![u8::try_from(distance).unwrap()];
        window.place(Instant::START, FIRST.plus(distance), octets)
    }

    fn released(window: &mut ReleaseWindow) -> Vec<u8> {
        std::iter::from_fn(|| window.pop())
            .map(|octets| octets[0])
            .collect()
    }

    #[test]
    fn packets_wait_for_those_before_them_and_leave_in_order() {
        let mut window = window(true);
        assert_eq!(place(&mut window, 2), Placed::Taken);
        assert_eq!(place(&mut window, 1), Placed::Taken);
        assert!(released(&mut window).is_empty());
        assert_eq!(place(&mut window, 0), Placed::Taken);
        assert_eq!(released(&mut window), [0, 1, 2]);
        assert_eq!(place(&mut window, 1), Placed::Known);
        assert_eq!(place(&mut window, 6), Placed::Taken);
        assert_eq!(place(&mut window, 7), Placed::Beyond);
    }

    #[test]
    fn a_hole_that_is_passed_over_lets_the_others_go_and_stays_closed() {
        let mut window = window(true);
        place(&mut window, 1);
        window.advance_to(FIRST.plus(1));
        assert_eq!(released(&mut window), [1]);
        assert_eq!(place(&mut window, 0), Placed::Known);
        window.advance_to(FIRST.plus(5));
        assert_eq!((window.next(), window.passed_over()), (FIRST.plus(5), 4));
        window.advance_to(FIRST);
        assert_eq!(window.next(), FIRST.plus(5));
    }

    #[test]
    fn the_one_that_came_first_says_since_when_packets_wait_wherever_it_stands() {
        let mut window = window(true);
        let (early, late) = (Instant::from_nanos(1), Instant::from_nanos(2));
        window.place(early, FIRST.plus(3), vec![3]);
        window.place(late, FIRST.plus(1), vec![1]);
        assert_eq!(window.blocked_since(), Some(early));
        window.pass_first_holes();
        assert_eq!(
            (released(&mut window), window.blocked_since()),
            (vec![1], Some(early))
        );
        window.pass_first_holes();
        assert_eq!(
            (released(&mut window), window.blocked_since()),
            (vec![3], None)
        );
    }

    #[test]
    fn as_they_come_nothing_waits_and_nothing_comes_twice() {
        let mut window = window(false);
        assert_eq!(place(&mut window, 3), Placed::Taken);
        assert_eq!(place(&mut window, 3), Placed::Known);
        assert_eq!(place(&mut window, 0), Placed::Taken);
        assert_eq!(released(&mut window), [3, 0]);
        assert_eq!(window.beyond_next().collect::<Vec<_>>(), [false, true]);
    }

    proptest! {
        /// Whatever arrives and is passed over, packets are released never twice, in order if asked
        /// for, and within bounds.
        #[test]
        fn releases_are_unique_ordered_and_bounded(
            in_order: bool,
            steps in prop::collection::vec((0u16..24, 0u8..4), 0..200),
        ) {
            let mut window = ReleaseWindow::new(in_order, 8, FIRST);
            let mut seen = BTreeSet::new();
            let mut last = None;
            for (distance, what) in steps {
                match what {
                    0 | 1 if distance < 6 => window.advance_to(window.next().plus(distance)),
                    _ => {
                        let octets = vec![u8::try_from(distance).unwrap()];
                        window.place(Instant::START, FIRST.plus(distance), octets);
                    }
                }
                prop_assert!(window.held() <= 8);
                while let Some(octets) = window.pop() {
                    prop_assert!(seen.insert(octets[0]), "twice");
                    if in_order {
                        prop_assert!(last.is_none_or(|last| last < octets[0]), "out of order");
                        last = Some(octets[0]);
                    }
                }
            }
        }
    }
}
