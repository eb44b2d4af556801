//! Spans of a recording, with those that are alike joined.

use super::ReplayedSpan;

/// The parts by which rates, and the spans by which delays, may differ in one span.
const SAME_RATE: f64 = 0.02;
const SAME_DELAY_S: f64 = 0.001;

/// The spans with those that are alike joined.
pub(super) fn joined(spans: impl Iterator<Item = ReplayedSpan>) -> Vec<ReplayedSpan> {
    let mut joined: Vec<ReplayedSpan> = Vec::new();
    for span in spans {
        if joined.last().is_none_or(|last| !is_like(last, &span)) {
            joined.push(span);
        }
    }
    joined
}

fn is_like(one: &ReplayedSpan, other: &ReplayedSpan) -> bool {
    let same_rate = match (one.rate_bps, other.rate_bps) {
        (Some(one), Some(other)) => (one - other).abs() <= SAME_RATE * one,
        (one, other) => one == other,
    };
    let apart = (one.delay_s - other.delay_s).abs();
    same_rate && apart <= SAME_DELAY_S.max(SAME_RATE * one.delay_s)
}
