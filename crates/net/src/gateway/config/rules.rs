//! The kernel's part of transparent entries: nftables and routing, printed for the user to apply.
//!
//! TPROXY (Documentation/networking/tproxy.rst): diverted packets get a mark, a routing rule sends
//! marked packets to the local stack, and a socket with `IP_TRANSPARENT` accepts them under their
//! foreign address.

use super::settings::{GatewayConfig, Transparent};
use core::fmt::Write;
use fulmar_proto::splice::Host;

/// Marks diverted packets and names the routing table.
const MARK: &str = "0x4914";
const TABLE: u32 = 4914;

/// A shell script that diverts what [`GatewayConfig::transparent`] asks for; `None` without such
/// entries.
pub fn script(config: &GatewayConfig) -> Option<String> {
    if config.transparent.is_empty() {
        return None;
    }
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = write_script(config, &mut out);
    Some(out)
}

fn write_script(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    writeln!(out, "#!/bin/sh")?;
    writeln!(
        out,
        "# Diverts forwarded traffic to gateway `{}`.",
        config.name
    )?;
    writeln!(
        out,
        "# Undo: nft delete table inet fulmar; ip rule del fwmark {MARK};"
    )?;
    writeln!(
        out,
        "#       ip -6 rule del fwmark {MARK}; ip route flush table {TABLE};"
    )?;
    writeln!(out, "#       ip -6 route flush table {TABLE}")?;
    // Said here and not in the first line, which `| sh` does not heed.
    writeln!(out, "set -eu")?;
    // What an earlier run left is replaced.
    for family in ["-4", "-6"] {
        let rule = format!("fwmark {MARK} lookup {TABLE}");
        writeln!(out, "ip {family} rule del {rule} 2>/dev/null || true")?;
        writeln!(out, "ip {family} rule add {rule}")?;
        writeln!(
            out,
            "ip {family} route replace local default dev lo table {TABLE}"
        )?;
    }
    let by_point = config
        .transparent
        .iter()
        .any(|entry| entry.classes.needs_dscp());
    if by_point {
        writeln!(out, "# Shows the gateway the code points of TCP clients.")?;
        writeln!(out, "sysctl -w net.ipv4.tcp_reflect_tos=1")?;
    }
    writeln!(out, "nft -f - <<'RULES'")?;
    writeln!(out, "table inet fulmar")?;
    writeln!(out, "delete table inet fulmar")?;
    writeln!(out, "table inet fulmar {{")?;
    writeln!(out, "    chain divert {{")?;
    writeln!(
        out,
        "        type filter hook prerouting priority mangle; policy accept;"
    )?;
    writeln!(out, "        fib daddr type local return")?;
    writeln!(out, "        fib daddr type broadcast return")?;
    writeln!(out, "        fib daddr type multicast return")?;
    writeln!(out, "        udp dport {} return", config.listen.port())?;
    for peer in &config.peers {
        if let Some(address) = &peer.address
            && let Host::Address(ip) = address.host
        {
            let family = if ip.is_ipv4() { "ip" } else { "ip6" };
            writeln!(
                out,
                "        {family} daddr {ip} udp dport {} return",
                address.port
            )?;
        }
    }
    for entry in &config.transparent {
        divert(entry, out)?;
    }
    writeln!(out, "    }}")?;
    writeln!(out, "}}")?;
    writeln!(out, "RULES")
}

fn divert(entry: &Transparent, out: &mut String) -> core::fmt::Result {
    let protocol = entry.protocol.name();
    let port = entry.listen.port();
    let points: Vec<String> = entry
        .only_dscp
        .iter()
        .map(|point| point.0.to_string())
        .collect();
    let (v4, v6) = match (entry.listen.ip(), entry.listen.is_ipv4()) {
        (ip, _) if ip.is_unspecified() && !entry.listen.is_ipv4() => (true, true),
        (_, is_v4) => (is_v4, !is_v4),
    };
    for (wanted, family, name) in [(v4, "ip", "ipv4"), (v6, "ip6", "ipv6")] {
        if !wanted {
            continue;
        }
        let only = if points.is_empty() {
            String::new()
        } else {
            format!("{family} dscp {{ {} }} ", points.join(", "))
        };
        let target = match entry.listen.ip() {
            ip if ip.is_unspecified() => format!(":{port}"),
            ip if ip.is_ipv4() => format!("{ip}:{port}"),
            ip => format!("[{ip}]:{port}"),
        };
        writeln!(
            out,
            "        meta nfproto {name} {only}meta l4proto {protocol} meta mark set {MARK} tproxy \
             {family} to {target} accept"
        )?;
    }
    Ok(())
}
