//! The fading of the four demonstrations that the source measured, as far as it is public.
//!
//! The recordings themselves were not published. These are processes chosen to match the paper's
//! words (Epple, "Performance optimization of free-space optical communication protocols") and
//! other publications. `docs/models/fading.md` lists the assumptions.

use super::model::{FadingModel, PowerSource, Synthetic};
use super::pass::{Leg, Pass, TransmitPower};
use super::turbulence::Turbulence;
use crate::outage::{OutageCycle, OutagePlan};
use crate::series::{Lengths, Series};
use fulmar_proto::units::{BitErrorRate, Distance, Duration, Instant};

/// A demonstration with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Demonstration {
    /// 61 km between a mountain and a roof: long, deep fades.
    Fasolt,
    /// Downlink of a low satellite on the rising half of its pass: stable, three tracking losses in
    /// 100 s.
    Kiodo,
    /// 1.4 km to an aircraft simulator that drives past trees and poles.
    Atenaa,
    /// 500 m between two buildings on a hot, windy day.
    Testbed,
}

impl Demonstration {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Fasolt, Self::Kiodo, Self::Atenaa, Self::Testbed];

    /// The name in files and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fasolt => "fasolt",
            Self::Kiodo => "kiodo",
            Self::Atenaa => "atenaa",
            Self::Testbed => "testbed",
        }
    }

    /// The demonstration with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// The process, scaled as the source scaled its recordings: to a long-term bit error rate of 1e-6
    /// over 100 s.
    pub fn model(self) -> FadingModel {
        let millis = Duration::from_millis;
        let (turbulence, correlation) = match self {
            Self::Fasolt => (Turbulence::GammaGamma(1.0), millis(50)),
            Self::Kiodo => (Turbulence::LogNormal(0.05), millis(2)),
            Self::Atenaa => (Turbulence::GammaGamma(0.3), millis(8)),
            Self::Testbed => (Turbulence::GammaGamma(0.6), millis(4)),
        };
        let lengths = |min, max| Lengths {
            min: millis(min),
            max: millis(max),
        };
        let tracking_loss = OutageCycle {
            first: Instant::START + millis(30_000),
            every: millis(30_000),
            length: millis(50),
        };
        FadingModel {
            source: PowerSource::Synthetic(Synthetic {
                turbulence,
                correlation,
                seed: None,
                over: Some(Duration::from_secs(100)),
            }),
            long_term: BitErrorRate::new(1e-6).unwrap_or_default(),
            obstruction: (self == Self::Atenaa).then(|| Series {
                good: lengths(1_000, 3_000),
                bad: lengths(50, 500),
            }),
            tracking: OutagePlan {
                single: Vec::new(),
                cycles: if self == Self::Kiodo {
                    vec![tracking_loss]
                } else {
                    Vec::new()
                },
            },
            pass: (self == Self::Kiodo).then(|| Pass {
                altitude: Distance::from_metres(610e3).unwrap_or_default(),
                start: Distance::from_metres(2_500e3).unwrap_or_default(),
                leg: Leg::Rising,
                transmit: TransmitPower::Constant,
            }),
        }
    }
}
