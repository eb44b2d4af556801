//! A plan of datagrams to two machines that pair: strangers' octets, sound frames with any content, changed and honest datagrams, time.
//! Nobody is taken for an end that is not the one with the code, no stranger is answered by more than it sent, and strangers
//! who know neither code nor call keep nobody from pairing.

use fulmar_net::pairing::{
    CallerEvent, ListenerEvent, PAIRING_VERSION, PairingCaller, PairingEnd, PairingListener,
    TERMS_BYTES_MAX,
};
use fulmar_net::session::{Entropy, PublicKey, SecretKey};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::checksum::crc32;
use std::net::SocketAddr;

/// The first octet of each datagram of pairing.
const FORM: u8 = 0x7A;
const CALL_BYTES: usize = 16;
const COOKIE_BYTES: usize = 16;
const SHARE_BYTES: usize = 33;
const HEADER_BYTES: usize = 3 + CALL_BYTES;
const CHECK_BYTES: usize = 4;
/// Rounds of a quarter of a second after a plan: a lost question is repeated in each.
const ROUNDS_AFTER: usize = 20;

struct World {
    now: Instant,
    listener: PairingListener,
    caller: PairingCaller,
    keys: [PublicKey; 2],
    terms: Vec<u8>,
    heard: Vec<ListenerEvent>,
    told: Vec<CallerEvent>,
    /// Datagrams under way to the listener, and to the caller.
    to: [Vec<Vec<u8>>; 2],
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 4_914))
}

fn frame(kind: u8, call: &[u8], body: &[u8]) -> Vec<u8> {
    let mut octets = vec![FORM, PAIRING_VERSION, kind];
    octets.extend_from_slice(call);
    octets.resize(HEADER_BYTES, 0);
    octets.extend_from_slice(body);
    let check = crc32(&octets);
    octets.extend_from_slice(&check.to_be_bytes());
    octets
}

impl World {
    fn new() -> Self {
        let entropy = |of| Entropy::from_seed([of; 32]);
        let keys = [1, 2].map(|of| SecretKey::generate(&mut entropy(of)).public());
        let terms = vec![b't'; TERMS_BYTES_MAX];
        let listener = PairingListener::new(keys[0], terms.clone(), entropy(3)).expect("short");
        let (code, now) = (listener.code().clone(), Instant::START);
        Self {
            now,
            caller: PairingCaller::new(keys[1], address(1), code, entropy(4), now),
            listener,
            keys,
            terms,
            heard: Vec::new(),
            told: Vec::new(),
            to: [Vec::new(), Vec::new()],
        }
    }

    /// Takes what both say; answers to anybody but the caller are returned.
    fn drain(&mut self) -> Vec<Vec<u8>> {
        let mut strange = Vec::new();
        while let Some((to, octets)) = self.listener.poll_transmit() {
            if to == address(2) {
                self.to[1].push(octets);
            } else {
                strange.push(octets);
            }
        }
        if let Some(event) = self.listener.poll_event() {
            self.heard.push(event);
            if let ListenerEvent::Agreed(key) = event {
                assert_eq!(key, self.keys[1], "nobody else knows the code");
                self.listener.written(self.now);
                strange.extend(self.drain());
            }
        }
        if let Some(event) = self.caller.poll_event() {
            if let CallerEvent::Agreed { peer, terms } = &event {
                assert_eq!((peer, terms), (&self.keys[0], &self.terms));
                self.caller.written(self.now);
            }
            self.told.push(event);
        }
        while let Some((to, octets)) = self.caller.poll_transmit() {
            assert_eq!(to, address(1));
            self.to[0].push(octets);
        }
        strange
    }

    /// A stranger's datagram to the listener, and the answers to it.
    fn strange(&mut self, octets: &[u8]) -> Vec<Vec<u8>> {
        self.listener.handle(address(3), octets, self.now);
        let answers = self.drain();
        let answered: usize = answers.iter().map(Vec::len).sum();
        assert!(answered <= octets.len(), "more than was sent");
        answers
    }

    /// Delivers what is under way, the first datagram of each direction changed by `change`.
    fn deliver(&mut self, change: impl Fn(&mut Vec<u8>)) {
        self.drain();
        for end in [0, 1] {
            let mut under_way = core::mem::take(&mut self.to[end]);
            if let Some(first) = under_way.first_mut() {
                change(first);
            }
            for octets in under_way {
                if end == 0 {
                    self.listener.handle(address(2), &octets, self.now);
                } else {
                    self.caller.handle(address(1), &octets, self.now);
                }
                self.drain();
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.listener.handle_deadline(self.now);
        self.caller.handle_deadline(self.now);
        let later = |deadline: Option<Instant>| deadline.is_none_or(|at| at > self.now);
        assert!(
            later(self.listener.deadline()) && later(self.caller.deadline()),
            "a deadline that was due did nothing"
        );
        self.drain();
    }
}

/// The octet at `at` of a plan's step, 0 if it has none.
fn octet(step: &[u8], at: usize) -> u8 {
    step.get(at).copied().unwrap_or_default()
}

/// Each step of the plan is its kind, its length, and so many octets.
///
/// # Panics
/// A law is broken.
pub(crate) fn holds(plan: &[u8]) {
    let mut world = World::new();
    let mut are_strangers_alone = true;
    let mut rest = plan;
    while let Some((&[kind, len], after)) = rest.split_first_chunk() {
        let (step, after) = after.split_at(after.len().min(len.into()));
        rest = after;
        match kind % 7 {
            0 => drop(world.strange(step)),
            1 => {
                let (call, body) = step.split_at(step.len().min(CALL_BYTES));
                world.strange(&frame(
                    octet(body, 0),
                    call,
                    body.get(1..).unwrap_or_default(),
                ));
            }
            // A stranger who is where it says, and has a share but no code.
            2 => {
                let (call, share) = step.split_at(step.len().min(CALL_BYTES));
                let cookies = world.strange(&frame(1, call, &[0; COOKIE_BYTES]));
                let Some(cookie) = cookies.first() else {
                    continue;
                };
                let mut body = cookie[HEADER_BYTES..cookie.len() - CHECK_BYTES].to_vec();
                body.extend_from_slice(share);
                body.resize(COOKIE_BYTES + SHARE_BYTES, 0);
                world.strange(&frame(3, call, &body));
            }
            3 => world.deliver(|_| ()),
            4 => {
                are_strangers_alone = false;
                world.deliver(|octets| {
                    let whole = octets.len() - CHECK_BYTES;
                    octets[usize::from(octet(step, 0)) % whole] ^= octet(step, 1);
                    let check = crc32(&octets[..whole]);
                    octets[whole..].copy_from_slice(&check.to_be_bytes());
                });
            }
            5 => {
                are_strangers_alone = false;
                world.caller.handle(address(3), step, world.now);
                world.drain();
            }
            _ => {
                are_strangers_alone = false;
                let time = Duration::from_millis(100 * u64::from(octet(step, 0)));
                world.pass(time);
            }
        }
    }
    for _ in 0..ROUNDS_AFTER {
        world.deliver(|_| ());
        world.pass(Duration::from_millis(250));
    }
    let is_spent = |event: &ListenerEvent| matches!(event, ListenerEvent::WrongCode { .. });
    if are_strangers_alone && !world.heard.iter().any(is_spent) {
        assert_eq!(world.told.last(), Some(&CallerEvent::Paired));
    }
}
