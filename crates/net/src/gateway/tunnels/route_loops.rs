//! Ways that would go round in a circle: datagrams of a tunnel into its own device, refused at the start, and connections for
//! a peer that would go back to it.

use crate::gateway::GatewayError;
use crate::gateway::config::{GatewayConfig, PeerSettings, TunnelSettings};
use fulmar_proto::splice::Host;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The port that the kernel is asked with where there is none: a route does not depend on it.
const ANY_PORT: u16 = 1;

/// Refuses tunnels that the kernel would send their peer's datagrams into. It is asked once the routes are there, so a more
/// exact route to the peer counts.
///
/// # Errors
/// [`GatewayError::TunnelLoop`].
pub(super) fn refuse(config: &GatewayConfig) -> Result<(), GatewayError> {
    for tunnel in &config.tunnels {
        let Some(peer) = config.peers.get(tunnel.peer) else {
            continue;
        };
        let mut looped = routed_addresses(peer).filter(|to| has_its_way_in(tunnel, *to));
        if let Some(address) = looped.next() {
            return Err(GatewayError::TunnelLoop {
                peer: peer.name.clone(),
                address: address.ip(),
                device: tunnel.device.clone(),
            });
        }
    }
    Ok(())
}

/// The addresses of a peer to which the kernel's routes alone show the way. Names are not among them: the start waits for none.
/// Nor are those of paths from an address or by a device of their own, for which routes may differ.
fn routed_addresses(peer: &PeerSettings) -> impl Iterator<Item = SocketAddr> {
    let main = peer
        .address
        .as_ref()
        .and_then(|address| match address.host {
            Host::Address(ip) => Some(SocketAddr::new(ip, address.port)),
            _ => None,
        });
    let plain = peer.paths.iter().filter(|path| !path.has_own_socket());
    main.into_iter()
        .chain(plain.filter_map(|path| path.address))
}

/// Whether a connection from here to `ip` would go into a tunnel to `peer`.
pub(in crate::gateway) fn leads_back(config: &GatewayConfig, peer: usize, ip: IpAddr) -> bool {
    let mut tunnels = config.tunnels.iter().filter(|tunnel| tunnel.peer == peer);
    // Settings may name the network of which the kernel knows a part by another way.
    tunnels.any(|it| it.leads_to(ip) && has_its_way_in(it, SocketAddr::new(ip, ANY_PORT)))
}

/// Whether the kernel would send to `to` from an address of the tunnel, and so into its device.
fn has_its_way_in(tunnel: &TunnelSettings, to: SocketAddr) -> bool {
    let from = source_towards(to);
    from.is_some_and(|from| tunnel.addresses.iter().any(|own| own.ip() == from))
}

/// The address from which the kernel would send to `to`. Nothing is sent.
fn source_towards(to: SocketAddr) -> Option<IpAddr> {
    let any = match to.ip() {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(to).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gateway whose tunnel has the address from which the kernel sends to the loopback, and a peer with these lines.
    fn config(peer: &str) -> GatewayConfig {
        let text = format!(
            "[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\nrate = \"1mbit\"\n{peer}\
             [[tunnel]]\naddress = \"127.0.0.1/8\"\n"
        );
        GatewayConfig::read("a.toml", &text).unwrap()
    }

    fn refused(peer: &str) -> Option<IpAddr> {
        match refuse(&config(peer)) {
            Err(GatewayError::TunnelLoop { address, .. }) => Some(address),
            _ => None,
        }
    }

    #[test]
    fn neither_the_peers_address_nor_that_of_a_further_path_may_lead_into_its_tunnel() {
        let loopback = "127.0.0.1".parse().ok();
        assert_eq!(refused("address = \"127.0.0.1:4914\"\n"), loopback);
        let path = "address = \"192.0.2.1:4914\"\n[[peer.path]]\n";
        assert_eq!(
            refused(&format!("{path}address = \"127.0.0.1:4915\"\n")),
            loopback
        );
        // Its device is its way, whatever the routes say.
        let by = "address = \"127.0.0.1:4915\"\ndevice = \"lo\"\n";
        assert_eq!(refused(&format!("{path}{by}")), None);
    }

    #[test]
    fn only_what_goes_into_a_tunnel_of_the_same_peer_leads_back() {
        let config = config("");
        let ip = |text: &str| text.parse().unwrap();
        assert!(leads_back(&config, 0, ip("127.0.0.2")));
        // The tunnel's own address, another peer, and what is outside of the tunnel's networks.
        assert!(!leads_back(&config, 0, ip("127.0.0.1")));
        assert!(!leads_back(&config, 1, ip("127.0.0.2")));
        assert!(!leads_back(&config, 0, ip("192.0.2.1")));
    }
}
