//! `[[tunnel]]` carries any IP packet between two gateways, whatever the link loses.
//!
//! Method: two network namespaces joined by `fulmar emulate --tun`, a gateway with a tunnel in each, and programs that speak to the
//! tunnel's addresses: ping, sockets of the kernel's TCP and UDP, raw sockets of other protocols. Needs root.

use crate::processes::{Running, octets, run, said};
use crate::rig::{Namespace, Rig, ready};
use rustix::process::Signal;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{Read, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket,
};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// The longest wait for anything here, by far; it turns a hang into a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const GROUND: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 1);
pub(crate) const AIR: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 2);
const AIR_V6: Ipv6Addr = Ipv6Addr::new(0xfd90, 0, 0, 0, 0, 0, 0, 2);
pub(crate) const LOSSY: &str = "--rate 10mbit --delay 5ms --loss 20% --seed 22";

/// The configuration of the gateway in place 1 (ground) or 2 (air); `further` are lines of its tunnel.
pub(crate) fn text(place: &TempDir, host: u8, further: &str) -> String {
    let [name, other] = if host == 1 {
        ["ground", "air"]
    } else {
        ["air", "ground"]
    };
    let address = if host == 1 {
        "address = \"10.77.0.2:4914\"\n"
    } else {
        ""
    };
    format!(
        "[gateway]\nname = \"{name}\"\nstate_dir = \"{}\"\n[security]\nkind = \"none\"\n\
         [[peer]]\nname = \"{other}\"\nrate = \"10mbit\"\n{address}\
         [[tunnel]]\naddress = [\"10.90.0.{host}/24\", \"fd90::{host}/64\"]\n{further}",
        place.path().display()
    )
}

/// Two gateways with a tunnel, over a link.
pub(crate) struct Pair {
    pub(crate) running: [Running; 2],
    pub(crate) rig: Rig,
    pub(crate) place: TempDir,
}

impl Pair {
    pub(crate) fn start(link: &str) -> Self {
        Self::start_with(link, |_, text| text)
    }

    /// Does the same as [`Pair::start`], with each end's configuration changed.
    pub(crate) fn start_with(link: &str, change: impl Fn(u8, String) -> String) -> Self {
        let rig = Rig::start(link);
        let place = tempfile::tempdir().expect("a directory");
        let start = |namespace: &Namespace, name, host| {
            let text = change(host, text(&place, host, ""));
            namespace.gateway(place.path(), name, &text)
        };
        let running = [start(&rig.ground, "ground", 1), start(&rig.air, "air", 2)];
        let pair = Self {
            running,
            rig,
            place,
        };
        pair.rig.ground.answered_by(AIR);
        pair
    }

    /// A TCP transfer from ground to air, through the kernel's own TCP.
    fn transfer(&self, to: IpAddr, len: usize) {
        let listener = self
            .rig
            .air
            .within(|| TcpListener::bind((to, 7000)).expect("a port"));
        let mut client =
            (self.rig.ground).within(|| TcpStream::connect((to, 7000)).expect("it listens"));
        let sent = octets(1, len);
        let received = thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let (mut stream, from) = listener.accept().expect("it connects");
                assert!(!from.ip().is_loopback());
                stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
                let mut all = Vec::new();
                stream.read_to_end(&mut all).expect("the whole file");
                all
            });
            client.write_all(&sent).expect("it is taken");
            client.shutdown(Shutdown::Write).expect("it is open");
            receiving.join().expect("received")
        });
        assert!(
            received == sent,
            "{} of {len} octets, or others",
            received.len()
        );
    }

    fn devices(&self) -> usize {
        let there = |namespace: &Namespace| {
            let output = namespace.run("ip link show dev tunnel0");
            usize::from(output.status.success())
        };
        there(&self.rig.ground) + there(&self.rig.air)
    }
}

#[test]
fn ping_loses_nothing_where_the_link_loses_a_fifth_both_ways() {
    if !ready(&["ping"]) {
        return;
    }
    let pair = Pair::start(LOSSY);
    for there in [IpAddr::from(AIR), AIR_V6.into()] {
        let said = pair
            .rig
            .ground
            .must(&format!("ping -c 1000 -i 0.01 -W 5 -q {there}"));
        // Asked: under 0.1 %. Without a tunnel a ping is answered with .8 x .8.
        assert!(said.contains(" 1000 received"), "{said}");
    }
}

#[test]
fn tcp_udp_and_protocols_without_a_proxy_pass_whole_and_in_order() {
    if !ready(&["ping"]) {
        return;
    }
    let pair = Pair::start(LOSSY);
    pair.transfer(AIR.into(), 2_000_000);
    pair.transfer(AIR_V6.into(), 500_000);
    udp(&pair);
    for protocol in [47, 132, 253] {
        raw(&pair, protocol);
    }
}

fn udp(pair: &Pair) {
    let server = (pair.rig.air).within(|| UdpSocket::bind((AIR, 7001)).expect("a port"));
    let client = (pair.rig.ground).within(|| UdpSocket::bind((GROUND, 0)).expect("a port"));
    server.set_read_timeout(Some(PATIENCE)).expect("not zero");
    // The last is as long as UDP allows, so that the kernel cuts its packet into fragments.
    let len = |number: u32| if number == 299 { 60_000 } else { 1_000 };
    let send = |number: u32| {
        let mut message = vec![0; len(number)];
        message[..4].copy_from_slice(&number.to_be_bytes());
        client.send_to(&message, (AIR, 7001)).expect("it is sent");
    };
    // Sixteen are on their way, so that no queue has too many.
    (0..16).for_each(send);
    let mut buffer = vec![0; 65_535];
    for number in 0..300 {
        let (octets, from) = server.recv_from(&mut buffer).expect("every one comes");
        assert_eq!(from.ip(), IpAddr::from(GROUND));
        assert_eq!(
            (octets, &buffer[..4]),
            (len(number), &number.to_be_bytes()[..])
        );
        // Fragments show no ports, so the long one is of another flow: it waits for its turn here.
        if number == 298 {
            send(299);
        } else if number + 16 < 299 {
            send(number + 16);
        }
    }
}

fn raw(pair: &Pair, protocol: i32) {
    let open =
        || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(protocol))).expect("root");
    let mut receiver = pair.rig.air.within(open);
    let sender = pair.rig.ground.within(open);
    receiver.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let to = SocketAddr::from((AIR, 0)).into();
    for number in 0..50_u8 {
        // SCTP begins with its ports, which say to which flow a packet belongs.
        let mut packet = [7; 64];
        packet[4] = number;
        sender.send_to(&packet, &to).expect("it is sent");
    }
    for number in 0..50_u8 {
        let mut buffer = [0; 256];
        let len = receiver.read(&mut buffer).expect("every one comes");
        assert_eq!(len, 20 + 64, "protocol {protocol}");
        assert_eq!(buffer[24], number, "protocol {protocol}, in order");
    }
}

#[test]
fn the_devices_are_gone_at_the_end_and_a_killed_gateway_leaves_nothing() {
    if !ready(&["ping"]) {
        return;
    }
    let mut pair = Pair::start("--rate 10mbit --delay 5ms");
    assert_eq!(pair.devices(), 2);
    let [ground, air] = &mut pair.running;
    ground.signal(Signal::TERM);
    air.signal(Signal::KILL);
    let (status, log) = ground.end();
    assert!(status.code().is_some(), "{log}");
    air.end();
    assert_eq!(pair.devices(), 0);
    // Both can have their names and addresses again.
    let start = |namespace: &Namespace, name, host| {
        namespace.gateway(pair.place.path(), name, &text(&pair.place, host, ""))
    };
    pair.running = [
        start(&pair.rig.ground, "ground", 1),
        start(&pair.rig.air, "air", 2),
    ];
    pair.rig
        .ground
        .must(&format!("ping -c 3 -i 0.1 -W 20 -q {AIR}"));
}

#[test]
fn a_tunnel_that_cannot_be_had_is_said_in_one_line_with_the_cure() {
    if !ready(&[]) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let station = Namespace::new("station");
    station.must("ip tuntap add dev tunnel9 mode tun");
    station.must("ip address add 10.90.0.9/24 dev tunnel9");
    station.must("ip link set tunnel9 up");
    station.must("ip route add 10.93.0.0/24 dev tunnel9");
    let started = |host: u8, further: &str, wrapper: &str| {
        let file = place.path().join("gateway.toml");
        std::fs::write(&file, text(&place, host, further)).expect("room");
        let binary = assert_cmd::cargo::cargo_bin!("fulmar").display();
        let output = station.run(&format!("{wrapper} {binary} gateway -c {}", file.display()));
        let told = said(&output);
        let errors = told
            .lines()
            .filter(|line| line.starts_with("fulmar: ") || line.starts_with("error"));
        assert_eq!(errors.count(), 1, "{told}");
        (output.status.code(), told)
    };
    let cases = [
        (1, "device = \"tunnel9\"\n", "", 5, "name another"),
        (9, "", "", 5, "write another address in [[tunnel]]"),
        (1, "device = \"a/b\"\n", "", 2, "letters, digits"),
        (1, "mtu = \"1000B\"\n", "", 2, "write 1280B to"),
        (1, "routes = \"10.90.0.1/33\"\n", "", 2, "10.77.0.1/24"),
        (1, "routes = \"10.95.0.1/16\"\n", "", 2, "10.95.0.0/16"),
        (1, "routes = \"10.90.0.0/24\"\n", "", 2, "leave it out"),
        (
            1,
            "routes = [\"10.95.0.0/16\", \"10.95.0.0/16\"]\n",
            "",
            2,
            "twice",
        ),
        (
            1,
            "routes = \"10.93.0.0/24\"\n",
            "",
            5,
            "remove it, or leave 10.93.0.0/24 out",
        ),
        (
            1,
            "routes = \"10.77.0.0/24\"\n",
            "",
            5,
            "give 10.77.0.2 a route of its own",
        ),
        (
            1,
            "",
            "setpriv --bounding-set -net_admin --inh-caps -net_admin",
            5,
            "run it as root",
        ),
    ];
    for (host, further, wrapper, code, cure) in cases {
        let (exit, told) = started(host, further, wrapper);
        assert!(told.contains(cure), "{further}{wrapper}: {told}");
        assert_eq!(exit, Some(code), "{told}");
    }
    let left = station.must("ip -o link");
    assert!(!left.contains("tunnel0"), "{left}");
}

#[test]
fn a_peer_speaks_for_the_tunnels_networks_only() {
    if !ready(&["ping"]) {
        return;
    }
    let pair = Pair::start("--rate 10mbit --delay 5ms");
    pair.rig.ground.must("ip address add 10.99.0.1/32 dev lo");
    // The way back is there, so only the tunnel's end can have dropped them.
    pair.rig.air.must("ip route add 10.99.0.0/24 dev tunnel0");
    let from_elsewhere = |namespace: &Namespace| {
        let output = namespace.run(&format!("ping -I 10.99.0.1 -c 3 -i 0.1 -W 1 -q {AIR}"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let told = from_elsewhere(&pair.rig.ground);
    assert!(told.contains(" 0 received"), "{told}");
    pair.rig
        .ground
        .must(&format!("ping -c 3 -i 0.1 -W 20 -q {AIR}"));
}

#[test]
fn up_says_what_it_would_do_and_refuses_a_file_without_a_tunnel() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("ground.toml");
    std::fs::write(&file, text(&place, 1, "routes = \"10.79.0.0/24\"\n")).expect("room");
    let output = run(&format!("up --print {}", file.display()));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    for command in [
        "ip address add 10.90.0.1/24 dev tunnel0",
        "ip link set dev tunnel0 mtu 1500",
        "ip route add 10.79.0.0/24 dev tunnel0",
    ] {
        assert!(printed.lines().any(|line| line == command), "{printed}");
    }
    let without = text(&place, 1, "").replace("[[tunnel]]", "[[unknown]]");
    let (head, _) = without.split_once("[[unknown]]").expect("it was there");
    let other = format!("{head}[egress]\nallow = [\"10.0.0.1:80\"]\n");
    std::fs::write(&file, other).expect("room");
    let output = run(&format!("up {}", file.display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("there is no [[tunnel]]"),
        "{}",
        said(&output)
    );
}
