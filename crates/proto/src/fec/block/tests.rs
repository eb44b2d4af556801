//! The law of the code: any k units rebuild the k sources; with fewer, the decoder says how many
//! are missing.
#![expect(
    clippy::cast_possible_truncation,
    reason = "indices and draws stay below the 256 units of a block"
)]

use super::{BlockDecoder, CannotEncode, LENGTH_PREFIX, RejectedUnit, Undecodable, encode_repair};
use crate::rng::Rng;
use core::num::NonZeroU8;

fn decoder(k: usize) -> BlockDecoder {
    BlockDecoder::new(NonZeroU8::new(k as u8).unwrap())
}

/// k payloads of 0..=`longest` octets.
fn payloads(stream: &mut Rng, k: usize, longest: u64) -> Vec<Vec<u8>> {
    let payload = |stream: &mut Rng| {
        let mut octets = vec![0; stream.below(longest + 1) as usize];
        stream.fill(&mut octets);
        octets
    };
    (0..k).map(|_| payload(stream)).collect()
}

fn repair(sources: &[Vec<u8>], index: u8) -> Vec<u8> {
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let mut symbol = Vec::new();
    encode_repair(&sources, index, &mut symbol).unwrap();
    symbol
}

/// Feeds the units in `kept` (sources below k, repairs above) and checks the law.
fn check_law(sources: &[Vec<u8>], kept: &[usize], label: &str) {
    let k = sources.len();
    let mut decoder = decoder(k);
    for (fed, &unit) in kept.iter().enumerate() {
        assert_eq!(decoder.needed(), k.saturating_sub(fed), "{label}");
        if decoder.needed() > 0 {
            let missing = Undecodable::Missing { units: k - fed };
            assert_eq!(decoder.decode(), Err(missing), "{label}");
        }
        if unit < k {
            decoder.add_source(unit as u8, &sources[unit]).unwrap();
        } else {
            let index = (unit - k) as u8;
            decoder.add_repair(index, &repair(sources, index)).unwrap();
        }
    }
    let rebuilt = decoder.decode().unwrap();
    let lost = (0..k).filter(|unit| !kept.contains(unit));
    let expected: Vec<_> = lost
        .map(|unit| (unit as u8, sources[unit].clone()))
        .collect();
    assert_eq!(rebuilt, expected, "{label}");
    assert!(decoder.is_complete());
    assert_eq!(decoder.decode(), Ok(Vec::new()), "rebuilt once: {label}");
}

#[test]
fn any_k_of_n_rebuild_the_block_for_every_pattern_of_every_small_code() {
    let root = Rng::from_seed(0xB10C).child("small codes");
    for n in 1..=10usize {
        for k in 1..=n {
            let mut stream = root.child(&format!("{k} of {n}"));
            let sources = payloads(&mut stream, k, 70);
            for pattern in 0u32..1 << n {
                if pattern.count_ones() as usize == k {
                    let kept: Vec<_> = (0..n).filter(|&unit| pattern >> unit & 1 == 1).collect();
                    check_law(&sources, &kept, &format!("{k} of {n}, kept {kept:?}"));
                }
            }
        }
    }
}

#[test]
fn any_k_of_n_rebuild_large_blocks_in_any_order_of_arrival() {
    const SEED: u64 = 0xB10C;
    let root = Rng::from_seed(SEED).child("large codes");
    for (k, repairs) in [
        (32, 8),
        (64, 16),
        (100, 156),
        (128, 128),
        (223, 33),
        (255, 1),
    ] {
        let mut stream = root.child(&format!("{k} + {repairs}"));
        for sample in 0..12 {
            let sources = payloads(&mut stream, k, 300);
            let mut units: Vec<_> = (0..k + repairs).collect();
            for last in (1..units.len()).rev() {
                units.swap(last, stream.below(last as u64 + 1) as usize);
            }
            units.truncate(k);
            // Surplus repairs are refused once k units are there, so every unit here is taken.
            check_law(
                &sources,
                &units,
                &format!("seed {SEED}, {k} + {repairs}, sample {sample}"),
            );
        }
    }
}

#[test]
fn repair_symbols_are_those_of_the_isa_l_cauchy_matrix() {
    let mut stream = Rng::from_seed(0xB10C).child("oracle");
    for (k, repairs) in [(8, 4), (32, 8), (223, 32)] {
        let longest = 1280;
        let mut sources = payloads(&mut stream, k, longest);
        // The oracle needs one length; the longest payload sets it.
        sources[0].resize(longest as usize, 7);
        let symbol_of = |payload: &Vec<u8>| {
            let mut symbol = (payload.len() as u16).to_be_bytes().to_vec();
            symbol.extend(payload);
            symbol.resize(longest as usize + LENGTH_PREFIX, 0);
            symbol
        };
        let symbols: Vec<Vec<u8>> = sources.iter().map(symbol_of).collect();
        let symbols: Vec<&[u8]> = symbols.iter().map(Vec::as_slice).collect();
        let mut expected = vec![vec![0; longest as usize + LENGTH_PREFIX]; repairs];
        let mut parity: Vec<&mut [u8]> = expected.iter_mut().map(Vec::as_mut_slice).collect();
        let matrix = rusty_erasure::Matrix::cauchy(k, repairs).unwrap();
        let coder = rusty_erasure::coder(matrix).unwrap();
        coder.encode(&symbols, &mut parity).unwrap();
        for (index, expected) in expected.iter().enumerate() {
            let found = repair(&sources, index as u8);
            assert_eq!(&found, expected, "{k} + {repairs}, repair {index}");
        }
    }
}

#[test]
fn a_source_takes_the_place_of_a_repair_symbol_so_that_k_units_are_the_most_held() {
    let sources: Vec<Vec<u8>> = vec![vec![1; 10], vec![2; 20], vec![3; 30]];
    let mut decoder = decoder(3);
    for index in 0..3 {
        decoder.add_repair(index, &repair(&sources, index)).unwrap();
    }
    let surplus = decoder.add_repair(3, &repair(&sources, 3));
    assert_eq!(surplus, Err(RejectedUnit::Surplus));
    decoder.add_source(2, &sources[2]).unwrap();
    assert_eq!(decoder.needed(), 0);
    assert_eq!(decoder.source(2), Some(&sources[2][..]));
    let expected = vec![(0, sources[0].clone()), (1, sources[1].clone())];
    assert_eq!(decoder.decode(), Ok(expected));
    let again = decoder.add_source(0, &sources[0]);
    assert_eq!(again, Err(RejectedUnit::Duplicate { index: 0 }));
}

#[test]
fn units_that_contradict_the_block_are_refused_and_leave_it_usable() {
    let sources: Vec<Vec<u8>> = vec![vec![1; 10], vec![2; 20]];
    let symbol = repair(&sources, 0);
    let mut decoder = decoder(2);
    decoder.add_source(1, &sources[1]).unwrap();
    let outside = RejectedUnit::OutOfRange { index: 2 };
    assert_eq!(decoder.add_source(2, &[]), Err(outside));
    let outside = RejectedUnit::OutOfRange { index: 254 };
    assert_eq!(decoder.add_repair(254, &symbol), Err(outside));
    let duplicate = RejectedUnit::Duplicate { index: 1 };
    assert_eq!(decoder.add_source(1, &sources[1]), Err(duplicate));
    let short = RejectedUnit::Length {
        octets: 21,
        expected: 22,
    };
    assert_eq!(decoder.add_repair(0, &symbol[..21]), Err(short));
    decoder.add_repair(0, &symbol).unwrap();
    let duplicate = RejectedUnit::Duplicate { index: 0 };
    assert_eq!(decoder.add_repair(0, &symbol), Err(duplicate));
    let long = RejectedUnit::Length {
        octets: 23,
        expected: 22,
    };
    assert_eq!(decoder.add_repair(1, &[0; 23]), Err(long));
    assert_eq!(decoder.add_source(0, &[0; 21]), Err(long));
    assert_eq!(decoder.decode(), Ok(vec![(0, sources[0].clone())]));
}

#[test]
fn a_symbol_shorter_than_its_prefix_and_one_past_the_longest_are_refused() {
    for octets in [0, 1] {
        let refused = RejectedUnit::Length {
            octets,
            expected: 2,
        };
        assert_eq!(decoder(1).add_repair(0, &vec![0; octets]), Err(refused));
    }
    decoder(1).add_repair(0, &vec![0; 65_537]).unwrap();
    assert!(decoder(1).add_repair(0, &vec![0; 65_538]).is_err());
    assert!(decoder(1).add_source(0, &vec![0; 65_535]).is_ok());
    assert!(decoder(1).add_source(0, &vec![0; 65_536]).is_err());
}

#[test]
fn a_damaged_unit_is_noticed_by_the_rebuilt_length_or_padding() {
    let sources: Vec<Vec<u8>> = vec![vec![1; 10], vec![2; 20]];
    // The length prefix (first octets) and the padding of source 0 (last octets).
    for octet in [0, 15, 21] {
        let mut symbol = repair(&sources, 0);
        symbol[octet] ^= 0x40;
        let mut decoder = decoder(2);
        decoder.add_source(1, &sources[1]).unwrap();
        decoder.add_repair(0, &symbol).unwrap();
        let corrupt = Undecodable::Corrupt { index: 0 };
        assert_eq!(decoder.decode(), Err(corrupt), "octet {octet}");
        assert_eq!(decoder.needed(), 1, "the damaged symbol is forgotten");
        decoder.add_repair(1, &repair(&sources, 1)).unwrap();
        assert_eq!(decoder.decode(), Ok(vec![(0, sources[0].clone())]));
    }
}

#[test]
fn empty_payloads_are_rebuilt_empty() {
    let sources = vec![Vec::new(); 3];
    check_law(&sources, &[3, 4, 1], "three empty payloads");
}

#[test]
fn a_repair_symbol_that_does_not_exist_is_refused_and_nothing_is_appended() {
    let mut out = vec![9];
    let refused = encode_repair(&[], 0, &mut out);
    assert_eq!(refused, Err(CannotEncode::SourceCount { sources: 0 }));
    let payload: &[u8] = &[1];
    let refused = encode_repair(&[payload; 256], 0, &mut out);
    assert_eq!(refused, Err(CannotEncode::SourceCount { sources: 256 }));
    let refused = encode_repair(&[payload; 255], 1, &mut out);
    let expected = CannotEncode::RepairIndex {
        repair_index: 1,
        sources: 255,
    };
    assert_eq!(refused, Err(expected));
    let long = vec![0; 65_536];
    let refused = encode_repair(&[&long], 0, &mut out);
    assert_eq!(
        refused,
        Err(CannotEncode::PayloadTooLong { octets: 65_536 })
    );
    assert_eq!(out, [9]);
    encode_repair(&[payload; 255], 0, &mut out).unwrap();
    assert_eq!(out.len(), 1 + LENGTH_PREFIX + 1);
}
