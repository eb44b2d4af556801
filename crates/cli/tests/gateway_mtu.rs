//! Two gateways whose link carries shorter packets than their interfaces allow, and says so to nobody: the
//! path MTU is found, also when the path shrinks under a transfer, and every file is whole.
//!
//! Method: two network namespaces, `fulmar emulate --tun` at 10 mbit and 5 ms with interfaces of 1500
//! octets or more on a link that drops longer packets silently, security on. A sender and a receiver with
//! the kernel's own TCP compare octets. `/status` and the log give the path MTU. Needs root.

use crate::rig::{Rig, ready};
use crate::stations::Stations;
use std::net::{IpAddr, SocketAddr};

/// Sends `len` octets from ground to air over a link with these properties between gateways whose peers
/// have these further lines; returns the path MTU that was found in the end.
#[track_caller]
fn transfer(link: &str, carrier: IpAddr, peer: &str, len: usize) -> u64 {
    let rig = Rig::start(&format!("--rate 10mbit --delay 5ms {link}"));
    let place = tempfile::tempdir().expect("a directory");
    let address = SocketAddr::new(carrier, 4914);
    let stations = Stations::start(place.path(), [&rig.air, &rig.ground], peer, Some(address));
    stations.transfer(len);
    let found = stations.peer()["path_mtu_bytes"].as_u64().expect("octets");
    let line = format!("fulmar_path_mtu_bytes{{peer=\"air\"}} {found}.0\n");
    let metrics = stations.page("/metrics");
    assert!(metrics.contains(&line), "{line}: {metrics}");
    found
}

#[test]
fn a_path_of_1400_octets_is_found_out_over_both_families() {
    if !ready(&[]) {
        return;
    }
    for carrier in Rig::AIR {
        let found = transfer("--drop-above 1400", carrier, "", 3_000_000);
        assert!((1_396..=1_400).contains(&found), "{carrier}: {found}");
    }
}

#[test]
fn a_path_of_9000_octets_is_found_out_when_it_is_allowed() {
    if !ready(&[]) {
        return;
    }
    let larger = "mtu = \"9000B\"\n";
    let found = transfer("--mtu 9000", Rig::AIR[0], larger, 3_000_000);
    assert_eq!(found, 9_000);
    // The interface itself refuses longer packets.
    let found = transfer("--mtu 1500", Rig::AIR[0], larger, 3_000_000);
    assert_eq!(found, 1_500);
}

#[test]
fn a_path_that_shrinks_under_a_transfer_is_followed() {
    if !ready(&[]) {
        return;
    }
    // 8 MB take 7 s.
    let link = "--drop-above 1300 --drop-above-after 3s";
    let found = transfer(link, Rig::AIR[0], "", 8_000_000);
    assert!((1_296..=1_300).contains(&found), "{found}");
}

#[test]
fn a_path_that_shrinks_under_a_lossy_transfer_is_followed_and_loss_alone_shrinks_nothing() {
    if !ready(&[]) {
        return;
    }
    for carrier in Rig::AIR {
        let link = "--drop-above 1300 --drop-above-after 4s --loss 20%";
        let found = transfer(link, carrier, "", 8_000_000);
        assert!((1_296..=1_300).contains(&found), "{found}");
        let found = transfer("--loss 40%", carrier, "", 8_000_000);
        assert_eq!(found, 1_500);
    }
}

#[test]
fn a_fixed_size_is_taken_as_it_is() {
    if !ready(&[]) {
        return;
    }
    let fixed = "mtu = \"1400B\"\nmtu_discovery = false\n";
    let found = transfer("--drop-above 1400", Rig::AIR[1], fixed, 1_000_000);
    assert_eq!(found, 1_400);
}
