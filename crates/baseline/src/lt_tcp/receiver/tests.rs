use super::*;
use crate::stream::Owed;
use fulmar_proto::fec::block::encode_repair;
use fulmar_proto::units::ByteCount;

fn receiver() -> LtTcpReceiver {
    LtTcpReceiver::new(&LtTcpConfig {
        receive_buffer: ByteCount(10_000),
        ..LtTcpConfig::default()
    })
}

/// Unit `index` of block `block`, ten octets in each of three sources.
fn unit(ordinal: u16, block: u16, index: u8) -> UnitHeader {
    UnitHeader {
        ordinal,
        block,
        index,
        k: 3,
        n: 3,
        length: 30,
    }
}

fn source(receiver: &mut LtTcpReceiver, ordinal: u16, block: u16, index: u8) {
    let position = u64::from(block) * 30 + u64::from(index) * 10;
    let unit = unit(ordinal, block, index);
    receiver.on_unit(Instant::START, position, &unit, &[index; 10], false);
}

fn repair(receiver: &mut LtTcpReceiver, ordinal: u16, block: u16, repair_index: u8) {
    let sources = [[0; 10], [1; 10], [2; 10]];
    let slices: Vec<&[u8]> = sources.iter().map(<[u8; 10]>::as_slice).collect();
    let mut symbol = Vec::new();
    encode_repair(&slices, repair_index, &mut symbol).unwrap();
    let unit = unit(ordinal, block, 3 + repair_index);
    let position = u64::from(block) * 30;
    receiver.on_unit(Instant::START, position, &unit, &symbol, false);
}

fn read(receiver: &mut LtTcpReceiver) -> Vec<u8> {
    core::iter::from_fn(|| receiver.read()).flatten().collect()
}

#[test]
fn sources_are_readable_before_their_block_is_whole() {
    let mut receiver = receiver();
    source(&mut receiver, 0, 0, 0);
    assert_eq!(read(&mut receiver), [0; 10]);
    assert!(
        matches!(receiver.answers.owed(), Owed::At(_)),
        "in order can wait"
    );
}

#[test]
fn a_hole_is_told_at_once_with_the_units_still_needed_and_any_unit_fills_it() {
    let mut receiver = receiver();
    source(&mut receiver, 0, 0, 0);
    source(&mut receiver, 2, 0, 2);
    assert_eq!(receiver.answers.owed(), Owed::Now);
    let expected = LtTcpBlockReport {
        block: 0,
        received: 2,
        needed: 1,
        lost: 1,
    };
    assert_eq!(receiver.reports(), [expected]);
    assert!(receiver.runs().eq(core::iter::once(20..30)));
    repair(&mut receiver, 3, 0, 7);
    assert_eq!(receiver.next(), 30);
    assert_eq!((receiver.reports(), receiver.recovered()), (vec![], 1));
    let all: Vec<u8> = [[0; 10], [1; 10], [2; 10]].concat();
    assert_eq!(read(&mut receiver), all);
}

#[test]
fn a_whole_block_beyond_a_hole_is_told_as_needing_nothing() {
    let mut receiver = receiver();
    for index in 0..3 {
        source(&mut receiver, 3 + u16::from(index), 1, index);
    }
    let reports = receiver.reports();
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[0].block, reports[0].needed), (1, 0));
}

#[test]
fn blocks_that_overlap_or_lie_beyond_the_window_take_no_memory() {
    let mut receiver = receiver();
    source(&mut receiver, 0, 2, 1);
    for shift in [1, 7, 29] {
        let odd = UnitHeader {
            index: 3,
            ..unit(1, 9, 0)
        };
        receiver.on_unit(Instant::START, 60 + shift, &odd, &[0; 12], false);
    }
    receiver.on_unit(Instant::START, 9_990, &unit(2, 8, 0), &[0; 10], false);
    assert_eq!(receiver.blocks.len(), 1);
    for block in 3..200 {
        source(&mut receiver, 2 + block, block, 1);
    }
    assert_eq!(receiver.blocks.len(), BLOCKS_MAX);
    assert_eq!(receiver.reports().len(), REPORTS_MAX);
}

#[test]
fn a_block_whose_units_contradict_each_other_begins_anew() {
    let mut receiver = receiver();
    source(&mut receiver, 0, 0, 0);
    // Parity of other sources: the symbol that it rebuilds is none.
    let mut wrong = Vec::new();
    encode_repair(&[&[9; 10], &[9; 10], &[9; 9]], 0, &mut wrong).unwrap();
    wrong[1] ^= 0x55;
    for index in [3, 4] {
        let unit = unit(u16::from(index), 0, index);
        receiver.on_unit(Instant::START, 0, &unit, &wrong, false);
    }
    assert_eq!(receiver.reports(), [], "all of it is asked for again");
    for index in 0..3 {
        source(&mut receiver, 10 + u16::from(index), 0, index);
    }
    assert_eq!(receiver.next(), 30);
}

#[test]
fn a_fin_counts_when_everything_before_it_is_here() {
    let mut receiver = receiver();
    let fin = UnitHeader {
        ordinal: 9,
        ..UnitHeader::default()
    };
    receiver.on_unit(Instant::START, 30, &fin, &[], true);
    assert!(!receiver.is_finished());
    for index in 0..3 {
        source(&mut receiver, u16::from(index), 0, index);
    }
    assert!(receiver.is_finished());
    assert_eq!(receiver.next(), 31);
}
