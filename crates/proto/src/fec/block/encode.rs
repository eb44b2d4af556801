//! Repair symbols, made one at a time.

use super::{LENGTH_PREFIX, UNITS_MAX, cauchy};
use crate::fec::gf256;

/// The reason why a repair symbol does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotEncode {
    /// A block has 1 to 255 sources.
    #[error("a block of {sources} sources; it has 1 to 255")]
    SourceCount {
        /// The number of sources given.
        sources: usize,
    },
    /// Sources and repair symbols together exceed the field's 256 units.
    #[error("repair index {repair_index} with {sources} sources; indices end before 256 - sources")]
    RepairIndex {
        /// The index asked for.
        repair_index: u8,
        /// The number of sources in the block.
        sources: u8,
    },
    /// A payload's length does not fit its two-octet prefix.
    #[error("a payload of {octets} octets; the length prefix ends at 65535")]
    PayloadTooLong {
        /// The length of the payload.
        octets: usize,
    },
}

/// Appends repair symbol `repair_index` of the block with these payloads, in block order, to `out`.
///
/// The symbol has the longest payload's length plus [`LENGTH_PREFIX`]. Any index below
/// 256 - `sources.len()` can be asked for at any time, in any order.
///
/// # Errors
/// [`CannotEncode`], with `out` as it was.
pub fn encode_repair(
    sources: &[&[u8]],
    repair_index: u8,
    out: &mut Vec<u8>,
) -> Result<(), CannotEncode> {
    let count = sources.len();
    let k = u8::try_from(count).ok().filter(|&k| k > 0);
    let k = k.ok_or(CannotEncode::SourceCount { sources: count })?;
    let unit = k
        .checked_add(repair_index)
        .ok_or(CannotEncode::RepairIndex {
            repair_index,
            sources: k,
        })?;
    let mut lengths = [[0; LENGTH_PREFIX]; UNITS_MAX];
    let mut longest = 0;
    for (prefix, payload) in lengths.iter_mut().zip(sources) {
        let octets = payload.len();
        let length = u16::try_from(octets).map_err(|_| CannotEncode::PayloadTooLong { octets })?;
        *prefix = length.to_be_bytes();
        longest = longest.max(octets);
    }
    let row = &cauchy::row(unit, k)[..count];
    let start = out.len();
    out.resize(start + LENGTH_PREFIX + longest, 0);
    let (prefix, payload) = out[start..].split_at_mut(LENGTH_PREFIX);
    for (length, &coefficient) in lengths.iter().zip(row) {
        gf256::Kernel::scalar().mul_add(prefix, length, coefficient);
    }
    gf256::dot(payload, sources, row);
    Ok(())
}
