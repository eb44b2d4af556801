//! Permissions of `[egress]` that lead to an entry of the gateway itself: what a peer's client sends there goes out to a peer again.

use super::settings::GatewayConfig;
use crate::own_address::{listed, special};
use core::iter::once;
use std::net::{IpAddr, SocketAddr};

/// The entries of this gateway that its own `allow` permits to peers' clients, each with what it is.
pub(super) fn permitted(config: &GatewayConfig) -> Vec<(SocketAddr, &'static str)> {
    let forwards = config
        .forwards
        .iter()
        .map(|one| (one.listen, "[[forward]]"));
    let socks = config.socks.iter().map(|one| (one.listen, "[[socks]]"));
    let entries = forwards.chain(socks);
    let permitted = entries.filter_map(|(listen, what)| {
        let mut reached = addresses(listen);
        let address = reached.find(|address| permits(config, *address))?;
        Some((address, what))
    });
    permitted.collect()
}

/// The addresses by which a listener is reached from this machine.
fn addresses(listen: SocketAddr) -> impl Iterator<Item = SocketAddr> {
    let all = listen.ip().is_unspecified().then(listed);
    let fits = move |ip: &IpAddr| listen.is_ipv6() || ip.is_ipv4();
    let any = all.into_iter().flatten().filter(fits);
    once(listen.ip())
        .chain(any)
        .map(move |ip| SocketAddr::new(ip, listen.port()))
}

/// Whether a rule permits an address though it is this machine's own.
fn permits(config: &GatewayConfig, address: SocketAddr) -> bool {
    let ip = address.ip();
    let whole = if ip.is_ipv4() { 32 } else { 128 };
    let bits = special(ip).unwrap_or(whole);
    let mut rules = config.egress.allow.iter();
    rules.any(|rule| {
        let by_name = ip.is_loopback() && rule.name("localhost", address.port());
        by_name || rule.address_within(address, bits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::config::explain::explain;

    fn config(listen: &str, allow: &str) -> GatewayConfig {
        let text = format!(
            "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\nrate = \"5mbit\"\n\
             [[forward]]\nlisten = \"{listen}\"\nto = \"10.0.0.9:80\"\n[egress]\nallow = [\"{allow}\"]\n"
        );
        GatewayConfig::read("a.toml", &text).expect("it is sound")
    }

    #[test]
    fn a_permission_that_leads_back_into_the_gateway_is_said() {
        for (listen, allow) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("127.0.0.1:8080", "127.0.0.0/8:1-65535"),
            ("127.0.0.1:8080", "localhost:8000-9000"),
            ("0.0.0.0:8080", "127.0.0.1:8080"),
        ] {
            let told = explain(&config(listen, allow));
            let words = "127.0.0.1:8080, where this gateway itself listens ([[forward]])";
            assert!(told.contains(words), "{listen} {allow}: {told}");
        }
        for (listen, allow) in [
            ("127.0.0.1:8080", "127.0.0.1:8081"),
            // Neither a wide network nor another name stands for this machine.
            ("127.0.0.1:8080", "0.0.0.0/0:8080"),
            ("127.0.0.1:8080", "host.example:8080"),
            ("127.0.0.2:8080", "127.0.0.1:8080"),
        ] {
            let told = explain(&config(listen, allow));
            assert!(!told.contains("itself listens"), "{listen} {allow}: {told}");
        }
    }
}
