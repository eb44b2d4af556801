//! The description of a fading channel, and the values that are computed from it once.

use super::pass::Pass;
use super::prepared::{Prepared, spacing_of};
use super::trace::{Cut, PowerTrace};
use super::turbulence::Turbulence;
use super::walk::Fades;
use crate::config::ConfigError;
use crate::loss::computed_rate;
use crate::outage::{OutageClock, OutagePlan};
use crate::replay::AtEnd;
use crate::series::Series;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{
    BitErrorRate, Bitrate, ByteCount, Distance, Duration, OpticalPower, PacketErrorRate,
    format_duration,
};
use std::sync::Arc;

/// The source of the received power.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The power follows a random process.
    Synthetic(Synthetic),
    /// The power is as it was recorded.
    Recorded(Recorded),
}

/// Power with a law and a correlation time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthetic {
    /// The law.
    pub turbulence: Turbulence,
    /// The time after which the correlation of the Gaussian process behind the power is 1/e; 1 us
    /// to 1000 s.
    pub correlation: Duration,
    /// The seed of the course of power. If given, both directions meet the same course. Otherwise
    /// each has its own, by the run's seed.
    pub seed: Option<CourseSeed>,
    /// The span over which the mean power is scaled. If given, the mean power gives the long-term bit
    /// error rate over the first so much of this very course of power, as measurements are scaled.
    /// Otherwise it gives that rate as a mean over all courses; deep fades are so rare that most
    /// courses of a minute then have a lower rate. At most 2^24 samples.
    pub over: Option<Duration>,
}

/// The seed from which a course of power that both directions meet is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CourseSeed {
    /// This number alone: every run meets the same course, like that of a recording.
    Fixed(u64),
    /// The run's seed, which [`Fading::in_run`] must give. Until then the directions differ.
    Run,
}

/// Power out of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The file as the user named it.
    pub name: String,
    /// The behaviour at the recording's end.
    pub at_end: AtEnd,
    /// The obstructions that are cut out before the recording is scaled, and put back afterwards.
    /// Samples without any light always are.
    pub cut: Option<Cut>,
    /// The distance of the samples, in place of the file's own.
    pub spacing: Option<Duration>,
    /// The part of the file that is used, if not all.
    pub part: Option<Part>,
}

/// A span of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The start of the part, from the recording's start.
    pub from: Duration,
    /// The length of the part; more than zero.
    pub length: Duration,
}

/// The description of a fading channel.
#[derive(Clone, Debug, PartialEq)]
pub struct FadingModel {
    /// The source of the received power.
    pub source: Source,
    /// The mean of the short-term bit error rate over the time with light; above zero and below
    /// 0.5. The mean power follows from it.
    pub long_term: BitErrorRate,
    /// Obstructions in the line of sight: the `bad` intervals are dark.
    pub obstruction: Option<Series>,
    /// Losses of tracking: dark.
    pub tracking: OutagePlan,
    /// A satellite that moves: its delay is added to the channel's, its power falls with the
    /// square of the distance, and log-normal scintillation with the cube (an assumption).
    pub pass: Option<Pass>,
}

/// A fading channel, ready to be used: [`FadingModel`] with its mean power.
#[derive(Clone, Debug)]
pub struct Fading {
    model: FadingModel,
    prepared: Option<Arc<Prepared>>,
}

/// Two values are equal if their descriptions are equal and both or neither have their trace.
impl PartialEq for Fading {
    fn eq(&self, other: &Self) -> bool {
        self.model == other.model && self.prepared.is_some() == other.prepared.is_some()
    }
}

impl Fading {
    /// Computes the mean power by the law. A recording waits for its trace: [`Fading::with_trace`].
    ///
    /// # Errors
    /// The first value out of range.
    pub fn new(model: FadingModel) -> Result<Self, ConfigError> {
        model.check()?;
        let prepared = match &model.source {
            Source::Synthetic(_) => Some(Arc::new(Prepared::new(&model, None)?)),
            Source::Recorded(_) => None,
        };
        Ok(Self { model, prepared })
    }

    /// The recording whose file has not been read yet.
    pub fn missing_trace(&self) -> Option<&Recorded> {
        match &self.model.source {
            Source::Recorded(recorded) if self.prepared.is_none() => Some(recorded),
            _ => None,
        }
    }

    /// The mean power over all courses of a synthetic process that has the long-term bit error rate
    /// asked for (at the start of a pass). `None` for a recording, whose unit of power is unknown.
    pub fn mean_power(&self) -> Option<OpticalPower> {
        let prepared = self.prepared.as_ref()?;
        match &self.model.source {
            Source::Synthetic(_) => OpticalPower::from_watts(prepared.factor),
            Source::Recorded(_) => None,
        }
    }

    /// The generator for the medium: that of the description's own seed, if it has one; otherwise one
    /// below `rng`, which is the generator of the fading.
    pub(crate) fn medium(&self, rng: &Rng) -> Rng {
        match &self.model.source {
            Source::Synthetic(Synthetic {
                seed: Some(CourseSeed::Fixed(seed)),
                ..
            }) => Rng::from_seed(*seed).child("fading"),
            _ => rng.clone(),
        }
    }

    /// This fading in a run with this seed. A course that both directions meet, and that depends on the
    /// run, is drawn from this number.
    #[must_use]
    pub fn in_run(mut self, seed: u64) -> Self {
        if let Source::Synthetic(synthetic) = &mut self.model.source
            && synthetic.seed == Some(CourseSeed::Run)
        {
            synthetic.seed = Some(CourseSeed::Fixed(seed));
        }
        self
    }

    /// This fading with the trace it names, scaled to its long-term bit error rate.
    ///
    /// # Errors
    /// The trace is empty, or it cannot be scaled.
    pub fn with_trace(self, trace: Arc<PowerTrace>) -> Result<Self, ConfigError> {
        let prepared = Some(Arc::new(Prepared::new(&self.model, Some(trace))?));
        Ok(Self { prepared, ..self })
    }

    /// The description.
    pub const fn model(&self) -> &FadingModel {
        &self.model
    }

    /// # Errors
    /// The trace is missing.
    pub(crate) fn prepared(&self) -> Result<&Arc<Prepared>, ConfigError> {
        self.prepared.as_ref().ok_or_else(|| {
            let name = self.missing_trace().map_or("", |recorded| &recorded.name);
            ConfigError::new(
                "fading.trace",
                name,
                "a power trace that was read from its file",
            )
        })
    }

    /// Checks that a link of this rate can use the fading: each packet takes a step for each sample during
    /// which it is on the link.
    ///
    /// # Errors
    /// There are more than [`SAMPLES_PER_BIT_MAX`] samples to a bit.
    pub(crate) fn check_at(&self, rate: Bitrate) -> Result<(), ConfigError> {
        let Some(prepared) = &self.prepared else {
            return Ok(());
        };
        let bits = u128::from(rate.as_bits_per_second());
        let least = NANOS_PER_SECOND.div_ceil((bits * SAMPLES_PER_BIT_MAX).max(1));
        if u128::from(prepared.spacing) >= least {
            return Ok(());
        }
        let nanos = |nanos: u128| {
            let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
            format_duration(Duration::from_nanos(nanos))
        };
        let bound = format!("at most {SAMPLES_PER_BIT_MAX} samples of power to a bit of {rate}");
        Err(match &self.model.source {
            Source::Recorded(_) => {
                let allowed = format!(
                    "at least {}, {bound}: write the recording's own spacing, or a higher rate",
                    nanos(least)
                );
                ConfigError::new("fading.spacing", nanos(prepared.spacing.into()), allowed)
            }
            Source::Synthetic(synthetic) => {
                let given = format_duration(synthetic.correlation);
                let slowest = u128::from(prepared.spacing) * SAMPLES_PER_BIT_MAX;
                let rate = Bitrate::from_bits_per_second(
                    u64::try_from(NANOS_PER_SECOND.div_ceil(slowest)).unwrap_or(u64::MAX),
                );
                let allowed = format!("what has {bound}: a rate of at least {rate} with this time");
                ConfigError::new("fading.time", given, allowed)
            }
        })
    }

    /// Power and short-term bit error rate, sample by sample, as a channel with the generator `rng`
    /// meets them.
    ///
    /// # Errors
    /// The trace is missing.
    pub fn fades(&self, rng: &Rng) -> Result<Fades, ConfigError> {
        Fades::new(self, rng)
    }

    /// The share of time without any light, in the long run.
    pub fn dark_share(&self) -> f64 {
        let blocked = self
            .model
            .obstruction
            .as_ref()
            .map_or(0.0, |series| series.bad_share().value());
        let unlit = self.prepared.as_ref().map_or(0.0, |p| p.unlit_share());
        1.0 - (1.0 - blocked) * (1.0 - unlit)
    }

    /// The share of packets of `len` octets with an inverted bit among those that meet light, if the
    /// power stays the same during each packet. Zero while a trace is missing.
    pub fn packet_error_rate(&self, len: ByteCount) -> PacketErrorRate {
        let share = self
            .prepared
            .as_ref()
            .map_or(0.0, |p| p.hit_share(len.bits()));
        computed_rate(share)
    }

    /// The constant bit error rate that leaves a code as much capacity as these fades do: its
    /// binary entropy is the mean of theirs. Zero while a trace is missing.
    pub fn equivalent_rate(&self) -> BitErrorRate {
        let rate = self.prepared.as_ref().map_or(0.0, |p| p.equivalent_rate());
        BitErrorRate::new(rate).unwrap_or_default()
    }
}

const SECOND: Duration = Duration::from_secs(1);
const NANOS_PER_SECOND: u128 = 1_000_000_000;
/// The most samples to a bit. Power that changes faster than bits come means nothing to the model, and costs a
/// step a sample: with this many the longest packet, 65,535 octets, takes 8.4 million. The presets' 100 us allow
/// 1 kbit/s.
const SAMPLES_PER_BIT_MAX: u128 = 16;
/// The most samples that a course is scaled over: as many as a recording holds.
const SAMPLES_SCALED_MAX: u32 = 1 << 24;

impl FadingModel {
    fn check(&self) -> Result<(), ConfigError> {
        let rate = self.long_term.value();
        if !(1e-15..=0.4).contains(&rate) {
            let allowed = "1e-15 to 0.4; darkness alone gives 0.5";
            return Err(ConfigError::new("fading.ber", rate, allowed));
        }
        match &self.source {
            Source::Synthetic(synthetic) => {
                synthetic.turbulence.check()?;
                let times = Duration::from_micros(1)..=1_000 * SECOND;
                if !times.contains(&synthetic.correlation) {
                    let given = format_duration(synthetic.correlation);
                    return Err(ConfigError::new("fading.time", given, "1us to 1000s"));
                }
                synthetic.over.map_or(Ok(()), |over| {
                    let longest = spacing_of(synthetic.correlation) * SAMPLES_SCALED_MAX;
                    if over.is_zero() || over > longest {
                        let allowed = format!("above 0s, at most {}", format_duration(longest));
                        let given = format_duration(over);
                        return Err(ConfigError::new("fading.over", given, allowed));
                    }
                    Ok(())
                })?;
            }
            Source::Recorded(recorded) => {
                if let Some(cut) = recorded.cut
                    && !(0.1..=100.0).contains(&cut.depth_decibels)
                {
                    let given = format!("{}dB", cut.depth_decibels);
                    return Err(ConfigError::new("fading.cut", given, "0.1dB to 100dB"));
                }
                let spacings = Duration::from_nanos(1)..=1_000 * SECOND;
                if let Some(spacing) = recorded.spacing
                    && !spacings.contains(&spacing)
                {
                    let given = format_duration(spacing);
                    return Err(ConfigError::new("fading.spacing", given, "1ns to 1000s"));
                }
                if recorded.part.is_some_and(|part| part.length.is_zero()) {
                    return Err(ConfigError::new("fading.part", "0s", "a length above 0s"));
                }
            }
        }
        if let Some(series) = &self.obstruction {
            series.check().map_err(|error| ConfigError {
                field: "fading.blocked",
                ..error
            })?;
        }
        OutageClock::new(&self.tracking).map_err(|error| ConfigError {
            field: "fading.lost",
            ..error
        })?;
        self.pass.map_or(Ok(()), check_pass)
    }
}

fn check_pass(pass: Pass) -> Result<(), ConfigError> {
    if !(100e3..=100e6).contains(&pass.altitude.metres()) {
        let allowed = "an altitude of 100km to 100000km";
        return Err(ConfigError::new("fading.pass", pass.altitude, allowed));
    }
    let (near, far): (Distance, Distance) = (pass.altitude, pass.horizon());
    if pass.start < near || pass.start >= far {
        let far = Distance::from_metres(far.metres().floor()).unwrap_or_default();
        let allowed = format!("a start between the altitude, {near}, and the horizon, {far}");
        return Err(ConfigError::new("fading.pass", pass.start, allowed));
    }
    Ok(())
}
