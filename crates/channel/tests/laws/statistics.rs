//! Comparisons with a law, each with its interval.
//!
//! Each prints what it measured: `cargo test -p fulmar-channel --test laws -- --nocapture` makes
//! the table of `docs/models/channel.md`.

/// Standard errors allowed: two-sided probability 6.3e-5 under the normal approximation.
pub(crate) const Z: f64 = 4.0;

/// Asserts that `hits` out of `trials` independent trials of probability `p` are within `Z`
/// binomial standard deviations.
pub(crate) fn assert_share(what: &str, hits: u64, trials: u64, p: f64) {
    let variance = trials as f64 * p * (1.0 - p);
    assert_within(what, hits as f64, trials as f64 * p, variance);
}

/// Asserts that `value` fits a variable with this mean and variance.
pub(crate) fn assert_within(what: &str, value: f64, mean: f64, variance: f64) {
    let deviation = (value - mean).abs();
    // The slack is for sums of rounded terms where the variance is zero.
    let allowed = Z * variance.sqrt() + 1e-9 * mean.abs();
    println!("{what}: measured {value}, expected {mean} +- {allowed:.3}");
    assert!(
        deviation <= allowed,
        "{what}: {value} is not {mean} +- {allowed}"
    );
}

/// Pearson's test of `observed` counts against the probabilities of their cells, which sum to one
/// and expect at least five each. The bound is the quantile at `Z` by Wilson and Hilferty (1931):
/// (X / f)^(1/3) is nearly normal with mean 1 - 2 / 9f and variance 2 / 9f.
pub(crate) fn assert_cells(what: &str, observed: &[u64], probabilities: &[f64]) {
    assert_eq!(observed.len(), probabilities.len());
    let total = observed.iter().sum::<u64>() as f64;
    let mut statistic = 0.0;
    for (&count, &p) in observed.iter().zip(probabilities) {
        let expected = total * p;
        assert!(expected >= 5.0, "{what}: a cell expects {expected}");
        statistic += (count as f64 - expected).powi(2) / expected;
    }
    let freedom = (observed.len() - 1) as f64;
    let spread = 2.0 / (9.0 * freedom);
    let bound = freedom * (1.0 - spread + Z * spread.sqrt()).powi(3);
    println!("{what}: chi-square {statistic:.1}, at most {bound:.1}, {freedom} degrees");
    assert!(
        statistic <= bound,
        "{what}: chi-square {statistic} above {bound}: {observed:?}"
    );
}

/// Counts `lengths` (all at least one) against the law of a run that ends after each element with
/// probability `end`: P(length = k) = end × (1 - end)^(k - 1).
pub(crate) fn assert_geometric_runs(what: &str, lengths: &[u64], end: f64) {
    let total = lengths.len() as f64;
    let mut probabilities = Vec::new();
    let mut tail = 1.0;
    // Single lengths as long as they and the tail behind them expect enough.
    while total * tail * end >= 20.0 && total * tail * (1.0 - end) >= 20.0 {
        probabilities.push(tail * end);
        tail *= 1.0 - end;
    }
    assert!(probabilities.len() >= 3, "{what}: too few runs, {total}");
    probabilities.push(tail);
    let mut observed = vec![0; probabilities.len()];
    for &length in lengths {
        let cell = usize::try_from(length - 1).unwrap().min(observed.len() - 1);
        observed[cell] += 1;
    }
    assert_cells(what, &observed, &probabilities);
}

/// The lengths of the runs of `true` and of `false`. The first and the last run are left out,
/// because the ends cut them.
pub(crate) fn runs(states: &[bool]) -> (Vec<u64>, Vec<u64>) {
    let runs: Vec<&[bool]> = states.chunk_by(|a, b| a == b).collect();
    let (mut of_true, mut of_false) = (Vec::new(), Vec::new());
    for run in runs.iter().skip(1).take(runs.len().saturating_sub(2)) {
        let lengths = if run[0] { &mut of_true } else { &mut of_false };
        lengths.push(run.len() as u64);
    }
    (of_true, of_false)
}
