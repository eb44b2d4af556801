//! The additive transform: coefficients to values at consecutive points, and back.
//!
//! The point of index i is the field's value i. Let `W_j` be the product of x - i over i < 2^j, and `N_j` = `W_j` / `W_j`(2^j).
//! `N_j` is additive, is zero below 2^j, and is 1 at 2^j. The basis polynomial of index i is the product of the `N_j` over the
//! bits j of i. A polynomial's lower and upper half of coefficients, L and U, give L + `N_j` U, and `N_j` is constant over 2^j
//! neighbouring points: that is one step of the transform.

use super::field::{Factor, add, inverse, product};
use std::sync::OnceLock;

const BITS: usize = 16;

/// Constants of the basis.
struct Basis {
    /// `N_j` at 2^i.
    values: [[u16; BITS]; BITS],
    /// The derivative of `N_j`, which is a constant, since `N_j` is additive.
    slopes: [u16; BITS],
}

fn basis() -> &'static Basis {
    static BASIS: OnceLock<Basis> = OnceLock::new();
    BASIS.get_or_init(|| {
        // `W_j` at 2^i, from `W_{j+1}`(x) = `W_j`(x) (`W_j`(x) + `W_j`(2^j)).
        let mut unscaled = [[0; BITS]; BITS];
        unscaled[0] = core::array::from_fn(|i| 1 << i);
        for j in 1..BITS {
            let below = unscaled[j - 1];
            unscaled[j] = below.map(|value| product(value, value ^ below[j - 1]));
        }
        let mut basis = Basis {
            values: [[0; BITS]; BITS],
            slopes: [0; BITS],
        };
        // The coefficient of x in `W_j` is the product of all points of its set but zero.
        let mut slope = 1;
        for (j, values) in unscaled.iter().enumerate() {
            let scale = inverse(values[j]);
            basis.values[j] = values.map(|value| product(value, scale));
            basis.slopes[j] = product(slope, scale);
            for point in 1 << j..=u16::MAX >> (BITS - 1 - j) {
                slope = product(slope, point);
            }
        }
        basis
    })
}

/// `N_j` at a point.
fn value(j: usize, point: u32) -> u16 {
    let values = &basis().values[j];
    let bits = (j..BITS).filter(|&i| point >> i & 1 == 1);
    bits.fold(0, |sum, i| sum ^ values[i])
}

/// The product of the slopes of `N_j` over the bits j of `index`.
pub(super) fn slope(index: u32) -> u16 {
    let slopes = &basis().slopes;
    let bits = (0..BITS).filter(|&j| index >> j & 1 == 1);
    bits.fold(1, |sum, j| product(sum, slopes[j]))
}

/// Rows of equal length, one behind the other; their number is a power of two.
pub(super) struct Rows {
    pub(super) octets: Vec<u16>,
    pub(super) words: usize,
}

impl Rows {
    pub(super) fn zeros(count: u32, words: usize) -> Self {
        Self {
            octets: vec![0; count as usize * words],
            words,
        }
    }

    fn count(&self) -> usize {
        self.octets.len() / self.words
    }

    pub(super) fn row(&self, index: u32) -> &[u16] {
        let start = index as usize * self.words;
        &self.octets[start..start + self.words]
    }

    pub(super) fn row_mut(&mut self, index: u32) -> &mut [u16] {
        let start = index as usize * self.words;
        &mut self.octets[start..start + self.words]
    }

    /// Adds the row `from` to the row `to`, which is before it.
    pub(super) fn add_later(&mut self, to: u32, from: u32) {
        let (before, after) = self.octets.split_at_mut(from as usize * self.words);
        let start = to as usize * self.words;
        add(&mut before[start..start + self.words], &after[..self.words]);
    }

    /// The pairs of one step: `step` is called with the factor and both halves of each group of 2^(j+1) rows.
    fn each_group(
        &mut self,
        j: usize,
        first_point: u32,
        step: impl Fn(Option<&Factor>, &mut [u16], &mut [u16]),
    ) {
        let words = self.words;
        let half = words << j;
        let mut point = first_point;
        for group in self.octets.chunks_exact_mut(2 * half) {
            let (lower, upper) = group.split_at_mut(half);
            let factor = value(j, point);
            let factor = (factor != 0).then(|| Factor::new(factor));
            step(factor.as_ref(), lower, upper);
            point += 2 << j;
        }
    }

    fn steps(&self) -> usize {
        self.count().trailing_zeros() as usize
    }

    /// Replaces coefficients by the values at the points from `first_point` on, a multiple of the number of rows.
    pub(super) fn evaluate(&mut self, first_point: u32) {
        for j in (0..self.steps()).rev() {
            self.each_group(j, first_point, |factor, lower, upper| {
                if let Some(factor) = factor {
                    factor.add_to(lower, upper);
                }
                add(upper, lower);
            });
        }
    }

    /// Replaces the values at the points from 0 on by the coefficients.
    pub(super) fn interpolate(&mut self) {
        for j in 0..self.steps() {
            self.each_group(j, 0, |factor, lower, upper| {
                add(upper, lower);
                if let Some(factor) = factor {
                    factor.add_to(lower, upper);
                }
            });
        }
    }
}
