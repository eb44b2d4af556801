//! The likelihood of a row of losses under two hidden states.
//!
//! States alternate as a Markov chain; a packet is lost with the probability of its state. Let a be
//! the row of probabilities of the states before a packet, P the transition matrix, and E the
//! diagonal matrix with the probability of the packet's fate in each state. The packet turns a into
//! a P E, whose sum is the probability of that fate. For k equally spaced packets of one fate that
//! is a (P E)^k, which the two eigenvalues of the 2 x 2 matrix give in closed form: the work grows
//! with the groups, not with the packets.
//!
//! # Sources
//! Elliott, BSTJ 42 (1963); Rabiner, "A tutorial on hidden Markov models", Proc. IEEE 77 (1989), for
//! the scaled forward recursion.

use crate::losses::LossGroup;

/// The law by which the states change from one packet to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Steps {
    /// By packet: the probabilities of going from good to bad, and from bad to good.
    Packets { to_bad: f64, to_good: f64 },
    /// By time: the rates per second.
    Time { to_bad: f64, to_good: f64 },
}

/// Two states, each with its loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TwoStates {
    pub(crate) loss_good: f64,
    pub(crate) loss_bad: f64,
    pub(crate) steps: Steps,
}

type Row = [f64; 2];
type Matrix = [[f64; 2]; 2];

impl TwoStates {
    /// The share of packets, or of time, in the bad state.
    pub(crate) fn bad_share(&self) -> f64 {
        let (Steps::Packets { to_bad, to_good } | Steps::Time { to_bad, to_good }) = self.steps;
        to_bad / (to_bad + to_good)
    }

    pub(crate) fn mean_loss(&self) -> f64 {
        let bad = self.bad_share();
        bad * self.loss_bad + (1.0 - bad) * self.loss_good
    }

    /// The transitions over one step of `seconds`. After an infinite step nothing is remembered.
    fn transitions(&self, seconds: f64) -> Matrix {
        let bad = self.bad_share();
        let kept = match self.steps {
            _ if seconds.is_infinite() => 0.0,
            Steps::Packets { to_bad, to_good } => 1.0 - to_bad - to_good,
            Steps::Time { to_bad, to_good } => (-(to_bad + to_good) * seconds).exp(),
        };
        let (to_bad, to_good) = (bad * (1.0 - kept), (1.0 - bad) * (1.0 - kept));
        [[1.0 - to_bad, to_bad], [to_good, 1.0 - to_good]]
    }

    fn emissions(&self, lost: bool) -> Row {
        let of = |loss: f64| if lost { loss } else { 1.0 - loss };
        [of(self.loss_good), of(self.loss_bad)]
    }

    /// The natural logarithm of the probability of all that happened; minus infinity if it cannot.
    pub(crate) fn log_likelihood(&self, groups: &[LossGroup]) -> f64 {
        let share = self.bad_share();
        let mut row = [1.0 - share, share];
        let mut total = 0.0;
        // By packet every finite step is the same, so two powers serve all groups.
        let by_packet = matches!(self.steps, Steps::Packets { .. });
        let of = |lost| Power::of(self.transitions(1.0), self.emissions(lost)).prepared();
        let fixed = by_packet.then(|| [of(false), of(true)]);
        for group in groups {
            let mut count = group.count;
            if group.step.is_infinite() {
                // Nothing is known of what was before the first packet of the group.
                row = [1.0 - share, share];
                let [good, bad] = self.emissions(group.lost);
                row = [row[0] * good, row[1] * bad];
                total += rescale(&mut row);
                count -= 1;
            }
            if count == 0 {
                continue;
            }
            let step = if group.step.is_infinite() {
                1.0
            } else {
                group.step
            };
            total += match &fixed {
                Some(fixed) => fixed[usize::from(group.lost)].apply(&mut row, count),
                None => Power::of(self.transitions(step), self.emissions(group.lost))
                    .apply(&mut row, count),
            };
            if !total.is_finite() {
                return f64::NEG_INFINITY;
            }
        }
        total
    }

    /// Goes through the packets one by one. For each, `tell` gets the probability that it is lost,
    /// given those before it; whether it was lost; and whether the chain begins anew before it.
    pub(crate) fn predict(&self, groups: &[LossGroup], mut tell: impl FnMut(f64, bool, bool)) {
        let share = self.bad_share();
        let mut row = [1.0 - share, share];
        for group in groups {
            let emissions = self.emissions(group.lost);
            let step = if group.step.is_infinite() {
                1.0
            } else {
                group.step
            };
            let matrix = self.transitions(step);
            for index in 0..group.count {
                let anew = index == 0 && group.step.is_infinite();
                let before = if anew {
                    [1.0 - share, share]
                } else {
                    times(row, matrix)
                };
                let loss = before[0] * self.loss_good + before[1] * self.loss_bad;
                tell(loss.clamp(0.0, 1.0), group.lost, anew);
                row = [before[0] * emissions[0], before[1] * emissions[1]];
                rescale(&mut row);
            }
        }
    }
}

fn times(row: Row, m: Matrix) -> Row {
    [
        row[0] * m[0][0] + row[1] * m[1][0],
        row[0] * m[0][1] + row[1] * m[1][1],
    ]
}

/// Scales `row` so that its sum is one, and returns the logarithm of the sum before.
fn rescale(row: &mut Row) -> f64 {
    let sum = row[0] + row[1];
    if sum > 0.0 {
        *row = [row[0] / sum, row[1] / sum];
        sum.ln()
    } else {
        *row = [0.5, 0.5];
        f64::NEG_INFINITY
    }
}

/// The powers of M = P E by its eigenvalues, both real since no entry is negative:
/// M^k = (large^k (M - small) - small^k (M - large)) / (large - small).
#[derive(Clone, Copy, Debug)]
struct Power {
    matrix: Matrix,
    large: f64,
    small: f64,
}

/// A matrix whose powers are asked for again and again. The powers for short runs, which most runs
/// are, are kept scaled, with the logarithms of their scales.
#[derive(Clone, Debug)]
struct Prepared {
    power: Power,
    short: Vec<(Matrix, f64)>,
}

/// Runs up to this length are prepared.
const SHORT_MAX: u32 = 64;

impl Prepared {
    fn apply(&self, row: &mut Row, count: u32) -> f64 {
        match self.short.get(count as usize) {
            Some((matrix, scale)) => {
                *row = times(*row, *matrix);
                scale + rescale(row)
            }
            None => self.power.apply(row, count),
        }
    }
}

/// The least distance of the eigenvalues: nearer ones would mean a division by nearly zero.
const APART: f64 = 1e-12;

impl Power {
    fn of(transitions: Matrix, emissions: Row) -> Self {
        let matrix = transitions.map(|row| [row[0] * emissions[0], row[1] * emissions[1]]);
        let half = 0.5 * (matrix[0][0] + matrix[1][1]);
        let skew = 0.5 * (matrix[0][0] - matrix[1][1]);
        let root = (skew * skew + matrix[0][1] * matrix[1][0]).max(0.0).sqrt();
        Self {
            matrix,
            large: half + root,
            small: half - root,
        }
    }

    fn prepared(self) -> Prepared {
        let short = (0..=SHORT_MAX).map(|count| self.raised(count)).collect();
        Prepared { power: self, short }
    }

    /// Multiplies `row` by the `count`th power, scaled, and returns the logarithm of the scale.
    fn apply(&self, row: &mut Row, count: u32) -> f64 {
        let (matrix, scale) = self.raised(count);
        *row = times(*row, matrix);
        scale + rescale(row)
    }

    /// The `count`th power without its scale, and the logarithm of the scale.
    fn raised(&self, count: u32) -> (Matrix, f64) {
        if self.large <= 0.0 {
            // Both eigenvalues are zero: one such packet may come, a second one behind it cannot.
            let scale = if count > 1 { f64::NEG_INFINITY } else { 0.0 };
            let one = [[1.0, 0.0], [0.0, 1.0]];
            return (if count == 0 { one } else { self.matrix }, scale);
        }
        let length = f64::from(count);
        let apart = self.large - self.small;
        // The power without its scale is `times_matrix` M + `times_one`.
        let (times_matrix, times_one) = if apart < APART * self.large {
            // In the limit: k large^(k - 1) M - (k - 1) large^k.
            (length / self.large, 1.0 - length)
        } else {
            let ratio = whole_power(self.small / self.large, count);
            let times_one = (ratio * self.large - self.small) / apart;
            ((1.0 - ratio) / apart, times_one)
        };
        let mut scaled = self.matrix.map(|row| row.map(|entry| times_matrix * entry));
        scaled[0][0] += times_one;
        scaled[1][1] += times_one;
        // Differences of nearly equal terms may come out below zero.
        let scaled = scaled.map(|row| row.map(|entry| entry.max(0.0)));
        (scaled, length * self.large.ln())
    }
}

/// A whole power: eigenvalues may be negative, so the exponent must stay a whole number. Beyond 2^31
/// a ratio below one is zero.
fn whole_power(base: f64, exponent: u32) -> f64 {
    i32::try_from(exponent).map_or(0.0, |exponent| base.powi(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: [LossGroup; 7] = [
        group(false, 3, f64::INFINITY),
        group(true, 2, 1.0),
        group(false, 40, 0.5),
        group(true, 1, 0.5),
        group(false, 7, 3.0),
        group(true, 5, f64::INFINITY),
        group(false, 1, 2.0),
    ];

    /// No two are lost in a row.
    const SINGLE: [LossGroup; 5] = [
        group(false, 3, f64::INFINITY),
        group(true, 1, 1.0),
        group(false, 9, 1.0),
        group(true, 1, 1.0),
        group(false, 1, 1.0),
    ];

    const fn group(lost: bool, count: u32, step: f64) -> LossGroup {
        LossGroup { lost, count, step }
    }

    fn states(steps: Steps) -> TwoStates {
        TwoStates {
            loss_good: 0.01,
            loss_bad: 0.6,
            steps,
        }
    }

    #[test]
    fn powers_agree_with_going_packet_by_packet() {
        let mut possible = 0;
        for steps in [
            Steps::Packets {
                to_bad: 0.02,
                to_good: 0.2,
            },
            Steps::Packets {
                to_bad: 0.9,
                to_good: 0.8,
            },
            // Every burst is of one packet.
            Steps::Packets {
                to_bad: 0.3,
                to_good: 1.0,
            },
            Steps::Time {
                to_bad: 0.05,
                to_good: 0.7,
            },
        ] {
            for (loss_good, loss_bad) in [(0.01, 0.6), (0.3, 0.3), (0.0, 1.0)] {
                let states = TwoStates {
                    loss_good,
                    loss_bad,
                    ..states(steps)
                };
                for groups in [&GROUPS[..], &SINGLE] {
                    let mut slow = 0.0;
                    states.predict(groups, |loss, lost, _| {
                        slow += if lost { loss } else { 1.0 - loss }.ln();
                    });
                    let fast = states.log_likelihood(groups);
                    let near = (fast - slow).abs() < 1e-9 * slow.abs();
                    assert!(
                        near || (fast.is_infinite() && slow.is_infinite()),
                        "{states:?}: {fast} {slow}"
                    );
                    possible += usize::from(slow.is_finite());
                }
            }
        }
        // All but bursts of several packets in a chain that has none.
        assert_eq!(possible, 23);
    }

    #[test]
    fn a_chain_that_forgets_is_independent_loss() {
        // to_bad + to_good = 1: the next state does not depend on the last.
        let states = states(Steps::Packets {
            to_bad: 0.25,
            to_good: 0.75,
        });
        let p: f64 = 0.25 * 0.6 + 0.75 * 0.01;
        assert!((states.mean_loss() - p).abs() < 1e-12);
        let expected = 8.0 * p.ln() + 51.0 * (1.0 - p).ln();
        let found = states.log_likelihood(&GROUPS);
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn what_cannot_happen_has_no_likelihood() {
        let steps = Steps::Packets {
            to_bad: 0.1,
            to_good: 0.1,
        };
        let states = TwoStates {
            loss_good: 0.0,
            loss_bad: 0.0,
            steps,
        };
        assert!(states.log_likelihood(&GROUPS).is_infinite());
    }
}
