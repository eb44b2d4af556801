//! Two ends, frame by frame: each case decides which frames arrive.

mod damage;

use super::margin::units_for;
use super::{HarqConfig, LlHarq};
use crate::link::by_hand::{self, arrive, offer, packet, packets};
use crate::link::{FrameClass, LinkMachine, Medium, StrictLink};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant, PacketErrorRate};

const RATE: Bitrate = Bitrate::from_bits_per_second(10_000_000);
const ROUND_TRIP: Duration = Duration::from_millis(20);

struct Pair {
    config: HarqConfig,
    now: Instant,
    sender: StrictLink<LlHarq>,
    receiver: StrictLink<LlHarq>,
}

/// A frame and its class.
type Sent = (FrameClass, Vec<u8>);

fn end(config: HarqConfig, name: &str) -> StrictLink<LlHarq> {
    let medium = Medium {
        rate: Some(RATE),
        back_rate: Some(RATE),
        round_trip: ROUND_TRIP,
        access: Duration::ZERO,
    };
    let mut rng = Rng::from_seed(1).child(name);
    StrictLink::new(LlHarq::new(config, medium, &mut rng))
}

fn frames(machine: &mut StrictLink<LlHarq>, now: Instant) -> Vec<Sent> {
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

    /// Closes the block, because no packet comes.
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

    /// Waits until the receiver's next deadline. Returns the packets that it then releases.
    fn receiver_waits(&mut self) -> Vec<Vec<u8>> {
        let deadline = self.receiver.next_deadline().expect("it waits for a block");
        self.now = self.now.max(deadline.at);
        self.receiver.handle_deadline(self.now);
        packets(&mut self.receiver)
    }

    /// Hands the receiver's feedback to the sender, `times` over. Returns the sender's answer.
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
fn behind_a_short_unit_the_block_is_open_for_as_long_as_a_long_one_takes() {
    let config = HarqConfig::default();
    let medium = Medium {
        rate: Some(RATE),
        back_rate: Some(RATE),
        round_trip: Duration::ZERO,
        access: Duration::ZERO,
    };
    let machine = |name: &str| {
        let mut rng = Rng::from_seed(1).child(name);
        StrictLink::new(LlHarq::new(config, medium, &mut rng))
    };
    let mut pair = Pair {
        config,
        now: Instant::START,
        sender: machine("sender"),
        receiver: machine("receiver"),
    };
    let (long, short) = (vec![7; 10_000], vec![1; 20]);
    let cross = |pair: &mut Pair, packet: &[u8]| {
        offer(&mut pair.sender, pair.now, packet);
        let mut came = Vec::new();
        for (_, octets) in frames(&mut pair.sender, pair.now) {
            let arrival = pair.now + RATE.time_to_send(ByteCount::of(&octets));
            while let Some(due) = pair.receiver.next_deadline().filter(|due| due.at < arrival) {
                pair.receiver.handle_deadline(due.at);
                came.extend(packets(&mut pair.receiver));
                frames(&mut pair.receiver, due.at);
            }
            pair.now = arrival;
            came.extend(arrive(&mut pair.receiver, pair.now, &octets));
            frames(&mut pair.receiver, pair.now);
        }
        came
    };
    let whole = std::slice::from_ref;
    assert_eq!(cross(&mut pair, &long), whole(&long));
    pair.close();
    assert_eq!(cross(&mut pair, &short), whole(&short));
    assert_eq!(cross(&mut pair, &long), whole(&long), "of the same block");
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
    // The first unit is lost: the gap shows it.
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
    // The receiver still waits for block 0 when it reports that block 1 is complete.
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
        // The first unit of each block is lost.
        pair.arrive(&sent[1..]);
        for (_, feedback) in frames(&mut pair.receiver, pair.now) {
            pair.sender.handle_frame(pair.now, &feedback);
            packets(&mut pair.sender);
            frames(&mut pair.sender, pair.now);
        }
        lossy = sent.len();
    }
    // The answer is never more than for a loss of one in two with the largest margin.
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
