//! The first datagrams: their spacing shows the link, and until then little leaves.

use super::*;

#[test]
fn before_the_first_report_a_train_is_under_way_and_a_little_more_for_each_silence() {
    let mut controller = RateController::new(RateConfig::default());
    let train = 10;
    for number in 0..train {
        assert!(controller.in_flight() < controller.in_flight_max());
        controller.on_sent(at(0), number, PACKET, ENDLESS);
    }
    assert_eq!(controller.in_flight(), controller.in_flight_max());
    let first = controller.next_deadline().expect("no report yet").at;
    controller.handle_deadline(first);
    assert_eq!(controller.in_flight_max().0, 13 * PACKET.0);
    let second = controller.next_deadline().expect("no report yet").at;
    assert!(second.saturating_since(first) > first.saturating_since(at(0)));
}

#[test]
fn a_train_s_rate_that_a_few_more_prove_is_sent_after_two_round_trips() {
    for (spacing_micros, delay_millis) in [(1_200, 600), (120, 100), (120, 600)] {
        let mut pipe = Pipe::new(RateConfig::default());
        let spacing = Duration::from_micros(spacing_micros);
        let delay = Duration::from_millis(delay_millis);
        pipe.run(at(2 * delay_millis - 10), spacing, delay);
        let before = pipe.controller.belief().rate.as_bits_per_second() as f64;
        // Until then no more than forty datagrams in a round trip beside the forty of the proof.
        assert!(before < 40.0 * 12e6 / delay_millis as f64 + 1e3, "{before}");
        assert!(pipe.next < 110, "{}", pipe.next);
        pipe.run(at(2 * delay_millis + 150), spacing, delay);
        let reached = pipe.rate() * spacing_micros as f64 / 12e9;
        assert!((0.89..1.0).contains(&reached), "{delay:?}: {reached}");
    }
}

#[test]
fn what_leaves_alone_is_not_held_for_want_of_a_train() {
    let mut controller = RateController::new(RateConfig::default());
    // Answers and now and then a word, without a report for long.
    for number in 0..2_000 {
        let now = at(number);
        if number % 50 == 0 {
            let room = controller.in_flight() < controller.in_flight_max();
            assert!(room, "held at {now}");
            controller.on_sent(now, number, ByteCount(60), ByteCount::ZERO);
        } else {
            controller.on_sent_beside(now, number, ByteCount(44));
        }
    }
    // What is a train is held as before: ten datagrams.
    let (now, mut sent) = (at(2_000), 0);
    while controller.in_flight() < controller.in_flight_max() && sent < 1_000 {
        controller.on_sent(now, 2_000 + sent, PACKET, ENDLESS);
        sent += 1;
    }
    assert!((10..=11).contains(&sent), "{sent}");
}

#[test]
fn data_that_leave_one_by_one_are_held_once_forty_are_under_way() {
    let mut controller = RateController::new(RateConfig::default());
    let mut sent = 0;
    // 9.6 mbit of messages, and a link that lets none of them through yet.
    while controller.in_flight() < controller.in_flight_max() && sent < 1_000 {
        controller.on_sent(at(sent), sent, PACKET, ByteCount::ZERO);
        sent += 1;
    }
    assert_eq!(sent, 41);
    // The next one waits: it is a train as soon as there is room.
    let report = ArrivalReport {
        newest: 35,
        arrived_at: Duration::from_millis(35),
        hold: Duration::ZERO,
        octets: ByteCount(36 * PACKET.0),
        marked: 0,
    };
    controller.on_report(at(100), &report);
    assert!(controller.awaits_train() && controller.in_flight() < controller.in_flight_max());
}

#[test]
fn a_train_that_its_sender_spaced_is_none() {
    let mut controller = RateController::new(RateConfig::default());
    for number in 0..10 {
        let waiting = if number % 2 == 0 {
            PACKET
        } else {
            ByteCount::ZERO
        };
        controller.on_sent(at(5 * number), number, PACKET, waiting);
    }
    for number in 0..10 {
        let report = ArrivalReport {
            newest: number,
            arrived_at: Duration::from_millis(5 * number),
            hold: Duration::ZERO,
            octets: ByteCount(PACKET.0 * (number + 1)),
            marked: 0,
        };
        controller.on_report(at(5 * number + 600), &report);
    }
    assert!(controller.awaits_train());
    assert_eq!(controller.seen(), None);
}

#[test]
fn little_to_send_at_first_says_nothing_of_the_link() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    // A datagram in a tenth of a second, each reported before the next.
    for tenth in 1..100 {
        let report = ArrivalReport {
            newest: pipe.next,
            arrived_at: pipe.now.saturating_since(Instant::START) + delay / 2,
            hold: Duration::ZERO,
            octets: ByteCount(PACKET.0 * (pipe.next + 1)),
            marked: 0,
        };
        pipe.controller
            .on_sent(pipe.now, pipe.next, PACKET, ByteCount::ZERO);
        pipe.controller.on_report(pipe.now + delay, &report);
        (pipe.next, pipe.octets) = (pipe.next + 1, pipe.octets + PACKET.0);
        pipe.now = at(100 * tenth);
    }
    // Ten datagrams a round trip of 40 ms are 3 mbit.
    let before = pipe.rate();
    assert!(before > 2e6, "{before}");
    pipe.free_at = pipe.now;
    pipe.run(at(11_000), spacing, delay);
    let found = pipe.rate() / 10e6;
    assert!((0.85..1.1).contains(&found), "{found}");
}

#[test]
fn what_leaves_alone_is_no_train_and_what_follows_is() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(600));
    // A word, and what was asked for a round trip later.
    pipe.controller
        .on_sent(pipe.now, 0, ByteCount(100), ByteCount::ZERO);
    pipe.controller.on_report(
        at(600),
        &ArrivalReport {
            newest: 0,
            arrived_at: delay / 2,
            hold: Duration::ZERO,
            octets: ByteCount(100),
            marked: 0,
        },
    );
    assert!(pipe.controller.awaits_train());
    assert_eq!(pipe.controller.seen(), None);
    (pipe.next, pipe.octets) = (1, 100);
    (pipe.now, pipe.free_at) = (at(600), at(600));
    pipe.run(at(1_300), spacing, delay);
    let link = pipe.controller.seen().expect("the train shows it");
    let link = link.as_bits_per_second() as f64 / 10e6;
    assert!((0.95..1.05).contains(&link), "{link}");
    assert!(!pipe.controller.awaits_train());
}

#[test]
fn what_was_found_before_is_tried_at_once_unless_the_train_shows_less() {
    // 10 mbit at 600 ms are 500 datagrams under way; a train and its proof take two round trips more.
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(600));
    let sent = |first: Option<u64>, spacing: Duration, until: u64| {
        let mut pipe = Pipe::new(RateConfig {
            first: first.map(Bitrate::from_bits_per_second),
            ..RateConfig::default()
        });
        pipe.run(at(until), spacing, delay);
        (pipe.next, pipe.rate())
    };
    let (unknown, _) = sent(None, spacing, 1_250);
    let (known, rate) = sent(Some(10_000_000), spacing, 1_250);
    assert!(known > 2 * unknown, "{known} {unknown}");
    assert!((0.85e7..1.1e7).contains(&rate), "{rate}");
    // The link has become ten times slower.
    let (slow, rate) = sent(Some(10_000_000), spacing * 10, 1_800);
    assert!(slow < 250, "{slow}");
    assert!(rate < 1.2e6, "{rate}");
}
