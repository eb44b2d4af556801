//! A TPDU that was sent and not yet released.

use crate::units::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    InFlight,
    Lost,
    Settled,
}

/// Whether a TPDU was held lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldLost {
    /// It never was.
    Never,
    /// It was, and that was no outcome of an attempt.
    Untold,
    /// It was, and that was told as the outcome of an attempt.
    Told,
}

/// One TPDU that was sent and not yet released.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each one bit of the state"
)]
pub struct Outstanding {
    /// The stream position of its first octet.
    pub position: u64,
    /// Payload octets.
    pub len: u32,
    /// The number of times it was sent; copies that follow at once are not counted.
    pub attempts: u16,
    /// The number of times it was copied, or repeated as a precaution, since it was last sent for a reason.
    pub(super) repeats: u16,
    /// The number of times it was sent again for being held lost.
    pub(super) repetitions: u16,
    pub(super) first_sent_at: Instant,
    /// The time at which its first octet was written, as far as that counts.
    pub(super) written_at: Instant,
    /// The number of its latest transmission on a wrapping circle, copies counted.
    pub(super) transmission: u16,
    /// The time at which the latest attempt began.
    pub(super) attempt_at: Instant,
    /// The time at which it last left, as a copy or otherwise.
    pub(super) sent_at: Instant,
    /// The path on which it did, and that of its first attempt.
    pub(super) path: u8,
    pub(super) first_path: u8,
    pub(super) state: State,
    /// The time of its second attempt.
    pub(super) repeated_at: Option<Instant>,
    /// Whether it was ever held lost, and what was told of the last time.
    pub(super) held_lost: HeldLost,
    /// Whether it was last sent again as a precaution, though it was not held lost.
    pub(super) is_precaution: bool,
    /// Whether it was last held lost for being late.
    pub(super) was_late: bool,
    /// Whether it was last held lost because its path went down.
    pub(super) was_on_dead_path: bool,
    /// Whether a transmission of it arrived damaged, and what mends it was sent: it arrives later then than it came.
    pub(super) is_mended_later: bool,
    /// Whether it is sent without its payload, since that would come too late.
    pub is_withdrawn: bool,
}

impl Outstanding {
    /// Whether an attempt after the first is under way.
    pub(super) fn is_sent_again(&self) -> bool {
        self.attempts > 1 && self.state == State::InFlight
    }

    /// The number of times it was held lost and sent again.
    pub const fn losses(&self) -> u16 {
        self.repetitions
    }

    /// The time at which its first octet was written: the time at which it left first, unless another was noted.
    pub const fn written_at(&self) -> Instant {
        self.written_at
    }

    /// The payload octets with which it is sent again: one stands for what was taken back.
    pub const fn len_again(&self) -> usize {
        if self.is_withdrawn {
            1
        } else {
            self.len as usize
        }
    }
}
