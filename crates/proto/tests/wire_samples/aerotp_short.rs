//! Samples of the frames of the short form. Their fields are those of the long form where there is one.
//!
//! Numbers and times are given as they are cut, times in microseconds: a dissector does not know what the receiver expects.

use super::sample::{Sample, hold};
use core::time::Duration;
use fulmar_proto::units::BitErrorRate;
use fulmar_proto::wire::aerotp::short::{
    Content, Ends, Frame, FrameKind, Known, Name, Named, ShortFeedback, read, write_full,
    write_named, write_repair, write_unknown_name, write_window,
};
use fulmar_proto::wire::aerotp::{
    Acks, BlockDescriptor, ChannelWord, CumulativeWords, EcnField, Flags, Handshake, Header,
    HoldTime, Mack, Nack, NackCause, PathReport, RateCode, ReceiverWord, Tpdu, TpduKind,
    WindowDescriptor,
};
use fulmar_proto::wire::{Mode, Port, TpduSeq, cut};
use std::collections::BTreeSet;

const OPENER: Port = Port(50_081);
/// No application that a dissector knows.
const LISTENER: Port = Port(7_074);

/// The end that does not send the samples.
struct Receiver;

impl Known for Receiver {
    fn ends(&self, named: Named) -> Option<Ends> {
        let (remote, local) = if named.sender_opened {
            (OPENER, LISTENER)
        } else {
            (LISTENER, OPENER)
        };
        Some(Ends {
            local,
            remote,
            mode: Mode::Reliable,
            next_expected: TpduSeq(1_000),
            first_unsettled: TpduSeq(1_000),
        })
    }

    fn next_expected(&self, _: Port, _: Port) -> TpduSeq {
        TpduSeq(1_000)
    }
}

const fn named(sender_opened: bool) -> Named {
    Named {
        name: Name(0x0E86),
        sender_opened,
    }
}

const fn header(mode: Mode, flags: Flags) -> Header {
    Header {
        source: OPENER,
        destination: LISTENER,
        seq: TpduSeq(1_000),
        timestamp: 100_000,
        mode,
        ecn: EcnField::NONE,
        flags,
    }
}

fn data() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for (flags, of) in [
        (Flags::NONE, ""),
        (Flags::PSH, " psh"),
        (Flags::URG, " urg"),
    ] {
        for (opened, from) in [(true, " of the opener"), (false, " of the listener")] {
            let mut octets = Vec::new();
            write_named(named(opened), &header(Mode::Reliable, flags), &mut octets);
            octets.extend_from_slice(b"telemetry");
            all.push((format!("data{of}{from}"), octets));
        }
    }
    for mode in Mode::ALL {
        for (flags, of) in [(Flags::NONE, ""), (Flags::ASYN, " asyn")] {
            if mode == Mode::Datagram && flags == Flags::ASYN {
                continue;
            }
            let mut octets = Vec::new();
            write_full(&header(mode, flags), &mut octets);
            octets.extend_from_slice(b"telemetry");
            all.push((format!("full {mode}{of}"), octets));
        }
    }
    for (opened, from) in [(true, "opener"), (false, "listener")] {
        let block = BlockDescriptor::new(BlockDescriptor::CAUCHY_GF256, 32, 7);
        let block = block.expect("samples are valid");
        let mut octets = Vec::new();
        let header = header(Mode::Reliable, Flags::NONE);
        write_repair(named(opened), &header, block, &mut octets);
        octets.extend_from_slice(b"\0\x09telemetry");
        all.push((format!("repair of the {from}"), octets));
        let window = WindowDescriptor::new(300, 15, 0xABCD).expect("samples are valid");
        let mut octets = Vec::new();
        write_window(named(opened), TpduSeq(1_000), window, &mut octets);
        octets.extend_from_slice(b"symbol");
        all.push((format!("window repair of the {from}"), octets));
        let mut octets = Vec::new();
        write_unknown_name(named(opened).answered(), &mut octets);
        all.push((format!("unknown name of the {from}"), octets));
    }
    all
}

fn answers() -> Vec<(String, Vec<u8>)> {
    let feedback = |ecn| ShortFeedback {
        named: named(false),
        ecn,
        echo: 100_000,
        frame_bytes_max: 1_400,
    };
    let rate = |rate| RateCode::of(BitErrorRate::new(rate).expect("samples are valid"));
    let channel = Some(ChannelWord {
        recent: rate(1e-3),
        lasting: rate(1e-6),
    });
    let report = Some(PathReport {
        arrived: 1_500_000,
        clock: 250_000,
    });
    let numbers = |all: &[u32]| all.iter().copied().map(TpduSeq).collect::<Vec<_>>();
    let (few, wide) = (numbers(&[1_002, 1_004, 1_005]), numbers(&[1_200, 20_000]));
    let mut all = Vec::new();
    for (handshake, name) in [
        (Handshake::None, "mack"),
        (Handshake::Asyn, "asynack"),
        (Handshake::Afin, "afinack"),
    ] {
        for (channel, report, with) in [
            (None, None, ""),
            (channel, None, " channel"),
            (None, report, " report"),
            (channel, report, " channel report"),
        ] {
            for above in [&[][..], &few, &wide] {
                let words = CumulativeWords {
                    receiver: ReceiverWord {
                        window: 4_093,
                        hold: HoldTime::from_duration(Duration::from_millis(2)),
                    },
                    channel,
                    report,
                };
                let mut octets = Vec::new();
                let above = above.iter().copied();
                let count = feedback(EcnField::ECHO).cumulative(
                    handshake,
                    TpduSeq(1_001),
                    words,
                    above,
                    &mut octets,
                );
                all.push((format!("{name}{with} {count}"), octets));
            }
        }
    }
    for (cause, name) in [
        (NackCause::Damaged, "nack damaged"),
        (NackCause::Missing, "nack missing"),
    ] {
        for (ecn, of) in [(EcnField::NONE, ""), (EcnField::ECHO, " echo")] {
            for further in [&[][..], &few, &wide] {
                let mut octets = Vec::new();
                let further = further.iter().copied();
                let count = feedback(ecn).nack(cause, TpduSeq(1_001), further, &mut octets);
                all.push((format!("{name}{of} {count}"), octets));
            }
        }
    }
    all
}

fn all() -> Vec<(String, Vec<u8>)> {
    [data(), answers()].concat()
}

fn only(octets: &[u8]) -> Frame<'_> {
    let mut frames = Content::of(octets);
    let frame = frames.next().expect("samples have a frame");
    assert!(frames.next().is_none());
    frame.expect("samples are valid")
}

fn kind_name(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Long => "long",
        FrameKind::Session => "session",
        FrameKind::Padding => "padding",
        FrameKind::Mack => "MACK",
        FrameKind::Nack => "NACK",
        FrameKind::UnknownName => "unknown name",
        FrameKind::Repair => "repair",
        FrameKind::Window => "window repair",
        FrameKind::Data | FrameKind::Full => "data",
    }
}

/// A time as it is cut: multiples of 16 us, modulo 2^28.
fn micros(time: u32) -> u32 {
    cut::time24(time) * 16
}

/// The code behind a rate: the codec tells the rate only.
fn code(rate: RateCode) -> f64 {
    (-1024.0 * rate.rate().value().log2()).round()
}

fn read_numbers(sample: &mut Sample, numbers: impl Iterator<Item = TpduSeq>) {
    for number in numbers {
        sample.field("fulmar.aerotp.number", cut::low24(number.0));
    }
}

fn read_mack(sample: &mut Sample, tpdu: &Tpdu<'_>) {
    let Mack {
        asyn,
        afin,
        echo,
        ecn,
        acks,
    } = Mack::of(tpdu).expect("samples are valid");
    sample.flag("fulmar.aerotp.flags.asyn", asyn);
    sample.flag("fulmar.aerotp.flags.afin", afin);
    sample.flag("fulmar.aerotp.flags.echo", ecn.echoes());
    sample.field("fulmar.aerotp.echoed", micros(echo));
    let Acks::Cumulative {
        next_expected,
        receiver: ReceiverWord { window, hold },
        channel,
        report,
        above,
    } = acks
    else {
        panic!("the short form has no lists");
    };
    sample.field("fulmar.aerotp.seq", cut::low24(next_expected.0));
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
    read_numbers(sample, above);
}

fn read_nack(sample: &mut Sample, tpdu: &Tpdu<'_>) {
    let nack = Nack::of(tpdu).expect("samples are valid");
    sample.flag("fulmar.aerotp.flags.urg", nack.cause == NackCause::Damaged);
    sample.flag("fulmar.aerotp.flags.echo", nack.ecn.echoes());
    sample.field("fulmar.aerotp.seq", cut::low24(tpdu.header.seq.0));
    sample.field("fulmar.aerotp.echoed", micros(nack.echo));
    read_numbers(sample, nack.wanted().skip(1));
}

fn read_data(sample: &mut Sample, kind: FrameKind, tpdu: &Tpdu<'_>) {
    let Header {
        source,
        destination,
        seq,
        timestamp,
        mode,
        ecn: EcnField::NONE,
        flags,
    } = tpdu.header
    else {
        panic!("data of the short form says nothing on congestion");
    };
    if kind == FrameKind::Full {
        sample.field("fulmar.aerotp.srcport", source);
        sample.field("fulmar.aerotp.dstport", destination);
        sample.field("fulmar.aerotp.mode", mode.code());
        sample.flag("fulmar.aerotp.flags.asyn", flags.has(Flags::ASYN));
    }
    if kind == FrameKind::Data {
        sample.flag("fulmar.aerotp.flags.psh", flags.has(Flags::PSH));
        sample.flag("fulmar.aerotp.flags.urg", flags.has(Flags::URG));
    }
    sample.field("fulmar.aerotp.seq", cut::low24(seq.0));
    if let Some(window) = tpdu.window {
        sample.field("fulmar.aerotp.window.density", window.threshold());
        sample.field("fulmar.aerotp.window.sources", window.sources());
        sample.field("fulmar.aerotp.window.key", window.key);
        sample.octets("fulmar.aerotp.symbol", tpdu.body);
        return;
    }
    sample.field("fulmar.aerotp.timestamp", micros(timestamp));
    if let Some(block) = tpdu.block {
        sample.field("fulmar.aerotp.block.sources", block.sources());
        sample.field("fulmar.aerotp.block.repair", block.repair_index);
        sample.octets("fulmar.aerotp.symbol", tpdu.body);
    } else {
        sample.octets("fulmar.aerotp.payload", tpdu.body);
    }
}

fn sample(name: &str, octets: &[u8]) -> Sample {
    let mut sample = Sample::new(name, octets);
    let frame = only(octets);
    let kind = frame.kind().expect("samples are known");
    let tpdu = read(&frame, &Receiver).expect("samples are valid");
    let name = match tpdu.kind() {
        TpduKind::Mack { asyn: true, .. } => "ASYNACK",
        TpduKind::Mack { afin: true, .. } => "AFINACK",
        _ => kind_name(kind),
    };
    sample.field("fulmar.aerotp.kind", name);
    if let Some(Named {
        name,
        sender_opened,
    }) = frame.named()
    {
        sample.field("fulmar.aerotp.name", name.0);
        sample.flag("fulmar.aerotp.opened", sender_opened);
    }
    match kind {
        FrameKind::Mack => read_mack(&mut sample, &tpdu),
        FrameKind::Nack => read_nack(&mut sample, &tpdu),
        FrameKind::UnknownName => {}
        _ => read_data(&mut sample, kind, &tpdu),
    }
    sample
}

#[test]
fn the_samples_of_the_short_form_are_what_the_codec_writes_and_reads() {
    let samples = all();
    let samples: Vec<_> = samples
        .iter()
        .map(|(name, octets)| sample(name, octets))
        .collect();
    hold("aerotp_short", &samples);
}

#[test]
fn every_type_that_the_short_form_has_for_tpdus_has_a_sample() {
    let sampled: BTreeSet<u8> = all()
        .iter()
        .map(|(_, octets)| only(octets).code())
        .collect();
    let known = (1..=0xFF).filter(|code| {
        let mut one_source = [0; 24];
        one_source[6] = 1;
        // A window of no TPDU is none.
        let fields = [[0; 24], one_source];
        let cut = |len| fields.map(|fields| fields[..len].to_vec());
        (0..24).flat_map(cut).any(|fields| {
            let octets = [&[*code], &fields[..]].concat();
            let frames: Result<Vec<_>, _> = Content::of(&octets).collect();
            // A type with MORE is one frame of several.
            frames.is_ok_and(
                |frames| matches!(&frames[..], [frame] if read(frame, &Receiver).is_ok()),
            )
        })
    });
    // Both flags of payload at once are the two of them.
    let both = |code: &u8| *code & 0xE6 == 0x46;
    let known: BTreeSet<u8> = known.filter(|code| !both(code)).collect();
    assert_eq!(known, sampled);
}
