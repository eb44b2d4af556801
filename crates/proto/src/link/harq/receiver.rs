//! The receiving half: rebuilding, the loss estimate, feedback, release.

use super::HarqConfig;
use crate::fec::block::BlockDecoder;
use crate::link::parts::{Acquaintance, LossEstimate, Placed, ReleaseWindow};
use crate::link::{FrameClass, FrameTransmit, LinkCounters};
use crate::machine::{Deadline, Kind, Priority};
use crate::rng::Rng;
use crate::units::{Duration, Instant};
use crate::wire::checksum::crc32;
use crate::wire::link::arq::Epoch;
use crate::wire::link::harq::{HarqFrame, STILL_COMING, Unit};
use crate::wire::link::{Challenge, FrameNumber};
use core::num::NonZeroU8;
use std::collections::{BTreeMap, VecDeque};

/// More octets than a packet and its check have; bounds what a block can hold.
const BLOCK_OCTETS_MAX: usize = 70_000;
/// Unit times that pass beyond a block's last unit before it counts as over (spec 2.4).
const GAP_UNITS: u32 = 2;

/// Units that are kept until their sender is believed: twenty packets, or more.
const UNITS_WAITING_MAX: usize = 1_024;
/// A block that has begun and is not settled.
#[derive(Clone, Debug)]
struct Reception {
    decoder: BlockDecoder,
    k: u8,
    n: u8,
    /// Units of the first round that arrived.
    arrived: u32,
    with_parity: bool,
}

/// A unit that is not believed yet.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) unit: Unit,
    pub(super) octets: Vec<u8>,
}

/// The receiving half of one end.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) peer: Acquaintance<Waiting>,
    pub(super) size: u16,
    pub(super) window: ReleaseWindow,
    /// By number. Never iterated in the order of keys, which wrap.
    blocks: BTreeMap<u16, Reception>,
    /// One more than the highest block that has begun.
    pub(super) horizon: FrameNumber,
    /// Whether the highest block's first round is over.
    ended: bool,
    /// The units of the last block that was measured: the best guess for one that was lost whole.
    last_n: u32,
    estimate: LossEstimate,
    feedback_due: bool,
    gap_at: Option<Instant>,
    repeat_at: Option<Instant>,
    /// When blocks that were asked for are passed over, in order.
    verdicts: VecDeque<(Instant, FrameNumber)>,
    pub(super) unit_time: Duration,
    pub(super) round_trip: Duration,
}

impl Receiver {
    /// Nobody is known; challenges are drawn from `rng`.
    pub(super) fn new(config: HarqConfig, round_trip: Duration, rng: &mut Rng) -> Self {
        let size = config.effective_window();
        Self {
            peer: Acquaintance::new(rng, UNITS_WAITING_MAX),
            size,
            window: ReleaseWindow::new(true, size, FrameNumber(0)),
            blocks: BTreeMap::new(),
            horizon: FrameNumber(0),
            ended: true,
            last_n: 1,
            estimate: LossEstimate::new(config.memory),
            feedback_due: false,
            gap_at: None,
            repeat_at: None,
            verdicts: VecDeque::new(),
            unit_time: Duration::ZERO,
            round_trip,
        }
    }

    /// From now on the life `epoch` is followed, from block `first` on.
    pub(super) fn follow(&mut self, epoch: Epoch, first: FrameNumber) {
        self.peer.follow(epoch);
        self.window.restart_at(first);
        self.horizon = first;
        self.ended = true;
        self.blocks.clear();
        self.verdicts.clear();
        self.gap_at = None;
        self.repeat_at = None;
    }

    pub(super) fn unit(
        &mut self,
        now: Instant,
        unit: Unit,
        octets: &[u8],
        unit_time: Duration,
        counters: &mut LinkCounters,
    ) {
        if usize::from(unit.k) * octets.len() > BLOCK_OCTETS_MAX {
            counters.unexpected += 1;
            return;
        }
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
        let blocks = self
            .blocks
            .values()
            .map(|block| block.decoder.memory_bytes());
        let waiting = self.peer.all_waiting().map(|waiting| waiting.octets.len());
        self.window.held_octets() + blocks.chain(waiting).sum::<usize>()
    }

    /// A unit of the life that is followed.
    pub(super) fn believe(
        &mut self,
        now: Instant,
        unit: Unit,
        octets: &[u8],
        counters: &mut LinkCounters,
    ) {
        let unit_time = self.unit_time;
        if unit.block.is_behind(self.window.next()) && unit.block.is_behind(self.horizon) {
            counters.duplicates += 1;
        }
        if unit.block.ahead_of(self.window.next()) >= self.size
            && !unit.block.is_behind(self.window.next())
        {
            // The sender is done with what we wait for.
            self.window
                .advance_to(unit.block.plus(1).plus(self.size.wrapping_neg()));
            self.forget_settled();
        }
        self.begin(now, unit.block);
        self.take(unit, octets, counters);
        self.place(now, unit.block, counters);
        let is_last = unit.index.checked_add(1) == Some(unit.n);
        if is_last && unit.second_round {
            // The only answer is over.
            self.window.pass_over(unit.block);
        } else if is_last && unit.block.plus(1) == self.horizon {
            self.end(now, unit.block);
        } else if !unit.second_round && unit.block.plus(1) == self.horizon && !self.ended {
            let left = u32::from(unit.n.saturating_sub(unit.index)) + GAP_UNITS;
            self.gap_at = Some(now + unit_time * left);
        } else if let Some(at) = self.gap_at {
            // An answer went between two units of the block that is coming.
            self.gap_at = Some(at.max(now) + unit_time);
        }
        self.forget_settled();
    }

    /// A unit of `block` is here: those before it are over.
    fn begin(&mut self, now: Instant, block: FrameNumber) {
        if block.is_behind(self.horizon) {
            return;
        }
        // The link keeps order, so what was coming will not come any more; nor will what was lost
        // whole. A window at most, for farther blocks were passed over.
        if !self.ended {
            self.end(now, self.horizon.plus(u16::MAX));
        }
        if self.horizon.is_behind(self.window.next()) {
            self.horizon = self.window.next();
        }
        if block.is_behind(self.horizon) {
            return;
        }
        while self.horizon != block {
            let lost = self.horizon;
            self.horizon = lost.plus(1);
            self.end(now, lost);
        }
        self.horizon = block.plus(1);
        self.ended = false;
    }

    fn take(&mut self, unit: Unit, octets: &[u8], counters: &mut LinkCounters) {
        let Some(k) = NonZeroU8::new(unit.k) else {
            return;
        };
        let coming = unit.block.plus(1) == self.horizon && !self.ended;
        if !self.window.is_open(unit.block) && !coming {
            counters.duplicates += 1;
            return;
        }
        let reception = self
            .blocks
            .entry(unit.block.0)
            .or_insert_with(|| Reception {
                decoder: BlockDecoder::new(k),
                k: unit.k,
                n: unit.n,
                arrived: 0,
                with_parity: false,
            });
        if reception.k != unit.k {
            counters.unexpected += 1;
            return;
        }
        if !unit.second_round {
            reception.arrived += 1;
        }
        let added = match unit.index.checked_sub(unit.k) {
            None => reception.decoder.add_source(unit.index, octets),
            Some(repair) => {
                let added = reception.decoder.add_repair(repair, octets);
                reception.with_parity |= added.is_ok();
                added
            }
        };
        counters.duplicates += u64::from(added.is_err() && unit.second_round);
    }

    /// Rebuilds a block that has enough units, and releases its packet.
    fn place(&mut self, now: Instant, number: FrameNumber, counters: &mut LinkCounters) {
        let Some(reception) = self.blocks.get_mut(&number.0) else {
            return;
        };
        if reception.decoder.needed() > 0 || self.window.look(number) != Placed::Taken {
            return;
        }
        let asked = self.verdicts.iter().any(|&(_, asked)| asked == number);
        match packet_of(reception) {
            Some(packet) => {
                counters.recovered_by_arq += u64::from(asked);
                counters.recovered_by_parity += u64::from(!asked && reception.with_parity);
                self.window.place(now, number, packet);
            }
            None => self.window.pass_over(number),
        }
    }

    /// A block's first round is over: it is measured, and what it lacks is asked for.
    fn end(&mut self, now: Instant, number: FrameNumber) {
        if number.plus(1) == self.horizon {
            self.ended = true;
            self.gap_at = None;
        }
        if let Some(reception) = self.blocks.get(&number.0) {
            self.last_n = u32::from(reception.n);
            let lost = self.last_n.saturating_sub(reception.arrived);
            self.estimate.observe(self.last_n, lost);
        } else {
            self.estimate.observe(self.last_n, self.last_n);
        }
        self.feedback_due = true;
        if self.window.is_open(number) {
            // The feedback's way, the answer's, and the time of what may stand before either.
            let at = now + self.round_trip + self.unit_time * (3 * self.last_n + 10);
            let at = self.verdicts.back().map_or(at, |&(last, _)| at.max(last));
            self.verdicts.push_back((at, number));
        }
    }

    fn forget_settled(&mut self) {
        let (window, horizon, ended) = (&self.window, self.horizon, self.ended);
        self.blocks.retain(|&number, _| {
            let number = FrameNumber(number);
            window.is_open(number) || (!ended && number.plus(1) == horizon)
        });
        while let Some(&(_, number)) = self.verdicts.front()
            && !self.window.is_open(number)
        {
            self.verdicts.pop_front();
        }
        if self.verdicts.is_empty() {
            self.repeat_at = None;
        }
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        if self.gap_at.is_some_and(|at| at <= now) {
            self.gap_at = None;
            if !self.ended {
                self.end(now, self.horizon.plus(u16::MAX));
            }
        }
        while let Some(&(at, number)) = self.verdicts.front()
            && at <= now
        {
            self.verdicts.pop_front();
            self.window.pass_over(number);
            self.feedback_due = true;
        }
        if self.repeat_at.is_some_and(|at| at <= now) {
            self.repeat_at = None;
            self.feedback_due = true;
        }
        self.forget_settled();
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let named = |at: Option<Instant>, why| at.map(|at| Deadline { at, why });
        let verdict = self.verdicts.front().map(|&(at, _)| at);
        [
            named(self.gap_at, "gap"),
            named(verdict, "verdict"),
            named(self.repeat_at, "repeat"),
        ]
        .into_iter()
        .fold(None, Deadline::earlier)
    }

    /// A challenge or feedback, if one is due.
    pub(super) fn poll(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameTransmit> {
        let start = out.len();
        if let Some(challenge) = self.peer.poll_challenge() {
            HarqFrame::Challenge(challenge).encode(out);
        } else {
            self.feed_back(now, out)?;
        }
        Some(FrameTransmit {
            len: out.len() - start,
            class: FrameClass::Control,
            kind: Kind::Control,
            priority: Priority(u8::MAX),
        })
    }

    /// Everything that is known, if it is due.
    fn feed_back(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<()> {
        let epoch = self.peer.known()?;
        if !core::mem::take(&mut self.feedback_due) {
            return None;
        }
        let next = self.window.next();
        let begun = if self.horizon.is_behind(next) {
            0
        } else {
            self.horizon.ahead_of(next)
        };
        let needs: Vec<u8> = (0..begun.min(self.size))
            .map(|distance| self.need(next.plus(distance)))
            .collect();
        let wants = needs.iter().any(|&need| need != 0 && need != STILL_COMING);
        self.repeat_at = (wants && !self.verdicts.is_empty())
            .then(|| now + self.unit_time * 4 + Duration::from_micros(10));
        let share = self.estimate.value().value() * f64::from(u16::MAX);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of at most 1 times 65,535"
        )]
        let loss = share.round() as u16;
        HarqFrame::Feedback {
            epoch,
            next,
            loss,
            needs: &needs,
        }
        .encode(out);
        Some(())
    }

    fn need(&self, number: FrameNumber) -> u8 {
        if !self.window.is_open(number) {
            return 0;
        }
        if number.plus(1) == self.horizon && !self.ended {
            return STILL_COMING;
        }
        match self.blocks.get(&number.0) {
            Some(reception) => u8::try_from(reception.decoder.needed())
                .unwrap_or(STILL_COMING - 1)
                .clamp(1, STILL_COMING - 1),
            // Lost whole: as many units as are needed are not known, so the most there are.
            None => HarqConfig::FRAGMENTS_MAX,
        }
    }

    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        let packet = self.window.pop()?;
        out.extend_from_slice(&packet);
        Some(packet.len())
    }

    pub(super) const fn passed_over(&self) -> u64 {
        self.window.passed_over()
    }
}

/// The packet of a block that has enough units, if its check holds.
fn packet_of(reception: &mut Reception) -> Option<Vec<u8>> {
    let held: Vec<Option<Vec<u8>>> = (0..reception.k)
        .map(|index| reception.decoder.source(index).map(<[u8]>::to_vec))
        .collect();
    let mut rebuilt = reception.decoder.decode().ok()?.into_iter();
    let mut octets = Vec::new();
    for source in held {
        match source {
            Some(source) => octets.extend_from_slice(&source),
            // They come in order.
            None => octets.extend_from_slice(&rebuilt.next()?.1),
        }
    }
    let (packet, check) = octets.split_last_chunk::<4>()?;
    let sound = !packet.is_empty() && crc32(packet) == u32::from_be_bytes(*check);
    sound.then(|| packet.to_vec())
}
