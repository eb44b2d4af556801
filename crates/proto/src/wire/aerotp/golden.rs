//! One TPDU of every kind, octet by octet, both ways, as in the examples of the specification.

use super::*;
use crate::units::BitErrorRate;
use crate::wire::TpduSeq;
use crate::wire::{Mode, Port};

const HEADER: Header = Header {
    source: Port(4000),
    destination: Port(5000),
    seq: TpduSeq(1000),
    timestamp: 0x0001_86A0,
    mode: Mode::HybridNackMack,
    ecn: EcnField::NONE,
    flags: Flags::NONE,
};

/// Feedback in the other direction, echoing [`HEADER`]'s timestamp.
const FEEDBACK: Feedback = Feedback {
    source: Port(5000),
    destination: Port(4000),
    mode: Mode::HybridNackMack,
    ecn: EcnField::NONE,
    echo: 0x0001_86A0,
    crc: true,
    fec_words: FecStrength::NONE,
};

const fn flagged(flags: Flags) -> Header {
    Header { flags, ..HEADER }
}

/// A header with 64 bits that mean nothing to the receiver.
const fn challenged(source: u16, destination: u16, flags: Flags) -> Header {
    Header {
        source: Port(source),
        destination: Port(destination),
        seq: TpduSeq(0x0123_4567),
        timestamp: 0x89AB_CDEF,
        flags,
        ..HEADER
    }
}

fn plain(header: Header, crc: bool, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let tpdu = Outgoing {
        header,
        crc,
        fec_words: FecStrength::NONE,
        block: None,
        body,
    };
    encode(&tpdu, &mut out);
    out
}

fn receiver(window: u16, hold_us: u64) -> ReceiverWord {
    ReceiverWord {
        window,
        hold: HoldTime::from_duration(core::time::Duration::from_micros(hold_us)),
    }
}

fn seqs(numbers: &[u32]) -> impl Iterator<Item = TpduSeq> {
    numbers.iter().copied().map(TpduSeq)
}

/// The TPDU that the specification calls `name`, as encoded; parity appended where it has some.
pub(super) fn encoded(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match name {
        "asyn" => return plain(flagged(Flags::ASYN), false, b""),
        "asyn-data" => return plain(flagged(Flags::ASYN), true, b"first"),
        "data" => return plain(flagged(Flags::PSH), true, b"telemetry"),
        "datagram" => {
            let header = Header {
                mode: Mode::Datagram,
                seq: TpduSeq(0),
                ..HEADER
            };
            return plain(header, false, b"ping");
        }
        "afin" => {
            let header = Header {
                seq: TpduSeq(1003),
                ..flagged(Flags::AFIN)
            };
            return plain(header, false, b"");
        }
        "reset" => return plain(flagged(Flags::RST), false, b""),
        "challenge" => return plain(challenged(5000, 4000, Flags::CHALLENGE), false, b""),
        "response" => return plain(challenged(4000, 5000, Flags::RESPONSE), false, b""),
        "data-fec" => {
            let tpdu = Outgoing {
                header: HEADER,
                crc: true,
                fec_words: FecStrength::from_words(2).unwrap(),
                block: None,
                body: b"telemetry",
            };
            encode(&tpdu, &mut out);
            out.extend_from_slice(&PARITY);
        }
        "repair" => {
            let tpdu = Outgoing {
                header: HEADER,
                crc: true,
                fec_words: FecStrength::NONE,
                block: BlockDescriptor::new(BlockDescriptor::CAUCHY_GF256, 1, 0),
                // The block's one source is `data`, so its only coefficient is 1 / ((1 + 0) xor 0).
                body: b"\0\x09telemetry",
            };
            encode(&tpdu, &mut out);
        }
        answer => answer_encoded(answer, &mut out),
    }
    out
}

fn answer_encoded(name: &str, out: &mut Vec<u8>) {
    match name {
        "asynack" => {
            let word = receiver(4096, 0);
            FEEDBACK.cumulative(Handshake::Asyn, TpduSeq(1001), word, [], out);
        }
        "mack-listed" => {
            let further = seqs(&[1002, 1003]);
            FEEDBACK.listed(Handshake::None, TpduSeq(1000), further, out);
        }
        "mack-cumulative" => {
            let feedback = Feedback {
                ecn: EcnField::ECHO,
                ..FEEDBACK
            };
            let above = seqs(&[1004, 1002]);
            let word = receiver(4093, 2000);
            feedback.cumulative(Handshake::None, TpduSeq(1001), word, above, out);
        }
        "mack-report" => {
            let feedback = Feedback {
                ecn: EcnField::ECHO,
                ..FEEDBACK
            };
            let report = PathReport {
                arrived: 1_500_000,
                clock: 250_000,
            };
            let words = CumulativeWords {
                report: Some(report),
                ..receiver(4093, 2000).into()
            };
            let above = seqs(&[1004, 1002]);
            let (none, next) = (Handshake::None, TpduSeq(1001));
            feedback.cumulative(none, next, words, above, out);
        }
        "mack-channel" => {
            let feedback = Feedback {
                ecn: EcnField::ECHO,
                ..FEEDBACK
            };
            let code = |rate| RateCode::of(BitErrorRate::new(rate).unwrap());
            let words = CumulativeWords {
                channel: Some(ChannelWord {
                    recent: code(1e-3),
                    lasting: code(1e-6),
                }),
                ..receiver(4093, 2000).into()
            };
            let above = seqs(&[1004, 1002]);
            let (none, next) = (Handshake::None, TpduSeq(1001));
            feedback.cumulative(none, next, words, above, out);
        }
        "afinack" => {
            let word = receiver(4096, 160);
            FEEDBACK.cumulative(Handshake::Afin, TpduSeq(1003), word, [], out);
        }
        "nack-damaged" => {
            let first = TpduSeq(1001);
            FEEDBACK.nack(NackCause::Damaged, first, [], out);
        }
        "nack-missing" => {
            let first = TpduSeq(u32::MAX);
            FEEDBACK.nack(NackCause::Missing, first, seqs(&[0]), out);
        }
        other => panic!("no golden TPDU called {other}"),
    }
}

/// The parity of the `data-fec` example; `tests/wire_examples.rs` compares it with the code's.
const PARITY: [u8; 8] = [0x41, 0x28, 0x6f, 0x00, 0xc4, 0x5b, 0xf9, 0x71];

const SPECIFICATION: &str = include_str!("../../../../../docs/protocol/aerotp.md");

/// The examples of the long form in the specification.
pub(super) fn examples() -> Vec<(&'static str, Vec<u8>)> {
    examples_in(parts().0)
}

/// The examples of the short form, which has the last section to itself.
pub(super) fn short_examples() -> Vec<(&'static str, Vec<u8>)> {
    examples_in(parts().1)
}

fn parts() -> (&'static str, &'static str) {
    SPECIFICATION.split_once("\n## 11. ").unwrap()
}

/// Code blocks of the language `hex`, with their names; a comment runs from `;` to the end of its line.
fn examples_in(part: &'static str) -> Vec<(&'static str, Vec<u8>)> {
    let blocks = part.split("\n```hex ").skip(1);
    let read = |block: &'static str| {
        let (name, rest) = block.split_once('\n').unwrap();
        let (digits, _) = rest.split_once("```").unwrap();
        let octets = digits
            .lines()
            .filter_map(|line| line.split(';').next())
            .flat_map(str::split_whitespace)
            .map(|octet| u8::from_str_radix(octet, 16).unwrap())
            .collect();
        (name, octets)
    };
    blocks.map(read).collect()
}

#[test]
fn every_example_of_the_specification_is_what_is_sent() {
    let differing: Vec<String> = examples()
        .into_iter()
        .filter(|(name, octets)| encoded(name) != *octets)
        .map(|(name, _)| format!("{name} is sent as {:02x?}", encoded(name)))
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn the_specification_has_an_example_of_every_kind_which_reads_as_that_kind() {
    let (asyn, afin) = (false, false);
    let kinds = [
        ("asyn", TpduKind::Asyn),
        ("asyn-data", TpduKind::Data { asyn: true }),
        ("data", TpduKind::Data { asyn }),
        ("data-fec", TpduKind::Data { asyn }),
        ("datagram", TpduKind::Data { asyn }),
        ("repair", TpduKind::Repair),
        ("asynack", TpduKind::Mack { asyn: true, afin }),
        ("mack-listed", TpduKind::Mack { asyn, afin }),
        ("mack-cumulative", TpduKind::Mack { asyn, afin }),
        ("mack-report", TpduKind::Mack { asyn, afin }),
        ("mack-channel", TpduKind::Mack { asyn, afin }),
        ("nack-damaged", TpduKind::Nack),
        ("nack-missing", TpduKind::Nack),
        ("afin", TpduKind::Afin),
        ("afinack", TpduKind::Mack { asyn, afin: true }),
        ("reset", TpduKind::Reset),
        ("challenge", TpduKind::Challenge),
        ("response", TpduKind::Response),
    ];
    let examples = examples();
    let names: Vec<_> = examples.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, kinds.map(|(name, _)| name));
    for ((name, octets), (_, kind)) in examples.iter().zip(kinds) {
        let tpdu = parse(octets).unwrap();
        assert_eq!(tpdu.kind(), kind, "{name}");
        assert_ne!(tpdu.check, BodyCheck::Damaged, "{name}");
    }
}

#[test]
fn the_cumulative_example_reads_as_the_specification_says() {
    let octets = encoded("mack-cumulative");
    let mack = Mack::of(&parse(&octets).unwrap()).unwrap();
    assert_eq!((mack.asyn, mack.afin, mack.echo), (false, false, 100_000));
    assert!(mack.ecn.echoes());
    let Acks::Cumulative {
        next_expected,
        receiver: word,
        above,
        ..
    } = mack.acks
    else {
        panic!("not cumulative");
    };
    assert_eq!((next_expected, word), (TpduSeq(1001), receiver(4093, 2000)));
    assert_eq!(
        word.hold.to_duration(),
        Some(core::time::Duration::from_millis(2))
    );
    assert_eq!(above.collect::<Vec<_>>(), [TpduSeq(1004), TpduSeq(1002)]);
}

#[test]
fn the_missing_example_asks_across_the_wrap() {
    let octets = encoded("nack-missing");
    let nack = Nack::of(&parse(&octets).unwrap()).unwrap();
    assert_eq!(nack.cause, NackCause::Missing);
    let wanted: Vec<_> = nack.wanted().collect();
    assert_eq!(wanted, [TpduSeq(u32::MAX), TpduSeq(0)]);
}
