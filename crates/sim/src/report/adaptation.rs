//! The effect of following the bit error rate (AeroTP, `adapt`).

use crate::stack::AdaptationCounts;
use serde::{Deserialize, Serialize};

/// The senders' choices, over all flows that follow the rate. Means are over the TPDUs that were sent for
/// the first time after the peer's first report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AdaptationMetrics {
    /// The number of times that another payload length or strength was chosen.
    pub switched: u64,
    /// Mean payload octets of a TPDU.
    pub payload_mean_bytes: Option<f64>,
    /// Mean parity words in a TPDU.
    pub fec_words_mean: Option<f64>,
    /// The bit error rate that TPDUs were expected to meet, the geometric mean.
    pub expected_ber: Option<f64>,
}

impl AdaptationMetrics {
    pub(super) fn of(counts: AdaptationCounts) -> Self {
        let mean = |sum: u64| (counts.tpdus > 0).then(|| sum as f64 / counts.tpdus as f64);
        Self {
            switched: counts.switched,
            payload_mean_bytes: mean(counts.payload_bytes),
            fec_words_mean: mean(counts.words),
            expected_ber: mean(counts.quarter_octaves).map(|quarters| (-quarters / 4.0).exp2()),
        }
    }
}
