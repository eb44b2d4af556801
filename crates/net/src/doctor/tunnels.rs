//! The needs of each `[[tunnel]]`: a device, its name, its addresses and its routes.

use super::finding::Finding;
use super::privileges;
use crate::gateway::config::{GatewayConfig, TunnelSettings};
use crate::gateway::own_addresses;
use crate::tun::has_route;
use std::path::Path;

/// A finding for each tunnel.
pub(super) fn each(config: &GatewayConfig) -> Vec<Finding> {
    config.tunnels.iter().map(one).collect()
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
