//! The coefficients, and the inverse of any square part of them.

use super::UNITS_MAX;
use crate::fec::gf256::{inverse, product};

/// The coefficient of source `j` in the repair symbol that is unit `unit` of its block.
///
/// Units of repair symbols are k and above, sources below k, so the xor is never zero.
pub(super) fn coefficient(unit: u8, j: u8) -> u8 {
    inverse(unit ^ j)
}

/// The row of repair unit `unit` over sources 0..`k`; the octets from `k` on are unused.
pub(super) fn row(unit: u8, k: u8) -> [u8; UNITS_MAX] {
    let mut row = [0; UNITS_MAX];
    for (coefficient_of_j, j) in row.iter_mut().zip(0..k) {
        *coefficient_of_j = coefficient(unit, j);
    }
    row
}

/// The inverse of the matrix `1 / (x_i + y_j)`, row by row, for distinct x and y.
///
/// In closed form (Schechter, "On the inversion of certain matrices", 1959), with signs dropped
/// since -1 = 1 in GF(2^8):
///
/// `b_ij = Π_m (x_j + y_m)(x_m + y_i) / ((x_j + y_i) Π_{m≠j} (x_j + x_m) Π_{m≠i} (y_i + y_m))`
///
/// That takes l^2 steps for l lost units where elimination takes l^3.
pub(super) fn inverted(x: &[u8], y: &[u8]) -> Vec<u8> {
    let size = x.len();
    let product_over = |of: u8, with: &[u8]| {
        let factors = with.iter().map(|&value| of ^ value).filter(|&f| f != 0);
        factors.fold(1, product)
    };
    // The factors that depend on one index alone: Π_m (x_j + y_m) / Π_{m≠j} (x_j + x_m), and the
    // same for y. The factor that is left out because it is zero is exactly that of m = j.
    let alone = |of: u8, other: &[u8], own: &[u8]| {
        product(product_over(of, other), inverse(product_over(of, own)))
    };
    let of_x: Vec<u8> = x.iter().map(|&x_j| alone(x_j, y, x)).collect();
    let mut matrix = Vec::with_capacity(size * size);
    for &y_i in y {
        let of_y = alone(y_i, x, y);
        for (&x_j, &of_x_j) in x.iter().zip(&of_x) {
            matrix.push(product(product(of_y, of_x_j), inverse(x_j ^ y_i)));
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_inverts_square_parts_of_every_size() {
        for size in 1..=40u8 {
            let x: Vec<u8> = (0..size).map(|i| 100 + 3 * i).collect();
            let y: Vec<u8> = (0..size).map(|j| 2 * j).collect();
            let inverse = inverted(&x, &y);
            for (i, row) in inverse.chunks(usize::from(size)).enumerate() {
                for (j, &y_j) in y.iter().enumerate() {
                    let terms = row.iter().zip(&x);
                    let sum = terms.fold(0, |s, (&b, &x_m)| s ^ product(b, coefficient(x_m, y_j)));
                    assert_eq!(sum, u8::from(i == j), "size {size}, entry {i}, {j}");
                }
            }
        }
    }
}
