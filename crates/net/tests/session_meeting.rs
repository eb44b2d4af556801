//! Two ends behind NATs that meet through a hub: at each other's outside addresses, or through the hub where the NATs let nothing else pass.
//!
//! Method: a hub and two ends in virtual time, with AeroTP inside, on a network that delays by 20 ms, loses what the test says, and has
//! a NAT in front of each end. Each NAT lets in what comes from where something was sent.

use super::session_pair::{PORT, connection_config, endpoint_config, secret};
use fulmar_net::session::{
    Entropy, Introduce, LinkState, MtuConfig, NotIntroduced, PathTerms, PeerConfig, PeerIndex,
    Reach, Security, Session, SessionConfig, SessionEvent, rendezvous, several_paths,
    source_octets, wire_2,
};
use fulmar_proto::machine::{
    Datagram, Deadline, Ecn, Machine, MachineDriver, PathId, Strict, Transmit, drain,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, ConnectionId, Event};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

const DELAY: Duration = Duration::from_millis(20);
/// The nodes.
const HUB: usize = 0;
const AIR: usize = 1;
const GROUND: usize = 2;
const ENDS: [usize; 2] = [AIR, GROUND];
/// Each end's peers: the hub, then the other end.
const OF_HUB: PeerIndex = PeerIndex(0);
const OF_END: PeerIndex = PeerIndex(1);
const RELAY: Introduce = Introduce::Relay(Bitrate::from_bits_per_second(10_000_000));
const HUB_ADDRESS: ([u8; 4], u16) = ([198, 51, 100, 1], 4_914);
/// The hub's address on another network.
const HUB_BESIDE: ([u8; 4], u16) = ([198, 51, 100, 2], 4_914);

/// A NAT's way to give ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nat {
    /// There is none.
    Open,
    /// The same port whatever the destination.
    Cone,
    /// A port of its own for each destination.
    Symmetric,
}

/// The air's uplinks to the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Uplinks {
    One,
    Two,
    /// Two, of which the first is dead from the start.
    OneDead,
}

type Node = Strict<Session<AerotpEndpoint>>;

#[derive(Default)]
struct App {
    buffer: Vec<u8>,
    sent: Vec<(PathId, Vec<u8>)>,
    told: Vec<(PeerIndex, SocketAddr)>,
    /// Those that were news, and all of them.
    news: Vec<SocketAddr>,
    all_told: Vec<SocketAddr>,
    refused: Vec<NotIntroduced>,
    reached: Vec<Reach>,
    received: usize,
    to_write: usize,
    id: Option<ConnectionId>,
}

impl App {
    fn write(&mut self, now: Instant, endpoint: &mut AerotpEndpoint) {
        let Some(id) = self.id else { return };
        let octets = vec![7; self.to_write.min(10_000)];
        while self.to_write > 0 {
            let part = &octets[..octets.len().min(self.to_write)];
            match endpoint.write(now, id, part) {
                Ok(0) | Err(_) => return,
                Ok(taken) => self.to_write -= taken,
            }
        }
    }
}

impl MachineDriver<Node> for App {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }
    fn send(&mut self, _now: Instant, transmit: Transmit) {
        assert!(!transmit.path.is_inside(), "no driver has such a path");
        self.sent.push((transmit.path, self.buffer.clone()));
    }
    fn deliver(&mut self, now: Instant, machine: &mut Node, event: SessionEvent<Event>) {
        match event {
            SessionEvent::Introduced {
                peer,
                address,
                is_news,
            } => {
                self.told.push((peer, address));
                self.all_told.push(address);
                self.news.extend(is_news.then_some(address));
            }
            SessionEvent::NotIntroduced { why, .. } => self.refused.push(why),
            SessionEvent::Reached { reach, .. } => self.reached.push(reach),
            SessionEvent::Inner(Event::Readable(id)) => {
                let endpoint = machine.app().inner_mut();
                while let Some(chunk) = endpoint.read(now, id) {
                    self.received += chunk.octets.len();
                    endpoint.recycle(id, chunk.octets);
                }
            }
            SessionEvent::Inner(Event::Writable(_)) => {
                self.write(now, machine.app().inner_mut());
            }
            _ => {}
        }
    }
}

struct Place {
    node: Node,
    app: App,
    deadline: Option<Deadline>,
    /// The addresses of its paths.
    paths: Vec<SocketAddr>,
    ip: [u8; 4],
    nat: Nat,
    /// Ports by destination; a cone has one for all.
    ports: BTreeMap<Option<SocketAddr>, u16>,
    opened: BTreeSet<(u16, SocketAddr)>,
    next_port: u16,
    /// The own address at which each remote called last, where there is no NAT.
    called_at: BTreeMap<SocketAddr, SocketAddr>,
}

impl Place {
    fn path_to(&mut self, address: SocketAddr) -> PathId {
        let known = self.paths.iter().position(|one| *one == address);
        let place = known.unwrap_or_else(|| {
            self.paths.push(address);
            self.paths.len() - 1
        });
        PathId(u32::try_from(place).expect("few"))
    }

    /// The outside address of what leaves for `to`.
    fn leave(&mut self, to: SocketAddr) -> SocketAddr {
        let key = match self.nat {
            Nat::Open => {
                let called_at = self.called_at.get(&to).copied();
                return called_at.unwrap_or(HUB_ADDRESS.into());
            }
            Nat::Cone => None,
            Nat::Symmetric => Some(to),
        };
        let next = &mut self.next_port;
        let port = *self.ports.entry(key).or_insert_with(|| {
            *next += 1;
            *next
        });
        self.opened.insert((port, to));
        (self.ip, port).into()
    }

    fn lets_in(&self, from: SocketAddr, port: u16) -> bool {
        self.nat == Nat::Open || self.opened.contains(&(port, from))
    }

    /// Forgets everything, as a NAT that starts anew.
    fn forget(&mut self) {
        self.ports.clear();
        self.opened.clear();
    }
}

struct World {
    now: Instant,
    places: Vec<Place>,
    flying: BTreeMap<(Instant, u64), (SocketAddr, SocketAddr, Vec<u8>)>,
    flown: u64,
    rng: Rng,
    loss: f64,
    /// A node that is cut off.
    cut: Option<usize>,
    /// Whether the air's first uplink is dead: what goes to and comes from the hub's first address.
    is_uplink_dead: bool,
    /// Datagrams to each address that the ends sent, with their times and octets.
    calls: Vec<(Instant, SocketAddr, usize)>,
}

/// The settings that differ between tests.
#[derive(Clone, Copy)]
struct Plan {
    nats: [Nat; 2],
    helps: [Introduce; 2],
    /// Whether each end asks for the other.
    asks: [bool; 2],
    hub_is_able: bool,
    /// The packets between the hub and the ends.
    hub_mtu: MtuConfig,
    uplinks: Uplinks,
    /// Whether the air knows the ground by two keys, the first of which nobody has.
    keys_are_changing: bool,
    loss: f64,
    seed: u64,
}

const PLAN: Plan = Plan {
    nats: [Nat::Cone; 2],
    helps: [RELAY; 2],
    asks: [true; 2],
    hub_is_able: true,
    hub_mtu: WIDE,
    uplinks: Uplinks::One,
    keys_are_changing: false,
    loss: 0.0,
    seed: 1,
};

const WIDE: MtuConfig = MtuConfig::fixed(ByteCount(1_400));

fn hub_config(plan: Plan) -> SessionConfig {
    let mut config = config(HUB, &ENDS, &[], plan.hub_is_able);
    for peer in &mut config.peers {
        peer.mtu = plan.hub_mtu;
    }
    config
}

fn key(node: usize) -> u8 {
    u8::try_from(node).expect("small") + 40
}

fn config(node: usize, peers: &[usize], endpoints: &[PathId], is_able: bool) -> SessionConfig {
    let peers = peers.iter().enumerate().map(|(place, other)| PeerConfig {
        name: format!("node {other}"),
        security: Security::Noise {
            peer: secret(key(*other)).public(),
            preset: None,
        },
        endpoints: endpoints.get(place).copied().into_iter().collect(),
        mtu: MtuConfig::default(),
    });
    let mut config = SessionConfig::new(Some(secret(key(node))), peers.collect(), 1 << 40);
    config.capabilities = vec![wire_2(), several_paths()];
    config.capabilities.extend(is_able.then(rendezvous));
    config
}

fn node(config: SessionConfig, seed: u8) -> Node {
    let mut endpoint = AerotpEndpoint::new(endpoint_config(), Rng::from_seed(u64::from(seed)));
    endpoint.listen(PORT, connection_config()).expect("sound");
    let session = Session::new(config, endpoint, Entropy::from_seed([seed; 32]));
    Strict::new(session.expect("sound"))
}

impl World {
    fn new(plan: Plan) -> Self {
        let place = |at: usize, nat, config| Place {
            node: node(config, key(at)),
            app: App::default(),
            deadline: None,
            paths: if at == HUB {
                Vec::new()
            } else {
                vec![HUB_ADDRESS.into()]
            },
            ip: [203, 0, 113, key(at)],
            nat,
            ports: BTreeMap::new(),
            opened: BTreeSet::new(),
            next_port: 1_000 * u16::from(key(at)),
            called_at: BTreeMap::new(),
        };
        let hub = hub_config(plan);
        let end = |at: usize| {
            let mut config = config(at, &[HUB, AIR + GROUND - at], &[PathId(0)], true);
            config.peers[0].mtu = plan.hub_mtu;
            config
        };
        let mut places = vec![place(HUB, Nat::Open, hub)];
        places.extend(ENDS.map(|at| place(at, plan.nats[at - 1], end(at))));
        for (at, help) in (0..).zip(plan.helps) {
            places[HUB].node.app().introduce(PeerIndex(at), help);
        }
        for at in ENDS {
            let hub = plan.asks[at - 1].then_some(OF_HUB);
            places[at].node.app().meet(OF_END, hub);
        }
        let mut world = Self {
            now: Instant::START,
            places,
            flying: BTreeMap::new(),
            flown: 0,
            rng: Rng::from_seed(plan.seed),
            loss: plan.loss,
            cut: None,
            is_uplink_dead: plan.uplinks == Uplinks::OneDead,
            calls: Vec::new(),
        };
        if plan.uplinks != Uplinks::One {
            let place = &mut world.places[AIR];
            let path = place.path_to(HUB_BESIDE.into());
            let terms = PathTerms::default();
            let node = place.node.app();
            node.add_path(Instant::START, (OF_HUB, path), terms);
        }
        if plan.keys_are_changing {
            // The air calls the ground by a key that was never its own, and knows the true one as well.
            let [was, is] = [90, key(GROUND)].map(|seed| secret(seed).public());
            let security = Security::Noise {
                peer: was,
                preset: None,
            };
            let node = world.places[AIR].node.app();
            node.set_security(Instant::START, OF_END, security, Some(is));
        }
        for at in 0..3 {
            world.settle(at);
        }
        world
    }

    /// The hub starts anew, and has forgotten everything.
    fn restart_hub(&mut self, plan: Plan) {
        let place = &mut self.places[HUB];
        place.node = node(hub_config(plan), 200);
        for (at, help) in (0..).zip(plan.helps) {
            place.node.app().introduce(PeerIndex(at), help);
        }
        self.settle(HUB);
    }

    fn settle(&mut self, at: usize) {
        let now = self.now;
        let place = &mut self.places[at];
        place.deadline = drain(&mut place.node, now, &mut place.app);
        let told = core::mem::take(&mut place.app.told);
        for (peer, address) in &told {
            let path = place.path_to(*address);
            let set = place.node.app().set_told_address(*peer, path);
            assert_eq!(set, Ok(()));
        }
        for (path, octets) in core::mem::take(&mut place.app.sent) {
            let to = place.paths[usize::try_from(path.0).expect("small")];
            let from = place.leave(to);
            if at != HUB {
                self.calls.push((now, to, octets.len()));
            }
            let is_dead = self.is_uplink_dead && at == AIR && to == HUB_ADDRESS.into();
            if is_dead || self.cut == Some(at) || self.rng.chance(self.loss) {
                continue;
            }
            self.flown += 1;
            let key = (now + DELAY, self.flown);
            self.flying.insert(key, (from, to, octets));
        }
        if !told.is_empty() {
            self.settle(at);
        }
    }

    fn arrive(&mut self, (from, to, octets): (SocketAddr, SocketAddr, Vec<u8>)) {
        let is_there = |place: &Place| match place.nat {
            Nat::Open => [HUB_ADDRESS, HUB_BESIDE]
                .map(SocketAddr::from)
                .contains(&to),
            _ => to.ip() == SocketAddr::from((place.ip, 0)).ip(),
        };
        let Some(at) = self.places.iter().position(is_there) else {
            return;
        };
        let place = &mut self.places[at];
        let is_dead = self.is_uplink_dead && at == AIR && from == HUB_ADDRESS.into();
        if is_dead || self.cut == Some(at) || !place.lets_in(from, to.port()) {
            return;
        }
        place.called_at.insert(from, to);
        let datagram = Datagram {
            path: place.path_to(from),
            octets: &octets,
            ecn: Ecn::NotCapable,
        };
        // As `handle_datagram`, with the source that the driver knows.
        place
            .node
            .app()
            .handle_datagram_from(self.now, datagram, &source_octets(from));
        self.settle(at);
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let timers = self.places.iter().enumerate();
            let timer = timers
                .filter_map(|(at, place)| Some((place.deadline?.at, at)))
                .min();
            match (arrival, timer) {
                (Some(at), timer) if at <= until && timer.is_none_or(|(t, _)| at <= t) => {
                    self.now = at.max(self.now);
                    let (_, flown) = self.flying.pop_first().expect("looked at");
                    self.arrive(flown);
                }
                (_, Some((at, node))) if at <= until => {
                    self.now = at.max(self.now);
                    self.places[node].node.handle_deadline(self.now);
                    self.settle(node);
                }
                _ => break,
            }
        }
        self.now = until;
    }

    fn session(&self, at: usize) -> &Session<AerotpEndpoint> {
        self.places[at].node.inner()
    }

    fn reach(&self) -> [Option<Reach>; 2] {
        ENDS.map(|at| self.session(at).reach(OF_END))
    }

    fn links(&self) -> [LinkState; 2] {
        ENDS.map(|at| self.session(at).status(OF_END).expect("a peer").link)
    }

    /// Sends so much from the air to the ground, and returns how much has come in `span`.
    fn send(&mut self, octets: usize, span: Duration) -> usize {
        let now = self.now;
        let place = &mut self.places[AIR];
        let endpoint = place.node.app().inner_mut();
        let id = endpoint.connect(now, OF_END.inner_path(), PORT, connection_config());
        place.app.id = Some(id.expect("connects"));
        place.app.to_write = octets;
        place.app.write(now, place.node.app().inner_mut());
        self.settle(AIR);
        let before = self.places[GROUND].app.received;
        self.run(span);
        self.places[GROUND].app.received - before
    }

    fn relayed(&self) -> u64 {
        self.session(HUB).counters().relayed
    }

    /// Datagrams that an end sent to addresses of which it has heard nothing.
    fn calls_to_others(&self) -> usize {
        let to_hub = HUB_ADDRESS.into();
        self.calls.iter().filter(|(_, to, _)| *to != to_hub).count()
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn ends_behind_nats_of_one_port_reach_each_other_directly_and_the_hub_carries_none_of_their_data() {
    for loss in [0.0, 0.3] {
        for seed in 1..6 {
            let mut world = World::new(Plan { loss, seed, ..PLAN });
            world.run(SECOND * 20);
            assert_eq!(world.reach(), [Some(Reach::Direct); 2], "{loss} {seed}");
            let before = world.relayed();
            assert_eq!(world.send(100_000, SECOND * 10), 100_000, "{loss} {seed}");
            // Probes that keep the way through the hub; a tenth of the data at most where the direct one loses so much that it is left.
            let carried = world.relayed() - before;
            assert!(loss > 0.0 || carried < 10, "{loss} {seed}: {carried}");
        }
    }
}

#[test]
fn ends_meet_without_a_relay_where_the_hub_tells_addresses_alone() {
    for seed in 1..6 {
        let helps = [Introduce::Address, RELAY];
        let mut world = World::new(Plan {
            helps,
            loss: 0.1,
            seed,
            ..PLAN
        });
        world.run(SECOND * 20);
        assert_eq!(world.reach(), [Some(Reach::Direct); 2], "{seed}");
        assert_eq!(world.relayed(), 0);
    }
}

#[test]
fn data_goes_through_the_hub_where_nats_have_a_port_for_each_destination() {
    for nats in [
        [Nat::Symmetric; 2],
        [Nat::Symmetric, Nat::Cone],
        [Nat::Cone, Nat::Symmetric],
    ] {
        for loss in [0.0, 0.1] {
            let mut world = World::new(Plan { nats, loss, ..PLAN });
            world.run(SECOND * 20);
            let through = Some(Reach::Through(OF_HUB));
            assert_eq!(world.reach(), [through; 2], "{nats:?}");
            assert_eq!(world.send(200_000, SECOND * 20), 200_000, "{nats:?}");
            assert!(world.relayed() > 200, "{}", world.relayed());
            let hub = world.session(HUB).counters();
            assert_eq!(hub.received, 0, "nothing of it was opened there");
        }
    }
}

#[test]
fn an_address_that_never_answers_gets_few_small_datagrams_and_ever_more_rarely() {
    let nats = [Nat::Symmetric; 2];
    for helps in [[RELAY; 2], [Introduce::Address; 2]] {
        let mut world = World::new(Plan {
            nats,
            helps,
            ..PLAN
        });
        world.run(SECOND * 60);
        let first = world.calls_to_others();
        assert!(first > 16, "{first}: they are called");
        // Eleven questions of each end within the first minute, sixteen calls for each at most.
        assert!(first <= 2 * 11 * 16, "{first}");
        let to_hub = HUB_ADDRESS.into();
        let large = |(_, to, len): &&(Instant, SocketAddr, usize)| *to != to_hub && *len > 500;
        assert_eq!(
            world.calls.iter().find(large),
            None,
            "calls and probes alone"
        );
        world.run(SECOND * 60 * 10);
        let later = world.calls_to_others() - first;
        // One question of each in a minute, which both hear of.
        assert!(later <= 2 * 2 * 11 * 16, "{later}");
    }
}

#[test]
fn a_nat_that_forgets_is_survived_through_the_hub_and_then_directly_again() {
    let mut world = World::new(PLAN);
    world.run(SECOND * 10);
    assert_eq!(world.reach(), [Some(Reach::Direct); 2]);
    // Both start anew, with other ports: what each end sends to the other's old port is dropped.
    for at in ENDS {
        world.places[at].forget();
    }
    assert_eq!(world.send(300_000, SECOND * 15), 300_000);
    let reached = &world.places[AIR].app.reached;
    assert!(reached.contains(&Reach::Through(OF_HUB)), "{reached:?}");
    world.run(SECOND * 30);
    assert_eq!(world.reach(), [Some(Reach::Direct); 2]);
}

#[test]
fn a_session_outlives_the_hub() {
    let mut world = World::new(PLAN);
    world.run(SECOND * 10);
    world.cut = Some(HUB);
    assert_eq!(world.send(100_000, SECOND * 30), 100_000);
    world.run(SECOND * 300);
    assert_eq!(world.links(), [LinkState::Up; 2]);
    assert_eq!(world.reach(), [Some(Reach::Direct); 2]);
}

#[test]
fn ends_that_come_minutes_apart_meet() {
    for nats in [[Nat::Cone; 2], [Nat::Symmetric; 2]] {
        let mut world = World::new(Plan { nats, ..PLAN });
        world.cut = Some(GROUND);
        world.run(SECOND * 200);
        assert_eq!(world.calls_to_others(), 0, "nobody is told of");
        world.cut = None;
        world.run(SECOND * 70);
        assert_eq!(world.links(), [LinkState::Up; 2], "{nats:?}");
    }
}

#[test]
fn an_end_that_does_not_ask_is_told_nothing_and_nobody_is_told_of_it() {
    let asks = [true, false];
    let mut world = World::new(Plan { asks, ..PLAN });
    world.run(SECOND * 30);
    assert_eq!(world.calls_to_others(), 0);
    assert_eq!(world.relayed(), 0);
    assert_eq!(world.links(), [LinkState::Connecting; 2]);
    let ground = world.session(GROUND).counters();
    assert_eq!(ground.dropped(fulmar_net::session::DropReason::Unknown), 0);
}

#[test]
fn a_hub_that_may_not_introduce_one_of_them_says_the_same_to_both_and_carries_nothing() {
    for helps in [
        [RELAY, Introduce::Nothing],
        [Introduce::Nothing, RELAY],
        [Introduce::Nothing; 2],
    ] {
        let mut world = World::new(Plan { helps, ..PLAN });
        world.run(SECOND * 30);
        for at in ENDS {
            let refused = &world.places[at].app.refused;
            assert_eq!(refused, &[NotIntroduced::Refused], "{helps:?}: told once");
        }
        assert_eq!(world.calls_to_others(), 0);
        assert_eq!(world.relayed(), 0);
    }
}

#[test]
fn a_hub_of_an_older_version_is_asked_nothing() {
    let hub_is_able = false;
    let mut world = World::new(Plan {
        hub_is_able,
        ..PLAN
    });
    world.run(SECOND * 30);
    for at in ENDS {
        let refused = &world.places[at].app.refused;
        assert_eq!(refused, &[NotIntroduced::Unable]);
    }
    let hub = world.session(HUB).counters();
    assert_eq!(hub.dropped(fulmar_net::session::DropReason::Unknown), 0);
}

#[test]
fn the_hub_carries_no_more_than_the_rate_of_the_sender_and_of_the_receiver() {
    let slow = Introduce::Relay(Bitrate::from_bits_per_second(400_000));
    for helps in [[slow, RELAY], [RELAY, slow]] {
        let nats = [Nat::Symmetric; 2];
        let mut world = World::new(Plan {
            nats,
            helps,
            ..PLAN
        });
        world.run(SECOND * 20);
        // The endpoints are told 10 Mbit/s, so the hub drops most.
        let got = world.send(10_000_000, SECOND * 10);
        assert!(got < 10 * 50_000 + 20_000, "{got}");
        assert!(world.session(HUB).counters().unrelayed > 100);
    }
}

#[test]
fn ends_on_the_relay_reach_each_other_again_when_the_hub_started_anew() {
    let plan = Plan {
        nats: [Nat::Symmetric; 2],
        ..PLAN
    };
    let mut world = World::new(plan);
    // The hub is asked each minute only by now.
    world.run(SECOND * 200);
    let through = [Some(Reach::Through(OF_HUB)); 2];
    assert_eq!(world.reach(), through);
    assert_eq!(world.send(100_000, SECOND * 5), 100_000);
    world.restart_hub(plan);
    // It carries nothing until both have asked it, which they do once they notice.
    assert_eq!(world.send(100_000, SECOND * 20), 100_000);
    assert_eq!(world.reach(), through);
    assert!(world.relayed() > 100);
}

#[test]
fn full_datagrams_go_in_pieces_where_the_way_to_the_hub_is_narrow() {
    let hub_mtu = MtuConfig::fixed(ByteCount(900));
    let nats = [Nat::Symmetric; 2];
    let mut world = World::new(Plan {
        nats,
        hub_mtu,
        ..PLAN
    });
    world.run(SECOND * 20);
    assert_eq!(world.send(200_000, SECOND * 20), 200_000);
    let to_hub = HUB_ADDRESS.into();
    let large = |(_, to, len): &&(Instant, SocketAddr, usize)| *to == to_hub && *len > 900 - 28;
    assert_eq!(world.calls.iter().find(large), None);
    let [hub, ground] = [HUB, GROUND].map(|at| world.session(at).counters());
    assert!(hub.reassembled > 150, "{}", hub.reassembled);
    assert!(ground.reassembled > 150, "{}", ground.reassembled);
    assert_eq!(hub.received, 0, "nothing of it was opened there");
}

#[test]
fn an_end_whose_first_uplink_to_the_hub_is_dead_is_met_and_called_at_no_address_of_it() {
    let through = [Some(Reach::Through(OF_HUB)); 2];
    let plan = Plan {
        nats: [Nat::Symmetric, Nat::Cone],
        uplinks: Uplinks::Two,
        ..PLAN
    };
    let mut world = World::new(Plan {
        uplinks: Uplinks::OneDead,
        ..plan
    });
    world.run(SECOND * 60);
    assert_eq!(world.reach(), through);
    assert_eq!(world.places[GROUND].app.all_told, []);
    assert_eq!(world.send(100_000, SECOND * 20), 100_000);
    // One that dies later.
    let mut world = World::new(plan);
    world.run(SECOND * 30);
    assert_eq!(world.reach(), through);
    assert_ne!(world.places[GROUND].app.all_told, []);
    world.is_uplink_dead = true;
    world.run(SECOND * 20);
    world.places[GROUND].app.all_told.clear();
    world.run(SECOND * 300);
    assert_eq!(world.reach(), through);
    assert_eq!(world.places[GROUND].app.all_told, []);
}

#[test]
fn ends_meet_while_one_of_them_changes_its_key() {
    for nats in [[Nat::Cone; 2], [Nat::Symmetric; 2]] {
        let mut world = World::new(Plan {
            nats,
            keys_are_changing: true,
            ..PLAN
        });
        world.run(SECOND * 30);
        assert_eq!(world.links(), [LinkState::Up; 2], "{nats:?}");
        for at in ENDS {
            assert_eq!(world.places[at].app.refused, [], "{nats:?}");
        }
    }
}

#[test]
fn an_address_that_the_hub_repeats_is_told_of_once() {
    let nats = [Nat::Symmetric; 2];
    let mut world = World::new(Plan { nats, ..PLAN });
    world.run(SECOND * 300);
    for at in ENDS {
        let app = &world.places[at].app;
        assert!(app.all_told.len() > 5, "{:?}", app.all_told);
        assert_eq!(app.news.len(), 1, "{:?}", app.news);
    }
}
