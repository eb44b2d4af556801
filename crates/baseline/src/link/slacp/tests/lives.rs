//! Frames of several lives: a frame of one life counts for no other, and only a challenge makes a new
//! life trusted.

use super::pair::MEDIUM;
use crate::link::{LinkMachine, Slacp, SlacpConfig, StrictLink, by_hand};
use crate::wire::link::Challenge;
use crate::wire::link::slacp::{
    self, BlockPlace, FrameSeq, Incarnation, LANES, Lane, LaneSet, SlacpFrame,
};
use fulmar_proto::fec::block::encode_repair;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Instant};

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const FORMER: Incarnation = Incarnation(11);
const PRESENT: Incarnation = Incarnation(12);

fn receiver() -> StrictLink<Slacp> {
    let mut rng = Rng::from_seed(1);
    StrictLink::new(Slacp::new(SlacpConfig::default(), MEDIUM, &mut rng))
}

fn lane() -> Lane {
    Lane::new(0)
}

/// The packets released when a frame that `write` writes arrives.
fn arrive(machine: &mut StrictLink<Slacp>, write: impl FnOnce(&mut Vec<u8>)) -> Vec<Vec<u8>> {
    let mut frame = Vec::new();
    write(&mut frame);
    by_hand::arrive(machine, NOW, &frame)
}

/// Hands the machine a hello of `life`, whose numbers begin at `start`.
fn hello(
    machine: &mut StrictLink<Slacp>,
    life: Incarnation,
    answer: Challenge,
    start: FrameSeq,
) -> Vec<Vec<u8>> {
    let starts = [start; LANES];
    arrive(machine, |out| {
        slacp::encode_hello(life, answer, LaneSet::default(), starts, out);
    })
}

/// Takes the machine's frames, and returns the challenge among them.
fn challenge(machine: &mut StrictLink<Slacp>) -> Option<Challenge> {
    let said = by_hand::frames(machine, NOW);
    said.iter().find_map(
        |(_, frame)| match slacp::parse(frame, Incarnation::UNKNOWN) {
            Ok(SlacpFrame::Challenge { challenge }) => Some(challenge),
            _ => None,
        },
    )
}

fn data(
    machine: &mut StrictLink<Slacp>,
    life: Incarnation,
    seq: FrameSeq,
    packet: &[u8],
) -> Vec<Vec<u8>> {
    arrive(machine, |out| {
        slacp::encode_data(life, lane(), seq, packet, out);
    })
}

fn symbol(seq: FrameSeq, packet: &[u8]) -> Vec<u8> {
    [&seq.0.to_be_bytes()[..], packet].concat()
}

/// A machine that follows the present life, and followed the former one.
fn met_both(machine: &mut StrictLink<Slacp>) {
    hello(machine, PRESENT, Challenge::NONE, FrameSeq(0));
    let asked = challenge(machine).expect("another life is known");
    hello(machine, PRESENT, asked, FrameSeq(0));
    assert!(data(machine, FORMER, FrameSeq(0), b"late").is_empty());
}

#[test]
fn a_hello_is_believed_that_answers_the_present_challenge_and_none_twice() {
    let mut machine = receiver();
    hello(&mut machine, FORMER, Challenge::NONE, FrameSeq(0));
    assert_eq!(data(&mut machine, FORMER, FrameSeq(0), b"one"), [b"one"]);
    assert_eq!(challenge(&mut machine), None, "the first is believed");
    for answer in [Challenge::NONE, Challenge(7)] {
        hello(&mut machine, PRESENT, answer, FrameSeq(0));
        assert!(data(&mut machine, PRESENT, FrameSeq(0), b"two").is_empty());
    }
    let asked = challenge(&mut machine).expect("it does not know this life");
    hello(&mut machine, PRESENT, asked, FrameSeq(100));
    assert_eq!(data(&mut machine, PRESENT, FrameSeq(100), b"two"), [b"two"]);
    // The hello was held up since the former life was over; it answers the challenge of that time.
    hello(&mut machine, FORMER, asked, FrameSeq(0));
    assert!(data(&mut machine, FORMER, FrameSeq(0), b"one").is_empty());
    assert_eq!(data(&mut machine, PRESENT, FrameSeq(101), b"3"), [b"3"]);
}

#[test]
fn what_waited_for_a_hole_comes_out_when_the_life_that_would_fill_it_is_over() {
    let mut machine = receiver();
    hello(&mut machine, FORMER, Challenge::NONE, FrameSeq(0));
    assert!(data(&mut machine, FORMER, FrameSeq(1), b"behind").is_empty());
    hello(&mut machine, PRESENT, Challenge::NONE, FrameSeq(0));
    let asked = challenge(&mut machine).expect("another life is known");
    let released = hello(&mut machine, PRESENT, asked, FrameSeq(0));
    assert_eq!(released, [b"behind"]);
}

#[test]
fn a_known_life_s_hello_that_comes_again_brings_nothing_back() {
    let mut machine = receiver();
    for _ in 0..3 {
        hello(&mut machine, FORMER, Challenge::NONE, FrameSeq(0));
        let expected: &[&[u8]] = if machine.counters().released == 0 {
            &[b"once"]
        } else {
            &[]
        };
        assert_eq!(data(&mut machine, FORMER, FrameSeq(0), b"once"), expected);
    }
}

/// Blocks are told apart by eight bits, and both lives begin them at 0.
#[test]
fn parity_of_a_new_life_meets_no_packets_of_a_former_one() {
    let mut machine = receiver();
    hello(&mut machine, FORMER, Challenge::NONE, FrameSeq(0));
    let place = |index| BlockPlace { block: 0, index };
    let former = arrive(&mut machine, |out| {
        slacp::encode_again(FORMER, lane(), FrameSeq(0), place(0), b"former!", out);
    });
    assert_eq!(former, [b"former!"]);
    met_both(&mut machine);
    let sources = [
        symbol(FrameSeq(0), b"present"),
        symbol(FrameSeq(1), b"another"),
    ];
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let mut parity = Vec::new();
    encode_repair(&sources, 0, &mut parity).expect("two short symbols");
    let rebuilt = arrive(&mut machine, |out| {
        slacp::encode_parity(PRESENT, lane(), 2, place(0), &parity, out);
    });
    assert!(rebuilt.is_empty(), "{rebuilt:?}");
    let came = arrive(&mut machine, |out| {
        slacp::encode_again(PRESENT, lane(), FrameSeq(0), place(0), b"present", out);
    });
    assert_eq!(came, [b"present", b"another"]);
}

#[test]
fn an_acknowledgement_of_another_life_or_of_what_was_never_sent_confirms_nothing() {
    let mut machine = receiver();
    hello(&mut machine, PRESENT, Challenge::NONE, FrameSeq(0));
    by_hand::offer(&mut machine, NOW, b"packet");
    let said = by_hand::frames(&mut machine, NOW);
    let me = said.iter().find_map(
        |(_, frame)| match slacp::parse(frame, Incarnation::UNKNOWN) {
            Ok(SlacpFrame::Hello { incarnation, .. }) => Some(incarnation),
            _ => None,
        },
    );
    let me = me.expect("it introduces itself before its first packet");
    let other = Incarnation(me.0 ^ 1);
    for (peer, next, unexpected, held) in [
        (other, FrameSeq(1), 0, 6),
        (me, FrameSeq(2), 1, 6),
        (me, FrameSeq(1), 1, 0),
    ] {
        arrive(&mut machine, |out| {
            slacp::encode_ack(
                PRESENT,
                lane(),
                peer,
                (next, next),
                core::iter::empty(),
                out,
            );
        });
        assert_eq!(machine.counters().unexpected, unexpected);
        assert_eq!(machine.held(), ByteCount(held));
    }
}

/// Without this limit two ends that do not know each other would send hellos and nothing else.
#[test]
fn whoever_asks_often_who_this_end_is_hears_it_once_in_a_round_trip() {
    let mut machine = receiver();
    hello(&mut machine, PRESENT, Challenge::NONE, FrameSeq(0));
    let stranger = |out: &mut Vec<u8>| {
        let (peer, next) = (Incarnation(99), FrameSeq(0));
        slacp::encode_ack(
            PRESENT,
            lane(),
            peer,
            (next, next),
            core::iter::empty(),
            out,
        );
    };
    let later = NOW + (MEDIUM.round_trip + MEDIUM.access);
    for now in [NOW, later] {
        let mut said = 0;
        for _ in 0..100 {
            let mut frame = Vec::new();
            stranger(&mut frame);
            assert!(by_hand::arrive(&mut machine, now, &frame).is_empty());
            said += by_hand::frames(&mut machine, now).len();
        }
        assert_eq!(said, 1, "a hello at {now}");
    }
}

#[test]
fn a_new_life_is_told_at_once_who_this_end_is() {
    let mut machine = receiver();
    hello(&mut machine, FORMER, Challenge::NONE, FrameSeq(0));
    by_hand::frames(&mut machine, NOW);
    hello(&mut machine, PRESENT, Challenge::NONE, FrameSeq(0));
    let asked = challenge(&mut machine).expect("another life is known");
    hello(&mut machine, PRESENT, asked, FrameSeq(0));
    let said = by_hand::frames(&mut machine, NOW);
    let parsed = said
        .first()
        .map(|(_, frame)| slacp::parse(frame, Incarnation::UNKNOWN));
    assert!(matches!(parsed, Some(Ok(SlacpFrame::Hello { .. }))));
}
