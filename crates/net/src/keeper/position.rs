//! The octets that went through a socket, from the kernel's counters.
//!
//! Nothing that a process writes down can say this after `kill -9`: the kill may come between a `write`
//! and its note. The kernel knows. It counts sequence numbers, so a SYN and an end are among them:
//! the first is in the [`Baseline`], and ends show in the state.
//!
//! ```text
//!   taken = received - end received - unread - baseline               (TCP_INFO, SIOCINQ)
//!   given = acknowledged + SIOCOUTQ - SYN - end sent - baseline       (TCP_INFO, SIOCOUTQ)
//! ```
//!
//! Sources: tcp(7); Linux net/ipv4/tcp.c (`tcp_ioctl`, `tcp_inq`, `tcp_get_info`).

use super::tcp_info::{State, TcpInfo, unacknowledged};
use fulmar_proto::splice::Role;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;

/// The position of a connection when its flow began, which need not be its first octet: a proxy's client has
/// sent a request before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// Octets that were read from the socket and are not the flow's.
    pub taken: u64,
    /// Octets that were written to the socket and are not the flow's.
    pub given: u64,
    /// Sequence numbers that setting up took: 1 where we connected, else 0.
    pub syn: u64,
}

/// The position of a connection, in octets since its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Octets that were read from the socket.
    pub taken: u64,
    /// Octets from before its beginning that were not read yet: the first ones in the socket.
    pub ahead: u64,
    /// Octets in the socket that can be read.
    pub unread: u64,
    /// Octets that were written to the socket.
    pub given: u64,
    /// Octets of them that the other host has acknowledged.
    pub acknowledged: u64,
    /// Whether we have sent our end.
    pub end_sent: bool,
    /// Whether the other host has sent its end.
    pub end_received: bool,
    /// Whether the connection is over, by both ends or by a reset; the next read or write tells which.
    pub closed: bool,
}

/// The most readings of the counters until two agree; each takes microseconds.
const READINGS_MAX: usize = 1000;

impl Baseline {
    /// The baseline of a connection that nothing was read from or written to.
    pub const fn fresh(role: Role) -> Self {
        let syn = match role {
            Role::Acceptor => 1,
            Role::Opener => 0,
        };
        Self {
            taken: 0,
            given: 0,
            syn,
        }
    }

    /// The baseline of an established connection, as it stands. The acceptor of a flow connects to the destination; a
    /// client connects to the opener.
    ///
    /// # Errors
    /// The socket is not TCP, the kernel older than 4.19, or its counters do not stand still
    /// ([`ErrorKind::WouldBlock`]).
    pub fn of(socket: impl AsFd, role: Role) -> io::Result<Self> {
        let raw = Self::fresh(role);
        let stands = raw.position(socket)?;
        Ok(Self {
            taken: stands.taken,
            given: stands.given,
            ..raw
        })
    }

    /// The present position of the connection.
    ///
    /// # Errors
    /// The socket is not TCP, the kernel is older than 4.19, or the counters do not stand still
    /// ([`ErrorKind::WouldBlock`]).
    pub fn position(self, socket: impl AsFd) -> io::Result<Position> {
        let mut before = TcpInfo::of(&socket)?;
        for _ in 0..READINGS_MAX {
            let unacknowledged = unacknowledged(&socket)?;
            let unread = rustix::io::ioctl_fionread(&socket)?;
            let after = TcpInfo::of(&socket)?;
            if (before.state, before.acked, before.received)
                == (after.state, after.acked, after.received)
            {
                return Ok(self.reckon(&after, unacknowledged, unread));
            }
            before = after;
        }
        Err(io::Error::new(
            ErrorKind::WouldBlock,
            "a TCP connection's counters do not stand still",
        ))
    }

    fn reckon(self, info: &TcpInfo, unacknowledged: u64, unread: u64) -> Position {
        let acked = info.acked.saturating_sub(self.syn);
        let (end_sent, end_received) = match info.state {
            State::Open => (false, false),
            State::EndSent => (true, false),
            State::EndReceived => (false, true),
            State::BothEnds => (true, true),
            // A connection that ended well had all acknowledged: one more than its octets.
            State::Closed => {
                let ended = acked > info.sent.saturating_sub(info.sent_again);
                (ended, ended)
            }
        };
        let end = u64::from(end_sent);
        // An end is the last to be acknowledged.
        let end_acknowledged = u64::from(end_sent && unacknowledged == 0);
        let read = info
            .received
            .saturating_sub(u64::from(end_received))
            .saturating_sub(unread);
        Position {
            taken: read.saturating_sub(self.taken),
            ahead: self.taken.saturating_sub(read),
            unread,
            given: (acked + unacknowledged).saturating_sub(end + self.given),
            acknowledged: acked.saturating_sub(end_acknowledged + self.given),
            end_sent,
            end_received,
            closed: info.state == State::Closed,
        }
    }
}

#[cfg(test)]
mod tests;
