//! Samples of the lab's packets with TCP and UDP in them: Wireshark's own dissectors read them.

use super::lt_tcp::options;
use super::sample::{Sample, hold};
use fulmar_baseline::wire::tcp::{
    AddressPair, TcpFlags, TcpHeader, TcpOptions, TcpSegment, TcpSeq,
};
use fulmar_baseline::wire::udp::{Between, UdpHeader};
use fulmar_proto::machine::{Ecn, Priority};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::{NetworkHeader, NetworkProtocol, NodeAddress};

const SOURCE: NodeAddress = NodeAddress(1);
const DESTINATION: NodeAddress = NodeAddress(0x0A00_0002);
const ADDRESSES: AddressPair = AddressPair::nodes(SOURCE, DESTINATION);
const BETWEEN: Between = Between {
    source: SOURCE,
    destination: DESTINATION,
};

fn packet(protocol: NetworkProtocol, priority: u8, ecn: Ecn, payload: &[u8]) -> Vec<u8> {
    let header = NetworkHeader {
        source: SOURCE,
        destination: DESTINATION,
        protocol,
        priority: Priority(priority),
        ecn,
        hops_left: 63,
    };
    let head = header.to_octets(payload.len()).expect("samples are valid");
    [&head[..], payload].concat()
}

fn all() -> Vec<(&'static str, Vec<u8>)> {
    let tcp = TcpHeader {
        source: Port(4_001),
        destination: Port(5_001),
        seq: TcpSeq(1_000),
        ack: TcpSeq(7),
        flags: TcpFlags::SYN | TcpFlags::ACK,
        window: 512,
        urgent: 0,
        options: options(),
    };
    let mut segment = Vec::new();
    tcp.write(&ADDRESSES, b"", &mut segment);
    let data = TcpHeader {
        flags: TcpFlags::PSH | TcpFlags::ACK,
        options: TcpOptions::default(),
        ..tcp
    };
    let mut with_octets = Vec::new();
    data.write(&ADDRESSES, b"octets", &mut with_octets);
    let udp = UdpHeader {
        source: Port(4_001),
        destination: Port(5_001),
    };
    let payload = b"a payload";
    let head = udp.to_octets(BETWEEN, payload).expect("samples are valid");
    let datagram = [&head[..], payload].concat();
    vec![
        (
            "tcp",
            packet(NetworkProtocol::TCP, 0, Ecn::NotCapable, &segment),
        ),
        (
            "tcp with octets",
            packet(NetworkProtocol::TCP, 63, Ecn::Capable, &with_octets),
        ),
        (
            "udp",
            packet(NetworkProtocol::UDP, 5, Ecn::Congested, &datagram),
        ),
    ]
}

fn read(name: &str, octets: &[u8]) -> Sample {
    let mut sample = Sample::new(name, octets);
    let parsed = NetworkHeader::parse(octets).expect("samples are valid");
    let NetworkHeader {
        source,
        destination,
        protocol,
        priority,
        ecn,
        hops_left,
    } = parsed.header;
    let ecn = match ecn {
        Ecn::NotCapable => 0,
        Ecn::Capable => 2,
        Ecn::Congested => 3,
    };
    sample.field("fulmar.network.source", source.0);
    sample.field("fulmar.network.destination", destination.0);
    sample.field("fulmar.network.protocol", protocol.0);
    sample.field("fulmar.network.priority", priority.0);
    sample.field("fulmar.network.ecn", ecn);
    sample.field("fulmar.network.hops_left", hops_left);
    sample.field("fulmar.network.length", octets.len());
    sample.field("fulmar.network.checksum.status", 1);
    if protocol == NetworkProtocol::UDP {
        let datagram = UdpHeader::parse(BETWEEN, parsed.payload).expect("samples are valid");
        sample.field("udp.srcport", datagram.header.source);
        sample.field("udp.dstport", datagram.header.destination);
        sample.field("udp.checksum.status", 1);
        sample.octets("udp.payload", datagram.payload);
        return sample;
    }
    let TcpSegment { header, payload } =
        TcpHeader::parse(&ADDRESSES, parsed.payload).expect("samples are valid");
    sample.field("tcp.srcport", header.source);
    sample.field("tcp.dstport", header.destination);
    sample.field("tcp.seq_raw", header.seq.0);
    sample.field("tcp.ack_raw", header.ack.0);
    sample.field("tcp.flags", format!("0x{:04x}", header.flags.0));
    sample.field("tcp.window_size_value", header.window);
    sample.field("tcp.urgent_pointer", header.urgent);
    sample.field("tcp.checksum.status", 1);
    sample.octets("tcp.payload", payload);
    if let Some(mss) = header.options.mss {
        sample.field("tcp.options.mss_val", mss);
    }
    if let Some(shift) = header.options.window_scale {
        sample.field("tcp.options.wscale.shift", shift);
    }
    if let Some(timestamps) = header.options.timestamps {
        sample.field("tcp.options.timestamp.tsval", timestamps.value);
        sample.field("tcp.options.timestamp.tsecr", timestamps.echo);
    }
    sample
}

#[test]
fn the_samples_of_packets_are_what_the_codecs_write_and_read() {
    let samples: Vec<Sample> = all()
        .iter()
        .map(|(name, octets)| read(name, octets))
        .collect();
    hold("network", &samples);
}
