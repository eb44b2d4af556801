//! Rates that are computed from others.

use fulmar_proto::units::PacketErrorRate;

/// A rate computed from rates. Rounding may leave it just outside of 0..=1. Parameters that fail
/// the check may make it NaN, which reads as zero.
pub(crate) fn computed_rate(value: f64) -> PacketErrorRate {
    PacketErrorRate::new(value.clamp(0.0, 1.0)).unwrap_or_default()
}
