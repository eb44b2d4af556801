//! Two endpoints of octet streams under an arbitrary list of operations: the common part of `tcp_machine`
//! and `lt_tcp_machine`.

use arbitrary::Arbitrary;
use fulmar_baseline::StreamEndpoint;
use fulmar_baseline::tcp::{TcpConnectionId, TcpEndpointConfig, TcpEvent};
use fulmar_baseline::wire::tcp::{AddressPair, SackBlock, TcpFlags, TcpHeader};
use fulmar_proto::machine::{Datagram, MachineDriver, Ecn, Machine, PathId, Strict, Transmit, drain};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::NodeAddress;
use std::collections::VecDeque;

/// The properties in which the two transports differ.
pub trait Fuzzed: StreamEndpoint {
    /// A segment with a sound checksum, a variation of the last that the forged side sent.
    type Forgery;

    /// A sane configuration with buffers of [`BYSTANDER_BYTES`].
    fn bystander() -> Self::Settings;
    fn limits(settings: &Self::Settings) -> Limits;
    /// Octets of memory that it takes, 0 if it does not say.
    fn memory_bytes(&self) -> usize;
    /// The header of a sound segment.
    fn header(addresses: &AddressPair, segment: &[u8]) -> Option<TcpHeader>;
    /// The forged segment, as if `side` had sent it.
    fn forge(side: usize, last: &TcpHeader, forgery: &Self::Forgery) -> Vec<u8>;
}

/// The most that an input may cost.
pub struct Limits {
    pub answers: usize,
    pub memory_bytes: usize,
}

#[derive(Arbitrary, Debug)]
pub enum Step<F> {
    Write { side: bool, octets: u16 },
    Read { side: bool },
    Close { side: bool },
    Abort { side: bool },
    Deliver { side: bool, marked: bool },
    DeliverAll { side: bool },
    Duplicate { side: bool },
    Lose { side: bool },
    Overtake { side: bool },
    Damage { side: bool, bit: u16 },
    Forge { side: bool, forgery: F },
    Noise { side: bool, octets: Vec<u8> },
    Wait { milliseconds: u16 },
    WaitForDeadline { side: bool },
}

/// The distance of a forged number from the one that was seen: mostly where it may be believed.
#[derive(Arbitrary, Debug)]
pub enum Distance {
    Near(i16),
    Somewhere(i16),
    Anywhere(i32),
}

impl Distance {
    pub fn of(&self, number: u32) -> u32 {
        number.wrapping_add_signed(match *self {
            Self::Near(distance) => i32::from(distance / 16),
            Self::Somewhere(distance) => i32::from(distance),
            Self::Anywhere(distance) => distance,
        })
    }
}

/// The changes of a forged segment's header to the last that the forged side sent.
#[derive(Arbitrary, Debug)]
pub struct ForgedHeader {
    sequence: Distance,
    acknowledgement: Distance,
    flags: u8,
    window: u16,
    /// The option of another SYN.
    mss: Option<u16>,
    scale: Option<u8>,
}

impl ForgedHeader {
    pub fn of(&self, last: &TcpHeader) -> TcpHeader {
        let mut header = *last;
        header.seq.0 = self.sequence.of(last.seq.0);
        header.ack.0 = self.acknowledgement.of(last.ack.0);
        header.flags = TcpFlags(self.flags);
        header.window = self.window;
        header.options.mss = self.mss;
        header.options.window_scale = self.scale;
        header
    }
}

/// A run of octets that the receiver is said to have, beside what `header` acknowledges.
pub fn forged_run(header: &TcpHeader, (start, end): &(Distance, Distance)) -> SackBlock {
    let mut run = SackBlock::default();
    run.start.0 = start.of(header.ack.0);
    run.end.0 = end.of(header.ack.0);
    run
}

const PORT: Port = Port(9);
/// The other connection's ports, at both ends.
const BYSTANDER: Port = Port(11);
pub const BYSTANDER_BYTES: usize = 3_000;
pub const CONNECTIONS_MAX: usize = 4;
/// Resets to strangers that an endpoint keeps, and answers that are due at once.
pub const ANSWERS_MAX: usize = 80;

struct End<E: Fuzzed> {
    machine: Strict<E>,
    app: App,
}

#[derive(Default)]
struct App {
    id: Option<TcpConnectionId>,
    /// A replay can open a second connection; only the first is compared.
    watched: Option<TcpConnectionId>,
    /// The connection that nobody forges, and what was read from it.
    bystander: Option<TcpConnectionId>,
    bystander_read: Vec<u8>,
    reads: bool,
    read: Vec<u8>,
    buffer: Vec<u8>,
    out: VecDeque<Vec<u8>>,
    /// The last segment sent, for forgers.
    last: TcpHeader,
    answers: usize,
}

fn address(side: usize) -> NodeAddress {
    NodeAddress(side as u32 + 1)
}

pub fn addresses_from(side: usize) -> AddressPair {
    AddressPair::nodes(address(side), address(1 - side))
}

impl App {
    fn read(&mut self, machine: &mut impl Fuzzed, id: TcpConnectionId) {
        while let Some(chunk) = machine.read(id) {
            if self.bystander == Some(id) {
                self.bystander_read.extend_from_slice(&chunk);
            } else if self.watched == Some(id) {
                self.read.extend_from_slice(&chunk);
            }
            machine.recycle(id, chunk);
        }
    }
}

impl<E: Fuzzed> MachineDriver<Strict<E>> for App {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }
    fn send(&mut self, _now: Instant, transmit: Transmit) {
        self.answers += 1;
        // The address that it names does not matter here: the path says where it goes.
        let (from, to) = (
            NodeAddress(3 - transmit.path.0),
            NodeAddress(transmit.path.0),
        );
        let header = E::header(&AddressPair::nodes(from, to), &self.buffer);
        self.last = header.expect("what is sent is sound");
        if self.out.len() < 512 {
            self.out.push_back(self.buffer.clone());
        }
    }
    fn deliver(&mut self, _now: Instant, machine: &mut Strict<E>, event: TcpEvent) {
        match event {
            TcpEvent::Incoming { id, local, .. } if local == BYSTANDER => {
                self.bystander.get_or_insert(id);
            }
            TcpEvent::Incoming { id, .. } => {
                self.id.get_or_insert(id);
                self.watched.get_or_insert(id);
            }
            TcpEvent::Readable(id) if self.reads || self.bystander == Some(id) => {
                self.read(machine.app(), id)
            }
            _ => {}
        }
    }
}

impl<E: Fuzzed> End<E> {
    fn settle(&mut self, now: Instant, limits: &Limits) {
        self.app.answers = 0;
        drain(&mut self.machine, now, &mut self.app);
        assert!(self.app.answers <= limits.answers, "{}", self.app.answers);
        let endpoint = self.machine.inner();
        assert!(endpoint.connections() <= CONNECTIONS_MAX);
        assert!(
            endpoint.memory_bytes() <= limits.memory_bytes,
            "{}",
            endpoint.memory_bytes()
        );
    }

    fn take(&mut self, now: Instant, from: usize, octets: &[u8], ecn: Ecn, limits: &Limits) {
        let path = PathId(address(from).0);
        self.machine
            .handle_datagram(now, Datagram { path, octets, ecn });
        self.settle(now, limits);
    }

    fn wake(&mut self, now: Instant, limits: &Limits) {
        for _ in 0..64 {
            match self.machine.next_deadline() {
                Some(deadline) if deadline.at <= now => self.machine.handle_deadline(now),
                _ => return,
            }
            self.settle(now, limits);
        }
    }
}

pub fn octets(side: usize, from: usize, len: usize) -> Vec<u8> {
    (from..from + len)
        .map(|i| (i.wrapping_mul(31) >> 3) as u8 ^ side as u8)
        .collect()
}

fn wake_all<E: Fuzzed>(ends: &mut [End<E>; 2], now: Instant, limits: &[Limits; 2]) {
    for (end, limits) in ends.iter_mut().zip(limits) {
        end.wake(now, limits);
    }
}

/// Delivers everything that is sent, until nothing is sent.
fn exchange<E: Fuzzed>(ends: &mut [End<E>; 2], now: Instant, limits: &[Limits; 2]) {
    for _ in 0..100 {
        for side in 0..2 {
            for segment in core::mem::take(&mut ends[side].app.out) {
                ends[1 - side].take(now, side, &segment, Ecn::NotCapable, &limits[1 - side]);
            }
        }
        if ends.iter().all(|end| end.app.out.is_empty()) {
            return;
        }
    }
}

/// Asserts that octets pass on this connection, whatever happened to the others.
fn assert_bystander_unharmed<E: Fuzzed>(
    ends: &mut [End<E>; 2],
    start: Instant,
    limits: &[Limits; 2],
) {
    for end in ends.iter_mut() {
        // What is on the way to the forged connection may have filled the road.
        end.app.out.clear();
    }
    let id = ends[0].app.bystander.expect("it was opened");
    let sent = octets(0, 0, BYSTANDER_BYTES);
    assert_eq!(ends[0].machine.app().write(id, &sent), Ok(sent.len()));
    ends[0].settle(start, &limits[0]);
    let mut now = start;
    for _ in 0..20 {
        exchange(ends, now, limits);
        if ends[1].app.bystander_read == sent {
            return;
        }
        now += Duration::from_millis(500);
        wake_all(ends, now, limits);
    }
    panic!(
        "the bystander received {} octets",
        ends[1].app.bystander_read.len()
    );
}

/// Runs `steps` on two endpoints with `settings` and random streams of `seeds`.
pub fn run<E: Fuzzed>(settings: [E::Settings; 2], seeds: [u8; 2], steps: &[Step<E::Forgery>]) {
    let limits = settings.each_ref().map(E::limits);
    let end = |side: usize| End {
        machine: Strict::new(E::new(
            TcpEndpointConfig {
                local: address(side),
                connections_max: CONNECTIONS_MAX,
            },
            Rng::from_seed(u64::from(seeds[side])),
        )),
        app: App {
            reads: true,
            ..App::default()
        },
    };
    let mut ends: [End<E>; 2] = [end(0), end(1)];
    let mut now = Instant::START;
    ends[1]
        .machine
        .app()
        .listen(PORT, settings[1])
        .expect("sane");
    ends[1]
        .machine
        .app()
        .listen(BYSTANDER, E::bystander())
        .expect("sane");
    ends[1].settle(now, &limits[1]);
    let path = PathId(address(1).0);
    let id = ends[0]
        .machine
        .app()
        .connect(path, BYSTANDER, BYSTANDER, E::bystander());
    ends[0].app.bystander = Some(id.expect("sane"));
    ends[0].settle(now, &limits[0]);
    exchange(&mut ends, now, &limits);
    let id = ends[0]
        .machine
        .app()
        .connect(path, Port(7), PORT, settings[0]);
    let id = id.expect("sane");
    ends[0].app.id = Some(id);
    ends[0].app.watched = Some(id);
    ends[0].settle(now, &limits[0]);

    let mut written = [0_usize; 2];
    let mut honest = true;
    let mut spared = true;
    for step in steps.iter().take(400) {
        match step {
            Step::Write { side, octets: len } => {
                let side = usize::from(*side);
                let more = octets(side, written[side], usize::from(*len));
                if let Some(id) = ends[side].app.id {
                    let room = ends[side].machine.inner().room(id);
                    let taken = ends[side].machine.app().write(id, &more).unwrap_or(0);
                    assert!(taken <= room);
                    written[side] += taken;
                    ends[side].settle(now, &limits[side]);
                }
            }
            Step::Read { side } => {
                let End { machine, app } = &mut ends[usize::from(*side)];
                app.reads = !app.reads;
                if let Some(id) = app.id {
                    app.read(machine.app(), id);
                }
                ends[usize::from(*side)].settle(now, &limits[usize::from(*side)]);
            }
            Step::Close { side } | Step::Abort { side } => {
                let side = usize::from(*side);
                if let Some(id) = ends[side].app.id {
                    match step {
                        Step::Close { .. } => ends[side].machine.app().close(id),
                        _ => ends[side].machine.app().abort(now, id),
                    }
                    ends[side].settle(now, &limits[side]);
                }
            }
            Step::Deliver { side, marked } => {
                let side = usize::from(*side);
                let ecn = if *marked {
                    Ecn::Congested
                } else {
                    Ecn::NotCapable
                };
                if let Some(segment) = ends[side].app.out.pop_front() {
                    ends[1 - side].take(now, side, &segment, ecn, &limits[1 - side]);
                }
            }
            Step::DeliverAll { side } => {
                let side = usize::from(*side);
                for segment in core::mem::take(&mut ends[side].app.out) {
                    ends[1 - side].take(now, side, &segment, Ecn::NotCapable, &limits[1 - side]);
                }
            }
            Step::Duplicate { side } => {
                let side = usize::from(*side);
                if let Some(segment) = ends[side].app.out.front().cloned() {
                    ends[1 - side].take(now, side, &segment, Ecn::NotCapable, &limits[1 - side]);
                }
            }
            Step::Lose { side } => {
                ends[usize::from(*side)].app.out.pop_front();
            }
            Step::Overtake { side } => {
                let out = &mut ends[usize::from(*side)].app.out;
                if let Some(front) = out.pop_front() {
                    out.push_back(front);
                }
            }
            Step::Damage { side, bit } => {
                let side = usize::from(*side);
                if let Some(mut segment) = ends[side].app.out.pop_front() {
                    // One inverted bit, which the checksum never misses.
                    let bit = usize::from(*bit) % (segment.len() * 8);
                    segment[bit / 8] ^= 1 << (bit % 8);
                    ends[1 - side].take(now, side, &segment, Ecn::NotCapable, &limits[1 - side]);
                }
            }
            Step::Forge { side, forgery } => {
                honest = false;
                let side = usize::from(*side);
                spared &= ends[side].app.last.source != BYSTANDER;
                let segment = E::forge(side, &ends[side].app.last, forgery);
                assert!(E::header(&addresses_from(side), &segment).is_some());
                ends[1 - side].take(now, side, &segment, Ecn::NotCapable, &limits[1 - side]);
            }
            Step::Noise { side, octets } => {
                // The fuzzer can find what a checksum of 16 bits accepts.
                let side = usize::from(*side);
                if let Some(header) = E::header(&addresses_from(side), octets) {
                    honest = false;
                    spared &= header.destination != BYSTANDER;
                }
                ends[1 - side].take(now, side, octets, Ecn::NotCapable, &limits[1 - side]);
            }
            Step::Wait { milliseconds } => {
                now += Duration::from_millis(u64::from(*milliseconds));
                wake_all(&mut ends, now, &limits);
            }
            Step::WaitForDeadline { side } => {
                let next = ends[usize::from(*side)].machine.next_deadline();
                now = next.map_or(now, |deadline| deadline.at.max(now));
                wake_all(&mut ends, now, &limits);
            }
        }
    }
    if spared {
        assert_bystander_unharmed(&mut ends, now, &limits);
    }
    if honest {
        for side in 0..2 {
            let read = &ends[1 - side].app.read;
            assert!(read.len() <= written[side]);
            assert_eq!(*read, octets(side, 0, read.len()));
        }
    }
}
