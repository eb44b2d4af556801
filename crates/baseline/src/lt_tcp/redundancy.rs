//! The number of parity units: the binomial law.
//!
//! Both questions assume independent losses. Bursts make the answers too small; the deviation in
//! the estimate and the next round of RFEC are there for that.

/// The highest loss that parity is sized for: beyond it, more parity takes more of the window than
/// it gives.
pub(super) const LOSS_MAX: f64 = 0.75;
/// The most units of a block in all.
const UNITS_MAX: u32 = 256;

/// The smallest number P of parity units with which a block needs no feedback: of `units` units,
/// parity included, no more than P are lost with a probability of at least `chance`. At most
/// `units` - 1.
pub(super) fn proactive(units: u32, loss: f64, chance: f64) -> u32 {
    let loss = loss.clamp(0.0, LOSS_MAX);
    let arrives = 1.0 - loss;
    // The probability that exactly `lost` are lost, from 0 on.
    let mut exactly = arrives.powi(units.min(UNITS_MAX).cast_signed());
    let mut at_most = exactly;
    let mut lost = 0;
    while at_most < chance && lost + 1 < units {
        exactly *= f64::from(units - lost) / f64::from(lost + 1) * loss / arrives;
        at_most += exactly;
        lost += 1;
    }
    lost
}

/// The smallest number of units of which at least `needed` arrive with a probability of at least
/// `chance`.
pub(super) fn reactive(needed: u32, loss: f64, chance: f64) -> u32 {
    if needed == 0 {
        return 0;
    }
    let loss = loss.clamp(0.0, LOSS_MAX);
    // The probability that the last unit needed comes with exactly this one.
    let mut with_this = (1.0 - loss).powi(needed.min(UNITS_MAX).cast_signed());
    let mut by_now = with_this;
    let mut units = needed;
    while by_now < chance && units < 4 * UNITS_MAX {
        with_this *= f64::from(units) / f64::from(units + 1 - needed) * loss;
        by_now += with_this;
        units += 1;
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(X >= k) for X of `n` with `loss`, summed over all outcomes.
    fn enough(n: u32, k: u32, loss: f64) -> f64 {
        let choose =
            |n: u32, k: u32| (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
        let exactly = |x: u32| {
            choose(n, x) * (1.0 - loss).powi(x.cast_signed()) * loss.powi((n - x).cast_signed())
        };
        (k..=n).map(exactly).sum()
    }

    #[test]
    fn proactive_parity_is_the_smallest_that_keeps_the_chance() {
        for units in [1, 2, 10, 40] {
            for loss in [0.001, 0.02, 0.1, 0.3, 0.6] {
                for chance in [0.5, 0.9, 0.97] {
                    let parity = proactive(units, loss, chance);
                    let reached = enough(units, units - parity, loss);
                    assert!(
                        reached >= chance - 1e-9 || parity + 1 == units,
                        "{units} {loss} {chance}"
                    );
                    if parity > 0 {
                        let less = enough(units, units - parity + 1, loss);
                        assert!(less < chance, "{units} {loss} {chance}: {less}");
                    }
                }
            }
        }
    }

    #[test]
    fn reactive_parity_is_the_smallest_that_keeps_the_chance() {
        for needed in [1, 2, 7, 30] {
            for loss in [0.0, 0.02, 0.3, 0.6] {
                for chance in [0.0, 0.5, 0.97] {
                    let units = reactive(needed, loss, chance);
                    assert!(enough(units, needed, loss) >= chance - 1e-9);
                    if units > needed {
                        assert!(enough(units - 1, needed, loss) < chance);
                    }
                }
            }
        }
        assert_eq!(reactive(0, 0.5, 0.97), 0);
    }

    #[test]
    fn no_loss_takes_no_parity_and_any_loss_comes_to_an_end() {
        assert_eq!(proactive(100, 0.0, 0.9999), 0);
        assert_eq!(reactive(9, 0.0, 0.9999), 9);
        assert!(proactive(160, 1.0, 0.9999) < 160);
        assert!(reactive(255, 1.0, 0.9999) <= 1024);
    }
}
