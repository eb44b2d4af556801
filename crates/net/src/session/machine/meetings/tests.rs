//! A hub and two ends that are joined without a network, so that a test can put any word of one into another.

use super::super::arrivals::{Origin, SOURCE_BYTES};
use super::super::relaying::source_inside;
use super::*;
use crate::session::counters::DropReason;
use crate::session::wire::{Relayed, RelayedWay};
use crate::session::{
    Entropy, LinkState, MtuConfig, PeerConfig, SecretKey, Security, SessionConfig, rendezvous,
    several_paths, source_octets, wire_2,
};
use fulmar_proto::machine::{Datagram, Ecn, Machine};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, ConnectionConfig, EndpointConfig};
use fulmar_proto::units::Bitrate;
use fulmar_proto::wire::Port;
use fulmar_proto::wire::aerotp::short::write_followed;
use std::net::SocketAddr;

type Node = Session<AerotpEndpoint>;

const HUB: usize = 0;
const AIR: usize = 1;
const GROUND: usize = 2;
/// The peers of the hub, and those of an end.
const AIR_AT_HUB: PeerIndex = PeerIndex(0);
const GROUND_AT_HUB: PeerIndex = PeerIndex(1);
const OF_HUB: PeerIndex = PeerIndex(0);
const OF_END: PeerIndex = PeerIndex(1);
/// The path of an end to the hub, and one to where nobody answers.
const TO_HUB: PathId = PathId(0);
const NOWHERE: PathId = PathId(9);
const RATE: Bitrate = Bitrate::from_bits_per_second(400_000);
const STEP: Duration = Duration::from_millis(10);

fn secret(node: usize) -> SecretKey {
    let seed = u8::try_from(node).expect("small") + 1;
    SecretKey::generate(&mut Entropy::from_seed([seed; 32]))
}

fn node(at: usize, peers: [usize; 2], endpoints: [Vec<PathId>; 2], has_paths: bool) -> Node {
    let peers = peers
        .iter()
        .zip(endpoints)
        .map(|(other, endpoints)| PeerConfig {
            name: format!("node {other}"),
            security: Security::Noise {
                peer: secret(*other).public(),
                preset: None,
            },
            endpoints,
            mtu: MtuConfig::default(),
        });
    let mut config = SessionConfig::new(Some(secret(at)), peers.collect(), 1 << 40);
    config.capabilities = vec![wire_2(), rendezvous()];
    config.capabilities.extend(has_paths.then(several_paths));
    let seed = u8::try_from(at).expect("small") + 50;
    let endpoint = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(u64::from(seed)));
    Session::new(config, endpoint, Entropy::from_seed([seed; 32])).expect("sound")
}

/// A hub, the air and the ground. The ends reach the hub and not each other: NATs are in the way.
struct Trio {
    now: Instant,
    nodes: [Node; 3],
    /// Datagrams for nowhere, by the node that sent them.
    lost: Vec<(usize, PathId, Vec<u8>)>,
    events: [Vec<SessionEvent<<AerotpEndpoint as Machine>::Event>>; 3],
}

impl Trio {
    fn new(help: Introduce) -> Self {
        Self::with(help, true)
    }

    /// Ends that have several paths, or that know of one only.
    fn with(help: Introduce, have_paths: bool) -> Self {
        let end = |at: usize| {
            let peers = [HUB, AIR + GROUND - at];
            node(at, peers, [vec![TO_HUB], vec![]], have_paths)
        };
        let mut trio = Self {
            now: Instant::START,
            nodes: [
                node(HUB, [AIR, GROUND], [vec![], vec![]], true),
                end(AIR),
                end(GROUND),
            ],
            lost: Vec::new(),
            events: Default::default(),
        };
        trio.nodes[HUB].introduce(AIR_AT_HUB, help);
        trio.nodes[HUB].introduce(GROUND_AT_HUB, help);
        trio.nodes[AIR].meet(OF_END, Some(OF_HUB));
        trio.nodes[GROUND].meet(OF_END, Some(OF_HUB));
        trio.run(Duration::from_secs(5));
        trio
    }

    /// The ends reach each other through the hub.
    fn relayed(rate: Bitrate) -> Self {
        let trio = Self::new(Introduce::Relay(rate));
        let through = Some(Reach::Through(OF_HUB));
        assert_eq!(trio.nodes[AIR].reach(OF_END), through);
        assert_eq!(trio.nodes[GROUND].reach(OF_END), through);
        trio
    }

    /// The datagrams that leave a node now.
    fn leaving(&mut self, at: usize) -> Vec<(PathId, Vec<u8>)> {
        let node = &mut self.nodes[at];
        let mut left = Vec::new();
        loop {
            while let Some(event) = node.poll_event() {
                self.events[at].push(event);
            }
            let mut octets = Vec::new();
            let Some(transmit) = node.poll_transmit(self.now, &mut octets) else {
                return left;
            };
            assert!(!transmit.path.is_inside(), "no driver has such a path");
            left.push((transmit.path, octets));
        }
    }

    fn arrive(&mut self, at: usize, path: PathId, octets: &[u8]) {
        let datagram = Datagram {
            path,
            octets,
            ecn: Ecn::NotCapable,
        };
        let from = SocketAddr::from(([192, 0, 2, 1], u16::try_from(path.0).expect("small")));
        let (now, source) = (self.now, source_octets(from));
        self.nodes[at].handle_datagram_from(now, datagram, &source);
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now += STEP;
            for node in &mut self.nodes {
                if node.next_deadline().is_some_and(|due| due.at <= self.now) {
                    node.handle_deadline(self.now);
                }
            }
            for at in [AIR, GROUND, HUB] {
                for (path, octets) in self.leaving(at) {
                    match (at, path) {
                        (HUB, path) => {
                            let to = usize::try_from(path.0).expect("small") - 100;
                            self.arrive(to, TO_HUB, &octets);
                        }
                        (end, TO_HUB) => {
                            let from = PathId(100 + u32::try_from(end).expect("small"));
                            self.arrive(HUB, from, &octets);
                        }
                        _ => self.lost.push((at, path, octets)),
                    }
                }
            }
        }
    }

    /// Gives a node content as if a peer had sealed it, on this path.
    fn take(&mut self, at: usize, (from, path): (PeerIndex, PathId), content: &[u8]) {
        let origin = Origin {
            path,
            place: Some(PathSlot::FIRST),
            source: &[0; SOURCE_BYTES],
            ecn: Ecn::NotCapable,
            at: self.now,
            octets: content.len(),
            is_armoured: false,
            is_mended: false,
            is_kept: false,
            keys: None,
        };
        let index = usize::try_from(from.0).expect("small");
        let taken = self.nodes[at].take_frames(self.now, origin, index, content);
        assert_eq!(taken, Ok(()));
    }

    /// Datagrams that the air wants the hub to pass on to the ground.
    fn take_at_hub(&mut self, content: &[u8]) -> usize {
        self.take(HUB, (AIR_AT_HUB, PathId(101)), content);
        self.leaving(HUB).len()
    }

    fn state(&mut self, at: usize, peer: PeerIndex) -> &mut Peer {
        self.nodes[at].peer_mut(peer).expect("a peer")
    }
}

fn written(message: Message<'_>) -> Vec<u8> {
    let mut octets = Vec::new();
    message.write(&mut octets);
    octets
}

/// A datagram from the air for the ground, as the air tells the hub.
fn to_ground(octets: &[u8]) -> Vec<u8> {
    let way = RelayedWay::To(number_of(GROUND_AT_HUB));
    written(Message::Relayed(Relayed { way, octets }))
}

#[test]
fn of_several_datagrams_to_be_passed_on_in_one_the_hub_passes_on_one() {
    let mut trio = Trio::relayed(RATE);
    trio.leaving(HUB);
    let before = *trio.nodes[HUB].counters();
    let one = to_ground(&[]);
    let mut content = Vec::new();
    for _ in 0..15 {
        write_followed(&one, &mut content);
    }
    content.extend_from_slice(&one);
    assert_eq!(trio.take_at_hub(&content), 1);
    let after = trio.nodes[HUB].counters();
    assert_eq!(after.relayed - before.relayed, 1);
    assert_eq!(after.unrelayed - before.unrelayed, 15);
}

#[test]
fn empty_datagrams_are_charged_with_what_leaves_for_them() {
    let mut trio = Trio::relayed(RATE);
    trio.leaving(HUB);
    let passed: usize = (0..1_000).map(|_| trio.take_at_hub(&to_ground(&[]))).sum();
    // The 5,000 octets of a tenth of a second, in packets with 28 of headers, 24 of the seal, and 4 of the frame.
    assert!((50..=5_000 / 56 + 1).contains(&passed), "{passed}");
}

#[test]
fn several_senders_have_one_rate_towards_a_receiver_and_who_has_none_takes_none_of_it() {
    let mut trio = Trio::relayed(RATE);
    trio.leaving(HUB);
    // The ground takes a tenth of what the air may send.
    let tenth = Bitrate::from_bits_per_second(40_000);
    trio.nodes[HUB].introduce(GROUND_AT_HUB, Introduce::Relay(tenth));
    let passed: usize = (0..1_000).map(|_| trio.take_at_hub(&to_ground(&[]))).sum();
    assert!((5..=500 / 56 + 1).contains(&passed), "{passed}");
    // A sender beyond its own rate leaves the receiver's to the others.
    let mut trio = Trio::relayed(RATE);
    trio.leaving(HUB);
    let slow = Bitrate::from_bits_per_second(1_000);
    trio.nodes[HUB].introduce(AIR_AT_HUB, Introduce::Relay(slow));
    let passed: usize = (0..1_000).map(|_| trio.take_at_hub(&to_ground(&[]))).sum();
    assert_eq!(passed, 1);
    let now = trio.now;
    let ground = trio.state(HUB, GROUND_AT_HUB);
    assert!(ground.introduced.receives(now, 1, None));
}

#[test]
fn a_handshake_with_a_peer_of_whom_no_path_is_left_ends_so_that_the_peer_may_call() {
    let mut trio = Trio::new(Introduce::Nothing);
    trio.now += STEP;
    let now = trio.now;
    let state = trio.state(AIR, OF_HUB);
    state.keys.clear();
    state.not_before = now;
    trio.leaving(AIR);
    let state = trio.state(AIR, OF_HUB);
    let pending = state.pending.as_ref().expect("it is called anew");
    let next_at = pending.next_at;
    state.path = None;
    state.config.endpoints.clear();
    trio.now = next_at;
    let due = trio.nodes[AIR].next_deadline().expect("a repetition");
    assert!(due.at <= next_at);
    trio.nodes[AIR].handle_deadline(next_at);
    assert!(trio.state(AIR, OF_HUB).pending.is_none());
    assert_eq!(trio.state(AIR, OF_HUB).next_deadline(next_at), None);
}

#[test]
fn nobody_is_called_at_another_peer_s_path_and_that_peer_stays_where_it_is() {
    let mut trio = Trio::relayed(RATE);
    let now = trio.now;
    assert_eq!(
        trio.nodes[AIR].set_told_address(OF_END, TO_HUB),
        Err(OF_HUB)
    );
    assert!(!trio.state(AIR, OF_END).may_be_at(TO_HUB));
    assert_eq!(trio.nodes[AIR].peer_at(now, TO_HUB), Some(0));
    // At the hub, the ground is where it was heard last, without an endpoint.
    trio.nodes[HUB].meet(AIR_AT_HUB, Some(GROUND_AT_HUB));
    let refused = trio.nodes[HUB].set_told_address(AIR_AT_HUB, PathId(102));
    assert_eq!(refused, Err(GROUND_AT_HUB));
    assert_eq!(trio.nodes[AIR].set_told_address(OF_END, NOWHERE), Ok(()));
    assert!(trio.state(AIR, OF_END).may_be_at(NOWHERE));
}

#[test]
fn without_its_hub_a_peer_has_no_way_through_it_and_no_address_that_it_told() {
    for hub in [None, Some(OF_END)] {
        let mut trio = Trio::relayed(RATE);
        assert_eq!(trio.nodes[AIR].set_told_address(OF_END, NOWHERE), Ok(()));
        // A hub for oneself is none; what matters here is that it is another one.
        trio.nodes[AIR].meet(OF_END, hub);
        let through = way_through_hub(OF_END);
        let state = trio.state(AIR, OF_END);
        assert!(!state.may_be_at(through) && !state.may_be_at(NOWHERE));
        trio.events[AIR].clear();
        trio.lost.clear();
        let carried = trio.nodes[HUB].counters().relayed;
        trio.run(Duration::from_secs(30));
        assert_eq!(trio.lost.iter().find(|(at, ..)| *at == AIR), None);
        let is_down =
            |event: &SessionEvent<_>| matches!(event, SessionEvent::LinkDown { peer: OF_END, .. });
        assert!(trio.events[AIR].iter().any(is_down));
        let status = trio.nodes[AIR].status(OF_END).expect("a peer");
        assert_ne!(status.link, LinkState::Up);
        assert!(trio.nodes[AIR].path_statuses(OF_END).is_empty());
        // What the ground still sends to the air ends at the air.
        let ground = trio.nodes[HUB].counters().relayed - carried;
        assert!(ground < 200, "{ground}");
        // And the way is there again with the hub.
        trio.nodes[AIR].meet(OF_END, Some(OF_HUB));
        trio.run(Duration::from_secs(30));
        let reach = trio.nodes[AIR].reach(OF_END);
        assert_eq!(reach, Some(Reach::Through(OF_HUB)), "{hub:?}");
    }
}

#[test]
fn ends_that_know_of_one_path_have_no_link_without_the_hub_that_was_it() {
    let mut trio = Trio::with(Introduce::Relay(RATE), false);
    assert_eq!(trio.nodes[AIR].reach(OF_END), Some(Reach::Through(OF_HUB)));
    let through = Some(way_through_hub(OF_END));
    assert_eq!(trio.state(AIR, OF_END).path, through);
    trio.events[AIR].clear();
    trio.nodes[AIR].meet(OF_END, None);
    trio.run(Duration::from_secs(5));
    let is_down =
        |event: &&SessionEvent<_>| matches!(event, SessionEvent::LinkDown { peer: OF_END, .. });
    assert_eq!(trio.events[AIR].iter().filter(is_down).count(), 1);
    let status = trio.nodes[AIR].status(OF_END).expect("a peer");
    assert_eq!((status.link, status.path), (LinkState::Down, None));
    assert_eq!(trio.nodes[AIR].counters().outages, 1);
}

#[test]
fn a_hub_that_no_longer_carries_leaves_no_way_through_it() {
    for help in [Introduce::Address, Introduce::Nothing] {
        let mut trio = Trio::relayed(RATE);
        trio.nodes[HUB].introduce(GROUND_AT_HUB, help);
        trio.run(Duration::from_secs(70));
        for at in [AIR, GROUND] {
            let through = way_through_hub(OF_END);
            assert!(!trio.state(at, OF_END).may_be_at(through), "{help:?} {at}");
            assert_eq!(trio.nodes[at].reach(OF_END), None);
        }
    }
}

#[test]
fn what_its_hub_takes_no_longer_is_counted_as_such_and_not_as_sent() {
    let mut trio = Trio::relayed(RATE);
    trio.leaving(AIR);
    let now = trio.now;
    let asking = trio.nodes[AIR].asking_mut(1).expect("it is met");
    let met = Met {
        remote: secret(GROUND).public(),
        is_introduced: true,
        is_relayed: true,
        is_there: false,
        number: number_of(GROUND_AT_HUB),
        address: None,
    };
    asking.on_met(now, &met);
    let before = *trio.nodes[AIR].counters();
    trio.nodes[AIR].send_probe(now, 1);
    let place = trio
        .state(AIR, OF_END)
        .further
        .quickest()
        .expect("it is up");
    let beat = Message::Heartbeat;
    let is_queued = trio.nodes[AIR].send_in(now, (1, place), beat, Wants::Nothing);
    assert!(is_queued && trio.leaving(AIR).is_empty());
    let after = *trio.nodes[AIR].counters();
    assert_eq!(after.unrelayed, before.unrelayed + 1);
    // The machine's own as well.
    let endpoint = trio.nodes[AIR].inner_mut();
    let config = ConnectionConfig::default();
    let asked = endpoint.connect(now, OF_END.inner_path(), Port(7), config);
    assert!(asked.is_ok());
    assert!(trio.leaving(AIR).is_empty());
    let after = *trio.nodes[AIR].counters();
    assert_eq!(
        (after.unrelayed, after.sent),
        (before.unrelayed + 2, before.sent)
    );
    trio.state(AIR, OF_END).keys.clear();
    trio.nodes[AIR].initiate(now, 1);
    assert!(trio.leaving(AIR).is_empty());
    let after = trio.nodes[AIR].counters();
    assert_eq!(after.initiations_sent, before.initiations_sent);
}

#[test]
fn a_datagram_that_would_take_too_many_pieces_is_not_passed_on() {
    let mut trio = Trio::relayed(Bitrate::from_bits_per_second(1_000_000_000));
    trio.leaving(HUB);
    let before = *trio.nodes[HUB].counters();
    let octets = vec![0; 64_990];
    let now = trio.now;
    trio.state(HUB, GROUND_AT_HUB).mtu = crate::session::path_mtu::PathMtu::new(MtuConfig::fixed(
        fulmar_proto::units::ByteCount(576),
    ));
    let is_carried = trio.nodes[HUB].carry_on(now, 0, number_of(GROUND_AT_HUB), &octets);
    assert!(!is_carried && trio.leaving(HUB).is_empty());
    let piece = vec![0; 2_000];
    assert!(trio.nodes[HUB].carry_on(now, 0, number_of(GROUND_AT_HUB), &piece));
    assert!(trio.leaving(HUB).len() > 3);
    assert_eq!(trio.nodes[HUB].counters().relayed, before.relayed);
}

#[test]
fn a_peer_whose_first_path_is_down_is_there_and_its_old_address_is_not_told() {
    let mut trio = Trio::relayed(RATE);
    let now = trio.now;
    let about = (GROUND_AT_HUB, AIR_AT_HUB);
    let word = |trio: &Trio| trio.nodes[HUB].word_about(now, about, true).expect("known");
    let met = word(&trio);
    assert!(met.is_there && met.address.is_some());
    // It came by another path, and its home was never heard.
    trio.state(HUB, GROUND_AT_HUB).source = None;
    let met = word(&trio);
    assert!(met.is_there && met.address.is_none());
    let mut asking = Asking::new(OF_HUB);
    assert_eq!(asking.on_met(now, &met), None);
    assert!(asking.relayed_as().is_some());
}

#[test]
fn an_address_that_was_given_up_is_not_called_with_the_next_keys() {
    let mut trio = Trio::relayed(RATE);
    assert_eq!(trio.nodes[AIR].set_told_address(OF_END, NOWHERE), Ok(()));
    trio.run(Duration::from_secs(20));
    let to = |trio: &Trio| {
        trio.lost
            .iter()
            .filter(|(at, path, _)| (*at, *path) == (AIR, NOWHERE))
            .count()
    };
    let probes = to(&trio);
    assert!((1..=16).contains(&probes), "{probes}");
    let now = trio.now;
    let rekeys = trio.nodes[AIR].counters().rekeys;
    trio.state(AIR, OF_END).doubt.raise(now);
    trio.run(Duration::from_secs(5));
    assert_eq!(trio.nodes[AIR].counters().rekeys, rekeys + 1);
    assert_eq!(to(&trio), probes);
}

#[test]
fn what_comes_through_a_hub_is_of_the_peer_beyond_it_or_dropped() {
    let mut trio = Trio::relayed(RATE);
    let now = trio.now;
    trio.leaving(AIR);
    // Somebody saw it on its way from the hub to the air, and the ground lets it arrive first, inside.
    trio.nodes[HUB].send_message(now, 0, Message::Heartbeat, Wants::Nothing);
    let (_, stolen) = trio.leaving(HUB).pop().expect("it leaves");
    let through = way_through_hub(OF_END);
    let before = trio.nodes[AIR].counters().dropped(DropReason::Unknown);
    trio.nodes[AIR].carried.push_back((through, stolen.clone()));
    trio.arrive(AIR, TO_HUB, &[]);
    let after = trio.nodes[AIR].counters().dropped(DropReason::Unknown);
    assert_eq!(after, before + 1);
    assert_eq!(trio.state(AIR, OF_HUB).path, Some(TO_HUB));
    // It is not used up: on its own way it is taken.
    trio.arrive(AIR, TO_HUB, &stolen);
    assert_eq!(
        trio.nodes[AIR].counters().dropped(DropReason::Unknown),
        after
    );
    assert_eq!(trio.nodes[AIR].counters().dropped(DropReason::Replayed), 0);
}

#[test]
fn calls_through_a_hub_are_of_the_peer_beyond_it_and_have_a_source_for_each() {
    let mut trio = Trio::relayed(RATE);
    // The hub's own call, let in by way of the ground.
    trio.now += Duration::from_secs(6);
    let now = trio.now;
    trio.nodes[HUB].initiate(now, 0);
    let calls = trio.leaving(HUB);
    let (_, call) = calls.last().expect("it calls");
    let before = trio.nodes[AIR].counters().dropped(DropReason::UnknownPeer);
    trio.nodes[AIR]
        .carried
        .push_back((way_through_hub(OF_END), call.clone()));
    trio.arrive(AIR, TO_HUB, &[]);
    let after = trio.nodes[AIR].counters().dropped(DropReason::UnknownPeer);
    assert_eq!(after, before + 1);
    let hosts = [0, 1, 255].map(|peer| source_inside(PathId::inside(peer)));
    let hosts =
        hosts.map(|source| crate::session::sources::host_and_network(&source).map(<[u8]>::to_vec));
    assert!(hosts[0] != hosts[1] && hosts[1] != hosts[2] && hosts[0][1] != hosts[2][1]);
}

#[test]
fn words_of_a_peer_that_is_no_hub_and_what_came_through_one_change_nothing() {
    let mut trio = Trio::relayed(RATE);
    let now = trio.now;
    let other = RemoteNumber(77);
    let met = Met {
        remote: secret(GROUND).public(),
        is_introduced: true,
        is_relayed: true,
        is_there: true,
        number: other,
        address: Some(([192, 0, 2, 7], 4_914).into()),
    };
    trio.leaving(AIR);
    trio.events[AIR].clear();
    // The ground is the air's peer, and nobody's hub.
    trio.nodes[AIR].take_met(now, 1, &met);
    let asking = trio.nodes[AIR].asking_mut(1).expect("it is met");
    assert!(!asking.is_number(other));
    assert!(trio.leaving(AIR).is_empty() && trio.events[AIR].is_empty());
    let number = number_of(GROUND_AT_HUB);
    let from_ground = written(Message::Relayed(Relayed {
        way: RelayedWay::From(number),
        octets: &[1],
    }));
    trio.take(AIR, (OF_END, NOWHERE), &from_ground);
    assert!(trio.nodes[AIR].carried.is_empty());
    // From the hub the same is taken, but not if it came through a hub itself.
    trio.take(AIR, (OF_HUB, way_through_hub(OF_END)), &from_ground);
    assert!(trio.nodes[AIR].carried.is_empty());
    trio.take(AIR, (OF_HUB, TO_HUB), &from_ground);
    assert_eq!(trio.nodes[AIR].carried.len(), 1);
    // A number of nobody, and one's own.
    let before = *trio.nodes[HUB].counters();
    for number in [0, 2, 300, u16::MAX] {
        let way = RelayedWay::To(RemoteNumber(number));
        let octets = &[1];
        let content = written(Message::Relayed(Relayed { way, octets }));
        assert_eq!(trio.take_at_hub(&content), 0, "{number}");
    }
    assert_eq!(trio.nodes[HUB].counters().unrelayed, before.unrelayed + 4);
}
