//! Many flows in doubt at once: each is asked about until it is settled, whatever happens to one question.

use super::splicers::{App, PEER, Pair, SILENT, SINK, Script, clean};
use fulmar_proto::splice::records::QUESTIONS_MAX;
use fulmar_proto::splice::{Destination, FlowClass, FlowId, FlowKind, ResetCode, SplicerConfig};
use fulmar_proto::units::{ByteCount, Duration};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

const DELAY: Duration = Duration::from_millis(10);
const CONNECTIONS_MAX: usize = 3_000;
const SECOND: Duration = Duration::from_secs(1);
/// A time longer than every pause between two questions, and the answers to all of them.
const ASKED: Duration = Duration::from_secs(40);
/// A time after which the opener has given up telling that its flows are over.
const OUTLASTS: Duration = Duration::from_secs(600);

fn config() -> SplicerConfig {
    let mut config = SplicerConfig {
        answer_within: SECOND * 60,
        ..SplicerConfig::default()
    };
    config.connection.give_up_after = SECOND * 60;
    config
}

fn class() -> FlowClass {
    FlowClass {
        window: ByteCount(20_000),
        resume: true,
        durable: true,
        ..FlowClass::default()
    }
}

/// The fault of a pipe: it drops the opener's openings while the cell says so, or everything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loses {
    Nothing,
    Openings,
    All,
}

fn losing(loses: &Rc<Cell<Loses>>) -> Script {
    let loses = Rc::clone(loses);
    let destination = [4, 0, 9, 192, 0, 2, 1];
    let mut clean = clean(DELAY);
    Box::new(move |side, now, octets| {
        let opens = || {
            octets
                .windows(destination.len())
                .any(|part| part == destination)
        };
        match loses.get() {
            Loses::All => Vec::new(),
            Loses::Openings if side == 0 && opens() => Vec::new(),
            _ => clean(side, now, octets),
        }
    })
}

/// Flows whose acceptor has lost their connections.
fn away(flows: usize, loses: Loses) -> (Pair, Vec<FlowId>, Rc<Cell<Loses>>) {
    let cell = Rc::new(Cell::new(Loses::Nothing));
    let mut pair = Pair::limited(&config(), losing(&cell), CONNECTIONS_MAX);
    let ids: Vec<FlowId> = (0..flows)
        .map(|_| pair.open_only(FlowKind::Stream, SINK, class()))
        .collect();
    pair.touch(0, ids[0]);
    pair.run(SECOND * 5);
    assert!(ids.iter().all(|id| pair.app(1, *id).bound.is_some()));
    cell.set(loses);
    pair.call(1, |splicer, now| splicer.peer_restarted(now, PEER));
    (pair, ids, cell)
}

fn reset(pair: &mut Pair, side: usize, ids: &[FlowId]) {
    for id in ids {
        pair.sides[side].apps.remove(id);
    }
    pair.call(side, |splicer, now| {
        for id in ids {
            splicer.reset(now, *id, ResetCode::Reset);
        }
    });
}

/// Makes the opener forget its flows, without a word to the far side.
fn forget(pair: &mut Pair, ids: &[FlowId]) {
    reset(pair, 0, ids);
    pair.run(OUTLASTS);
    assert_eq!(pair.splicer(0).entry_count(), 0, "nothing is known there");
}

fn assert_all_ended(pair: &mut Pair, ids: &[FlowId]) {
    let open = |id: &&FlowId| pair.sides[1].apps[*id].last.is_none();
    let left = ids.iter().filter(open).count();
    assert_eq!(left, 0, "of {} flows", ids.len());
}

#[test]
fn flows_that_are_exactly_as_many_as_one_question_holds_are_asked_about_again() {
    for flows in [QUESTIONS_MAX, QUESTIONS_MAX + 1, 2 * QUESTIONS_MAX] {
        let (mut pair, ids, loses) = away(flows, Loses::Openings);
        // The opener has the flows, and says so.
        pair.run(SECOND * 30);
        loses.set(Loses::All);
        forget(&mut pair, &ids);
        loses.set(Loses::Nothing);
        pair.run(ASKED);
        assert_all_ended(&mut pair, &ids);
    }
}

#[test]
fn a_question_that_cannot_be_asked_is_asked_when_there_is_a_connection_to_be_had() {
    let (mut pair, ids, loses) = away(QUESTIONS_MAX + 300, Loses::All);
    forget(&mut pair, &ids);
    while pair.splicer(1).endpoint().connection_count() > 0 {
        pair.run(SECOND);
    }
    // Other flows have every connection that the endpoint may have.
    let destination = Destination::from(SocketAddr::from(([192, 0, 2, 1], SILENT)));
    let others = pair.call(1, |splicer, now| {
        let open = || splicer.open(now, PEER, FlowKind::Stream, destination.clone(), class());
        core::iter::repeat_with(open)
            .map_while(Result::ok)
            .collect::<Vec<_>>()
    });
    for id in &others {
        pair.sides[1].apps.insert(*id, App::default());
    }
    assert_eq!(others.len(), CONNECTIONS_MAX);
    loses.set(Loses::Nothing);
    pair.run(ASKED);
    let open = |id: &&FlowId| pair.sides[1].apps[*id].last.is_none();
    assert_eq!(
        ids.iter().filter(open).count(),
        ids.len(),
        "nobody could be asked"
    );
    reset(&mut pair, 1, &others);
    pair.run(ASKED);
    assert_all_ended(&mut pair, &ids);
}
