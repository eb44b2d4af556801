//! The test of a model: do runs continue and end as often as the model says?
//!
//! Packets are sorted by what was known before each: whether the packets just before it were lost,
//! and how many in a row had that fate. In each class the lost ones are counted and compared with
//! the sum of the probabilities that the model gave them, each given all packets before it. The
//! differences are sums of a martingale, so each is normal with the summed variances in the limit,
//! whatever the model and its memory, and their squares make a chi-square. Class by class this is a
//! test of the lengths of bursts and gaps.
//!
//! The degrees of freedom are the classes less the fitted parameters. That is exact for independent
//! loss and for bursts, whose estimates solve equations of these very counts; for hidden states the
//! true law lies between that and the number of classes, so a small p-value overstates a little.

use super::likelihood::TwoStates;
use crate::losses::Losses;
use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// The outcome of the test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goodness {
    /// Pearson's sum.
    pub chi_square: f64,
    /// Degrees of freedom.
    pub degrees: u32,
    /// The probability that a true model looks worse than this.
    pub p: f64,
}

/// Classes of run lengths: each length up to 4 has its own, longer ones share one for half an
/// octave.
const CLASSES: usize = 40;
/// The count of either fate that a class must expect, for the normal law to hold well enough.
const EXPECTED_MIN: f64 = 5.0;

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    observed: f64,
    expected: f64,
    variance: f64,
}

impl Cell {
    fn add(&mut self, other: Self) {
        self.observed += other.observed;
        self.expected += other.expected;
        self.variance += other.variance;
    }
}

/// The class of packets behind a run of `length`.
fn class(length: u64) -> usize {
    let octave = length.max(1).ilog2();
    let half = if octave == 0 {
        0
    } else {
        length >> (octave - 1) & 1
    };
    let class = 2 * octave as usize + usize::try_from(half).unwrap_or_default();
    class.min(CLASSES - 1)
}

/// Tests `states`; `fitted` of its numbers were estimated from the same losses. None if there are
/// not more classes than numbers, or the losses or the arrivals of all classes together are too few.
pub(crate) fn test(losses: &Losses, states: &TwoStates, fitted: u32) -> Option<Goodness> {
    let mut cells = [[Cell::default(); CLASSES]; 2];
    let (mut last, mut run) = (false, 0_u64);
    states.predict(losses.groups(), |loss, lost, anew| {
        if !anew {
            cells[usize::from(last)][class(run)].add(Cell {
                observed: f64::from(u8::from(lost)),
                expected: loss,
                variance: loss * (1.0 - loss),
            });
        }
        run = if lost == last && !anew { run + 1 } else { 1 };
        last = lost;
    });
    let cells = cells.map(|cells| merged(&cells));
    let cells: Vec<Cell> = cells.into_iter().flatten().collect();
    if cells.iter().map(|cell| cell.variance).sum::<f64>() < EXPECTED_MIN {
        return None;
    }
    let chi_square = cells
        .iter()
        .map(|cell| (cell.observed - cell.expected).powi(2) / cell.variance)
        .sum();
    let degrees = u32::try_from(cells.len())
        .ok()?
        .checked_sub(fitted)
        .filter(|&f| f > 0)?;
    let law = ChiSquared::new(f64::from(degrees)).ok()?;
    Some(Goodness {
        chi_square,
        degrees,
        p: law.sf(chi_square),
    })
}

/// Joins neighbouring classes until each of them expects enough.
fn merged(cells: &[Cell]) -> Vec<Cell> {
    let mut done: Vec<Cell> = Vec::new();
    let mut open = Cell::default();
    for &cell in cells {
        open.add(cell);
        // Of n packets with mean loss q the variance is about n q (1 - q): both fates are above it.
        if open.variance >= EXPECTED_MIN {
            done.push(open);
            open = Cell::default();
        }
    }
    if let Some(last) = done.last_mut() {
        last.add(open);
    } else if open.variance > 0.0 {
        done.push(open);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_half_octaves() {
        let classes: Vec<usize> = [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 15, 16].map(class).to_vec();
        assert_eq!(classes, [0, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8]);
        assert_eq!(class(u64::MAX), CLASSES - 1);
    }
}
