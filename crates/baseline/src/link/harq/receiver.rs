//! The receiving half: the ends of rounds, the loss estimate and the margins.

mod feedback;

use super::HarqConfig;
use super::blocks::HarqBlocks;
use super::margin::{Margin, heard, units_for};
use crate::link::parts::{Acquaintance, LinkLossEstimate};
use crate::link::{LinkCounters, Medium};
use crate::wire::link::arq::Epoch;
use crate::wire::link::harq::{HarqUnit, LEFT_OPEN, UnitKind};
use crate::wire::link::{Challenge, FrameNumber};
use fulmar_proto::machine::Deadline;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant, PacketErrorRate};
use std::collections::VecDeque;

pub(super) use feedback::{REPEAT_UNITS, repeats};

/// Unit times that pass beyond a round's last unit before the round counts as over. The slides give
/// no value.
pub(super) const GAP_UNITS: u32 = 2;
/// Unit times of the frames that a feedback and its answer may have to wait for.
pub(super) const ANSWER_SLACK_UNITS: u32 = 10;
/// The greatest distance of a serial number ahead: a number farther ahead is an old one.
const SERIALS_AHEAD_MAX: u8 = u8::MAX / 2;

/// Units that are kept until their sender is trusted: those of twenty packets, or more.
const UNITS_WAITING_MAX: usize = 1_024;

/// A unit that is not trusted yet.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) unit: HarqUnit,
    pub(super) octets: Vec<u8>,
}

/// The feedback that is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Owed {
    #[default]
    Nothing,
    /// Feedback as before, or with little more.
    Again,
    /// Feedback with news: a round ended.
    News,
}

/// A block whose second round was asked for, and the time at which it is passed over.
#[derive(Clone, Copy, Debug)]
struct Verdict {
    at: Instant,
    block: FrameNumber,
    /// Whether the first round of the block is over for certain.
    is_certain: bool,
}

/// The receiving half of one end.
#[derive(Clone, Debug)]
pub(super) struct HarqReceiver {
    config: HarqConfig,
    pub(super) peer: Acquaintance<Waiting>,
    /// The serial number of the newest unit.
    serial: Option<u8>,
    pub(super) blocks: HarqBlocks,
    /// One more than the highest block that has begun.
    pub(super) horizon: FrameNumber,
    /// Whether the highest block's first round seems to be over.
    ended: bool,
    /// Whether that is certain, and the round was judged.
    judged: bool,
    estimate: LinkLossEstimate,
    /// The part of the loss that arrived damaged.
    damage: LinkLossEstimate,
    /// Frames that failed their check since the last unit that came.
    damaged: u32,
    margin: Margin,
    answer_margin: Margin,
    owed: Owed,
    /// The number of times that feedback without a request is still repeated, because it may be
    /// lost.
    repeats: u32,
    gap_at: Option<Instant>,
    repeat_at: Option<Instant>,
    /// The verdicts in order, both of time and of blocks.
    verdicts: VecDeque<Verdict>,
    pub(super) unit_time: Duration,
    /// The longest time from feedback to its answer, without transmission.
    pub(super) round_trip: Duration,
    /// The time for which the medium may hold up the units behind one, without transmission.
    pause: Duration,
}

impl HarqReceiver {
    /// A receiver that knows no peer; challenges are drawn from `rng`.
    pub(super) fn new(config: HarqConfig, medium: Medium, rng: &mut Rng) -> Self {
        Self {
            config,
            peer: Acquaintance::new(rng, UNITS_WAITING_MAX),
            serial: None,
            blocks: HarqBlocks::new(config.effective_window()),
            horizon: FrameNumber(0),
            ended: true,
            judged: true,
            estimate: LinkLossEstimate::new(config.memory),
            damage: LinkLossEstimate::new(config.memory),
            damaged: 0,
            margin: Margin::new(config.failure),
            answer_margin: Margin::new(config.repair_failure),
            owed: Owed::Nothing,
            repeats: 0,
            gap_at: None,
            repeat_at: None,
            verdicts: VecDeque::new(),
            unit_time: Duration::ZERO,
            round_trip: medium.round_trip + medium.waiting(),
            pause: medium.waiting(),
        }
    }

    /// Follows the life `epoch` from now on, from block `first` on.
    pub(super) fn follow(
        &mut self,
        (epoch, first): (Epoch, FrameNumber),
        counters: &mut LinkCounters,
    ) {
        self.peer.follow(epoch);
        self.blocks.restart_at(first, counters);
        self.serial = None;
        self.horizon = first;
        self.ended = true;
        self.judged = true;
        self.verdicts.clear();
        self.gap_at = None;
        self.repeat_at = None;
        self.repeats = 0;
    }

    pub(super) fn unit(
        &mut self,
        now: Instant,
        unit: HarqUnit,
        octets: &[u8],
        unit_time: Duration,
        counters: &mut LinkCounters,
    ) {
        self.unit_time = unit_time;
        if self.peer.known().is_none() {
            self.meet(now, unit, octets, counters);
        } else {
            self.judge(now, unit, octets, counters);
        }
    }

    /// Takes the peer's question who this end is.
    pub(super) fn challenged(&mut self, challenge: Challenge) {
        self.peer.challenged(challenge);
    }

    /// The challenge that this end is asked to answer.
    pub(super) fn poll_answer(&mut self) -> Option<Challenge> {
        self.peer.poll_answer()
    }

    /// Octets of packets and units kept here.
    pub(super) fn held_octets(&self) -> usize {
        let waiting = self.peer.all_waiting().map(|waiting| waiting.octets.len());
        self.blocks.held_octets() + waiting.sum::<usize>()
    }

    /// Takes a unit of the life that is followed.
    pub(super) fn believe(
        &mut self,
        now: Instant,
        unit: HarqUnit,
        octets: &[u8],
        counters: &mut LinkCounters,
    ) {
        self.measure(unit.serial);
        let next = self.blocks.next();
        let is_ahead = !unit.block.is_behind(next) || !unit.block.is_behind(self.horizon);
        if is_ahead && unit.block.ahead_of(next) >= self.blocks.size() {
            // The sender is done with the blocks that we wait for.
            let first = unit.block.plus(1).plus(self.blocks.size().wrapping_neg());
            self.blocks.advance_to(first, counters);
        }
        self.begin(now, unit);
        if !self.blocks.take(unit.block, unit.kind, octets) {
            counters.duplicates += 1;
        }
        self.follow_round(now, unit);
        self.blocks.release(counters);
        self.forget_settled(now);
    }

    /// A frame came that failed its check: one of the units that will be missing, or a frame of another kind.
    pub(super) fn note_damaged(&mut self) {
        self.damaged = self.damaged.saturating_add(1);
    }

    /// Counts the units between this one and the newest before it as lost.
    fn measure(&mut self, serial: u8) {
        let ahead = match self.serial {
            Some(newest) => serial.wrapping_sub(newest),
            None => 1,
        };
        if (1..=SERIALS_AHEAD_MAX).contains(&ahead) {
            self.serial = Some(serial);
            let ahead = u32::from(ahead);
            self.estimate.observe(ahead, ahead - 1);
            let damaged = core::mem::take(&mut self.damaged);
            self.damage.observe(ahead, damaged.min(ahead - 1));
        }
    }

    /// Begins the block of a unit, if it is new: the rounds before it are over.
    fn begin(&mut self, now: Instant, unit: HarqUnit) {
        self.blocks
            .set_total(unit.block.plus(u16::MAX), unit.before);
        if unit.block.is_behind(self.horizon) {
            return;
        }
        // The link keeps order, so units of earlier rounds will not come any more, nor will blocks
        // that were lost whole. They are at most a window, because farther blocks were passed over.
        self.end(now, true);
        if self.horizon.is_behind(self.blocks.next()) {
            self.horizon = self.blocks.next();
        }
        while !unit.block.is_behind(self.horizon) {
            let is_lost = self.horizon != unit.block;
            self.horizon = self.horizon.plus(1);
            self.ended = false;
            self.judged = false;
            if is_lost {
                self.end(now, true);
            }
        }
    }

    /// Takes the unit's word on its round.
    fn follow_round(&mut self, now: Instant, unit: HarqUnit) {
        let is_newest = unit.block.plus(1) == self.horizon;
        let left = match unit.kind {
            UnitKind::Parity { left, .. } if left != LEFT_OPEN => Some(u32::from(left)),
            _ => None,
        };
        if let (UnitKind::Parity { span, .. }, Some(_)) = (unit.kind, left) {
            self.blocks.set_total(unit.block, span);
        }
        if matches!(unit.kind, UnitKind::Parity { answers: true, .. }) {
            self.follow_answer(now, unit.block, left.unwrap_or_default());
            if !is_newest && let Some(at) = self.gap_at {
                // It was sent between two units of the block that is under way.
                self.gap_at = Some(at.max(now) + self.unit_time);
            }
            return;
        }
        if !is_newest || self.judged {
            return;
        }
        if self.ended {
            // The gap was not the round's end.
            self.ended = false;
            if self
                .verdicts
                .back()
                .is_some_and(|last| last.block == unit.block)
            {
                self.verdicts.pop_back();
            }
            self.blocks.ask(unit.block, false);
        }
        if left == Some(0) {
            self.end(now, true);
        } else {
            let parts = u32::from(self.config.effective_fragments());
            let units = left.unwrap_or(parts) + GAP_UNITS;
            self.gap_at = Some(now + self.pause + self.unit_time * units);
        }
    }

    /// Takes a unit of a second round; `left` units of it follow.
    fn follow_answer(&mut self, now: Instant, block: FrameNumber, left: u32) {
        if block.plus(1) == self.horizon {
            if !self.judged {
                self.judged = true;
                self.margin.observe(true);
            }
            self.end(now, true);
        }
        let Some(index) = self
            .verdicts
            .iter()
            .position(|verdict| verdict.block == block)
        else {
            return;
        };
        if self.blocks.is_complete(block) {
            self.verdicts.remove(index);
            self.answer_margin.observe(false);
        } else if left == 0 {
            // The only answer to the block is over.
            self.verdicts.remove(index);
            self.answer_margin.observe(true);
            self.blocks.pass_over(block);
        } else if index == 0 {
            let at = now + self.pause + self.unit_time * (left + GAP_UNITS);
            for (place, verdict) in self.verdicts.iter_mut().enumerate() {
                // The answers to blocks behind it come after it.
                verdict.at = if place == 0 { at } else { verdict.at.max(at) };
            }
        }
    }

    /// Ends the newest block's first round, which is over or seems to be: the receiver asks for the
    /// symbols that it lacks, and judges the round if its end is certain.
    fn end(&mut self, now: Instant, is_certain: bool) {
        let block = self.horizon.plus(u16::MAX);
        self.gap_at = None;
        if is_certain && !self.judged {
            self.judged = true;
            let (span, need) = self.blocks.needs(block);
            if self.estimate.value() > HarqConfig::floor() {
                let lacks = span == 0 || need > 0;
                self.margin.observe(lacks && self.blocks.is_open(block));
            }
            if let Some(verdict) = self.verdicts.back_mut().filter(|v| v.block == block) {
                verdict.is_certain = true;
            }
        }
        if self.ended {
            return;
        }
        self.ended = true;
        self.owed = Owed::News;
        if self.blocks.is_open(block) {
            let (span, need) = self.blocks.needs(block);
            let need = if span == 0 {
                u32::from(HarqConfig::FRAGMENTS_MAX)
            } else {
                u32::try_from(need).unwrap_or(u32::MAX)
            };
            let margin = heard(self.answer_margin.told());
            let answer = units_for(need, self.estimate.value(), margin);
            let answer = answer.min(u32::from(u8::MAX)) + ANSWER_SLACK_UNITS;
            let arrives = now + self.round_trip;
            let before = self
                .verdicts
                .back()
                .map_or(arrives, |last| last.at.max(arrives));
            self.blocks.ask(block, true);
            self.verdicts.push_back(Verdict {
                at: before + self.unit_time * answer,
                block,
                is_certain,
            });
        }
    }

    fn forget_settled(&mut self, now: Instant) {
        while let Some(&Verdict { block, .. }) = self.verdicts.front()
            && !self.blocks.is_open(block)
        {
            self.verdicts.pop_front();
        }
        // No packet waits for ever for a block whose rounds are over, whatever the damage that its
        // check overlooked.
        let next = self.blocks.next();
        let is_over = next.is_behind(self.horizon) && (self.ended || next.plus(1) != self.horizon);
        if is_over
            && self
                .verdicts
                .front()
                .is_none_or(|first| first.block != next)
        {
            self.verdicts.push_front(Verdict {
                at: now + self.round_trip + self.unit_time * u32::from(u8::MAX),
                block: next,
                is_certain: false,
            });
        }
        // An answer that came may have let the first one wait longer for others than it should.
        if let Some(first) = self.verdicts.front_mut() {
            first.at = first.at.max(now);
        }
        if self.verdicts.is_empty() && self.repeats == 0 {
            self.repeat_at = None;
        }
    }

    pub(super) fn handle_deadline(&mut self, now: Instant, counters: &mut LinkCounters) {
        if self.gap_at.is_some_and(|at| at <= now) {
            self.end(now, false);
        }
        while let Some(&verdict) = self.verdicts.front()
            && verdict.at <= now
        {
            self.verdicts.pop_front();
            let (_, need) = self.blocks.needs(verdict.block);
            if need > 0 && verdict.is_certain {
                self.answer_margin.observe(true);
            }
            self.blocks.pass_over(verdict.block);
            self.blocks.release(counters);
            self.owed = self.owed.max(Owed::Again);
        }
        if self.repeat_at.is_some_and(|at| at <= now) {
            self.repeat_at = None;
            self.owed = self.owed.max(Owed::Again);
        }
        self.forget_settled(now);
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let named = |at: Option<Instant>, why| at.map(|at| Deadline { at, why });
        let verdict = self.verdicts.front().map(|verdict| verdict.at);
        [
            named(self.gap_at, "gap"),
            named(verdict, "verdict"),
            named(self.repeat_at, "repeat"),
        ]
        .into_iter()
        .fold(None, Deadline::earlier)
    }

    /// The estimated loss of the way to this end.
    pub(super) fn loss(&self) -> PacketErrorRate {
        self.estimate.value()
    }

    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        let packet = self.blocks.pop()?;
        out.extend_from_slice(&packet);
        Some(packet.len())
    }
}
