//! Flows that outlive their connection, and a gateway's restart.

use super::splicers::{ECHO, PEER, Pair, SINK, clean, pattern};
use fulmar_proto::splice::{
    FlowClass, FlowEvent, FlowId, FlowKind, RefuseCode, ResetCode, SplicerConfig,
};
use fulmar_proto::units::{ByteCount, Duration};

const DELAY: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);

fn config(incarnation: u32) -> SplicerConfig {
    SplicerConfig {
        incarnation,
        ..SplicerConfig::default()
    }
}

fn class() -> FlowClass {
    FlowClass {
        window: ByteCount(200_000),
        resume: true,
        durable: true,
        ..FlowClass::default()
    }
}

#[test]
fn a_flow_goes_on_where_it_was_when_either_gateway_restarts() {
    for side in 0..2 {
        let mut pair = Pair::new(&config(0), clean(DELAY));
        let octets = pattern(2_000_000);
        let id = pair.open(ECHO, class(), &octets);
        for restart in 1..=3 {
            pair.run(SECOND / 4);
            assert_eq!(pair.app(0, id).last, None, "still under way");
            pair.restart(side, &config(restart));
        }
        pair.run(SECOND * 120);
        let app = pair.app(0, id);
        assert_eq!(app.received.len(), octets.len(), "side {side}");
        assert!(app.received == octets, "side {side}");
        assert_eq!(app.last, Some(FlowEvent::Closed(id)), "side {side}");
        assert!(!app.resumed.is_empty());
        let far = pair.app(1, id);
        assert!(far.received == octets, "nothing twice at side 1");
        assert_eq!(far.last, Some(FlowEvent::Closed(id)));
        pair.run(SECOND * 3600 * 9);
        pair.assert_nothing_left();
    }
}

#[test]
fn a_gateway_that_restarts_with_less_memory_is_sent_no_more_than_it_allows_now() {
    let memory = |incarnation, memory| SplicerConfig {
        flows_max: 4,
        receive_memory: ByteCount(memory),
        ..config(incarnation)
    };
    let mut pair = Pair::new(&memory(0, 8 << 20), clean(DELAY));
    pair.sides[1].new_flows_hold = true;
    let octets = pattern(2_000_000);
    let id = pair.open(SINK, class(), &octets);
    // The host at the far side reads nothing: what it was allowed to be sent waits there.
    pair.run(SECOND);
    // What every flow is allowed, and hardly more.
    pair.restart(1, &memory(1, 4 * (16 << 10) + 1));
    pair.introduce();
    pair.run(SECOND * 10);
    assert!(!pair.app(0, id).resumed.is_empty());
    assert_eq!(pair.reset_code(0, id), None);
    pair.app(1, id).holds = false;
    pair.touch(1, id);
    pair.run(SECOND * 120);
    assert!(pair.app(1, id).received == octets);
}

#[test]
fn a_flow_without_resume_is_reset_when_a_gateway_restarts() {
    for side in 0..2 {
        let mut pair = Pair::new(&config(0), clean(DELAY));
        let class = FlowClass {
            resume: false,
            ..class()
        };
        let id = pair.open(ECHO, class, &pattern(3_000_000));
        pair.run(SECOND / 4);
        pair.restart(side, &config(1));
        pair.run(SECOND * 5);
        assert_eq!(pair.reset_code(1 - side, id), Some(ResetCode::PeerLost));
    }
}

#[test]
fn an_acceptor_that_forgot_a_flow_for_good_resets_it() {
    let mut pair = Pair::new(&config(0), clean(DELAY));
    let id = pair.open(SINK, class(), &pattern(3_000_000));
    pair.run(SECOND / 2);
    pair.sides[1].apps.clear();
    pair.restart(1, &config(1));
    pair.run(SECOND * 10);
    assert_eq!(pair.reset_code(0, id), Some(ResetCode::PeerLost));
}

#[test]
fn a_flow_that_was_never_answered_is_asked_for_again_and_says_so() {
    let mut pair = Pair::new(&config(0), Box::new(|_, _, _| Vec::new()));
    let octets = pattern(100_000);
    let id = pair.open(ECHO, class(), &octets);
    pair.run(SECOND);
    pair.script = clean(DELAY);
    pair.call(0, |splicer, now| splicer.peer_restarted(now, PEER));
    pair.run(SECOND * 10);
    assert_eq!(pair.sides[1].again, 1);
    assert!(pair.app(0, id).received == octets);
    assert_eq!(pair.app(0, id).last, Some(FlowEvent::Closed(id)));
}

#[test]
fn a_last_word_reaches_the_far_side_though_its_connection_is_lost() {
    for side in 0..2 {
        let mut pair = Pair::new(&config(0), clean(DELAY));
        let id = pair.open(SINK, class(), &pattern(100_000));
        pair.run(SECOND);
        pair.script = Box::new(|_, _, _| Vec::new());
        pair.sides[side].apps.remove(&id);
        pair.call(side, |splicer, now| {
            splicer.reset(now, id, ResetCode::Reset);
        });
        pair.run(SECOND);
        for side in 0..2 {
            pair.call(side, |splicer, now| splicer.peer_restarted(now, PEER));
        }
        pair.run(SECOND);
        pair.script = clean(DELAY);
        pair.run(SECOND * 30);
        assert_eq!(
            pair.reset_code(1 - side, id),
            Some(ResetCode::Reset),
            "{side}"
        );
        pair.run(SECOND * 3600 * 9);
        pair.assert_nothing_left();
    }
}

#[test]
fn an_acceptor_that_restarted_hears_the_end_again_though_all_was_delivered_before() {
    let mut pair = Pair::new(&config(0), clean(DELAY));
    let octets = pattern(50_000);
    let id = pair.open(ECHO, class(), &octets);
    pair.app(0, id).holds = true;
    pair.run(SECOND * 2);
    assert!(pair.app(1, id).finished && pair.app(1, id).peer_finished);
    pair.restart(1, &config(1));
    while pair.app(1, id).resumed.is_empty() {
        pair.run(DELAY / 10);
    }
    // The acceptor's answer is on its way; now the opener gets the last thing it lacks.
    pair.app(0, id).holds = false;
    pair.touch(0, id);
    pair.run(SECOND * 10);
    for side in 0..2 {
        assert_eq!(pair.app(side, id).last, Some(FlowEvent::Closed(id)));
    }
    pair.run(SECOND * 60);
    pair.assert_nothing_left();
}

#[test]
fn a_connection_of_a_flow_that_is_over_does_not_outlive_the_peers_restart() {
    let mut pair = Pair::new(&config(0), clean(DELAY));
    let class = FlowClass {
        resume: false,
        ..class()
    };
    let id = pair.open_only(FlowKind::Datagrams, ECHO, class);
    pair.call(0, |splicer, now| {
        splicer.accept_datagram(now, id, b"there and back")
    });
    pair.run(SECOND);
    assert_eq!(pair.app(0, id).messages.len(), 1);
    pair.script = Box::new(|_, _, _| Vec::new());
    pair.sides[0].apps.remove(&id);
    pair.call(0, |splicer, now| splicer.reset(now, id, ResetCode::Reset));
    pair.restart(1, &config(1));
    pair.script = clean(DELAY);
    pair.run(SECOND * 10);
    pair.assert_nothing_left();
}

#[test]
fn a_flow_that_its_opener_cannot_take_up_again_ends_when_the_restart_is_known() {
    let mut pair = Pair::new(&config(0), clean(DELAY));
    let class = FlowClass {
        durable: false,
        ..class()
    };
    let id = pair.open(SINK, class, &pattern(3_000_000));
    pair.run(SECOND / 2);
    // The link is down when the opener is killed, so that the acceptor waits without a connection.
    pair.script = Box::new(|_, _, _| Vec::new());
    pair.call(1, |splicer, now| splicer.peer_restarted(now, PEER));
    let ended = pair.reset_code(1, id);
    assert_eq!(ended, Some(ResetCode::PeerLost), "at once");
}

#[test]
fn what_a_restarted_opener_asked_for_before_its_restart_was_told_stands() {
    for resume in [false, true] {
        let mut pair = Pair::new(&config(0), clean(DELAY));
        let class = FlowClass {
            resume,
            durable: false,
            ..class()
        };
        let old = pair.open(SINK, class, &pattern(3_000_000));
        pair.run(SECOND / 2);
        pair.sides[0].apps.clear();
        pair.restart(0, &config(1));
        // The session carries the opening, and the news of the restart is heard after it.
        let id = pair.open(ECHO, class, &pattern(3_000_000));
        pair.known_at_once();
        pair.run(SECOND / 4);
        assert_eq!(pair.reset_code(1, old), Some(ResetCode::PeerLost));
        pair.call(1, |splicer, now| splicer.peer_restarted(now, PEER));
        assert_eq!(pair.app(1, id).last, None, "resume {resume}");
        pair.run(SECOND * 60);
        assert_eq!(pair.app(0, id).last, Some(FlowEvent::Closed(id)));
        // The next restart is news again.
        let last = pair.open(SINK, class, &pattern(3_000_000));
        pair.run(SECOND / 4);
        pair.call(1, |splicer, now| splicer.peer_restarted(now, PEER));
        assert_eq!(pair.reset_code(1, last), Some(ResetCode::PeerLost));
    }
}

#[test]
fn a_side_whose_host_is_gone_says_so_over_every_connection_and_confirms_nothing_more() {
    for side in 0..2 {
        let mut pair = Pair::new(&config(0), clean(DELAY));
        let id = pair.open(SINK, class(), &[]);
        pair.run(SECOND / 10);
        let gone = pair.app(side, id);
        gone.withholds = true;
        pair.app(1 - side, id).outgoing = pattern(500_000);
        pair.touch(1 - side, id);
        pair.script = Box::new(|_, _, _| Vec::new());
        pair.call(side, |splicer, now| splicer.stop(now, id));
        pair.run(SECOND);
        for side in 0..2 {
            pair.call(side, |splicer, now| splicer.peer_restarted(now, PEER));
        }
        pair.script = clean(DELAY);
        pair.run(SECOND * 30);
        let heard = pair.app(1 - side, id);
        assert_eq!(heard.told_to_stop, 1, "side {side}");
        assert_eq!(heard.delivered, 0);
        assert_eq!(heard.last, None, "it may have octets on their way");
    }
}

#[test]
fn a_flow_whose_hosts_are_both_gone_ends_though_either_side_still_has_octets() {
    let mut pair = Pair::new(&config(0), clean(DELAY));
    let id = pair.open(SINK, class(), &[]);
    pair.run(SECOND / 10);
    for side in 0..2 {
        let gone = pair.app(side, id);
        gone.withholds = true;
        gone.outgoing = pattern(500_000);
        pair.touch(side, id);
        pair.call(side, |splicer, now| splicer.stop(now, id));
    }
    pair.run(SECOND);
    for side in 0..2 {
        assert_eq!(pair.reset_code(side, id), Some(ResetCode::Reset), "{side}");
    }
    pair.run(SECOND * 600);
    pair.assert_nothing_left();
}

/// An opener whose openings never leave, an acceptor that restarts meanwhile, and a link that is then up.
fn asked_while_the_link_was_down(is_known: bool) -> (Pair, FlowId) {
    let mut pair = Pair::new(&config(0), Box::new(|_, _, _| Vec::new()));
    pair.introduce();
    pair.sides[1].keeps = false;
    if is_known {
        pair.call(0, |splicer, now| splicer.hold(now, PEER, true));
    }
    let id = pair.open(ECHO, class(), &pattern(100_000));
    pair.run(SECOND);
    pair.restart(1, &config(1));
    pair.script = clean(DELAY);
    pair.introduce();
    pair.call(0, |splicer, now| splicer.hold(now, PEER, false));
    pair.run(SECOND * 10);
    (pair, id)
}

#[test]
fn an_acceptor_that_kept_nothing_connects_for_what_no_start_before_it_can_have_heard() {
    let (mut pair, id) = asked_while_the_link_was_down(true);
    assert_eq!(pair.app(0, id).last, Some(FlowEvent::Closed(id)));
    assert!(pair.app(1, id).received == pattern(100_000));
}

#[test]
fn an_acceptor_that_kept_nothing_refuses_what_a_start_before_it_may_have_heard() {
    let (mut pair, id) = asked_while_the_link_was_down(false);
    let refused = FlowEvent::Refused {
        flow: id,
        code: RefuseCode::Forgotten,
    };
    assert_eq!(pair.app(0, id).last, Some(refused));
    assert!(
        !pair.sides[1].apps.contains_key(&id),
        "nobody was connected to"
    );
}

#[test]
fn what_an_opener_asks_for_after_its_own_restart_is_served_by_an_acceptor_that_wrote_down_what_it_connected_for()
 {
    for keeps in [true, false] {
        let mut pair = Pair::new(&config(0), clean(DELAY));
        pair.sides[1].keeps = keeps;
        pair.introduce();
        pair.script = Box::new(|_, _, _| Vec::new());
        let id = pair.open(ECHO, class(), &pattern(100_000));
        pair.run(SECOND);
        pair.restart(0, &config(1));
        pair.script = clean(DELAY);
        pair.run(SECOND * 10);
        let served = pair.app(0, id).last == Some(FlowEvent::Closed(id));
        assert_eq!(served, keeps, "{:?}", pair.app(0, id).last);
    }
}
