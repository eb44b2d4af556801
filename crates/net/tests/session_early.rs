//! Data before the handshake, under a preset key or two public ones: it arrives after one way, once, and never again.

use super::session_pair::{PATH, PEER, Pair, Way, lossy, noise, octets, preset_pair, secret};
use fulmar_net::session::{DropReason, EarlyData, Security, SessionConfig, SessionEvent};
use fulmar_proto::units::{Duration, Instant};
use std::cell::RefCell;
use std::rc::Rc;

const DELAY: Duration = Duration::from_millis(300);

fn early() -> [SessionConfig; 2] {
    early_between(preset_pair())
}

fn early_between(mut configs: [SessionConfig; 2]) -> [SessionConfig; 2] {
    configs[0].early_data = EarlyData::Send;
    configs[1].early_data = EarlyData::Take;
    configs
}

#[test]
fn data_arrives_after_one_way_and_goes_on_under_session_keys() {
    let mut pair = Pair::new(early(), lossy(DELAY, 0.0, 1));
    let sent = octets(1_000_000);
    pair.send(&sent);
    pair.run(DELAY);
    assert!(!pair.app(Way::Back).received.is_empty(), "the first octets");
    pair.run_to_end(Duration::from_secs(10));
    assert!(pair.app(Way::Back).received == sent);
    let counters = pair.session(Way::Back).counters();
    let share = counters.received_early as f64 / counters.received as f64;
    // A round trip of the second that the transfer takes.
    assert!(counters.received_early > 100 && share < 0.8, "{counters:?}");
}

#[test]
fn between_public_keys_data_arrives_after_one_way_too_and_nobody_else_opens_it() {
    let mut pair = Pair::new(early_between(noise()), lossy(DELAY, 0.0, 1));
    let sent = octets(1_000_000);
    pair.send(&sent);
    pair.run(DELAY);
    assert!(!pair.app(Way::Back).received.is_empty(), "the first octets");
    pair.run_to_end(Duration::from_secs(10));
    assert!(pair.app(Way::Back).received == sent);
    // An end that takes early data of another key, or adds a preset key, opens none.
    let mut other_key = early_between(noise());
    other_key[1].peers[0].security = Security::Noise {
        peer: secret(77).public(),
        preset: None,
    };
    let mut with_preset = early_between(noise());
    if let Security::Noise { preset, .. } = &mut with_preset[1].peers[0].security {
        *preset = Some(super::session_pair::preset(9));
    }
    for configs in [other_key, with_preset] {
        let mut pair = Pair::new(configs, lossy(DELAY, 0.0, 1));
        pair.send(&octets(5_000));
        pair.run(Duration::from_secs(2));
        assert!(pair.session(Way::Forward).counters().sent_early > 0);
        assert_eq!(pair.session(Way::Back).counters().received_early, 0);
    }
}

#[test]
fn an_end_that_has_another_key_opens_no_early_data_for_the_one_before() {
    let mut pair = Pair::new(early_between(noise()), lossy(DELAY, 0.0, 1));
    pair.call(Way::Back, |session, now| {
        assert!(session.set_identity(now, Some(secret(9)), None));
    });
    pair.send(&octets(5_000));
    pair.run(Duration::from_secs(2));
    assert!(pair.session(Way::Forward).counters().sent_early > 0);
    assert_eq!(pair.session(Way::Back).counters().received_early, 0);
}

#[test]
fn early_data_that_is_sent_back_to_its_sender_opens_nothing() {
    let recorded: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let record = Rc::clone(&recorded);
    let configs = early_between(noise());
    let mut taking = configs[0].clone();
    taking.early_data = EarlyData::Take;
    let mut pair = Pair::new(
        configs,
        Box::new(move |way, _, path, octets| {
            if way == Way::Forward {
                record.borrow_mut().push(octets.to_vec());
            }
            vec![(DELAY, path, octets.to_vec())]
        }),
    );
    pair.send(&octets(5_000));
    pair.run(Duration::from_secs(1));
    pair.restart(Way::Forward, taking, 91);
    let recorded = recorded.take();
    assert!(recorded.len() > 3, "an initiation, and early data");
    for octets in &recorded {
        pair.inject(0, PATH, octets);
    }
    assert_eq!(pair.session(Way::Forward).counters().received_early, 0);
}

#[test]
fn a_transfer_that_begins_early_completes_under_loss() {
    for seed in 1..=5 {
        let mut pair = Pair::new(early(), lossy(Duration::from_millis(20), 0.4, seed));
        let sent = octets(300_000);
        pair.send(&sent);
        pair.run_to_end(Duration::from_secs(30));
        assert!(pair.app(Way::Back).received == sent, "seed {seed}");
    }
}

#[test]
fn recorded_early_data_is_worth_nothing_to_a_receiver_that_restarted_and_remembers() {
    let recorded: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let record = Rc::clone(&recorded);
    let configs = early();
    let mut again = configs[1].clone();
    let mut pair = Pair::new(
        configs,
        Box::new(move |way, now, path, octets| {
            if way == Way::Forward && now < Instant::START + Duration::from_millis(100) {
                record.borrow_mut().push(octets.to_vec());
            }
            vec![(DELAY, path, octets.to_vec())]
        }),
    );
    pair.send(&octets(5_000));
    pair.run(Duration::from_secs(5));
    let seen = pair.events(Way::Back).iter().find_map(|event| match event {
        SessionEvent::EpochSeen { peer: PEER, epoch } => Some(*epoch),
        _ => None,
    });
    again.epochs_seen = vec![seen.expect("an epoch to remember")];
    pair.restart(Way::Back, again.clone(), 90);
    for octets in recorded.borrow().iter() {
        pair.inject(1, PATH, octets);
    }
    let counters = pair.session(Way::Back).counters();
    assert_eq!(counters.received, 0, "{counters:?}");
    assert!(counters.dropped(DropReason::Replayed) >= 3, "{counters:?}");
    // Without the remembered epochs, the replay succeeds.
    again.epochs_seen.clear();
    pair.restart(Way::Back, again, 91);
    for octets in recorded.borrow().iter() {
        pair.inject(1, PATH, octets);
    }
    assert!(pair.session(Way::Back).counters().received > 0);
}

#[test]
fn early_data_is_neither_sent_nor_taken_unless_asked_for() {
    use EarlyData::{Off, Send, Take};
    for asked in [[Send, Off], [Off, Take], [Send, Send], [Take, Take]] {
        let mut configs = preset_pair();
        for (config, early) in configs.iter_mut().zip(asked) {
            config.early_data = early;
        }
        let mut pair = Pair::new(configs, lossy(DELAY, 0.0, 1));
        let sent = octets(10_000);
        pair.send(&sent);
        pair.run_to_end(Duration::from_secs(20));
        assert!(pair.app(Way::Back).received == sent);
        assert_eq!(pair.session(Way::Back).counters().received_early, 0);
    }
}

#[test]
fn early_data_sent_back_to_its_sender_does_not_open() {
    let seen: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let record = Rc::clone(&seen);
    let medium = Box::new(move |_, _, _, octets: &[u8]| {
        record.borrow_mut().push(octets.to_vec());
        Vec::new()
    });
    let mut pair = Pair::new(early(), medium);
    pair.send(&octets(5_000));
    pair.run(Duration::from_millis(100));
    assert!(seen.borrow().len() >= 5, "early data left");
    for octets in seen.take() {
        pair.inject(0, PATH, &octets);
    }
    assert_eq!(pair.session(Way::Forward).counters().received, 0);
}
