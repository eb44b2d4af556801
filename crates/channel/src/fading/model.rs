//! The description of a fading channel.

use super::pass::Pass;
use super::trace::ObstructionRule;
use super::turbulence::Turbulence;
use crate::config_error::{ChannelConfigError, Setting};
use crate::outage::{OutageClock, OutagePlan};
use crate::replay::AtEnd;
use crate::series::Series;
use fulmar_proto::units::{BitErrorRate, Distance, Duration, format_duration};

/// The source of the received power.
#[derive(Clone, Debug, PartialEq)]
pub enum PowerSource {
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
    /// The run's seed, which `Fading::in_run` must give. Until then the directions differ.
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
    pub cut: Option<ObstructionRule>,
    /// The distance of the samples, in place of the file's own.
    pub spacing: Option<Duration>,
    /// The part of the file that is used, if not all.
    pub part: Option<RecordingPart>,
}

/// A span of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingPart {
    /// The start of the part, from the recording's start.
    pub from: Duration,
    /// The length of the part; more than zero.
    pub length: Duration,
}

/// The description of a fading channel.
#[derive(Clone, Debug, PartialEq)]
pub struct FadingModel {
    /// The source of the received power.
    pub source: PowerSource,
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

const SECOND: Duration = Duration::from_secs(1);
/// The most samples that a course is scaled over: as many as a recording holds.
const SAMPLES_SCALED_MAX: u32 = 1 << 24;

/// The source's sampling, 10 kHz; a faster process is sampled faster.
const SPACING: Duration = Duration::from_micros(100);
const STEPS_PER_TIME_MIN: u32 = 40;

/// The time between samples of a process with this correlation time.
pub(crate) fn spacing_of(correlation: Duration) -> Duration {
    let spacing = SPACING.min(correlation / STEPS_PER_TIME_MIN);
    spacing.max(Duration::from_nanos(1))
}

impl FadingModel {
    pub(super) fn check(&self) -> Result<(), ChannelConfigError> {
        let rate = self.long_term.value();
        if !(1e-15..=0.4).contains(&rate) {
            let allowed = "1e-15 to 0.4; darkness alone gives 0.5";
            return Err(ChannelConfigError::new(
                Setting::Fading.part("ber"),
                rate,
                allowed,
            ));
        }
        match &self.source {
            PowerSource::Synthetic(synthetic) => {
                synthetic.turbulence.check()?;
                let times = Duration::from_micros(1)..=1_000 * SECOND;
                if !times.contains(&synthetic.correlation) {
                    let given = format_duration(synthetic.correlation);
                    return Err(ChannelConfigError::new(
                        Setting::Fading.part("time"),
                        given,
                        "1us to 1000s",
                    ));
                }
                synthetic.over.map_or(Ok(()), |over| {
                    let longest = spacing_of(synthetic.correlation) * SAMPLES_SCALED_MAX;
                    if over.is_zero() || over > longest {
                        let allowed = format!("above 0s, at most {}", format_duration(longest));
                        let given = format_duration(over);
                        return Err(ChannelConfigError::new(
                            Setting::Fading.part("over"),
                            given,
                            allowed,
                        ));
                    }
                    Ok(())
                })?;
            }
            PowerSource::Recorded(recorded) => {
                if let Some(cut) = recorded.cut
                    && !(0.1..=100.0).contains(&cut.depth_decibels)
                {
                    let given = format!("{}dB", cut.depth_decibels);
                    return Err(ChannelConfigError::new(
                        Setting::Fading.part("cut"),
                        given,
                        "0.1dB to 100dB",
                    ));
                }
                let spacings = Duration::from_nanos(1)..=1_000 * SECOND;
                if let Some(spacing) = recorded.spacing
                    && !spacings.contains(&spacing)
                {
                    let given = format_duration(spacing);
                    return Err(ChannelConfigError::new(
                        Setting::Fading.part("spacing"),
                        given,
                        "1ns to 1000s",
                    ));
                }
                if recorded.part.is_some_and(|part| part.length.is_zero()) {
                    return Err(ChannelConfigError::new(
                        Setting::Fading.part("part"),
                        "0s",
                        "a length above 0s",
                    ));
                }
            }
        }
        if let Some(series) = &self.obstruction {
            series.check().map_err(|error| ChannelConfigError {
                field: Setting::Fading.part("blocked"),
                ..error
            })?;
        }
        OutageClock::new(&self.tracking).map_err(|error| ChannelConfigError {
            field: Setting::Fading.part("lost"),
            ..error
        })?;
        self.pass.map_or(Ok(()), check_pass)
    }
}

fn check_pass(pass: Pass) -> Result<(), ChannelConfigError> {
    if !(100e3..=100e6).contains(&pass.altitude.metres()) {
        let allowed = "an altitude of 100km to 100000km";
        return Err(ChannelConfigError::new(
            Setting::Fading.part("pass"),
            pass.altitude,
            allowed,
        ));
    }
    let (near, far): (Distance, Distance) = (pass.altitude, pass.horizon());
    if pass.start < near || pass.start >= far {
        let far = Distance::from_metres(far.metres().floor()).unwrap_or_default();
        let allowed = format!("a start between the altitude, {near}, and the horizon, {far}");
        return Err(ChannelConfigError::new(
            Setting::Fading.part("pass"),
            pass.start,
            allowed,
        ));
    }
    Ok(())
}
