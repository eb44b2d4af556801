//! Arrival maps: which of the peer's datagrams arrived, so that the peer knows what the link lost.
//!
//! Acknowledgements are lost as well, and then what arrived is held for lost: an end that hears nothing else finds other causes
//! of loss than the link has ([ADR 0033](../../../../docs/adr/0033-damaged-datagrams-count.md), section 7). The frame 0x18 of wire 2
//! has a bit for each counter of late, which is what the replay window knows anyway. Each counter is in several maps.
//!
//! # Promises
//! - A map leaves once a second while data comes, and whenever so many counters are new; more rarely where the way back is narrow.
//! - Datagrams without data cause none: two ends do not keep each other talking.

use super::path_acks::{Asks, WayBack};
use super::path_slot::PathSlot;
use super::seal::{ArrivedUnder, Numbered};
use super::wire::{ArrivedCounters, Capability, MAP_BYTES_MAX};
use fulmar_proto::machine::ArrivalMap;
use fulmar_proto::units::{Duration, Instant};

const CAPABILITY: &str = "arrival-maps";
const VERSION: &str = "1";

/// The time between two maps, and that on a narrow way back in times of a path ack's.
const EVERY: Duration = Duration::from_secs(1);
const EVERY_PATH_ACKS: u32 = 8;
/// New counters after which a map leaves sooner.
const NEW_MAX: u64 = 256;
/// The maps that have each counter, if not so many are new.
const MAPS: usize = 4;
/// The maps of what came under keys that are out of use.
const FINAL_MAPS: u8 = 3;
/// Keys that are out of use of which maps leave: an outage may take several handshakes.
pub(super) const BEFORE: usize = 2;

/// The capability of an end that tells peers that say the same which of their datagrams arrived, in wire 2.
pub fn arrival_maps() -> Capability {
    Capability {
        name: CAPABILITY.to_owned(),
        value: VERSION.to_owned(),
        must_agree: false,
    }
}

/// Whether two ends that say this tell each other.
pub(super) fn tell_arrivals(ours: &[Capability], theirs: &[Capability]) -> bool {
    let says = |said: &[Capability]| {
        let mut each = said.iter();
        each.any(|one| one.name == CAPABILITY && one.value == VERSION)
    };
    says(ours) && says(theirs)
}

/// The maps of datagrams that came under one pair of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ToldOfKeys {
    /// Our index of the keys.
    keys: u32,
    /// The counters behind the largest ones of the maps that left last.
    told: [u64; MAPS],
    /// Maps that are still to leave, if the keys are out of use.
    left: u8,
}

impl ToldOfKeys {
    fn take<'a>(
        &mut self,
        keys: ArrivedUnder<'_>,
        bits: &'a mut [u8; MAP_BYTES_MAX],
    ) -> Option<ArrivedCounters<'a>> {
        let next = keys.next_expected();
        let largest = next.checked_sub(1)?;
        let [.., oldest] = self.told;
        let counters = usize::try_from(next.saturating_sub(oldest)).unwrap_or(usize::MAX);
        if self.told[0] != next {
            self.told.rotate_right(1);
            self.told[0] = next;
        }
        let octets = counters.div_ceil(8).min(MAP_BYTES_MAX);
        for (octet, back) in bits[..octets].iter_mut().zip((0_u64..).step_by(8)) {
            *octet = (0..8).fold(0, |octet, bit| {
                let counter = largest.checked_sub(back + bit);
                let has = counter.is_some_and(|counter| keys.has_come(counter));
                octet << 1 | u8::from(has)
            });
        }
        Some(ArrivedCounters {
            slot: PathSlot::FIRST,
            keys: keys.local,
            largest: u32::try_from(largest).ok()?,
            bits: &bits[..octets],
        })
    }
}

/// The maps that are told to one peer of the datagrams on its first path.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrivalMaps {
    is_agreed: bool,
    in_use: ToldOfKeys,
    /// The keys before, the newest ones first.
    before: [ToldOfKeys; BEFORE],
    every: Duration,
    due: Option<Instant>,
    /// The peer's index of the keys in use when its last map of such came.
    told_of: Option<u32>,
}

impl ArrivalMaps {
    /// Notes whether both ends tell each other.
    pub(super) fn agree(&mut self, are_told: bool) {
        self.is_agreed = are_told;
        self.every = self.every.max(EVERY);
        if !are_told {
            self.due = None;
        }
    }

    /// Notes that a datagram came whose contents ask for an answer, while these keys are in use.
    pub(super) fn on_asked(&mut self, now: Instant, asks: Asks, keys: ArrivedUnder<'_>) {
        if asks != Asks::Often {
            return;
        }
        if self.in_use.keys != keys.local {
            // What met an outage left under the keys before, and nobody else tells of it.
            self.before.rotate_right(1);
            let are_first = self.in_use == ToldOfKeys::default();
            self.before[0] = ToldOfKeys {
                left: if are_first { 0 } else { FINAL_MAPS },
                ..self.in_use
            };
            self.in_use = ToldOfKeys {
                keys: keys.local,
                ..ToldOfKeys::default()
            };
        }
        let next = keys.next_expected();
        let new = next.saturating_sub(self.in_use.told[0]);
        if new >= NEW_MAX && self.every == EVERY {
            self.due = Some(now);
        } else if self.due.is_none() {
            self.due = Some(now + self.every);
        }
    }

    pub(super) const fn are_agreed(&self) -> bool {
        self.is_agreed
    }

    pub(super) const fn next_at(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|at| at <= now)
    }

    /// Whether a map that came of the peer's keys `remote` is the last word on them: they are out of use, and the peer has told
    /// of those in use. A map that it sent before it saw these says nothing of what was still under way.
    pub(super) fn is_final(&mut self, remote: u32, is_in_use: bool) -> bool {
        if is_in_use {
            self.told_of = Some(remote);
        }
        self.told_of.is_some_and(|told| told != remote)
    }

    /// Our indices of the keys before of which a map is due, too, the oldest first.
    pub(super) fn take_before(&mut self) -> [Option<u32>; BEFORE] {
        let mut due = [None; BEFORE];
        for (due, told) in due.iter_mut().zip(self.before.iter_mut().rev()) {
            if let Some(left) = told.left.checked_sub(1) {
                told.left = left;
                *due = Some(told.keys);
            }
        }
        due
    }

    /// The map that is due of what came under `keys`, those in use or some before, whose bits are written to `bits`; `None` if
    /// nothing came under them.
    pub(super) fn take<'a>(
        &mut self,
        keys: ArrivedUnder<'_>,
        bits: &'a mut [u8; MAP_BYTES_MAX],
    ) -> Option<ArrivedCounters<'a>> {
        let told = if self.in_use.keys == keys.local {
            &mut self.in_use
        } else {
            let mut before = self.before.iter_mut();
            before.find(|told| told.keys == keys.local)?
        };
        told.take(keys, bits)
    }

    /// Notes that maps leave by this way.
    pub(super) fn on_told(&mut self, way: WayBack) {
        self.due = None;
        self.every = EVERY.max(way.pause() * EVERY_PATH_ACKS);
    }
}

impl<'a> ArrivedCounters<'a> {
    /// The same by the numbers of what left under those keys; `None` if it is about what never left. A final map also settles
    /// what left behind its newest number.
    pub(super) fn numbered(&self, numbered: Numbered, is_final: bool) -> Option<ArrivalMap<'a>> {
        let newest = numbered.number(u64::from(self.largest))?;
        let (first, end) = numbered.range();
        Some(ArrivalMap {
            first,
            end: if is_final { end } else { newest + 1 },
            is_final,
            newest,
            bits: self.bits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::cipher::Cipher;
    use super::super::dialect::Wire;
    use super::super::handshake::Agreed;
    use super::super::seal::Keypair;
    use super::*;

    #[test]
    fn maps_of_two_keys_out_of_use_leave_three_times_each_the_oldest_first() {
        let mut maps = ArrivalMaps::default();
        for local in [3, 5, 7] {
            let keys = Keypair::new(
                Agreed {
                    cipher: Cipher::Clear,
                    wire: Wire::Two,
                },
                local,
                100 + local,
                Instant::START,
                false,
            );
            maps.on_asked(Instant::START, Asks::Often, keys.arrived());
            if local == 5 {
                assert_eq!(maps.take_before(), [None, Some(3)]);
            }
        }
        assert_eq!(maps.take_before(), [Some(3), Some(5)]);
        assert_eq!(maps.take_before(), [Some(3), Some(5)]);
        assert_eq!(maps.take_before(), [None, Some(5)]);
        assert_eq!(maps.take_before(), [None, None]);
    }

    #[test]
    fn a_map_is_the_last_word_on_keys_once_the_peer_has_told_of_those_that_followed() {
        let mut maps = ArrivalMaps::default();
        assert!(!maps.is_final(7, true));
        // New keys are in use here; the peer sent this before it saw any of them, and much is under way.
        assert!(!maps.is_final(7, false));
        assert!(!maps.is_final(9, true));
        assert!(maps.is_final(7, false));
    }
}
