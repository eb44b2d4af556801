//! Goals between two splicers: messages with a deadline come in any order, in time, once, or not at all.

use super::splicers::{ECHO, PEER, Pair, SINK, Script, clean, pattern};
use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{
    ClassCounters, ClassId, FlowClass, FlowEvent, FlowId, FlowKind, SplicerConfig,
};
use fulmar_proto::transport::aerotp::{ConnectionConfig, ThinRepair};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_proto::wire::Mode;
use std::net::SocketAddr;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(20);
const DELAY: Duration = Duration::from_millis(20);
const DEADLINE: Duration = Duration::from_millis(150);

fn config() -> SplicerConfig {
    let plain = SplicerConfig::default();
    SplicerConfig {
        connection: ConnectionConfig {
            thin: Some(ThinRepair::default()),
            ..plain.connection
        },
        ..plain
    }
}

fn goal(deliver: Deliver, order: DeliveryOrder) -> ThinRepair {
    let goal = DeliveryGoal {
        deadline: DEADLINE,
        missed_millionths: DeliveryGoal::usual_miss(deliver),
        deliver,
        order,
    };
    ThinRepair::at_most(90).with_goal(goal).expect("sound")
}

fn by_deadline() -> FlowClass {
    FlowClass {
        mode: Mode::HybridNackMack,
        deadline: Some(DEADLINE),
        thin_messages: Some(goal(Deliver::ByDeadline, DeliveryOrder::Any)),
        window: ByteCount(500_000),
        ..FlowClass::default()
    }
}

/// A pipe that loses this share either way, but nothing within the first second.
fn lossy(loss: f64, seed: u64) -> Script {
    let mut rng = Rng::from_seed(seed).child("loss");
    Box::new(move |_, now, octets| {
        let is_lost = rng.chance(loss) && now > Instant::START + SECOND;
        if is_lost {
            Vec::new()
        } else {
            vec![(DELAY, octets.to_vec())]
        }
    })
}

/// A message that says its number.
fn message(number: u32) -> Vec<u8> {
    let mut octets = pattern(1_200);
    octets[..4].copy_from_slice(&number.to_be_bytes());
    octets
}

fn number_of(octets: &[u8]) -> u32 {
    let (number, rest) = octets.split_first_chunk().expect("a number");
    assert!(rest == &pattern(1_200)[4..], "as it was sent");
    u32::from_be_bytes(*number)
}

fn counters(pair: &Pair, side: usize) -> ClassCounters {
    let classes = &pair.splicer(side).counters().classes;
    classes.get(&ClassId(0)).copied().unwrap_or_default()
}

/// The delay of each message at the side that it goes to; `None` if it never came.
fn chatter(pair: &mut Pair, (to, id): (usize, FlowId), messages: u32) -> Vec<Option<Duration>> {
    let mut delays = vec![None; messages as usize];
    let begin = pair.now;
    let mut read = pair.sides[to]
        .apps
        .get(&id)
        .map_or(0, |app| app.messages.len());
    let mut note = |pair: &Pair| {
        let now = pair.now;
        // Before the opening came there is no application.
        let came = pair.sides[to].apps.get(&id);
        let came = came.map_or(&[][..], |app| &app.messages[..]);
        for octets in &came[read.min(came.len())..] {
            let number = number_of(octets);
            let since = begin + EVERY * number;
            let before = delays[number as usize].replace(now.saturating_since(since));
            assert_eq!(before, None, "{number} came twice");
        }
        read = came.len();
    };
    for number in 0..messages {
        pair.call(0, |splicer, now| {
            splicer.accept_datagram(now, id, &message(number))
        });
        for _ in 0..20 {
            pair.run(MS);
            note(pair);
        }
    }
    for _ in 0..2_000 {
        pair.run(MS);
        note(pair);
    }
    delays
}

#[test]
fn messages_with_a_deadline_overtake_lost_ones_and_those_that_are_late_are_counted_by_cause() {
    const MESSAGES: u32 = 5_000;
    let mut pair = Pair::new(&config(), lossy(0.3, 1));
    let id = pair.open_only(FlowKind::Datagrams, SINK, by_deadline());
    let delays = chatter(&mut pair, (1, id), MESSAGES);
    let came: Vec<Duration> = delays.iter().flatten().copied().collect();
    let in_time = came.iter().filter(|delay| **delay <= DEADLINE).count();
    let at_once = came.iter().filter(|delay| **delay <= DELAY + MS).count();
    let (here, there) = (counters(&pair, 0), counters(&pair, 1));
    println!(
        "{in_time} of {MESSAGES} in time, {at_once} at once, {} unsent, {} given up, {} late",
        here.late_unsent, there.late_given_up, there.late_arrived
    );
    assert_eq!(came.len(), in_time, "none is delivered late");
    let messages = MESSAGES as usize;
    assert!(in_time >= messages - messages / 500, "{in_time}");
    // In order those behind a loss would wait for it.
    assert!(at_once >= messages * 69 / 100, "{at_once}");
    let lost = here.late_unsent + there.late_given_up + there.late_arrived;
    assert_eq!(lost, u64::from(MESSAGES) - in_time as u64);
    assert_eq!(there.duplicates, 0);
}

#[test]
fn a_class_with_more_overhead_than_a_peer_takes_is_refused() {
    let mut pair = Pair::new(&config(), clean(DELAY));
    let mut open = |percent: u8, is_stream: bool| {
        let thin = Some(ThinRepair::at_most(percent));
        let class = FlowClass {
            mode: Mode::HybridNackMack,
            thin: thin.filter(|_| is_stream),
            thin_messages: thin.filter(|_| !is_stream),
            ..FlowClass::default()
        };
        let destination = SocketAddr::from(([192, 0, 2, 1], ECHO)).into();
        let (now, splicer) = (pair.now, pair.sides[0].machine.app());
        splicer.open(now, PEER, FlowKind::Stream, destination, class)
    };
    for is_stream in [true, false] {
        assert!(open(100, is_stream).is_ok());
        let refused = open(101, is_stream).expect_err("its peer would end it");
        let told = refused.to_string();
        assert!(told.contains("is 101 of a hundred"), "{told}");
    }
}

#[test]
fn what_is_late_for_want_of_rate_or_of_a_path_is_counted_where_it_was_given_up() {
    // A second without a path: what was sent before is given up, what is written meanwhile does not leave.
    let mut pair = Pair::new(&config(), clean(DELAY));
    let id = pair.open_only(FlowKind::Datagrams, SINK, by_deadline());
    let early = chatter(&mut pair, (1, id), 100);
    assert!(early.iter().all(Option::is_some));
    pair.script = Box::new(|_, _, _| Vec::new());
    for number in 0..50 {
        pair.call(0, |splicer, now| {
            splicer.accept_datagram(now, id, &message(number))
        });
        pair.run(EVERY);
    }
    pair.script = clean(DELAY);
    let late = chatter(&mut pair, (1, id), 100);
    let came = late.iter().flatten().count();
    assert!(came >= 80, "{came}");
    let (here, there) = (counters(&pair, 0), counters(&pair, 1));
    assert!(there.late_given_up >= 5, "{there:?}");
    assert!(here.late_unsent >= 5, "{here:?}");
    let lost = here.late_unsent + there.late_given_up + there.late_arrived;
    assert_eq!(there.messages_received + lost, 250, "{here:?} {there:?}");
}

/// The deadline of the last plan that a side made since this was asked before.
fn planned_for(pair: &mut Pair, side: usize) -> Option<Duration> {
    pair.call(side, |splicer, _| {
        let endpoint = splicer.endpoint_mut();
        let changes = core::iter::from_fn(|| endpoint.take_repair_change());
        changes.map(|change| change.decision.deadline).last()
    })
}

#[test]
fn the_way_back_follows_a_goal_in_order_on_the_next_connection_too() {
    let mut config = config();
    config.connection.give_up_after = SECOND * 5;
    let mut pair = Pair::new(&config, lossy(0.2, 5));
    let class = FlowClass {
        thin_messages: Some(goal(Deliver::All, DeliveryOrder::Kept)),
        deadline: None,
        ..by_deadline()
    };
    let id = pair.open_only(FlowKind::Datagrams, ECHO, class);
    chatter(&mut pair, (0, id), 500);
    assert_eq!(planned_for(&mut pair, 1), Some(DEADLINE));
    pair.script = Box::new(|_, _, _| Vec::new());
    pair.call(0, |splicer, now| {
        splicer.accept_datagram(now, id, &message(500))
    });
    while pair.splicer(0).endpoint().connection_count() > 0 {
        pair.run(MS);
    }
    let kept = pair.splicer(1).endpoint().connection_count();
    assert_eq!(kept, 1, "the acceptor still has the flow");
    let mut rng = Rng::from_seed(6).child("loss");
    pair.script = Box::new(move |_, _, octets| {
        let is_lost = rng.chance(0.2);
        let arrives = (!is_lost).then(|| (DELAY, octets.to_vec()));
        arrives.into_iter().collect()
    });
    chatter(&mut pair, (0, id), 500);
    assert_eq!(planned_for(&mut pair, 1), Some(DEADLINE));
}

#[test]
fn the_way_back_follows_the_goal_too() {
    let mut pair = Pair::new(&config(), lossy(0.2, 2));
    let id = pair.open_only(FlowKind::Datagrams, ECHO, by_deadline());
    let delays = chatter(&mut pair, (0, id), 2_000);
    let came: Vec<Duration> = delays.iter().flatten().copied().collect();
    let at_once = came
        .iter()
        .filter(|delay| **delay <= DELAY * 2 + MS)
        .count();
    assert!(came.len() >= 1_990, "{}", came.len());
    assert!(at_once >= 2_000 * 62 / 100, "{at_once}");
    assert_eq!(
        [0, 1].map(|side| planned_for(&mut pair, side)),
        [Some(DEADLINE); 2]
    );
    let (here, there) = (counters(&pair, 0), counters(&pair, 1));
    assert_eq!(here.duplicates + there.duplicates, 0);
    assert!(pair.app(0, id).bound.is_some());
}

#[test]
fn a_stream_s_way_back_follows_its_goal() {
    let mut pair = Pair::new(&config(), lossy(0.2, 3));
    let class = FlowClass {
        thin: Some(goal(Deliver::All, DeliveryOrder::Kept)),
        deadline: None,
        ..by_deadline()
    };
    let id = pair.open_only(FlowKind::Stream, ECHO, class);
    for _ in 0..500 {
        let app = pair.sides[0].apps.get_mut(&id).expect("it is open");
        app.outgoing.extend_from_slice(&pattern(1_200));
        pair.touch(0, id);
        pair.run(EVERY);
    }
    pair.run(SECOND * 5);
    assert_eq!(pair.app(0, id).received.len(), 500 * 1_200);
    let told = pair.call(1, |splicer, _| splicer.endpoint_mut().take_repair_change());
    assert_eq!(told.map(|change| change.decision.deadline), Some(DEADLINE));
}

#[test]
fn a_flow_in_any_order_that_ends_leaves_what_is_under_way() {
    let mut pair = Pair::new(&config(), clean(DELAY));
    let id = pair.open_only(FlowKind::Datagrams, SINK, by_deadline());
    chatter(&mut pair, (1, id), 50);
    // Two of three datagrams are lost until both are told of the end.
    let mut n = 0;
    pair.script = Box::new(move |_, _, octets| {
        n += 1;
        if n % 3 == 0 {
            vec![(DELAY, octets.to_vec())]
        } else {
            Vec::new()
        }
    });
    pair.call(0, |splicer, now| {
        splicer.accept_datagram(now, id, &message(50));
        splicer.finish(now, id);
    });
    pair.sides[0].apps.remove(&id);
    pair.run(SECOND * 5);
    let app = pair.app(1, id);
    assert_eq!(app.last, Some(FlowEvent::Closed(id)));
    assert_eq!(app.messages.len(), 51, "the end overtakes nothing");
    pair.script = clean(DELAY);
    pair.run(SECOND * 3600 * 5);
    pair.assert_nothing_left();
}

#[test]
fn a_flow_in_any_order_goes_on_after_either_side_restarts() {
    let mut pair = Pair::new(&config(), clean(DELAY));
    let id = pair.open_only(FlowKind::Datagrams, SINK, by_deadline());
    chatter(&mut pair, (1, id), 50);
    let restarted = SplicerConfig {
        incarnation: 1,
        ..config()
    };
    pair.restart(1, &restarted);
    pair.script = lossy(0.2, 4);
    let _ = chatter(&mut pair, (1, id), 100);
    let delays = chatter(&mut pair, (1, id), 500);
    let came = delays.iter().flatten().count();
    assert!(came >= 498, "{came}");
    let at_once = |delay: &&Duration| **delay <= DELAY + MS;
    let at_once = delays.iter().flatten().filter(at_once).count();
    assert!(at_once >= 500 * 77 / 100, "{at_once}");
}

#[test]
fn the_answer_to_an_opening_arrives_however_late_it_is() {
    // A word that is lost once comes after the deadline of messages.
    const FAR: Duration = Duration::from_millis(100);
    for seed in 0..20 {
        let mut rng = Rng::from_seed(seed).child("loss");
        let script: Script = Box::new(move |_, _, octets| {
            if rng.chance(0.3) {
                Vec::new()
            } else {
                vec![(FAR, octets.to_vec())]
            }
        });
        let mut pair = Pair::new(&config(), script);
        let id = pair.open_only(FlowKind::Datagrams, SINK, by_deadline());
        for number in 0..100 {
            pair.call(0, |splicer, now| {
                splicer.accept_datagram(now, id, &message(number))
            });
            pair.run(EVERY);
        }
        pair.run(SECOND * 5);
        assert!(pair.app(0, id).bound.is_some(), "seed {seed}");
    }
}
