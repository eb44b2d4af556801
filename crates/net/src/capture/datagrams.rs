//! The capture of a program's datagrams, as its socket takes and gives them.

use super::{Capture, Seen};
use crate::clock::Clock;
use crate::recording::{EndOfRecording, RecordingConfig, RecordingError};
use crate::udp::{Application, Carrier, DatagramOrigin, PortChange, Step};
use fulmar_capture::{Comment, Dissector, InterfaceId, PacketDirection, PacketEnds};
use fulmar_proto::machine::{Datagram, Deadline, Machine, PathId};
use fulmar_proto::units::Instant;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// The datagrams of one socket.
#[derive(Debug)]
pub struct DatagramCapture {
    capture: Capture,
    interface: InterfaceId,
    local: SocketAddr,
}

impl DatagramCapture {
    /// Begins a capture of the socket at `local`, with the description `about`. `tell` is called once if it ends before it is
    /// dropped.
    ///
    /// # Errors
    /// [`RecordingError`]: there is no file, or no thread to write it.
    pub fn start(
        clock: Clock,
        config: RecordingConfig,
        about: &str,
        local: SocketAddr,
        tell: impl FnOnce(EndOfRecording) + Send + 'static,
    ) -> Result<Self, RecordingError> {
        let interfaces = [("udp", "datagrams of the socket")];
        let (capture, [interface]) = Capture::start(clock, config, about, interfaces, tell)?;
        Ok(Self {
            capture,
            interface,
            local,
        })
    }

    fn packet(&self, at: Instant, direction: PacketDirection, remote: SocketAddr, octets: &[u8]) {
        let (from, to) = match direction {
            PacketDirection::Inbound => (remote, self.local),
            PacketDirection::Outbound => (self.local, remote),
        };
        self.capture.recorder().packet(&Seen {
            interface: self.interface,
            at,
            direction,
            dissector: Dissector::Datagram,
            ends: Some(PacketEnds::Sockets { from, to }),
            octets,
            comment: &Comment::NONE,
        });
    }
}

/// An application, and the capture of its datagrams if there is one.
#[derive(Debug)]
pub struct CapturedApplication<'a, A> {
    application: A,
    capture: Option<&'a DatagramCapture>,
}

impl<'a, A> CapturedApplication<'a, A> {
    /// The application with a capture, or without.
    pub const fn new(application: A, capture: Option<&'a DatagramCapture>) -> Self {
        Self {
            application,
            capture,
        }
    }
}

impl<M: Machine, A: Application<M>> Application<M> for CapturedApplication<'_, A> {
    fn deliver(&mut self, now: Instant, machine: &mut M, event: M::Event) {
        self.application.deliver(now, machine, event);
    }

    fn work(&mut self, now: Instant, machine: &mut M) -> Step {
        self.application.work(now, machine)
    }

    fn unreachable(&mut self, now: Instant, machine: &mut M, path: PathId) {
        self.application.unreachable(now, machine, path);
    }

    fn arrived(
        &mut self,
        now: Instant,
        machine: &mut M,
        datagram: Datagram<'_>,
        origin: DatagramOrigin,
    ) {
        if let Some(capture) = self.capture {
            let inbound = PacketDirection::Inbound;
            capture.packet(origin.at, inbound, origin.from, datagram.octets);
        }
        self.application.arrived(now, machine, datagram, origin);
    }

    fn departing(&mut self, now: Instant, to: SocketAddr, octets: &[u8]) {
        if let Some(capture) = self.capture {
            capture.packet(now, PacketDirection::Outbound, to, octets);
        }
        self.application.departing(now, to, octets);
    }

    fn too_large(&mut self, now: Instant, machine: &mut M, path: PathId) {
        self.application.too_large(now, machine, path);
    }

    fn paths_in_use(&self, now: Instant, machine: &M) -> Option<Vec<PathId>> {
        self.application.paths_in_use(now, machine)
    }

    fn peer_restarted(&mut self, now: Instant, machine: &mut M, path: PathId) {
        self.application.peer_restarted(now, machine, path);
    }

    fn wants_path(&self, now: Instant) -> Option<SocketAddr> {
        self.application.wants_path(now)
    }

    fn path_made(
        &mut self,
        now: Instant,
        machine: &mut M,
        remote: SocketAddr,
        path: Option<PathId>,
    ) {
        self.application.path_made(now, machine, remote, path);
    }

    fn wants_carrier(&mut self) -> Option<(PathId, Carrier)> {
        self.application.wants_carrier()
    }

    fn wants_port(&mut self) -> Option<PortChange> {
        self.application.wants_port()
    }

    fn times_departures(&self, machine: &M) -> bool {
        self.application.times_departures(machine)
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.application.next_deadline()
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        self.application.source()
    }

    fn source_ready(&mut self) {
        self.application.source_ready();
    }
}
