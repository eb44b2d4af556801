//! Random sessions of two TCPs over a path that loses, damages, doubles and reorders: what was
//! written comes out, once, in order, and both ends close.

use fulmar_proto::machine::{
    Datagram, Deadline, Driver, Ecn, Machine, PathId, Strict, Transmit, drain,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::tcp::{
    Algorithm, Preset, TcpCloseReason, TcpConfig, TcpConnectionId, TcpEndpoint, TcpEndpointConfig,
    TcpEvent,
};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_proto::wire::aerotp::Port;
use fulmar_proto::wire::network::NodeAddress;
use std::collections::BTreeMap;

struct Side {
    machine: Strict<TcpEndpoint>,
    app: App,
    deadline: Option<Deadline>,
}

#[derive(Default)]
struct App {
    id: Option<TcpConnectionId>,
    to_write: Vec<u8>,
    written: usize,
    received: Vec<u8>,
    closed: Option<TcpCloseReason>,
    out: Vec<u8>,
    sent: Vec<Vec<u8>>,
}

impl App {
    fn write(&mut self, machine: &mut TcpEndpoint) {
        let Some(id) = self.id else { return };
        while self.written < self.to_write.len() {
            let rest = &self.to_write[self.written..];
            let taken = machine.write(id, rest).expect("open");
            self.written += taken;
            if taken == 0 {
                return;
            }
        }
        machine.close(id);
    }
}

impl Driver<Strict<TcpEndpoint>> for App {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }
    fn send(&mut self, _now: Instant, transmit: Transmit) {
        assert_eq!(self.out.len(), transmit.len);
        self.sent.push(core::mem::take(&mut self.out));
    }
    fn deliver(&mut self, _now: Instant, machine: &mut Strict<TcpEndpoint>, event: TcpEvent) {
        let machine = machine.app();
        match event {
            TcpEvent::Incoming { id, .. } => {
                self.id = Some(id);
                self.write(machine);
            }
            TcpEvent::Connected(_) | TcpEvent::Writable(_) => self.write(machine),
            TcpEvent::Readable(id) => {
                while let Some(chunk) = machine.read(id) {
                    self.received.extend_from_slice(&chunk);
                    machine.recycle(id, chunk);
                }
            }
            TcpEvent::PeerFinished(_) => {}
            TcpEvent::Closed { why, .. } => self.closed = Some(why),
        }
    }
}

/// What the path does, in shares of the segments.
#[derive(Clone, Copy, Debug)]
struct Faults {
    loss: f64,
    damage: f64,
    double: f64,
    reorder: f64,
}

fn below(rng: &mut Rng, bound: u64) -> usize {
    usize::try_from(rng.below(bound)).expect("small")
}

fn config(rng: &mut Rng) -> TcpConfig {
    let (_, preset) = Preset::ALL[below(rng, 5)];
    let mut config = preset.config();
    let mut flip = |field: &mut bool| *field ^= rng.chance(0.3);
    flip(&mut config.recovery.sack);
    flip(&mut config.recovery.frto);
    flip(&mut config.recovery.limited_transmit);
    flip(&mut config.recovery.rescue);
    flip(&mut config.recovery.rate_reduction);
    flip(&mut config.growth.at_recovery_end);
    flip(&mut config.timestamps);
    flip(&mut config.window_scaling);
    flip(&mut config.ecn);
    flip(&mut config.nagle);
    flip(&mut config.growth.validation);
    let algorithms = [Algorithm::NewReno, Algorithm::Cubic, Algorithm::None];
    config.growth.algorithm = algorithms[below(rng, 3)];
    config.mss = u16::try_from(100 + rng.below(1400)).expect("small");
    config.receive_buffer = ByteCount(2_000 + rng.below(100_000));
    config.send_buffer = ByteCount(2_000 + rng.below(100_000));
    config.data_retries = 60;
    config.syn_retries = 60;
    config.rto.max = Duration::from_secs(60);
    if rng.chance(0.3) {
        config.unsent_max = Some(ByteCount(u64::from(config.mss) + rng.below(10_000)));
    }
    config
}

#[test]
fn no_more_waits_unsent_than_is_asked_for() {
    let endpoint = TcpEndpointConfig {
        local: NodeAddress(1),
        connections_max: 1,
    };
    let mut machine = TcpEndpoint::new(endpoint, Rng::from_seed(1));
    let config = TcpConfig {
        unsent_max: Some(ByteCount(5000)),
        ..Preset::LinuxLike.config()
    };
    let id = machine.connect(PathId(2), Port(5), Port(80), config);
    let id = id.expect("sane settings");
    assert_eq!(machine.room(id), 5000);
    assert_eq!(machine.write(id, &[7; 6000]), Ok(5000));
    assert_eq!((machine.room(id), machine.write(id, &[7])), (0, Ok(0)));
}

fn content(rng: &mut Rng) -> Vec<u8> {
    let mut octets = vec![0; below(rng, 60_000)];
    rng.fill(&mut octets);
    octets
}

struct Session {
    rng: Rng,
    faults: Faults,
    sides: [Side; 2],
    now: Instant,
    /// Segments on their way, by arrival: to whom, and their octets.
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    flown: u64,
}

impl Session {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed);
        let scale = rng.unit_f64();
        let faults = Faults {
            loss: 0.4 * scale * rng.unit_f64(),
            damage: 0.1 * scale * rng.unit_f64(),
            double: 0.2 * rng.unit_f64(),
            reorder: 0.3 * rng.unit_f64(),
        };
        let sides = [1, 2].map(|local| {
            let endpoint = TcpEndpointConfig {
                local: NodeAddress(local),
                connections_max: 8,
            };
            let stream = rng.child(&format!("side-{local}"));
            Side {
                machine: Strict::new(TcpEndpoint::new(endpoint, stream)),
                app: App::default(),
                deadline: None,
            }
        });
        let mut session = Self {
            rng,
            faults,
            sides,
            now: Instant::START,
            flying: BTreeMap::new(),
            flown: 0,
        };
        session.begin();
        session
    }

    fn begin(&mut self) {
        let rng = &mut self.rng;
        let [opener, listener] = &mut self.sides;
        opener.app.to_write = content(rng);
        if rng.chance(0.5) {
            listener.app.to_write = content(rng);
        }
        let listened = listener.machine.app().listen(Port(80), config(rng));
        listened.expect("sane settings");
        let app = opener.machine.app();
        let id = app.connect(PathId(2), Port(5), Port(80), config(rng));
        opener.app.id = Some(id.expect("sane settings"));
    }

    fn drain(&mut self) {
        let (rng, faults, now) = (&mut self.rng, self.faults, self.now);
        for (from, side) in self.sides.iter_mut().enumerate() {
            side.deadline = drain(&mut side.machine, now, &mut side.app);
            for octets in side.app.sent.drain(..) {
                for _ in 0..=u8::from(rng.chance(faults.double)) {
                    if rng.chance(faults.loss) {
                        continue;
                    }
                    let mut octets = octets.clone();
                    if rng.chance(faults.damage) {
                        // One inverted bit, which the checksum never misses.
                        let bit = below(rng, octets.len() as u64 * 8);
                        octets[bit / 8] ^= 1 << (bit % 8);
                    }
                    let is_late = rng.chance(faults.reorder);
                    let late = if is_late { rng.below(40) } else { 0 };
                    let at = now + Duration::from_millis(20 + late);
                    self.flown += 1;
                    self.flying.insert((at, self.flown), (1 - from, octets));
                }
            }
        }
    }

    /// Lets the next thing happen; `false` if nothing will.
    fn step(&mut self) -> bool {
        let arrival = self.flying.keys().next().map(|(at, _)| *at);
        let wakes = self.sides.iter().filter_map(|s| Some(s.deadline?.at));
        let Some(next) = arrival.into_iter().chain(wakes).min() else {
            return false;
        };
        self.now = next.max(self.now);
        if arrival == Some(next)
            && let Some((_, (to, octets))) = self.flying.pop_first()
        {
            let marked = self.rng.chance(0.01);
            let datagram = Datagram {
                path: PathId(if to == 0 { 2 } else { 1 }),
                octets: &octets,
                ecn: if marked { Ecn::Congested } else { Ecn::Capable },
            };
            self.sides[to].machine.handle_datagram(self.now, datagram);
            return true;
        }
        for side in &mut self.sides {
            if side
                .deadline
                .is_some_and(|deadline| deadline.at <= self.now)
            {
                side.machine.handle_deadline(self.now);
            }
        }
        true
    }

    /// Runs to the end and says what broke.
    fn run(mut self) -> Result<(), String> {
        let end = self.now + Duration::from_secs(48 * 3600);
        loop {
            self.drain();
            if self.sides.iter().all(|side| side.app.closed.is_some()) {
                break;
            }
            if !self.step() || self.now > end {
                let states = self.sides.each_ref().map(|side| {
                    let status = side.app.id.and_then(|id| side.machine.inner().status(id));
                    (status, side.app.written, side.app.received.len())
                });
                return Err(format!("not over at {}: {states:?}", self.now));
            }
        }
        let [a, b] = &self.sides;
        for (from, to) in [(a, b), (b, a)] {
            if to.app.received != from.app.to_write {
                let (got, all) = (to.app.received.len(), from.app.to_write.len());
                return Err(format!("{got} of {all} octets, {:?}", self.faults));
            }
        }
        Ok(())
    }
}

#[test]
fn what_is_written_comes_out_once_and_in_order_whatever_the_path_does() {
    let failures: Vec<(u64, String)> = (0..1000)
        .filter_map(|seed| Some((seed, Session::new(seed).run().err()?)))
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
}
