//! Datagram sockets of entries, which tell a datagram's sender, its destination before the kernel diverted it, and its
//! code point.

use crate::gateway::config::Dscp;
use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::sockopt::{
    Ipv4OrigDstAddr, Ipv4PacketInfo, Ipv6OrigDstAddr, Ipv6RecvPacketInfo,
};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage,
    recvmsg, sendmsg, setsockopt,
};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

/// The largest UDP payload (RFC 768).
pub(in crate::gateway) const MESSAGE_MAX: usize = 65_507;

/// A received datagram's length, addresses and code point.
#[derive(Clone, Copy, Debug)]
pub(in crate::gateway) struct Received {
    pub(in crate::gateway) len: usize,
    pub(in crate::gateway) from: SocketAddr,
    /// The destination that the client sent it to, for diverted ones.
    pub(in crate::gateway) original: Option<SocketAddr>,
    pub(in crate::gateway) dscp: Option<Dscp>,
    /// The address of this host that it was sent to, at a port of all of them.
    pub(in crate::gateway) here: Option<Here>,
}

/// One of this host's addresses, and the interface if the address means something only there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::gateway) struct Here {
    ip: IpAddr,
    interface: u32,
}

impl Here {
    fn new(ip: IpAddr, interface: u32) -> Self {
        let is_local = matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
        Self {
            ip,
            interface: if is_local { interface } else { 0 },
        }
    }
}

/// A socket that hears code points and, if `transparent`, original destinations. Otherwise, at a port of every
/// address, it hears the address that was asked.
pub(in crate::gateway) fn listen(local: SocketAddr, transparent: bool) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
    if local.is_ipv6() {
        socket.set_only_v6(!local.ip().is_unspecified())?;
        socket.set_recv_tclass_v6(true)?;
    }
    // A socket for both families has both options; one for IPv6 alone refuses this one.
    let v4 = socket.set_recv_tos_v4(true);
    if local.is_ipv4() {
        v4?;
    }
    if transparent {
        make_transparent(&socket, local)?;
        if local.is_ipv6() {
            setsockopt(&socket, Ipv6OrigDstAddr, &true)?;
        }
        let v4 = setsockopt(&socket, Ipv4OrigDstAddr, &true);
        if local.is_ipv4() {
            v4?;
        }
    }
    if local.ip().is_unspecified() && !transparent {
        if local.is_ipv6() {
            setsockopt(&socket, Ipv6RecvPacketInfo, &true)?;
        } else {
            setsockopt(&socket, Ipv4PacketInfo, &true)?;
        }
    }
    socket.set_nonblocking(true)?;
    socket.bind(&local.into())?;
    // Only after binding: a port that somebody has must be refused, and a port of ours must not keep
    // [`speak_as`] from a foreign address with the same port.
    socket.set_reuse_address(true)?;
    Ok(socket.into())
}

/// Sends `message` to `to`, from the address that was asked.
pub(in crate::gateway) fn answer(
    socket: &UdpSocket,
    from: Option<Here>,
    to: SocketAddr,
    message: &[u8],
) -> io::Result<()> {
    let Some(from) = from else {
        return socket.send_to(message, to).map(drop);
    };
    let to = SockaddrStorage::from(to);
    let pieces = [IoSlice::new(message)];
    let send = |control: ControlMessage<'_>| {
        let flags = MsgFlags::MSG_DONTWAIT;
        sendmsg(socket.as_raw_fd(), &pieces, &[control], flags, Some(&to))
    };
    match from.ip {
        IpAddr::V4(v4) => send(ControlMessage::Ipv4PacketInfo(&in_pktinfo {
            ipi_ifindex: 0,
            ipi_spec_dst: in_addr {
                s_addr: u32::from_ne_bytes(v4.octets()),
            },
            ipi_addr: in_addr { s_addr: 0 },
        })),
        IpAddr::V6(v6) => send(ControlMessage::Ipv6PacketInfo(&in6_pktinfo {
            ipi6_addr: in6_addr {
                s6_addr: v6.octets(),
            },
            ipi6_ifindex: from.interface,
        })),
    }?;
    Ok(())
}

/// Lets a socket use addresses that are not this host's. Needs `CAP_NET_ADMIN`.
pub(in crate::gateway) fn make_transparent(socket: &Socket, local: SocketAddr) -> io::Result<()> {
    if local.is_ipv6() {
        socket.set_ip_transparent_v6(true)?;
        // For IPv4 on a socket for both; refused for IPv6 alone.
        drop(socket.set_ip_transparent_v4(true));
        Ok(())
    } else {
        socket.set_ip_transparent_v4(true)
    }
}

/// A socket that speaks to `client` from `original`, an address that is not this host's.
pub(in crate::gateway) fn speak_as(
    original: SocketAddr,
    client: SocketAddr,
) -> io::Result<UdpSocket> {
    let original = SocketAddr::new(original.ip().to_canonical(), original.port());
    let socket = Socket::new(
        Domain::for_address(original),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    make_transparent(&socket, original)?;
    // Several clients may have one destination.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&original.into())?;
    // A socket for both families calls IPv4 clients by their mapped addresses; this socket is for one family.
    let client = SocketAddr::new(client.ip().to_canonical(), client.port());
    socket.connect(&client.into())?;
    Ok(socket.into())
}

/// A socket that speaks to `destination` alone.
pub(in crate::gateway) fn speak_to(destination: SocketAddr) -> io::Result<UdpSocket> {
    let domain = Domain::for_address(destination);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.connect(&destination.into())?;
    Ok(socket.into())
}

fn plain(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address
        .as_sockaddr_in()
        .map(|v4| SocketAddrV4::from(*v4).into());
    v4.or_else(|| {
        address
            .as_sockaddr_in6()
            .map(|v6| SocketAddrV6::from(*v6).into())
    })
}

/// The next datagram.
pub(in crate::gateway) fn receive(socket: &UdpSocket, into: &mut [u8]) -> io::Result<Received> {
    // sockaddr_in6 is the largest of the addresses here.
    let mut space = nix::cmsg_space!([u8; 28], i32, i32, in6_pktinfo);
    let mut pieces = [IoSliceMut::new(into)];
    let message = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut pieces,
        Some(&mut space),
        MsgFlags::MSG_DONTWAIT,
    )?;
    let from = message.address.as_ref().and_then(plain);
    let mut received = Received {
        len: message.bytes,
        from: from.ok_or_else(|| io::Error::other("a datagram without a source"))?,
        original: None,
        dscp: None,
        here: None,
    };
    for extra in message.cmsgs()? {
        match extra {
            ControlMessageOwned::Ipv4OrigDstAddr(v4) => {
                received.original = Some(SocketAddrV4::from(SockaddrIn::from(v4)).into());
            }
            ControlMessageOwned::Ipv6OrigDstAddr(v6) => {
                received.original = Some(SocketAddrV6::from(SockaddrIn6::from(v6)).into());
            }
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                let ip = Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes());
                received.here = Some(Here::new(ip.into(), 0));
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                let ip = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                received.here = Some(Here::new(ip.into(), info.ipi6_ifindex));
            }
            ControlMessageOwned::Ipv4Tos(tos) => received.dscp = Some(Dscp::from_tos(tos)),
            ControlMessageOwned::Ipv6TClass(class) => {
                received.dscp = u8::try_from(class).ok().map(Dscp::from_tos);
            }
            _ => {}
        }
    }
    Ok(received)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_port_of_every_address_answers_from_the_one_that_was_asked() {
        for (any, asked) in [
            ("0.0.0.0:0", "127.0.0.2"),
            ("[::]:0", "127.0.0.2"),
            ("[::]:0", "::1"),
        ] {
            let port = listen(any.parse().unwrap(), false).unwrap();
            let number = port.local_addr().unwrap().port();
            let asked: IpAddr = asked.parse().unwrap();
            let any = match asked {
                IpAddr::V4(_) => "127.0.0.1:0",
                IpAddr::V6(_) => "[::1]:0",
            };
            let client = UdpSocket::bind(any).unwrap();
            // It hears nothing from another address.
            client.connect((asked, number)).unwrap();
            client
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            client.send(b"which?").unwrap();
            let mut buffer = [0; 100];
            let received = loop {
                match receive(&port, &mut buffer) {
                    Ok(received) => break received,
                    Err(_) => std::thread::yield_now(),
                }
            };
            assert_eq!(&buffer[..received.len], b"which?");
            assert!(received.here.is_some());
            answer(&port, received.here, received.from, b"this").unwrap();
            let len = client.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..len], b"this", "{asked}");
        }
    }

    #[test]
    fn a_port_is_taken_for_other_entries_and_not_for_a_foreign_address_with_its_number() {
        let entry = listen("0.0.0.0:0".parse().unwrap(), false).unwrap();
        let number = entry.local_addr().unwrap().port();
        let second = listen((Ipv4Addr::UNSPECIFIED, number).into(), false);
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        // As `speak_as` does, which needs a capability for addresses that are not this host's.
        let foreign = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        foreign.set_reuse_address(true).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 2], number));
        foreign.bind(&address.into()).unwrap();
    }
}
