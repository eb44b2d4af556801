//! A device of this machine as the source of a link's words: the cable is pulled in mid-transfer, and put back.
//!
//! Method: two network namespaces and a pair of veth. One end that is down is a cable that is pulled for the other. Needs root.

use crate::processes::until;
use crate::rig::{Namespace, ready};
use crate::stations::Stations;
use std::net::SocketAddr;

const LINK: &str = "[[link]]\nname = \"port\"\ndevice = \"home\"\n";

#[test]
fn a_cable_that_is_pulled_is_an_outage_at_once_and_nothing_is_lost() {
    if !ready(&[]) {
        return;
    }
    let names = ["air", "ground"].map(Namespace::new);
    let [air, ground] = [&names[0], &names[1]];
    let other = air.name();
    ground.must(&format!(
        "ip link add home type veth peer name home netns {other}"
    ));
    for (station, last) in [(ground, 1), (air, 2)] {
        station.must(&format!("ip address add 10.89.0.{last}/24 dev home"));
        station.must("ip link set home up");
    }
    let place = tempfile::tempdir().expect("a directory");
    let address = SocketAddr::from(([10, 89, 0, 2], 4914));
    let stations = Stations::start_bonded(place.path(), [air, ground], ("", LINK), Some(address));
    let link = || stations.peer()["links"][0].clone();
    until("the kernel's word", || {
        link()["ceiling_out_bits_per_second"] == 10_000_000_000_u64
    });
    assert_eq!(link()["source"], "device");
    assert!(link()["up"].is_null(), "a port knows nothing of the peer");
    stations.transfer_and(6_000_000, 1_000_000, || {
        air.must("ip link set home down");
        until("the pulled cable", || link()["up"] == false);
        until("the outage", || stations.peer()["link"] == "down");
        air.must("ip link set home up");
        until("the end of the outage", || stations.peer()["link"] == "up");
    });
    let log = stations.end();
    let told = |up: &str| {
        log.matches(&format!(
            "\"event\":\"link_told\",\"link\":\"port\",\"peer\":\"air\"{up}"
        ))
        .count()
    };
    assert_eq!(told(",\"up\":false"), 1, "{log}");
    assert_eq!(log.matches("link_told_wrong").count(), 0, "{log}");
}
