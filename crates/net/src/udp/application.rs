//! The program on top of a machine, as the loop sees it.

use super::beside::PortChange;
use super::carrier::Carrier;
use fulmar_proto::machine::{Datagram, Deadline, Machine, PathId};
use fulmar_proto::units::Instant;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// The wish of an application after [`Application::work`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do before the next event, datagram, deadline or wake-up.
    Wait,
    /// The application called the machine, which must be drained again.
    Again,
    /// The application is done: leave the loop once the queued datagrams have been handed to the kernel.
    Stop,
}

/// The circumstances in which a datagram came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramOrigin {
    /// The address that it came from.
    pub from: SocketAddr,
    /// The time at which the system took it in: before now, if the loop slept or was busy.
    pub at: Instant,
}

/// The program on top of a machine: files, pipes, a user.
pub trait Application<M: Machine> {
    /// Takes an event. May call the machine.
    fn deliver(&mut self, now: Instant, machine: &mut M, event: M::Event);

    /// Moves octets between the machine and the outside, as far as that is possible without waiting.
    fn work(&mut self, now: Instant, machine: &mut M) -> Step;

    /// Takes the network's word that nobody listens at `path`. It may be true for a moment only.
    fn unreachable(&mut self, now: Instant, machine: &mut M, path: PathId);

    /// Hands a datagram to the machine, with its origin as far as the machine can use that.
    fn arrived(
        &mut self,
        now: Instant,
        machine: &mut M,
        datagram: Datagram<'_>,
        origin: DatagramOrigin,
    ) {
        let _ = origin;
        machine.handle_datagram(now, datagram);
    }

    /// Sees a datagram that is handed to the socket, for the address `to`.
    fn departing(&mut self, now: Instant, to: SocketAddr, octets: &[u8]) {
        let _ = (now, to, octets);
    }

    /// Takes the system's refusal to send a datagram to `path`: it is larger than the interface or the path takes.
    fn too_large(&mut self, now: Instant, machine: &mut M, path: PathId) {
        let _ = (now, machine, path);
    }

    /// The paths that must keep their addresses when new ones come and the table is full. `None` stands for all
    /// paths with traffic both ways, for as long as the table's settings say.
    fn paths_in_use(&self, now: Instant, machine: &M) -> Option<Vec<PathId>> {
        let _ = (now, machine);
        None
    }

    /// Takes a session's word that the peer at `path` has restarted and has forgotten its connections. After this call
    /// the session ends them as if we had aborted them; an application that wants to go on lets go of them here.
    fn peer_restarted(&mut self, now: Instant, machine: &mut M, path: PathId) {
        let _ = (now, machine, path);
    }

    /// An address to which a path is wanted, for as long as the application lists it as in use
    /// ([`Application::paths_in_use`]).
    fn wants_path(&self, now: Instant) -> Option<SocketAddr> {
        let _ = now;
        None
    }

    /// Takes the path to an address that was wanted; `None` if all paths are in use. The application is asked for
    /// the next wanted address at once.
    fn path_made(
        &mut self,
        now: Instant,
        machine: &mut M,
        remote: SocketAddr,
        path: Option<PathId>,
    ) {
        let _ = (now, machine, remote, path);
    }

    /// A path and the carrier by which what goes there travels from now on. The driver asks until there is none.
    fn wants_carrier(&mut self) -> Option<(PathId, Carrier)> {
        None
    }

    /// A change of the ports beside the first. The driver asks until there is none, and [`Application::work`] follows.
    fn wants_port(&mut self) -> Option<PortChange> {
        None
    }

    /// Whether what the machine made leaves before [`Application::work`], in smaller bursts. A rate that is found takes
    /// what leaves late for a queue; one that is told does not ask when it left.
    fn times_departures(&self, machine: &M) -> bool {
        let _ = machine;
        true
    }

    /// The time at which [`Application::work`] wants to be called if nothing else happens.
    fn next_deadline(&self) -> Option<Deadline>;

    /// A descriptor of its own whose readability ends the sleep, such as an `epoll` instance.
    fn source(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// [`Application::source`] is readable; [`Application::work`] follows.
    fn source_ready(&mut self) {}
}
