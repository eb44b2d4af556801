//! A capture reads back as what was written: with `pcap-parser`, which shares no code with the writer.

mod reader;

use core::time::Duration;
use fulmar_capture::{Comment, Dissector, Packet, PacketDirection, PacketEnds, Pcapng, Section};
use fulmar_proto::units::Instant;
use proptest::prelude::*;
use reader::read;

#[test]
fn sections_interfaces_and_packets_come_back() {
    let section = Section {
        comment: "scenario my.toml, seed 7".to_owned(),
        origin: Duration::new(1_700_000_000, 5),
    };
    let mut capture = Pcapng::new(Vec::new(), &section).unwrap();
    let first = capture.interface("hop-0/source-end", "the first").unwrap();
    let second = capture.interface("hop-0/sink-end", "the second").unwrap();
    let ends = PacketEnds::Hosts {
        from: [10, 0, 0, 1].into(),
        to: [10, 0, 0, 2].into(),
    };
    let dropped = Comment::NONE.dropped("queue");
    let packet = Packet {
        interface: first,
        at: Instant::START + Duration::from_nanos(123_456_789),
        direction: PacketDirection::Outbound,
        dissector: Dissector::Link,
        ends: Some(ends),
        octets: b"frame",
        comment: &dropped,
        missed: 0,
    };
    capture.packet(&packet).unwrap();
    let other = Packet {
        interface: second,
        direction: PacketDirection::Inbound,
        comment: &Comment::NONE,
        ends: None,
        missed: 3,
        ..packet
    };
    capture.packet(&other).unwrap();
    assert_eq!(capture.packets(), 2);
    let written = capture.octets();
    let octets = core::mem::take(capture.out());
    assert_eq!(written, octets.len() as u64);

    let contents = read(&octets);
    let application = format!("fulmar {}", env!("CARGO_PKG_VERSION"));
    let said = [(1, section.comment.clone()), (4, application)];
    assert_eq!(contents.section, said);
    let names = ["hop-0/source-end", "hop-0/sink-end"];
    assert_eq!(contents.interfaces, names);
    let [one, two] = &contents.packets[..] else {
        panic!("{contents:?}");
    };
    assert_eq!(one.nanos, 1_700_000_000_123_456_794);
    assert_eq!((one.interface, one.is_outbound, one.missed), (0, true, 0));
    assert_eq!(one.comment, "dropped: queue");
    assert_eq!(
        (one.dissector(), one.octets()),
        ("fulmar.link", &b"frame"[..])
    );
    assert_eq!((two.interface, two.is_outbound, two.missed), (1, false, 3));
    assert_eq!(two.comment, "");
}

proptest! {
    #[test]
    fn any_packet_comes_back(
        octets in proptest::collection::vec(any::<u8>(), 0..200),
        nanos: u64,
        dissector in prop::sample::select(Dissector::ALL.to_vec()),
        bits in 0_usize..100,
    ) {
        let mut capture = Pcapng::new(Vec::new(), &Section::default()).unwrap();
        let interface = capture.interface("a", "").unwrap();
        let comment = Comment::NONE.damaged(bits);
        capture.packet(&Packet {
            interface,
            at: Instant::START + Duration::from_nanos(nanos),
            direction: PacketDirection::Inbound,
            dissector,
            ends: None,
            octets: &octets,
            comment: &comment,
            missed: 0,
        }).unwrap();
        let written = core::mem::take(capture.out());
        prop_assert_eq!(fulmar_capture::packet_count(&written), 1);
        let contents = read(&written);
        let packet = &contents.packets[0];
        prop_assert_eq!(packet.nanos, nanos);
        prop_assert_eq!((packet.dissector(), packet.octets()), (dissector.name(), &octets[..]));
        prop_assert_eq!(!packet.comment.is_empty(), bits > 0);
        prop_assert_eq!(fulmar_capture::whole_octets(&written, written.len()), written.len());
    }
}
