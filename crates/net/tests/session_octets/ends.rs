//! Two sessions in virtual time, and what arrives in the machines inside.

use super::IPV4_UDP;
use crate::session_pair::PATH;
use fulmar_net::session::{Entropy, Session, SessionConfig, SessionEvent, source_octets};
use fulmar_proto::machine::{
    Carried, Datagram, Deadline, Ecn, Machine, PathId, PathSizes, TpduForm, Transmit,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_proto::wire::aerotp::short::{
    Content, FULL_BYTES, Frame, FrameKind, MACK_BYTES, NACK_BYTES, NAMED_BYTES, REPAIR_BYTES,
};
use fulmar_proto::wire::aerotp::{TpduKind, parse};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

const DELAY: Duration = Duration::from_millis(5);
/// The octets of parity in an armoured header.
const ARMOUR: usize = 8;

/// A machine whose contents from the other end are noted.
struct Noting<M> {
    machine: M,
    content: Option<Vec<u8>>,
}

impl<M: Machine> Machine for Noting<M> {
    type Event = M::Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.machine.handle_datagram(now, datagram);
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.machine.handle_deadline(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.machine.poll_transmit(now, out)
    }

    fn poll_event(&mut self) -> Option<M::Event> {
        self.machine.poll_event()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.machine.next_deadline()
    }
}

impl<M: Carried> Carried for Noting<M> {
    const SHORT: bool = M::SHORT;

    fn hold(&mut self, now: Instant, path: PathId, held: bool) {
        self.machine.hold(now, path, held);
    }

    fn set_path_sizes(
        &mut self,
        now: Instant,
        path: PathId,
        sizes: PathSizes,
    ) -> Result<(), String> {
        self.machine.set_path_sizes(now, path, sizes)
    }

    fn on_sent_below(&mut self, now: Instant, path: PathId, wire: ByteCount) {
        self.machine.on_sent_below(now, path, wire);
    }

    fn peer_restarted(&mut self, now: Instant, path: PathId) {
        self.machine.peer_restarted(now, path);
    }

    fn speak(&mut self, now: Instant, path: PathId, form: TpduForm) {
        self.machine.speak(now, path, form);
    }

    fn handle_frames(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.content = Some(datagram.octets.to_vec());
        self.machine.handle_frames(now, datagram);
    }
}

/// A datagram that arrived with content for the machine.
pub(crate) struct Arrived {
    /// Octets of the IPv4 packet, without parity.
    pub(crate) packet: usize,
    content: Vec<u8>,
}

impl Arrived {
    fn frame(&self) -> Frame<'_> {
        let mut frames = Content::of(&self.content);
        let frame = frames.next().expect("content has a frame").expect("whole");
        assert!(frames.next().is_none(), "one frame in each datagram");
        frame
    }

    /// Octets but the last `len` of the content.
    pub(crate) fn around(&self, len: usize) -> usize {
        self.packet - len
    }

    /// The kind of datagram, and what is around its payload, symbol or ranges.
    pub(crate) fn counted(&self) -> (&'static str, usize) {
        let frame = self.frame();
        let behind = |head: usize| self.around(self.content.len() - head);
        match frame.kind() {
            Some(FrameKind::Data) => ("data", behind(NAMED_BYTES)),
            Some(FrameKind::Full) => ("data in full", behind(FULL_BYTES)),
            Some(FrameKind::Repair) => ("repair", behind(REPAIR_BYTES)),
            Some(FrameKind::Mack) => ("MACK", behind(MACK_BYTES)),
            Some(FrameKind::Nack) => ("NACK", behind(NACK_BYTES)),
            Some(FrameKind::Long) => {
                let kind = parse(frame.fields()).expect("sound").kind();
                let carries = matches!(kind, TpduKind::Data { .. } | TpduKind::Repair);
                assert!(!carries, "data in the long form");
                ("long", self.packet)
            }
            other => panic!("{other:?} is for the session"),
        }
    }

    /// Octets of the application.
    pub(crate) fn payload(&self) -> usize {
        match self.frame().kind() {
            Some(FrameKind::Data) => self.content.len() - NAMED_BYTES,
            Some(FrameKind::Full) => self.content.len() - FULL_BYTES,
            _ => 0,
        }
    }
}

/// The octets around each kind of datagram.
pub(crate) type Around = BTreeMap<&'static str, BTreeSet<usize>>;

pub(crate) type Application<M> = Box<dyn FnMut(usize, Instant, &mut M, <M as Machine>::Event)>;

/// Two ends on a medium of constant delay, which loses with a probability.
pub(crate) struct World<M: Carried> {
    pub(crate) now: Instant,
    ends: [Session<Noting<M>>; 2],
    application: Application<M>,
    flying: VecDeque<(Instant, usize, Vec<u8>)>,
    loss: f64,
    rng: Rng,
    pub(crate) arrived: Vec<Arrived>,
}

pub(crate) fn address() -> SocketAddr {
    ([198, 51, 100, 7], 4_914).into()
}

impl<M: Carried> World<M> {
    pub(crate) fn new(
        configs: [SessionConfig; 2],
        machine: impl Fn(u64) -> M,
        loss: f64,
        application: Application<M>,
    ) -> Self {
        let mut seed = 0;
        let ends = configs.map(|config| {
            seed += 1;
            let noting = Noting {
                machine: machine(seed.into()),
                content: None,
            };
            let entropy = Entropy::from_seed([seed; 32]);
            Session::new(config, noting, entropy).expect("a sound configuration")
        });
        let mut world = Self {
            now: Instant::START,
            ends,
            application,
            flying: VecDeque::new(),
            loss,
            rng: Rng::from_seed(5).child("loss"),
            arrived: Vec::new(),
        };
        world.settle();
        world.run(Duration::from_secs(1));
        world
    }

    pub(crate) fn machine(&mut self, end: usize) -> &mut M {
        &mut self.ends[end].inner_mut().machine
    }

    pub(crate) fn settle(&mut self) {
        for end in 0..2 {
            let mut is_done = false;
            while !is_done {
                is_done = true;
                while let Some(event) = self.ends[end].poll_event() {
                    if let SessionEvent::Inner(event) = event {
                        let machine = &mut self.ends[end].inner_mut().machine;
                        (self.application)(end, self.now, machine, event);
                    }
                    is_done = false;
                }
                let mut octets = Vec::new();
                while self.ends[end]
                    .poll_transmit(self.now, &mut octets)
                    .is_some()
                {
                    let octets = std::mem::take(&mut octets);
                    if !self.rng.chance(self.loss) {
                        self.flying.push_back((self.now + DELAY, 1 - end, octets));
                    }
                    is_done = false;
                }
            }
        }
    }

    fn take(&mut self, end: usize, octets: &[u8]) {
        let datagram = Datagram {
            path: PATH,
            octets,
            ecn: Ecn::NotCapable,
        };
        self.ends[end].handle_datagram_from(self.now, datagram, &source_octets(address()));
        let Some(content) = self.ends[end].inner_mut().content.take() else {
            return;
        };
        // Three bits of the first octet are the path's place.
        let parity = match octets[0] {
            0x28..=0x2F => 0,
            0x38..=0x3F => ARMOUR + 4 * usize::from(octets[1]),
            other => panic!("{other:#x} is not data in wire 2"),
        };
        self.arrived.push(Arrived {
            packet: IPV4_UDP + octets.len() - parity,
            content,
        });
    }

    pub(crate) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let arrival = self.flying.front().map(|(at, ..)| *at);
            let deadlines = self.ends.iter().filter_map(Machine::next_deadline);
            let deadline = deadlines.map(|deadline| deadline.at).min();
            let next = arrival.into_iter().chain(deadline).min();
            let Some(at) = next.filter(|at| *at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            if arrival == Some(at) {
                let (_, end, octets) = self.flying.pop_front().expect("looked at");
                self.take(end, &octets);
            } else {
                for end in 0..2 {
                    let due = self.ends[end].next_deadline();
                    if due.is_some_and(|due| due.at <= self.now) {
                        self.ends[end].handle_deadline(self.now);
                    }
                }
            }
            self.settle();
        }
        self.now = until;
    }

    /// The octets around each kind of datagram.
    pub(crate) fn around(&self) -> Around {
        let mut all = Around::new();
        for (kind, around) in self.arrived.iter().map(Arrived::counted) {
            if kind != "long" {
                all.entry(kind).or_default().insert(around);
            }
        }
        all
    }

    /// Octets of the application in all that arrived.
    pub(crate) fn payload(&self) -> usize {
        self.arrived.iter().map(Arrived::payload).sum()
    }
}
