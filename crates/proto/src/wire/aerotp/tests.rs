//! The codec as a whole: encoded TPDUs come back, and no other octets are accepted.

use proptest::prelude::*;

use super::*;
use crate::units::BitErrorRate;
use crate::wire::TpduSeq;
use crate::wire::{Mode, Port};

fn feedback(ecn: u8, echo: u32, crc: bool) -> Feedback {
    Feedback {
        source: Port(9),
        destination: Port(7),
        mode: Mode::Reliable,
        ecn: EcnField::from_bits(ecn),
        echo,
        crc,
        fec_words: FecStrength::NONE,
    }
}

fn numbers(count: usize) -> impl Strategy<Value = Vec<TpduSeq>> {
    proptest::collection::vec(any::<u32>().prop_map(TpduSeq), 0..=count)
}

fn connected_mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(&Mode::ALL[1..])
}

prop_compose! {
    fn any_header(flags: Flags)(
        source: u16, destination: u16, seq: u32, timestamp: u32, mode in connected_mode(), ecn: u8,
    ) -> Header {
        Header {
            source: Port(source),
            destination: Port(destination),
            seq: TpduSeq(seq),
            timestamp,
            mode,
            ecn: EcnField::from_bits(ecn),
            flags,
        }
    }
}

fn data_flags() -> impl Strategy<Value = Flags> {
    prop::collection::vec(
        prop::sample::select(vec![Flags::NONE, Flags::ASYN, Flags::PSH, Flags::URG]),
        3,
    )
    .prop_map(|flags| flags.into_iter().fold(Flags::NONE, Flags::with))
}

fn block() -> impl Strategy<Value = BlockDescriptor> {
    (any::<u8>(), 1..=256_u16, any::<u8>()).prop_map(|(code, sources, repair_index)| {
        BlockDescriptor::new(code, sources, repair_index).unwrap()
    })
}

fn fec_words() -> impl Strategy<Value = FecStrength> {
    prop_oneof![Just(0), 1..=256_u16].prop_map(|words| FecStrength::from_words(words).unwrap())
}

proptest! {
    #[test]
    fn data_and_repair_come_back(
        (header, block) in prop_oneof![
            data_flags().prop_flat_map(any_header).prop_map(|header| (header, None)),
            (any_header(Flags::NONE), block().prop_map(Some)),
        ],
        crc: bool, fec_words in fec_words(),
        body in proptest::collection::vec(any::<u8>(), 1..100), before: Vec<u8>,
    ) {
        let mut out = before.clone();
        encode(&Outgoing { header, crc, fec_words, block, body: &body }, &mut out);
        let covered = out.split_off(before.len());
        prop_assert_eq!(out, before, "encode appends");
        let taken = covered.len() + fec_words.parity_bytes();
        let payload = payload_max(taken, fec_words, crc, block.is_some());
        prop_assert_eq!(payload, body.len());
        let parity = vec![0xA5; fec_words.parity_bytes()];
        let octets = [&covered[..], &parity].concat();
        let read = parse(&octets).unwrap();
        prop_assert_eq!((read.header, read.fec_words), (header, fec_words));
        prop_assert_eq!((read.block, read.body), (block, &body[..]));
        prop_assert_eq!((read.covered, read.parity), (&covered[..], &parity[..]));
        let check = if crc || !fec_words.is_none() {
            BodyCheck::Intact
        } else {
            BodyCheck::Unchecked
        };
        prop_assert_eq!(read.check, check);
        let asyn = header.flags.has(Flags::ASYN);
        let kind = if block.is_some() { TpduKind::Repair } else { TpduKind::Data { asyn } };
        prop_assert_eq!(read.kind(), kind);
    }

    #[test]
    fn listed_macks_come_back(
        ecn in 0_u8..4, echo: u32, crc: bool, first: u32, further in numbers(370),
        (handshake, asyn, afin) in prop::sample::select(vec![
            (Handshake::None, false, false),
            (Handshake::Asyn, true, false),
            (Handshake::Afin, false, true),
        ]),
    ) {
        let mut out = Vec::new();
        let feedback = feedback(ecn, echo, crc);
        let taken = feedback.listed(handshake, TpduSeq(first), further.iter().copied(), &mut out);
        prop_assert_eq!(taken, further.len().min(LISTED_NUMBERS_MAX));
        let mack = Mack::of(&parse(&out).unwrap()).unwrap();
        prop_assert_eq!((mack.asyn, mack.afin, mack.echo), (asyn, afin, echo));
        prop_assert_eq!(mack.ecn.bits(), ecn);
        let Acks::Listed { first: read, further: list } = mack.acks else {
            panic!("another style");
        };
        prop_assert_eq!(read, TpduSeq(first));
        prop_assert_eq!(list.collect::<Vec<_>>(), &further[..taken]);
    }

    #[test]
    fn cumulative_macks_come_back(
        echo: u32, crc: bool, next: u32, window: u16, held_us in 0_u64..1_048_000,
        above in numbers(370),
    ) {
        let receiver = ReceiverWord {
            window,
            hold: HoldTime::from_duration(core::time::Duration::from_micros(held_us)),
        };
        let mut out = Vec::new();
        let taken = feedback(0, echo, crc).cumulative(
            Handshake::None, TpduSeq(next), receiver, above.iter().copied(), &mut out,
        );
        prop_assert_eq!(taken, above.len().min(CUMULATIVE_NUMBERS_MAX));
        let mack = Mack::of(&parse(&out).unwrap()).unwrap();
        let Acks::Cumulative { next_expected, receiver: read, above: list, .. } = mack.acks else {
            panic!("another style");
        };
        prop_assert_eq!((next_expected, read), (TpduSeq(next), receiver));
        prop_assert_eq!(list.collect::<Vec<_>>(), &above[..taken]);
    }

    #[test]
    fn reports_come_back_in_the_place_of_two_numbers(
        arrived: u32, clock: u32, next: u32, above in numbers(370),
    ) {
        let words = CumulativeWords {
            report: Some(PathReport { arrived, clock }),
            ..CumulativeWords::default()
        };
        let mut out = Vec::new();
        let taken = feedback(0, 1, true).cumulative(
            Handshake::Afin, TpduSeq(next), words, above.iter().copied(), &mut out,
        );
        prop_assert_eq!(taken, above.len().min(CUMULATIVE_NUMBERS_MAX - REPORT_NUMBERS));
        let mack = Mack::of(&parse(&out).unwrap()).unwrap();
        let Acks::Cumulative { receiver, report, above: list, .. } = mack.acks else {
            panic!("another style");
        };
        prop_assert_eq!((receiver, report), (words.receiver, words.report));
        prop_assert_eq!(list.collect::<Vec<_>>(), &above[..taken]);
    }

    #[test]
    fn words_on_the_channel_come_back_with_a_report_and_without(
        recent in 1e-19..0.5, lasting in 1e-19..0.5, reports: bool, above in numbers(370),
    ) {
        let code = |rate| RateCode::of(BitErrorRate::new(rate).unwrap());
        let channel = ChannelWord { recent: code(recent), lasting: code(lasting) };
        let words = CumulativeWords {
            channel: Some(channel),
            report: reports.then_some(PathReport { arrived: 1, clock: 2 }),
            ..CumulativeWords::default()
        };
        let mut out = Vec::new();
        let taken = feedback(0, 1, true).cumulative(
            Handshake::None, TpduSeq(7), words, above.iter().copied(), &mut out,
        );
        prop_assert_eq!(taken, above.len().min(CUMULATIVE_NUMBERS_MAX - words.numbers()));
        let mack = Mack::of(&parse(&out).unwrap()).unwrap();
        let Acks::Cumulative { channel: read, report, above: list, .. } = mack.acks else {
            panic!("another style");
        };
        prop_assert_eq!((read, report), (Some(channel), words.report));
        prop_assert_eq!(list.collect::<Vec<_>>(), &above[..taken]);
    }

    #[test]
    fn nacks_come_back(
        cause in prop::sample::select(vec![NackCause::Damaged, NackCause::Missing]),
        crc: bool, first: u32, further in numbers(370),
    ) {
        let mut out = Vec::new();
        let first = TpduSeq(first);
        let taken = feedback(0, 0, crc).nack(cause, first, further.iter().copied(), &mut out);
        let nack = Nack::of(&parse(&out).unwrap()).unwrap();
        prop_assert_eq!(nack.cause, cause);
        let wanted: Vec<_> = nack.wanted().collect();
        prop_assert_eq!(wanted[0], first);
        prop_assert_eq!(&wanted[1..], &further[..taken]);
    }
}
