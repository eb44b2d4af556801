//! Losses in a row: how many of them are bursts, and how many fell together by chance.
//!
//! Between two packets that arrived there is a run of lost ones, mostly of none. A link that is good loses each packet with the
//! probability e, and turns bad behind one packet in 1 / g; a bad link loses all, and turns good behind one in 1 / r. The
//! likeliest e, g and r are found by expectation and maximization over the runs' lengths, with mean bursts of two packets at
//! least: shorter ones are loss at random. (Gilbert 1960; Baum, Petrie, Soules, Weiss 1970.)

/// The longest run that is counted as it is; longer ones cannot be chance.
pub(super) const RUN_MAX: usize = 64;
/// Rounds at most, and the change of the logarithm of the likelihood that ends them.
const ROUNDS: usize = 100;
const SETTLED: f64 = 1e-4;
/// The longest and the shortest mean burst, as the probability to leave it.
const LEAVES: (f64, f64) = (0.02, 0.5);
/// The gain of the logarithm of the likelihood below which losses are taken for independent.
const GAIN_MIN: f64 = 3.0;

/// Runs of lost packets by their length.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    /// Packets that arrived.
    pub(super) arrived: f64,
    /// Runs of so many, from one on.
    of: [f64; RUN_MAX],
    /// Packets of runs that are longer.
    longer: f64,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            arrived: 0.0,
            of: [0.0; RUN_MAX],
            longer: 0.0,
        }
    }
}

/// The parameters of the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// The share of packets that a good link loses.
    loses: f64,
    /// The share of packets behind which it turns bad.
    enters: f64,
    /// The share of packets of a burst that end it.
    leaves: f64,
}

/// The expectation for the runs of one length.
#[derive(Clone, Copy, Debug, Default)]
struct Expected {
    /// The logarithm of the likelihood.
    likelihood: f64,
    /// Packets lost in bursts.
    in_bursts: f64,
    /// Bursts that began.
    begun: f64,
}

impl Runs {
    pub(super) fn note(&mut self, length: usize) {
        match length {
            0 => {}
            1..=RUN_MAX => self.of[length - 1] += 1.0,
            _ => self.longer += length as f64,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.arrived += other.arrived;
        self.longer += other.longer;
        for (ours, theirs) in self.of.iter_mut().zip(&other.of) {
            *ours += theirs;
        }
    }

    fn seen(&self) -> impl Iterator<Item = (usize, f64)> {
        let counted = (1..).zip(self.of);
        counted.filter(|(_, count)| *count > 0.0)
    }

    /// Lost packets.
    pub(super) fn lost(&self) -> f64 {
        let in_runs: f64 = self.seen().map(|(len, count)| len as f64 * count).sum();
        in_runs + self.longer
    }

    /// The lost packets that are expected to belong to bursts, and the link that was found: a search that begins with one is
    /// shorter.
    pub(super) fn in_bursts(&self, begin: Option<Link>) -> (f64, Option<Link>) {
        let counted = self.lost() - self.longer;
        let (runs, sent) = (
            self.seen().map(|(_, count)| count).sum::<f64>(),
            self.arrived + counted,
        );
        if counted < 1.0 || self.arrived < 1.0 {
            return (self.longer, None);
        }
        let share = counted / sent;
        let independent = counted * libm::log(share) + self.arrived * libm::log1p(-share);
        let mut link = begin.unwrap_or(Link {
            loses: share / 2.0,
            enters: runs / sent / 2.0,
            leaves: 0.3,
        });
        let mut before = f64::NEG_INFINITY;
        let mut in_bursts = 0.0;
        for _ in 0..ROUNDS {
            let mut sums = Expected::default();
            for (length, count) in self.seen() {
                let of_run = link.expect(length);
                sums.likelihood += count * of_run.likelihood;
                sums.in_bursts += count * of_run.in_bursts;
                sums.begun += count * of_run.begun;
            }
            // Packets that arrived with none lost before them.
            let straight = (self.arrived - runs).max(0.0);
            sums.likelihood += straight * libm::log((1.0 - link.enters) * (1.0 - link.loses));
            in_bursts = sums.in_bursts;
            if (sums.likelihood - before).abs() < SETTLED {
                break;
            }
            before = sums.likelihood;
            let good = (counted - sums.in_bursts).max(1e-9);
            link = Link {
                loses: (good / (good + self.arrived)).clamp(1e-9, 1.0 - 1e-9),
                enters: (sums.begun / (good + self.arrived)).clamp(1e-9, 0.5),
                leaves: (sums.begun / sums.in_bursts.max(1e-9)).clamp(LEAVES.0, LEAVES.1),
            };
        }
        if before - independent < GAIN_MIN {
            in_bursts = 0.0;
        }
        (in_bursts + self.longer, Some(link))
    }
}

impl Link {
    /// The expectation of one run of so many, which is [`RUN_MAX`] at most, and the packet that arrives behind it.
    fn expect(self, length: usize) -> Expected {
        let Self {
            loses,
            enters,
            leaves,
        } = self;
        // [good, bad] before each packet's transition; the packet in front of the run arrived.
        let mut forward = [[0.0_f64; 2]; RUN_MAX + 1];
        forward[0] = [1.0, 0.0];
        for place in 0..length {
            let [good, bad] = forward[place];
            forward[place + 1] = [
                (good * (1.0 - enters) + bad * leaves) * loses,
                good * enters + bad * (1.0 - leaves),
            ];
        }
        let mut back = [(1.0 - enters) * (1.0 - loses), leaves * (1.0 - loses)];
        let [good, bad] = forward[length];
        let all = good * back[0] + bad * back[1];
        let mut expected = Expected {
            likelihood: libm::log(all),
            ..Expected::default()
        };
        for place in (0..length).rev() {
            expected.in_bursts += forward[place + 1][1] * back[1] / all;
            expected.begun += forward[place][0] * enters * back[1] / all;
            back = [
                (1.0 - enters) * loses * back[0] + enters * back[1],
                leaves * loses * back[0] + (1.0 - leaves) * back[1],
            ];
        }
        expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Runs of a link that loses so many at random and begins bursts of this mean length, and the packets lost in them.
    fn link(packets: u32, loses: f64, (enters, mean): (f64, f64), seed: u64) -> (Runs, f64) {
        let mut rng = Rng::from_seed(seed);
        let mut runs = Runs::default();
        let (mut is_bad, mut run, mut in_bursts) = (false, 0, 0.0);
        for _ in 0..packets {
            is_bad = rng.chance(if is_bad { 1.0 - 1.0 / mean } else { enters });
            in_bursts += f64::from(u8::from(is_bad));
            if is_bad || rng.chance(loses) {
                run += 1;
            } else {
                runs.note(run);
                runs.arrived += 1.0;
                run = 0;
            }
        }
        runs.note(run);
        (runs, in_bursts)
    }

    #[test]
    fn bursts_are_told_from_loss_at_random() {
        for (loses, bursts) in [
            (0.02, (0.002, 8.0)),
            (0.1, (0.005, 6.0)),
            (0.0, (0.003, 4.0)),
            (0.3, (0.01, 10.0)),
            (0.01, (0.0005, 20.0)),
        ] {
            for seed in 0..10 {
                let (runs, truth) = link(16_000, loses, bursts, seed);
                let share = (runs.in_bursts(None).0 - truth).abs() / runs.lost();
                assert!(share < 0.08, "{loses} {bursts:?} {seed}: {share}");
            }
        }
    }

    #[test]
    fn loss_at_random_has_no_bursts_at_any_rate() {
        for loses in [0.001, 0.02, 0.2, 0.6] {
            let mut most = 0.0_f64;
            for seed in 0..20 {
                let (runs, _) = link(16_000, loses, (0.0, 1.0), seed);
                most = most.max(runs.in_bursts(None).0 / runs.lost().max(1.0));
            }
            assert!(most < 0.06, "{loses}: {most}");
        }
    }

    #[test]
    fn a_run_beyond_the_longest_is_a_burst_and_nothing_is_no_number() {
        let mut runs = Runs::default();
        assert!(runs.in_bursts(None).0.abs() < 1e-9);
        runs.note(RUN_MAX);
        runs.note(RUN_MAX + 1);
        assert!(runs.in_bursts(None).0.is_finite());
        runs.arrived = 1_000.0;
        assert!(
            (runs.in_bursts(None).0 - 129.0).abs() < 1.0,
            "{}",
            runs.in_bursts(None).0
        );
    }
}
