//! The specification's examples with parity and repair symbols equal what the codes compute.
//!
//! `wire` and `fec` know nothing of each other; here both are compared with the same page.

use fulmar_proto::fec::block::encode_repair;
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::wire::aerotp::{BodyCheck, parse};

const SPECIFICATION: &str = include_str!("../../../docs/protocol/aerotp.md");

fn example(name: &str) -> Vec<u8> {
    let opening = format!("```hex {name}\n");
    let start = SPECIFICATION.find(&opening);
    let start = start.expect("the specification has this example");
    let lines = SPECIFICATION[start..].lines().skip(1);
    lines
        .take_while(|line| !line.starts_with("```"))
        .filter_map(|line| line.split(';').next())
        .flat_map(str::split_whitespace)
        .map(|octet| u8::from_str_radix(octet, 16).expect("two hex digits"))
        .collect()
}

/// The long form's part of the page, and the short one's.
fn parts() -> (&'static str, &'static str) {
    let parts = SPECIFICATION.split_once("\n## 11. ");
    parts.expect("the last section has the short form")
}

/// The names of all examples in a part, in the page's order.
fn names(part: &'static str) -> impl Iterator<Item = &'static str> {
    part.lines().filter_map(|line| line.strip_prefix("```hex "))
}

#[test]
fn the_parity_example_is_what_the_code_appends() {
    let octets = example("data-fec");
    let tpdu = parse(&octets).unwrap();
    let mut sent = tpdu.covered.to_vec();
    PacketCode::new().append_parity(&mut sent, 0, tpdu.fec_words);
    let parity = &sent[tpdu.covered.len()..];
    assert_eq!(parity, tpdu.parity, "{parity:02x?}");
}

#[test]
fn four_wrong_octets_anywhere_in_the_parity_example_are_repaired() {
    let sound = example("data-fec");
    let strength = parse(&sound).unwrap().fec_words;
    let mut code = PacketCode::new();
    for first in 0..sound.len() {
        let mut octets = sound.clone();
        for step in 0..4 {
            let at = (first + 7 * step) % sound.len();
            octets[at] ^= 0x5A;
        }
        let corrected = code.correct(&mut octets, strength).unwrap();
        assert_eq!(corrected.symbols, 4, "from octet {first}");
        assert_eq!(octets, sound, "from octet {first}");
        assert_eq!(parse(&octets).unwrap().check, BodyCheck::Intact);
    }
}

#[test]
fn the_repair_example_is_the_symbol_of_the_data_example() {
    let (data, repair) = (example("data"), example("repair"));
    let (data, repair) = (parse(&data).unwrap(), parse(&repair).unwrap());
    let mut symbol = Vec::new();
    encode_repair(&[data.body], 0, &mut symbol).unwrap();
    assert_eq!(symbol, repair.body);
}

#[test]
fn the_repair_example_of_the_short_form_has_the_same_symbol() {
    let long = example("repair");
    let symbol = parse(&long).unwrap().body;
    assert!(example("short-repair").ends_with(symbol));
}

#[test]
fn the_fuzz_targets_start_from_the_examples() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");
    let (long, short) = parts();
    for (target, part, least) in [("wire_tpdu", long, 14), ("wire_short", short, 10)] {
        assert!(names(part).count() >= least);
        for name in names(part) {
            let seed = std::fs::read(format!("{seeds}/{target}/{name}"));
            assert_eq!(
                seed.expect("each example is a seed"),
                example(name),
                "{name}"
            );
        }
    }
}
