//! The number of units that a promise takes.

use super::layout::FileLayout;
use super::schedule::{BlockSends, units_used};
use fulmar_proto::units::Probability;

/// Terms below this share of the largest change no sum.
const NEGLIGIBLE: f64 = 1e-40;

/// The fewest units of which `needed` arrive, except with probability `residual`, where each is lost with probability `loss` by
/// itself. `None`: more than `most`.
pub fn units_to_send(
    needed: u32,
    loss: Probability,
    residual: Probability,
    most: u32,
) -> Option<u32> {
    let keeps = |units: u32| shortfall(units, needed, loss.value()) <= residual.value();
    if needed == 0 {
        return Some(0);
    }
    if needed > most || !keeps(most) {
        return None;
    }
    let (mut too_few, mut enough) = (needed - 1, most);
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        if keeps(middle) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    Some(enough)
}

/// The units of each block for a round that keeps a promise: fewer than all of a file's blocks arrive with probability `residual`
/// at most, at this loss. `None`: it takes more units than a block has.
pub fn sends_for_promise(
    layout: &FileLayout,
    loss: Probability,
    residual: Probability,
) -> Option<Vec<BlockSends>> {
    let of_each = Probability::new(residual.value() / f64::from(layout.blocks().max(1)))?;
    let sends = layout.numbers().map(|number| {
        let sources = layout
            .block(number)
            .map_or(0, |block| u32::from(block.sources()));
        let units = units_to_send(sources, loss, of_each, units_used(layout, number))?;
        Some(BlockSends { first: 0, units })
    });
    sends.collect()
}

/// The units of each block for a round with `overhead` more than the sources, as a share of them. `None`: a block has not so many.
pub fn sends_for_overhead(layout: &FileLayout, overhead: f64) -> Option<Vec<BlockSends>> {
    let sends = layout.numbers().map(|number| {
        let sources = layout
            .block(number)
            .map_or(0, |block| u32::from(block.sources()));
        let units = f64::from(sources) * (1.0 + overhead);
        let most = units_used(layout, number);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it was compared with the most"
        )]
        (units <= f64::from(most) && overhead >= 0.0).then(|| BlockSends {
            first: 0,
            units: units.ceil() as u32,
        })
    });
    sends.collect()
}

/// The probability that fewer than `needed` of `units` arrive: a sum over the binomial distribution, each term from its neighbour,
/// so that it needs neither logarithms nor powers and is the same on every machine.
fn shortfall(units: u32, needed: u32, loss: f64) -> f64 {
    if needed == 0 {
        return 0.0;
    }
    if units < needed || loss >= 1.0 {
        return 1.0;
    }
    if loss <= 0.0 {
        return 0.0;
    }
    let (n, arrives) = (f64::from(units), 1.0 - loss);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the number of units"
    )]
    let likeliest = ((n + 1.0) * arrives) as u32;
    let likeliest = likeliest.min(units);
    let (mut all, mut below) = (0.0, 0.0);
    let mut count = |arrived: u32, term: f64| {
        all += term;
        if arrived < needed {
            below += term;
        }
    };
    let mut term = 1.0;
    for arrived in (0..=likeliest).rev() {
        count(arrived, term);
        term *= f64::from(arrived) / (n - f64::from(arrived) + 1.0) * loss / arrives;
        if term < NEGLIGIBLE {
            break;
        }
    }
    let mut term = 1.0;
    for arrived in likeliest + 1..=units {
        let ratio = (n - f64::from(arrived) + 1.0) / f64::from(arrived) * arrives / loss;
        term *= ratio;
        if term < NEGLIGIBLE {
            break;
        }
        count(arrived, term);
    }
    below / all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(value: f64) -> Probability {
        Probability::new(value).expect("a share")
    }

    /// The oracle multiplies binomial coefficients out.
    fn by_hand(units: u32, needed: u32, loss: f64) -> f64 {
        let coefficient = |of: u32, k: u32| {
            (0..k).fold(1.0, |product, i| {
                product * f64::from(of - i) / f64::from(i + 1)
            })
        };
        let power = |base: f64, times: u32| (0..times).fold(1.0, |product, _| product * base);
        let term = |k| coefficient(units, k) * power(1.0 - loss, k) * power(loss, units - k);
        (0..needed).map(term).sum()
    }

    #[test]
    fn the_shortfall_is_the_binomial_tail() {
        for (units, needed, loss) in [
            (1, 1, 0.2),
            (9, 1, 0.2),
            (30, 20, 0.2),
            (30, 30, 0.01),
            (60, 10, 0.7),
        ] {
            let (ours, oracle) = (shortfall(units, needed, loss), by_hand(units, needed, loss));
            assert!(
                (ours - oracle).abs() <= 1e-12 + oracle * 1e-9,
                "{units} {needed} {loss}: {ours} {oracle}"
            );
        }
        assert!(
            shortfall(10, 0, 0.5) <= 0.0
                && shortfall(4, 5, 0.0) >= 1.0
                && shortfall(5, 5, 0.0) <= 0.0
        );
    }

    #[test]
    fn the_fewest_units_that_keep_the_promise_are_sent() {
        // .2^8 is 2.6e-6 and .2^9 is 5.1e-7.
        assert_eq!(units_to_send(1, share(0.2), share(1e-6), 100), Some(9));
        assert_eq!(units_to_send(1, share(0.2), share(1e-6), 8), None);
        assert_eq!(
            units_to_send(500, share(0.0), share(1e-6), 1_000),
            Some(500)
        );
        assert_eq!(units_to_send(0, share(0.2), share(1e-6), 1_000), Some(0));
        assert_eq!(units_to_send(1, share(1.0), share(1e-6), 1_000), None);
        for (needed, loss) in [(50, 0.1), (7_000, 0.2), (16_384, 0.5)] {
            let units = units_to_send(needed, share(loss), share(1e-6), 65_536).expect("possible");
            assert!(shortfall(units, needed, loss) <= 1e-6, "{needed}: {units}");
            assert!(
                shortfall(units - 1, needed, loss) > 1e-6,
                "{needed}: {units}"
            );
        }
    }

    #[test]
    fn ten_megabytes_at_a_fifth_lost_take_less_than_a_third_more() {
        let needed = u32::try_from(10_000_000_u64.div_ceil(1_432)).expect("small");
        let units = units_to_send(needed, share(0.2), share(1e-6), 65_536).expect("possible");
        let octets_for_each = f64::from(units) * 1_500.0 / 1e7;
        assert!(octets_for_each < 1.36, "{units} units, {octets_for_each}");
    }
}
