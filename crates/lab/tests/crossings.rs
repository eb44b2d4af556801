//! Captures at both ends of a link: which datagrams crossed it, when, and between which clocks.

use core::sync::atomic::AtomicBool;
use fulmar_capture::{Comment, Dissector, Packet, PacketDirection, PacketEnds, Pcapng, Section};
use fulmar_lab::{ObservedPacket, RecordedLink, UnreadRecording};
use fulmar_proto::units::{Duration, Instant};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const MS: u64 = 1_000;
/// Reading that nobody gives up.
static ON: AtomicBool = AtomicBool::new(false);
/// The time of day at which the first end's capture begins.
const ORIGIN: Duration = Duration::from_secs(1_790_000_000);

/// A datagram at one end: microseconds, whether it leaves, its ports, and its content.
type Seen = (u64, bool, (u16, u16), u32);

/// The capture of a gateway.
fn gateway(directory: &Path, name: &str, seen: &[Seen]) -> PathBuf {
    let section = Section {
        origin: ORIGIN,
        comment: String::new(),
    };
    let mut capture = Pcapng::new(Vec::new(), &section).expect("memory");
    let udp = capture.interface("udp", "").expect("memory");
    let inner = capture.interface("inner", "").expect("memory");
    let host = |last| move |port: u16| SocketAddr::from(([10, 0, 0, last], port));
    for &(micros, leaves, (from, to), content) in seen {
        let ends = PacketEnds::Sockets {
            from: host(1)(from),
            to: host(2)(to),
        };
        let octets = [&content.to_be_bytes()[..], &[7; 996]].concat();
        for (interface, dissector) in [(udp, Dissector::Session), (inner, Dissector::Inner)] {
            let packet = Packet {
                interface,
                at: Instant::START + Duration::from_micros(micros),
                direction: if leaves {
                    PacketDirection::Outbound
                } else {
                    PacketDirection::Inbound
                },
                dissector,
                ends: Some(ends),
                octets: &octets,
                comment: &Comment::NONE,
                missed: 0,
            };
            capture.packet(&packet).expect("memory");
        }
    }
    let path = directory.join(name);
    fs::write(&path, capture.out()).expect("room");
    path
}

const DATA: (u16, u16) = (4_000, 5_000);
const BEHIND_NAT: (u16, u16) = (41_234, 5_000);
const ANSWER: (u16, u16) = (5_000, 4_000);

/// The delay of each packet in microseconds.
fn delays(packets: &[ObservedPacket]) -> Vec<Option<u128>> {
    let delay = |packet: &ObservedPacket| {
        let at = packet.arrived_at?;
        Some(at.saturating_since(packet.sent_at).as_micros())
    };
    packets.iter().map(delay).collect()
}

/// Ten datagrams there, of which the third and the sixth are lost, and one answer for each two that arrived. The second end's clock is
/// `ahead` microseconds ahead, and its capture runs for `from..to` of the first clock's milliseconds.
fn two_ends(
    directory: &Path,
    ahead: i64,
    window: core::ops::Range<u64>,
    there: (u16, u16),
) -> [PathBuf; 2] {
    let (mut here, mut far) = (Vec::new(), Vec::new());
    let far_time = |micros: u64| (micros + 10_000 * MS).saturating_add_signed(ahead);
    for number in 0..10 {
        let at = u64::from(number) * 10 * MS;
        here.push((at + 10_000 * MS, true, DATA, number));
        if number == 2 || number == 5 {
            continue;
        }
        if window.contains(&(at / MS)) {
            far.push((far_time(at + 30 * MS), false, there, number));
        }
        if number % 2 == 0 {
            let answered = at + 31 * MS;
            if window.contains(&(at / MS)) {
                far.push((far_time(answered), true, ANSWER, 100 + number));
            }
            here.push((
                answered + 40 * MS + 10_000 * MS,
                false,
                ANSWER,
                100 + number,
            ));
        }
    }
    here.sort_unstable();
    [
        gateway(directory, "here.pcapng", &here),
        gateway(directory, "far.pcapng", &far),
    ]
}

#[test]
fn datagrams_are_found_again_at_the_other_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let [here, far] = two_ends(directory.path(), 0, 0..1_000, BEHIND_NAT);
    let link = RecordedLink::between(&here, &far, &ON).expect("a link");
    let whole = Some(30_000);
    let expected = [
        whole, whole, None, whole, whole, None, whole, whole, whole, whole,
    ];
    assert_eq!(delays(&link.there), expected);
    assert_eq!(delays(&link.back), [Some(40_000); 4]);
    // 1,000 octets, and the headers of IPv4 and UDP.
    assert!(link.there.iter().all(|packet| packet.len.0 == 1_028));
    assert_eq!(link.clocks_apart, Duration::ZERO);
    // The other way round, forward is the way of the answers.
    let link = RecordedLink::between(&far, &here, &ON).expect("a link");
    assert_eq!((link.there.len(), link.back.len()), (4, 10));
}

#[test]
fn clocks_are_brought_together_where_a_datagram_came_before_it_was_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    for ahead in [-1_500_000_i64, 2_000_000] {
        let [here, far] = two_ends(directory.path(), ahead, 0..1_000, DATA);
        let link = RecordedLink::between(&here, &far, &ON).expect("a link");
        // 30 ms and 40 ms are 35 ms each.
        assert_eq!(delays(&link.there)[0], Some(35_000), "{ahead}");
        assert_eq!(delays(&link.back), [Some(35_000); 4], "{ahead}");
        // Half of the difference of the delays is taken for one of the clocks.
        let apart = link.clocks_apart.as_micros();
        assert_eq!(apart, u128::from((ahead - 5_000).unsigned_abs()), "{ahead}");
        let first = |packets: &[ObservedPacket]| packets[0].sent_at;
        let behind = first(&link.back).saturating_since(first(&link.there));
        // The answer left a millisecond behind the first arrival.
        assert_eq!(behind.as_micros(), 36_000, "{ahead}");
    }
}

#[test]
fn nothing_is_known_of_datagrams_outside_of_the_shorter_capture() {
    let directory = tempfile::tempdir().expect("a directory");
    let [here, far] = two_ends(directory.path(), 0, 30..80, DATA);
    let link = RecordedLink::between(&here, &far, &ON).expect("a link");
    let whole = Some(30_000);
    assert_eq!(delays(&link.there), [whole, whole, None, whole, whole]);
}

#[test]
fn of_equal_datagrams_the_one_that_was_repeated_arrived() {
    let directory = tempfile::tempdir().expect("a directory");
    let sent = [(0, 1), (10, 2), (210, 2), (220, 3)];
    let sent: Vec<Seen> = sent
        .map(|(at, content)| (at * MS, true, DATA, content))
        .into();
    let came = [(20, 1), (230, 2), (240, 3)];
    let came: Vec<Seen> = came
        .map(|(at, content)| (at * MS, false, DATA, content))
        .into();
    let here = gateway(directory.path(), "here.pcapng", &sent);
    let far = gateway(directory.path(), "far.pcapng", &came);
    let link = RecordedLink::between(&here, &far, &ON).expect("a link");
    let whole = Some(20_000);
    assert_eq!(delays(&link.there), [whole, None, whole, whole]);
}

#[test]
fn files_that_show_no_link_say_what_to_give() {
    let directory = tempfile::tempdir().expect("a directory");
    let [here, _] = two_ends(directory.path(), 0, 0..1_000, DATA);
    let strange = gateway(directory.path(), "strange.pcapng", &[(0, false, DATA, 999)]);
    let table = directory.path().join("losses.csv");
    fs::write(&table, "lost\n0\n").expect("room");
    let told = |link: Result<RecordedLink, UnreadRecording>| link.expect_err("no link").to_string();
    let one = told(RecordedLink::open(&here, 0, &ON));
    assert!(
        one.contains("shows one end of the link; give the other end's"),
        "{one}"
    );
    let strange = told(RecordedLink::between(&here, &strange, &ON));
    assert!(strange.contains("no datagram is in both"), "{strange}");
    let table = told(RecordedLink::open(&table, 0, &ON));
    assert!(table.contains("is no capture, pcap or pcapng"), "{table}");
    let absent = told(RecordedLink::open(&directory.path().join("absent"), 0, &ON));
    assert!(absent.contains("cannot read"), "{absent}");
}

/// The event trace of a gateway that sent these TPDUs and took those: microseconds, number.
fn traced(directory: &Path, name: &str, sent: &[(u64, u32)], taken: &[(u64, u32)]) -> PathBuf {
    let mut lines = vec![format!(
        "{{\"v\":1,\"event\":\"started\",\"start_unix_s\":{}.0}}",
        ORIGIN.as_secs()
    )];
    let event = |event: &'static str| {
        move |&(at, seq): &(u64, u32)| {
            let time_s = at as f64 / 1e6;
            format!(
                "{{\"v\":1,\"event\":\"{event}\",\"time_s\":{time_s},\"peer\":\"other\",\"connection\":0,\
                 \"seq\":{seq},\"payload_bytes\":1000,\"again\":false}}"
            )
        }
    };
    lines.extend(sent.iter().map(event("sent")));
    lines.extend(taken.iter().map(event("accepted")));
    let path = directory.join(name);
    fs::write(&path, lines.join("\n")).expect("room");
    path
}

#[test]
fn event_traces_of_both_ends_show_the_link_as_captures_do() {
    let directory = tempfile::tempdir().expect("a directory");
    // Number 2 is lost once, and number 1 of the other direction for good.
    let there = [
        (0, 0),
        (10 * MS, 1),
        (20 * MS, 2),
        (30 * MS, 3),
        (130 * MS, 2),
    ];
    let came = [(30 * MS, 0), (40 * MS, 1), (60 * MS, 3), (160 * MS, 2)];
    let back = [(5 * MS, 0), (15 * MS, 1), (25 * MS, 2)];
    let came_back = [(45 * MS, 0), (65 * MS, 2)];
    let here = traced(directory.path(), "here.jsonl", &there, &came_back);
    let far = traced(directory.path(), "far.jsonl", &back, &came);
    let link = RecordedLink::between(&here, &far, &ON).expect("a link");
    let whole = Some(30_000);
    assert_eq!(delays(&link.there), [whole, whole, None, whole, whole]);
    assert_eq!(delays(&link.back), [Some(40_000), None, Some(40_000)]);
    // IPv4, UDP and the session around 1,000 octets and the TPDU's header.
    assert!(link.there.iter().all(|packet| packet.len.0 == 1_060));
    let one = RecordedLink::open(&here, 0, &ON)
        .expect_err("one end")
        .to_string();
    assert!(one.contains("shows one end of the link"), "{one}");
    fs::write(&here, "{\"v\":1,\"event\":\"sent\"}\n").expect("room");
    let cut = RecordedLink::between(&here, &far, &ON).expect_err("no trace");
    assert!(
        cut.to_string()
            .contains("here.jsonl:1: `event`: `sent` begins no event trace"),
        "{cut}"
    );
}

#[test]
fn reading_that_is_given_up_ends_with_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let [here, far] = two_ends(directory.path(), 0, 0..1_000, DATA);
    let given_up = RecordedLink::between(&here, &far, &AtomicBool::new(true));
    let told = given_up.expect_err("no link").to_string();
    assert!(told.contains("it was given up"), "{told}");
}
