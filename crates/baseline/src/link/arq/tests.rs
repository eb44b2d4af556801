//! Two ends, frame by frame: each case decides which frames arrive.

use super::{Arq, ArqConfig};
use crate::link::by_hand::{self, arrive, offer, packet, packets};
use crate::link::{LinkMachine, Medium, StrictLink};
use crate::wire::link::FrameNumber;
use crate::wire::link::arq::{self as wire, ArqFrame, Epoch};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};

const MEDIUM: Medium = Medium {
    rate: Some(Bitrate::from_bits_per_second(10_000_000)),
    back_rate: Some(Bitrate::from_bits_per_second(10_000_000)),
    round_trip: Duration::from_millis(20),
    access: Duration::ZERO,
};
const NOW: Instant = Instant::from_nanos(1_000_000_000);

fn end(config: ArqConfig, name: &str) -> StrictLink<Arq> {
    let mut rng = Rng::from_seed(1).child(name);
    StrictLink::new(Arq::new(config, MEDIUM, &mut rng))
}

fn frames(machine: &mut StrictLink<Arq>, now: Instant) -> Vec<Vec<u8>> {
    let sent = by_hand::frames(machine, now).into_iter();
    sent.map(|(_, octets)| octets).collect()
}

/// The frame of a packet.
fn send(machine: &mut StrictLink<Arq>, now: Instant, number: u8) -> Vec<u8> {
    offer(machine, now, &packet(number));
    let mut sent = frames(machine, now);
    assert_eq!(sent.len(), 1);
    sent.remove(0)
}

/// Exchanges the receiver's questions and the sender's answers, until both are silent.
fn talk(
    sender: &mut StrictLink<Arq>,
    receiver: &mut StrictLink<Arq>,
    now: Instant,
) -> Vec<Vec<u8>> {
    let mut released = Vec::new();
    loop {
        let asked = frames(receiver, now);
        for frame in &asked {
            assert!(arrive(sender, now, frame).is_empty());
        }
        let answered = frames(sender, now);
        for frame in &answered {
            released.extend(arrive(receiver, now, frame));
        }
        if asked.is_empty() && answered.is_empty() {
            return released;
        }
    }
}

#[test]
fn a_restarted_peer_is_followed_when_it_answers_and_none_of_its_packets_is_lost_for_that() {
    for config in [
        ArqConfig::LL_ARQ,
        ArqConfig::GO_BACK_N,
        ArqConfig::STOP_AND_WAIT,
    ] {
        let (mut sender, mut receiver) = (end(config, "first life"), end(config, "receiver"));
        let former = send(&mut sender, NOW, 1);
        assert_eq!(arrive(&mut receiver, NOW, &former), [packet(1)]);
        talk(&mut sender, &mut receiver, NOW);
        sender = end(config, "second life");
        let frame = send(&mut sender, NOW, 2);
        assert!(arrive(&mut receiver, NOW, &frame).is_empty());
        assert_eq!(talk(&mut sender, &mut receiver, NOW), [packet(2)]);
        // Frames of the former life that the medium held up change nothing.
        assert!(arrive(&mut receiver, NOW, &former).is_empty());
        assert!(talk(&mut sender, &mut receiver, NOW).is_empty());
        let frame = send(&mut sender, NOW, 3);
        assert_eq!(arrive(&mut receiver, NOW, &frame), [packet(3)]);
    }
}

/// Without retransmissions no copy of a packet comes later that would make up for one driven out.
#[test]
fn a_frame_that_comes_twice_drives_out_no_packet_of_a_restarted_peer() {
    let config = ArqConfig {
        window: 3,
        retries: 0,
        ..ArqConfig::SELECTIVE_REPEAT
    };
    let mut receiver = end(config, "receiver");
    let former = send(&mut end(config, "first life"), NOW, 0);
    arrive(&mut receiver, NOW, &former);
    frames(&mut receiver, NOW);
    let mut sender = end(config, "second life");
    let window = [1, 2, 3].map(|number| send(&mut sender, NOW, number));
    for frame in [&window[0], &window[1], &window[1], &window[1], &window[2]] {
        assert!(arrive(&mut receiver, NOW, frame).is_empty());
    }
    let released = talk(&mut sender, &mut receiver, NOW);
    assert_eq!(released, [packet(1), packet(2), packet(3)]);
}

#[test]
fn a_life_that_is_over_before_it_is_heard_of_does_not_stop_the_present_one() {
    let config = ArqConfig::LL_ARQ;
    let mut receiver = end(config, "receiver");
    let held_up = send(&mut end(config, "a life nobody heard of"), NOW, 1);
    let mut sender = end(config, "present life");
    let frame = send(&mut sender, NOW, 2);
    assert_eq!(arrive(&mut receiver, NOW, &frame), [packet(2)]);
    assert!(arrive(&mut receiver, NOW, &held_up).is_empty());
    assert!(talk(&mut sender, &mut receiver, NOW).is_empty());
    let frame = send(&mut sender, NOW, 3);
    assert_eq!(arrive(&mut receiver, NOW, &frame), [packet(3)]);
}

/// Numbers tell two lives of one name apart, unless they are within a window of each other.
#[test]
fn a_life_of_a_former_ones_name_is_known_by_its_numbers() {
    let config = ArqConfig::LL_ARQ;
    let far = ArqConfig::WINDOW_MAX + 1;
    for distance in [far, far.wrapping_neg()] {
        let mut receiver = end(config, "receiver");
        let (mut sender, epoch) = (end(config, "sender"), Epoch(7));
        let frame = |number, content: &[u8]| {
            let mut out = Vec::new();
            let (base, again) = (number, false);
            ArqFrame::Data {
                epoch,
                number,
                base,
                again,
                packet: content,
            }
            .encode(&mut out);
            out
        };
        assert_eq!(
            arrive(&mut receiver, NOW, &frame(FrameNumber(9), b"one")),
            [b"one"]
        );
        frames(&mut receiver, NOW);
        let restarted = FrameNumber(10).plus(distance);
        assert!(arrive(&mut receiver, NOW, &frame(restarted, b"two")).is_empty());
        let challenge = frames(&mut receiver, NOW);
        let Ok(ArqFrame::Challenge(challenge)) = ArqFrame::parse(&challenge[0]) else {
            panic!("{challenge:?}");
        };
        let mut answer = Vec::new();
        ArqFrame::Answer {
            epoch,
            base: restarted,
            challenge,
        }
        .encode(&mut answer);
        assert_eq!(arrive(&mut receiver, NOW, &answer), [b"two"], "{distance}");
        assert!(frames(&mut sender, NOW).is_empty());
    }
}

#[test]
fn a_peer_that_never_answers_costs_a_window_and_an_unheard_one_another() {
    let config = ArqConfig {
        window: 8,
        ..ArqConfig::LL_ARQ
    };
    let mut receiver = end(config, "receiver");
    let mut sender = end(config, "sender");
    let first = send(&mut sender, NOW, 0);
    assert_eq!(arrive(&mut receiver, NOW, &first), [packet(0)]);
    for number in 0..1_000_u16 {
        for epoch in 0..3 {
            let mut out = Vec::new();
            let (number, epoch) = (FrameNumber(number), Epoch(epoch));
            let base = number;
            ArqFrame::Data {
                epoch,
                number,
                base,
                again: false,
                packet: &packet(1),
            }
            .encode(&mut out);
            assert!(arrive(&mut receiver, NOW, &out).is_empty());
        }
    }
    assert!(receiver.held() <= ByteCount(8 * 1_000));
    while sender.ready() {
        send(&mut sender, NOW, 1);
    }
    assert!(sender.held() <= ByteCount(8 * 1_000));
}

/// The bound in `docs/models/link.md` is reached: a window's last frame waits for the tries of all
/// frames before it, where only the first frame's timer counts.
#[test]
fn a_dead_hop_gives_up_a_go_back_n_window_one_after_another_and_others_at_once() {
    for (preset, factor) in [(ArqConfig::GO_BACK_N, 4), (ArqConfig::LL_ARQ, 1)] {
        let config = ArqConfig {
            window: 4,
            retries: 2,
            retransmit_after: Some(Duration::from_millis(30)),
            ..preset
        };
        let mut sender = end(config, "sender");
        for number in 0..4 {
            send(&mut sender, NOW, number);
        }
        let mut now = NOW;
        while sender.counters().given_up < 4 {
            now = sender.next_deadline().expect("it still tries").at;
            sender.handle_deadline(now);
            assert!(packets(&mut sender).is_empty());
            frames(&mut sender, now);
        }
        // Three transmissions each.
        let took = now.saturating_since(NOW);
        assert_eq!(took, Duration::from_millis(30) * 3 * factor, "{preset:?}");
    }
}

#[test]
fn what_came_behind_a_hole_leaves_when_the_hold_is_over_though_the_sender_is_gone() {
    let config = ArqConfig {
        retries: 2,
        retransmit_after: Some(Duration::from_millis(30)),
        ..ArqConfig::LL_ARQ
    };
    let (mut sender, mut receiver) = (end(config, "sender"), end(config, "receiver"));
    let first = send(&mut sender, NOW, 0);
    assert_eq!(arrive(&mut receiver, NOW, &first), [packet(0)]);
    let _lost = send(&mut sender, NOW, 1);
    let behind = send(&mut sender, NOW, 2);
    assert!(arrive(&mut receiver, NOW, &behind).is_empty());
    // Three tries of the sender, half as long again, and one more.
    let at = receiver.next_deadline().expect("it waits").at;
    assert_eq!(at.saturating_since(NOW), Duration::from_millis(30) * 5);
    receiver.handle_deadline(at);
    assert_eq!(packets(&mut receiver), [packet(2)]);
}

#[test]
fn of_what_comes_ahead_of_its_turn_a_receiver_keeps_a_window() {
    let config = ArqConfig {
        window: 8,
        ..ArqConfig::LL_ARQ
    };
    let mut receiver = end(config, "receiver");
    let base = FrameNumber(u16::MAX - 3);
    let frame = |distance| {
        let mut out = Vec::new();
        let data = ArqFrame::Data {
            epoch: Epoch(7),
            number: base.plus(distance),
            base,
            again: false,
            packet: &packet(1),
        };
        data.encode(&mut out);
        out
    };
    for distance in 1..ArqConfig::WINDOW_MAX + 10 {
        assert!(arrive(&mut receiver, NOW, &frame(distance)).is_empty());
    }
    assert_eq!(receiver.held(), ByteCount(7 * 1_000));
    assert_eq!(arrive(&mut receiver, NOW, &frame(0)).len(), 8);
    assert_eq!(receiver.held(), ByteCount::ZERO);
}

fn acknowledgement(epoch: Epoch, next: FrameNumber) -> Vec<u8> {
    let mut out = Vec::new();
    ArqFrame::Ack {
        epoch,
        next,
        bits: &[],
    }
    .encode(&mut out);
    out
}

/// The life of the frame's sender, its number, and its base.
fn numbers(frame: &[u8]) -> (Epoch, FrameNumber, FrameNumber) {
    match ArqFrame::parse(frame) {
        Ok(ArqFrame::Data {
            epoch,
            number,
            base,
            ..
        }) => (epoch, number, base),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_acknowledgement_of_another_life_or_of_what_was_never_sent_confirms_nothing() {
    let mut sender = end(ArqConfig::LL_ARQ, "sender");
    let sent = send(&mut sender, NOW, 1);
    let (epoch, number, _) = numbers(&sent);
    let other = Epoch(epoch.0.wrapping_add(1));
    for (unexpected, frame) in [
        (1, acknowledgement(other, number.plus(1))),
        (2, acknowledgement(epoch, number.plus(2))),
        // A later one has overtaken it.
        (2, acknowledgement(epoch, number.plus(u16::MAX))),
    ] {
        assert!(arrive(&mut sender, NOW, &frame).is_empty());
        assert_eq!(sender.counters().unexpected, unexpected);
        assert_eq!(sender.held(), ByteCount(1_000));
    }
    let sound = acknowledgement(epoch, number.plus(1));
    assert!(arrive(&mut sender, NOW, &sound).is_empty());
    assert_eq!(sender.held(), ByteCount::ZERO);
}

#[test]
fn a_go_back_n_receiver_keeps_nothing_that_is_out_of_order() {
    let config = ArqConfig::GO_BACK_N;
    let (mut sender, mut receiver) = (end(config, "sender"), end(config, "receiver"));
    let first = send(&mut sender, NOW, 0);
    assert_eq!(arrive(&mut receiver, NOW, &first), [packet(0)]);
    let _lost = send(&mut sender, NOW, 1);
    let behind = send(&mut sender, NOW, 2);
    assert!(arrive(&mut receiver, NOW, &behind).is_empty());
    assert_eq!(receiver.held(), ByteCount::ZERO);
}

#[test]
fn a_packet_that_is_given_up_holds_up_no_other_though_nothing_is_sent_after_them() {
    let config = ArqConfig {
        retries: 0,
        ..ArqConfig::LL_ARQ
    };
    let (mut sender, mut receiver) = (end(config, "sender"), end(config, "receiver"));
    let _lost = send(&mut sender, NOW, 1);
    let behind = send(&mut sender, NOW, 2);
    let (_, number, base) = numbers(&behind);
    assert_eq!(number, base.plus(1));
    assert!(arrive(&mut receiver, NOW, &behind).is_empty());
    for frame in frames(&mut receiver, NOW) {
        assert!(arrive(&mut sender, NOW, &frame).is_empty());
    }
    let timeout = sender.next_deadline().expect("it waits").at;
    sender.handle_deadline(timeout);
    assert!(packets(&mut sender).is_empty());
    let announced = frames(&mut sender, timeout);
    assert_eq!(announced.len(), 1);
    let released = arrive(&mut receiver, timeout, &announced[0]);
    assert_eq!(released, [packet(2)]);
}

/// Its sender has given it up: it would be released later than a packet may.
#[test]
fn what_waited_for_an_answer_longer_than_a_packet_may_does_not_come_out() {
    let config = ArqConfig::LL_ARQ;
    for (waits, expected) in [(Duration::from_millis(10), 1), (Duration::from_secs(60), 0)] {
        let mut receiver = end(config, "receiver");
        let former = send(&mut end(config, "first life"), NOW, 1);
        assert_eq!(arrive(&mut receiver, NOW, &former), [packet(1)]);
        let frame = send(&mut end(config, "second life"), NOW, 2);
        assert!(arrive(&mut receiver, NOW, &frame).is_empty());
        let challenge = frames(&mut receiver, NOW);
        let Ok(ArqFrame::Challenge(challenge)) = ArqFrame::parse(&challenge[0]) else {
            panic!("{challenge:?}");
        };
        let (epoch, number, _) = numbers(&frame);
        let mut answer = Vec::new();
        ArqFrame::Answer {
            epoch,
            base: number.plus(1),
            challenge,
        }
        .encode(&mut answer);
        let released = arrive(&mut receiver, NOW + waits, &answer);
        assert_eq!(released.len(), expected, "after {waits:?}");
    }
}

/// The numbers that a request names, one by one.
fn requested(frame: &[u8]) -> Vec<u16> {
    match ArqFrame::parse(frame) {
        Ok(ArqFrame::Request { ranges, .. }) => wire::ranges(ranges)
            .flat_map(|(first, count)| (0..count).map(move |n| first.plus(n).0))
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_nak_only_receiver_asks_for_a_gap_at_once_and_again_until_it_is_filled() {
    let config = ArqConfig {
        retransmit_after: Some(Duration::from_millis(30)),
        ..ArqConfig::NAK_ONLY
    };
    let (mut sender, mut receiver) = (end(config, "sender"), end(config, "receiver"));
    let first = send(&mut sender, NOW, 0);
    assert_eq!(arrive(&mut receiver, NOW, &first), [packet(0)]);
    assert!(
        frames(&mut receiver, NOW).is_empty(),
        "nothing is acknowledged"
    );
    let lost = send(&mut sender, NOW, 1);
    let behind = send(&mut sender, NOW, 2);
    assert_eq!(sender.next_deadline(), None, "the sender has no timer");
    assert!(arrive(&mut receiver, NOW, &behind).is_empty());
    let (_, number, _) = numbers(&lost);
    let asked = frames(&mut receiver, NOW);
    assert_eq!(asked.len(), 1);
    assert_eq!(requested(&asked[0]), [number.0]);
    // The request is lost; the receiver's own timer repeats it.
    let at = receiver.next_deadline().expect("it waits").at;
    assert_eq!(at, NOW + Duration::from_millis(30));
    receiver.handle_deadline(at);
    assert!(packets(&mut receiver).is_empty());
    let asked = frames(&mut receiver, at);
    assert_eq!(requested(&asked[0]), [number.0]);
    assert!(arrive(&mut sender, at, &asked[0]).is_empty());
    let again = frames(&mut sender, at);
    assert_eq!(again.len(), 1, "only what was asked for");
    assert_eq!(arrive(&mut receiver, at, &again[0]), [packet(1), packet(2)]);
    assert_eq!(receiver.next_deadline(), None);
    assert_eq!(receiver.counters().recovered_by_arq, 1);
}

#[test]
fn a_nak_only_sender_repeats_a_frame_so_often_and_its_receiver_then_goes_on() {
    for retries in [0, 1, 3] {
        let config = ArqConfig {
            retries,
            retransmit_after: Some(Duration::from_millis(30)),
            ..ArqConfig::NAK_ONLY
        };
        let (mut sender, mut receiver) = (end(config, "sender"), end(config, "receiver"));
        let first = send(&mut sender, NOW, 0);
        assert_eq!(arrive(&mut receiver, NOW, &first), [packet(0)]);
        let _lost = send(&mut sender, NOW, 1);
        let behind = send(&mut sender, NOW, 2);
        let mut released = arrive(&mut receiver, NOW, &behind);
        let (mut now, mut repeated) = (NOW, 0);
        while released.is_empty() {
            for asked in frames(&mut receiver, now) {
                assert!(arrive(&mut sender, now, &asked).is_empty());
                // Each repetition is lost.
                repeated += frames(&mut sender, now).len();
            }
            now = receiver.next_deadline().expect("it waits").at;
            receiver.handle_deadline(now);
            released = packets(&mut receiver);
        }
        assert_eq!(released, [packet(2)]);
        assert_eq!(repeated, usize::from(retries));
        let span = Duration::from_millis(30) * u32::from(retries);
        assert_eq!(now.saturating_since(NOW), span, "{retries}");
        assert_eq!(receiver.counters().skipped, 1);
        // A request that comes all the same is not answered.
        let (_, number, _) = numbers(&behind);
        let late = request(&behind, number.plus(u16::MAX), 1);
        assert!(arrive(&mut sender, now, &late).is_empty());
        assert!(frames(&mut sender, now).is_empty());
        assert_eq!(sender.counters().given_up, 1);
    }
}

/// A request for frames from `first` on, of the life that sent `frame`.
fn request(frame: &[u8], first: FrameNumber, count: u16) -> Vec<u8> {
    let (epoch, _, _) = numbers(frame);
    let mut ranges = Vec::new();
    wire::push_range(first, count, &mut ranges);
    let ranges = &ranges;
    let mut request = Vec::new();
    ArqFrame::Request { epoch, ranges }.encode(&mut request);
    request
}

#[test]
fn a_request_for_frames_that_have_left_the_window_is_counted_and_repeats_the_rest() {
    let config = ArqConfig {
        window: 8,
        ..ArqConfig::NAK_ONLY
    };
    let mut sender = end(config, "sender");
    let first = send(&mut sender, NOW, 0);
    let (_, first, _) = numbers(&first);
    let mut last = Vec::new();
    for number in 1..20 {
        last = send(&mut sender, NOW, number);
    }
    // 12 to 19 are kept.
    assert!(arrive(&mut sender, NOW, &request(&last, first.plus(9), 5)).is_empty());
    assert_eq!(frames(&mut sender, NOW).len(), 2);
    let counters = *sender.counters();
    assert_eq!((counters.asked_too_late, counters.given_up), (3, 0));
    assert!(arrive(&mut sender, NOW, &request(&last, first.plus(2), 1)).is_empty());
    assert!(frames(&mut sender, NOW).is_empty());
    assert_eq!(sender.counters().asked_too_late, 4);
}

#[test]
fn a_nak_only_sender_never_waits_and_keeps_a_window() {
    let config = ArqConfig {
        window: 8,
        ..ArqConfig::NAK_ONLY
    };
    let (mut sender, mut receiver) = (end(config, "sender"), end(config, "receiver"));
    let first = send(&mut sender, NOW, 0);
    assert_eq!(arrive(&mut receiver, NOW, &first), [packet(0)]);
    let mut last = first;
    for number in 1..100 {
        last = send(&mut sender, NOW, number);
        assert!(sender.held() <= ByteCount(8 * 1_000));
    }
    // What has left the window is passed over, and what is in it is asked for.
    assert!(arrive(&mut receiver, NOW, &last).is_empty());
    let (_, number, base) = numbers(&last);
    assert_eq!(number.ahead_of(base), 7);
    let asked = frames(&mut receiver, NOW);
    let expected = (0..7).map(|n| base.plus(n).0);
    assert_eq!(requested(&asked[0]), expected.collect::<Vec<_>>());
    assert!(arrive(&mut sender, NOW, &asked[0]).is_empty());
    let mut released = Vec::new();
    for again in frames(&mut sender, NOW) {
        released.extend(arrive(&mut receiver, NOW, &again));
    }
    assert_eq!(released, (92..100).map(packet).collect::<Vec<_>>());
}
