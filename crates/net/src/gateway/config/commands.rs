//! The commands that make the devices of tunnels, for people who want to see them first.

use super::settings::{GatewayConfig, TunnelSettings};
use crate::tun::TunEnd;

impl TunnelSettings {
    /// The end of the tunnel here.
    pub fn end(&self) -> TunEnd {
        TunEnd {
            namespace: None,
            device: self.device.clone(),
            addresses: self.addresses.clone(),
            routes: self.routes.clone(),
        }
    }
}

/// A shell script that does what a gateway does for its tunnels; `None` if it has none. The gateway makes the device
/// itself, so that it goes with the process.
pub fn script(config: &GatewayConfig) -> Option<String> {
    if config.tunnels.is_empty() {
        return None;
    }
    let mut lines = vec!["#!/bin/sh".to_owned(), "set -e".to_owned()];
    for tunnel in &config.tunnels {
        let (device, mtu) = (&tunnel.device, tunnel.mtu);
        lines.push(format!("ip tuntap add dev {device} mode tun"));
        lines.push(format!("ip link set dev {device} mtu {mtu}"));
        let commands = tunnel.end().commands();
        lines.extend(commands.iter().map(|command| format!("ip {command}")));
        if tunnel.accelerate {
            lines.push(format!(
                "# TCP into {device} is diverted by a table of nft, which names ports that are chosen at the start"
            ));
        }
    }
    Some(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(entries: &str) -> GatewayConfig {
        let text = format!("[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\n{entries}");
        GatewayConfig::read("a.toml", &text).unwrap()
    }

    #[test]
    fn the_script_has_what_the_file_says() {
        let tunnel =
            "[[tunnel]]\naddress = [\"10.90.0.1/24\", \"fd90::1/64\"]\nroutes = \"10.79.0.0/24\"\n";
        let script = script(&read(tunnel)).unwrap();
        assert_eq!(
            script.lines().skip(2).collect::<Vec<_>>(),
            [
                "ip tuntap add dev tunnel0 mode tun",
                "ip link set dev tunnel0 mtu 1500",
                "ip link set dev tunnel0 addrgenmode none multicast off",
                "ip address add 10.90.0.1/24 dev tunnel0",
                "ip address add fd90::1/64 dev tunnel0 nodad",
                "ip link set dev tunnel0 up",
                "ip route add 10.79.0.0/24 dev tunnel0",
            ]
        );
    }

    #[test]
    fn without_a_tunnel_there_is_none() {
        assert_eq!(script(&read("[egress]\nallow = \"10.0.0.1:80\"\n")), None);
    }
}
