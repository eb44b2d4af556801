//! `fulmar emulate --tun` carries any program's IP traffic as the configured link would.
//!
//! Method: the binary from outside, with the kernel's own stack at both ends and with ping and
//! iperf3 as judges. Needs root; without it each test says that it was skipped.

use crate::processes::{Running, fulmar, said};
use crate::reader;
use crate::rig;
use crate::rig::{Namespace, Rig, emulate, ready};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

/// The figure that ping prints between `before` and `after`.
#[track_caller]
fn figure(printed: &str, before: &str, after: &str) -> f64 {
    let rest = printed
        .split(before)
        .nth(1)
        .unwrap_or_else(|| panic!("no {before:?} in {printed}"));
    let text = rest.split(after).next().unwrap_or_default();
    text.trim()
        .parse()
        .unwrap_or_else(|error| panic!("{error}: {text:?} in {printed}"))
}

fn received(printed: &str) -> f64 {
    figure(printed, "packets transmitted, ", " received")
}

#[test]
fn a_round_trip_takes_the_delay_and_the_time_on_the_link_both_ways() {
    if !ready(&["ping"]) {
        return;
    }
    let rig = Rig::start("--rate 10mbit --delay 20ms");
    for (there, header_octets) in Rig::AIR.iter().zip([28, 48]) {
        let printed = rig
            .ground
            .must(&format!("ping -c 40 -i 0.01 -s 1000 -q {there}"));
        assert!(received(&printed) > 39.5, "{printed}");
        let least_ms = figure(&printed, "mdev = ", "/");
        // IP and ICMP headers and 1000 octets take 0.8 us an octet, each way.
        let expected_ms = 2.0 * (20.0 + f64::from(1000 + header_octets) * 8.0 / 10_000.0);
        // ping prints whole microseconds. The best of 40 is free of other programs' load: the rest is ours,
        // and the emulator promises less than a millisecond.
        assert!(
            least_ms >= expected_ms - 0.001,
            "{least_ms} < {expected_ms}"
        );
        assert!(
            least_ms < expected_ms + 1.0,
            "{least_ms} > {expected_ms} + 1"
        );
    }
}

#[test]
fn frames_of_ip_cross_a_link_between_tap_devices_and_a_capture_has_them() {
    if !ready(&["ping"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("link.pcapng");
    let addresses = ["10.77.0.1/24,fd77::1/64", "10.77.0.2/24,fd77::2/64"];
    let flags = format!("--rate 10mbit --delay 20ms --capture {}", file.display());
    let rig = Rig::of_frames(addresses, &flags);
    for there in Rig::AIR {
        let printed = rig
            .ground
            .must(&format!("ping -c 40 -i 0.01 -s 1000 -q {there}"));
        assert!(received(&printed) > 39.5, "{printed}");
    }
    let end = rig.counters();
    assert_eq!(end["schema"], "fulmar.emulate-tap/1", "{end}");
    let capture = reader::read(&std::fs::read(&file).unwrap());
    let frames = || capture.packets.iter();
    assert!(frames().all(|packet| packet.dissector() == "eth_withoutfcs"));
    assert_eq!(
        end["up"]["offered_packets"],
        capture.of("up/in", false).count()
    );
}

#[test]
fn the_share_of_lost_pings_is_that_of_both_directions() {
    const COUNT: u32 = 1_000;
    if !ready(&["ping"]) {
        return;
    }
    let rig = Rig::start("--up-loss 10% --down-loss 20% --seed 7");
    let mut missing = 0.0;
    for there in Rig::AIR {
        let printed = rig
            .ground
            .must(&format!("ping -c {COUNT} -i 0.002 -W 1 -q {there}"));
        let received = received(&printed);
        missing += f64::from(COUNT) - received;
        // Answered with 0.9 x 0.8; four standard errors of a share of 1,000 are 0.0568.
        let share = received / f64::from(COUNT);
        assert!((share - 0.72).abs() < 0.0568, "{share} of {there}, seed 7");
    }
    let end = rig.counters();
    let lost = |way: &str| end[way]["dropped_packets"]["loss"].as_f64().unwrap();
    let lost = lost("up") + lost("down");
    assert!(
        (lost - missing).abs() < 0.5,
        "nothing else crosses it: {end}"
    );
}

#[test]
fn a_capture_has_every_ip_packet_as_it_enters_and_as_it_leaves() {
    if !ready(&["ping"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("link.pcapng");
    let shown = file.display();
    let rig = Rig::start(&format!("--loss 20% --ber 1e-5 --seed 7 --capture {shown}"));
    for there in Rig::AIR {
        // Without a deadline ping waits for twice the longest round trip, which a damaged time makes
        // endless.
        rig.ground
            .must(&format!("ping -w 2 -i 0.002 -s 1000 -q {there}"));
    }
    let end = rig.counters();
    let capture = reader::read(&std::fs::read(&file).unwrap());
    for way in ["up", "down"] {
        let entered = capture.of(&format!("{way}/in"), false).count();
        assert_eq!(end[way]["offered_packets"], entered, "{end}");
        let left = capture.of(&format!("{way}/out"), true).count();
        assert_eq!(end[way]["arrived_packets"], left, "{end}");
    }
    let both = |counted: &dyn Fn(&serde_json::Value) -> Option<u64>| {
        let counted = counted(&end["up"]).zip(counted(&end["down"]));
        counted.map(|(up, down)| up + down)
    };
    let lost = both(&|way| way["dropped_packets"]["loss"].as_u64());
    assert_eq!(Some(capture.count("dropped: loss")), lost);
    let damaged = both(&|way| way["damaged_packets"].as_u64());
    assert_eq!(Some(capture.count("damaged")), damaged);
    assert!(lost > Some(0) && damaged > Some(0));
    assert!(
        capture
            .packets
            .iter()
            .all(|packet| packet.dissector() == "ip")
    );
}

/// A server of its own for each run: one that still ends the last run turns the next away.
fn iperf3(rig: &Rig) -> Running {
    let server = rig.air.start("iperf3 -s -1");
    rig.air.listening("tcp", 5201);
    server
}

#[test]
fn tcp_and_udp_fill_a_link_of_ten_mbit_and_no_more() {
    if !ready(&["iperf3"]) {
        return;
    }
    let rig = Rig::start("--rate 10mbit --delay 5ms");
    let [v4, v6] = Rig::AIR;
    // The share of payload in 1500 octets: TCP with time stamps; UDP with a 52-octet margin.
    for (flags, there, payload_octets, packet_octets) in [
        ("", v4, 1448.0, 1500.0),
        ("-R", v6, 1428.0, 1500.0),
        ("-u -b 12M -l 1400", v4, 1400.0, 1428.0),
        ("-u -b 12M -l 1400 -R", v6, 1400.0, 1448.0),
    ] {
        let _server = iperf3(&rig);
        let printed = rig
            .ground
            .must(&format!("iperf3 -c {there} -t 4 -J {flags}"));
        let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
        let sum = &report["end"]["sum_received"];
        let sum = if sum.is_null() {
            &report["end"]["sum"]
        } else {
            sum
        };
        let figure = |name: &str| {
            sum[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{flags}: {printed}"))
        };
        let (octets, seconds) = (figure("bytes"), figure("seconds"));
        let share = octets * 8.0 / seconds / 10e6 / (payload_octets / packet_octets);
        // Above 1 by the packets that waited in the queue when the clock stopped: 100 packets of 1.2 ms in
        // 4 s. Below by these too, and by the control connection and the first round trips.
        assert!(share < 1.03, "{flags} {there}: {share} of the link");
        assert!(share > 0.94, "{flags} {there}: {share} of the link");
    }
}

/// A column of /proc/net/snmp or /proc/net/netstat, such as `Udp InErrors`, or a row of
/// /proc/net/snmp6, such as `Udp6InErrors`.
fn snmp(namespace: &Namespace, counter: &str) -> u64 {
    let found = match counter.split_once(' ') {
        Some((protocol, column)) => {
            let table = namespace.must("cat /proc/net/snmp /proc/net/netstat");
            let mut rows = table
                .lines()
                .filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'))
                .map(str::split_whitespace);
            let (names, values) = (rows.next(), rows.next());
            let mut cells = names
                .into_iter()
                .flatten()
                .zip(values.into_iter().flatten());
            cells
                .find(|(name, _)| *name == column)
                .and_then(|(_, value)| value.parse().ok())
        }
        None => namespace
            .must("cat /proc/net/snmp6")
            .lines()
            .find_map(|line| line.strip_prefix(counter)?.trim().parse().ok()),
    };
    found.unwrap_or_else(|| panic!("no counter {counter}"))
}

/// Sends `count` datagrams of [`CONTENT`] from ground to air; returns those that arrived.
fn datagrams(rig: &Rig, from: IpAddr, to: IpAddr, count: u32) -> Vec<Vec<u8>> {
    let receiver = rig
        .air
        .within(|| UdpSocket::bind(SocketAddr::new(to, 0)).expect("the address is there"));
    receiver
        .set_read_timeout(Some(Duration::from_secs(2)))
        .expect("it can be set");
    let target = receiver.local_addr().expect("it is bound");
    let sender = rig
        .ground
        .within(|| UdpSocket::bind(SocketAddr::new(from, 0)).expect("the address is there"));
    std::thread::scope(|scope| {
        let arrived = scope.spawn(|| {
            let mut buffer = [0; 2_000];
            std::iter::from_fn(|| {
                receiver
                    .recv(&mut buffer)
                    .ok()
                    .map(|len| buffer[..len].to_vec())
            })
            .collect()
        });
        for _ in 0..count {
            sender.send_to(&CONTENT, target).expect("it can be sent");
        }
        arrived.join().expect("the receiver ends")
    })
}

/// The content is all zeros: every inverted bit shows, and two of them cannot cancel in the kernel's sums,
/// as a one and a zero in one place of two words would.
const CONTENT: [u8; 1_000] = [0; 1_000];

#[test]
fn the_kernels_checksums_see_every_inverted_bit() {
    const COUNT: u32 = 2_000;
    if !ready(&["cat"]) {
        return;
    }
    // 1.7 s of packets: slow enough for the receiver to keep up.
    let rig = Rig::start("--rate 10mbit --queue unlimited --up-ber 2e-5 --seed 3");
    let arrived = datagrams(&rig, Rig::GROUND[0], Rig::AIR[0], COUNT);
    assert!(arrived.iter().all(|datagram| *datagram == CONTENT));
    let overflowed = snmp(&rig.air, "Udp RcvbufErrors");
    let header_errors = snmp(&rig.air, "Ip InHdrErrors");
    let checksum_errors = snmp(&rig.air, "Udp InCsumErrors");
    let end = rig.counters();
    let damaged = end["up"]["damaged_packets"].as_u64().unwrap();
    let sound = end["up"]["arrived_packets"].as_u64().unwrap() - damaged;
    assert_eq!(arrived.len() as u64 + overflowed, sound, "{end}");
    // 1028 octets: 1 - (1 - 2e-5)^8224 = 0.152; four standard errors of a share of 2,000 are 0.0321.
    let share = damaged as f64 / f64::from(COUNT);
    assert!((share - 0.152).abs() < 0.0321, "{share} damaged, seed 3");
    // A header is 20 of 1028 octets: 0.8 % of all packets, of which some lose their version or length.
    assert!(
        header_errors > 0 && checksum_errors > damaged * 9 / 10,
        "{header_errors} {checksum_errors} of {damaged}"
    );
}

#[test]
fn an_ipv6_datagram_arrives_whole_or_not_at_all() {
    const COUNT: u32 = 2_000;
    if !ready(&["cat"]) {
        return;
    }
    let rig = Rig::start("--rate 10mbit --queue unlimited --up-ber 2e-5 --seed 4");
    let arrived = datagrams(&rig, Rig::GROUND[1], Rig::AIR[1], COUNT);
    assert!(arrived.iter().all(|datagram| *datagram == CONTENT));
    let overflowed = snmp(&rig.air, "Udp6RcvbufErrors");
    let checksum_errors = snmp(&rig.air, "Udp6InCsumErrors");
    // The kernel looks for routers and tells of its groups by multicast whenever it is time, the more often the longer
    // the test takes.
    let multicast = snmp(&rig.air, "Ip6InMcastPkts");
    let end = rig.counters();
    let damaged = end["up"]["damaged_packets"].as_u64().unwrap();
    let sound = end["up"]["arrived_packets"].as_u64().unwrap() - damaged - multicast;
    // The traffic class, the flow label and the hop limit are covered by no check: 36 of 8384 bits.
    let taken = arrived.len() as u64 + overflowed;
    assert!(
        taken >= sound && taken - sound < damaged / 20,
        "{taken} of {sound}"
    );
    assert!(
        checksum_errors > damaged * 9 / 10,
        "{checksum_errors} of {damaged}"
    );
}

#[test]
fn a_marked_packet_passes_the_kernels_checks_and_is_counted_there() {
    if !ready(&["iperf3", "sysctl"]) {
        return;
    }
    let rig = Rig::start("--rate 10mbit --delay 5ms --ecn 10");
    let [v4, v6] = Rig::AIR;
    for namespace in [&rig.ground, &rig.air] {
        namespace.must("sysctl -q -w net.ipv4.tcp_ecn=1");
    }
    for there in [v4, v6] {
        let _server = iperf3(&rig);
        rig.ground.must(&format!("iperf3 -c {there} -t 1"));
    }
    let marked_v4 = snmp(&rig.air, "IpExt InCEPkts");
    let marked_v6 = snmp(&rig.air, "Ip6InCEPkts");
    let errors = snmp(&rig.air, "Ip InHdrErrors") + snmp(&rig.air, "Tcp InCsumErrors");
    let end = rig.counters();
    assert!(marked_v4 > 0 && marked_v6 > 0, "{end}");
    assert_eq!(end["up"]["marked_packets"], marked_v4 + marked_v6, "{end}");
    assert_eq!(errors, 0);
}

#[test]
fn with_a_frame_check_no_damaged_packet_reaches_the_kernel() {
    const COUNT: u32 = 1_000;
    if !ready(&["cat"]) {
        return;
    }
    let rig = Rig::start("--rate 10mbit --queue unlimited --up-ber 5e-5 --damage drop");
    let arrived = datagrams(&rig, Rig::GROUND[0], Rig::AIR[0], COUNT);
    let overflowed = snmp(&rig.air, "Udp RcvbufErrors");
    let errors = snmp(&rig.air, "Udp InCsumErrors") + snmp(&rig.air, "Ip InHdrErrors");
    let end = rig.counters();
    let dropped = end["up"]["dropped_packets"]["payload_damage"]
        .as_u64()
        .unwrap();
    assert_eq!(
        (errors, end["up"]["damaged_packets"].as_u64()),
        (0, Some(0))
    );
    assert_eq!(
        arrived.len() as u64 + overflowed + dropped,
        u64::from(COUNT),
        "{end}"
    );
}

#[test]
fn hosts_behind_the_ends_reach_each_other_over_the_link() {
    if !ready(&["ping", "sysctl"]) {
        return;
    }
    let rig = Rig::start("--delay 2ms");
    let (here, there) = (rig.host_behind_ground(), rig.host_behind_air());
    for address in [IpAddr::V4(there.v4), IpAddr::V6(there.v6)] {
        let printed = here
            .namespace
            .must(&format!("ping -c 3 -i 0.01 -q {address}"));
        assert!(received(&printed) > 2.5, "{printed}");
    }
    assert_eq!(rig.counters()["up"]["offered_packets"], 6);
}

#[test]
fn what_was_made_is_gone_at_the_end_and_what_was_there_stays() {
    if !ready(&[]) {
        return;
    }
    let there = Namespace::new("there");
    let made = rig::unique("made");
    let mut link = Running::start(emulate(&format!(
        "--tun a={}/left:10.1.0.1/30 b={made}:10.1.0.2/30 --json --stats 50ms",
        there.name()
    )));
    let start = link.record();
    assert_eq!(
        (&start["a"]["made_namespace"], &start["b"]["made_namespace"]),
        (&false.into(), &true.into())
    );
    assert!(
        there
            .must("ip address show dev left")
            .contains("10.1.0.1/30")
    );

    let taken = emulate(&format!("--tun a={}/left b=:", there.name()))
        .output()
        .unwrap();
    assert_eq!(taken.status.code(), Some(5), "{}", said(&taken));
    assert!(said(&taken).contains("left"), "{}", said(&taken));

    assert_eq!(link.record()["kind"], "stats");
    // An impatient user presses Ctrl-C again; the devices must be removed all the same.
    for _ in 0..3 {
        link.signal(rustix::process::Signal::INT);
    }
    while link.record()["kind"] != "end" {}
    assert_eq!(link.code(), Some(130));
    assert!(there.exists() && !there.run("ip link show dev left").status.success());
    assert!(!std::path::Path::new("/run/netns").join(made).exists());
}

#[test]
fn without_the_capability_it_says_so_and_makes_nothing() {
    if !ready(&[]) {
        return;
    }
    let name = rig::unique("none");
    for capability in ["net_admin", "sys_admin"] {
        let without = format!("-{capability}");
        let mut command = std::process::Command::new("setpriv");
        command.args(["--bounding-set", &without, "--inh-caps", &without, "--"]);
        command.arg(fulmar("").get_program());
        command.args(["emulate", "--tun", &format!("a={name}"), "b=:"]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{}", said(&output));
        assert!(
            said(&output).to_lowercase().contains(capability),
            "{}",
            said(&output)
        );
        assert_eq!(said(&output).lines().count(), 1);
    }
    assert!(!std::path::Path::new("/run/netns").join(name).exists());
}

#[test]
fn a_missing_program_or_driver_is_named() {
    if !ready(&["unshare", "mount"]) {
        return;
    }
    let hidden = |name: &str, shell: &str| {
        let binary = fulmar("").get_program().to_owned();
        let binary = binary.display();
        let tun = format!("{binary} emulate --tun a={name} b=:");
        let mut command = std::process::Command::new("unshare");
        command.args(["-m", "sh", "-c", &format!("{shell} {tun}")]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{}", said(&output));
        assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
        said(&output)
    };
    let name = rig::unique("none");
    let no_driver = hidden(&name, "mount -t tmpfs none /dev/net &&");
    assert!(no_driver.contains("modprobe tun"), "{no_driver}");
    let no_ip = hidden(&name, "PATH=/none");
    assert!(no_ip.contains("iproute2"), "{no_ip}");
    assert!(!std::path::Path::new("/run/netns").join(name).exists());
}

#[test]
fn namespaces_that_a_killed_link_left_are_taken_over_and_removed_in_the_end() {
    if !ready(&["ping"]) {
        return;
    }
    let rig = Rig::start("--rate 10mbit --delay 1ms");
    let flags = format!(
        "--tun a={} b={} --json --rate 10mbit --delay 1ms",
        rig.ground.name(),
        rig.air.name()
    );
    let mut second = Running::start(emulate(&flags));
    let (status, said) = second.end();
    assert_eq!(status.code(), Some(5), "{said}");
    assert!(
        said.contains("already: name another") && said.lines().count() == 1,
        "while the first runs: {said}"
    );
    let (ground, air) = rig.kill();
    assert!(ground.exists() && air.exists());
    let mut again = Running::start(emulate(&flags));
    let start = again.record();
    assert_eq!(
        (&start["a"]["made_namespace"], &start["b"]["made_namespace"]),
        (&true.into(), &true.into()),
    );
    for there in Rig::AIR {
        let printed = ground.must(&format!("ping -c 3 -i 0.05 -q {there}"));
        assert!(received(&printed) > 2.5, "{printed}");
    }
    again.signal(rustix::process::Signal::INT);
    let (status, said) = again.end();
    assert_eq!(status.code(), Some(130), "{said}");
    assert_eq!(said.matches("took over namespace").count(), 2, "{said}");
    assert!(!ground.exists() && !air.exists());
}
