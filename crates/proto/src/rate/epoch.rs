//! The stretches of sending: a little more than the estimate, a little less, or the estimate.

use crate::units::{Duration, Instant};

/// The most of the estimate that is sent in a look.
pub(super) const LOOK: f64 = 0.5;

/// The purpose of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EpochKind {
    /// The first search for the rate.
    Start,
    /// More than the estimate is sent, to see whether more arrives.
    Up,
    /// Less is sent: what the stretch before queued drains, and the shares of both are compared.
    Down,
    /// The estimate is sent.
    Cruise,
}

/// A stretch of sending, and what became of it so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    pub(super) kind: EpochKind,
    /// The number of its first datagram.
    pub(super) first: u64,
    pub(super) began: Instant,
    pub(super) lasts: Duration,
    /// The rate as a multiple of the estimate.
    pub(super) gain: f64,
    /// Octets of it that are known to have been sent, and to have arrived.
    pub(super) sent: f64,
    pub(super) arrived: f64,
    /// The seconds in which they were sent.
    pub(super) sending: f64,
    /// The seconds in which they arrived, or were lost.
    pub(super) arriving: f64,
    /// Whether a queue stood through some window.
    pub(super) queued: bool,
    /// The delay above the least when it ended: the least of its last reports.
    pub(super) tail: f64,
    /// Whether there was always something to send.
    pub(super) busy: bool,
    /// Whether it was long enough without anything arriving that nothing can be told from it.
    pub(super) broken: bool,
}

impl Epoch {
    pub(super) const fn new(
        kind: EpochKind,
        first: u64,
        began: Instant,
        lasts: Duration,
        gain: f64,
    ) -> Self {
        Self {
            kind,
            first,
            began,
            lasts,
            gain,
            sent: 0.0,
            arrived: 0.0,
            sending: 0.0,
            arriving: 0.0,
            queued: false,
            tail: 0.0,
            busy: true,
            broken: false,
        }
    }

    /// Whether so much less is sent that it tells what too much does.
    pub(super) fn is_look(&self) -> bool {
        self.kind == EpochKind::Down && self.gain <= LOOK
    }

    /// The share of its octets that arrived.
    pub(super) fn share(&self) -> f64 {
        self.arrived / self.sent.max(1.0)
    }

    /// The octets of it that were sent, for each second in which they arrived.
    pub(super) fn passed_rate(&self) -> f64 {
        self.sent / self.arriving.max(1e-9)
    }

    /// The rate at which it was sent, in octets a second.
    pub(super) fn sent_rate(&self) -> f64 {
        self.sent / self.sending.max(1e-9)
    }
}
