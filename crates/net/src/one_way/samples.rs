//! Datagrams of each form, and their contents in clear, for the dissector (`scripts/tests/wire`, as in `proto`).

use super::request::{Needs, Request};
use super::seal::{OneWayCounters, OneWaySeal, StreamId};
use super::test_file::announcement;
use super::wire::{Announcement, FileTag, Form, HEADER_BYTES, Invitation, Symbol, TAG_BYTES};
use crate::session::{Entropy, PresetKey};
use crate::wire_sample::{Sample, hold};
use std::convert::Infallible;

const STREAM: StreamId = StreamId {
    sender: 0x0102_0304,
    start: 0xA0B0_C0D0,
};
/// Six octets, the first of which is not 0.
const COUNTER: u64 = 0x0100_0000_0007;

/// The contents of each form.
fn contents() -> Vec<(&'static str, Form, Vec<u8>)> {
    let mut symbol = Vec::new();
    Symbol::write_id(FileTag(0x0A0B_0C0D), 2, 9, &mut symbol);
    symbol.extend_from_slice(b"octets");
    let asking = Announcement {
        is_last: true,
        asks: Some(Invitation {
            number: 3,
            spread_ms: 500,
        }),
        ..announcement()
    };
    let written = |announcement: &Announcement| {
        let mut octets = Vec::new();
        announcement.write(&mut octets);
        octets
    };
    let request = Request {
        file: FileTag(7),
        stream: STREAM,
        number: 3,
        needs: Needs::from([(0, 4), (258, 1)]),
    };
    let mut requested = Vec::new();
    request.write(&mut requested);
    vec![
        ("symbol", Form::Symbol, symbol),
        ("announcement", Form::Announcement, written(&announcement())),
        (
            "last announcement with an invitation",
            Form::Announcement,
            written(&asking),
        ),
        ("request", Form::Request, requested),
    ]
}

#[test]
fn samples_of_every_form_are_what_the_seal_writes() {
    let preset = PresetKey::generate(&mut Entropy::from_seed([1; 32]));
    let mut samples = Vec::new();
    for (name, form, content) in contents() {
        let mut seal = OneWaySeal::new(&preset, STREAM).expect("a key");
        seal.grant(OneWayCounters(COUNTER..COUNTER + 1));
        let mut octets = Vec::new();
        let write = |out: &mut Vec<u8>| -> Result<(), Infallible> {
            out.extend_from_slice(&content);
            Ok(())
        };
        seal.seal(form, &mut octets, write).expect("it writes");
        let mut sample = Sample::new(name, &octets);
        sample.field("fulmar.one_way.form", form.octet());
        sample.field("fulmar.one_way.sender", STREAM.sender);
        sample.field("fulmar.one_way.start", STREAM.start);
        sample.field("fulmar.one_way.counter", COUNTER);
        let tag_at = octets.len() - TAG_BYTES;
        sample.octets("fulmar.one_way.sealed", &octets[HEADER_BYTES..tag_at]);
        sample.octets("fulmar.one_way.tag", &octets[tag_at..]);
        samples.push(sample);
    }
    hold("one_way", &samples);
}
