//! Datagram sockets of entries: who sent, where to before the kernel diverted it, and with which
//! code point.

use super::config::Dscp;
use nix::sys::socket::sockopt::{Ipv4OrigDstAddr, Ipv6OrigDstAddr};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmsg, setsockopt,
};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

/// The largest UDP payload (RFC 768).
pub(super) const MESSAGE_MAX: usize = 65_507;

/// A datagram's circumstances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub(super) len: usize,
    pub(super) from: SocketAddr,
    /// Where the client sent it, for diverted ones.
    pub(super) original: Option<SocketAddr>,
    pub(super) dscp: Option<Dscp>,
}

/// A socket that hears code points, and, if `transparent`, original destinations.
pub(super) fn listen(local: SocketAddr, transparent: bool) -> io::Result<UdpSocket> {
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
    socket.set_nonblocking(true)?;
    socket.bind(&local.into())?;
    Ok(socket.into())
}

/// Lets a socket use addresses that are not this host's. Needs `CAP_NET_ADMIN`.
pub(super) fn make_transparent(socket: &Socket, local: SocketAddr) -> io::Result<()> {
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
pub(super) fn speak_as(original: SocketAddr, client: SocketAddr) -> io::Result<UdpSocket> {
    let original = SocketAddr::new(original.ip().to_canonical(), original.port());
    let socket = Socket::new(
        Domain::for_address(original),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    make_transparent(&socket, original)?;
    // Several clients of one destination.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&original.into())?;
    // A socket for both families calls IPv4 clients by their mapped addresses; this one is for one.
    let client = SocketAddr::new(client.ip().to_canonical(), client.port());
    socket.connect(&client.into())?;
    Ok(socket.into())
}

/// A socket that speaks to `destination` alone.
pub(super) fn speak_to(destination: SocketAddr) -> io::Result<UdpSocket> {
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
pub(super) fn receive(socket: &UdpSocket, into: &mut [u8]) -> io::Result<Received> {
    // sockaddr_in6 is the largest of the addresses told here.
    let mut space = nix::cmsg_space!([u8; 28], i32, i32);
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
    };
    for extra in message.cmsgs()? {
        match extra {
            ControlMessageOwned::Ipv4OrigDstAddr(v4) => {
                received.original = Some(SocketAddrV4::from(SockaddrIn::from(v4)).into());
            }
            ControlMessageOwned::Ipv6OrigDstAddr(v6) => {
                received.original = Some(SocketAddrV6::from(SockaddrIn6::from(v6)).into());
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
