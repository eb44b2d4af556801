//! Queues of others, and those that are not.

use super::*;

#[test]
fn a_queue_of_ours_alone_is_not_shared_for_long() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(2_000), spacing, delay);
    pipe.controller.share_hidden(pipe.now);
    assert!(pipe.controller.others.compete());
    pipe.run(at(8_000), spacing, delay);
    assert!(!pipe.controller.others.compete(), "arrivals follow nothing");
    pipe.run(at(12_000), spacing, delay);
    let found = pipe.rate() / 10e6;
    assert!((0.93..1.1).contains(&found), "{found}");
}

#[test]
fn way_is_made_for_a_queue_that_lasts_and_taken_back_when_it_is_gone() {
    let mut controller = RateController::new(RateConfig {
        sharing: RateSharing::Background,
        ..RateConfig::default()
    });
    controller.capacity = 1e6;
    controller.round_trip = 0.04;
    let mut span = |from: u64, queueing: f64| {
        for tick in 0..200 {
            controller.make_way(at(from + 10 * tick), queueing);
        }
        controller.yielding.share
    };
    let few = span(0, 0.02);
    assert!(few < 0.02, "{few}");
    let kept = span(2_000, 0.000_5);
    assert!(kept > 0.3, "{kept}");
    let all = span(4_000, 0.000_5);
    assert!((all - 1.0).abs() < 1e-9, "{all}");
}

#[test]
fn a_queue_that_has_room_shows_what_the_medium_loses() {
    let mut controller = RateController::new(RateConfig::default());
    (controller.share, controller.share_octets) = (0.8, 1e6);
    // The longest delay of late is 40 ms.
    let mut longest = second_of(1_500, 1_500).last;
    longest.queueing = 0.04;
    controller.beside_others(at(1_000), longest, None);
    let window = |most: f64| {
        let mut window = second_of(1_000_000, 1_000_000);
        window.most = most;
        window
    };
    controller.learn_share(&window(0.03));
    assert!((controller.share - 0.8).abs() < 1e-9, "nearly full");
    controller.learn_share(&window(0.01));
    assert!(controller.share > 0.9, "{}", controller.share);
}

/// Whether a sender of 2 mbit who has seen the link carry 20 mbit takes a queue of so many milliseconds and more for others'.
fn is_taken_for_others(queue_milliseconds: f64) -> bool {
    let mut controller = RateController::new(RateConfig::default());
    (controller.capacity, controller.round_trip) = (250e3, 0.04);
    controller.others.link = 2_500e3;
    let mut octets = 0;
    for hundredth in 1..300 {
        octets += 2_500;
        let at = at(10 * hundredth);
        // Trials of several senders come and go: for most of the time it is longer, and no span is as the one before.
        let trial = (hundredth % 20) as f64 + (hundredth / 40 % 2) as f64;
        let point = Point {
            sent: Sent {
                number: hundredth,
                octets,
                at,
            },
            arrived: octets,
            marked: 0,
            arrived_at: at.as_secs_f64(),
            queueing: 1e-3 * (queue_milliseconds + trial),
        };
        controller.beside_others(at, point, None);
    }
    controller.others.share_it()
}

#[test]
fn several_of_ours_keep_what_each_of_them_waits_for_and_others_more() {
    // A datagram and a half at 2 mbit take 9 ms, more than a tenth of a round trip of 40 ms. Twice that tenth is 8 ms.
    assert!(!is_taken_for_others(7.0));
    assert!(is_taken_for_others(9.0));
}
