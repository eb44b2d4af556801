//! The conclusion's advice on transmit power, tried on KIODO's pass.

use super::courses::{course, levelled};
use crate::claims::{ClaimFinding, ClaimVerdict, PaperClaim};
use fulmar_channel::fading::Demonstration::Kiodo;

pub(super) const CLAIMS: [PaperClaim; 1] = [PaperClaim {
    id: "power-by-elevation",
    place: "Conclusion",
    says: "For LEO downlinks it is advisable to adjust the transmit power to the elevation angle: power is used more efficiently and the link's quality is constant.",
    criterion: "Reproduced if over KIODO's 100 s, at the same long-term BER, power that follows the distance sends at least a tenth less energy than constant power, and its mean short-term BER in the \
        first and the last third is within a factor of ten of each other; partly if one of both.",
    see: &["fig-1-kiodo"],
    check: |_| {
        let (constant, levelled) = (course(Kiodo), levelled());
        let energy = levelled.sent / constant.sent;
        let times = |(first, last): (f64, f64)| {
            if last > 0.0 {
                first / last
            } else {
                f64::INFINITY
            }
        };
        let (saves, even) = (energy <= 0.9, (0.1..=10.0).contains(&times(levelled.ends)));
        Some(ClaimFinding::new(
            ClaimVerdict::of(saves && even, saves || even),
            format!(
                "{energy:.2} of the energy; {:.1e} to {:.1e}, with constant power {:.1e} to {:.1e}",
                levelled.ends.0, levelled.ends.1, constant.ends.0, constant.ends.1
            ),
            "With constant power nearly all errors come at the start, and what is sent later is more than the link needs. Scintillation weakens along the pass in both, which levelled power does \
                not even out (docs/models/fading.md)."
                .to_owned(),
        ))
    },
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_that_follows_the_distance_needs_less_energy_and_evens_the_rate_out() {
        let (constant, levelled) = (course(Kiodo), levelled());
        assert!(
            levelled.sent < 0.9 * constant.sent,
            "{} {}",
            levelled.sent,
            constant.sent
        );
        let (first, last) = constant.ends;
        assert!(
            last < first / 100.0,
            "with constant power errors come at the start: {first} {last}"
        );
    }
}
