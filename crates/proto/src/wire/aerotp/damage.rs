//! Octets that are no TPDU are refused: wrong bits, cuts, contradictions, bounds, noise.

use proptest::prelude::*;

use super::golden::{encoded, examples};
use super::*;
use crate::rng::Rng;
use crate::wire::Mode;
use crate::wire::TpduSeq;
use crate::wire::checksum::hec;

/// Gives `octets` a HEC that matches, so that the checks behind it are reached. The first
/// `descriptors` octets behind the header are descriptor words.
fn with_right_hec(mut octets: Vec<u8>, descriptors: usize) -> Vec<u8> {
    let end = (HEADER_BYTES + descriptors).min(octets.len());
    let hec = hec(&octets[..14], &octets[HEADER_BYTES.min(end)..end]);
    octets[14..16].copy_from_slice(&hec.to_be_bytes());
    octets
}

/// The descriptor octets that the flags in `octets` announce.
fn announced(octets: &[u8]) -> usize {
    let (fec, block) = (octets[12] & 2 != 0, octets[12] & 1 != 0);
    let mack = octets[13] & 0x10 != 0;
    DESCRIPTOR_BYTES * (usize::from(fec) + usize::from(block && !mack))
}

fn flip(octets: &mut [u8], bit: usize) {
    octets[bit / 8] ^= 0x80 >> (bit % 8);
}

#[test]
fn the_header_check_finds_one_and_two_wrong_bits_in_every_example() {
    for (name, mut octets) in examples() {
        let bits = 8 * (HEADER_BYTES + announced(&octets));
        for a in 0..bits {
            flip(&mut octets, a);
            assert!(parse(&octets).is_err(), "{name}: bit {a}");
            for b in a + 1..bits {
                flip(&mut octets, b);
                assert!(parse(&octets).is_err(), "{name}: bits {a}, {b}");
                flip(&mut octets, b);
            }
            flip(&mut octets, a);
        }
    }
}

/// The bits that say which words follow: FEC, BLOCK, MACK. With one of them wrong the receiver
/// checks other octets than the sender did, so detection is no longer certain but has the
/// probability 1 - 2^-16.
const LAYOUT_BITS: [usize; 3] = [8 * 12 + 6, 8 * 12 + 7, 8 * 13 + 3];

#[test]
fn the_header_check_finds_three_wrong_bits_with_a_descriptor_present() {
    let mut octets = encoded("data-fec");
    let bits = 8 * (HEADER_BYTES + announced(&octets));
    let mut undetected = 0;
    for a in 0..bits {
        flip(&mut octets, a);
        for b in a + 1..bits {
            flip(&mut octets, b);
            for c in b + 1..bits {
                flip(&mut octets, c);
                if parse(&octets).is_ok() {
                    let layout = [a, b, c].iter().any(|bit| LAYOUT_BITS.contains(bit));
                    assert!(layout, "bits {a}, {b}, {c}");
                    undetected += 1;
                }
                flip(&mut octets, c);
            }
            flip(&mut octets, b);
        }
        flip(&mut octets, a);
    }
    // 37,369 patterns contain a layout bit: 0.57 expected, Poisson's 99.99 % quantile is 5.
    assert!(undetected <= 5, "{undetected}");
}

#[test]
fn a_wrong_bit_behind_the_header_is_reported_as_damage_and_spares_the_header() {
    for (name, sound) in examples() {
        let tpdu = parse(&sound).unwrap();
        if tpdu.check == BodyCheck::Unchecked {
            continue;
        }
        let first = 8 * (HEADER_BYTES + announced(&sound));
        for bit in first..8 * tpdu.covered.len() {
            let mut octets = sound.clone();
            flip(&mut octets, bit);
            let read = parse(&octets).unwrap();
            assert_eq!(read.check, BodyCheck::Damaged, "{name}: bit {bit}");
            assert_eq!(read.header, tpdu.header, "{name}: bit {bit}");
            assert!(Mack::of(&read).is_err(), "{name}: bit {bit}");
            assert!(Nack::of(&read).is_err(), "{name}: bit {bit}");
        }
    }
}

#[test]
fn no_cut_passes_for_the_whole() {
    for (name, sound) in examples() {
        let whole = parse(&sound).unwrap();
        for len in 0..sound.len() {
            let Ok(cut) = parse(&sound[..len]) else {
                continue;
            };
            match whole.check {
                BodyCheck::Unchecked => assert!(cut.body.len() < whole.body.len(), "{name}: {len}"),
                _ => assert_eq!(cut.check, BodyCheck::Damaged, "{name}: {len}"),
            }
        }
        let head = HEADER_BYTES + announced(&sound);
        for len in 0..head {
            let cut = parse(&sound[..len]);
            assert_eq!(cut.unwrap_err(), Reject::Truncated, "{name}: {len}");
        }
    }
}

/// A TPDU of mode reliable with `resv` and `flags`, then `rest`.
fn with_flags(resv: u8, flags: u8, rest: &[u8]) -> Vec<u8> {
    let mut octets = vec![0; HEADER_BYTES];
    octets[12] = Mode::Reliable.code() << 4 | resv;
    octets[13] = flags;
    octets.extend_from_slice(rest);
    let descriptors = announced(&octets);
    with_right_hec(octets, descriptors)
}

#[test]
fn exactly_the_specified_flag_sets_have_a_meaning() {
    const BLOCK_WORD: [u8; 4] = [1, 3, 0, 0];
    for resv in [0b0000, 0b1000, 0b0001, 0b1001] {
        for flags in 0..64 {
            let (nack, block) = (resv & 8 != 0, resv & 1 != 0);
            let [urg, mack, psh, rst, asyn, afin] =
                [5, 4, 3, 2, 1, 0].map(|bit: u8| flags >> bit & 1 == 1);
            let meant = match (mack, nack, block) {
                (true, true, _) | (false, true, true) => false,
                (true, false, _) => !((urg || psh) && !block || rst || asyn && afin),
                (false, true, false) => !(psh || rst || asyn || afin),
                (false, false, true) => flags == 0,
                (false, false, false) => match (rst, afin) {
                    // A challenge has ASYN, its answer AFIN.
                    (_, true) => !(urg || psh || asyn),
                    (true, false) => !(urg || psh),
                    (false, false) => true,
                },
            };
            let descriptor = if block && !mack { &BLOCK_WORD[..] } else { &[] };
            let bodies = [&[][..], &[0; 4], &[0; 12], &[0; 16]].map(|body| {
                let octets = with_flags(resv, flags, &[descriptor, body].concat());
                parse(&octets).map(|tpdu| tpdu.kind())
            });
            let understood = bodies.iter().any(Result::is_ok);
            assert_eq!(understood, meant, "resv {resv:04b}, flags {flags:06b}");
            if !meant {
                assert_eq!(
                    bodies,
                    [Err(Reject::Flags); 4],
                    "resv {resv:04b}, flags {flags:06b}"
                );
            }
        }
    }
}

const MACK: u8 = 0b01_0000;
const NACK_RESV: u8 = 0b1000;
const CUMULATIVE_RESV: u8 = 0b0001;

#[test]
fn lists_are_whole_words_and_fit_a_packet() {
    let kind = |resv, flags, bytes| {
        parse(&with_flags(resv, flags, &vec![0; bytes])).map(|tpdu| tpdu.kind())
    };
    let too_odd = Err(Reject::BodyLength);
    let mack = Ok(TpduKind::Mack {
        asyn: false,
        afin: false,
    });
    for (bytes, listed, cumulative) in [
        (0, true, false),
        (3, false, false),
        (4, true, true),
        (6, false, false),
        (365 * 4, true, true),
        (365 * 4 + 1, false, false),
        (366 * 4, false, false),
    ] {
        let expected = |good, kind| if good { kind } else { too_odd };
        assert_eq!(kind(0, MACK, bytes), expected(listed, mack), "{bytes}");
        assert_eq!(
            kind(CUMULATIVE_RESV, MACK, bytes),
            expected(cumulative, mack),
            "{bytes}"
        );
        assert_eq!(
            kind(NACK_RESV, 0, bytes),
            expected(listed, Ok(TpduKind::Nack)),
            "{bytes}"
        );
    }
}

#[test]
fn control_has_no_body_and_data_has_one() {
    const ASYN: u8 = 0b10;
    const AFIN: u8 = 0b01;
    const RST: u8 = 0b100;
    for flags in [AFIN, RST] {
        assert!(parse(&with_flags(0, flags, &[])).is_ok());
        let fat = parse(&with_flags(0, flags, &[0])).unwrap_err();
        assert_eq!(fat, Reject::BodyLength);
    }
    let empty = parse(&with_flags(0, 0, &[])).unwrap_err();
    assert_eq!(empty, Reject::BodyLength);
    let empty_repair = parse(&with_flags(1, 0, &[1, 0, 0, 0])).unwrap_err();
    assert_eq!(empty_repair, Reject::BodyLength);
    let with_body = with_flags(0, ASYN, &[0]);
    let kind = parse(&with_body).unwrap().kind();
    assert_eq!(kind, TpduKind::Data { asyn: true });
}

#[test]
fn a_datagram_may_be_empty_and_has_no_connection() {
    let as_datagram = |mut octets: Vec<u8>| {
        octets[12] &= 0x0F;
        let descriptors = announced(&octets);
        with_right_hec(octets, descriptors)
    };
    let empty = as_datagram(with_flags(0, 0, &[]));
    let kind = parse(&empty).unwrap().kind();
    assert_eq!(kind, TpduKind::Data { asyn: false });
    for name in [
        "asyn",
        "asyn-data",
        "repair",
        "asynack",
        "mack-listed",
        "nack-missing",
        "afin",
        "reset",
    ] {
        let connected = as_datagram(encoded(name));
        assert_eq!(parse(&connected).unwrap_err(), Reject::Flags, "{name}");
    }
}

#[test]
fn reserved_values_are_refused_each_under_its_own_name() {
    for code in 7..16 {
        let mut octets = encoded("data");
        octets[12] = code << 4 | octets[12] & 0x0F;
        let reject = parse(&with_right_hec(octets, 0)).unwrap_err();
        assert_eq!(reject, Reject::ReservedMode(code));
    }
    let refused = |octets: Vec<u8>| parse(&with_right_hec(octets, 4)).unwrap_err();
    for (at, octet) in [(16, 2), (17, 1), (18, 2), (19, 0)] {
        let mut octets = encoded("data-fec");
        octets[at] = octet;
        assert_eq!(refused(octets), Reject::FecDescriptor, "octet {at}");
    }
    let mut without_crc = encoded("data-fec");
    without_crc[12] &= !0b0100;
    assert_eq!(refused(without_crc), Reject::FecDescriptor);
    let mut block = encoded("repair");
    block[19] = 1;
    assert_eq!(refused(block), Reject::BlockDescriptor);
}

#[test]
fn parity_must_be_there_in_full() {
    let sound = encoded("data-fec");
    let mut more = sound.clone();
    more[18..20].copy_from_slice(&[1, 0]);
    assert_eq!(
        parse(&with_right_hec(more, 4)).unwrap_err(),
        Reject::Truncated
    );
    let two = FecStrength::from_words(2).unwrap();
    let (covered, parity) = split_parity(&sound, two).unwrap();
    let tpdu = parse(&sound).unwrap();
    assert_eq!((covered, parity), (tpdu.covered, tpdu.parity));
    assert!(split_parity(&sound[..16 + 4 + 4 + 8], two).is_some());
    assert!(split_parity(&sound[..16 + 4 + 4 + 7], two).is_none());
    assert!(split_parity(&sound, FecStrength::MAX).is_none());
    assert!(split_parity(&sound, FecStrength::NONE).is_none());
}

#[test]
fn every_reason_has_a_counter_of_its_own() {
    let reasons = [
        Reject::Truncated,
        Reject::HeaderCheck,
        Reject::ReservedMode(9),
        Reject::Flags,
        Reject::FecDescriptor,
        Reject::BlockDescriptor,
        Reject::BodyLength,
        Reject::BodyCheck,
        Reject::UnknownName(short::Name(0)),
        Reject::Ranges,
        Reject::FrameType(7),
    ];
    assert_eq!(reasons.map(Reject::name), Reject::NAMES);
}

/// Asserts that a TPDU parsed from `octets` encodes to the same octets, read as lists where it is
/// one.
fn holds_together(octets: &[u8]) {
    let Ok(tpdu) = parse(octets) else {
        return;
    };
    if let Ok(mack) = Mack::of(&tpdu) {
        let count = match mack.acks {
            Acks::Listed { further, .. } => further.len(),
            // A path report is two words.
            Acks::Cumulative {
                channel,
                report,
                above,
                ..
            } => {
                let words = usize::from(channel.is_some()) + 2 * usize::from(report.is_some());
                above.len() + 1 + words
            }
        };
        assert_eq!(count * 4, tpdu.body.len());
    }
    if let Ok(nack) = Nack::of(&tpdu) {
        assert_eq!(nack.wanted().count() * 4, tpdu.body.len() + 4);
    }
    let mut again = Vec::new();
    let outgoing = Outgoing {
        header: tpdu.header,
        crc: tpdu.check != BodyCheck::Unchecked,
        fec_words: tpdu.fec_words,
        block: tpdu.block,
        body: tpdu.body,
    };
    encode(&outgoing, &mut again);
    if tpdu.check == BodyCheck::Damaged {
        let checked = again.len() - CRC_BYTES;
        assert_eq!(again[..checked], tpdu.covered[..checked]);
    } else {
        assert_eq!(again, tpdu.covered);
    }
    assert_eq!([tpdu.covered, tpdu.parity].concat(), octets);
}

#[test]
fn every_example_holds_together() {
    for (_, octets) in examples() {
        holds_together(&octets);
    }
}

proptest! {
    #[test]
    fn noise_never_panics(octets in proptest::collection::vec(any::<u8>(), 0..100)) {
        holds_together(&octets);
    }

    #[test]
    fn noise_under_a_right_header_check_never_panics(
        octets in proptest::collection::vec(any::<u8>(), HEADER_BYTES..100), mode in 0_u8..8,
        resv in 0_u8..16, flags: u8, words in 0_u8..16,
    ) {
        let mut octets = octets;
        octets[12] = mode << 4 | resv;
        octets[13] = flags;
        if resv & 2 != 0 && octets.len() >= 20 {
            octets[16..20].copy_from_slice(&[1, 0, 0, words]);
        }
        let descriptors = announced(&octets);
        holds_together(&with_right_hec(octets, descriptors));
    }
}

#[test]
fn a_million_damaged_examples_never_pass_for_another_tpdu() {
    let seed = 0xDA_3A6E;
    let mut stream = Rng::from_seed(seed).child("wire/damage");
    let examples = examples();
    let mut undetected = 0;
    for round in 0..1_000_000 {
        let which = usize::try_from(stream.below(examples.len() as u64)).unwrap();
        let (name, sound) = &examples[which];
        let mut octets = sound.clone();
        for _ in 0..5 + stream.below(20) {
            let bit = stream.below(8 * octets.len() as u64);
            flip(&mut octets, usize::try_from(bit).unwrap());
        }
        if octets == *sound {
            continue;
        }
        holds_together(&octets);
        let Ok(read) = parse(&octets) else { continue };
        let original = parse(sound).unwrap();
        let checked = read.check == BodyCheck::Intact;
        // Without a CRC-32 only the header is vouched for.
        let header_differs = read.header != original.header;
        if header_differs || checked && read.body != original.body {
            undetected += 1;
            assert!(
                !checked,
                "seed {seed}, round {round}, {name}: {octets:02x?}"
            );
        }
    }
    // At most one in 2^16 gets past a 16-bit check: 15.3 expected if every round met the HEC, and
    // the 99.99 % quantile of that Poisson law is 32.
    assert!(undetected <= 32, "seed {seed}: {undetected}");
}

#[test]
fn seq_lists_know_their_length() {
    let octets = encoded("mack-listed");
    let Acks::Listed { first, further } = Mack::of(&parse(&octets).unwrap()).unwrap().acks else {
        panic!("not listed");
    };
    assert_eq!((first, further.len()), (TpduSeq(1000), 2));
}
