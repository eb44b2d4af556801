//! Armour agreed on by two ends: who armours, what is mended, and where a peer is believed to be.
//!
//! Method: two sessions in virtual time; the test carries their datagrams, damages them, and says where they come from.

use crate::session_pair::by_hand::{ByHand, Place, joined, sent, take, the_peer};
use crate::session_pair::{PEER, noise, speaking};
use fulmar_net::session::{Armour, MtuConfig, SessionConfig, Wire, unchecked};
use fulmar_proto::machine::{Machine, PathId};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, FecStrength, Instant};

const CONTENT_BYTES: usize = 1_000;
const PITCH: Duration = Duration::from_micros(500);
const ARMOURED: u8 = 0x38;

fn words(words: u16) -> FecStrength {
    FecStrength::from_words(words).expect("a strength")
}

/// Two ends in wire 2, of which those named mend damaged data.
fn ends(mends: [bool; 2]) -> [SessionConfig; 2] {
    let mut configs = noise().map(|config| speaking(config, Wire::Two));
    for (config, mends) in configs.iter_mut().zip(mends) {
        if mends {
            config.capabilities.push(unchecked());
        }
    }
    configs
}

/// The datagrams that `end` sends now.
fn leaving(end: &mut ByHand, now: Instant, with_data: bool) -> Vec<Vec<u8>> {
    if end.next_deadline().is_some_and(|due| due.at <= now) {
        end.handle_deadline(now);
    }
    let source = end.inner_mut();
    (source.left, source.octets) = (u32::from(with_data), CONTENT_BYTES);
    let left = sent(end, now).into_iter();
    left.map(|(_, octets)| octets).collect()
}

fn place(number: u32) -> Place {
    (PathId(number), ([203, 0, 113, 9], 5_000).into())
}

fn is_armoured(octets: &[u8]) -> bool {
    octets.first().is_some_and(|first| first & 0xF8 == ARMOURED)
}

#[test]
fn data_is_armoured_for_an_end_that_mends_it_and_not_for_another() {
    for (mends, armoured) in [(true, true), (false, false)] {
        let now = Instant::START;
        let (mut caller, ..) = joined(ends([false, mends]), now);
        let plain = caller.sizes(PEER).expect("it is there").payload;
        caller.set_armour(PEER, Some(Armour::Fixed(words(6))));
        assert_eq!(caller.parity_to(PEER).words(), if armoured { 6 } else { 0 });
        let data = leaving(&mut caller, now, true);
        let data = data.iter().find(|one| one.len() > CONTENT_BYTES);
        assert_eq!(is_armoured(data.expect("data leaves")), armoured);
        let payload = caller.sizes(PEER).expect("it is there").payload;
        // Nine octets of header more, and the parity.
        let less = if armoured { 9 + 24 } else { 0 };
        assert_eq!(plain.0 - payload.0, less);
        caller.set_armour(PEER, None);
        assert_eq!(caller.sizes(PEER).expect("it is there").payload, plain);
    }
}

#[test]
fn an_end_mends_as_many_words_as_the_header_says_though_it_sends_none() {
    let mut now = Instant::START;
    let (mut caller, mut called, _) = joined(ends([false, true]), now);
    let mut rng = Rng::from_seed(33).child("octets");
    for round in 0..600_u16 {
        now += PITCH;
        // Genuine datagrams pay for corrections; an end notes anew where its peers are every 100 ms.
        let strength = words(1 + round % 255);
        caller.set_armour(PEER, Some(Armour::Fixed(strength)));
        for mut octets in leaving(&mut caller, now, true) {
            if round >= 300 && octets.len() > CONTENT_BYTES {
                // One wrong octet in each codeword that has two octets of parity.
                let behind = octets.len() - 17;
                let codewords = behind.div_ceil(255);
                let each = usize::from(strength.words()) * 4 / codewords / 2;
                let first = octets.len() - behind;
                for codeword in (0..codewords).filter(|_| each > 0) {
                    let among = u64::try_from((behind - codeword).div_ceil(codewords)).unwrap();
                    let place = usize::try_from(rng.below(among)).unwrap();
                    octets[first + codeword + place * codewords] ^= 0x10;
                }
            }
            take(&mut called, now, the_peer(), &octets);
        }
        for octets in leaving(&mut called, now, false) {
            assert!(!is_armoured(&octets), "it was not asked to armour");
            take(&mut caller, now, the_peer(), &octets);
        }
    }
    assert_eq!(called.inner().frames, 600, "{:?}", called.counters());
    assert!(called.counters().corrected_symbols > 300);
}

/// Carries what leaves `from` to `to`, as coming from `place`; what `to` answers there comes back if somebody is there.
fn carry(from: &mut ByHand, to: &mut ByHand, now: Instant, place: Place, is_there: bool) {
    for octets in leaving(from, now, true) {
        take(to, now, place, &octets);
    }
    for (path, octets) in sent(to, now) {
        if path != place.0 || is_there {
            take(from, now, the_peer(), &octets);
        }
    }
}

#[test]
fn a_damaged_source_moves_nobody_and_a_peer_that_moved_is_followed_when_it_answers() {
    let wrong = place(9_000);
    let mut now = Instant::START;
    let (mut caller, mut called, _) = joined(ends([true, true]), now);
    caller.set_armour(PEER, Some(Armour::Fixed(words(6))));
    let home = called.path_to(PEER).expect("it was heard");
    for _ in 0..200 {
        now += PITCH;
        carry(&mut caller, &mut called, now, wrong, false);
    }
    assert_eq!(called.path_to(PEER), Some(home), "nobody answered there");
    assert_eq!(called.counters().moves, 0);
    let delivered = called.inner().frames;
    assert_eq!(delivered, 200, "what arrives is taken all the same");
    now += Duration::from_secs(1);
    carry(&mut caller, &mut called, now, wrong, true);
    // The reply to the question is under way now.
    now += PITCH;
    carry(&mut caller, &mut called, now, wrong, true);
    assert_eq!(called.path_to(PEER), Some(wrong.0));
    assert_eq!(called.counters().moves, 1);
}

#[test]
fn plain_data_moves_a_peer_at_once() {
    let elsewhere = place(9_000);
    let now = Instant::START + PITCH;
    let (mut caller, mut called, _) = joined(ends([true, true]), Instant::START);
    carry(&mut caller, &mut called, now, elsewhere, false);
    assert_eq!(called.path_to(PEER), Some(elsewhere.0));
}

#[test]
fn questions_at_wrong_addresses_are_few() {
    let mut now = Instant::START;
    let mut configs = ends([true, true]);
    // Probes of sizes are answered where they come from, and are not what is counted here.
    configs[0].peers[0].mtu = MtuConfig::fixed(ByteCount(1_280));
    let (mut caller, mut called, _) = joined(configs, now);
    caller.set_armour(PEER, Some(Armour::Fixed(words(6))));
    let mut asked = 0;
    for round in 0..4_000_u32 {
        now += PITCH;
        let wrong = place(10_000 + round);
        for octets in leaving(&mut caller, now, true) {
            take(&mut called, now, wrong, &octets);
        }
        for (path, octets) in sent(&mut called, now) {
            if path == wrong.0 {
                asked += 1;
            } else {
                // Heartbeats come back, so that the caller does not ask whether anybody is there.
                take(&mut caller, now, the_peer(), &octets);
            }
        }
    }
    // In two seconds one question at once, then four a second. The caller, who hears little meanwhile, asks itself every
    // 75 ms at most, and is answered where it asked from.
    let (questions, answers) = (9, 27);
    assert!((1..=questions + answers).contains(&asked), "{asked}");
}
