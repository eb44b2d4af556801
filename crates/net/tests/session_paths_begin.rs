//! A session over several paths whose home carries nothing when it begins, or begins again; and what comes in places that say
//! nothing of the home.
//!
//! Method: as in `session_paths`. The far end names no path and knows no address of the near one, unless a test says so.

use super::session_pair::{Copies, PEER, Pair, Way, endpoint_config};
use super::session_paths::{
    Lanes, Link, QUICK, SLOW, bulk, configs, connection_of_bulk, found, lanes, medium, of, outer,
};
use fulmar_net::session::{LinkState, PathChange, PathTerms, PathUse, SessionConfig, SessionEvent};
use fulmar_proto::machine::PathId;
use fulmar_proto::told::ToldFacts;
use fulmar_proto::transport::aerotp::EndpointConfig;
use fulmar_proto::units::{ByteCount, Duration, Instant};
use std::cell::RefCell;
use std::rc::Rc;

const BOTH: [Way; 2] = [Way::Forward, Way::Back];

fn pair_of(configs: [SessionConfig; 2], lanes: &Lanes, seed: u64) -> Pair {
    let endpoint = EndpointConfig {
        rate: found(),
        memory_max: ByteCount(64 << 20),
        ..endpoint_config()
    };
    Pair::with_connections(
        configs,
        (endpoint, connection_of_bulk()),
        medium(lanes, seed),
    )
}

fn name(pair: &mut Pair, way: Way, places: core::ops::Range<usize>) {
    pair.call(way, |session, now| {
        for place in places {
            session.add_path(now, (PEER, outer(place)), PathTerms::default());
        }
    });
}

fn link(pair: &Pair, way: Way) -> LinkState {
    pair.session(way).status(PEER).expect("a peer").link
}

fn home(pair: &Pair, way: Way) -> Option<PathId> {
    pair.session(way).status(PEER).expect("a peer").path
}

fn uses(pair: &Pair, way: Way) -> Vec<PathUse> {
    let paths = pair.session(way).path_statuses(PEER);
    paths.iter().map(|path| path.use_now).collect()
}

fn is_link_event(event: &SessionEvent<()>) -> bool {
    matches!(
        event,
        SessionEvent::LinkUp { .. } | SessionEvent::LinkDown { .. }
    )
}

fn is_home_down(event: &SessionEvent<()>) -> bool {
    let is_down = |change: &PathChange| matches!(change, PathChange::Down(_));
    matches!(event, SessionEvent::Path { place: 0, change, .. } if is_down(change))
}

/// Both ends have the session on the further path alone, and data fills that. The home is down, and comes back when it carries.
fn goes_on_beside_a_dead_home(pair: &mut Pair, lanes: &Lanes) {
    for way in BOTH {
        assert_eq!(link(pair, way), LinkState::Up, "{way:?}");
        let uses = uses(pair, way);
        let is_so = matches!(uses[..], [PathUse::Down(_), PathUse::Up]);
        assert!(is_so, "{way:?}: {uses:?}");
    }
    let got = bulk(pair, 3_000_000);
    let alone = of(&[SLOW], 3_000_000);
    assert!(got > 0.8 * alone, "{got} of {alone}");
    lanes.borrow_mut()[0].is_cut = [false; 2];
    pair.run(Duration::from_secs(5));
    for way in BOTH {
        let uses = uses(pair, way);
        assert_eq!(uses, [PathUse::Up, PathUse::Up], "{way:?}");
        assert_eq!(home(pair, way), Some(outer(0)), "{way:?}");
    }
    let got = bulk(pair, 5_000_000);
    let alone = of(&[QUICK], 5_000_000);
    assert!(got > 0.8 * alone, "{got} of {alone}");
}

#[test]
fn a_session_begins_on_a_further_path_while_the_home_is_dead() {
    for seed in 9..12 {
        let lanes = lanes(&[QUICK, SLOW]);
        lanes.borrow_mut()[0].is_cut = [true; 2];
        let mut pair = pair_of(configs(), &lanes, seed);
        name(&mut pair, Way::Forward, 1..2);
        pair.run(Duration::from_secs(5));
        for way in BOTH {
            assert_eq!(pair.count(way, is_home_down), 1, "{way:?}");
            assert_eq!(pair.count(way, is_link_event), 0, "{way:?}: it began");
        }
        goes_on_beside_a_dead_home(&mut pair, &lanes);
    }
}

#[test]
fn a_home_that_is_slow_and_loses_a_call_is_not_left_for_a_quicker_path() {
    let whole = |link: Link| Link { loss: 0.0, ..link };
    for lost in 0..3 {
        let lanes = lanes(&[SLOW, QUICK].map(whole));
        lanes.borrow_mut()[0].is_cut = [lost > 0; 2];
        let mut pair = pair_of(configs(), &lanes, 9);
        name(&mut pair, Way::Forward, 1..2);
        while lanes.borrow()[0].entered[0] < lost {
            pair.run(Duration::from_millis(1));
        }
        lanes.borrow_mut()[0].is_cut = [false; 2];
        pair.run(Duration::from_secs(3));
        for way in BOTH {
            assert_eq!(uses(&pair, way), [PathUse::Up, PathUse::Up], "{way:?}");
            assert_eq!(pair.count(way, is_home_down), 0, "{way:?}");
        }
    }
}

#[test]
fn a_session_begins_on_a_further_path_though_the_home_s_address_is_not_known_yet() {
    let lanes = lanes(&[QUICK, SLOW]);
    let [mut near, far] = configs();
    let endpoints = core::mem::take(&mut near.peers[0].endpoints);
    lanes.borrow_mut()[0].is_cut = [true; 2];
    let mut pair = pair_of([near, far], &lanes, 9);
    name(&mut pair, Way::Forward, 1..2);
    pair.run(Duration::from_secs(5));
    assert_eq!(link(&pair, Way::Forward), LinkState::Up);
    // Its name is resolved.
    pair.call(Way::Forward, |session, _| {
        session.set_endpoints(PEER, endpoints);
    });
    goes_on_beside_a_dead_home(&mut pair, &lanes);
}

#[test]
fn both_ends_find_each_other_by_a_path_that_both_name() {
    let lanes = lanes(&[QUICK, SLOW]);
    lanes.borrow_mut()[0].is_cut = [true; 2];
    let [near, mut far] = configs();
    far.peers[0].endpoints = vec![outer(0)];
    let mut pair = pair_of([near, far], &lanes, 9);
    for way in BOTH {
        name(&mut pair, way, 1..2);
    }
    pair.run(Duration::from_secs(10));
    goes_on_beside_a_dead_home(&mut pair, &lanes);
}

#[test]
fn an_end_that_starts_again_while_the_home_is_dead_comes_back_by_the_path_that_it_names() {
    let lanes = lanes(&[QUICK, SLOW]);
    let mut pair = pair_of(configs(), &lanes, 9);
    name(&mut pair, Way::Forward, 1..2);
    pair.run(Duration::from_secs(2));
    bulk(&mut pair, 1_000_000);
    lanes.borrow_mut()[0].is_cut = [true; 2];
    pair.run(Duration::from_secs(1));
    let [mut near, _] = configs();
    near.boot_epoch += 1 << 20;
    pair.restart(Way::Forward, near, 77);
    name(&mut pair, Way::Forward, 1..2);
    pair.run(Duration::from_secs(10));
    goes_on_beside_a_dead_home(&mut pair, &lanes);
}

#[test]
fn eleven_minutes_of_silence_end_with_the_further_path_alone() {
    let lanes = lanes(&[QUICK, SLOW]);
    let mut pair = pair_of(configs(), &lanes, 9);
    name(&mut pair, Way::Forward, 1..2);
    pair.run(Duration::from_secs(2));
    bulk(&mut pair, 1_000_000);
    let cut = |is_cut: [bool; 2]| {
        for (lane, is_cut) in lanes.borrow_mut().iter_mut().zip(is_cut) {
            lane.is_cut = [is_cut; 2];
        }
    };
    cut([true; 2]);
    pair.run(Duration::from_secs(660));
    for way in BOTH {
        let link = link(&pair, way);
        assert_eq!(link, LinkState::Connecting, "{way:?}: its keys ran out");
    }
    cut([true, false]);
    pair.run(Duration::from_secs(10));
    goes_on_beside_a_dead_home(&mut pair, &lanes);
}

#[test]
fn a_session_that_began_on_a_further_path_comes_back_by_any_after_eleven_minutes_of_silence() {
    for (names, alive) in [
        (Way::Forward, 0),
        (Way::Forward, 1),
        (Way::Back, 0),
        (Way::Back, 1),
    ] {
        let lanes = lanes(&[QUICK, SLOW]);
        let [mut near, mut far] = configs();
        if names == Way::Back {
            far.peers[0].endpoints = core::mem::take(&mut near.peers[0].endpoints);
        }
        lanes.borrow_mut()[0].is_cut = [true; 2];
        let mut pair = pair_of([near, far], &lanes, 9);
        name(&mut pair, names, 1..2);
        pair.run(Duration::from_secs(5));
        assert_eq!(link(&pair, names), LinkState::Up, "{names:?}");
        lanes.borrow_mut()[1].is_cut = [true; 2];
        pair.run(Duration::from_secs(660));
        lanes.borrow_mut()[alive].is_cut = [false; 2];
        pair.run(Duration::from_secs(30));
        for way in BOTH {
            assert_eq!(link(&pair, way), LinkState::Up, "{names:?} {alive} {way:?}");
        }
    }
}

#[test]
fn a_home_from_whose_address_a_further_path_s_datagrams_come_stays_the_home() {
    let lanes = lanes(&[QUICK, SLOW]);
    let mut pair = pair_of(configs(), &lanes, 9);
    name(&mut pair, Way::Forward, 1..2);
    pair.run(Duration::from_secs(2));
    bulk(&mut pair, 1_000_000);
    let mut usual = medium(&lanes, 10);
    // The second device goes, and the default route sends by the first what was for it.
    pair.medium = Box::new(move |way, now, path, octets| {
        let is_rerouted = way == Way::Forward && path == outer(1);
        usual(way, now, if is_rerouted { outer(0) } else { path }, octets)
    });
    let got = bulk(&mut pair, 5_000_000);
    pair.run(Duration::from_secs(30));
    for way in BOTH {
        let uses = uses(&pair, way);
        assert_eq!(uses.len(), 2, "{way:?}: {uses:?}");
        assert_eq!(uses[0], PathUse::Up, "{way:?}: {uses:?}");
        assert_eq!(home(&pair, way), Some(outer(0)), "{way:?}");
    }
    let alone = of(&[QUICK], 5_000_000);
    assert!(got > 0.8 * alone, "{got} of {alone}");
}

#[test]
fn a_home_that_tells_that_it_is_down_keeps_nobody_from_calling_by_a_further_path() {
    let lanes = lanes(&[QUICK, SLOW]);
    let mut pair = pair_of(configs(), &lanes, 9);
    let before = lanes.borrow()[0].entered[0];
    pair.call(Way::Forward, |session, now| {
        let told = ToldFacts {
            is_up: Some(false),
            ..ToldFacts::default()
        };
        assert!(session.take_told(now, (PEER, None), told));
    });
    name(&mut pair, Way::Forward, 1..2);
    lanes.borrow_mut()[0].is_cut = [true; 2];
    pair.run(Duration::from_secs(5));
    assert_eq!(link(&pair, Way::Forward), LinkState::Up);
    let called = lanes.borrow()[0].entered[0] - before;
    assert!(called <= 2, "{called} datagrams for a link that is down");
}

#[test]
fn a_peer_that_knows_of_one_path_only_is_called_on_a_named_one_and_stays_there() {
    let lanes = lanes(&[QUICK, SLOW]);
    lanes.borrow_mut()[0].is_cut = [true; 2];
    let [near, mut far] = configs();
    far.capabilities.retain(|one| one.name != "paths");
    let mut pair = pair_of([near, far], &lanes, 9);
    name(&mut pair, Way::Forward, 1..2);
    pair.run(Duration::from_secs(5));
    for way in BOTH {
        assert_eq!(link(&pair, way), LinkState::Up, "{way:?}");
        assert_eq!(home(&pair, way), Some(outer(1)), "{way:?}");
    }
    let got = bulk(&mut pair, 2_000_000);
    assert!(got > 0.8 * of(&[SLOW], 2_000_000), "{got}");
}

#[test]
fn a_path_for_which_there_is_no_place_left_moves_no_home() {
    // Each end has seven places beside the home: four that it named, and three for what the other one names.
    let lanes = lanes(&[QUICK; 9]);
    let mut pair = pair_of(configs(), &lanes, 9);
    name(&mut pair, Way::Forward, 1..5);
    name(&mut pair, Way::Back, 5..9);
    pair.run(Duration::from_secs(10));
    let is_moved = |event: &SessionEvent<()>| matches!(event, SessionEvent::Moved { .. });
    for way in BOTH {
        // The far end was told of no address: where it was called from first is its home, without a move.
        assert_eq!(pair.count(way, is_moved), 0, "{way:?}");
        assert_eq!(home(&pair, way), Some(outer(0)), "{way:?}");
        let paths = pair.session(way).path_statuses(PEER);
        assert_eq!(paths.len(), 8, "{way:?}: every place is taken");
    }
    bulk(&mut pair, 1_000_000);
    // Probes of the paths without a place go on, and are no sign of life of the home.
    lanes.borrow_mut()[0].is_cut = [true; 2];
    bulk(&mut pair, 1_000_000);
    // An idle path is asked every ten seconds.
    pair.run(Duration::from_secs(30));
    for way in BOTH {
        let uses = uses(&pair, way);
        assert!(matches!(uses[0], PathUse::Down(_)), "{way:?}: {uses:?}");
        assert_eq!(home(&pair, way), Some(outer(0)), "{way:?}");
    }
}

/// The near end's further path as the far end sees it after a move.
const ELSEWHERE: PathId = PathId(70);

/// A pair whose quick further path alone carries data, with a medium that `change` may alter: the copies of what the near end sends
/// there. What the far end sends to the address elsewhere arrives if `arrives`; the times at which it did are noted.
fn pair_that_moves(
    lanes: &Lanes,
    arrives: bool,
    change: impl Fn(PathId, Copies) -> Copies + 'static,
) -> (Pair, Rc<RefCell<Vec<Instant>>>) {
    let sent = Rc::new(RefCell::new(Vec::new()));
    let mut pair = pair_of(configs(), lanes, 9);
    name(&mut pair, Way::Forward, 1..2);
    pair.run(Duration::from_secs(2));
    lanes.borrow_mut()[0].is_cut = [true; 2];
    bulk(&mut pair, 1_000_000);
    let (mut usual, noted) = (medium(lanes, 10), Rc::clone(&sent));
    pair.medium = Box::new(move |way, now, path, octets| {
        if path == ELSEWHERE {
            noted.borrow_mut().push(now);
            let copies = if arrives {
                usual(way, now, outer(1), octets)
            } else {
                Vec::new()
            };
            return copies;
        }
        let copies = usual(way, now, path, octets);
        if way == Way::Forward {
            change(path, copies)
        } else {
            copies
        }
    });
    (pair, sent)
}

#[test]
fn a_further_path_whose_datagrams_are_copied_from_elsewhere_carries_no_data_there() {
    let lanes = lanes(&[SLOW, QUICK]);
    // A copy of each datagram comes from elsewhere, a little sooner.
    let (mut pair, sent) = pair_that_moves(&lanes, false, |_, copies| {
        let mut all = Vec::new();
        for (delay, path, octets) in copies {
            let sooner = delay.saturating_sub(Duration::from_micros(10));
            all.push((sooner, ELSEWHERE, octets.clone()));
            all.push((delay, path, octets));
        }
        all
    });
    let before = pair.now;
    bulk(&mut pair, 5_000_000);
    let seconds = pair.now.saturating_since(before).as_secs_f64();
    let sent = sent.borrow().len() as f64;
    // Four questions a second, and answers to the near end's probes, of which the copies come first.
    assert!(sent >= 1.0, "it is asked there");
    assert!(sent <= 12.0 * (seconds + 1.0), "{sent} in {seconds} s");
    assert_eq!(home(&pair, Way::Back), Some(outer(0)));
}

#[test]
fn a_further_path_that_has_moved_is_followed_once_it_answers_from_there() {
    let lanes = lanes(&[SLOW, QUICK]);
    let (mut pair, sent) = pair_that_moves(&lanes, true, |_, copies| {
        let moved = copies
            .into_iter()
            .map(|(delay, _, octets)| (delay, ELSEWHERE, octets));
        moved.collect()
    });
    let got = bulk(&mut pair, 5_000_000);
    let (mut unmoved, _) = pair_that_moves(
        &super::session_paths::lanes(&[SLOW, QUICK]),
        true,
        |_, copies| copies,
    );
    let alone = bulk(&mut unmoved, 5_000_000);
    assert!(got > 0.9 * alone, "{got} of {alone}");
    let (sent, back) = (sent.borrow(), lanes.borrow()[1].entered[1]);
    assert!(
        sent.len() > 100,
        "{} of {back} went to where it is",
        sent.len()
    );
}
