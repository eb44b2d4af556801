//! Two ends of a link layer under an arbitrary list of operations, with nonsense and with sound frames that
//! lie: never a panic, and an end keeps no more than its window allows. As long as no frame lies, packets
//! that come out were offered, come once and in order, and all packets offered at the end, without faults,
//! come.

#![no_main]

use arbitrary::Arbitrary;
use fulmar_baseline::link::{
    AnyLink, ArqConfig, FlowHash, FrameTransmit, HarqConfig, LinkDriver, LinkLayer, LinkMachine,
    LinkPacket, Medium, SlacpConfig, StrictLink, drain,
};
use fulmar_baseline::wire::link::arq::{ArqFrame, Epoch};
use fulmar_baseline::wire::link::harq::{
    HarqBlockReport, HarqFeedback, HarqFrame, HarqUnit, UnitKind,
};
use fulmar_baseline::wire::link::slacp::{
    self, BlockPlace, FrameSeq, Incarnation, LANES, Lane, LaneSet, Missing,
};
use fulmar_baseline::wire::link::{Challenge, FrameNumber};
use fulmar_proto::machine::{Priority, TransmitKind};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeSet, VecDeque};

#[derive(Arbitrary, Debug)]
struct Plan {
    layer: u8,
    window: u8,
    fragments: u8,
    retries: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Offer {
        side: bool,
        octets: u16,
    },
    Deliver {
        side: bool,
    },
    DeliverAll {
        side: bool,
    },
    Duplicate {
        side: bool,
    },
    Lose {
        side: bool,
    },
    Overtake {
        side: bool,
    },
    /// A frame is held up, and one that was held up arrives.
    Hold {
        side: bool,
    },
    Release {
        side: bool,
        which: u8,
    },
    Damage {
        side: bool,
        bit: u16,
    },
    Nonsense {
        side: bool,
        octets: Vec<u8>,
    },
    Lie {
        side: bool,
        lie: Lie,
    },
    Restart {
        side: bool,
    },
    Wait {
        milliseconds: u16,
    },
    WaitForDeadline {
        side: bool,
    },
}

/// A sound frame with any fields, from `side`.
#[derive(Arbitrary, Debug)]
struct Lie {
    kind: u8,
    /// The life it names: the number of lives before the present one of its side, or any name.
    life: Result<u8, u16>,
    numbers: [u16; 3],
    shape: [u8; 4],
    octets: Vec<u8>,
}

const RATE: Bitrate = Bitrate::from_bits_per_second(10_000_000);
/// The delay one way.
const DELAY: Duration = Duration::from_millis(10);
/// The longest packet that is offered, and the longest frame that lies.
const LONGEST: usize = 1_600;
/// Frames that the medium takes before it carries some.
const WAITING_MAX: usize = 256;
const LAST_PACKETS: usize = 5;

struct End {
    machine: StrictLink<AnyLink>,
    port: Port,
    /// All its lives so far.
    births: Vec<u64>,
}

#[derive(Default)]
struct Port {
    queue: VecDeque<Vec<u8>>,
    taken: Vec<u8>,
    up: Vec<u8>,
    released: Vec<Vec<u8>>,
    frame: Vec<u8>,
    out: VecDeque<Vec<u8>>,
    held: Vec<Vec<u8>>,
}

impl LinkDriver for Port {
    fn next_packet(&mut self, _now: Instant, least: Priority) -> Option<LinkPacket<'_>> {
        if least > Priority(0) {
            return None;
        }
        self.taken = self.queue.pop_front()?;
        Some(LinkPacket {
            octets: &self.taken,
            flow: FlowHash(0),
            priority: Priority(0),
            kind: TransmitKind::Source,
            deadline: None,
        })
    }
    fn packet_buffer(&mut self) -> &mut Vec<u8> {
        self.up.clear();
        &mut self.up
    }
    fn deliver(&mut self, _now: Instant, _len: usize) {
        self.released.push(self.up.clone());
    }
    fn can_send(&self) -> bool {
        self.out.len() < WAITING_MAX
    }
    fn frame_buffer(&mut self) -> &mut Vec<u8> {
        self.frame.clear();
        &mut self.frame
    }
    fn send(&mut self, _now: Instant, _frame: FrameTransmit) {
        self.out.push_back(self.frame.clone());
    }
}

/// A layer, whether it keeps order, and the most that an end may keep.
struct Chosen {
    layer: LinkLayer,
    in_order: bool,
    memory: ByteCount,
}

fn chosen(plan: &Plan) -> Chosen {
    let window = u16::from(plan.window % 64) + 1;
    let octets = |packets: usize| packets * LONGEST;
    let arq = |preset: ArqConfig| {
        let config = ArqConfig {
            window: window.min(preset.window),
            retries: plan.retries % 8,
            ..preset
        };
        (
            LinkLayer::Arq(config),
            config.keeps_order(),
            octets(3 * usize::from(window) + 1),
        )
    };
    let (layer, in_order, memory) = match plan.layer % 8 {
        0 => (LinkLayer::Plain, true, octets(1_025)),
        1 => arq(ArqConfig::STOP_AND_WAIT),
        2 => arq(ArqConfig::GO_BACK_N),
        3 => arq(ArqConfig::SELECTIVE_REPEAT),
        4 => arq(ArqConfig::LL_ARQ),
        7 => arq(ArqConfig::NAK_ONLY),
        5 => {
            let config = HarqConfig {
                window,
                fragments: plan.fragments % 64 + 1,
                ..HarqConfig::default()
            };
            // A block has 255 units, however long its liar makes them, and packets that are put together.
            let blocks = (2 * usize::from(window) + 2) * octets(256 + 16);
            (
                LinkLayer::LlHarq(config),
                true,
                blocks + octets(usize::from(window) + 1_024),
            )
        }
        _ => {
            let lanes = LANES * 4 * 256 * LONGEST;
            (
                LinkLayer::Slacp(SlacpConfig::default()),
                true,
                octets(2 * 4_096 + 512) + lanes,
            )
        }
    };
    Chosen {
        layer,
        in_order,
        memory: ByteCount::from_usize(memory),
    }
}

fn machine(layer: &LinkLayer, birth: u64) -> StrictLink<AnyLink> {
    let medium = Medium {
        rate: Some(RATE),
        back_rate: Some(RATE),
        round_trip: DELAY * 2,
        access: Duration::from_millis(3),
    };
    StrictLink::new(layer.machine(medium, &mut Rng::from_seed(birth)))
}

/// The names of a life of this birth: in SLACP, and in the other layers.
fn names(birth: u64) -> (Incarnation, Epoch) {
    let incarnation = u32::try_from(Rng::from_seed(birth).next_u64() >> 32).unwrap_or(u32::MAX);
    let epoch = u16::try_from(Rng::from_seed(birth).below(1 << 16)).unwrap_or_default();
    (Incarnation(incarnation.max(1)), Epoch(epoch))
}

impl Lie {
    fn encode(&self, births: &[u64]) -> Vec<u8> {
        let (incarnation, epoch) = match self.life {
            Ok(back) => names(births[births.len() - 1 - usize::from(back) % births.len()]),
            Err(name) => (Incarnation(u32::from(name)), Epoch(name)),
        };
        let [a, b, c] = self.numbers;
        let [index, k, n, lane] = self.shape;
        let (number, base) = (FrameNumber(a), FrameNumber(b));
        let challenge = Challenge(u32::from(a) << 16 | u32::from(b));
        let octets = &self.octets[..self.octets.len().min(LONGEST)];
        let short = &octets[..octets.len().min(100)];
        let seq = FrameSeq(a);
        let place = BlockPlace {
            block: b as u8,
            index,
        };
        let mut out = Vec::new();
        match self.kind % 18 {
            0 => ArqFrame::Data {
                epoch,
                number,
                base,
                again: c % 2 == 1,
                packet: octets,
            }
            .encode(&mut out),
            1 => ArqFrame::Advance { epoch, base }.encode(&mut out),
            2 => ArqFrame::Ack {
                epoch,
                next: number,
                bits: short,
            }
            .encode(&mut out),
            3 => ArqFrame::Challenge(challenge).encode(&mut out),
            4 => ArqFrame::Answer {
                epoch,
                base,
                challenge,
            }
            .encode(&mut out),
            5 | 6 => {
                let kind = if self.kind % 18 == 5 {
                    UnitKind::Source { index }
                } else {
                    UnitKind::Parity {
                        row: index,
                        span: k,
                        left: n,
                        answers: c % 2 == 1,
                    }
                };
                let unit = HarqUnit {
                    epoch,
                    serial: c.to_be_bytes()[0],
                    block: number,
                    before: lane,
                    kind,
                };
                unit.encode(octets, &mut out);
            }
            7 => {
                let report = |report: &[u8]| match *report {
                    [span, need] => HarqBlockReport::Heard { span, need },
                    _ => HarqBlockReport::Coming,
                };
                let reports = short.chunks(2).map(report).collect();
                let feedback = HarqFeedback {
                    epoch,
                    next: number,
                    loss: b,
                    damage: (k % 2 == 1).then_some(c),
                    margin: k,
                    answer_margin: n,
                    reports,
                };
                feedback.encode(&mut out);
            }
            8 => HarqFrame::Challenge(challenge).encode(&mut out),
            9 => HarqFrame::Answer {
                epoch,
                base,
                challenge,
            }
            .encode(&mut out),
            10 => slacp::encode_data(incarnation, Lane::new(lane), seq, octets, &mut out),
            11 => slacp::encode_again(incarnation, Lane::new(lane), seq, place, octets, &mut out),
            12 => slacp::encode_parity(incarnation, Lane::new(lane), k, place, octets, &mut out),
            13 => {
                let missing = short.chunks_exact(4).map(|m| Missing {
                    start: FrameSeq(u16::from_be_bytes([m[0], m[1]])),
                    count: u16::from_be_bytes([m[2], m[3]]),
                });
                let (peer, ends) = (Incarnation(u32::from(c)), (seq, FrameSeq(b)));
                slacp::encode_ack(incarnation, Lane::new(lane), peer, ends, missing, &mut out);
            }
            14 => slacp::encode_floor(incarnation, Lane::new(lane), seq, &mut out),
            15 => {
                let under_way = if n % 2 == 1 {
                    LaneSet::default().with(Lane::new(lane))
                } else {
                    LaneSet::default()
                };
                slacp::encode_hello(
                    incarnation,
                    challenge,
                    under_way,
                    [FrameSeq(c); LANES],
                    &mut out,
                );
            }
            16 => slacp::encode_challenge(challenge, &mut out),
            _ => {
                let ranges = &short[..short.len() / 4 * 4];
                ArqFrame::Request { epoch, ranges }.encode(&mut out);
            }
        }
        out
    }
}

struct Hop {
    chosen: Chosen,
    ends: [End; 2],
    now: Instant,
    offered: u32,
    /// Numbers that an end released, since it was born.
    came: [BTreeSet<u32>; 2],
    honest: bool,
}

impl Hop {
    fn settle(&mut self, side: usize) {
        let End { machine, port, .. } = &mut self.ends[side];
        drain(machine, self.now, port);
        let held = machine.held();
        assert!(
            held <= self.chosen.memory,
            "{held} of {}",
            self.chosen.memory
        );
        for packet in core::mem::take(&mut port.released) {
            if self.honest {
                self.check(side, &packet);
            }
        }
    }

    fn check(&mut self, side: usize, packet: &[u8]) {
        let number = packet.first_chunk().map(|head| u32::from_be_bytes(*head));
        let number = number.expect("every packet has a number");
        assert_eq!(packet, octets(number, packet.len()), "packet {number}");
        let came = &mut self.came[side];
        let ordered = came.last().is_none_or(|last| *last < number);
        assert!(ordered || !self.chosen.in_order, "{number} behind {came:?}");
        assert!(came.insert(number), "{number} twice");
    }

    fn take(&mut self, side: usize, frame: &[u8]) {
        self.ends[side].machine.handle_frame(self.now, frame);
        self.settle(side);
    }

    fn wake(&mut self) {
        for side in 0..2 {
            for _ in 0..64 {
                let due = self.ends[side]
                    .machine
                    .next_deadline()
                    .is_some_and(|d| d.at <= self.now);
                if !due {
                    break;
                }
                self.ends[side].machine.handle_deadline(self.now);
                self.settle(side);
            }
        }
    }

    fn offer(&mut self, side: usize, len: usize) -> u32 {
        let number = self.offered;
        self.offered += 1;
        self.ends[side]
            .port
            .queue
            .push_back(octets(number, len.max(4)));
        self.settle(side);
        number
    }

    /// Frames that the medium repeats or lets overtake each other: the plain layer cannot tell.
    fn reorders(&mut self) -> bool {
        !matches!(self.chosen.layer, LinkLayer::Plain)
    }

    /// Whether an end could take these octets for a frame.
    fn is_sound(&self, octets: &[u8]) -> bool {
        let lives = self.ends.iter().flat_map(|end| &end.births);
        let mut names = lives
            .map(|birth| names(*birth).0)
            .chain([Incarnation::UNKNOWN]);
        ArqFrame::parse(octets).is_ok()
            || HarqFrame::parse(octets).is_ok()
            || fulmar_baseline::wire::link::plain::parse(octets).is_ok()
            || names.any(|name| slacp::parse(octets, name).is_ok())
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Offer { side, octets } => {
                if self.ends[usize::from(*side)].port.queue.len() < 64 {
                    self.offer(usize::from(*side), usize::from(*octets) % LONGEST);
                }
            }
            Step::Deliver { side } => {
                if let Some(frame) = self.ends[usize::from(*side)].port.out.pop_front() {
                    self.take(usize::from(!*side), &frame);
                }
            }
            Step::DeliverAll { side } => {
                for frame in core::mem::take(&mut self.ends[usize::from(*side)].port.out) {
                    self.take(usize::from(!*side), &frame);
                }
            }
            Step::Duplicate { side } => {
                let frame = self.ends[usize::from(*side)].port.out.front().cloned();
                if let Some(frame) = frame.filter(|_| self.reorders()) {
                    self.take(usize::from(!*side), &frame);
                }
            }
            Step::Lose { side } => {
                self.ends[usize::from(*side)].port.out.pop_front();
            }
            Step::Overtake { side } => {
                let reorders = self.reorders();
                let out = &mut self.ends[usize::from(*side)].port.out;
                if let Some(front) = out.pop_front().filter(|_| reorders) {
                    out.push_back(front);
                }
            }
            Step::Hold { side } => {
                let port = &mut self.ends[usize::from(*side)].port;
                if let Some(frame) = port.out.front().cloned() {
                    port.held.push(frame);
                }
            }
            Step::Release { side, which } => {
                let held = &self.ends[usize::from(*side)].port.held;
                let frame = held.get(usize::from(*which) % held.len().max(1)).cloned();
                if let Some(frame) = frame.filter(|_| self.reorders()) {
                    self.take(usize::from(!*side), &frame);
                }
            }
            Step::Damage { side, bit } => {
                if let Some(mut frame) = self.ends[usize::from(*side)].port.out.pop_front() {
                    // One inverted bit, which no check misses.
                    let bit = usize::from(*bit) % (frame.len() * 8);
                    frame[bit / 8] ^= 1 << (bit % 8);
                    self.take(usize::from(!*side), &frame);
                }
            }
            Step::Nonsense { side, octets } => {
                self.honest &= !self.is_sound(octets);
                self.take(usize::from(*side), octets);
            }
            Step::Lie { side, lie } => {
                self.honest = false;
                let frame = lie.encode(&self.ends[usize::from(!*side)].births);
                self.take(usize::from(*side), &frame);
            }
            Step::Restart { side } => {
                let side = usize::from(*side);
                let birth = 2 + self
                    .ends
                    .iter()
                    .map(|end| end.births.len() as u64)
                    .sum::<u64>();
                let end = &mut self.ends[side];
                end.machine = machine(&self.chosen.layer, birth);
                end.births.push(birth);
                self.came[side].clear();
                self.settle(side);
            }
            Step::Wait { milliseconds } => {
                self.now += Duration::from_millis(u64::from(*milliseconds));
                self.wake();
            }
            Step::WaitForDeadline { side } => {
                let next = self.ends[usize::from(*side)].machine.next_deadline();
                self.now = next.map_or(self.now, |deadline| deadline.at.max(self.now));
                self.wake();
            }
        }
    }

    /// Delivers everything that is sent after a way's time, until nothing happens.
    fn run_out(&mut self) {
        for _ in 0..20_000 {
            let out = self
                .ends
                .each_mut()
                .map(|end| core::mem::take(&mut end.port.out));
            let deadlines = self
                .ends
                .iter()
                .filter_map(|end| end.machine.next_deadline());
            let next = deadlines.map(|deadline| deadline.at).min();
            if out.iter().all(VecDeque::is_empty) {
                match next {
                    Some(at) => self.now = self.now.max(at),
                    None => return,
                }
            } else {
                // Deadlines that come while frames are on the way.
                let arrival = self.now + DELAY;
                while let Some(at) = self
                    .ends
                    .iter()
                    .filter_map(|end| end.machine.next_deadline())
                    .map(|d| d.at)
                    .min()
                    && at < arrival
                {
                    self.now = self.now.max(at);
                    self.wake();
                }
                self.now = arrival;
                for (from, frames) in out.into_iter().enumerate() {
                    for frame in frames {
                        self.take(1 - from, &frame);
                    }
                }
            }
            self.wake();
        }
        assert!(!self.honest, "a hop without packets must come to rest");
    }
}

fn octets(number: u32, len: usize) -> Vec<u8> {
    let mut octets = number.to_be_bytes().to_vec();
    octets.resize(len.max(4), number as u8);
    octets
}

fuzz_target!(|plan: Plan| {
    let chosen = chosen(&plan);
    let end = |birth| End {
        machine: machine(&chosen.layer, birth),
        port: Port::default(),
        births: vec![birth],
    };
    let ends = [end(0), end(1)];
    let mut hop = Hop {
        chosen,
        ends,
        now: Instant::START,
        offered: 0,
        came: [BTreeSet::new(), BTreeSet::new()],
        honest: true,
    };
    for step in plan.steps.iter().take(300) {
        hop.step(step);
    }
    hop.run_out();
    if !hop.honest {
        return;
    }
    for side in 0..2 {
        let last: Vec<u32> = (0..LAST_PACKETS).map(|_| hop.offer(side, 100)).collect();
        hop.run_out();
        let came = &hop.came[1 - side];
        assert!(
            last.iter().all(|number| came.contains(number)),
            "{last:?} of {came:?}"
        );
    }
});
