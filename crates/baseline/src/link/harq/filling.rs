//! The first round of the block that is being filled: the choice of the unit that leaves next.
//!
//! A packet's parts leave as soon as it comes. Parity for a whole block follows in step with them,
//! between packets. A share of it is kept for the block's end, where nothing else protects the last
//! packets. The block ends when it is full, or when the medium is free and there is no packet.

use super::sizing::{FIRST_ROWS_MAX, Sizing};
use crate::wire::link::harq::LEFT_OPEN;
use fulmar_proto::units::Instant;

/// The share of a block's parity that is kept for its end (docs/models/link.md).
const KEPT_FOR_THE_END: f64 = 0.2;

/// The unit that leaves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The source with this index.
    Source(u8),
    /// A row over the sources so far.
    Parity {
        /// The rows left in the round, as the unit tells them.
        left: u8,
    },
}

/// A first round under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Filling {
    /// The sources of the block so far.
    span: u8,
    /// The sources that left.
    sent: u8,
    /// The rows that left.
    rows: u8,
    /// The rows that are due; a fraction is part of a row.
    credit: f64,
    /// The rows that leave at the end, once the end has come.
    tail: Option<u8>,
    /// The time since when the medium is free and there is nothing to send.
    idle: Option<Instant>,
}

impl Filling {
    /// Whether the block may take another packet now.
    pub(super) fn takes_packets(&self) -> bool {
        self.tail.is_none() && !self.has_more()
    }

    /// Whether a unit of the packets taken is still to leave.
    pub(super) fn has_more(&self) -> bool {
        self.sent < self.span || self.credit >= 1.0
    }

    /// Whether the round is over.
    pub(super) fn is_over(&self) -> bool {
        self.tail == Some(0) && self.sent == self.span
    }

    /// Takes a packet of `parts`, which makes `span` sources; a block of such packets has `whole`.
    pub(super) fn on_packet(
        &mut self,
        sizing: Sizing,
        (parts, whole): (u8, u8),
        span: u8,
        is_full: bool,
    ) {
        self.span = span;
        self.idle = None;
        if is_full {
            self.credit = 0.0;
            self.close(sizing);
        } else {
            let rows = f64::from(sizing.rows(whole)) * (1.0 - KEPT_FOR_THE_END);
            self.credit += rows * f64::from(parts) / f64::from(whole.max(1));
        }
    }

    /// Closes the block: it takes no further packet.
    pub(super) fn close(&mut self, sizing: Sizing) {
        let rows = sizing.rows(self.span);
        // The unit that ends the round tells so.
        let least = u8::from(rows > 0);
        let tail = rows.saturating_sub(self.rows).max(least);
        self.tail = Some(tail.min(FIRST_ROWS_MAX - self.rows));
        self.idle = None;
    }

    /// The time since when the block waits for packets that the medium could take.
    pub(super) const fn idle_since(&self) -> Option<Instant> {
        self.idle
    }

    pub(super) fn is_idle(&self, now: Instant) -> bool {
        self.idle.is_some_and(|since| since <= now)
    }

    /// Takes the unit that leaves at `now`.
    pub(super) fn next(&mut self, now: Instant) -> Option<Next> {
        if self.sent < self.span {
            let index = self.sent;
            self.sent += 1;
            return Some(Next::Source(index));
        }
        if let Some(tail) = &mut self.tail {
            *tail = tail.checked_sub(1)?;
            self.rows += 1;
            return Some(Next::Parity { left: *tail });
        }
        if self.credit >= 1.0 && self.rows + 1 < FIRST_ROWS_MAX {
            self.credit -= 1.0;
            self.rows += 1;
            return Some(Next::Parity { left: LEFT_OPEN });
        }
        // The code's last rows are kept for the end.
        self.credit = self.credit.fract();
        self.idle = Some(now);
        None
    }
}
