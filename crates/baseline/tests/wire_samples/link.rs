//! Samples of the frames of plain, ARQ and LL-HARQ.

use super::sample::{Sample, hold};
use fulmar_baseline::wire::link::arq::{ArqFrame, Epoch, push_range, ranges as arq_ranges};
use fulmar_baseline::wire::link::harq::{
    HarqBlockReport, HarqFeedback, HarqFrame, HarqUnit, LEFT_OPEN, UnitKind,
};
use fulmar_baseline::wire::link::{Challenge, FrameNumber, FrameReject, plain, seal};
use fulmar_proto::wire::checksum::{crc32, hec};
use std::collections::BTreeSet;

const EPOCH: Epoch = Epoch(0xE0C1);
const CHALLENGE: Challenge = Challenge(0xC4A1_1E46);

fn arq(frame: &ArqFrame<'_>) -> Vec<u8> {
    let mut octets = Vec::new();
    frame.encode(&mut octets);
    octets
}

fn harq(frame: &HarqFrame<'_>) -> Vec<u8> {
    let mut octets = Vec::new();
    frame.encode(&mut octets);
    octets
}

fn unit(kind: UnitKind, octets: &[u8]) -> Vec<u8> {
    let unit = HarqUnit {
        epoch: EPOCH,
        serial: 200,
        block: FrameNumber(513),
        before: 9,
        kind,
    };
    harq(&HarqFrame::Unit(unit, octets))
}

fn arq_samples() -> Vec<(&'static str, Vec<u8>)> {
    let data = |again| ArqFrame::Data {
        epoch: EPOCH,
        number: FrameNumber(772),
        base: FrameNumber(65_535),
        again,
        packet: b"a packet",
    };
    let ack = |bits| ArqFrame::Ack {
        epoch: EPOCH,
        next: FrameNumber(772),
        bits,
    };
    let request = |runs: &[(u16, u16)]| {
        let mut ranges = Vec::new();
        for (first, count) in runs {
            push_range(FrameNumber(*first), *count, &mut ranges);
        }
        arq(&ArqFrame::Request {
            epoch: EPOCH,
            ranges: &ranges,
        })
    };
    vec![
        ("arq data", arq(&data(false))),
        ("arq again", arq(&data(true))),
        (
            "arq advance",
            arq(&ArqFrame::Advance {
                epoch: EPOCH,
                base: FrameNumber(9),
            }),
        ),
        ("arq ack", arq(&ack(b""))),
        ("arq ack with bits", arq(&ack(b"\x80\x01"))),
        ("arq ack with all bits", arq(&ack(&[0xA5; 128]))),
        ("arq challenge", arq(&ArqFrame::Challenge(CHALLENGE))),
        (
            "arq answer",
            arq(&ArqFrame::Answer {
                epoch: EPOCH,
                base: FrameNumber(9),
                challenge: CHALLENGE,
            }),
        ),
        ("arq request", request(&[(772, 1)])),
        (
            "arq request of two ranges",
            request(&[(65_535, 3), (9, 256)]),
        ),
    ]
}

fn harq_samples() -> Vec<(&'static str, Vec<u8>)> {
    let parity = |left, answers| UnitKind::Parity {
        row: 3,
        span: 20,
        left,
        answers,
    };
    let feedback = |reports| {
        HarqFrame::Feedback(HarqFeedback {
            epoch: EPOCH,
            next: FrameNumber(513),
            loss: 6_553,
            damage: None,
            margin: 32,
            answer_margin: 48,
            reports,
        })
    };
    let damaged = HarqFrame::Feedback(HarqFeedback {
        epoch: EPOCH,
        next: FrameNumber(513),
        loss: 6_553,
        damage: Some(6_000),
        margin: 32,
        answer_margin: 48,
        reports: vec![HarqBlockReport::Coming],
    });
    let packet = b"a packet";
    let whole = [&[0xC2], &packet[..], &crc32(packet).to_be_bytes()].concat();
    let reports = vec![
        HarqBlockReport::Heard { span: 12, need: 3 },
        HarqBlockReport::Heard {
            span: 255,
            need: 254,
        },
        HarqBlockReport::Coming,
    ];
    vec![
        (
            "harq source, a whole packet",
            unit(UnitKind::Source { index: 7 }, &whole),
        ),
        (
            "harq source, a first part",
            unit(UnitKind::Source { index: 0 }, b"\x83part"),
        ),
        (
            "harq source, a last part",
            unit(UnitKind::Source { index: 1 }, b"\x43part"),
        ),
        ("harq parity", unit(parity(4, false), b"symbol")),
        ("harq second", unit(parity(LEFT_OPEN, true), b"symbol")),
        ("harq feedback", harq(&feedback(Vec::new()))),
        ("harq feedback with reports", harq(&feedback(reports))),
        ("harq feedback with damage", harq(&damaged)),
        ("harq challenge", harq(&HarqFrame::Challenge(CHALLENGE))),
        (
            "harq answer",
            harq(&HarqFrame::Answer {
                epoch: EPOCH,
                base: FrameNumber(9),
                challenge: CHALLENGE,
            }),
        ),
    ]
}

fn all() -> Vec<(&'static str, Vec<u8>)> {
    let mut octets = Vec::new();
    plain::encode(b"a packet", &mut octets);
    [vec![("plain", octets)], arq_samples(), harq_samples()].concat()
}

fn read_arq(sample: &mut Sample, frame: &ArqFrame<'_>) {
    let mut number = |name: &str, value: u32| sample.field(&format!("fulmar.link.{name}"), value);
    match *frame {
        ArqFrame::Data {
            epoch,
            number: this,
            base,
            again: _,
            packet,
        } => {
            number("epoch", epoch.0.into());
            number("number", this.0.into());
            number("base", base.0.into());
            sample.octets("fulmar.link.packet", packet);
        }
        ArqFrame::Advance { epoch, base } => {
            number("epoch", epoch.0.into());
            number("base", base.0.into());
        }
        ArqFrame::Ack { epoch, next, bits } => {
            number("epoch", epoch.0.into());
            number("next", next.0.into());
            sample.octets("fulmar.link.bits", bits);
        }
        ArqFrame::Challenge(challenge) => read_challenge(sample, challenge),
        ArqFrame::Answer {
            epoch,
            base,
            challenge,
        } => {
            number("epoch", epoch.0.into());
            number("base", base.0.into());
            read_challenge(sample, challenge);
        }
        ArqFrame::Request { epoch, ranges } => {
            number("epoch", epoch.0.into());
            for (first, count) in arq_ranges(ranges) {
                number("range.first", first.0.into());
                number("range.count", count.into());
            }
        }
    }
}

fn read_challenge(sample: &mut Sample, Challenge(challenge): Challenge) {
    sample.field("fulmar.link.challenge", format!("0x{challenge:08x}"));
}

fn read_unit(sample: &mut Sample, unit: HarqUnit, octets: &[u8]) {
    let HarqUnit {
        epoch,
        serial,
        block,
        before,
        kind,
    } = unit;
    sample.field("fulmar.link.epoch", epoch.0);
    sample.field("fulmar.link.serial", serial);
    sample.field("fulmar.link.block", block.0);
    sample.field("fulmar.link.before", before);
    match kind {
        UnitKind::Source { index } => {
            let (place, part) = octets.split_first().expect("samples are valid");
            sample.field("fulmar.link.index", index);
            sample.flag("fulmar.link.place.first", place & 0x80 != 0);
            sample.flag("fulmar.link.place.last", place & 0x40 != 0);
            sample.field("fulmar.link.place.packet", place & 0x3F);
            if place & 0xC0 == 0xC0 {
                let (packet, check) = part.split_last_chunk().expect("samples are valid");
                let check = u32::from_be_bytes(*check);
                assert_eq!(check, crc32(packet));
                sample.octets("fulmar.link.packet", packet);
                sample.field("fulmar.link.packet_crc", format!("0x{check:08x}"));
                sample.field("fulmar.link.packet_crc.status", 1);
            } else {
                sample.octets("fulmar.link.part", part);
            }
        }
        UnitKind::Parity {
            row,
            span,
            left,
            answers: _,
        } => {
            sample.field("fulmar.link.row", row);
            sample.field("fulmar.link.span", span);
            sample.field("fulmar.link.left", left);
            sample.octets("fulmar.link.symbol", octets);
        }
    }
}

fn read_harq(sample: &mut Sample, frame: HarqFrame<'_>) {
    match frame {
        HarqFrame::Unit(unit, octets) => read_unit(sample, unit, octets),
        HarqFrame::Feedback(HarqFeedback {
            epoch,
            next,
            loss,
            damage,
            margin,
            answer_margin,
            reports,
        }) => {
            sample.field("fulmar.link.epoch", epoch.0);
            sample.field("fulmar.link.next", next.0);
            sample.field("fulmar.link.loss", loss);
            sample.field("fulmar.link.margin", margin);
            sample.field("fulmar.link.answer_margin", answer_margin);
            if let Some(damage) = damage {
                sample.field("fulmar.link.damage", damage);
            }
            for report in reports {
                let (span, need) = match report {
                    HarqBlockReport::Coming => (0, 255),
                    HarqBlockReport::Heard { span, need } => (span, need),
                };
                sample.field("fulmar.link.report.span", span);
                sample.field("fulmar.link.report.need", need);
            }
        }
        HarqFrame::Challenge(challenge) => read_challenge(sample, challenge),
        HarqFrame::Answer {
            epoch,
            base,
            challenge,
        } => {
            sample.field("fulmar.link.epoch", epoch.0);
            sample.field("fulmar.link.base", base.0);
            read_challenge(sample, challenge);
        }
    }
}

fn read(name: &str, octets: &[u8]) -> Sample {
    let mut sample = Sample::new(name, octets);
    let kind = octets[0];
    sample.field("fulmar.link.kind", format!("0x{kind:02x}"));
    sample.field("fulmar.link.check.status", 1);
    match kind >> 4 {
        1 => sample.octets(
            "fulmar.link.packet",
            plain::parse(octets).expect("samples are valid"),
        ),
        2 => read_arq(
            &mut sample,
            &ArqFrame::parse(octets).expect("samples are valid"),
        ),
        _ => read_harq(
            &mut sample,
            HarqFrame::parse(octets).expect("samples are valid"),
        ),
    }
    sample
}

#[test]
fn the_samples_of_link_frames_are_what_the_codecs_write_and_read() {
    let samples: Vec<Sample> = all()
        .iter()
        .map(|(name, octets)| read(name, octets))
        .collect();
    hold("link", &samples);
}

#[test]
fn every_kind_of_link_frame_that_the_codecs_know_has_a_sample() {
    let sampled: BTreeSet<u8> = all().iter().map(|(_, octets)| octets[0]).collect();
    let is_known = |kind: u8| {
        let mut frame = vec![kind; 20];
        seal(&mut frame, 0);
        let mut unit = vec![kind; 20];
        let check = hec(&unit, &[]);
        unit.extend_from_slice(&check.to_be_bytes());
        plain::parse(&frame) != Err(FrameReject::Kind)
            || ArqFrame::parse(&frame) != Err(FrameReject::Kind)
            || HarqFrame::parse(&frame) != Err(FrameReject::Kind)
            || HarqFrame::parse(&unit) != Err(FrameReject::Kind)
    };
    let known: BTreeSet<u8> = (0..=u8::MAX).filter(|kind| is_known(*kind)).collect();
    assert_eq!(known, sampled);
}
