//! Peers and keys come and go while sessions run, and keys that are used up seal nothing.
//!
//! Method: two sessions in `Strict`, each around a real AeroTP endpoint, in virtual time.

use super::session_pair::sight::data;
use super::session_pair::{
    Copies, Inner, PATH, PEER, Pair, Way, configs, lossy, noise, octets, preset, preset_pair,
    secret,
};
use fulmar_net::session::{
    Capability, EarlyData, HandshakeRefusal, Hint, LinkState, MtuConfig, PeerConfig, PublicKey,
    Security, SessionConfig, SessionEvent,
};
use fulmar_proto::machine::PathId;
use fulmar_proto::units::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

const DELAY: Duration = Duration::from_millis(5);
const SECOND: Duration = Duration::from_secs(1);

fn to(key: u8) -> Security {
    Security::Noise {
        peer: secret(key).public(),
        preset: None,
    }
}

fn public(key: u8) -> PublicKey {
    secret(key).public()
}

/// The ends with key 1, which calls, and key 2.
fn joined() -> Pair {
    let mut pair = Pair::new(noise(), lossy(DELAY, 0.0, 1));
    pair.run(SECOND);
    assert_eq!(link(&pair, Way::Forward), LinkState::Up);
    pair
}

fn link(pair: &Pair, way: Way) -> LinkState {
    pair.session(way).status(PEER).expect("a peer").link
}

fn recognise(pair: &mut Pair, way: Way, security: Security, also: Option<PublicKey>) -> bool {
    let ended = Cell::new(false);
    pair.call(way, |session, now| {
        ended.set(session.set_security(now, PEER, security, also));
    });
    ended.get()
}

fn take_identity(pair: &mut Pair, way: Way, key: u8, former: Option<u8>) {
    pair.call(way, |session, now| {
        assert!(session.set_identity(now, Some(secret(key)), former.map(secret)));
    });
}

fn is_trouble(event: &SessionEvent<()>) -> bool {
    matches!(
        event,
        SessionEvent::Closed(_)
            | SessionEvent::LinkDown { .. }
            | SessionEvent::PeerRestarted(_)
            | SessionEvent::Refused { .. }
            | SessionEvent::TurnedAway { .. }
            | SessionEvent::NoAnswer { .. }
    )
}

#[test]
fn an_end_changes_its_key_in_the_middle_of_a_transfer_which_does_not_notice() {
    for changing in [Way::Forward, Way::Back] {
        let (other, old) = match changing {
            Way::Forward => (Way::Back, 1),
            Way::Back => (Way::Forward, 2),
        };
        let mut pair = Pair::new(noise(), lossy(DELAY, 0.05, 1));
        let sent = octets(6_000_000);
        pair.send(&sent);
        pair.run(SECOND);
        assert!(!recognise(&mut pair, other, to(old), Some(public(9))));
        take_identity(&mut pair, changing, 9, None);
        pair.run(SECOND);
        let rekeys = pair.session(other).counters().rekeys;
        assert!(rekeys >= 1, "agreed on new keys at once: {rekeys}");
        assert!(pair.app(Way::Back).finished.is_none(), "it is not over yet");
        assert!(
            !recognise(&mut pair, other, to(9), None),
            "the session stays"
        );
        pair.run_to_end(SECOND * 20);
        assert!(pair.app(Way::Back).received == sent);
        for way in [changing, other] {
            let events = pair.events(way);
            assert!(!events.iter().any(is_trouble), "{way:?}: {events:?}");
        }
    }
}

#[test]
fn a_key_that_is_taken_away_has_no_session_any_more_and_gets_none() {
    let mut pair = joined();
    assert!(recognise(&mut pair, Way::Forward, to(9), None));
    assert_eq!(link(&pair, Way::Forward), LinkState::Connecting);
    let received = pair.session(Way::Forward).counters().received;
    pair.send(&octets(10_000));
    pair.run(SECOND * 60);
    assert_eq!(link(&pair, Way::Forward), LinkState::Connecting);
    assert_eq!(pair.session(Way::Forward).counters().received, received);
    assert!(pair.app(Way::Back).received.is_empty());
    // A caller with the former key calls in vain.
    let unknown = |event: &SessionEvent<()>| {
        matches!(event, SessionEvent::Refused { reason: HandshakeRefusal::UnknownPeer(key), .. }
            if *key == public(2))
    };
    let told = |event: &SessionEvent<()>| {
        matches!(
            event,
            SessionEvent::TurnedAway {
                hint: Hint::UnknownCaller(_),
                ..
            }
        )
    };
    assert!(
        pair.count(Way::Forward, unknown) >= 1,
        "{:?}",
        pair.events(Way::Forward)
    );
    assert!(
        pair.count(Way::Back, told) >= 1,
        "{:?}",
        pair.events(Way::Back)
    );
    // Once the key is configured again, the peer has a session again.
    recognise(&mut pair, Way::Forward, to(2), None);
    pair.run(SECOND * 5);
    assert_eq!(link(&pair, Way::Forward), LinkState::Up);
}

#[test]
fn a_key_under_which_data_was_agreed_on_ends_with_it_though_another_stays() {
    let mut pair = joined();
    recognise(&mut pair, Way::Forward, to(2), Some(public(9)));
    assert!(recognise(&mut pair, Way::Forward, to(9), Some(public(8))));
    assert_eq!(link(&pair, Way::Forward), LinkState::Connecting);
    let mut pair = joined();
    recognise(&mut pair, Way::Forward, to(9), Some(public(2)));
    assert_eq!(
        link(&pair, Way::Forward),
        LinkState::Up,
        "only the order changed"
    );
}

#[test]
fn a_caller_that_knows_two_keys_finds_the_one_that_is_right() {
    for (main, also) in [(2, 9), (9, 2)] {
        let mut pair = Pair::new(
            configs([to(main), to(1)], [Some(secret(1)), Some(secret(2))]),
            lossy(DELAY, 0.2, 1),
        );
        recognise(&mut pair, Way::Forward, to(main), Some(public(also)));
        pair.run(SECOND * 6);
        assert_eq!(link(&pair, Way::Forward), LinkState::Up, "key {main} first");
    }
}

#[test]
fn an_end_is_called_by_its_former_key_for_as_long_as_it_takes_it() {
    for taken in [true, false] {
        let mut pair = Pair::new(
            configs([to(2), to(1)], [Some(secret(1)), Some(secret(9))]),
            lossy(DELAY, 0.0, 1),
        );
        if taken {
            pair.call(Way::Back, |session, now| {
                session.set_identity(now, Some(secret(9)), Some(secret(2)));
            });
        }
        pair.run(SECOND * 3);
        let up = link(&pair, Way::Forward) == LinkState::Up;
        assert_eq!(up, taken);
    }
}

fn removed(session: &mut Inner, now: Instant) {
    session.remove_peer(now, PEER);
}

#[test]
fn a_removed_peer_hears_it_has_nothing_more_and_may_come_back_to_its_place() {
    let mut pair = joined();
    pair.call(Way::Back, removed);
    pair.run(SECOND * 30);
    let closed = |event: &SessionEvent<()>| matches!(event, SessionEvent::Closed(_));
    assert_eq!(pair.count(Way::Forward, closed), 1);
    assert_eq!(link(&pair, Way::Forward), LinkState::Connecting);
    assert_eq!(link(&pair, Way::Back), LinkState::Connecting);
    let peer = PeerConfig {
        name: "aircraft".to_owned(),
        security: to(1),
        endpoints: Vec::new(),
        mtu: MtuConfig::default(),
    };
    let other = PeerConfig {
        name: "another".to_owned(),
        security: to(7),
        ..peer.clone()
    };
    pair.call(Way::Back, |session, _| {
        let place = session.add_peer(other).expect("there is room");
        assert_eq!(place.0, 1, "the place of the removed one is its own");
        assert_eq!(session.add_peer(peer), Some(PEER));
    });
    pair.run(SECOND * 3);
    assert_eq!(link(&pair, Way::Back), LinkState::Up);
    pair.send(&octets(10_000));
    pair.run_to_end(SECOND * 5);
    assert!(pair.app(Way::Back).received == octets(10_000));
}

#[test]
fn a_peer_that_comes_while_all_runs_is_called() {
    let mut pair = Pair::new(
        configs([to(8), to(1)], [Some(secret(1)), Some(secret(2))]),
        lossy(DELAY, 0.0, 1),
    );
    let added = RefCell::new(None);
    pair.call(Way::Forward, |session, _| {
        *added.borrow_mut() = session.add_peer(PeerConfig {
            name: "late".to_owned(),
            security: to(2),
            endpoints: vec![PATH],
            mtu: MtuConfig::default(),
        });
    });
    pair.run(SECOND * 2);
    let added = added.into_inner().expect("there is room");
    let status = pair.session(Way::Forward).status(added);
    assert_eq!(status.expect("it is known").link, LinkState::Up);
}

/// Datagrams of data by the receiver's index, and whether handshakes pass.
type Seen = (Rc<RefCell<BTreeMap<[u8; 4], u64>>>, Rc<Cell<bool>>);

/// A medium that counts data under each pair of keys forward.
fn counting(seen: &Seen) -> super::session_pair::Medium {
    let (counts, passes) = seen.clone();
    Box::new(move |way, _, path: PathId, octets| -> Copies {
        let data = data(octets);
        if let (Some(data), Way::Forward) = (&data, way) {
            let index = data.index.try_into().expect("four octets");
            *counts.borrow_mut().entry(index).or_default() += 1;
        }
        if data.is_none() && !passes.get() {
            return Vec::new();
        }
        vec![(DELAY, path, octets.to_vec())]
    })
}

fn with_aes(mut configs: [SessionConfig; 2]) -> [SessionConfig; 2] {
    for config in &mut configs {
        config.capabilities.push(Capability {
            name: "cipher".to_owned(),
            value: "aes-256-gcm".to_owned(),
            must_agree: false,
        });
    }
    configs
}

#[test]
fn keys_at_their_bound_seal_nothing_more_until_others_are_there() {
    const BOUND: u64 = 300;
    for configs in [with_aes(noise()), noise()] {
        let mut configs = configs;
        configs[0].rekey.datagrams_last = BOUND;
        let seen = Seen::default();
        seen.1.set(true);
        let mut pair = Pair::new(configs, counting(&seen));
        pair.run(SECOND);
        // No handshake comes through from here on.
        seen.1.set(false);
        let sent = octets(3_000_000);
        pair.send(&sent);
        pair.run(SECOND * 30);
        let counts: Vec<u64> = seen.0.borrow().values().copied().collect();
        assert_eq!(counts, [BOUND], "at the bound, and not one past it");
        assert!(pair.app(Way::Back).finished.is_none());
        assert_eq!(link(&pair, Way::Forward), LinkState::Connecting);
        seen.1.set(true);
        pair.run_to_end(SECOND * 60);
        assert!(
            pair.app(Way::Back).received == sent,
            "all arrives under other keys"
        );
        let counts = seen.0.borrow();
        assert!(
            counts.len() > 5 && counts.values().all(|count| *count <= BOUND),
            "{counts:?}"
        );
    }
}

#[test]
fn a_reload_that_changes_no_key_leaves_a_handshake_under_way_alone() {
    let mut pair = Pair::new(noise(), lossy(DELAY * 8, 0.0, 1));
    for _ in 0..3 {
        pair.run(DELAY * 4);
        assert!(!recognise(&mut pair, Way::Forward, to(2), None));
    }
    pair.run(DELAY * 8);
    assert_eq!(link(&pair, Way::Forward), LinkState::Up);
    let counters = pair.session(Way::Forward).counters();
    assert_eq!(counters.initiations_sent, 1, "the first was answered");
}

/// Changes the preset key of an end that sends early data, `pause` after the end that takes it. Returns the number of
/// datagrams that left under the former key in between, and of those taken after.
fn early_data_across_a_change(pause: Duration) -> (usize, u64) {
    let [mut sends, mut takes] = preset_pair();
    sends.early_data = EarlyData::Send;
    takes.early_data = EarlyData::Take;
    let names: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let seen = Rc::clone(&names);
    // Nothing comes back, so that all data is early.
    let medium = move |way, _: Instant, path, octets: &[u8]| -> Copies {
        if way == Way::Back {
            return Vec::new();
        }
        if octets[0] == 0x14 {
            seen.borrow_mut().push(octets[4..8].to_vec());
        }
        vec![(DELAY, path, octets.to_vec())]
    };
    let mut pair = Pair::new([sends, takes], Box::new(medium));
    pair.send(&octets(10_000));
    pair.run(DELAY * 10);
    let received = |pair: &Pair| pair.session(Way::Back).counters().received_early;
    let before = received(&pair);
    assert!(before > 0, "early data");
    let old = names.borrow()[0].clone();
    let other = Security::Preset { key: preset(4) };
    // The far end changes first: datagrams that still come under the former key are not taken.
    recognise(&mut pair, Way::Back, other.clone(), None);
    names.borrow_mut().clear();
    pair.run(pause);
    let repeated = names.borrow().iter().filter(|name| **name == old).count();
    assert_eq!(received(&pair), before, "under a key that was taken away");
    names.borrow_mut().clear();
    recognise(&mut pair, Way::Forward, other, None);
    pair.run(DELAY * 100);
    let named_old = names.borrow().iter().filter(|name| **name == old).count();
    assert_eq!(named_old, 0, "of {} datagrams", names.borrow().len());
    (repeated, received(&pair) - before)
}

#[test]
fn nothing_leaves_early_under_a_preset_key_that_was_taken_away_and_none_of_it_is_taken() {
    let (_, taken) = early_data_across_a_change(DELAY * 100);
    assert!(taken > 0, "under the new key");
    // Long enough for data to be sent again.
    let (repeated, _) = early_data_across_a_change(DELAY * 1_000);
    assert!(repeated > 0, "nothing was there to be taken");
}
