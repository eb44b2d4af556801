//! Notices are hints: small, few, and worth nothing to whoever invents them.
//!
//! Method: two sessions in virtual time, with datagrams of the test's own between them.

use super::session_pair::sight::data;
use super::session_pair::{
    PATH, PEER, Pair, Way, configs, lossy, noise, octets, secret, unprotected,
};
use fulmar_net::session::{LinkState, Security, SessionEvent};
use fulmar_proto::machine::PathId;
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::checksum::hec;
use std::cell::RefCell;
use std::rc::Rc;

const DELAY: Duration = Duration::from_millis(5);

fn to(key: u8) -> Security {
    Security::Noise {
        peer: secret(key).public(),
        preset: None,
    }
}

/// A notice to `receiver` that says `what`, with `seen` to show for it.
fn notice(receiver: &[u8], what: u8, seen: &[u8]) -> Vec<u8> {
    let mut octets = vec![0x16, 0, 0, 0];
    octets.extend_from_slice(receiver);
    octets.extend_from_slice(&[what, 7, 0, 0]);
    sound(&mut octets);
    octets.extend_from_slice(seen);
    octets
}

/// Makes the header check.
fn sound(octets: &mut [u8]) {
    let hec = hec(&octets[..2], &octets[4..12]);
    octets[2..4].copy_from_slice(&hec.to_be_bytes());
}

/// The caller's first initiation, and a listener's notice to it: (initiation, notice).
fn refused_call() -> (Vec<u8>, Vec<u8>) {
    type Log = Vec<(Way, Vec<u8>)>;
    let log: Rc<RefCell<Log>> = Rc::default();
    let record = Rc::clone(&log);
    let keys = [Some(secret(1)), Some(secret(2))];
    let mut pair = Pair::new(
        configs([to(9), to(1)], keys),
        Box::new(move |way, _, path, octets| {
            record.borrow_mut().push((way, octets.to_vec()));
            vec![(DELAY, path, octets.to_vec())]
        }),
    );
    pair.run(Duration::from_millis(20));
    let log = log.take();
    let of = |way| {
        log.iter()
            .find(|(of, _)| *of == way)
            .expect("one")
            .1
            .clone()
    };
    (of(Way::Forward), of(Way::Back))
}

#[test]
fn a_notice_is_smaller_than_its_question_and_at_most_ten_a_second_leave() {
    let (question, notice) = refused_call();
    assert_eq!((question.len(), notice.len()), (396, 28));
    let mut pair = Pair::new(noise(), Box::new(|_, _, _, _| Vec::new()));
    let before = pair.session(Way::Back).counters().notices_sent;
    for _ in 0..1_000 {
        pair.inject(1, PATH, &question);
    }
    let sent = pair.session(Way::Back).counters().notices_sent - before;
    assert_eq!(sent, 10);
    pair.run(Duration::from_secs(1));
    for _ in 0..1_000 {
        pair.inject(1, PATH, &question);
    }
    let sent = pair.session(Way::Back).counters().notices_sent - before;
    assert_eq!(sent, 20);
}

#[test]
fn forged_notices_change_nothing_but_the_log() {
    // An attacker on the path answers an initiation with everything that a notice can say.
    let mut pair = Pair::new(noise(), lossy(DELAY, 0.0, 1));
    let seen: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let record = Rc::clone(&seen);
    pair.medium = Box::new(move |way, _, path, octets| {
        if way == Way::Forward {
            record.borrow_mut().push(octets.to_vec());
        }
        vec![(DELAY, path, octets.to_vec())]
    });
    pair.run(Duration::from_millis(300));
    let initiation = seen.borrow().first().expect("it calls").clone();
    for code in 0..=255 {
        for _ in 0..5 {
            let seen = &initiation[initiation.len() - 32..][..16];
            pair.inject(0, PATH, &notice(&initiation[8..12], code, seen));
        }
    }
    pair.run(Duration::from_secs(1));
    for way in [Way::Forward, Way::Back] {
        let link = pair.session(way).status(PEER).expect("a peer").link;
        assert_eq!(link, LinkState::Up, "{way:?}");
    }
}

#[test]
fn a_notice_that_does_not_show_the_initiation_is_dropped() {
    let (question, true_notice) = refused_call();
    let keys = [Some(secret(1)), Some(secret(2))];
    for octet in 4..true_notice.len() {
        let mut pair = Pair::new(
            configs([to(9), to(1)], keys.clone()),
            Box::new(|_, _, _, _| Vec::new()),
        );
        pair.run(Duration::from_millis(1));
        let mut wrong = true_notice.clone();
        // The code tells the reason, and not whether the notice is heeded.
        if (8..12).contains(&octet) {
            continue;
        }
        wrong[octet] ^= 1;
        sound(&mut wrong);
        for _ in 0..10 {
            pair.inject(0, PATH, &wrong);
        }
        assert_eq!(pair.events(Way::Forward), [], "octet {octet}");
        for _ in 0..10 {
            pair.inject(0, PATH, &true_notice);
        }
        assert_eq!(pair.events(Way::Forward).len(), 1, "octet {octet}");
    }
    assert_eq!(question[8..12], true_notice[4..8]);
}

#[test]
fn a_peer_that_restarted_while_all_was_quiet_is_noticed_at_the_next_datagram() {
    for configs in [noise(), unprotected()] {
        let mut again = configs[1].clone();
        again.boot_epoch += 1 << 24;
        let mut pair = Pair::new(configs, lossy(DELAY, 0.0, 1));
        // A time between two keep-alives, and two confirmations of the size.
        pair.run(Duration::from_secs(26));
        // The restarted end cannot call: it does not know where the other end is.
        pair.restart(Way::Back, again, 77);
        pair.run(Duration::from_secs(1));
        let began = pair.now;
        pair.send(&octets(1_000));
        pair.run(Duration::from_secs(1));
        let events = &pair.app(Way::Forward).events;
        let restarted =
            |(_, event): &&(Instant, SessionEvent<()>)| *event == SessionEvent::PeerRestarted(PEER);
        let (noticed, _) = events.iter().find(restarted).expect("it is noticed");
        // Data and notice, initiation and response.
        assert_eq!(*noticed, began + DELAY * 4, "{events:?}");
    }
}

#[test]
fn forged_news_of_lost_keys_replace_them_once_in_five_seconds_and_cut_nothing() {
    let mut pair = Pair::new(noise(), lossy(DELAY, 0.0, 1));
    let seen: Rc<RefCell<Vec<u8>>> = Rc::default();
    let record = Rc::clone(&seen);
    let mut deliver = lossy(DELAY, 0.0, 1);
    pair.medium = Box::new(move |way, now, path, octets| {
        if way == Way::Forward && data(octets).is_some() {
            record.replace(octets.to_vec());
        }
        deliver(way, now, path, octets)
    });
    pair.run(Duration::from_secs(1));
    let sent = octets(6_000_000);
    pair.send(&sent);
    // A notice is not believed if its sender did not see the datagram, or is elsewhere.
    let lies = |datagram: &[u8]| {
        let sent = data(datagram).expect("data");
        let (index, shown) = (sent.index, &sent.shown);
        [
            (PATH, notice(&[1, 2, 3, 4], 5, shown)),
            (PATH, notice(index, 5, &sent.shown_later(100_000))),
            (PATH, notice(index, 5, &shown[..3])),
            (PathId(99), notice(index, 5, shown)),
        ]
    };
    for _ in 0..500 {
        pair.run(Duration::from_millis(1));
        for (path, octets) in lies(&seen.borrow().clone()) {
            pair.inject(0, path, &octets);
        }
    }
    assert_eq!(pair.session(Way::Forward).counters().rekeys, 0);
    for _ in 0..4_000 {
        pair.run(Duration::from_millis(1));
        let datagram = seen.borrow().clone();
        let sent = data(&datagram).expect("data");
        pair.inject(0, PATH, &notice(sent.index, 5, &sent.shown));
    }
    assert_eq!(pair.session(Way::Forward).counters().rekeys, 1);
    pair.run_to_end(Duration::from_secs(20));
    assert!(pair.app(Way::Back).received == sent);
    let down = |event: &SessionEvent<()>| matches!(event, SessionEvent::LinkDown { .. });
    assert_eq!(pair.count(Way::Forward, down), 0);
}
