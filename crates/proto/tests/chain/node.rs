//! One gateway of a chain.

use super::super::FORM;
use super::super::splicers::{App, ECHO, REFUSES};
use super::{BEFORE, BEHIND};
use fulmar_proto::machine::{Deadline, Machine, MachineDriver, PathId, Strict, Transmit, drain};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{
    Acknowledge, Destination, FlowClass, FlowEvent, FlowId, FlowKind, Host, RefuseCode, RelayStore,
    RelayTurn, Restored, Role, Splicer, SplicerConfig, StreamRelay,
};
use fulmar_proto::transport::aerotp::{AerotpEndpoint, EndpointConfig, RateSource};
use fulmar_proto::units::{Bitrate, Duration, Instant};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;

/// The time after which a store has safe what it has.
const SYNC: Duration = Duration::from_millis(3);

/// A store that is safe a moment after.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    octets: Vec<u8>,
    released: usize,
    safe: usize,
    is_finished: bool,
}

impl Kept {
    fn sync(&mut self) {
        self.safe = self.octets.len();
    }

    /// The state that a power cut leaves.
    fn cut(mut self) -> Self {
        self.is_finished &= self.safe == self.octets.len();
        self.octets.truncate(self.safe);
        self
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).expect("small")
}

impl RelayStore for Kept {
    type Fault = Infallible;

    fn append(&mut self, octets: &[u8]) -> Result<usize, Infallible> {
        let taken = octets.len().min(self.room());
        self.octets.extend_from_slice(&octets[..taken]);
        Ok(taken)
    }

    fn read(&mut self, from: u64, max: usize) -> Result<&[u8], Infallible> {
        let from = place(from);
        assert!(from >= self.released, "what was released is gone");
        Ok(&self.octets[from..(from + max).min(self.octets.len())])
    }

    fn release(&mut self, to: u64) {
        self.released = self.released.max(place(to));
        assert!(self.released <= self.safe, "only what was safe was sent on");
    }

    fn room(&self) -> usize {
        (1 << 20) - (self.octets.len() - self.released)
    }

    fn start(&self) -> u64 {
        self.released as u64
    }

    fn end(&self) -> u64 {
        self.octets.len() as u64
    }

    fn safe_end(&self) -> u64 {
        self.safe as u64
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn finish(&mut self) -> Result<(), Infallible> {
        self.is_finished = true;
        Ok(())
    }
}

/// A relay with its stores, and what both flows were opened with.
pub(crate) struct Carried {
    relay: StreamRelay,
    pub(crate) stores: [Kept; 2],
    class: FlowClass,
    to: [Destination; 2],
    bound: Option<SocketAddr>,
    /// The flows that ended in order, as a store would note for the next start.
    ended: [bool; 2],
}

pub(crate) struct Node {
    pub(crate) machine: Strict<Splicer>,
    pub(crate) acknowledge: Acknowledge,
    pub(crate) apps: BTreeMap<FlowId, App>,
    pub(crate) relays: Vec<Carried>,
    place: usize,
    deadline: Option<Deadline>,
    poll_at: Option<Instant>,
}

struct Ends<'a> {
    is_last: bool,
    acknowledge: Acknowledge,
    buffer: Vec<u8>,
    sent: Vec<(PathId, Vec<u8>)>,
    apps: &'a mut BTreeMap<FlowId, App>,
    relays: &'a mut Vec<Carried>,
    waits: bool,
}

impl Ends<'_> {
    fn requested(&mut self, now: Instant, splicer: &mut Splicer, event: FlowEvent) {
        let FlowEvent::Requested {
            flow,
            peer,
            kind,
            destination,
            class,
            ..
        } = event
        else {
            return;
        };
        if self.is_last {
            if destination.port == REFUSES {
                return splicer.refused(now, flow, RefuseCode::Refused);
            }
            let app = App {
                peer: Some(peer),
                role: Some(Role::Acceptor),
                class,
                echoes: destination.port == ECHO,
                destination: Some(destination),
                ..App::default()
            };
            self.apps.insert(flow, app);
            return splicer.connected(now, flow, SocketAddr::from(([10, 0, 0, 1], 1)));
        }
        assert_eq!(kind, FlowKind::Stream);
        let Host::Beyond(beyond) = &destination.host else {
            panic!("it goes further")
        };
        let onward = Destination {
            host: beyond.onward(&[]).expect("a short way"),
            port: destination.port,
        };
        let next = splicer.open(now, BEHIND, kind, onward.clone(), class);
        let mut carried = Carried {
            relay: StreamRelay::new(self.acknowledge, [flow, next.expect("room")]),
            stores: [Kept::default(), Kept::default()],
            class,
            to: [destination, onward],
            bound: None,
            ended: [false; 2],
        };
        if self.acknowledge == Acknowledge::Custody {
            carried.bound = Some(SocketAddr::from(([0, 0, 0, 0], 0)));
            splicer.connected(now, flow, SocketAddr::from(([0, 0, 0, 0], 0)));
        }
        self.relays.push(carried);
    }

    fn pump(&mut self, now: Instant, splicer: &mut Splicer) {
        for carried in &mut *self.relays {
            let [first, second] = &mut carried.stores;
            let Ok(turn) = carried.relay.pump(now, splicer, [first, second]);
            self.waits |= turn != RelayTurn::default();
        }
    }
}

impl MachineDriver<Strict<Splicer>> for Ends<'_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }

    fn send(&mut self, _now: Instant, transmit: Transmit) {
        self.sent.push((transmit.path, self.buffer.clone()));
    }

    fn deliver(&mut self, now: Instant, machine: &mut Strict<Splicer>, event: FlowEvent) {
        let splicer = machine.app();
        let id = event.flow();
        if matches!(event, FlowEvent::Requested { .. }) {
            return self.requested(now, splicer, event);
        }
        let mut relays = self.relays.iter_mut();
        if let Some(carried) = relays.find(|carried| carried.relay.flows().contains(&id)) {
            let [first, next] = carried.relay.flows();
            match &event {
                FlowEvent::Connected { bound, .. } if carried.bound.is_none() => {
                    carried.bound = Some(*bound);
                    splicer.connected(now, first, *bound);
                }
                FlowEvent::Refused { code, .. } if carried.bound.is_none() => {
                    splicer.refused(now, first, *code);
                }
                FlowEvent::Closed(flow) => carried.ended[usize::from(*flow == next)] = true,
                _ => {}
            }
            let [one, two] = &mut carried.stores;
            let Ok(()) = carried.relay.on_event(now, &event, splicer, [one, two]);
            return;
        }
        let Some(app) = self.apps.get_mut(&id) else {
            return;
        };
        match &event {
            FlowEvent::Connected { bound, .. } => app.bound = Some(*bound),
            FlowEvent::PeerFinished(_) => app.peer_finished = true,
            FlowEvent::Stopped(_) => app.told_to_stop += 1,
            FlowEvent::Delivered { offset, .. } => app.delivered = *offset,
            FlowEvent::Resume { from, .. } => app.sent = place(*from),
            FlowEvent::Refused { .. } | FlowEvent::Reset { .. } | FlowEvent::Closed(_) => {
                app.last = Some(event.clone());
            }
            _ => {}
        }
        app.pump(now, id, splicer);
    }
}

impl Node {
    pub(super) fn new(place: usize, acknowledge: Acknowledge, incarnation: u32) -> Self {
        let endpoint = EndpointConfig {
            rate: RateSource::Told(Bitrate::from_bits_per_second(20_000_000)),
            ..EndpointConfig::default()
        };
        let rng = Rng::from_seed(1_000 * u64::from(incarnation) + place as u64);
        let mut endpoint = AerotpEndpoint::new(endpoint, rng.child("ports"));
        for path in [BEFORE, BEHIND] {
            endpoint.speak(Instant::START, path, FORM);
        }
        let config = SplicerConfig {
            incarnation,
            ..SplicerConfig::default()
        };
        let splicer = Splicer::new(config, endpoint, rng.child("flows"));
        Self {
            machine: Strict::new(splicer.expect("a sound configuration")),
            acknowledge,
            apps: BTreeMap::new(),
            relays: Vec::new(),
            place,
            deadline: None,
            poll_at: None,
        }
    }

    /// The time at which it has something to do.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let deadline = self.deadline.map(|deadline| deadline.at.max(now));
        deadline.into_iter().chain(self.poll_at).min()
    }

    /// Does what is due.
    pub(super) fn wake(&mut self, now: Instant) {
        if self.poll_at.is_some_and(|at| at <= now) {
            self.poll_at = None;
            let stores = self.relays.iter_mut().flat_map(|it| &mut it.stores);
            stores.for_each(Kept::sync);
        }
        if self.deadline.is_some_and(|deadline| deadline.at <= now) {
            self.machine.handle_deadline(now);
        }
    }

    /// Lets relays do what they can, and drains. Returns the datagrams that left.
    pub(super) fn settle(&mut self, now: Instant) -> Vec<(PathId, Vec<u8>)> {
        let mut ends = Ends {
            is_last: self.place == 3,
            acknowledge: self.acknowledge,
            buffer: Vec::new(),
            sent: Vec::new(),
            apps: &mut self.apps,
            relays: &mut self.relays,
            waits: false,
        };
        self.deadline = drain(&mut self.machine, now, &mut ends);
        ends.pump(now, self.machine.app());
        self.deadline = drain(&mut self.machine, now, &mut ends);
        if ends.waits && self.poll_at.is_none() {
            self.poll_at = Some(now + SYNC);
        }
        ends.sent
    }

    /// Goes on with the relays of a gateway that lost its power, from what its stores had safe.
    pub(super) fn take_up(&mut self, now: Instant, old: Self) {
        for mut carried in old.relays {
            if carried.relay.is_done() {
                continue;
            }
            carried.stores = carried.stores.map(Kept::cut);
            let flows = carried.relay.flows();
            carried.relay = StreamRelay::new(self.acknowledge, flows);
            for (place, flow) in flows.into_iter().enumerate() {
                if carried.ended[place] {
                    carried.relay = carried.relay.without(flow, true);
                    continue;
                }
                let outward = &carried.stores[1 - place];
                let restored = Restored {
                    flow,
                    peer: [BEFORE, BEHIND][place],
                    role: [Role::Acceptor, Role::Opener][place],
                    destination: carried.to[place].clone(),
                    class: carried.class,
                    bound: carried.bound.filter(|_| place == 0),
                    received: carried.stores[place].end(),
                    kept_from: outward.start(),
                    accepted: outward.end(),
                };
                self.machine.app().restore(now, restored).expect("room");
            }
            self.relays.push(carried);
        }
    }
}
