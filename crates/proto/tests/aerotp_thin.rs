//! Thin flows under faults: each message arrives once and as it was, whatever becomes of answers, copies and symbols.

use super::FORM;
use super::pair::{Pair, Script, Way};
use fulmar_proto::machine::{TpduForm, TransmitKind};
use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    CloseReason, ConnectionConfig, EndpointConfig, Event, RateSource, ThinRepair,
};
use fulmar_proto::units::{Bitrate, Duration, Instant};
use fulmar_proto::wire::aerotp::short::{Content, Frame, FrameKind};

/// Symbols have the short form alone.
const HAS_SYMBOLS: bool = matches!(FORM, TpduForm::Short);

const MS: Duration = Duration::from_millis(1);

fn config() -> ConnectionConfig {
    ConnectionConfig {
        thin: Some(ThinRepair::at_most(80)),
        tpdu_bytes_max: 1_400,
        ..ConnectionConfig::default()
    }
}

/// Messages that differ in length and octets.
fn message(number: u32) -> Vec<u8> {
    let mut rng = Rng::from_seed(u64::from(number)).child("message");
    let len = 1 + usize::try_from(rng.below(1_000)).expect("short");
    let mut octets = vec![0; len];
    rng.fill(&mut octets);
    octets
}

/// A pipe of 5 to 15 ms that loses, repeats and overtakes, and puts `more` behind some of what goes forward.
fn faulty(loss: f64, seed: u64, more: fn(&Frame<'_>, &mut Rng) -> Vec<u8>) -> Script {
    let mut rng = Rng::from_seed(seed).child("faults");
    Box::new(move |way, _, _, octets| {
        let mut fate = Vec::new();
        while !rng.chance(loss) && fate.len() < 3 {
            let delay = MS * u32::try_from(5 + rng.below(10)).expect("few");
            fate.push((delay, octets.to_vec()));
            if rng.chance(0.9) {
                break;
            }
        }
        let frame = Content::of(octets).next().and_then(Result::ok);
        let frame = frame.filter(|_| HAS_SYMBOLS);
        if let Some(frame) = frame.filter(|_| way == Way::Forward && rng.chance(0.1)) {
            fate.push((MS * 7, more(&frame, &mut rng)));
        }
        fate
    })
}

struct Outcome {
    received: Vec<u8>,
    rebuilt: u64,
    copied: u64,
    repeated: u64,
}

fn run(script: Script, every: Duration, messages: u32) -> Outcome {
    let endpoint = EndpointConfig::default();
    let mut pair = Pair::new(endpoint, config(), script);
    pair.breaks_seal = true;
    pair.connect_only(config());
    for way in [Way::Forward, Way::Back] {
        pair.use_windows(way);
    }
    pair.run(MS * 500);
    for number in 0..messages {
        pair.app(Way::Forward, |endpoint, now, id| {
            let taken = endpoint.write_message(now, id, &message(number));
            assert_eq!(taken, Ok(true));
        });
        pair.run(every);
    }
    pair.run(Duration::from_secs(20));
    let counters = |pair: &Pair, way| {
        let id = pair.id(way).expect("a connection");
        *pair.endpoint(way).counters(id).expect("it is there")
    };
    let (sender, receiver) = (counters(&pair, Way::Forward), counters(&pair, Way::Back));
    Outcome {
        received: pair.received().to_vec(),
        rebuilt: receiver.recovered_fec_block,
        copied: sender.copied_tpdus,
        repeated: sender.sent_tpdus[2],
    }
}

fn all(messages: u32) -> Vec<u8> {
    (0..messages).flat_map(message).collect()
}

#[test]
fn messages_arrive_once_and_as_they_were_whatever_is_lost_repeated_or_overtaken() {
    for (loss, seed) in [(0.1, 1), (0.3, 2), (0.5, 3)] {
        let outcome = run(faulty(loss, seed, |_, _| vec![0x07]), MS * 4, 1_500);
        assert!(outcome.received == all(1_500), "at a loss of {loss}");
        assert!(outcome.copied > 0, "at a loss of {loss}");
        assert_eq!(outcome.rebuilt > 0, HAS_SYMBOLS, "at a loss of {loss}");
    }
}

#[test]
fn on_a_clean_path_nothing_is_sent_twice() {
    let clean: Script = Box::new(|_, _, _, octets| vec![(MS * 10, octets.to_vec())]);
    let outcome = run(clean, MS * 4, 1_500);
    assert!(outcome.received == all(1_500));
    assert_eq!(
        (outcome.repeated, outcome.copied, outcome.rebuilt),
        (0, 0, 0)
    );
}

/// Frames in the shape of a symbol that say nothing of use about the connection of `frame`.
fn useless(frame: &Frame<'_>, rng: &mut Rng) -> Vec<u8> {
    let named = matches!(frame.kind(), Some(FrameKind::Data | FrameKind::Window));
    if !named {
        return vec![0x33];
    }
    let name = &frame.fields()[..2];
    let mut octets = |len: usize| {
        let mut octets = vec![0; len];
        rng.fill(&mut octets);
        octets
    };
    match octets(1)[0] % 5 {
        // Of no TPDU.
        0 => [&[0x33], name, &octets(3), &[0xF0, 0], &octets(40)].concat(),
        // Cut off.
        1 => [&[0x33], name, &octets(4)].concat(),
        // Without a symbol.
        2 => [&[0x33], name, &octets(3), &[0xF0, 9, 0, 1]].concat(),
        // Shorter than a length.
        3 => [&[0x33], name, &frame.fields()[2..5], &[0xF0, 9, 0, 1, 7]].concat(),
        // Beyond the window, far ahead.
        _ => {
            let number = [frame.fields()[2].wrapping_add(0x20), 0, 0];
            [&[0x33], name, &number, &[0xF0, 9, 0, 1], &octets(300)].concat()
        }
    }
}

#[test]
fn symbols_that_say_nothing_change_nothing() {
    let outcome = run(faulty(0.3, 4, useless), MS * 4, 1_500);
    assert!(outcome.received == all(1_500));
    assert_eq!(outcome.rebuilt > 0, HAS_SYMBOLS);
}

#[test]
fn one_seed_has_one_result() {
    let outcome = || {
        let outcome = run(faulty(0.3, 5, useless), MS * 7, 500);
        (outcome.rebuilt, outcome.copied, outcome.repeated)
    };
    assert_eq!(outcome(), outcome());
}

/// Messages that are worth nothing after `deadline`.
fn by_deadline(deadline: Duration, order: DeliveryOrder) -> ConnectionConfig {
    let deliver = Deliver::ByDeadline;
    let goal = DeliveryGoal {
        deadline,
        missed_millionths: DeliveryGoal::usual_miss(deliver),
        deliver,
        order,
    };
    ConnectionConfig {
        thin: Some(ThinRepair::at_most(80).with_goal(goal).expect("sound")),
        ..config()
    }
}

const LEN: usize = 1_000;

fn write(pair: &mut Pair, messages: u8) {
    for number in 0..messages {
        pair.app(Way::Forward, |endpoint, now, id| {
            assert_eq!(endpoint.write_message(now, id, &[number; LEN]), Ok(true));
        });
    }
}

#[test]
fn a_deadline_counts_from_writing_so_what_waited_too_long_for_the_rate_never_leaves() {
    // A message takes 80 ms at this rate, with its headers, and the way 10 ms more.
    let rate = Bitrate::from_bits_per_second(104_000);
    let endpoint = EndpointConfig {
        rate: RateSource::Told(rate),
        ..EndpointConfig::default()
    };
    let config = by_deadline(MS * 200, DeliveryOrder::Any);
    let mut pair = Pair::new(
        endpoint,
        config,
        Box::new(|_, _, _, octets| vec![(MS * 10, octets.to_vec())]),
    );
    pair.connect_only(config);
    pair.run(MS * 500);
    write(&mut pair, 8);
    pair.run(Duration::from_secs(5));
    // The first leaves at once, the others 80 ms after each other: the third would be there after 170 ms, the fourth
    // after 250.
    let expected: Vec<u8> = (0..3).flat_map(|number| [number; LEN]).collect();
    assert_eq!(pair.received().len(), expected.len());
    assert!(pair.received() == expected);
    assert_eq!(pair.sent(TransmitKind::Source), 3, "the others never left");
    // A stream with a deadline loses nothing.
    let config = by_deadline(MS * 200, DeliveryOrder::Kept);
    let mut pair = Pair::new(
        endpoint,
        config,
        Box::new(|_, _, _, octets| vec![(MS * 10, octets.to_vec())]),
    );
    pair.connect_only(config);
    pair.run(MS * 500);
    write(&mut pair, 8);
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.received().len(), 8 * LEN);
}

#[test]
fn who_reads_in_order_and_misses_a_message_that_was_taken_back_is_told_and_never_gets_its_octet() {
    let any = by_deadline(MS * 100, DeliveryOrder::Any);
    let kept = by_deadline(MS * 100, DeliveryOrder::Kept);
    for (listener, agrees) in [(any, true), (kept, false), (config(), false)] {
        let script: Script = Box::new(|_, _, now, octets| {
            // From 600 to 800 ms nothing arrives, and some of what was written is too late.
            let now = now.as_nanos() / 1_000_000;
            if (600..800).contains(&now) {
                return Vec::new();
            }
            vec![(MS * 10, octets.to_vec())]
        });
        let mut pair = Pair::new(EndpointConfig::default(), listener, script);
        pair.connect_only(any);
        pair.run(MS * 500);
        for number in 0..40 {
            pair.app(Way::Forward, |endpoint, now, id| {
                let _ = endpoint.write_message(now, id, &[number; LEN]);
            });
            pair.run(MS * 20);
        }
        pair.run(Duration::from_secs(5));
        let whole = pair.received().chunks(LEN);
        assert!(whole.clone().all(
            |message| message.len() == LEN && message.iter().all(|octet| *octet == message[0])
        ));
        let closed = |why| move |event: &Event| matches!(event, Event::Closed { why: said, .. } if *said == why);
        let disagreed = pair
            .events(Way::Back)
            .iter()
            .any(closed(CloseReason::Disagreed));
        assert_eq!(disagreed, !agrees);
        let reset = pair
            .events(Way::Forward)
            .iter()
            .any(closed(CloseReason::Reset));
        assert_eq!(reset, !agrees);
        assert_eq!(whole.count() > 25, agrees, "all but what was lost for long");
    }
}

#[test]
fn a_change_of_plan_is_told_with_its_reasons_once_a_second_at_most_and_once() {
    let config = by_deadline(MS * 60, DeliveryOrder::Kept);
    let script = faulty(0.3, 6, |_, _| vec![0x07]);
    let mut pair = Pair::new(EndpointConfig::default(), config, script);
    pair.breaks_seal = true;
    pair.connect_only(config);
    pair.run(MS * 500);
    let mut changes = Vec::new();
    for _ in 0..1_000 {
        write(&mut pair, 1);
        pair.run(MS * 10);
        pair.app(Way::Forward, |endpoint, _, _| {
            changes.extend(core::iter::from_fn(|| endpoint.take_repair_change()));
        });
    }
    assert!(changes.len() >= 2, "{changes:?}");
    for pair in changes.windows(2) {
        assert!(
            pair[1].at >= pair[0].at + Duration::from_secs(1),
            "{pair:?}"
        );
        let (before, after) = (pair[0].decision, pair[1].decision);
        assert_ne!(
            (before.ahead_eighths, before.times),
            (after.ahead_eighths, after.times)
        );
        assert!(
            after.messages > 0 && after.missed <= after.messages,
            "{after:?}"
        );
    }
    let last = changes.last().expect("two").decision;
    assert_eq!((last.deadline, last.may_miss), (MS * 60, 700));
    assert!((150_000..450_000).contains(&last.loss), "{last:?}");
    assert!(
        last.will_miss < last.loss && last.packets > 1_000_000,
        "{last:?}"
    );
}

/// A pipe of 10 ms each way on which nothing comes from 3 s on, until so many packets have gone forward.
fn burst(packets: u32) -> Script {
    let mut left = packets;
    Box::new(move |way, _, now, octets| {
        let lost = now > Instant::START + Duration::from_secs(3) && left > 0;
        if lost && way == Way::Forward {
            left -= 1;
        }
        if lost {
            Vec::new()
        } else {
            vec![(MS * 10, octets.to_vec())]
        }
    })
}

/// The longest time without anything new, of a message every 80 ms with this goal over such a pipe.
fn longest_gap(config: ConnectionConfig, packets: u32) -> (Duration, Pair) {
    let mut pair = Pair::new(EndpointConfig::default(), config, burst(packets));
    pair.connect_only(config);
    pair.run(MS * 500);
    let (mut longest, mut since, mut before) = (Duration::ZERO, pair.now, 0);
    for number in 0..150 {
        write(&mut pair, 1);
        pair.run(MS * 80);
        let came = pair.received().len();
        if came > before || number == 0 {
            (since, before) = (pair.now, came);
        }
        longest = longest.max(pair.now.saturating_since(since));
    }
    (longest, pair)
}

#[test]
fn a_flow_with_a_deadline_ends_a_burst_that_is_counted_in_packets_by_what_it_writes() {
    let config = by_deadline(MS * 45, DeliveryOrder::Kept);
    // Where nothing but repetitions asks, each half a second behind the one before, the last of forty packets takes long.
    let (longest, pair) = longest_gap(config, 40);
    println!("{longest:?}");
    assert!(longest < MS * 2_000, "{longest:?}");
    assert!(pair.received().len() >= 149 * LEN, "none is lost");
}

#[test]
fn a_path_that_is_down_has_no_more_than_a_few_new_messages_put_on_it() {
    let config = by_deadline(MS * 45, DeliveryOrder::Kept);
    let (_, pair) = longest_gap(config, u32::MAX);
    // 2.5 s of 12 were before it, and what leaves until the silence is noticed.
    let sent = pair.sent(TransmitKind::Source);
    assert!((60..80).contains(&sent), "{sent}");
}

#[test]
fn where_late_messages_are_given_up_repetitions_count_as_overhead_as_their_copies_do() {
    // A fifth is lost in bursts of eight packets, which copies of one message rarely outlive.
    let mut rng = Rng::from_seed(21).child("bursts");
    let mut is_bad = false;
    let script: Script = Box::new(move |way, _, _, octets| {
        if way == Way::Forward {
            is_bad = rng.chance(if is_bad { 7.0 / 8.0 } else { 1.0 / 32.0 });
        }
        if is_bad {
            Vec::new()
        } else {
            vec![(MS * 10, octets.to_vec())]
        }
    });
    let goal = by_deadline(MS * 200, DeliveryOrder::Any)
        .thin
        .and_then(|thin| thin.goal());
    let thin = ThinRepair::at_most(30).with_goal(goal.expect("it has one"));
    let config = ConnectionConfig {
        thin: Some(thin.expect("sound")),
        ..config()
    };
    let mut pair = Pair::new(EndpointConfig::default(), config, script);
    pair.connect_only(config);
    pair.run(MS * 500);
    for _ in 0..2_000 {
        write(&mut pair, 1);
        pair.run(MS * 20);
    }
    let id = pair.id(Way::Forward).expect("a connection");
    let counters = pair.endpoint(Way::Forward).counters(id).expect("there");
    let [first, _, again, _] = counters.sent_tpdus;
    let share = again as f64 / first as f64;
    println!("{share:.3} of {first}");
    assert!(share < 0.32, "{share}");
}
