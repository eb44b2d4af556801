//! Whether more sent is more arrived, weighed against the chance of what was lost.
//!
//! If the link carries both rates, the shares that arrive of the higher and of the lower rate are
//! equal. If it carries neither, as much arrives of both, so the shares are as the inverse rates. The
//! logarithm of the likelihoods' ratio of the two is summed (Wald's sequential test). Loss is not
//! independent from datagram to datagram, so the spread is measured as well as computed.

/// Evidence enough to send less: an error in e^3, or twenty.
pub(super) const ENOUGH: f64 = 3.0;
/// The measure that is supposed before anything was measured.
const TOGETHER: f64 = 4.0;
/// The most that one pair says: what is odd may be odd for other reasons.
const PAIR_MAX: f64 = 2.9;
/// The share of the sum that a further pair leaves: links change.
const KEPT: f64 = 0.95;
/// Evidence enough to send a step more, which the next pairs see if it was wrong.
const ENOUGH_FOR_MORE: f64 = 2.0;
/// The share of a new pair in the measured spread, once there are as many.
const SPREAD_GAIN: f64 = 1.0 / 8.0;
/// The share of a new window in the measure of how much losses come together.
const TOGETHER_GAIN: f64 = 1.0 / 16.0;

/// The answer of the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// More is carried.
    Carried,
    /// More is not carried.
    Full,
    /// Nothing can be said yet.
    Open,
}

/// The shares of a stretch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    /// The rate sent.
    pub(super) rate: f64,
    /// The share that arrived.
    pub(super) share: f64,
    /// Datagrams sent.
    pub(super) datagrams: f64,
    /// The share of them whose arrival may fall into the stretch before or behind, by jitter.
    pub(super) edges: f64,
}

impl Shares {
    /// The shares of so many octets sent and arrived in these seconds of sending, in packets of `packet` octets.
    pub(super) fn of((sent, arrived): (f64, f64), sending: f64, packet: f64) -> Self {
        Self {
            rate: sent / sending.max(1e-9),
            share: (arrived / sent.max(1.0)).min(1.0),
            datagrams: sent / packet,
            edges: 0.0,
        }
    }
}

fn verdict(sum: f64) -> Verdict {
    if sum >= ENOUGH {
        Verdict::Full
    } else if sum <= -ENOUGH_FOR_MORE {
        Verdict::Carried
    } else {
        Verdict::Open
    }
}

/// The evidence so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// The sum, positive if nothing more is carried.
    sum: f64,
    /// The mean square of a pair's logarithm, above what its datagrams' number explains.
    spread: f64,
    pairs: u32,
    /// The variance of shares as a multiple of that of independent losses.
    together: Option<f64>,
    last: Option<f64>,
    /// Octets sent and arrived since the beginning, of the higher rate and of the lower.
    high: (f64, f64),
    low: (f64, f64),
}

impl Evidence {
    /// Evidence about losses that were seen not to come together.
    pub(super) fn of_even_losses() -> Self {
        Self {
            together: Some(1.0),
            ..Self::default()
        }
    }

    /// The variance of the logarithm of a pair's ratio.
    pub(super) fn variance(&self, high: Shares, low: Shares) -> f64 {
        let of = |shares: Shares| {
            let share = shares.share.clamp(0.02, 1.0);
            let lost = (1.0 - share).max(0.5 / shares.datagrams.max(1.0));
            self.together() * lost / (share * shares.datagrams.max(1.0))
                + shares.edges * shares.edges
        };
        (of(high) + of(low)).max(self.spread)
    }

    /// The logarithm of the likelihoods' ratio of one pair: positive if nothing more is carried.
    pub(super) fn weigh(&self, high: Shares, low: Shares) -> f64 {
        let apart = (high.rate / low.rate).ln();
        let ratio = (high.share.max(0.01) / low.share.max(0.01)).ln();
        -(2.0 * ratio * apart + apart * apart) / (2.0 * self.variance(high, low))
    }

    /// The verdict of one pair alone.
    pub(super) fn of_pair(&self, high: Shares, low: Shares) -> Verdict {
        verdict(self.weigh(high, low))
    }

    /// Takes a pair of stretches that followed each other.
    pub(super) fn on_pair(&mut self, high: Shares, low: Shares) -> Verdict {
        let weight = self.weigh(high, low).clamp(-PAIR_MAX, PAIR_MAX);
        let apart = (high.rate / low.rate).ln();
        let ratio = (high.share.max(0.01) / low.share.max(0.01)).ln();
        // The distance to the nearer hypothesis is what neither explains.
        let odd = ratio.abs().min((ratio + apart).abs());
        self.pairs += 1;
        let gain = SPREAD_GAIN.max(1.0 / f64::from(self.pairs));
        self.spread += (odd * odd - self.spread) * gain;
        let add = |sum: &mut (f64, f64), shares: Shares| {
            sum.0 += shares.datagrams;
            sum.1 += shares.datagrams * shares.share;
        };
        add(&mut self.high, high);
        add(&mut self.low, low);
        self.sum = (self.sum * KEPT + weight).clamp(-2.0 * ENOUGH, 2.0 * ENOUGH);
        verdict(self.sum)
    }

    /// Takes the share of a window at the usual rate, to see how much losses come together.
    pub(super) fn on_window(&mut self, share: f64, datagrams: f64) {
        if datagrams < 4.0 {
            return;
        }
        if let Some(last) = self.last.replace(share) {
            let mean = f64::midpoint(share, last).clamp(0.5 / datagrams, 1.0 - 0.5 / datagrams);
            let alone = mean * (1.0 - mean) / datagrams;
            let measured = (share - last).powi(2) / 2.0;
            let together = self.together.unwrap_or(TOGETHER);
            self.together = Some(together + (measured / alone - together) * TOGETHER_GAIN);
        }
    }

    /// The variance of shares as a multiple of that of independent losses.
    pub(super) fn together(&self) -> f64 {
        self.together.unwrap_or(TOGETHER).max(1.0)
    }

    /// The sum so far.
    pub(super) const fn sum(&self) -> f64 {
        self.sum
    }

    /// The share that arrived of the higher rate, for each that arrived of the lower.
    pub(super) fn relative(&self) -> f64 {
        let share = |(sent, arrived): (f64, f64)| arrived.max(0.5) / sent.max(1.0);
        share(self.high) / share(self.low)
    }

    /// Begins again with another rate.
    pub(super) const fn restart(&mut self) {
        self.sum = 0.0;
        self.high = (0.0, 0.0);
        self.low = (0.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(rate: f64, share: f64) -> Shares {
        Shares {
            rate,
            share,
            datagrams: 100.0,
            edges: 0.0,
        }
    }

    #[test]
    fn a_clean_link_needs_one_pair_for_more_and_two_for_less() {
        let mut evidence = Evidence::default();
        let verdict = evidence.on_pair(shares(1.05, 1.0), shares(0.95, 1.0));
        assert_eq!(verdict, Verdict::Carried);
        let mut evidence = Evidence::default();
        let mut pair = || evidence.on_pair(shares(1.2, 0.8), shares(0.95, 1.0));
        assert_eq!([pair(), pair()], [Verdict::Open, Verdict::Full]);
        // For each octet that arrives of the lower rate, as many of the higher as its share says.
        assert!((evidence.relative() - 0.8).abs() < 1e-9);
    }

    #[test]
    fn half_lost_at_random_needs_many_pairs() {
        let mut evidence = Evidence::default();
        // Shares that vary as those of a hundred independent datagrams.
        for window in 0..200 {
            evidence.on_window(if window % 2 == 0 { 0.465 } else { 0.535 }, 100.0);
        }
        assert!(evidence.together() < 1.1, "{}", evidence.together());
        let mut pairs = 0;
        while evidence.on_pair(shares(1.05, 0.475), shares(0.95, 0.525)) != Verdict::Full {
            pairs += 1;
        }
        assert!((5..50).contains(&pairs), "{pairs}");
    }

    #[test]
    fn losses_that_come_together_need_more() {
        let mut evidence = Evidence::default();
        for window in 0..200 {
            evidence.on_window(if window % 2 == 0 { 0.25 } else { 0.75 }, 100.0);
        }
        assert!(evidence.together() > 20.0, "{}", evidence.together());
        for _ in 0..100 {
            let verdict = evidence.on_pair(shares(1.05, 0.475), shares(0.95, 0.525));
            assert_eq!(verdict, Verdict::Open);
        }
    }
}
