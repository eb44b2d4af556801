//! Any octets as a packet of a tunnel: what parses keeps its flow, its length and its sums whatever a hop changes.

#![no_main]

use fulmar_proto::machine::Ecn;
use fulmar_proto::tunnel::{FLOW_BUCKETS, FlowBucket, InnerPacket, ecn_of, limit_mss, mark_packet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let Some(packet) = InnerPacket::parse(octets) else {
        // Octets that are no packet may be marked or not; nothing may panic.
        mark_packet(&mut octets.to_vec());
        return;
    };
    let bucket = FlowBucket::of(&packet);
    assert!(bucket.number() < FLOW_BUCKETS);
    let mut limited = octets.to_vec();
    let changed = limit_mss(&mut limited, &packet, 1_280);
    assert_eq!(changed, limited != octets);
    assert_eq!(InnerPacket::parse(&limited), Some(packet));
    // Once lowered, it is low.
    assert!(!limit_mss(&mut limited, &packet, 1_280));
    let mut marked = octets.to_vec();
    let capable = ecn_of(octets) != Ecn::NotCapable;
    assert_eq!(mark_packet(&mut marked), capable);
    let after = InnerPacket::parse(&marked).expect("it is a packet still");
    assert_eq!(FlowBucket::of(&after), bucket);
    assert_eq!(ecn_of(&marked) == Ecn::Congested, capable);
});
