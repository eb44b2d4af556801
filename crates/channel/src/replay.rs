//! Replay of a recorded loss: packet by packet, or by time.
//!
//! A trace is a value here; `crates/trace` reads the files. The trace is put into the model before
//! the channel is made.
//!
//! # Promises
//! - A trace that ends and does not loop is reported ([`UsedUp`]). Nothing is known of the packets
//!   behind its end, so results must not be made of them. They count as lost.
//! - Memory is bounded: one bit for a recorded packet, 16 octets for an interval.

use crate::config_error::{ChannelConfigError, Setting};
use crate::rate::computed_rate;
use core::fmt;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant, PacketErrorRate};
use std::sync::Arc;

/// The error about a trace that is longer than its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a trace holds at most {max} {what}; cut it into parts")]
pub struct TraceFull {
    max: usize,
    what: &'static str,
}

/// Whether each of a row of packets was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketTrace {
    words: Vec<u64>,
    len: usize,
    lost: usize,
}

impl PacketTrace {
    /// The most packets that a trace holds: 32 MB of them, four days at a thousand a second.
    pub const PACKETS_MAX: usize = 1 << 28;

    /// Adds the next packet.
    ///
    /// # Errors
    /// The trace is full.
    pub fn push(&mut self, lost: bool) -> Result<(), TraceFull> {
        if self.len == Self::PACKETS_MAX {
            let (max, what) = (Self::PACKETS_MAX, "packets");
            return Err(TraceFull { max, what });
        }
        let bit = self.len % 64;
        if bit == 0 {
            self.words.push(0);
        }
        if lost && let Some(word) = self.words.last_mut() {
            *word |= 1 << bit;
            self.lost += 1;
        }
        self.len += 1;
        Ok(())
    }

    /// The number of packets.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the trace is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether packet `index`, from 0, was lost; `None` behind the end.
    pub fn get(&self, index: usize) -> Option<bool> {
        let word = self.words.get(index / 64)?;
        (index < self.len).then_some(word >> (index % 64) & 1 == 1)
    }
}

/// The loss as a function of time: intervals one after another, from the start of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeTrace {
    /// The end of each interval, in nanoseconds, and the loss in it.
    intervals: Vec<(u64, f64)>,
    /// The integral of the loss over time, in nanoseconds.
    lost: f64,
}

impl TimeTrace {
    /// The most intervals that a trace holds: 64 MB of them.
    pub const INTERVALS_MAX: usize = 1 << 22;

    /// Adds an interval of `length` in which packets are lost with probability `loss`. An interval
    /// without length changes nothing.
    ///
    /// # Errors
    /// The trace is full.
    pub fn push(&mut self, length: Duration, loss: PacketErrorRate) -> Result<(), TraceFull> {
        if self.intervals.len() == Self::INTERVALS_MAX {
            let (max, what) = (Self::INTERVALS_MAX, "intervals");
            return Err(TraceFull { max, what });
        }
        let begin = self.end();
        let end = begin.saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
        if end > begin {
            self.intervals.push((end, loss.value()));
            self.lost += (end - begin) as f64 * loss.value();
        }
        Ok(())
    }

    /// The sum of the lengths.
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.end())
    }

    fn end(&self) -> u64 {
        self.intervals.last().map_or(0, |&(end, _)| end)
    }

    /// The greatest loss among the intervals that [`first`, `last`] touches; `None` if `last` is
    /// behind the end.
    fn worst(&self, first: u64, last: u64) -> Option<f64> {
        let index = self.intervals.partition_point(|&(end, _)| end <= first);
        let mut worst = 0.0_f64;
        for &(end, loss) in self.intervals.get(index..)? {
            worst = worst.max(loss);
            if end > last {
                return Some(worst);
            }
        }
        None
    }
}

/// A recorded loss.
#[derive(Clone, Debug, PartialEq)]
pub enum LossTrace {
    /// Packet by packet.
    Packets(PacketTrace),
    /// By time.
    Time(TimeTrace),
}

impl LossTrace {
    /// The share of the packets, or of the time, that is lost.
    pub fn mean_loss(&self) -> PacketErrorRate {
        computed_rate(match self {
            Self::Packets(trace) => trace.lost as f64 / trace.len.max(1) as f64,
            Self::Time(trace) => trace.lost / (trace.end().max(1) as f64),
        })
    }

    /// Whether the trace is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Packets(trace) => trace.is_empty(),
            Self::Time(trace) => trace.intervals.is_empty(),
        }
    }
}

impl fmt::Display for LossTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(trace) => write!(f, "{} packets", trace.len),
            Self::Time(trace) => {
                write!(
                    f,
                    "{}",
                    fulmar_proto::units::format_duration(trace.length())
                )
            }
        }
    }
}

/// The behaviour at the end of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtEnd {
    /// The trace stops: nothing more is known (see [`UsedUp`]).
    #[default]
    Stop,
    /// The trace begins again.
    Loop,
    /// The trace begins again; its first pass starts at a place drawn from the seed, so that runs
    /// differ.
    LoopShifted,
}

/// A trace as a loss model.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The trace's origin: the file as the user named it.
    pub name: String,
    /// The behaviour at the trace's end.
    pub at_end: AtEnd,
    /// The trace; none before the file was read, and no channel can be made then.
    pub trace: Option<Arc<LossTrace>>,
}

/// The error that a trace came to its end before the packets did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the trace {name} ({length}) is used up; write `trace {name} loop` to begin it again, or \
     record a longer one"
)]
pub struct UsedUp {
    /// The field that has the trace: `loss` or `fading`.
    pub field: &'static str,
    /// The trace.
    pub name: String,
    /// The trace's length, in packets or time.
    pub length: String,
}

/// The state of a replay.
#[derive(Clone, Debug)]
pub(crate) struct ReplayProcess {
    name: String,
    trace: Arc<LossTrace>,
    looped: bool,
    /// The next packet; for a trace by time, the offset that is added to the time.
    position: u64,
    used_up: bool,
    rng: Rng,
}

impl ReplayProcess {
    pub(crate) fn new(model: &Replay, mut rng: Rng) -> Result<Self, ChannelConfigError> {
        let Some(trace) = &model.trace else {
            let allowed = "a trace that was read from its file";
            return Err(ChannelConfigError::new(
                Setting::Loss.part("trace"),
                &model.name,
                allowed,
            ));
        };
        if trace.is_empty() {
            let allowed = "a trace with something in it";
            return Err(ChannelConfigError::new(
                Setting::Loss.part("trace"),
                &model.name,
                allowed,
            ));
        }
        let length = match trace.as_ref() {
            LossTrace::Packets(trace) => trace.len as u64,
            LossTrace::Time(trace) => trace.end(),
        };
        let position = match model.at_end {
            AtEnd::LoopShifted => rng.below(length),
            AtEnd::Stop | AtEnd::Loop => 0,
        };
        Ok(Self {
            name: model.name.clone(),
            trace: Arc::clone(trace),
            looped: model.at_end != AtEnd::Stop,
            position,
            used_up: false,
            rng,
        })
    }

    /// Whether the packet transmitted from `start` to `end` is lost. Neither ever decreases.
    pub(crate) fn takes(&mut self, start: Instant, end: Instant) -> bool {
        let loss = match self.trace.as_ref() {
            LossTrace::Packets(trace) => {
                let len = trace.len as u64;
                if self.looped {
                    self.position %= len;
                }
                let lost = trace.get(usize::try_from(self.position).unwrap_or(usize::MAX));
                self.position = self.position.saturating_add(1);
                lost.map(|lost| f64::from(u8::from(lost)))
            }
            LossTrace::Time(trace) => {
                let first = start.as_nanos();
                let last = end.as_nanos().saturating_sub(1).max(first);
                if self.looped {
                    let length = trace.end();
                    let begin = first.wrapping_add(self.position) % length;
                    let last = begin.saturating_add((last - first).min(length - 1));
                    // The part of the transmission behind the trace's end meets its beginning.
                    trace.worst(begin, last).or_else(|| {
                        let before = trace.worst(begin, length - 1)?;
                        Some(before.max(trace.worst(0, last - length)?))
                    })
                } else {
                    trace.worst(first, last)
                }
            }
        };
        self.used_up |= loss.is_none();
        self.rng.chance(loss.unwrap_or(1.0))
    }

    pub(crate) fn used_up(&self) -> Option<UsedUp> {
        self.used_up.then(|| UsedUp {
            field: "loss",
            name: self.name.clone(),
            length: self.trace.to_string(),
        })
    }
}
