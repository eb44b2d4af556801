//! The counters of a link machine.

use super::FrameClass;
use crate::wire::link::FrameReject;

/// Frames by [`FrameClass`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Frames of [`FrameClass::Data`].
    pub data: u64,
    /// Frames of [`FrameClass::Again`].
    pub again: u64,
    /// Frames of [`FrameClass::Parity`].
    pub parity: u64,
    /// Frames of [`FrameClass::Control`].
    pub control: u64,
}

impl FrameCounts {
    /// Adds `amount` frames to the count of `class`.
    pub const fn add(&mut self, class: FrameClass, amount: u64) {
        let count = match class {
            FrameClass::Data => &mut self.data,
            FrameClass::Again => &mut self.again,
            FrameClass::Parity => &mut self.parity,
            FrameClass::Control => &mut self.control,
        };
        *count = count.saturating_add(amount);
    }

    /// The sum of all classes.
    pub const fn total(&self) -> u64 {
        self.data + self.again + self.parity + self.control
    }
}

/// Counts of one link machine since its birth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets taken from above.
    pub offered: u64,
    /// Packets dropped because the machine was not ready, or because they are too long for a frame.
    pub refused: u64,
    /// Packets that this end gave up, because all tries were used up.
    pub given_up: u64,
    /// Frames named by requests that this end no longer keeps: the window moved on, or it gave them up. Each request counts.
    pub asked_too_late: u64,
    /// Packets handed up.
    pub released: u64,
    /// Released packets that a first loss hit and that parity sent along recovered.
    pub recovered_by_parity: u64,
    /// Released packets that needed a retransmission or a later round of parity.
    pub recovered_by_arq: u64,
    /// Packets that this end, receiving, knows to be missing and passed over.
    pub skipped: u64,
    /// Frames sent.
    pub frames: FrameCounts,
    /// Frames that passed their check but brought nothing new.
    pub duplicates: u64,
    /// Frames that passed their check but fit no state of this end: a restarted peer's, or
    /// nonsense.
    pub unexpected: u64,
    rejected: [u64; FrameReject::ALL.len()],
}

impl LinkCounters {
    /// Counts a frame that could not be used.
    pub fn reject(&mut self, reason: FrameReject) {
        let index = FrameReject::ALL.iter().position(|&known| known == reason);
        if let Some(count) = index.and_then(|index| self.rejected.get_mut(index)) {
            *count += 1;
        }
    }

    /// Frames that could not be used for `reason`.
    pub fn rejected(&self, reason: FrameReject) -> u64 {
        let index = FrameReject::ALL.iter().position(|&known| known == reason);
        index
            .and_then(|index| self.rejected.get(index))
            .copied()
            .unwrap_or_default()
    }

    /// Frames that could not be used.
    pub fn rejected_total(&self) -> u64 {
        self.rejected.iter().sum()
    }
}
