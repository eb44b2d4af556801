//! One session with several peers: each is its own link, whatever happens to the others.
//!
//! Method: a hub and three outstations in virtual time; the inner machine only keeps what arrives.

use fulmar_net::session::{
    Entropy, LinkState, MtuConfig, PeerConfig, PeerIndex, SecretKey, Security, Session,
    SessionConfig, SessionConfigError, SessionEvent, wire_2,
};
use fulmar_proto::machine::{
    Carried, Datagram, Deadline, Ecn, Machine, MachineDriver, PathId, PathSizes, Priority, Strict,
    TpduForm, Transmit, TransmitKind, drain,
};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const DELAY: Duration = Duration::from_millis(5);
const OUTSTATIONS: u32 = 3;

/// The type of a frame of data in full.
const FULL: u8 = 0x68;

/// A machine that sends the octets it is given, in either form if it is made for both, and keeps those it gets.
#[derive(Default)]
struct Post<const SHORT: bool = true> {
    out: VecDeque<(PathId, Vec<u8>)>,
    got: Vec<(PathId, Vec<u8>)>,
    /// The paths where it speaks the short form.
    short: BTreeSet<PathId>,
}

impl<const SHORT: bool> Machine for Post<SHORT> {
    type Event = ();
    fn handle_datagram(&mut self, _now: Instant, datagram: Datagram<'_>) {
        self.got.push((datagram.path, datagram.octets.to_vec()));
    }
    fn handle_deadline(&mut self, _now: Instant) {}
    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (path, octets) = self.out.pop_front()?;
        let start = out.len();
        if self.short.contains(&path) {
            out.push(FULL);
        }
        out.extend_from_slice(&octets);
        Some(Transmit {
            path,
            len: out.len() - start,
            kind: TransmitKind::Source,
            priority: Priority(3),
            ecn: Ecn::Capable,
        })
    }
    fn poll_event(&mut self) -> Option<()> {
        None
    }
    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

impl<const SHORT: bool> Carried for Post<SHORT> {
    const SHORT: bool = SHORT;

    fn speak(&mut self, _now: Instant, path: PathId, form: TpduForm) {
        if form == TpduForm::Short {
            self.short.insert(path);
        } else {
            self.short.remove(&path);
        }
    }
    fn handle_frames(&mut self, _now: Instant, datagram: Datagram<'_>) {
        let (kind, octets) = datagram.octets.split_first().expect("a frame");
        assert_eq!(*kind, FULL);
        self.got.push((datagram.path, octets.to_vec()));
    }
    fn hold(&mut self, _now: Instant, _path: PathId, _held: bool) {}
    fn set_path_sizes(
        &mut self,
        _now: Instant,
        _path: PathId,
        _sizes: PathSizes,
    ) -> Result<(), String> {
        Ok(())
    }
    fn on_sent_below(&mut self, _now: Instant, _path: PathId, _wire: ByteCount) {}
    fn peer_restarted(&mut self, _now: Instant, _path: PathId) {}
}

type Node = Strict<Session<Post>>;

#[derive(Default)]
struct Ends {
    buffer: Vec<u8>,
    sent: Vec<(PathId, Vec<u8>)>,
    events: Vec<SessionEvent<()>>,
}

impl MachineDriver<Node> for Ends {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }
    fn send(&mut self, _now: Instant, transmit: Transmit) {
        self.sent.push((transmit.path, self.buffer.clone()));
    }
    fn deliver(&mut self, _now: Instant, _machine: &mut Node, event: SessionEvent<()>) {
        self.events.push(event);
    }
}

/// Node 0 is the hub; on every path, the number is that of the node at the other end.
struct Star {
    now: Instant,
    nodes: Vec<(Node, Ends, Option<Deadline>)>,
    flying: BTreeMap<(Instant, u64), (u32, u32, Vec<u8>)>,
    flown: u64,
    cut: Option<u32>,
}

fn key(n: u32) -> SecretKey {
    SecretKey::generate(&mut Entropy::from_seed(
        [u8::try_from(n).expect("small"); 32],
    ))
}

impl Star {
    fn new() -> Self {
        Self::speaking(|_| false)
    }

    /// A star of which these nodes speak wire 2.
    fn speaking(wire_two: impl Fn(u32) -> bool) -> Self {
        let peer = |n: u32, endpoints| PeerConfig {
            name: format!("node {n}"),
            security: Security::Noise {
                peer: key(n + 1).public(),
                preset: None,
            },
            endpoints,
            mtu: MtuConfig::default(),
        };
        let node = |n: u32| {
            let peers = if n == 0 {
                (1..=OUTSTATIONS).map(|other| peer(other, vec![])).collect()
            } else {
                vec![peer(0, vec![PathId(0)])]
            };
            let mut config = SessionConfig::new(Some(key(n + 1)), peers, 1 << 40);
            config.capabilities = wire_two(n).then(wire_2).into_iter().collect();
            let seed = [100 + u8::try_from(n).expect("small"); 32];
            let session = Session::new(config, <Post>::default(), Entropy::from_seed(seed));
            (Strict::new(session.expect("sound")), Ends::default(), None)
        };
        let mut star = Self {
            now: Instant::START,
            nodes: (0..=OUTSTATIONS).map(node).collect(),
            flying: BTreeMap::new(),
            flown: 0,
            cut: None,
        };
        for n in 0..=OUTSTATIONS {
            star.settle(n);
        }
        star
    }

    fn settle(&mut self, n: u32) {
        let (node, ends, deadline) = &mut self.nodes[n as usize];
        *deadline = drain(node, self.now, ends);
        for (path, octets) in ends.sent.drain(..) {
            if self.cut.is_some_and(|cut| cut == n || cut == path.0) {
                continue;
            }
            self.flown += 1;
            self.flying
                .insert((self.now + DELAY, self.flown), (n, path.0, octets));
        }
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let deadlines = (0..).zip(&self.nodes);
            let timer = deadlines
                .filter_map(|(n, node)| Some((node.2?.at, n)))
                .min();
            match (arrival, timer) {
                (Some(at), timer) if at <= until && timer.is_none_or(|(t, _)| at <= t) => {
                    self.now = at;
                    let (_, (from, to, octets)) = self.flying.pop_first().expect("looked at");
                    let datagram = Datagram {
                        path: PathId(from),
                        octets: &octets,
                        ecn: Ecn::Congested,
                    };
                    self.nodes[to as usize].0.handle_datagram(at, datagram);
                    self.settle(to);
                }
                (_, Some((at, n))) if at <= until => {
                    self.now = at;
                    self.nodes[n as usize].0.handle_deadline(at);
                    self.settle(n);
                }
                _ => break,
            }
        }
        self.now = until;
    }

    fn post(&mut self, from: u32, peer: PeerIndex, octets: &[u8]) {
        let inner = self.nodes[from as usize].0.app().inner_mut();
        inner.out.push_back((peer.inner_path(), octets.to_vec()));
        self.settle(from);
    }

    fn got(&self, n: u32) -> &[(PathId, Vec<u8>)] {
        &self.nodes[n as usize].0.inner().inner().got
    }

    fn link(&self, n: u32, peer: u32) -> LinkState {
        let status = self.nodes[n as usize].0.inner().status(PeerIndex(peer));
        status.expect("a peer").link
    }
}

fn letter(way: &str, n: u32) -> Vec<u8> {
    format!("{way} node {n}").into_bytes()
}

#[test]
fn each_peer_gets_its_own_and_is_known_by_its_place_in_the_configuration() {
    let mut star = Star::new();
    star.run(Duration::from_millis(100));
    for n in 1..=OUTSTATIONS {
        star.post(0, PeerIndex(n - 1), &letter("to", n));
        star.post(n, PeerIndex(0), &letter("from", n));
    }
    star.run(Duration::from_millis(50));
    for n in 1..=OUTSTATIONS {
        assert_eq!(star.got(n), [(PathId(0), letter("to", n))]);
        let from = (PathId(n - 1), letter("from", n));
        assert!(star.got(0).contains(&from));
    }
    assert_eq!(star.got(0).len(), OUTSTATIONS as usize);
}

#[test]
fn one_peer_out_of_reach_does_not_hold_the_others_up() {
    let mut star = Star::new();
    star.run(Duration::from_millis(100));
    star.cut = Some(2);
    star.post(0, PeerIndex(1), b"lost");
    star.run(Duration::from_secs(1));
    let links: Vec<LinkState> = (0..OUTSTATIONS).map(|peer| star.link(0, peer)).collect();
    assert_eq!(links, [LinkState::Up, LinkState::Down, LinkState::Up]);
    star.post(0, PeerIndex(1), b"nowhere to go");
    star.post(0, PeerIndex(2), b"goes on");
    star.run(Duration::from_millis(50));
    assert_eq!(star.got(3), [(PathId(0), b"goes on".to_vec())]);
    let hub = star.nodes[0].0.inner();
    assert_eq!(
        hub.counters().unsent,
        1,
        "counted, as is all that is dropped"
    );
    star.cut = None;
    star.run(Duration::from_secs(2));
    assert_eq!(star.link(0, 1), LinkState::Up);
}

#[test]
fn a_hub_speaks_to_each_peer_in_the_wire_that_the_two_agreed_on() {
    let mut star = Star::speaking(|n| n != 2);
    star.run(Duration::from_millis(100));
    let hub = star.nodes[0].0.app().inner_mut();
    assert_eq!(hub.short, BTreeSet::from([PathId(0), PathId(2)]));
    // In turn, and several to one: some follow one in the same wire, some one in the other.
    let order = [1, 2, 3, 3, 2, 2, 1, 3, 1, 1, 2];
    for n in order {
        let peer = PeerIndex(n - 1).inner_path();
        hub.out.push_back((peer, letter("to", n)));
    }
    star.settle(0);
    star.run(Duration::from_millis(50));
    for n in 1..=OUTSTATIONS {
        let letters = order.iter().filter(|to| **to == n).count();
        assert_eq!(star.got(n), vec![(PathId(0), letter("to", n)); letters]);
    }
}

#[test]
fn the_second_wire_is_refused_around_a_machine_that_speaks_the_long_form_only() {
    let peer = PeerConfig {
        name: "node 2".to_owned(),
        security: Security::None { label: 1 },
        endpoints: vec![],
        mtu: MtuConfig::default(),
    };
    let mut config = SessionConfig::new(None, vec![peer], 1);
    config.capabilities = vec![wire_2()];
    let long_only = Post::<false>::default();
    let refused = Session::new(config.clone(), long_only, Entropy::from_seed([1; 32]));
    assert_eq!(refused.err(), Some(SessionConfigError::LongFormOnly));
    let both = Post::<true>::default();
    assert!(Session::new(config, both, Entropy::from_seed([1; 32])).is_ok());
}
