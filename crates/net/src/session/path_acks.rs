//! Path acks: what arrived of the peer's datagrams, told so often that the peer can find its rate by it.
//!
//! The frame 0x10 of wire 2 has the counter of the newest datagram that arrived, the time since, the clock, and the
//! octets that arrived until now. All are totals: a lost one costs freshness only
//! ([ADR 0032](../../../../docs/adr/0032-the-rate-is-found.md)).
//!
//! # Promises
//! - Datagrams that hold nothing but the session's own messages are counted, and cause no path ack: two ends do not
//!   keep each other talking.
//! - After a silence each of the first datagrams is told of, then each [`EVERY`], or more rarely where the way back is
//!   narrow.

use super::keyring::Slot;
use super::path_slot::PathSlot;
use super::seal::{Keypair, Numbered};
use super::wire::{Capability, PathAck};
use crate::session::cipher::Number;
use fulmar_proto::machine;
use fulmar_proto::machine::AckedWays;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};

const CAPABILITY: &str = "path-ack";
/// The value of an end that sends path acks to who asks for them, and asks for them.
const ASKS: &str = "1";
/// The value of an end that sends them to who asks, and needs none.
const SENDS: &str = "sends";

/// The datagrams after a silence each of which is told of: what leaves before the first train, the train and its proof.
const EACH: u32 = 64;
/// The silence after which they are counted anew.
const SILENCE: Duration = Duration::from_secs(1);
/// The time between two path acks, if the way back carries them easily.
const EVERY: Duration = Duration::from_millis(10);
/// The time between two path acks while nothing but acknowledgements comes.
const EVERY_FEEDBACK: Duration = Duration::from_millis(100);
/// The part of the way back's rate that path acks should take is one in so many ...
const RATE_PART: u64 = 50;
/// ... unless there would be less than two in a round trip; then it is one in so many at most.
const RATE_PART_MOST: u64 = 4;
/// The bits of a path ack with all headers of IPv4.
const BITS: u64 = 8 * 69;

/// The capability of an end that sends path acks, in wire 2, to peers whose rate is found by them. Its hello asks for
/// the peer's where the machine inside [finds its rate](machine::Carried::finds_rate) towards it.
pub fn path_acks() -> Capability {
    Capability {
        name: CAPABILITY.to_owned(),
        value: ASKS.to_owned(),
        must_agree: false,
    }
}

/// Makes the capability say whether this end asks for path acks, if it is among `capabilities`.
pub(super) fn say(capabilities: &mut [Capability], asks: bool) {
    let value = if asks { ASKS } else { SENDS };
    let ours = capabilities.iter_mut();
    for capability in ours.filter(|one| one.name == CAPABILITY) {
        value.clone_into(&mut capability.value);
    }
}

/// An end's word about path acks: whether it sends them, and whether it asks for them.
fn said_by(capabilities: &[Capability]) -> (bool, bool) {
    let has = |value: &str| {
        let mut said = capabilities.iter();
        said.any(|one| one.name == CAPABILITY && one.value == value)
    };
    (has(ASKS) || has(SENDS), has(ASKS))
}

/// The contents of a datagram, as far as they want a path ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asks {
    /// The session's own messages.
    Nothing,
    /// Acknowledgements.
    Rarely,
    /// Data.
    Often,
}

/// The newest datagram that arrived.
#[derive(Clone, Copy, Debug)]
struct Newest {
    /// Our index of the keys that it came under.
    keys: u32,
    counter: u64,
    at: Instant,
}

/// The path acks shared with one peer, on one path.
#[derive(Clone, Debug, Default)]
pub(super) struct PathAcks {
    /// The place in which what leaves is counted, and that of the peer's for what arrives.
    place: PathSlot,
    theirs: PathSlot,
    /// Whether this end asked for path acks in its last hello.
    asked: bool,
    ways: AckedWays,
    /// Octets that arrived, headers included, modulo 2^32.
    octets: u32,
    marks: u16,
    newest: Option<Newest>,
    asked_at: Option<Instant>,
    /// Datagrams that are still to be told of one by one.
    each: u32,
    every: Duration,
    told_at: Option<Instant>,
    due: Option<Instant>,
    /// The number of the datagram that leaves next, whatever keys it is sealed under.
    next_number: u64,
    /// The numbers of what left under the keys of the datagram that is being taken.
    numbered: Option<Numbered>,
    /// The newest of what left here that the peer told of.
    told_of: Option<u64>,
}

impl PathAcks {
    /// Those on the path in this place.
    pub(super) fn of_place(place: PathSlot) -> Self {
        Self {
            place,
            ..Self::default()
        }
    }

    /// The place in which the peer counts its datagrams on this path.
    pub(super) const fn theirs(&self) -> PathSlot {
        self.theirs
    }

    /// Notes the place in which the peer counts what arrives.
    pub(super) fn hear(&mut self, theirs: PathSlot) {
        if self.theirs != theirs {
            self.theirs = theirs;
            self.newest = None;
        }
    }

    /// Sets the directions in which there are path acks, as agreed on for the first path.
    pub(super) fn set_ways(&mut self, ways: AckedWays) {
        self.ways = ways;
        self.every = self.every.max(EVERY);
        if !ways.back {
            self.due = None;
        }
    }

    /// The directions in which there are path acks.
    pub(super) const fn ways(&self) -> AckedWays {
        self.ways
    }

    /// The numbers that the datagram which is being taken knows of.
    pub(super) const fn read_under(&mut self, numbered: Option<Numbered>) {
        self.numbered = numbered;
    }

    /// Notes whether the hello that leaves asks for path acks.
    pub(super) const fn on_hello(&mut self, asks: bool) {
        self.asked = asks;
    }

    /// Notes the capabilities of both ends when keys were agreed on, whether the peer names damaged datagrams, and whether it tells
    /// of each whether it arrived. Returns the directions in which there are path acks.
    pub(super) fn agree(
        &mut self,
        ours: &[Capability],
        theirs: &[Capability],
        (is_in_two, names_damaged, is_mapped): (bool, bool, bool),
    ) -> AckedWays {
        let ((we_send, _), (they_send, they_ask)) = (said_by(ours), said_by(theirs));
        self.ways = AckedWays {
            out: is_in_two && we_send && self.asked && they_send,
            back: is_in_two && we_send && they_ask,
            damaged: names_damaged,
            mapped: is_mapped,
        };
        self.set_ways(self.ways);
        self.ways
    }

    /// Sets whether the peer names damaged datagrams. Returns the directions if that changed them.
    pub(super) fn name_damaged(&mut self, are_named: bool) -> Option<AckedWays> {
        let changed = core::mem::replace(&mut self.ways.damaged, are_named) != are_named;
        changed.then_some(self.ways)
    }

    /// Counts a datagram that was sealed under `keys`. Returns its number among all that left, if the peer tells of it.
    pub(super) fn on_sealed(&mut self, keys: &mut Keypair) -> Option<u64> {
        let number = keys.note_number(self.place, self.next_number)?;
        self.next_number = number + 1;
        (self.ways.out || self.ways.damaged || self.ways.mapped).then_some(number)
    }

    /// Counts a genuine datagram that arrived at `at` under our keys `keys`.
    pub(super) fn on_arrived(
        &mut self,
        at: Instant,
        (keys, slot): (u32, Slot),
        number: Number,
        octets: ByteCount,
    ) {
        let octets = u32::try_from(octets.0 & u64::from(u32::MAX)).unwrap_or_default();
        self.octets = self.octets.wrapping_add(octets);
        let counter = number.counter;
        let later = |newest: Newest| newest.keys != keys || counter > newest.counter;
        if number.slot == self.theirs && slot != Slot::Previous && self.newest.is_none_or(later) {
            self.newest = Some(Newest { keys, counter, at });
        }
    }

    pub(super) const fn on_marked(&mut self) {
        self.marks = self.marks.wrapping_add(1);
    }

    /// Notes that the contents of the datagram that was counted last ask for a path ack.
    pub(super) fn on_asked(&mut self, now: Instant, asks: Asks) {
        if !self.ways.back || asks == Asks::Nothing {
            return;
        }
        let after = |every| self.told_at.map_or(now, |at| now.max(at + every));
        let mut due = after(self.every.max(EVERY_FEEDBACK));
        if asks == Asks::Often {
            let silent = |at: Instant| now.saturating_since(at) > SILENCE;
            self.each = if self.asked_at.is_none_or(silent) {
                EACH
            } else {
                self.each.saturating_sub(1)
            };
            self.asked_at = Some(now);
            due = if self.each > 0 {
                now
            } else {
                after(self.every)
            };
        }
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|at| at <= now)
    }

    /// The path ack that is due, to be sealed under the keys of `way`; `None` if nothing came under them.
    pub(super) fn take(&mut self, now: Instant, way: WayBack) -> Option<PathAck> {
        self.due = None;
        let newest = self.newest.filter(|newest| newest.keys == way.keys)?;
        self.told_at = Some(now);
        self.every = way.pause();
        Some(PathAck {
            slot: self.theirs,
            largest: u32::try_from(newest.counter).ok()?,
            hold: now.saturating_since(newest.at),
            clock: now.as_wrapping_micros(),
            octets: self.octets,
            marks: self.marks,
        })
    }

    /// The number of the datagram that left with a counter, under the keys of the datagram that is being taken.
    pub(super) fn number_of(&self, counter: u64) -> Option<u64> {
        self.numbered?.number(counter)
    }

    /// Notes that the peer told of the datagram of this number. Returns whether it is newer than all before.
    pub(super) fn note_told(&mut self, number: u64) -> bool {
        let is_newer = self.told_of.is_none_or(|before| before < number);
        if is_newer {
            self.told_of = Some(number);
        }
        is_newer
    }

    /// The meaning of the peer's path ack, which is in the datagram that is being taken.
    pub(super) fn read(&self, ack: &PathAck) -> Option<machine::PathAck> {
        let numbered = self.numbered.filter(|_| self.ways.out)?;
        let is_known = ack.slot == self.place && ack.hold < PathAck::HOLD_MAX;
        let newest = numbered
            .number(u64::from(ack.largest))
            .filter(|_| is_known)?;
        Some(machine::PathAck {
            newest,
            hold: ack.hold,
            clock: ack.clock,
            octets: ack.octets,
            marks: ack.marks,
        })
    }
}

/// The way back to a peer, for small reports on its datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WayBack {
    /// Our index of the keys that the report is sealed under.
    pub(super) keys: u32,
    /// The rate that it was found to carry.
    pub(super) rate: Option<Bitrate>,
    pub(super) round_trip: Option<Duration>,
}

impl WayBack {
    /// The time between two path acks, or other small reports.
    pub(super) fn pause(self) -> Duration {
        let part = |of: u64| {
            let rate = self.rate.map(Bitrate::as_bits_per_second);
            let micros = rate.and_then(|rate| (BITS * of * 1_000_000).checked_div(rate));
            Duration::from_micros(micros.unwrap_or_default())
        };
        let twice_in_a_round_trip = self.round_trip.unwrap_or_default() / 2;
        EVERY
            .max(part(RATE_PART).min(twice_in_a_round_trip))
            .max(part(RATE_PART_MOST).min(SILENCE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    fn way(keys: u32) -> WayBack {
        WayBack {
            keys,
            ..WayBack::default()
        }
    }

    fn pause(rate: Option<Bitrate>, round_trip: Option<Duration>) -> Duration {
        let way = WayBack {
            keys: 0,
            rate,
            round_trip,
        };
        way.pause()
    }

    const BOTH: AckedWays = AckedWays {
        out: true,
        back: true,
        damaged: false,
        mapped: false,
    };
    const NONE: AckedWays = AckedWays {
        out: false,
        back: false,
        damaged: false,
        mapped: false,
    };

    fn agreed() -> PathAcks {
        let said = [path_acks()];
        let mut acks = PathAcks::default();
        acks.on_hello(true);
        assert_eq!(acks.agree(&said, &said, (true, false, false)), BOTH);
        acks
    }

    fn arrive(acks: &mut PathAcks, now: Instant, counter: u64, asks: Asks) {
        let slot = PathSlot::FIRST;
        let number = Number { slot, counter };
        acks.on_arrived(now, (1, Slot::Current), number, ByteCount(1_000));
        acks.on_asked(now, asks);
    }

    #[test]
    fn the_first_are_told_of_one_by_one_and_then_a_hundred_a_second() {
        let mut acks = agreed();
        let mut told = Vec::new();
        for n in 0..2_000_u64 {
            let now = at(n);
            arrive(&mut acks, now, n, Asks::Often);
            if acks.is_due(now) {
                let ack = acks.take(now, way(1)).expect("something came");
                assert_eq!((u64::from(ack.largest), ack.hold), (n, Duration::ZERO));
                assert_eq!(u64::from(ack.octets), 1_000 * (n + 1));
                told.push(n);
            }
        }
        assert_eq!(told[..65], (0..64).chain([73]).collect::<Vec<_>>()[..]);
        assert_eq!(told.len(), 64 + 193);
        arrive(&mut acks, at(3_500), 2_000, Asks::Often);
        assert!(acks.is_due(at(3_500)));
    }

    #[test]
    fn what_comes_in_between_is_told_of_when_it_is_time() {
        let mut acks = agreed();
        for n in 0..72 {
            arrive(&mut acks, at(n), n, Asks::Often);
            if acks.is_due(at(n)) {
                acks.take(at(n), way(1));
            }
        }
        assert_eq!(acks.next_at(), Some(at(73)));
        let ack = acks.take(at(73), way(1)).expect("something came");
        assert_eq!((ack.largest, ack.hold), (71, Duration::from_millis(2)));
        assert_eq!(acks.next_at(), None, "nothing new");
    }

    #[test]
    fn what_waited_to_be_handled_is_told_of_as_if_it_had_not() {
        let mut acks = agreed();
        let slot = PathSlot::FIRST;
        for (counter, came) in [(0, 2), (1, 5)] {
            let number = Number { slot, counter };
            acks.on_arrived(at(came), (1, Slot::Current), number, ByteCount(100));
            acks.on_asked(at(9), Asks::Often);
        }
        let ack = acks.take(at(9), way(1)).expect("something came");
        assert_eq!((ack.largest, ack.hold), (1, Duration::from_millis(4)));
        assert_eq!(ack.clock, 9_000);
    }

    #[test]
    fn acknowledgements_are_told_of_rarely_and_the_session_s_own_messages_never() {
        let mut acks = agreed();
        let mut told = Vec::new();
        for n in 0..1_000 {
            arrive(&mut acks, at(n), n, Asks::Rarely);
            arrive(&mut acks, at(n), n, Asks::Nothing);
            if acks.is_due(at(n)) {
                acks.take(at(n), way(1));
                told.push(n);
            }
        }
        assert_eq!(told, (0..10).map(|n| 100 * n).collect::<Vec<_>>());
        let mut silent = agreed();
        arrive(&mut silent, at(0), 0, Asks::Nothing);
        assert_eq!(silent.next_at(), None);
    }

    #[test]
    fn a_narrow_way_back_carries_fewer() {
        let kbit = |kbit: u64| Some(Bitrate::from_bits_per_second(1_000 * kbit));
        let millis = |millis| Some(Duration::from_millis(millis));
        assert_eq!(pause(None, None), EVERY);
        assert_eq!(pause(kbit(10_000), millis(600)), EVERY);
        // A fiftieth of 100 kbit are 3.6 a second.
        assert_eq!(pause(kbit(100), millis(2_000)), Duration::from_millis(276));
        assert_eq!(pause(kbit(100), millis(300)), Duration::from_millis(150));
        // No more than a quarter, whatever the round trip.
        assert_eq!(pause(kbit(64), millis(20)), Duration::from_micros(34_500));
        assert_eq!(pause(Some(Bitrate::ZERO), None), EVERY);
        assert_eq!(pause(kbit(1), millis(20)), SILENCE);
    }

    #[test]
    fn an_end_whose_rate_is_told_sends_path_acks_to_who_asks_and_gets_none() {
        let mut told = [path_acks()];
        say(&mut told, false);
        let asks = [path_acks()];
        let ways = |ours: &[Capability], asked, theirs: &[Capability]| {
            let mut acks = PathAcks::default();
            acks.on_hello(asked);
            acks.agree(ours, theirs, (true, false, false))
        };
        assert_eq!(ways(&told, false, &told), NONE);
        let (out, back) = (true, true);
        assert_eq!(ways(&told, false, &asks), AckedWays { back, ..NONE });
        assert_eq!(ways(&asks, true, &told), AckedWays { out, ..NONE });
        assert_eq!(ways(&asks, true, &asks), BOTH);
        // What another version says is not asked for.
        let mut other = [path_acks()];
        "2".clone_into(&mut other[0].value);
        assert_eq!(ways(&asks, true, &other), NONE);
    }

    #[test]
    fn only_a_newer_datagram_than_all_before_is_news() {
        let mut acks = agreed();
        let is_news = [7, 7, 5, 8].map(|number| acks.note_told(number));
        assert_eq!(is_news, [true, false, false, true]);
    }

    #[test]
    fn nothing_is_told_without_the_word_of_both_or_under_keys_that_nothing_came_under() {
        for (ours, theirs, is_in_two) in [
            (true, false, true),
            (false, true, true),
            (true, true, false),
        ] {
            let said = |is_said: bool| is_said.then(path_acks).into_iter().collect::<Vec<_>>();
            let mut acks = PathAcks::default();
            acks.on_hello(true);
            assert_eq!(
                acks.agree(&said(ours), &said(theirs), (is_in_two, false, false)),
                NONE
            );
            arrive(&mut acks, at(0), 0, Asks::Often);
            assert_eq!(acks.next_at(), None);
        }
        let mut acks = agreed();
        arrive(&mut acks, at(0), 7, Asks::Often);
        assert_eq!(acks.take(at(0), way(2)), None);
        arrive(&mut acks, at(1), 8, Asks::Often);
        assert_eq!(acks.take(at(1), way(1)).map(|ack| ack.largest), Some(8));
        // A datagram under the keys before is no news, but its octets are.
        let slot = PathSlot::FIRST;
        let late = Number { slot, counter: 900 };
        acks.on_arrived(at(2), (9, Slot::Previous), late, ByteCount(10));
        acks.on_asked(at(2), Asks::Often);
        let ack = acks.take(at(2), way(1)).expect("of the keys in use");
        assert_eq!((ack.largest, ack.octets), (8, 2_010));
    }
}
