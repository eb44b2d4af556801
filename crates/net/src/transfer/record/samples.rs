//! Records and messages of each kind, for the dissectors (`scripts/tests/wire`, as in `proto`).

use super::*;
use crate::wire_sample::{Sample, hold};
use std::collections::BTreeSet;

fn hello(mode: Mode, size: Option<u64>, name: &str) -> Record {
    Record::Hello {
        mode,
        id: 0x0123_4567_89AB_CDEF,
        size,
        seekable: size.is_some(),
        name: name.to_owned(),
    }
}

fn all() -> Vec<(String, Vec<u8>)> {
    let mut records = vec![
        (
            "hello, a file",
            hello(Mode::HybridNackMack, Some(1 << 40), "größe.bin"),
        ),
        ("hello, a pipe", hello(Mode::Reliable, None, "")),
        (
            "offer",
            Record::Offer {
                offset: 7,
                digest: [9; 32],
            },
        ),
        ("start", Record::Start { offset: 1 << 33 }),
        (
            "end",
            Record::End {
                size: 5,
                digest: [3; 32],
            },
        ),
        ("leave", Record::Leave { id: u64::MAX - 1 }),
        ("ping", Record::Ping),
    ];
    for (name, intact) in [("done", true), ("done, damaged", false)] {
        let done = Record::Done {
            delivered: 4,
            missing: 1,
            intact,
        };
        records.push((name, done));
    }
    let encoded = |record: &Record| {
        let mut octets = Vec::new();
        record.encode(&mut octets);
        octets
    };
    let mut all: Vec<(String, Vec<u8>)> = (records.iter())
        .map(|(name, record)| ((*name).to_owned(), encoded(record)))
        .collect();
    for reason in TransferRefusal::ALL {
        let text = "why".to_owned();
        all.push((
            format!("refuse, {reason:?}"),
            encoded(&Record::Refuse { reason, text }),
        ));
    }
    let mut data = Vec::new();
    encode_data_head(1 << 36, 6, &mut data);
    data.extend_from_slice(b"octets");
    all.push(("data".to_owned(), data));
    all
}

fn read_record(sample: &mut Sample, record: Record) {
    let mut number = |name: &str, value: u64| {
        sample.field(&format!("fulmar.transfer.{name}"), value);
    };
    match record {
        Record::Hello {
            mode,
            id,
            size,
            seekable,
            name,
        } => {
            number("version", VERSION.into());
            number("mode", mode.code().into());
            number("flags.seekable", seekable.into());
            number("flags.sized", size.is_some().into());
            number("id", id);
            number("size", size.unwrap_or(0));
            sample.field("fulmar.transfer.name", name);
        }
        Record::Offer { offset, digest } => {
            number("offset", offset);
            sample.octets("fulmar.transfer.digest", &digest);
        }
        Record::Start { offset } => number("offset", offset),
        Record::End { size, digest } => {
            number("size", size);
            sample.octets("fulmar.transfer.digest", &digest);
        }
        Record::Done {
            delivered,
            missing,
            intact,
        } => {
            number("delivered", delivered);
            number("missing", missing);
            number("intact", intact.into());
        }
        Record::Refuse { reason, text } => {
            number("reason", reason.code().into());
            sample.field("fulmar.transfer.text", text);
        }
        Record::Leave { id } => number("id", id),
        Record::Ping => {}
    }
}

fn read(name: &str, octets: &[u8]) -> Sample {
    let mut sample = Sample::new(name, octets);
    sample.field("fulmar.transfer.type", octets[0]);
    sample.field("fulmar.transfer.length", octets.len() - HEAD_BYTES);
    match Records::default().next(&mut &*octets).unwrap().unwrap() {
        Item::Data { offset, octets } => {
            sample.field("fulmar.transfer.offset", offset);
            sample.octets("fulmar.transfer.data", octets);
        }
        Item::Record(record) => read_record(&mut sample, record),
    }
    sample
}

#[test]
fn the_samples_of_records_are_what_the_codec_writes_and_reads() {
    let samples: Vec<Sample> = all()
        .iter()
        .map(|(name, octets)| read(name, octets))
        .collect();
    hold("transfer", &samples);
}

#[test]
fn the_sample_of_a_message_is_what_the_codec_writes_and_reads() {
    let mut octets = Vec::new();
    encode_message_head(0xAAAA_BBBB_CCCC_DDDD, 1 << 40, &mut octets);
    octets.extend_from_slice(b"octets");
    let (id, offset, data) = decode_message(&octets).unwrap();
    let mut sample = Sample::new("message", &octets);
    sample.field("fulmar.transfer_message.id", id);
    sample.field("fulmar.transfer_message.offset", offset);
    sample.octets("fulmar.transfer_message.data", data);
    hold("transfer_message", &[sample]);
}

#[test]
fn every_type_of_record_that_the_codec_knows_has_a_sample() {
    let sampled: BTreeSet<u8> = all().iter().map(|(_, octets)| octets[0]).collect();
    let is_known = |kind: &u8| {
        let octets = [*kind, 0, 0, 0, 0];
        let unknown = BadRecord::Type(*kind);
        Records::default().next(&mut &octets[..]) != Err(unknown)
    };
    assert_eq!(
        (0..=255).filter(is_known).collect::<BTreeSet<u8>>(),
        sampled
    );
}
