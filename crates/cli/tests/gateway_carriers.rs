//! Gateways over carriers that let damage in: what arrives damaged is mended, and every file is whole.
//!
//! Method: two network namespaces and `fulmar emulate --tun`, which inverts one bit in ten thousand behind IP headers, and frames
//! over a pair of virtual devices and over `fulmar emulate --tap`; security on. A sender and a receiver with the kernel's own TCP compare octets, and the
//! link's counters say how often they were sent. Needs root.

use crate::rig::{Namespace, Rig, ready};
use crate::stations::Stations;
use serde_json::Value;
use std::net::SocketAddr;

const OCTETS: usize = 1_000_000;

/// The link from ground to air after a transfer.
#[derive(Debug)]
struct Carried {
    packets: u64,
    /// Lower headers included.
    bytes: u64,
    /// Packets that arrived damaged.
    damaged: u64,
    /// The damage, as `/status` has it.
    status: Value,
}

/// One transfer at this bit error rate.
fn carried(carrier: &str, to: usize, ber: &str) -> Carried {
    let rig = Rig::start(&format!(
        "--rate 10mbit --delay 5ms --ber {ber} --damage deliver-behind-headers --seed 33"
    ));
    let place = tempfile::tempdir().expect("a directory");
    let address = SocketAddr::new(Rig::AIR[to], 4914);
    let peer = format!("carrier = \"{carrier}\"\n");
    let stations = Stations::start(place.path(), [&rig.air, &rig.ground], &peer, Some(address));
    stations.transfer(OCTETS);
    let mut status = stations.peer();
    let page = stations.page("/view");
    let says_damage = page.contains("Damage is let in");
    assert_eq!(says_damage, !status["damage"].is_null(), "{page}");
    drop(stations);
    let end = rig.counters();
    let count = |name: &str| end["up"][name].as_u64().expect("a count");
    Carried {
        packets: count("offered_packets"),
        bytes: count("offered_bytes"),
        damaged: count("damaged_packets"),
        status: status["damage"].take(),
    }
}

fn number(of: &Value, name: &str) -> u64 {
    of[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} in {of}"))
}

#[test]
fn without_checksum_damaged_packets_are_mended_and_not_sent_again_over_both_families() {
    if !ready(&[]) {
        return;
    }
    // Full packets carry 1,400 octets and more: 714 of them are needed, and two in three are damaged.
    for to in 0..2 {
        let link = carried("udp-nochecksum", to, "1e-4");
        assert!(link.damaged > 400, "{link:?}");
        assert!(link.packets < 1_100, "{link:?}");
        let outward = &link.status["outward"];
        assert!(number(outward, "mended_datagrams") > 300, "{link:?}");
        assert!(number(outward, "corrected_symbols") > 300, "{link:?}");
    }
    let link = carried("udp", 0, "1e-4");
    assert!(link.packets > 1_700, "{link:?}");
    assert!(link.status.is_null(), "{link:?}");
}

#[test]
fn parity_follows_a_bit_error_rate_that_nobody_was_told() {
    if !ready(&[]) {
        return;
    }
    // Hardly a packet is whole, and six words, with which it begins, mend one in two hundred.
    let link = carried("udp-nochecksum", 0, "1e-3");
    assert!(link.damaged > 500, "{link:?}");
    assert!(link.packets < 1_500, "{link:?}");
    // The words and the rate of the end are by its last few packets: how strong they were on the way, octets tell. The
    // accuracy of the estimate is held in virtual time (`session_strength`).
    assert!(link.bytes < 1_450_000, "{link:?}");
    assert!(number(&link.status, "words") > 6, "{link:?}");
    let rate = link.status["outward"]["bit_error_ratio"]
        .as_f64()
        .expect("it was told");
    assert!(rate > 1e-4, "{link:?}");
    let link = carried("udp-nochecksum", 0, "0");
    assert_eq!(link.damaged, 0);
    assert!(link.packets < 1_000, "{link:?}");
    assert_eq!(number(&link.status, "words"), 0, "{link:?}");
}

#[test]
fn a_carrier_that_is_to_be_chosen_has_no_checksum_where_damage_arrives() {
    if !ready(&[]) {
        return;
    }
    let rig = Rig::start(
        "--rate 10mbit --delay 5ms --ber 1e-4 --damage deliver-behind-headers --seed 34",
    );
    let place = tempfile::tempdir().expect("a directory");
    let address = SocketAddr::new(Rig::AIR[0], 4914);
    let peer = "carrier = \"auto\"\n";
    let stations = Stations::start(place.path(), [&rig.air, &rig.ground], peer, Some(address));
    stations.transfer(4 * OCTETS);
    let page = stations.page("/status");
    assert!(page.contains("udp-nochecksum: of "), "{page}");
    let peer = stations.peer();
    assert_eq!(peer["carrier"], "udp-nochecksum", "{page}");
    let outward = &peer["damage"]["outward"];
    assert!(number(outward, "mended_datagrams") > 300, "{page}");
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
    let peer = "carrier = \"ethernet:radio\"\n";
    let stations = Stations::start(place.path(), [&air, &ground], peer, None);
    stations.transfer(OCTETS);
}

#[test]
fn damaged_frames_are_mended_and_not_sent_again() {
    if !ready(&[]) {
        return;
    }
    for damage in ["deliver", "deliver-behind-headers"] {
        let rig = Rig::of_frames(
            ["", ""],
            &format!("--rate 10mbit --delay 5ms --ber 1e-4 --damage {damage} --seed 35"),
        );
        let place = tempfile::tempdir().expect("a directory");
        let peer = "carrier = \"ethernet:radio\"\n";
        let stations = Stations::start(place.path(), [&rig.air, &rig.ground], peer, None);
        stations.transfer(OCTETS);
        let status = stations.peer();
        drop(stations);
        let end = rig.counters();
        let count = |name: &str| end["up"][name].as_u64().expect("a count");
        // As without a checksum: 714 full packets are needed, and two in three are damaged.
        assert!(count("damaged_packets") > 400, "{end}");
        assert!(count("offered_packets") < 1_100, "{end}");
        let outward = &status["damage"]["outward"];
        assert!(number(outward, "mended_datagrams") > 300, "{status}");
        assert!(number(outward, "corrected_symbols") > 300, "{status}");
    }
}
