//! Samples of TPDUs.

use super::sample::{Sample, hold};
use core::time::Duration;
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::units::BitErrorRate;
use fulmar_proto::wire::TpduSeq;
use fulmar_proto::wire::aerotp::{
    Acks, BlockDescriptor, BodyCheck, ChannelWord, CumulativeWords, EcnField, FecStrength,
    Feedback, Flags, Handshake, Header, HoldTime, Mack, Nack, NackCause, Outgoing, PathReport,
    RateCode, ReceiverWord, Tpdu, TpduKind, encode, parse,
};
use fulmar_proto::wire::checksum::hec;
use fulmar_proto::wire::{Mode, Port};
use std::collections::BTreeSet;

const fn header(mode: Mode, flags: Flags) -> Header {
    Header {
        source: Port(4_000),
        destination: Port(5_000),
        seq: TpduSeq(1_000),
        timestamp: 100_000,
        mode,
        ecn: EcnField::NONE,
        flags,
    }
}

fn written(
    header: Header,
    crc: bool,
    words: u16,
    block: Option<BlockDescriptor>,
    body: &[u8],
) -> Vec<u8> {
    let fec_words = FecStrength::from_words(words).expect("samples are valid");
    let mut octets = Vec::new();
    let outgoing = Outgoing {
        header,
        crc,
        fec_words,
        block,
        body,
    };
    encode(&outgoing, &mut octets);
    PacketCode::new().append_parity(&mut octets, 0, fec_words);
    octets
}

fn feedback(mode: Mode, crc: bool, words: u16) -> Feedback {
    Feedback {
        source: Port(5_000),
        destination: Port(4_000),
        mode,
        ecn: EcnField::NONE,
        echo: 100_000,
        crc,
        fec_words: FecStrength::from_words(words).expect("samples are valid"),
    }
}

fn numbers(count: u32) -> impl Iterator<Item = TpduSeq> {
    (0..count).map(|number| TpduSeq(1_003 + 2 * number))
}

fn acknowledgements() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let receiver = ReceiverWord {
        window: 4_093,
        hold: HoldTime::from_duration(Duration::from_millis(2)),
    };
    let channel = Some(ChannelWord {
        recent: RateCode::of(BitErrorRate::new(1e-3).expect("samples are valid")),
        lasting: RateCode::of(BitErrorRate::new(1e-6).expect("samples are valid")),
    });
    let report = Some(PathReport {
        arrived: 1_500_000,
        clock: 250_000,
    });
    for (handshake, name) in [
        (Handshake::None, "mack"),
        (Handshake::Asyn, "asynack"),
        (Handshake::Afin, "afinack"),
    ] {
        for (crc, words, of) in [(false, 0, ""), (true, 0, " crc"), (true, 3, " fec")] {
            let feedback = feedback(Mode::HybridNackMack, crc, words);
            for count in [0, 3] {
                let mut octets = Vec::new();
                feedback.listed(handshake, TpduSeq(1_001), numbers(count), &mut octets);
                PacketCode::new().append_parity(&mut octets, 0, feedback.fec_words);
                all.push((format!("{name} listed {count}{of}"), octets));
            }
            for (channel, report, with) in [
                (None, None, ""),
                (channel, None, " channel"),
                (None, report, " report"),
                (channel, report, " channel report"),
            ] {
                for count in [0, 2] {
                    let words = CumulativeWords {
                        receiver,
                        channel,
                        report,
                    };
                    let mut octets = Vec::new();
                    let next = TpduSeq(1_001);
                    feedback.cumulative(handshake, next, words, numbers(count), &mut octets);
                    PacketCode::new().append_parity(&mut octets, 0, feedback.fec_words);
                    all.push((format!("{name} cumulative{with} {count}{of}"), octets));
                }
            }
        }
    }
    let echoing = Feedback {
        ecn: EcnField::ECHO,
        ..feedback(Mode::NearReliable, true, 0)
    };
    for (cause, name) in [
        (NackCause::Damaged, "nack damaged"),
        (NackCause::Missing, "nack missing"),
    ] {
        for count in [0, 365] {
            let mut octets = Vec::new();
            echoing.nack(cause, TpduSeq(u32::MAX), numbers(count), &mut octets);
            all.push((format!("{name} {count}"), octets));
        }
    }
    let mut octets = Vec::new();
    let held = ReceiverWord {
        window: 0,
        hold: HoldTime::UNKNOWN,
    };
    echoing.cumulative(Handshake::None, TpduSeq(7), held, numbers(364), &mut octets);
    all.push(("mack longest".to_owned(), octets));
    all
}

fn others() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for mode in Mode::ALL {
        let octets = written(header(mode, Flags::NONE), true, 0, None, b"telemetry");
        all.push((format!("data {mode}"), octets));
    }
    let reliable = |flags| header(Mode::Reliable, flags);
    let carried = Flags::PSH.with(Flags::URG).with(Flags::ASYN);
    let ecn = Header {
        ecn: EcnField::ECHO.with(EcnField::REDUCED),
        ..reliable(Flags::PSH)
    };
    let block = BlockDescriptor::new(BlockDescriptor::CAUCHY_GF256, 20, 7);
    let largest = BlockDescriptor::new(9, 256, 255);
    let empty = header(Mode::Datagram, Flags::PSH);
    let mut add = |name: &str, octets| all.push((name.to_owned(), octets));
    for (crc, words, of) in [
        (false, 0, ""),
        (true, 0, " crc"),
        (true, 1, " fec"),
        (true, 256, " most fec"),
    ] {
        add(
            &format!("asyn data{of}"),
            written(reliable(carried), crc, words, None, b"first"),
        );
        add(
            &format!("asyn{of}"),
            written(reliable(Flags::ASYN), crc, words, None, b""),
        );
        add(
            &format!("afin{of}"),
            written(reliable(Flags::AFIN), crc, words, None, b""),
        );
        add(
            &format!("reset{of}"),
            written(reliable(Flags::RST), crc, words, None, b""),
        );
        for (flags, name) in [
            (Flags::CHALLENGE, "challenge"),
            (Flags::RESPONSE, "response"),
        ] {
            let octets = written(reliable(flags), crc, words, None, b"");
            add(&format!("{name}{of}"), octets);
        }
        add(
            &format!("repair{of}"),
            written(reliable(Flags::NONE), crc, words, block, b"\x00\x01symbol"),
        );
    }
    add(
        "repair of another code",
        written(reliable(Flags::NONE), true, 0, largest, b"?"),
    );
    add("ecn", written(ecn, true, 0, None, b"x"));
    add("an empty datagram", written(empty, false, 0, None, b""));
    all
}

fn kind_name(kind: TpduKind) -> &'static str {
    match kind {
        TpduKind::Asyn => "ASYN",
        TpduKind::Data { .. } => "data",
        TpduKind::Repair => "repair",
        TpduKind::Window => "window repair",
        TpduKind::Mack { asyn: true, .. } => "ASYNACK",
        TpduKind::Mack { afin: true, .. } => "AFINACK",
        TpduKind::Mack { .. } => "MACK",
        TpduKind::Nack => "NACK",
        TpduKind::Afin => "AFIN",
        TpduKind::Reset => "RST",
        TpduKind::Challenge => "CHALLENGE",
        TpduKind::Response => "RESPONSE",
    }
}

/// The code behind a rate: the codec tells the rate only.
fn code(rate: RateCode) -> f64 {
    (-1024.0 * rate.rate().value().log2()).round()
}

fn read_feedback(sample: &mut Sample, tpdu: &Tpdu<'_>) {
    if tpdu.kind() == TpduKind::Nack {
        let nack = Nack::of(tpdu).expect("samples are valid");
        sample.field("fulmar.aerotp.echoed", nack.echo);
        for number in nack.wanted().skip(1) {
            sample.field("fulmar.aerotp.number", number.0);
        }
        return;
    }
    let Mack {
        asyn: _,
        afin: _,
        echo,
        ecn: _,
        acks,
    } = Mack::of(tpdu).expect("samples are valid");
    sample.field("fulmar.aerotp.echoed", echo);
    let numbers = match acks {
        Acks::Listed { first: _, further } => further,
        Acks::Cumulative {
            next_expected: _,
            receiver: ReceiverWord { window, hold },
            channel,
            report,
            above,
        } => {
            let hold = hold
                .to_duration()
                .map_or(65_535, |held| held.as_micros() / 16);
            sample.field("fulmar.aerotp.mack.window", window);
            sample.field("fulmar.aerotp.mack.hold", hold);
            if let Some(ChannelWord { recent, lasting }) = channel {
                sample.field("fulmar.aerotp.mack.recent", code(recent));
                sample.field("fulmar.aerotp.mack.lasting", code(lasting));
            }
            if let Some(PathReport { arrived, clock }) = report {
                sample.field("fulmar.aerotp.mack.arrived", arrived);
                sample.field("fulmar.aerotp.mack.clock", clock);
            }
            above
        }
    };
    for number in numbers {
        sample.field("fulmar.aerotp.number", number.0);
    }
}

fn read(name: &str, octets: &[u8]) -> Sample {
    let mut sample = Sample::new(name, octets);
    let tpdu = parse(octets).expect("samples are valid");
    let Header {
        source,
        destination,
        seq,
        timestamp,
        mode,
        ecn,
        flags,
    } = tpdu.header;
    sample.field("fulmar.aerotp.srcport", source);
    sample.field("fulmar.aerotp.dstport", destination);
    sample.field("fulmar.aerotp.seq", seq.0);
    sample.field("fulmar.aerotp.mode", mode.code());
    sample.field("fulmar.aerotp.kind", kind_name(tpdu.kind()));
    for (name, flag) in [
        ("afin", Flags::AFIN),
        ("asyn", Flags::ASYN),
        ("rst", Flags::RST),
        ("psh", Flags::PSH),
        ("mack", Flags::MACK),
        ("urg", Flags::URG),
        ("nack", Flags::NACK),
    ] {
        sample.flag(&format!("fulmar.aerotp.flags.{name}"), flags.has(flag));
    }
    sample.flag("fulmar.aerotp.flags.echo", ecn.echoes());
    sample.flag("fulmar.aerotp.flags.reduced", ecn.reduced());
    let is_block = tpdu.block.is_some() || flags.has(Flags::CUMULATIVE);
    sample.flag("fulmar.aerotp.flags.block", is_block);
    sample.flag("fulmar.aerotp.flags.fec", !tpdu.fec_words.is_none());
    sample.flag(
        "fulmar.aerotp.flags.crc",
        tpdu.check != BodyCheck::Unchecked,
    );
    sample.field("fulmar.aerotp.hec.status", 1);
    if tpdu.check == BodyCheck::Intact {
        sample.field("fulmar.aerotp.crc.status", 1);
    }
    if !tpdu.fec_words.is_none() {
        sample.field("fulmar.aerotp.fec.words", tpdu.fec_words.words());
    }
    if let Some(block) = tpdu.block {
        sample.field("fulmar.aerotp.block.code", block.code);
        sample.field("fulmar.aerotp.block.sources", block.sources());
        sample.field("fulmar.aerotp.block.repair", block.repair_index);
    }
    sample.octets("fulmar.aerotp.parity", tpdu.parity);
    match tpdu.kind() {
        TpduKind::Mack { .. } | TpduKind::Nack => read_feedback(&mut sample, &tpdu),
        kind => {
            let body = if kind == TpduKind::Repair {
                "symbol"
            } else {
                "payload"
            };
            sample.field("fulmar.aerotp.timestamp", timestamp);
            sample.octets(&format!("fulmar.aerotp.{body}"), tpdu.body);
        }
    }
    sample
}

fn all() -> Vec<(String, Vec<u8>)> {
    [others(), acknowledgements()].concat()
}

#[test]
fn the_samples_of_tpdus_are_what_the_codec_writes_and_reads() {
    let samples: Vec<Sample> = all()
        .iter()
        .map(|(name, octets)| read(name, octets))
        .collect();
    hold("aerotp", &samples);
}

/// The mode, flags and kind of a TPDU that parses, with data's payload flags left out.
fn shape(octets: &[u8]) -> Option<(&'static str, bool, bool, bool)> {
    let tpdu = parse(octets).ok()?;
    let flags = tpdu.header.flags;
    let is_feedback = matches!(tpdu.kind(), TpduKind::Mack { .. } | TpduKind::Nack);
    let with = |flag| is_feedback && flags.has(flag);
    Some((
        kind_name(tpdu.kind()),
        with(Flags::CUMULATIVE),
        with(Flags::REPORT),
        with(Flags::CHANNEL),
    ))
}

#[test]
fn every_kind_of_tpdu_that_the_codec_knows_has_a_sample() {
    let sampled: BTreeSet<_> = all()
        .iter()
        .filter_map(|(_, octets)| shape(octets))
        .collect();
    let plain = written(header(Mode::Reliable, Flags::NONE), false, 0, None, b"x");
    let mut known = BTreeSet::new();
    for flags in 0..=u16::from(u8::MAX) * 16 + 15 {
        for body_bytes in [0, 4, 8, 12, 16] {
            let mut octets = plain[..16].to_vec();
            let [high, low] = flags.to_be_bytes();
            // CRC and FEC go with every kind.
            octets[12] = Mode::Reliable.code() << 4 | high & 0b1001;
            octets[13] = low;
            octets.resize(16 + body_bytes, 0);
            let is_block = high & 1 == 1 && low & 0x10 == 0;
            let descriptor = 16 + if is_block { 4.min(body_bytes) } else { 0 };
            let hec = hec(&octets[..14], &octets[16..descriptor]);
            octets[14..16].copy_from_slice(&hec.to_be_bytes());
            known.extend(shape(&octets));
        }
    }
    assert!(known.len() >= 16, "{known:?}");
    assert_eq!(known, sampled);
}
