//! The numbered datagrams that left lately, so that one of which the remote says that it is damaged is found again, and that
//! what the remote's maps say of each is told in the order of their departure.

use crate::machine::ArrivalMap;
use crate::transport::aerotp::ConnectionId;
use crate::units::{ByteCount, Duration, Instant};
use crate::wire::TpduSeq;
use std::collections::VecDeque;

/// The most datagrams that are remembered, 1.8 MB: 390 ms of full packets at 1 gbit. Where a map takes longer, nobody tells of what
/// left.
const LEFT_MAX: usize = 32_768;
/// The longest time for which one is remembered: its TPDU is held for lost by then, and a map tells of it, unless an outage lasts longer.
const KEPT: Duration = Duration::from_secs(10);

/// A datagram that did not arrive may still come: until one that left so much later has arrived, or so many numbers on.
const OVERTAKEN: Duration = Duration::from_millis(100);
const OVERTAKEN_BY: u64 = 256;

/// The time for which a map of keys that are out of use is waited for.
const AWAITED: Duration = Duration::from_secs(5);

/// Datagrams for which there is room while nothing is remembered.
const KEPT_EMPTY: usize = 64;

/// A datagram that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    number: u64,
    pub(super) at: Instant,
    /// Its octets, headers of the layers below included.
    pub(super) wire: ByteCount,
    /// Its TPDU with data, until somebody asked for it.
    pub(super) tpdu: Option<(ConnectionId, TpduSeq)>,
    is_taken: bool,
    /// Whether what mends it was sent.
    pub(super) is_mending: bool,
    /// Whether a map told that it was mended.
    is_mended: bool,
}

/// Datagrams of which the remote's maps have told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettledCounts {
    /// Datagrams.
    pub datagrams: u64,
    /// Their octets, headers of the layers below included.
    pub wire: ByteCount,
    /// Those that came damaged beyond repair and were mended by what was sent later.
    pub mended_later: u64,
}

/// The datagrams that left on one path, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct LeftLog {
    left: VecDeque<Left>,
    /// The first number that no map has settled.
    unsettled: u64,
    pub(super) settled: SettledCounts,
}

impl LeftLog {
    /// Notes a datagram.
    pub(super) fn on_left(
        &mut self,
        now: Instant,
        number: u64,
        wire: ByteCount,
        tpdu: Option<(ConnectionId, TpduSeq)>,
    ) {
        let is_old = |left: &Left| now.saturating_since(left.at) > KEPT;
        while self.left.len() >= LEFT_MAX || self.left.front().is_some_and(is_old) {
            self.left.pop_front();
        }
        // An idle session sends something every ten seconds, which frees what the last flow took.
        if self.left.is_empty() && self.left.capacity() > KEPT_EMPTY {
            self.left.shrink_to(KEPT_EMPTY);
        }
        // Numbers rise; whatever else would make the search below wrong.
        if self.left.back().is_none_or(|last| last.number < number) {
            self.left.push_back(Left {
                number,
                at: now,
                wire,
                tpdu,
                is_taken: false,
                is_mending: false,
                is_mended: false,
            });
        }
    }

    /// Tells the datagrams that the map settles: when they left, their octets, and whether they were lost. Those that came damaged
    /// and those of which no map says anything are left out.
    pub(super) fn settle(
        &mut self,
        map: ArrivalMap<'_>,
        mut each: impl FnMut(Instant, ByteCount, bool),
    ) {
        self.note_mended(map);
        let last = if map.is_final {
            map.end.saturating_sub(1)
        } else {
            map.newest
        };
        let Some(last) = self.find(last).map(|left| (left.number, left.at)) else {
            return;
        };
        let (last, last_at) = last;
        let first = self.unsettled;
        let from = self.left.partition_point(|left| left.number < first);
        for left in self.left.range(from..) {
            let is_awaited = left.number < map.first && last_at < left.at + AWAITED;
            let is_overtaken = left.at + OVERTAKEN <= last_at || left.number + OVERTAKEN_BY <= last;
            if left.number > last || is_awaited || !(is_overtaken || map.is_final) {
                break;
            }
            self.unsettled = left.number + 1;
            let Some(arrived) = map.arrived(left.number) else {
                continue;
            };
            self.settled.datagrams += 1;
            self.settled.wire += left.wire;
            if !(left.is_taken || left.is_mending) {
                each(left.at, left.wire, !arrived);
            }
        }
    }

    /// Counts the damaged datagrams that were mended since: what mends them comes behind a queue, so later maps tell of it, too.
    fn note_mended(&mut self, map: ArrivalMap<'_>) {
        let oldest = map.newest.saturating_sub(8 * map.bits.len() as u64);
        let oldest = oldest.max(map.first);
        let from = self.left.partition_point(|left| left.number < oldest);
        let until = self.left.partition_point(|left| left.number <= map.newest);
        for left in self.left.range_mut(from..until.max(from)) {
            if left.is_mending && !left.is_mended && map.arrived(left.number) == Some(true) {
                left.is_mended = true;
                self.settled.mended_later += 1;
            }
        }
    }

    fn find(&mut self, number: u64) -> Option<&mut Left> {
        let place = self.left.partition_point(|left| left.number < number);
        self.left
            .get_mut(place)
            .filter(|left| left.number == number)
    }

    /// The datagram with this number, for which what mends it leaves, and whether that is for the first time; it may be
    /// [taken](LeftLog::take) later.
    pub(super) fn mend(&mut self, number: u64) -> Option<(Left, bool)> {
        let left = self.find(number).filter(|left| !left.is_taken)?;
        let is_first = !core::mem::replace(&mut left.is_mending, true);
        Some((*left, is_first))
    }

    /// The datagram with this number, once.
    pub(super) fn take(&mut self, number: u64) -> Option<Left> {
        let left = self.find(number)?;
        let is_new = !core::mem::replace(&mut left.is_taken, true);
        is_new.then_some(*left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_settle_each_datagram_once_and_what_may_still_come_waits() {
        let mut log = LeftLog::default();
        let at = |millis| Instant::START + Duration::from_millis(millis);
        for n in 0..200_u64 {
            log.on_left(at(2 * n), 1_000 + n, ByteCount(100 + n), None);
        }
        let settle = |log: &mut LeftLog, newest, bits: &[u8]| {
            let mut told = Vec::new();
            let map = ArrivalMap {
                first: 1_000,
                end: newest + 1,
                is_final: false,
                newest,
                bits,
            };
            log.settle(map, |at, wire, is_lost| {
                told.push((at, wire.0, is_lost));
            });
            told
        };
        // 1,059 to 1,052 and 1,051 to 1,044; what left less than 100 ms before 1,059 may still come.
        assert!(log.mend(1_005).is_some() && log.take(1_006).is_some());
        let bits = [[0xFF; 7], [0xBF; 7]].concat();
        let reached = [4, 7, 8, 9].map(|n| (at(2 * n), 100 + n, false));
        assert_eq!(settle(&mut log, 1_059, &bits[..7]), reached);
        // 1,005 came damaged, and what was sent later mended it.
        let octets = (4..10).map(|n| 100 + n).sum();
        let settled = SettledCounts {
            datagrams: 6,
            wire: ByteCount(octets),
            mended_later: 1,
        };
        assert_eq!(log.settled, settled);
        // 1,052 is settled, and mended only afterwards.
        assert!(log.mend(1_052).is_some());
        settle(&mut log, 1_059, &[0xFE]);
        assert_eq!(log.settled.mended_later, 1);
        settle(&mut log, 1_059, &[0xFF]);
        settle(&mut log, 1_059, &[0xFF]);
        assert_eq!(log.settled.mended_later, 2);
        log.unsettled = 0;
        let told = settle(&mut log, 1_059, &bits);
        let expected = (0..10).filter(|n| ![5, 6].contains(n));
        let expected = expected.map(|n| (at(2 * n), 100 + n, n == 2));
        assert_eq!(told, expected.collect::<Vec<_>>());
        assert_eq!(settle(&mut log, 1_059, &bits), [], "told before");
        assert_eq!(settle(&mut log, 1_200, &bits), [], "it never left");
        // Where many leave at once, 256 later ones settle one.
        let mut quick = LeftLog::default();
        for n in 0..300 {
            quick.on_left(at(0), 1_000 + n, ByteCount(1), None);
        }
        assert_eq!(settle(&mut quick, 1_299, &[0xFF; 40]).len(), 44);
    }

    #[test]
    fn what_left_under_keys_that_are_out_of_use_waits_for_their_own_map() {
        let at = |millis| Instant::START + Duration::from_millis(millis);
        let mut log = LeftLog::default();
        for n in 0..40 {
            log.on_left(at(10 * n), n, ByteCount(1), None);
        }
        // Under the keys before 0 to 19 left, and 16 to 19 met an outage; 20 to 39 left under those in use.
        let before = ArrivalMap {
            first: 0,
            end: 20,
            is_final: true,
            newest: 15,
            bits: &[0xFF, 0xFF],
        };
        let in_use = ArrivalMap {
            first: 20,
            end: 40,
            is_final: false,
            newest: 39,
            bits: &[0xFF, 0xFF, 0xFF],
        };
        let settle = |log: &mut LeftLog, map| {
            let mut told = Vec::new();
            log.settle(map, |_, _, is_lost| told.push(is_lost));
            told
        };
        assert_eq!(
            settle(&mut log, in_use),
            [],
            "that of the others comes first"
        );
        let expected: Vec<bool> = (0..20).map(|n| n >= 16).collect();
        assert_eq!(settle(&mut log, before), expected);
        assert_eq!(settle(&mut log, in_use), [false; 10]);
        // It was lost each time: those of the keys before are left out.
        let mut lost = LeftLog::default();
        for n in 0..30 {
            lost.on_left(
                at(if n < 20 { n } else { 5_020 + n }),
                n,
                ByteCount(1),
                None,
            );
        }
        let late = ArrivalMap {
            end: 30,
            newest: 29,
            ..in_use
        };
        assert_eq!(settle(&mut lost, late), []);
        assert_eq!(lost.unsettled, 20);
    }

    #[test]
    fn each_datagram_is_found_once_while_it_is_young_and_among_the_last() {
        let mut log = LeftLog::default();
        let at = |millis| Instant::START + Duration::from_millis(millis);
        let wire = ByteCount(1_500);
        let tpdu = |n| Some((ConnectionId(1), TpduSeq(n)));
        for n in 0..70_000_u32 {
            log.on_left(at(0), 2 * u64::from(n), wire, tpdu(n));
        }
        assert_eq!(log.left.len(), LEFT_MAX);
        assert_eq!(log.take(0), None, "too many left since");
        assert_eq!(log.take(139_997), None, "no such number");
        assert_eq!(log.take(140_000), None, "it has not left yet");
        assert_eq!(log.take(139_998).and_then(|left| left.tpdu), tpdu(69_999));
        assert_eq!(log.take(139_998), None, "told twice");
        assert_eq!(log.mend(139_998), None, "it is sent again");
        for is_first in [true, false] {
            let mending = log.mend(139_996);
            assert_eq!(
                mending.map(|(left, first)| (left.tpdu, first)),
                Some((tpdu(69_998), is_first))
            );
        }
        assert!(log.take(139_996).is_some_and(|left| left.is_mending));
        log.on_left(at(10_001), 140_000, wire, None);
        assert_eq!(log.left.len(), 1, "the others are old");
        assert!(
            log.left.capacity() <= 2 * KEPT_EMPTY,
            "{}",
            log.left.capacity()
        );
        log.on_left(at(10_001), 139_000, wire, None);
        assert_eq!(log.left.len(), 1, "numbers rise");
    }
}
