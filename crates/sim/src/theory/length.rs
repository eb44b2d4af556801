//! The length of user data at which goodput is greatest: equation 11, and a search where there is
//! no closed form.

use super::Goodput;
use core::ops::RangeInclusive;
use fulmar_proto::units::{BitErrorRate, ByteCount};

/// A best length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BestLength {
    /// Octets of user data.
    Octets(ByteCount),
    /// The longer the better: nothing is ever hit, or an octet more always pays.
    Unbounded,
}

/// The best length of user data for selective repeat (equation 11), to the nearest octet and at
/// least one: l = l'/2 (sqrt(1 - 4 / (l' ln(1 - BEP))) - 1), all lengths in bits.
///
/// It is the same whether headers can be hit or not, since they are always there. Without a header
/// it is one octet; without errors, unbounded. The goodput is flat around the maximum: half or
/// twice the length costs little.
pub fn best_length(header: ByteCount, bit_errors: BitErrorRate) -> BestLength {
    if bit_errors.is_zero() {
        return BestLength::Unbounded;
    }
    let header_bits = header.bits() as f64;
    let decay = -(-bit_errors.value()).ln_1p();
    // The same root without its cancellation: l = 2 l' / (decay l' (sqrt(..) + 1)).
    let root = (1.0 + 4.0 / (header_bits * decay)).sqrt();
    let bits = 2.0 / (decay * (root + 1.0));
    let octets = if bits.is_finite() { bits / 8.0 } else { 0.0 };
    BestLength::Octets(ByteCount(nearest(octets).max(1)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate, and the values are not negative"
)]
fn nearest(value: f64) -> u64 {
    value.round() as u64
}

/// The length in `candidates` with the greatest goodput, the shortest of equals: for the classes
/// of repetition that have no closed form. Every candidate is looked at, so the caller bounds
/// them. `None` without candidates.
pub fn search_best_length(
    candidates: RangeInclusive<u32>,
    goodput: impl Fn(ByteCount) -> Goodput,
) -> Option<(ByteCount, Goodput)> {
    let mut best: Option<(ByteCount, Goodput)> = None;
    for octets in candidates {
        let user = ByteCount(u64::from(octets));
        let reached = goodput(user);
        if best.is_none_or(|(_, so_far)| reached > so_far) {
            best = Some((user, reached));
        }
    }
    best
}
