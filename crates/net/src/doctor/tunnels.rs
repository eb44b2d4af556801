//! The needs of each `[[tunnel]]`: a device, its name, its addresses and its routes; and of networks behind this machine.

use super::finding::Finding;
use super::privileges;
use crate::gateway::config::{GatewayConfig, TunnelSettings};
use crate::gateway::own_addresses;
use crate::tun::has_route;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

/// A finding for each tunnel.
pub(super) fn each(config: &GatewayConfig) -> Vec<Finding> {
    config.tunnels.iter().map(one).collect()
}

/// The switches that let the kernel pass packets on between interfaces (ip-sysctl), of the versions of IP that tunnels have.
const FORWARDING: [(&str, OfVersion); 2] = [
    ("net.ipv4.ip_forward", IpAddr::is_ipv4),
    ("net.ipv6.conf.all.forwarding", IpAddr::is_ipv6),
];

/// Whether an address is of a version of IP.
type OfVersion = fn(&IpAddr) -> bool;

/// Whether the kernel passes packets on between tunnels and other interfaces, if there are tunnels. Only the other end's file
/// names the networks behind this machine, so nobody knows here whether there are any.
pub(super) fn forwarding(config: &GatewayConfig) -> Option<Finding> {
    forwarding_if(config, |switch| {
        let file = Path::new("/proc/sys").join(switch.replace('.', "/"));
        // A kernel without this version of IP has nothing to forward.
        fs::read_to_string(file).map_or(true, |value| value.trim() != "0")
    })
}

fn forwarding_if(config: &GatewayConfig, is_on: impl Fn(&str) -> bool) -> Option<Finding> {
    const CHECK: &str = "forwarding";
    let has = |of_version: OfVersion| {
        let mut addresses = config.tunnels.iter().flat_map(|tunnel| &tunnel.addresses);
        addresses.any(|address| of_version(&address.ip()))
    };
    let needed = FORWARDING.into_iter().filter(|(_, of)| has(*of));
    let off: Vec<&str> = needed
        .map(|(switch, _)| switch)
        .filter(|switch| !is_on(switch))
        .collect();
    if config.tunnels.is_empty() {
        return None;
    }
    if off.is_empty() {
        return Some(Finding::good(CHECK, "on"));
    }
    let settings: Vec<String> = off.iter().map(|switch| format!("{switch}=1")).collect();
    Some(Finding::poor(
        CHECK,
        format!(
            "off ({}): tunnels reach this machine, and no network behind it",
            off.join(", ")
        ),
        format!(
            "if there is such a network: `sysctl -w {}`, and give its hosts a route through this machine to the tunnel's \
             network; else all is well",
            settings.join(" ")
        ),
    ))
}

fn one(tunnel: &TunnelSettings) -> Finding {
    let check = format!("[[tunnel]] {}", tunnel.device);
    if let Err((found, remedy)) = privileges::tunnel_device() {
        return Finding::bad(check, found, remedy);
    }
    if Path::new("/sys/class/net").join(&tunnel.device).exists() {
        return Finding::poor(
            check,
            "the device is there",
            "if this gateway runs already, all is well; else write another device",
        );
    }
    let own = own_addresses();
    if let Some(taken) = tunnel.addresses.iter().find(|one| own.contains(&one.ip())) {
        return Finding::bad(
            check,
            format!("an interface has {} already", taken.ip()),
            "write another address, or end what made that interface",
        );
    }
    if let Some(taken) = tunnel.routes.iter().find(|route| has_route(**route)) {
        return Finding::bad(
            check,
            format!("there is a route to {taken} already"),
            format!(
                "remove it (`ip route show exact {taken}` has it), or leave {taken} out of routes"
            ),
        );
    }
    if tunnel.accelerate && !privileges::on_path("nft") {
        let remedy = "install nftables, or leave accelerate out";
        return Finding::bad(check, "there is no nft", remedy);
    }
    Finding::good(check, "can be made")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingVerdict;

    fn config(tunnel: &str) -> GatewayConfig {
        let text = format!(
            "[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\nrate = \"1mbit\"\n\
             [egress]\nallow = [\"10.0.0.1:80\"]\n{tunnel}"
        );
        GatewayConfig::read("a.toml", &text).unwrap()
    }

    #[test]
    fn a_tunnel_beside_forwarding_that_is_off_is_told_with_the_switch_of_its_version_of_ip() {
        let all_off = |_: &str| false;
        let four = config("[[tunnel]]\naddress = \"10.90.0.1/24\"\n");
        let finding = forwarding_if(&four, all_off).unwrap();
        let remedy = finding.remedy.unwrap();
        assert_eq!(finding.verdict, FindingVerdict::Poor);
        assert!(
            remedy.contains("`sysctl -w net.ipv4.ip_forward=1`"),
            "{remedy}"
        );
        let both = config("[[tunnel]]\naddress = [\"10.90.0.1/24\", \"fd90::1/64\"]\n");
        let remedy = |is_on: fn(&str) -> bool| forwarding_if(&both, is_on).unwrap().remedy;
        let said = remedy(all_off).unwrap();
        let switches = "net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1";
        assert!(said.contains(switches), "{said}");
        let said = remedy(|switch| switch.contains("ipv4")).unwrap();
        assert!(said.contains("-w net.ipv6.conf.all.forwarding=1"), "{said}");
        assert_eq!(remedy(|_| true), None);
        assert_eq!(forwarding_if(&config(""), all_off), None);
    }
}
