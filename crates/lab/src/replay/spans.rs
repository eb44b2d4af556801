//! Spans of a recording, with those that are alike joined.

use super::ReplayedSpan;

/// The parts by which rates, and the spans by which delays, may differ in one span.
const SAME_RATE: f64 = 0.02;
const SAME_DELAY_S: f64 = 0.001;
/// Standard errors by which losses may differ in one span.
const SAME_LOSS: f64 = 3.0;

/// The spans with those that are alike joined.
pub(super) fn joined(spans: impl Iterator<Item = ReplayedSpan>) -> Vec<ReplayedSpan> {
    let mut joined: Vec<ReplayedSpan> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if is_like(last, &span) => {
                let counted = last.counted + span.counted;
                if counted > 0.0 {
                    last.loss = (last.loss * last.counted + span.loss * span.counted) / counted;
                }
                last.counted = counted;
            }
            _ => joined.push(span),
        }
    }
    joined
}

fn is_like(one: &ReplayedSpan, other: &ReplayedSpan) -> bool {
    let same_rate = match (one.rate_bps, other.rate_bps) {
        (Some(one), Some(other)) => (one - other).abs() <= SAME_RATE * one,
        (one, other) => one == other,
    };
    let same_delay =
        (one.delay_s - other.delay_s).abs() <= SAME_DELAY_S.max(SAME_RATE * one.delay_s);
    let (least, all) = (one.counted.min(other.counted), one.counted + other.counted);
    let same_loss = least == 0.0 || {
        let both = (one.loss * one.counted + other.loss * other.counted) / all;
        let error = (both * (1.0 - both) * (1.0 / one.counted + 1.0 / other.counted)).sqrt();
        (one.loss - other.loss).abs() <= SAME_LOSS * error
    };
    same_rate && same_delay && same_loss
}
