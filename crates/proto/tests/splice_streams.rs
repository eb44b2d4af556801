//! Streams through two splicers: order, ends, credit, and a slow reader beside a fast one.

use super::splicers::{ECHO, Pair, REFUSES, SILENT, SINK, clean, endpoint_config, pattern};
use fulmar_proto::splice::{FlowClass, FlowEvent, FlowKind, RefuseCode, ResetCode, SplicerConfig};
use fulmar_proto::transport::aerotp::{ConnectionConfig, EndpointConfig, RateSource};
use fulmar_proto::units::{Bitrate, ByteCount, Duration};
use fulmar_proto::wire::Mode;

const DELAY: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);

fn pair() -> Pair {
    Pair::new(&SplicerConfig::default(), clean(DELAY))
}

fn class(window: u64) -> FlowClass {
    FlowClass {
        window: ByteCount(window),
        ..FlowClass::default()
    }
}

#[test]
fn an_echo_comes_back_whole_in_every_complete_mode_and_leaves_nothing() {
    for mode in [Mode::NearReliable, Mode::Reliable, Mode::HybridNackMack] {
        let mut pair = pair();
        let octets = pattern(1_000_000);
        let class = FlowClass {
            mode,
            ..class(200_000)
        };
        let id = pair.open(ECHO, class, &octets);
        pair.run(SECOND * 10);
        let app = pair.app(0, id);
        assert_eq!(app.last, Some(FlowEvent::Closed(id)), "{mode}");
        assert!(app.received == octets, "{mode}");
        assert_eq!(app.delivered, 1_000_000);
        assert_eq!(pair.app(1, id).last, Some(FlowEvent::Closed(id)));
        pair.run(SECOND * 300);
        pair.assert_nothing_left();
    }
}

#[test]
fn the_first_octets_arrive_after_one_one_way_delay() {
    let mut pair = pair();
    let id = pair.open(SINK, class(100_000), b"GET / HTTP/1.0\r\n\r\n");
    pair.run(DELAY);
    assert_eq!(pair.app(1, id).received, b"GET / HTTP/1.0\r\n\r\n");
}

#[test]
fn one_direction_may_end_while_the_other_goes_on() {
    let mut pair = pair();
    let id = pair.open(SINK, class(100_000), b"question");
    pair.run(SECOND);
    assert!(pair.app(1, id).peer_finished, "half-closed forwards");
    assert_eq!(pair.app(0, id).last, None);
    let answer = pattern(300_000);
    let app = pair.app(1, id);
    app.outgoing = answer.clone();
    app.finishes = true;
    pair.touch(1, id);
    pair.run(SECOND * 5);
    assert!(pair.app(0, id).received == answer);
    for side in 0..2 {
        assert_eq!(pair.app(side, id).last, Some(FlowEvent::Closed(id)));
    }

    let id = pair.open_only(FlowKind::Stream, SINK, class(100_000));
    pair.touch(0, id);
    pair.run(SECOND);
    pair.app(1, id).finishes = true;
    pair.touch(1, id);
    pair.run(SECOND);
    assert!(pair.app(0, id).peer_finished, "half-closed backwards");
    let app = pair.app(0, id);
    app.outgoing = answer.clone();
    app.finishes = true;
    pair.touch(0, id);
    pair.run(SECOND * 5);
    assert!(pair.app(1, id).received == answer);
    assert_eq!(pair.app(0, id).last, Some(FlowEvent::Closed(id)));
}

#[test]
fn a_reset_reaches_the_far_side_from_either_and_leaves_nothing() {
    for side in 0..2 {
        let mut pair = pair();
        let id = pair.open(SINK, class(100_000), &pattern(3_000_000));
        pair.run(SECOND / 5);
        pair.sides[side].apps.remove(&id);
        pair.call(side, |splicer, now| {
            splicer.reset(now, id, ResetCode::Timeout);
        });
        pair.run(SECOND);
        assert_eq!(pair.reset_code(1 - side, id), Some(ResetCode::Timeout));
        pair.run(SECOND * 300);
        pair.assert_nothing_left();
    }
}

#[test]
fn a_refusal_reaches_the_opener_with_its_code() {
    let mut pair = pair();
    let id = pair.open(REFUSES, class(100_000), b"anybody there?");
    pair.run(SECOND);
    let code = RefuseCode::Refused;
    assert_eq!(
        pair.app(0, id).last,
        Some(FlowEvent::Refused { flow: id, code })
    );
    for code in RefuseCode::ALL {
        let id = pair.open(SILENT, class(100_000), b"anybody there?");
        pair.run(SECOND);
        assert_eq!(pair.app(0, id).last, None, "not answered yet");
        pair.sides[1].apps.remove(&id);
        pair.call(1, |splicer, now| splicer.refused(now, id, code));
        pair.run(SECOND);
        assert_eq!(
            pair.app(0, id).last,
            Some(FlowEvent::Refused { flow: id, code })
        );
    }
    pair.run(SECOND * 300);
    pair.assert_nothing_left();
}

#[test]
fn a_destination_that_is_never_answered_for_is_refused_in_time() {
    let mut pair = pair();
    let id = pair.open(SILENT, class(100_000), b"anybody there?");
    pair.run(SplicerConfig::default().answer_within + SECOND);
    let code = RefuseCode::Timeout;
    assert_eq!(
        pair.app(0, id).last,
        Some(FlowEvent::Refused { flow: id, code })
    );
    assert_eq!(pair.reset_code(1, id), Some(ResetCode::Timeout));
}

#[test]
fn a_reader_that_stopped_holds_up_its_own_data_and_nothing_else() {
    let mut pair = pair();
    let window = 100_000;
    let slow = pair.open_only(FlowKind::Stream, SINK, class(window));
    let app = pair.app(0, slow);
    app.outgoing = pattern(1_000_000);
    app.finishes = true;
    pair.sides[1].new_flows_hold = true;
    pair.touch(0, slow);
    pair.run(SECOND);
    pair.sides[1].new_flows_hold = false;
    assert!(pair.app(0, slow).sent as u64 <= window, "within its window");
    assert_eq!(pair.app(0, slow).delivered, 0);
    let octets = pattern(500_000);
    let fast = pair.open(ECHO, class(window), &octets);
    pair.run(SECOND * 3);
    assert!(pair.app(0, fast).received == octets);
    // The way back of the slow flow, and the reports of what it delivers, still work.
    let app = pair.app(1, slow);
    app.outgoing = pattern(300_000);
    pair.touch(1, slow);
    pair.run(SECOND * 2);
    assert_eq!(pair.app(0, slow).received.len(), 300_000);
    assert_eq!(pair.app(1, slow).delivered, 300_000);
    // Cutting it off still works, too.
    pair.sides[0].apps.remove(&slow);
    pair.call(0, |splicer, now| splicer.reset(now, slow, ResetCode::Reset));
    pair.run(SECOND);
    assert_eq!(pair.reset_code(1, slow), Some(ResetCode::Reset));
}

#[test]
fn no_more_than_the_window_is_taken_ahead_of_what_the_far_host_acknowledged() {
    let mut pair = pair();
    let window = 50_000;
    let id = pair.open_only(FlowKind::Stream, SINK, class(window));
    pair.app(0, id).outgoing = pattern(1_000_000);
    pair.touch(0, id);
    pair.run(DELAY);
    pair.app(1, id).withholds = true;
    pair.run(SECOND);
    let far = pair.app(1, id).received.len() as u64;
    let taken = pair.app(0, id).sent as u64;
    assert_eq!(far, taken, "read, but not acknowledged");
    assert!(taken <= pair.app(0, id).delivered + window);
    pair.app(1, id).withholds = false;
    pair.touch(1, id);
    pair.run(SECOND * 2);
    assert_eq!(pair.app(0, id).delivered, 1_000_000);
}

#[test]
fn a_flow_survives_an_outage_of_hours() {
    use std::cell::Cell;
    use std::rc::Rc;
    let down = Rc::new(Cell::new(false));
    let is_down = Rc::clone(&down);
    let mut pair = Pair::new(
        &SplicerConfig::default(),
        Box::new(move |_, _, octets| {
            if is_down.get() {
                Vec::new()
            } else {
                vec![(DELAY, octets.to_vec())]
            }
        }),
    );
    let octets = pattern(2_000_000);
    let id = pair.open(ECHO, class(200_000), &octets);
    pair.run(SECOND / 2);
    down.set(true);
    pair.run(SECOND * 3600 * 3);
    assert_eq!(pair.app(0, id).last, None);
    down.set(false);
    pair.run(SECOND * 120);
    assert!(pair.app(0, id).received == octets);
    assert_eq!(pair.app(0, id).last, Some(FlowEvent::Closed(id)));
}

#[test]
fn ten_thousand_flows_opened_and_closed_leave_nothing() {
    let mut pair = pair();
    for round in 0..100 {
        let ids: Vec<_> = (0..100)
            .map(|i| pair.open(ECHO, class(50_000), &pattern(100 + i)))
            .collect();
        pair.run(SECOND);
        for id in ids {
            assert_eq!(
                pair.app(0, id).last,
                Some(FlowEvent::Closed(id)),
                "round {round}"
            );
            pair.sides[0].apps.remove(&id);
            pair.sides[1].apps.remove(&id);
        }
    }
    pair.run(SECOND * 300);
    pair.assert_nothing_left();
    let counters = pair.splicer(0).counters();
    let counters = counters.classes.values().next().expect("one class");
    assert_eq!(counters.flows_opened, 10_000);
    assert_eq!(counters.flows_finished, 10_000);
}

/// The time that 12 MB take over 100 mbit and 300 ms, the 50th long datagram lost or not.
fn takes_over_a_long_way(loses: bool) -> Duration {
    let endpoint = EndpointConfig {
        rate: RateSource::Told(Bitrate::from_bits_per_second(100_000_000)),
        ..endpoint_config()
    };
    let connection = ConnectionConfig {
        window_tpdus: 32_768,
        send_buffer_bytes: 48_000_000,
        ..SplicerConfig::default().connection
    };
    let config = SplicerConfig {
        connection,
        ..SplicerConfig::default()
    };
    let mut long = 0;
    let delay = Duration::from_millis(300);
    let script = Box::new(move |side, _, octets: &[u8]| {
        long += u32::from(side == 0 && octets.len() > 1_000);
        let is_lost = loses && side == 0 && octets.len() > 1_000 && long == 50;
        let arrives = (!is_lost).then(|| (delay, octets.to_vec()));
        arrives.into_iter().collect()
    });
    let mut pair = Pair::with_endpoints(&config, script, endpoint);
    let octets = pattern(12_000_000);
    let id = pair.open(SINK, class(4 << 20), &octets);
    let began = pair.now;
    pair.run(Duration::from_millis(400));
    while pair.app(1, id).received.len() < octets.len() {
        pair.run(Duration::from_millis(10));
    }
    pair.now.saturating_since(began)
}

#[test]
fn a_promise_grows_with_what_came_behind_a_loss() {
    let [clean, lossy] = [false, true].map(takes_over_a_long_way);
    // 20 to 30 ms, and 150 where only what was delivered makes it grow.
    let longer = lossy.saturating_sub(clean);
    assert!(longer < Duration::from_millis(80), "{clean:?} {lossy:?}");
}
