//! Gateways over carriers that let damage in: what arrives damaged is mended, and every file is whole.
//!
//! Method: two network namespaces and `fulmar emulate --tun`, which inverts one bit in ten thousand behind IP headers, and frames
//! over a pair of virtual devices; security on. A sender and a receiver with the kernel's own TCP compare octets, and the
//! link's counters say how often they were sent. Needs root.

use crate::processes::{Running, octets, run};
use crate::rig::{Namespace, Rig, ready};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

const PORT: u16 = 7000;
/// The longest time of a transfer, by far; it turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(90);
const OCTETS: usize = 1_000_000;

/// Two gateways, air and ground, whose peers have these further lines.
fn gateways(
    place: &Path,
    [air, ground]: [&Namespace; 2],
    carrier: &str,
    address: &str,
) -> [Running; 2] {
    let public = ["ground", "air"].map(|name| {
        let output = run(&format!("keygen {}/{name}.key", place.display()));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    });
    let head = |name: &str, other: &str, key: &str| {
        let place = place.display();
        format!(
            "[gateway]\nname = \"{name}\"\nlisten = \":4914\"\nstate_dir = \"{place}\"\n\
             [security]\nkind = \"noise\"\nprivate_key_file = \"{place}/{name}.key\"\n\
             [[peer]]\nname = \"{other}\"\npublic_key = \"{key}\"\nrate = \"10mbit\"\n\
             carrier = \"{carrier}\"\n"
        )
    };
    let of_air =
        head("air", "ground", &public[0]) + &format!("[egress]\nallow = [\"127.0.0.1:{PORT}\"]\n");
    let of_ground = head("ground", "air", &public[1])
        + &format!(
            "{address}[class.bulk]\nmode = \"reliable\"\n\
             [[forward]]\nlisten = \"127.0.0.1:{PORT}\"\nto = \"127.0.0.1:{PORT}\"\nclass = \"bulk\"\n"
        );
    [
        air.gateway(place, "air", &of_air),
        ground.gateway(place, "ground", &of_ground),
    ]
}

/// Sends octets from ground to air, which must be the same there.
fn transfer([air, ground]: [&Namespace; 2]) {
    let listener = air.within(|| TcpListener::bind(("127.0.0.1", PORT)).expect("a port"));
    let mut client =
        ground.within(|| TcpStream::connect(("127.0.0.1", PORT)).expect("the gateway listens"));
    client.set_write_timeout(Some(PATIENCE)).expect("not zero");
    let sent = octets(1, OCTETS);
    let received = thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let (mut stream, _) = listener.accept().expect("the gateway connects");
            stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("the whole file");
            all
        });
        client.write_all(&sent).expect("it is taken");
        client.shutdown(Shutdown::Write).expect("it is open");
        receiving.join().expect("received")
    });
    assert!(received == sent, "other octets");
}

/// Packets on the link from ground to air, and how many of them arrived damaged, for one transfer.
fn packets(carrier: &str, to: usize) -> [u64; 2] {
    let rig = Rig::start(
        "--rate 10mbit --delay 5ms --ber 1e-4 --damage deliver-behind-headers --seed 33",
    );
    let place = tempfile::tempdir().expect("a directory");
    let address = SocketAddr::new(Rig::AIR[to], 4914);
    let address = format!("address = \"{address}\"\n");
    let ends = [&rig.air, &rig.ground];
    let gateways = gateways(place.path(), ends, carrier, &address);
    transfer(ends);
    drop(gateways);
    let end = rig.counters();
    let count = |name: &str| end["up"][name].as_u64().expect("a count");
    [count("offered_packets"), count("damaged_packets")]
}

#[test]
fn without_checksum_damaged_packets_are_mended_and_not_sent_again_over_both_families() {
    if !ready(&[]) {
        return;
    }
    // Full packets carry 1,400 octets and more: 714 of them are needed, and two in three are damaged.
    for to in 0..2 {
        let [offered, damaged] = packets("udp-nochecksum", to);
        assert!(damaged > 400, "{damaged} damaged of {offered}");
        assert!(offered < 1_100, "{damaged} damaged of {offered}");
    }
    let [offered, damaged] = packets("udp", 0);
    assert!(offered > 1_700, "{damaged} damaged of {offered}");
}

#[test]
fn frames_carry_two_gateways_that_find_each_other() {
    if !ready(&[]) {
        return;
    }
    let (ground, air) = (Namespace::new("ground"), Namespace::new("air"));
    let inside = air.name();
    ground.must(&format!(
        "ip link add radio type veth peer name radio netns {inside}"
    ));
    for namespace in [&ground, &air] {
        namespace.must("ip link set radio up");
    }
    let place = tempfile::tempdir().expect("a directory");
    let ends = [&air, &ground];
    let _gateways = gateways(place.path(), ends, "ethernet:radio", "");
    transfer(ends);
}
