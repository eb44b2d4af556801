//! The effects of the link on a session: outages, other addresses, a peer that restarts.
//!
//! Method: two sessions with AeroTP inside, in virtual time, on a medium that the test scripts.

use super::WIRE;
use super::session_pair::{Medium, PATH, PEER, Pair, Way, lossy, noise, octets, preset_pair, said};
use fulmar_net::session::{LinkState, SessionEvent};
use fulmar_proto::machine::PathId;
use fulmar_proto::units::{Duration, Instant};

const DELAY: Duration = Duration::from_millis(5);
const LEN: usize = 3_000_000;

fn at(millis: u64) -> Instant {
    Instant::START + Duration::from_millis(millis)
}

fn is_down(event: &SessionEvent<()>) -> bool {
    matches!(event, SessionEvent::LinkDown { .. })
}

fn is_up(event: &SessionEvent<()>) -> bool {
    matches!(event, SessionEvent::LinkUp { .. })
}

/// A medium that loses only the datagrams that are sent between `from` and `until`.
fn interrupted(from: Instant, until: Instant) -> Medium {
    Box::new(move |_, now, path, octets| {
        if (from..until).contains(&now) {
            Vec::new()
        } else {
            vec![(DELAY, path, octets.to_vec())]
        }
    })
}

#[track_caller]
fn complete(pair: &Pair, sent: &[u8]) {
    let received = &pair.app(Way::Back).received;
    assert!(
        received == sent,
        "{} of {} octets at {}: {:?}",
        received.len(),
        sent.len(),
        pair.now,
        pair.app(Way::Forward).events
    );
}

#[test]
fn an_outage_stops_the_sending_at_once_and_ends_within_one_probe_interval() {
    for outage in [
        Duration::from_secs(3),
        Duration::from_secs(60),
        Duration::from_secs(3_600),
    ] {
        let (from, until) = (at(1_000), at(1_000) + outage);
        let mut pair = Pair::new(noise(), interrupted(from, until));
        let sent = octets(LEN);
        pair.send(&sent);
        pair.run_to_end(outage + Duration::from_secs(10));
        complete(&pair, &sent);
        for way in [Way::Forward, Way::Back] {
            let (downs, ups) = (pair.count(way, is_down), pair.count(way, is_up));
            assert_eq!((downs, ups), (1, 1), "{way:?} {:?}", pair.events(way));
        }
        let events = &pair.app(Way::Forward).events;
        let when = |which: fn(&SessionEvent<()>) -> bool| {
            let found = events.iter().find(|(_, event)| which(event));
            found.map(|(when, _)| *when).expect("happened")
        };
        let noticed = when(is_down).saturating_since(from);
        assert!(noticed <= Duration::from_millis(400), "{noticed:?}");
        // While nothing may be sent, only probes (and, with time, initiations) are.
        let held = (when(is_down) + Duration::from_millis(1))..until;
        let sent_while_down = pair.app(Way::Forward).sent.iter();
        let largest = sent_while_down
            .filter(|(when, _)| held.contains(when))
            .map(|(_, len)| *len)
            .max();
        assert!(largest.is_some_and(|len| len < 500), "{largest:?}");
        // One probe interval, its way there and the reply's way back; a handshake, when the keys have
        // grown too old meanwhile, takes up to a second.
        let resumed = when(is_up).saturating_since(until);
        let allowed = if outage > Duration::from_secs(600) {
            1_000
        } else {
            250
        };
        assert!(
            resumed <= Duration::from_millis(allowed) + DELAY * 2,
            "{outage:?}: {resumed:?}"
        );
        assert_eq!(pair.session(Way::Forward).counters().outages, 1);
    }
}

#[test]
fn a_transfer_follows_the_peer_to_another_address() {
    let moves = [at(0), at(600), at(900), at(1_500)];
    // The way back is cut at the address that the peer has left.
    let place = move |now: Instant| {
        let index = moves.iter().filter(|moved| **moved <= now).count();
        PathId(u32::try_from(100 + index).expect("small"))
    };
    let medium: Medium = Box::new(move |way, now, path, octets| match way {
        Way::Forward => vec![(DELAY, place(now), octets.to_vec())],
        Way::Back if path == place(now) => vec![(DELAY, PATH, octets.to_vec())],
        Way::Back => Vec::new(),
    });
    let mut pair = Pair::new(noise(), medium);
    let sent = octets(LEN);
    pair.send(&sent);
    pair.run_to_end(Duration::from_secs(10));
    complete(&pair, &sent);
    let moved = |event: &SessionEvent<()>| matches!(event, SessionEvent::Moved { .. });
    assert_eq!(
        pair.count(Way::Back, moved),
        3,
        "{:?}",
        pair.events(Way::Back)
    );
    // The sender goes on sending, so the answers lack for one round trip only.
    assert_eq!(pair.count(Way::Forward, is_down), 0);
    assert_eq!(
        pair.session(Way::Back).status(PEER).unwrap().path,
        Some(PathId(104))
    );
}

#[test]
fn a_restarted_peer_is_noticed_by_its_boot_and_talked_to_again() {
    for restarted in [Way::Forward, Way::Back] {
        for configs in [noise(), preset_pair()] {
            let mut again = configs[restarted as usize].clone();
            again.boot_epoch += 1 << 24;
            let mut pair = Pair::new(configs, lossy(DELAY, 0.2, 4));
            pair.run_until(at(2_000));
            let other = if restarted == Way::Forward {
                Way::Back
            } else {
                Way::Forward
            };
            pair.restart(restarted, again, 77);
            if other == Way::Forward {
                // The end has something to send; otherwise it would notice only at the next keep-alive.
                pair.send(&octets(100_000));
            }
            pair.run_until(at(10_000));
            let events = pair.events(other);
            let restarts = events
                .iter()
                .position(|e| *e == SessionEvent::PeerRestarted(PEER));
            let up = SessionEvent::Up {
                peer: PEER,
                capabilities: said(WIRE),
                resumed: false,
                wire: WIRE,
            };
            let ups = events.iter().rposition(|e| *e == up);
            assert!(
                restarts.is_some() && restarts < ups,
                "{restarted:?}: {events:?}"
            );
            let link = pair.session(other).status(PEER).unwrap().link;
            assert_eq!(link, LinkState::Up);
        }
    }
}

#[test]
fn both_ends_calling_at_once_settle_on_one_session() {
    for (delay, loss) in [(1, 0.0), (5, 0.0), (300, 0.0), (5, 0.3), (300, 0.3)] {
        for mut configs in [noise(), preset_pair()] {
            configs[1].peers[0].endpoints = vec![PATH];
            let delay = Duration::from_millis(delay);
            let mut pair = Pair::new(configs, lossy(delay, loss, 9));
            let sent = octets(200_000);
            pair.send(&sent);
            pair.run_to_end(Duration::from_secs(60));
            complete(&pair, &sent);
            pair.run(Duration::from_secs(5));
            for way in [Way::Forward, Way::Back] {
                let status = pair.session(way).status(PEER).unwrap();
                assert_eq!(status.link, LinkState::Up);
                assert!(pair.session(way).counters().handshakes <= 3);
            }
        }
    }
}

#[test]
fn a_peer_keeps_the_places_where_it_may_be_found_until_others_take_their_place() {
    let mut configs = noise();
    configs[0].peers[0].endpoints = vec![PATH, PathId(8)];
    let mut pair = Pair::new(configs, lossy(DELAY, 0.0, 9));
    let in_use = |pair: &Pair| {
        let mut paths: Vec<PathId> = pair.session(Way::Forward).paths_in_use().collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    };
    assert_eq!(in_use(&pair), [PATH, PathId(8)]);
    pair.run(Duration::from_secs(1));
    pair.call(Way::Forward, |session, _| {
        session.set_endpoints(PEER, vec![PathId(9)]);
    });
    assert_eq!(in_use(&pair), [PATH, PathId(9)], "it is at the first still");
}

#[test]
fn a_transfer_crosses_a_link_with_a_long_round_trip_and_loss() {
    for loss in [0.0, 0.1, 0.3] {
        let mut pair = Pair::new(noise(), lossy(Duration::from_millis(300), loss, 5));
        let sent = octets(500_000);
        pair.send(&sent);
        pair.run_to_end(Duration::from_secs(30));
        complete(&pair, &sent);
        if loss == 0.0 {
            pair.run(Duration::from_secs(30));
            for way in [Way::Forward, Way::Back] {
                assert_eq!(pair.count(way, is_down), 0, "{:?}", pair.events(way));
            }
        }
    }
}

#[test]
fn keys_are_replaced_by_time_while_data_flows_and_no_datagram_waits_for_it() {
    let mut configs = noise();
    for config in &mut configs {
        config.rekey.after = Duration::from_secs(1);
    }
    let mut pair = Pair::new(configs, lossy(DELAY, 0.5, 6));
    let sent = octets(LEN);
    pair.send(&sent);
    pair.run_to_end(Duration::from_secs(15));
    complete(&pair, &sent);
    let rekeys = pair.session(Way::Forward).counters().rekeys;
    assert!(rekeys >= 2, "{rekeys} by {}", pair.now);
    // At 10 mbit a full datagram leaves every millisecond.
    let full = pair
        .app(Way::Forward)
        .sent
        .iter()
        .filter(|(_, len)| *len > 1_000);
    let times: Vec<Instant> = full.map(|(when, _)| *when).collect();
    let waits = times.windows(2).map(|two| two[1].saturating_since(two[0]));
    let longest = waits.max().expect("several");
    assert!(longest < Duration::from_millis(100), "{longest:?}");
}
