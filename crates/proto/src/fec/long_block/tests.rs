use super::*;
use crate::Rng;

fn octets(seed: u64, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    Rng::from_seed(seed).fill(&mut octets);
    octets
}

/// All units from 0 to `count` - 1.
fn units(block: LongBlock, sources: &[u8], count: u32) -> Vec<Vec<u8>> {
    let encoder = LongBlockEncoder::new(block, sources);
    let symbol_bytes = usize::from(block.symbol_bytes());
    let mut units: Vec<Vec<u8>> = sources.chunks(symbol_bytes).map(<[u8]>::to_vec).collect();
    while (units.len() as u64) < u64::from(count) {
        let first = u32::try_from(units.len()).expect("few");
        let repairs = encoder.repairs(first, count - first);
        assert!(!repairs.is_empty(), "{block:?} has no unit {first}");
        units.extend(repairs.chunks(symbol_bytes).map(<[u8]>::to_vec));
    }
    units
}

fn rebuilt(block: LongBlock, units: &[Vec<u8>], chosen: &[u32]) -> Option<Vec<u8>> {
    let mut decoder = LongBlockDecoder::new(block);
    for &unit in chosen {
        decoder.add(unit, &units[unit as usize]).expect("it is new");
    }
    decoder.rebuild()
}

/// `count` numbers below `below`, each once, in no order.
fn drawn(rng: &mut Rng, below: u32, count: usize) -> Vec<u32> {
    let mut all: Vec<u32> = (0..below).collect();
    for place in 0..count {
        let left = (all.len() - place) as u64;
        let other = place + usize::try_from(rng.below(left)).expect("small");
        all.swap(place, other);
    }
    all.truncate(count);
    all
}

#[test]
fn every_choice_of_k_units_rebuilds_a_small_block() {
    for k in 1..=5_u16 {
        let block = LongBlock::new(k, 6).expect("it is one");
        let sources = octets(u64::from(k), usize::from(k) * 6);
        let units = units(block, &sources, 9);
        for set in 0_u32..1 << 9 {
            let chosen: Vec<u32> = (0..9).filter(|unit| set >> unit & 1 == 1).collect();
            if chosen.len() == usize::from(k) {
                let got = rebuilt(block, &units, &chosen);
                assert_eq!(got.as_ref(), Some(&sources), "k {k}, units {chosen:?}");
            }
        }
    }
}

#[test]
fn any_k_units_rebuild_a_large_block_wherever_they_lie() {
    let mut rng = Rng::from_seed(7);
    for (k, count) in [(100, 300), (257, 1_200), (1_000, 1_300), (1_024, 3_000)] {
        let block = LongBlock::new(k, 4).expect("it is one");
        let sources = octets(u64::from(k), usize::from(k) * 4);
        let units = units(block, &sources, count);
        for _ in 0..3 {
            let chosen = drawn(&mut rng, count, k.into());
            assert!(
                rebuilt(block, &units, &chosen) == Some(sources.clone()),
                "k {k}"
            );
        }
    }
}

#[test]
fn the_last_units_of_the_largest_block_rebuild_it() {
    let block = LongBlock::new(LONG_SOURCES_MAX, 2).expect("it is one");
    let sources = octets(3, usize::from(LONG_SOURCES_MAX) * 2);
    let encoder = LongBlockEncoder::new(block, &sources);
    let first = block.units() - u32::from(LONG_SOURCES_MAX);
    let repairs = encoder.repairs(first, LONG_SOURCES_MAX.into());
    let mut decoder = LongBlockDecoder::new(block);
    for (unit, octets) in (first..).zip(repairs.chunks(2)) {
        decoder.add(unit, octets).expect("it is new");
    }
    assert!(decoder.rebuild() == Some(sources));
    assert!(
        encoder.repairs(block.units(), 1).is_empty(),
        "one past the last"
    );
    assert!(encoder.repairs(0, 1).is_empty(), "a source");
}

#[test]
fn one_unit_less_than_k_rebuilds_nothing() {
    let block = LongBlock::new(10, 4).expect("it is one");
    let sources = octets(1, 40);
    let units = units(block, &sources, 20);
    let mut decoder = LongBlockDecoder::new(block);
    for unit in 5..14 {
        decoder.add(unit, &units[unit as usize]).expect("it is new");
    }
    assert_eq!(decoder.needed(), 1);
    assert_eq!(decoder.clone().rebuild(), None);
    assert_eq!(
        decoder.add(5, &units[5]),
        Err(RejectedLongUnit::Duplicate(5))
    );
    assert_eq!(decoder.add(14, &[0; 3]), Err(RejectedLongUnit::Length(3)));
    let past = block.units();
    assert_eq!(
        decoder.add(past, &[0; 4]),
        Err(RejectedLongUnit::OutOfRange(past))
    );
    decoder.add(19, &units[19]).expect("it is new");
    assert_eq!(decoder.add(18, &units[18]), Err(RejectedLongUnit::Surplus));
    assert_eq!(decoder.rebuild(), Some(sources));
}

#[test]
fn octets_that_are_missing_at_the_end_count_as_zeros() {
    let block = LongBlock::new(3, 4).expect("it is one");
    for len in 0..12 {
        let cut = octets(2, len);
        let mut whole = cut.clone();
        whole.resize(12, 0);
        let repairs = |octets: &[u8]| LongBlockEncoder::new(block, octets).repairs(3, 1);
        assert_eq!(repairs(&cut), repairs(&whole), "{len}");
    }
}

#[test]
fn dimensions_have_bounds() {
    assert!(LongBlock::new(0, 4).is_none());
    assert!(LongBlock::new(LONG_SOURCES_MAX, 4).is_some());
    assert!(LongBlock::new(LONG_SOURCES_MAX + 1, 4).is_none());
    assert!(LongBlock::new(1, 3).is_none());
    assert!(LongBlock::new(1, 0).is_none());
    assert_eq!(
        LongBlock::new(LONG_SOURCES_MAX, 4).map(LongBlock::units),
        Some(LONG_UNITS_MAX)
    );
    assert_eq!(
        LongBlock::new(3, 4).map(LongBlock::units),
        Some(LONG_UNITS_MAX - 1)
    );
}
