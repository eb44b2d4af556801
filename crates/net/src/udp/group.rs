//! Ports that send to many at once, or listen to what is sent so.

use super::port::UdpPort;
use nix::net::if_::if_nametoindex;
use socket2::{InterfaceIndexOrAddress, SockRef};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The index of a device; 0, by which the kernel chooses one itself, for none.
fn index_of(device: Option<&str>) -> io::Result<u32> {
    Ok(device.map(if_nametoindex).transpose()?.unwrap_or(0))
}

impl UdpPort {
    /// Permits what goes to `remote`: to all hosts of a network, or to a group over at most `hops` hops.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn permit_many(&self, remote: SocketAddr, hops: u8) -> io::Result<()> {
        let socket = SockRef::from(self);
        match remote {
            SocketAddr::V4(remote) if remote.ip().is_multicast() => {
                socket.set_multicast_ttl_v4(hops.into())
            }
            SocketAddr::V4(_) => socket.set_broadcast(true),
            SocketAddr::V6(_) => socket.set_multicast_hops_v6(hops.into()),
        }
    }

    /// Listens to a group as well, by `device` or by one that the kernel chooses. The kernel tells the routers of the network so, in
    /// packets of its own (IGMP, MLD).
    ///
    /// # Errors
    /// The address is no group's, there is no such device, or the kernel refuses.
    pub fn join(&self, group: IpAddr, device: Option<&str>) -> io::Result<()> {
        let index = index_of(device)?;
        let socket = SockRef::from(self);
        match group {
            IpAddr::V4(group) => {
                socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(index))
            }
            IpAddr::V6(group) => socket.join_multicast_v6(&group, index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::PortConfig;
    use super::*;

    #[test]
    fn a_group_is_joined_and_another_address_is_refused() {
        let port = UdpPort::bind(([0, 0, 0, 0], 0).into(), PortConfig::default()).expect("a port");
        port.join(IpAddr::from([239, 1, 2, 3]), Some("lo"))
            .expect("it is a group");
        assert!(port.join(IpAddr::from([127, 0, 0, 1]), Some("lo")).is_err());
        assert!(
            port.join(IpAddr::from([239, 1, 2, 3]), Some("no-such-device"))
                .is_err()
        );
        let local = ([239, 1, 2, 3], 9).into();
        port.permit_many(local, 3).expect("it is permitted");
        assert_eq!(
            SockRef::from(&port).multicast_ttl_v4().expect("it is told"),
            3
        );
        assert!(!SockRef::from(&port).broadcast().expect("it is told"));
        port.permit_many(([10, 255, 255, 255], 9).into(), 1)
            .expect("it is permitted");
        assert!(SockRef::from(&port).broadcast().expect("it is told"));
    }
}
