//! Two sessions with an AeroTP endpoint inside each, on a medium that the test scripts.

#![allow(
    dead_code,
    reason = "each program of tests uses its own part of the harness"
)]

pub(crate) mod by_hand;
pub(crate) mod sight;
pub(crate) mod world;

use super::WIRE;

use fulmar_net::session::{
    Capability, DatagramArrival, Entropy, MtuConfig, PeerConfig, PeerIndex, PresetKey, SecretKey,
    Security, Session, SessionConfig, SessionEvent, Wire, wire_2,
};
use fulmar_proto::machine::{
    Datagram, Deadline, Ecn, Machine, MachineDriver, PathId, Strict, Transmit, drain,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, ConnectionId, EndpointConfig, Event, RateSource,
};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use fulmar_proto::wire::Port;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

pub(crate) const PORT: Port = Port(4000);
pub(crate) const PEER: PeerIndex = PeerIndex(0);
/// The outer paths by which the ends know each other at first.
pub(crate) const PATH: PathId = PathId(7);

/// The report of each end's application.
pub(crate) const REPORT: &[u8] = b"so it is";

pub(crate) type Inner = Session<AerotpEndpoint>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Forward,
    Back,
}

/// A copy of a datagram: the delay until it arrives, its path, and its octets.
pub(crate) type Copies = Vec<(Duration, PathId, Vec<u8>)>;

/// A medium: it decides which copies of a datagram arrive, from its way, the time and path of sending, and its octets.
pub(crate) type Medium = Box<dyn FnMut(Way, Instant, PathId, &[u8]) -> Copies>;

#[derive(Default)]
pub(crate) struct App {
    pub(crate) received: Vec<u8>,
    /// The times of what was received, and the octets until then.
    pub(crate) arrivals: Vec<(Instant, usize)>,
    pub(crate) events: Vec<(Instant, SessionEvent<()>)>,
    pub(crate) finished: Option<Instant>,
    id: Option<ConnectionId>,
    to_write: Vec<u8>,
    written: usize,
    /// The times and lengths of the datagrams that left.
    pub(crate) sent: Vec<(Instant, usize)>,
}

struct Side {
    machine: Strict<Inner>,
    deadline: Option<Deadline>,
    app: App,
}

pub(crate) struct Pair {
    pub(crate) now: Instant,
    sides: [Side; 2],
    inner: EndpointConfig,
    connection: ConnectionConfig,
    pub(crate) medium: Medium,
    flying: BTreeMap<(Instant, u64), Flying>,
    /// Set by the medium where it marks the datagram of which it was just asked. A datagram that asks for no marks has none.
    pub(crate) marks: Rc<Cell<bool>>,
    /// The lateness of the end behind [`Way::Forward`], if it has any.
    pub(crate) late: Option<Late>,
    flown: u64,
    buffer: Vec<u8>,
}

/// A datagram on its way.
struct Flying {
    to: usize,
    path: PathId,
    octets: Vec<u8>,
    ecn: Ecn,
    /// The time at which it comes. It is handled at the time by which it is kept.
    comes: Instant,
}

/// An end on a machine that is busy in every second second: what comes then waits for its process's next turn.
pub(crate) struct Late {
    /// Whether its driver knows when datagrams came.
    pub(crate) tells: bool,
}

impl Late {
    const TURN_NANOS: u64 = 12_000_000;

    /// The time at which what comes at `at` is handled.
    fn handles(at: Instant) -> Instant {
        let nanos = at.as_nanos();
        if (nanos / 1_000_000_000).is_multiple_of(2) {
            return at;
        }
        Instant::from_nanos(nanos.next_multiple_of(Self::TURN_NANOS))
    }
}

struct Ends<'a> {
    buffer: &'a mut Vec<u8>,
    sent: Vec<(PathId, Vec<u8>, Ecn)>,
    app: &'a mut App,
}

impl MachineDriver<Strict<Inner>> for Ends<'_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        self.buffer
    }
    fn send(&mut self, now: Instant, transmit: Transmit) {
        self.app.sent.push((now, transmit.len));
        let octets = self.buffer.clone();
        self.sent.push((transmit.path, octets, transmit.ecn));
    }
    fn deliver(&mut self, now: Instant, machine: &mut Strict<Inner>, event: SessionEvent<Event>) {
        let own = match event {
            SessionEvent::Inner(event) => {
                self.app.inner(now, machine.app().inner_mut(), &event);
                return;
            }
            SessionEvent::Up {
                peer,
                capabilities,
                resumed,
                wire,
            } => SessionEvent::Up {
                peer,
                capabilities,
                resumed,
                wire,
            },
            SessionEvent::PeerRestarted(peer) => SessionEvent::PeerRestarted(peer),
            SessionEvent::Rekeyed(peer) => SessionEvent::Rekeyed(peer),
            SessionEvent::EpochSeen { peer, epoch } => SessionEvent::EpochSeen { peer, epoch },
            SessionEvent::Closed(peer) => SessionEvent::Closed(peer),
            SessionEvent::LinkDown { peer, silent_for } => {
                SessionEvent::LinkDown { peer, silent_for }
            }
            SessionEvent::LinkUp { peer, outage } => SessionEvent::LinkUp { peer, outage },
            SessionEvent::Path {
                peer,
                place,
                change,
            } => SessionEvent::Path {
                peer,
                place,
                change,
            },
            SessionEvent::Moved { peer, path } => SessionEvent::Moved { peer, path },
            SessionEvent::Introduced { .. }
            | SessionEvent::NotIntroduced { .. }
            | SessionEvent::Reached { .. } => panic!("there is no hub"),
            SessionEvent::ReportDue(peer) => {
                machine.app().report(now, peer, REPORT);
                return;
            }
            SessionEvent::Reported { peer, octets } => SessionEvent::Reported { peer, octets },
            SessionEvent::MtuChanged { peer, sizes } => SessionEvent::MtuChanged { peer, sizes },
            SessionEvent::ParityChanged { peer, sizes } => {
                SessionEvent::ParityChanged { peer, sizes }
            }
            SessionEvent::CarrierChosen {
                peer,
                is_unchecked,
                why,
            } => SessionEvent::CarrierChosen {
                peer,
                is_unchecked,
                why,
            },
            SessionEvent::TooNarrow { why, .. } => panic!("there is room for data: {why}"),
            SessionEvent::Mismatch {
                peer,
                what,
                ours,
                theirs,
            } => SessionEvent::Mismatch {
                peer,
                what,
                ours,
                theirs,
            },
            SessionEvent::Refused { path, peer, reason } => {
                SessionEvent::Refused { path, peer, reason }
            }
            SessionEvent::TurnedAway { peer, path, hint } => {
                SessionEvent::TurnedAway { peer, path, hint }
            }
            SessionEvent::NoAnswer { peer, waited } => SessionEvent::NoAnswer { peer, waited },
        };
        self.app.events.push((now, own));
    }
}

impl App {
    fn inner(&mut self, now: Instant, endpoint: &mut AerotpEndpoint, event: &Event) {
        match event {
            // What is being written goes on where it began.
            Event::Incoming { id, .. }
                if self.id.is_none() || self.written == self.to_write.len() =>
            {
                self.id = Some(*id);
            }
            Event::Readable(id) => {
                while let Some(chunk) = endpoint.read(now, *id) {
                    self.received.extend_from_slice(&chunk.octets);
                    endpoint.recycle(*id, chunk.octets);
                }
                self.arrivals.push((now, self.received.len()));
            }
            Event::Writable(_) => self.write(now, endpoint),
            Event::PeerFinished(id) => {
                self.finished = Some(now);
                endpoint.close(now, *id);
            }
            _ => {}
        }
    }

    fn write(&mut self, now: Instant, endpoint: &mut AerotpEndpoint) {
        let Some(id) = self.id else { return };
        while self.written < self.to_write.len() {
            match endpoint.write(now, id, &self.to_write[self.written..]) {
                Ok(0) | Err(_) => return,
                Ok(taken) => self.written += taken,
            }
        }
        endpoint.close(now, id);
    }
}

/// The two ends' configurations: the forward end knows where the other is.
pub(crate) fn configs(
    securities: [Security; 2],
    keys: [Option<SecretKey>; 2],
) -> [SessionConfig; 2] {
    let [a, b] = securities;
    let [ka, kb] = keys;
    let peer = |name: &str, security, endpoints| PeerConfig {
        name: name.to_owned(),
        security,
        endpoints,
        mtu: MtuConfig::default(),
    };
    [
        SessionConfig::new(ka, vec![peer("ground", a, vec![PATH])], 1 << 40),
        SessionConfig::new(kb, vec![peer("aircraft", b, vec![])], 1 << 40),
    ]
    .map(|config| speaking(config, WIRE))
}

/// The capabilities of an end that speaks this wire at most.
pub(crate) fn said(wire: Wire) -> Vec<Capability> {
    match wire {
        Wire::One => Vec::new(),
        Wire::Two => vec![wire_2()],
    }
}

/// An end's configuration in the wire that it speaks at most.
pub(crate) fn speaking(mut config: SessionConfig, wire: Wire) -> SessionConfig {
    config.capabilities.extend(said(wire));
    config
}

pub(crate) fn secret(n: u8) -> SecretKey {
    SecretKey::generate(&mut Entropy::from_seed([n; 32]))
}

pub(crate) fn preset(n: u8) -> PresetKey {
    PresetKey::generate(&mut Entropy::from_seed([n; 32]))
}

pub(crate) fn noise() -> [SessionConfig; 2] {
    let (a, b) = (secret(1), secret(2));
    let to = |key: &SecretKey| Security::Noise {
        peer: key.public(),
        preset: None,
    };
    configs([to(&b), to(&a)], [Some(a), Some(b)])
}

pub(crate) fn preset_pair() -> [SessionConfig; 2] {
    let security = Security::Preset { key: preset(3) };
    configs([security.clone(), security], [None, None])
}

pub(crate) fn unprotected() -> [SessionConfig; 2] {
    let security = Security::None { label: 5 };
    configs([security.clone(), security], [None, None])
}

pub(crate) fn endpoint_config() -> EndpointConfig {
    EndpointConfig {
        rate: RateSource::Told(Bitrate::from_bits_per_second(10_000_000)),
        lower_overhead: ByteCount(28 + 29),
        ..EndpointConfig::default()
    }
}

pub(crate) fn connection_config() -> ConnectionConfig {
    ConnectionConfig {
        tpdu_bytes_max: 1_200,
        payload_crc: false,
        give_up_after: Duration::from_secs(7_200),
        ..ConnectionConfig::default()
    }
}

fn endpoint(seed: u64, (config, connection): (EndpointConfig, ConnectionConfig)) -> AerotpEndpoint {
    let mut endpoint = AerotpEndpoint::new(config, Rng::from_seed(seed));
    endpoint.listen(PORT, connection).expect("sound");
    endpoint
}

/// A medium of constant delay that loses datagrams with probability `loss`, the same both ways.
pub(crate) fn lossy(delay: Duration, loss: f64, seed: u64) -> Medium {
    let mut rng = Rng::from_seed(seed).child("loss");
    Box::new(move |_, _, path, octets| {
        if rng.chance(loss) {
            Vec::new()
        } else {
            vec![(delay, path, octets.to_vec())]
        }
    })
}

impl Pair {
    pub(crate) fn new(configs: [SessionConfig; 2], medium: Medium) -> Self {
        Self::with_endpoints(configs, endpoint_config(), medium)
    }

    /// A pair whose endpoints have these settings.
    pub(crate) fn with_endpoints(
        configs: [SessionConfig; 2],
        config: EndpointConfig,
        medium: Medium,
    ) -> Self {
        Self::with_connections(configs, (config, connection_config()), medium)
    }

    /// A pair whose endpoints and connections have these settings.
    pub(crate) fn with_connections(
        configs: [SessionConfig; 2],
        (inner, connection): (EndpointConfig, ConnectionConfig),
        medium: Medium,
    ) -> Self {
        let [a, b] = configs;
        let side = |config, seed: u8| Side {
            machine: Strict::new(
                Session::new(
                    config,
                    endpoint(u64::from(seed), (inner, connection)),
                    Entropy::from_seed([seed; 32]),
                )
                .expect("a sound configuration"),
            ),
            deadline: None,
            app: App::default(),
        };
        let mut pair = Self {
            now: Instant::START,
            sides: [side(a, 11), side(b, 12)],
            inner,
            connection,
            medium,
            flying: BTreeMap::new(),
            marks: Rc::default(),
            late: None,
            flown: 0,
            buffer: Vec::new(),
        };
        pair.settle(0);
        pair.settle(1);
        pair
    }

    /// Replaces the end by a new process with the same configuration.
    pub(crate) fn restart(&mut self, way: Way, config: SessionConfig, seed: u8) {
        let mut machine = Strict::new(
            Session::new(
                config,
                endpoint(u64::from(seed), (self.inner, self.connection)),
                Entropy::from_seed([seed; 32]),
            )
            .expect("a sound configuration"),
        );
        // The process is new, but the test's clock goes on.
        machine.poll_transmit(self.now, &mut Vec::new());
        let side = &mut self.sides[way as usize];
        side.machine = machine;
        side.app = App::default();
        self.settle(way as usize);
    }

    /// Connects forward and sends `octets`.
    pub(crate) fn send(&mut self, octets: &[u8]) {
        let now = self.now;
        let side = &mut self.sides[0];
        let endpoint = side.machine.app().inner_mut();
        let path = PEER.inner_path();
        let id = endpoint.connect(now, path, PORT, self.connection);
        side.app.id = Some(id.expect("connects"));
        side.app.written = 0;
        side.app.to_write = octets.to_vec();
        side.app.write(now, side.machine.app().inner_mut());
        self.settle(0);
    }

    /// Connects forward. Nothing is sent yet but the set-up.
    pub(crate) fn connect(&mut self) -> ConnectionId {
        let endpoint = self.sides[0].machine.app().inner_mut();
        let id = endpoint.connect(self.now, PEER.inner_path(), PORT, self.connection);
        self.settle(0);
        id.expect("connects")
    }

    /// The connection that the remote opened last.
    pub(crate) fn accepted(&self, way: Way) -> Option<ConnectionId> {
        self.app(way).id
    }

    /// Forgets what both applications have received.
    pub(crate) fn begin_again(&mut self) {
        for side in &mut self.sides {
            side.app.received.clear();
            side.app.arrivals.clear();
            side.app.finished = None;
        }
    }

    /// Lets a test call a session.
    pub(crate) fn call(&mut self, way: Way, call: impl FnOnce(&mut Inner, Instant)) {
        call(self.sides[way as usize].machine.app(), self.now);
        self.settle(way as usize);
    }

    /// Lets a datagram of the test's own arrive now.
    pub(crate) fn inject(&mut self, to: usize, path: PathId, octets: &[u8]) {
        let ecn = Ecn::Capable;
        self.hand(to, Datagram { path, octets, ecn });
    }

    fn hand(&mut self, to: usize, datagram: Datagram<'_>) {
        self.sides[to].machine.handle_datagram(self.now, datagram);
        self.settle(to);
    }

    fn arrive(&mut self, flying: &Flying) {
        let Flying {
            to,
            path,
            octets,
            ecn,
            ..
        } = flying;
        let datagram = Datagram {
            path: *path,
            octets,
            ecn: *ecn,
        };
        if flying.comes == self.now {
            return self.hand(*to, datagram);
        }
        let (source, at) = (&path.0.to_be_bytes(), flying.comes);
        let arrival = DatagramArrival {
            datagram,
            source,
            at,
        };
        let machine = self.sides[*to].machine.app();
        machine.handle_arrival(self.now, arrival);
        self.settle(*to);
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
        for (path, octets, asks) in sent {
            self.marks.set(false);
            let copies = (self.medium)(way, self.now, path, &octets);
            let ecn = match asks {
                Ecn::Capable if self.marks.get() => Ecn::Congested,
                asks => asks,
            };
            for (delay, path, octets) in copies {
                self.flown += 1;
                let (to, arrives) = (1 - index, self.now + delay);
                let late = self.late.as_ref().filter(|_| to == 1);
                let tells = late.is_none_or(|late| late.tells);
                let handled = late.map_or(arrives, |_| Late::handles(arrives));
                let comes = if tells { arrives } else { handled };
                let flying = Flying {
                    to,
                    path,
                    octets,
                    ecn,
                    comes,
                };
                self.flying.insert((handled, self.flown), flying);
            }
        }
    }

    fn step(&mut self, until: Instant) -> bool {
        let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
        let timers = self.sides.iter().enumerate();
        let timer = timers.filter_map(|(i, s)| Some((s.deadline?.at, i))).min();
        match (arrival, timer) {
            (Some(at), timer) if timer.is_none_or(|(t, _)| at <= t) && at <= until => {
                self.now = at;
                let (_, flying) = self.flying.pop_first().expect("looked at");
                self.arrive(&flying);
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

    pub(crate) fn run_until(&mut self, until: Instant) {
        while self.step(until) {}
    }

    pub(crate) fn run(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    /// Runs until the receiving side has everything; at most for `limit`.
    pub(crate) fn run_to_end(&mut self, limit: Duration) {
        let until = self.now + limit;
        while self.app(Way::Back).finished.is_none() && self.step(until) {}
    }

    pub(crate) fn session(&self, way: Way) -> &Inner {
        self.sides[way as usize].machine.inner()
    }

    pub(crate) fn app(&self, way: Way) -> &App {
        &self.sides[way as usize].app
    }

    /// Own events of a side, without those of the inner machine.
    pub(crate) fn events(&self, way: Way) -> Vec<SessionEvent<()>> {
        let events = self.app(way).events.iter();
        events.map(|(_, event)| event.clone()).collect()
    }

    pub(crate) fn count(&self, way: Way, which: impl Fn(&SessionEvent<()>) -> bool) -> usize {
        self.events(way).iter().filter(|event| which(event)).count()
    }
}

/// Octets that differ wherever they are misplaced.
pub(crate) fn octets(len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    let mut rng = Rng::from_seed(len as u64).child("payload");
    rng.fill(&mut octets);
    octets
}
