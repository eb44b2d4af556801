use super::*;
use proptest::prelude::*;

const ME: Incarnation = Incarnation(0x0102_0304);
const LANE: Lane = Lane(2);

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

#[test]
fn golden_octets() {
    let data = written(|out| encode_data(ME, LANE, FrameSeq(0x1234), b"hi", out));
    assert_eq!(data[..5], [0x08, 0x12, 0x34, b'h', b'i']);
    assert_eq!(data.len(), 2 + SLACP_OVERHEAD_BYTES);
    let place = BlockPlace { block: 7, index: 1 };
    let again = written(|out| encode_again(ME, LANE, FrameSeq(1), place, b"hi", out));
    assert_eq!(again[..7], [0x28, 0, 1, 7, 1, b'h', b'i']);
    assert_eq!(again.len(), 2 + SLACP_BLOCK_OVERHEAD_BYTES);
    let missing = [Missing {
        start: FrameSeq(11),
        count: 3,
    }];
    let ends = (FrameSeq(10), FrameSeq(20));
    let ack = written(|out| encode_ack(ME, LANE, Incarnation(9), ends, missing.into_iter(), out));
    assert_eq!(ack[..13], [0x68, 0, 10, 0, 0, 0, 9, 0, 20, 0, 11, 0, 3]);
    let floor = written(|out| encode_floor(ME, LANE, FrameSeq(5), out));
    assert_eq!(floor[..3], [0x88, 0, 5]);
    let hello =
        written(|out| encode_hello(ME, Challenge(9), LaneSet(4), [FrameSeq(1); LANES], out));
    assert_eq!(hello[..14], [0x81, 0, 0, 1, 2, 3, 4, 0, 0, 0, 9, 4, 0, 1]);
    assert_eq!(hello.len(), 3 + 4 + 4 + 1 + 16 + 4);
    let challenge = written(|out| encode_challenge(Challenge(0x0A0B_0C0D), out));
    assert_eq!(challenge[..7], [0x82, 0, 0, 10, 11, 12, 13]);
    assert_eq!(challenge.len(), 3 + 4 + 4);
}

#[test]
fn what_contradicts_itself_is_refused() {
    let ends = (FrameSeq(10), FrameSeq(20));
    let refused = |start: u16, count: u16| {
        let missing = [Missing {
            start: FrameSeq(start),
            count,
        }];
        let ack = written(|out| encode_ack(ME, LANE, ME, ends, missing.into_iter(), out));
        parse(&ack, ME).err()
    };
    assert_eq!(refused(10, 9), None);
    // The last packet before `end` must have come, or `end` would be another number.
    assert_eq!(refused(10, 10), Some(FrameReject::Shape));
    assert_eq!(refused(9, 1), Some(FrameReject::Shape));
    assert_eq!(refused(12, 0), Some(FrameReject::Shape));
    assert_eq!(refused(12, u16::MAX), Some(FrameReject::Shape));
    let empty = written(|out| encode_data(ME, LANE, FrameSeq(0), b"", out));
    assert_eq!(parse(&empty, ME), Err(FrameReject::Shape));
    let unknown = written(|out| {
        encode_hello(
            Incarnation::UNKNOWN,
            Challenge::NONE,
            LaneSet(0),
            [FrameSeq(0); LANES],
            out,
        );
    });
    assert_eq!(parse(&unknown, ME), Err(FrameReject::Shape));
    let place = BlockPlace { block: 0, index: 0 };
    let none = written(|out| encode_parity(ME, LANE, 0, place, b"symbol", out));
    assert_eq!(parse(&none, ME), Err(FrameReject::Shape));
}

#[test]
fn frames_of_another_incarnation_fail_the_check_and_a_hello_does_not() {
    let data = written(|out| encode_data(ME, LANE, FrameSeq(0), b"hi", out));
    assert!(parse(&data, ME).is_ok());
    assert_eq!(parse(&data, Incarnation(5)), Err(FrameReject::Check));
    assert_eq!(parse(&data, Incarnation::UNKNOWN), Err(FrameReject::Check));
    let hello =
        written(|out| encode_hello(ME, Challenge::NONE, LaneSet(4), [FrameSeq(0); LANES], out));
    assert!(parse(&hello, Incarnation(5)).is_ok());
    // Even a frame that was sealed under zero does not pass as a data frame.
    let forged = written(|out| encode_data(Incarnation::UNKNOWN, LANE, FrameSeq(0), b"x", out));
    assert_eq!(
        parse(&forged, Incarnation::UNKNOWN),
        Err(FrameReject::Check)
    );
}

proptest! {
    #[test]
    fn frames_come_back_as_they_were_written(
        lane in 0_u8..8,
        seq in any::<u16>(),
        block in any::<u8>(),
        index in any::<u8>(),
        packet in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let (lane, seq, place) = (Lane::new(lane), FrameSeq(seq), BlockPlace { block, index });
        let frame = written(|out| encode_data(ME, lane, seq, &packet, out));
        prop_assert_eq!(parse(&frame, ME), Ok(SlacpFrame::Data { lane, seq, packet: &packet }));
        let frame = written(|out| encode_again(ME, lane, seq, place, &packet, out));
        prop_assert_eq!(parse(&frame, ME), Ok(SlacpFrame::Again { lane, seq, place, packet: &packet }));
        let frame = written(|out| encode_parity(ME, lane, 5, place, &packet, out));
        let parity = SlacpFrame::Parity { lane, sources: 5, place, symbol: &packet };
        prop_assert_eq!(parse(&frame, ME), Ok(parity));
        let frame = written(|out| encode_floor(ME, lane, seq, out));
        prop_assert_eq!(parse(&frame, ME), Ok(SlacpFrame::Floor { lane, floor: seq }));
        let challenge = Challenge(u32::from(seq.0));
        let frame = written(|out| encode_challenge(challenge, out));
        prop_assert_eq!(parse(&frame, Incarnation(5)), Ok(SlacpFrame::Challenge { challenge }));
        let starts = [seq; LANES];
        let under_way = LaneSet(block);
        let frame = written(|out| encode_hello(ME, challenge, under_way, starts, out));
        let hello = SlacpFrame::Hello { incarnation: ME, answer: challenge, under_way, starts };
        prop_assert_eq!(parse(&frame, Incarnation::UNKNOWN), Ok(hello));
    }

    #[test]
    fn a_wrong_bit_or_a_cut_is_noticed(
        packet in prop::collection::vec(any::<u8>(), 1..200),
        bit in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let frame = written(|out| encode_data(ME, LANE, FrameSeq(3), &packet, out));
        let mut damaged = frame.clone();
        let bit = bit.index(frame.len() * 8);
        damaged[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(parse(&damaged, ME).is_err());
        prop_assert!(parse(&frame[..cut.index(frame.len())], ME).is_err());
    }

    #[test]
    fn no_octets_break_the_parser(octets in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut sealed = octets.clone();
        let check = crc32_after(&ME.0.to_be_bytes(), &octets);
        sealed.extend_from_slice(&check.to_be_bytes());
        for frame in [&octets, &sealed] {
            if let Ok(SlacpFrame::Ack { ack, .. }) = parse(frame, ME) {
                let span = u32::from(ack.end.offset_from(ack.expected));
                prop_assert!(ack.missing().map(|range| u32::from(range.count)).sum::<u32>() <= span);
            }
        }
    }
}
