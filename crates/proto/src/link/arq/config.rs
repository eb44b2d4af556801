//! The settings of ARQ.

use crate::link::Medium;
use crate::units::{ByteCount, Duration};

/// Which frames are outstanding at once, and which are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArqScheme {
    /// One frame at a time.
    StopAndWait,
    /// A window of frames; after a loss everything from the lost one on again. The receiver keeps
    /// nothing that is out of order.
    GoBackN,
    /// A window of frames; the lost ones again.
    SelectiveRepeat,
}

/// The settings of one hop's ARQ, the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArqConfig {
    /// Stop-and-wait, go-back-N or selective repeat.
    pub scheme: ArqScheme,
    /// Frames outstanding at once, 1 to [`ArqConfig::WINDOW_MAX`]; stop-and-wait has 1.
    pub window: u16,
    /// How often a frame is sent again before it is given up.
    pub retries: u8,
    /// Whether a packet waits for those before it. Go-back-N keeps order anyway.
    pub in_order: bool,
    /// When a frame that was not acknowledged is sent again, from the start of its transmission.
    /// By default the way there and back and the times of four frames.
    pub retransmit_after: Option<Duration>,
}

impl ArqConfig {
    /// The largest window: its acknowledgement has 128 octets.
    pub const WINDOW_MAX: u16 = 1_024;

    /// LL-ARQ of the LT-TCP + LL-HARQ slides: selective repeat in order, seven retransmissions, a
    /// window that never limits at 10 Mbit/s and 10 ms (spec/protocols.md 2.2, B2).
    pub const LL_ARQ: Self = Self {
        scheme: ArqScheme::SelectiveRepeat,
        window: 512,
        retries: 7,
        in_order: true,
        retransmit_after: None,
    };

    /// One frame at a time, as often as LL-ARQ tries.
    pub const STOP_AND_WAIT: Self = Self {
        scheme: ArqScheme::StopAndWait,
        window: 1,
        ..Self::LL_ARQ
    };

    /// Go-back-N with LL-ARQ's window and persistence.
    pub const GO_BACK_N: Self = Self {
        scheme: ArqScheme::GoBackN,
        ..Self::LL_ARQ
    };

    /// Selective repeat with LL-ARQ's window and persistence, packets released as they come.
    pub const SELECTIVE_REPEAT: Self = Self {
        in_order: false,
        ..Self::LL_ARQ
    };

    /// The window that counts.
    pub(super) fn effective_window(&self) -> u16 {
        match self.scheme {
            ArqScheme::StopAndWait => 1,
            ArqScheme::GoBackN | ArqScheme::SelectiveRepeat => {
                self.window.clamp(1, Self::WINDOW_MAX)
            }
        }
    }

    /// Whether packets come out in order.
    pub const fn keeps_order(&self) -> bool {
        self.in_order || !matches!(self.scheme, ArqScheme::SelectiveRepeat)
    }

    /// When a frame is sent again, where the hop's longest frame has `longest` octets: its own
    /// time, the way there and back, a frame in the way of the acknowledgement, and as much again
    /// for the acknowledgement itself and for the next one, should it be lost. At 10 Mbit/s, 10 ms
    /// and 1040 octets 23.4 ms, which reproduces the slides' latencies (`docs/models/link.md`).
    pub(super) fn timeout(&self, medium: Medium, longest: ByteCount) -> Duration {
        self.retransmit_after.unwrap_or_else(|| {
            let there = medium.frame_time(longest);
            let back = medium.back_frame_time(longest);
            medium.round_trip + there + 3 * back + CLOCK_STEP
        })
    }
}

/// Added to every derived time, so that on a medium that takes no time an answer is there first.
const CLOCK_STEP: Duration = Duration::from_micros(1);
