//! Over a thin way back that all receivers share, few of them ask, and what is sent mends different losses at once.
//!
//! Method: one sender and fifty receivers in virtual time, 20 ms apart. Each datagram is lost at each receiver by a draw of its own, and
//! so is each request, at the sender and at each other receiver.

use crate::one_way::{LOWER, RATE, Sent, preset, share};
use fulmar_net::one_way::{
    CounterFile, OneWayEvent, OneWayOpener, OneWayPlan, OneWayReceiver, OneWayReturn, OneWaySeal,
    OneWaySendEvent, OneWaySender, OneWaySent, StreamId, ThinReturn, sends_for_promise,
    symbol_bytes_in,
};
use fulmar_net::session::Entropy;
use fulmar_proto::fec::long_block::LongBlockDecoder;
use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId, Strict};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant, Probability};
use std::collections::BTreeMap;
use std::rc::Rc;

const DELAY: Duration = Duration::from_millis(20);
const SPREAD_MS: u16 = 500;

struct Member {
    machine: Strict<OneWayReceiver>,
    counters: CounterFile,
    rng: Rng,
    symbols: BTreeMap<(u16, u16), Vec<u8>>,
    is_whole: bool,
}

/// A datagram, and the end to which it goes.
type UnderWay = (usize, Rc<Vec<u8>>);

/// The sender has the number 0, receivers those from 1 on.
struct World {
    now: Instant,
    sender: Strict<OneWaySender>,
    counters: CounterFile,
    rng: Rng,
    members: Vec<Member>,
    loss: f64,
    under_way: BTreeMap<(Instant, u64), UnderWay>,
    number: u64,
    is_over: bool,
    request_octets: u64,
}

impl World {
    fn new(
        sent: &Sent,
        count: usize,
        loss: f64,
        ahead: Probability,
        place: &std::path::Path,
    ) -> Self {
        let key = preset(1);
        let counters = |name: &str, seed: u8| {
            let mut entropy = Entropy::from_seed([seed; 32]);
            CounterFile::open(&place.join(name), &key, &mut entropy).expect("it opens")
        };
        let own = counters("sender", 200);
        let stream = StreamId {
            sender: own.sender(),
            start: 1,
        };
        let returns = ThinReturn {
            opener: OneWayOpener::new(key.clone()),
            stream,
            spread_ms: SPREAD_MS,
            patience: 3 * DELAY,
            loss: share(loss),
            silent_max: 9,
        };
        let plan = OneWayPlan {
            announcement: sent.announcement.clone(),
            sends: sends_for_promise(&sent.layout, ahead, share(0.5)).expect("possible"),
            rounds: Some(1),
            announcements: 9,
            path: PathId(0),
            rate: RATE,
            lower_overhead: LOWER,
            returns: Some(returns),
        };
        let seal = OneWaySeal::new(&key, stream).expect("a key");
        let symbols = Box::new(sent.memory(20_000));
        let member = |number: usize| {
            let seed = u8::try_from(number).expect("few");
            let counters = counters(&format!("member-{number}"), seed);
            let stream = StreamId {
                sender: counters.sender(),
                start: 1,
            };
            let returns = OneWayReturn {
                seal: OneWaySeal::new(&key, stream).expect("a key"),
                path: None,
                rng: Rng::from_seed(5_000 + number as u64),
            };
            Member {
                machine: Strict::new(OneWayReceiver::with_return(key.clone(), returns)),
                counters,
                rng: Rng::from_seed(7_000 + number as u64),
                symbols: BTreeMap::new(),
                is_whole: false,
            }
        };
        Self {
            now: Instant::START,
            sender: Strict::new(OneWaySender::new(plan, sent.layout, seal, symbols)),
            counters: own,
            rng: Rng::from_seed(6_000),
            members: (1..=count).map(member).collect(),
            loss,
            under_way: BTreeMap::new(),
            number: 0,
            is_over: false,
            request_octets: 0,
        }
    }

    /// Hands a datagram of `from` to all others that do not lose it.
    fn spread(&mut self, from: usize, octets: Vec<u8>) {
        let octets = Rc::new(octets);
        for to in (0..=self.members.len()).filter(|&to| to != from) {
            let rng = match to.checked_sub(1) {
                Some(member) => &mut self.members[member].rng,
                None => &mut self.rng,
            };
            if !rng.chance(self.loss) {
                self.number += 1;
                let at = (self.now + DELAY, self.number);
                self.under_way.insert(at, (to, Rc::clone(&octets)));
            }
        }
    }

    fn drain_sender(&mut self) {
        loop {
            while let Some(event) = self.sender.poll_event() {
                match event {
                    OneWaySendEvent::NeedsCounters => {
                        let counters = self.counters.reserve().expect("there are some");
                        self.sender.app().grant(counters);
                    }
                    OneWaySendEvent::Finished => self.is_over = true,
                    OneWaySendEvent::Failed(error) => panic!("{error}"),
                }
            }
            let mut octets = Vec::new();
            match self.sender.poll_transmit(self.now, &mut octets) {
                Some(_) => self.spread(0, octets),
                None => return,
            }
        }
    }

    fn drain_member(&mut self, index: usize) {
        loop {
            let member = &mut self.members[index];
            while let Some(event) = member.machine.poll_event() {
                match event {
                    OneWayEvent::NeedsCounters => {
                        let counters = member.counters.reserve().expect("there are some");
                        member.machine.app().grant(counters);
                    }
                    OneWayEvent::Symbol(_, block, unit, octets) => {
                        member.symbols.insert((block, unit), octets);
                    }
                    OneWayEvent::Whole(_) => member.is_whole = true,
                    OneWayEvent::Announced(_)
                    | OneWayEvent::Ended(_)
                    | OneWayEvent::SetAside(_) => {}
                }
            }
            let mut octets = Vec::new();
            match member.machine.poll_transmit(self.now, &mut octets) {
                Some(transmit) => {
                    assert_eq!(transmit.path, PathId(0), "a stranger steered a request");
                    self.request_octets += octets.len() as u64 + 28;
                    self.spread(index + 1, octets);
                }
                None => return,
            }
        }
    }

    fn run(&mut self) -> OneWaySent {
        self.drain_sender();
        for index in 0..self.members.len() {
            self.drain_member(index);
        }
        while !self.is_over {
            let arrival = self.under_way.keys().next().map(|(at, _)| *at);
            let own = self.sender.next_deadline().map(|deadline| deadline.at);
            let others = self.members.iter();
            let others = others.filter_map(|member| Some(member.machine.next_deadline()?.at));
            let next = others
                .chain(own)
                .chain(arrival)
                .min()
                .expect("it is not over");
            self.now = self.now.max(next);
            while let Some(entry) = self.under_way.first_entry()
                && entry.key().0 <= self.now
            {
                let (to, octets) = entry.remove();
                let datagram = Datagram {
                    path: PathId(0),
                    octets: &octets,
                    ecn: Ecn::NotCapable,
                };
                if let Some(member) = to.checked_sub(1) {
                    self.members[member]
                        .machine
                        .handle_datagram(self.now, datagram);
                    self.drain_member(member);
                    let stranger = Datagram {
                        path: PathId(9),
                        octets: &[0x72],
                        ecn: Ecn::NotCapable,
                    };
                    self.members[member]
                        .machine
                        .handle_datagram(self.now, stranger);
                    self.drain_member(member);
                } else {
                    self.sender.handle_datagram(self.now, datagram);
                    self.drain_sender();
                }
            }
            if own.is_some_and(|at| at <= self.now) {
                self.sender.handle_deadline(self.now);
                self.drain_sender();
            }
            for index in 0..self.members.len() {
                let due = self.members[index].machine.next_deadline();
                if due.is_some_and(|due| due.at <= self.now) {
                    self.members[index].machine.handle_deadline(self.now);
                    self.drain_member(index);
                }
            }
        }
        self.sender.inner().sent()
    }
}

/// Fifty receivers at 10 % loss; `ahead` is the loss for which half of them need no more than the first round.
fn fifty(ahead: f64) -> (f64, u64, u64) {
    let place = tempfile::tempdir().expect("a directory");
    let sent = Sent::new(2_000_000, symbol_bytes_in(1_472));
    let mut world = World::new(&sent, 50, 0.1, share(ahead), place.path());
    let told = world.run();
    for member in &world.members {
        assert!(member.is_whole);
        let block = sent.layout.block(0).expect("it has one");
        let mut decoder = LongBlockDecoder::new(block);
        for (&(_, unit), octets) in &member.symbols {
            decoder.add(unit.into(), octets).expect("it is needed");
        }
        assert_eq!(decoder.needed(), 0);
    }
    let one = &world.members[17];
    let mut decoder = LongBlockDecoder::new(sent.layout.block(0).expect("it has one"));
    for (&(_, unit), octets) in &one.symbols {
        decoder.add(unit.into(), octets).expect("it is needed");
    }
    let mut rebuilt = decoder.rebuild().expect("there are enough");
    rebuilt.truncate(sent.octets.len());
    assert!(rebuilt == *sent.octets, "other octets");
    let requests = world
        .members
        .iter()
        .map(|member| member.machine.inner().requests())
        .sum();
    let octets = told.octets.0 + world.request_octets;
    println!(
        "ahead {ahead}: {:.4} for each, {requests} requests, {} heard, {told:?}",
        octets as f64 / 2e6,
        told.requests
    );
    (octets as f64 / 2e6, requests, told.requests)
}

#[test]
fn fifty_receivers_that_lose_a_tenth_take_less_than_1_5_octets_for_each_and_few_of_them_ask() {
    for ahead in [0.1, 0.0] {
        let (of_each, requests, _) = fifty(ahead);
        assert!(of_each <= 1.5, "{of_each} octets for each");
        assert!(requests <= 60, "{requests} requests");
    }
}
