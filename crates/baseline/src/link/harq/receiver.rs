//! The receiving half: when rounds are over, the loss estimate and the margins.

mod feedback;

use super::HarqConfig;
use super::blocks::Blocks;
use super::margin::{Margin, heard, units_for};
use crate::link::parts::{Acquaintance, LossEstimate};
use crate::link::{LinkCounters, Medium};
use crate::wire::link::arq::Epoch;
use crate::wire::link::harq::{LEFT_OPEN, Unit, UnitKind};
use crate::wire::link::{Challenge, FrameNumber};
use fulmar_proto::machine::Deadline;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant, PacketErrorRate};
use std::collections::VecDeque;

pub(super) use feedback::{REPEAT_UNITS, repeats};

/// Unit times that pass beyond a round's last unit before it counts as over (spec 2.4).
pub(super) const GAP_UNITS: u32 = 2;
/// Unit times of what may stand before a feedback and before its answer.
pub(super) const ANSWER_SLACK_UNITS: u32 = 10;
/// A serial number farther ahead than this is an old one.
const SERIALS_AHEAD_MAX: u8 = u8::MAX / 2;

/// Units that are kept until their sender is believed: twenty packets, or more.
const UNITS_WAITING_MAX: usize = 1_024;

/// A unit that is not believed yet.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) unit: Unit,
    pub(super) octets: Vec<u8>,
}

/// What feedback is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Owed {
    #[default]
    Nothing,
    /// What was said before, or little more.
    Again,
    /// A round ended.
    News,
}

/// A block that was asked for, and when it is passed over.
#[derive(Clone, Copy, Debug)]
struct Verdict {
    at: Instant,
    block: FrameNumber,
    /// The first round of the block is over for certain.
    is_certain: bool,
}

/// The receiving half of one end.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    config: HarqConfig,
    pub(super) peer: Acquaintance<Waiting>,
    /// The newest unit's number.
    serial: Option<u8>,
    pub(super) blocks: Blocks,
    /// One more than the highest block that has begun.
    pub(super) horizon: FrameNumber,
    /// Whether the highest block's first round seems to be over.
    ended: bool,
    /// Whether that is certain, and was judged.
    judged: bool,
    estimate: LossEstimate,
    margin: Margin,
    answer_margin: Margin,
    owed: Owed,
    /// How often feedback is still repeated though it asks for nothing: it may be lost.
    repeats: u32,
    gap_at: Option<Instant>,
    repeat_at: Option<Instant>,
    /// In order, of time and of blocks.
    verdicts: VecDeque<Verdict>,
    pub(super) unit_time: Duration,
    /// From feedback to its answer at the latest, transmission aside.
    pub(super) round_trip: Duration,
    /// How long the medium may hold up what follows a unit, transmission aside.
    pause: Duration,
}

impl Receiver {
    /// Nobody is known; challenges are drawn from `rng`.
    pub(super) fn new(config: HarqConfig, medium: Medium, rng: &mut Rng) -> Self {
        Self {
            config,
            peer: Acquaintance::new(rng, UNITS_WAITING_MAX),
            serial: None,
            blocks: Blocks::new(config.effective_window()),
            horizon: FrameNumber(0),
            ended: true,
            judged: true,
            estimate: LossEstimate::new(config.memory),
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

    /// From now on the life `epoch` is followed, from block `first` on.
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
        unit: Unit,
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

    /// The peer asks who this end is.
    pub(super) fn challenged(&mut self, challenge: Challenge) {
        self.peer.challenged(challenge);
    }

    /// What this end is asked to answer.
    pub(super) fn poll_answer(&mut self) -> Option<Challenge> {
        self.peer.poll_answer()
    }

    /// Octets of packets and units kept here.
    pub(super) fn held_octets(&self) -> usize {
        let waiting = self.peer.all_waiting().map(|waiting| waiting.octets.len());
        self.blocks.held_octets() + waiting.sum::<usize>()
    }

    /// A unit of the life that is followed.
    pub(super) fn believe(
        &mut self,
        now: Instant,
        unit: Unit,
        octets: &[u8],
        counters: &mut LinkCounters,
    ) {
        self.measure(unit.serial);
        let next = self.blocks.next();
        let is_ahead = !unit.block.is_behind(next) || !unit.block.is_behind(self.horizon);
        if is_ahead && unit.block.ahead_of(next) >= self.blocks.size() {
            // The sender is done with what we wait for.
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

    /// The units between this one and the newest before it were lost.
    fn measure(&mut self, serial: u8) {
        let ahead = match self.serial {
            Some(newest) => serial.wrapping_sub(newest),
            None => 1,
        };
        if (1..=SERIALS_AHEAD_MAX).contains(&ahead) {
            self.serial = Some(serial);
            let ahead = u32::from(ahead);
            self.estimate.observe(ahead, ahead - 1);
        }
    }

    /// A unit of a block is here: the rounds before it are over.
    fn begin(&mut self, now: Instant, unit: Unit) {
        self.blocks
            .set_total(unit.block.plus(u16::MAX), unit.before);
        if unit.block.is_behind(self.horizon) {
            return;
        }
        // The link keeps order, so what was coming will not come any more; nor will what was lost
        // whole. A window at most, for farther blocks were passed over.
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

    /// What the unit says of its round.
    fn follow_round(&mut self, now: Instant, unit: Unit) {
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
                // It went between two units of the block that is coming.
                self.gap_at = Some(at.max(now) + self.unit_time);
            }
            return;
        }
        if !is_newest || self.judged {
            return;
        }
        if self.ended {
            // The gap was not the end.
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

    /// A unit of a second round is here, and `left` follow.
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
            // The only answer is over.
            self.verdicts.remove(index);
            self.answer_margin.observe(true);
            self.blocks.pass_over(block);
        } else if index == 0 {
            let at = now + self.pause + self.unit_time * (left + GAP_UNITS);
            for (place, verdict) in self.verdicts.iter_mut().enumerate() {
                // Those after it come after it.
                verdict.at = if place == 0 { at } else { verdict.at.max(at) };
            }
        }
    }

    /// The newest block's first round is over, or seems to be: what it lacks is asked for, and if
    /// it is certain it is judged.
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
        // Nothing waits for ever for a block whose rounds are over, whatever damage that the check
        // overlooked made of it.
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
        // An answer that came may have let the first wait for others longer than it should.
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

    /// The estimated loss of the way here.
    pub(super) fn loss(&self) -> PacketErrorRate {
        self.estimate.value()
    }

    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        let packet = self.blocks.pop()?;
        out.extend_from_slice(&packet);
        Some(packet.len())
    }
}
