//! Links with several causes of loss, packet by packet, and the shares that are found.

use super::*;
use crate::rng::Rng;

const PACKET: Duration = Duration::from_millis(2);
const ROUND_TRIP: Duration = Duration::from_millis(40);

/// A link with any of the causes.
#[derive(Clone, Copy, Default)]
struct Link {
    per_bit: f64,
    random: f64,
    /// One packet in so many begins a burst, of so many on average.
    burst: Option<(f64, f64)>,
    /// One packet in so many meets an outage of so many packets.
    outage: Option<(u32, u32)>,
    /// A number of packets, the last of which meet a queue that grows and is full at last, and drops one in four.
    queue: Option<(u32, u32)>,
}

fn shares(link: Link, packets: u32, seed: u64) -> (LossByCause, [f64; CAUSES]) {
    let mut rng = Rng::from_seed(seed);
    let mut causes = LossCauses::default();
    let mut truth = [0.0; CAUSES];
    let mut is_bad = false;
    // Octets vary as where the length follows the link.
    for place in 0..packets {
        let at = Instant::START + PACKET * place;
        let octets = if place % 7 == 3 { 560 } else { 1_500 };
        if let Some((one_in, mean)) = link.burst {
            is_bad = rng.chance(if is_bad {
                1.0 - 1.0 / mean
            } else {
                1.0 / one_in
            });
        }
        let mut delay = ROUND_TRIP + Duration::from_micros(rng.next_u64() % 2_000);
        let mut drops = 0.0;
        if let Some((of, last)) = link.queue {
            let grown = (place % of).saturating_sub(of - last);
            let fill = (f64::from(grown) / f64::from(last) * 2.0).min(1.0);
            delay += Duration::from_millis(100).mul_f64(fill);
            drops = if fill >= 1.0 { 0.25 } else { 0.0 };
        }
        let is_out = link
            .outage
            .is_some_and(|(every, length)| place % every >= every - length);
        let arrives = (1.0 - link.per_bit).powi(8 * octets);
        let cause = if rng.chance(drops) {
            Some(LossCause::Queue)
        } else if is_out {
            Some(LossCause::Outage)
        } else if is_bad {
            Some(LossCause::Burst)
        } else if rng.chance(link.random) {
            Some(LossCause::Random)
        } else if rng.chance(1.0 - arrives) {
            Some(LossCause::BitErrors)
        } else {
            None
        };
        if let Some(cause) = cause {
            truth[cause as usize] += 1.0;
        }
        // Losses are known when what left behind them arrives.
        let octets = usize::try_from(octets).unwrap();
        causes.note(at + delay, at, octets, cause.is_some());
    }
    let lost: f64 = truth.iter().sum();
    (
        causes.by_cause().expect("there were losses"),
        truth.map(|count| count / lost),
    )
}

#[test]
fn each_cause_alone_is_found_alone() {
    let alone = [
        Link {
            per_bit: 1e-5,
            ..Link::default()
        },
        Link {
            random: 0.05,
            ..Link::default()
        },
        Link {
            burst: Some((1_000.0, 8.0)),
            ..Link::default()
        },
        Link {
            queue: Some((2_000, 200)),
            ..Link::default()
        },
        Link {
            outage: Some((10_000, 500)),
            ..Link::default()
        },
    ];
    for (link, cause) in alone.into_iter().zip(LossCause::ALL) {
        let (found, _) = shares(link, 60_000, 5);
        let share = found.shares[cause as usize];
        assert!(share.share > 0.9, "{cause:?}: {found:?}");
        assert!(share.high > 0.99, "{cause:?}: {found:?}");
    }
}

#[test]
fn mixed_causes_are_shared_out_mostly_within_five_points_and_their_intervals_hold() {
    let mixed = [
        Link {
            per_bit: 5e-6,
            random: 0.03,
            ..Link::default()
        },
        Link {
            per_bit: 2e-5,
            burst: Some((500.0, 8.0)),
            ..Link::default()
        },
        Link {
            random: 0.02,
            burst: Some((400.0, 10.0)),
            ..Link::default()
        },
        Link {
            random: 0.01,
            outage: Some((20_000, 400)),
            ..Link::default()
        },
        Link {
            random: 0.01,
            queue: Some((3_000, 200)),
            ..Link::default()
        },
        Link {
            per_bit: 1e-5,
            random: 0.05,
            burst: Some((300.0, 6.0)),
            ..Link::default()
        },
        Link {
            per_bit: 5e-6,
            queue: Some((3_000, 300)),
            ..Link::default()
        },
        Link {
            burst: Some((400.0, 6.0)),
            outage: Some((20_000, 300)),
            ..Link::default()
        },
        Link {
            per_bit: 5e-5,
            random: 0.1,
            ..Link::default()
        },
        Link {
            per_bit: 5e-6,
            random: 0.02,
            burst: Some((500.0, 8.0)),
            outage: Some((20_000, 400)),
            queue: Some((3_000, 200)),
        },
    ];
    let (mut looked, mut covered, mut near, mut worst) = (0, 0, 0, 0.0_f64);
    for (place, link) in mixed.into_iter().enumerate() {
        for seed in 0..5 {
            let (found, truth) = shares(link, 100_000, seed);
            for (share, truth) in found.shares.into_iter().zip(truth) {
                let error = (share.share - truth).abs();
                if truth > 0.05 {
                    worst = worst.max(error);
                    looked += 1;
                    near += u32::from(error <= 0.05);
                    covered += u32::from((share.low..=share.high).contains(&truth));
                }
                if error > 0.05 || !(share.low..=share.high).contains(&truth) {
                    println!("link {place}, seed {seed}: {truth:.3} {share:.3?}");
                }
            }
        }
    }
    println!("{covered} covered and {near} near of {looked}, worst {worst:.3}");
    assert!(worst < 0.1, "{worst}");
    assert!(near * 40 >= looked * 39, "{near} of {looked}");
    assert!(covered * 10 >= looked * 9, "{covered} of {looked}");
}

#[test]
fn what_was_held_for_lost_wrongly_is_taken_back() {
    let mut causes = LossCauses::default();
    assert_eq!(causes.by_cause(), None);
    let at = |place: u32| Instant::START + PACKET * place;
    for place in 0..400 {
        causes.note(at(place) + ROUND_TRIP, at(place), 1_500, place % 10 == 0);
        if place % 20 == 0 {
            causes.take_back(at(place), 1_500);
        }
    }
    let found = causes.by_cause().expect("there were losses");
    assert!((found.lost - 20.0).abs() < 1e-9, "{found:?}");
    causes.take_back(at(1_000), 1_500);
}

#[test]
fn what_was_repeated_as_a_precaution_counts_in_outages_alone() {
    let at = |place: u32| Instant::START + PACKET * place;
    let lost = |outage: u32| {
        let mut causes = LossCauses::default();
        for place in 0..2_000 {
            let is_out = place % 500 >= 500 - outage;
            causes.note(
                at(place) + ROUND_TRIP,
                at(place),
                1_500,
                is_out || place == 0,
            );
            if is_out {
                causes.note_repeated(at(place) + ROUND_TRIP, at(place), 2);
            }
        }
        let found = causes.by_cause().expect("there were losses");
        (found.lost, found.shares[LossCause::Outage as usize].share)
    };
    let (all, share) = lost(150);
    assert!(
        (all - 1_801.0).abs() < 1e-9 && share > 0.99,
        "{all} {share}"
    );
    let (all, share) = lost(2);
    assert!((all - 9.0).abs() < 1e-9 && share < 0.01, "{all} {share}");
}

#[test]
fn packets_of_one_length_leave_open_whether_bits_were_wrong() {
    let mut causes = LossCauses::default();
    let mut rng = Rng::from_seed(3);
    for place in 0..20_000 {
        let at = Instant::START + PACKET * place;
        causes.note(at + ROUND_TRIP, at, 1_500, rng.chance(0.05));
    }
    let found = causes.by_cause().expect("there were losses");
    let bits = found.shares[LossCause::BitErrors as usize];
    assert!(bits.low <= 0.0 && bits.high >= 0.99, "{found:?}");
}

/// Packets of one length or two, so many of which are lost at random.
fn at_random(loss: f64, lengths: [usize; 2], packets: u32) -> LossCauses {
    let mut causes = LossCauses::default();
    let mut rng = Rng::from_seed(4);
    for place in 0..packets {
        let at = Instant::START + PACKET * place;
        let octets = lengths[usize::from(place % 8 == 3)];
        causes.note(at + ROUND_TRIP, at, octets, rng.chance(loss));
    }
    causes
}

#[test]
fn other_lengths_are_asked_for_while_they_would_tell_wrong_bits_from_loss_at_random() {
    assert!(!LossCauses::default().is_unclear());
    let one_length = [1_500, 1_500];
    assert!(at_random(0.05, one_length, 20_000).is_unclear());
    assert!(
        !at_random(0.005, one_length, 20_000).is_unclear(),
        "it is not worth much"
    );
    let short_ones = [1_500, 375];
    assert!(at_random(0.2, short_ones, 20_000).is_unclear());
    assert!(!at_random(0.2, short_ones, 200_000).is_unclear());
    let mut outages = LossCauses::default();
    for place in 0..20_000 {
        let at = Instant::START + PACKET * place;
        outages.note(at + ROUND_TRIP, at, 1_500, place % 5_000 >= 4_500);
    }
    assert!(!outages.is_unclear(), "what lost them is known");
}

#[test]
fn what_left_beside_is_lost_in_outages_alone() {
    let lost = |outage: u32| {
        let mut causes = LossCauses::default();
        for place in 0..4_000 {
            let at = Instant::START + PACKET * place;
            let is_out = place % 1_000 >= 1_000 - outage;
            causes.note(at + ROUND_TRIP, at, 1_500, is_out || place == 0);
            if place % 10 == 5 {
                causes.note_beside(at);
            }
        }
        causes.by_cause().expect("there were losses").lost
    };
    // The last outage has no end yet.
    assert!((lost(200) - 881.0).abs() < 1e-9, "{}", lost(200));
    assert!((lost(4) - 17.0).abs() < 1e-9, "{}", lost(4));
}

#[test]
fn an_outage_is_seen_although_the_sender_soon_falls_silent() {
    let shares = |pause: Duration| {
        let mut causes = LossCauses::default();
        let mut at = Instant::START;
        for place in 0..4_000 {
            let is_out = place % 1_000 >= 925;
            causes.note(at + ROUND_TRIP, at, 1_500, is_out);
            at += PACKET;
            if place % 1_000 == 999 {
                at += pause;
            }
        }
        // The last one has no end yet.
        causes.note(at + ROUND_TRIP, at, 1_500, false);
        let found = causes.by_cause().expect("there were losses");
        found.shares[LossCause::Outage as usize].share
    };
    let two_seconds = Duration::from_secs(2);
    assert!(shares(two_seconds) > 0.99, "{}", shares(two_seconds));
    let none = Duration::ZERO;
    assert!(shares(none) < 0.01, "a burst of 150 ms: {}", shares(none));
}

#[test]
fn an_answer_that_waits_for_what_is_behind_a_burst_is_no_sign_of_a_queue() {
    let mut causes = LossCauses::default();
    for place in 0..20_000_u32 {
        let at = Instant::START + PACKET * place;
        let is_lost = place % 200 >= 190;
        // Behind the packet before the burst nothing comes for long, so its answer is late.
        let late = if place % 200 == 189 { 25 } else { 0 };
        let told_at = at + ROUND_TRIP + Duration::from_millis(late);
        causes.note(told_at, at, 1_500, is_lost);
    }
    let found = causes.by_cause().expect("there were losses");
    let share = |cause: LossCause| found.shares[cause as usize].share;
    assert!(share(LossCause::Queue) < 0.02, "{found:?}");
    assert!(share(LossCause::Burst) > 0.95, "{found:?}");
}

/// Notes so many packets whose lengths vary, each lost with the chance that a bit of it is wrong.
fn note_bits(
    causes: &mut LossCauses,
    (at, packets): (&mut Instant, u32),
    (full, per_bit): (i32, f64),
    rng: &mut Rng,
) {
    for place in 0..packets {
        let octets = if place % 8 == 3 { full / 4 } else { full };
        let arrives = (1.0 - per_bit).powi(8 * octets);
        *at += PACKET;
        let octets = usize::try_from(octets).unwrap();
        causes.note(*at + ROUND_TRIP, *at, octets, !rng.chance(arrives));
    }
}

#[test]
fn packets_that_are_cut_shorter_on_the_way_make_no_bursts_of_wrong_bits() {
    for seed in 20..28 {
        let mut rng = Rng::from_seed(seed);
        let (mut causes, mut at) = (LossCauses::default(), Instant::START);
        for (packets, full) in [(700, 1_500), (300, 800), (2_500, 400)] {
            note_bits(&mut causes, (&mut at, packets), (full, 1e-4), &mut rng);
        }
        let found = causes.by_cause().expect("there were losses");
        let of = |cause: LossCause| found.shares[cause as usize];
        assert!(of(LossCause::Burst).share < 0.1, "{seed}: {found:?}");
        assert!(of(LossCause::BitErrors).share > 0.8, "{seed}: {found:?}");
    }
}

#[test]
fn losses_before_damage_arrives_and_those_behind_it_have_causes_of_their_own() {
    for seed in 20..28 {
        let mut rng = Rng::from_seed(seed);
        let (mut causes, mut at) = (LossCauses::default(), Instant::START);
        note_bits(&mut causes, (&mut at, 3_000), (600, 1e-4), &mut rng);
        // From here on the same wrong bits cost one packet in 200, and packets are long again.
        causes.begin_anew(at + PACKET / 2);
        for place in 0..8_000 {
            at += PACKET;
            let octets = if place % 8 == 3 { 375 } else { 1_500 };
            causes.note(at + ROUND_TRIP, at, octets, rng.chance(0.005));
        }
        let found = causes.by_cause().expect("there were losses");
        let of = |cause: LossCause| found.shares[cause as usize];
        assert!(of(LossCause::BitErrors).share > 0.75, "{seed}: {found:?}");
        assert!(of(LossCause::Burst).high < 0.1, "{seed}: {found:?}");
    }
}

/// Notes so many packets of a link of this delay that loses 3 % at random.
fn note_random(
    causes: &mut LossCauses,
    (at, packets): (&mut Instant, u32),
    round_trip: Duration,
    rng: &mut Rng,
) {
    for place in 0..packets {
        *at += PACKET;
        let octets = if place % 7 == 3 { 560 } else { 1_500 };
        let is_lost = rng.chance(0.03);
        causes.note(*at + round_trip, *at, octets, is_lost);
        causes.note_told(*at, octets, is_lost);
    }
}

const LONGER: Duration = Duration::from_millis(300);

#[test]
fn a_path_that_became_longer_has_no_full_queue() {
    for is_told in [false, true] {
        let mut rng = Rng::from_seed(41);
        let (mut causes, mut at) = (LossCauses::default(), Instant::START);
        causes.set_told(is_told);
        let near = Duration::from_millis(20);
        note_random(&mut causes, (&mut at, 10_000), near, &mut rng);
        note_random(&mut causes, (&mut at, 200_000), LONGER, &mut rng);
        let found = causes.by_cause().expect("there were losses");
        let of = |cause: LossCause| found.shares[cause as usize].share;
        assert!(of(LossCause::Queue) < 0.05, "{is_told}: {found:?}");
        assert!(of(LossCause::Random) > 0.9, "{is_told}: {found:?}");
    }
}

#[test]
fn delays_of_the_link_before_show_no_queue_on_this_one() {
    for is_told in [false, true] {
        let mut rng = Rng::from_seed(42);
        let (mut causes, mut at) = (LossCauses::default(), Instant::START);
        causes.set_told(is_told);
        let near = Duration::from_millis(20);
        note_random(&mut causes, (&mut at, 1_000), near, &mut rng);
        causes.begin_anew(at + PACKET / 2);
        note_random(&mut causes, (&mut at, 8_000), LONGER, &mut rng);
        let found = causes.by_cause().expect("there were losses");
        let of = |cause: LossCause| found.shares[cause as usize].share;
        assert!(of(LossCause::Queue) < 0.05, "{is_told}: {found:?}");
        assert!(of(LossCause::Random) > 0.8, "{is_told}: {found:?}");
    }
}

#[test]
fn answers_that_fail_make_no_losses_where_the_receiver_tells_what_arrived() {
    let found = |is_told: bool| {
        let mut causes = LossCauses::default();
        causes.set_told(is_told);
        let mut rng = Rng::from_seed(31);
        for place in 0..30_000_u32 {
            let at = Instant::START + PACKET * place;
            let is_lost = rng.chance(0.02);
            // Answers fail in bursts, and a packet without one is held for lost.
            let is_held_lost = is_lost || place % 400 >= 390;
            causes.note(at + ROUND_TRIP, at, 1_500, is_held_lost);
            causes.note_told(at, 1_500, is_lost);
        }
        causes.by_cause().expect("there were losses")
    };
    let burst = |found: &LossByCause| found.shares[LossCause::Burst as usize].share;
    let (told, held) = (found(true), found(false));
    assert!(burst(&told) < 0.05 && told.lost < 700.0, "{told:?}");
    assert!(burst(&held) > 0.5 && held.lost > 1_200.0, "{held:?}");
}

#[test]
fn a_full_queue_is_seen_by_the_answers_where_the_receiver_tells_what_arrived() {
    let mut causes = LossCauses::default();
    causes.set_told(true);
    let mut rng = Rng::from_seed(32);
    let mut queue = 0.0;
    for place in 0..40_000_u32 {
        let at = Instant::START + PACKET * place;
        let grown = f64::from((place % 2_000).saturating_sub(1_800)) / 100.0;
        let delay = ROUND_TRIP + Duration::from_millis(100).mul_f64(grown.min(1.0));
        // The queue stands for a while after the last drop.
        let drops = grown >= 1.0 && place % 2_000 < 1_980;
        let is_queue = drops && rng.chance(0.25);
        let is_lost = is_queue || rng.chance(0.002);
        queue += f64::from(u8::from(is_queue));
        // One answer tells of four packets.
        if place % 4 == 0 && !is_lost {
            causes.note(at + delay, at, 1_500, false);
        }
        causes.note_told(at, 1_500, is_lost);
    }
    let found = causes.by_cause().expect("there were losses");
    let share = found.shares[LossCause::Queue as usize];
    assert!((share.share - queue / found.lost).abs() < 0.05, "{found:?}");
}

#[test]
fn who_stops_telling_leaves_the_word_to_acknowledgements() {
    let mut causes = LossCauses::default();
    causes.note_told(Instant::START, 1_500, true);
    assert_eq!(causes.by_cause(), None, "nobody said that it would be told");
    causes.set_told(true);
    causes.note_told(Instant::START, 1_500, true);
    assert!(
        causes
            .by_cause()
            .is_some_and(|found| found.lost_packets() == 1)
    );
    causes.set_told(false);
    let at = Instant::START + PACKET;
    causes.note(at + ROUND_TRIP, at, 1_500, true);
    assert!(
        causes
            .by_cause()
            .is_some_and(|found| found.lost_packets() == 1)
    );
}
