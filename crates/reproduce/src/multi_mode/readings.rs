//! The readings of the conditions that this paper leaves open.

use super::tables::BER;
use crate::claims::ClaimFinding;
use crate::data::Data;
pub(super) use crate::reading::{ALL, LOSSY, View, WORST, growth_of, percent};
use crate::reading::{PRINTED, Reading, in_each};

/// The readings of Figures 21-24.
const MODES: &[Reading] = &[
    Reading::per_bit(BER, PRINTED),
    Reading::per_bit("ber-10ms", "10 ms"),
    Reading::per_octet("ber-octet", "rate per octet"),
    Reading::per_octet("ber-octet-10s", "rate per octet, 10 s and 128 KiB"),
    Reading::per_octet("ber-octet-10s-10ms", "that and 10 ms"),
    Reading::per_bit("ber-20mb", "20 MB"),
];

/// The readings of Figures 13-20.
const STRENGTHS: &[Reading] = &[
    Reading::per_bit("strength-by-rate", PRINTED),
    Reading::per_bit("strength-10ms", "10 ms"),
    Reading::per_octet("strength-octet", "rate per octet"),
    Reading::per_bit("strength-20mb", "20 MB"),
];

/// The readings of the plots that the paper leaves out.
const MACKS: &[Reading] = &[
    Reading::per_bit("mack", PRINTED),
    Reading::per_bit("mack-10ms", "10 ms"),
    Reading::per_octet("mack-octet", "rate per octet"),
    Reading::per_bit("mack-20mb", "20 MB"),
];

/// Judges a claim on modes.
pub(super) fn judged(
    data: &Data,
    check: fn(&View<'_>) -> Option<ClaimFinding>,
) -> Option<ClaimFinding> {
    in_each(data, MODES, check)
}

/// Judges a claim on strengths.
pub(super) fn by_strength(
    data: &Data,
    check: fn(&View<'_>) -> Option<ClaimFinding>,
) -> Option<ClaimFinding> {
    in_each(data, STRENGTHS, check)
}

/// The runs of Figures 13-20 under the conditions as printed.
pub(super) fn as_printed(data: &Data) -> View<'_> {
    View::of(data, STRENGTHS[0])
}

/// Judges a claim on the aggregation of acknowledgements.
pub(super) fn by_aggregation(
    data: &Data,
    check: fn(&View<'_>) -> Option<ClaimFinding>,
) -> Option<ClaimFinding> {
    in_each(data, MACKS, check)
}
