use super::super::damage_reports::damaged;
use super::super::wire::FurtherParity;
use super::*;
use crate::session::path_slot::PathSlot;

fn at(millis: u64) -> Instant {
    Instant::START + Duration::from_millis(millis)
}

fn agreed() -> LaterRepair {
    let mut later = LaterRepair::default();
    later.agree(true);
    later
}

fn rate(value: f64) -> BitErrorRate {
    BitErrorRate::new(value).expect("a share")
}

fn name(number: u64) -> SealedName {
    SealedName { keys: 1, number }
}

fn keep(later: &mut LaterRepair, now: Instant, number: u64, region: &[u8]) {
    later.keep_sealed(now, name(number), (number, FecStrength::NONE), region);
}

/// Our index of the keys of what comes.
const KEYS: u32 = 2;

fn copy(counter: u32, region: &[u8], now: Instant) -> DamagedCopy {
    DamagedCopy {
        keys: KEYS,
        counter,
        words: FecStrength::NONE,
        region: region.to_vec(),
        further: Vec::new(),
        presumed: 1,
        at: now,
    }
}

const ROUND_TRIP: Duration = Duration::from_millis(100);

fn keep_damaged(later: &mut LaterRepair, now: Instant, copy: DamagedCopy) {
    later.keep_damaged(now, ROUND_TRIP, copy);
}

#[test]
fn both_ends_have_to_say_both_words() {
    let both = [damaged(), parity_follows()];
    assert!(mend_later(&both, &both));
    assert!(!mend_later(&both, &both[..1]) && !mend_later(&both[1..], &both));
    let other = Capability {
        value: "2".to_owned(),
        ..parity_follows()
    };
    assert!(!mend_later(&both, &[damaged(), other]));
}

#[test]
fn a_datagram_has_further_parity_twice_and_then_none() {
    let mut later = agreed();
    keep(&mut later, at(0), 5, &[7; 1_400]);
    let mut out = Vec::new();
    assert!(
        !later.write_further(at(0), name(4), rate(1e-4), &mut out),
        "another"
    );
    let other = SealedName { keys: 2, number: 5 };
    assert!(
        !later.write_further(at(0), other, rate(1e-4), &mut out),
        "other keys"
    );
    assert!(out.is_empty());
    for _ in 0..2 {
        assert!(later.write_further(at(0), name(5), rate(1e-4), &mut out));
    }
    assert!(!later.write_further(at(0), name(5), rate(1e-4), &mut out));
    let frame = FurtherParity {
        slot: PathSlot::FIRST,
        parts: &out,
    };
    let parts: Vec<_> = frame.parts().collect();
    let steps = parts[0].octets.len() / 6;
    assert_eq!(
        (parts[0].counter, parts[0].codewords, parts[0].first),
        (5, 6, 0)
    );
    assert_eq!(
        usize::from(parts[1].first),
        steps,
        "it goes on where the first ended"
    );
}

#[test]
fn what_is_hopeless_or_not_agreed_on_is_sent_again() {
    let mut later = agreed();
    keep(&mut later, at(0), 5, &[7; 1_400]);
    let mut out = Vec::new();
    assert!(!later.write_further(at(0), name(5), rate(0.1), &mut out));
    later.agree(false);
    assert!(!later.write_further(at(0), name(5), rate(1e-4), &mut out));
    keep(&mut later, at(0), 6, &[7; 1_400]);
    assert!(!later.write_further(at(0), name(6), rate(1e-4), &mut out));
    keep_damaged(&mut later, at(0), copy(1, &[0; 300], at(0)));
    assert!(later.damaged.is_empty());
}

#[test]
fn memory_is_bounded_and_what_is_old_is_forgotten() {
    let mut later = agreed();
    for n in 0..5_000 {
        keep(&mut later, at(n), n, &[7; 1_400]);
        let counter = u32::try_from(n).expect("small");
        for _ in 0..2 {
            keep_damaged(&mut later, at(n), copy(counter, &[0; 1_450], at(n)));
        }
        later.forget_old(at(n));
        assert!(later.sealed_octets <= SEALED_OCTETS_MAX && later.damaged.len() <= DAMAGED_MAX);
    }
    assert_eq!(later.sealed.len(), 2_001, "those of two seconds");
    assert_eq!(later.damaged.len(), DAMAGED_MAX);
    assert_eq!(later.damaged_octets, DAMAGED_MAX * 1_450);
    keep_damaged(
        &mut later,
        at(5_200),
        copy(9_000, &vec![0; 60_000], at(5_200)),
    );
    assert!(later.damaged_octets <= DAMAGED_OCTETS_MAX && later.damaged.len() < DAMAGED_MAX);
    later.forget_old(at(7_201));
    assert_eq!((later.sealed.len(), later.sealed_octets), (0, 0));
    assert_eq!((later.damaged.len(), later.damaged_octets), (0, 0));
    for n in 0..5_000 {
        keep(&mut later, at(8_000), 5_000 + n, &[7; 1_400]);
    }
    assert_eq!(later.sealed.len(), SEALED_OCTETS_MAX / 1_400);
}

#[test]
fn where_all_are_young_another_is_not_kept_and_where_they_are_old_it_takes_a_place() {
    let mut later = agreed();
    for n in 0..300 {
        keep_damaged(&mut later, at(0), copy(n, &[0; 1_400], at(0)));
    }
    let kept =
        |later: &LaterRepair, counter| later.damaged.iter().any(|one| one.counter == counter);
    assert!(kept(&later, 0) && kept(&later, 255) && !kept(&later, 256));
    keep_damaged(&mut later, at(119), copy(301, &[0; 1_400], at(119)));
    assert!(!kept(&later, 301), "further parity for the first may come");
    keep_damaged(&mut later, at(120), copy(302, &[0; 1_400], at(120)));
    assert!(kept(&later, 302) && !kept(&later, 0));
}

#[test]
fn one_kept_for_the_second_time_is_as_old_as_it_was_and_its_further_parity_counts() {
    let mut later = agreed();
    keep_damaged(&mut later, at(0), copy(1, &[0; 1_400], at(0)));
    keep_damaged(&mut later, at(1_000), copy(2, &[0; 1_400], at(1_000)));
    let part = FurtherPart {
        counter: 1,
        codewords: 6,
        first: 0,
        octets: &[9; 12],
    };
    let again = later.take_damaged(KEYS, &part).expect("it is kept");
    keep_damaged(&mut later, at(1_100), again);
    assert_eq!(later.damaged_octets, 2_812);
    later.forget_old(at(2_001));
    let left: Vec<u32> = later.damaged.iter().map(|one| one.counter).collect();
    assert_eq!((left, later.damaged_octets), (vec![2], 1_400));
}

#[test]
fn the_share_that_is_kept_is_that_of_the_receivers_room_among_what_is_under_way() {
    let mut later = agreed();
    for n in 0..1_000 {
        keep(&mut later, at(n), n, &[7; 1_400]);
    }
    let share = |later: &LaterRepair, round_trip| {
        later.kept_share(at(1_000), Duration::from_millis(round_trip))
    };
    assert!((share(&later, 100) - 1.0).abs() < 1e-9, "120 are under way");
    assert!((share(&later, 492) - 0.5).abs() < 0.01, "512 are under way");
    // Four thousand in a second are more than the sender keeps.
    for n in 0..4_000 {
        keep(&mut later, at(1_000 + n / 4), 1_000 + n, &[7; 1_400]);
    }
    let share = |round_trip| later.kept_share(at(2_000), Duration::from_millis(round_trip));
    assert!(share(50) > 0.9);
    assert!(
        share(1_000) < 1e-9,
        "the oldest were dropped before parity came"
    );
}

#[test]
fn a_receiver_whose_room_is_taken_gets_contents() {
    let mut later = agreed();
    let mut out = Vec::new();
    for n in 0..257 {
        keep(&mut later, at(0), n, &[7; 1_400]);
    }
    for n in 0..256 {
        assert!(later.has_room_there(at(n / 4), ROUND_TRIP));
        assert!(later.write_further(at(n / 4), name(n), rate(1e-4), &mut out));
    }
    assert!(!later.has_room_there(at(119), ROUND_TRIP));
    assert!(
        later.has_room_there(at(120), ROUND_TRIP),
        "the first was mended or is beyond help"
    );
}

#[test]
fn parity_that_does_not_follow_what_was_there_is_left() {
    let mut later = agreed();
    keep_damaged(&mut later, at(0), copy(3, &[0; 1_400], at(0)));
    let part = |counter, codewords, first| FurtherPart {
        counter,
        codewords,
        first,
        octets: &[9; 12],
    };
    for wrong in [part(4, 6, 0), part(3, 5, 0), part(3, 6, 2)] {
        assert!(later.take_damaged(KEYS, &wrong).is_none(), "{wrong:?}");
    }
    assert!(
        later.take_damaged(KEYS + 1, &part(3, 6, 0)).is_none(),
        "the counters of other keys name other datagrams"
    );
    let empty = FurtherPart {
        octets: &[],
        ..part(3, 6, 0)
    };
    assert!(
        later.take_damaged(KEYS, &empty).is_none(),
        "it would be decoded for nothing"
    );
    let copy = later
        .take_damaged(KEYS, &part(3, 6, 0))
        .expect("it is kept");
    assert_eq!((copy.further.len(), later.damaged_octets), (12, 0));
    keep_damaged(&mut later, at(0), copy);
    assert!(
        later.take_damaged(KEYS, &part(3, 6, 0)).is_none(),
        "it was there"
    );
    assert!(later.take_damaged(KEYS, &part(3, 6, 2)).is_some());
}
