//! No destination gets a flow's octets twice because the acceptor has forgotten how flows ended.

use super::splicers::{Pair, SINK, clean, pattern};
use fulmar_proto::splice::{FlowClass, FlowEvent, FlowId, RefuseCode, SplicerConfig};
use fulmar_proto::units::{ByteCount, Duration};
use std::cell::Cell;
use std::rc::Rc;

const DELAY: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);
const RESUME_WITHIN: Duration = Duration::from_secs(3_600);
const REMEMBERED: usize = 4;

fn config(incarnation: u32) -> SplicerConfig {
    let mut config = SplicerConfig {
        incarnation,
        ends_max: REMEMBERED,
        resume_within: RESUME_WITHIN,
        answer_within: RESUME_WITHIN,
        ..SplicerConfig::default()
    };
    config.connection.give_up_after = SECOND * 20;
    config
}

fn class(durable: bool) -> FlowClass {
    FlowClass {
        window: ByteCount(20_000),
        resume: true,
        durable,
        ..FlowClass::default()
    }
}

/// Flows whose destinations got the first octets, and that were then cut off, while no answer reached the
/// opener. The acceptor is not restarted.
fn ended_unheard(flows: usize, durable: bool) -> (Pair, Vec<FlowId>, Rc<Cell<bool>>) {
    let is_silent = Rc::new(Cell::new(true));
    let silent = Rc::clone(&is_silent);
    let mut clean = clean(DELAY);
    let script = Box::new(move |side: usize, now, octets: &[u8]| match side {
        1 if silent.get() => Vec::new(),
        _ => clean(side, now, octets),
    });
    let mut pair = Pair::new(&config(0), script);
    let ids: Vec<FlowId> = (0..flows)
        .map(|_| pair.open(SINK, class(durable), &pattern(500)))
        .collect();
    pair.run(SECOND);
    for id in &ids {
        assert!(pair.app(1, *id).received == pattern(500));
        pair.cut(1, *id);
    }
    // The acceptor gives up telling the opener.
    pair.run(SECOND * 100);
    assert_eq!(pair.splicer(1).counters().flows_now, 0);
    (pair, ids, is_silent)
}

fn forgotten(id: FlowId) -> FlowEvent {
    FlowEvent::Refused {
        flow: id,
        code: RefuseCode::Forgotten,
    }
}

#[test]
fn flows_that_ended_unheard_are_not_connected_for_again_though_more_ended_than_are_remembered() {
    for (durable, restarts) in [(false, false), (true, false), (true, true)] {
        let (mut pair, ids, is_silent) = ended_unheard(REMEMBERED * 3, durable);
        if restarts {
            pair.restart(0, &config(1));
        }
        is_silent.set(false);
        pair.run(SECOND * 60);
        let heard = ids.iter().map(|id| pair.app(0, *id).last.clone());
        let heard: Vec<_> = heard.map(|last| last.expect("heard")).collect();
        let lost = ids.iter().zip(&heard);
        let lost = lost.filter(|(id, last)| **last == forgotten(**id)).count();
        assert_eq!(lost, REMEMBERED * 2, "{heard:?}");
        for id in &ids {
            assert!(!pair.sides[1].apps.contains_key(id), "connected again");
        }
        pair.run(SECOND * 100);
        pair.assert_nothing_left();
    }
}

#[test]
fn flows_that_nobody_heard_of_are_served_again_when_what_was_forgotten_cannot_be_asked_for() {
    let (mut pair, _, is_silent) = ended_unheard(REMEMBERED + 1, false);
    pair.run(RESUME_WITHIN * 2);
    // The acceptor's openings are lost, and its connection with them, so that it asks again.
    pair.script = Box::new(|_, _, _| Vec::new());
    let id = pair.open(SINK, class(false), &pattern(500));
    pair.run(SECOND * 60);
    is_silent.set(false);
    pair.script = clean(DELAY);
    pair.run(SECOND * 60);
    assert!(pair.app(1, id).received == pattern(500));
}

#[test]
fn ends_that_were_heard_are_no_reason_to_refuse_anything() {
    let mut pair = Pair::new(&config(0), clean(DELAY));
    for _ in 0..REMEMBERED * 3 {
        pair.open(SINK, class(false), &pattern(500));
        pair.run(SECOND);
        let ids: Vec<FlowId> = pair.sides[1].apps.keys().copied().collect();
        for id in ids {
            let app = pair.app(1, id);
            app.finishes = true;
            pair.touch(1, id);
        }
        pair.run(SECOND);
    }
    pair.run(SECOND * 60);
    assert_eq!(pair.splicer(1).entry_count(), 0);
    pair.script = Box::new(|_, _, _| Vec::new());
    let id = pair.open(SINK, class(false), &pattern(500));
    pair.run(SECOND * 60);
    pair.script = clean(DELAY);
    pair.run(SECOND * 60);
    assert!(pair.app(1, id).received == pattern(500));
}
