//! The short form as a whole: what is written comes back, and what is cut off or contradictory is refused.

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::super::golden::short_examples;
use super::super::*;
use super::*;
use crate::wire::{Mode, Port, TpduSeq, varint};

/// A peer with connections of all names.
#[derive(Clone, Copy, Debug)]
struct All {
    mode: Mode,
    next_expected: TpduSeq,
    first_unsettled: TpduSeq,
}

impl Known for All {
    fn ends(&self, named: Named) -> Option<Ends> {
        let listener = Port(7_072 + named.name.listener_low());
        let (remote, local) = if named.sender_opened {
            (named.name.opener(), listener)
        } else {
            (listener, named.name.opener())
        };
        Some(Ends {
            local,
            remote,
            mode: self.mode,
            next_expected: self.next_expected,
            first_unsettled: self.first_unsettled,
        })
    }

    fn next_expected(&self, _: Port, _: Port) -> TpduSeq {
        self.next_expected
    }
}

const AT_ZERO: All = All {
    mode: Mode::Reliable,
    next_expected: TpduSeq(0),
    first_unsettled: TpduSeq(0),
};

const NAMED: Named = Named {
    name: Name(0x1235),
    sender_opened: true,
};

fn only(octets: &[u8]) -> Frame<'_> {
    let frames: Vec<_> = Content::of(octets).collect();
    assert_eq!(frames.len(), 1);
    frames[0].unwrap()
}

fn refused(octets: &[u8]) -> Reject {
    read(&only(octets), &AT_ZERO).unwrap_err()
}

fn feedback(frame_bytes_max: usize) -> ShortFeedback {
    ShortFeedback {
        named: NAMED,
        ecn: EcnField::NONE,
        echo: 16,
        frame_bytes_max,
    }
}

/// A MACK for number 0 with these numbers as its ranges.
fn mack_with(ranges: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    let (none, words) = (Handshake::None, CumulativeWords::default());
    feedback(0).cumulative(none, TpduSeq(0), words, [], &mut out);
    for number in ranges {
        varint::write(*number, &mut out);
    }
    out
}

/// A NACK for number 0 with these numbers as its ranges.
fn nack_with(ranges: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    feedback(0).nack(NackCause::Missing, TpduSeq(0), [], &mut out);
    for number in ranges {
        varint::write(*number, &mut out);
    }
    out
}

fn above(tpdu: &Tpdu<'_>) -> Vec<u32> {
    let Acks::Cumulative { above, .. } = Mack::of(tpdu).unwrap().acks else {
        panic!("not cumulative");
    };
    assert_eq!(above.len(), above.clone().count());
    above.map(|number| number.0).collect()
}

fn wanted(tpdu: &Tpdu<'_>) -> Vec<u32> {
    let nack = Nack::of(tpdu).unwrap();
    nack.wanted().map(|number| number.0).collect()
}

#[test]
fn each_frame_has_the_octets_that_the_decision_counts() {
    for (name, bytes, data) in [
        ("short-data", NAMED_BYTES, 9),
        ("short-full", FULL_BYTES, 5),
        ("short-repair", REPAIR_BYTES, 11),
        ("short-afinack", MACK_BYTES, 0),
        ("short-mack-words", MACK_BYTES + 12, 0),
        ("short-nack-damaged", NACK_BYTES, 0),
        ("short-unknown-name", 4, 0),
    ] {
        let examples = short_examples();
        let (_, octets) = examples.iter().find(|(of, _)| *of == name).unwrap();
        assert_eq!(octets.len(), bytes + data, "{name}");
    }
    // Beside 28 of IPv4 and UDP, 8 of the session's header and 16 of its tag (ADR 0029).
    let sizes = [
        NAMED_BYTES,
        FULL_BYTES,
        REPAIR_BYTES,
        MACK_BYTES,
        NACK_BYTES,
    ];
    assert_eq!(sizes.map(|bytes| 52 + bytes), [61, 63, 63, 66, 62]);
}

#[test]
fn no_cut_of_an_example_passes_for_the_whole() {
    let known = All {
        mode: Mode::HybridNackMack,
        ..AT_ZERO
    };
    for (name, octets) in short_examples() {
        let whole: Vec<_> = Content::of(&octets).map(Result::unwrap).collect();
        let body = |frame: &Frame<'_>| read(frame, &known).map(|tpdu| tpdu.body.len());
        for len in 0..octets.len() {
            let cut: Vec<_> = Content::of(&octets[..len]).collect();
            let last = cut.last().unwrap();
            let same = cut.len() == whole.len()
                && last.is_ok_and(|last| {
                    match (read(&last, &known), body(&whole[cut.len() - 1])) {
                        // A list may end after any range.
                        (Ok(tpdu), Ok(body)) => tpdu.body.len() >= body,
                        (Ok(_), Err(_)) => true,
                        (Err(_), _) => false,
                    }
                });
            assert!(!same, "{name}: {len}");
        }
    }
}

#[test]
fn a_wrong_flag_or_type_is_refused_under_its_name() {
    let mut mack = mack_with(&[]);
    for bit in [1, 2] {
        mack[1] = bit;
        assert_eq!(refused(&mack), Reject::Flags);
    }
    mack[1] = 0x60;
    assert_eq!(refused(&mack), Reject::Flags, "ASYN and AFIN");
    let mut nack = nack_with(&[]);
    for bit in 0..5 {
        nack[1] = 1 << bit;
        assert_eq!(refused(&nack), Reject::Flags);
    }
    for flags in 1..0x80 {
        assert_eq!(refused(&[0x22, flags, 0, 0]), Reject::Flags);
    }
    assert_eq!(refused(&[0x22, 0, 0, 0, 0]), Reject::BodyLength);
    for code in [
        0x01, 0x07, 0x08, 0x10, 0x23, 0x34, 0x3F, 0x41, 0x5F, 0xC0, 0xFF,
    ] {
        let octets = [code, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        assert_eq!(refused(&octets), Reject::FrameType(code));
        assert_eq!(only(&octets).named(), None);
        assert_eq!(only(&octets).fields().len(), 12);
    }
}

#[test]
fn data_keeps_the_rules_of_its_mode() {
    let named = [0x58, 0, 0, 0, 0, 1, 0, 0, 1];
    assert_eq!(refused(&named), Reject::BodyLength);
    assert_eq!(
        refused(&[&named[..], b"x"].concat()[..8]),
        Reject::Truncated
    );
    let without_time = [0x50, 0, 0, 0, 0, 1, 0, 0, 1, 0];
    assert_eq!(refused(&without_time), Reject::Flags);
    let full = |code: u8, payload: &[u8]| [&[code, 0, 1, 0, 2, 0, 0, 1, 0, 0, 1], payload].concat();
    assert_eq!(refused(&full(0x6F, b"x")), Reject::ReservedMode(7));
    assert_eq!(refused(&full(0x66, b"x")), Reject::Flags, "no time");
    assert_eq!(refused(&full(0x6E, b"")), Reject::BodyLength);
    assert_eq!(refused(&full(0x7E, b"")), Reject::BodyLength, "a pure ASYN");
    assert_eq!(
        refused(&full(0x78, b"x")),
        Reject::Flags,
        "a datagram opens nothing"
    );
    let datagram = full(0x68, b"");
    let tpdu = read(&only(&datagram), &AT_ZERO).unwrap();
    assert_eq!((tpdu.header.mode, tpdu.body), (Mode::Datagram, &b""[..]));
    let datagrams = All {
        mode: Mode::Datagram,
        ..AT_ZERO
    };
    for octets in [mack_with(&[]), nack_with(&[]), vec![0x22, 0, 0, 0]] {
        let reject = read(&only(&octets), &datagrams).unwrap_err();
        assert_eq!(reject, Reject::Flags);
    }
}

#[test]
fn lists_have_bounds_and_one_past_them_is_refused() {
    let most = (1 << 23) - 1;
    for (ranges, sound) in [
        (&[][..], true),
        (&[most, 0], true),
        (&[most + 1, 0], false),
        (&[4, 4], true),
        (&[4, 5], false),
        (&[4, 1, 1, 0], true),
        (&[4, 1, 1, 1], false),
        (&[4, 1, 2, 0], false),
        (&[4], false),
        (&[4, 1, 0], false),
        (&[4, varint::MAX], false),
        (&[varint::MAX, 0], false),
    ] {
        let octets = mack_with(ranges);
        let read = read(&only(&octets), &AT_ZERO);
        assert_eq!(
            read.map_err(Some).err(),
            (!sound).then_some(Some(Reject::Ranges)),
            "{ranges:?}"
        );
    }
    for (ranges, sound) in [
        (&[][..], true),
        (&[0], true),
        (&[most], true),
        (&[most + 1], false),
        (&[0, most - 2, 0], true),
        (&[0, most - 1, 0], false),
        (&[0, most - 2, 1], false),
        (&[0, 0], false),
    ] {
        let octets = nack_with(ranges);
        let read = read(&only(&octets), &AT_ZERO);
        assert_eq!(
            read.map_err(Some).err(),
            (!sound).then_some(Some(Reject::Ranges)),
            "{ranges:?}"
        );
    }
}

#[test]
fn no_more_than_4096_numbers_are_read_or_written() {
    let octets = mack_with(&[5_000, 4_095, 0, 0]);
    let read_in = above(&read(&only(&octets), &AT_ZERO).unwrap());
    assert_eq!(read_in, (905..=5_000).rev().collect::<Vec<_>>());
    let octets = mack_with(&[5_000, 4_094, 0, 3]);
    let read_in = above(&read(&only(&octets), &AT_ZERO).unwrap());
    assert_eq!(
        (read_in.len(), read_in[4_094], read_in[4_095]),
        (4_096, 906, 904)
    );
    let octets = nack_with(&[9_000]);
    let read_in = wanted(&read(&only(&octets), &AT_ZERO).unwrap());
    assert_eq!(read_in, (0..4_096).collect::<Vec<_>>());
    let mut out = Vec::new();
    let further = (1..9_000).map(TpduSeq);
    let told = feedback(1_400).nack(NackCause::Damaged, TpduSeq(0), further, &mut out);
    assert_eq!(told, 4_095);
    out.clear();
    let (none, words) = (Handshake::None, CumulativeWords::default());
    let numbers = (1..9_000).map(TpduSeq);
    let told = feedback(1_400).cumulative(none, TpduSeq(0), words, numbers, &mut out);
    assert_eq!(told, 4_096);
}

fn payload_flags() -> impl Strategy<Value = Flags> {
    prop::sample::select(vec![
        Flags::NONE,
        Flags::PSH,
        Flags::URG,
        Flags::PSH.with(Flags::URG),
    ])
}

fn named() -> impl Strategy<Value = Named> {
    (any::<u16>(), any::<bool>()).prop_map(|(name, sender_opened)| Named {
        name: Name(name),
        sender_opened,
    })
}

/// Numbers behind a base in bursts, as losses leave them.
fn offsets() -> impl Strategy<Value = BTreeSet<u32>> {
    let bursts = vec((0_u32..1 << 15, 1_u32..40), 0..60);
    bursts.prop_map(|bursts| {
        let numbers = bursts
            .into_iter()
            .flat_map(|(start, count)| start..start + count);
        numbers.collect()
    })
}

proptest! {
    #[test]
    fn data_and_repair_come_back(
        named in named(), mode in prop::sample::select(&Mode::ALL[1..]), expected: u32, distance in -(1_i32 << 23)..1 << 23,
        timestamp: u32, flags in payload_flags(), asyn: bool, body in vec(any::<u8>(), 1..100), before: Vec<u8>,
        sources in 1..=256_u16, index: u8,
    ) {
        let known = All { mode, next_expected: TpduSeq(expected), first_unsettled: TpduSeq(!expected) };
        let ends = known.ends(named).unwrap();
        let sent = Header {
            source: ends.remote,
            destination: ends.local,
            seq: TpduSeq(expected.wrapping_add_signed(distance)),
            timestamp,
            mode,
            ecn: EcnField::NONE,
            flags,
        };
        let block = BlockDescriptor::new(BlockDescriptor::CAUCHY_GF256, sources, index).unwrap();
        for kind in [FrameKind::Data, FrameKind::Full, FrameKind::Repair] {
            let mut out = before.clone();
            let flags = match kind {
                FrameKind::Data => flags,
                FrameKind::Full if asyn => Flags::ASYN,
                _ => Flags::NONE,
            };
            let sent = Header { flags, ..sent };
            match kind {
                FrameKind::Data => write_named(named, &sent, &mut out),
                FrameKind::Full => write_full(&sent, &mut out),
                _ => write_repair(named, &sent, block, &mut out),
            }
            out.extend_from_slice(&body);
            let frame = only(&out[before.len()..]);
            prop_assert_eq!(&out[..before.len()], &before, "writing appends");
            prop_assert_eq!(frame.kind(), Some(kind));
            prop_assert_eq!(frame.named(), (kind != FrameKind::Full).then_some(named));
            let tpdu = read(&frame, &known).unwrap();
            let arrived = Header { timestamp: timestamp & 0x0FFF_FFF0, ..sent };
            prop_assert_eq!((tpdu.header, tpdu.body), (arrived, &body[..]));
            prop_assert_eq!(tpdu.block, (kind == FrameKind::Repair).then_some(block));
        }
    }

    #[test]
    fn symbols_over_windows_come_back_and_no_part_of_their_fields_is_one(
        named in named(), expected: u32, distance in -(1_i32 << 22)..1 << 22,
        sources in 1_u16..4_096, threshold in 0_u8..16, key: u16, body in vec(any::<u8>(), 1..100),
    ) {
        let known = All { next_expected: TpduSeq(expected), ..AT_ZERO };
        let first = TpduSeq(expected.wrapping_add_signed(distance));
        let window = WindowDescriptor::new(sources, threshold, key).unwrap();
        let mut out = Vec::new();
        write_window(named, first, window, &mut out);
        prop_assert_eq!(out.len(), WINDOW_BYTES);
        for end in 1..=WINDOW_BYTES {
            prop_assert!(read(&only(&out[..end]), &known).is_err(), "no symbol");
        }
        out.extend_from_slice(&body);
        let frame = only(&out);
        prop_assert_eq!((frame.kind(), frame.named()), (Some(FrameKind::Window), Some(named)));
        let tpdu = read(&frame, &known).unwrap();
        prop_assert_eq!((tpdu.kind(), tpdu.window, tpdu.block), (TpduKind::Window, Some(window), None));
        prop_assert_eq!((tpdu.header.seq, tpdu.body), (first, &body[..]));
        // No source at all.
        (out[6], out[7]) = (out[6] & 0xF0, 0);
        prop_assert_eq!(read(&only(&out), &known).unwrap_err(), Reject::BlockDescriptor);
    }

    #[test]
    fn macks_come_back_as_far_as_there_is_room(
        named in named(), next: u32, unsettled in 0_u32..1 << 15, echo: u32, window: u16,
        echoes: bool, channel: bool, report in prop::option::of(any::<(u32, u32)>()),
        offsets in offsets(), shuffle: u64, room in 0_usize..400,
    ) {
        let known = All { first_unsettled: TpduSeq(next.wrapping_sub(unsettled)), ..AT_ZERO };
        let mut numbers: Vec<u32> = offsets.iter().map(|offset| next.wrapping_add(*offset)).collect();
        // Any order: which one comes first decides what is said.
        numbers.sort_by_key(|number| u64::from(*number).wrapping_mul(shuffle | 1) >> 7);
        let words = CumulativeWords {
            receiver: ReceiverWord { window, hold: HoldTime::UNKNOWN },
            channel: channel.then(|| ChannelWord {
                recent: RateCode::of(crate::units::BitErrorRate::ZERO),
                lasting: RateCode::of(crate::units::BitErrorRate::ZERO),
            }),
            report: report.map(|(arrived, clock)| PathReport { arrived, clock }),
        };
        let ecn = if echoes { EcnField::ECHO } else { EcnField::NONE };
        let feedback = ShortFeedback { named, ecn, echo, frame_bytes_max: room };
        let mut out = Vec::new();
        let offered = numbers.iter().copied().map(TpduSeq);
        let told = feedback.cumulative(Handshake::Asyn, TpduSeq(next), words, offered.clone(), &mut out);
        let fixed = MACK_BYTES + 4 * usize::from(channel) + 8 * usize::from(report.is_some());
        prop_assert!(out.len() <= room.max(fixed));
        let mack_tpdu = read(&only(&out), &known).unwrap();
        let mack = Mack::of(&mack_tpdu).unwrap();
        prop_assert_eq!((mack.asyn, mack.afin, mack.ecn), (true, false, ecn));
        prop_assert_eq!(mack.echo, echo & 0x0FFF_FFF0);
        let Acks::Cumulative { next_expected, receiver, channel, report, above } = mack.acks else {
            panic!("not cumulative");
        };
        prop_assert_eq!(next_expected, TpduSeq(next));
        prop_assert_eq!(CumulativeWords { receiver, channel, report }, words);
        let mut expected: Vec<u32> = numbers[..told].iter().map(|number| number.wrapping_sub(next)).collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        let above: Vec<u32> = above.map(|number| number.offset_from(TpduSeq(next))).collect();
        prop_assert_eq!(above, expected);
        // With room enough all are said.
        let feedback = ShortFeedback { frame_bytes_max: usize::MAX, ..feedback };
        let told_all = feedback.cumulative(Handshake::Asyn, TpduSeq(next), words, offered, &mut Vec::new());
        prop_assert_eq!(told_all, numbers.len());
    }

    #[test]
    fn nacks_come_back_as_far_as_there_is_room(
        first: u32, unsettled in 0_u32..1 << 15, offsets in offsets(), room in 0_usize..400,
        cause in prop::sample::select(vec![NackCause::Damaged, NackCause::Missing]),
    ) {
        let known = All { first_unsettled: TpduSeq(first.wrapping_sub(unsettled)), ..AT_ZERO };
        let further: Vec<u32> = offsets.iter().skip_while(|offset| **offset == 0).map(|offset| first.wrapping_add(*offset)).collect();
        let mut out = Vec::new();
        let offered = further.iter().copied().map(TpduSeq);
        let told = feedback(room).nack(cause, TpduSeq(first), offered.clone(), &mut out);
        prop_assert!(out.len() <= room.max(NACK_BYTES));
        let tpdu = read(&only(&out), &known).unwrap();
        prop_assert_eq!(Nack::of(&tpdu).unwrap().cause, cause);
        let wanted = wanted(&tpdu);
        prop_assert_eq!(wanted[0], first);
        prop_assert_eq!(&wanted[1..], &further[..told]);
        // One octet more than is taken must not have sufficed for one number more.
        if told < further.len() {
            let mut more = Vec::new();
            let enough = feedback(usize::MAX);
            enough.nack(cause, TpduSeq(first), offered.take(told + 1), &mut more);
            prop_assert!(more.len() > room);
        }
    }

    #[test]
    fn a_number_that_does_not_ascend_ends_a_nack(
        first: u32, ascending in btree_set(1_u32..1 << 15, 1..20), back in 0_u32..1 << 15,
    ) {
        let mut further: Vec<u32> = ascending.into_iter().collect();
        let count = further.len();
        further.push(back % (further[count - 1] + 1));
        further.push(u32::from(u16::MAX));
        let offered = further.iter().map(|offset| TpduSeq(first.wrapping_add(*offset)));
        let told = feedback(1_400).nack(NackCause::Damaged, TpduSeq(first), offered, &mut Vec::new());
        prop_assert_eq!(told, count);
    }
}
