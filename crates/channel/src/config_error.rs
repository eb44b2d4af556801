//! The error about a channel that cannot be used, and the names of a channel's settings.

use core::fmt::{self, Display};

/// The error about a value out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}; allowed is {allowed}")]
pub struct ChannelConfigError {
    /// The value's place in the description.
    pub field: Field,
    /// The value given.
    pub value: String,
    /// The values accepted.
    pub allowed: String,
}

impl ChannelConfigError {
    pub(crate) fn new(field: Field, value: impl Display, allowed: impl Into<String>) -> Self {
        Self {
            field,
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }
}

/// The place of a value in a channel's description. It prints as a path, such as `loss.mean_burst`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The setting.
    pub setting: Setting,
    /// The part of the setting; `None` if it is wrong as a whole.
    pub part: Option<&'static str>,
}

impl Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.setting.name())?;
        self.part.map_or(Ok(()), |part| write!(f, ".{part}"))
    }
}

/// A setting of a channel: a field of [`ChannelConfig`](crate::ChannelConfig), or the discipline of a queue above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The rate of the transmitter.
    Rate,
    /// Propagation delay.
    Delay,
    /// The limit on packets that wait.
    Queue,
    /// The length of the queue above which packets are marked.
    EcnThreshold,
    /// The loss of packets in flight.
    Loss,
    /// The fading of the received power.
    Fading,
    /// Times in which nothing gets through.
    Outages,
    /// The holding back of packets.
    Reorder,
    /// The variation of the delay.
    Jitter,
    /// Capacity on demand.
    Dama,
    /// Random early detection ([`RedConfig`](crate::RedConfig)).
    Red,
    /// The policer before the link.
    Policer,
    /// The law by which the queue signals early.
    Aqm,
    /// The station's slots.
    Tdma,
}

impl Setting {
    /// The name in errors.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Delay => "delay",
            Self::Queue => "queue",
            Self::EcnThreshold => "ecn_threshold",
            Self::Loss => "loss",
            Self::Fading => "fading",
            Self::Outages => "outages",
            Self::Reorder => "reorder",
            Self::Jitter => "jitter",
            Self::Dama => "dama",
            Self::Red => "red",
            Self::Policer => "policer",
            Self::Aqm => "aqm",
            Self::Tdma => "tdma",
        }
    }

    pub(crate) const fn whole(self) -> Field {
        Field {
            setting: self,
            part: None,
        }
    }

    pub(crate) const fn part(self, part: &'static str) -> Field {
        Field {
            setting: self,
            part: Some(part),
        }
    }
}
