//! Gateways in a star: one in the middle, others around it, each on a link of its own.
//!
//! Between two gateways lies a session. It is modelled as far as a splicer can tell: nothing that was
//! sealed for an earlier start of either side is opened, and the first datagram after a restart tells the
//! other side of it, as the handshake does.

mod bonded;

use super::lanes::{Lane, lane_of};
use super::local_end::{Asked, LocalEnd};
use crate::guard::Guarded;
use fulmar_channel::{Channel, ChannelVerdict, Flips, apply_flips};
use fulmar_proto::machine::{
    Carried, Datagram, Deadline, Ecn, Machine, MachineDriver, PathId, Transmit, drain,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{
    FlowEvent, FlowId, RefuseCode, ResetCode, Role, Splicer, SplicerConfig,
};
use fulmar_proto::transport::aerotp::{AerotpEndpoint, EndpointConfig};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// The gateway in the middle.
pub(super) const MIDDLE: usize = 0;

/// The settings of the gateways and their links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) splicer: SplicerConfig,
    pub(super) endpoint: EndpointConfig,
    pub(super) custody_bytes: u64,
    /// The end of the faults, so that every session can end.
    pub(super) healed_at: Instant,
    /// The time that a datagram takes from then on.
    pub(super) delay: Duration,
}

/// A gateway and the local ends behind it.
#[derive(Debug)]
pub(super) struct Gateway {
    machine: Guarded<Splicer>,
    deadline: Option<Deadline>,
    pub(super) ends: BTreeMap<FlowId, LocalEnd>,
    /// Ends that died with an earlier start, and whose flow was asked for again.
    pub(super) earlier: Vec<(FlowId, LocalEnd)>,
    pub(super) starts: u32,
}

impl Gateway {
    fn new(settings: &Settings, starts: u32, rng: &Rng) -> Self {
        let config = SplicerConfig {
            incarnation: starts,
            ..settings.splicer
        };
        let rng = rng.child(&starts.to_string());
        let endpoint = AerotpEndpoint::new(settings.endpoint, rng.child("ports"));
        let splicer = Splicer::new(config, endpoint, rng.child("flows"));
        Self {
            machine: Guarded::new(splicer.expect("the drawing makes sound settings")),
            deadline: None,
            ends: BTreeMap::new(),
            earlier: Vec::new(),
            starts,
        }
    }

    pub(super) fn splicer(&self) -> &Splicer {
        self.machine.inner()
    }
}

/// A link between the middle, side 0, and another gateway, side 1.
#[derive(Debug)]
struct Link {
    /// The channels from side 0 and from side 1.
    ways: [Channel; 2],
    /// The further paths.
    lanes: Vec<Lane>,
    /// The number of starts of each side that the other knows of.
    known: [u32; 2],
    /// The longest time that a datagram of either side was on the way.
    longest: [Duration; 2],
}

/// A datagram under way.
#[derive(Clone, Debug)]
struct Flying {
    link: usize,
    lane: usize,
    to: usize,
    octets: Vec<u8>,
    /// The start of the sender and that of the receiver for which it was sealed.
    sealed: [u32; 2],
}

/// Counts of the medium's faults.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crossed {
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) damaged: u64,
    /// Packets on further paths.
    pub(super) by_lanes: u64,
}

/// All gateways and the links between them.
#[derive(Debug)]
pub(super) struct Star {
    pub(super) now: Instant,
    pub(super) gateways: Vec<Gateway>,
    pub(super) crossed: Crossed,
    settings: Settings,
    links: Vec<Link>,
    flying: BTreeMap<(Instant, u64), Flying>,
    flown: u64,
    /// Gateways and their paths that the layer below holds for down.
    held: BTreeSet<(usize, PathId)>,
    /// Those of which it says that they may be.
    doubted: BTreeSet<(usize, PathId)>,
    /// The number of times that a path was first held for down.
    pub(super) holds: u64,
    /// The number of times that a further path was there at one side.
    pub(super) bonds: u64,
    rng: Rng,
}

impl Star {
    /// A star with one gateway for each link, and the middle.
    pub(super) fn new(
        settings: &Settings,
        links: Vec<([Channel; 2], Vec<Lane>)>,
        rng: Rng,
    ) -> Self {
        let named = |index: usize| rng.child(&format!("gateway {index}"));
        let gateways = (0..=links.len()).map(|index| Gateway::new(settings, 0, &named(index)));
        let gateways = gateways.collect();
        let link = |(ways, lanes)| Link {
            ways,
            lanes,
            known: [0; 2],
            longest: [Duration::ZERO; 2],
        };
        Self {
            now: Instant::START,
            gateways,
            crossed: Crossed::default(),
            settings: *settings,
            links: links.into_iter().map(link).collect(),
            flying: BTreeMap::new(),
            flown: 0,
            held: BTreeSet::new(),
            doubted: BTreeSet::new(),
            holds: 0,
            bonds: 0,
            rng,
        }
    }

    /// The most octets of a flow that a gateway keeps for its host.
    pub(super) const fn custody_bytes(&self) -> u64 {
        self.settings.custody_bytes
    }

    /// The path at `from` that leads to `to`, if a link joins them.
    pub(super) fn path(from: usize, to: usize) -> PathId {
        let outer = if from == MIDDLE { to } else { from };
        let link = u32::try_from(outer - 1).expect("a handful of gateways");
        if from == MIDDLE {
            PathId(link)
        } else {
            PathId(0)
        }
    }

    /// The longest time that a datagram was on the way between two gateways, in this direction.
    pub(super) fn longest_way(&self, from: usize, to: usize) -> Duration {
        let link = from.max(to) - 1;
        self.links[link].longest[usize::from(from != MIDDLE)]
    }

    fn gateway_of(link: usize, side: usize) -> usize {
        if side == 0 { MIDDLE } else { link + 1 }
    }

    /// Calls a gateway's splicer, and drains.
    pub(super) fn call<T>(
        &mut self,
        gateway: usize,
        call: impl FnOnce(&mut Splicer, Instant) -> T,
    ) -> T {
        let result = call(self.gateways[gateway].machine.app(), self.now);
        self.settle(gateway);
        result
    }

    /// Holds one of a gateway's links for down, rightly or not, or no longer.
    pub(super) fn toggle_hold(&mut self, gateway: usize, path: PathId) {
        let held = self.held.insert((gateway, path));
        if held {
            self.holds += 1;
        } else {
            self.held.remove(&(gateway, path));
        }
        self.call(gateway, |splicer, now| splicer.hold(now, path, held));
    }

    /// Holds every path for up.
    pub(super) fn release_all(&mut self) {
        while let Some((gateway, path)) = self.doubted.first().copied() {
            self.toggle_doubt(gateway, path);
        }
        while let Some((gateway, path)) = self.held.first().copied() {
            self.toggle_hold(gateway, path);
        }
    }

    /// Lets a flow's local end do what it can, and drains.
    pub(super) fn touch(&mut self, gateway: usize, id: FlowId) {
        let Gateway { machine, ends, .. } = &mut self.gateways[gateway];
        if let Some(end) = ends.get_mut(&id) {
            end.pump(self.now, id, machine.app());
        }
        self.settle(gateway);
    }

    /// Restarts a gateway. Durable ends go on with it, the others die.
    pub(super) fn restart(&mut self, gateway: usize) {
        let starts = self.gateways[gateway].starts + 1;
        let rng = self.rng.child(&format!("gateway {gateway}"));
        let new = Gateway::new(&self.settings, starts, &rng);
        let old = core::mem::replace(&mut self.gateways[gateway], new);
        self.held.retain(|(of, _)| *of != gateway);
        self.doubted.retain(|(of, _)| *of != gateway);
        for (index, link) in self.links.iter_mut().enumerate() {
            for side in 0..2 {
                if Self::gateway_of(index, side) == gateway {
                    let other = Self::gateway_of(index, 1 - side);
                    link.known[1 - side] = self.gateways[other].starts;
                    for lane in &mut link.lanes {
                        lane.is_bonded[side] = false;
                    }
                }
            }
        }
        let Gateway {
            machine,
            ends,
            earlier,
            ..
        } = &mut self.gateways[gateway];
        *earlier = old.earlier;
        for (id, mut end) in old.ends {
            if end.last.is_none() && !end.restart(self.now, id, machine.app()) {
                let code = ResetCode::PeerLost;
                end.last = Some(FlowEvent::Reset { flow: id, code });
            }
            ends.insert(id, end);
        }
        self.settle(gateway);
    }

    fn settle(&mut self, gateway: usize) {
        let Gateway {
            machine,
            deadline,
            ends,
            earlier,
            ..
        } = &mut self.gateways[gateway];
        let mut driver = EndsDriver {
            settings: &self.settings,
            buffer: Vec::new(),
            sent: Vec::new(),
            ends,
            earlier,
        };
        *deadline = drain(machine, self.now, &mut driver);
        for (path, octets) in driver.sent {
            let (home, lane) = lane_of(path);
            let link = if gateway == MIDDLE {
                usize::try_from(home.0).expect("a handful of links")
            } else {
                gateway - 1
            };
            self.cross((link, lane), usize::from(gateway != MIDDLE), octets);
        }
    }

    /// Puts a datagram of `side` on a path of a link.
    fn cross(&mut self, (index, lane): (usize, usize), side: usize, octets: Vec<u8>) {
        self.crossed.packets += 1;
        self.crossed.by_lanes += u64::from(lane > 0);
        let link = &mut self.links[index];
        let starts = self.gateways[Self::gateway_of(index, side)].starts;
        let flying = Flying {
            link: index,
            lane,
            to: 1 - side,
            octets,
            sealed: [starts, link.known[1 - side]],
        };
        if self.now >= self.settings.healed_at {
            self.fly(self.now + self.settings.delay, flying, &Flips::NONE);
            return;
        }
        let further = lane.checked_sub(1).map(|place| &mut link.lanes[place].ways);
        let way = &mut further.unwrap_or(&mut link.ways)[side];
        match way.admit(self.now, ByteCount::of(&flying.octets)) {
            ChannelVerdict::Deliver(delivery) => {
                if let Some((at, flips)) = delivery.duplicate {
                    self.fly(at, flying.clone(), &flips);
                }
                self.fly(delivery.at, flying, &delivery.flips);
            }
            ChannelVerdict::Drop(_) | ChannelVerdict::Waits => self.crossed.lost += 1,
        }
    }

    fn fly(&mut self, at: Instant, mut flying: Flying, flips: &Flips) {
        if !flips.is_empty() {
            self.crossed.damaged += 1;
            let _damage = apply_flips(&mut flying.octets, flips, ByteCount::ZERO);
        }
        self.flown += 1;
        let longest = &mut self.links[flying.link].longest[1 - flying.to];
        *longest = (*longest).max(at.saturating_since(self.now));
        self.flying.insert((at, self.flown), flying);
    }

    /// Whether the receiver can open a datagram.
    fn opens(&mut self, flying: &Flying) -> bool {
        let (index, to, from) = (flying.link, flying.to, 1 - flying.to);
        let [sender, receiver] = flying.sealed;
        let starts = self.gateways[Self::gateway_of(index, to)].starts;
        for (side, told) in [(to, starts), (from, sender)] {
            if self.links[index].known[side] < told {
                self.links[index].known[side] = told;
                let listener = Self::gateway_of(index, 1 - side);
                let path = Self::path(listener, Self::gateway_of(index, side));
                let lanes = self.take_lanes((index, 1 - side));
                // Nothing leaves between the two words, as with a session: its machine inside hears both before it
                // is asked for a datagram. What was lost on a further path would leave once more, sealed for the
                // new start, which would take an opening from before it for the first of a flow.
                self.call(listener, |splicer, now| {
                    for lane in lanes {
                        Carried::part(splicer, now, lane);
                    }
                    splicer.peer_restarted(now, path);
                });
            }
        }
        receiver == starts && sender == self.links[index].known[from]
    }

    /// One step of time; `false` when nothing is left to happen before `until`.
    fn step(&mut self, until: Instant) -> bool {
        let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
        let timers = self.gateways.iter().enumerate();
        let timer = timers
            .filter_map(|(index, gateway)| Some((gateway.deadline?.at, index)))
            .min();
        match (arrival, timer) {
            (Some(at), timer) if timer.is_none_or(|(t, _)| at <= t) && at <= until => {
                self.now = at.max(self.now);
                let (_, flying) = self.flying.pop_first().expect("looked at");
                if self.opens(&flying) {
                    self.arrive(&flying);
                }
                true
            }
            (_, Some((at, index))) if at <= until => {
                self.now = at.max(self.now);
                self.gateways[index].machine.handle_deadline(self.now);
                self.settle(index);
                true
            }
            _ => {
                self.now = self.now.max(until);
                false
            }
        }
    }

    fn arrive(&mut self, flying: &Flying) {
        let gateway = Self::gateway_of(flying.link, flying.to);
        let sender = Self::gateway_of(flying.link, 1 - flying.to);
        // What comes on a further path that is not there yet is taken for the home's.
        let in_lane = self.lane_at((flying.link, flying.to), flying.lane);
        let datagram = Datagram {
            path: in_lane.map_or_else(|| Self::path(gateway, sender), |(_, path)| path),
            octets: &flying.octets,
            ecn: Ecn::Capable,
        };
        self.gateways[gateway]
            .machine
            .handle_datagram(self.now, datagram);
        self.settle(gateway);
    }

    /// Runs for `span`.
    pub(super) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.step(until) {}
    }
}

struct EndsDriver<'a> {
    settings: &'a Settings,
    buffer: Vec<u8>,
    sent: Vec<(PathId, Vec<u8>)>,
    ends: &'a mut BTreeMap<FlowId, LocalEnd>,
    earlier: &'a mut Vec<(FlowId, LocalEnd)>,
}

impl MachineDriver<Guarded<Splicer>> for EndsDriver<'_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }

    fn send(&mut self, _now: Instant, transmit: Transmit) {
        self.sent.push((transmit.path, self.buffer.clone()));
    }

    fn deliver(&mut self, now: Instant, machine: &mut Guarded<Splicer>, event: FlowEvent) {
        let splicer = machine.app();
        let id = event.flow();
        if let FlowEvent::Requested {
            peer,
            kind,
            destination,
            class,
            ..
        } = event
        {
            let asked = Asked {
                role: Role::Acceptor,
                peer,
                kind,
                class,
                destination,
            };
            self.accept(now, splicer, id, asked);
        } else if let Some(end) = self.ends.get_mut(&id) {
            end.on_event(event);
        }
        if let Some(end) = self.ends.get_mut(&id) {
            end.pump(now, id, splicer);
        }
    }
}

impl EndsDriver<'_> {
    fn accept(&mut self, now: Instant, splicer: &mut Splicer, id: FlowId, asked: Asked) {
        let old = self.ends.get(&id);
        if old.is_some_and(|end| end.durable && end.class.resume) {
            // It was over before this gateway lost its memory; its custody remembers.
            splicer.refused(now, id, RefuseCode::Forgotten);
            return;
        }
        let custody_bytes = self.settings.custody_bytes;
        let mut end = LocalEnd::new(asked, custody_bytes);
        let bound = SocketAddr::from(([10, 0, 0, 1], end.destination.port));
        splicer.connected(now, id, bound);
        end.bound = Some(bound);
        if let Some(old) = self.ends.insert(id, end) {
            self.earlier.push((id, old));
        }
    }
}
