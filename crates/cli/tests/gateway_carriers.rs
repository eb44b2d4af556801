//! Gateways over carriers that let damage in: what arrives damaged is mended, and every file is whole.
//!
//! Method: two network namespaces and `fulmar emulate --tun`, which inverts one bit in ten thousand behind IP headers, and frames
//! over a pair of virtual devices; security on. A sender and a receiver with the kernel's own TCP compare octets, and the
//! link's counters say how often they were sent. Needs root.

use crate::rig::{Namespace, Rig, ready};
use crate::stations::Stations;
use serde_json::Value;
use std::net::SocketAddr;

const OCTETS: usize = 1_000_000;

/// Packets on the link from ground to air, how many of them arrived damaged, and what `/status` says of the damage, for
/// one transfer at this bit error rate.
fn packets(carrier: &str, to: usize, ber: &str) -> ([u64; 2], Value) {
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
    let packets = [count("offered_packets"), count("damaged_packets")];
    (packets, status["damage"].take())
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
        let ([offered, damaged], status) = packets("udp-nochecksum", to, "1e-4");
        assert!(damaged > 400, "{damaged} damaged of {offered}");
        assert!(offered < 1_100, "{damaged} damaged of {offered}");
        let outward = &status["outward"];
        assert!(number(outward, "mended_datagrams") > 300, "{status}");
        assert!(number(outward, "corrected_symbols") > 300, "{status}");
    }
    let ([offered, damaged], status) = packets("udp", 0, "1e-4");
    assert!(offered > 1_700, "{damaged} damaged of {offered}");
    assert!(status.is_null(), "{status}");
}

#[test]
fn parity_follows_a_bit_error_rate_that_nobody_was_told() {
    if !ready(&[]) {
        return;
    }
    // Hardly a packet is whole, and six words, with which it begins, mend one in two hundred.
    let ([offered, damaged], status) = packets("udp-nochecksum", 0, "1e-3");
    assert!(damaged > 500, "{damaged} damaged of {offered}");
    assert!(offered < 1_500, "{damaged} damaged of {offered}: {status}");
    assert!((15..40).contains(&number(&status, "words")), "{status}");
    let rate = status["outward"]["bit_error_ratio"]
        .as_f64()
        .expect("it was told");
    assert!((5e-4..2e-3).contains(&rate), "{status}");
    let ([offered, damaged], status) = packets("udp-nochecksum", 0, "0");
    assert_eq!(damaged, 0);
    assert!(offered < 1_000, "{offered}");
    assert_eq!(number(&status, "words"), 0, "{status}");
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
