//! Parity that is sent later for a damaged packet, which the receiver kept, beside sending the packet again.
//!
//! A packet of n codewords whose parity corrects t octets in each was beyond repair. Parity for t' octets, s steps of n octets
//! more, costs s n octets and the headers of the datagram that brings them. It fails with the probability
//! P(more than t') / P(more than t), and then the packet is sent again. The cheapest t' is taken, if it is cheaper than
//! sending the packet again at once.
//!
//! Damage that was just met says more than an estimate that is older: the rate counts as one that makes twice as many octets
//! wrong as the parity could not correct, if it is lower.

use super::arrival::{codewords, within};
use crate::units::BitErrorRate;

/// The most octets of each codeword that first and further parity correct together.
const CORRECTED_MAX: usize = 40;
/// Octets that go with further parity: its fields, and a share in the headers of a datagram that brings it for a few.
const AROUND: f64 = 60.0;
/// The part of a packet's octets that further parity and its risk may cost; else it is sent again.
const WORTH: f64 = 0.7;
/// The worth of a round trip's delay, as a part of a packet's octets.
const DELAY: f64 = 0.05;

/// The cheapest way to mend a packet beyond repair.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FurtherPlan {
    /// Octets of a codeword that are corrected then.
    corrects: usize,
    /// The expected cost, as a part of the packet's octets.
    cost: f64,
}

/// The cheapest parity for a packet with a region of so many octets, in which the parity so far corrects `corrects` octets of
/// each codeword and failed; `chances` are those that no codeword has more wrong octets than 0, 1, and so on. Sending the packet
/// again costs `again` times its octets.
fn cheapest(region: usize, corrects: usize, chances: &[f64], again: f64) -> Option<FurtherPlan> {
    let fails = |corrects: usize| 1.0 - chances.get(corrects).copied().unwrap_or(1.0);
    let failed = fails(corrects).max(f64::MIN_POSITIVE);
    let octets = region.max(1) as f64;
    let plans = (corrects + 1..chances.len()).map(|more| {
        let further = (codewords(region) * 2 * (more - corrects)) as f64;
        FurtherPlan {
            corrects: more,
            cost: (further + AROUND) / octets + fails(more) / failed * again,
        }
    });
    plans.min_by(|a, b| a.cost.total_cmp(&b.cost))
}

fn chances(rate: BitErrorRate, region: usize) -> [f64; CORRECTED_MAX + 1] {
    core::array::from_fn(|corrects| within(rate, region, corrects))
}

/// The octets of further parity for each codeword that mend a packet best; `None`: it is better sent again. The region of its
/// code has so many octets, and each codeword has `parity` octets so far.
pub fn further_steps(rate: BitErrorRate, region: usize, parity: usize) -> Option<usize> {
    let corrects = parity / 2;
    let seen = 2.0 * (corrects + 1) as f64 / (8 * region.max(1)) as f64;
    let rate = BitErrorRate::new(rate.value().max(seen).min(0.5)).unwrap_or_default();
    let best = cheapest(region, corrects, &chances(rate, region), 1.0)?;
    (best.cost < WORTH).then(|| 2 * best.corrects - parity)
}

/// The octets that a packet takes until it arrives, as a multiple of its own, where what is beyond repair is mended later:
/// for parities that correct none, one, two and more octets of each codeword. Both ends keep such a share of all packets at most;
/// what is beyond it is sent again.
pub(super) fn octets_until_mended(
    rate: BitErrorRate,
    region: usize,
    corrected_max: usize,
    kept_share: f64,
) -> Vec<f64> {
    let chances = chances(rate, region);
    let of = |corrects: usize| {
        let arrives = within(rate, region, corrects).max(f64::MIN_POSITIVE);
        let failed = 1.0 - arrives;
        // What is sent again may be beyond repair again.
        let again = 1.0 / arrives;
        let mended = cheapest(region, corrects, &chances, again).filter(|_| failed > 1e-9);
        let mended = mended.map_or(again, |plan| again.min(plan.cost + DELAY));
        let kept = kept_share.min(failed);
        1.0 + kept * mended + (failed - kept) * again
    };
    (0..=corrected_max).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: usize = 1_435;

    fn rate(value: f64) -> BitErrorRate {
        BitErrorRate::new(value).expect("a share")
    }

    #[test]
    fn a_few_octets_mend_what_a_few_wrong_bits_damaged_and_what_is_hopeless_is_sent_again() {
        let few = further_steps(rate(1e-6), REGION, 0).expect("cheaper than the packet");
        assert!((2..=8).contains(&few), "{few}");
        let many = further_steps(rate(1e-3), REGION, 0).expect("cheaper than the packet");
        assert!((12..=20).contains(&many), "{many}");
        let later = further_steps(rate(1e-3), REGION, 8).expect("cheaper than the packet");
        assert!(later < many && later >= 6, "{later}");
        assert_eq!(further_steps(rate(5e-2), REGION, 0), None);
        // A short packet is cheaper sent again.
        assert_eq!(further_steps(rate(1e-5), 80, 0), None);
    }

    #[test]
    fn what_is_mended_later_takes_fewer_octets_than_what_is_sent_again() {
        for (value, corrects) in [(1e-5, 0), (1e-4, 1), (1e-3, 5)] {
            let octets = octets_until_mended(rate(value), REGION, 10, 1.0)[corrects];
            let again = 1.0 / within(rate(value), REGION, corrects);
            assert!(
                octets > 1.0 && octets < 0.99 * again,
                "{value}: {octets}, {again}"
            );
        }
        // Half of those that are beyond repair are kept: half of the gain.
        let of = |kept_share| octets_until_mended(rate(1e-5), REGION, 0, kept_share)[0];
        let failed = 1.0 - within(rate(1e-5), REGION, 0);
        let half = f64::midpoint(of(0.0), of(1.0));
        assert!((of(failed / 2.0) - half).abs() < 1e-9);
        assert!((of(0.0) - 1.0 / (1.0 - failed)).abs() < 1e-9);
        let hopeless = octets_until_mended(rate(0.2), REGION, 3, 1.0);
        assert!(hopeless.iter().all(|octets| *octets > 1e3), "{hopeless:?}");
    }
}
