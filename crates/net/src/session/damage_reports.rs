//! Damage reports: what became of the peer's armoured datagrams, told so that it protects them as the channel asks.
//!
//! The frame 0x16 of wire 2 has the rates of wrong bits, totals, and the counters of datagrams that were beyond repair: their
//! headers were sound or mended, so the sender knows at once what to send again
//! ([ADR 0033](../../../../docs/adr/0033-damaged-datagrams-count.md)).
//!
//! # Promises
//! - At most [`CLAIMS_MAX`] claims wait, and a report leaves every 10 ms at most, or more rarely where the way back is narrow.
//! - A claim is taken back if the datagram arrives genuine before it was told: whoever put a damaged one in front of it
//!   changed nothing.
//! - Two ends do not keep each other talking: without data, claims or another rate nothing is told.

use super::path_acks::{Asks, WayBack};
use super::path_slot::PathSlot;
use super::wire::{CLAIM_BYTES, CLAIMS_MAX, Capability, DamageReport};
use fulmar_proto::damage::{ChannelReport, SeenErrors, codewords, corrected_for_certain};
use fulmar_proto::units::{BitErrorRate, Duration, FecStrength, Instant};
use fulmar_proto::wire::aerotp::ChannelWord;

const CAPABILITY: &str = "damaged";
const VERSION: &str = "1";

/// The memory of the estimate: so many datagrams, in these bounds.
const MEMORY_DATAGRAMS: u32 = 8;
const MEMORY_MIN: Duration = Duration::from_millis(10);
const MEMORY_MAX: Duration = Duration::from_secs(2);
/// The weight of one pause between datagrams in their mean, as one in so many.
const GAP_WEIGHT: u32 = 16;
/// The time between two reports while data comes and bits are wrong, and while hardly any is.
const EVERY: Duration = Duration::from_millis(100);
const EVERY_CLEAN: Duration = Duration::from_secs(1);
/// Bits before the first report, unless they are as wrong as this: a few datagrams say little of a low rate.
const FIRST_BITS: usize = 200_000;
const FIRST_RATE: f64 = 1e-5;

/// The capability of an end that tells of damage, in wire 2, and hears of it.
pub fn damaged() -> Capability {
    Capability {
        name: CAPABILITY.to_owned(),
        value: VERSION.to_owned(),
        must_agree: false,
    }
}

/// Whether an end that says this tells of damage.
pub(super) fn tells(capabilities: &[Capability]) -> bool {
    let mut said = capabilities.iter();
    said.any(|one| one.name == CAPABILITY && one.value == VERSION)
}

/// Armoured datagrams of one direction, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamageCounts {
    /// Datagrams that arrived whole.
    pub whole: u64,
    /// Datagrams that arrived damaged and were mended.
    pub mended: u64,
    /// Datagrams that arrived damaged beyond repair.
    pub beyond_repair: u64,
    /// Octets that parity put right.
    pub corrected_symbols: u64,
}

impl DamageCounts {
    #[expect(clippy::cast_possible_truncation, reason = "they are told modulo 2^32")]
    const fn told(self) -> [u32; 4] {
        [
            self.whole as u32,
            self.mended as u32,
            self.beyond_repair as u32,
            self.corrected_symbols as u32,
        ]
    }

    /// Adds what was told since; `None` if that goes back.
    fn and(self, before: [u32; 4], told: [u32; 4]) -> Option<Self> {
        let mut grown = [0_u64; 4];
        for ((grown, before), told) in grown.iter_mut().zip(before).zip(told) {
            let by = told.wrapping_sub(before);
            *grown = (by < 1 << 31).then_some(u64::from(by))?;
        }
        let [whole, mended, beyond_repair, corrected_symbols] = grown;
        Some(Self {
            whole: self.whole + whole,
            mended: self.mended + mended,
            beyond_repair: self.beyond_repair + beyond_repair,
            corrected_symbols: self.corrected_symbols + corrected_symbols,
        })
    }
}

/// The wrong octets of a datagram beyond repair, as far as its parity tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beyond {
    /// Octets of the codewords that could be corrected, and the wrong ones among them.
    sound: (usize, u32),
    /// The codewords that could not, the octets of each, and the least number of wrong ones.
    failed: (u32, usize, u32),
}

impl Beyond {
    /// So many codewords of so many octets in all could not be corrected, with so many words; in the others so many
    /// symbols were.
    pub(super) fn codewords(octets: usize, words: FecStrength, failed: u32, symbols: u32) -> Self {
        let each = octets / codewords(octets);
        let beyond = each * usize::try_from(failed).unwrap_or(usize::MAX);
        let least = u32::try_from(corrected_for_certain(octets, words)).unwrap_or(u32::MAX);
        Self {
            sound: (octets.saturating_sub(beyond), symbols),
            failed: (failed, each, least.saturating_add(1)),
        }
    }

    /// Wrong octets for which it counts at least.
    pub(super) const fn presumed(&self) -> u32 {
        let (failed, _, least) = self.failed;
        self.sound.1.saturating_add(failed.saturating_mul(least))
    }

    /// Nothing but what is known already.
    const NOTHING: Self = Self {
        sound: (0, 0),
        failed: (0, 0, 0),
    };

    /// Nothing is known of so many octets but that more are wrong than so many words correct.
    pub(super) fn all(octets: usize, words: FecStrength) -> Self {
        let least = u32::try_from(corrected_for_certain(octets, words)).unwrap_or(u32::MAX);
        Self {
            sound: (0, 0),
            failed: (1, octets, least.saturating_add(1)),
        }
    }
}

/// A datagram beyond repair that the peer is to be told of.
#[derive(Clone, Copy, Debug)]
struct Claim {
    /// Our index of the keys that it named.
    keys: u32,
    counter: u32,
    beyond: Beyond,
}

/// The damage reports shared with one peer.
#[derive(Clone, Debug)]
pub(super) struct DamageReports {
    is_agreed: bool,
    estimate: ChannelReport,
    /// Bits that were seen, up to what the first report needs.
    bits: usize,
    /// The time of the last armoured datagram, and the mean pause between two.
    came_at: Option<Instant>,
    gap: Duration,
    inward: DamageCounts,
    outward: DamageCounts,
    /// The totals that the peer told last.
    heard: Option<[u32; 4]>,
    claims: Vec<Claim>,
    due: Option<Instant>,
    told_at: Option<Instant>,
    every: Duration,
}

impl Default for DamageReports {
    fn default() -> Self {
        Self {
            is_agreed: false,
            estimate: ChannelReport::new(MEMORY_MIN),
            bits: 0,
            came_at: None,
            gap: Duration::ZERO,
            inward: DamageCounts::default(),
            outward: DamageCounts::default(),
            heard: None,
            claims: Vec::new(),
            due: None,
            told_at: None,
            every: Duration::ZERO,
        }
    }
}

impl DamageReports {
    /// Notes the capabilities of both ends when keys were agreed on. Returns whether each tells the other.
    pub(super) fn agree(
        &mut self,
        ours: &[Capability],
        theirs: &[Capability],
        is_in_two: bool,
    ) -> bool {
        self.is_agreed = is_in_two && tells(ours) && tells(theirs);
        if !self.is_agreed {
            self.claims.clear();
            self.due = None;
        }
        self.is_agreed
    }

    /// Whether each end tells the other.
    pub(super) const fn is_agreed(&self) -> bool {
        self.is_agreed
    }

    /// Notes that the peer has started again, and counts from 0.
    pub(super) const fn begin_again(&mut self) {
        self.heard = None;
    }

    fn came(&mut self, now: Instant, octets: usize) {
        if let Some(before) = self.came_at.replace(now) {
            let gap = now
                .saturating_since(before)
                .min(MEMORY_MAX / MEMORY_DATAGRAMS);
            self.gap = (self.gap * (GAP_WEIGHT - 1) + gap) / GAP_WEIGHT;
            let memory = (self.gap * MEMORY_DATAGRAMS).clamp(MEMORY_MIN, MEMORY_MAX);
            self.estimate.set_memory(memory);
        }
        self.bits = self.bits.saturating_add(8 * octets).min(FIRST_BITS);
    }

    /// Takes an armoured datagram that arrived genuine: of these octets so many were put right. It is known by the keys that
    /// it named and its counter.
    pub(super) fn on_genuine(
        &mut self,
        now: Instant,
        (keys, counter): (u32, u64),
        octets: usize,
        symbols: u32,
    ) {
        self.came(now, octets);
        if symbols == 0 {
            self.inward.whole += 1;
        } else {
            self.inward.mended += 1;
            self.inward.corrected_symbols += u64::from(symbols);
        }
        let is_it = |claim: &Claim| claim.keys == keys && u64::from(claim.counter) == counter;
        if let Some(place) = self.claims.iter().position(is_it) {
            self.claims.swap_remove(place);
            self.inward.beyond_repair = self.inward.beyond_repair.saturating_sub(1);
        }
        let errors = SeenErrors::Counted(symbols);
        if self.estimate.on_packet(now, octets, errors) {
            self.hasten(now);
        }
    }

    /// Takes an armoured datagram beyond repair, which is known by the keys and the counter of its header.
    pub(super) fn on_beyond_repair(
        &mut self,
        now: Instant,
        (keys, counter): (u32, u64),
        beyond: Beyond,
    ) {
        let is_it = |claim: &Claim| claim.keys == keys && u64::from(claim.counter) == counter;
        if self.claims.iter().any(is_it) {
            return;
        }
        let (octets, (failed, each, _)) = (beyond.sound.0, beyond.failed);
        self.came(
            now,
            octets + each * usize::try_from(failed).unwrap_or_default(),
        );
        self.inward.beyond_repair += 1;
        let counter = u32::try_from(counter).ok();
        match counter.filter(|_| self.is_agreed && self.claims.len() < CLAIMS_MAX) {
            Some(counter) => {
                self.claims.push(Claim {
                    keys,
                    counter,
                    beyond,
                });
                self.hasten(now);
            }
            None => self.see(now, beyond),
        }
    }

    /// Claims a datagram once more, for which further parity did not suffice: it showed so many wrong octets more.
    pub(super) fn claim_again(&mut self, now: Instant, (keys, counter): (u32, u32), more: u32) {
        let is_it = |claim: &Claim| (claim.keys, claim.counter) == (keys, counter);
        let is_claimed = self.claims.iter().any(is_it);
        if self.is_agreed && !is_claimed && self.claims.len() < CLAIMS_MAX {
            let beyond = Beyond::NOTHING;
            self.claims.push(Claim {
                keys,
                counter,
                beyond,
            });
            self.hasten(now);
        }
        self.amend(now, more);
    }

    /// Takes the news that so many octets of a datagram were put right by further parity: so many more than were known to be wrong.
    pub(super) fn on_mended_later(&mut self, now: Instant, symbols: u32, more: u32) {
        self.inward.corrected_symbols += u64::from(symbols);
        self.amend(now, more);
    }

    /// Takes the news that so many octets more were wrong than was seen when they came.
    fn amend(&mut self, now: Instant, more: u32) {
        if self.estimate.amend(now, more) {
            self.hasten(now);
        }
    }

    fn see(&mut self, now: Instant, beyond: Beyond) {
        let ((octets, symbols), (failed, each, least)) = (beyond.sound, beyond.failed);
        if octets > 0 {
            let errors = SeenErrors::Counted(symbols);
            self.estimate.on_packet(now, octets, errors);
        }
        for _ in 0..failed {
            let errors = SeenErrors::AtLeast(least);
            self.estimate.on_packet(now, each, errors);
        }
    }

    /// Lets the next report leave as soon as it may.
    fn hasten(&mut self, now: Instant) {
        let is_told_much = self.bits >= FIRST_BITS
            || !self.claims.is_empty()
            || self.estimate.recent(now).value() >= FIRST_RATE;
        if self.is_agreed && is_told_much {
            self.want(now, self.every.max(MEMORY_MIN));
        }
    }

    fn want(&mut self, now: Instant, every: Duration) {
        let at = self.told_at.map_or(now, |at| now.max(at + every));
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Notes that the contents of the datagram that was taken last ask for a word on what arrives.
    pub(super) fn on_asked(&mut self, now: Instant, asks: Asks) {
        if self.is_agreed && asks != Asks::Nothing && self.bits >= FIRST_BITS {
            let every = if self.estimate.is_low(now) {
                EVERY_CLEAN
            } else {
                EVERY
            };
            self.want(now, every.max(self.every));
        }
    }

    pub(super) const fn next_at(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|at| at <= now)
    }

    /// The report that is due; claims of datagrams under other keys than its own are left out. `claims` is memory for them.
    pub(super) fn take<'a>(
        &mut self,
        now: Instant,
        way: WayBack,
        claims: &'a mut Vec<u8>,
    ) -> DamageReport<'a> {
        self.due = None;
        self.told_at = Some(now);
        self.every = way.pause();
        claims.clear();
        for claim in core::mem::take(&mut self.claims) {
            self.see(now, claim.beyond);
            if claim.keys == way.keys {
                let [_, counter @ ..] = claim.counter.to_be_bytes();
                claims.extend_from_slice(&counter);
            }
        }
        debug_assert!(claims.len() <= CLAIMS_MAX * CLAIM_BYTES);
        DamageReport {
            slot: PathSlot::FIRST,
            word: self.estimate.word(now),
            counts: self.inward.told(),
            claims,
        }
    }

    /// Whether a report is about what left here. Its claims hold then, however late it comes.
    pub(super) fn concerns(&self, report: &DamageReport<'_>) -> bool {
        self.is_agreed && report.slot == PathSlot::FIRST
    }

    /// Takes the peer's report; `None` if it is about nothing that left here, or older than the last one.
    pub(super) fn read(&mut self, report: &DamageReport<'_>) -> Option<ChannelWord> {
        if !self.concerns(report) {
            return None;
        }
        self.outward = match self.heard {
            Some(before) => self.outward.and(before, report.counts)?,
            // Since this end started. The peer's counts may be of a life before, and then of any size.
            None => self
                .outward
                .and(Default::default(), report.counts)
                .unwrap_or(self.outward),
        };
        self.heard = Some(report.counts);
        Some(report.word)
    }

    /// Armoured datagrams from the peer to here.
    pub(super) const fn inward(&self) -> DamageCounts {
        self.inward
    }

    /// Armoured datagrams from here to the peer, as it told.
    pub(super) const fn outward(&self) -> DamageCounts {
        self.outward
    }

    /// The rate of wrong bits on the way here, once an armoured datagram came.
    pub(super) fn rate(&self, now: Instant) -> Option<BitErrorRate> {
        self.came_at.map(|_| self.estimate.recent(now))
    }
}

#[cfg(test)]
mod tests;
