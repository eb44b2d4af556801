//! The trust in arriving units: a check of 16 bits overlooks some damage, and a medium may hold
//! units up until their sender's life is over.
//!
//! A unit is taken if its block is under way, is over, or comes next. A unit of a later block means
//! that the blocks between were lost whole: it waits for a second unit that means the same,
//! one of its own block or of a later one. A unit of another life, or of a block so old that it may belong to another life of the same name, waits until
//! its sender has answered.

use super::FIRST_BLOCKS_APART;
use super::receiver::{ANSWER_SLACK_UNITS, HarqReceiver, Waiting};
use crate::link::LinkCounters;
use crate::wire::link::arq::Epoch;
use crate::wire::link::harq::{HarqUnit, UnitKind};
use crate::wire::link::{Challenge, FrameNumber};
use fulmar_proto::units::Instant;

/// The greatest distance of two blocks ahead whose units make each other credible.
const CREDIBLE: u16 = 4;
/// The unit times that a block may take: its first round, its second round, and a round of another
/// block that is sent before that, each of as many units as the code has, and the units that
/// feedback and answer may have to wait for.
const BLOCK_UNIT_TIMES_MAX: u32 = 3 * 255 + ANSWER_SLACK_UNITS;

/// The standing of a unit, by what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Its block is under way, is over, or comes next.
    Expected,
    /// Its block is a later one: the blocks between were lost whole, or the check overlooked
    /// damage.
    Ahead,
    /// The unit is of another life, or so old that it may be.
    Foreign,
}

impl HarqReceiver {
    fn standing(&self, unit: HarqUnit) -> Standing {
        let next = self.blocks.next();
        let coming = if self.horizon.is_behind(next) {
            next
        } else {
            self.horizon
        };
        let is_new = !unit.block.is_behind(coming);
        if self.peer.known() != Some(unit.epoch)
            || !(is_new || is_near(unit.block, coming, self.blocks.size()))
        {
            Standing::Foreign
        } else if is_new && (unit.block != coming || !begins_a_block(unit)) {
            Standing::Ahead
        } else {
            Standing::Expected
        }
    }

    /// Meets the first life that is heard of. A unit of one of the life's first blocks shows where
    /// it began; any other unit needs a second one.
    pub(super) fn meet(
        &mut self,
        now: Instant,
        unit: HarqUnit,
        octets: &[u8],
        counters: &mut LinkCounters,
    ) {
        let past = unit.block.0 % FIRST_BLOCKS_APART;
        if past < self.blocks.size() {
            let first = unit.block.plus(past.wrapping_neg());
            self.follow((unit.epoch, first), counters);
            self.judge(now, unit, octets, counters);
        } else if let Some(seconds) = self.seconds(now, unit, octets) {
            let blocks = seconds.iter().map(|waiting| waiting.unit.block);
            self.follow((unit.epoch, lowest(unit.block, blocks)), counters);
            self.believe_confirmed(now, seconds, counters);
        }
    }

    /// Takes a unit, or keeps it until another or its sender confirms it.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        unit: HarqUnit,
        octets: &[u8],
        counters: &mut LinkCounters,
    ) {
        match self.standing(unit) {
            Standing::Expected => self.believe(now, unit, octets, counters),
            Standing::Ahead => self.ahead(now, unit, octets, counters),
            Standing::Foreign => {
                counters.unexpected += 1;
                let octets = octets.to_vec();
                let waiting = Waiting { unit, octets };
                let next = self.blocks.next();
                self.peer.doubt(now, next, unit.epoch, Some(waiting));
            }
        }
    }

    /// Takes a unit of a block that begins while blocks before it have not begun. 16 bits of check
    /// are not enough to give those up, so the unit waits for a second one.
    fn ahead(&mut self, now: Instant, unit: HarqUnit, octets: &[u8], counters: &mut LinkCounters) {
        if let Some(seconds) = self.seconds(now, unit, octets) {
            self.believe_confirmed(now, seconds, counters);
        }
    }

    /// Takes the units whose block another one confirms, which is of that block or of a later one. If only one is of the
    /// latest block, nothing says yet that this block has begun.
    fn believe_confirmed(
        &mut self,
        now: Instant,
        units: Vec<Waiting>,
        counters: &mut LinkCounters,
    ) {
        let confirmed: Vec<bool> = (0..units.len())
            .map(|at| {
                let others = units.iter().enumerate().filter(|(other, _)| *other != at);
                let mut blocks = others.map(|(_, other)| other.unit.block);
                blocks.any(|block| !block.is_behind(units[at].unit.block))
            })
            .collect();
        let mut latest = None;
        for (waiting, is_confirmed) in units.into_iter().zip(confirmed) {
            if is_confirmed {
                self.believe(now, waiting.unit, &waiting.octets, counters);
            } else {
                latest = Some(waiting);
            }
        }
        let Some(waiting) = latest else { return };
        if self.standing(waiting.unit) == Standing::Expected {
            self.believe(now, waiting.unit, &waiting.octets, counters);
        } else {
            self.peer.keep(now, waiting.unit.epoch, Some(waiting));
        }
    }

    /// The units that waited for one like this, and this one. If none waited, this unit waits itself.
    fn seconds(&mut self, now: Instant, unit: HarqUnit, octets: &[u8]) -> Option<Vec<Waiting>> {
        let makes_credible = |waiting: &Waiting| {
            // A medium that repeats a damaged unit does not make it credible.
            is_near(waiting.unit.block, unit.block, CREDIBLE)
                && (waiting.unit.block, waiting.unit.kind) != (unit.block, unit.kind)
        };
        let waited = self.peer.take(unit.epoch).into_iter();
        let waited = waited.map(|(_, waiting)| waiting).filter(makes_credible);
        let mut seconds: Vec<Waiting> = waited.collect();
        let octets = octets.to_vec();
        let waiting = Waiting { unit, octets };
        if seconds.is_empty() {
            self.peer.keep(now, unit.epoch, Some(waiting));
            return None;
        }
        seconds.push(waiting);
        Some(seconds)
    }

    /// Takes the peer's answer that it is `epoch`, with its lowest block.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        (epoch, base): (Epoch, FrameNumber),
        challenge: Challenge,
        counters: &mut LinkCounters,
    ) {
        let Some(asked_at) = self.peer.believes(challenge) else {
            counters.unexpected += 1;
            return;
        };
        let waited = self.peer.take(epoch);
        // The sender that is followed is at most a window behind the number that was next when it
        // was asked.
        let is_other = base.is_behind(asked_at) && asked_at.ahead_of(base) > self.blocks.size();
        let next = self.blocks.next();
        let is_far = !base.is_behind(next) && base.ahead_of(next) > self.blocks.size();
        if self.peer.known() == Some(epoch) && !is_other && !is_far {
            // The units that waited belong to another time.
            return;
        }
        // The sender has given up a block whose units waited for longer than a block may take.
        let longest = self.round_trip + self.unit_time * BLOCK_UNIT_TIMES_MAX;
        let is_of_now = |(since, waiting): &(Instant, Waiting)| {
            is_near(waiting.unit.block, base, self.blocks.size()) && *since + longest >= now
        };
        let waited: Vec<(Instant, Waiting)> = waited.into_iter().filter(is_of_now).collect();
        let blocks = waited.iter().map(|(_, waiting)| waiting.unit.block);
        let first = blocks.fold(
            base,
            |first, block| {
                if block.is_behind(first) { block } else { first }
            },
        );
        self.follow((epoch, first), counters);
        for (_, Waiting { unit, octets }) in &waited {
            self.judge(now, *unit, octets, counters);
        }
    }
}

/// Whether a block's first round may begin with this unit, even if one unit was lost before it.
/// Damage in a block's number may turn a unit into one of the next block, where it would take the
/// place of that block's own unit.
fn begins_a_block(unit: HarqUnit) -> bool {
    match unit.kind {
        UnitKind::Source { index } => index <= 1,
        UnitKind::Parity { row, answers, .. } => row <= 1 && !answers,
    }
}

/// Whether the two numbers are at most `distance` apart.
fn is_near(number: FrameNumber, other: FrameNumber, distance: u16) -> bool {
    number.ahead_of(other) <= distance || other.ahead_of(number) <= distance
}

/// The lowest of these numbers.
fn lowest(first: FrameNumber, others: impl Iterator<Item = FrameNumber>) -> FrameNumber {
    others.fold(first, |lowest, other| {
        if other.is_behind(lowest) {
            other
        } else {
            lowest
        }
    })
}
