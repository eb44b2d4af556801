//! The settings of ARQ.

use crate::link::Medium;
use fulmar_proto::units::{ByteCount, Duration};

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
    /// By default the way there and back and a quarter more, or three frames on a slow way back, and what
    /// both may wait for capacity.
    pub retransmit_after: Option<Duration>,
}

impl ArqConfig {
    /// The largest window: its acknowledgement has 128 octets.
    pub const WINDOW_MAX: u16 = 1_024;

    /// LL-ARQ of the LT-TCP + LL-HARQ slides: selective repeat in order, seven retransmissions
    /// (spec/protocols.md 2.2, B2). The window is the least power of two that keeps their hop busy while
    /// nothing is lost, 26 frames of 1051 octets: were it wider, a frame's long way would cost no goodput,
    /// which they say it does (`docs/models/link.md`).
    pub const LL_ARQ: Self = Self {
        scheme: ArqScheme::SelectiveRepeat,
        window: 32,
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

    /// Go-back-N with a window that never limits at 10 Mbit/s and 10 ms, and LL-ARQ's persistence.
    pub const GO_BACK_N: Self = Self {
        scheme: ArqScheme::GoBackN,
        window: 512,
        ..Self::LL_ARQ
    };

    /// Selective repeat with such a window, packets released as they come.
    pub const SELECTIVE_REPEAT: Self = Self {
        window: 512,
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
    /// time, the way there and back, and room for the answer: a quarter of that at the least; and on a
    /// slow way back as long as three frames take, one in the way of the acknowledgement, that itself,
    /// and the next one, should it be lost. Where capacity is assigned on demand, both may wait for it. At
    /// 10 Mbit/s, 10 ms and 1040 octets 26.05 ms, which reproduces the slides' latencies
    /// (`docs/models/link.md`).
    pub(super) fn timeout(&self, medium: Medium, longest: ByteCount) -> Duration {
        self.retransmit_after.unwrap_or_else(|| {
            let there = medium.frame_time(longest);
            let back = medium.back_frame_time(longest);
            let way = medium.round_trip + there;
            way + (way / 4).max(3 * back) + medium.waiting() + CLOCK_STEP
        })
    }
}

/// Added to every derived time, so that on a medium that takes no time an answer is there first.
const CLOCK_STEP: Duration = Duration::from_micros(1);
