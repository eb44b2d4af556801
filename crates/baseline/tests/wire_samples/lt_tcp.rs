//! Samples of LT-TCP's segments.

use super::sample::{Sample, hold};
use fulmar_baseline::wire::lt_tcp::{
    Extension, LtSegment, LtTcpBlockReport, LtTcpFeedback, UnitHeader, write_segment,
};
use fulmar_baseline::wire::tcp::{
    AddressPair, SackBlock, SackBlocks, TcpFlags, TcpHeader, TcpOptions, TcpSeq, Timestamps,
};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::NodeAddress;
use std::collections::BTreeSet;

const ADDRESSES: AddressPair = AddressPair::nodes(NodeAddress(1), NodeAddress(2));

fn header(flags: TcpFlags) -> TcpHeader {
    TcpHeader {
        source: Port(4_000),
        destination: Port(5_000),
        seq: TcpSeq(1_000),
        ack: TcpSeq(4_294_967_000),
        flags,
        window: 512,
        ..TcpHeader::default()
    }
}

/// Every option that the codec writes.
pub(crate) fn options() -> TcpOptions {
    let mut sack = SackBlocks::default();
    assert!(sack.push(SackBlock {
        start: TcpSeq(2_000),
        end: TcpSeq(3_000)
    }));
    TcpOptions {
        mss: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 5, echo: 9 }),
        sack,
    }
}

fn feedback(reports: u16, runs: u32) -> LtTcpFeedback {
    LtTcpFeedback {
        arrived_end: 258,
        arrivals: 772,
        loss: 6_553,
        deviation: 100,
        reports: (0..reports)
            .map(|block| LtTcpBlockReport {
                block: 65_530_u16.wrapping_add(block),
                received: 11,
                needed: 12,
                lost: 13,
            })
            .collect(),
        runs: (0..runs)
            .map(|run| SackBlock {
                start: TcpSeq(run * 1_000),
                end: TcpSeq(run * 1_000 + 500),
            })
            .collect(),
    }
}

fn all() -> Vec<(&'static str, Vec<u8>)> {
    let written = |header: TcpHeader, extension: &Extension<'_>| {
        let mut octets = Vec::new();
        write_segment(&header, extension, &ADDRESSES, &mut Vec::new(), &mut octets);
        octets
    };
    let unit = UnitHeader {
        ordinal: 258,
        block: 772,
        index: 1,
        k: 3,
        n: 4,
        length: 10,
    };
    let parity = UnitHeader { index: 3, ..unit };
    let none = UnitHeader {
        ordinal: 9,
        ..UnitHeader::default()
    };
    let syn = TcpHeader {
        options: options(),
        ..header(TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR)
    };
    let urgent = TcpHeader {
        urgent: 3,
        ..header(TcpFlags(0xFF))
    };
    let ack = header(TcpFlags::ACK);
    vec![
        ("syn with options", written(syn, &Extension::None)),
        ("reset", written(header(TcpFlags::RST), &Extension::None)),
        ("every flag", written(urgent, &Extension::None)),
        ("source", written(ack, &Extension::Unit(unit, b"efgh"))),
        ("parity", written(ack, &Extension::Unit(parity, b"parity"))),
        (
            "no block",
            written(
                header(TcpFlags::FIN | TcpFlags::ACK),
                &Extension::Unit(none, b""),
            ),
        ),
        (
            "feedback",
            written(ack, &Extension::Feedback(feedback(0, 0))),
        ),
        (
            "feedback with blocks",
            written(ack, &Extension::Feedback(feedback(15, 0))),
        ),
        (
            "feedback with blocks and runs",
            written(ack, &Extension::Feedback(feedback(2, 4))),
        ),
    ]
}

/// TCP's fields under `prefix`, with the names of LT-TCP's dissector.
fn read_header(sample: &mut Sample, header: &TcpHeader) {
    let TcpHeader {
        source,
        destination,
        seq,
        ack,
        flags,
        window,
        urgent,
        options,
    } = *header;
    let TcpOptions {
        mss,
        window_scale,
        sack_permitted,
        timestamps,
        sack,
    } = options;
    let mut field = |name: &str, value: u32| sample.field(&format!("fulmar.lt_tcp.{name}"), value);
    field("srcport", source.0.into());
    field("dstport", destination.0.into());
    field("seq", seq.0);
    field("ack", ack.0);
    for (name, flag) in [
        ("fin", TcpFlags::FIN),
        ("syn", TcpFlags::SYN),
        ("rst", TcpFlags::RST),
        ("psh", TcpFlags::PSH),
        ("ack", TcpFlags::ACK),
        ("urg", TcpFlags::URG),
        ("ece", TcpFlags::ECE),
        ("cwr", TcpFlags::CWR),
    ] {
        field(&format!("flags.{name}"), flags.has(flag).into());
    }
    field("window", window.into());
    field("urgent", urgent.into());
    field("checksum.status", 1);
    if let Some(mss) = mss {
        field("option.mss", mss.into());
    }
    if let Some(shift) = window_scale {
        field("option.scale", shift.into());
    }
    if sack_permitted {
        field("option.sack_permitted", 1);
    }
    if let Some(Timestamps { value, echo }) = timestamps {
        field("option.timestamp", value);
        field("option.timestamp_echo", echo);
    }
    for SackBlock { start, end } in sack.as_slice() {
        field("option.sack_start", start.0);
        field("option.sack_end", end.0);
    }
}

fn read_unit(sample: &mut Sample, unit: UnitHeader, octets: &[u8]) {
    let carried = if unit.is_source() { "source" } else { "symbol" };
    let UnitHeader {
        ordinal,
        block,
        index,
        k,
        n,
        length,
    } = unit;
    sample.field("fulmar.lt_tcp.kind", 1);
    sample.field("fulmar.lt_tcp.unit.ordinal", ordinal);
    sample.field("fulmar.lt_tcp.unit.block", block);
    sample.field("fulmar.lt_tcp.unit.index", index);
    sample.field("fulmar.lt_tcp.unit.k", k);
    sample.field("fulmar.lt_tcp.unit.n", n);
    sample.field("fulmar.lt_tcp.unit.length", length);
    sample.octets(&format!("fulmar.lt_tcp.unit.{carried}"), octets);
}

fn read_feedback(sample: &mut Sample, feedback: &LtTcpFeedback) {
    let LtTcpFeedback {
        arrived_end,
        arrivals,
        loss,
        deviation,
        reports,
        runs,
    } = feedback;
    sample.field("fulmar.lt_tcp.kind", 2);
    sample.field("fulmar.lt_tcp.feedback.reports", reports.len());
    sample.field("fulmar.lt_tcp.feedback.runs", runs.len());
    sample.field("fulmar.lt_tcp.feedback.arrived_end", arrived_end);
    sample.field("fulmar.lt_tcp.feedback.arrivals", arrivals);
    sample.field("fulmar.lt_tcp.feedback.loss", loss);
    sample.field("fulmar.lt_tcp.feedback.deviation", deviation);
    for LtTcpBlockReport {
        block,
        received,
        needed,
        lost,
    } in reports
    {
        sample.field("fulmar.lt_tcp.report.block", block);
        sample.field("fulmar.lt_tcp.report.received", received);
        sample.field("fulmar.lt_tcp.report.needed", needed);
        sample.field("fulmar.lt_tcp.report.lost", lost);
    }
    for SackBlock { start, end } in runs {
        sample.field("fulmar.lt_tcp.run.start", start.0);
        sample.field("fulmar.lt_tcp.run.end", end.0);
    }
}

fn read(name: &str, octets: &[u8]) -> Sample {
    let mut sample = Sample::new(name, octets);
    let LtSegment { header, extension } =
        LtSegment::parse(&ADDRESSES, octets).expect("samples are valid");
    read_header(&mut sample, &header);
    match extension {
        Extension::None => {}
        Extension::Unit(unit, octets) => read_unit(&mut sample, unit, octets),
        Extension::Feedback(feedback) => read_feedback(&mut sample, &feedback),
    }
    sample
}

#[test]
fn the_samples_of_lt_tcp_are_what_the_codec_writes_and_reads() {
    let samples: Vec<Sample> = all()
        .iter()
        .map(|(name, octets)| read(name, octets))
        .collect();
    hold("lt_tcp", &samples);
}

#[test]
fn every_extension_of_lt_tcp_that_the_codec_knows_has_a_sample() {
    let kind_of = |octets: &[u8]| match octets[12] >> 4 {
        5 => octets.get(20).copied(),
        _ => None,
    };
    let sampled: BTreeSet<u8> = all()
        .iter()
        .filter_map(|(_, octets)| kind_of(octets))
        .collect();
    let is_known = |kind: &u8| {
        // A unit of no block, feedback without lists, and a length of neither kind.
        [12, 10, 11].into_iter().any(|length| {
            let mut body = vec![0; length];
            body[0] = *kind;
            let mut octets = Vec::new();
            header(TcpFlags::ACK).write(&ADDRESSES, &body, &mut octets);
            LtSegment::parse(&ADDRESSES, &octets).is_ok()
        })
    };
    let known: BTreeSet<u8> = (0..=u8::MAX).filter(is_known).collect();
    assert_eq!(known, sampled);
}
