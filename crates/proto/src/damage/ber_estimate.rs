//! The short-term bit error rate of the way to this end, estimated while data arrives.
//!
//! # Evidence
//! The number X of wrong bits in a packet of n bits that met the rate b is Poisson with mean n b. It is seen
//!
//! - wholly, where the payload check holds or parity has corrected it: X symbols were corrected (at the
//!   rates that matter, hardly ever two bits to a symbol);
//! - in part, where it could not be corrected: X >= t, with t one more than the parity corrects for certain. It
//!   counts as its expectation at the rate so far, E[X | X >= t] (one step of expectation-maximisation);
//! - besides, a receiver may report the rate that the received power gives.
//!
//! # Estimate
//! Errors E and bits N are summed with weights that fall by e in `memory`, twice: with the memory itself (recent)
//! and with 64 times that (lasting). The lasting rate is the prior of the recent one, with the weight of p
//! errors:
//!
//! ```text
//! lasting = (E' + 1/2) / (N' + 5 10^6 / (1 + E')^2)             recent = (E + p) / (N + p / lasting)
//! ```
//!
//! So where nothing was wrong yet the lasting rate begins at 10^-7, and a few errors suffice for it to be E' / N', however
//! small the packets are. The lasting memory passes while packets come: silence says nothing of the link.
//!
//! A change of the rate that is out of proportion ends the memory at once, in both directions. One sign is so many
//! bits without an error that the recent rate would give them with probability e^-7. The other is so many errors in
//! the packet that just came that its own rate explains them better than the recent rate by a factor of e^7. The prior
//! has no weight after the latter (p = 0), and regains it as the memory passes; otherwise p = 1.
//!
//! With constant b and many errors in the memory, the relative standard deviation of `recent` is
//! 1 / sqrt(2 b R memory) where R bits arrive a second and errors are counted.
//!
//! Source: the wish of the free-space-optics paper (Epple, sections 3.3.3 and 5); the estimator is ours (ADR 0015).

use crate::units::{BitErrorRate, Duration, Instant};
use crate::wire::aerotp::{ChannelWord, RateCode};

/// The wrong bits of one packet, as far as they are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenErrors {
    /// Exactly so many.
    Counted(u32),
    /// So many or more.
    AtLeast(u32),
}

/// The ratio of the lasting memory to the recent one.
const LASTING: u32 = 64;
/// The rate at which the lasting rate begins: half an error in 5 10^6 bits is 10^-7, at which no parity pays. Each error
/// that is seen makes these bits count less.
const PRIOR_ERRORS: f64 = 0.5;
const PRIOR_BITS: f64 = 5e6;
/// The improbability of the evidence from which on the rate counts as changed, as a natural
/// logarithm.
const CHANGE: f64 = 7.0;
/// The greatest rate: no receiver does worse.
const RATE_MAX: f64 = 0.5;
/// Terms of the sums below, at most; they fall like those of an exponential series.
const TERMS_MAX: u32 = 2_000;

/// Errors and bits, weighted by age.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    errors: f64,
    bits: f64,
}

impl Tally {
    fn fade(&mut self, weight: f64) {
        self.errors *= weight;
        self.bits *= weight;
    }

    fn add(&mut self, errors: f64, bits: f64) {
        self.errors += errors;
        self.bits += bits;
    }
}

/// The estimate for one direction.
#[derive(Clone, Debug)]
struct BerEstimator {
    memory: Duration,
    recent: Tally,
    lasting: Tally,
    /// The weight of the lasting rate in the recent one, in errors.
    prior: f64,
    /// Bits since the last wrong one.
    clean_bits: f64,
    /// The rate that the received power gave, and its time.
    power: Option<(Instant, f64)>,
    at: Instant,
    /// The time of the last packet.
    came_at: Instant,
}

impl BerEstimator {
    /// An estimator that has seen nothing; what it sees fades within `memory`.
    fn new(memory: Duration) -> Self {
        Self {
            memory: memory.max(Duration::from_nanos(1)),
            recent: Tally::default(),
            lasting: Tally::default(),
            prior: 1.0,
            clean_bits: 0.0,
            power: None,
            at: Instant::START,
            came_at: Instant::START,
        }
    }

    /// Takes the errors of an arrived packet of so many octets.
    fn on_packet(&mut self, now: Instant, octets: usize, errors: SeenErrors) {
        self.age(now);
        let pause = now.saturating_since(self.came_at).min(self.memory);
        self.came_at = self.came_at.max(now);
        let span = pause.as_secs_f64() / self.memory.as_secs_f64();
        self.lasting.fade((-span / f64::from(LASTING)).exp());
        let bits = 8.0 * octets as f64;
        let rate = self.counted();
        let wrong = match errors {
            SeenErrors::Counted(wrong) => f64::from(wrong),
            SeenErrors::AtLeast(least) => expected_from(least, rate * bits),
        };
        // Poisson: ln P(X; own mean) - ln P(X; mean so far).
        let mean = rate * bits;
        if wrong > mean && wrong * (wrong / mean).ln() - (wrong - mean) > CHANGE {
            self.recent = Tally::default();
            self.prior = 0.0;
        }
        if wrong > 0.0 {
            self.clean_bits = 0.0;
        } else {
            self.clean_bits += bits;
            if self.clean_bits * rate > CHANGE {
                self.recent = Tally {
                    errors: 0.0,
                    bits: self.clean_bits,
                };
                self.prior = 1.0;
            }
        }
        self.recent.add(wrong, bits);
        self.lasting.add(wrong, bits);
    }

    /// Takes so many errors more of packets that were taken, which later parity showed.
    fn amend(&mut self, now: Instant, errors: f64) {
        self.age(now);
        self.recent.errors += errors;
        self.lasting.errors += errors;
    }

    /// Takes the rate that the received power gives, from the receiver's electronics.
    fn on_power(&mut self, now: Instant, rate: BitErrorRate) {
        self.power = Some((now, rate.value().clamp(f64::MIN_POSITIVE, RATE_MAX)));
    }

    fn age(&mut self, now: Instant) {
        let span = now.saturating_since(self.at).as_secs_f64() / self.memory.as_secs_f64();
        self.at = self.at.max(now);
        self.recent.fade((-span).exp());
        self.prior = 1.0 - (1.0 - self.prior) * (-span).exp();
    }

    /// The rate over many fades.
    fn lasting(&self) -> BitErrorRate {
        rate(self.lasting_value())
    }

    fn lasting_value(&self) -> f64 {
        let Tally { errors, bits } = self.lasting;
        let prior_bits = PRIOR_BITS / ((1.0 + errors) * (1.0 + errors));
        ((errors + PRIOR_ERRORS) / (bits + prior_bits)).min(RATE_MAX)
    }

    /// The rate from the errors that were counted.
    fn counted(&self) -> f64 {
        let Tally { errors, bits } = self.recent;
        let prior = self.prior;
        ((errors + prior) / (bits + prior / self.lasting_value()).max(1.0)).min(RATE_MAX)
    }

    /// The short-term rate: from the errors counted, and from the received power as far as that is
    /// fresh.
    fn recent(&self, now: Instant) -> BitErrorRate {
        let counted = self.counted();
        let Some((at, by_power)) = self.power else {
            return rate(counted);
        };
        let age = now.saturating_since(at).as_secs_f64() / self.memory.as_secs_f64();
        rate(between(counted, by_power, (-age).exp()))
    }
}

/// An estimator, and the part of it that its peer knows.
#[derive(Clone, Debug)]
pub struct ChannelReport {
    estimator: BerEstimator,
    /// The recent rate that was told last.
    told: f64,
}

/// The factor by which a rate has to rise or fall for the sender to be told at once.
const TOLD_FACTOR: f64 = 2.0;
/// The rate up to which the sender is not told at once: hardly a packet of any length is lost there.
const TOLD_MIN: f64 = 1e-7;

impl ChannelReport {
    /// A report in which nothing was seen, and nothing told.
    pub fn new(coherence: Duration) -> Self {
        Self {
            estimator: BerEstimator::new(coherence),
            told: 0.0,
        }
    }

    /// Fades what is seen within `memory` from now on.
    pub fn set_memory(&mut self, memory: Duration) {
        self.estimator.memory = memory.max(Duration::from_nanos(1));
    }

    /// Takes the errors of a packet. Returns whether the peer should hear of it at once.
    pub fn on_packet(&mut self, now: Instant, octets: usize, errors: SeenErrors) -> bool {
        self.estimator.on_packet(now, octets, errors);
        self.is_news(now)
    }

    /// Takes so many errors more of packets that were taken, which parity sent later showed. Returns whether the peer should
    /// hear of it at once.
    pub fn amend(&mut self, now: Instant, errors: u32) -> bool {
        self.estimator.amend(now, f64::from(errors));
        self.is_news(now)
    }

    /// Takes the rate of the received power. Returns whether the peer should hear of it at once.
    pub fn on_power(&mut self, now: Instant, rate: BitErrorRate) -> bool {
        self.estimator.on_power(now, rate);
        self.is_news(now)
    }

    /// The short-term rate.
    pub fn recent(&self, now: Instant) -> BitErrorRate {
        self.estimator.recent(now)
    }

    /// Whether the rate is so low that hardly a packet of any length is lost.
    pub fn is_low(&self, now: Instant) -> bool {
        self.recent(now).value() <= TOLD_MIN
    }

    /// Whether the peer should hear of the rate at once.
    pub fn is_news(&self, now: Instant) -> bool {
        let (recent, told) = (self.estimator.recent(now).value(), self.told);
        let (low, high) = (recent.min(told), recent.max(told));
        high > TOLD_MIN && high > TOLD_FACTOR * low
    }

    /// The estimate to tell; it counts as told.
    pub fn word(&mut self, now: Instant) -> ChannelWord {
        self.estimator.age(now);
        let recent = self.estimator.recent(now);
        self.told = recent.value();
        ChannelWord {
            recent: RateCode::of(recent),
            lasting: RateCode::of(self.estimator.lasting()),
        }
    }
}

fn rate(value: f64) -> BitErrorRate {
    BitErrorRate::new(value.clamp(0.0, RATE_MAX)).unwrap_or_default()
}

/// A rate between two others by their orders of magnitude: `share` of the second.
pub fn between(first: f64, second: f64, share: f64) -> f64 {
    (first.ln() * (1.0 - share) + second.ln() * share).exp()
}

/// The expectation E[X | X >= least] of a Poisson variable.
fn expected_from(least: u32, mean: f64) -> f64 {
    let first = f64::from(least);
    if mean >= first + CHANGE * first.sqrt() {
        // Nearly all of the probability lies above.
        return mean;
    }
    let (mut term, mut sum, mut beyond) = (1.0, 1.0, 0.0);
    for step in 1..TERMS_MAX {
        term *= mean / (first + f64::from(step));
        sum += term;
        beyond += f64::from(step) * term;
        if term * f64::from(step) < 1e-9 * sum {
            break;
        }
    }
    first + beyond / sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const MEMORY: Duration = Duration::from_millis(10);
    /// A packet of 1500 octets each 20 us: 500 in the memory, 600 Mbit/s.
    const OCTETS: usize = 1500;
    const STEP: Duration = Duration::from_micros(20);
    const SEED: u64 = 15;

    /// Wrong bits of a packet at a rate, by the waiting times between them.
    fn draw(rng: &mut Rng, rate: f64) -> u32 {
        let mut errors = 0;
        let mut at = 0.0;
        loop {
            at += -(1.0 - rng.unit_f64()).ln() / rate;
            if at > 8.0 * OCTETS as f64 {
                return errors;
            }
            errors += 1;
        }
    }

    struct Feed {
        estimator: BerEstimator,
        rng: Rng,
        now: Instant,
    }

    impl Feed {
        fn new() -> Self {
            Self {
                estimator: BerEstimator::new(MEMORY),
                rng: Rng::from_seed(SEED),
                now: Instant::START,
            }
        }

        /// packets at this rate for so long; parity corrects up to `parity` wrong bits.
        fn run(&mut self, span: Duration, rate: f64, parity: u32) {
            let until = self.now + span;
            while self.now < until {
                self.now += STEP;
                let wrong = draw(&mut self.rng, rate);
                let errors = if wrong <= parity {
                    SeenErrors::Counted(wrong)
                } else {
                    SeenErrors::AtLeast(parity + 1)
                };
                self.estimator.on_packet(self.now, OCTETS, errors);
            }
        }

        fn recent(&self) -> f64 {
            self.estimator.recent(self.now).value()
        }
    }

    #[test]
    fn counted_errors_give_the_true_rate_within_four_standard_deviations() {
        for rate in [1e-3, 1e-4, 1e-5] {
            let mut feed = Feed::new();
            feed.run(MEMORY * 20, rate, u32::MAX - 1);
            // 600 Mbit/s times twice the memory.
            let deviation = 1.0 / (2.0 * rate * 600e6 * MEMORY.as_secs_f64()).sqrt();
            let ratio = feed.recent() / rate;
            println!("{rate}: {ratio:.3} +- {:.3}, seed {SEED}", 4.0 * deviation);
            assert!((ratio - 1.0).abs() < 4.0 * deviation, "{rate}: {ratio}");
        }
    }

    #[test]
    fn failed_checks_alone_give_the_true_rate_within_four_standard_deviations() {
        for rate in [5e-5, 2e-5, 1e-5] {
            let mut feed = Feed::new();
            feed.run(MEMORY * 20, rate, 0);
            // The information of a packet with mean m of which only "some errors" is known is m^2 e^-m / (1 -
            // e^-m).
            let mean = rate * 8.0 * OCTETS as f64;
            let information = mean * mean / mean.exp_m1();
            let count = 2.0 * MEMORY.as_secs_f64() / STEP.as_secs_f64();
            let deviation = 1.0 / (count * information).sqrt();
            let ratio = feed.recent() / rate;
            println!("{rate}: {ratio:.3} +- {:.3}, seed {SEED}", 4.0 * deviation);
            assert!((ratio - 1.0).abs() < 4.0 * deviation, "{rate}: {ratio}");
        }
    }

    #[test]
    fn more_errors_than_parity_corrects_count_as_what_they_must_have_been() {
        let mut feed = Feed::new();
        let rate = 5e-4;
        // Six wrong bits to a packet, four of them corrected: most fail.
        feed.run(MEMORY * 20, rate, 4);
        let ratio = feed.recent() / rate;
        assert!((0.75..1.33).contains(&ratio), "{ratio}, seed {SEED}");
    }

    #[test]
    fn a_fade_is_seen_within_three_tpdus_and_its_end_too() {
        let mut feed = Feed::new();
        feed.run(MEMORY * 20, 1e-7, 16);
        assert!(feed.recent() < 1e-6, "{}", feed.recent());
        // 12 wrong bits to each packet from now on.
        feed.run(STEP * 3, 1e-3, 16);
        assert!((5e-4..2e-3).contains(&feed.recent()), "{}", feed.recent());
        feed.run(MEMORY / 5, 1e-3, 16);
        // e^-7 is reached by 7000 clean bits of 12,000 to a packet.
        feed.run(STEP * 3, 1e-9, 16);
        assert!(feed.recent() < 5e-5, "{}", feed.recent());
        feed.run(MEMORY, 1e-9, 16);
        assert!(feed.recent() < 2e-6, "{}", feed.recent());
    }

    #[test]
    fn power_is_believed_while_it_is_fresh() {
        let mut feed = Feed::new();
        feed.run(MEMORY * 5, 1e-7, 16);
        let before = feed.recent();
        let rate = BitErrorRate::new(1e-3).expect("a share");
        feed.estimator.on_power(feed.now, rate);
        assert!((feed.recent() / 1e-3 - 1.0).abs() < 1e-9);
        feed.run(MEMORY * 12, 1e-7, 16);
        assert!(feed.recent() < 2.0 * before.max(1e-7), "{}", feed.recent());
    }

    #[test]
    fn without_evidence_the_recent_rate_returns_to_the_lasting_one() {
        let mut feed = Feed::new();
        feed.run(MEMORY * 100, 1e-4, 16);
        let lasting = feed.estimator.lasting().value();
        assert!((lasting / 1e-4 - 1.0).abs() < 0.05, "{lasting}");
        feed.estimator.age(feed.now + MEMORY * 40);
        let ratio = feed.recent() / feed.estimator.lasting().value();
        assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn silence_leaves_the_lasting_rate_as_it_was() {
        let mut feed = Feed::new();
        feed.run(MEMORY * 100, 1e-4, 16);
        let before = feed.estimator.lasting().value();
        for minute in 1..60 {
            let at = feed.now + Duration::from_secs(60 * minute);
            feed.estimator.age(at);
            assert!((feed.estimator.lasting().value() / before - 1.0).abs() < 1e-9);
            assert!((feed.recent() / before - 1.0).abs() < 0.02, "{minute}");
        }
        // One small packet after all that time counts as one.
        let later = feed.now + Duration::from_secs(3_600);
        feed.estimator.on_packet(later, 60, SeenErrors::Counted(0));
        let ratio = feed.estimator.lasting().value() / before;
        assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    }

    #[test]
    fn a_flow_of_small_packets_finds_the_same_rate_as_one_of_full_ones() {
        for (truth, seed) in [1e-3, 3e-4, 1e-4].into_iter().flat_map(|rate| {
            let seeds = 0..8;
            seeds.map(move |seed| (rate, seed))
        }) {
            // A packet each quarter of a second, as a session's memory is for: eight of them.
            let pause = Duration::from_millis(250);
            let mut estimator = BerEstimator::new(pause * 8);
            let mut rng = Rng::from_seed(seed);
            let mut now = Instant::START;
            let mut sum = 0.0;
            for place in 0..2_000 {
                now += pause;
                let wrong = (0..8 * 57).filter(|_| rng.chance(truth)).count();
                let errors = match u32::try_from(wrong).unwrap() {
                    0 => SeenErrors::Counted(0),
                    _ => SeenErrors::AtLeast(1),
                };
                estimator.on_packet(now, 57, errors);
                if place >= 1_000 {
                    sum += estimator.lasting().value() / 1_000.0;
                }
            }
            let ratio = sum / truth;
            assert!((0.5..2.0).contains(&ratio), "{truth} {seed}: {ratio}");
        }
    }

    #[test]
    fn the_expectation_beyond_a_bound_is_that_of_a_poisson_variable() {
        // By summing the law term by term.
        for (least, mean) in [(1, 0.1), (1, 5.0), (9, 2.0), (9, 30.0), (100, 40.0)] {
            let (mut mass, mut weighted) = (0.0, 0.0);
            let mut term = f64::exp(-mean);
            for count in 0..400_u32 {
                if count > 0 {
                    term *= mean / f64::from(count);
                }
                if count >= least {
                    mass += term;
                    weighted += f64::from(count) * term;
                }
            }
            let expected = weighted / mass;
            let found = expected_from(least, mean);
            assert!(
                (found / expected - 1.0).abs() < 0.02,
                "{least} of {mean}: {found}, {expected}"
            );
        }
    }
}
