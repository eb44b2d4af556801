//! Connections that are over, remembered so that a late copy cannot open them again.

use super::key::Key;
use crate::machine::PathId;
use crate::units::{Duration, Instant};
use crate::wire::{Mode, TpduSeq};
use std::collections::{BTreeMap, VecDeque};

/// The time in TIME-WAIT for a pair of ports: longer than any queue holds a datagram (RFC 9293's 2
/// MSL with an MSL of one minute).
const REST: Duration = Duration::from_secs(120);
/// Pairs remembered at most; beyond that number the oldest are forgotten early.
const TOMBSTONES_MAX: usize = 16_384;

/// The answer for a connection that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// All of the peer's data was received, up to this number.
    Finished(TpduSeq),
    /// The peer had lost the connection's state, and the connection it has instead leads nowhere.
    Forgotten,
    /// The peer may still have octets that nobody here can confirm.
    Silent,
}

/// A connection that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tombstone {
    pub(super) past: Past,
    /// Whether this end had opened it.
    pub(super) initiator: bool,
    pub(super) mode: Mode,
}

#[derive(Debug, Default)]
pub(super) struct Tombstones {
    keys: BTreeMap<Key, Tombstone>,
    order: VecDeque<(Instant, Key)>,
}

impl Tombstones {
    pub(super) fn bury(&mut self, now: Instant, key: Key, tombstone: Tombstone) {
        self.expire(now);
        if self.order.len() == TOMBSTONES_MAX
            && let Some((_, oldest)) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
        if self.keys.insert(key, tombstone).is_none() {
            self.order.push_back((now + REST, key));
        }
    }

    /// The pairs of `local`'s at `path`.
    pub(super) fn of_port(&self, path: PathId, local: u16) -> impl Iterator<Item = &Key> {
        let pairs = self.keys.range(Key::all_of_port(path, local));
        pairs.map(|(key, _)| key)
    }

    /// The last connection under `key`.
    pub(super) fn get(&self, key: Key) -> Option<Tombstone> {
        self.keys.get(&key).copied()
    }

    /// Forgets the pairs of `path`: nothing from before can come from it any more.
    pub(super) fn forget_path(&mut self, path: PathId) {
        self.keys.retain(|key, _| key.path != path);
        self.order.retain(|(_, key)| key.path != path);
    }

    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((until, key)) = self.order.front().copied() {
            if until > now {
                break;
            }
            self.order.pop_front();
            self.keys.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(local: u16) -> Key {
        Key {
            path: PathId(0),
            local,
            remote: 1,
        }
    }

    fn tombstone(past: Past) -> Tombstone {
        Tombstone {
            past,
            initiator: true,
            mode: Mode::Reliable,
        }
    }

    #[test]
    fn a_pair_of_ports_rests_for_its_time_and_no_longer() {
        let mut tombstones = Tombstones::default();
        let finished = tombstone(Past::Finished(TpduSeq(7)));
        tombstones.bury(Instant::START, key(1), finished);
        tombstones.expire(Instant::START + REST - Duration::from_nanos(1));
        assert_eq!(tombstones.get(key(1)), Some(finished));
        tombstones.expire(Instant::START + REST);
        assert_eq!(tombstones.get(key(1)), None);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let mut tombstones = Tombstones::default();
        for local in 0..=u16::try_from(TOMBSTONES_MAX).expect("fits") {
            tombstones.bury(Instant::START, key(local), tombstone(Past::Silent));
        }
        assert_eq!(tombstones.get(key(0)), None);
        assert_eq!(tombstones.get(key(1)), Some(tombstone(Past::Silent)));
    }
}
