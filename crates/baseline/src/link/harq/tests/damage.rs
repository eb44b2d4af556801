//! Damage that the checks overlooked, units and feedback of other lives, and blocks without an end: none of these stops
//! the hop, and the memory for them is bounded.

use super::{HarqConfig, Pair, ROUND_TRIP, Sent, end, frames};
use crate::link::LinkMachine;
use crate::link::by_hand::{arrive, offer, packet, packets};
use crate::wire::link::FrameNumber;
use crate::wire::link::arq::Epoch;
use crate::wire::link::harq::{
    HarqBlockReport, HarqFeedback, HarqFrame, HarqUnit, LEFT_OPEN, UnitKind,
};
use fulmar_proto::fec::block::{ROWS_MAX, SPAN_MAX};
use fulmar_proto::units::{ByteCount, Duration, Instant};

/// The unit that a frame carries, changed by damage that its check overlooks.
fn damaged(frame: &Sent, damage: impl Fn(&mut HarqUnit)) -> Vec<u8> {
    let Ok(HarqFrame::Unit(mut unit, octets)) = HarqFrame::parse(&frame.1) else {
        panic!("not a unit: {frame:?}");
    };
    damage(&mut unit);
    let mut out = Vec::new();
    HarqFrame::Unit(unit, octets).encode(&mut out);
    out
}

/// Exchanges the receiver's challenge and the sender's answer. Returns the packets that are then
/// released.
fn introduce(pair: &mut Pair) -> Vec<Vec<u8>> {
    let challenge = frames(&mut pair.receiver, pair.now);
    for (_, octets) in &challenge {
        pair.sender.handle_frame(pair.now, octets);
        assert!(packets(&mut pair.sender).is_empty());
    }
    let answer = frames(&mut pair.sender, pair.now);
    pair.arrive(&answer)
}

#[test]
fn damage_that_the_check_overlooked_stops_nothing() {
    // Every bit of epoch and block is inverted, also in a frame that the medium repeats.
    for bit in 0..16 {
        let mut pair = Pair::new();
        let sent = pair.send(1);
        assert_eq!(pair.arrive(&sent), [packet(1)]);
        let sent = pair.send(2);
        for times in 0..2 {
            let far = damaged(&sent[times], |unit| unit.block.0 ^= 1 << bit);
            let foreign = damaged(&sent[times], |unit| unit.epoch.0 ^= 1 << bit);
            for frame in [&far, &far, &foreign, &foreign] {
                pair.receiver.handle_frame(pair.now, frame);
                packets(&mut pair.receiver);
            }
            introduce(&mut pair);
            if times == 0 {
                assert_eq!(pair.arrive(&sent), [packet(2)], "bit {bit}");
                break;
            }
        }
        for number in 3..10 {
            let sent = pair.send(number);
            assert_eq!(pair.arrive(&sent), [packet(number)], "bit {bit}");
        }
    }
}

#[test]
fn nor_does_damage_to_the_very_first_unit() {
    for bit in 0..16 {
        let mut pair = Pair::new();
        let mut came = Vec::new();
        for number in 1..10 {
            let sent = pair.send(number);
            if number == 1 {
                let far = damaged(&sent[0], |unit| unit.block.0 ^= 1 << bit);
                pair.receiver.handle_frame(pair.now, &far);
                came.extend(packets(&mut pair.receiver));
            }
            came.extend(pair.arrive(&sent));
            came.extend(introduce(&mut pair));
        }
        // At worst the packets that came wait for blocks that never were.
        while pair.receiver.next_deadline().is_some() {
            came.extend(pair.receiver_waits());
            frames(&mut pair.receiver, pair.now);
        }
        let all: Vec<Vec<u8>> = (1..10).map(packet).collect();
        let numbers: Vec<u8> = came.iter().map(|packet| packet[0]).collect();
        assert!(came == all, "bit {bit}: {numbers:?} came");
    }
}

#[test]
fn blocks_that_were_lost_whole_are_asked_for_as_soon_as_two_units_tell() {
    let mut pair = Pair::new();
    let sent = pair.send(1);
    assert_eq!(pair.arrive(&sent), [packet(1)]);
    let lost = pair.send(2);
    let sent = pair.send(3);
    assert!(pair.arrive(&sent[..1]).is_empty());
    assert!(frames(&mut pair.receiver, pair.now).is_empty());
    assert!(pair.arrive(&sent[1..]).is_empty());
    let answer = pair.feed_back(1);
    assert!(answer.len() >= lost.len());
    assert_eq!(pair.arrive(&answer), [packet(2), packet(3)]);
}

#[test]
fn a_restarted_peer_is_followed_when_it_answers_and_none_of_its_packets_is_lost_for_that() {
    let mut pair = Pair::new();
    let sent = pair.send(1);
    assert_eq!(pair.arrive(&sent), [packet(1)]);
    let former = sent;
    pair.sender = end(pair.config, "the sender's second life");
    let sent = pair.send(2);
    assert!(pair.arrive(&sent).is_empty());
    assert_eq!(introduce(&mut pair), [packet(2)]);
    // Units of the former life that the medium held up change nothing.
    assert!(pair.arrive(&former).is_empty());
    assert!(introduce(&mut pair).is_empty());
    let sent = pair.send(3);
    assert_eq!(pair.arrive(&sent), [packet(3)]);
}

#[test]
fn units_of_a_life_that_never_answers_are_kept_up_to_a_bound_and_come_to_nothing() {
    let mut pair = Pair::new();
    let sent = pair.send(1);
    assert_eq!(pair.arrive(&sent), [packet(1)]);
    for index in 0..10_000_u32 {
        let [low, high, ..] = index.to_le_bytes();
        let frame = damaged(&sent[0], |unit| {
            unit.epoch = Epoch(unit.epoch.0.wrapping_add(1));
            unit.block = FrameNumber(u16::from_le_bytes([low, high]));
        });
        pair.receiver.handle_frame(pair.now, &frame);
        assert!(packets(&mut pair.receiver).is_empty());
    }
    let unit = 1_004 / 2 + 1;
    // The block that came is held as well, since its end is not known.
    assert!(pair.receiver.held() <= ByteCount(unit * 1_024 + 2 * (unit + 2)));
    let sent = pair.send(2);
    assert_eq!(pair.arrive(&sent), [packet(2)]);
}

#[test]
fn a_block_of_the_longest_packets_is_closed_by_its_octets() {
    let config = HarqConfig {
        window: 2,
        ..HarqConfig::default()
    };
    let mut sender = end(config, "sender");
    let longest = vec![7; usize::from(u16::MAX)];
    let mut offered = 0;
    while sender.ready() {
        offer(&mut sender, Instant::START, &longest);
        frames(&mut sender, Instant::START);
        offered += 1;
    }
    // Two packets are more than a block of 70,000 octets takes.
    assert_eq!(offered, 4);
    assert_eq!(sender.held(), ByteCount(4 * (65_535 + 4)));
}

/// A unit of a life that it only claims, with a right check.
fn unit_frame(serial: u8, kind: UnitKind, octets: &[u8]) -> Vec<u8> {
    let unit = HarqUnit {
        epoch: Epoch(7),
        serial,
        block: FrameNumber(0),
        before: 0,
        kind,
    };
    let mut out = Vec::new();
    unit.encode(octets, &mut out);
    out
}

#[test]
fn of_a_block_with_endless_units_no_more_than_its_octets_are_kept() {
    let mut pair = Pair::new();
    let first = unit_frame(0, UnitKind::Source { index: 0 }, b"\x80part");
    assert!(arrive(&mut pair.receiver, pair.now, &first).is_empty());
    let long = vec![7; 60_000];
    for row in 0..ROWS_MAX {
        let (span, left, answers) = (SPAN_MAX, LEFT_OPEN, false);
        let kind = UnitKind::Parity {
            row,
            span,
            left,
            answers,
        };
        let parity = unit_frame(row + 1, kind, &long);
        assert!(arrive(&mut pair.receiver, pair.now, &parity).is_empty());
    }
    let held = pair.receiver.held();
    // Six of them are as many as a block may hold.
    assert!(held >= ByteCount(6 * 60_000), "{held}");
    assert!(held <= ByteCount(400_000), "{held}");
}

#[test]
fn a_packet_that_damage_reached_through_a_unit_s_check_does_not_come_out() {
    let mut pair = Pair::new();
    let sent = pair.send(1);
    let Ok(HarqFrame::Unit(unit, octets)) = HarqFrame::parse(&sent[0].1) else {
        panic!("not a unit: {sent:?}");
    };
    let mut octets = octets.to_vec();
    octets[100] ^= 1;
    let mut damaged = Vec::new();
    unit.encode(&octets, &mut damaged);
    assert!(arrive(&mut pair.receiver, pair.now, &damaged).is_empty());
    assert!(pair.arrive(&sent[1..]).is_empty());
    let sent = pair.send(2);
    assert_eq!(pair.arrive(&sent), [packet(2)]);
    assert_eq!(pair.receiver.counters().skipped, 1);
}

#[test]
fn feedback_of_another_life_or_on_blocks_that_were_never_sent_changes_nothing() {
    let mut pair = Pair::new();
    let sent = pair.send(1);
    let Ok(HarqFrame::Unit(unit, _)) = HarqFrame::parse(&sent[0].1) else {
        panic!("not a unit: {sent:?}");
    };
    let other = Epoch(unit.epoch.0.wrapping_add(1));
    let held = pair.sender.held();
    for (unexpected, epoch, ahead, kept) in [
        (1, other, 1, held),
        (2, unit.epoch, 2, held),
        // A later one has overtaken it.
        (2, unit.epoch, u16::MAX, held),
        (2, unit.epoch, 1, ByteCount::ZERO),
    ] {
        let feedback = HarqFeedback {
            epoch,
            next: unit.block.plus(ahead),
            loss: 0,
            damage: None,
            margin: 0,
            answer_margin: 0,
            reports: Vec::new(),
        };
        let mut frame = Vec::new();
        feedback.encode(&mut frame);
        assert!(arrive(&mut pair.sender, pair.now, &frame).is_empty());
        assert_eq!(pair.sender.counters().unexpected, unexpected);
        assert_eq!(pair.sender.held(), kept, "{ahead} blocks ahead");
    }
}

#[test]
fn a_block_that_was_answered_is_answered_no_more_while_one_before_it_is_open() {
    let mut pair = Pair::new();
    let first = pair.send(1);
    let Ok(HarqFrame::Unit(unit, _)) = HarqFrame::parse(&first[0].1) else {
        panic!("not a unit: {first:?}");
    };
    pair.send(2);
    pair.now += ROUND_TRIP * 2;
    let needs_one = HarqBlockReport::Heard { span: 2, need: 1 };
    let feedback = HarqFeedback {
        epoch: unit.epoch,
        next: unit.block,
        loss: 0,
        damage: None,
        margin: 0,
        answer_margin: 0,
        reports: vec![HarqBlockReport::Coming, needs_one],
    };
    let mut frame = Vec::new();
    feedback.encode(&mut frame);
    for answers in [1, 0, 0] {
        assert!(arrive(&mut pair.sender, pair.now, &frame).is_empty());
        assert_eq!(frames(&mut pair.sender, pair.now).len(), answers);
    }
}

/// Its sender has given it up: it would be released later than a packet may.
#[test]
fn what_waited_for_an_answer_longer_than_a_block_may_does_not_come_out() {
    for (waits, expected) in [(Duration::from_millis(10), 1), (Duration::from_secs(60), 0)] {
        let mut pair = Pair::new();
        let sent = pair.send(1);
        assert_eq!(pair.arrive(&sent), [packet(1)]);
        pair.sender = end(pair.config, "the sender's second life");
        let sent = pair.send(2);
        assert!(pair.arrive(&sent).is_empty());
        for (_, challenge) in frames(&mut pair.receiver, pair.now) {
            assert!(arrive(&mut pair.sender, pair.now, &challenge).is_empty());
        }
        let answer = frames(&mut pair.sender, pair.now);
        pair.now += waits;
        assert_eq!(pair.arrive(&answer).len(), expected, "after {waits:?}");
    }
}

#[test]
fn a_unit_that_damage_moved_to_the_next_block_takes_no_place_of_that_one_s_own() {
    let mut pair = Pair::new();
    let (one, two) = (pair.offer(1), pair.offer(2));
    assert_eq!(pair.arrive(&one), [packet(1)]);
    assert!(pair.arrive(&two[..1]).is_empty());
    // The medium repeats the last of four sources, and damages the copy.
    let moved = damaged(&two[1], |unit| unit.block = unit.block.plus(1));
    assert!(arrive(&mut pair.receiver, pair.now, &moved).is_empty());
    assert_eq!(pair.arrive(&two[1..]), [packet(2)]);
    pair.close();
    for number in 3..5 {
        let sent = pair.offer(number);
        assert_eq!(pair.arrive(&sent), [packet(number)]);
    }
}

#[test]
fn a_unit_that_damage_moved_far_ahead_begins_no_block_because_one_before_it_came() {
    let mut pair = Pair::new();
    let sent = pair.send(1);
    assert_eq!(pair.arrive(&sent), [packet(1)]);
    pair.send(2);
    let sent = pair.send(3);
    let moved = damaged(&sent[0], |unit| unit.block = unit.block.plus(2));
    assert!(arrive(&mut pair.receiver, pair.now, &moved).is_empty());
    assert!(pair.arrive(&sent).is_empty());
    let answer = pair.feed_back(1);
    assert_eq!(pair.arrive(&answer), [packet(2), packet(3)]);
    for number in 4..8 {
        let sent = pair.send(number);
        assert_eq!(pair.arrive(&sent), [packet(number)]);
    }
}
