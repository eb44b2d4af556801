//! Gateways in a row: splicers with an application at either end, and relays between. Hops lose datagrams and go down, and
//! gateways between are killed: what their stores had safe is all that the next start has.

mod node;

use super::splicers::App;
use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{
    Acknowledge, Beyond, Destination, FlowClass, FlowEvent, FlowId, FlowKind, Host, Role,
};
use fulmar_proto::units::{Duration, Instant};
use node::Node;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The peer towards the first gateway, and the one towards the last.
pub(crate) const BEFORE: PathId = PathId(0);
pub(crate) const BEHIND: PathId = PathId(1);
/// The time that a datagram takes over a hop.
pub(crate) const DELAY: Duration = Duration::from_millis(10);

/// A datagram on its way, sealed by the session of two starts.
struct Flying {
    from: usize,
    to: usize,
    octets: Vec<u8>,
    session: [u32; 2],
}

/// Gateways in a row. Hop `n` is between gateway `n` and the next.
pub(crate) struct Chain {
    pub(crate) now: Instant,
    pub(crate) nodes: Vec<Node>,
    is_up: Vec<bool>,
    loss: f64,
    rng: Rng,
    flying: BTreeMap<(Instant, u64), Flying>,
    flown: u64,
    starts: Vec<u32>,
    /// The start of the second gateway that the first one knows of.
    known: BTreeMap<(usize, usize), u32>,
}

impl Chain {
    /// Four gateways whose hops lose this share of the datagrams. Those between acknowledge as `acknowledge` says.
    pub(crate) fn new(acknowledge: Acknowledge, loss: f64, seed: u64) -> Self {
        let nodes = (0..4)
            .map(|place| Node::new(place, acknowledge, 0))
            .collect();
        Self {
            now: Instant::START,
            nodes,
            is_up: vec![true; 3],
            loss,
            rng: Rng::from_seed(seed),
            flying: BTreeMap::new(),
            flown: 0,
            starts: vec![0; 4],
            known: BTreeMap::new(),
        }
    }

    /// Opens a flow from the first gateway to `port` behind the last.
    pub(crate) fn open(&mut self, port: u16, class: FlowClass, octets: &[u8]) -> FlowId {
        let names = ["third", "fourth"].map(|name| name.parse().expect("a name"));
        let end = SocketAddr::from(([192, 0, 2, 1], port));
        let beyond = Beyond::new(names.to_vec(), Host::Address(end.ip())).expect("a way");
        let destination = Destination {
            host: Host::Beyond(Box::new(beyond)),
            port,
        };
        let now = self.now;
        let node = &mut self.nodes[0];
        let splicer = node.machine.app();
        let (kind, to) = (FlowKind::Stream, destination.clone());
        let id = splicer.open(now, BEHIND, kind, to, class).expect("room");
        let app = App {
            peer: Some(BEHIND),
            role: Some(Role::Opener),
            class,
            destination: Some(destination),
            outgoing: octets.to_vec(),
            finishes: true,
            ..App::default()
        };
        node.apps.insert(id, app);
        self.touch(0, id);
        id
    }

    /// Lets an application at gateway `place` do what it can.
    pub(crate) fn touch(&mut self, place: usize, id: FlowId) {
        let Node { machine, apps, .. } = &mut self.nodes[place];
        if let Some(app) = apps.get_mut(&id) {
            app.pump(self.now, id, machine.app());
        }
        self.settle(place);
    }

    /// Takes a hop down or up, as the sessions at both ends notice.
    pub(crate) fn set_up(&mut self, hop: usize, is_up: bool) {
        self.is_up[hop] = is_up;
        self.nodes[hop].machine.app().hold(self.now, BEHIND, !is_up);
        self.settle(hop);
        self.nodes[hop + 1]
            .machine
            .app()
            .hold(self.now, BEFORE, !is_up);
        self.settle(hop + 1);
    }

    /// Kills a gateway between the ends, and starts it again with what its stores had safe.
    pub(crate) fn kill(&mut self, place: usize) {
        self.starts[place] += 1;
        self.known.retain(|(observer, _), _| *observer != place);
        let acknowledge = self.nodes[place].acknowledge;
        let new = Node::new(place, acknowledge, self.starts[place]);
        let old = core::mem::replace(&mut self.nodes[place], new);
        let node = &mut self.nodes[place];
        for (path, hop) in [(BEFORE, place - 1), (BEHIND, place)] {
            if !self.is_up[hop] {
                node.machine.app().hold(self.now, path, true);
            }
        }
        node.take_up(self.now, old);
        self.settle(place);
    }

    fn settle(&mut self, place: usize) {
        let sent = self.nodes[place].settle(self.now);
        for (path, octets) in sent {
            let to = if path == BEFORE { place - 1 } else { place + 1 };
            if !self.is_up[place.min(to)] || self.rng.chance(self.loss) {
                continue;
            }
            let known = self.known.get(&(place, to)).copied();
            let session = [self.starts[place], known.unwrap_or(self.starts[to])];
            self.flown += 1;
            let flying = Flying {
                from: place,
                to,
                octets,
                session,
            };
            self.flying.insert((self.now + DELAY, self.flown), flying);
        }
    }

    /// Tells `observer` which start of its neighbour it speaks with.
    fn hear(&mut self, observer: usize, of: usize, start: u32) {
        let path = if of < observer { BEFORE } else { BEHIND };
        match self.known.insert((observer, of), start) {
            Some(before) if before < start => {
                let splicer = self.nodes[observer].machine.app();
                splicer.peer_restarted(self.now, path);
                self.settle(observer);
            }
            Some(before) => {
                self.known.insert((observer, of), before.max(start));
            }
            None => {}
        }
    }

    fn arrive(&mut self, flying: &Flying) {
        let Flying { from, to, .. } = *flying;
        let [sender, receiver] = flying.session;
        // The first contact after a start tells both, as a session's handshake does.
        self.hear(to, from, sender);
        self.hear(from, to, self.starts[to]);
        if receiver != self.starts[to] || self.known[&(to, from)] != sender {
            return;
        }
        let datagram = Datagram {
            path: if from < to { BEFORE } else { BEHIND },
            octets: &flying.octets,
            ecn: Ecn::Capable,
        };
        self.nodes[to].machine.handle_datagram(self.now, datagram);
        self.settle(to);
    }

    /// Runs for `span`.
    pub(crate) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let nodes = self.nodes.iter().enumerate();
            let timer = nodes.filter_map(|(place, node)| Some((node.next(self.now)?, place)));
            let timer = timer.min();
            match (arrival, timer) {
                (Some(at), timer) if timer.is_none_or(|(t, _)| at <= t) && at <= until => {
                    self.now = at;
                    let (_, flying) = self.flying.pop_first().expect("looked at");
                    self.arrive(&flying);
                }
                (_, Some((at, place))) if at <= until => {
                    self.now = at.max(self.now);
                    self.nodes[place].wake(self.now);
                    self.settle(place);
                }
                _ => {
                    self.now = until;
                    return;
                }
            }
        }
    }

    /// The application of a flow at the first gateway.
    pub(crate) fn client(&mut self, id: FlowId) -> &mut App {
        self.nodes[0].apps.get_mut(&id).expect("a flow")
    }

    /// The only application at the last gateway, if a flow came so far.
    pub(crate) fn server(&mut self) -> Option<&mut App> {
        assert!(self.nodes[3].apps.len() <= 1, "one connection for one flow");
        self.nodes[3].apps.values_mut().next()
    }

    /// Whether the client's flow ended in order.
    pub(crate) fn is_closed(&mut self, id: FlowId) -> bool {
        matches!(self.client(id).last, Some(FlowEvent::Closed(_)))
    }
}
