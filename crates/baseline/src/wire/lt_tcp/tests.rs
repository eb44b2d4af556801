use super::*;
use crate::wire::tcp::{AddressPair, SackBlock, TcpFlags, TcpHeader, TcpSeq};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::NodeAddress;
use proptest::prelude::*;

fn addresses() -> AddressPair {
    AddressPair::nodes(NodeAddress(1), NodeAddress(2))
}

fn header() -> TcpHeader {
    TcpHeader {
        source: Port(5),
        destination: Port(80),
        seq: TcpSeq(1000),
        ack: TcpSeq(7),
        flags: TcpFlags::ACK,
        window: 512,
        ..TcpHeader::default()
    }
}

fn written(extension: &Extension<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    write_segment(
        &header(),
        extension,
        &addresses(),
        &mut Vec::new(),
        &mut out,
    );
    out
}

#[test]
fn a_unit_has_the_octets_of_the_protocol_page() {
    let unit = UnitHeader {
        ordinal: 0x0102,
        block: 0x0304,
        index: 1,
        k: 3,
        n: 4,
        length: 10,
    };
    let octets = written(&Extension::Unit(unit, b"efgh"));
    let golden = [
        1, 1, 0x01, 0x02, 0x03, 0x04, 3, 4, 0, 0, 0, 10, b'e', b'f', b'g', b'h',
    ];
    assert_eq!(octets[20..], golden);
    assert_eq!((unit.unit_len(), unit.source_len(2)), (4, 2));
}

#[test]
fn feedback_has_the_octets_of_the_protocol_page() {
    let feedback = LtTcpFeedback {
        arrived_end: 0x0102,
        arrivals: 0x0304,
        loss: 0x0506,
        deviation: 0x0708,
        reports: vec![LtTcpBlockReport {
            block: 0x090a,
            received: 11,
            needed: 12,
            lost: 13,
        }],
        runs: vec![SackBlock {
            start: TcpSeq(0x0e0f_1011),
            end: TcpSeq(0x1213_1415),
        }],
    };
    let octets = written(&Extension::Feedback(feedback));
    let golden: Vec<u8> = [2, 0x11].into_iter().chain(1..=0x15).collect();
    assert_eq!(octets[20..], golden);
}

#[test]
fn impossible_units_are_refused() {
    let good = UnitHeader {
        ordinal: 1,
        block: 1,
        index: 0,
        k: 3,
        n: 3,
        length: 9,
    };
    let parses = |unit: UnitHeader, payload: &[u8]| {
        let octets = written(&Extension::Unit(unit, payload));
        LtSegment::parse(&addresses(), &octets).is_ok()
    };
    assert!(parses(good, b"abc"));
    assert!(!parses(good, b"ab"), "a payload of another length");
    let repair = UnitHeader { index: 3, ..good };
    assert!(parses(repair, b"xxxxx") && !parses(repair, b"xxx"));
    let empty_last = UnitHeader {
        k: 4,
        length: 6,
        ..good
    };
    assert!(
        !parses(empty_last, b"ab"),
        "2 + 2 + 2 leaves nothing for the last"
    );
    let too_long = UnitHeader {
        k: 1,
        length: BLOCK_OCTETS_MAX + 1,
        ..good
    };
    assert!(!parses(too_long, b""));
    assert!(
        !parses(UnitHeader { k: 0, ..good }, b""),
        "no block has a length of 9"
    );
    assert!(parses(
        UnitHeader {
            ordinal: 9,
            ..UnitHeader::default()
        },
        b""
    ));
}

proptest! {
    #[test]
    fn any_octets_parse_or_are_refused_and_what_parses_is_written_again_alike(
        payload in proptest::collection::vec(any::<u8>(), 0..200),
        kind in 0_u8..4,
    ) {
        let mut body = payload;
        if let Some(first) = body.first_mut() {
            *first = kind;
        }
        let mut octets = Vec::new();
        header().write(&addresses(), &body, &mut octets);
        if let Ok(segment) = LtSegment::parse(&addresses(), &octets) {
            prop_assert_eq!(written(&segment.extension), octets);
        }
    }

    #[test]
    fn every_unit_of_every_block_comes_back_as_it_was(
        k in 1_u8..=255, unit in 1_u32..2000, short in 0_u32..2000, index: u8, ordinal: u16,
    ) {
        let length = u32::from(k) * unit - short % unit;
        // Units are as even as they can be; a block that this shape cannot have is not sent.
        let unit = UnitHeader { ordinal, block: 9, index, k, n: k, length };
        prop_assume!(unit.offset_of(k - 1) < length);
        let payload = vec![7; unit.payload_len()];
        let octets = written(&Extension::Unit(unit, &payload));
        let segment = LtSegment::parse(&addresses(), &octets).unwrap();
        prop_assert_eq!(segment.extension, Extension::Unit(unit, &payload));
        let total: u32 = (0..k).map(|index| unit.source_len(index)).sum();
        prop_assert_eq!(total, length);
    }
}
