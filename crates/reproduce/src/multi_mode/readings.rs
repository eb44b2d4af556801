//! The readings of the conditions that this paper leaves open.

use super::tables::BER;
use crate::data::Data;
pub(super) use crate::reading::{ALL, LOSSY, View, WORST, growth_of, percent};
use crate::reading::{PRINTED, Reading};

/// The readings of Figures 21-24.
pub(super) const MODES: &[Reading] = &[
    Reading::per_bit(BER, PRINTED),
    Reading::per_bit("ber-10ms", "10 ms"),
    Reading::per_octet("ber-octet", "rate per octet"),
    Reading::per_octet("ber-octet-10s", "rate per octet, 10 s and 128 KiB"),
    Reading::per_octet("ber-octet-10s-10ms", "that and 10 ms"),
    Reading::per_bit("ber-20mb", "20 MB"),
];

/// The readings of Figures 13-20.
pub(super) const BY_STRENGTH: &[Reading] = &[
    Reading::per_bit("strength-by-rate", PRINTED),
    Reading::per_bit("strength-10ms", "10 ms"),
    Reading::per_octet("strength-octet", "rate per octet"),
    Reading::per_bit("strength-20mb", "20 MB"),
];

/// The readings of the plots that the paper leaves out.
pub(super) const MACKS: &[Reading] = &[
    Reading::per_bit("mack", PRINTED),
    Reading::per_bit("mack-10ms", "10 ms"),
    Reading::per_octet("mack-octet", "rate per octet"),
    Reading::per_bit("mack-20mb", "20 MB"),
];

/// The runs of Figures 13-20 under the conditions as printed.
pub(super) fn as_printed(data: &Data) -> View<'_> {
    View::of(data, BY_STRENGTH[0])
}
