//! The settings of liveness.

use crate::units::Duration;

/// The silence after which a link is held for down, and the probes that are sent to find out.
#[derive(Clone, Copy, Debug)]
pub struct LivenessConfig {
    /// The shortest silence, while an answer is awaited, after which a link is held for down. The silence must also
    /// have lasted three round trips, and twelve times the usual silence.
    pub down_after_min: Duration,
    /// The longest silence that is waited for, however lossy the link is, unless three round trips are longer.
    pub down_after_max: Duration,
    /// The time between two probes while the link is down.
    pub probe_interval: Duration,
    /// The time between two probes of an idle link, so that address translators keep their entry; `None` if an idle link
    /// is left alone.
    pub keep_alive: Option<Duration>,
    /// Whether a link without proofs that what is sent arrives is held for down while others carry on. The user of the
    /// machine then has to report each proof.
    pub wants_proofs: bool,
}

impl LivenessConfig {
    /// The defaults.
    pub const USUAL: Self = Self {
        down_after_min: Duration::from_millis(300),
        down_after_max: Duration::from_secs(3),
        probe_interval: Duration::from_millis(250),
        keep_alive: Some(Duration::from_secs(10)),
        wants_proofs: true,
    };
}

impl Default for LivenessConfig {
    fn default() -> Self {
        Self::USUAL
    }
}
