//! Received power along time, sample by sample.

use super::gaussian::GaussianProcess;
use super::model::{PowerSource, Synthetic};
use super::prepared::{Power, Prepared, bit_error_rate};
use super::ready::Fading;
use crate::config_error::{ChannelConfigError, Setting};
use crate::outage::OutageClock;
use crate::replay::{AtEnd, UsedUp};
use crate::series::SeriesProcess;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{BitErrorRate, Duration, Instant, OpticalPower, format_duration};
use std::sync::Arc;

/// The silence, in correlation times, after which a synthetic power is drawn anew.
const TIMES_FOLLOWED_MAX: f64 = 16_384.0;

/// The received power over time, without obstructions.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    prepared: Arc<Prepared>,
    /// The sample that `watts` belongs to; none before the first is asked for.
    index: Option<u64>,
    watts: f64,
    /// The mean power of this course, once it is known.
    factor: Option<f64>,
    /// The number of samples that the factor is found over, if it is not found by the law.
    scaled_over: Option<u64>,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Process(GaussianProcess),
    Recording {
        name: String,
        looped: bool,
        /// The number that is added to the index.
        shift: u64,
        used_up: bool,
    },
}

impl Walk {
    /// A walk at its start; `medium` is the generator for the medium.
    pub(crate) fn new(fading: &Fading, medium: &Rng) -> Result<Self, ChannelConfigError> {
        let prepared = Arc::clone(fading.prepared()?);
        let state = match (&fading.model().source, &prepared.power) {
            (PowerSource::Synthetic(_), Power::Normal { steps_per_time, .. }) => {
                let rng = medium.child("turbulence");
                State::Process(GaussianProcess::new(*steps_per_time, rng))
            }
            (PowerSource::Recorded(recorded), Power::Trace(trace)) => State::Recording {
                name: recorded.name.clone(),
                looped: recorded.at_end != AtEnd::Stop,
                shift: match recorded.at_end {
                    AtEnd::LoopShifted => medium.child("shift").below(trace.len() as u64),
                    AtEnd::Stop | AtEnd::Loop => 0,
                },
                used_up: false,
            },
            _ => {
                let allowed = "what its description says";
                return Err(ChannelConfigError::new(
                    Setting::Fading.whole(),
                    "another power",
                    allowed,
                ));
            }
        };
        let scaled_over = match &fading.model().source {
            PowerSource::Synthetic(Synthetic {
                over: Some(over), ..
            }) => {
                let samples = over.as_nanos() / u128::from(prepared.spacing);
                Some(u64::try_from(samples).unwrap_or(u64::MAX).max(1))
            }
            _ => None,
        };
        Ok(Self {
            prepared,
            index: None,
            watts: 0.0,
            factor: None,
            scaled_over,
            state,
        })
    }

    /// The time from one sample to the next, nanoseconds.
    pub(crate) fn spacing(&self) -> u64 {
        self.prepared.spacing
    }

    pub(crate) fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// The power of sample `index`, watts. `index` never decreases.
    pub(crate) fn watts_at(&mut self, index: u64) -> f64 {
        if self.index.is_none_or(|known| index > known) {
            let factor = self.factor();
            self.go_to(index);
            self.watts = factor * self.read(index);
        }
        self.watts
    }

    /// The mean power: by the law, or by looking ahead on a copy of the process.
    fn factor(&mut self) -> f64 {
        let prepared = &self.prepared;
        *self.factor.get_or_insert_with(|| {
            let (Some(samples), State::Process(process), Power::Normal { map, .. }) =
                (self.scaled_over, &self.state, &prepared.power)
            else {
                return prepared.factor;
            };
            let mut ahead = process.clone();
            prepared.factor_over((0..samples).map(|index| {
                if index > 0 {
                    ahead.step();
                }
                let at = Instant::from_nanos(index.saturating_mul(prepared.spacing));
                prepared.relative(map, ahead.value(), at)
            }))
        })
    }

    fn go_to(&mut self, index: u64) {
        if let (State::Process(process), Power::Normal { steps_per_time, .. }) =
            (&mut self.state, &self.prepared.power)
        {
            let steps = index - self.index.unwrap_or(0);
            if steps as f64 > TIMES_FOLLOWED_MAX * steps_per_time {
                process.restart();
            } else {
                for _ in 0..steps {
                    process.step();
                }
            }
        }
        self.index = Some(index);
    }

    /// The power of sample `index` in units of the mean or, for a recording, in its own units.
    fn read(&mut self, index: u64) -> f64 {
        match (&mut self.state, &self.prepared.power) {
            (State::Process(process), Power::Normal { map, .. }) => {
                let at = Instant::from_nanos(index.saturating_mul(self.prepared.spacing));
                self.prepared.relative(map, process.value(), at)
            }
            (
                State::Recording {
                    looped,
                    shift,
                    used_up,
                    ..
                },
                Power::Trace(trace),
            ) => {
                let mut index = index.saturating_add(*shift);
                if *looped {
                    index %= trace.len().max(1) as u64;
                }
                let sample = usize::try_from(index).ok().and_then(|i| trace.get(i));
                *used_up |= sample.is_none();
                sample.unwrap_or(0.0)
            }
            _ => 0.0,
        }
    }

    pub(crate) fn used_up(&self) -> Option<UsedUp> {
        match (&self.state, &self.prepared.power) {
            (State::Recording { name, used_up, .. }, Power::Trace(trace)) if *used_up => {
                let samples = trace.len() as u64;
                let length = Duration::from_nanos(samples.saturating_mul(self.prepared.spacing));
                Some(UsedUp {
                    field: "fading",
                    name: name.clone(),
                    length: format_duration(length),
                })
            }
            _ => None,
        }
    }
}

/// One sample of a fading channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fade {
    /// The start of the sample; it lasts until the next one.
    pub at: Instant,
    /// The received power; zero while the light is blocked.
    pub power: OpticalPower,
    /// The short-term bit error rate at this power.
    pub bit_errors: BitErrorRate,
}

/// A fading channel sample by sample: endless, except for a recording that does not loop.
#[derive(Clone, Debug)]
pub struct Fades {
    walk: Walk,
    obstruction: Option<SeriesProcess>,
    tracking: OutageClock,
    index: u64,
}

impl Fading {
    /// Power and short-term bit error rate, sample by sample, as a channel with the generator `rng`
    /// meets them.
    ///
    /// # Errors
    /// The trace is missing.
    pub fn fades(&self, rng: &Rng) -> Result<Fades, ChannelConfigError> {
        Fades::new(self, rng)
    }
}

impl Fades {
    fn new(fading: &Fading, rng: &Rng) -> Result<Self, ChannelConfigError> {
        let medium = fading.medium(&rng.child("fading"));
        let model = fading.model();
        let series = model.obstruction;
        Ok(Self {
            walk: Walk::new(fading, &medium)?,
            obstruction: series.map(|s| SeriesProcess::new(s, medium.child("obstruction"))),
            tracking: OutageClock::new(&model.tracking)?,
            index: 0,
        })
    }
}

impl Iterator for Fades {
    type Item = Fade;

    fn next(&mut self) -> Option<Fade> {
        let at = Instant::from_nanos(self.index.saturating_mul(self.walk.spacing()));
        let watts = self.walk.watts_at(self.index);
        if self.walk.used_up().is_some() {
            return None;
        }
        self.index += 1;
        let blocked = self.obstruction.as_mut().is_some_and(|s| s.takes(at, at));
        let out = self.tracking.takes(at, at);
        let watts = if blocked || out { 0.0 } else { watts };
        let rate = bit_error_rate(self.walk.prepared().receiver, watts);
        Some(Fade {
            at,
            power: OpticalPower::from_watts(watts).unwrap_or_default(),
            bit_errors: BitErrorRate::new(rate).unwrap_or_default(),
        })
    }
}
