//! Two ends, frame by frame: each case says which frames arrive.

use super::margin::units_for;
use super::{HarqConfig, LlHarq};
use crate::fec::block::{ROWS_MAX, SPAN_MAX};
use crate::link::by_hand::{self, arrive, offer, packet, packets};
use crate::link::{FrameClass, LinkMachine, Medium, Strict};
use crate::rng::Rng;
use crate::units::{Bitrate, ByteCount, Duration, Instant, PacketErrorRate};
use crate::wire::link::FrameNumber;
use crate::wire::link::arq::Epoch;
use crate::wire::link::harq::{BlockReport, Feedback, HarqFrame, LEFT_OPEN, Unit, UnitKind};

const RATE: Bitrate = Bitrate::from_bits_per_second(10_000_000);
const ROUND_TRIP: Duration = Duration::from_millis(20);

struct Pair {
    config: HarqConfig,
    now: Instant,
    sender: Strict<LlHarq>,
    receiver: Strict<LlHarq>,
}

/// A frame and what it is for.
type Sent = (FrameClass, Vec<u8>);

fn end(config: HarqConfig, name: &str) -> Strict<LlHarq> {
    let medium = Medium {
        rate: Some(RATE),
        back_rate: Some(RATE),
        round_trip: ROUND_TRIP,
        access: Duration::ZERO,
    };
    let mut rng = Rng::from_seed(1).child(name);
    Strict::new(LlHarq::new(config, medium, &mut rng))
}

fn frames(machine: &mut Strict<LlHarq>, now: Instant) -> Vec<Sent> {
    let sent = by_hand::frames(machine, now).into_iter();
    sent.map(|(frame, octets)| (frame.class, octets)).collect()
}

impl Pair {
    fn new() -> Self {
        let config = HarqConfig::default();
        Self {
            config,
            now: Instant::START,
            sender: end(config, "sender"),
            receiver: end(config, "receiver"),
        }
    }

    /// Offers a packet and takes the units that leave then.
    fn offer(&mut self, number: u8) -> Vec<Sent> {
        offer(&mut self.sender, self.now, &packet(number));
        let sent = frames(&mut self.sender, self.now);
        self.now += RATE.time_to_send(ByteCount(1_000));
        sent
    }

    /// No packet comes: the block is closed.
    fn close(&mut self) -> Vec<Sent> {
        let sent = frames(&mut self.sender, self.now);
        assert!(sent.is_empty(), "the medium was free");
        let deadline = self.sender.next_deadline().expect("a block is open");
        assert!(deadline.at <= self.now, "{deadline:?}");
        self.sender.handle_deadline(self.now);
        assert!(packets(&mut self.sender).is_empty());
        frames(&mut self.sender, self.now)
    }

    /// The units of a block of one packet.
    fn send(&mut self, number: u8) -> Vec<Sent> {
        let mut sent = self.offer(number);
        sent.extend(self.close());
        sent
    }

    /// The packets that these frames release.
    fn arrive<'a>(&mut self, sent: impl IntoIterator<Item = &'a Sent>) -> Vec<Vec<u8>> {
        sent.into_iter()
            .flat_map(|(_, octets)| arrive(&mut self.receiver, self.now, octets))
            .collect()
    }

    /// Waits until the receiver's next deadline and hands over what it then says.
    fn receiver_waits(&mut self) -> Vec<Vec<u8>> {
        let deadline = self.receiver.next_deadline().expect("it waits for a block");
        self.now = self.now.max(deadline.at);
        self.receiver.handle_deadline(self.now);
        packets(&mut self.receiver)
    }

    /// Hands the receiver's feedback to the sender, `times` over; what it answers.
    fn feed_back(&mut self, times: usize) -> Vec<Sent> {
        let feedback = frames(&mut self.receiver, self.now);
        assert_eq!(feedback.len(), 1, "one feedback says everything");
        self.now += ROUND_TRIP;
        let mut answers = Vec::new();
        for _ in 0..times {
            self.sender.handle_frame(self.now, &feedback[0].1);
            assert!(packets(&mut self.sender).is_empty());
            answers.extend(frames(&mut self.sender, self.now));
        }
        answers
    }
}

#[test]
fn a_clean_hop_carries_the_packets_own_units_alone() {
    let mut pair = Pair::new();
    for number in 0..200 {
        let sent = pair.offer(number);
        assert_eq!(sent.len(), usize::from(pair.config.fragments));
        assert!(sent.iter().all(|(class, _)| *class == FrameClass::Data));
        assert_eq!(pair.arrive(&sent), [packet(number)], "at once");
        for (_, feedback) in frames(&mut pair.receiver, pair.now) {
            pair.sender.handle_frame(pair.now, &feedback);
            assert!(packets(&mut pair.sender).is_empty());
        }
    }
    assert!(pair.close().is_empty(), "nothing more comes of it");
}

#[test]
fn a_block_has_one_answer_however_often_it_is_asked_for() {
    let mut pair = Pair::new();
    let sent = pair.send(7);
    assert!(pair.arrive(&sent[1..]).is_empty());
    // The first is lost: the gap tells.
    assert!(pair.receiver_waits().is_empty());
    let answer = pair.feed_back(3);
    // The estimate's first unit is the one that arrived, so it knows of no loss.
    assert_eq!(answer.len(), 1);
    assert!(answer.iter().all(|(class, _)| *class == FrameClass::Parity));
    assert_eq!(pair.arrive(&answer), [packet(7)]);
    assert_eq!(pair.receiver.counters().recovered_by_arq, 1);
    assert_eq!(pair.sender.next_deadline(), None, "its part is over");
}

#[test]
fn an_answer_brings_what_was_lost_at_a_blocks_end_too() {
    let mut pair = Pair::new();
    let sent = pair.send(7);
    // The receiver does not know that there is more.
    assert!(pair.arrive(&sent[..1]).is_empty());
    assert!(pair.receiver_waits().is_empty());
    let answer = pair.feed_back(1);
    assert_eq!(answer.len(), 1);
    assert_eq!(pair.arrive(&answer), [packet(7)]);
}

#[test]
fn what_the_answer_does_not_bring_is_passed_over_in_order_and_in_time() {
    let mut pair = Pair::new();
    let lost = pair.send(1);
    assert!(pair.arrive(&lost[..1]).is_empty());
    let behind = pair.send(2);
    assert!(pair.arrive(&behind).is_empty(), "it waits for its turn");
    let asked = pair.now;
    // Its answer is lost, all of it.
    assert!(!pair.feed_back(1).is_empty());
    let mut released = Vec::new();
    while released.is_empty() {
        released = pair.receiver_waits();
        frames(&mut pair.receiver, pair.now);
    }
    assert_eq!(released, [packet(2)]);
    assert_eq!(pair.receiver.counters().skipped, 1);
    // A round trip, and the time of 20 units of 515 octets.
    let bound = ROUND_TRIP + RATE.time_to_send(ByteCount(20 * 515));
    let waited = pair.now.saturating_since(asked);
    assert!(waited <= bound, "{waited:?}");
    assert!(pair.arrive(&lost).is_empty(), "its turn has passed");
}

#[test]
fn what_was_lost_within_a_block_comes_back_before_the_block_ends() {
    let mut pair = Pair::new();
    // One unit in five is lost until the estimate is there.
    for number in 0..200 {
        let sent = pair.send(number);
        let arrives = |at: usize| usize::from(number) % 2 != 0 || at > 0;
        let kept = sent.iter().enumerate().filter(|(at, _)| arrives(*at));
        pair.arrive(kept.map(|(_, sent)| sent));
        for (_, feedback) in frames(&mut pair.receiver, pair.now) {
            pair.sender.handle_frame(pair.now, &feedback);
            packets(&mut pair.sender);
            let answer = frames(&mut pair.sender, pair.now);
            pair.arrive(&answer);
        }
    }
    for number in 0..16 {
        let sent = pair.offer(number);
        let is_lost = number == 2;
        let released = pair.arrive(sent.iter().skip(usize::from(is_lost)));
        if number >= 2 && !released.is_empty() {
            let waits = pair.sender.next_deadline().map(|deadline| deadline.why);
            assert_eq!(waits, Some("no packet"), "the block is still open");
            return;
        }
    }
    panic!("nothing came back within the block");
}

#[test]
fn feedback_about_later_blocks_is_heard_while_an_answer_is_on_its_way() {
    let mut pair = Pair::new();
    let lost = pair.send(0);
    assert!(pair.arrive(&lost[..1]).is_empty());
    let later = pair.send(1);
    assert!(pair.arrive(&later[..1]).is_empty());
    // Block 0 is answered, which ends the sender's part in it.
    let answer = pair.feed_back(1);
    assert!(!answer.is_empty());
    // The receiver still waits for block 0 when it says that block 1 is complete.
    assert!(pair.arrive(&later[1..]).is_empty());
    pair.now += Duration::from_millis(2);
    pair.receiver.handle_deadline(pair.now);
    assert!(packets(&mut pair.receiver).is_empty());
    assert!(pair.feed_back(1).is_empty());
    assert_eq!(pair.sender.next_deadline(), None, "nothing is awaited");
    assert_eq!(pair.arrive(&answer), [packet(0), packet(1)]);
}

#[test]
fn a_block_of_which_nothing_is_heard_is_answered_as_if_nothing_had_arrived() {
    let mut pair = Pair::new();
    pair.send(3);
    let deadline = pair.sender.next_deadline().expect("feedback is awaited");
    pair.now = deadline.at;
    pair.sender.handle_deadline(pair.now);
    assert!(packets(&mut pair.sender).is_empty());
    let answer = frames(&mut pair.sender, pair.now);
    assert_eq!(pair.arrive(&answer), [packet(3)]);
    assert_eq!(pair.sender.next_deadline(), None, "one answer is all");
}

#[test]
fn parity_comes_with_loss_and_goes_with_it() {
    let mut pair = Pair::new();
    let parts = usize::from(pair.config.fragments);
    let mut lossy = 0;
    for number in 0..200 {
        let sent = pair.send(number);
        // The first of each block.
        pair.arrive(&sent[1..]);
        for (_, feedback) in frames(&mut pair.receiver, pair.now) {
            pair.sender.handle_frame(pair.now, &feedback);
            packets(&mut pair.sender);
            frames(&mut pair.sender, pair.now);
        }
        lossy = sent.len();
    }
    // Never more than for a loss of one in two with the largest margin.
    let half = PacketErrorRate::new(0.5).unwrap();
    let most = units_for(2, half, 12.0);
    assert!(parts < lossy && lossy <= usize::try_from(most).unwrap());
    // The estimate falls from below 0.5 to the floor of 0.001 within 1000 ln(500) units.
    for number in 0..=u8::MAX {
        for _ in 0..13 {
            let sent = pair.send(number);
            pair.arrive(&sent);
            for (_, octets) in frames(&mut pair.receiver, pair.now) {
                pair.sender.handle_frame(pair.now, &octets);
                packets(&mut pair.sender);
                frames(&mut pair.sender, pair.now);
            }
        }
    }
    assert_eq!(pair.send(0).len(), parts);
}

/// The unit that a frame carries, changed by damage that its check overlooks.
fn damaged(frame: &Sent, damage: impl Fn(&mut Unit)) -> Vec<u8> {
    let Ok(HarqFrame::Unit(mut unit, octets)) = HarqFrame::parse(&frame.1) else {
        panic!("not a unit: {frame:?}");
    };
    damage(&mut unit);
    let mut out = Vec::new();
    HarqFrame::Unit(unit, octets).encode(&mut out);
    out
}

/// What the receiver's challenge and the sender's answer to it lead to.
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
    // Every bit of epoch and block, also in a frame that the medium repeats.
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
        // At worst those that came wait for blocks that never were.
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
    // What the medium held up of the life that is over changes nothing.
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
    // And the block that came, whose end is not known.
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

/// A unit of a life that only says it, with a sound check.
fn unit_frame(serial: u8, kind: UnitKind, octets: &[u8]) -> Vec<u8> {
    let unit = Unit {
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
    // Six of them fit what a block may hold.
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
        // Overtaken by a later one.
        (2, unit.epoch, u16::MAX, held),
        (2, unit.epoch, 1, ByteCount::ZERO),
    ] {
        let feedback = Feedback {
            epoch,
            next: unit.block.plus(ahead),
            loss: 0,
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
    let needs_one = BlockReport::Heard { span: 2, need: 1 };
    let feedback = Feedback {
        epoch: unit.epoch,
        next: unit.block,
        loss: 0,
        margin: 0,
        answer_margin: 0,
        reports: vec![BlockReport::Coming, needs_one],
    };
    let mut frame = Vec::new();
    feedback.encode(&mut frame);
    for answers in [1, 0, 0] {
        assert!(arrive(&mut pair.sender, pair.now, &frame).is_empty());
        assert_eq!(frames(&mut pair.sender, pair.now).len(), answers);
    }
}

/// Its sender has given it up: it would come out later than a packet may.
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
