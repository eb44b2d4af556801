//! A terminal's request at the start of a super-frame, and the capacity assigned to it in that
//! super-frame.
//!
//! Amounts are in *parts*, bits times 10^9: a rate in bits per second carries a whole number of
//! parts in a nanosecond.

use super::config::{Assignment, Dama};
use core::num::NonZeroU64;
use std::collections::VecDeque;

/// Parts in one octet.
pub(super) const PARTS_PER_OCTET: u128 = 8_000_000_000;
/// Requested rates are multiples of this many bits per second: the finest step of the encoding in
/// sns3's terminals.
const RATE_STEP: u128 = 1_000;
/// The rate asked for, in per mille of the rate at which packets came in: a terminal asks for more,
/// so that the queue empties while packets still come in (sns3).
const RATE_MARGIN_PER_MILLE: u128 = 1_100;

/// The terminal's view when it makes a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backlog {
    /// Parts that came in during the last super-frame.
    pub(super) inflow: u128,
    /// Parts in the buffer, including those of `inflow`.
    pub(super) unsent: u128,
}

/// The capacity that a terminal may use in one super-frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    /// The rate, in bits per second.
    pub(super) rate: u64,
    /// The amount, in parts.
    pub(super) parts: u128,
}

/// Requests on their way, and the state that the network control centre keeps of those that
/// arrived.
#[derive(Clone, Debug)]
pub(super) enum Requests {
    Constant,
    Rate {
        /// Requested rates that are not in effect yet; `None` where nothing was requested.
        coming: VecDeque<Option<u64>>,
        /// The rate in effect.
        rate: u64,
        /// Super-frames for which it has been in effect.
        age: u32,
    },
    Volume {
        /// Requested parts that the centre does not know of yet.
        coming: VecDeque<u128>,
        /// Parts that the centre knows of and has not assigned yet.
        owed: u128,
    },
}

impl Requests {
    pub(super) fn new(dama: Dama) -> Self {
        let frames = usize::try_from(dama.response_frames()).unwrap_or(usize::MAX);
        match dama.assignment {
            Assignment::Constant => Self::Constant,
            Assignment::Rate => Self::Rate {
                coming: core::iter::repeat_n(None, frames).collect(),
                rate: 0,
                age: 0,
            },
            Assignment::Volume => Self::Volume {
                coming: core::iter::repeat_n(0, frames).collect(),
                owed: 0,
            },
        }
    }

    /// Begins a super-frame: makes its request, and returns its assignment. `rate_max` is the
    /// channel's rate, `frame` the super-frame in nanoseconds.
    pub(super) fn begin_frame(
        &mut self,
        backlog: Backlog,
        dama: Dama,
        rate_max: NonZeroU64,
        frame: u64,
    ) -> Assigned {
        let whole = |rate: u64| Assigned {
            rate,
            parts: u128::from(rate) * u128::from(frame),
        };
        match self {
            Self::Constant => whole(rate_max.get()),
            Self::Rate { coming, rate, age } => {
                let pending: u64 = coming.iter().flatten().sum();
                let request = rate_request(backlog, u128::from(pending), frame)
                    .map(|rate| rate.min(rate_max.get()));
                coming.push_back(request);
                match coming.pop_front().flatten() {
                    Some(answered) => (*rate, *age) = (answered, 1),
                    None if *age >= dama.timeout_frames => (*rate, *age) = (0, 0),
                    None => *age += 1,
                }
                whole(*rate)
            }
            Self::Volume { coming, owed } => {
                coming.push_back(backlog.inflow);
                *owed += coming.pop_front().unwrap_or_default();
                let parts = whole(rate_max.get()).parts.min(*owed);
                *owed -= parts;
                Assigned {
                    rate: rate_max.get(),
                    parts,
                }
            }
        }
    }

    /// Whether nothing is assigned, owed or requested, so that super-frames may be skipped.
    pub(super) fn is_idle(&self) -> bool {
        match self {
            Self::Constant => true,
            Self::Rate { coming, rate, .. } => *rate == 0 && coming.iter().all(Option::is_none),
            Self::Volume { coming, owed } => *owed == 0 && coming.iter().all(|&parts| parts == 0),
        }
    }
}

/// The rate at which packets came in, with a margin, and the rate that sends the rest of the queue
/// in one super-frame, less the rate already requested.
fn rate_request(backlog: Backlog, pending: u128, frame: u64) -> Option<u64> {
    let frame = u128::from(frame);
    let old = backlog.unsent.saturating_sub(backlog.inflow);
    let uncovered = old.saturating_sub(pending * frame);
    let parts = backlog.inflow * RATE_MARGIN_PER_MILLE / 1_000 + uncovered;
    let steps = parts.div_ceil(frame * RATE_STEP);
    (steps > 0).then(|| u64::try_from(steps * RATE_STEP).unwrap_or(u64::MAX))
}
