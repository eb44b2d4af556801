//! The counters of senders: each is taken once, and the gaps between them are losses.

use super::seal::{OneWayRefusal, StreamId};
use crate::session::ReplayWindow;
use std::collections::{BTreeMap, VecDeque};

/// Senders whose counters are told apart. Only who has the key becomes one.
const SENDERS_MAX: usize = 256;
/// Senders of whom the newest counter alone is remembered, so that what is remembered fits into a state file.
const FLOORS_MAX: usize = 700;
/// Starts of senders that are counted.
pub(super) const STREAMS_MAX: usize = 64;

/// The datagrams of one start of a sender.
#[derive(Clone, Copy, Debug)]
struct StreamCount {
    first: u64,
    newest: u64,
    came: u64,
    /// The number of the datagram that was the last of it.
    heard: u64,
}

struct HeardSender {
    /// Counters below this one were heard before, or might have been.
    floor: u64,
    window: ReplayWindow,
    /// The number of the datagram that was its last.
    heard: u64,
}

impl HeardSender {
    /// The counter below which nothing is taken once the window is gone.
    fn next_floor(&self) -> u64 {
        self.floor.max(self.window.newest())
    }
}

/// The senders that were heard. The one that was heard longest ago makes room for another.
#[derive(Default)]
pub(super) struct HeardSenders {
    senders: BTreeMap<u32, HeardSender>,
    /// Senders and their floors, the one that was heard longest ago first.
    floors: VecDeque<(u32, u64)>,
    streams: BTreeMap<StreamId, StreamCount>,
    /// Datagrams that were taken.
    heard: u64,
    /// Datagrams of starts that are not known, with counters that were heard before.
    went_back: u64,
}

impl HeardSenders {
    pub(super) const fn new() -> Self {
        Self {
            senders: BTreeMap::new(),
            floors: VecDeque::new(),
            streams: BTreeMap::new(),
            heard: 0,
            went_back: 0,
        }
    }

    /// Remembers that counters of a sender below `floor` were heard before.
    pub(super) fn restore(&mut self, sender: u32, floor: u64) {
        if self.floors.len() >= FLOORS_MAX {
            self.floors.pop_front();
        }
        self.floors.push_back((sender, floor));
    }

    /// For each sender, the counter below which nothing is taken after a restart; the one that was heard longest ago comes first.
    pub(super) fn floors(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let mut senders: Vec<_> = self.senders.iter().collect();
        senders.sort_unstable_by_key(|(_, heard)| heard.heard);
        let senders = senders.into_iter();
        let known = senders.map(|(&sender, heard)| (sender, heard.next_floor()));
        self.floors.iter().copied().chain(known)
    }

    /// Datagrams of a start that arrived, and that were lost between its first and its newest.
    pub(super) fn count(&self, stream: StreamId) -> (u64, u64) {
        self.streams.get(&stream).map_or((0, 0), |count| {
            let sent = count.newest - count.first + 1;
            (count.came, sent.saturating_sub(count.came))
        })
    }

    /// Datagrams of starts that are not known, with counters that were heard before: recordings, or a sender whose numbers went back.
    pub(super) const fn went_back(&self) -> u64 {
        self.went_back
    }

    /// The sender of this number, with its floor if it was heard before.
    fn sender(&mut self, sender: u32) -> &mut HeardSender {
        if self.senders.len() >= SENDERS_MAX && !self.senders.contains_key(&sender) {
            let oldest = self.senders.iter().min_by_key(|(_, heard)| heard.heard);
            let oldest = oldest.map(|(&sender, _)| sender);
            if let Some((oldest, heard)) =
                oldest.and_then(|oldest| self.senders.remove_entry(&oldest))
            {
                self.restore(oldest, heard.next_floor());
            }
        }
        let floors = &mut self.floors;
        self.senders.entry(sender).or_insert_with(|| {
            let known = floors.iter().position(|&(known, _)| known == sender);
            let known = known.and_then(|place| floors.remove(place));
            HeardSender {
                floor: known.map_or(0, |(_, floor)| floor),
                window: ReplayWindow::default(),
                heard: 0,
            }
        })
    }

    /// Notes a counter, and says whether it is new.
    pub(super) fn take(&mut self, stream: StreamId, counter: u64) -> Result<(), OneWayRefusal> {
        let number = self.heard + 1;
        let heard = self.sender(stream.sender);
        if counter < heard.floor || !heard.window.is_new(counter) {
            if !self.streams.contains_key(&stream) {
                self.went_back += 1;
            }
            return Err(OneWayRefusal::Repeated);
        }
        heard.window.mark(counter);
        heard.heard = number;
        self.heard = number;
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&stream) {
            let oldest = self.streams.iter().min_by_key(|(_, count)| count.heard);
            let oldest = oldest.map(|(&stream, _)| stream);
            oldest.and_then(|stream| self.streams.remove(&stream));
        }
        let count = self.streams.entry(stream).or_insert(StreamCount {
            first: counter,
            newest: counter,
            came: 0,
            heard: 0,
        });
        count.first = count.first.min(counter);
        count.newest = count.newest.max(counter);
        count.came += 1;
        count.heard = number;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn stream(sender: u32) -> StreamId {
        StreamId { sender, start: 1 }
    }

    #[test]
    fn any_number_of_senders_is_heard_and_the_latest_ones_are_remembered() {
        let mut heard = HeardSenders::new();
        for sender in 0..2_000 {
            assert_eq!(heard.take(stream(sender), 9), Ok(()), "sender {sender}");
        }
        let floors: Vec<_> = heard.floors().collect();
        assert_eq!(floors.len(), SENDERS_MAX + FLOORS_MAX);
        assert_eq!(floors.last(), Some(&(1_999, 10)));
        // One of them gave way: nothing older than its newest is taken, and what is newer is.
        assert!(!heard.senders.contains_key(&1_500));
        assert_eq!(heard.take(stream(1_500), 9), Err(OneWayRefusal::Repeated));
        assert_eq!(heard.take(stream(1_500), 10), Ok(()));
        let mut restarted = HeardSenders::new();
        for (sender, floor) in floors {
            restarted.restore(sender, floor);
        }
        assert_eq!(
            restarted.take(stream(1_999), 9),
            Err(OneWayRefusal::Repeated)
        );
        assert_eq!(restarted.take(stream(1_999), 10), Ok(()));
    }

    #[test]
    fn a_young_sender_keeps_its_count_beside_older_ones() {
        let mut heard = HeardSenders::new();
        for counter in 0..3 {
            for sender in 1..64 {
                heard
                    .take(stream(sender), 1_000_000 + counter)
                    .expect("it is new");
            }
            heard.take(stream(0), counter).expect("it is new");
        }
        // One start more: the one that was heard longest ago goes.
        heard.take(stream(100), 5_000_000).expect("it is new");
        assert_eq!(heard.count(stream(0)), (3, 0));
        assert_eq!(heard.count(stream(1)), (0, 0));
    }

    #[test]
    fn a_start_that_was_never_heard_with_old_numbers_is_noticed() {
        let mut heard = HeardSenders::new();
        for counter in 0..9 {
            heard.take(stream(1), counter).expect("it is new");
        }
        assert_eq!(heard.take(stream(1), 3), Err(OneWayRefusal::Repeated));
        assert_eq!(heard.went_back(), 0, "a datagram that came twice");
        let restored = StreamId {
            sender: 1,
            start: 2,
        };
        assert_eq!(heard.take(restored, 3), Err(OneWayRefusal::Repeated));
        assert_eq!(heard.went_back(), 1);
    }
}
