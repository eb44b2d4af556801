//! Captures: pcap and pcapng, RTP and AeroTP, over all supported links; and files that are no
//! capture.
//!
//! Method: files are put together here, octet by octet, from the formats' descriptions
//! (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng).

#![expect(
    clippy::unwrap_used,
    reason = "a case that cannot be made is a failed case"
)]

use etherparse::PacketBuilder;
use fulmar_proto::wire::TpduSeq;
use fulmar_proto::wire::aerotp::{EcnField, FecStrength, Flags, Header, Outgoing, encode};
use fulmar_proto::wire::{Mode, Port};
use fulmar_trace::{
    CaptureCut, CaptureOptions, CapturedProtocol, Losses, is_capture, read_capture,
};
use proptest::prelude::*;

const PORT: u16 = 5004;
const ETHERNET: u32 = 1;
const RAW: u32 = 101;
const LINUX_SLL: u32 = 113;

fn options() -> CaptureOptions {
    CaptureOptions {
        port: PORT,
        protocol: CapturedProtocol::Rtp,
        source: None,
        window: 100,
    }
}

fn read(octets: &[u8], options: CaptureOptions) -> Result<Losses, String> {
    let captured = read_capture("c.pcap", octets, options).map_err(|error| error.to_string());
    Ok(captured?.losses)
}

fn digits(losses: &Losses) -> String {
    let packets = losses.packets();
    let digit = |index| {
        if packets.get(index).unwrap() {
            '1'
        } else {
            '0'
        }
    };
    (0..packets.len()).map(digit).collect()
}

fn rtp(number: u16, source: u32) -> Vec<u8> {
    let mut packet = vec![0x80, 96];
    packet.extend(number.to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(source.to_be_bytes());
    packet.extend([7; 100]);
    packet
}

fn frame(link: u32, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut octets = Vec::new();
    let (from, to) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    if link == ETHERNET {
        let tag = etherparse::VlanId::try_new(5).unwrap();
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6]).single_vlan(tag);
        let builder = builder.ipv6([1; 16], [2; 16], 64).udp(40_000, port);
        builder.write(&mut octets, payload).unwrap();
        return octets;
    }
    if link == LINUX_SLL {
        octets.extend([0; 16]);
    }
    let builder = PacketBuilder::ipv4(from, to, 64).udp(40_000, port);
    builder.write(&mut octets, payload).unwrap();
    octets
}

/// A pcap file of these packets, a millisecond apart.
fn pcap(link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xA1B2_C3D4_u32.to_le_bytes());
    for half in [2_u16, 4] {
        file.extend(half.to_le_bytes());
    }
    for word in [0_u32, 0, 262_144, link] {
        file.extend(word.to_le_bytes());
    }
    for (index, packet) in (0_u32..).zip(packets) {
        let len = u32::try_from(packet.len()).unwrap();
        for word in [1_000 + index / 1000, index % 1000 * 1000, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// The same as pcapng, big-endian, with an interface that counts nanoseconds.
fn pcapng(link: u16, packets: &[Vec<u8>]) -> Vec<u8> {
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let len = u32::try_from(padded + 12).unwrap().to_be_bytes();
        let mut block = kind.to_be_bytes().to_vec();
        block.extend(len);
        block.extend(body);
        block.resize(8 + padded, 0);
        block.extend(len);
        block
    }
    let mut section = 0x1A2B_3C4D_u32.to_be_bytes().to_vec();
    section.extend([0, 1, 0, 0]);
    section.extend([0xFF; 8]);
    let mut file = block(0x0A0D_0D0A, &section);
    let mut interface = link.to_be_bytes().to_vec();
    interface.extend([0, 0, 0, 0, 0, 0]);
    // if_tsresol = 9, then the end of options.
    interface.extend([0, 9, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(block(1, &interface));
    for (index, packet) in (0_u64..).zip(packets) {
        let ticks = 1_000_000_000_000 + index * 1_000_000;
        let len = u32::try_from(packet.len()).unwrap();
        let mut body = Vec::new();
        let [high, low] =
            [ticks >> 32, ticks & 0xFFFF_FFFF].map(|half| u32::try_from(half).unwrap());
        for word in [0, high, low, len, len] {
            body.extend(word.to_be_bytes());
        }
        body.extend(packet);
        file.extend(block(6, &body));
    }
    file
}

fn flow(link: u32, numbers: &[u16]) -> Vec<Vec<u8>> {
    numbers
        .iter()
        .map(|&number| frame(link, PORT, &rtp(number, 0xABCD)))
        .collect()
}

#[test]
fn rtp_over_every_link_and_in_both_formats() {
    let numbers = [65_534, 65_535, 1, 2, 5];
    for link in [ETHERNET, RAW, LINUX_SLL] {
        let packets = flow(link, &numbers);
        for file in [
            pcap(link, &packets),
            pcapng(u16::try_from(link).unwrap(), &packets),
        ] {
            assert!(is_capture(&file));
            let losses = read(&file, options()).unwrap();
            assert_eq!(digits(&losses), "00100110", "link {link}");
            let seconds = losses.duration().unwrap();
            assert!((seconds - 0.004).abs() < 1e-6, "link {link}: {seconds}");
        }
    }
}

#[test]
fn the_data_tpdus_of_aerotp_are_numbered_too() {
    let tpdu = |number: u32| {
        let header = Header {
            source: Port(1),
            destination: Port(2),
            seq: TpduSeq(number),
            timestamp: 0,
            mode: Mode::Unreliable,
            ecn: EcnField::NONE,
            flags: Flags::NONE,
        };
        let mut octets = Vec::new();
        let outgoing = Outgoing {
            header,
            crc: true,
            fec_words: FecStrength::default(),
            block: None,
            body: &[9; 40],
        };
        encode(&outgoing, &mut octets);
        frame(RAW, PORT, &octets)
    };
    let mut packets: Vec<Vec<u8>> = [u32::MAX, 0, 3].map(tpdu).to_vec();
    packets.push(frame(RAW, PORT, b"something else"));
    let wanted = CaptureOptions {
        protocol: CapturedProtocol::Aerotp,
        ..options()
    };
    assert_eq!(
        digits(&read(&pcap(RAW, &packets), wanted).unwrap()),
        "00110"
    );
}

#[test]
fn other_traffic_is_not_counted_and_one_of_several_flows_is_chosen() {
    let mut packets = flow(RAW, &[1, 2, 4]);
    packets.insert(1, frame(RAW, PORT + 1, &rtp(9, 1)));
    packets.insert(2, frame(RAW, PORT, b"short"));
    packets.insert(3, vec![0xFF; 60]);
    // RTCP on the same port.
    packets.push(frame(
        RAW,
        PORT,
        &[0x80, 200, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0],
    ));
    assert_eq!(
        digits(&read(&pcap(RAW, &packets), options()).unwrap()),
        "0010"
    );
    packets.push(frame(RAW, PORT, &rtp(700, 0x1234)));
    let several = read(&pcap(RAW, &packets), options()).unwrap_err();
    let expected = "c.pcap: 2 flows go to port 5004, choose one: 10.0.0.1 port 40000 to 10.0.0.2 \
                    --ssrc 0x00001234 (1 packets); 10.0.0.1 port 40000 to 10.0.0.2 --ssrc 0x0000abcd (3";
    assert!(several.starts_with(expected), "{several}");
    let chosen = CaptureOptions {
        source: Some(0xABCD),
        ..options()
    };
    assert_eq!(digits(&read(&pcap(RAW, &packets), chosen).unwrap()), "0010");
}

#[test]
fn what_cannot_be_used_is_told_with_a_remedy() {
    let packets = flow(RAW, &[1, 2]);
    let other = CaptureOptions {
        port: 9,
        ..options()
    };
    let none = read(&pcap(RAW, &packets), other).unwrap_err();
    assert!(
        none.starts_with("c.pcap: none of its 2 packets are RTP packets to UDP port 9 (0 are"),
        "{none}"
    );
    assert!(none.contains("--port"), "{none}");
    let strange = read(b"this is no capture, whatever it is", options()).unwrap_err();
    assert!(
        strange.contains("packet 0: is no pcap or pcapng file; write it anew"),
        "{strange}"
    );
    let mut simple = pcapng(u16::try_from(RAW).unwrap(), &[]);
    simple.extend([0, 0, 0, 3, 0, 0, 0, 20, 0, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, 20]);
    let timeless = read(&simple, options()).unwrap_err();
    assert!(
        timeless.contains("has no time; capture with timestamps"),
        "{timeless}"
    );
    let many: Vec<Vec<u8>> = (0..65)
        .map(|source| frame(RAW, PORT, &rtp(1, source)))
        .collect();
    let many = read(&pcap(RAW, &many), options()).unwrap_err();
    assert!(
        many.contains("packet 65: more than 64 flows go to port 5004"),
        "{many}"
    );
}

#[test]
fn a_capture_that_was_cut_off_counts_as_far_as_it_goes() {
    let packets = flow(ETHERNET, &[1, 2, 4, 5]);
    let whole = pcap(ETHERNET, &packets);
    for cut in [1, 20, 150] {
        let losses = read(&whole[..whole.len() - cut], options()).unwrap();
        assert_eq!(digits(&losses), "0010", "{cut} octets less");
        // Behind the file's head come three whole packets, each with a head of its own.
        let packet = 16 + frame(ETHERNET, PORT, &rtp(0, 1)).len();
        let expected = CaptureCut {
            offset: 24 + 3 * packet,
            packets: 3,
        };
        let captured = read_capture("c.pcap", &whole[..whole.len() - cut], options()).unwrap();
        assert_eq!(captured.cut, Some(expected), "{cut} octets less");
    }
    assert_eq!(
        read_capture("c.pcap", &whole[..], options()).unwrap().cut,
        None
    );
}

#[test]
fn a_block_longer_than_any_packet_is_refused_and_not_kept() {
    let mut file = pcap(RAW, &[]);
    for word in [0_u32, 0, 0x7000_0000, 0x7000_0000] {
        file.extend(word.to_le_bytes());
    }
    file.resize(4 << 20, 0);
    let refused = read(&file, options()).unwrap_err();
    assert!(refused.contains("packet 0: "), "{refused}");
}

proptest! {
    #[test]
    fn damage_makes_nothing_panic_and_nothing_endless(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        modern in any::<bool>(),
    ) {
        let packets = flow(ETHERNET, &[1, 2, 4, 3, 9]);
        let mut file = if modern { pcapng(1, &packets) } else { pcap(1, &packets) };
        for (place, octet) in places {
            let len = file.len();
            file[place.index(len)] = octet;
        }
        file.truncate(cut.index(file.len()) + 1);
        let outcome = read(&file, options());
        prop_assert!(outcome.is_ok() || outcome.unwrap_err().starts_with("c.pcap: "));
    }
}
