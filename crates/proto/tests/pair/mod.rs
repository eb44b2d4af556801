//! Two endpoints on a pipe that the test scripts: the test sets each datagram's fate.

use super::FORM;
use super::sight::{hand_over, passes_seal};
use fulmar_proto::machine::{
    Datagram, Deadline, Ecn, Machine, MachineDriver, PathId, Strict, Transmit, TransmitKind, drain,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, ConnectionId, EndpointConfig, Event,
};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Port;
use std::collections::BTreeMap;

pub(crate) const PORT: Port = Port(4000);

/// The way that a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Forward,
    Back,
}

/// The fate of one datagram on the pipe: the delays after which copies of it arrive.
pub(crate) type Fate = Vec<(Duration, Vec<u8>)>;

/// A script that decides the fate of each datagram, by way, ordinal in that way, time and octets.
pub(crate) type Script = Box<dyn FnMut(Way, u64, Instant, &[u8]) -> Fate>;

/// A side's machine, and the driver's state for it.
struct Side {
    machine: Strict<AerotpEndpoint>,
    deadline: Option<Deadline>,
    app: App,
}

impl Side {
    fn new(endpoint: EndpointConfig, seed: u64) -> Self {
        let mut endpoint = AerotpEndpoint::new(endpoint, Rng::from_seed(seed));
        endpoint.speak(Instant::START, PathId(0), FORM);
        Self {
            machine: Strict::new(endpoint),
            deadline: None,
            app: App::default(),
        }
    }
}

/// A side's application, apart from its machine.
#[derive(Default)]
struct App {
    received: Vec<u8>,
    missing: u32,
    events: Vec<Event>,
    id: Option<ConnectionId>,
    to_write: Vec<u8>,
    written: usize,
    holds_reading: bool,
    sent: BTreeMap<&'static str, u64>,
}

pub(crate) struct Pair {
    pub(crate) now: Instant,
    sides: [Side; 2],
    script: Script,
    ordinals: [u64; 2],
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    flown: u64,
    /// Whether the pipe may change what it carries even under a seal, as a peer might that has the keys.
    pub(crate) breaks_seal: bool,
    buffer: Vec<u8>,
}

struct Ends<'a> {
    buffer: &'a mut Vec<u8>,
    sent: Vec<(Transmit, Vec<u8>)>,
    app: &'a mut App,
}

impl MachineDriver<Strict<AerotpEndpoint>> for Ends<'_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        self.buffer
    }
    fn send(&mut self, _now: Instant, transmit: Transmit) {
        *self.app.sent.entry(transmit.kind.name()).or_default() += 1;
        self.sent.push((transmit, self.buffer.clone()));
    }
    fn deliver(&mut self, now: Instant, machine: &mut Strict<AerotpEndpoint>, event: Event) {
        let side = &mut *self.app;
        match &event {
            Event::Incoming { id, .. } => side.id = Some(*id),
            Event::Readable(id) if !side.holds_reading => {
                while let Some(chunk) = machine.app().read(now, *id) {
                    side.missing += chunk.missing_before;
                    side.received.extend_from_slice(&chunk.octets);
                    machine.app().recycle(*id, chunk.octets);
                }
            }
            Event::Writable(_) => side.write(now, machine.app()),
            Event::PeerFinished(id) => machine.app().close(now, *id),
            _ => {}
        }
        side.events.push(event);
    }
}

impl App {
    fn write(&mut self, now: Instant, endpoint: &mut AerotpEndpoint) {
        let Some(id) = self.id else { return };
        while self.written < self.to_write.len() {
            let rest = &self.to_write[self.written..];
            match endpoint.write(now, id, rest) {
                Ok(0) | Err(_) => return,
                Ok(taken) => self.written += taken,
            }
        }
        endpoint.close(now, id);
    }
}

/// A pipe of constant delay that loses nothing.
pub(crate) fn clean(delay: Duration) -> Script {
    Box::new(move |_, _, _, octets| vec![(delay, octets.to_vec())])
}

impl Pair {
    pub(crate) fn new(endpoint: EndpointConfig, config: ConnectionConfig, script: Script) -> Self {
        let side = |seed| Side::new(endpoint, seed);
        let mut pair = Self {
            now: Instant::START,
            sides: [side(1), side(2)],
            script,
            ordinals: [0; 2],
            flying: BTreeMap::new(),
            flown: 0,
            breaks_seal: false,
            buffer: Vec::new(),
        };
        pair.sides[1]
            .machine
            .app()
            .listen(PORT, config)
            .expect("a sound configuration");
        pair.settle(1);
        pair
    }

    /// Connects forward and starts to send `octets`.
    pub(crate) fn send(&mut self, config: ConnectionConfig, octets: &[u8]) -> ConnectionId {
        let now = self.now;
        let side = &mut self.sides[0];
        let id = side
            .machine
            .app()
            .connect(now, PathId(0), PORT, config)
            .expect("connects");
        side.app.id = Some(id);
        side.app.to_write = octets.to_vec();
        side.app.write(now, side.machine.app());
        self.settle(0);
        id
    }

    /// Makes the listening side forget everything and listen again.
    pub(crate) fn restart_listener(&mut self, endpoint: EndpointConfig, config: ConnectionConfig) {
        self.sides[1] = Side::new(endpoint, 3);
        let listens = self.sides[1].machine.app().listen(PORT, config);
        listens.expect("a sound configuration");
        self.settle(1);
    }

    /// Connects forward and sends nothing.
    pub(crate) fn connect_only(&mut self, config: ConnectionConfig) {
        let side = &mut self.sides[0];
        let id = side
            .machine
            .app()
            .connect(self.now, PathId(0), PORT, config)
            .expect("connects");
        side.app.id = Some(id);
        self.settle(0);
    }

    /// Connects forward to a port at which nobody listens.
    pub(crate) fn connect_elsewhere(&mut self, config: ConnectionConfig, octets: &[u8]) {
        let side = &mut self.sides[0];
        let elsewhere = Port(PORT.0 + 1);
        let connected = side
            .machine
            .app()
            .connect(self.now, PathId(0), elsewhere, config);
        side.app.id = Some(connected.expect("connects"));
        side.app.to_write = octets.to_vec();
        side.app.write(self.now, side.machine.app());
        self.settle(0);
    }

    /// Lets a side send repair symbols over windows.
    pub(crate) fn use_windows(&mut self, way: Way) {
        let side = &mut self.sides[way as usize];
        side.machine.app().use_windows(self.now, PathId(0), true);
        self.settle(way as usize);
    }

    /// Lets a test call the application interface of a side.
    pub(crate) fn app(
        &mut self,
        way: Way,
        call: impl FnOnce(&mut AerotpEndpoint, Instant, ConnectionId),
    ) {
        let index = way as usize;
        let now = self.now;
        let side = &mut self.sides[index];
        let id = side.app.id.expect("a connection");
        call(side.machine.app(), now, id);
        self.settle(index);
    }

    fn settle(&mut self, index: usize) {
        let Side {
            machine,
            deadline,
            app,
        } = &mut self.sides[index];
        let mut ends = Ends {
            buffer: &mut self.buffer,
            sent: Vec::new(),
            app,
        };
        *deadline = drain(machine, self.now, &mut ends);
        let sent = ends.sent;
        let way = if index == 0 { Way::Forward } else { Way::Back };
        for (_, sent) in sent {
            let ordinal = self.ordinals[index];
            self.ordinals[index] += 1;
            for (delay, octets) in (self.script)(way, ordinal, self.now, &sent) {
                if !passes_seal(&sent, &octets) && !self.breaks_seal {
                    continue;
                }
                self.flown += 1;
                self.flying
                    .insert((self.now + delay, self.flown), (1 - index, octets));
            }
        }
    }

    /// One step of time; `false` when nothing is left to happen before `until`.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
        let timers = self
            .sides
            .iter()
            .enumerate()
            .filter_map(|(i, s)| Some((s.deadline?.at, i)));
        let timer = timers.min();
        match (arrival, timer) {
            (Some(at), timer) if timer.is_none_or(|(t, _)| at <= t) && at <= until => {
                self.now = at;
                let (_, (index, octets)) = self.flying.pop_first().expect("looked at");
                let datagram = Datagram {
                    path: PathId(0),
                    octets: &octets,
                    ecn: Ecn::Capable,
                };
                hand_over(&mut self.sides[index].machine, at, datagram);
                self.settle(index);
                true
            }
            (_, Some((at, index))) if at <= until => {
                self.now = at;
                self.sides[index].machine.handle_deadline(at);
                self.settle(index);
                true
            }
            _ => {
                self.now = self.now.max(until);
                false
            }
        }
    }

    /// Runs until nothing happens any more, or `limit` has passed.
    pub(crate) fn run(&mut self, limit: Duration) {
        let until = self.now + limit;
        while self.step(until) {}
    }

    /// Runs until `until`.
    pub(crate) fn run_until(&mut self, until: Instant) {
        while self.step(until) {}
    }

    pub(crate) fn received(&self) -> &[u8] {
        &self.sides[1].app.received
    }

    pub(crate) fn missing(&self) -> u32 {
        self.sides[1].app.missing
    }

    pub(crate) fn events(&self, way: Way) -> &[Event] {
        &self.sides[way as usize].app.events
    }

    pub(crate) fn endpoint(&self, way: Way) -> &AerotpEndpoint {
        self.sides[way as usize].machine.inner()
    }

    pub(crate) fn id(&self, way: Way) -> Option<ConnectionId> {
        self.sides[way as usize].app.id
    }

    pub(crate) fn stop_reading(&mut self) {
        self.sides[1].app.holds_reading = true;
    }

    /// Counts the datagrams of a kind that the sending side has sent.
    pub(crate) fn sent(&self, kind: TransmitKind) -> u64 {
        self.sides[0]
            .app
            .sent
            .get(kind.name())
            .copied()
            .unwrap_or(0)
    }
}

/// Octets that differ wherever they are misplaced.
pub(crate) fn octets(len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    Rng::from_seed(len as u64)
        .child("payload")
        .fill(&mut octets);
    octets
}
