//! Packet loss in flight.
//!
//! A lost packet has occupied the link. Loss is drawn for every transmitted packet, at the end of
//! its transmission. It is drawn even for a packet that an outage takes anyway, so that the outage
//! plan changes no loss draw. Under Bernoulli loss with equal seeds the packets lost at a lower
//! rate are among those lost at a higher one.

use crate::config_error::ChannelConfigError;
use crate::fates::Fates;
use crate::gilbert::{GilbertElliott, GilbertProcess, PacketStates};
use crate::replay::{Replay, ReplayProcess, UsedUp};
use crate::series::{Series, SeriesProcess};
use crate::two_state::{OnOff, TwoState, TwoStateProcess};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Instant, PacketErrorRate};

/// The loss process of a channel.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Two states by packet with any losses and lengths.
    PacketStates(PacketStates),
    /// Intervals of total loss between intervals of none.
    Series(Series),
    /// A recorded loss.
    Replay(Replay),
    /// Recorded packets one after the other, written out.
    Fates(Fates),
}

impl LossModel {
    /// The loss in the long run; for intervals, that of packets much shorter than the intervals.
    pub fn mean_loss(&self) -> PacketErrorRate {
        match self {
            Self::None => PacketErrorRate::ZERO,
            Self::Bernoulli(rate) => *rate,
            Self::OnOff(on_off) => on_off.mean_loss,
            Self::TwoState(states) => states.mean_loss(),
            Self::GilbertElliott(bursts) => bursts.mean_loss,
            Self::PacketStates(states) => states.mean_loss(),
            Self::Series(series) => series.bad_share(),
            Self::Replay(replay) => {
                let trace = replay.trace.as_ref();
                trace.map_or(PacketErrorRate::ZERO, |trace| trace.mean_loss())
            }
            Self::Fates(fates) => fates.mean_loss(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), ChannelConfigError> {
        match self {
            Self::None | Self::Bernoulli(_) | Self::Replay(_) | Self::Fates(_) => Ok(()),
            Self::OnOff(on_off) => on_off.two_state().map(drop),
            Self::TwoState(states) => states.check(),
            Self::GilbertElliott(bursts) => bursts.check(),
            Self::PacketStates(states) => states.check(),
            Self::Series(series) => series.check(),
        }
    }
}

/// The state of a loss process.
#[derive(Clone, Debug)]
pub(crate) enum LossProcess {
    None,
    Bernoulli {
        rate: f64,
        rng: Rng,
    },
    TwoState {
        states: TwoStateProcess,
        rng: Rng,
    },
    Gilbert(GilbertProcess),
    PacketStates {
        chain: GilbertProcess,
        good: f64,
        bad: f64,
        rng: Rng,
    },
    Series(SeriesProcess),
    Replay(ReplayProcess),
}

impl LossProcess {
    /// # Errors
    /// [`ChannelConfigError`] if the model's parameters are out of range.
    pub(crate) fn new(model: &LossModel, rng: Rng) -> Result<Self, ChannelConfigError> {
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
            LossModel::PacketStates(states) => Self::PacketStates {
                chain: states.chain(rng.child("state")),
                good: states.good.loss.value(),
                bad: states.bad.loss.value(),
                rng,
            },
            LossModel::Series(series) => Self::Series(SeriesProcess::new(*series, rng)),
            LossModel::Replay(replay) => Self::Replay(ReplayProcess::new(replay, rng)?),
            LossModel::Fates(fates) => Self::Replay(ReplayProcess::new(&fates.replay(), rng)?),
        })
    }

    /// Whether the packet transmitted from `start` to `end` is lost. Neither ever decreases.
    pub(crate) fn takes(&mut self, start: Instant, end: Instant) -> bool {
        match self {
            Self::None => false,
            Self::Bernoulli { rate, rng } => rng.chance(*rate),
            Self::TwoState { states, rng } => rng.chance(states.loss_at(end)),
            Self::Gilbert(chain) => chain.next_is_bad(),
            Self::PacketStates {
                chain,
                good,
                bad,
                rng,
            } => rng.chance(if chain.next_is_bad() { *bad } else { *good }),
            Self::Series(series) => series.takes(start, end),
            Self::Replay(replay) => replay.takes(start, end),
        }
    }

    /// The error about a trace that has come to its end.
    pub(crate) fn used_up(&self) -> Option<UsedUp> {
        match self {
            Self::Replay(replay) => replay.used_up(),
            _ => None,
        }
    }
}
