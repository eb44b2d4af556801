//! Intervals of 95 %, and the scales on which estimates are nearly normal: log-odds of shares and
//! logarithms of rates.

/// The 97.5 % point of the normal distribution.
pub(super) const Z: f64 = 1.959_964;
/// Half the 95 % point of chi-square with one degree of freedom.
pub(super) const FALL: f64 = 1.920_729;
/// Log-odds beyond these are the ends of the range.
const ODDS_MAX: f64 = 16.0;
/// The range of logarithms of rates per second. Beyond it lie means that no scenario takes: more than
/// one year, or less than one microsecond.
const RATES: (f64, f64) = (-17.2, 13.8);

/// Wilson's interval of a share (JASA 22, 1927), which keeps its level near 0 and 1.
pub(super) fn wilson(hits: f64, trials: f64) -> (f64, f64) {
    let share = hits / trials;
    let square = Z * Z / trials;
    let middle = (share + 0.5 * square) / (1.0 + square);
    let half =
        Z / (1.0 + square) * (share * (1.0 - share) / trials + 0.25 * square / trials).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// The place where a search ended, and what is known of its neighbourhood.
pub(super) struct Point<'a> {
    pub(super) at: &'a [f64],
    /// The covariance of the entries that were not put to the end of their range.
    pub(super) covariance: Option<&'a [Vec<f64>]>,
    /// Losses that are held: at the end of their range, or so near that they cannot be told from
    /// it.
    pub(super) fixed: [Option<f64>; 2],
}

impl Point<'_> {
    /// The place of entry `index` among those that are free.
    fn place(&self, index: usize) -> Option<usize> {
        let is_fixed = |index: usize| self.fixed.get(index).is_some_and(Option::is_some);
        (!is_fixed(index)).then(|| (0..index).filter(|&before| !is_fixed(before)).count())
    }

    pub(super) fn interval(&self, index: usize, back: impl Fn(f64) -> f64) -> Option<(f64, f64)> {
        let place = self.place(index)?;
        let error = self.covariance?.get(place)?.get(place)?.sqrt();
        Some(around(self.at[index], error, back))
    }

    /// The interval of a share with these log-odds and this gradient over the entries.
    pub(super) fn combined(&self, odds: f64, gradient: &[f64]) -> Option<(f64, f64)> {
        let covariance = self.covariance?;
        let mut variance = 0.0;
        for (i, by_i) in gradient.iter().enumerate() {
            for (j, by_j) in gradient.iter().enumerate() {
                if let (Some(row), Some(column)) = (self.place(i), self.place(j)) {
                    variance += by_i * by_j * covariance.get(row)?.get(column)?;
                }
            }
        }
        Some(around(odds, variance.max(0.0).sqrt(), share))
    }
}

pub(super) fn around(at: f64, error: f64, back: impl Fn(f64) -> f64) -> (f64, f64) {
    (back(at - Z * error), back(at + Z * error))
}

pub(super) fn odds(share: f64) -> f64 {
    (share / (1.0 - share)).ln().clamp(-ODDS_MAX, ODDS_MAX)
}

pub(super) fn share(odds: f64) -> f64 {
    1.0 / (1.0 + (-odds.clamp(-ODDS_MAX, ODDS_MAX)).exp())
}

/// The rate of this logarithm.
pub(super) fn rate(logarithm: f64) -> f64 {
    logarithm.clamp(RATES.0, RATES.1).exp()
}
