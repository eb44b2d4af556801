//! The settings of ARQ.

use crate::link::Medium;
use fulmar_proto::units::{ByteCount, Duration};

/// The scheme: the frames that are outstanding at once, and those that are retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArqScheme {
    /// One frame at a time.
    StopAndWait,
    /// A window of frames; after a loss the lost frame and all frames behind it are retransmitted.
    /// The receiver keeps no frame that is out of order.
    GoBackN,
    /// A window of frames; only lost frames are retransmitted.
    SelectiveRepeat,
    /// The receiver asks for what is missing and repeats its requests by a timer of its own. The sender has no timer and hears of
    /// no arrival: it keeps the last window of frames.
    NakOnly,
}

/// The settings of one hop's ARQ, the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArqConfig {
    /// Stop-and-wait, go-back-N or selective repeat.
    pub scheme: ArqScheme,
    /// Frames outstanding at once, 1 to [`ArqConfig::WINDOW_MAX`]; stop-and-wait has 1.
    pub window: u16,
    /// The number of retransmissions of a frame before it is given up.
    pub retries: u8,
    /// Whether a packet waits for those before it. Go-back-N keeps order anyway.
    pub in_order: bool,
    /// The time from the start of a frame's transmission to its retransmission, if it is not
    /// acknowledged; with [`ArqScheme::NakOnly`] the time from a request to the next for the same frame. By default it is the way there and back and a quarter more, or three frames on a
    /// slow way back, and the time that both may wait for capacity.
    pub retransmit_after: Option<Duration>,
}

impl ArqConfig {
    /// The largest window, whose acknowledgement has 128 octets.
    pub const WINDOW_MAX: u16 = 1_024;

    /// LL-ARQ of the LT-TCP + LL-HARQ slides: selective repeat in order, with seven retransmissions. The
    /// slides give no parameters; these reproduce the latencies of their Table I. The window is the least
    /// power of two that keeps their hop busy while nothing is lost, 26 frames of 1051 octets. With a
    /// wider window a frame's long way would cost no goodput, but the slides say that it does
    /// (`docs/models/link.md`).
    pub const LL_ARQ: Self = Self {
        scheme: ArqScheme::SelectiveRepeat,
        window: 32,
        retries: 7,
        in_order: true,
        retransmit_after: None,
    };

    /// Stop-and-wait: one frame at a time, with as many retransmissions as LL-ARQ.
    pub const STOP_AND_WAIT: Self = Self {
        scheme: ArqScheme::StopAndWait,
        window: 1,
        ..Self::LL_ARQ
    };

    /// Go-back-N with a window that never limits at 10 Mbit/s and 10 ms, and with as many
    /// retransmissions as LL-ARQ.
    pub const GO_BACK_N: Self = Self {
        scheme: ArqScheme::GoBackN,
        window: 512,
        ..Self::LL_ARQ
    };

    /// Selective repeat with such a window; packets are released as they come.
    pub const SELECTIVE_REPEAT: Self = Self {
        window: 512,
        in_order: false,
        ..Self::LL_ARQ
    };

    /// The receiver asks, as often as LL-ARQ's sender repeats, and keeps order. The window of 512 frames is 430 ms of the slides' link.
    /// A frame is too old to repair before that, after nine timeouts or 234 ms.
    pub const NAK_ONLY: Self = Self {
        scheme: ArqScheme::NakOnly,
        window: 512,
        ..Self::LL_ARQ
    };

    /// The window in effect.
    pub(super) fn effective_window(&self) -> u16 {
        match self.scheme {
            ArqScheme::StopAndWait => 1,
            ArqScheme::GoBackN | ArqScheme::SelectiveRepeat | ArqScheme::NakOnly => {
                self.window.clamp(1, Self::WINDOW_MAX)
            }
        }
    }

    /// Whether packets are released in order.
    pub const fn keeps_order(&self) -> bool {
        let by_choice = matches!(self.scheme, ArqScheme::SelectiveRepeat | ArqScheme::NakOnly);
        self.in_order || !by_choice
    }

    /// The time after which a frame is retransmitted, where the hop's longest frame has `longest` octets.
    /// It contains the frame's own time, the way there and back, and room for the answer. The room is a
    /// quarter of these at the least. On a slow way back it is the time of three frames: one that the
    /// acknowledgement waits for, the acknowledgement itself, and the next one in case it is lost. Where
    /// capacity is assigned on demand, frame and answer may have to wait for it. At 10 Mbit/s, 10 ms and
    /// 1040 octets the time is 26.05 ms, which reproduces the slides' latencies (`docs/models/link.md`).
    pub(super) fn timeout(&self, medium: Medium, longest: ByteCount) -> Duration {
        self.retransmit_after.unwrap_or_else(|| {
            let there = medium.frame_time(longest);
            let back = medium.back_frame_time(longest);
            let way = medium.round_trip + there;
            way + (way / 4).max(3 * back) + medium.waiting() + CLOCK_STEP
        })
    }
}

/// The time added to every derived time, so that an answer comes first even on a medium that takes
/// no time.
const CLOCK_STEP: Duration = Duration::from_micros(1);
