//! The counters of senders: each is taken once, and the gaps between them are losses.

use super::seal::{OneWayRefusal, StreamId};
use crate::session::ReplayWindow;
use std::collections::BTreeMap;

/// Senders that are remembered. Only who has the key becomes one.
const SENDERS_MAX: usize = 256;
/// Starts of senders that are counted.
pub(super) const STREAMS_MAX: usize = 64;

/// The datagrams of one start of a sender.
#[derive(Clone, Copy, Debug)]
struct StreamCount {
    first: u64,
    newest: u64,
    came: u64,
}

struct HeardSender {
    /// Counters below this one were heard before the receiver was started, or might have been.
    floor: u64,
    window: ReplayWindow,
}

/// The senders that were heard.
#[derive(Default)]
pub(super) struct HeardSenders {
    senders: BTreeMap<u32, HeardSender>,
    streams: BTreeMap<StreamId, StreamCount>,
}

impl HeardSenders {
    pub(super) const fn new() -> Self {
        Self {
            senders: BTreeMap::new(),
            streams: BTreeMap::new(),
        }
    }

    /// Remembers that counters of a sender below `floor` were heard before.
    pub(super) fn restore(&mut self, sender: u32, floor: u64) {
        if self.senders.len() < SENDERS_MAX {
            let window = ReplayWindow::default();
            self.senders.insert(sender, HeardSender { floor, window });
        }
    }

    /// For each sender, the counter below which nothing is taken after a restart.
    pub(super) fn floors(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let senders = self.senders.iter();
        senders.map(|(&sender, heard)| (sender, heard.floor.max(heard.window.newest())))
    }

    /// Datagrams of a start that came, and that did not, as far as it was heard.
    pub(super) fn count(&self, stream: StreamId) -> (u64, u64) {
        self.streams.get(&stream).map_or((0, 0), |count| {
            let sent = count.newest - count.first + 1;
            (count.came, sent.saturating_sub(count.came))
        })
    }

    /// Notes a counter, and says whether it is new.
    pub(super) fn take(&mut self, stream: StreamId, counter: u64) -> Result<(), OneWayRefusal> {
        let known = self.senders.len();
        let heard = match self.senders.get_mut(&stream.sender) {
            Some(heard) => heard,
            None if known >= SENDERS_MAX => return Err(OneWayRefusal::Full),
            None => self
                .senders
                .entry(stream.sender)
                .or_insert_with(|| HeardSender {
                    floor: 0,
                    window: ReplayWindow::default(),
                }),
        };
        if counter < heard.floor || !heard.window.is_new(counter) {
            return Err(OneWayRefusal::Repeated);
        }
        heard.window.mark(counter);
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&stream) {
            let oldest = self.streams.iter().min_by_key(|(_, count)| count.newest);
            let oldest = oldest.map(|(&stream, _)| stream);
            oldest.and_then(|stream| self.streams.remove(&stream));
        }
        let count = self.streams.entry(stream).or_insert(StreamCount {
            first: counter,
            newest: counter,
            came: 0,
        });
        count.first = count.first.min(counter);
        count.newest = count.newest.max(counter);
        count.came += 1;
        Ok(())
    }
}
