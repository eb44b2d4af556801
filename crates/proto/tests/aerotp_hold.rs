//! Paths that the layer below holds as down, beside others that are up.

use super::FORM;
use super::sight::hand_over;
use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, CloseReason, ConnectionConfig, ConnectionId, EndpointConfig, Event, RateSource,
};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use fulmar_proto::wire::{Mode, Port};
use std::collections::BTreeMap;

const PORT: Port = Port(4000);
const DELAY: Duration = Duration::from_millis(20);
const LOSS: f64 = 0.1;
const SECOND: Duration = Duration::from_secs(1);

/// A hub, number 0, and peers; each peer is at the hub's path of its number less one.
struct Star {
    now: Instant,
    ends: Vec<AerotpEndpoint>,
    losses: Vec<Rng>,
    /// The peer that nothing reaches and that reaches nobody.
    cut: Option<usize>,
    flying: BTreeMap<(Instant, u64), (usize, PathId, Vec<u8>)>,
    flown: u64,
    /// TPDUs that the hub made, by path.
    made: Vec<u64>,
    wakes: u64,
    /// Octets that each node's applications received.
    received: Vec<u64>,
    closed: Vec<(usize, CloseReason)>,
    /// The hub's bulk flows.
    flows: Vec<ConnectionId>,
}

impl Star {
    fn new(peers: usize) -> Self {
        let config = EndpointConfig {
            rate: RateSource::Told(Bitrate::from_bits_per_second(5_000_000)),
            lower_overhead: ByteCount(20),
            ..EndpointConfig::default()
        };
        let new = |seed| AerotpEndpoint::new(config, Rng::from_seed(seed));
        let mut ends: Vec<AerotpEndpoint> = (0..=peers as u64).map(new).collect();
        for end in &mut ends {
            for path in 0..peers {
                let path = PathId(u32::try_from(path).expect("small"));
                end.speak(Instant::START, path, FORM);
            }
            let listens = end.listen(PORT, ConnectionConfig::default());
            listens.expect("a sound configuration");
        }
        let rng = Rng::from_seed(11);
        let losses = (0..peers).map(|peer| rng.child(&format!("link {peer}")));
        Self {
            now: Instant::START,
            losses: losses.collect(),
            cut: None,
            flying: BTreeMap::new(),
            flown: 0,
            made: vec![0; peers],
            wakes: 0,
            received: vec![0; ends.len()],
            closed: Vec::new(),
            flows: Vec::new(),
            ends,
        }
    }

    fn hub<T>(&mut self, call: impl FnOnce(&mut AerotpEndpoint, Instant) -> T) -> T {
        let result = call(&mut self.ends[0], self.now);
        self.settle(0);
        result
    }

    fn connect(&mut self, peer: usize, config: ConnectionConfig) -> ConnectionId {
        let path = PathId(u32::try_from(peer - 1).expect("small"));
        self.hub(|hub, now| hub.connect(now, path, PORT, config))
            .expect("room")
    }

    /// Takes the link to `peer` down, or up again, and tells both ends.
    fn hold(&mut self, peer: usize, held: bool) {
        let path = PathId(u32::try_from(peer - 1).expect("small"));
        self.ends[0].hold(self.now, path, held);
        self.ends[peer].hold(self.now, PathId(0), held);
        self.settle(0);
        self.settle(peer);
    }

    fn settle(&mut self, node: usize) {
        loop {
            if let Some(event) = self.ends[node].poll_event() {
                self.on_event(node, &event);
                continue;
            }
            for id in self.flows.iter().filter(|_| node == 0) {
                let room = self.ends[0].write_room(*id).unwrap_or(0);
                let written = self.ends[0].write(self.now, *id, &vec![7; room]);
                assert!(room == 0 || written == Ok(room));
            }
            let mut octets = Vec::new();
            let Some(transmit) = self.ends[node].poll_transmit(self.now, &mut octets) else {
                break;
            };
            let hub_path = if node == 0 {
                let path = usize::try_from(transmit.path.0).expect("small");
                self.made[path] += 1;
                path
            } else {
                node - 1
            };
            let lost = self.losses[hub_path].chance(LOSS);
            if lost || self.cut == Some(hub_path + 1) {
                continue;
            }
            let (to, path) = if node == 0 {
                (hub_path + 1, PathId(0))
            } else {
                (0, PathId(u32::try_from(hub_path).expect("small")))
            };
            self.flown += 1;
            let flying = (to, path, octets);
            self.flying.insert((self.now + DELAY, self.flown), flying);
        }
    }

    fn on_event(&mut self, node: usize, event: &Event) {
        match *event {
            Event::Readable(id) => {
                while let Some(chunk) = self.ends[node].read(self.now, id) {
                    self.received[node] += chunk.octets.len() as u64;
                    self.ends[node].recycle(id, chunk.octets);
                }
            }
            Event::Closed { why, .. } => self.closed.push((node, why)),
            _ => {}
        }
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let timers = self.ends.iter().enumerate();
            let timers = timers.filter_map(|(node, end)| Some((end.next_deadline()?.at, node)));
            let timer = timers.min();
            match (arrival, timer) {
                (Some(at), timer) if timer.is_none_or(|(t, _)| at <= t) && at <= until => {
                    self.now = at;
                    let (_, (node, path, octets)) = self.flying.pop_first().expect("looked at");
                    let datagram = Datagram {
                        path,
                        octets: &octets,
                        ecn: Ecn::Capable,
                    };
                    hand_over(&mut self.ends[node], at, datagram);
                    self.settle(node);
                }
                (_, Some((at, node))) if at <= until => {
                    self.now = self.now.max(at);
                    self.wakes += 1;
                    self.ends[node].handle_deadline(self.now);
                    self.settle(node);
                }
                _ => {
                    self.now = until;
                    return;
                }
            }
        }
    }

    /// Octets that each peer received in the span just run, after `before`.
    fn since(&self, before: &[u64]) -> Vec<u64> {
        let both = self.received.iter().zip(before);
        both.map(|(now, before)| now - before).collect()
    }
}

/// A star in which a bulk flow runs to each peer for a second.
fn busy(peers: usize) -> Star {
    let mut star = Star::new(peers);
    for peer in 1..=peers {
        let id = star.connect(peer, ConnectionConfig::default());
        star.flows.push(id);
        star.settle(0);
    }
    star.run(SECOND);
    star
}

#[test]
fn flows_to_two_peers_are_as_fast_beside_a_third_that_is_down_as_without_it() {
    let (mut two, mut three) = (busy(2), busy(3));
    three.cut = Some(3);
    two.run(SECOND / 2);
    three.run(SECOND / 2);
    three.hold(3, true);
    let made = three.made.clone();
    two.run(10 * SECOND);
    three.run(10 * SECOND);
    // The figures are equal, not only nearly: the links lose alike in both runs, so any influence
    // would show.
    assert_eq!(two.received[1..], three.received[1..3]);
    assert!(three.received[1] > 5_000_000, "{:?}", three.received);
    assert_eq!(three.made[2], made[2], "made for a peer that is down");

    three.cut = None;
    let before = three.received.clone();
    three.hold(3, false);
    three.run(2 * DELAY + 2 * DELAY);
    assert!(three.since(&before)[3] > 0, "nothing in two round trips");
    let before = three.received.clone();
    three.run(SECOND);
    let got = three.since(&before);
    // 416 packets a second at 10 % loss: a standard deviation of 6, and of 9 for the difference of
    // two links, which is 2.4 % of what arrives. 10 % are four of them.
    assert!(got[3] * 10 > got[1] * 9, "{got:?}");
}

#[test]
fn connections_to_a_peer_that_is_down_wait_without_a_busy_clock() {
    let mut star = busy(1);
    star.cut = Some(1);
    star.hold(1, true);
    let idle = star.connect(1, ConnectionConfig::default());
    star.run(SECOND);
    let wakes = star.wakes;
    star.run(10 * SECOND);
    // Two connections and the listener's end of one wake at most every half second each, not
    // counting keep-alives and flushes.
    assert!(star.wakes - wakes < 100, "{}", star.wakes - wakes);
    assert_eq!(star.closed, []);
    star.hub(|hub, now| hub.close(now, idle));
    star.run(150 * SECOND);
    // The flow, the one that was closed, and the peer's end of the flow.
    let vanished = CloseReason::PeerVanished;
    assert_eq!(star.closed, [(0, vanished), (1, vanished), (0, vanished)]);
    assert_eq!(star.ends[0].connection_count(), 0);
}

#[test]
fn an_end_in_a_mode_that_waits_for_nobody_does_not_wait_for_the_path_either() {
    let mut star = Star::new(1);
    star.hold(1, true);
    for mode in [Mode::Unreliable, Mode::QuasiReliable, Mode::Datagram] {
        let config = ConnectionConfig {
            mode,
            ..ConnectionConfig::default()
        };
        let id = star.connect(1, config);
        let written = star.hub(|hub, now| hub.write_message(now, id, b"late"));
        assert_eq!(written, Ok(true));
        star.hub(|hub, now| hub.close(now, id));
    }
    let waits = ConnectionConfig::default().give_up_after;
    star.run(waits + SECOND);
    assert_eq!(star.ends[0].connection_count(), 0, "{:?}", star.closed);
}

#[test]
fn connections_aborted_while_the_path_is_down_leave_nothing_and_the_peer_hears_of_it_after() {
    let mut star = busy(1);
    let said = star.flows.pop().expect("one");
    star.cut = Some(1);
    star.hold(1, true);
    star.hub(|hub, now| hub.abort(now, said));
    for _ in 0..1_000 {
        let id = star.connect(1, ConnectionConfig::default());
        let written = star.hub(|hub, now| hub.write(now, id, b"in vain"));
        assert_eq!(written, Ok(7));
        star.hub(|hub, now| hub.abort(now, id));
    }
    assert_eq!(star.ends[0].connection_count(), 0);
    assert_eq!(star.ends[0].memory_bytes(), ByteCount::ZERO);
    star.run(SECOND);
    assert_eq!(star.ends[1].connection_count(), 1, "it cannot know");
    let id = star.ends[1].connect(star.now, PathId(0), PORT, ConnectionConfig::default());
    let id = id.expect("room");
    let written = star.ends[1].write(star.now, id, b"of the peer's");
    assert_eq!(written, Ok(13));
    star.cut = None;
    let before = star.received.clone();
    star.hold(1, false);
    star.run(SECOND);
    assert_eq!(star.since(&before), [13, 0]);
    // Nobody answers a keep-alive of the peer's; data or an end are answered.
    let flow = ConnectionId(0);
    let written = star.ends[1].write(star.now, flow, b"still there?");
    assert_eq!(written, Ok(12));
    star.settle(1);
    star.run(2 * SECOND);
    assert!(
        star.closed.contains(&(1, CloseReason::Reset)),
        "{:?}",
        star.closed
    );
}
