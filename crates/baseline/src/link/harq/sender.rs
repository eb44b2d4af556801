//! The sending half: blocks that are being filled, their parity, and one answer to each.

use super::HarqConfig;
use super::filling::{Filling, Next};
use super::margin::heard;
use super::sizing::Sizing;
use crate::link::{FrameClass, FrameTransmit, LinkPacket};
use crate::wire::link::FrameNumber;
use crate::wire::link::arq::Epoch;
use crate::wire::link::harq::{HarqBlockReport, HarqFeedback, HarqUnit, UnitKind};
use fulmar_proto::fec::block::{ROWS_MAX, SpanEncoder};
use fulmar_proto::machine::{Deadline, Priority, TransmitKind};
use fulmar_proto::units::{Duration, Instant, PacketErrorRate};
use fulmar_proto::wire::checksum::crc32;
use std::collections::VecDeque;

/// The least octets of a part: a shorter packet is cut into fewer parts, because a unit's header
/// has ten octets.
const PART_BYTES_MIN: usize = 50;
/// Octets of a unit around a part: header, place and check.
const UNIT_AROUND_BYTES: usize = 11;
/// The octets from which on a block takes no further packet, which bounds the memory of an end.
const BLOCK_OCTETS_MAX: usize = 70_000;
/// The bits that mark a packet's first part and its last part.
pub(super) const FIRST_PART: u8 = 0x80;
pub(super) const LAST_PART: u8 = 0x40;
/// The bits with the packet's number in its block.
pub(super) const PACKET_NUMBER: u8 = 0x3F;

#[derive(Clone, Debug)]
struct Block {
    sources: SpanEncoder,
    octets: usize,
    packets: u8,
    /// Rows that were sent, or are about to be.
    rows: u8,
    kind: TransmitKind,
    priority: Priority,
    state: State,
    /// The time before which feedback cannot know of the first round's end.
    heard_from: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first round is being sent.
    Sending,
    /// Feedback is awaited.
    Sent,
    /// The second round is being sent.
    Answering,
    Done,
}

/// A second round under way.
#[derive(Clone, Copy, Debug)]
struct Answer {
    block: FrameNumber,
    left: u8,
}

/// The sending half of one end.
#[derive(Clone, Debug)]
pub(super) struct HarqSender {
    config: HarqConfig,
    round_trip: Duration,
    epoch: Epoch,
    serial: u8,
    base: FrameNumber,
    /// The blocks from `base` on; at most a window.
    blocks: VecDeque<Block>,
    /// The first round of the newest block, while it is being sent.
    filling: Option<Filling>,
    /// The number of sources in the block before `base`.
    before_base: u8,
    answers: VecDeque<Answer>,
    /// The time by which each block's feedback should have arrived, in order.
    awaited: VecDeque<(Instant, FrameNumber)>,
    sizing: Sizing,
    /// The number of parts of packets of the block that is being filled.
    fragments: u8,
    /// The mean length of units, over as many as the loss estimate remembers.
    unit_octets: f64,
}

impl HarqSender {
    pub(super) fn new(
        config: HarqConfig,
        round_trip: Duration,
        (epoch, first): (Epoch, FrameNumber),
    ) -> Self {
        Self {
            config,
            round_trip,
            epoch,
            serial: 0,
            base: first,
            blocks: VecDeque::new(),
            filling: None,
            before_base: 0,
            answers: VecDeque::new(),
            awaited: VecDeque::new(),
            sizing: Sizing::default(),
            fragments: config.effective_fragments(),
            unit_octets: 0.0,
        }
    }

    /// The lowest block that is not over.
    pub(super) const fn base(&self) -> FrameNumber {
        self.base
    }

    /// The loss of the way there, as the receiver reports it.
    pub(super) const fn loss(&self) -> PacketErrorRate {
        self.sizing.loss
    }

    /// Octets of packets kept here.
    pub(super) fn held_octets(&self) -> usize {
        self.blocks.iter().map(|block| block.octets).sum()
    }

    pub(super) fn ready(&self) -> bool {
        match &self.filling {
            Some(filling) => filling.takes_packets(),
            None => self.blocks.len() < usize::from(self.config.effective_window()),
        }
    }

    /// Takes a packet into the block that is being filled, or begins one.
    pub(super) fn offer(&mut self, packet: LinkPacket<'_>) {
        let mut octets = packet.octets.to_vec();
        octets.extend_from_slice(&crc32(packet.octets).to_be_bytes());
        if self.filling.is_none() && self.config.adaptive {
            let least = self.config.effective_fragments();
            let lengths = (self.unit_octets, UNIT_AROUND_BYTES);
            self.fragments = self.sizing.parts(octets.len(), lengths, least);
        }
        let most = usize::from(self.fragments);
        let count = octets.len().div_ceil(PART_BYTES_MIN).clamp(1, most);
        if self.filling.is_none() {
            self.filling = Some(Filling::default());
            self.blocks.push_back(Block {
                sources: SpanEncoder::default(),
                octets: 0,
                packets: 0,
                rows: 0,
                kind: packet.kind,
                priority: packet.priority,
                state: State::Sending,
                heard_from: Instant::START,
            });
        }
        let (Some(block), Some(filling)) = (self.blocks.back_mut(), &mut self.filling) else {
            return;
        };
        let parts: Vec<&[u8]> = octets.chunks(octets.len().div_ceil(count).max(1)).collect();
        let last = parts.len() - 1;
        for (at, part) in parts.into_iter().enumerate() {
            let mut place = block.packets & PACKET_NUMBER;
            place |= if at == 0 { FIRST_PART } else { 0 };
            place |= if at == last { LAST_PART } else { 0 };
            let mut source = vec![place];
            source.extend_from_slice(part);
            // There is room: a block is closed before a packet with the most parts would not fit.
            block.sources.push(&source);
        }
        block.kind = packet.kind;
        block.priority = packet.priority;
        block.packets += 1;
        block.octets += octets.len();
        let parts = self.fragments;
        let span = block.sources.span();
        let is_full = span.saturating_add(parts) > self.sizing.sources(self.config.units, parts)
            || block.octets >= BLOCK_OCTETS_MAX;
        let count = u8::try_from(count).unwrap_or(u8::MAX);
        let whole = self.sizing.sources(self.config.units, count);
        filling.on_packet(self.sizing, (count, whole), span, is_full);
    }

    fn block(&mut self, number: FrameNumber) -> Option<&mut Block> {
        let index = usize::from(number.ahead_of(self.base));
        self.blocks.get_mut(index)
    }

    /// The number of the newest block.
    fn newest(&self) -> FrameNumber {
        let count = u16::try_from(self.blocks.len()).unwrap_or(u16::MAX);
        self.base.plus(count).plus(u16::MAX)
    }

    /// Takes the receiver's feedback. Returns `false` if it is not on blocks of ours.
    pub(super) fn feedback(&mut self, now: Instant, feedback: &HarqFeedback) -> bool {
        let next = feedback.next;
        // The receiver may still wait for blocks that had their answer here.
        let (answered, arrived) = if next.is_behind(self.base) {
            (usize::from(self.base.ahead_of(next)), 0)
        } else {
            (0, usize::from(next.ahead_of(self.base)))
        };
        if arrived > self.blocks.len() {
            return false;
        }
        let loss = f64::from(feedback.loss) / f64::from(u16::MAX);
        self.sizing = Sizing {
            loss: PacketErrorRate::new(loss).unwrap_or_default(),
            margin: heard(feedback.margin),
            answer_margin: heard(feedback.answer_margin),
            damage: f64::from(feedback.damage.unwrap_or_default()) / f64::from(u16::MAX),
        };
        for block in self.blocks.iter_mut().take(arrived) {
            // For the receiver a block is not over before its first round was on its way.
            if block.state != State::Sending {
                block.state = State::Done;
            }
        }
        let mut number = if answered > 0 { self.base } else { next };
        let told = self.blocks.len() - arrived;
        for report in feedback.reports.iter().skip(answered).take(told) {
            if let (&HarqBlockReport::Heard { span, need }, Some(block)) =
                (report, self.block(number))
            {
                // The receiver has none of the sources behind those that it heard of.
                let rest = block.sources.span().saturating_sub(span);
                if now >= block.heard_from {
                    self.answer(number, need.saturating_add(rest));
                }
            }
            number = number.plus(1);
        }
        self.tidy();
        true
    }

    /// Sends the second round of a block that needs `need` symbols, if it had none.
    fn answer(&mut self, number: FrameNumber, need: u8) {
        let sizing = self.sizing;
        let Some(block) = self.block(number).filter(|b| b.state == State::Sent) else {
            return;
        };
        if need == 0 {
            block.state = State::Done;
            return;
        }
        let need = need.min(block.sources.span());
        let left = sizing.answer(need).min(ROWS_MAX - block.rows);
        block.state = State::Answering;
        self.answers.push_back(Answer {
            block: number,
            left,
        });
    }

    fn tidy(&mut self) {
        while self.blocks.front().is_some_and(|b| b.state == State::Done) {
            if let Some(block) = self.blocks.pop_front() {
                self.before_base = block.sources.span();
            }
            self.base = self.base.plus(1);
        }
        while let Some(&(_, number)) = self.awaited.front()
            && self.block(number).is_none_or(|b| b.state != State::Sent)
        {
            self.awaited.pop_front();
        }
    }

    /// Answers a block whose feedback is missing as if nothing had arrived. Closes a block that
    /// waits for packets while the medium is free.
    pub(super) fn handle_deadline(&mut self, now: Instant) {
        self.tidy();
        while let Some(&(at, number)) = self.awaited.front()
            && at <= now
        {
            self.awaited.pop_front();
            let whole = self.block(number).map_or(0, |block| block.sources.span());
            self.answer(number, whole);
            self.tidy();
        }
        if let Some(filling) = &mut self.filling
            && filling.is_idle(now)
        {
            filling.close(self.sizing);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let awaited = self.awaited.front().map(|&(at, _)| Deadline {
            at,
            why: "feedback",
        });
        let idle = self.filling.as_ref().and_then(Filling::idle_since);
        let idle = idle.map(|at| Deadline {
            at,
            why: "no packet",
        });
        Deadline::earlier(awaited, idle)
    }

    /// Appends the next unit: answers first. When a block's first round ends, its feedback is
    /// awaited for `patience`.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        (patience, unit_time): (Duration, Duration),
        out: &mut Vec<u8>,
    ) -> Option<FrameTransmit> {
        while let Some(answer) = self.answers.front_mut() {
            let number = answer.block;
            let Some(left) = answer.left.checked_sub(1) else {
                self.answers.pop_front();
                self.set_done(number);
                continue;
            };
            answer.left = left;
            let is_open = self
                .block(number)
                .is_some_and(|b| b.state == State::Answering);
            if !is_open {
                self.answers.pop_front();
                continue;
            }
            if left == 0 {
                self.answers.pop_front();
            }
            let frame = self.parity(number, (left, true), out);
            self.await_longer(unit_time);
            if left == 0 {
                self.set_done(number);
            }
            return frame;
        }
        let number = self.newest();
        let filling = self.filling.as_mut()?;
        let frame = match filling.next(now) {
            Some(Next::Source(index)) => self.source(number, index, out),
            Some(Next::Parity { left }) => self.parity(number, (left, false), out),
            None => None,
        };
        if self.filling.as_ref().is_some_and(Filling::is_over) {
            self.filling = None;
            if let Some(block) = self.blocks.back_mut() {
                block.state = State::Sent;
                block.heard_from = now + self.round_trip;
            }
            let at = now + patience;
            let at = self.awaited.back().map_or(at, |&(last, _)| at.max(last));
            self.awaited.push_back((at, number));
        }
        frame
    }

    fn set_done(&mut self, number: FrameNumber) {
        if let Some(block) = self.block(number) {
            block.state = State::Done;
        }
        self.tidy();
    }

    /// Waits longer for the newest feedback when an answer is sent behind a block's last unit. A
    /// receiver that misses the last unit takes the answer for one within the block, and waits that
    /// much longer.
    fn await_longer(&mut self, unit_time: Duration) {
        let begun = self.filling.is_some();
        if let Some((at, _)) = self.awaited.back_mut().filter(|_| !begun) {
            *at += unit_time;
        }
    }

    /// The sources of the block before this one.
    fn before(&mut self, number: FrameNumber) -> u8 {
        if number == self.base {
            return self.before_base;
        }
        let before = number.plus(u16::MAX);
        self.block(before).map_or(0, |block| block.sources.span())
    }

    fn source(
        &mut self,
        number: FrameNumber,
        index: u8,
        out: &mut Vec<u8>,
    ) -> Option<FrameTransmit> {
        let unit = self.unit(number, UnitKind::Source { index });
        let block = self.block(number)?;
        let start = out.len();
        unit.encode(block.sources.source(index)?, out);
        let (kind, priority) = (block.kind, block.priority);
        let len = out.len() - start;
        self.note_length(len);
        Some(FrameTransmit {
            len,
            class: FrameClass::Data,
            kind,
            priority,
        })
    }

    fn parity(
        &mut self,
        number: FrameNumber,
        (left, answers): (u8, bool),
        out: &mut Vec<u8>,
    ) -> Option<FrameTransmit> {
        let block = self.block(number)?;
        let (row, span) = (block.rows, block.sources.span());
        block.rows += 1;
        let mut symbol = Vec::new();
        if !block.sources.repair(row, span, &mut symbol) {
            return None;
        }
        let priority = block.priority;
        let start = out.len();
        let kind = UnitKind::Parity {
            row,
            span,
            left,
            answers,
        };
        self.unit(number, kind).encode(&symbol, out);
        let len = out.len() - start;
        self.note_length(len);
        Some(FrameTransmit {
            len,
            class: FrameClass::Parity,
            kind: TransmitKind::Repair,
            priority,
        })
    }

    /// Takes the length of a unit that leaves.
    fn note_length(&mut self, octets: usize) {
        let memory = if self.unit_octets > 0.0 {
            f64::from(self.config.memory.max(1))
        } else {
            1.0
        };
        self.unit_octets += (octets as f64 - self.unit_octets) / memory;
    }

    fn unit(&mut self, block: FrameNumber, kind: UnitKind) -> HarqUnit {
        let serial = self.serial;
        self.serial = self.serial.wrapping_add(1);
        HarqUnit {
            epoch: self.epoch,
            serial,
            block,
            before: self.before(block),
            kind,
        }
    }
}
