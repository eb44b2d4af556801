//! Channels from the papers, by name.

use crate::config::ChannelConfig;
use core::str::FromStr;
use fulmar_proto::units::{Bitrate, Duration};

/// A channel with a source. Loss and bit errors are left out: the papers sweep them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ChannelPreset {
    /// 5 mbit, 10 us: the lossy middle link. The papers print its latency as "10 s"; the unit's
    /// Greek letter was most likely lost.
    Airborne,
    /// 5 mbit, 10 ms: the same link in the second reading of its latency.
    AirborneFar,
    /// 10 mbit, 5 ms: the link of the connection set-up experiment.
    Setup,
}

impl ChannelPreset {
    /// Every preset.
    pub const ALL: [Self; 3] = [Self::Airborne, Self::AirborneFar, Self::Setup];

    /// The name in files and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Airborne => "airborne",
            Self::AirborneFar => "airborne-10ms",
            Self::Setup => "setup",
        }
    }

    /// The source of the values.
    pub const fn source(self) -> &'static str {
        match self {
            Self::Airborne => {
                "AeroTP papers (ITC hybrid ARQ; multi-mode): 5 Mb/s lossy link, latency printed as \
                 \"10 s\" and read as 10 us (spec A1)"
            }
            Self::AirborneFar => {
                "AeroTP papers: 5 Mb/s lossy link, second scenario with 10 ms (spec A1)"
            }
            Self::Setup => "AeroTP multi-mode paper, set-up delay: 10 Mb/s, 5 ms, loss 0 to 20 %",
        }
    }

    /// The channel: rate and delay of the preset, ns-3's default queue (100 packets), and no
    /// errors.
    pub fn config(self) -> ChannelConfig {
        let (bits_per_second, delay) = match self {
            Self::Airborne => (5_000_000, Duration::from_micros(10)),
            Self::AirborneFar => (5_000_000, Duration::from_millis(10)),
            Self::Setup => (10_000_000, Duration::from_millis(5)),
        };
        ChannelConfig {
            rate: Some(Bitrate::from_bits_per_second(bits_per_second)),
            delay,
            ..ChannelConfig::default()
        }
    }
}

/// The error about a name that no preset has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no preset `{0}`; there are airborne, airborne-10ms and setup")]
pub struct UnknownPreset(pub String);

impl FromStr for ChannelPreset {
    type Err = UnknownPreset;
    fn from_str(text: &str) -> Result<Self, UnknownPreset> {
        Self::ALL
            .into_iter()
            .find(|preset| preset.name() == text.trim())
            .ok_or_else(|| UnknownPreset(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_found_by_name_and_valid() {
        for preset in ChannelPreset::ALL {
            assert_eq!(preset.name().parse(), Ok(preset));
            assert_eq!(preset.config().validate(), Ok(()));
            let listed = UnknownPreset(String::new()).to_string();
            assert!(listed.contains(preset.name()), "{listed}");
        }
        assert!("arborne".parse::<ChannelPreset>().is_err());
    }
}
