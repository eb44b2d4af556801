//! Numbers in a scenario's notation.

/// Rounds to five digits, more than any recording is long enough to determine.
pub(super) fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10.0_f64.powf(4.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

pub(super) fn percent(loss: f64) -> String {
    // The product is rounded again: times 100 may have more digits.
    format!("{}%", rounded(rounded(loss) * 100.0))
}

pub(super) fn span(seconds: f64) -> String {
    let nanos = core::time::Duration::try_from_secs_f64(rounded(seconds));
    fulmar_proto::units::format_duration(nanos.unwrap_or_default())
}
