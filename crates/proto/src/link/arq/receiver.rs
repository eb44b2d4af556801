//! The receiving half: what is released, and what is acknowledged.

use super::ArqConfig;
use super::ArqScheme;
use crate::link::parts::{FormerLives, Placed, ReleaseWindow};
use crate::link::{FrameClass, FrameTransmit, LinkCounters};
use crate::machine::{Deadline, Kind, Priority};
use crate::units::{Duration, Instant};
use crate::wire::link::FrameNumber;
use crate::wire::link::arq::{ARQ_BITS_MAX, ArqFrame, Epoch};

/// A frame with a packet, as it arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'a> {
    pub(super) epoch: Epoch,
    pub(super) number: FrameNumber,
    pub(super) base: FrameNumber,
    pub(super) again: bool,
    pub(super) packet: &'a [u8],
}

/// The receiving half of one end.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    config: ArqConfig,
    /// The peer's life whose numbers are counted.
    epoch: Option<Epoch>,
    former: FormerLives<Epoch>,
    window: ReleaseWindow,
    ack_due: bool,
    /// When the first packet that waits is released in spite of the hole before it.
    release_at: Option<Instant>,
}

impl Receiver {
    pub(super) fn new(config: ArqConfig) -> Self {
        let size = config.effective_window();
        Self {
            config,
            epoch: None,
            former: FormerLives::default(),
            window: ReleaseWindow::new(config.keeps_order(), size, FrameNumber(0)),
            ack_due: false,
            release_at: None,
        }
    }

    /// Follows the peer's life `epoch`, which says its base is `base`. `false` for a former life's.
    fn follow(&mut self, epoch: Epoch, base: FrameNumber) -> bool {
        if self.epoch == Some(epoch) {
            self.window.advance_to(base);
            return true;
        }
        if self.former.contains(epoch) {
            return false;
        }
        if let Some(former) = self.epoch.replace(epoch) {
            self.former.push(former);
        }
        self.window.restart_at(base);
        true
    }

    pub(super) fn data(
        &mut self,
        now: Instant,
        arrival: Arrival<'_>,
        hold: Duration,
        counters: &mut LinkCounters,
    ) {
        let Arrival {
            epoch,
            number,
            base,
            again,
            packet,
        } = arrival;
        if number.ahead_of(base) >= ArqConfig::WINDOW_MAX || !self.follow(epoch, base) {
            counters.unexpected += 1;
            return;
        }
        self.ack_due = true;
        let in_turn = self.config.scheme != ArqScheme::GoBackN || number == self.window.next();
        let placed = if in_turn {
            self.window.place(now, number, packet.to_vec())
        } else {
            Placed::Known
        };
        match placed {
            Placed::Taken => counters.recovered_by_arq += u64::from(again),
            Placed::Known => counters.duplicates += 1,
            Placed::Beyond => counters.unexpected += 1,
        }
        self.set_release(hold);
    }

    pub(super) fn advance(
        &mut self,
        epoch: Epoch,
        base: FrameNumber,
        hold: Duration,
        counters: &mut LinkCounters,
    ) {
        if self.follow(epoch, base) {
            self.ack_due = true;
            self.set_release(hold);
        } else {
            counters.unexpected += 1;
        }
    }

    fn set_release(&mut self, hold: Duration) {
        self.release_at = self.window.blocked_since().map(|since| since + hold);
    }

    pub(super) fn handle_deadline(&mut self, now: Instant, hold: Duration) {
        while self.release_at.is_some_and(|at| at <= now) {
            self.window.pass_first_holes();
            self.set_release(hold);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        self.release_at.map(|at| Deadline { at, why: "release" })
    }

    /// The acknowledgement, if one is due: everything that is known.
    pub(super) fn poll(&mut self, out: &mut Vec<u8>) -> Option<FrameTransmit> {
        let epoch = self.epoch?;
        if !core::mem::take(&mut self.ack_due) {
            return None;
        }
        let start = out.len();
        let mut bits = [0; ARQ_BITS_MAX];
        let mut used = 0;
        let known = self.window.beyond_next().take(ARQ_BITS_MAX * 8);
        for (index, arrived) in known.enumerate() {
            if arrived && let Some(octet) = bits.get_mut(index / 8) {
                *octet |= 0x80 >> (index % 8);
                used = index / 8 + 1;
            }
        }
        ArqFrame::Ack {
            epoch,
            next: self.window.next(),
            bits: bits.get(..used).unwrap_or_default(),
        }
        .encode(out);
        Some(FrameTransmit {
            len: out.len() - start,
            class: FrameClass::Control,
            kind: Kind::Control,
            priority: Priority(u8::MAX),
        })
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
