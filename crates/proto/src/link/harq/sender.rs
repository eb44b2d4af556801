//! The sending half: blocks, their units, and one answer to each.

use super::HarqConfig;
use crate::fec::block::encode_repair;
use crate::link::parts::{ParityPlan, units_for};
use crate::link::{FrameClass, FrameTransmit, LinkCounters, LinkPacket};
use crate::machine::{Deadline, Kind, Priority};
use crate::units::{Duration, Instant, PacketErrorRate};
use crate::wire::checksum::crc32;
use crate::wire::link::FrameNumber;
use crate::wire::link::arq::Epoch;
use crate::wire::link::harq::{HarqFrame, STILL_COMING, Unit};
use std::collections::VecDeque;

/// A shorter packet is cut into fewer units: a unit's header has seven octets.
const FRAGMENT_BYTES_MIN: usize = 50;
/// Units of a block, both rounds: the code's, and one octet's.
const UNITS_MAX: u32 = 255;

#[derive(Clone, Debug)]
struct Block {
    sources: Vec<Vec<u8>>,
    /// Units of the first round.
    first: u8,
    kind: Kind,
    priority: Priority,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first round is going out.
    Sending,
    /// Feedback is awaited.
    Sent,
    /// The second round is going out.
    Answering,
    Done,
}

/// A round that is going out.
#[derive(Clone, Copy, Debug)]
struct Round {
    block: FrameNumber,
    index: u8,
    end: u8,
}

/// The sending half of one end.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    config: HarqConfig,
    epoch: Epoch,
    base: FrameNumber,
    /// The blocks from `base` on; at most a window.
    blocks: VecDeque<Block>,
    current: Option<Round>,
    answers: VecDeque<Round>,
    /// By when each block's feedback should be there, in order.
    awaited: VecDeque<(Instant, FrameNumber)>,
    loss: PacketErrorRate,
}

impl Sender {
    pub(super) fn new(config: HarqConfig, epoch: Epoch, first: FrameNumber) -> Self {
        Self {
            config,
            epoch,
            base: first,
            blocks: VecDeque::new(),
            current: None,
            answers: VecDeque::new(),
            awaited: VecDeque::new(),
            loss: PacketErrorRate::ZERO,
        }
    }

    /// The lowest block that is not over.
    pub(super) const fn base(&self) -> FrameNumber {
        self.base
    }

    /// Octets of packets kept here.
    pub(super) fn held_octets(&self) -> usize {
        let sources = self.blocks.iter().flat_map(|block| &block.sources);
        sources.map(Vec::len).sum()
    }

    pub(super) fn ready(&self) -> bool {
        self.current.is_none() && self.blocks.len() < usize::from(self.config.effective_window())
    }

    pub(super) fn offer(&mut self, packet: LinkPacket<'_>) {
        let mut octets = packet.octets.to_vec();
        octets.extend_from_slice(&crc32(packet.octets).to_be_bytes());
        let most = usize::from(self.config.fragments.clamp(1, HarqConfig::FRAGMENTS_MAX));
        let k = octets.len().div_ceil(FRAGMENT_BYTES_MIN).clamp(1, most);
        let sources: Vec<Vec<u8>> = octets
            .chunks(octets.len().div_ceil(k).max(1))
            .map(<[u8]>::to_vec)
            .collect();
        let plan = ParityPlan {
            failure: self.config.failure,
            floor: HarqConfig::floor(),
        };
        let k = u32::try_from(sources.len()).unwrap_or(1);
        // Half of the units stay for the second round.
        let first = plan.units(k, self.loss).min(UNITS_MAX / 2).max(k);
        let first = u8::try_from(first).unwrap_or(u8::MAX);
        let distance = u16::try_from(self.blocks.len()).unwrap_or(u16::MAX);
        self.current = Some(Round {
            block: self.base.plus(distance),
            index: 0,
            end: first,
        });
        self.blocks.push_back(Block {
            sources,
            first,
            kind: packet.kind,
            priority: packet.priority,
            state: State::Sending,
        });
    }

    fn block(&mut self, number: FrameNumber) -> Option<&mut Block> {
        let index = usize::from(number.ahead_of(self.base));
        self.blocks.get_mut(index)
    }

    /// What the receiver has and needs; `false` if these are no blocks of ours.
    pub(super) fn feedback(&mut self, next: FrameNumber, loss: u16, needs: &[u8]) -> bool {
        // The receiver may still wait for blocks that had their answer here.
        let (answered, arrived) = if next.is_behind(self.base) {
            (usize::from(self.base.ahead_of(next)), 0)
        } else {
            (0, usize::from(next.ahead_of(self.base)))
        };
        if arrived > self.blocks.len() {
            return false;
        }
        self.loss = PacketErrorRate::new(f64::from(loss) / f64::from(u16::MAX)).unwrap_or_default();
        for block in self.blocks.iter_mut().take(arrived) {
            // A block is not over for the receiver before its first round was on its way.
            if block.state != State::Sending {
                block.state = State::Done;
            }
        }
        let mut number = if answered > 0 { self.base } else { next };
        let told = self.blocks.len() - arrived;
        for &need in needs.iter().skip(answered).take(told) {
            match (need, self.block(number)) {
                (STILL_COMING, _) | (_, None) => {}
                (0, Some(block)) if block.state != State::Sending => block.state = State::Done,
                (0, _) => {}
                (need, Some(_)) => self.answer(number, need),
            }
            number = number.plus(1);
        }
        self.tidy();
        true
    }

    /// Sends the second round of a block that needs `need` units, if it had none.
    fn answer(&mut self, number: FrameNumber, need: u8) {
        let (loss, failure) = (self.loss, self.config.repair_failure);
        let Some(block) = self.block(number).filter(|b| b.state == State::Sent) else {
            return;
        };
        block.state = State::Answering;
        // A block that was lost whole needs its sources, however many the receiver guessed.
        let need = usize::from(need).min(block.sources.len());
        let units = units_for(u32::try_from(need).unwrap_or(1), loss, failure);
        let end = (u32::from(block.first) + units).min(UNITS_MAX);
        let round = Round {
            block: number,
            index: block.first,
            end: u8::try_from(end).unwrap_or(u8::MAX),
        };
        self.answers.push_back(round);
    }

    fn tidy(&mut self) {
        while self.blocks.front().is_some_and(|b| b.state == State::Done) {
            self.blocks.pop_front();
            self.base = self.base.plus(1);
        }
        while let Some(&(_, number)) = self.awaited.front()
            && self.block(number).is_none_or(|b| b.state != State::Sent)
        {
            self.awaited.pop_front();
        }
    }

    /// A block of which nothing was heard is answered as if nothing had arrived.
    pub(super) fn handle_deadline(&mut self, now: Instant) {
        self.tidy();
        while let Some(&(at, number)) = self.awaited.front()
            && at <= now
        {
            self.awaited.pop_front();
            let k = self.block(number).map_or(0, |block| block.sources.len());
            self.answer(number, u8::try_from(k).unwrap_or(u8::MAX));
            self.tidy();
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        self.awaited.front().map(|&(at, _)| Deadline {
            at,
            why: "feedback",
        })
    }

    /// The next unit: answers first. A block whose first round ends is awaited for `patience`.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        (patience, unit_time): (Duration, Duration),
        counters: &mut LinkCounters,
        out: &mut Vec<u8>,
    ) -> Option<FrameTransmit> {
        while let Some(mut round) = self.answers.pop_front() {
            let open = self
                .block(round.block)
                .is_some_and(|b| b.state == State::Answering);
            if !open || round.index >= round.end {
                continue;
            }
            let frame = self.unit(round, true, out);
            round.index += 1;
            self.await_longer(unit_time);
            if round.index < round.end {
                self.answers.push_front(round);
            } else if let Some(block) = self.block(round.block) {
                block.state = State::Done;
                self.tidy();
            }
            return frame;
        }
        let mut round = self.current.take()?;
        let frame = self.unit(round, false, out);
        round.index += 1;
        if round.index < round.end {
            self.current = Some(round);
        } else if let Some(block) = self.block(round.block) {
            block.state = State::Sent;
            let at = now + patience;
            let at = self.awaited.back().map_or(at, |&(last, _)| at.max(last));
            self.awaited.push_back((at, round.block));
        }
        if frame.is_none() {
            counters.refused += 1;
        }
        frame
    }

    /// After a block's last unit an answer goes out: the receiver, should it miss the last, takes it
    /// for one within the block, and waits for as long.
    fn await_longer(&mut self, unit_time: Duration) {
        let begun = self.current.is_some_and(|round| round.index > 0);
        if let Some((at, _)) = self.awaited.back_mut().filter(|_| !begun) {
            *at += unit_time;
        }
    }

    fn unit(&mut self, round: Round, second: bool, out: &mut Vec<u8>) -> Option<FrameTransmit> {
        let epoch = self.epoch;
        let block = self.block(round.block)?;
        let k = u8::try_from(block.sources.len()).ok()?;
        let unit = Unit {
            epoch,
            block: round.block,
            index: round.index,
            k,
            n: round.end,
            second_round: second,
        };
        let start = out.len();
        let mut symbol = Vec::new();
        let octets = if let Some(source) = block.sources.get(usize::from(round.index)) {
            source
        } else {
            let sources: Vec<&[u8]> = block.sources.iter().map(Vec::as_slice).collect();
            encode_repair(&sources, round.index.checked_sub(k)?, &mut symbol).ok()?;
            &symbol
        };
        HarqFrame::Unit(unit, octets).encode(out);
        let (class, kind) = if round.index >= k {
            (FrameClass::Parity, Kind::Repair)
        } else {
            (FrameClass::Data, block.kind)
        };
        Some(FrameTransmit {
            len: out.len() - start,
            class,
            kind,
            priority: block.priority,
        })
    }
}
