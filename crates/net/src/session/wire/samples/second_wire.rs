//! Samples of wire 2: data in both forms, and frames in their content.

use super::super::super::cipher::TAG_BYTES;
use super::super::super::dialect::Wire;
use super::super::super::path_slot::PathSlot;
use super::super::super::seal::Told;
use super::super::{ARMOURED_HEADER_BYTES, Armoured, DATA_HEADER_BYTES, DataHeader, Message};
use super::{RECEIVER, filling, keys_in_clear, messages, read_fields, read_sealed};
use crate::wire_sample::Sample;
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::units::FecStrength;
use fulmar_proto::wire::aerotp::short::{
    Content, FrameKind, Name, Named, write_followed, write_named, write_unknown_name,
};
use fulmar_proto::wire::aerotp::{EcnField, Flags, Header as TpduHeader};
use fulmar_proto::wire::{Mode, Port, TpduSeq};
use std::collections::BTreeSet;

/// Data in wire 2, in both forms.
pub(super) fn second_wire() -> Vec<(&'static str, Vec<u8>)> {
    let mut keys = keys_in_clear(Wire::Two);
    let mut code = PacketCode::new();
    let mut datagram = |armoured: Option<u16>, place, in_clear| {
        let number = keys.next_number(PathSlot::of_bits(place)).unwrap();
        let header = DataHeader {
            receiver: RECEIVER,
            number,
        };
        let mut sealed = if in_clear {
            frames()[0].1.clone()
        } else {
            filling(40 + TAG_BYTES)
        };
        assert!(!in_clear || keys.seal(number, 0, &mut sealed));
        let Some(words) = armoured else {
            return [&header.to_octets()[..], &sealed].concat();
        };
        let words = FecStrength::from_words(words).unwrap();
        let mut octets = vec![0; ARMOURED_HEADER_BYTES];
        Armoured { header, words }.write(&mut code, 0, &mut octets);
        let parity = vec![0xEE; words.parity_bytes()];
        [octets, sealed, parity].concat()
    };
    vec![
        ("data in wire 2, in clear", datagram(None, 3, true)),
        ("data in wire 2, sealed", datagram(None, 0, false)),
        ("armoured data, in clear", datagram(Some(4), 7, true)),
        ("armoured data, sealed", datagram(Some(255), 0, false)),
        ("armoured data, no parity", datagram(Some(0), 0, false)),
    ]
}

/// Content in wire 2.
pub(super) fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let named = Named {
        name: Name(0x0E86),
        sender_opened: true,
    };
    let header = TpduHeader {
        source: Port(50_081),
        destination: Port(7_070),
        seq: TpduSeq(1_000),
        timestamp: 100_000,
        mode: Mode::Reliable,
        ecn: EcnField::NONE,
        flags: Flags::NONE,
    };
    let mut data = Vec::new();
    write_named(named, &header, &mut data);
    data.extend_from_slice(b"telemetry");
    let mut unknown_name = Vec::new();
    write_unknown_name(named, &mut unknown_name);
    let own = |place: usize| {
        let mut octets = Vec::new();
        messages()[place].1.write(&mut octets);
        octets
    };
    let several = |frames: &[&[u8]], last: &[u8]| {
        let mut octets = Vec::new();
        for frame in frames {
            write_followed(frame, &mut octets);
        }
        [&octets, last].concat()
    };
    vec![
        ("frames, data alone", data.clone()),
        (
            "frames, of the session's own",
            several(&[&own(1), &own(2), &own(6)], &[7, 0, 0]),
        ),
        (
            "frames, of both",
            several(&[&own(3), &unknown_name, &own(5)], &data),
        ),
    ]
}

pub(super) fn read_second(name: &str, octets: &[u8]) -> Sample {
    let mut sample = Sample::new(name, octets);
    sample.field("fulmar.session.version", 2);
    sample.field("fulmar.session.type", 0);
    let armoured = Armoured::read(octets, &mut PacketCode::new(), &mut Vec::new());
    sample.flag("fulmar.session.armoured", armoured.is_some());
    let (header, body) = match armoured {
        Some(Armoured { header, words }) => {
            sample.field("fulmar.session.fec_words", words.words());
            sample.octets("fulmar.session.armour", &octets[9..ARMOURED_HEADER_BYTES]);
            sample.field("fulmar.session.armour.status", 1);
            let (whole, parity) = octets.split_at(octets.len() - words.parity_bytes());
            sample.octets("fulmar.session.parity", parity);
            (header, &whole[ARMOURED_HEADER_BYTES..])
        }
        None => (
            DataHeader::parse(octets).unwrap(),
            &octets[DATA_HEADER_BYTES..],
        ),
    };
    let DataHeader { receiver, number } = header;
    sample.field("fulmar.session.place", number.slot.bits());
    sample.field("fulmar.session.receiver", format!("0x{receiver:08x}"));
    sample.field("fulmar.session.counter", number.counter);
    let mut plain = Vec::new();
    let told = Told::Whole(number);
    if keys_in_clear(Wire::Two)
        .open(told, body, &mut plain)
        .is_ok()
    {
        sample.octets("fulmar.session.content", &plain);
        sample.field("fulmar.session.crc.status", 1);
    } else {
        read_sealed(&mut sample, body);
    }
    sample
}

pub(super) fn read_frames(name: &str, octets: &[u8]) -> Sample {
    let mut sample = Sample::new(name, octets);
    let frames: Vec<_> = Content::of(octets).map(Result::unwrap).collect();
    for (place, frame) in frames.iter().enumerate() {
        sample.field("fulmar.inner.type", frame.code());
        if place + 1 < frames.len() {
            sample.field("fulmar.inner.more", 1);
            sample.field("fulmar.inner.length", frame.fields().len());
        }
        match frame.kind().unwrap() {
            FrameKind::Session => {
                let message = Message::of(frame.code(), frame.fields()).unwrap();
                read_fields(&mut sample, message);
            }
            FrameKind::Padding => sample.octets("fulmar.inner.padding", frame.fields()),
            _ => {}
        }
    }
    sample
}

#[test]
fn each_form_of_data_in_the_second_wire_has_samples() {
    let sampled: BTreeSet<u8> = (second_wire().iter())
        .map(|(_, octets)| octets[0] & 0xF8)
        .collect();
    let forms = (0..=255).filter(|first| {
        let (mut code, mut octets) = (PacketCode::new(), vec![*first; 9]);
        code.append_parity(&mut octets, 0, FecStrength::from_words(2).unwrap());
        DataHeader::begins(&octets) || Armoured::read(&octets, &mut code, &mut Vec::new()).is_some()
    });
    let forms: BTreeSet<u8> = forms.map(|first| first & 0xF8).collect();
    assert_eq!(forms, sampled);
}
