//! Fields of the short form in their octets.

use super::super::reject::Reject;
use crate::wire::{Port, TpduSeq, cut};

/// The first `N` octets and the rest.
pub(super) fn split<const N: usize>(octets: &[u8]) -> Result<([u8; N], &[u8]), Reject> {
    let (field, rest) = octets.split_first_chunk::<N>().ok_or(Reject::Truncated)?;
    Ok((*field, rest))
}

/// The port in these octets.
pub(super) const fn port(octets: [u8; 2]) -> Port {
    Port(u16::from_be_bytes(octets))
}

/// The number nearest to `expected` that is cut to these octets.
pub(super) const fn number(expected: TpduSeq, octets: [u8; 3]) -> TpduSeq {
    TpduSeq(cut::nearest(expected.0, cut::from_octets(octets)))
}

/// The microseconds in these octets, modulo 2^28: what the sender's clock says above is not known here.
pub(super) const fn time(octets: [u8; 3]) -> u32 {
    cut::from_octets(octets) * cut::TIME_UNIT_MICROS
}
