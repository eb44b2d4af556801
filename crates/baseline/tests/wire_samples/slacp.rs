//! Samples of SLACP's frames.

use super::sample::{Sample, hold};
use fulmar_baseline::wire::link::slacp::{
    BlockPlace, FrameSeq, Incarnation, Lane, LaneSet, Missing, SlacpFrame, encode_ack,
    encode_again, encode_challenge, encode_data, encode_floor, encode_hello, encode_parity, parse,
};
use fulmar_baseline::wire::link::{Challenge, FrameReject};
use fulmar_proto::wire::checksum::crc32_after;
use std::collections::BTreeSet;

const LIFE: Incarnation = Incarnation(0x1234_5678);
const PEER: Incarnation = Incarnation(0x9ABC_DEF0);

/// A function that makes one sample.
type Make = fn(&mut Vec<u8>);

fn all() -> Vec<(&'static str, Vec<u8>)> {
    const PLACE: BlockPlace = BlockPlace { block: 3, index: 4 };
    let makes: [(&'static str, Make); 9] = [
        ("hello", |out| {
            let starts = [0, 1, 2, 1_000, 2_000, 3_000, 65_534, 65_535].map(FrameSeq);
            let under_way = LaneSet::default().with(Lane::new(0)).with(Lane::new(7));
            encode_hello(LIFE, Challenge::NONE, under_way, starts, out);
        }),
        ("hello of the peer, with an answer", |out| {
            let none = LaneSet::default();
            encode_hello(PEER, Challenge(77), none, [FrameSeq(65_535); 8], out);
        }),
        ("challenge", |out| encode_challenge(Challenge(0xC4A1), out)),
        ("data", |out| {
            encode_data(LIFE, Lane::new(5), FrameSeq(513), b"a packet", out);
        }),
        ("again", |out| {
            encode_again(LIFE, Lane::new(7), FrameSeq(513), PLACE, b"a packet", out);
        }),
        ("parity", |out| {
            encode_parity(LIFE, Lane::new(0), 255, PLACE, b"symbol", out);
        }),
        ("ack", |out| {
            let numbers = (FrameSeq(9), FrameSeq(9));
            encode_ack(LIFE, Lane::new(2), PEER, numbers, std::iter::empty(), out);
        }),
        ("ack with ranges", |out| {
            let missing = [(65_530, 3), (65_534, 1), (2, 4)].map(|(start, count)| Missing {
                start: FrameSeq(start),
                count,
            });
            let numbers = (FrameSeq(65_530), FrameSeq(20));
            encode_ack(LIFE, Lane::new(2), PEER, numbers, missing.into_iter(), out);
        }),
        ("floor", |out| {
            encode_floor(LIFE, Lane::new(1), FrameSeq(4_242), out);
        }),
    ];
    makes
        .map(|(name, make)| {
            let mut octets = Vec::new();
            make(&mut octets);
            (name, octets)
        })
        .to_vec()
}

/// Adds the fields of frames with lanes. Returns the lane.
fn read_packets(sample: &mut Sample, frame: &SlacpFrame<'_>) -> Option<Lane> {
    let mut carried = None;
    let mut field = |name: &str, value: u32| sample.field(&format!("fulmar.slacp.{name}"), value);
    let lane = match *frame {
        SlacpFrame::Data { lane, seq, packet } => {
            field("seq", seq.0.into());
            carried = Some(("packet", packet));
            lane
        }
        SlacpFrame::Again {
            lane,
            seq,
            place: BlockPlace { block, index },
            packet,
        } => {
            field("seq", seq.0.into());
            field("block", block.into());
            field("index", index.into());
            carried = Some(("packet", packet));
            lane
        }
        SlacpFrame::Parity {
            lane,
            sources,
            place: BlockPlace { block, index },
            symbol,
        } => {
            field("sources", sources.into());
            field("block", block.into());
            field("index", index.into());
            carried = Some(("symbol", symbol));
            lane
        }
        SlacpFrame::Ack { lane, ack } => {
            field("expected", ack.expected.0.into());
            field("end", ack.end.0.into());
            for Missing { start, count } in ack.missing() {
                field("missing.start", start.0.into());
                field("missing.count", count.into());
            }
            sample.field("fulmar.slacp.peer", format!("0x{:08x}", ack.peer.0));
            lane
        }
        SlacpFrame::Floor { lane, floor } => {
            field("floor", floor.0.into());
            lane
        }
        SlacpFrame::Hello { .. } | SlacpFrame::Challenge { .. } => return None,
    };
    if let Some((name, octets)) = carried {
        sample.octets(&format!("fulmar.slacp.{name}"), octets);
    }
    Some(lane)
}

/// Adds the fields of frames that introduce an end.
fn read_introduction(sample: &mut Sample, frame: &SlacpFrame<'_>) {
    let word = |value: u32| format!("0x{value:08x}");
    match *frame {
        SlacpFrame::Hello {
            incarnation,
            answer,
            under_way,
            starts,
        } => {
            let lanes = Lane::all().filter(|lane| under_way.contains(*lane));
            let lanes = lanes.fold(0_u8, |set, lane| set | 1 << lane.index());
            sample.field("fulmar.slacp.incarnation", word(incarnation.0));
            sample.field("fulmar.slacp.answer", word(answer.0));
            sample.field("fulmar.slacp.under_way", format!("0x{lanes:02x}"));
            for start in starts {
                sample.field("fulmar.slacp.start", start.0);
            }
        }
        SlacpFrame::Challenge { challenge } => {
            sample.field("fulmar.slacp.challenge", word(challenge.0));
        }
        _ => {}
    }
}

fn read(name: &str, octets: &[u8]) -> Sample {
    let mut sample = Sample::new(name, octets);
    let frame = parse(octets, LIFE).expect("samples are valid");
    sample.field("fulmar.slacp.type", octets[0] >> 5);
    sample.field("fulmar.slacp.form", octets[0] & 3);
    sample.field("fulmar.slacp.check.status", 1);
    let lane = read_packets(&mut sample, &frame);
    sample.field("fulmar.slacp.lane", lane.map_or(0, Lane::index));
    if lane.is_some() {
        sample.field("fulmar.slacp.sender", format!("0x{:08x}", LIFE.0));
    } else {
        read_introduction(&mut sample, &frame);
    }
    sample
}

#[test]
fn the_samples_of_slacp_are_what_the_codec_writes_and_reads() {
    let samples: Vec<Sample> = all()
        .iter()
        .map(|(name, octets)| read(name, octets))
        .collect();
    hold("slacp", &samples);
}

#[test]
fn every_kind_of_slacp_frame_that_the_codec_knows_has_a_sample() {
    let sampled: BTreeSet<u8> = all().iter().map(|(_, octets)| octets[0] & 0xE3).collect();
    let is_known = |first: &u8| {
        let mut content = vec![*first];
        content.resize(20, 0);
        [LIFE, Incarnation::UNKNOWN].into_iter().any(|sender| {
            let mut frame = content.clone();
            let check = crc32_after(&sender.0.to_be_bytes(), &content);
            frame.extend_from_slice(&check.to_be_bytes());
            let reject = parse(&frame, LIFE);
            reject != Err(FrameReject::Kind) && reject != Err(FrameReject::Check)
        })
    };
    let known: BTreeSet<u8> = (0..=u8::MAX)
        .filter(|first| first & 0x1C == 0)
        .filter(is_known)
        .collect();
    assert_eq!(known, sampled);
}
