//! The network interfaces of this machine that are up, with their addresses, and the kernel's word that something changed there.

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The groups of rtnetlink(7) whose messages tell of interfaces and of their IPv4 and IPv6 addresses: `RTMGRP_LINK`,
/// `RTMGRP_IPV4_IFADDR`, `RTMGRP_IPV6_IFADDR`.
const GROUPS: u32 = 0x1 | 0x10 | 0x100;
/// Messages read in one go; more of them ring again.
const MESSAGES_PER_LOOK: usize = 64;

/// An interface that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) struct NetInterface {
    pub(in crate::gateway) name: String,
    /// The kernel's number: one that is unplugged and plugged in again has another.
    pub(in crate::gateway) index: u32,
    pub(in crate::gateway) addresses: BTreeSet<IpAddr>,
}

/// The interfaces that are up now.
///
/// # Errors
/// The kernel does not tell, for want of descriptors or of memory for instance.
pub(in crate::gateway) fn interfaces_up() -> io::Result<Vec<NetInterface>> {
    let entries = nix::ifaddrs::getifaddrs()?;
    let mut found: Vec<NetInterface> = Vec::new();
    for entry in entries {
        if !entry.flags.contains(nix::net::if_::InterfaceFlags::IFF_UP) {
            continue;
        }
        let known = (found.iter()).position(|one| one.name == entry.interface_name);
        let place = if let Some(place) = known {
            place
        } else {
            let index = match nix::net::if_::if_nametoindex(entry.interface_name.as_str()) {
                Ok(index) => index,
                // It is gone since it was listed.
                Err(nix::errno::Errno::ENODEV | nix::errno::Errno::ENXIO) => continue,
                Err(error) => return Err(error.into()),
            };
            found.push(NetInterface {
                name: entry.interface_name,
                index,
                addresses: BTreeSet::new(),
            });
            found.len() - 1
        };
        let address = entry.address.as_ref().and_then(crate::own_address::ip_of);
        if let Some((one, address)) = found.get_mut(place).zip(address) {
            one.addresses.insert(address);
        }
    }
    Ok(found)
}

/// A socket that is readable once interfaces or their addresses have changed. The messages are not read: what they tell is
/// listed anew, which is right also where the kernel had no room for all of them.
#[derive(Debug)]
pub(in crate::gateway) struct InterfaceBell(OwnedFd);

impl InterfaceBell {
    pub(in crate::gateway) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let family = AddressFamily::NETLINK;
        // `NETLINK_ROUTE` is protocol 0.
        let socket = socket_with(family, SocketType::RAW, flags, None)?;
        // The kernel chooses the port.
        bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
        Ok(Self(socket))
    }

    /// Takes the messages that came.
    pub(in crate::gateway) fn silence(&self) {
        let mut start = [0_u8; 16];
        for _ in 0..MESSAGES_PER_LOOK {
            match recv(&self.0, &mut start, RecvFlags::empty()) {
                // Messages were lost, which one listing makes good.
                Ok(_) | Err(rustix::io::Errno::NOBUFS | rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

impl AsFd for InterfaceBell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_listed_with_its_number_and_address() {
        let up = interfaces_up().expect("the kernel tells");
        let lo = up.iter().find(|one| one.name == "lo").expect("it is up");
        assert_eq!(lo.index, 1);
        assert!(lo.addresses.contains(&IpAddr::from([127, 0, 0, 1])));
    }

    #[test]
    fn nothing_rings_while_nothing_changes() {
        let bell = InterfaceBell::open().expect("everybody may listen");
        let told = recv(&bell.0, &mut [0_u8; 16], RecvFlags::empty());
        assert_eq!(told.err(), Some(rustix::io::Errno::AGAIN));
    }
}
