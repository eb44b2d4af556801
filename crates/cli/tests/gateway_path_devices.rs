//! A further path whose device is missing at the start, is unplugged in mid-transfer, and is plugged in again; and one by which a
//! gateway comes up whose first uplink is dead.
//!
//! Method: two network namespaces and two pairs of veth. The second pair, `wwan0`, is made and removed while gateways run: each time
//! it is another device for the kernel. Needs root.

use crate::processes::until;
use crate::rig::{Namespace, ready};
use crate::stations::Stations;
use std::net::SocketAddr;

const PATHS: &str = "[[peer.path]]\ndevice = \"wwan0\"\naddress = \"10.88.0.2:4914\"\n";

/// Joins the namespaces by a pair of devices of this name.
fn plug([air, ground]: [&Namespace; 2], device: &str, net: u8) {
    let other = air.name();
    ground.must(&format!(
        "ip link add {device} type veth peer name {device} netns {other}"
    ));
    for (station, last) in [(ground, 1), (air, 2)] {
        station.must(&format!("ip address add 10.{net}.0.{last}/24 dev {device}"));
        station.must(&format!("ip link set {device} up"));
    }
}

fn waits(stations: &Stations<'_>) -> Option<String> {
    let why = &stations.peer()["waiting_paths"][0]["why"];
    why.as_str().map(str::to_owned)
}

fn state(stations: &Stations<'_>, path: usize) -> Option<String> {
    let state = &stations.peer()["paths"][path]["state"];
    state.as_str().map(str::to_owned)
}

fn is_up(stations: &Stations<'_>) -> bool {
    state(stations, 1).as_deref() == Some("up")
}

#[test]
fn a_device_that_is_absent_comes_goes_and_comes_back_is_followed_and_nothing_is_lost() {
    if !ready(&[]) {
        return;
    }
    let names = ["air", "ground"].map(Namespace::new);
    let [air, ground] = [&names[0], &names[1]];
    plug([air, ground], "home", 87);
    let place = tempfile::tempdir().expect("a directory");
    let address = SocketAddr::from(([10, 87, 0, 2], 4914));
    let stations = Stations::start_bonded(place.path(), [air, ground], ("", PATHS), Some(address));
    let missing = "there is no device wwan0 that is up";
    assert_eq!(waits(&stations).as_deref(), Some(missing));
    plug([air, ground], "wwan0", 88);
    until("the path by the new device", || is_up(&stations));
    assert_eq!(waits(&stations), None);
    stations.transfer_and(12_000_000, 1_000_000, || {
        ground.must("ip link delete wwan0");
        until("the loss of the device", || waits(&stations).is_some());
        plug([air, ground], "wwan0", 88);
        until("the path by the device that came back", || is_up(&stations));
        // All that is left crosses the device that came back.
        ground.must("ip link set home down");
        until("the home's silence", || {
            stations.peer()["paths"][0]["state"] == "down"
        });
        let home = &stations.peer()["paths"][0];
        assert_eq!(home["outages"], 1, "{home}");
        assert!(home["outage_seconds"].as_f64() > Some(0.0), "{home}");
    });
    let log = stations.end();
    let count = |event: &str| log.matches(&format!("\"event\":\"{event}\"")).count();
    assert_eq!(count("path_waits"), 2, "{log}");
    assert_eq!(count("path_has_device"), 2, "{log}");
}

#[test]
fn a_gateway_that_starts_while_its_first_uplink_is_dead_comes_up_by_the_other_one() {
    if !ready(&[]) {
        return;
    }
    let names = ["air", "ground"].map(Namespace::new);
    let [air, ground] = [&names[0], &names[1]];
    plug([air, ground], "home", 87);
    plug([air, ground], "wwan0", 88);
    air.must("ip link set home down");
    let place = tempfile::tempdir().expect("a directory");
    let address = SocketAddr::from(([10, 87, 0, 2], 4914));
    let stations = Stations::start_bonded(place.path(), [air, ground], ("", PATHS), Some(address));
    until("the session by the other device", || is_up(&stations));
    assert_eq!(state(&stations, 0).as_deref(), Some("down"));
    stations.transfer(2_000_000);
    air.must("ip link set home up");
    until("the first uplink", || {
        state(&stations, 0).as_deref() == Some("up")
    });
    stations.transfer(2_000_000);
    assert_eq!(stations.moves_in_the_air(), 0);
    let log = stations.end();
    let count = |event: &str| log.matches(&format!("\"event\":\"{event}\"")).count();
    assert_eq!(count("peer_up"), 1, "{log}");
    assert_eq!(count("path_down"), 1, "{log}");
    assert_eq!(count("link_down") + count("link_up"), 0, "{log}");
}
