//! Datagram flows through two splicers, in every mode.

use super::splicers::{ECHO, PEER, Pair, REFUSES, SILENT, SINK, clean, pattern};
use fulmar_proto::splice::{
    ClassCounters, ClassId, Destination, FlowClass, FlowEvent, FlowId, FlowKind, Host, RefuseCode,
    ResetCode, SplicerConfig,
};
use fulmar_proto::units::{ByteCount, Duration};
use fulmar_proto::wire::Mode;

const DELAY: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn class(mode: Mode) -> FlowClass {
    FlowClass {
        mode,
        window: ByteCount(500_000),
        ..FlowClass::default()
    }
}

fn pair() -> Pair {
    Pair::new(&SplicerConfig::default(), clean(DELAY))
}

fn open(pair: &mut Pair, port: u16, class: FlowClass) -> FlowId {
    pair.open_only(FlowKind::Datagrams, port, class)
}

fn send(pair: &mut Pair, id: FlowId, message: &[u8]) {
    pair.call(0, |splicer, now| splicer.accept_datagram(now, id, message));
}

fn counters(pair: &Pair, side: usize) -> ClassCounters {
    let classes = &pair.splicer(side).counters().classes;
    classes.get(&ClassId(0)).copied().unwrap_or_default()
}

#[test]
fn messages_of_any_length_come_back_with_their_borders_in_every_mode() {
    for mode in Mode::ALL {
        let mut pair = pair();
        let id = open(&mut pair, ECHO, class(mode));
        let sent: Vec<Vec<u8>> = [3, 0, 1_300, 1_400, 1_500, 20_000, 65_507, 1]
            .map(pattern)
            .into();
        for message in &sent {
            send(&mut pair, id, message);
        }
        pair.run(SECOND * 2);
        assert!(pair.app(1, id).messages == sent, "{mode} forwards");
        assert!(pair.app(0, id).messages == sent, "{mode} backwards");
        assert!(pair.app(0, id).bound.is_some(), "{mode}");
        pair.sides[0].apps.remove(&id);
        pair.call(0, |splicer, now| splicer.finish(now, id));
        pair.run(SECOND);
        assert_eq!(pair.app(1, id).last, Some(FlowEvent::Closed(id)), "{mode}");
        pair.run(SECOND * 3600 * 5);
        pair.assert_nothing_left();
    }
}

#[test]
fn the_first_message_arrives_after_one_one_way_delay_in_every_mode() {
    for mode in Mode::ALL {
        let mut pair = pair();
        let id = open(&mut pair, SINK, class(mode));
        send(&mut pair, id, b"question");
        pair.run(DELAY);
        assert_eq!(pair.app(1, id).messages, [b"question"], "{mode}");
    }
}

#[test]
fn a_refusal_and_a_reset_reach_the_opener() {
    for mode in Mode::ALL {
        let mut pair = pair();
        let id = open(&mut pair, REFUSES, class(mode));
        send(&mut pair, id, b"question");
        pair.run(SECOND);
        let code = RefuseCode::Refused;
        let refused = FlowEvent::Refused { flow: id, code };
        assert_eq!(pair.app(0, id).last, Some(refused), "{mode}");
        let id = open(&mut pair, SINK, class(mode));
        send(&mut pair, id, b"question");
        pair.run(SECOND);
        pair.sides[1].apps.remove(&id);
        pair.call(1, |splicer, now| {
            splicer.reset(now, id, ResetCode::Shutdown);
        });
        pair.run(SECOND);
        assert_eq!(pair.reset_code(0, id), Some(ResetCode::Shutdown), "{mode}");
        pair.run(SECOND * 3600 * 5);
        pair.assert_nothing_left();
    }
}

#[test]
fn an_association_that_carries_nothing_is_closed_at_both_sides() {
    for mode in Mode::ALL {
        let mut pair = pair();
        let id = open(&mut pair, SILENT, class(mode));
        send(&mut pair, id, b"question");
        pair.run(SECOND * 700);
        assert_eq!(pair.reset_code(1, id), Some(ResetCode::Timeout), "{mode}");
        let id = open(&mut pair, SINK, class(mode));
        send(&mut pair, id, b"question");
        pair.run(SECOND * 299);
        assert_eq!(pair.app(0, id).last, None, "{mode}");
        pair.run(SECOND * 10);
        for side in 0..2 {
            let last = pair.app(side, id).last.clone();
            assert_eq!(last, Some(FlowEvent::Closed(id)), "{mode}, side {side}");
        }
        pair.run(SECOND * 3600 * 5);
        pair.assert_nothing_left();
    }
}

/// A message every 20 ms for `span`.
fn chatter(pair: &mut Pair, id: FlowId, span: Duration) {
    let until = pair.now + span;
    while pair.now < until {
        send(pair, id, &pattern(160));
        pair.run(MS * 20);
    }
}

#[test]
fn messages_flow_though_the_opening_was_lost() {
    for mode in Mode::ALL {
        let mut pair = pair();
        let mut dropped = 0;
        pair.script = Box::new(move |side, _, octets| {
            dropped += u32::from(side == 0);
            if side == 0 && dropped <= 3 {
                Vec::new()
            } else {
                vec![(DELAY, octets.to_vec())]
            }
        });
        let id = open(&mut pair, ECHO, class(mode));
        chatter(&mut pair, id, SECOND * 3);
        pair.run(SECOND);
        let arrived = pair.app(0, id).messages.len();
        assert!(arrived >= 147, "{mode}: {arrived} of 150");
    }
}

#[test]
fn messages_flow_again_soon_after_the_acceptor_restarted() {
    for mode in Mode::ALL {
        let mut pair = pair();
        let id = open(&mut pair, ECHO, class(mode));
        chatter(&mut pair, id, SECOND);
        pair.restart(1, &SplicerConfig::default());
        chatter(&mut pair, id, SECOND * 2);
        let before = pair.app(0, id).messages.len();
        chatter(&mut pair, id, SECOND);
        pair.run(SECOND);
        let after = pair.app(0, id).messages.len();
        assert!(after >= before + 49, "{mode}: {before} then {after}");
        assert_eq!(pair.app(0, id).last, None, "{mode}");
    }
}

#[test]
fn an_acceptor_that_restarted_counts_anew_and_is_heard() {
    for mode in Mode::ALL {
        let mut pair = pair();
        let class = FlowClass {
            deadline: Some(MS * 500),
            ..class(mode)
        };
        let id = open(&mut pair, ECHO, class);
        chatter(&mut pair, id, SECOND * 40);
        pair.restart(1, &SplicerConfig::default());
        chatter(&mut pair, id, SECOND * 2);
        let before = pair.app(0, id).messages.len();
        chatter(&mut pair, id, SECOND);
        pair.run(SECOND);
        let after = pair.app(0, id).messages.len();
        assert!(after >= before + 49, "{mode}: {before} then {after}");
    }
}

#[test]
fn what_cannot_leave_within_its_deadline_is_dropped_and_counted() {
    // 20 Mbit/s carry 50 KB in 20 ms; 200 KB are offered at once.
    for mode in Mode::ALL {
        let mut pair = pair();
        let deadline = Some(MS * 20);
        let class = FlowClass {
            deadline,
            ..class(mode)
        };
        let id = open(&mut pair, SINK, class);
        for _ in 0..200 {
            send(&mut pair, id, &pattern(1_000));
        }
        pair.run(SECOND);
        let late = counters(&pair, 0).late_unsent;
        let arrived = pair.app(1, id).messages.len() as u64;
        let late_there = counters(&pair, 1).late_arrived;
        assert_eq!(arrived + late + late_there, 200, "{mode}");
        assert!(
            (40..=55).contains(&(arrived + late_there)),
            "{mode}: {arrived}"
        );
    }
}

#[test]
fn what_arrives_later_than_its_deadline_is_dropped_and_counted() {
    for mode in Mode::ALL {
        let mut pair = pair();
        let deadline = Some(MS * 50);
        let class = FlowClass {
            deadline,
            ..class(mode)
        };
        let id = open(&mut pair, SINK, class);
        chatter(&mut pair, id, SECOND);
        let before = pair.app(1, id).messages.len();
        assert_eq!(before, 50, "{mode}");
        pair.script = clean(DELAY + MS * 45);
        chatter(&mut pair, id, SECOND);
        let patient = pair.app(1, id).messages.len();
        assert!(patient >= before + 45, "{mode}: {patient}");
        pair.script = clean(DELAY + MS * 55);
        chatter(&mut pair, id, SECOND);
        pair.run(SECOND);
        let late = counters(&pair, 1).late_arrived;
        assert!((49..=53).contains(&late), "{mode}: {late}");
    }
}

#[test]
fn a_datagram_that_the_network_doubles_is_delivered_once() {
    for mode in Mode::ALL {
        let mut pair = pair();
        pair.script =
            Box::new(|_, _, octets| vec![(DELAY, octets.to_vec()), (DELAY * 2, octets.to_vec())]);
        let id = open(&mut pair, ECHO, class(mode));
        chatter(&mut pair, id, SECOND);
        pair.run(SECOND);
        assert_eq!(pair.app(1, id).messages.len(), 50, "{mode}");
        assert_eq!(pair.app(0, id).messages.len(), 50, "{mode}");
    }
}

#[test]
fn a_reader_that_never_fetches_costs_bounded_memory() {
    let config = SplicerConfig {
        flows_max: 10,
        receive_memory: ByteCount(1 << 20),
        ..SplicerConfig::default()
    };
    let mut pair = Pair::new(&config, clean(DELAY));
    let id = open(&mut pair, SILENT, class(Mode::Unreliable));
    pair.run(MS);
    // No application: the driver of side 1 does not fetch.
    pair.sides[1].apps.clear();
    for _ in 0..3_000 {
        let now = pair.now;
        let splicer = pair.sides[0].machine.app();
        splicer.accept_datagram(now, id, &pattern(1_000));
        pair.touch(0, id);
        pair.sides[1].apps.clear();
        pair.run(MS);
        pair.sides[1].apps.clear();
    }
    assert!(pair.splicer(1).counters().credit_reserved <= 1 << 20);
    assert!(counters(&pair, 1).dropped_unread > 1_000);
}

#[test]
fn an_association_whose_end_was_lost_ends_when_its_destination_speaks() {
    let mut pair = Pair::new(&SplicerConfig::default(), clean(DELAY));
    let id = pair.open_only(FlowKind::Datagrams, SINK, class(Mode::Datagram));
    let say = |pair: &mut Pair, side: usize| {
        pair.call(side, |splicer, now| {
            splicer.accept_datagram(now, id, b"a message")
        })
    };
    assert!(say(&mut pair, 0));
    pair.run(DELAY * 10);
    pair.script = Box::new(|_, _, _| Vec::new());
    pair.sides[0].apps.remove(&id);
    pair.call(0, |splicer, now| splicer.finish(now, id));
    pair.script = clean(DELAY);
    assert!(say(&mut pair, 1), "it knows nothing yet");
    pair.run(DELAY * 4);
    assert_eq!(pair.reset_code(1, id), Some(ResetCode::PeerLost));
    pair.assert_nothing_left();
}

#[test]
fn flows_that_a_slow_link_leaves_waiting_share_a_bound_and_the_longest_gives_way() {
    const MEMORY: u64 = 1 << 20;
    let config = SplicerConfig {
        waiting_memory: ByteCount(MEMORY),
        ..SplicerConfig::default()
    };
    let mut pair = Pair::new(&config, clean(DELAY));
    let wide = FlowClass {
        window: ByteCount(4 << 20),
        ..class(Mode::HybridNackMack)
    };
    let ids: Vec<FlowId> = (0..200).map(|_| open(&mut pair, SINK, wide)).collect();
    pair.run(SECOND);
    pair.call(0, |splicer, now| splicer.hold(now, PEER, true));
    let waiting = |pair: &Pair| pair.splicer(0).counters().waiting_bytes;
    // One flow alone has what it leaves free.
    let message = pattern(1_000);
    pair.call(0, |splicer, now| {
        for _ in 0..1_000 {
            splicer.accept_datagram(now, ids[0], &message);
        }
    });
    let alone = waiting(&pair);
    assert!(
        (MEMORY * 9 / 20..=MEMORY / 2).contains(&alone),
        "{alone} octets"
    );
    // Two hundred of them, as a host that tries many ports makes them.
    for _ in 0..100 {
        pair.call(0, |splicer, now| {
            for id in &ids {
                splicer.accept_datagram(now, *id, &message);
            }
        });
    }
    let together = waiting(&pair);
    assert!(
        (MEMORY * 9 / 10..=MEMORY).contains(&together),
        "{together} octets"
    );
    pair.call(0, |splicer, now| splicer.hold(now, PEER, false));
    pair.run(SECOND * 20);
    assert_eq!(waiting(&pair), 0);
    // The first has no more than another, and the newest of each came.
    let came: Vec<usize> = (ids.iter())
        .map(|id| pair.app(1, *id).messages.len())
        .collect();
    assert!(came.iter().all(|came| (3..=20).contains(came)), "{came:?}");
}

#[test]
fn while_the_link_is_down_few_packets_of_a_tunnel_wait_and_they_are_the_newest() {
    let mut pair = pair();
    let to = Destination {
        host: Host::Tunnel("air".parse().expect("a name")),
        port: SINK,
    };
    let id = pair.open_to(FlowKind::Datagrams, to, class(Mode::HybridNackMack));
    let packet = |number: u8| vec![number; 1_024];
    send(&mut pair, id, &packet(255));
    pair.run(SECOND);
    pair.call(0, |splicer, now| splicer.hold(now, PEER, true));
    for number in 0..200 {
        send(&mut pair, id, &packet(number));
    }
    // One packet may be longer than what waits otherwise.
    send(&mut pair, id, &pattern(40_000));
    for number in 200..220 {
        send(&mut pair, id, &packet(number));
    }
    pair.call(0, |splicer, now| splicer.hold(now, PEER, false));
    pair.run(SECOND);
    let came = pair.app(1, id).messages.clone();
    let (before, newest) = came.split_at(came.len() - 16);
    assert_eq!(newest, (204..220).map(packet).collect::<Vec<_>>());
    // One came before, and two TPDUs of AeroTP's waited beside.
    assert!(before.len() <= 1 + 3, "{}", before.len());
}
