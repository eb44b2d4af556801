//! Two LT-TCPs under an arbitrary list of operations: whatever the medium, the applications and forgers do, neither
//! panics and each input is answered by a bounded number of segments. As long as nobody forges, what is read is a prefix
//! of what was written. Another connection between the two, which nobody can forge, is not harmed.

#![no_main]

use arbitrary::Arbitrary;
use fulmar_proto::machine::{Datagram, Driver, Ecn, Machine, PathId, Strict, Transmit, drain};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::lt_tcp::{LtTcpConfig, LtTcpEndpoint};
use fulmar_proto::transport::tcp::{TcpConnectionId, TcpEndpointConfig, TcpEvent};
use fulmar_proto::units::{ByteCount, Duration, Instant, Probability};
use fulmar_proto::wire::aerotp::Port;
use fulmar_proto::wire::lt_tcp::{BlockReport, Extension, Feedback, LtSegment, UnitHeader, write_segment};
use fulmar_proto::wire::network::NodeAddress;
use fulmar_proto::wire::tcp::{AddressPair, SackBlock, TcpFlags, TcpHeader};
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;

#[derive(Arbitrary, Debug)]
struct Plan {
    ends: [Settings; 2],
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
struct Settings {
    mss: u8,
    granularity: u8,
    units_max: u8,
    proactive: u8,
    reactive: u8,
    ack_every: u8,
    ecn: bool,
    receive_buffer: u16,
    send_buffer: u16,
    retries: u8,
    seed: u8,
}

#[derive(Arbitrary, Debug)]
enum Step {
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
    Forge { side: bool, forgery: Forgery },
    Noise { side: bool, octets: Vec<u8> },
    Wait { milliseconds: u16 },
    WaitForDeadline { side: bool },
}

/// A segment with a sound checksum, a variation of what the forged side sent last.
#[derive(Arbitrary, Debug)]
struct Forgery {
    sequence: i32,
    acknowledgement: i32,
    flags: u8,
    window: u16,
    mss: Option<u16>,
    scale: Option<u8>,
    behind: Behind,
}

#[derive(Arbitrary, Debug)]
enum Behind {
    Nothing,
    Unit { index: u8, ordinal: u16, block: u16, k: u8, n: u8, length: u16 },
    Feedback { arrived_end: u16, arrivals: u16, loss: u16, deviation: u16, reports: Vec<(u8, u8, u8, u8)>, runs: Vec<(i32, i32)> },
}

const PORT: Port = Port(9);
/// The other connection's ports, at both ends.
const BYSTANDER: Port = Port(11);
const BYSTANDER_BYTES: usize = 3_000;
const CONNECTIONS_MAX: usize = 4;
/// Resets to strangers that an endpoint keeps, and answers that are due at once.
const ANSWERS_MAX: usize = 80;

struct End {
    machine: Strict<LtTcpEndpoint>,
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

fn addresses_from(side: usize) -> AddressPair {
    AddressPair::nodes(address(side), address(1 - side))
}

impl App {
    fn read(&mut self, machine: &mut LtTcpEndpoint, id: TcpConnectionId) {
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

impl Driver<Strict<LtTcpEndpoint>> for App {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }
    fn send(&mut self, _now: Instant, transmit: Transmit) {
        self.answers += 1;
        // Whose address it names does not matter here: the path says where it goes.
        let (from, to) = (NodeAddress(3 - transmit.path.0), NodeAddress(transmit.path.0));
        let segment = LtSegment::parse(&AddressPair::nodes(from, to), &self.buffer);
        self.last = segment.expect("what is sent is sound").header;
        if self.out.len() < 512 {
            self.out.push_back(self.buffer.clone());
        }
    }
    fn deliver(&mut self, _now: Instant, machine: &mut Strict<LtTcpEndpoint>, event: TcpEvent) {
        match event {
            TcpEvent::Incoming { id, local, .. } if local == BYSTANDER => {
                self.bystander.get_or_insert(id);
            }
            TcpEvent::Incoming { id, .. } => {
                self.id.get_or_insert(id);
                self.watched.get_or_insert(id);
            }
            TcpEvent::Readable(id) if self.reads || self.bystander == Some(id) => self.read(machine.app(), id),
            _ => {}
        }
    }
}

impl End {
    fn settle(&mut self, now: Instant, limits: &Limits) {
        self.app.answers = 0;
        drain(&mut self.machine, now, &mut self.app);
        assert!(self.app.answers <= limits.answers, "{}", self.app.answers);
    }

    fn take(&mut self, now: Instant, from: usize, octets: &[u8], ecn: Ecn, limits: &Limits) {
        let path = PathId(address(from).0);
        self.machine.handle_datagram(now, Datagram { path, octets, ecn });
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

/// What an input may cost at most.
struct Limits {
    answers: usize,
}

impl Limits {
    fn of(_: &LtTcpConfig) -> Self {
        // A block may be 256 units for any number of octets, and so may what is sent again.
        Self { answers: CONNECTIONS_MAX * 64 * 256 + ANSWERS_MAX }
    }
}

/// A sane configuration.
fn bystander() -> LtTcpConfig {
    LtTcpConfig {
        send_buffer: ByteCount(BYSTANDER_BYTES as u64),
        receive_buffer: ByteCount(BYSTANDER_BYTES as u64),
        ..LtTcpConfig::default()
    }
}

fn octets(side: usize, from: usize, len: usize) -> Vec<u8> {
    (from..from + len)
        .map(|i| (i.wrapping_mul(31) >> 3) as u8 ^ side as u8)
        .collect()
}

fn config(settings: &Settings) -> LtTcpConfig {
    let share = |octet: u8| Probability::new(0.99 * f64::from(octet) / 255.0).unwrap_or_default();
    let mut config = LtTcpConfig::default();
    config.mss = 300 + 4 * u16::from(settings.mss);
    config.unit_min = 64;
    config.granularity = settings.granularity % 20 + 1;
    config.units_max = config.granularity + settings.units_max % 140;
    config.fec.proactive = share(settings.proactive);
    config.fec.reactive = share(settings.reactive);
    config.ack_every = settings.ack_every % 4 + 1;
    config.ecn = settings.ecn;
    config.receive_buffer = ByteCount(u64::from(settings.receive_buffer % 20_000) + 2_000);
    config.send_buffer = ByteCount(u64::from(settings.send_buffer % 20_000) + 2_000);
    config.syn_retries = settings.retries % 8;
    config.data_retries = settings.retries % 16;
    config
}

/// The forged segment, as if `side` had sent it.
fn forged(side: usize, last: &TcpHeader, forgery: &Forgery) -> Vec<u8> {
    let near = |number: u32, distance: i32| number.wrapping_add_signed(distance);
    let mut header = *last;
    header.seq.0 = near(last.seq.0, forgery.sequence);
    header.ack.0 = near(last.ack.0, forgery.acknowledgement);
    header.flags = TcpFlags(forgery.flags);
    header.window = forgery.window;
    header.options.mss = forgery.mss;
    header.options.window_scale = forgery.scale;
    let mut content = Vec::new();
    let extension = match &forgery.behind {
        Behind::Nothing => Extension::None,
        &Behind::Unit { index, ordinal, block, k, n, length } => {
            let length = u32::from(length % 5_000) + 1;
            let unit = UnitHeader { index, ordinal, block, k, n, length };
            content.resize(unit.payload_len(), 7);
            Extension::Unit(unit, &content)
        }
        Behind::Feedback { arrived_end, arrivals, loss, deviation, reports, runs } => {
            let report = |&(block, received, needed, lost): &(u8, u8, u8, u8)| BlockReport {
                block: u16::from(block),
                received,
                needed,
                lost,
            };
            let run = |&(start, end): &(i32, i32)| {
                let mut run = SackBlock::default();
                run.start.0 = near(header.ack.0, start);
                run.end.0 = near(header.ack.0, end);
                run
            };
            Extension::Feedback(Feedback {
                arrived_end: *arrived_end,
                arrivals: *arrivals,
                loss: *loss,
                deviation: *deviation,
                reports: reports.iter().take(15).map(report).collect(),
                runs: runs.iter().take(4).map(run).collect(),
            })
        }
    };
    let mut out = Vec::new();
    write_segment(&header, &extension, &addresses_from(side), &mut Vec::new(), &mut out);
    out
}

fn wake_all(ends: &mut [End; 2], now: Instant, limits: &[Limits; 2]) {
    for (end, limits) in ends.iter_mut().zip(limits) {
        end.wake(now, limits);
    }
}

/// Everything that is sent arrives, until nothing is sent.
fn exchange(ends: &mut [End; 2], now: Instant, limits: &[Limits; 2]) {
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

/// Whatever happened to the other connections, octets pass on this one.
fn assert_bystander_unharmed(ends: &mut [End; 2], start: Instant, limits: &[Limits; 2]) {
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
    panic!("the bystander received {} octets", ends[1].app.bystander_read.len());
}

fuzz_target!(|plan: Plan| {
    let configs = plan.ends.each_ref().map(config);
    let limits = configs.each_ref().map(Limits::of);
    let end = |side: usize| End {
        machine: Strict::new(LtTcpEndpoint::new(
            TcpEndpointConfig {
                local: address(side),
                connections_max: CONNECTIONS_MAX,
            },
            Rng::from_seed(u64::from(plan.ends[side].seed)),
        )),
        app: App {
            reads: true,
            ..App::default()
        },
    };
    let mut ends = [end(0), end(1)];
    let mut now = Instant::START;
    ends[1].machine.app().listen(PORT, configs[1]).expect("sane");
    ends[1].machine.app().listen(BYSTANDER, bystander()).expect("sane");
    ends[1].settle(now, &limits[1]);
    let path = PathId(address(1).0);
    let id = ends[0].machine.app().connect(path, BYSTANDER, BYSTANDER, bystander());
    ends[0].app.bystander = Some(id.expect("sane"));
    ends[0].settle(now, &limits[0]);
    exchange(&mut ends, now, &limits);
    let id = ends[0].machine.app().connect(path, Port(7), PORT, configs[0]);
    let id = id.expect("sane");
    ends[0].app.id = Some(id);
    ends[0].app.watched = Some(id);
    ends[0].settle(now, &limits[0]);

    let mut written = [0_usize; 2];
    let mut honest = true;
    let mut spared = true;
    for step in plan.steps.iter().take(400) {
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
                        _ => ends[side].machine.app().abort(id),
                    }
                    ends[side].settle(now, &limits[side]);
                }
            }
            Step::Deliver { side, marked } => {
                let side = usize::from(*side);
                let ecn = if *marked { Ecn::Congested } else { Ecn::NotCapable };
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
                let segment = forged(side, &ends[side].app.last, forgery);
                ends[1 - side].take(now, side, &segment, Ecn::NotCapable, &limits[1 - side]);
            }
            Step::Noise { side, octets } => {
                // The fuzzer can find what a checksum of 16 bits accepts.
                let side = usize::from(*side);
                if let Ok(segment) = TcpHeader::parse(&addresses_from(side), octets) {
                    honest = false;
                    spared &= segment.header.destination != BYSTANDER;
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
});
