//! The maximum of a smooth function of a few variables, and how sharply it bends there.

/// A point at which a function is greatest, as far as the search could tell.
#[derive(Clone, Debug)]
pub(crate) struct Peak {
    pub(crate) at: Vec<f64>,
    pub(crate) value: f64,
}

/// Nelder and Mead's simplex (Computer Journal 7, 1965) with their coefficients. Each round begins
/// anew where the last one ended, until a round gains nothing, since a simplex may collapse before
/// it reaches the maximum. The first simplex has edges of `size`.
pub(crate) fn climb(start: &[f64], size: f64, mut value: impl FnMut(&[f64]) -> f64) -> Peak {
    /// A few thousandths of the fall at the ends of a 95 % interval (1.92).
    const GAIN_MIN: f64 = 5e-3;
    const ROUNDS_MAX: usize = 6;
    let mut best = Peak {
        at: start.to_vec(),
        value: value(start),
    };
    let mut size = size;
    for _ in 0..ROUNDS_MAX {
        let next = simplex(&best, size, &mut value);
        let gain = next.value - best.value;
        if next.value > best.value {
            best = next;
        }
        if gain < GAIN_MIN {
            break;
        }
        size = 0.2;
    }
    best
}

fn simplex(start: &Peak, size: f64, value: &mut impl FnMut(&[f64]) -> f64) -> Peak {
    const STEPS_MAX: usize = 250;
    const SPREAD_MIN: f64 = 1e-4;
    let n = start.at.len();
    let mut corners = vec![start.clone()];
    for index in 0..n {
        let mut at = start.at.clone();
        at[index] += size;
        let value = value(&at);
        corners.push(Peak { at, value });
    }
    for _ in 0..STEPS_MAX {
        corners.sort_by(|a, b| b.value.total_cmp(&a.value));
        let (highest, lowest) = (corners[0].value, corners[n].value);
        if highest - lowest < SPREAD_MIN {
            break;
        }
        let centre: Vec<f64> = (0..n)
            .map(|index| corners[..n].iter().map(|c| c.at[index]).sum::<f64>() / n as f64)
            .collect();
        let mut towards = |factor: f64| {
            let worst = &corners[n].at;
            let at: Vec<f64> = centre
                .iter()
                .zip(worst)
                .map(|(centre, worst)| centre + factor * (centre - worst))
                .collect();
            let value = value(&at);
            Peak { at, value }
        };
        let reflected = towards(1.0);
        let replacement = if reflected.value > highest {
            let expanded = towards(2.0);
            if expanded.value > reflected.value {
                expanded
            } else {
                reflected
            }
        } else if reflected.value > corners[n - 1].value {
            reflected
        } else {
            let contracted = towards(if reflected.value > lowest { 0.5 } else { -0.5 });
            if contracted.value <= lowest.max(reflected.value) {
                let best = corners[0].at.clone();
                for corner in corners.iter_mut().skip(1) {
                    for (entry, best) in corner.at.iter_mut().zip(&best) {
                        *entry = best + 0.5 * (*entry - best);
                    }
                    corner.value = value(&corner.at);
                }
                continue;
            }
            contracted
        };
        corners[n] = replacement;
    }
    corners.sort_by(|a, b| b.value.total_cmp(&a.value));
    corners.swap_remove(0)
}

/// The inverse of the observed information at `at`: the covariance of the estimates. None where the
/// function does not bend down in every direction.
pub(crate) fn covariance(
    at: &[f64],
    mut value: impl FnMut(&[f64]) -> f64,
) -> Option<Vec<Vec<f64>>> {
    let n = at.len();
    let here = value(at);
    // Steps that cost about half a unit of the function, so that noise is small against what they
    // measure and the function is still nearly quadratic.
    let steps: Option<Vec<f64>> = (0..n)
        .map(|index| {
            let mut step = 1e-3;
            for _ in 0..30 {
                let mut moved = at.to_vec();
                moved[index] += step;
                let cost = here - value(&moved);
                if cost > 0.2 {
                    return Some(step);
                }
                step *= if cost > 0.01 { 1.5 } else { 3.0 };
                if step > 5.0 {
                    return None;
                }
            }
            None
        })
        .collect();
    let steps = steps?;
    let mut shifted = |i: usize, by_i: f64, j: usize, by_j: f64| {
        let mut moved = at.to_vec();
        moved[i] += by_i * steps[i];
        moved[j] += by_j * steps[j];
        value(&moved)
    };
    let mut information = vec![vec![0.0; n]; n];
    for i in 0..n {
        let curve = shifted(i, 1.0, i, 0.0) + shifted(i, -1.0, i, 0.0) - 2.0 * here;
        information[i][i] = -curve / (steps[i] * steps[i]);
        for j in 0..i {
            let twist = shifted(i, 1.0, j, 1.0) + shifted(i, -1.0, j, -1.0)
                - shifted(i, 1.0, j, -1.0)
                - shifted(i, -1.0, j, 1.0);
            information[i][j] = -twist / (4.0 * steps[i] * steps[j]);
            information[j][i] = information[i][j];
        }
    }
    inverse(information)
}

/// The inverse by Gauss and Jordan; none if the matrix is not positive definite.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    for (index, row) in matrix.iter_mut().enumerate() {
        row.extend((0..n).map(|column| f64::from(u8::from(column == index))));
    }
    for pivot in 0..n {
        let scale = matrix[pivot][pivot];
        // Without exchanges the pivots of a positive definite matrix are positive.
        if !(scale > 1e-12 && scale.is_finite()) {
            return None;
        }
        for entry in &mut matrix[pivot] {
            *entry /= scale;
        }
        let row = matrix[pivot].clone();
        for (index, other) in matrix.iter_mut().enumerate() {
            if index != pivot {
                let factor = other[pivot];
                for (entry, pivot) in other.iter_mut().zip(&row) {
                    *entry -= factor * pivot;
                }
            }
        }
    }
    Some(matrix.into_iter().map(|row| row[n..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilted_bowl_is_climbed_and_its_bend_found() {
        // -(x - 1)^2 - 3 (y + 2)^2 - (x - 1) (y + 2): information [[2, 1], [1, 6]].
        let bowl = |at: &[f64]| {
            let (x, y) = (at[0] - 1.0, at[1] + 2.0);
            -x * x - 3.0 * y * y - x * y
        };
        let peak = climb(&[8.0, 8.0], 0.7, bowl);
        assert!(
            (peak.at[0] - 1.0).abs() < 1e-2 && (peak.at[1] + 2.0).abs() < 1e-2,
            "{peak:?}"
        );
        let covariance = covariance(&[1.0, -2.0], bowl).unwrap();
        for (row, expected) in covariance.iter().zip([[6.0, -1.0], [-1.0, 2.0]]) {
            for (entry, expected) in row.iter().zip(expected) {
                assert!((entry - expected / 11.0).abs() < 1e-6, "{covariance:?}");
            }
        }
    }

    #[test]
    fn a_valley_that_bends_round_is_followed_to_its_end() {
        // Rosenbrock's function, upside down.
        let valley = |at: &[f64]| -(1.0 - at[0]).powi(2) - 100.0 * (at[1] - at[0] * at[0]).powi(2);
        let peak = climb(&[-1.2, 1.0], 0.7, valley);
        assert!((peak.at[0] - 1.0).abs() < 0.02, "{peak:?}");
    }

    #[test]
    fn a_ridge_without_a_bend_has_no_covariance() {
        assert!(covariance(&[0.0, 0.0], |at| -at[0] * at[0]).is_none());
    }
}
