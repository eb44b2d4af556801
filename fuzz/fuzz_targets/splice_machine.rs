//! Two splicers under an arbitrary list of operations: whatever the medium, the applications and restarts
//! do, neither panics, and the octets read of a stream are a prefix of those that its far side sends.

#![no_main]

use arbitrary::Arbitrary;
use core::net::SocketAddr;
use fulmar_proto::machine::{Datagram, MachineDriver, Ecn, Machine, PathId, Strict, Transmit, drain};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{
    Destination, FlowClass, FlowEvent, FlowId, FlowKind, RefuseCode, ResetCode, Restored, Role,
    Splicer, SplicerConfig,
};
use fulmar_proto::transport::aerotp::{AerotpEndpoint, EndpointConfig, RateSource};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use fulmar_proto::wire::Mode;
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, VecDeque};

#[derive(Arbitrary, Debug)]
struct Plan {
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Open {
        mode: u8,
        resume: bool,
        datagrams: bool,
        window: u16,
    },
    Answer {
        flow: u8,
        connects: bool,
    },
    Say {
        side: bool,
        flow: u8,
        octets: u16,
    },
    Read {
        side: bool,
        flow: u8,
        octets: u16,
        acknowledged: bool,
    },
    Finish {
        side: bool,
        flow: u8,
    },
    Cut {
        side: bool,
        flow: u8,
    },
    Restart {
        side: bool,
    },
    Deliver {
        forward: bool,
    },
    DeliverAll,
    Duplicate {
        forward: bool,
    },
    Lose {
        forward: bool,
    },
    Overtake {
        forward: bool,
    },
    Damage {
        forward: bool,
        bit: u16,
    },
    Wait {
        milliseconds: u16,
    },
    Hold {
        side: bool,
        held: bool,
    },
}

const PEER: PathId = PathId(0);

/// The octet at `offset` of those that `side` sends in any flow.
fn octet(side: usize, offset: u64) -> u8 {
    (offset.wrapping_mul(31) >> 3) as u8 ^ side as u8
}

/// One flow's driver at one side.
#[derive(Clone, Debug)]
struct App {
    role: Role,
    class: FlowClass,
    kind: FlowKind,
    bound: Option<SocketAddr>,
    accepted: u64,
    most: u64,
    finished: bool,
    received: u64,
    /// The received octets that the local host has acknowledged.
    acknowledged: u64,
    /// The sent octets that the far host has acknowledged.
    delivered: u64,
}

impl App {
    fn new(role: Role, kind: FlowKind, class: FlowClass) -> Self {
        Self {
            role,
            class,
            kind,
            bound: None,
            accepted: 0,
            most: 0,
            finished: false,
            received: 0,
            acknowledged: 0,
            delivered: 0,
        }
    }
}

#[derive(Default)]
struct Gateway {
    apps: BTreeMap<FlowId, App>,
    buffer: Vec<u8>,
    out: VecDeque<Vec<u8>>,
    over: Vec<FlowId>,
}

impl MachineDriver<Strict<Splicer>> for Gateway {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }
    fn send(&mut self, _now: Instant, _transmit: Transmit) {
        if self.out.len() < 512 {
            self.out.push_back(self.buffer.clone());
        }
    }
    fn deliver(&mut self, now: Instant, machine: &mut Strict<Splicer>, event: FlowEvent) {
        let id = event.flow();
        match event {
            FlowEvent::Requested { kind, class, .. } => {
                if class.resume && self.over.contains(&id) {
                    machine.app().refused(now, id, RefuseCode::Forgotten);
                    return;
                }
                self.apps.insert(id, App::new(Role::Acceptor, kind, class));
            }
            FlowEvent::Connected { bound, .. } => {
                self.apps.get_mut(&id).expect("known").bound = Some(bound);
            }
            FlowEvent::Delivered { offset, .. } => {
                let app = self.apps.get_mut(&id).expect("known");
                assert!(app.delivered < offset && offset <= app.most);
                app.delivered = offset;
            }
            FlowEvent::Resume { from, .. } => {
                let app = self.apps.get_mut(&id).expect("known");
                assert!(app.class.resume && (app.delivered..=app.most).contains(&from));
                app.accepted = from;
            }
            FlowEvent::Refused { .. } | FlowEvent::Reset { .. } | FlowEvent::Closed(_) => {
                let app = self.apps.remove(&id).expect("one last word");
                if matches!(event, FlowEvent::Closed(_)) && app.kind == FlowKind::Stream {
                    assert!(app.finished && app.delivered == app.most);
                }
                self.over.push(id);
            }
            FlowEvent::Readable(_)
            | FlowEvent::Writable(_)
            | FlowEvent::PeerFinished(_)
            | FlowEvent::Stopped(_) => {
                assert!(self.apps.contains_key(&id), "{event:?}");
            }
        }
    }
}

struct End {
    machine: Strict<Splicer>,
    gateway: Gateway,
    starts: u32,
}

impl End {
    fn new(side: u32, starts: u32) -> Self {
        let endpoint = EndpointConfig {
            rate: RateSource::Told(Bitrate::from_bits_per_second(1_000_000)),
            ..EndpointConfig::default()
        };
        let mut config = SplicerConfig {
            incarnation: starts,
            ports: 1,
            flows_max: 16,
            receive_memory: ByteCount(1 << 20),
            first_credit: ByteCount(8 << 10),
            ..SplicerConfig::default()
        };
        config.connection.give_up_after = Duration::from_secs(120);
        config.connection.tpdu_bytes_max = 300;
        let seed = u64::from(side) + 2 * u64::from(starts);
        let rng = Rng::from_seed(seed);
        let splicer = Splicer::new(
            config,
            AerotpEndpoint::new(endpoint, rng.child("ports")),
            rng.child("flows"),
        );
        Self {
            machine: Strict::new(splicer.expect("sound")),
            gateway: Gateway::default(),
            starts,
        }
    }

    fn settle(&mut self, now: Instant) {
        drain(&mut self.machine, now, &mut self.gateway);
    }

    fn take(&mut self, now: Instant, octets: &[u8]) {
        let datagram = Datagram {
            path: PEER,
            octets,
            ecn: Ecn::NotCapable,
        };
        self.machine.handle_datagram(now, datagram);
        self.settle(now);
    }

    fn wake(&mut self, now: Instant) {
        for _ in 0..64 {
            match self.machine.next_deadline() {
                Some(deadline) if deadline.at <= now => self.machine.handle_deadline(now),
                _ => return,
            }
            self.settle(now);
        }
    }

    fn flow(&self, index: u8) -> Option<FlowId> {
        let count = self.gateway.apps.len().max(1);
        self.gateway
            .apps
            .keys()
            .nth(usize::from(index) % count)
            .copied()
    }

    fn say(&mut self, now: Instant, side: usize, id: FlowId, len: u64) {
        let splicer = self.machine.app();
        let app = self.gateway.apps.get_mut(&id).expect("chosen from it");
        if app.kind == FlowKind::Datagrams {
            let message = vec![side as u8; len as usize];
            splicer.accept_datagram(now, id, &message);
            return;
        }
        // After a resumption the application sends again what it has sent, and no more.
        let end = if app.finished {
            app.most
        } else {
            app.accepted + len
        };
        let octets: Vec<u8> = (app.accepted..end).map(|at| octet(side, at)).collect();
        assert_eq!(splicer.accepted_offset(id), Some(app.accepted));
        app.accepted += splicer.accept(now, id, &octets) as u64;
        app.most = app.most.max(app.accepted);
    }

    fn read(&mut self, now: Instant, side: usize, id: FlowId, most: usize, acknowledged: bool) {
        let splicer = self.machine.app();
        let app = self.gateway.apps.get_mut(&id).expect("chosen from it");
        if let Some(message) = splicer.poll_datagram(now, id) {
            assert!(message.iter().all(|octet| usize::from(*octet) == 1 - side));
        }
        let octets = splicer.peek(id).unwrap_or_default();
        let octets = &octets[..octets.len().min(most)];
        for got in octets {
            assert_eq!(*got, octet(1 - side, app.received), "at {}", app.received);
            app.received += 1;
        }
        let len = octets.len();
        splicer.consume(now, id, len);
        if acknowledged {
            app.acknowledged = app.received;
        }
        splicer.delivered(now, id, app.acknowledged);
    }

    /// The end after a restart of its gateway, with everything that a driver that keeps everything hands
    /// on.
    fn restarted(self, side: usize, now: Instant) -> Self {
        let mut new = Self::new(side as u32, self.starts + 1);
        new.gateway.over = self.gateway.over;
        for (id, app) in self.gateway.apps {
            if !app.class.resume {
                continue;
            }
            let restored = Restored {
                flow: id,
                peer: PEER,
                role: app.role,
                destination: there(),
                class: app.class,
                bound: app.bound,
                received: app.received,
                kept_from: app.delivered,
                accepted: app.most,
            };
            let splicer = new.machine.app();
            splicer.restore(now, restored).expect("as many as before");
            if app.finished {
                splicer.finish(now, id);
            }
            let mut app = app;
            app.accepted = app.most;
            new.gateway.apps.insert(id, app);
        }
        new
    }
}

fn there() -> Destination {
    Destination::from(SocketAddr::from(([192, 0, 2, 1], 7)))
}

fuzz_target!(|plan: Plan| {
    let mut now = Instant::START;
    let mut ends = [End::new(0, 0), End::new(1, 0)];
    for step in plan.steps.iter().take(400) {
        act(&mut ends, &mut now, step);
    }
});

fn act(ends: &mut [End; 2], now: &mut Instant, step: &Step) {
    let from = |forward: bool| usize::from(!forward);
    match step {
        Step::Open {
            mode,
            resume,
            datagrams,
            window,
        } => {
            let complete = [Mode::Reliable, Mode::NearReliable, Mode::HybridNackMack];
            let (kind, modes) = if *datagrams {
                (FlowKind::Datagrams, &Mode::ALL[..])
            } else {
                (FlowKind::Stream, &complete[..])
            };
            let class = FlowClass {
                mode: modes[usize::from(*mode) % modes.len()],
                resume: *resume && !datagrams,
                durable: *resume && !datagrams,
                window: ByteCount(u64::from(*window).max(1)),
                ..FlowClass::default()
            };
            let opened = ends[0].machine.app().open(*now, PEER, kind, there(), class);
            if let Ok(id) = opened {
                let app = App::new(Role::Opener, kind, class);
                ends[0].gateway.apps.insert(id, app);
            }
            ends[0].settle(*now);
        }
        Step::Answer { flow, connects } => {
            let end = &mut ends[1];
            let Some(id) = end.flow(*flow) else { return };
            let app = end.gateway.apps.get_mut(&id).expect("chosen from it");
            if app.bound.is_some() {
                return;
            }
            if *connects {
                let bound = SocketAddr::from(([10, 0, 0, 1], 7));
                app.bound = Some(bound);
                end.machine.app().connected(*now, id, bound);
            } else {
                end.machine.app().refused(*now, id, RefuseCode::Refused);
                end.gateway.apps.remove(&id);
                end.gateway.over.push(id);
            }
            end.settle(*now);
        }
        Step::Say { side, flow, octets } => {
            let side = usize::from(*side);
            if let Some(id) = ends[side].flow(*flow) {
                ends[side].say(*now, side, id, u64::from(*octets));
                ends[side].settle(*now);
            }
        }
        Step::Read {
            side,
            flow,
            octets,
            acknowledged,
        } => {
            let side = usize::from(*side);
            if let Some(id) = ends[side].flow(*flow) {
                ends[side].read(*now, side, id, usize::from(*octets), *acknowledged);
                ends[side].settle(*now);
            }
        }
        Step::Finish { side, flow } | Step::Cut { side, flow } => {
            let end = &mut ends[usize::from(*side)];
            let Some(id) = end.flow(*flow) else { return };
            let app = end.gateway.apps.get_mut(&id).expect("chosen from it");
            let over = matches!(step, Step::Cut { .. }) || app.kind == FlowKind::Datagrams;
            // Octets that have to be sent again come before the end.
            if !over && app.accepted < app.most {
                return;
            }
            app.finished = true;
            match step {
                Step::Finish { .. } => end.machine.app().finish(*now, id),
                _ => end.machine.app().reset(*now, id, ResetCode::Reset),
            }
            if over {
                end.gateway.apps.remove(&id);
                end.gateway.over.push(id);
            }
            end.settle(*now);
        }
        Step::Restart { side } => {
            let side = usize::from(*side);
            // Sessions end with a gateway's start: no datagram from before is opened after it.
            let old = core::mem::replace(&mut ends[side], End::new(2, 0));
            ends[side] = old.restarted(side, *now);
            ends[side].settle(*now);
            let far = &mut ends[1 - side];
            far.gateway.out.clear();
            far.machine.app().peer_restarted(*now, PEER);
            far.settle(*now);
        }
        Step::Deliver { forward } | Step::Damage { forward, .. } => {
            let side = from(*forward);
            if let Some(mut datagram) = ends[side].gateway.out.pop_front() {
                if let Step::Damage { bit, .. } = step {
                    let bit = usize::from(*bit) % (datagram.len() * 8);
                    datagram[bit / 8] ^= 1 << (bit % 8);
                }
                ends[1 - side].take(*now, &datagram);
            }
        }
        Step::DeliverAll => {
            for _ in 0..16 {
                for side in 0..2 {
                    for datagram in core::mem::take(&mut ends[side].gateway.out) {
                        ends[1 - side].take(*now, &datagram);
                    }
                }
            }
        }
        Step::Duplicate { forward } => {
            let side = from(*forward);
            if let Some(datagram) = ends[side].gateway.out.front().cloned() {
                ends[1 - side].take(*now, &datagram);
            }
        }
        Step::Lose { forward } => {
            ends[from(*forward)].gateway.out.pop_front();
        }
        Step::Overtake { forward } => {
            let out = &mut ends[from(*forward)].gateway.out;
            if let Some(front) = out.pop_front() {
                out.push_back(front);
            }
        }
        Step::Hold { side, held } => {
            let side = usize::from(*side);
            ends[side].machine.app().hold(*now, PEER, *held);
            ends[side].settle(*now);
        }
        Step::Wait { milliseconds } => {
            *now += Duration::from_millis(u64::from(*milliseconds));
            ends[0].wake(*now);
            ends[1].wake(*now);
        }
    }
}
