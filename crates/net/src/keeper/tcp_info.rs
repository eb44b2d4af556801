//! The kernel's counters of a TCP connection.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `IPPROTO_TCP` and `TCP_INFO` (linux/in.h, linux/tcp.h).
const IPPROTO_TCP: i32 = 6;
const TCP_INFO: i32 = 11;
/// `SIOCOUTQ` (linux/sockios.h), an alias of `TIOCOUTQ`.
const SIOCOUTQ: rustix::ioctl::Opcode = 0x5411;

/// A connection's state, as far as the ends of both directions go (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Neither end was sent, or the connection is not there yet.
    Open,
    /// Our end was sent.
    EndSent,
    /// The other host's end was received.
    EndReceived,
    /// Our end was sent, and the other host's received.
    BothEnds,
    /// Over: by both ends, or by a reset. The kernel does not say which.
    Closed,
}

/// A part of `struct tcp_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TcpInfo {
    pub(super) state: State,
    /// Sequence numbers acknowledged by the other host: its SYN's answer and an end count as one.
    pub(super) acked: u64,
    /// Sequence numbers received in order: an end counts as one.
    pub(super) received: u64,
    /// Octets sent, retransmissions included.
    pub(super) sent: u64,
    /// Octets retransmitted.
    pub(super) sent_again: u64,
}

/// Places in `struct tcp_info` (linux/tcp.h; fields are only ever added at its end).
mod place {
    pub(super) const STATE: usize = 0;
    pub(super) const BYTES_ACKED: usize = 120;
    pub(super) const BYTES_RECEIVED: usize = 128;
    pub(super) const BYTES_SENT: usize = 200;
    pub(super) const BYTES_RETRANS: usize = 208;
    /// Up to and including the last of these (Linux 4.19).
    pub(super) const END: usize = 216;
}

impl TcpInfo {
    /// # Errors
    /// This is no TCP socket, or the kernel is older than 4.19.
    pub(super) fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut octets = [0_u8; place::END];
        let descriptor = socket.as_fd().as_raw_fd();
        let len = uapi::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &mut octets)
            .map_err(|error| io::Error::from_raw_os_error(error.0))?;
        if len < place::END {
            return Err(io::Error::other("this kernel does not count what TCP sent"));
        }
        let count = |place: usize| {
            let octets = octets.get(place..).and_then(|rest| rest.first_chunk());
            octets.map_or(0, |octets| u64::from_ne_bytes(*octets))
        };
        Ok(Self {
            // net/tcp_states.h.
            state: match octets[place::STATE] {
                4 | 5 => State::EndSent,
                6 | 9 | 11 => State::BothEnds,
                7 => State::Closed,
                8 => State::EndReceived,
                _ => State::Open,
            },
            acked: count(place::BYTES_ACKED),
            received: count(place::BYTES_RECEIVED),
            sent: count(place::BYTES_SENT),
            sent_again: count(place::BYTES_RETRANS),
        })
    }
}

/// Sequence numbers given to the kernel that the other host has not acknowledged: octets, and an
/// end (tcp(7)).
///
/// # Errors
/// The socket is broken.
#[expect(
    unsafe_code,
    reason = "no crate offers this ioctl behind a safe function"
)]
pub(crate) fn unacknowledged(socket: impl AsFd) -> io::Result<u64> {
    // SAFETY: SIOCOUTQ writes one int to the pointer that `Getter` provides and touches nothing
    // else (tcp(7); net/ipv4/tcp.c, tcp_ioctl).
    let count = unsafe {
        rustix::ioctl::ioctl(
            socket,
            rustix::ioctl::Getter::<SIOCOUTQ, core::ffi::c_int>::new(),
        )
    }?;
    Ok(u64::try_from(count).unwrap_or(0))
}
