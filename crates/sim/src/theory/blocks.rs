//! The number of blocks that a receiver of selective repeat has to tell apart: equations 12 and 13.

use super::RoundTripCapacity;
use fulmar_proto::units::{PacketErrorRate, Probability};
use statrs::function::erf::erf_inv;

/// The number of blocks in use at a time, as a variable with mean and standard deviation.
///
/// With fewer blocks in the acknowledgement than this, selective repeat falls back to repeating
/// everything: TCP has three or four.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockDemand {
    mean: f64,
    deviation: f64,
}

impl BlockDemand {
    /// The number of blocks on a link that is `capacity` packets long and loses each with `loss`.
    ///
    /// The mean is equation 12, C p / (1 - p). The source leaves its deviation open ("of the AWGN
    /// channel"). Here each of the C packets is lost, independently, a geometric number of times
    /// before it arrives, whose mean gives equation 12 again and whose variance is p / (1 - p)^2;
    /// sigma = sqrt(C p) / (1 - p). `None` if every packet is lost.
    pub fn new(capacity: RoundTripCapacity, loss: PacketErrorRate) -> Option<Self> {
        let (packets, p) = (capacity.packets(), loss.value());
        (p < 1.0).then(|| Self {
            mean: packets * p / (1.0 - p),
            deviation: (packets * p).sqrt() / (1.0 - p),
        })
    }

    /// The mean number of blocks (equation 12).
    pub const fn mean(self) -> f64 {
        self.mean
    }

    /// The standard deviation.
    pub const fn deviation(self) -> f64 {
        self.deviation
    }

    /// The number of blocks that suffices with `confidence` (equation 13), taking the number as
    /// normal: sigma sqrt(2) erfinv(2 c - 1) + mean, not below zero. A good approximation only
    /// where the mean is well above one. `None` for a confidence of 0 or 1, which no number gives.
    pub fn quantile(self, confidence: Probability) -> Option<f64> {
        let p = confidence.value();
        (p > 0.0 && p < 1.0).then(|| {
            let deviations = core::f64::consts::SQRT_2 * erf_inv(2.0 * p - 1.0);
            (self.mean + self.deviation * deviations).max(0.0)
        })
    }
}
