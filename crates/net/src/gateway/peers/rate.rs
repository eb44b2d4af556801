//! The rate towards a peer, as it is told.

use fulmar_proto::rate::RateCause;
use fulmar_proto::transport::aerotp::{PathRate, RateReason};
use fulmar_proto::units::Bitrate;
use serde::Serialize;

/// The rate that is kept towards one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RateReport {
    /// The rate in use.
    pub current_bits_per_second: u64,
    /// The reason for it: `declared`, `marks`, `link`, `draining`.
    pub reason: &'static str,
    /// The rate that the link was found to carry, where that is less than configured.
    pub link_bits_per_second: Option<u64>,
    /// The rate that arrived lately, as the peer reports.
    pub delivered_bits_per_second: Option<u64>,
    /// Whether the link has carried less than 0.8 of what is configured for seconds.
    pub declared_wrong: bool,
}

/// The name of a reason in reports.
const fn rate_reason(reason: RateReason) -> &'static str {
    match reason {
        RateReason::Declared => "declared",
        RateReason::Marks => "marks",
        RateReason::Link => "link",
        RateReason::Draining => "draining",
        RateReason::Found(cause) => found_cause(cause),
    }
}

/// The name of the reason why a found rate is not more.
const fn found_cause(cause: RateCause) -> &'static str {
    match cause {
        RateCause::Searching => "searching",
        RateCause::Queue => "queue",
        RateCause::Cut => "cut",
        RateCause::Free => "free",
        RateCause::Bound => "bound",
        RateCause::Shared => "shared",
    }
}

impl From<PathRate> for RateReport {
    fn from(rate: PathRate) -> Self {
        Self {
            current_bits_per_second: rate.current.as_bits_per_second(),
            reason: rate_reason(rate.reason),
            link_bits_per_second: rate.link.map(Bitrate::as_bits_per_second),
            delivered_bits_per_second: rate.delivered.map(Bitrate::as_bits_per_second),
            declared_wrong: rate.declared_wrong,
        }
    }
}
