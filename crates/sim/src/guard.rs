//! Contract checks around machines: debug builds drive them through the checker, release builds bare.

use fulmar_baseline::link::{FrameTransmit, LinkCounters, LinkMachine, LinkPacket};
use fulmar_proto::machine::{Datagram, Deadline, Machine, Priority, Transmit};
use fulmar_proto::units::{ByteCount, Instant};

/// A machine as the simulator holds it.
#[cfg(debug_assertions)]
pub(crate) type Guarded<M> = fulmar_proto::machine::Strict<M>;
/// A link machine as the simulator holds it.
#[cfg(debug_assertions)]
pub(crate) type GuardedLink<M> = fulmar_baseline::link::StrictLink<M>;
/// A link machine as the simulator holds it.
#[cfg(not(debug_assertions))]
pub(crate) type GuardedLink<M> = Bare<M>;

/// A machine as the simulator holds it.
#[cfg(not(debug_assertions))]
pub(crate) type Guarded<M> = Bare<M>;

/// The interface of [`fulmar_proto::machine::Strict`] without its checks.
#[derive(Debug)]
#[cfg_attr(debug_assertions, allow(dead_code, reason = "used in release builds"))]
pub(crate) struct Bare<M>(M);

#[cfg_attr(debug_assertions, allow(dead_code, reason = "used in release builds"))]
impl<M> Bare<M> {
    pub(crate) const fn new(machine: M) -> Self {
        Self(machine)
    }

    pub(crate) const fn app(&mut self) -> &mut M {
        &mut self.0
    }

    pub(crate) const fn notes(&mut self) -> &mut M {
        &mut self.0
    }

    pub(crate) const fn inner(&self) -> &M {
        &self.0
    }
}

impl<M: Machine> Machine for Bare<M> {
    type Event = M::Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.0.handle_datagram(now, datagram);
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.0.handle_deadline(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.0.poll_transmit(now, out)
    }

    fn poll_event(&mut self) -> Option<M::Event> {
        self.0.poll_event()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.0.next_deadline()
    }
}

impl<M: LinkMachine> LinkMachine for Bare<M> {
    fn ready(&self) -> bool {
        self.0.ready()
    }

    fn overtaken_by(&self) -> Option<Priority> {
        self.0.overtaken_by()
    }

    fn offer(&mut self, now: Instant, packet: LinkPacket<'_>) {
        self.0.offer(now, packet);
    }

    fn handle_frame(&mut self, now: Instant, octets: &[u8]) {
        self.0.handle_frame(now, octets);
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.0.handle_deadline(now);
    }

    fn poll_frame(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<FrameTransmit> {
        self.0.poll_frame(now, out)
    }

    fn poll_packet(&mut self, out: &mut Vec<u8>) -> Option<usize> {
        self.0.poll_packet(out)
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.0.next_deadline()
    }

    fn held(&self) -> ByteCount {
        self.0.held()
    }

    fn counters(&self) -> &LinkCounters {
        self.0.counters()
    }
}
