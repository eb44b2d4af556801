//! Two endpoints of octet streams over a path that loses, damages, duplicates, reorders and marks as a test
//! wants.

use fulmar_baseline::StreamEndpoint;
use fulmar_baseline::lt_tcp::{LtTcpCounters, LtTcpEndpoint, LtTcpStatus};
use fulmar_baseline::tcp::{TcpCloseReason, TcpConnectionId, TcpEndpointConfig, TcpEvent};
use fulmar_proto::machine::{
    Datagram, Deadline, Ecn, Machine, MachineDriver, PathId, Strict, Transmit, TransmitKind, drain,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::NodeAddress;
use std::collections::BTreeMap;

/// The path's faults, in shares of the segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) loss: f64,
    /// Losses in a row on average; below 1 they are independent.
    pub(crate) burst: f64,
    pub(crate) damage: f64,
    pub(crate) double: f64,
    pub(crate) reorder: f64,
    pub(crate) mark: f64,
}

/// The delay of one way, in each direction.
pub(crate) const DELAY: Duration = Duration::from_millis(20);
/// The time between two segments of a side.
const SPACING: Duration = Duration::from_micros(20);

pub(crate) struct Side<E: StreamEndpoint> {
    machine: Strict<E>,
    pub(crate) app: App,
    deadline: Option<Deadline>,
    /// Whether the last segment was lost, so that a burst may continue.
    losing: bool,
    /// The time at which the last segment will have left.
    busy_until: Instant,
}

#[derive(Default)]
pub(crate) struct App {
    id: Option<TcpConnectionId>,
    pub(crate) to_write: Vec<u8>,
    written: usize,
    pub(crate) received: Vec<u8>,
    pub(crate) closed: Option<TcpCloseReason>,
    /// Segments sent, by kind.
    pub(crate) sent_kinds: BTreeMap<TransmitKind, u64>,
    /// Whether the application does not read.
    pub(crate) deaf: bool,
    /// The last segment sent.
    pub(crate) last: Vec<u8>,
    out: Vec<u8>,
    sent: Vec<(Vec<u8>, Ecn)>,
}

impl App {
    fn write(&mut self, machine: &mut impl StreamEndpoint) {
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

    fn read(&mut self, machine: &mut impl StreamEndpoint) {
        let Some(id) = self.id.filter(|_| !self.deaf) else {
            return;
        };
        while let Some(chunk) = machine.read(id) {
            self.received.extend_from_slice(&chunk);
            machine.recycle(id, chunk);
        }
    }
}

impl<E: StreamEndpoint> MachineDriver<Strict<E>> for App {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }
    fn send(&mut self, _now: Instant, transmit: Transmit) {
        assert_eq!(self.out.len(), transmit.len);
        *self.sent_kinds.entry(transmit.kind).or_default() += 1;
        self.last.clone_from(&self.out);
        self.sent
            .push((core::mem::take(&mut self.out), transmit.ecn));
    }
    fn deliver(&mut self, _now: Instant, machine: &mut Strict<E>, event: TcpEvent) {
        let machine = machine.app();
        match event {
            TcpEvent::Incoming { id, .. } => {
                self.id = Some(id);
                self.write(machine);
            }
            TcpEvent::Connected(_) | TcpEvent::Writable(_) => self.write(machine),
            TcpEvent::Readable(_) => self.read(machine),
            TcpEvent::PeerFinished(_) => {}
            TcpEvent::Closed { why, .. } => self.closed = Some(why),
        }
    }
}

pub(crate) struct Lab<E: StreamEndpoint> {
    pub(crate) rng: Rng,
    pub(crate) faults: Faults,
    pub(crate) sides: [Side<E>; 2],
    pub(crate) now: Instant,
    /// Segments on their way, by arrival: the receiving side, their octets and marks.
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>, Ecn)>,
    flown: u64,
}

pub(crate) fn below(rng: &mut Rng, bound: u64) -> usize {
    usize::try_from(rng.below(bound)).expect("small")
}

impl<E: StreamEndpoint> Lab<E> {
    /// An opener with `content` to send and a listener.
    pub(crate) fn new(
        seed: u64,
        faults: Faults,
        content: Vec<u8>,
        configs: &[E::Settings; 2],
    ) -> Self {
        let rng = Rng::from_seed(seed);
        let sides = [1, 2].map(|local| {
            let endpoint = TcpEndpointConfig {
                local: NodeAddress(local),
                connections_max: 8,
            };
            let stream = rng.child(&format!("side-{local}"));
            Side {
                machine: Strict::new(E::new(endpoint, stream)),
                app: App::default(),
                deadline: None,
                losing: false,
                busy_until: Instant::START,
            }
        });
        let mut lab = Self {
            rng,
            faults,
            sides,
            now: Instant::START,
            flying: BTreeMap::new(),
            flown: 0,
        };
        let [opener, listener] = &mut lab.sides;
        opener.app.to_write = content;
        let listened = listener.machine.app().listen(Port(80), configs[1]);
        listened.expect("sane settings");
        let app = opener.machine.app();
        let id = app.connect(PathId(2), Port(5), Port(80), configs[0]);
        opener.app.id = Some(id.expect("sane settings"));
        lab
    }

    /// Makes the application of `side` read again.
    pub(crate) fn listen_up(&mut self, side: usize) {
        let Side { machine, app, .. } = &mut self.sides[side];
        app.deaf = false;
        app.read(machine.app());
    }

    /// Hands `octets` to `side`, as if its peer had sent them.
    pub(crate) fn inject(&mut self, side: usize, octets: &[u8]) {
        self.drain();
        let datagram = Datagram {
            path: PathId(if side == 0 { 2 } else { 1 }),
            octets,
            ecn: Ecn::NotCapable,
        };
        self.sides[side].machine.handle_datagram(self.now, datagram);
        self.drain();
    }

    pub(crate) fn drain(&mut self) {
        let (rng, faults, now) = (&mut self.rng, self.faults, self.now);
        for (from, side) in self.sides.iter_mut().enumerate() {
            side.deadline = drain(&mut side.machine, now, &mut side.app);
            for (octets, ecn) in side.app.sent.drain(..) {
                side.busy_until = side.busy_until.max(now) + SPACING;
                for _ in 0..=u8::from(rng.chance(faults.double)) {
                    if is_lost(rng, &faults, &mut side.losing) {
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
                    let marked = ecn == Ecn::Capable && rng.chance(faults.mark);
                    let ecn = if marked { Ecn::Congested } else { ecn };
                    let at = side.busy_until + DELAY + Duration::from_millis(late);
                    self.flown += 1;
                    self.flying
                        .insert((at, self.flown), (1 - from, octets, ecn));
                }
            }
        }
    }

    /// Makes the next event happen; `false` if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let arrival = self.flying.keys().next().map(|(at, _)| *at);
        let wakes = self.sides.iter().filter_map(|s| Some(s.deadline?.at));
        let Some(next) = arrival.into_iter().chain(wakes).min() else {
            return false;
        };
        self.now = next.max(self.now);
        if arrival == Some(next)
            && let Some((_, (to, octets, ecn))) = self.flying.pop_first()
        {
            let datagram = Datagram {
                path: PathId(if to == 0 { 2 } else { 1 }),
                octets: &octets,
                ecn,
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

    /// Runs for `span`.
    pub(crate) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.drain();
            if !self.step() {
                return;
            }
        }
    }

    /// Runs to the end. The error is the promise that was broken.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        let end = self.now + Duration::from_secs(48 * 3600);
        loop {
            self.drain();
            if self.sides.iter().all(|side| side.app.closed.is_some()) {
                break;
            }
            if !self.step() || self.now > end {
                let states = [0, 1].map(|side| {
                    let app = &self.sides[side].app;
                    (side, app.closed, app.written, app.received.len())
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

impl Lab<LtTcpEndpoint> {
    pub(crate) fn status(&self, side: usize) -> Option<LtTcpStatus> {
        let side = &self.sides[side];
        side.machine.inner().status(side.app.id?)
    }

    pub(crate) fn counters(&self, side: usize) -> LtTcpCounters {
        self.sides[side].machine.inner().counters()
    }

    pub(crate) fn memory_bytes(&self, side: usize) -> usize {
        self.sides[side].machine.inner().memory_bytes()
    }
}

/// Draws a loss: independent, or in bursts of a mean length with the same share.
fn is_lost(rng: &mut Rng, faults: &Faults, losing: &mut bool) -> bool {
    if faults.burst <= 1.0 {
        return rng.chance(faults.loss);
    }
    let ends = 1.0 / faults.burst;
    let begins = (ends * faults.loss / (1.0 - faults.loss)).min(1.0);
    *losing = rng.chance(if *losing { 1.0 - ends } else { begins });
    *losing
}

pub(crate) fn content(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    rng.fill(&mut octets);
    octets
}
