//! The train and the first rounds.

use super::super::sent_log::Sent;
use super::*;

/// The rate that a train shows of which `arrived` come, each after so many microseconds.
fn by_train(arrived: &[(u64, u64)]) -> f64 {
    let delays = QueueGauge::default();
    let known = Known {
        delays: &delays,
        sent_last: 9,
        round_trip: 0.04,
        packet: 1_500.0,
        bound: f64::MAX,
    };
    let mut start = Start::new(None);
    for number in 0..TRAIN_DATAGRAMS {
        start.on_sent(Instant::START, number, 0, true);
    }
    for (count, (number, micros)) in (1..).zip(arrived) {
        let sent = Sent {
            number: *number,
            octets: 1_500 * (number + 1),
            at: Instant::START,
        };
        let point = Point {
            sent,
            arrived: 1_500 * count,
            marked: 0,
            arrived_at: Duration::from_micros(*micros).as_secs_f64(),
            queueing: 0.0,
        };
        start.on_point(point, &known);
    }
    start.by_train() * 8e-6
}

#[test]
fn what_leaves_alone_behind_the_train_is_no_part_of_the_first_round() {
    const FIRST: f64 = 12.5e6;
    let delays = QueueGauge::default();
    let mut start = Start::new(Some(FIRST));
    for number in 0..TRAIN_DATAGRAMS {
        start.on_sent(Instant::START, number, 0, true);
    }
    // The train; three that leave alone before it is heard of; then as many as the pace of before lets through, which
    // wait once for something else.
    let micros = |number: u64| match number {
        0..10 => 120 * number,
        10..13 => 50_000 + 120 * number,
        _ => 100_000 + 140 * number,
    };
    let mut found = Vec::new();
    for number in 0..100 {
        let since = micros(number);
        let left = if number < 10 { 0 } else { since };
        let sent = Sent {
            number,
            octets: 1_500 * (number + 1),
            at: Instant::START + Duration::from_micros(left),
        };
        let point = Point {
            sent,
            arrived: 1_500 * (number + 1),
            marked: 0,
            arrived_at: Duration::from_micros(since).as_secs_f64(),
            queueing: if number == 14 { 0.003 } else { 0.0 },
        };
        let known = Known {
            delays: &delays,
            sent_last: number.max(12),
            round_trip: 0.1,
            packet: 1_500.0,
            bound: f64::MAX,
        };
        if let Step::Found { rate, .. } = start.on_point(point, &known) {
            found.push(rate);
            break;
        }
    }
    let [rate] = found[..] else {
        panic!("nothing was found");
    };
    assert!(rate > FIRST * 0.7, "{rate}");
}

#[test]
fn a_round_in_which_there_was_not_always_something_to_send_is_not_the_link_s_rate() {
    let delays = QueueGauge::default();
    let mut start = Start::new(None);
    // A train over 10 mbit; six that leave alone, as requests do; then as many as the pace lets through,
    // for which the receiver wakes up late.
    let left = |number: u64| match number {
        0..10 => 0,
        10..16 => 20_000 * (number - 5),
        _ => 220_000 + 1_333 * (number - 16),
    };
    for number in 0..60 {
        let since = Instant::START + Duration::from_micros(left(number));
        start.on_sent(since, number, 0, !(9..16).contains(&number));
        let late = if (22..30).contains(&number) {
            25_000
        } else {
            0
        };
        let spacing = if number < 10 { 1_200 * number } else { 0 };
        let arrived_at = Duration::from_micros(left(number) + 5_000 + spacing + late);
        let point = Point {
            sent: Sent {
                number,
                octets: 1_500 * (number + 1),
                at: since,
            },
            arrived: 1_500 * (number + 1),
            marked: 0,
            arrived_at: arrived_at.as_secs_f64(),
            queueing: Duration::from_micros(late).as_secs_f64(),
        };
        let known = Known {
            delays: &delays,
            sent_last: number,
            round_trip: 0.01,
            packet: 1_500.0,
            bound: f64::MAX,
        };
        if let Step::Found { rate, .. } = start.on_point(point, &known) {
            assert!(rate * 8.0 > 8e6, "{rate} octets a second at {number}");
            return;
        }
    }
}

#[test]
fn what_a_queue_dropped_of_a_train_did_not_pass_the_link() {
    // 20 mbit: 600 us each. Six were dropped before the link, and the last came right behind.
    let dropped = by_train(&[(0, 0), (1, 600), (2, 1_200), (9, 1_800)]);
    assert!((dropped - 20.0).abs() < 0.1, "{dropped}");
    // Six were lost behind it, and took their time there.
    let lost = by_train(&[(0, 0), (1, 600), (2, 1_200), (9, 5_400)]);
    assert!((lost - 20.0).abs() < 0.1, "{lost}");
    // No two neighbours: not more than half more than what arrived.
    let few = by_train(&[(0, 0), (4, 600), (9, 1_200)]);
    assert!((few - 30.0).abs() < 0.1, "{few}");
}
