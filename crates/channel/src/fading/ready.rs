//! A fading channel that is ready to be used: its description, and the values that are computed from it once.

use super::model::{CourseSeed, FadingModel, PowerSource, Recorded, Synthetic};
use super::prepared::Prepared;
use super::trace::PowerTrace;
use crate::config_error::{ChannelConfigError, Setting};
use crate::rate::computed_rate;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{
    BitErrorRate, Bitrate, ByteCount, Duration, OpticalPower, PacketErrorRate, format_duration,
};
use std::sync::Arc;

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

const NANOS_PER_SECOND: u128 = 1_000_000_000;
/// The most samples to a bit. Power that changes faster than bits come means nothing to the model, and costs a
/// step a sample: with this many the longest packet, 65,535 octets, takes 8.4 million. The presets' 100 us allow
/// 1 kbit/s.
const SAMPLES_PER_BIT_MAX: u128 = 16;

impl Fading {
    /// Computes the mean power by the law. A recording waits for its trace: [`Fading::with_trace`].
    ///
    /// # Errors
    /// The first value out of range.
    pub fn new(model: FadingModel) -> Result<Self, ChannelConfigError> {
        model.check()?;
        let prepared = match &model.source {
            PowerSource::Synthetic(_) => Some(Arc::new(Prepared::new(&model, None)?)),
            PowerSource::Recorded(_) => None,
        };
        Ok(Self { model, prepared })
    }

    /// The recording whose file has not been read yet.
    pub fn missing_trace(&self) -> Option<&Recorded> {
        match &self.model.source {
            PowerSource::Recorded(recorded) if self.prepared.is_none() => Some(recorded),
            _ => None,
        }
    }

    /// The mean power over all courses of a synthetic process that has the long-term bit error rate
    /// asked for (at the start of a pass). `None` for a recording, whose unit of power is unknown.
    pub fn mean_power(&self) -> Option<OpticalPower> {
        let prepared = self.prepared.as_ref()?;
        match &self.model.source {
            PowerSource::Synthetic(_) => OpticalPower::from_watts(prepared.factor),
            PowerSource::Recorded(_) => None,
        }
    }

    /// The generator for the medium: that of the description's own seed, if it has one; otherwise one
    /// below `rng`, which is the generator of the fading.
    pub(crate) fn medium(&self, rng: &Rng) -> Rng {
        match &self.model.source {
            PowerSource::Synthetic(Synthetic {
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
        if let PowerSource::Synthetic(synthetic) = &mut self.model.source
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
    pub fn with_trace(self, trace: Arc<PowerTrace>) -> Result<Self, ChannelConfigError> {
        let prepared = Some(Arc::new(Prepared::new(&self.model, Some(trace))?));
        Ok(Self { prepared, ..self })
    }

    /// The description.
    pub const fn model(&self) -> &FadingModel {
        &self.model
    }

    /// # Errors
    /// The trace is missing.
    pub(crate) fn prepared(&self) -> Result<&Arc<Prepared>, ChannelConfigError> {
        self.prepared.as_ref().ok_or_else(|| {
            let name = self.missing_trace().map_or("", |recorded| &recorded.name);
            ChannelConfigError::new(
                Setting::Fading.part("trace"),
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
    pub(crate) fn check_at(&self, rate: Bitrate) -> Result<(), ChannelConfigError> {
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
            PowerSource::Recorded(_) => {
                let allowed = format!(
                    "at least {}, {bound}: write the recording's own spacing, or a higher rate",
                    nanos(least)
                );
                ChannelConfigError::new(
                    Setting::Fading.part("spacing"),
                    nanos(prepared.spacing.into()),
                    allowed,
                )
            }
            PowerSource::Synthetic(synthetic) => {
                let given = format_duration(synthetic.correlation);
                let slowest = u128::from(prepared.spacing) * SAMPLES_PER_BIT_MAX;
                let rate = Bitrate::from_bits_per_second(
                    u64::try_from(NANOS_PER_SECOND.div_ceil(slowest)).unwrap_or(u64::MAX),
                );
                let allowed = format!("what has {bound}: a rate of at least {rate} with this time");
                ChannelConfigError::new(Setting::Fading.part("time"), given, allowed)
            }
        })
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
