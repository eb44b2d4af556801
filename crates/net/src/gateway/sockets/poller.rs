//! All local sockets behind one descriptor (`epoll`), so that the UDP loop waits for them too.
//!
//! Streams and datagram sockets are watched for edges: a flow remembers that it may read or write
//! until the kernel says otherwise, and back-pressure costs no system call. Listeners are watched
//! for levels, since one turn need not accept everything.

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The name of a watched socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::gateway) struct Token(pub(in crate::gateway) u64);

/// An event at a socket.
#[derive(Clone, Copy, Debug)]
pub(in crate::gateway) struct Came {
    pub(in crate::gateway) token: Token,
    pub(in crate::gateway) readable: bool,
    pub(in crate::gateway) writable: bool,
}

/// Sockets looked at in one turn; the others wait for the next.
const EVENTS_PER_TURN: usize = 256;

/// An `epoll` instance.
pub(in crate::gateway) struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl core::fmt::Debug for Poller {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Poller").field(&self.epoll).finish()
    }
}

impl Poller {
    pub(in crate::gateway) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(EVENTS_PER_TURN),
        })
    }

    /// Watches for arrivals, as long as there are any.
    pub(in crate::gateway) fn watch_level(
        &self,
        socket: impl AsFd,
        token: Token,
    ) -> io::Result<()> {
        let data = EventData::new_u64(token.0);
        Ok(epoll::add(&self.epoll, socket, data, EventFlags::IN)?)
    }

    /// Stops watching a socket, which was watched for levels, for a while.
    pub(in crate::gateway) fn pause(&self, socket: impl AsFd) -> io::Result<()> {
        let data = EventData::new_u64(u64::MAX);
        Ok(epoll::modify(
            &self.epoll,
            socket,
            data,
            EventFlags::empty(),
        )?)
    }

    /// Watches it again.
    pub(in crate::gateway) fn resume(&self, socket: impl AsFd, token: Token) -> io::Result<()> {
        let data = EventData::new_u64(token.0);
        Ok(epoll::modify(&self.epoll, socket, data, EventFlags::IN)?)
    }

    /// Watches for changes in both directions. A socket leaves by being closed.
    pub(in crate::gateway) fn watch_edges(
        &self,
        socket: impl AsFd,
        token: Token,
    ) -> io::Result<()> {
        let data = EventData::new_u64(token.0);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, data, flags)?)
    }

    /// Gives a watched socket another token and arms its edges anew.
    pub(in crate::gateway) fn rename(&self, socket: impl AsFd, token: Token) -> io::Result<()> {
        let data = EventData::new_u64(token.0);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::modify(&self.epoll, socket, data, flags)?)
    }

    /// Collects the events since the last call, without waiting. `true` if there may be more.
    pub(in crate::gateway) fn collect(&mut self, into: &mut Vec<Came>) -> io::Result<bool> {
        self.events.clear();
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&now)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        into.clear();
        into.extend(self.events.iter().map(|event| {
            let flags = event.flags;
            let broken = EventFlags::ERR | EventFlags::HUP;
            Came {
                token: Token(event.data.u64()),
                readable: flags.intersects(EventFlags::IN | EventFlags::RDHUP | broken),
                writable: flags.intersects(EventFlags::OUT | broken),
            }
        }));
        Ok(into.len() == EVENTS_PER_TURN)
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
