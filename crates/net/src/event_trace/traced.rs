//! An application on an AeroTP endpoint, and the notes of its connections in an event trace.

use super::EventTrace;
use crate::udp::{Application, DatagramOrigin, Step};
use fulmar_capture::EventPlace;
use fulmar_proto::machine::{Datagram, Deadline, PathId};
use fulmar_proto::transport::aerotp::{AerotpEndpoint, Event};
use fulmar_proto::units::Instant;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// The most notes that wait for their turn; one turn of the loop brings some hundreds.
pub(crate) const NOTES_MAX: usize = 1 << 16;

/// The application, and the trace beside it.
#[derive(Debug)]
pub struct Traced<'a, A: ?Sized> {
    application: &'a mut A,
    events: EventTrace,
}

impl<'a, A: ?Sized> Traced<'a, A> {
    /// Traces the connections that begin on `machine` from here on.
    pub fn new(application: &'a mut A, machine: &mut AerotpEndpoint, events: EventTrace) -> Self {
        machine.keep_notes(NOTES_MAX);
        Self {
            application,
            events,
        }
    }

    fn take_notes(&self, machine: &mut AerotpEndpoint) {
        while let Some(note) = machine.take_note() {
            let place = EventPlace {
                connection: Some(note.connection.0),
                ..EventPlace::default()
            };
            self.events.record(note.at, place, note.record);
        }
        let missed = machine.take_missed_notes();
        if missed > 0 {
            self.events.note_missed(missed);
        }
    }

    /// Writes the remaining notes, and the last line.
    pub fn end(self, now: Instant, machine: &mut AerotpEndpoint) {
        self.take_notes(machine);
        self.events.end(now, "stopped");
    }
}

impl<A: Application<AerotpEndpoint> + ?Sized> Application<AerotpEndpoint> for Traced<'_, A> {
    fn deliver(&mut self, now: Instant, machine: &mut AerotpEndpoint, event: Event) {
        self.application.deliver(now, machine, event);
    }

    fn work(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Step {
        self.take_notes(machine);
        self.application.work(now, machine)
    }

    fn unreachable(&mut self, now: Instant, machine: &mut AerotpEndpoint, path: PathId) {
        self.application.unreachable(now, machine, path);
    }

    fn arrived(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        datagram: Datagram<'_>,
        origin: DatagramOrigin,
    ) {
        self.application.arrived(now, machine, datagram, origin);
    }

    fn departing(&mut self, now: Instant, to: SocketAddr, octets: &[u8]) {
        self.application.departing(now, to, octets);
    }

    fn too_large(&mut self, now: Instant, machine: &mut AerotpEndpoint, path: PathId) {
        self.application.too_large(now, machine, path);
    }

    fn paths_in_use(&self, now: Instant, machine: &AerotpEndpoint) -> Option<Vec<PathId>> {
        self.application.paths_in_use(now, machine)
    }

    fn peer_restarted(&mut self, now: Instant, machine: &mut AerotpEndpoint, path: PathId) {
        self.application.peer_restarted(now, machine, path);
    }

    fn wants_path(&self, now: Instant) -> Option<SocketAddr> {
        self.application.wants_path(now)
    }

    fn path_made(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        remote: SocketAddr,
        path: Option<PathId>,
    ) {
        self.application.path_made(now, machine, remote, path);
    }

    fn times_departures(&self, machine: &AerotpEndpoint) -> bool {
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
