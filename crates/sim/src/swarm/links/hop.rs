//! Two ends of a link layer, a medium that does its worst, and what is expected of them.

use crate::guard::GuardedLink;
use fulmar_proto::link::{
    FlowHash, FrameClass, FrameTransmit, Link, LinkDriver, LinkLayer, LinkMachine, LinkPacket,
    Medium, drain,
};
use fulmar_proto::machine::{Kind, Priority};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The longest packet.
pub(super) const LONGEST: usize = 1_500;
/// A packet's number stands in its first octets, and what follows comes of it.
const SHORTEST: usize = 4;
/// Packets each way while there are faults.
const PACKETS: u32 = 60;
/// And after them.
const LAST_PACKETS: u32 = 10;
/// How many frames each way are remembered to be repeated.
const REMEMBERED: usize = 32;

/// What the medium does, as shares of the frames, and how often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) loss: f64,
    pub(super) damage: f64,
    pub(super) duplicate: f64,
    /// Overtaken by others.
    pub(super) late: f64,
    /// Random octets arrive beside.
    pub(super) nonsense: f64,
    /// A frame of before arrives again.
    pub(super) old: f64,
    pub(super) outages: u64,
    pub(super) restarts: u64,
}

/// A frame on its way.
#[derive(Clone, Debug)]
struct Frame {
    octets: Vec<u8>,
    /// Which life the sender was in; `None` of what is no frame of its.
    life: Option<u32>,
    /// Whether it surely tells of that life: an acknowledgement does not.
    tells: bool,
}

#[derive(Clone, Debug)]
enum Event {
    Arrive { to: usize, frame: Frame },
    Offer { at: usize, count: u32 },
    Wake { end: usize },
    Free { end: usize },
    Restart { end: usize },
    Outage { begins: bool },
    Heal,
}

#[derive(Debug)]
struct End {
    machine: Option<GuardedLink<Link>>,
    queue: VecDeque<u32>,
    busy_until: Instant,
    wake: Option<Instant>,
    life: u32,
    /// Of the peer's lives those of which something arrived.
    heard: BTreeSet<u32>,
    newest: u32,
    /// Numbers offered, each with the time it was taken from the queue.
    taken: BTreeMap<u32, Instant>,
    /// Numbers that came out here since this end's last restart.
    released: BTreeSet<u32>,
    remembered: VecDeque<Frame>,
    next: u32,
}

/// The session.
pub(super) struct Hop {
    layer: LinkLayer,
    in_order: bool,
    rate: Bitrate,
    delay: Duration,
    faults: Faults,
    patience: Option<Duration>,
    rng: Rng,
    ends: [End; 2],
    now: Instant,
    events: BTreeMap<(Instant, u64), Event>,
    scheduled: u64,
    /// Of all lives so far.
    names: BTreeSet<u64>,
    out: bool,
    healed: bool,
    pub(super) broken: Vec<String>,
    pub(super) delivered_bytes: u64,
    pub(super) frames: u64,
    pub(super) frames_lost: u64,
    pub(super) frames_damaged: u64,
    pub(super) restarts: u64,
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
        in_order: bool,
        (rate, delay): (Bitrate, Duration),
        faults: Faults,
        patience: Option<Duration>,
        rng: Rng,
    ) -> Self {
        let end = || End {
            machine: None,
            queue: VecDeque::new(),
            busy_until: Instant::START,
            wake: None,
            life: 0,
            heard: BTreeSet::new(),
            newest: 0,
            taken: BTreeMap::new(),
            released: BTreeSet::new(),
            remembered: VecDeque::new(),
            next: 0,
        };
        let mut hop = Self {
            layer,
            in_order,
            rate,
            delay,
            faults,
            patience,
            rng,
            ends: [end(), end()],
            now: Instant::START,
            events: BTreeMap::new(),
            scheduled: 0,
            names: BTreeSet::new(),
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
        let medium = Medium {
            rate: Some(self.rate),
            back_rate: Some(self.rate),
            round_trip: self.delay * 2,
            access: self.rate.time_to_send(ByteCount::from_usize(LONGEST)) * 2,
        };
        let mut stream = self.rng.child(&format!("end {index}"));
        // One life in 65,536 draws the name of an earlier one, and is then not told from it
        // (docs/models/link.md).
        while !self.names.insert(stream.clone().below(1 << 16)) {
            stream = stream.child("another");
        }
        let machine = self.layer.machine(medium, &mut stream);
        let end = &mut self.ends[index];
        end.machine = Some(GuardedLink::new(machine));
        end.life += 1;
        end.wake = None;
        end.heard.clear();
        end.newest = 0;
        end.released.clear();
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.scheduled += 1;
        self.events.insert((at, self.scheduled), event);
    }

    /// The time of a long frame.
    fn frame_time(&self) -> Duration {
        self.rate.time_to_send(ByteCount::from_usize(LONGEST))
    }

    fn sometime(&mut self, within: Duration) -> Instant {
        Instant::START + within.mul_f64(self.rng.unit_f64())
    }

    /// Everything that happens, until nothing is left to happen.
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
        // Everything has settled; what is offered now meets no faults.
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
            if !missing.is_empty() {
                let what = format!("{missing:?} of end {from}, offered without faults, never came");
                self.broken.push(what);
            }
        }
    }

    /// Far more events than a session has; a machine that wakes itself for ever passes it.
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
            Event::Arrive { to, frame } => {
                if let Some(life) = frame.life {
                    // A life that is over before anything of it is heard is not told from one that
                    // begins (docs/models/link.md).
                    let end = &mut self.ends[to];
                    if end.newest > life && !end.heard.contains(&life) {
                        return;
                    }
                    end.newest = end.newest.max(life);
                    if frame.tells {
                        end.heard.insert(life);
                    }
                }
                if let Some(machine) = &mut self.ends[to].machine {
                    machine.handle_frame(now, &frame.octets);
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
        if self.in_order && end.released.last().is_some_and(|last| *last > number) {
            let what = format!("packet {number} came out behind a later one");
            self.broken.push(what);
        }
        if !end.released.insert(number) {
            self.broken.push(format!("packet {number} came out twice"));
        }
        let took = now.saturating_since(taken);
        if let Some(patience) = self.patience
            && took > patience
        {
            let what = format!("packet {number} took {took:?}, more than {patience:?}");
            self.broken.push(what);
        }
    }

    /// What becomes of a frame that `from` sent.
    fn cross(&mut self, from: usize, octets: Vec<u8>, tells: bool) {
        self.frames += 1;
        let life = Some(self.ends[from].life);
        let frame = Frame {
            octets,
            life,
            tells,
        };
        let to = 1 - from;
        let arrival = self.ends[from].busy_until + self.delay;
        let faults = self.faults;
        if self.healed {
            self.schedule(arrival, Event::Arrive { to, frame });
            return;
        }
        let remembered = &mut self.ends[from].remembered;
        remembered.push_back(frame.clone());
        if remembered.len() > REMEMBERED {
            remembered.pop_front();
        }
        if self.rng.chance(faults.nonsense) {
            let len = usize::try_from(self.rng.below(80)).unwrap_or_default();
            let mut octets = vec![0; len];
            self.rng.fill(&mut octets);
            let frame = Frame {
                octets,
                life: None,
                tells: false,
            };
            self.schedule(arrival, Event::Arrive { to, frame });
        }
        if self.rng.chance(faults.old) {
            let known = self.ends[from].remembered.len() as u64;
            let index = usize::try_from(self.rng.below(known)).unwrap_or_default();
            let frame = self.ends[from].remembered[index].clone();
            self.schedule(arrival, Event::Arrive { to, frame });
        }
        if self.out || self.rng.chance(faults.loss) {
            self.frames_lost += 1;
            return;
        }
        let mut frame = frame;
        if self.rng.chance(faults.damage) {
            self.frames_damaged += 1;
            frame.life = None;
            for _ in 0..=self.rng.below(4) {
                let bit =
                    usize::try_from(self.rng.below(frame.octets.len() as u64 * 8)).unwrap_or(0);
                frame.octets[bit / 8] ^= 1 << (bit % 8);
            }
        }
        if self.rng.chance(faults.duplicate) {
            let frame = frame.clone();
            self.schedule(arrival, Event::Arrive { to, frame });
        }
        let late = if self.rng.chance(faults.late) {
            (self.frame_time() * 3).mul_f64(self.rng.unit_f64())
        } else {
            Duration::ZERO
        };
        self.schedule(arrival + late, Event::Arrive { to, frame });
    }
}

/// What a machine is drained into.
struct Port<'a> {
    hop: &'a mut Hop,
    index: usize,
    packet: Vec<u8>,
    up: Vec<u8>,
    frame: Vec<u8>,
}

impl LinkDriver for Port<'_> {
    fn next_packet(&mut self, now: Instant) -> Option<LinkPacket<'_>> {
        let end = &mut self.hop.ends[self.index];
        let number = end.queue.pop_front()?;
        end.taken.insert(number, now);
        self.packet = packet(number);
        Some(LinkPacket {
            octets: &self.packet,
            flow: FlowHash(1),
            priority: Priority(0),
            kind: Kind::Source,
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

    fn send(&mut self, now: Instant, sent: FrameTransmit) {
        let frame = core::mem::take(&mut self.frame);
        let airtime = self.hop.rate.time_to_send(ByteCount::of(&frame));
        self.hop.ends[self.index].busy_until = now + airtime;
        self.hop
            .schedule(now + airtime, Event::Free { end: self.index });
        let tells = sent.class != FrameClass::Control;
        self.hop.cross(self.index, frame, tells);
    }
}
