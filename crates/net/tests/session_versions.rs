//! Two ends agree on the wire of their data by their hellos, and on nothing else: whoever calls, whatever is lost or
//! forged, and whichever of them is upgraded or taken back.
//!
//! Method: two sessions in virtual time around machines that number what they send, on a medium that reads the first
//! octet of every datagram.

use crate::session_pair::by_hand::{take, the_peer};
use crate::session_pair::sight::data as seen;
use crate::session_pair::world::{DELAY, World};
use crate::session_pair::{PATH, PEER, noise, preset, preset_pair, speaking, unprotected};
use fulmar_net::session::{
    DropReason, EarlyData, LinkState, Security, SessionConfig, SessionEvent, Wire,
};
use fulmar_proto::machine::TpduForm;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::Duration;
use fulmar_proto::wire::checksum::hec;
use std::collections::BTreeSet;

const SECOND: Duration = Duration::from_secs(1);

fn agreed(wires: [Wire; 2]) -> Wire {
    if wires == [Wire::Two; 2] {
        Wire::Two
    } else {
        Wire::One
    }
}

fn form(wire: Wire) -> TpduForm {
    match wire {
        Wire::One => TpduForm::Long,
        Wire::Two => TpduForm::Short,
    }
}

const PAIRS: [[Wire; 2]; 4] = [
    [Wire::One, Wire::One],
    [Wire::One, Wire::Two],
    [Wire::Two, Wire::One],
    [Wire::Two, Wire::Two],
];

fn kinds() -> [[SessionConfig; 2]; 3] {
    [noise(), preset_pair(), unprotected()]
}

#[test]
fn data_is_in_the_second_wire_if_both_ends_say_so_whoever_calls_and_whatever_is_lost() {
    for wires in PAIRS {
        for (callers, loss) in [
            ([true, false], 0.0),
            ([true, true], 0.2),
            ([true, true], 0.5),
        ] {
            for [a, b] in kinds() {
                let mut configs = [speaking(a, wires[0]), speaking(b, wires[1])];
                for (config, calls) in configs.iter_mut().zip(callers) {
                    config.peers[0].endpoints = calls.then_some(PATH).into_iter().collect();
                    // Several handshakes: each decides anew, and the same.
                    config.rekey.after = Duration::from_millis(700);
                }
                let mut world = World::new(configs, loss, 7);
                world.run(SECOND * 5);
                assert!(world.is_up(), "{wires:?} at loss {loss}");
                world.send(1_000);
                world.run(SECOND);
                let agreed = agreed(wires);
                assert_eq!(world.wires(), BTreeSet::from([agreed as u8]), "{wires:?}");
                for end in 0..2 {
                    let (here, there) = (&world.ends[end], &world.ends[1 - end]);
                    assert!(here.counters().rekeys >= 1, "{:?}", here.counters());
                    let (sent, received) = (here.counters().sent, there.counters().received);
                    let expected = sent as f64 * (1.0 - loss);
                    // Four standard deviations of as many throws.
                    let spread = 4.0 * (sent as f64 * loss * (1.0 - loss)).sqrt();
                    let off = (received as f64 - expected).abs();
                    assert!(off <= spread, "{received} of {sent} at loss {loss}");
                    let inner = there.inner();
                    assert_eq!(inner.form, form(agreed));
                    let status = here.status(PEER).expect("a peer");
                    assert_eq!(status.wire, Some(agreed));
                    let is_up = |event: &&SessionEvent<()>| matches!(event, SessionEvent::Up { wire, .. } if *wire == agreed);
                    assert_eq!(world.events[end].iter().filter(is_up).count(), 1);
                    let numbers: BTreeSet<u32> = inner.numbers.iter().copied().collect();
                    assert_eq!(numbers.len() as u64, received, "each of them once");
                    let in_frames = if agreed == Wire::Two { received } else { 0 };
                    assert_eq!(inner.frames, in_frames, "{wires:?}");
                }
            }
        }
    }
}

#[test]
fn the_second_wire_has_five_octets_less_around_the_same_octets() {
    let around = |wire| {
        let [a, b] = noise().map(|config| speaking(config, wire));
        let mut world = World::new([a, b], 0.0, 1);
        world.run(SECOND);
        world.data[0].clear();
        world.send(1);
        let (said, len) = world.data[0][0];
        assert_eq!(said, wire);
        len - 1_000
    };
    assert_eq!([around(Wire::One), around(Wire::Two)], [29, 24]);
}

#[test]
fn an_end_that_is_upgraded_or_taken_back_over_the_link_changes_the_wire_with_its_restart() {
    for [a, b] in kinds() {
        let [one, two] = [Wire::One, Wire::Two]
            .map(|wire| [speaking(a.clone(), wire), speaking(b.clone(), wire)]);
        let mut world = World::new(one.clone(), 0.0, 3);
        world.run(SECOND);
        // Which end starts again, as what, and the wire of the data from then on.
        let starts = [
            (1, &two, Wire::One),
            (0, &two, Wire::Two),
            (1, &one, Wire::One),
            (1, &two, Wire::Two),
            (0, &one, Wire::One),
            (1, &one, Wire::One),
        ];
        let mut heard: [Vec<u32>; 2] = Default::default();
        for (n, (end, configs, wire)) in (0_u8..).zip(starts) {
            world.send(200);
            heard[end].extend_from_slice(&world.ends[end].inner().numbers);
            let mut config = configs[end].clone();
            config.boot_epoch += u64::from(n + 1) << 24;
            // In the middle of a transfer: what is on its way is under keys that are gone.
            world.restart(end, config, 20 + n);
            world.send(400);
            world.run(SECOND * 8);
            assert!(world.is_up(), "start {n}");
            world.data = Default::default();
            let before = [0, 1].map(|end| world.ends[end].counters().received);
            world.send(200);
            world.run(DELAY * 2);
            assert_eq!(world.wires(), BTreeSet::from([wire as u8]), "start {n}");
            for (end, before) in world.ends.iter().zip(before) {
                let all = end.counters().received - before;
                assert_eq!(all, 200, "nothing lost at start {n}");
                assert_eq!(end.inner().form, form(wire));
            }
        }
        for (end, heard) in heard.iter_mut().enumerate() {
            heard.extend_from_slice(&world.ends[end].inner().numbers);
            let once: BTreeSet<u32> = heard.iter().copied().collect();
            assert_eq!(once.len(), heard.len(), "nothing doubled");
        }
    }
}

/// A header of version 1 that checks, then `body`.
fn with_header(first: u8, receiver: &[u8], low: [u8; 4], body: &[u8]) -> Vec<u8> {
    let mut octets = [&[first, 0, 0, 0], receiver, &low, body].concat();
    let check = hec(&octets[..2], &octets[4..12]);
    octets[2..4].copy_from_slice(&check.to_be_bytes());
    octets
}

#[test]
fn nobody_in_between_can_take_the_word_away() {
    for wires in [[Wire::Two, Wire::Two], [Wire::Two, Wire::One]] {
        for [a, b] in [noise(), preset_pair()] {
            let configs = [speaking(a, wires[0]), speaking(b, wires[1])];
            let mut world = World::new(configs, 0.0, 1);
            let called = world
                .flying
                .first_key_value()
                .expect("it calls")
                .1
                .1
                .clone();
            let index = &called[8..12];
            let mut rng = Rng::from_seed(9).child("attacker");
            let mut garbage = |len: usize| {
                let mut octets = vec![0; len];
                rng.fill(&mut octets);
                octets
            };
            let forged = [
                with_header(0x15, index, [0; 4], b""),
                with_header(0x25, index, [0; 4], b""),
                with_header(0x13, index, [0; 4], &garbage(56)),
                with_header(0x12, index, [1, 2, 3, 4], &garbage(304)),
                with_header(
                    0x16,
                    index,
                    [3, 7, 0, 0],
                    &called[called.len() - 32..][..16],
                ),
            ];
            for _ in 0..10 {
                for octets in &forged {
                    take(&mut world.ends[0], world.now, the_peer(), octets);
                    world.settle();
                }
            }
            world.run(SECOND);
            world.send(50);
            assert!(world.is_up());
            assert_eq!(world.wires(), BTreeSet::from([agreed(wires) as u8]));
        }
    }
}

#[test]
fn data_in_another_wire_than_that_of_its_keys_is_dropped_unread() {
    for wire in [Wire::One, Wire::Two] {
        let mut world = World::new(noise().map(|config| speaking(config, wire)), 0.0, 1);
        world.log = Some(Vec::new());
        world.run(SECOND);
        world.send(1);
        let log = world.log.take().expect("kept");
        let (_, data) = log
            .iter()
            .rfind(|(end, octets)| *end == 0 && seen(octets).is_some_and(|seen| seen.wire == wire))
            .expect("data");
        let other = match wire {
            Wire::One => [&[0x28], &data[4..8], &data[9..]].concat(),
            Wire::Two => with_header(
                0x10,
                &data[1..5],
                [0, data[5], data[6], data[7]],
                &data[8..],
            ),
        };
        let unknown = DropReason::Unknown;
        let before = (
            world.ends[1].work(),
            world.ends[1].counters().dropped(unknown),
        );
        take(&mut world.ends[1], world.now, the_peer(), &other);
        let after = (
            world.ends[1].work(),
            world.ends[1].counters().dropped(unknown),
        );
        assert_eq!(after, (before.0, before.1 + 1), "{wire:?}");
    }
}

#[test]
fn an_end_that_lost_its_keys_says_so_of_data_in_the_second_wire_and_is_believed() {
    for [a, b] in [noise(), unprotected()] {
        let configs = [speaking(a, Wire::Two), speaking(b, Wire::Two)];
        let mut again = configs[1].clone();
        again.boot_epoch += 1 << 24;
        let mut world = World::new(configs, 0.0, 1);
        world.run(SECOND * 26);
        world.restart(1, again, 77);
        world.run(SECOND);
        let began = world.now;
        let notices = world.ends[1].counters().notices_sent;
        world.send(1);
        // Data and notice, initiation and response.
        world.run(DELAY * 4);
        assert_eq!(world.ends[1].counters().notices_sent, notices + 1);
        assert!(
            world.events[0].contains(&SessionEvent::PeerRestarted(PEER)),
            "{began}"
        );
        world.run(DELAY);
        assert!(world.is_up());
    }
}

#[test]
fn a_word_of_lost_keys_must_show_the_place_and_the_counter_of_what_was_sent() {
    let mut world = World::new(noise().map(|config| speaking(config, Wire::Two)), 0.0, 1);
    world.log = Some(Vec::new());
    world.run(SECOND);
    world.send(20);
    let log = world.log.take().expect("kept");
    let (_, data) = log
        .iter()
        .rfind(|(end, octets)| *end == 0 && octets[0] == 0x28)
        .expect("data");
    let notice = |seen: &[u8]| with_header(0x16, &data[1..5], [5, 0, 0, 0], seen);
    let (place, counter) = (data[0], &data[5..8]);
    let later = [counter[0] + 1, counter[1], counter[2]];
    for lie in [
        [&[place + 1], counter].concat(),
        [&[0x10], counter].concat(),
        [&[place], &later[..]].concat(),
        data[4..8].to_vec(),
        counter.to_vec(),
    ] {
        take(&mut world.ends[0], world.now, the_peer(), &notice(&lie));
        world.settle();
        world.run(SECOND);
    }
    assert_eq!(world.ends[0].counters().rekeys, 0);
    let truth = [&[place], counter].concat();
    take(&mut world.ends[0], world.now, the_peer(), &notice(&truth));
    world.run(SECOND);
    assert_eq!(world.ends[0].counters().rekeys, 1);
}

#[test]
fn early_data_is_in_the_long_form_before_a_session_and_after_its_end() {
    let [mut a, mut b] = preset_pair().map(|config| speaking(config, Wire::Two));
    a.early_data = EarlyData::Send;
    b.early_data = EarlyData::Take;
    let mut world = World::new([a, b], 0.0, 1);
    for round in 1..=2 {
        let before = world.ends[1].counters().received_early;
        let source = world.ends[0].inner_mut();
        assert_eq!(source.form, TpduForm::Long, "round {round}");
        (source.left, source.octets) = (10, 500);
        world.settle();
        world.run(DELAY);
        assert_eq!(
            world.ends[1].counters().received_early - before,
            10,
            "round {round}"
        );
        world.run(SECOND);
        assert!(world.is_up());
        assert_eq!(world.ends[0].inner().form, TpduForm::Short);
        let now = world.now;
        world.ends[1].close(now);
        world.settle();
        world.run(DELAY);
        assert_eq!(world.link(0), LinkState::Connecting);
    }
}

#[test]
fn a_peer_that_was_removed_and_comes_back_is_spoken_to_anew() {
    let [a, b] = noise();
    let configs = [speaking(a, Wire::Two), speaking(b, Wire::Two)];
    let peer = configs[0].peers[0].clone();
    let mut world = World::new(configs, 0.0, 1);
    world.run(SECOND);
    let now = world.now;
    world.ends[0].remove_peer(now, PEER);
    world.settle();
    assert_eq!(world.ends[0].inner().form, TpduForm::Long);
    world.run(SECOND);
    assert_eq!(world.ends[0].add_peer(peer), Some(PEER));
    world.settle();
    world.run(SECOND * 3);
    assert!(world.is_up());
    assert_eq!(world.ends[0].inner().form, TpduForm::Short);
    let now = world.now;
    let security = Security::Preset { key: preset(5) };
    assert!(world.ends[0].set_security(now, PEER, security, None));
    assert_eq!(world.ends[0].inner().form, TpduForm::Long);
}
