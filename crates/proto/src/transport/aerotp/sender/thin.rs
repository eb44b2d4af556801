//! Thin flows: what was written has left, so nothing later shows a loss, and the rate allows more.
//!
//! # Late answers
//! A TPDU without an answer after a round trip, the receiver's longest wait and some slack is repeated, whether or not
//! anything later arrived, and so is its repetition. A repetition that turns out needless widens the slack: the answer
//! was slower than thought, or was lost. A rightful one narrows it again.
//!
//! # Copies of repetitions
//! Sending everything twice costs a packet for each message. Sending repetitions twice costs one for each *lost* message, and halves
//! nothing but the long waits, which are those that matter (`docs/adr/0034-repair-of-thin-flows.md`). The number is the least
//! that leaves less than [`SLOW_MAX`] of the messages behind a second wait, predicted from the loss seen; the
//! overhead that is allowed bounds it.

use super::super::config::ThinRepair;
use super::super::window_repair::WindowSymbols;
use super::{Sender, SenderTimer, Unit};
use crate::fec::window::LENGTH_PREFIX;
use crate::machine::TransmitKind;
use crate::transport::parts::{LateRepetition, LossShare, RttEstimator, Settled};
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;
use crate::wire::aerotp::short::{NAMED_BYTES, Named, WINDOW_BYTES};

/// The share of messages, of 2^16, that may wait for a second repetition: one in a hundred.
const SLOW_MAX: u32 = (1 << 16) / 100;
/// The times that a repetition leaves, at most.
const COPIES_MAX: u32 = 4;
/// The messages that one loss may keep waiting, at most, as far as copies are concerned.
const BLOCKED_MAX: u32 = 64;
/// The TPDUs in flight of a flow whose repetitions have copies: what is sent more is no matter to a link that carries
/// more flows than this one.
const IN_FLIGHT_MAX: usize = 32;
/// The octets of copies that may be saved up.
const CREDIT_MAX: u64 = 16 * 1_500;
/// The part of a round trip by which an answer may be late in any case, and by which slack grows.
const SLACK_PART: u32 = 32;
/// The part of the slack that a rightful repetition takes back.
const SLACK_NARROWS: u32 = 8;
/// The octets of a symbol's frame beyond those of the longest data that it spans.
const SYMBOL_MORE: usize = WINDOW_BYTES + LENGTH_PREFIX - NAMED_BYTES;
/// The weight of the past in the mean time between two TPDUs.
const GAP_MEMORY: u32 = 8;

/// The repair of one flow's data while nothing waits to be sent.
#[derive(Debug)]
pub(super) struct Thin {
    allowed: ThinRepair,
    /// Loss of first transmissions.
    loss: LossShare,
    /// Hundredths of octets that copies may have.
    credit: u64,
    slack: Duration,
    gap: Option<Duration>,
    last_at: Option<Instant>,
    /// Repair symbols, if the peer takes them, and how many of them are due.
    symbols: Option<(Named, WindowSymbols)>,
    symbols_due: u8,
}

impl Thin {
    pub(super) fn new(allowed: ThinRepair) -> Self {
        Self {
            allowed,
            loss: LossShare::default(),
            credit: 0,
            slack: Duration::ZERO,
            gap: None,
            last_at: None,
            symbols: None,
            symbols_due: 0,
        }
    }

    pub(super) fn on_first_sent(&mut self, now: Instant, len: usize) {
        let earned = len as u64 * u64::from(self.allowed.overhead_percent);
        self.credit = (self.credit + earned).min(CREDIT_MAX * 100);
        if let Some(last_at) = self.last_at.replace(now) {
            let gap = now.saturating_since(last_at);
            let past = self.gap.map(|past| past * (GAP_MEMORY - 1) + gap);
            self.gap = Some(past.map_or(gap, |sum| sum / GAP_MEMORY));
        }
    }

    /// Notes that a TPDU was held lost after so many attempts.
    pub(super) fn on_held_lost(&mut self, attempts: u16) {
        if attempts == 1 {
            self.loss.lost();
        }
    }

    /// Notes that a TPDU arrived.
    pub(super) fn on_settled(&mut self, settled: Settled, rtt: Option<Duration>) {
        match settled.late {
            LateRepetition::Needlessly => {
                let rtt = rtt.unwrap_or_default();
                self.slack = (self.slack + rtt / SLACK_PART).min(rtt);
                self.loss.arrived();
            }
            LateRepetition::Rightly => self.slack -= self.slack / SLACK_NARROWS,
            LateRepetition::Never => {}
        }
        if settled.attempts == 1 {
            self.loss.arrived();
        }
    }

    /// The time without an answer after which a TPDU is repeated, once there was an answer to anything.
    fn patience(&self, rtt: &RttEstimator) -> Option<Duration> {
        let smoothed = rtt.smoothed()?;
        let least = smoothed / SLACK_PART;
        Some(smoothed + (rtt.variation() * 4).max(least) + self.slack)
    }

    /// The messages that wait for one that is repeated after `patience`, itself included, in a flow in order.
    fn blocked(&self, patience: Duration) -> u32 {
        let gap = self.gap.unwrap_or_default().as_nanos().max(1);
        let behind = patience.as_nanos() / gap;
        u32::try_from(behind)
            .unwrap_or(BLOCKED_MAX)
            .min(BLOCKED_MAX - 1)
            + 1
    }

    /// The copies that follow a repetition of `len` octets, the `attempts`-th transmission. They are paid for.
    fn copies(&mut self, attempts: u16, len: usize, patience: Duration) -> u8 {
        let cost = len.max(1) as u64 * 100;
        let affordable = u32::try_from(self.credit / cost).unwrap_or(COPIES_MAX);
        // All of a repetition and the transmission before it are lost so often:
        let together = self
            .loss
            .enough(SLOW_MAX / self.blocked(patience), COPIES_MAX + 1);
        let wanted = together.saturating_sub(1).max(1);
        // What each loss may cost follows from how many there are: a few copies for each do more than many for some.
        let each = u32::from(self.allowed.overhead_percent) / self.loss.percent().max(1);
        let copies = if attempts == 2 {
            (wanted - 1).min(each)
        } else if self.allowed.overhead_percent > 0 {
            // Who waits for the third time has waited longest.
            wanted.min(COPIES_MAX - 1).min(each + 1)
        } else {
            0
        };
        let copies = copies.min(affordable);
        self.credit -= u64::from(copies) * cost;
        u8::try_from(copies).unwrap_or_default()
    }
}

impl Sender {
    /// Whether what leaves should be answered at once: nothing follows it.
    pub(in super::super) fn asks_at_once(&self) -> bool {
        self.thin.is_some() && !self.has_new()
    }

    /// The time without an answer after which a TPDU is late, while the flow is thin.
    pub(super) fn late_after(&self) -> Option<Duration> {
        let thin = self.thin.as_ref().filter(|_| !self.has_new())?;
        let patience = thin.patience(&self.rtt)?;
        Some(patience + self.ack_flush + self.board.reorder_window())
    }

    /// Lets copies follow the repetition that just left, if they are worth it.
    pub(super) fn copy_repetition(&mut self, seq: TpduSeq, len: usize) {
        let patience = self.late_after();
        let attempts = self.board.get(seq).map_or(0, |entry| entry.attempts);
        let is_thin = self.board.in_flight() <= IN_FLIGHT_MAX;
        let Some(patience) = patience.filter(|_| is_thin) else {
            return;
        };
        let mends_more = self.board.repeated().nth(1).is_some() && self.has_room_for_symbol();
        if let Some(thin) = &mut self.thin {
            let copies = thin.copies(attempts, len, patience);
            if thin.symbols.is_some() && mends_more {
                thin.symbols_due = thin.symbols_due.saturating_add(copies);
            } else {
                self.copies.follow_by(seq, copies);
            }
        }
    }

    /// Sends repair symbols over windows under this name from now on, or none.
    pub(in super::super) fn use_windows(&mut self, named: Option<Named>) {
        if let Some(thin) = &mut self.thin {
            let before = thin.symbols.take().map(|(_, symbols)| symbols);
            thin.symbols = named.map(|named| (named, before.unwrap_or_default()));
            thin.symbols_due = 0;
        }
    }

    /// Whether a repair symbol over what was repeated fits the path in one piece.
    fn has_room_for_symbol(&self) -> bool {
        let mut repeated = self.board.repeated();
        repeated.all(|seq| {
            let len = self.board.get(seq).map_or(0, |entry| entry.len as usize);
            len + SYMBOL_MORE <= self.payload_bytes
        })
    }

    pub(super) fn has_symbol_due(&self) -> bool {
        let due = self.thin.as_ref().is_some_and(|thin| thin.symbols_due > 0);
        due && !self.board.is_empty()
    }

    /// The next repair symbol over what was repeated and is not confirmed.
    pub(super) fn next_symbol(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Unit> {
        if !self.has_symbol_due() {
            return None;
        }
        let thin = self.thin.as_mut()?;
        thin.symbols_due -= 1;
        let (named, symbols) = thin.symbols.as_mut()?;
        let named = *named;
        let (seq, window) = symbols.write(&self.board, &self.buffer, scratch)?;
        self.board.on_symbol(now);
        Some(Unit {
            seq,
            kind: TransmitKind::Repair,
            position: 0,
            len: scratch.len(),
            is_copy: false,
            repair: None,
            window: Some((named, window)),
        })
    }

    /// Repeats what got no answer in time, though the path is not silent. Returns whether the path is silent.
    pub(super) fn on_late(&mut self, now: Instant) -> bool {
        let Some(after) = self.late_after().filter(|_| !self.stalled) else {
            return false;
        };
        if self.is_silent(now) {
            return true;
        }
        match self.board.oldest_in_flight() {
            // It leaves again as soon as the rate allows.
            Some((seq, _)) if self.copies.remain_of(seq) => {
                self.timers.set(SenderTimer::Late, now + after);
            }
            _ => {
                self.board.on_late(now - after);
                self.arm_retransmission(now);
            }
        }
        false
    }

    /// Sets the timer for the answer to what was sent at `sent_at`.
    pub(super) fn arm_late(&mut self, now: Instant, sent_at: Instant) {
        match self.late_after().filter(|_| !self.stalled) {
            Some(after) => self
                .timers
                .set(SenderTimer::Late, (sent_at + after).max(now)),
            None => self.timers.stop(SenderTimer::Late),
        }
    }
}
