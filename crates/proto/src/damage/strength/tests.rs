//! Parity follows what the receiver tells, over channels that stay as they are, change, and fade faster than is told.

use super::*;
use crate::rng::Rng;
use crate::wire::aerotp::RateCode;
use proptest::prelude::*;

/// A full packet of IPv4 and UDP.
const LAYOUT: ProtectedLayout = ProtectedLayout {
    packet: 1_500,
    before: 45,
    bare: 6,
    inside: 26,
};
const ROUND_TRIP: Duration = Duration::from_millis(20);

fn rate(value: f64) -> BitErrorRate {
    BitErrorRate::new(value).expect("a share")
}

fn word(recent: f64, lasting: f64) -> ChannelWord {
    ChannelWord {
        recent: RateCode::of(rate(recent)),
        lasting: RateCode::of(rate(lasting)),
    }
}

fn at(micros: u64) -> Instant {
    Instant::START + Duration::from_micros(micros)
}

fn words(words: u16) -> FecStrength {
    FecStrength::from_words(words).expect("a strength")
}

#[test]
fn a_clean_channel_gets_no_parity_and_a_worse_one_more() {
    let mut follower = StrengthFollower::new(LAYOUT);
    assert_eq!(follower.strength().words(), 6, "nothing was told yet");
    let mut chosen = Vec::new();
    for (n, told) in (0..).zip([1e-9, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3]) {
        for step in 0..100 {
            follower.on_word(
                at(1_000_000 * n + 10_000 * step),
                word(told, told),
                ROUND_TRIP,
            );
        }
        chosen.push(follower.strength().words());
        let used = |words| LAYOUT.use_of_link(words, rate(told));
        let every = (0..=WORDS_MAX).map(|n| used(words(n)));
        let most = every.fold(0.0, f64::max);
        let ours = used(follower.strength());
        println!(
            "{told}: {} words, {ours:.4} of {most:.4}",
            follower.strength().words()
        );
        assert!(ours > 0.995 * most, "{told}: {ours} of {most}");
    }
    assert_eq!(chosen[..2], [0, 0]);
    assert!(chosen.is_sorted() && chosen[5] >= 18, "{chosen:?}");
}

#[test]
fn a_step_is_followed_at_the_first_word_of_it_however_long_the_channel_was_clean() {
    let mut follower = StrengthFollower::new(LAYOUT);
    let mut now = 0;
    for _ in 0..3_000 {
        now += 10_000;
        follower.on_word(at(now), word(1e-8, 1e-8), ROUND_TRIP);
    }
    assert_eq!(follower.strength().words(), 0);
    now += 10_000;
    assert!(follower.on_word(at(now), word(1e-3, 1e-6), ROUND_TRIP));
    assert!(
        follower.strength().words() >= 12,
        "{:?}",
        follower.strength()
    );
}

/// Fades of 1e-3 for a tenth of the time, over before they are told: the best single parity for the whole spread is
/// right, and the one for what was told last is not.
#[test]
fn where_news_is_older_than_fades_the_choice_is_the_best_for_all_that_was_told() {
    let mut follower = StrengthFollower::new(LAYOUT);
    let mut rng = Rng::from_seed(17);
    let mut now = 0;
    let mut ours = 0.0;
    let (mut last, mut by_last) = (1e-7, 0.0);
    let best_at = |told: f64| {
        let mut fresh = StrengthFollower::new(LAYOUT);
        fresh.on_word(at(0), word(told, told), Duration::ZERO);
        fresh.strength()
    };
    let [calm, faded] = [1e-7, 1e-3].map(best_at);
    let count = 6_000;
    for n in 0..count {
        now += 10_000;
        let there = if rng.chance(0.1) { 1e-3 } else { 1e-7 };
        if n >= count / 2 {
            ours += LAYOUT.use_of_link(follower.strength(), rate(there));
            let chosen = if last > 1e-5 { faded } else { calm };
            by_last += LAYOUT.use_of_link(chosen, rate(there));
        }
        last = there;
        follower.on_word(at(now), word(there, 1e-4), Duration::from_millis(100));
    }
    let half = f64::from(count / 2);
    let (ours, by_last) = (ours / half, by_last / half);
    let mean = |words| {
        0.1 * LAYOUT.use_of_link(words, rate(1e-3)) + 0.9 * LAYOUT.use_of_link(words, rate(1e-7))
    };
    let fixed = (0..=WORDS_MAX).map(|n| mean(words(n))).fold(0.0, f64::max);
    println!("{ours:.4} of {fixed:.4}; by the last word {by_last:.4}");
    assert!(ours > 0.98 * fixed, "{ours} of {fixed}");
    assert!(ours > 1.02 * by_last, "{ours}, {by_last}");
}

/// Two seconds of each rate in turn, told within a round trip: the choice follows, and is better than any single one.
#[test]
fn where_the_rate_lasts_the_choice_goes_with_it() {
    let mut follower = StrengthFollower::new(LAYOUT);
    let (mut ours, mut count) = (0.0, 0.0);
    let rates = [0.0, 1e-5, 1e-3];
    for n in 0..6_000_u64 {
        let there = rates[usize::try_from(n / 200 % 3).expect("three")];
        if n >= 3_000 {
            ours += LAYOUT.use_of_link(follower.strength(), rate(there));
            count += 1.0;
        }
        // Told two steps late.
        let told = rates[usize::try_from((n.max(2) - 2) / 200 % 3).expect("three")];
        follower.on_word(at(10_000 * n), word(f64::max(told, 1e-9), 3e-4), ROUND_TRIP);
    }
    let ours = ours / count;
    let mean = |words| {
        rates
            .map(|there| LAYOUT.use_of_link(words, rate(there)))
            .iter()
            .sum::<f64>()
    };
    let fixed = (0..=WORDS_MAX)
        .map(|n| mean(words(n)) / 3.0)
        .fold(0.0, f64::max);
    println!("{ours:.4}; the best fixed parity {fixed:.4}");
    assert!(ours > fixed, "{ours}, {fixed}");
}

#[test]
fn another_layout_takes_over_what_was_told() {
    let mut follower = StrengthFollower::new(LAYOUT);
    follower.on_word(at(1), word(1e-3, 1e-3), ROUND_TRIP);
    let before = follower.strength();
    assert!(!follower.set_layout(LAYOUT));
    let shorter = ProtectedLayout {
        packet: 1_280,
        ..LAYOUT
    };
    assert!(follower.set_layout(shorter));
    let after = follower.strength();
    assert!(
        after < before && after.words() >= 12,
        "{before:?}, {after:?}"
    );
    assert_eq!(
        follower.rate().map(RateClass::of),
        Some(RateClass::of(rate(1e-3)))
    );
    // No room for anything: nothing panics, and there is no parity.
    follower.set_layout(ProtectedLayout {
        packet: 40,
        ..LAYOUT
    });
    follower.on_word(at(2), word(1e-3, 1e-3), ROUND_TRIP);
    assert!(follower.strength().is_none());
    assert!(follower.strength_for(1_000).is_none());
}

#[test]
fn shorter_datagrams_have_fewer_words_and_are_surer_to_arrive() {
    let mut follower = StrengthFollower::new(LAYOUT);
    follower.on_word(at(1), word(1e-3, 1e-3), ROUND_TRIP);
    let full = follower.strength();
    let room = LAYOUT.region() - full.parity_bytes();
    assert_eq!(follower.strength_for(room), full);
    assert_eq!(follower.strength_for(room + 1_000), full);
    let loss = |octets: usize| {
        let words = follower.strength_for(octets);
        assert!(words <= full);
        1.0 - arrives(rate(1e-3), octets + words.parity_bytes(), words)
    };
    for octets in [16, 40, 80, 200, 500] {
        let words = follower.strength_for(octets).words();
        println!("{octets} octets: {words} words, loss {:.5}", loss(octets));
        assert!(loss(octets) < 2e-3, "{octets}: {words}");
    }
    assert!(follower.strength_for(80).words() <= 5);
    assert!(follower.least_for_long() <= full);
}

proptest! {
    #[test]
    fn whatever_is_told_the_parity_fits_and_nothing_panics(
        words in prop::collection::vec((0_u32..=u32::MAX, 0_u64..3_000_000, 0_u64..2_000), 1..60),
        packet in 0_usize..9_100,
    ) {
        let layout = ProtectedLayout { packet, ..LAYOUT };
        let mut follower = StrengthFollower::new(layout);
        let mut now = 0;
        for (octets, later, millis) in words {
            now += later;
            let word = ChannelWord::from_octets(octets.to_be_bytes());
            follower.on_word(at(now), word, Duration::from_millis(millis));
            let full = follower.strength();
            prop_assert!(full.words() <= WORDS_MAX);
            prop_assert!(full.is_none() || full.parity_bytes() + layout.inside < layout.region());
            prop_assert!(follower.strength_for(packet / 2) <= full);
            prop_assert!(follower.least_for_long() <= full);
        }
    }
}
