//! A peer that speaks AeroTP soundly and the splice wrongly: any records in any order on many connections.
//! No panic, no more memory than promised, and every flow ends.

#![no_main]

use arbitrary::Arbitrary;
use core::net::SocketAddr;
use fulmar_proto::machine::{Datagram, MachineDriver, Ecn, Machine, PathId, Strict, Transmit, drain};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::records::{Accepted, Delivered, Hearer, MessageRecord, Open, SpliceRecord};
use fulmar_proto::splice::{
    ClassId, Destination, FlowEvent, FlowId, FlowKind, RefuseCode, ResetCode, Splicer,
    SplicerConfig,
};
use fulmar_proto::transport::aerotp::{
    ConnectionConfig, ConnectionId, AerotpEndpoint, EndpointConfig, Event, RateSource,
};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use fulmar_proto::wire::aerotp::FecStrength;
use fulmar_proto::wire::{Mode, Port};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;

#[derive(Arbitrary, Debug)]
struct Plan {
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Connect {
        mode: u8,
    },
    Open {
        on: u8,
        open: OpenPlan,
    },
    Data {
        on: u8,
        octets: u16,
    },
    End {
        on: u8,
        total: u64,
    },
    Accepted {
        on: u8,
        received: u64,
        limit: u64,
    },
    Delivered {
        on: u8,
        offset: u64,
        limit: u64,
    },
    Refused {
        on: u8,
        code: u8,
    },
    Reset {
        on: u8,
        code: u8,
    },
    Finished {
        on: u8,
    },
    Stop {
        on: u8,
    },
    Message {
        on: u8,
        number: u8,
        index: u8,
        last: u8,
        octets: u8,
    },
    Flow {
        on: u8,
        flow: u8,
    },
    Octets {
        on: u8,
        octets: Vec<u8>,
    },
    Close {
        on: u8,
    },
    Abort {
        on: u8,
    },
    Answer {
        flow: u8,
        connects: bool,
    },
    Read {
        flow: u8,
        octets: u16,
    },
    Say {
        flow: u8,
        octets: u16,
    },
    Finish {
        flow: u8,
    },
    Cut {
        flow: u8,
    },
    Own {
        datagrams: bool,
        mode: u8,
    },
    Restarted,
    Wait {
        milliseconds: u16,
    },
    Hold {
        held: bool,
    },
}

#[derive(Arbitrary, Debug)]
struct OpenPlan {
    flow: u8,
    attempt: u64,
    flags: u8,
    window: u32,
    presumed: u32,
    received: u64,
    limit: u64,
    kept_from: u64,
}

const PEER: PathId = PathId(0);

fn mode(number: u8) -> Mode {
    Mode::ALL[usize::from(number) % Mode::ALL.len()]
}

/// The side under test, and its requests to its driver.
struct Gateway {
    out: Vec<Vec<u8>>,
    buffer: Vec<u8>,
    known: BTreeSet<FlowId>,
}

impl MachineDriver<Strict<Splicer>> for Gateway {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }
    fn send(&mut self, _now: Instant, _transmit: Transmit) {
        self.out.push(self.buffer.clone());
    }
    fn deliver(&mut self, _now: Instant, _machine: &mut Strict<Splicer>, event: FlowEvent) {
        match event {
            FlowEvent::Requested { flow, .. } => {
                assert!(self.known.insert(flow), "a name that is in use");
            }
            FlowEvent::Refused { flow, .. }
            | FlowEvent::Reset { flow, .. }
            | FlowEvent::Closed(flow) => {
                assert!(self.known.remove(&flow), "one last word");
            }
            other => assert!(self.known.contains(&other.flow()), "{other:?}"),
        }
    }
}

/// The hostile side.
#[derive(Default)]
struct Peer {
    out: Vec<Vec<u8>>,
    buffer: Vec<u8>,
    connections: Vec<ConnectionId>,
}

impl MachineDriver<Strict<AerotpEndpoint>> for Peer {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }
    fn send(&mut self, _now: Instant, _transmit: Transmit) {
        self.out.push(self.buffer.clone());
    }
    fn deliver(&mut self, now: Instant, machine: &mut Strict<AerotpEndpoint>, event: Event) {
        match event {
            Event::Incoming { id, .. } => self.connections.push(id),
            Event::Readable(id) => while machine.app().read(now, id).is_some() {},
            _ => {}
        }
    }
}

struct World {
    now: Instant,
    splicer: Strict<Splicer>,
    gateway: Gateway,
    endpoint: Strict<AerotpEndpoint>,
    peer: Peer,
}

impl World {
    /// Carries datagrams across, until there are none.
    fn settle(&mut self) {
        for _ in 0..64 {
            drain(&mut self.splicer, self.now, &mut self.gateway);
            drain(&mut self.endpoint, self.now, &mut self.peer);
            let (there, back) = (
                core::mem::take(&mut self.peer.out),
                core::mem::take(&mut self.gateway.out),
            );
            if there.is_empty() && back.is_empty() {
                return;
            }
            let datagram = |octets| Datagram {
                path: PEER,
                octets,
                ecn: Ecn::Capable,
            };
            for octets in &there {
                self.splicer.handle_datagram(self.now, datagram(octets));
                drain(&mut self.splicer, self.now, &mut self.gateway);
            }
            for octets in &back {
                self.endpoint.handle_datagram(self.now, datagram(octets));
                drain(&mut self.endpoint, self.now, &mut self.peer);
            }
        }
    }

    fn wait(&mut self, span: Duration) {
        self.settle();
        self.now += span;
        for _ in 0..64 {
            let mut woke = false;
            if self
                .splicer
                .next_deadline()
                .is_some_and(|d| d.at <= self.now)
            {
                self.splicer.handle_deadline(self.now);
                woke = true;
            }
            if self
                .endpoint
                .next_deadline()
                .is_some_and(|d| d.at <= self.now)
            {
                self.endpoint.handle_deadline(self.now);
                woke = true;
            }
            self.settle();
            if !woke {
                return;
            }
        }
    }

    /// Whether nothing of any flow is left.
    fn is_over(&self) -> bool {
        let splicer = self.splicer.inner();
        splicer.entry_count() == 0
            && splicer.counters().credit_reserved == 0
            && self.gateway.known.is_empty()
    }

    fn say(&mut self, on: u8, record: &SpliceRecord<'_>) {
        let mut octets = Vec::new();
        record.encode(&mut octets);
        self.put(on, &octets);
    }

    fn put(&mut self, on: u8, octets: &[u8]) {
        let count = self.peer.connections.len();
        let Some(id) = self
            .peer
            .connections
            .get(usize::from(on) % count.max(1))
            .copied()
        else {
            return;
        };
        // In modes of whole records one write is one TPDU.
        if self
            .endpoint
            .app()
            .write_message(self.now, id, octets)
            .is_err()
        {
            let _ = self.endpoint.app().write(self.now, id, octets);
        }
        self.settle();
    }

    fn flow(&self, index: u8) -> Option<FlowId> {
        let count = self.gateway.known.len().max(1);
        self.gateway
            .known
            .iter()
            .nth(usize::from(index) % count)
            .copied()
    }
}

fn config() -> SplicerConfig {
    let mut config = SplicerConfig {
        ports: 1,
        flows_max: 8,
        receive_memory: ByteCount(1 << 20),
        first_credit: ByteCount(32 << 10),
        answer_within: Duration::from_secs(30),
        stream_idle_max: Duration::from_secs(300),
        datagram_idle_max: Duration::from_secs(60),
        resume_within: Duration::from_secs(100),
        ..SplicerConfig::default()
    };
    config.connection.give_up_after = Duration::from_secs(60);
    config
}

fuzz_target!(|plan: Plan| {
    let endpoint = EndpointConfig {
        rate: RateSource::Told(Bitrate::from_bits_per_second(1_000_000_000)),
        connections_max: 64,
        ..EndpointConfig::default()
    };
    let splicer = Splicer::new(
        config(),
        AerotpEndpoint::new(endpoint, Rng::from_seed(1)),
        Rng::from_seed(2),
    );
    let mut hostile = AerotpEndpoint::new(endpoint, Rng::from_seed(3));
    hostile
        .listen(config().port, ConnectionConfig::default())
        .expect("sound");
    let mut world = World {
        now: Instant::START,
        splicer: Strict::new(splicer.expect("sound")),
        gateway: Gateway {
            out: Vec::new(),
            buffer: Vec::new(),
            known: BTreeSet::new(),
        },
        endpoint: Strict::new(hostile),
        peer: Peer::default(),
    };
    world.settle();
    for step in plan.steps.iter().take(200) {
        act(&mut world, step);
        let reserved = world.splicer.inner().counters().credit_reserved;
        assert!(reserved <= 1 << 20, "{reserved}");
        assert!(world.splicer.inner().counters().flows_now <= 8);
    }
    // The peer falls silent: every flow that it began ends.
    for id in core::mem::take(&mut world.peer.connections) {
        world.endpoint.app().abort(world.now, id);
    }
    for _ in 0..200 {
        if world.is_over() {
            break;
        }
        world.wait(Duration::from_secs(10));
    }
    assert_eq!(world.splicer.inner().entry_count(), 0);
    assert_eq!(world.splicer.inner().counters().credit_reserved, 0);
    assert!(world.gateway.known.is_empty(), "each flow had a last word");
});

fn act(world: &mut World, step: &Step) {
    let now = world.now;
    match step {
        Step::Connect { mode: number } => {
            let config = ConnectionConfig {
                mode: mode(*number),
                ..ConnectionConfig::default()
            };
            let port = Port(config_port());
            if let Ok(id) = world.endpoint.app().connect(now, PEER, port, config) {
                world.peer.connections.push(id);
            }
        }
        Step::Open { on, open } => world.say(*on, &SpliceRecord::Open(Box::new(open.record()))),
        Step::Data { on, octets } => {
            let octets = vec![7; usize::from(*octets).max(1)];
            for part in octets.chunks(1_300) {
                world.say(*on, &SpliceRecord::Data(part));
            }
        }
        Step::End { on, total } => world.say(*on, &SpliceRecord::End { total: *total }),
        Step::Accepted {
            on,
            received,
            limit,
        } => {
            let accepted = Accepted {
                received: *received,
                limit: *limit,
                bound: SocketAddr::from(([192, 0, 2, 1], 80)),
            };
            world.say(*on, &SpliceRecord::Accepted(accepted));
        }
        Step::Delivered { on, offset, limit } => {
            let (offset, limit) = (*offset, *limit);
            world.say(*on, &SpliceRecord::Delivered(Delivered { offset, limit }));
        }
        Step::Refused { on, code } => {
            world.say(*on, &SpliceRecord::Refused(RefuseCode::from_number(*code)));
        }
        Step::Reset { on, code } => world.say(*on, &SpliceRecord::Reset(ResetCode::from_number(*code))),
        Step::Finished { on } => world.say(*on, &SpliceRecord::Finished),
        Step::Stop { on } => world.say(*on, &SpliceRecord::Stop),
        Step::Message {
            on,
            number,
            index,
            last,
            octets,
        } => {
            let message = MessageRecord {
                number: u32::from(*number),
                stamp: now.as_wrapping_micros(),
                index: (*index).min(*last),
                last: *last,
                octets: &vec![3; usize::from(*octets)],
            };
            world.say(*on, &SpliceRecord::Message(message));
        }
        Step::Flow { on, flow } => world.say(*on, &SpliceRecord::Flow(name(*flow))),
        Step::Octets { on, octets } => world.put(*on, octets),
        Step::Close { on } | Step::Abort { on } => {
            let count = world.peer.connections.len().max(1);
            if let Some(id) = world.peer.connections.get(usize::from(*on) % count) {
                match step {
                    Step::Close { .. } => world.endpoint.app().close(now, *id),
                    _ => world.endpoint.app().abort(now, *id),
                }
            }
        }
        Step::Answer { flow, connects } => {
            if let Some(id) = world.flow(*flow) {
                if *connects {
                    let bound = SocketAddr::from(([10, 0, 0, 1], 80));
                    world.splicer.app().connected(now, id, bound);
                } else if world.splicer.inner().flows().any(|flow| flow == id) {
                    world.splicer.app().refused(now, id, RefuseCode::Refused);
                    if world.splicer.inner().flows().all(|flow| flow != id) {
                        world.gateway.known.remove(&id);
                    }
                }
            }
        }
        Step::Read { flow, octets } => {
            if let Some(id) = world.flow(*flow) {
                let splicer = world.splicer.app();
                let len = splicer.peek(id).map_or(0, <[u8]>::len);
                splicer.consume(now, id, len.min(usize::from(*octets)));
                splicer.delivered(now, id, u64::from(*octets));
                splicer.poll_datagram(now, id);
            }
        }
        Step::Say { flow, octets } => {
            if let Some(id) = world.flow(*flow) {
                let octets = vec![9; usize::from(*octets)];
                let room = world.splicer.inner().capacity(id);
                let taken = world.splicer.app().accept(now, id, &octets);
                assert!(taken <= room);
                world.splicer.app().accept_datagram(now, id, &octets);
            }
        }
        Step::Finish { flow } => {
            if let Some(id) = world.flow(*flow) {
                world.splicer.app().finish(now, id);
                if world.splicer.inner().flows().all(|flow| flow != id) {
                    world.gateway.known.remove(&id);
                }
            }
        }
        Step::Cut { flow } => {
            if let Some(id) = world.flow(*flow) {
                world.splicer.app().reset(now, id, ResetCode::Reset);
                world.gateway.known.remove(&id);
            }
        }
        Step::Own {
            datagrams,
            mode: number,
        } => {
            let kind = if *datagrams {
                FlowKind::Datagrams
            } else {
                FlowKind::Stream
            };
            let class = fulmar_proto::splice::FlowClass {
                mode: mode(*number),
                resume: number % 2 == 0 && !datagrams,
                ..Default::default()
            };
            let there = Destination::from(SocketAddr::from(([192, 0, 2, 1], 7)));
            let opened = world.splicer.app().open(now, PEER, kind, there, class);
            if let Ok(id) = opened {
                world.gateway.known.insert(id);
            }
        }
        Step::Restarted => world.splicer.app().peer_restarted(now, PEER),
        Step::Hold { held } => world.splicer.app().hold(now, PEER, *held),
        Step::Wait { milliseconds } => {
            world.wait(Duration::from_millis(u64::from(*milliseconds)));
        }
    }
    world.settle();
}

fn config_port() -> u16 {
    config().port.0
}

fn name(number: u8) -> FlowId {
    FlowId([number % 4 + 1; 16])
}

impl OpenPlan {
    fn record(&self) -> Open {
        let flag = |bit: u8| self.flags & (1 << bit) != 0;
        Open {
            flow: name(self.flow),
            attempt: self.attempt,
            kind: if flag(0) {
                FlowKind::Datagrams
            } else {
                FlowKind::Stream
            },
            resume: flag(1),
            durable: flag(6),
            again: flag(2).then_some(match self.attempt % 4 {
                0 => Hearer::Present,
                1 => Hearer::Earlier,
                2 => Hearer::Unknown,
                _ => Hearer::Answered,
            }),
            refresh: flag(3),
            farewell: flag(4),
            priority: Default::default(),
            class: ClassId(self.flags),
            weight: 1,
            fec_words: FecStrength::NONE,
            block: None,
            deadline: flag(5).then(|| Duration::from_millis(20)),
            window: self.window,
            presumed: self.presumed,
            received: self.received,
            limit: self.limit,
            kept_from: self.kept_from,
            destination: Destination::from(SocketAddr::from(([192, 0, 2, 1], 9))),
        }
    }
}
