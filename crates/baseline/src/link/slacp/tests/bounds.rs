//! The memory of an end: each bound is reached exactly, and the memory is freed.

use super::pair::{MEDIUM, Pair, intact, packets};
use crate::link::LinkMachine;
use crate::link::by_hand::offer;
use crate::link::slacp::collector::Collector;
use crate::link::slacp::config::Timing;
use crate::link::slacp::receiver::{LaneReceiver, Released, Way};
use crate::link::slacp::retransmissions::Retransmissions;
use crate::link::slacp::sender::Wanted;
use crate::link::slacp::{LaneSettings, Slacp, SlacpConfig, WINDOW};
use crate::wire::link::slacp::{BlockPlace, FrameSeq, Lane};
use fulmar_proto::machine::Priority;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant, Probability};

/// The sender keeps a window, so packets before the last window that came will not come any more.
#[test]
fn behind_a_hole_that_never_fills_a_receiver_holds_a_window_and_then_goes_on() {
    let timing = Timing::new(&SlacpConfig::default(), MEDIUM);
    let first = FrameSeq(u16::MAX - 9);
    let mut receiver = LaneReceiver::new(LaneSettings::REPAIRED, first);
    let mut accept = |distance: u16| {
        let packet = distance.to_be_bytes().to_vec();
        let way = Way::First;
        let seq = first.plus(distance);
        let outcome = receiver.accept(Instant::START, seq, Released { packet, way }, &timing);
        (outcome, receiver.held_octets())
    };
    for distance in 1..WINDOW {
        let (outcome, held) = accept(distance);
        assert!(outcome.released.is_empty());
        assert_eq!(held, usize::from(distance) * 2);
    }
    let (outcome, held) = accept(WINDOW);
    assert_eq!((outcome.skipped, held), (1, 0));
    let released = outcome.released.iter().map(|released| &released.packet[..]);
    assert!(released.eq((1..=WINDOW).map(u16::to_be_bytes)));
}

#[test]
fn what_was_acknowledged_and_handed_up_is_kept_by_nobody() {
    let mut pair = Pair::new(SlacpConfig::default(), 1);
    let mut frames = 0_u32;
    pair.fate = Box::new(move |_, _, _| {
        frames += 1;
        if frames.is_multiple_of(5) {
            Vec::new()
        } else {
            intact()
        }
    });
    pair.offer(0, 0, 0, packets(0, 200));
    pair.run_out();
    pair.fate = Box::new(|_, _, _| intact());
    // A block that lacks a packet is forgotten when four others were begun.
    pair.offer(0, 0, 0, packets(200, 1));
    pair.run_out();
    assert_eq!(pair.released(1).last(), packets(200, 1).last());
    assert_eq!(pair.machine(0).held(), ByteCount::ZERO);
    let of_blocks = ByteCount::from_usize(4 * 64 * 444);
    assert!(pair.machine(1).held() <= of_blocks);
}

#[test]
fn however_many_are_missing_no_more_than_five_hundred_and_twelve_wait_to_go_again() {
    const LEN: usize = 40;
    let small = |number: u32| {
        let mut packet = vec![0; LEN];
        packet[..4].copy_from_slice(&number.to_be_bytes());
        packet
    };
    let mut pair = Pair::new(SlacpConfig::default(), 1);
    pair.offer(0, 0, 0, vec![small(0)]);
    pair.run_out();
    // All but the last of the packets that leave while the lost ones are young enough to be
    // retransmitted.
    let mut data = 0;
    pair.fate = Box::new(move |from, _, frame| {
        data += u32::from(from == 0 && frame[0] >> 5 == super::DATA);
        if from == 0 && data < 2_000 {
            Vec::new()
        } else {
            intact()
        }
    });
    pair.offer(0, 0, 0, (1..=2_000).map(small).collect());
    let mut most = 0;
    while pair.run_for(Duration::from_millis(10)) {
        most = most.max(pair.machine(0).retransmissions.held_octets());
    }
    // Each packet stands with its number. One was on its way when the others were looked at.
    let bound = 512 * (LEN + 2);
    assert!((bound / 2..=bound).contains(&most), "{most} of {bound}");
    // Each time that room was made, as many packets were asked for again.
    assert!(pair.frames(0, super::AGAIN) > 512);
    assert_eq!(pair.machine(0).retransmissions.held_octets(), 0);
}

#[test]
fn of_a_lane_s_blocks_four_are_remembered() {
    let mut collector = Collector::default();
    for block in 0..=u8::MAX {
        for index in [0, 1, 1] {
            let place = BlockPlace { block, index };
            collector.again(place, FrameSeq(0), &[7; 98]);
        }
        let blocks = (usize::from(block) + 1).min(4);
        assert_eq!(collector.held_octets(), blocks * 2 * 100);
    }
}

#[test]
fn a_packet_that_is_longer_than_a_symbol_may_be_is_refused() {
    let mut rng = Rng::from_seed(1);
    let mut machine = Slacp::new(SlacpConfig::default(), MEDIUM, &mut rng);
    let longest = usize::from(u16::MAX) - 2;
    for (len, refused) in [(0, 1), (longest + 1, 2), (longest, 2)] {
        offer(&mut machine, Instant::START, &vec![7; len]);
        assert_eq!(machine.counters().refused, refused, "{len} octets");
    }
    assert_eq!(machine.held(), ByteCount::from_usize(longest));
}

/// On a link that is slower than the losses, a packet that was asked for may wait too long for its
/// turn.
#[test]
fn what_waits_to_go_again_until_it_is_no_longer_worth_it_does_not_go() {
    let until = Instant::START + Duration::from_secs(1);
    let lane = Lane::new(0);
    let wanted = [0, 1].map(|number| Wanted {
        seq: FrameSeq(number),
        packet: vec![7; 10],
        round: 1,
        until,
    });
    for (now, frames) in [(Instant::START, 3), (until, 0)] {
        let mut again = Retransmissions::new(Probability::new(0.25).unwrap());
        again.extend((lane, Priority(0)), &wanted, true);
        let went = core::iter::from_fn(|| again.poll(now));
        assert_eq!(went.count(), frames, "two packets and a parity");
        assert!(again.is_empty());
        assert_eq!(again.room(), 512);
    }
}
