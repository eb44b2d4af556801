//! `accelerate = true`: TCP that enters a tunnel is split at the gateway, and everything else goes through as it is.
//!
//! Method: two gateways with a tunnel in namespaces (see `gateway_tunnel`), the near one splitting TCP; a host behind each, and
//! the kernel's own count of how fast an acknowledgement comes. Needs root and nft.

use crate::gateway_tunnel::Pair;
use crate::gateways::{echo, exchange};
use crate::processes::{octets, until};
use crate::rig::{Namespace, ready};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

const LINK: &str = "--rate 10mbit --delay 5ms --loss 20% --seed 22";

fn split(host: u8, text: String) -> String {
    if host == 1 {
        text + "routes = [\"10.79.0.0/24\", \"fd79::/64\"]\naccelerate = true\n"
    } else {
        text + "routes = [\"10.78.0.0/24\", \"fd78::/64\"]\n\
                [egress]\nallow = [\"10.79.0.2:7\", \"[fd79::2]:7\", \"10.90.0.2:7\"]\n"
    }
}

/// An echo server, and the addresses of its clients as they come.
fn serve(namespace: &Namespace, ip: IpAddr) -> Receiver<IpAddr> {
    let listener = namespace.within(|| TcpListener::bind((ip, 7)).expect("a port"));
    let (clients, seen) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let client = stream.peer_addr().expect("it is open");
            // The test may have ended.
            let _sent = clients.send(client.ip());
            thread::spawn(move || echo(stream));
        }
    });
    seen
}

fn tables(namespace: &Namespace) -> String {
    namespace.must("nft list tables")
}

#[test]
fn tcp_of_hosts_on_both_sides_of_the_gateway_is_split_and_nothing_stays_behind() {
    if !ready(&["nft", "ping"]) {
        return;
    }
    let mut pair = Pair::start_with(LINK, split);
    let (client, server) = (pair.rig.host_behind_ground(), pair.rig.host_behind_air());
    // Without the split, the way back would need a route at the far end.
    let router = ["10.79.0.1", "fd79::1"].map(|ip| ip.parse::<IpAddr>().expect("an address"));
    for (ip, router) in [IpAddr::from(server.v4), server.v6.into()]
        .into_iter()
        .zip(router)
    {
        let clients = serve(&server.namespace, ip);
        let to = SocketAddr::new(ip, 7);
        for namespace in [&client.namespace, &pair.rig.ground] {
            let stream = namespace.within(|| TcpStream::connect(to).expect("it is diverted"));
            assert_eq!(stream.peer_addr().expect("it is open"), to);
            let sent = octets(1, 200_000);
            assert!(
                exchange(stream, sent.clone()) == sent,
                "{to}: altered or incomplete"
            );
            // The connection was split: it is the far gateway that the server hears.
            assert_eq!(clients.recv(), Ok(router));
        }
    }
    // What is not TCP goes through as it was, from end to end.
    (client.namespace).must("ping -c 3 -i 0.1 -W 20 -q 10.79.0.2");
    // The far gateway's own address, which its [egress] names.
    let _clients = serve(&pair.rig.air, "10.90.0.2".parse().expect("an address"));
    let stream =
        (pair.rig.ground).within(|| TcpStream::connect(("10.90.0.2", 7)).expect("it is diverted"));
    assert!(exchange(stream, octets(2, 1_000)) == octets(2, 1_000));

    assert!(tables(&pair.rig.ground).contains("fulmar_tunnel0"));
    let [ground, _] = &mut pair.running;
    ground.signal(Signal::KILL);
    ground.end();
    until("the kernel's rules to be gone", || {
        tables(&pair.rig.ground).is_empty()
    });
}

#[test]
fn a_client_that_was_not_diverted_is_turned_away() {
    if !ready(&["nft"]) {
        return;
    }
    let pair = Pair::start_with(LINK, split);
    // The ports to which the rules divert, which the namespace's processes can reach as well.
    let rules = pair
        .rig
        .ground
        .must("nft list chain inet fulmar_tunnel0 own");
    let port = rules.split("redirect to :").nth(1).and_then(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u16>().ok()
    });
    let port = port.unwrap_or_else(|| panic!("no port: {rules}"));
    let mut stream =
        (pair.rig.ground).within(|| TcpStream::connect(("127.0.0.1", port)).expect("it listens"));
    let outcome = stream.read(&mut [0]);
    assert!(outcome.is_err(), "{outcome:?}: a reset was expected");
    // The far gateway was not asked: its [egress] would have refused as well.
    let [mut ground, _] = pair.running;
    ground.signal(Signal::INT);
    let (_, log) = ground.end();
    assert!(log.contains("\"reason\":\"not_diverted\""), "{log}");
}

/// The capabilities of a process that it has, and those that it could have (proc(5): `status`).
fn capabilities(id: u32) -> [u64; 2] {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    ["CapPrm:", "CapBnd:"].map(|name| {
        let set = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(set.expect("its line").trim(), 16).expect("a set")
    })
}

#[test]
fn who_holds_the_rules_may_change_the_network_and_nothing_else() {
    if !ready(&["nft", "ping"]) {
        return;
    }
    let pair = Pair::start_with(LINK, split);
    let shells = pair.running[0].children("-c");
    assert_eq!(shells.len(), 1, "{shells:?}");
    let below = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", shells[0]));
    let below = below.expect("it runs");
    let mut holders: Vec<u32> = below.split_whitespace().flat_map(str::parse).collect();
    holders.extend(shells);
    assert!(holders.len() > 1, "{holders:?}");
    for holder in holders {
        // CAP_NET_ADMIN is the twelfth.
        assert_eq!(capabilities(holder), [1 << 12; 2]);
    }
}

#[test]
fn the_end_of_nft_is_told_and_the_tunnel_carries_on() {
    if !ready(&["nft", "ping", "curl"]) {
        return;
    }
    let watched = |host, text| split(host, text) + "[metrics]\nlisten = \"127.0.0.1:9490\"\n";
    let pair = Pair::start_with(LINK, watched);
    let accelerate = || {
        let output = pair.rig.ground.run("curl -s http://127.0.0.1:9490/status");
        let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        status["tunnels"][0]["accelerate"].clone()
    };
    assert_eq!(accelerate(), "yes");
    let [shell] = pair.running[0].children("-c")[..] else {
        panic!("one shell holds the rules");
    };
    let below = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
    let below = below.expect("it runs");
    let is_nft = |id: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{id}/comm"));
        name.is_ok_and(|name| name.trim() == "nft")
    };
    let mut below = below.split_whitespace().flat_map(str::parse::<i32>);
    let nft = below.find(is_nft).and_then(Pid::from_raw);
    kill_process(nft.expect("it holds the rules"), Signal::KILL).expect("it runs");
    until("the end of nft to be told", || accelerate() == "lost");
    assert_eq!(tables(&pair.rig.ground), "");
    (pair.rig.ground).must("ping -c 3 -i 0.1 -W 20 -q 10.90.0.2");
    let [mut ground, _] = pair.running;
    ground.signal(Signal::INT);
    let (_, log) = ground.end();
    assert!(log.contains("\"event\":\"accelerate_lost\""), "{log}");
}

#[test]
fn a_connection_that_would_go_back_into_the_tunnel_is_neither_made_nor_split_again() {
    if !ready(&["nft", "ping"]) {
        return;
    }
    let wide =
        |host, text| split(host, text).replace("\"10.90.0.2:7\"", "\"10.90.0.0/24:1-65535\"");
    let pair = Pair::start_with("--rate 10mbit --delay 5ms", wide);
    // An address of the tunnel's network that nobody has.
    let nobody = SocketAddr::from(([10, 90, 0, 9], 7));
    // Each gateway's kernel would send to it through the tunnel, for ever.
    let mut stream =
        (pair.rig.ground).within(|| TcpStream::connect(nobody).expect("it is diverted"));
    let outcome = stream.read(&mut [0]);
    assert!(outcome.is_err(), "{outcome:?}: a reset was expected");
    // What comes out of the tunnel here is not split, although it would go back into it.
    let within = Duration::from_secs(1);
    let outcome = (pair.rig.air).within(|| TcpStream::connect_timeout(&nobody, within));
    let [_, mut air] = pair.running;
    air.signal(Signal::INT);
    let (_, log) = air.end();
    assert!(log.contains("\"reason\":\"not_allowed\""), "{log}");
    assert!(outcome.is_err(), "{outcome:?}");
}
