//! A tunnel whose own datagrams would go into its device: refused at the start, for they would go round in a circle.

use crate::gateway::GatewayError;
use crate::gateway::config::GatewayConfig;
use fulmar_proto::splice::Host;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Refuses tunnels that the kernel would send their peer's datagrams into. It is asked once the routes are there, so a more
/// exact route to the peer counts. Peers with names are not looked at: the start waits for no name.
///
/// # Errors
/// [`GatewayError::TunnelLoop`].
pub(super) fn refuse(config: &GatewayConfig) -> Result<(), GatewayError> {
    for tunnel in &config.tunnels {
        let peer = config.peers.get(tunnel.peer);
        let Some((peer, address)) = peer.and_then(|peer| Some((peer, peer.address.as_ref()?)))
        else {
            continue;
        };
        let Host::Address(ip) = address.host else {
            continue;
        };
        let Some(from) = source_towards(ip, address.port) else {
            continue;
        };
        if tunnel.addresses.iter().any(|own| own.ip() == from) {
            return Err(GatewayError::TunnelLoop {
                peer: peer.name.clone(),
                address: ip,
                device: tunnel.device.clone(),
            });
        }
    }
    Ok(())
}

/// The address from which the kernel would send to `ip`. Nothing is sent.
fn source_towards(ip: IpAddr, port: u16) -> Option<IpAddr> {
    let any = match ip {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((ip, port)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}
