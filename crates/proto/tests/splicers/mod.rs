//! Two splicers on a pipe that the test scripts, each with an application for every flow.

mod app;
mod side;

use super::sight::{hand_over, passes_seal};
use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId};
use fulmar_proto::splice::{
    Destination, FlowClass, FlowEvent, FlowId, FlowKind, ResetCode, Restored, Role, Splicer,
    SplicerConfig,
};
use fulmar_proto::transport::aerotp::{EndpointConfig, RateSource};
use fulmar_proto::units::{Bitrate, Duration, Instant};
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub(crate) use app::App;
pub(crate) use side::Side;

/// The peer that each side sees in the other.
pub(crate) const PEER: PathId = PathId(0);
/// Destinations by port, which decides what happens to a flow there.
pub(crate) const ECHO: u16 = 7;
pub(crate) const SINK: u16 = 9;
pub(crate) const REFUSES: u16 = 1;
pub(crate) const SILENT: u16 = 2;

/// The fate of one datagram on the pipe: the delays after which copies of it arrive.
pub(crate) type Fate = Vec<(Duration, Vec<u8>)>;
/// A script that decides the fate of each datagram, by sending side, time and octets.
pub(crate) type Script = Box<dyn FnMut(usize, Instant, &[u8]) -> Fate>;

/// Octets that differ from their neighbours.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    let octet = |i: usize| u8::try_from(i * 7 % 251).expect("below 251");
    (0..len).map(octet).collect()
}

/// A pipe of constant delay that loses nothing.
pub(crate) fn clean(delay: Duration) -> Script {
    Box::new(move |_, _, octets| vec![(delay, octets.to_vec())])
}

/// 20 mbit, told, and room for any test's connections.
pub(crate) fn endpoint_config() -> EndpointConfig {
    EndpointConfig {
        rate: RateSource::Told(Bitrate::from_bits_per_second(20_000_000)),
        connections_max: 20_000,
        ..EndpointConfig::default()
    }
}

pub(crate) struct Pair {
    pub(crate) now: Instant,
    endpoint: EndpointConfig,
    pub(crate) sides: [Side; 2],
    pub(crate) script: Script,
    flying: BTreeMap<(Instant, u64), Flying>,
    flown: u64,
    /// The number of each side's restarts, and of those that the other side knows of.
    starts: [u32; 2],
    known: [u32; 2],
    /// Whether each side's present start has had a session with the other. Before that, no restart of it is
    /// news.
    met: [bool; 2],
}

/// A datagram on its way. Between gateways it is sealed by the session of two starts.
struct Flying {
    to: usize,
    octets: Vec<u8>,
    /// The start of the sender, and that of the receiver.
    session: [u32; 2],
}

impl Pair {
    pub(crate) fn new(config: &SplicerConfig, script: Script) -> Self {
        Self::with_endpoints(config, script, endpoint_config())
    }

    /// A pair whose sides have at most so many connections.
    pub(crate) fn limited(config: &SplicerConfig, script: Script, connections_max: usize) -> Self {
        let endpoint = EndpointConfig {
            connections_max,
            ..endpoint_config()
        };
        Self::with_endpoints(config, script, endpoint)
    }

    pub(crate) fn with_endpoints(
        config: &SplicerConfig,
        script: Script,
        endpoint: EndpointConfig,
    ) -> Self {
        Self {
            now: Instant::START,
            sides: [1, 2].map(|seed| Side::new(config, endpoint, seed)),
            endpoint,
            script,
            flying: BTreeMap::new(),
            flown: 0,
            starts: [0; 2],
            known: [0; 2],
            met: [false; 2],
        }
    }

    /// Opens a flow from side 0 to `port` and sends `octets`.
    pub(crate) fn open(&mut self, port: u16, class: FlowClass, octets: &[u8]) -> FlowId {
        let id = self.open_only(FlowKind::Stream, port, class);
        let app = self.sides[0].apps.get_mut(&id).expect("just opened");
        app.outgoing = octets.to_vec();
        app.finishes = true;
        self.touch(0, id);
        id
    }

    pub(crate) fn open_only(&mut self, kind: FlowKind, port: u16, class: FlowClass) -> FlowId {
        let destination = SocketAddr::from(([192, 0, 2, 1], port)).into();
        self.open_to(kind, destination, class)
    }

    pub(crate) fn open_to(
        &mut self,
        kind: FlowKind,
        destination: Destination,
        class: FlowClass,
    ) -> FlowId {
        let splicer = self.sides[0].machine.app();
        let id = splicer
            .open(self.now, PEER, kind, destination.clone(), class)
            .expect("room for a flow");
        let app = App {
            peer: Some(PEER),
            role: Some(Role::Opener),
            class,
            destination: Some(destination),
            ..App::default()
        };
        self.sides[0].apps.insert(id, app);
        id
    }

    /// Cuts a side's connection off by its host, and the flow by its driver.
    pub(crate) fn cut(&mut self, side: usize, id: FlowId) {
        self.sides[side].end(id);
        if let Some(app) = self.sides[side].apps.remove(&id)
            && app.last.is_none()
        {
            self.call(side, |splicer, now| {
                splicer.reset(now, id, ResetCode::Reset);
            });
        }
    }

    /// Lets a flow's application do what it can, and drains.
    pub(crate) fn touch(&mut self, side: usize, id: FlowId) {
        let Side { machine, apps, .. } = &mut self.sides[side];
        if let Some(app) = apps.get_mut(&id) {
            app.pump(self.now, id, machine.app());
        }
        self.settle(side);
    }

    /// Calls a side's splicer, and drains.
    pub(crate) fn call<T>(
        &mut self,
        side: usize,
        call: impl FnOnce(&mut Splicer, Instant) -> T,
    ) -> T {
        let result = call(self.sides[side].machine.app(), self.now);
        self.settle(side);
        result
    }

    /// Restarts a side's gateway. The new one gets back what the applications kept.
    pub(crate) fn restart(&mut self, side: usize, config: &SplicerConfig) {
        self.restart_with(side, config, false);
    }

    /// Restarts a side's gateway, which sends nothing before it is told that the link is up.
    pub(crate) fn restart_held(&mut self, side: usize, config: &SplicerConfig) {
        self.restart_with(side, config, true);
    }

    fn restart_with(&mut self, side: usize, config: &SplicerConfig, held: bool) {
        let seed = 77 + u64::from(config.incarnation) * 2 + side as u64;
        let old = core::mem::replace(
            &mut self.sides[side],
            Side::new(config, self.endpoint, seed),
        );
        self.starts[side] += 1;
        self.known[1 - side] = self.starts[1 - side];
        self.met[side] = false;
        let now = self.now;
        let side_now = &mut self.sides[side];
        let apps = side_now.follow(old);
        if held {
            side_now.machine.app().hold(now, PEER, true);
        }
        for (id, mut app) in apps {
            let (Some(peer), Some(role)) = (app.peer, app.role) else {
                continue;
            };
            if app.last.is_some() {
                side_now.apps.insert(id, app);
                continue;
            }
            if app.class.resume {
                let restored = Restored {
                    flow: id,
                    peer,
                    role,
                    destination: app.destination.clone().expect("noted"),
                    class: app.class,
                    bound: app.bound,
                    received: app.received.len() as u64,
                    kept_from: app.delivered,
                    accepted: app.most as u64,
                };
                let splicer = side_now.machine.app();
                splicer.restore(self.now, restored).expect("room");
                if core::mem::take(&mut app.finished) {
                    splicer.finish(self.now, id);
                    app.finished = true;
                }
                side_now.apps.insert(id, app);
            } else {
                // The flow ends with its gateway.
                app.last = Some(FlowEvent::Reset {
                    flow: id,
                    code: ResetCode::PeerLost,
                });
                side_now.apps.insert(id, app);
            }
        }
        self.settle(side);
    }

    fn settle(&mut self, side: usize) {
        self.sides[side].settle(self.now);
        for sent in core::mem::take(&mut self.sides[side].sent) {
            for (delay, octets) in (self.script)(side, self.now, &sent) {
                if !passes_seal(&sent, &octets) {
                    continue;
                }
                self.flown += 1;
                let datagram = Flying {
                    to: 1 - side,
                    octets,
                    session: [self.starts[side], self.known[1 - side]],
                };
                self.flying.insert((self.now + delay, self.flown), datagram);
            }
        }
    }

    /// Whether the receiver can open the datagram. The first contact after a restart is what
    /// tells the other side of it, as a session's handshake does.
    fn opens(&mut self, flying: &Flying) -> bool {
        let (to, from) = (flying.to, 1 - flying.to);
        let [sender, receiver] = flying.session;
        self.hear_of(to, self.starts[to]);
        self.hear_of(from, sender);
        self.met = [true; 2];
        receiver == self.starts[to] && sender == self.known[from]
    }

    /// Holds a session's handshake: each side hears of the other's restarts.
    pub(crate) fn introduce(&mut self) {
        for side in 0..2 {
            self.hear_of(side, self.starts[side]);
        }
        self.met = [true; 2];
    }

    /// Tells the other side of a start of `side`.
    fn hear_of(&mut self, side: usize, start: u32) {
        if self.known[side] < start {
            self.known[side] = start;
            if self.met[1 - side] {
                self.call(1 - side, |splicer, now| splicer.peer_restarted(now, PEER));
            }
        }
    }

    /// Makes both sides know of every restart already, without telling their splicers.
    pub(crate) const fn known_at_once(&mut self) {
        self.known = self.starts;
    }

    /// One step of time; `false` when nothing is left to happen before `until`.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
        let timers = self.sides.iter().enumerate();
        let timer = timers
            .filter_map(|(i, side)| Some((side.deadline?.at, i)))
            .min();
        match (arrival, timer) {
            (Some(at), timer) if timer.is_none_or(|(t, _)| at <= t) && at <= until => {
                self.now = at;
                let (_, flying) = self.flying.pop_first().expect("looked at");
                if self.opens(&flying) {
                    let datagram = Datagram {
                        path: PEER,
                        octets: &flying.octets,
                        ecn: Ecn::Capable,
                    };
                    let side = flying.to;
                    hand_over(&mut self.sides[side].machine, at, datagram);
                    self.settle(side);
                }
                true
            }
            (_, Some((at, side))) if at <= until => {
                self.now = at.max(self.now);
                self.sides[side].machine.handle_deadline(self.now);
                self.settle(side);
                true
            }
            _ => {
                self.now = self.now.max(until);
                false
            }
        }
    }

    /// Runs for `span`.
    pub(crate) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.step(until) {}
    }

    pub(crate) fn app(&mut self, side: usize, id: FlowId) -> &mut App {
        self.sides[side].apps.get_mut(&id).expect("a flow")
    }

    pub(crate) fn splicer(&self, side: usize) -> &Splicer {
        self.sides[side].machine.inner()
    }

    /// The reason why a flow was reset, if it was.
    pub(crate) fn reset_code(&mut self, side: usize, id: FlowId) -> Option<ResetCode> {
        match self.app(side, id).last {
            Some(FlowEvent::Reset { code, .. }) => Some(code),
            _ => None,
        }
    }

    /// Asserts that nothing is left of any flow, at either side.
    pub(crate) fn assert_nothing_left(&self) {
        for side in 0..2 {
            let splicer = self.splicer(side);
            assert_eq!(splicer.entry_count(), 0, "entries at side {side}");
            assert_eq!(splicer.counters().flows_now, 0);
            assert_eq!(splicer.counters().credit_reserved, 0);
            assert_eq!(splicer.counters().waiting_bytes, 0);
            assert_eq!(splicer.endpoint().connection_count(), 0);
            let doubled = &self.sides[side].doubled;
            assert!(doubled.is_empty(), "octets were given twice: {doubled:?}");
        }
    }
}
