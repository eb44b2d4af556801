//! The packet code: its octets equal those of an independent codec, and it corrects and counts all
//! that it can.
#![expect(
    clippy::cast_possible_truncation,
    reason = "a draw is below the bound it was given"
)]

use super::layout::Layout;
use super::{Corrected, PacketCode, Uncorrectable};
use crate::rng::Rng;
use crate::units::FecStrength;
use fec::reed_solomon::{Encoder, PRIMITIVE_POLYNOMIAL_8_4_3_2_0};
use proptest::prelude::*;

fn words(words: u16) -> FecStrength {
    FecStrength::from_words(words).unwrap()
}

fn random_octets(stream: &mut Rng, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    stream.fill(&mut octets);
    octets
}

fn with_parity(message: &[u8], strength: FecStrength) -> Vec<u8> {
    let mut octets = message.to_vec();
    PacketCode::new().append_parity(&mut octets, 0, strength);
    octets
}

/// The parity as the independent encoder makes it, dealt out by the layout's definition.
fn region_by_oracle(message: &[u8], strength: FecStrength) -> Vec<u8> {
    let mut region = message.to_vec();
    region.resize(message.len() + strength.parity_bytes(), 0);
    let codewords = region.len().div_ceil(255);
    for codeword in 0..codewords {
        let places: Vec<usize> = (codeword..region.len()).step_by(codewords).collect();
        let (message_places, parity_places): (Vec<_>, Vec<_>) =
            places.iter().partition(|&&place| place < message.len());
        if parity_places.is_empty() {
            continue;
        }
        let part: Vec<u8> = message_places
            .iter()
            .map(|&&place| message[place])
            .collect();
        let mut encoder = Encoder::new(PRIMITIVE_POLYNOMIAL_8_4_3_2_0, 1, 1, parity_places.len());
        let mut encoded = [0; 255];
        encoder.encode(&part, &mut encoded).unwrap();
        for (&&place, &octet) in parity_places.iter().zip(&encoded[part.len()..]) {
            region[place] = octet;
        }
    }
    region
}

#[test]
fn parity_equals_that_of_an_independent_encoder() {
    let mut stream = Rng::from_seed(0x125).child("oracle");
    for strength in [1, 2, 3, 6, 7, 24, 32, 48, 64, 96, 128, 192, 256] {
        for len in [
            1, 2, 7, 100, 254, 255, 256, 509, 510, 1404, 1460, 1500, 4000,
        ] {
            let message = random_octets(&mut stream, len);
            let strength = words(strength);
            let expected = region_by_oracle(&message, strength);
            assert_eq!(
                with_parity(&message, strength),
                expected,
                "{len}, {strength:?}"
            );
        }
    }
    let message = random_octets(&mut stream, 65_535);
    let expected = region_by_oracle(&message, words(256));
    assert_eq!(with_parity(&message, words(256)), expected);
}

#[test]
fn parity_covers_the_message_from_start_on_and_nothing_before_it() {
    let mut with_header = b"header".to_vec();
    with_header.extend(b"message");
    PacketCode::new().append_parity(&mut with_header, 6, words(3));
    assert_eq!(with_header[6..], with_parity(b"message", words(3)));
    assert_eq!(with_header[..6], *b"header");
}

#[test]
fn no_words_add_nothing_and_correct_nothing() {
    let mut octets = with_parity(b"message", FecStrength::NONE);
    assert_eq!(octets, b"message");
    let corrected = PacketCode::new().correct(&mut octets, FecStrength::NONE);
    assert_eq!(corrected, Ok(Corrected { symbols: 0 }));
    assert_eq!(FecStrength::from_words(257), None);
    assert_eq!(FecStrength::from_words(256), Some(FecStrength::MAX));
}

#[test]
fn octets_without_room_for_a_message_are_refused() {
    let mut octets = vec![0; 1024];
    let refused = PacketCode::new().correct(&mut octets, FecStrength::MAX);
    let too_short = Uncorrectable::TooShort {
        octets: 1024,
        words: 256,
    };
    assert_eq!(refused, Err(too_short));
    assert!(
        PacketCode::new()
            .correct(&mut [], FecStrength::NONE)
            .is_err()
    );
}

/// Damages exactly `count` octets of each codeword with at least that many, returns how many.
fn damage(
    octets: &mut [u8],
    layout: Layout,
    stream: &mut Rng,
    count: impl Fn(usize) -> usize,
) -> u32 {
    let mut damaged = 0;
    for codeword in 0..layout.codewords {
        let len = layout.len_of(codeword);
        let mut indices: Vec<usize> = (0..len).collect();
        for chosen in 0..count(codeword).min(len) {
            indices.swap(
                chosen,
                chosen + stream.below((len - chosen) as u64) as usize,
            );
            let error = 1 + stream.below(255) as u8;
            octets[layout.position(codeword, indices[chosen])] ^= error;
            damaged += 1;
        }
    }
    damaged
}

#[test]
fn the_full_strength_of_every_codeword_can_be_used_at_once() {
    let mut stream = Rng::from_seed(0x125).child("full strength");
    let mut code = PacketCode::new();
    for strength in 1..=256 {
        for len in [1, 200, 1500 - 4 * 150, 1460] {
            let strength = words(strength);
            let message = random_octets(&mut stream, len);
            let sent = with_parity(&message, strength);
            let layout = Layout::new(len, strength.parity_bytes());
            let mut received = sent.clone();
            let correctable = |codeword| layout.parity_of(codeword) / 2;
            let symbols = damage(&mut received, layout, &mut stream, correctable);
            let corrected = code.correct(&mut received, strength);
            assert_eq!(corrected, Ok(Corrected { symbols }), "{len}, {strength:?}");
            assert_eq!(received, sent, "{len}, {strength:?}");
        }
    }
}

#[test]
fn one_error_too_many_is_never_taken_for_the_message_sent() {
    let mut stream = Rng::from_seed(0x125).child("one too many");
    let mut code = PacketCode::new();
    let mut noticed = 0;
    for _ in 0..2000 {
        let strength = words(24);
        let sent = with_parity(&random_octets(&mut stream, 1404), strength);
        let layout = Layout::new(1404, strength.parity_bytes());
        let mut received = sent.clone();
        let over = |codeword| if codeword == 2 { 9 } else { 1 };
        damage(&mut received, layout, &mut stream, over);
        let result = code.correct(&mut received, strength);
        assert_ne!(received, sent);
        if let Err(Uncorrectable::TooManyErrors { codewords, symbols }) = result {
            assert_eq!(
                (codewords, symbols),
                (1, 5),
                "the other codewords are corrected"
            );
            noticed += 1;
        }
    }
    // A random remainder is within t = 8 errors of a codeword with probability near 1/8! = 2.5e-5:
    // 0.05 such events expected, so four have a probability below 1e-6.
    assert!(noticed > 1996, "{noticed}");
}

#[test]
fn odd_parity_octets_serve_to_notice_not_to_correct() {
    // 5 octets of parity in one codeword correct two errors; a third must not be "corrected" with
    // the fifth, which happens when the register may grow to three.
    let strength = words(8);
    let mut stream = Rng::from_seed(0x125).child("odd");
    let layout = Layout::new(1468, 32);
    assert_eq!((layout.codewords, layout.parity_of(0)), (6, 5));
    let mut code = PacketCode::new();
    for _ in 0..1000 {
        let sent = with_parity(&random_octets(&mut stream, 1468), strength);
        let mut received = sent.clone();
        damage(&mut received, layout, &mut stream, |codeword| {
            3 * usize::from(codeword == 0)
        });
        let result = code.correct(&mut received, strength);
        assert!(result != Ok(Corrected { symbols: 3 }), "{result:?}");
        assert_ne!(received, sent);
    }
}

#[test]
fn few_generators_are_kept_however_many_strengths_are_used() {
    let mut code = PacketCode::new();
    for strength in (1..=256).rev().chain(1..=256) {
        let mut octets = vec![7; 300];
        code.append_parity(&mut octets, 0, words(strength));
        octets[1] ^= 0xFF;
        let corrected = code.correct(&mut octets, words(strength));
        assert_eq!(corrected, Ok(Corrected { symbols: 1 }), "{strength}");
    }
    assert!(format!("{code:?}").matches("parity:").count() <= 8);
}

proptest! {
    #[test]
    fn any_errors_within_each_codewords_strength_are_corrected_and_counted(
        seed: u64,
        len in 1usize..3000,
        strength in 0u16..=256,
    ) {
        let mut stream = Rng::from_seed(seed);
        let strength = words(strength);
        let sent = with_parity(&random_octets(&mut stream, len), strength);
        let layout = Layout::new(len, strength.parity_bytes());
        let mut counts = stream.child("counts");
        let limits: Vec<usize> = (0..layout.codewords)
            .map(|codeword| counts.below(layout.parity_of(codeword) as u64 / 2 + 1) as usize)
            .collect();
        let mut received = sent.clone();
        let symbols = damage(&mut received, layout, &mut stream, |codeword| limits[codeword]);
        let corrected = PacketCode::new().correct(&mut received, strength);
        prop_assert_eq!(corrected, Ok(Corrected { symbols }));
        prop_assert_eq!(received, sent);
    }

    #[test]
    fn any_octets_are_survived(mut octets: Vec<u8>, strength in 0u16..=256) {
        let strength = words(strength);
        let before = octets.clone();
        let result = PacketCode::new().correct(&mut octets, strength);
        if result == Ok(Corrected { symbols: 0 }) {
            prop_assert_eq!(octets, before);
        }
    }
}
