//! The description of a return link whose capacity is assigned on demand, and its check.

use crate::config_error::{ChannelConfigError, Setting};
use fulmar_proto::units::{Duration, format_duration};

/// The capacity category that a terminal asks in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// Constant: the whole rate by contract, without any request.
    Constant,
    /// Rate based: each request names a rate, and replaces the one before.
    Rate,
    /// Volume based: requests name amounts, which add up.
    Volume,
}

impl Assignment {
    /// Every category.
    pub const ALL: [Self; 3] = [Self::Constant, Self::Rate, Self::Volume];

    /// The name in files: EN 301 790's abbreviation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Constant => "cra",
            Self::Rate => "rbdc",
            Self::Volume => "vbdc",
        }
    }
}

/// The rules by which a terminal gets capacity. The rate of the channel is the most it ever gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dama {
    /// The capacity category of its requests.
    pub assignment: Assignment,
    /// The super-frame: one request and one assignment in each.
    pub frame: Duration,
    /// The time from a request to the arrival of the burst time plan that answers it. The plan
    /// takes effect with the next super-frame.
    pub response: Duration,
    /// Super-frames for which a rate stays valid when no later request replaces it.
    pub timeout_frames: u32,
}

impl Dama {
    /// The defaults. The super-frame has the typical 265 ms of DVB-RCS (IEEE Systems Journal,
    /// 2008). A request travels 250 ms up, waits half a super-frame for the plan, and the plan
    /// travels 250 ms down. A rate stays valid for 2 super-frames. Kojo et al. (FDPW 2005) give
    /// only the 250 ms.
    pub const fn new(assignment: Assignment) -> Self {
        Self {
            assignment,
            frame: Duration::from_millis(265),
            response: Duration::from_micros(632_500),
            timeout_frames: 2,
        }
    }

    /// Super-frames from the one that a request opens to the one that its answer is valid in.
    pub(crate) fn response_frames(self) -> u64 {
        let frames = self.response.as_nanos().div_ceil(self.frame.as_nanos());
        u64::try_from(frames).unwrap_or(u64::MAX).max(1)
    }

    /// The longest time that an idle terminal's packet waits for its slots.
    pub(crate) fn wait_max(self) -> Duration {
        match self.assignment {
            Assignment::Constant => Duration::ZERO,
            Assignment::Rate | Assignment::Volume => {
                let frames = u32::try_from(self.response_frames() + 1).unwrap_or(u32::MAX);
                self.frame.saturating_mul(frames)
            }
        }
    }

    /// # Errors
    /// The first field out of range.
    pub(crate) fn check(self) -> Result<(), ChannelConfigError> {
        let spans = Duration::from_millis(1)..=Duration::from_secs(10);
        for (field, span) in [
            (Setting::Dama.part("frame"), self.frame),
            (Setting::Dama.part("response"), self.response),
        ] {
            if !spans.contains(&span) {
                return Err(ChannelConfigError::new(
                    field,
                    format_duration(span),
                    "1ms to 10s",
                ));
            }
        }
        if !(1..=15).contains(&self.timeout_frames) {
            let allowed = "1 to 15 super-frames (EN 301 790)";
            return Err(ChannelConfigError::new(
                Setting::Dama.part("timeout"),
                self.timeout_frames,
                allowed,
            ));
        }
        Ok(())
    }
}
