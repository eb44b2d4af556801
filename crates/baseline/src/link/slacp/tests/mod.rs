//! SLACP between two ends: lost packets come back, in order, once, or are given up in time.

mod bounds;
mod lives;
mod pair;
mod sessions;

use super::{LaneClass, LaneSettings, SlacpConfig};
use crate::link::LinkMachine;
use fulmar_proto::machine::Priority;
use fulmar_proto::units::{Duration, Instant};
use pair::{DELAY, Pair, intact, packets};
use proptest::prelude::*;
use sessions::{Weather, in_order_and_once, storm};

/// Types of frames, as in a frame's first octet.
const DATA: u8 = 0;
const AGAIN: u8 = 1;
const PARITY: u8 = 2;

fn pair() -> Pair {
    Pair::new(SlacpConfig::default(), 1)
}

/// Drops the frames of type `kind` that end 0 sends whose number among them is in `numbers`.
fn dropping(pair: &mut Pair, kind: u8, numbers: &'static [u32]) {
    let mut seen = 0;
    pair.fate = Box::new(move |from, _, frame| {
        if from == 0 && frame[0] >> 5 == kind {
            seen += 1;
            if numbers.contains(&(seen - 1)) {
                return Vec::new();
            }
        }
        intact()
    });
}

#[test]
fn on_a_clean_link_nothing_is_sent_again_and_talk_ends() {
    let mut pair = pair();
    pair.offer(0, 0, 0, packets(0, 50));
    pair.run_out();
    assert_eq!(pair.released(1), packets(0, 50));
    assert_eq!(pair.frames(0, AGAIN) + pair.frames(0, PARITY), 0);
    assert_eq!(pair.machine(1).counters().released, 50);
}

#[test]
fn a_lost_packet_is_asked_for_at_the_next_one_and_comes_with_parity() {
    let mut pair = pair();
    dropping(&mut pair, DATA, &[3]);
    pair.offer(0, 0, 0, packets(0, 10));
    pair.run_out();
    assert_eq!(pair.released(1), packets(0, 10));
    assert_eq!((pair.frames(0, AGAIN), pair.frames(0, PARITY)), (1, 1));
    assert_eq!(pair.machine(1).counters().recovered_by_arq, 1);
    // The request is sent when the fifth packet is there; one way later it is answered.
    let again = pair.log.iter().find(|f| f.1 == AGAIN).map(|f| f.2);
    assert!(
        again.unwrap_or(Instant::FAR_FUTURE)
            < Instant::START + DELAY * 2 + Duration::from_millis(40)
    );
}

#[test]
fn parity_replaces_what_is_lost_of_a_block() {
    let mut pair = pair();
    let mut again = 0;
    let mut data = 0;
    pair.fate = Box::new(move |from, _, frame| {
        let kind = frame[0] >> 5;
        data += u32::from(from == 0 && kind == DATA);
        again += u32::from(kind == AGAIN);
        let lost = from == 0
            && (kind == DATA && (3..=6).contains(&(data - 1)) || kind == AGAIN && again == 2);
        if lost { Vec::new() } else { intact() }
    });
    pair.offer(0, 0, 0, packets(0, 20));
    pair.run_out();
    assert_eq!(pair.released(1), packets(0, 20));
    // Four packets are one block with one parity frame, which stands in for the second.
    assert_eq!((pair.frames(0, AGAIN), pair.frames(0, PARITY)), (4, 1));
    assert_eq!(pair.machine(1).counters().recovered_by_parity, 1);
}

#[test]
fn the_last_packets_come_back_though_nothing_follows_them() {
    let mut pair = pair();
    dropping(&mut pair, DATA, &[8, 9]);
    pair.offer(0, 0, 0, packets(0, 10));
    pair.run_out();
    assert_eq!(pair.released(1), packets(0, 10));
}

#[test]
fn what_never_gets_through_is_given_up_after_its_retransmissions() {
    for persistence in 0..=4 {
        let mut config = SlacpConfig::default();
        config.ordinary.persistence = persistence;
        let mut pair = Pair::new(config, 1);
        let victim = packets(3, 1).remove(0);
        pair.fate = Box::new(move |_, _, frame| {
            // The packet is in its own frames and in any parity over it.
            let carries = frame.windows(victim.len()).any(|part| part == victim);
            if carries || frame[0] >> 5 == PARITY {
                Vec::new()
            } else {
                intact()
            }
        });
        pair.offer(0, 0, 0, packets(0, 20));
        pair.run_out();
        let mut rest = packets(0, 20);
        rest.remove(3);
        assert_eq!(pair.released(1), rest, "persistence {persistence}");
        assert_eq!(pair.frames(0, AGAIN), usize::from(persistence));
        assert_eq!(pair.machine(1).counters().skipped, 1);
    }
}

#[test]
fn a_dead_way_back_delays_no_packet_longer_than_the_receivers_patience() {
    let mut pair = pair();
    let mut data = 0;
    pair.fate = Box::new(move |from, _, frame| {
        data += u32::from(from == 0 && frame[0] >> 5 == DATA);
        if from == 1 || data == 4 {
            Vec::new()
        } else {
            intact()
        }
    });
    pair.offer(0, 0, 0, packets(0, 20));
    // (230 ms round trip + 50 ms + 190 ms) for each of two retransmissions, and one more.
    pair.run_for(Duration::from_millis(470 * 3 + 200));
    assert_eq!(pair.released(1).len(), 19);
    pair.run_out();
}

#[test]
fn a_hole_on_one_lane_holds_up_no_other() {
    let config = SlacpConfig {
        lanes: 2,
        ..SlacpConfig::default()
    };
    let mut pair = Pair::new(config, 1);
    dropping(&mut pair, DATA, &[0]);
    pair.offer(0, 0, 0, packets(0, 3));
    pair.offer(0, 1, 0, packets(100, 3));
    pair.run_for(DELAY + Duration::from_millis(40));
    assert_eq!(pair.released(1), packets(100, 3));
    pair.run_out();
    assert_eq!(pair.released(1)[3..], packets(0, 3));
}

#[test]
fn a_lane_without_error_control_hands_up_what_comes_as_it_comes() {
    let config = SlacpConfig {
        urgent: LaneSettings::BARE,
        ..SlacpConfig::default()
    };
    let mut pair = Pair::new(config, 1);
    dropping(&mut pair, DATA, &[1]);
    pair.offer(0, 0, 5, packets(0, 4));
    pair.run_out();
    let mut rest = packets(0, 4);
    rest.remove(1);
    assert_eq!(pair.released(1), rest);
    assert_eq!(pair.frames(0, AGAIN), 0);
    assert_eq!(
        pair.log.iter().filter(|f| f.0 == 1).count(),
        0,
        "nobody answers"
    );
}

const fn class(priority: u8, settings: LaneSettings) -> LaneClass {
    LaneClass {
        priority: Priority(priority),
        settings,
    }
}

#[test]
fn each_class_has_the_error_control_of_its_own_lane() {
    let config = SlacpConfig {
        classes: [
            Some(class(46, LaneSettings::BARE)),
            Some(class(10, LaneSettings::REPAIRED)),
            None,
        ],
        ..SlacpConfig::default()
    };
    for (priority, repaired) in [
        (0, true),
        (9, true),
        (10, true),
        (45, true),
        (46, false),
        (63, false),
    ] {
        let mut pair = Pair::new(config, 1);
        dropping(&mut pair, DATA, &[1]);
        pair.offer(0, 0, priority, packets(0, 4));
        pair.run_out();
        assert_eq!(
            pair.released(1).len(),
            if repaired { 4 } else { 3 },
            "{priority}"
        );
    }
}

/// A burst of 200 packets takes 400 ms to send again: a packet with precedence that comes then does not wait for it.
#[test]
fn what_has_precedence_goes_before_the_retransmissions_of_others_and_in_its_own_order() {
    let config = SlacpConfig {
        classes: [Some(class(46, LaneSettings::REPAIRED)), None, None],
        ..SlacpConfig::default()
    };
    let mut pair = Pair::new(config, 1);
    let mut seen = 0;
    pair.fate = Box::new(move |from, _, frame| {
        let is_data = from == 0 && frame[0] >> 5 == DATA;
        seen += u32::from(is_data);
        if is_data && (2..202).contains(&seen) {
            Vec::new()
        } else {
            intact()
        }
    });
    pair.offer(0, 0, 0, packets(0, 260));
    let is_again = |pair: &Pair| pair.frames(0, AGAIN) > 2;
    while !is_again(&pair) {
        pair.run_for(Duration::from_millis(5));
    }
    let before = pair.released(1).len();
    pair.offer(0, 0, 46, packets(1_000, 2));
    pair.offer(0, 0, 3, packets(1_010, 1));
    pair.run_for(DELAY + Duration::from_millis(40));
    let released = pair.released(1)[before..].to_vec();
    let place = |number: u32| {
        let wanted = packets(number, 1).remove(0);
        released.iter().position(|packet| *packet == wanted)
    };
    let places = [place(1_000), place(1_001), place(1_010)];
    assert!(places.iter().all(Option::is_some), "{places:?}");
    assert!(places.is_sorted(), "{places:?}");
    assert!(
        pair.frames(0, AGAIN) < 200,
        "the burst is still being sent again"
    );
    pair.run_out();
    assert_eq!(pair.released(1).len(), 263);
}

#[test]
fn retransmissions_go_before_anything_new() {
    let mut pair = pair();
    dropping(&mut pair, DATA, &[0]);
    pair.offer(0, 0, 0, packets(0, 400));
    pair.run_out();
    let asked = pair
        .log
        .iter()
        .position(|f| f.0 == 1 && f.1 == 3)
        .unwrap_or_default();
    let again = pair
        .log
        .iter()
        .position(|f| f.1 == AGAIN)
        .unwrap_or_default();
    let between = pair.log[asked..again].iter().filter(|f| f.0 == 0).count();
    // The frames on the wire when the request was under way: 100 ms at 1 Mbit/s are at most 60
    // frames.
    assert!(between < 60, "{between} new frames went before the answer");
    assert_eq!(pair.log[again + 1].1, PARITY);
}

#[test]
fn a_lost_introduction_is_made_again_and_costs_no_packet() {
    for lost in 1..6 {
        let mut pair = pair();
        pair.fate =
            Box::new(move |_, number, _| if number <= lost { Vec::new() } else { intact() });
        pair.offer(0, 0, 0, packets(0, 10));
        pair.offer(1, 0, 0, packets(50, 10));
        pair.run_out();
        assert!(pair.released(1) == packets(0, 10), "{lost} frames lost");
        assert!(pair.released(0) == packets(50, 10), "{lost} frames lost");
    }
}

#[test]
fn either_end_may_restart_and_what_is_sent_later_arrives_once_and_in_order() {
    for end in 0..2 {
        let mut pair = pair();
        pair.offer(0, 0, 0, packets(0, 30));
        pair.offer(1, 0, 0, packets(500, 30));
        pair.run_for(Duration::from_millis(130));
        pair.restart(end);
        pair.run_for(Duration::from_secs(5));
        pair.offer(0, 0, 0, packets(100, 30));
        pair.offer(1, 0, 0, packets(600, 30));
        pair.run_out();
        for (to, first) in [(1, 100), (0, 600)] {
            let released = pair.released(to);
            let late = &released[released.len() - 30..];
            assert!(late == packets(first, 30), "restart of {end}");
            assert!(in_order_and_once(released), "restart of {end}");
        }
    }
}

#[test]
fn a_peer_that_never_answers_costs_no_more_than_a_window() {
    let mut pair = pair();
    pair.fate = Box::new(|_, _, _| Vec::new());
    pair.offer(0, 0, 0, packets(0, 10_000));
    pair.run_out();
    let sender = &pair.machine(0).senders[0];
    assert_eq!(sender.next().offset_from(sender.floor()), super::WINDOW);
    assert_eq!(
        pair.machine(0).counters().given_up,
        10_000 - u64::from(super::WINDOW)
    );
}

#[test]
fn settings_out_of_range_are_refused() {
    let plain = SlacpConfig::default();
    assert_eq!(plain.check(), Ok(()));
    let refused = |config: SlacpConfig| config.check().map_err(|error| error.field);
    assert_eq!(refused(SlacpConfig { lanes: 8, ..plain }), Err("lanes"));
    assert_eq!(refused(SlacpConfig { lanes: 0, ..plain }), Err("lanes"));
    let urgent = LaneSettings {
        persistence: 5,
        ..LaneSettings::REPAIRED
    };
    assert_eq!(
        refused(SlacpConfig { urgent, ..plain }),
        Err("urgent.persistence")
    );
    let classes = [
        Some(class(46, LaneSettings::BARE)),
        Some(class(46, LaneSettings::BARE)),
        None,
    ];
    assert_eq!(
        refused(SlacpConfig { classes, ..plain }),
        Err("classes.priority")
    );
    let classes = [Some(class(1, LaneSettings::BARE)), None, None];
    assert_eq!(
        refused(SlacpConfig { classes, ..plain }),
        Err("classes.priority")
    );
    let classes = [Some(class(46, LaneSettings::BARE)), None, None];
    let crowded = SlacpConfig {
        classes,
        lanes: 7,
        ..plain
    };
    assert_eq!(refused(crowded), Err("lanes"));
    let ack_delay = Duration::ZERO;
    assert_eq!(
        refused(SlacpConfig { ack_delay, ..plain }),
        Err("ack_delay")
    );
}

fn weather() -> impl Strategy<Value = Weather> {
    (0.0..0.6_f64, 0.0..0.2_f64, 0.0..0.2_f64, 0.0..0.1_f64).prop_map(
        |(loss, repeat, late, damage)| Weather {
            loss,
            repeat,
            late,
            damage,
        },
    )
}

proptest! {
    #[test]
    fn whatever_the_medium_does_packets_come_in_order_and_once_and_all_when_it_heals(
        weather in weather(),
        seed in any::<u64>(),
        lanes in 1_u8..4,
        persistence in 0_u8..5,
        fec in any::<bool>(),
        nonsense in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..8),
    ) {
        let repaired = LaneSettings { arq: true, fec, persistence };
        let config = SlacpConfig { lanes, ordinary: repaired, ..SlacpConfig::default() };
        let mut pair = Pair::new(config, seed);
        storm(&mut pair, weather, seed);
        for flow in 0..4_u32 {
            pair.offer(0, flow, 0, packets(flow * 1_000, 40));
            pair.offer(1, flow, 0, packets(flow * 1_000, 10));
            pair.run_for(Duration::from_millis(700));
            for octets in &nonsense {
                pair.inject(0, octets);
                pair.inject(1, octets);
            }
        }
        pair.run_out();
        pair.fate = Box::new(|_, _, _| intact());
        // The storm may have dropped every frame that told of the first end's existence: one
        // exchange.
        pair.offer(0, 0, 0, packets(4_000, 1));
        pair.run_out();
        for flow in 0..4_u32 {
            pair.offer(0, flow, 0, packets(5_000 + flow * 1_000, 20));
        }
        pair.run_out();
        let flow_of = |packet: &[u8]| u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]]);
        for flow in 0..4_u32 {
            let of_flow = |packet: &&Vec<u8>| {
                let number = flow_of(packet);
                number / 1_000 == flow || number / 1_000 == 5 + flow
            };
            let released: Vec<Vec<u8>> = pair.released(1).iter().filter(of_flow).cloned().collect();
            prop_assert!(in_order_and_once(&released), "flow {flow}, seed {seed}");
            let healed = packets(5_000 + flow * 1_000, 20);
            prop_assert_eq!(&released[released.len().saturating_sub(20)..], healed.as_slice());
            let sent: Vec<Vec<u8>> = packets(flow * 1_000, 40).into_iter().chain(healed).collect();
            prop_assert!(released.iter().all(|packet| sent.contains(packet)));
        }
    }
}
