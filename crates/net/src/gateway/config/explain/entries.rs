//! Entries in words: forwards, proxies, diverted traffic and tunnels.

use super::classes::classes;
use crate::gateway::config::class::ClassRules;
use crate::gateway::config::settings::{EntryProtocol, GatewayConfig, GatewayRoute};
use core::fmt::Write;
use fulmar_proto::splice::HostName;

/// The name of the gateway at the end of a way.
fn end_of<'a>(config: &'a GatewayConfig, route: &'a GatewayRoute) -> &'a str {
    let last = route.beyond.last().map(HostName::as_str);
    last.unwrap_or_else(|| config.peer_name(route.peer))
}

pub(super) fn entries(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    for forward in &config.forwards {
        let what = match forward.protocol {
            EntryProtocol::Tcp => "TCP connections",
            EntryProtocol::Udp => "UDP datagrams",
        };
        writeln!(
            out,
            "{what} to {} go on from `{}` to {}; {}",
            forward.listen,
            end_of(config, &forward.route),
            forward.to,
            classes(config, &forward.classes)
        )?;
    }
    for socks in &config.socks {
        let who = match &socks.login {
            Some(login) => format!("for user `{}` with a password", login.user),
            None => "for everybody who reaches it, without a password".to_owned(),
        };
        writeln!(
            out,
            "SOCKS5 proxy at {} {who}; its connections go on from `{}`; TCP: {}; UDP: {}",
            socks.listen,
            end_of(config, &socks.route),
            classes(config, &socks.tcp),
            classes(config, &socks.udp)
        )?;
    }
    for entry in &config.transparent {
        writeln!(
            out,
            "{} that the kernel diverts to {} goes on from `{}`; {} (--print-rules prints the kernel's rules)",
            entry.protocol.name(),
            entry.listen,
            end_of(config, &entry.route),
            classes(config, &entry.classes)
        )?;
    }
    tunnels(config, out)?;
    let tcp_dscp = config
        .forwards
        .iter()
        .filter(|forward| forward.protocol == EntryProtocol::Tcp)
        .map(|forward| &forward.classes)
        .chain(config.socks.iter().map(|socks| &socks.tcp))
        .any(ClassRules::needs_dscp);
    if tcp_dscp {
        writeln!(
            out,
            "code points of TCP clients are seen only with sysctl net.ipv4.tcp_reflect_tos=1"
        )?;
    }
    Ok(())
}

fn tunnels(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    for tunnel in &config.tunnels {
        let addresses: Vec<String> = tunnel.addresses.iter().map(ToString::to_string).collect();
        let routes: Vec<String> = tunnel.routes.iter().map(ToString::to_string).collect();
        let routes = match &routes[..] {
            [] => String::new(),
            networks => format!(" and {} behind it", networks.join(", ")),
        };
        writeln!(
            out,
            "any IP packet sent into the device {} ({}, at most {} octets) comes out of tunnel `{}` of `{}`, which reaches \
             the device's networks{routes}; {}",
            tunnel.device,
            addresses.join(", "),
            tunnel.mtu,
            tunnel.name,
            config.peer_name(tunnel.peer),
            classes(config, &tunnel.classes)
        )?;
        if tunnel.accelerate {
            writeln!(
                out,
                "TCP that would go into the device {} ends here instead and goes on from `{}`, as far as its [egress] allows: \
                 an acknowledgement is this gateway's (accelerate)",
                tunnel.device,
                config.peer_name(tunnel.peer)
            )?;
        }
    }
    Ok(())
}
