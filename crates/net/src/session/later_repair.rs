//! Repair that is sent later: the memory of both ends for datagrams that arrive damaged beyond repair.
//!
//! A receiver keeps such a datagram and claims it. Its sender keeps what it sealed lately, and answers a claim by further parity,
//! which mends what was kept, where that takes fewer octets than sending the contents again
//! ([ADR 0033](../../../../docs/adr/0033-damaged-datagrams-count.md), section 8).
//!
//! # Promises
//! - Both memories are bounded in octets and in time: [`SEALED_OCTETS_MAX`] of what left, [`DAMAGED_MAX`] datagrams and
//!   [`DAMAGED_OCTETS_MAX`] of what came, [`KEPT`].
//! - A datagram has further parity [`ROUNDS_MAX`] times at most, then its contents are sent again. So are those of a datagram that
//!   the receiver has no room for.
//! - Where more is under way than is kept, the sender knows the share that is kept ([`LaterRepair::kept_share`]), and chooses its
//!   first parity by that.
//! - Nobody vouches for what is kept: the tag decides when it is mended.

use super::damage_reports::tells;
use super::wire::{Capability, FurtherPart};
use fulmar_proto::damage::further_steps;
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::units::{BitErrorRate, Duration, FecStrength, Instant};
use std::collections::VecDeque;

const CAPABILITY: &str = "parity-follows";
const VERSION: &str = "1";

/// Octets of sealed datagrams that are kept: 330 ms at 100 mbit. What is older is sent again when it is claimed.
const SEALED_OCTETS_MAX: usize = 4 << 20;
/// Damaged datagrams of a peer that are kept, and their octets, further parity included.
const DAMAGED_MAX: usize = 256;
const DAMAGED_OCTETS_MAX: usize = 384 << 10;
/// The time beside a round trip from the departure of a datagram until further parity for it has come: two claims are 10 ms apart.
const CLAIM_LATE: Duration = Duration::from_millis(20);
/// The time for which anything is kept.
const KEPT: Duration = Duration::from_secs(2);
/// The times that further parity is sent for one datagram.
const ROUNDS_MAX: u8 = 2;

/// The capability of an end that keeps datagrams beyond repair until further parity comes, and sends it, to an end that says the
/// same and [`damaged`](super::damaged).
pub fn parity_follows() -> Capability {
    Capability {
        name: CAPABILITY.to_owned(),
        value: VERSION.to_owned(),
        must_agree: false,
    }
}

/// Whether two ends that say this mend later what is beyond repair.
pub(super) fn mend_later(ours: &[Capability], theirs: &[Capability]) -> bool {
    let says = |said: &[Capability]| {
        let mut each = said.iter();
        tells(said) && each.any(|one| one.name == CAPABILITY && one.value == VERSION)
    };
    says(ours) && says(theirs)
}

/// A datagram that left.
#[derive(Debug)]
struct SealedCopy {
    /// Our index of the keys that it left under.
    keys: u32,
    number: u64,
    counter: u32,
    words: FecStrength,
    /// The octets that its parity covers, and the parity.
    region: Vec<u8>,
    /// Steps of further parity that left, and how often.
    steps: usize,
    rounds: u8,
    at: Instant,
}

/// A datagram that left, by its names.
#[derive(Clone, Copy, Debug)]
pub(super) struct SealedName {
    /// Our index of its keys.
    pub(super) keys: u32,
    /// Its number among all that left.
    pub(super) number: u64,
}

/// A datagram that came damaged beyond repair.
#[derive(Debug)]
pub(super) struct DamagedCopy {
    /// Our index of the keys that it names.
    pub(super) keys: u32,
    pub(super) counter: u32,
    pub(super) words: FecStrength,
    /// The octets that its parity covers, and the parity, as they came.
    pub(super) region: Vec<u8>,
    /// Further parity so far.
    pub(super) further: Vec<u8>,
    /// Wrong octets that the estimate knows of.
    pub(super) presumed: u32,
    pub(super) at: Instant,
}

impl DamagedCopy {
    fn octets(&self) -> usize {
        self.region.len() + self.further.len()
    }
}

/// The kept datagrams of one peer, both ways.
#[derive(Debug, Default)]
pub(super) struct LaterRepair {
    is_agreed: bool,
    sealed: VecDeque<SealedCopy>,
    sealed_octets: usize,
    /// The departure of the youngest datagram that was dropped for want of room.
    lacked: Option<Instant>,
    /// The times of further parity that left, within the last round trip.
    answered: VecDeque<Instant>,
    /// By the time at which they came.
    damaged: VecDeque<DamagedCopy>,
    damaged_octets: usize,
    mended: u64,
}

impl LaterRepair {
    /// Takes whether both ends mend later.
    pub(super) fn agree(&mut self, is_agreed: bool) {
        self.is_agreed = is_agreed;
        if !is_agreed {
            let mended = self.mended;
            *self = Self::default();
            self.mended = mended;
        }
    }

    pub(super) const fn is_agreed(&self) -> bool {
        self.is_agreed
    }

    /// Datagrams of the peer that were mended later.
    pub(super) const fn mended(&self) -> u64 {
        self.mended
    }

    pub(super) const fn on_mended(&mut self) {
        self.mended += 1;
    }

    /// Forgets what is too old to be mended.
    pub(super) fn forget_old(&mut self, now: Instant) {
        let is_old = |at: Instant| now.saturating_since(at) > KEPT;
        while self.sealed.front().is_some_and(|copy| is_old(copy.at)) {
            self.drop_sealed();
        }
        while self.damaged.front().is_some_and(|copy| is_old(copy.at)) {
            self.drop_damaged();
        }
        if self.sealed.is_empty() {
            self.sealed = VecDeque::new();
        }
    }

    fn drop_sealed(&mut self) -> Vec<u8> {
        let copy = self.sealed.pop_front();
        let region = copy.map_or_else(Vec::new, |copy| copy.region);
        self.sealed_octets -= region.len();
        region
    }

    fn drop_damaged(&mut self) {
        if let Some(copy) = self.damaged.pop_front() {
            self.damaged_octets -= copy.octets();
        }
    }

    /// The greatest share of the datagrams that leave now which both ends keep until further parity for them has come.
    pub(super) fn kept_share(&self, now: Instant, round_trip: Duration) -> f64 {
        let is_under_way = |at: Instant| at + round_trip + CLAIM_LATE > now;
        if self.lacked.is_some_and(is_under_way) {
            return 0.0;
        }
        let gone = self.sealed.partition_point(|copy| !is_under_way(copy.at));
        let under_way = self.sealed.len() - gone;
        if under_way <= DAMAGED_MAX {
            return 1.0;
        }
        DAMAGED_MAX as f64 / under_way as f64
    }

    /// Whether the receiver has room for another datagram that it claims: it keeps those that it claimed within a round trip.
    pub(super) fn has_room_there(&mut self, now: Instant, round_trip: Duration) -> bool {
        let is_over = |at: &Instant| *at + round_trip + CLAIM_LATE <= now;
        while self.answered.front().is_some_and(is_over) {
            self.answered.pop_front();
        }
        self.answered.len() < DAMAGED_MAX
    }

    /// Keeps a datagram that leaves: what its parity covers, and the parity.
    pub(super) fn keep_sealed(
        &mut self,
        now: Instant,
        name: SealedName,
        (counter, words): (u64, FecStrength),
        region: &[u8],
    ) {
        let counter = u32::try_from(counter);
        let (true, Ok(counter)) = (self.is_agreed, counter) else {
            return;
        };
        let mut memory = Vec::new();
        while self.sealed_octets + region.len() > SEALED_OCTETS_MAX
            && let Some(oldest) = self.sealed.front()
        {
            self.lacked = Some(oldest.at);
            memory = self.drop_sealed();
        }
        // Numbers rise; whatever else would make the search below wrong.
        let last = self.sealed.back();
        if last.is_some_and(|last| last.number >= name.number) {
            return;
        }
        memory.clear();
        memory.extend_from_slice(region);
        self.sealed_octets += memory.len();
        self.sealed.push_back(SealedCopy {
            keys: name.keys,
            number: name.number,
            counter,
            words,
            region: memory,
            steps: 0,
            rounds: 0,
            at: now,
        });
    }

    /// Appends further parity for a datagram that the peer claimed, at this rate of wrong bits. `false`: its contents are better
    /// sent again.
    pub(super) fn write_further(
        &mut self,
        now: Instant,
        name: SealedName,
        rate: BitErrorRate,
        out: &mut Vec<u8>,
    ) -> bool {
        let place = (self.sealed).partition_point(|copy| copy.number < name.number);
        let copy = self.sealed.get_mut(place);
        let is_it = |copy: &&mut SealedCopy| {
            copy.number == name.number && copy.keys == name.keys && copy.rounds < ROUNDS_MAX
        };
        let Some(copy) = copy.filter(is_it) else {
            return false;
        };
        let codewords = PacketCode::step_bytes(copy.region.len());
        let parity = copy.words.parity_bytes() / codewords.max(1) + copy.steps;
        let Some(steps) = further_steps(rate, copy.region.len(), parity) else {
            return false;
        };
        let (Ok(codewords), Ok(first)) = (u8::try_from(codewords), u8::try_from(copy.steps)) else {
            return false;
        };
        let mut octets = Vec::new();
        let steps = copy.steps..copy.steps + steps;
        PacketCode::append_further(&copy.region, copy.words, steps.clone(), &mut octets);
        if octets.is_empty() {
            return false;
        }
        copy.steps = steps.end;
        copy.rounds += 1;
        self.answered.push_back(now);
        let counter = copy.counter;
        let part = FurtherPart {
            counter,
            codewords,
            first,
            octets: &octets,
        };
        part.write(out);
        true
    }

    /// Keeps a datagram that came damaged, unless that was done. Where there is no room, it takes the place of those for which
    /// further parity would have come by now; if there are none, it is not kept, so that it drops none that is about to be mended.
    pub(super) fn keep_damaged(&mut self, now: Instant, round_trip: Duration, copy: DamagedCopy) {
        let is_it = |other: &DamagedCopy| (other.keys, other.counter) == (copy.keys, copy.counter);
        if !self.is_agreed || self.damaged.iter().any(is_it) {
            return;
        }
        let is_over = |at: Instant| at + round_trip + CLAIM_LATE <= now;
        while self.damaged.len() >= DAMAGED_MAX
            || self.damaged_octets + copy.octets() > DAMAGED_OCTETS_MAX
        {
            if !self
                .damaged
                .front()
                .is_some_and(|oldest| is_over(oldest.at))
            {
                return;
            }
            self.drop_damaged();
        }
        self.damaged_octets += copy.octets();
        // One that is kept for the second time is as old as it was.
        let place = self.damaged.partition_point(|other| other.at <= copy.at);
        self.damaged.insert(place, copy);
    }

    /// Takes out the datagram that further parity is for, if it is kept and the parity follows what was there before. The
    /// parity came under these keys of ours.
    pub(super) fn take_damaged(
        &mut self,
        keys: u32,
        part: &FurtherPart<'_>,
    ) -> Option<DamagedCopy> {
        // No parity changes nothing, and would cost a decoding all the same.
        if part.octets.is_empty() {
            return None;
        }
        let codewords = usize::from(part.codewords);
        let place = self.damaged.iter().rposition(|copy| {
            (copy.keys, copy.counter) == (keys, part.counter)
                && PacketCode::step_bytes(copy.region.len()) == codewords
                && copy.further.len() == codewords * usize::from(part.first)
        })?;
        let mut copy = self.damaged.remove(place)?;
        self.damaged_octets -= copy.octets();
        copy.further.extend_from_slice(part.octets);
        Some(copy)
    }
}

#[cfg(test)]
mod tests;
