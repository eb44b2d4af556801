//! The packet code over a channel with independent bit errors: real octets, real flips, real decoding.
//!
//! Method: a region of 1500 octets (random message and its parity) is flipped at positions drawn from
//! the geometric distribution of the gaps between errors, then corrected. A packet without a flip
//! counts as delivered without decoding, as behind a CRC. Any difference that remains anywhere in
//! the region, parity included, counts as a residual error: the definition of the reference curve.
//! Each point draws from its own named stream, so the points are independent and repeatable.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positions lie inside the region before they are cast"
)]
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{BitErrorRate, FecStrength};
use std::sync::atomic::{AtomicUsize, Ordering};

const SEED: u64 = 0xAE20;
const REGION_OCTETS: usize = 1500;
const REGION_BITS: f64 = REGION_OCTETS as f64 * 8.0;

/// The counts of the packets of one point.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    packets: u64,
    damaged: u64,
    residual: u64,
}

struct Point {
    words: FecStrength,
    ber: BitErrorRate,
    stream: Rng,
    code: PacketCode,
    outcome: Outcome,
}

impl Point {
    fn new(words: FecStrength, ber: BitErrorRate) -> Self {
        let name = format!("{} words, BER {:e}", words.words(), ber.value());
        Self {
            words,
            ber,
            stream: Rng::from_seed(SEED).child(&name),
            code: PacketCode::new(),
            outcome: Outcome::default(),
        }
    }

    /// The bits of the next packet that the channel inverts, in order.
    fn flips(&mut self) -> Vec<usize> {
        let mut flips = Vec::new();
        let mut position = 0.0;
        loop {
            // P(gap >= g) = (1 - BER)^g; 1 - u lies in (0, 1].
            let u = 1.0 - self.stream.unit_f64();
            position += (u.ln() / (-self.ber.value()).ln_1p()).floor();
            if position >= REGION_BITS {
                return flips;
            }
            flips.push(position as usize);
            position += 1.0;
        }
    }

    fn send(&mut self, packets: u64) -> Outcome {
        let mut sent = Vec::with_capacity(REGION_OCTETS);
        for _ in 0..packets {
            self.outcome.packets += 1;
            let flips = self.flips();
            if flips.is_empty() {
                continue;
            }
            self.outcome.damaged += 1;
            sent.clear();
            sent.resize(REGION_OCTETS - self.words.parity_bytes(), 0);
            self.stream.fill(&mut sent);
            self.code.append_parity(&mut sent, 0, self.words);
            let mut received = sent.clone();
            for bit in flips {
                received[bit / 8] ^= 0x80 >> (bit % 8);
            }
            let claimed = self.code.correct(&mut received, self.words).is_ok();
            // A wrong region that claims to be right is for the CRC to find.
            self.outcome.residual += u64::from(received != sent);
            assert!(
                claimed || received != sent,
                "corrected, yet reported otherwise"
            );
        }
        self.outcome
    }
}

/// Runs every point, spread over the cores; results come in the order of the points.
fn run(points: &[(FecStrength, BitErrorRate)], packets: u64) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(words, ber)) = points.get(index) else {
                return done;
            };
            done.push((index, Point::new(words, ber).send(packets)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut outcomes: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let done = running
            .into_iter()
            .flat_map(|thread| thread.join().unwrap());
        done.collect()
    });
    outcomes.sort_unstable_by_key(|&(index, _)| index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

#[test]
fn twenty_four_words_correct_everything_up_to_a_ber_of_1e_4() {
    let words = FecStrength::from_words(24).unwrap();
    let rates = [1e-6, 1e-5, 5e-5, 1e-4].map(|ber| BitErrorRate::new(ber).unwrap());
    let points = rates.map(|ber| (words, ber));
    // The analytic residual at 1e-4 is 6e-12: one failure in a million packets would have a
    // probability of 6e-6.
    for (ber, outcome) in rates.into_iter().zip(run(&points, 1_000_000)) {
        println!("BER {ber}: {outcome:?}");
        let share = outcome.damaged as f64 / outcome.packets as f64;
        let expected = ber.packet_error_rate(REGION_OCTETS as u64 * 8).value();
        let deviation = (expected * (1.0 - expected) / outcome.packets as f64).sqrt();
        // Four standard deviations: the number of flips is the one that the rate gives.
        assert!(
            (share - expected).abs() < 4.0 * deviation,
            "BER {ber}: {share}"
        );
        assert_eq!(outcome.residual, 0, "seed {SEED:#x}, BER {ber}");
    }
}

struct Reference {
    words: FecStrength,
    ber: BitErrorRate,
    residual: f64,
}

fn reference() -> Vec<Reference> {
    let text = include_str!("../../../reference/rs_residual.csv");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|&column| column == name).unwrap();
    let (words, ber, residual) = (
        column("fec_words"),
        column("ber"),
        column("rs256_residual_per"),
    );
    let reference = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        Reference {
            words: FecStrength::from_words(fields[words].parse().unwrap()).unwrap(),
            ber: BitErrorRate::new(fields[ber].parse().unwrap()).unwrap(),
            residual: fields[residual].parse().unwrap(),
        }
    };
    lines.map(reference).collect()
}

/// P(X <= x) for X ~ Binomial(n, p), 0 < p < 1.
fn at_most(x: u64, n: u64, p: f64) -> f64 {
    let mut log_mass = n as f64 * (-p).ln_1p();
    let log_odds = p.ln() - (-p).ln_1p();
    let mut sum = 0.0;
    for k in 0..=x.min(n) {
        sum += log_mass.exp();
        log_mass += ((n - k) as f64 / (k + 1) as f64).ln() + log_odds;
    }
    sum.min(1.0)
}

/// P(X >= x), as the chance of at most n - x successes of the complement.
fn at_least(x: u64, n: u64, p: f64) -> f64 {
    at_most(n - x, n, 1.0 - p)
}

/// The measured curve agrees with the analytic one.
///
/// A point agrees at level 1 - a when the analytic rate lies in the Clopper-Pearson interval of its
/// count x of n, which is the case exactly if P(X <= x) >= a/2 and P(X >= x) >= a/2 at that rate.
/// With m points, m a/2-sided tests would reject a right curve with a chance near 1 - (1 - a)^m, so
/// the family is tested at 95 % after Bonferroni: a = 0.05 / m for each point. Since the intervals
/// thereby widen to 3.5 standard deviations, the points are also counted against their own 95 %
/// intervals: a right curve misses each with a chance of at most 5 %, so the number of misses must
/// stay where Binomial(m, 0.05) exceeds it with a chance below 0.1 %.
///
/// Points with an analytic rate below 1e-7 must show no failure at all.
#[test]
fn the_measured_residual_curve_is_the_analytic_one() {
    const PACKETS: u64 = 20_000;
    let reference = reference();
    assert_eq!(reference.len(), 14 * 8);
    let points: Vec<_> = reference.iter().map(|r| (r.words, r.ber)).collect();
    let outcomes = run(&points, PACKETS);
    let testable = |r: &Reference| r.residual >= 1e-7;
    let family = reference.iter().filter(|r| testable(r)).count();
    let mut missed = 0;
    for (expected, outcome) in reference.iter().zip(&outcomes) {
        let (words, ber, p) = (expected.words.words(), expected.ber, expected.residual);
        let (n, x) = (outcome.packets, outcome.residual);
        let point = format!("seed {SEED:#x}, {words} words, BER {ber}: {x} of {n}, expected {p:e}");
        if !testable(expected) {
            assert_eq!(x, 0, "{point}");
            continue;
        }
        println!("{words},{ber},{p:e},{x},{n}");
        let tail = at_most(x, n, p).min(at_least(x, n, p));
        assert!(tail >= 0.05 / family as f64 / 2.0, "{point}");
        missed += u64::from(tail < 0.05 / 2.0);
    }
    println!("{missed} of {family} points miss their own 95 % interval");
    assert!(
        at_least(missed, family as u64, 0.05) >= 1e-3,
        "{missed} of {family}"
    );
}

#[test]
fn the_binomial_tails_are_those_of_small_cases_by_hand() {
    // Two of three fair coins: 4 of 8 outcomes have at most one head, 7 at most two.
    assert!((at_most(1, 3, 0.5) - 0.5).abs() < 1e-12);
    assert!((at_most(2, 3, 0.5) - 0.875).abs() < 1e-12);
    assert!((at_least(3, 3, 0.5) - 0.125).abs() < 1e-12);
    // (0.9)^10 = 0.3486784401.
    assert!((at_most(0, 10, 0.1) - 0.348_678_440_1).abs() < 1e-9);
}
