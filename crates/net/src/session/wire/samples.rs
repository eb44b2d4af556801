//! Datagrams and messages of each kind, for the dissectors (`scripts/tests/wire`, as in `proto`).
//!
//! A sealed part stands for its length alone: a dissector without keys sees no more of it.

mod second_wire;

use super::super::cipher::{Cipher, TAG_BYTES};
use super::super::dialect::Wire;
use super::super::guard::COOKIE_BODY_BYTES;
use super::super::handshake::{
    Agreed, CLEAR_INITIATION_BYTES, IK_INITIATION_BYTES, NN_INITIATION_BYTES,
};
use super::super::kinds::SecurityKinds;
use super::super::path_slot::PathSlot;
use super::super::seal::{Keypair, Told};
use super::header::DatagramType;
use super::{
    ArrivedCounters, Capability, DamageReport, FurtherParity, HEADER_BYTES, HELLO_BYTES, Header,
    Hello, Meet, Message, Met, Notice, PathAck, Probe, Relayed, RelayedWay, RemoteNumber, Report,
};
use super::{SESSION_VERSION, version_question};
use crate::session::PublicKey;
use crate::session::fragments::Fragment;
use crate::wire_sample::{Sample, hold};
use fulmar_proto::splice::{SpliceReport, ToldShare};
use fulmar_proto::units::{Duration, FecStrength, Instant};
use fulmar_proto::wire::aerotp::ChannelWord;
use fulmar_proto::wire::checksum::{crc32, hec};
use second_wire::{frames, read_frames, read_second, second_wire};
use std::collections::BTreeSet;

const CHECKS_BYTES: usize = 32;
const SALT_BYTES: usize = 24;
const RECEIVER: u32 = 0x6120_C5D2;
const SENDER: u32 = 0x96F4_A86C;

fn datagram(kind: DatagramType, words: u16, receiver: u32, low: u32, body: &[u8]) -> Vec<u8> {
    let header = Header {
        kind,
        fec: FecStrength::from_words(words).unwrap(),
        receiver,
        low,
    };
    let parity = vec![0xEE; header.fec.parity_bytes()];
    [&header.to_octets()[..], body, &parity].concat()
}

/// Octets that stand for sealed ones.
fn filling(count: usize) -> Vec<u8> {
    (0..=250).cycle().take(count).collect()
}

fn hello(epoch: u64, capabilities: usize) -> Hello {
    let all = [("splice", "1", true), ("software", "fulmar 0.1", false)];
    let capability = |(name, value, must_agree): (&str, &str, bool)| Capability {
        name: name.to_owned(),
        value: value.to_owned(),
        must_agree,
    };
    Hello {
        version: SESSION_VERSION,
        boot: 0x3893_4444_1A95_B88E,
        epoch,
        capabilities: all.into_iter().take(capabilities).map(capability).collect(),
    }
}

fn clear(hello: &Hello) -> Vec<u8> {
    let octets = hello.to_octets();
    [&octets[..], &crc32(&octets).to_be_bytes()].concat()
}

/// A report of the splice: 7 recovered, 1 given up; of class 2, 256 of 258 messages delivered, 1,000 octets.
const SPLICE_REPORT: [u8; 42] = [
    1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0,
    1, 0, 0, 0, 0, 0, 0, 0, 3, 232,
];

/// The same without a class, and with losses by cause.
const LOSSES_REPORT: [u8; 42] = [
    1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, 255, 0, 0, 1, 2, 0, 0, 0, 7, 128, 64, 255,
    100, 90, 110, 27, 20, 30, 0, 0, 3, 0, 0, 2, 0,
];

/// Those of meetings through a hub.
fn meetings() -> Vec<(&'static str, Message<'static>)> {
    let remote = PublicKey::from_octets([0xAB; 32]);
    let met = Met {
        remote,
        is_introduced: true,
        is_relayed: true,
        is_there: true,
        number: RemoteNumber(258),
        address: Some(([192, 0, 2, 1], 4_914).into()),
    };
    let relayed = |way| {
        Message::Relayed(Relayed {
            way,
            octets: b"a sealed datagram",
        })
    };
    vec![
        ("meet", Message::Meet(Meet { remote })),
        ("met", Message::Met(met)),
        (
            "met, without an address",
            Message::Met(Met {
                address: None,
                ..met
            }),
        ),
        (
            "met, not introduced",
            Message::Met(Met {
                is_introduced: false,
                is_relayed: false,
                is_there: false,
                number: RemoteNumber(0),
                address: None,
                ..met
            }),
        ),
        ("relayed to", relayed(RelayedWay::To(RemoteNumber(258)))),
        ("relayed from", relayed(RelayedWay::From(RemoteNumber(3)))),
    ]
}

fn messages() -> Vec<(&'static str, Message<'static>)> {
    let probe = Probe {
        id: 0x8000_0001,
        sent_micros: 2_000,
        cost: 0,
    };
    let piece = Fragment {
        id: 4_000_000_000,
        index: 1,
        count: 3,
        octets: b"a piece",
    };
    let report = Report {
        sent: 3_000,
        heard: 500,
        arrived: 400,
        rest: &SPLICE_REPORT,
    };
    let ack = PathAck {
        slot: PathSlot::of_bits(5),
        largest: 0x01_0203,
        hold: Duration::from_micros(3_200),
        clock: 4_000_000_000,
        octets: 3_000_000_000,
        marks: 7,
    };
    let damage = DamageReport {
        slot: PathSlot::FIRST,
        word: ChannelWord::from_octets([0x28, 0x00, 0x34, 0x01]),
        counts: [3_000_000_000, 2_000, 30, 5_000],
        claims: &[1, 2, 3, 0, 0, 7],
    };
    let further = FurtherParity {
        slot: PathSlot::FIRST,
        parts: &[1, 2, 3, 2, 0, 2, 9, 8, 7, 6, 0, 0, 7, 1, 4, 1, 5],
    };
    let map = ArrivedCounters {
        slot: PathSlot::FIRST,
        keys: 0x0A0B_0C0D,
        largest: 0x01_0203,
        bits: &[0xF0, 0x01],
    };
    vec![
        ("tpdu", Message::Tpdu(b"no TPDU")),
        ("heartbeat", Message::Heartbeat),
        ("probe", Message::Probe(probe)),
        ("probe reply", Message::ProbeReply(probe)),
        ("close", Message::Close),
        ("fragment", Message::Fragment(piece)),
        ("report", Message::Report(report)),
        (
            "report of losses",
            Message::Report(Report {
                rest: &LOSSES_REPORT,
                ..report
            }),
        ),
        ("path ack", Message::PathAck(ack)),
        ("damage report", Message::DamageReport(damage)),
        ("further parity", Message::FurtherParity(further)),
        ("arrival map", Message::ArrivalMap(map)),
    ]
    .into_iter()
    .chain(meetings())
    .collect()
}

/// Handshakes under each kind of security.
fn handshakes() -> Vec<(&'static str, Vec<u8>)> {
    let initiation = |words, body: &[u8]| {
        let body = [body, &filling(CHECKS_BYTES)].concat();
        datagram(DatagramType::Initiation, words, 0, SENDER, &body)
    };
    let response = |body: &[u8]| datagram(DatagramType::Response, 0, SENDER, RECEIVER, body);
    let (ours, theirs) = (clear(&hello(1 << 40, 2)), clear(&hello(0, 0)));
    assert_eq!(ours.len(), CLEAR_INITIATION_BYTES);
    vec![
        (
            "initiation, noise",
            initiation(0, &filling(IK_INITIATION_BYTES)),
        ),
        (
            "initiation, preset",
            initiation(2, &filling(NN_INITIATION_BYTES)),
        ),
        ("initiation, none", initiation(0, &ours)),
        ("initiation, none, parity", initiation(9, &ours)),
        ("response, sealed", response(&filling(NN_INITIATION_BYTES))),
        ("response, none", response(&theirs)),
    ]
}

fn keys_in_clear(wire: Wire) -> Keypair {
    let agreed = Agreed {
        cipher: Cipher::Clear,
        wire,
    };
    Keypair::new(agreed, SENDER, RECEIVER, Instant::from_nanos(0), true)
}

fn others() -> Vec<(&'static str, Vec<u8>)> {
    let kinds = SecurityKinds::NOISE.and(SecurityKinds::NONE);
    let notice = |notice: Notice, seen| {
        datagram(
            DatagramType::Notice,
            0,
            SENDER,
            notice.to_word(),
            &filling(seen),
        )
    };
    let mut keys = keys_in_clear(Wire::One);
    let number = keys.next_number(PathSlot::FIRST).unwrap();
    let mut in_clear = Vec::new();
    messages()[2].1.write(&mut in_clear);
    assert!(keys.seal(number, 0, &mut in_clear));
    let low = u32::try_from(number.counter).unwrap();
    let sealed = filling(40 + TAG_BYTES);
    let salted = filling(SALT_BYTES + 40 + TAG_BYTES);
    vec![
        (
            "data, in clear",
            datagram(DatagramType::Data, 0, RECEIVER, low, &in_clear),
        ),
        (
            "data, in clear, parity",
            datagram(DatagramType::Data, 4, RECEIVER, low, &in_clear),
        ),
        (
            "data, sealed",
            datagram(DatagramType::Data, 0, RECEIVER, 77, &sealed),
        ),
        (
            "data, sealed, parity",
            datagram(DatagramType::Data, 255, RECEIVER, 77, &sealed),
        ),
        (
            "cookie",
            datagram(
                DatagramType::Cookie,
                0,
                SENDER,
                0,
                &filling(COOKIE_BODY_BYTES),
            ),
        ),
        (
            "early",
            datagram(DatagramType::Early, 0, 0xEA51, 3, &salted),
        ),
        (
            "version",
            datagram(DatagramType::Version, 0, SENDER, 0, b""),
        ),
        ("question", version_question(SENDER).to_vec()),
        ("notice, wrong key", notice(Notice::WrongKey, 16)),
        ("notice, unknown caller", notice(Notice::UnknownCaller, 16)),
        (
            "notice, other security",
            notice(Notice::OtherSecurity(kinds), 16),
        ),
        ("notice, superseded", notice(Notice::Superseded, 16)),
        ("notice, no session", notice(Notice::NoSession, 4)),
    ]
}

fn read_hello(sample: &mut Sample, octets: &[u8]) {
    let Hello {
        version,
        boot,
        epoch,
        capabilities,
    } = Hello::read(&octets[..HELLO_BYTES]).unwrap();
    sample.field("fulmar.session.hello.version", version);
    sample.field("fulmar.session.hello.count", capabilities.len());
    sample.field("fulmar.session.hello.boot", format!("0x{boot:016x}"));
    sample.field("fulmar.session.hello.epoch", epoch);
    for capability in capabilities {
        let Capability {
            name,
            value,
            must_agree,
        } = capability;
        sample.flag("fulmar.session.hello.must_agree", must_agree);
        sample.field("fulmar.session.hello.name", name);
        sample.field("fulmar.session.hello.value", value);
    }
    sample.field("fulmar.session.crc.status", 1);
}

/// The body of an initiation without its checks, or of a response.
fn read_handshake(sample: &mut Sample, body: &[u8], security: &str) {
    sample.field("fulmar.session.security", security);
    if security == "None" {
        return read_hello(sample, body);
    }
    let (ephemeral, rest) = body.split_at(32);
    let (key, hello) = rest.split_at(rest.len() - HELLO_BYTES - TAG_BYTES);
    sample.octets("fulmar.session.ephemeral", ephemeral);
    sample.octets("fulmar.session.sealed_key", key);
    sample.octets("fulmar.session.sealed_hello", hello);
}

fn read_notice(sample: &mut Sample, word: u32, seen: &[u8]) {
    let (what, kinds) = match Notice::of_word(word).unwrap() {
        Notice::WrongKey => (1, SecurityKinds::default()),
        Notice::UnknownCaller => (2, SecurityKinds::default()),
        Notice::OtherSecurity(kinds) => (3, kinds),
        Notice::Superseded => (4, SecurityKinds::default()),
        Notice::NoSession => (5, SecurityKinds::default()),
    };
    sample.field("fulmar.session.notice", what);
    for (name, kind) in [
        ("noise", SecurityKinds::NOISE),
        ("preset", SecurityKinds::PRESET),
        ("none", SecurityKinds::NONE),
    ] {
        sample.flag(
            &format!("fulmar.session.kinds.{name}"),
            kinds.contains(kind),
        );
    }
    sample.octets("fulmar.session.seen", seen);
}

fn read_data(sample: &mut Sample, low: u32, body: &[u8]) {
    sample.field("fulmar.session.counter", low);
    let mut keys = keys_in_clear(Wire::One);
    let mut plain = Vec::new();
    if keys.open(Told::Low(low), body, &mut plain).is_ok() {
        sample.octets("fulmar.session.content", &plain);
        sample.field("fulmar.session.crc.status", 1);
    } else {
        read_sealed(sample, body);
    }
}

fn read_sealed(sample: &mut Sample, body: &[u8]) {
    let (sealed, tag) = body.split_at(body.len() - TAG_BYTES);
    sample.octets("fulmar.session.sealed", sealed);
    sample.octets("fulmar.session.tag", tag);
}

fn read(name: &str, octets: &[u8]) -> Sample {
    let mut sample = Sample::new(name, octets);
    sample.field("fulmar.session.version", octets[0] >> 4);
    sample.field("fulmar.session.type", octets[0] & 15);
    sample.field("fulmar.session.hec.status", 1);
    let index = |value: u32| format!("0x{value:08x}");
    if name == "question" {
        sample.field("fulmar.session.fec_words", 0);
        sample.field("fulmar.session.receiver", index(0));
        sample.field("fulmar.session.sender", index(SENDER));
        return sample;
    }
    let Header {
        kind,
        fec,
        receiver,
        low,
    } = Header::parse(octets).unwrap();
    sample.field("fulmar.session.fec_words", fec.words());
    sample.field("fulmar.session.receiver", index(receiver));
    let (whole, parity) = octets.split_at(octets.len() - fec.parity_bytes());
    let body = &whole[HEADER_BYTES..];
    sample.octets("fulmar.session.parity", parity);
    match kind {
        DatagramType::Data => read_data(&mut sample, low, body),
        DatagramType::Initiation => {
            let (body, checks) = body.split_at(body.len() - CHECKS_BYTES);
            sample.field("fulmar.session.sender", index(low));
            let security = match body.len() {
                IK_INITIATION_BYTES => "Noise",
                NN_INITIATION_BYTES => "Preset",
                _ => "None",
            };
            read_handshake(&mut sample, body, security);
            sample.octets("fulmar.session.first_check", &checks[..16]);
            sample.octets("fulmar.session.second_check", &checks[16..]);
        }
        DatagramType::Response => {
            sample.field("fulmar.session.sender", index(low));
            let is_clear = body.len() == CLEAR_INITIATION_BYTES;
            let security = if is_clear { "None" } else { "Noise or Preset" };
            read_handshake(&mut sample, body, security);
        }
        DatagramType::Cookie => {
            sample.octets("fulmar.session.nonce", &body[..24]);
            sample.octets("fulmar.session.cookie", &body[24..40]);
            sample.octets("fulmar.session.tag", &body[40..]);
        }
        DatagramType::Early => {
            sample.field("fulmar.session.counter", low);
            sample.octets("fulmar.session.salt", &body[..SALT_BYTES]);
            read_sealed(&mut sample, &body[SALT_BYTES..]);
        }
        DatagramType::Version => {}
        DatagramType::Notice => read_notice(&mut sample, low, body),
    }
    sample
}

fn read_report(sample: &mut Sample, report: Report<'_>) {
    let mut field = |name: &str, value: u64| sample.field(&format!("fulmar.inner.{name}"), value);
    let Report {
        sent,
        heard,
        arrived,
        rest,
    } = report;
    field("sent", sent);
    field("heard", heard);
    field("arrived", arrived);
    let SpliceReport {
        repair,
        classes,
        losses,
    } = SpliceReport::decode(rest).unwrap();
    field("version", rest[0].into());
    field("recovered", repair.recovered_fec);
    field("residual", repair.residual);
    for (class, totals) in classes {
        field("class", class.0.into());
        field("expected", totals.expected);
        field("delivered", totals.delivered);
        field("octets", totals.octets);
    }
    if let Some(losses) = losses {
        field("class", 255);
        field("losses_sent", losses.sent.into());
        field("losses_lost", losses.lost.into());
        for ToldShare { share, low, high } in losses.shares {
            field("losses_share", share.into());
            field("losses_low", low.into());
            field("losses_high", high.into());
        }
        field("losses_reserved", 0);
    }
}

fn read_message(name: &str, octets: &[u8]) -> Sample {
    let mut sample = Sample::new(name, octets);
    sample.field("fulmar.inner.type", octets[0]);
    read_fields(&mut sample, Message::read(octets).unwrap());
    sample
}

fn read_fields(sample: &mut Sample, message: Message<'_>) {
    let mut field = |name: &str, value: u32| sample.field(&format!("fulmar.inner.{name}"), value);
    match message {
        Message::Tpdu(tpdu) => sample.octets("fulmar.inner.tpdu", tpdu),
        Message::Heartbeat | Message::Close => {}
        Message::Probe(probe) | Message::ProbeReply(probe) => {
            let Probe {
                id, sent_micros, ..
            } = probe;
            field("number", id);
            field("time", sent_micros);
        }
        Message::Fragment(Fragment {
            id,
            index,
            count,
            octets,
        }) => {
            field("number", id);
            field("index", index.into());
            field("count", count.into());
            sample.octets("fulmar.inner.piece", octets);
        }
        Message::Report(report) => read_report(sample, report),
        Message::FurtherParity(further) => {
            field("place", further.slot.bits().into());
            sample.octets("fulmar.inner.further", further.parts);
        }
        Message::PathAck(ack) => {
            let hold = u32::try_from(ack.hold.as_micros() / 16).unwrap();
            field("place", ack.slot.bits().into());
            field("largest", ack.largest);
            field("hold", hold);
            field("clock", ack.clock);
            field("octets_arrived", ack.octets);
            field("marks", ack.marks.into());
        }
        Message::ArrivalMap(map) => {
            field("place", map.slot.bits().into());
            field("keys", map.keys);
            field("largest", map.largest);
            sample.octets("fulmar.inner.arrival_bits", map.bits);
        }
        Message::Meet(meet) => sample.octets("fulmar.inner.remote", meet.remote.octets()),
        Message::Met(met) => {
            let mut octets = Vec::new();
            met.write(&mut octets);
            let (remote, rest) = octets.split_at(32);
            field("meeting", rest[0].into());
            field("remote_number", met.number.0.into());
            field("port", met.address.map_or(0, |told| told.port().into()));
            sample.octets("fulmar.inner.remote", remote);
            sample.octets("fulmar.inner.address", &rest[3..19]);
        }
        Message::Relayed(relayed) => {
            let (direction, number) = match relayed.way {
                RelayedWay::To(number) => (0, number),
                RelayedWay::From(number) => (1, number),
            };
            field("direction", direction);
            field("remote_number", number.0.into());
            sample.octets("fulmar.inner.relayed", relayed.octets);
        }
        Message::DamageReport(report) => {
            let [r0, r1, l0, l1] = report.word.to_octets();
            field("place", report.slot.bits().into());
            field("recent", u16::from_be_bytes([r0, r1]).into());
            field("lasting", u16::from_be_bytes([l0, l1]).into());
            let names = ["whole", "mended", "beyond_repair", "symbols"];
            for (name, count) in names.into_iter().zip(report.counts) {
                field(name, count);
            }
            for counter in report.counters() {
                field("damaged", u32::try_from(counter).unwrap());
            }
        }
    }
}

fn all() -> Vec<(&'static str, Vec<u8>)> {
    [handshakes(), others()].concat()
}

#[test]
fn the_samples_of_datagrams_are_what_the_codec_writes_and_reads() {
    let samples: Vec<Sample> = all()
        .iter()
        .map(|(name, octets)| read(name, octets))
        .collect();
    let second = second_wire();
    let second = second
        .iter()
        .map(|(name, octets)| read_second(name, octets));
    let samples: Vec<Sample> = samples.into_iter().chain(second).collect();
    hold("session", &samples);
    let message = |(name, message): &(&str, Message<'_>)| {
        let mut octets = Vec::new();
        message.write(&mut octets);
        read_message(name, &octets)
    };
    let frames = frames();
    let frames = frames
        .iter()
        .map(|(name, octets)| read_frames(name, octets));
    let samples: Vec<Sample> = messages().iter().map(message).chain(frames).collect();
    hold("inner", &samples);
}

#[test]
fn every_type_of_datagram_message_and_notice_that_the_codec_knows_has_a_sample() {
    let sampled: BTreeSet<u8> = all().iter().map(|(_, octets)| octets[0] & 15).collect();
    let is_known = |kind: &u8| {
        let mut octets = [0; HEADER_BYTES];
        octets[0] = SESSION_VERSION << 4 | kind;
        let hec = hec(&octets[..2], &octets[4..]);
        octets[2..4].copy_from_slice(&hec.to_be_bytes());
        Header::parse(&octets).is_ok()
    };
    assert_eq!((0..16).filter(is_known).collect::<BTreeSet<u8>>(), sampled);

    let of_notices = all().into_iter().filter(|(_, octets)| octets[0] & 15 == 6);
    let sampled: BTreeSet<u8> = of_notices.map(|(_, octets)| octets[8]).collect();
    let is_known = |what: &u8| Notice::of_word(u32::from(*what) << 24).is_some();
    assert_eq!(
        (0..=255).filter(is_known).collect::<BTreeSet<u8>>(),
        sampled
    );

    let sampled: BTreeSet<u8> = (messages().iter())
        .map(|(_, message)| {
            let mut octets = Vec::new();
            message.write(&mut octets);
            octets[0]
        })
        .collect();
    let is_known = |kind: &u8| {
        let mut octets = [0; 64];
        octets[0] = *kind;
        Message::read(&octets).is_some()
    };
    assert_eq!(
        (0..=255).filter(is_known).collect::<BTreeSet<u8>>(),
        sampled
    );
}
