//! Two sessions around machines that number what they send, on a medium that reads the first octet of every datagram.

use super::PEER;
use super::by_hand::{ByHand, drain_into, session, take, the_peer};
use super::sight::data;
use fulmar_net::session::{LinkState, SessionConfig, SessionEvent, Wire};
use fulmar_proto::machine::Machine;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// The delay of the medium, either way.
pub(crate) const DELAY: Duration = Duration::from_millis(5);

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) ends: [ByHand; 2],
    pub(crate) flying: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    flown: u64,
    loss: f64,
    rng: Rng,
    /// Data that left either end: the wire, and its length.
    pub(crate) data: [Vec<(Wire, usize)>; 2],
    pub(crate) events: [Vec<SessionEvent<()>>; 2],
    /// Everything that left, if the test asks for it.
    pub(crate) log: Option<Vec<(usize, Vec<u8>)>>,
}

impl World {
    pub(crate) fn new(configs: [SessionConfig; 2], loss: f64, seed: u64) -> Self {
        let [a, b] = configs;
        let mut world = Self {
            now: Instant::START,
            ends: [session(a, 1), session(b, 2)],
            flying: BTreeMap::new(),
            flown: 0,
            loss,
            rng: Rng::from_seed(seed).child("loss"),
            data: Default::default(),
            events: Default::default(),
            log: None,
        };
        world.settle();
        world
    }

    pub(crate) fn settle(&mut self) {
        for end in 0..2 {
            let mut left = Vec::new();
            while let Some(event) = self.ends[end].poll_event() {
                self.events[end].push(event);
            }
            drain_into(
                &mut self.ends[end],
                self.now,
                &mut Vec::new(),
                |_, octets| {
                    left.push(octets.to_vec());
                },
            );
            for octets in left {
                if let Some(data) = data(&octets) {
                    self.data[end].push((data.wire, octets.len()));
                }
                if let Some(log) = &mut self.log {
                    log.push((end, octets.clone()));
                }
                if !self.rng.chance(self.loss) {
                    self.flown += 1;
                    let due = (self.now + DELAY, self.flown);
                    self.flying.insert(due, (1 - end, octets));
                }
            }
        }
    }

    pub(crate) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let timers = self.ends.iter().filter_map(Machine::next_deadline);
            let timer = timers.map(|deadline| deadline.at).min();
            let next = arrival.into_iter().chain(timer).min();
            let Some(at) = next.filter(|at| *at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            if arrival == Some(at) {
                let (_, (end, octets)) = self.flying.pop_first().expect("looked at");
                take(&mut self.ends[end], self.now, the_peer(), &octets);
            } else {
                for end in &mut self.ends {
                    if end
                        .next_deadline()
                        .is_some_and(|deadline| deadline.at <= self.now)
                    {
                        end.handle_deadline(self.now);
                    }
                }
            }
            self.settle();
        }
        self.now = until;
    }

    /// Lets both ends send `count` datagrams, one a millisecond each.
    pub(crate) fn send(&mut self, count: u32) {
        for _ in 0..count {
            for end in &mut self.ends {
                let source = end.inner_mut();
                (source.left, source.octets) = (1, 1_000);
            }
            self.settle();
            self.run(Duration::from_millis(1));
        }
    }

    /// Replaces an end by a new process.
    pub(crate) fn restart(&mut self, end: usize, config: SessionConfig, seed: u8) {
        let sent = self.ends[end].inner().sent;
        self.ends[end] = session(config, seed);
        // The process is new, but the test's clock and its numbers go on.
        self.ends[end].inner_mut().sent = sent;
        self.ends[end].poll_transmit(self.now, &mut Vec::new());
        self.settle();
    }

    pub(crate) fn link(&self, end: usize) -> LinkState {
        self.ends[end].status(PEER).expect("a peer").link
    }

    pub(crate) fn is_up(&self) -> bool {
        (0..2).all(|end| self.link(end) == LinkState::Up)
    }

    /// The wires of the data that left, of both ends.
    pub(crate) fn wires(&self) -> BTreeSet<u8> {
        let all = self.data.iter().flatten();
        all.map(|(wire, _)| *wire as u8).collect()
    }
}
