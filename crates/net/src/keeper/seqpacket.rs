//! Unix sockets that keep the borders of messages and carry descriptors beside them.

use super::message::MESSAGE_BYTES_MAX;
use core::mem::MaybeUninit;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Connections that wait to be accepted; there is one gateway.
const BACKLOG: i32 = 4;

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    Ok(rustix::net::socket_with(family, kind, flags, None)?)
}

/// Listens at `path`, where nothing is.
pub(super) fn listen(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket()?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Connects to whoever of our user listens at `path`.
pub(super) fn connect(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket()?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    // Sockets that somebody else hands us would be somebody else's connections.
    let peer = rustix::net::sockopt::socket_peercred(&socket)?;
    if peer.uid != rustix::process::geteuid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(socket)
}

/// The next connection, if it is of a process of our user.
pub(super) fn accept(listener: impl AsFd) -> io::Result<Option<OwnedFd>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connection = rustix::net::accept_with(listener, flags)?;
    let peer = rustix::net::sockopt::socket_peercred(&connection)?;
    Ok((peer.uid == rustix::process::geteuid()).then_some(connection))
}

/// Sends a message, and a descriptor beside it, without waiting.
pub(super) fn send(
    connection: impl AsFd,
    message: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.map(|descriptor| [descriptor]);
    if let Some(descriptors) = &descriptors {
        let pushed = control.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(pushed, "the space is for one descriptor");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(connection, &[IoSlice::new(message)], &mut control, flags)?;
    Ok(())
}

/// A received message; `None` when the other side is gone.
pub(super) type Received = Option<(Vec<u8>, Option<OwnedFd>)>;

/// The next message, without waiting.
pub(super) fn receive(connection: impl AsFd) -> io::Result<Received> {
    let mut octets = vec![0; MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut octets)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let mut once = || rustix::net::recvmsg(&connection, &mut into, &mut control, flags);
    // A process that died with messages unread resets its end. The kernel tells that once, before the messages
    // that it had sent.
    let received = match once() {
        Err(rustix::io::Errno::CONNRESET) => once()?,
        received => received?,
    };
    let descriptor = control.drain().find_map(|beside| match beside {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    if received.bytes == 0 {
        return Ok(None);
    }
    octets.truncate(received.bytes);
    Ok(Some((octets, descriptor)))
}
