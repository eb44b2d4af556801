//! The splicer's news of the link, given by hand.

use super::*;
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{Destination, FlowClass, FlowKind, SplicerConfig};
use fulmar_proto::transport::aerotp::{AerotpEndpoint, EndpointConfig};
use std::net::{Ipv4Addr, SocketAddr};

const PATHS: [PathId; 2] = [PathId(1), PathId(2)];
const MS: Duration = Duration::from_millis(1);

fn gateway() -> BondedSplicer {
    let endpoint = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(1));
    let splicer = Splicer::new(SplicerConfig::default(), endpoint, Rng::from_seed(2));
    let mut gateway = BondedSplicer::new(splicer.expect("the usual settings"));
    let rate = RateSource::Told(Bitrate::from_bits_per_second(10_000_000));
    let paths = PATHS.map(|path| GatewayPath {
        path,
        cost: 0,
        rate,
    });
    gateway.meet(&paths, 1_400);
    gateway
}

fn open(gateway: &mut BondedSplicer, now: Instant) {
    let destination = SocketAddr::from((Ipv4Addr::LOCALHOST, 7));
    let destination = Destination::from(destination);
    let class = FlowClass::default();
    let splicer = gateway.splicer_mut();
    let opened = splicer.open(now, PATHS[0], FlowKind::Stream, destination, class);
    assert!(opened.is_ok(), "{opened:?}");
}

/// The datagrams with data that leave now.
fn data(gateway: &mut BondedSplicer, now: Instant) -> usize {
    let (mut out, mut count) = (Vec::new(), 0);
    while gateway.poll_transmit(now, &mut out).is_some() {
        let (_, label) = seal::open(&out).expect("sealed a moment ago");
        count += usize::from(label.kind == kind::DATA);
        out.clear();
    }
    count
}

/// The datagrams that repeat what a flow begins with in its first 400 ms, which nobody answers. Before it a probe of the
/// home took 20 ms, if `is_answered`.
fn repeated(is_answered: bool) -> usize {
    let mut gateway = gateway();
    let begin = Instant::START + MS * 20;
    if is_answered {
        let mut octets = Instant::START.as_nanos().to_be_bytes().to_vec();
        let label = SealLabel {
            kind: kind::REPLY,
            number: 0,
        };
        seal::seal(0, &mut octets, label);
        let datagram = Datagram {
            path: PATHS[0],
            octets: &octets,
            ecn: Ecn::NotCapable,
        };
        gateway.handle_datagram(begin, datagram);
    }
    open(&mut gateway, begin);
    assert!(data(&mut gateway, begin) > 0, "a request leaves");
    let times = (1..=400).map(|millis| begin + MS * millis);
    let at = |now| {
        gateway.handle_deadline(now);
        data(&mut gateway, now)
    };
    times.map(at).sum()
}

#[test]
fn a_flow_behind_an_answered_probe_of_the_home_knows_its_round_trip() {
    assert_eq!(repeated(false), 0, "a second is waited for");
    assert!(repeated(true) > 0);
}
