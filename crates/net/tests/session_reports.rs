//! Both ends know what the link loses of each direction.
//!
//! Method: two sessions with AeroTP inside, in virtual time, without encryption, on a medium that reads what each
//! datagram is and keeps its own account.

use super::session_pair::sight::data;
use super::session_pair::{Copies, Inner, Medium, PEER, Pair, REPORT, Way, octets, unprotected};
use fulmar_net::session::{MtuConfig, Passage, SessionConfig, SessionEvent, reports};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_proto::wire::aerotp::FecStrength;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const DELAY: Duration = Duration::from_millis(5);
/// Whether reports count a datagram: data with a TPDU, a heartbeat or a fragment, by the type that content begins with
/// (docs/protocol/session.md, sections 1 and 5).
fn is_counted(octets: &[u8]) -> bool {
    data(octets).is_some_and(|data| matches!(data.sealed[0], 0 | 1 | 5 | 0x20..))
}

/// The datagrams sent and arrived, forward and back.
type Account = Rc<RefCell<[Passage; 2]>>;

/// A medium that loses the datagrams for which `loses` is true, and counts.
fn counting(
    account: &Account,
    mut loses: impl FnMut(Way, Instant, &[u8]) -> bool + 'static,
) -> Medium {
    let account = Rc::clone(account);
    Box::new(move |way, now, path, octets| -> Copies {
        let lost = loses(way, now, octets);
        if is_counted(octets) {
            let passage = &mut account.borrow_mut()[way as usize];
            passage.sent += 1;
            passage.arrived += u64::from(!lost);
        }
        if lost {
            Vec::new()
        } else {
            vec![(DELAY, path, octets.to_vec())]
        }
    })
}

fn reporting() -> [SessionConfig; 2] {
    unprotected().map(|mut config| {
        config.capabilities.push(reports());
        config
    })
}

fn known(session: &Inner) -> [Passage; 2] {
    let status = session.status(PEER).expect("a peer");
    [status.outward, status.inward]
}

/// The passages that each end reports for both directions, forward first.
fn told(pair: &Pair) -> [[Passage; 2]; 2] {
    let forward = known(pair.session(Way::Forward));
    let [out, into] = known(pair.session(Way::Back));
    [forward, [into, out]]
}

fn share(passage: Passage) -> f64 {
    1.0 - passage.arrived as f64 / passage.sent as f64
}

#[test]
fn both_ends_say_the_same_of_each_direction_and_it_is_so() {
    let account = Account::default();
    let mut rng = Rng::from_seed(5).child("loss");
    // Twice as much on the way there as back.
    let medium = counting(&account, move |way, _, _| {
        rng.chance(if way == Way::Forward { 0.2 } else { 0.1 })
    });
    let mut pair = Pair::new(reporting(), medium);
    let sent = octets(3_000_000);
    pair.send(&sent);
    pair.run(Duration::from_secs(3));
    // Each end knows its arrivals; the next report that arrives tells the other end's.
    let knows = |pair: &Pair| {
        let [[_, back], [forward, _]] = told(pair);
        forward.sent > 500 && back.sent > 50
    };
    while !knows(&pair) {
        pair.run(Duration::from_secs(1));
        assert!(pair.now < Instant::START + Duration::from_secs(8));
    }
    pair.run_to_end(Duration::from_secs(60));
    assert!(pair.app(Way::Back).received == sent);
    pair.run(Duration::from_secs(30));
    let truth = *account.borrow();
    assert_eq!(told(&pair), [truth, truth]);
    // Counted by the medium itself: 3,000 datagrams there, two standard deviations.
    assert!((share(truth[0]) - 0.2).abs() < 0.015, "{truth:?}");
    assert!((share(truth[1]) - 0.1).abs() < 0.03, "{truth:?}");
    let word = SessionEvent::Reported {
        peer: PEER,
        octets: REPORT.to_vec(),
    };
    for way in [Way::Forward, Way::Back] {
        assert!(pair.events(way).contains(&word), "{way:?}");
    }
}

#[test]
fn sizes_that_do_not_pass_and_probes_of_an_outage_are_no_loss() {
    let account = Account::default();
    let cut = Instant::START + Duration::from_secs(20)..Instant::START + Duration::from_secs(80);
    let medium = counting(&account, move |_, now, octets| {
        octets.len() > 1_300 || cut.contains(&now)
    });
    let configs = reporting().map(|mut config| {
        for peer in &mut config.peers {
            peer.mtu = MtuConfig {
                max: ByteCount(9_000),
                ..MtuConfig::default()
            };
        }
        config
    });
    let mut pair = Pair::new(configs, medium);
    pair.send(&octets(200_000));
    pair.run(Duration::from_secs(20));
    let before = told(&pair);
    for passage in before.as_flattened() {
        assert!(
            passage.sent > 0 && passage.arrived == passage.sent,
            "{before:?}"
        );
    }
    pair.run(Duration::from_secs(100));
    pair.send(&octets(200_000));
    pair.run(Duration::from_secs(30));
    let after = told(&pair);
    for (passage, before) in after.as_flattened().iter().zip(before.as_flattened()) {
        assert!(passage.sent > before.sent, "{after:?}");
        assert_eq!(passage.arrived, passage.sent, "{after:?}");
    }
}

#[test]
fn an_end_that_does_not_know_reports_gets_none() {
    for knows in [0, 1] {
        let account = Account::default();
        let mut configs = unprotected();
        configs[knows].capabilities.push(reports());
        let mut pair = Pair::new(configs, counting(&account, |_, _, _| false));
        let sent = octets(300_000);
        pair.send(&sent);
        pair.run(Duration::from_secs(20));
        assert!(pair.app(Way::Back).received == sent);
        for way in [Way::Forward, Way::Back] {
            let reported =
                |event: &SessionEvent<()>| matches!(event, SessionEvent::Reported { .. });
            assert_eq!(pair.count(way, reported), 0);
        }
        assert_eq!(told(&pair), [[Passage::default(); 2]; 2]);
    }
}

#[test]
fn counts_go_on_when_the_peer_starts_again() {
    let account = Account::default();
    let mut pair = Pair::new(reporting(), counting(&account, |_, _, _| false));
    pair.send(&octets(300_000));
    pair.run(Duration::from_secs(20));
    let [before, _] = told(&pair);
    let mut again = reporting()[1].clone();
    again.boot_epoch += 1 << 20;
    pair.restart(Way::Back, again, 77);
    pair.run(Duration::from_secs(20));
    pair.send(&octets(300_000));
    pair.run(Duration::from_secs(60));
    let [forward, back] = told(&pair);
    for (passage, before) in forward.iter().zip(before) {
        assert!(passage.sent > before.sent && passage.arrived > before.arrived);
    }
    // The new process knows only its own datagrams.
    assert!(
        back[0].sent > 0 && back[0].sent < forward[0].sent,
        "{back:?}"
    );
    assert_eq!(back[0].arrived, back[0].sent);
}

#[test]
fn a_full_report_fits_into_the_smallest_packet_whatever_the_parity() {
    /// IPv6's least, without the headers of IPv6 and UDP.
    const DATAGRAM_MAX: usize = 1_280 - 48;
    /// Room is left for a tag; the check of an unprotected datagram is so much shorter.
    const TAG_LESS_CHECK: usize = 12;
    for words in [0, 1, 29, 30, 31, 32, 64, 128, 254, 255] {
        let longest = Rc::new(Cell::new(0));
        let seen = Rc::clone(&longest);
        let medium: Medium = Box::new(move |way, _, path, octets| -> Copies {
            if way == Way::Forward {
                seen.set(seen.get().max(octets.len()));
            }
            vec![(DELAY, path, octets.to_vec())]
        });
        let configs = reporting().map(|mut config| {
            config.fec_words = FecStrength::from_words(words).expect("in range");
            for peer in &mut config.peers {
                peer.mtu = MtuConfig::fixed(ByteCount(1_280));
            }
            config
        });
        let mut pair = Pair::new(configs, medium);
        pair.run(Duration::from_secs(1));
        longest.set(0);
        pair.call(Way::Forward, |session, now| {
            let room = session.report_room(PEER);
            assert!(session.report(now, PEER, &vec![7; room]), "{room}");
            assert!(!session.report(now, PEER, &vec![7; room + 1]), "too long");
        });
        pair.run(Duration::from_secs(1));
        let is_full = |event: &SessionEvent<()>| matches!(event, SessionEvent::Reported { octets, .. } if octets.first() == Some(&7));
        assert_eq!(pair.count(Way::Back, is_full), 1, "{words} words");
        let full = DATAGRAM_MAX - TAG_LESS_CHECK;
        assert_eq!(longest.get(), full, "{words} words");
    }
}
