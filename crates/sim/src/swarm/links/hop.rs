//! Two ends of a link layer, a medium that does its worst, and the promises that are checked.

use crate::guard::GuardedLink;
use fulmar_baseline::link::{
    AnyLink, FlowHash, FrameTransmit, LinkDriver, LinkLayer, LinkMachine, LinkPacket, Medium, drain,
};
use fulmar_proto::machine::{Priority, TransmitKind};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The longest packet.
pub(super) const LONGEST: usize = 1_500;
/// The shortest packet: its number stands in the first octets, and the octets after it follow from the
/// number.
const SHORTEST: usize = 4;
/// The number of packets each way while there are faults.
const PACKETS: u32 = 60;
/// The number of packets each way after the faults.
const LAST_PACKETS: u32 = 10;
/// The number of frames each way that are remembered to be repeated.
const REMEMBERED: usize = 32;

/// The medium's faults, as shares of the frames or as a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) loss: f64,
    pub(super) damage: f64,
    pub(super) duplicate: f64,
    /// Frames that are overtaken by others.
    pub(super) late: f64,
    /// Frames beside which random octets arrive.
    pub(super) nonsense: f64,
    /// Frames beside which an earlier frame arrives again.
    pub(super) old: f64,
    pub(super) outages: u64,
    pub(super) restarts: u64,
}

/// The promise of a layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    pub(super) in_order: bool,
    /// Whether packets offered after the faults must come even where an end has not heard of the other's
    /// restart yet.
    pub(super) repairs: bool,
    /// The longest time from taking a packet to releasing it, without the time for which the medium holds
    /// frames up.
    pub(super) patience: Duration,
    /// The most octets that an end may keep.
    pub(super) memory: ByteCount,
}

#[derive(Clone, Debug)]
enum Event {
    Arrive { to: usize, octets: Vec<u8> },
    Offer { at: usize, count: u32 },
    Wake { end: usize },
    Free { end: usize },
    Restart { end: usize },
    Outage { begins: bool },
    Heal,
}

#[derive(Debug)]
struct End {
    machine: Option<GuardedLink<AnyLink>>,
    queue: VecDeque<u32>,
    busy_until: Instant,
    wake: Option<Instant>,
    /// Numbers offered, each with the time it was taken from the queue.
    taken: BTreeMap<u32, Instant>,
    /// Numbers that came out here since this end's last restart.
    released: BTreeSet<u32>,
    /// Frames of all its lives, and when they were to arrive.
    remembered: VecDeque<(Instant, Vec<u8>)>,
    next: u32,
}

/// The session.
pub(super) struct Hop {
    layer: LinkLayer,
    promise: Promise,
    rate: Bitrate,
    delay: Duration,
    faults: Faults,
    rng: Rng,
    ends: [End; 2],
    now: Instant,
    events: BTreeMap<(Instant, u64), Event>,
    scheduled: u64,
    /// The longest time for which the medium held a frame up.
    held_up: Duration,
    out: bool,
    healed: bool,
    pub(super) broken: Vec<String>,
    pub(super) delivered_bytes: u64,
    pub(super) frames: u64,
    pub(super) frames_lost: u64,
    pub(super) frames_damaged: u64,
    pub(super) restarts: u64,
}

/// The knowledge of the ends about their hop.
pub(super) fn medium(rate: Bitrate, delay: Duration) -> Medium {
    Medium {
        rate: Some(rate),
        back_rate: Some(rate),
        round_trip: delay * 2,
        access: rate.time_to_send(ByteCount::from_usize(LONGEST)) * 2,
    }
}

/// The packet of a number: its length and its octets follow from it.
fn packet(number: u32) -> Vec<u8> {
    let mut rng = Rng::from_seed(u64::from(number)).child("packet");
    let room = (LONGEST - SHORTEST) as u64;
    let more = usize::try_from(rng.below(room)).unwrap_or_default();
    let mut octets = vec![0; SHORTEST + more];
    rng.fill(&mut octets);
    octets[..SHORTEST].copy_from_slice(&number.to_be_bytes());
    octets
}

impl Hop {
    pub(super) fn new(
        layer: LinkLayer,
        promise: Promise,
        (rate, delay): (Bitrate, Duration),
        faults: Faults,
        rng: Rng,
    ) -> Self {
        let end = || End {
            machine: None,
            queue: VecDeque::new(),
            busy_until: Instant::START,
            wake: None,
            taken: BTreeMap::new(),
            released: BTreeSet::new(),
            remembered: VecDeque::new(),
            next: 0,
        };
        let mut hop = Self {
            layer,
            promise,
            rate,
            delay,
            faults,
            rng,
            ends: [end(), end()],
            now: Instant::START,
            events: BTreeMap::new(),
            scheduled: 0,
            held_up: Duration::ZERO,
            out: false,
            healed: false,
            broken: Vec::new(),
            delivered_bytes: 0,
            frames: 0,
            frames_lost: 0,
            frames_damaged: 0,
            restarts: 0,
        };
        for index in 0..2 {
            hop.give_birth(index);
        }
        hop
    }

    fn give_birth(&mut self, index: usize) {
        let medium = medium(self.rate, self.delay);
        let life = format!("end {index} life {}", self.restarts);
        let machine = self.layer.machine(medium, &mut self.rng.child(&life));
        let end = &mut self.ends[index];
        end.machine = Some(GuardedLink::new(machine));
        end.wake = None;
        end.released.clear();
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.scheduled += 1;
        self.events.insert((at, self.scheduled), event);
    }

    /// The sending time of a long frame.
    fn frame_time(&self) -> Duration {
        self.rate.time_to_send(ByteCount::from_usize(LONGEST))
    }

    fn sometime(&mut self, within: Duration) -> Instant {
        Instant::START + within.mul_f64(self.rng.unit_f64())
    }

    /// Runs the session until nothing is left to happen.
    pub(super) fn run(&mut self) {
        let load = 0.3 + 3.0 * self.rng.unit_f64();
        let span = self.frame_time().mul_f64(load) * PACKETS + self.delay * 8;
        for at in 0..2 {
            let mut left = PACKETS;
            while left > 0 {
                let count = left.min(1 + u32::try_from(self.rng.below(12)).unwrap_or(0));
                left -= count;
                let time = self.sometime(span);
                self.schedule(time, Event::Offer { at, count });
            }
        }
        for _ in 0..self.faults.restarts {
            let time = self.sometime(span);
            let end = usize::from(self.rng.chance(0.5));
            self.schedule(time, Event::Restart { end });
        }
        for _ in 0..self.faults.outages {
            let time = self.sometime(span);
            let long = (self.frame_time() * 10 + self.delay * 4).mul_f64(self.rng.unit_f64());
            self.schedule(time, Event::Outage { begins: true });
            self.schedule(time + long, Event::Outage { begins: false });
        }
        let heal = Instant::START + span + self.frame_time() * 20 + self.delay * 4;
        self.schedule(heal, Event::Heal);
        self.play();
        // Everything has settled; packets offered from here on meet no faults but earlier frames that come
        // again.
        if self.faults.old > 0.0 {
            for from in 0..2 {
                self.release_old(from, 4);
            }
        }
        let before: Vec<u32> = self.ends.iter().map(|end| end.next).collect();
        let now = self.now;
        for at in 0..2 {
            for number in 0..LAST_PACKETS {
                let time = now + self.frame_time() * 2 * number;
                self.schedule(time, Event::Offer { at, count: 1 });
            }
        }
        self.play();
        for (from, first) in before.into_iter().enumerate() {
            let came = |number: &u32| self.ends[1 - from].released.contains(number);
            let missing: Vec<u32> = (first..self.ends[from].next)
                .filter(|number| !came(number))
                .collect();
            if self.promise.repairs && !missing.is_empty() {
                let what = format!("{missing:?} of end {from}, offered without faults, never came");
                self.broken.push(what);
            }
        }
    }

    /// More events than a session has; only a machine that wakes itself for ever passes it.
    const EVENTS_MAX: u32 = 2_000_000;

    fn play(&mut self) {
        for _ in 0..Self::EVENTS_MAX {
            let Some(((at, _), event)) = self.events.pop_first() else {
                return;
            };
            self.now = at;
            self.handle(event);
        }
        self.broken.push(format!("not over at {}", self.now));
        self.events.clear();
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Arrive { to, octets } => {
                if let Some(machine) = &mut self.ends[to].machine {
                    machine.handle_frame(now, &octets);
                }
                self.drain(to);
            }
            Event::Offer { at, count } => {
                let end = &mut self.ends[at];
                for number in end.next..end.next + count {
                    end.queue.push_back(number);
                }
                end.next += count;
                self.drain(at);
            }
            Event::Wake { end } => {
                if self.ends[end].wake != Some(now) {
                    return;
                }
                self.ends[end].wake = None;
                if let Some(machine) = &mut self.ends[end].machine
                    && machine
                        .next_deadline()
                        .is_some_and(|deadline| deadline.at <= now)
                {
                    machine.handle_deadline(now);
                }
                self.drain(end);
            }
            Event::Free { end } => self.drain(end),
            Event::Restart { end } => {
                self.restarts += 1;
                self.give_birth(end);
                if self.faults.old > 0.0 {
                    self.release_old(end, 4);
                }
                self.drain(end);
            }
            Event::Outage { begins } => self.out = begins,
            Event::Heal => {
                self.healed = true;
                self.out = false;
            }
        }
    }

    fn drain(&mut self, index: usize) {
        let Some(mut machine) = self.ends[index].machine.take() else {
            return;
        };
        let now = self.now;
        let mut port = Port {
            hop: self,
            index,
            packet: Vec::new(),
            up: Vec::new(),
            frame: Vec::new(),
        };
        let deadline = drain(&mut machine, now, &mut port);
        let (held, most) = (machine.held(), self.promise.memory);
        if held > most {
            let what = format!("end {index} keeps {held} at {now}, more than {most}");
            self.broken.push(what);
        }
        let end = &mut self.ends[index];
        end.machine = Some(machine);
        if let Some(deadline) = deadline
            && end.wake.is_none_or(|wake| deadline.at < wake)
        {
            let at = deadline.at.max(now);
            end.wake = Some(at);
            self.schedule(at, Event::Wake { end: index });
        }
    }

    /// A packet came out at `index`.
    fn release(&mut self, index: usize, octets: &[u8]) {
        self.delivered_bytes += octets.len() as u64;
        let Some(number) = octets.first_chunk().map(|head| u32::from_be_bytes(*head)) else {
            self.broken
                .push("a packet too short to be ours came out".to_owned());
            return;
        };
        let now = self.now;
        let taken = self.ends[1 - index].taken.get(&number).copied();
        let Some(taken) = taken.filter(|_| packet(number) == octets) else {
            let what = format!("packet {number} came out that was never sent so");
            self.broken.push(what);
            return;
        };
        let end = &mut self.ends[index];
        if self.promise.in_order && end.released.last().is_some_and(|last| *last > number) {
            let what = format!("packet {number} came out behind a later one");
            self.broken.push(what);
        }
        if !end.released.insert(number) {
            self.broken.push(format!("packet {number} came out twice"));
        }
        let took = now.saturating_since(taken);
        let patience = self.promise.patience + self.held_up;
        if took > patience {
            let what = format!("packet {number} took {took:?}, more than {patience:?}");
            self.broken.push(what);
        }
    }

    fn arrive(&mut self, to: usize, at: Instant, late: Duration, octets: Vec<u8>) {
        self.held_up = self.held_up.max(late);
        self.schedule(at + late, Event::Arrive { to, octets });
    }

    /// Releases frames that the medium held up, of this life of `from` or an earlier one.
    fn release_old(&mut self, from: usize, count: u64) {
        for _ in 0..count {
            let known = self.ends[from].remembered.len() as u64;
            if known == 0 {
                return;
            }
            let index = usize::try_from(self.rng.below(known)).unwrap_or_default();
            let (due, octets) = self.ends[from].remembered[index].clone();
            let within = (self.frame_time() * 20 + self.delay * 2).mul_f64(self.rng.unit_f64());
            let at = (self.now + within).max(due);
            self.arrive(1 - from, due, at.saturating_since(due), octets);
        }
    }

    /// Puts a frame that `from` sent on the medium.
    fn cross(&mut self, from: usize, mut octets: Vec<u8>) {
        self.frames += 1;
        let to = 1 - from;
        let at = self.ends[from].busy_until + self.delay;
        let faults = self.faults;
        if self.healed {
            self.arrive(to, at, Duration::ZERO, octets);
            return;
        }
        let remembered = &mut self.ends[from].remembered;
        remembered.push_back((at, octets.clone()));
        if remembered.len() > REMEMBERED {
            remembered.pop_front();
        }
        if self.rng.chance(faults.nonsense) {
            let len = usize::try_from(self.rng.below(80)).unwrap_or_default();
            let mut nonsense = vec![0; len];
            self.rng.fill(&mut nonsense);
            self.arrive(to, at, Duration::ZERO, nonsense);
        }
        if self.rng.chance(faults.old) {
            self.release_old(from, 1);
        }
        if self.out || self.rng.chance(faults.loss) {
            self.frames_lost += 1;
            return;
        }
        if self.rng.chance(faults.damage) {
            self.frames_damaged += 1;
            for _ in 0..=self.rng.below(4) {
                let bit = usize::try_from(self.rng.below(octets.len() as u64 * 8)).unwrap_or(0);
                octets[bit / 8] ^= 1 << (bit % 8);
            }
        }
        if self.rng.chance(faults.duplicate) {
            self.arrive(to, at, Duration::ZERO, octets.clone());
        }
        let late = if self.rng.chance(faults.late) {
            (self.frame_time() * 3).mul_f64(self.rng.unit_f64())
        } else {
            Duration::ZERO
        };
        self.arrive(to, at, late, octets);
    }
}

/// The driver into which a machine is drained.
struct Port<'a> {
    hop: &'a mut Hop,
    index: usize,
    packet: Vec<u8>,
    up: Vec<u8>,
    frame: Vec<u8>,
}

impl LinkDriver for Port<'_> {
    fn next_packet(&mut self, now: Instant, least: Priority) -> Option<LinkPacket<'_>> {
        if least > Priority(0) {
            return None;
        }
        let end = &mut self.hop.ends[self.index];
        let number = end.queue.pop_front()?;
        end.taken.insert(number, now);
        self.packet = packet(number);
        Some(LinkPacket {
            octets: &self.packet,
            flow: FlowHash(1),
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
        let octets = core::mem::take(&mut self.up);
        self.hop.release(self.index, &octets);
        self.up = octets;
    }

    fn can_send(&self) -> bool {
        self.hop.ends[self.index].busy_until <= self.hop.now
    }

    fn frame_buffer(&mut self) -> &mut Vec<u8> {
        self.frame.clear();
        &mut self.frame
    }

    fn send(&mut self, now: Instant, _: FrameTransmit) {
        let frame = core::mem::take(&mut self.frame);
        let airtime = self.hop.rate.time_to_send(ByteCount::of(&frame));
        self.hop.ends[self.index].busy_until = now + airtime;
        self.hop
            .schedule(now + airtime, Event::Free { end: self.index });
        self.hop.cross(self.index, frame);
    }
}
