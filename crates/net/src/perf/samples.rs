//! Records and messages of each kind, for the dissectors (`scripts/tests/wire`, as in `proto`).

use super::figures::{Interval, Measured, Sent, Spread};
use super::message::Head;
use super::record::{BadPerfRecord, Record, Records};
use super::test::{Limit, Test, TestDirection};
use crate::wire_sample::{Sample, hold};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Mode;
use std::collections::BTreeSet;

fn introductions() -> Vec<(&'static str, Record)> {
    let plain = Test::new(0x8765_4321, Mode::Reliable, TestDirection::Up);
    let full = Test {
        rate_bps: Some(u64::MAX),
        interval: Some(Duration::from_millis(1_500)),
        limit: Limit::Bytes(1 << 50),
        fec_words: 256,
        message_bytes: 65_000,
        streams: 128,
        ..Test::new(7, Mode::HybridNack, TestDirection::Down)
    };
    vec![
        ("hello", Record::Hello(plain)),
        ("hello with every option", Record::Hello(full)),
        ("accept", Record::Accept { token: u64::MAX }),
        (
            "refuse",
            Record::Refuse {
                text: "busy".to_owned(),
            },
        ),
        ("probe", Record::Probe { token: 5, sent: 1 }),
        (
            "echo",
            Record::Echo {
                sent: 1,
                came: 1 << 35,
                answered: 1 << 36,
            },
        ),
    ]
}

fn result(stream: Option<u8>, delay: Option<Spread>) -> Record {
    let measured = Measured {
        messages: 10_000,
        bytes: 10_000_000,
        reordered: 1,
        elapsed: Duration::from_millis(2_250),
        accepted_tpdus: 9,
        wire_lost_tpdus: 8,
        wire_damaged_tpdus: 7,
        recovered_fec_words_tpdus: 6,
        recovered_fec_block_tpdus: 5,
        residual_tpdus: 4,
        delay,
    };
    Record::Result { stream, measured }
}

fn all() -> Vec<(&'static str, Record)> {
    let begin = |ahead| Record::Begin { token: 300, ahead };
    let interval = |messages| {
        Record::Interval(Interval {
            from: Duration::ZERO,
            until: Duration::from_millis(750),
            messages,
        })
    };
    let sent = Sent {
        messages: 1,
        bytes: 2,
        wire_bytes: [3, 4, 5, 600],
        recovered_arq_tpdus: [7, 8, 9],
        stalls: 10,
    };
    let delay = Spread {
        count: 9_999,
        early: 1,
        min: 10,
        mean: 12.5,
        p50: 11,
        p90: 20,
        p99: 30,
        p999: 40,
        max: 1 << 40,
    };
    let mut all = introductions();
    all.extend([
        ("begin, ahead", begin(1 << 40)),
        ("begin, behind", begin(-40)),
        ("begin, furthest behind", begin(i64::MIN)),
        ("go", Record::Go),
        ("interval", interval(vec![12])),
        ("interval of three streams", interval(vec![300, 0, 1 << 40])),
        ("end", Record::End { stream: 127, sent }),
        ("result", result(Some(0), Some(delay))),
        ("result without a message", result(Some(200), None)),
        ("result of all streams", result(None, Some(delay))),
    ]);
    all
}

fn read_test(sample: &mut Sample, test: &Test) {
    let Test {
        version,
        id,
        mode,
        direction,
        message_bytes,
        rate_bps,
        link_bps,
        limit,
        interval,
        fec_words,
        streams,
    } = test;
    sample.field("fulmar.perf.version", version);
    sample.field("fulmar.perf.test", format!("0x{id:08x}"));
    sample.field("fulmar.perf.mode", mode);
    let direction = match direction {
        TestDirection::Up => 0,
        TestDirection::Down => 1,
    };
    sample.field("fulmar.perf.direction", direction);
    sample.field("fulmar.perf.message_bytes", message_bytes);
    if let Some(rate) = rate_bps {
        sample.field("fulmar.perf.rate_bps", rate);
    }
    sample.field("fulmar.perf.link_bps", link_bps);
    match limit {
        Limit::Time(span) => sample.field("fulmar.perf.time", span.as_secs_f64()),
        Limit::Bytes(bytes) => sample.field("fulmar.perf.limit_bytes", bytes),
    }
    if let Some(interval) = interval {
        sample.field("fulmar.perf.interval", interval.as_secs_f64());
    }
    sample.field("fulmar.perf.fec_words", fec_words);
    sample.field("fulmar.perf.streams", streams);
}

fn read_end(sample: &mut Sample, sent: &Sent) {
    let Sent {
        messages,
        bytes,
        wire_bytes: [source, repair, retransmission, control],
        recovered_arq_tpdus: [once, twice, more],
        stalls,
    } = sent;
    for (name, value) in [
        ("messages", messages),
        ("bytes", bytes),
        ("wire_source_bytes", source),
        ("wire_repair_bytes", repair),
        ("wire_retransmission_bytes", retransmission),
        ("wire_control_bytes", control),
        ("recovered_arq_1", once),
        ("recovered_arq_2", twice),
        ("recovered_arq_3", more),
        ("stalls", stalls),
    ] {
        sample.field(&format!("fulmar.perf.{name}"), value);
    }
}

fn read_result(sample: &mut Sample, measured: &Measured) {
    let Measured {
        messages,
        bytes,
        reordered,
        elapsed,
        accepted_tpdus,
        wire_lost_tpdus,
        wire_damaged_tpdus,
        recovered_fec_words_tpdus,
        recovered_fec_block_tpdus,
        residual_tpdus,
        delay,
    } = measured;
    let mut field = |name: &str, value: u64| sample.field(&format!("fulmar.perf.{name}"), value);
    field("messages", *messages);
    field("bytes", *bytes);
    field("reordered", *reordered);
    field("accepted_tpdus", *accepted_tpdus);
    field("wire_lost_tpdus", *wire_lost_tpdus);
    field("wire_damaged_tpdus", *wire_damaged_tpdus);
    field("recovered_fec_words_tpdus", *recovered_fec_words_tpdus);
    field("recovered_fec_block_tpdus", *recovered_fec_block_tpdus);
    field("residual_tpdus", *residual_tpdus);
    if let Some(Spread {
        count,
        early,
        min,
        mean: _,
        p50,
        p90,
        p99,
        p999,
        max,
    }) = delay
    {
        for (name, value) in [
            ("count", count),
            ("early", early),
            ("min", min),
            ("p50", p50),
            ("p90", p90),
            ("p99", p99),
            ("p999", p999),
            ("max", max),
        ] {
            field(&format!("delay_{name}"), *value);
        }
    }
    sample.field("fulmar.perf.elapsed", elapsed.as_secs_f64());
    if let Some(delay) = delay {
        sample.field("fulmar.perf.delay_mean", delay.mean);
    }
}

fn type_of(record: &Record) -> u8 {
    let mut octets = Vec::new();
    record.encode(&mut octets);
    octets[2]
}

fn read(name: &str, octets: &[u8]) -> Sample {
    let mut sample = Sample::new(name, octets);
    let record = Records::default().next(&mut &*octets).unwrap().unwrap();
    sample.field("fulmar.perf.length", octets.len() - 2);
    sample.field("fulmar.perf.type", octets[2]);
    let token = |sample: &mut Sample, token| {
        sample.field("fulmar.perf.token", format!("0x{token:016x}"));
    };
    match record {
        Record::Hello(test) => read_test(&mut sample, &test),
        Record::Accept { token: it } => token(&mut sample, it),
        Record::Refuse { text } => sample.field("fulmar.perf.text", text),
        Record::Probe { token: it, sent } => {
            token(&mut sample, it);
            sample.field("fulmar.perf.sent", sent);
        }
        Record::Echo {
            sent,
            came,
            answered,
        } => {
            sample.field("fulmar.perf.sent", sent);
            sample.field("fulmar.perf.came", came);
            sample.field("fulmar.perf.answered", answered);
        }
        Record::Begin { token: it, ahead } => {
            token(&mut sample, it);
            sample.field("fulmar.perf.ahead", ahead);
        }
        Record::Go => {}
        Record::Interval(Interval {
            from,
            until,
            messages,
        }) => {
            sample.field("fulmar.perf.from", from.as_secs_f64());
            sample.field("fulmar.perf.until", until.as_secs_f64());
            sample.field("fulmar.perf.streams", messages.len());
            for count in messages {
                sample.field("fulmar.perf.messages", count);
            }
        }
        Record::End { stream, sent } => {
            sample.field("fulmar.perf.stream", stream);
            read_end(&mut sample, &sent);
        }
        Record::Result { stream, measured } => {
            if let Some(stream) = stream {
                sample.field("fulmar.perf.stream", stream);
            }
            read_result(&mut sample, &measured);
        }
    }
    sample
}

#[test]
fn the_samples_of_records_are_what_the_codec_writes_and_reads() {
    let written = |(name, record): &(&str, Record)| {
        let mut octets = Vec::new();
        record.encode(&mut octets);
        read(name, &octets)
    };
    let samples: Vec<Sample> = all().iter().map(written).collect();
    hold("perf", &samples);
}

#[test]
fn the_sample_of_a_message_is_what_the_codec_writes_and_reads() {
    let mut octets = [0xAA; 30];
    let sent = Instant::from_nanos(1 << 40);
    let written = Head {
        id: 0x8765_4321,
        sequence: 1 << 33,
        sent,
    };
    written.write(&mut octets);
    let Head { id, sequence, sent } = Head::read(&octets).unwrap();
    let mut sample = Sample::new("message", &octets);
    sample.field("fulmar.perf_data.test", format!("0x{id:08x}"));
    sample.field("fulmar.perf_data.sequence", sequence);
    sample.field("fulmar.perf_data.sent", sent.as_nanos());
    sample.octets("fulmar.perf_data.filling", &octets[20..]);
    hold("perf_data", &[sample]);
}

#[test]
fn every_type_of_record_that_the_codec_knows_has_a_sample() {
    let sampled: BTreeSet<u8> = all().iter().map(|(_, record)| type_of(record)).collect();
    let is_known = |kind: &u8| {
        // As many octets of 0 as needed: they stand for numbers, empty texts and absent options.
        (0..64).any(|zeros: u8| {
            let mut octets = vec![0, zeros + 1, *kind];
            octets.resize(3 + usize::from(zeros), 0);
            let outcome = Records::default().next(&mut &*octets);
            // The second octet of a HELLO is its version.
            matches!(outcome, Ok(Some(_)) | Err(BadPerfRecord::Version(0)))
        })
    };
    assert_eq!((0..128).filter(is_known).collect::<BTreeSet<u8>>(), sampled);
}
