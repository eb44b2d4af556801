//! The octets around the payload of every datagram of data in wire 2: at most 64 over IPv4, without payload and parity, the path's place included.
//!
//! Method: two sessions in virtual time around real machines. The machine in the session that receives notes the content that each
//! datagram was opened to; what is neither payload nor parity in it, and all that is around it, is counted.

mod ends;

use crate::session_pair::by_hand;
use crate::session_pair::sight::data;
use crate::session_pair::{PEER, noise, preset_pair, speaking};
use ends::{Around, Arrived, World, address};
use fulmar_net::session::{Capability, SessionConfig, Wire};
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{
    Destination, FlowClass, FlowEvent, FlowId, FlowKind, Splicer, SplicerConfig,
};
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, ConnectionId, EndpointConfig, Event, RateSource,
};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, FecStrength, Instant};
use fulmar_proto::wire::{Mode, Port};
use std::collections::BTreeSet;
use std::num::NonZeroU8;

/// Headers of IPv4 (RFC 791, without options) and UDP (RFC 768).
const IPV4_UDP: usize = 20 + 8;
/// The promise.
const AROUND_MAX: usize = 64;
const PORT: Port = Port(7_070);

fn aes() -> Capability {
    Capability {
        name: "cipher".to_owned(),
        value: "aes-256-gcm".to_owned(),
        must_agree: false,
    }
}

/// Sessions under static and under shared keys, with either cipher, in wire 2.
fn kinds() -> Vec<[SessionConfig; 2]> {
    let mut all = Vec::new();
    for pair in [noise(), preset_pair()] {
        for cipher in [None, Some(aes())] {
            let pair = pair.clone().map(|config| SessionConfig {
                capabilities: cipher.clone().into_iter().collect(),
                ..config
            });
            all.push(pair.map(|config| speaking(config, Wire::Two)));
        }
    }
    all
}

/// Sends `len` octets from end 0 in a connection with these settings.
fn transferred(
    configs: [SessionConfig; 2],
    connection: ConnectionConfig,
    loss: f64,
    len: usize,
) -> World<AerotpEndpoint> {
    let endpoint = move |seed| {
        let config = EndpointConfig {
            rate: RateSource::Told(Bitrate::from_bits_per_second(10_000_000)),
            lower_overhead: ByteCount(28 + 29),
            ..EndpointConfig::default()
        };
        let mut endpoint = AerotpEndpoint::new(config, Rng::from_seed(seed));
        endpoint.listen(PORT, connection).expect("sound");
        endpoint
    };
    let mut left = len;
    let mut write = move |endpoint: &mut AerotpEndpoint, now, id: ConnectionId| {
        while left > 0 {
            match endpoint.write(now, id, &vec![0x5A; left.min(40_000)]) {
                Ok(0) | Err(_) => return,
                Ok(taken) => left -= taken,
            }
        }
        endpoint.close(now, id);
    };
    let application = move |end, now, endpoint: &mut AerotpEndpoint, event| match event {
        Event::Connected(id) | Event::Writable(id) if end == 0 => write(endpoint, now, id),
        Event::Readable(id) => {
            while let Some(chunk) = endpoint.read(now, id) {
                endpoint.recycle(id, chunk.octets);
            }
        }
        Event::PeerFinished(id) if end == 1 => endpoint.close(now, id),
        _ => {}
    };
    let mut world = World::new(configs, endpoint, loss, Box::new(application));
    let now = world.now;
    let id = world
        .machine(0)
        .connect(now, PEER.inner_path(), PORT, connection)
        .expect("connects");
    // The first octets come with the connection.
    let first = vec![0x5A; 1_000];
    assert_eq!(world.machine(0).write(now, id, &first), Ok(1_000));
    world.settle();
    world.run(Duration::from_secs(20));
    world
}

fn connection(mode: Mode) -> ConnectionConfig {
    ConnectionConfig {
        mode,
        tpdu_bytes_max: 1_195,
        payload_crc: false,
        ..ConnectionConfig::default()
    }
}

fn with_blocks(mode: Mode) -> ConnectionConfig {
    let sources = NonZeroU8::new(8).expect("not zero");
    ConnectionConfig {
        block: BlockPlan::new(sources, 2, Duration::from_millis(20)),
        ..connection(mode)
    }
}

/// Each mode with feedback or repair, the loss, and what is around each kind of datagram without armour.
fn transfers() -> [(ConnectionConfig, f64, Around); 3] {
    let common = [("data", 61), ("data in full", 63)];
    let with = |more: &[(&'static str, usize)]| {
        let all = common.iter().chain(more);
        all.map(|(kind, around)| (*kind, BTreeSet::from([*around])))
            .collect()
    };
    [
        (connection(Mode::Reliable), 0.0, with(&[("MACK", 66)])),
        (
            connection(Mode::NearReliable),
            0.2,
            with(&[("MACK", 66), ("NACK", 62)]),
        ),
        (
            with_blocks(Mode::QuasiReliable),
            0.0,
            with(&[("MACK", 66), ("repair", 63)]),
        ),
    ]
}

/// Whether the promise is for this kind of datagram.
fn is_bounded(kind: &str) -> bool {
    kind.starts_with("data") || kind == "repair"
}

#[test]
fn data_has_61_octets_around_it_63_until_the_peer_was_heard_and_repair_63() {
    for configs in kinds() {
        for (connection, loss, expected) in transfers() {
            let world = transferred(configs.clone(), connection, loss, 400_000);
            assert_eq!(world.around(), expected, "{:?}", connection.mode);
            let around = expected.iter().filter(|(kind, _)| is_bounded(kind));
            assert!(
                around
                    .flat_map(|(_, all)| all)
                    .all(|all| *all <= AROUND_MAX)
            );
            if loss == 0.0 {
                // What was counted as payload is what the application sent.
                assert_eq!(world.payload(), 401_000, "{:?}", connection.mode);
            }
        }
    }
}

#[test]
fn armoured_data_has_one_octet_more_that_is_no_parity() {
    for configs in kinds() {
        for (connection, loss, expected) in transfers() {
            let configs = configs.clone().map(|config| SessionConfig {
                fec_words: FecStrength::from_words(16).expect("a strength"),
                ..config
            });
            let world = transferred(configs, connection, loss, 400_000);
            let one_more =
                |all: BTreeSet<usize>| all.into_iter().map(|around| around + 1).collect();
            let expected: Around = expected
                .into_iter()
                .map(|(kind, all)| (kind, one_more(all)))
                .collect();
            assert_eq!(world.around(), expected, "{:?}", connection.mode);
        }
    }
}

#[test]
fn a_full_packet_of_1500_octets_carries_1439_of_payload() {
    let configs = noise().map(|config| speaking(config, Wire::Two));
    let mut world = transferred(configs, connection(Mode::Reliable), 0.0, 3_000_000);
    world.run(Duration::from_secs(1));
    let full = world
        .arrived
        .iter()
        .filter(|arrived| arrived.packet == 1_500);
    let payloads: BTreeSet<usize> = full.map(Arrived::payload).collect();
    assert_eq!(payloads, BTreeSet::from([1_439]));
}

#[test]
fn a_thin_write_through_a_gateway_s_splicer_has_64_octets_around_it_its_record_s_head_included() {
    const WRITES: usize = 100;
    const WRITE_BYTES: usize = 1_200;
    for configs in kinds() {
        let splicer = |seed| {
            let endpoint = EndpointConfig {
                rate: RateSource::Told(Bitrate::from_bits_per_second(10_000_000)),
                ..EndpointConfig::default()
            };
            let endpoint = AerotpEndpoint::new(endpoint, Rng::from_seed(seed));
            let config = SplicerConfig {
                connection: connection(Mode::NearReliable),
                ..SplicerConfig::default()
            };
            Splicer::new(config, endpoint, Rng::from_seed(seed + 10)).expect("sound")
        };
        let application = |end, now, splicer: &mut Splicer, event: FlowEvent| match event {
            FlowEvent::Requested { flow, .. } => {
                assert_eq!(end, 1);
                splicer.connected(now, flow, address());
            }
            FlowEvent::Readable(flow) => {
                while let Some(len) = splicer.peek(flow).map(<[u8]>::len) {
                    splicer.consume(now, flow, len);
                }
            }
            _ => {}
        };
        let mut world = World::new(configs, splicer, 0.0, Box::new(application));
        let (now, class) = (world.now, FlowClass::default());
        let destination = Destination::from(address());
        let peer = PEER.inner_path();
        let flow: FlowId = world
            .machine(0)
            .open(now, peer, FlowKind::Stream, destination, class)
            .expect("room for a flow");
        world.settle();
        world.run(Duration::from_secs(1));
        world.arrived.clear();
        for _ in 0..WRITES {
            let now = world.now;
            let taken = world.machine(0).accept(now, flow, &[0x5A; WRITE_BYTES]);
            assert_eq!(taken, WRITE_BYTES);
            world.settle();
            world.run(Duration::from_millis(20));
        }
        let writes = world
            .arrived
            .iter()
            .filter(|arrived| arrived.payload() >= WRITE_BYTES);
        let around: Vec<usize> = writes.map(|arrived| arrived.around(WRITE_BYTES)).collect();
        assert_eq!(around, [AROUND_MAX; WRITES]);
    }
}

#[test]
fn content_that_is_cut_has_63_and_a_half_octets_around_each_piece_on_average() {
    let configs = noise().map(|config| speaking(config, Wire::Two));
    let (mut caller, ..) = by_hand::joined(configs, Instant::START);
    let content = [
        &[0x58, 0x0E, 0x86, 0, 3, 0xE8, 0, 0x18, 0x6A][..],
        &[0x5A; 1_300],
    ]
    .concat();
    let source = caller.inner_mut();
    source.content = Some(content);
    source.left = 1;
    let pieces = by_hand::sent(&mut caller, Instant::START);
    let pieces = pieces.iter().filter(|(_, octets)| data(octets).is_some());
    let packets: Vec<usize> = pieces.map(|(_, octets)| IPV4_UDP + octets.len()).collect();
    assert_eq!(packets.len(), 2);
    assert_eq!(packets.iter().sum::<usize>() - 1_300, 2 * 59 + 9);
}
