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

fn copy(counter: u32, region: &[u8], now: Instant) -> DamagedCopy {
    DamagedCopy {
        keys: 2,
        counter,
        words: FecStrength::NONE,
        region: region.to_vec(),
        further: Vec::new(),
        presumed: 1,
        at: now,
    }
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
        !later.write_further(name(4), rate(1e-4), &mut out),
        "another"
    );
    let other = SealedName { keys: 2, number: 5 };
    assert!(
        !later.write_further(other, rate(1e-4), &mut out),
        "other keys"
    );
    assert!(out.is_empty());
    for _ in 0..2 {
        assert!(later.write_further(name(5), rate(1e-4), &mut out));
    }
    assert!(!later.write_further(name(5), rate(1e-4), &mut out));
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
    assert!(!later.write_further(name(5), rate(0.1), &mut out));
    later.agree(false);
    assert!(!later.write_further(name(5), rate(1e-4), &mut out));
    keep(&mut later, at(0), 6, &[7; 1_400]);
    assert!(!later.write_further(name(6), rate(1e-4), &mut out));
    later.keep_damaged(copy(1, &[0; 300], at(0)));
    assert!(later.damaged.is_empty());
}

#[test]
fn memory_is_bounded_and_what_is_old_is_forgotten() {
    let mut later = agreed();
    for n in 0..5_000 {
        keep(&mut later, at(n), n, &[7; 1_400]);
        later.keep_damaged(copy(u32::try_from(n).expect("small"), &[0; 1_450], at(n)));
        later.keep_damaged(copy(u32::try_from(n).expect("small"), &[0; 1_450], at(n)));
        assert!(later.sealed_octets <= SEALED_OCTETS_MAX && later.damaged.len() <= DAMAGED_MAX);
    }
    assert_eq!(later.sealed.len(), SEALED_OCTETS_MAX / 1_400);
    assert_eq!(later.damaged.len(), DAMAGED_MAX);
    assert_eq!(later.damaged_octets, 64 * 1_450);
    later.keep_damaged(copy(9_000, &vec![0; 60_000], at(5_000)));
    assert!(later.damaged_octets <= DAMAGED_OCTETS_MAX && later.damaged.len() < DAMAGED_MAX);
    later.forget_old(at(7_001));
    assert_eq!((later.sealed.len(), later.sealed_octets), (0, 0));
    assert_eq!((later.damaged.len(), later.damaged_octets), (0, 0));
}

#[test]
fn parity_that_does_not_follow_what_was_there_is_left() {
    let mut later = agreed();
    later.keep_damaged(copy(3, &[0; 1_400], at(0)));
    let part = |counter, codewords, first| FurtherPart {
        counter,
        codewords,
        first,
        octets: &[9; 12],
    };
    for wrong in [part(4, 6, 0), part(3, 5, 0), part(3, 6, 2)] {
        assert!(later.take_damaged(&wrong).is_none(), "{wrong:?}");
    }
    let empty = FurtherPart {
        octets: &[],
        ..part(3, 6, 0)
    };
    assert!(
        later.take_damaged(&empty).is_none(),
        "it would be decoded for nothing"
    );
    let copy = later.take_damaged(&part(3, 6, 0)).expect("it is kept");
    assert_eq!((copy.further.len(), later.damaged_octets), (12, 0));
    later.keep_damaged(copy);
    assert!(later.take_damaged(&part(3, 6, 0)).is_none(), "it was there");
    assert!(later.take_damaged(&part(3, 6, 2)).is_some());
}
