//! Any octets into the lab's network header and the UDP header behind it, as they are and once more
//! under matching checksums: what parses encodes to the same octets, and a hop leaves a header that
//! still parses.

#![no_main]

use fulmar_baseline::wire::udp::{Between, UdpHeader};
use fulmar_proto::machine::Ecn;
use fulmar_proto::wire::checksum::InternetSum;
use fulmar_proto::wire::network::{
    NETWORK_HEADER_BYTES, NetworkHeader, NetworkReject, count_hop, mark_congested,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    holds_together(octets);
    if octets.len() >= NETWORK_HEADER_BYTES {
        let mut octets = octets.to_vec();
        octets[10..12].fill(0);
        let checksum = InternetSum::default()
            .and(&octets[..NETWORK_HEADER_BYTES])
            .finish();
        octets[10..12].copy_from_slice(&checksum.to_be_bytes());
        holds_together(&octets);
    }
});

fn holds_together(octets: &[u8]) {
    let mut hopped = octets.to_vec();
    let hop = count_hop(&mut hopped);
    let Ok(packet) = NetworkHeader::parse(octets) else {
        assert!(hop.is_err() || NetworkHeader::parse(&hopped).is_err());
        return;
    };
    let head = packet.header.to_octets(packet.payload.len()).unwrap();
    // The second capable codepoint, ECT(1), reads as the first and is written as it.
    if octets[1] & 0b11 != 0b01 && octets[10..12] != [0xFF, 0xFF] {
        assert_eq!(head, octets[..NETWORK_HEADER_BYTES]);
    }
    match hop {
        Ok(()) => {
            let after = NetworkHeader::parse(&hopped).unwrap().header;
            assert_eq!(after.hops_left + 1, packet.header.hops_left);
        }
        Err(reject) => {
            assert_eq!(reject, NetworkReject::Expired);
            assert!(packet.header.hops_left <= 1);
            assert_eq!(hopped, octets);
        }
    }
    let mut marked = octets.to_vec();
    let capable = packet.header.ecn != Ecn::NotCapable;
    assert_eq!(mark_congested(&mut marked), capable);
    let after = NetworkHeader::parse(&marked).unwrap().header.ecn;
    assert_eq!(after == Ecn::Congested, capable);
    datagram_holds_together(packet.header, packet.payload);
}

fn datagram_holds_together(network: NetworkHeader, octets: &[u8]) {
    let between = Between {
        source: network.source,
        destination: network.destination,
    };
    if let Ok(datagram) = UdpHeader::parse(between, octets) {
        let head = datagram
            .header
            .to_octets(between, datagram.payload)
            .unwrap();
        assert_eq!(head[..6], octets[..6]);
        assert!(!datagram.checked || head[6..8] == octets[6..8]);
    }
}
