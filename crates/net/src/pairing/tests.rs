//! Both machines over a path that loses, doubles, delays and damages, and strangers who join in.

use super::wire::{CallId, Kind, Read, read, write};
use super::*;
use crate::session::{Entropy, PublicKey, SecretKey};
use core::time::Duration;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::Instant;
use proptest::prelude::*;
use std::net::SocketAddr;

const TERMS: &[u8] = b"terms";

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 4_914))
}

/// The faults of a path, in per cent of the datagrams of each direction.
#[derive(Clone, Copy, Debug)]
struct Faults {
    lost: u64,
    doubled: u64,
    damaged: u64,
    /// The spread of delays: above 250 ms, repetitions overtake.
    spread_ms: u64,
}

const NONE: Faults = Faults {
    lost: 0,
    doubled: 0,
    damaged: 0,
    spread_ms: 1,
};

/// A listener, callers, and the datagrams between them.
struct World {
    now: Instant,
    rng: Rng,
    faults: Faults,
    under_way: Vec<(Instant, SocketAddr, SocketAddr, Vec<u8>)>,
    listener: PairingListener,
    caller: PairingCaller,
    called_key: PublicKey,
    caller_key: PublicKey,
    heard: Vec<ListenerEvent>,
    told: Vec<CallerEvent>,
    /// Whether each end can write its files: the listener, the caller.
    can_write: [bool; 2],
    sent: Vec<Vec<u8>>,
}

fn entropy(seed: u64, of: u8) -> Entropy {
    let mut octets = [of; 32];
    octets[..8].copy_from_slice(&seed.to_be_bytes());
    Entropy::from_seed(octets)
}

impl World {
    fn new(seed: u64, faults: Faults) -> Self {
        let key = |of| SecretKey::generate(&mut entropy(seed, of)).public();
        let (called_key, caller_key) = (key(1), key(2));
        let listener =
            PairingListener::new(called_key, TERMS.to_vec(), entropy(seed, 3)).expect("short");
        let code = listener.code().clone();
        let now = Instant::START;
        let caller = PairingCaller::new(caller_key, address(1), code, entropy(seed, 4), now);
        Self {
            now,
            rng: Rng::from_seed(seed),
            faults,
            under_way: Vec::new(),
            listener,
            caller,
            called_key,
            caller_key,
            heard: Vec::new(),
            told: Vec::new(),
            can_write: [true; 2],
            sent: Vec::new(),
        }
    }

    /// Another call, with this code.
    fn call_with(&mut self, seed: u64, code: PairingCode) {
        let entropy = entropy(seed, 5);
        self.caller = PairingCaller::new(self.caller_key, address(1), code, entropy, self.now);
    }

    fn below(&mut self, bound: u64) -> u64 {
        let mut octets = [0; 8];
        self.rng.fill(&mut octets);
        u64::from_le_bytes(octets) % bound
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, octets: &[u8]) {
        self.sent.push(octets.to_vec());
        let copies = 1 + u64::from(self.below(100) < self.faults.doubled);
        for _ in 0..copies {
            if self.below(100) < self.faults.lost {
                continue;
            }
            let mut octets = octets.to_vec();
            if self.below(100) < self.faults.damaged {
                let bit = usize::try_from(self.below(octets.len() as u64 * 8)).unwrap();
                octets[bit / 8] ^= 1 << (bit % 8);
            }
            let delay = self.below(self.faults.spread_ms);
            let at = self.now + Duration::from_millis(20 + delay);
            self.under_way.push((at, from, to, octets));
        }
    }

    fn drain(&mut self) {
        while let Some((to, octets)) = self.listener.poll_transmit() {
            self.send(address(1), to, &octets);
        }
        while let Some((to, octets)) = self.caller.poll_transmit() {
            self.send(address(2), to, &octets);
        }
        if let Some(event) = self.listener.poll_event() {
            self.heard.push(event);
            if let ListenerEvent::Agreed(_) = event {
                if self.can_write[0] {
                    self.listener.written(self.now);
                } else {
                    self.listener.not_written(self.now);
                }
                self.drain();
            }
        }
        if let Some(event) = self.caller.poll_event() {
            let agreed = matches!(event, CallerEvent::Agreed { .. });
            self.told.push(event);
            if agreed && self.can_write[1] {
                self.caller.written(self.now);
                self.drain();
            }
        }
    }

    /// Runs until nothing is due before `until`.
    fn run_until(&mut self, until: Instant) {
        self.drain();
        loop {
            let arrival = self.under_way.iter().map(|(at, ..)| *at).min();
            let deadlines = [arrival, self.listener.deadline(), self.caller.deadline()];
            let Some(next) = deadlines.into_iter().flatten().min() else {
                break;
            };
            if next > until {
                break;
            }
            let next = next.max(self.now);
            self.now = next;
            if let Some(at) = self.under_way.iter().position(|(at, ..)| *at <= next) {
                let (_, from, to, octets) = self.under_way.swap_remove(at);
                if to == address(1) {
                    self.listener.handle(from, &octets, next);
                } else if to == address(2) {
                    self.caller.handle(from, &octets, next);
                }
            } else {
                self.listener.handle_deadline(next);
                self.caller.handle_deadline(next);
                let later = |deadline: Option<Instant>| deadline.is_none_or(|at| at > next);
                let moved = later(self.listener.deadline()) && later(self.caller.deadline());
                assert!(moved, "a deadline that was due did nothing");
            }
            self.drain();
        }
        self.now = self.now.max(until);
    }

    fn run(&mut self) {
        self.run_until(self.now + Duration::from_secs(300));
    }

    /// Sends octets of a stranger and returns the listener's answers.
    fn strange(&mut self, from: SocketAddr, octets: &[u8]) -> Vec<Vec<u8>> {
        self.listener.handle(from, octets, self.now);
        let mut answers = Vec::new();
        while let Some((to, octets)) = self.listener.poll_transmit() {
            assert_eq!(to, from);
            answers.push(octets);
        }
        self.heard.extend(self.listener.poll_event());
        answers
    }

    fn assert_paired(&self) {
        let peer = self.called_key;
        let terms = TERMS.to_vec();
        assert_eq!(
            self.told,
            [CallerEvent::Agreed { peer, terms }, CallerEvent::Paired]
        );
        let agreed = ListenerEvent::Agreed(self.caller_key);
        assert_eq!(self.heard, [agreed, ListenerEvent::Over]);
    }
}

fn body(datagram: &[u8]) -> Vec<u8> {
    match read(datagram) {
        Some(Read::Ours { body, .. }) => body.to_vec(),
        other => panic!("{other:?}"),
    }
}

fn failed(failure: PairingFailure) -> [CallerEvent; 1] {
    [CallerEvent::Failed(failure)]
}

#[test]
fn keys_and_terms_cross_and_no_datagram_shows_them() {
    let mut world = World::new(1, NONE);
    world.run();
    world.assert_paired();
    let has = |octets: &[u8], part: &[u8]| octets.windows(part.len()).any(|window| window == part);
    let (caller, called) = (world.caller_key, world.called_key);
    for octets in &world.sent {
        for part in [caller.octets().as_slice(), called.octets(), TERMS] {
            assert!(!has(octets, part));
        }
    }
    assert_eq!(world.sent.len(), 8, "each question once");
}

/// Two ends from fixed seeds say these octets. `UPDATE_SAMPLES=1` writes them anew.
#[test]
fn the_datagrams_of_a_pairing_are_these() {
    let mut world = World::new(1, NONE);
    world.run();
    world.assert_paired();
    let written = world.sent.iter().map(|octets| {
        let octets: Vec<String> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        octets.concat() + "\n"
    });
    let written: String = written.collect();
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/src/pairing/golden.txt");
    if std::env::var_os("UPDATE_SAMPLES").is_some() {
        std::fs::write(place, &written).expect("it is written");
    }
    assert_eq!(written, include_str!("golden.txt"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn ends_pair_over_half_of_all_datagrams_lost(seed: u64, doubled in 0_u64..50, damaged in 0_u64..10) {
        let mut world = World::new(seed, Faults { lost: 50, doubled, damaged, spread_ms: 600 });
        world.run();
        world.assert_paired();
    }
}

#[test]
fn a_wrong_code_is_refused_at_both_ends_and_spends_the_code() {
    let mut world = World::new(
        2,
        Faults {
            lost: 50,
            spread_ms: 600,
            ..NONE
        },
    );
    let first = world.listener.code().clone();
    world.call_with(1, PairingCode::of_number(1));
    world.run();
    assert_eq!(world.told, failed(PairingFailure::WrongCode));
    assert_eq!(world.heard, [ListenerEvent::WrongCode { left: 9 }]);
    assert_ne!(*world.listener.code(), first);

    // The spent one is as wrong as any other.
    world.told.clear();
    world.call_with(2, first);
    world.run();
    assert_eq!(world.told, failed(PairingFailure::WrongCode));

    world.told.clear();
    world.heard.clear();
    let code = world.listener.code().clone();
    world.call_with(3, code);
    world.run();
    world.assert_paired();
}

#[test]
fn too_many_wrong_codes_end_the_listener() {
    let mut world = World::new(3, NONE);
    for n in 1..=u64::from(WRONG_CODES_MAX) {
        assert_eq!(world.heard.len() as u64, n - 1);
        world.call_with(n, PairingCode::of_number(n));
        world.run();
    }
    assert_eq!(world.heard.last(), Some(&ListenerEvent::TooManyWrongCodes));
    world.told.clear();
    let code = world.listener.code().clone();
    world.call_with(100, code);
    world.run();
    assert_eq!(world.told, failed(PairingFailure::NoAnswer));
}

#[test]
fn a_caller_that_began_on_a_code_that_another_spent_is_told() {
    let mut world = World::new(4, NONE);
    // It has its answer to the share, and is slow to prove itself.
    world.run_until(world.now + Duration::from_millis(1));
    let until = |world: &World| {
        world
            .sent
            .iter()
            .any(|octets| octets[2] == Kind::Opened as u8)
    };
    while !until(&world) {
        world.run_until(world.now + Duration::from_millis(1));
    }
    let slow = core::mem::take(&mut world.under_way);
    let code = PairingCode::of_number(9);
    let caller = core::mem::replace(
        &mut world.caller,
        PairingCaller::new(world.caller_key, address(1), code, entropy(9, 9), world.now),
    );
    while world.heard.is_empty() {
        world.run_until(world.now + Duration::from_millis(10));
    }
    world.told.clear();
    world.caller = caller;
    world.under_way = slow;
    world
        .under_way
        .iter_mut()
        .for_each(|(at, ..)| *at = world.now);
    world.run();
    assert_eq!(world.told, failed(PairingFailure::Spent));
}

#[test]
fn silence_ends_a_call_and_says_where_it_stood() {
    let mut nobody = World::new(5, Faults { lost: 100, ..NONE });
    nobody.run();
    assert_eq!(nobody.told, failed(PairingFailure::NoAnswer));
    assert!(nobody.heard.is_empty());

    let mut gone = World::new(5, NONE);
    while !gone
        .sent
        .iter()
        .any(|octets| octets[2] == Kind::Confirm as u8)
    {
        gone.run_until(gone.now + Duration::from_millis(1));
    }
    gone.faults.lost = 100;
    gone.under_way.clear();
    gone.run();
    assert_eq!(gone.told, failed(PairingFailure::Silent));

    let mut at_last = World::new(5, NONE);
    while !at_last
        .sent
        .iter()
        .any(|octets| octets[2] == Kind::Done as u8)
    {
        at_last.run_until(at_last.now + Duration::from_millis(1));
    }
    at_last.faults.lost = 100;
    at_last.under_way.clear();
    at_last.run();
    let failure = PairingFailure::Unacknowledged;
    assert_eq!(at_last.told.last(), Some(&CallerEvent::Failed(failure)));
    assert_eq!(at_last.heard, [ListenerEvent::CallerSilent]);
}

#[test]
fn an_end_that_cannot_write_leaves_the_other_without_files() {
    let mut called = World::new(
        6,
        Faults {
            lost: 50,
            spread_ms: 600,
            ..NONE
        },
    );
    called.can_write[0] = false;
    called.run();
    let failure = PairingFailure::NotWritten;
    assert_eq!(called.told.last(), Some(&CallerEvent::Failed(failure)));
    assert_eq!(called.heard.last(), Some(&ListenerEvent::Over));

    let mut caller = World::new(6, NONE);
    caller.can_write[1] = false;
    let code = caller.listener.code().clone();
    caller.run();
    assert_eq!(caller.heard, [ListenerEvent::CallerSilent]);
    assert_ne!(*caller.listener.code(), code, "it is spent");
}

/// A datagram as the next version would write it.
fn newer(octets: &[u8]) -> Vec<u8> {
    let mut octets = octets[..octets.len() - 4].to_vec();
    octets[1] += 1;
    let check = fulmar_proto::wire::checksum::crc32(&octets);
    [octets.as_slice(), &check.to_be_bytes()].concat()
}

#[test]
fn another_version_is_named_to_the_caller() {
    let mut world = World::new(7, NONE);
    let (_, knock) = world.caller.poll_transmit().expect("a knock");
    let answers = world.strange(address(2), &newer(&knock));
    assert_eq!(answers.len(), 1);
    let answer = body(&answers[0]);
    assert_eq!(answer, [wire::Refusal::Version as u8]);

    // The same to us, from a listener of another version.
    let refusal = newer(&answers[0]);
    world.caller.handle(address(1), &refusal, world.now);
    world.drain();
    let theirs = PAIRING_VERSION + 1;
    assert_eq!(world.told, failed(PairingFailure::Version { theirs }));
}

/// A stranger who does not show that it is where it says begins no call, and none who does spends a code.
#[test]
fn strangers_change_nothing_and_get_no_longer_answers() {
    let mut world = World::new(8, NONE);
    let code = world.listener.code().clone();
    let mut rng = Rng::from_seed(8);
    let mut octets = |len: usize| {
        let mut octets = vec![0; len];
        rng.fill(&mut octets);
        octets
    };
    let mut most = 0;
    for n in 0..5_000_u32 {
        let from = SocketAddr::from((n.to_be_bytes(), 9));
        let call = CallId(octets(16).try_into().unwrap());
        let kind = [
            Kind::Knock,
            Kind::Open,
            Kind::Confirm,
            Kind::Done,
            Kind::Refuse,
        ][n as usize % 5];
        let len = [0, 1, 16, 49, 80, 900][n as usize % 6];
        for datagram in [write(kind, call, &octets(len)), octets(len)] {
            let answers = world.strange(from, &datagram);
            assert!(answers.iter().map(Vec::len).sum::<usize>() <= datagram.len());
        }
        // One who is where it says, and has no code.
        let knock = write(Kind::Knock, call, &[0; 16]);
        let cookie = body(&world.strange(from, &knock)[0]);
        let share = [b"A".as_slice(), &octets(32)].concat();
        let open = write(Kind::Open, call, &[cookie, share].concat());
        let answers = world.strange(from, &open);
        assert!(answers.iter().map(Vec::len).sum::<usize>() <= open.len());
        most = most.max(world.listener.remembered());
        world.now += Duration::from_millis(60);
    }
    assert_eq!(most, calls::CALLS_MAX, "and no more are remembered");
    assert!(world.heard.is_empty());
    assert_eq!(*world.listener.code(), code);
    world.call_with(8, code);
    world.run();
    world.assert_paired();
}

#[test]
fn a_share_without_the_cookie_of_its_address_is_not_answered() {
    let mut world = World::new(9, NONE);
    let call = CallId([1; 16]);
    let knock = write(Kind::Knock, call, &[0; 16]);
    let cookie = body(&world.strange(address(7), &knock)[0]);
    let mut entropy = entropy(9, 9);
    let code = PairingCode::of_number(1);
    let share = exchange::Exchange::begin(exchange::Role::Caller, &code, &mut entropy)
        .unwrap()
        .share;
    let open = write(Kind::Open, call, &[cookie.as_slice(), &share].concat());
    assert!(world.strange(address(8), &open).is_empty(), "another's");
    assert_eq!(world.strange(address(7), &open).len(), 1);
    assert_eq!(world.listener.remembered(), 1);
}

#[test]
fn terms_that_fit_no_datagram_are_refused_at_once() {
    let key = PublicKey::from_octets([1; 32]);
    let listener = |len| PairingListener::new(key, vec![0; len], entropy(1, 1));
    assert!(listener(TERMS_BYTES_MAX + 1).is_none());
    let mut longest = World::new(10, NONE);
    longest.listener = listener(TERMS_BYTES_MAX).expect("it fits");
    let code = longest.listener.code().clone();
    longest.call_with(1, code);
    longest.run();
    let most = longest.sent.iter().map(Vec::len).max();
    assert_eq!(
        most,
        Some(1_103),
        "below the 1,232 octets of a path of 1,280"
    );
    assert_eq!(longest.told.last(), Some(&CallerEvent::Paired));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Octets of any kind at any stage: no panic, and a caller believes none of them.
    #[test]
    fn a_caller_takes_any_octets(seed: u64, stage in 0_u8..4, kind in 0_usize..9, content in proptest::collection::vec(any::<u8>(), 0..200)) {
        let kinds = [Kind::Knock, Kind::Cookie, Kind::Open, Kind::Opened, Kind::Confirm, Kind::Accept, Kind::Done, Kind::Bye, Kind::Knock];
        let mut world = World::new(seed, NONE);
        let mut steps = 0;
        while world.sent.len() < usize::from(stage) * 2 && steps < 10_000 {
            world.run_until(world.now + Duration::from_millis(1));
            steps += 1;
        }
        let call = match read(&world.sent.first().cloned().unwrap_or_default()) {
            Some(Read::Ours { call, .. }) => call,
            _ => CallId([0; 16]),
        };
        let before = world.told.clone();
        let forged = write(kinds[kind], call, &content);
        world.caller.handle(address(3), &forged, world.now);
        world.caller.handle(address(3), &content, world.now);
        let told = world.caller.poll_event();
        let believed = matches!(told, Some(CallerEvent::Agreed { .. } | CallerEvent::Paired));
        prop_assert!(!believed);
        prop_assert_eq!(before, world.told);
    }
}
