//! Gateways with `carrier = "auto"` over paths with something in the middle: everything arrives, and a line of the log says
//! what was chosen.
//!
//! Method: two network namespaces and `fulmar emulate --tun`, which inverts bits behind IP headers, as in `gateway_carriers`. Rules
//! of nftables drop what has no checksum, or is long, or rewrite source ports. Needs root.

use crate::processes::until;
use crate::rig::{Namespace, Rig, ready};
use crate::stations::Stations;
use std::net::SocketAddr;
use tempfile::TempDir;

const OCTETS: usize = 1_000_000;
const AUTO: &str = "carrier = \"auto\"\n";

fn link(ber: &str) -> Rig {
    Rig::start(&format!(
        "--rate 10mbit --delay 5ms --ber {ber} --damage deliver-behind-headers --seed 35"
    ))
}

/// Makes `station` drop what arrives and matches.
fn drop_arriving(station: &Namespace, what: &str) {
    station.must("nft add table ip middle");
    station.must("nft add chain ip middle arriving { type filter hook input priority -300 ; }");
    station.must(&format!(
        "nft add rule ip middle arriving {what} counter drop"
    ));
}

fn start<'a>(place: &TempDir, [air, ground]: [&'a Namespace; 2]) -> Stations<'a> {
    let address = SocketAddr::new(Rig::AIR[0], 4914);
    Stations::start(place.path(), [air, ground], AUTO, Some(address))
}

/// The form that `/status` gives for the peer in the air, and the lines of the log about it, once the gateway has ended.
fn chosen(stations: Stations<'_>) -> (String, Vec<String>) {
    let carrier = stations.peer()["carrier"].as_str().map(str::to_owned);
    let log = stations.end();
    let is_about = |line: &&str| line.contains("\"event\":\"carrier\"");
    let lines = log.lines().filter(is_about).map(str::to_owned).collect();
    (carrier.expect("it says so"), lines)
}

#[test]
fn where_what_has_no_checksum_is_dropped_data_has_one_and_one_line_says_so() {
    if !ready(&["nft"]) {
        return;
    }
    for what in ["udp checksum 0", "udp checksum 0 meta length gt 600"] {
        let rig = link("1e-5");
        drop_arriving(&rig.air, what);
        let place = tempfile::tempdir().expect("a directory");
        let stations = start(&place, [&rig.air, &rig.ground]);
        stations.transfer(4 * OCTETS);
        let (carrier, lines) = chosen(stations);
        assert_eq!(carrier, "udp", "{what}: {lines:?}");
        let says = |line: &String| line.contains("do not arrive");
        assert!(lines.len() == 1 && lines.iter().all(says), "{lines:#?}");
    }
}

#[test]
fn where_long_datagrams_are_dropped_short_ones_go_without_checksum() {
    if !ready(&["nft"]) {
        return;
    }
    let rig = link("1e-4");
    for station in [&rig.air, &rig.ground] {
        drop_arriving(station, "meta l4proto udp meta length gt 1300");
    }
    let place = tempfile::tempdir().expect("a directory");
    let stations = start(&place, [&rig.air, &rig.ground]);
    stations.transfer(4 * OCTETS);
    let (carrier, lines) = chosen(stations);
    assert_eq!(carrier, "udp-nochecksum", "{lines:#?}");
    let says = |line: &String| line.contains("were damaged");
    assert!(lines.last().is_some_and(says), "{lines:#?}");
}

#[test]
fn a_path_that_begins_to_drop_what_has_no_checksum_in_mid_transfer_loses_nothing() {
    if !ready(&["nft"]) {
        return;
    }
    let rig = link("1e-4");
    let place = tempfile::tempdir().expect("a directory");
    let stations = start(&place, [&rig.air, &rig.ground]);
    stations.transfer_and(8 * OCTETS, 2 * OCTETS, || {
        until("data without checksum", || {
            stations.peer()["carrier"] == "udp-nochecksum"
        });
        drop_arriving(&rig.air, "udp checksum 0");
    });
    let (carrier, lines) = chosen(stations);
    assert_eq!(carrier, "udp", "{lines:#?}");
    let says = |line: &String| line.contains("do not arrive");
    assert!(lines.iter().any(says), "{lines:#?}");
}

#[test]
fn a_translator_that_changes_its_port_in_mid_transfer_loses_nothing() {
    if !ready(&["nft"]) {
        return;
    }
    let rig = link("1e-4");
    let host = rig.host_behind_ground();
    let router = &rig.ground;
    router.must("nft add table ip middle");
    router.must("nft add chain ip middle leaving { type nat hook postrouting priority 100 ; }");
    router.must(
        "nft add rule ip middle leaving ip saddr 10.78.0.0/24 udp dport 4914 counter \
         masquerade to :20000-40000 random",
    );
    let device = router.must("ip -4 -o address show to 10.77.0.1");
    let device = device.split_whitespace().nth(1).expect("a device");
    let place = tempfile::tempdir().expect("a directory");
    let stations = start(&place, [&rig.air, &host.namespace]);
    let moves = || stations.moves_in_the_air();
    let mut before = 0;
    stations.transfer_and(8 * OCTETS, 2 * OCTETS, || {
        until("data without checksum", || {
            stations.peer()["carrier"] == "udp-nochecksum"
        });
        before = moves();
        // The kernel forgets what it translated to an address that goes.
        router.must(&format!("ip address delete 10.77.0.1/24 dev {device}"));
        router.must(&format!("ip address add 10.77.0.1/24 dev {device}"));
    });
    assert!(moves() > before, "the port is as it was");
    let (carrier, lines) = chosen(stations);
    assert_eq!(carrier, "udp-nochecksum", "{lines:#?}");
}
