use super::*;
use crate::rng::Rng;

const SHAPE: PacketShape = PacketShape {
    full: 1_500,
    headers: 64,
};
/// Packets that leave before the fate of the first of them is known.
const UNDER_WAY: usize = 16;

/// A sender in virtual time that counts octets of the link.
struct Bench {
    follower: LengthFollower,
    rng: Rng,
    under_way: Vec<(usize, bool)>,
    data: f64,
    link: f64,
}

impl Bench {
    fn new(seed: u64) -> Self {
        Self {
            follower: LengthFollower::default(),
            rng: Rng::from_seed(seed),
            under_way: Vec::new(),
            data: 0.0,
            link: 0.0,
        }
    }

    /// Sends so many octets of the link; `is_lost` says which packets are, by their number besides.
    fn send(&mut self, octets: f64, mut is_lost: impl FnMut(&mut Rng, usize) -> bool) {
        let until = self.link + octets;
        while self.link < until {
            let octets = self.follower.next().unwrap_or(SHAPE.full);
            self.follower.on_left();
            let is_lost = is_lost(&mut self.rng, octets);
            self.link += octets as f64;
            if !is_lost {
                self.data += (octets - SHAPE.headers) as f64;
            }
            self.under_way.push((octets, is_lost));
            if self.under_way.len() == UNDER_WAY {
                for (octets, is_lost) in core::mem::take(&mut self.under_way) {
                    self.follower.note(SHAPE, octets, is_lost);
                }
            }
        }
    }

    /// The share of the link that was data and arrived, of what `call` sent.
    fn share(&mut self, call: impl FnOnce(&mut Self)) -> f64 {
        let (data, link) = (self.data, self.link);
        call(self);
        (self.data - data) / (self.link - link)
    }

    fn octets(&self) -> usize {
        self.follower.octets.unwrap_or(SHAPE.full)
    }
}

fn damaged(per_bit: f64) -> impl FnMut(&mut Rng, usize) -> bool {
    move |rng, octets| rng.chance(1.0 - (1.0 - per_bit).powf(8.0 * octets as f64))
}

/// The most that any length carries.
fn bound(per_bit: f64) -> f64 {
    let octet = -8.0 * (-per_bit).ln_1p();
    let every = SHAPE.headers..=SHAPE.full;
    every
        .map(|octets| SHAPE.goodput(octets, octet))
        .fold(0.0, f64::max)
}

#[test]
fn the_length_follows_bit_errors_to_nearly_the_best_share_learning_included() {
    for per_bit in [1e-6, 1e-5, 5e-5, 1e-4, 3e-4] {
        for seed in 0..4 {
            let mut bench = Bench::new(seed);
            // 32 s at 5 mbit, nobody told.
            let share = bench.share(|bench| bench.send(2e7, damaged(per_bit)));
            let of_bound = share / bound(per_bit);
            println!(
                "{per_bit}: {of_bound:.4} of {:.3}, {} octets",
                bound(per_bit),
                bench.octets()
            );
            assert!(of_bound > 0.97, "{per_bit}: {of_bound}");
        }
    }
}

#[test]
fn what_is_asked_of_packets_that_are_short_already_costs_hardly_anything() {
    for seed in 0..4 {
        let mut bench = Bench::new(seed);
        bench.send(1e7, damaged(1e-4));
        bench.follower.ask(true);
        let share = bench.share(|bench| bench.send(4e7, damaged(1e-4)));
        let of_bound = share / bound(1e-4);
        println!("{of_bound:.4}, {} octets", bench.octets());
        assert!(of_bound > 0.985, "seed {seed}: {of_bound}");
    }
}

#[test]
fn loss_of_packets_shortens_none_at_any_rate_and_in_bursts() {
    for seed in 0..6 {
        for per_packet in [0.0, 0.01, 0.2, 0.5] {
            let mut bench = Bench::new(seed);
            let share = bench.share(|bench| {
                bench.send(6e7, |rng, _| rng.chance(per_packet));
            });
            let clean = SHAPE.goodput(SHAPE.full, 0.0) * (1.0 - per_packet);
            println!("{per_packet}: {:.4} of {clean:.3}", share / clean);
            assert_eq!(bench.follower.octets, None, "{per_packet}, seed {seed}");
            // Of the two shares, that which arrives is left to chance.
            let varied = bench.link / SHAPE.full as f64;
            assert!(share / clean > 0.99 - 3.0 * (per_packet / varied).sqrt());
        }
        let mut bench = Bench::new(seed);
        let mut is_bad = false;
        bench.send(6e7, |rng, _| {
            is_bad = if is_bad {
                !rng.chance(0.1)
            } else {
                rng.chance(0.02)
            };
            is_bad
        });
        assert_eq!(bench.follower.octets, None, "bursts of ten, seed {seed}");
    }
}

#[test]
fn a_guess_that_is_right_counts_from_the_first_packet_on() {
    for per_bit in [1e-5, 1e-4, 4e-4] {
        let mut bench = Bench::new(41);
        bench.follower.guess(BitErrorRate::new(per_bit));
        bench.follower.expect(SHAPE);
        let first = bench.share(|bench| bench.send(200_000.0, damaged(per_bit)));
        assert!(first > 0.9 * bound(per_bit), "{per_bit}: {first}");
        let later = bench.share(|bench| bench.send(2e7, damaged(per_bit)));
        assert!(later > 0.97 * bound(per_bit), "{per_bit}: {later}");
    }
    // Without one, sizes that are expected change nothing.
    let mut bench = Bench::new(41);
    bench.follower.expect(SHAPE);
    assert_eq!(bench.follower.next(), None);
}

#[test]
fn nothing_varies_without_loss_or_where_no_length_could_gain() {
    let mut bench = Bench::new(1);
    let share = bench.share(|bench| bench.send(3e7, |_, _| false));
    assert!((share - SHAPE.goodput(SHAPE.full, 0.0)).abs() < 1e-9);
    assert_eq!(bench.follower.belief(), None);
    // Bit errors that take one packet in a hundred ask for packets of full length.
    bench.send(3e7, damaged(1e-6));
    assert_eq!((bench.octets(), bench.follower.varies), (SHAPE.full, None));
}

#[test]
fn the_length_follows_a_link_that_changes() {
    for seed in 0..4 {
        let mut bench = Bench::new(seed);
        for per_bit in [0.0, 1e-4, 0.0, 3e-5, 1e-4, 0.0] {
            // Of 32 s at 5 mbit the first 3 are for learning.
            let share = bench.share(|bench| bench.send(2e7, damaged(per_bit)));
            let of_bound = share / bound(per_bit);
            println!("{per_bit}: {of_bound:.4}, {} octets", bench.octets());
            assert!(of_bound > 0.95, "{per_bit}: {of_bound}");
        }
        // Bit errors give way to as much loss of packets: full length again.
        bench.send(2e7, damaged(1e-4));
        let per_packet = 1.0 - 0.9999_f64.powi(8 * 317);
        bench.send(4e7, |rng, _| rng.chance(per_packet));
        assert_eq!(bench.octets(), SHAPE.full);
    }
}

#[test]
fn both_causes_together_ask_for_the_length_of_the_bits_alone() {
    for seed in 0..4 {
        let mut bench = Bench::new(seed);
        let mut bits = damaged(1e-4);
        let send = |bench: &mut Bench| {
            bench.send(4e7, |rng, octets| rng.chance(0.2) | bits(rng, octets));
        };
        let share = bench.share(send);
        let of_bound = share / 0.8 / bound(1e-4);
        println!(
            "{of_bound:.4}, {} octets: {:?}",
            bench.octets(),
            bench.follower.loss
        );
        assert!(of_bound > 0.95, "{of_bound}");
        let found = bench.follower.loss;
        assert!((found.packets().value() - 0.2).abs() < 0.1, "{found:?}");
    }
}

#[test]
fn one_packet_in_eight_is_a_quarter_long_while_others_ask_for_it_and_the_rest_is_as_long_as_ever() {
    let mut bench = Bench::new(2);
    // A loss, so that the shape is known, and then nothing to gain.
    bench.send(3e6, |rng, _| rng.chance(1e-3));
    bench.send(3e7, |_, _| false);
    assert_eq!(bench.follower.varies, None);
    let lengths = |bench: &mut Bench| {
        let mut lengths = Vec::new();
        bench.send(3e6, |_, octets| {
            lengths.push(octets);
            false
        });
        lengths
    };
    assert!(
        lengths(&mut bench)
            .iter()
            .all(|octets| *octets == SHAPE.full)
    );
    bench.follower.ask(true);
    let asked = lengths(&mut bench);
    let short = asked.iter().filter(|octets| **octets == SHAPE.full / 4);
    let part = asked.len() as f64 / short.clone().count() as f64;
    assert!((7.0..10.0).contains(&part), "one in {part}");
    let full = asked.iter().filter(|octets| **octets == SHAPE.full);
    assert_eq!(full.count() + short.count(), asked.len());
    bench.follower.ask(false);
    assert!(
        lengths(&mut bench)
            .iter()
            .all(|octets| *octets == SHAPE.full)
    );
}
