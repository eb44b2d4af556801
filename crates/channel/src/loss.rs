//! Packet loss in flight.
//!
//! A lost packet has occupied the link. Loss is drawn for every transmitted packet, at the end of
//! its transmission, also for one that an outage takes anyway, so that the outage plan moves no
//! loss draw. Under Bernoulli loss with equal seeds the packets lost at a lower rate are among
//! those lost at a higher one.

use crate::config::ConfigError;
use crate::gilbert::{GilbertElliott, GilbertProcess};
use crate::two_state::{OnOff, TwoState, TwoStateProcess};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Instant, PacketErrorRate};

/// The loss process of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum LossModel {
    /// Nothing is lost.
    #[default]
    None,
    /// Each packet is lost with this probability.
    Bernoulli(PacketErrorRate),
    /// Two states by time, 1.5 and 0.5 times the mean loss, equally long.
    OnOff(OnOff),
    /// Two states by time with any losses and durations.
    TwoState(TwoState),
    /// Bursts counted in packets.
    GilbertElliott(GilbertElliott),
}

impl LossModel {
    /// The loss in the long run.
    pub fn mean_loss(&self) -> PacketErrorRate {
        match self {
            Self::None => PacketErrorRate::ZERO,
            Self::Bernoulli(rate) => *rate,
            Self::OnOff(on_off) => on_off.mean_loss,
            Self::TwoState(states) => states.mean_loss(),
            Self::GilbertElliott(bursts) => bursts.mean_loss,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::None | Self::Bernoulli(_) => Ok(()),
            Self::OnOff(on_off) => on_off.two_state().map(drop),
            Self::TwoState(states) => states.check(),
            Self::GilbertElliott(bursts) => bursts.check(),
        }
    }
}

/// A rate computed from rates. Rounding may leave it just outside of 0..=1; parameters that fail
/// the check may make it no number at all, which reads as zero.
pub(crate) fn computed_rate(value: f64) -> PacketErrorRate {
    PacketErrorRate::new(value.clamp(0.0, 1.0)).unwrap_or_default()
}

/// The process in motion.
#[derive(Clone, Debug)]
pub(crate) enum LossProcess {
    None,
    Bernoulli { rate: f64, rng: Rng },
    TwoState { states: TwoStateProcess, rng: Rng },
    Gilbert(GilbertProcess),
}

impl LossProcess {
    /// # Errors
    /// [`ConfigError`] if the model's parameters are out of range.
    pub(crate) fn new(model: &LossModel, rng: Rng) -> Result<Self, ConfigError> {
        model.check()?;
        let by_time = |states: TwoState, rng: Rng| Self::TwoState {
            states: TwoStateProcess::new(states, rng.child("state")),
            rng,
        };
        Ok(match model {
            LossModel::None => Self::None,
            LossModel::Bernoulli(rate) => Self::Bernoulli {
                rate: rate.value(),
                rng,
            },
            LossModel::OnOff(on_off) => by_time(on_off.two_state()?, rng),
            LossModel::TwoState(states) => by_time(*states, rng),
            LossModel::GilbertElliott(bursts) => Self::Gilbert(GilbertProcess::new(*bursts, rng)),
        })
    }

    /// Whether the packet whose transmission ends at `end` is lost. `end` never decreases.
    pub(crate) fn takes(&mut self, end: Instant) -> bool {
        match self {
            Self::None => false,
            Self::Bernoulli { rate, rng } => rng.chance(*rate),
            Self::TwoState { states, rng } => rng.chance(states.loss_at(end)),
            Self::Gilbert(chain) => chain.next_is_lost(),
        }
    }
}
