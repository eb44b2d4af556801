//! Each kind of frame, octet by octet, both ways, as in the examples of the specification.

use super::super::golden::short_examples;
use super::super::*;
use super::*;
use crate::fec::window::{Density, WindowEncoder};
use crate::units::BitErrorRate;
use crate::wire::{Mode, Port, TpduSeq};
use core::time::Duration;

const OPENER: Port = Port(50_081);
const LISTENER: Port = Port(7_070);
const TIME: u32 = 100_000;

/// The one connection of the examples, at the end that a frame arrives at.
#[derive(Clone, Copy, Debug)]
struct One(Ends);

impl Known for One {
    fn ends(&self, named: Named) -> Option<Ends> {
        let theirs_opened = self.0.remote == OPENER;
        let known = Name::of(OPENER, LISTENER) == Some(named.name);
        (known && named.sender_opened == theirs_opened).then_some(self.0)
    }

    fn next_expected(&self, source: Port, destination: Port) -> TpduSeq {
        assert_eq!((source, destination), (self.0.remote, self.0.local));
        self.0.next_expected
    }
}

const AT_LISTENER: One = One(Ends {
    local: LISTENER,
    remote: OPENER,
    mode: Mode::HybridNackMack,
    next_expected: TpduSeq(1_000),
    first_unsettled: TpduSeq(5),
});

/// The same connection at its other end, which has numbers from `first_unsettled` on under way.
const fn at_opener(first_unsettled: u32) -> One {
    One(Ends {
        local: OPENER,
        remote: LISTENER,
        first_unsettled: TpduSeq(first_unsettled),
        ..AT_LISTENER.0
    })
}

const fn named(sender_opened: bool) -> Named {
    Named {
        name: Name(0x0E86),
        sender_opened,
    }
}

const fn header(flags: Flags) -> Header {
    Header {
        source: OPENER,
        destination: LISTENER,
        seq: TpduSeq(1_000),
        timestamp: TIME,
        mode: Mode::HybridNackMack,
        ecn: EcnField::NONE,
        flags,
    }
}

fn receiver(window: u16, hold_us: u64) -> ReceiverWord {
    ReceiverWord {
        window,
        hold: HoldTime::from_duration(Duration::from_micros(hold_us)),
    }
}

fn words() -> CumulativeWords {
    let code = |rate| RateCode::of(BitErrorRate::new(rate).unwrap());
    CumulativeWords {
        receiver: receiver(4_093, 2_000),
        channel: Some(ChannelWord {
            recent: code(1e-3),
            lasting: code(1e-6),
        }),
        report: Some(PathReport {
            arrived: 1_500_000,
            clock: 250_000,
        }),
    }
}

fn feedback(sender_opened: bool, ecn: EcnField) -> ShortFeedback {
    ShortFeedback {
        named: named(sender_opened),
        ecn,
        echo: TIME,
        frame_bytes_max: 1_400,
    }
}

fn seqs(numbers: &[u32]) -> impl Iterator<Item = TpduSeq> {
    numbers.iter().copied().map(TpduSeq)
}

/// The content that the specification calls `name`, as written.
fn written(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match name {
        "short-data" => {
            write_named(named(true), &header(Flags::NONE), &mut out);
            out.extend_from_slice(b"telemetry");
        }
        "short-full" => {
            write_full(&header(Flags::ASYN), &mut out);
            out.extend_from_slice(b"first");
        }
        "short-mack" => {
            let above = seqs(&[1_005, 1_006, 1_002, 1_004]);
            let (none, next) = (Handshake::None, TpduSeq(1_001));
            let words = receiver(4_093, 2_000).into();
            feedback(false, EcnField::ECHO).cumulative(none, next, words, above, &mut out);
        }
        "short-mack-words" => {
            let (none, next) = (Handshake::None, TpduSeq(1_001));
            feedback(false, EcnField::NONE).cumulative(none, next, words(), [], &mut out);
        }
        "short-afinack" => {
            let (afin, next) = (Handshake::Afin, TpduSeq(1_003));
            let words = receiver(4_096, 160).into();
            feedback(false, EcnField::NONE).cumulative(afin, next, words, [], &mut out);
        }
        "short-nack-damaged" => {
            let (damaged, first) = (NackCause::Damaged, TpduSeq(1_001));
            feedback(false, EcnField::NONE).nack(damaged, first, [], &mut out);
        }
        "short-nack-missing" => {
            let (missing, first) = (NackCause::Missing, TpduSeq(u32::MAX));
            feedback(false, EcnField::NONE).nack(missing, first, seqs(&[0, 138]), &mut out);
        }
        "short-repair" => {
            let block = BlockDescriptor::new(BlockDescriptor::CAUCHY_GF256, 1, 0).unwrap();
            write_repair(named(true), &header(Flags::NONE), block, &mut out);
            out.extend_from_slice(b"\0\x09telemetry");
        }
        "short-window" => {
            let window = WindowDescriptor::new(1, 15, 7).unwrap();
            write_window(named(true), TpduSeq(1_000), window, &mut out);
            let mut encoder = WindowEncoder::new();
            encoder
                .encode_repair(&[b"telemetry"], 7, Density::FULL, &mut out)
                .unwrap();
        }
        "short-unknown-name" => write_unknown_name(named(true), &mut out),
        "short-content" => {
            let mut mack = Vec::new();
            let (none, next) = (Handshake::None, TpduSeq(7));
            let words = receiver(4_096, 0).into();
            feedback(true, EcnField::NONE).cumulative(none, next, words, [], &mut mack);
            write_followed(&mack, &mut out);
            write_named(named(true), &header(Flags::PSH), &mut out);
            out.extend_from_slice(b"ping");
        }
        "short-long" => {
            out.push(0);
            let header = Header {
                seq: TpduSeq(1_003),
                ..header(Flags::AFIN)
            };
            let tpdu = Outgoing {
                header,
                crc: false,
                fec_words: FecStrength::NONE,
                block: None,
                body: &[],
            };
            encode(&tpdu, &mut out);
        }
        other => panic!("no golden content called {other}"),
    }
    out
}

fn example(name: &str) -> Vec<u8> {
    let examples = short_examples();
    let found = examples.into_iter().find(|(of, _)| *of == name);
    found.expect("the specification has it").1
}

fn frames(octets: &[u8]) -> Vec<Frame<'_>> {
    Content::of(octets).collect::<Result<_, _>>().unwrap()
}

/// Looks at the only TPDU of an example, as the end reads it that `known` is about.
fn only<T>(name: &str, known: One, look: impl FnOnce(Tpdu<'_>) -> T) -> T {
    let octets = example(name);
    let frames = frames(&octets);
    assert_eq!(frames.len(), 1, "{name}");
    look(read(&frames[0], &known).unwrap())
}

#[test]
fn every_example_of_the_short_form_is_what_is_sent() {
    let differing: Vec<String> = short_examples()
        .into_iter()
        .filter(|(name, octets)| written(name) != *octets)
        .map(|(name, _)| format!("{name} is sent as {:02x?}", written(name)))
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn the_specification_has_an_example_of_every_kind_of_frame_with_a_tpdu() {
    let kinds = [
        ("short-data", vec![FrameKind::Data]),
        ("short-full", vec![FrameKind::Full]),
        ("short-mack", vec![FrameKind::Mack]),
        ("short-mack-words", vec![FrameKind::Mack]),
        ("short-afinack", vec![FrameKind::Mack]),
        ("short-nack-damaged", vec![FrameKind::Nack]),
        ("short-nack-missing", vec![FrameKind::Nack]),
        ("short-repair", vec![FrameKind::Repair]),
        ("short-window", vec![FrameKind::Window]),
        ("short-unknown-name", vec![FrameKind::UnknownName]),
        ("short-content", vec![FrameKind::Mack, FrameKind::Data]),
        ("short-long", vec![FrameKind::Long]),
    ];
    let examples = short_examples();
    assert_eq!(examples.len(), kinds.len());
    for ((name, octets), (expected, kinds)) in examples.iter().zip(&kinds) {
        let frames = frames(octets).into_iter().map(|frame| frame.kind());
        assert_eq!(name, expected);
        assert_eq!(
            frames.collect::<Vec<_>>(),
            kinds.iter().copied().map(Some).collect::<Vec<_>>(),
            "{name}"
        );
    }
}

#[test]
fn data_and_repair_read_as_the_long_form_would() {
    only("short-data", AT_LISTENER, |tpdu| {
        assert_eq!(
            (tpdu.header, tpdu.body),
            (header(Flags::NONE), &b"telemetry"[..])
        );
        assert_eq!(tpdu.kind(), TpduKind::Data { asyn: false });
        assert_eq!((tpdu.check, tpdu.block), (BodyCheck::Unchecked, None));
        assert_eq!((tpdu.covered.len(), tpdu.parity.len()), (0, 0));
    });
    only("short-full", AT_LISTENER, |tpdu| {
        assert_eq!(
            (tpdu.header, tpdu.body),
            (header(Flags::ASYN), &b"first"[..])
        );
        assert_eq!(tpdu.kind(), TpduKind::Data { asyn: true });
    });
    only("short-repair", AT_LISTENER, |tpdu| {
        let block = tpdu.block.unwrap();
        assert_eq!((block.sources(), block.repair_index), (1, 0));
        assert_eq!(block.code, BlockDescriptor::CAUCHY_GF256);
        assert_eq!(
            (tpdu.header, tpdu.body),
            (header(Flags::NONE), &b"\0\x09telemetry"[..])
        );
        assert_eq!(tpdu.kind(), TpduKind::Repair);
    });
    only("short-window", AT_LISTENER, |tpdu| {
        let window = tpdu.window.unwrap();
        assert_eq!(
            (window.sources(), window.threshold(), window.key),
            (1, 15, 7)
        );
        assert_eq!((tpdu.header.seq, tpdu.body.len()), (TpduSeq(1_000), 11));
        assert_eq!((tpdu.kind(), tpdu.block), (TpduKind::Window, None));
    });
}

#[test]
fn answers_read_as_the_specification_says() {
    only("short-mack", at_opener(990), |tpdu| {
        let mack = Mack::of(&tpdu).unwrap();
        assert_eq!(
            (tpdu.header.source, tpdu.header.destination),
            (LISTENER, OPENER)
        );
        assert_eq!((mack.asyn, mack.afin, mack.echo), (false, false, TIME));
        assert!(mack.ecn.echoes());
        let Acks::Cumulative {
            next_expected,
            receiver: word,
            channel,
            report,
            above,
        } = mack.acks
        else {
            panic!("not cumulative");
        };
        assert_eq!(
            (next_expected, word),
            (TpduSeq(1_001), receiver(4_093, 2_000))
        );
        assert_eq!((channel, report), (None, None));
        assert_eq!(above.len(), 4);
        let above: Vec<_> = above.collect();
        assert_eq!(above, [1_006, 1_005, 1_004, 1_002].map(TpduSeq));
    });
    only("short-mack-words", at_opener(990), |tpdu| {
        let Acks::Cumulative {
            receiver,
            channel,
            report,
            mut above,
            ..
        } = Mack::of(&tpdu).unwrap().acks
        else {
            panic!("not cumulative");
        };
        let read = CumulativeWords {
            receiver,
            channel,
            report,
        };
        assert_eq!((read, above.next()), (words(), None));
    });
    only("short-afinack", at_opener(1_003), |tpdu| {
        let mack = Mack::of(&tpdu).unwrap();
        assert_eq!((mack.asyn, mack.afin), (false, true));
    });
    only("short-nack-damaged", at_opener(1_001), |tpdu| {
        let nack = Nack::of(&tpdu).unwrap();
        assert_eq!((nack.cause, nack.echo), (NackCause::Damaged, TIME));
        assert_eq!(nack.wanted().collect::<Vec<_>>(), [TpduSeq(1_001)]);
    });
    only("short-nack-missing", at_opener(u32::MAX - 9), |tpdu| {
        let nack = Nack::of(&tpdu).unwrap();
        assert_eq!((nack.cause, nack.ecn.echoes()), (NackCause::Missing, false));
        let wanted: Vec<_> = nack.wanted().collect();
        assert_eq!(wanted, [u32::MAX, 0, 138].map(TpduSeq));
    });
    only("short-unknown-name", at_opener(1_000), |tpdu| {
        assert_eq!(tpdu.kind(), TpduKind::Reset);
        assert_eq!(
            (tpdu.header.source, tpdu.header.destination),
            (LISTENER, OPENER)
        );
    });
}

#[test]
fn an_unknown_name_is_answered_under_the_same_name_of_the_other_side() {
    let octets = example("short-data");
    let frame = frames(&octets)[0];
    let reject = read(&frame, &at_opener(0)).unwrap_err();
    assert_eq!(reject, Reject::UnknownName(Name(0x0E86)));
    let mut out = Vec::new();
    write_unknown_name(frame.named().unwrap(), &mut out);
    assert_eq!(out, example("short-unknown-name"));
    let answer = frames(&out)[0];
    assert_eq!(answer.named(), frame.named().map(Named::answered));
    assert_eq!(read(&answer, &AT_LISTENER).unwrap_err(), reject);
}
