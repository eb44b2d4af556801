//! Transports of one's own in the simulator: the ends of all flows at one node.

use super::{Context, StackCounts};
use crate::flow::{Flow, flow_of};
use crate::guard::Guarded;
use crate::own::transport::{OWN_HEADER_BYTES, OWN_PROTOCOL};
use crate::own::{TransportEnd, TransportTurn};
use fulmar_proto::machine::{
    Datagram, Deadline, Ecn, Machine, MachineDriver, PathId, Priority, Transmit, TransmitKind,
    drain,
};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Port;
use std::collections::{BTreeMap, VecDeque};

/// The shortest wait of an end, so that one that always wants to be woken at once does not hold time still.
const WAIT_MIN: Duration = Duration::from_micros(1);
/// The most octets that are offered to an end at once.
const WRITE_MAX: usize = 64 * 1024;
/// The most octets that an end takes at one time. One with room for more is asked again a little later, when the packets that
/// it made of them are gone.
const TAKEN_MAX: usize = 1024 * 1024;
/// The reason of a flow's end whose transport sent a packet that is longer than the path carries.
const TOO_LONG: &str = "packet_too_long";

/// A node's ends of transports of one's own, and their applications.
#[derive(Debug)]
pub(crate) struct OwnStack {
    pub(super) machine: Guarded<OwnEnds>,
    write: Vec<u8>,
}

/// The ends, by flow.
#[derive(Debug, Default)]
pub(crate) struct OwnEnds {
    ends: BTreeMap<usize, OwnEnd>,
    packets: VecDeque<OwnPacket>,
    events: VecDeque<OwnEvent>,
    turn: TransportTurn,
}

#[derive(Debug)]
struct OwnEnd {
    end: Box<dyn TransportEnd>,
    path: PathId,
    port: Port,
    packet_max: usize,
    sends: bool,
    finished: bool,
    /// Octets that were delivered one behind the other.
    delivered: u64,
    wake: Option<Instant>,
    /// The time at which it is offered more octets of those that it has room for.
    offered: Option<Instant>,
}

#[derive(Debug)]
struct OwnPacket {
    path: PathId,
    port: Port,
    kind: TransmitKind,
    octets: Vec<u8>,
}

/// Something for the application of a flow.
#[derive(Debug)]
pub(crate) enum OwnEvent {
    Delivered {
        flow: usize,
        position: u64,
        octets: Vec<u8>,
    },
    Writable {
        flow: usize,
    },
    TooLong {
        flow: usize,
    },
}

impl OwnStack {
    pub(crate) fn new() -> Self {
        Self {
            machine: Guarded::new(OwnEnds::default()),
            write: Vec::new(),
        }
    }

    /// Flow `index` has this end here. The other end is reached over `path`, and takes packets of so many octets.
    pub(crate) fn add(
        &mut self,
        index: usize,
        end: Box<dyn TransportEnd>,
        (path, port): (PathId, Port),
        packet_max: usize,
        sends: bool,
    ) {
        let wake = end.next_wake().map(|at| at.max(Instant::START + WAIT_MIN));
        self.machine.app().ends.insert(
            index,
            OwnEnd {
                end,
                path,
                port,
                packet_max,
                sends,
                finished: false,
                delivered: 0,
                wake,
                offered: None,
            },
        );
    }

    pub(super) fn write(&mut self, now: Instant, index: usize, flow: &mut Flow) {
        write(now, self.machine.app(), index, flow, &mut self.write);
    }

    pub(super) fn drain(&mut self, now: Instant, context: &mut Context<'_>) -> Option<Deadline> {
        let mut driver = StackDriver {
            context,
            write: &mut self.write,
        };
        drain(&mut self.machine, now, &mut driver)
    }

    pub(super) fn counts() -> StackCounts {
        StackCounts::default()
    }
}

/// Hands the application's octets to the sending end of a flow, as many as it has room for.
fn write(now: Instant, ends: &mut OwnEnds, index: usize, flow: &mut Flow, buffer: &mut Vec<u8>) {
    let mut taken = 0;
    while !flow.source.is_finished() {
        flow.fill(ends.room(index).min(WRITE_MAX) as u64, buffer);
        if buffer.is_empty() {
            return;
        }
        if taken >= TAKEN_MAX {
            ends.offer_later(now, index);
            return;
        }
        ends.turn(now, index, |end, turn| end.write(now, buffer, turn));
        flow.accept(now, buffer.len() as u64);
        taken += buffer.len();
    }
    ends.finish(now, index);
}

impl OwnEnds {
    /// Octets that the sending end of a flow takes.
    fn room(&self, index: usize) -> usize {
        let end = self
            .ends
            .get(&index)
            .filter(|end| end.sends && !end.finished);
        end.map_or(0, |end| end.end.room())
    }

    fn offer_later(&mut self, now: Instant, index: usize) {
        if let Some(end) = self.ends.get_mut(&index) {
            end.offered = Some(now + WAIT_MIN);
        }
    }

    fn finish(&mut self, now: Instant, index: usize) {
        let end = self.ends.get_mut(&index).filter(|end| !end.finished);
        if let Some(end) = end {
            end.finished = true;
            self.turn(now, index, |end, turn| end.finish(now, turn));
        }
    }

    /// One turn of an end, and what comes of it.
    fn turn(
        &mut self,
        now: Instant,
        index: usize,
        take: impl FnOnce(&mut dyn TransportEnd, &mut TransportTurn),
    ) {
        let Some(end) = self.ends.get_mut(&index) else {
            return;
        };
        take(&mut *end.end, &mut self.turn);
        for (kind, octets) in self.turn.packets.drain(..) {
            if octets.len() > end.packet_max {
                self.events.push_back(OwnEvent::TooLong { flow: index });
                continue;
            }
            self.packets.push_back(OwnPacket {
                path: end.path,
                port: end.port,
                kind,
                octets,
            });
        }
        for (position, octets) in self.turn.delivered.drain(..) {
            let position = position.unwrap_or(end.delivered);
            let after = position.saturating_add(octets.len() as u64);
            end.delivered = end.delivered.max(after);
            self.events.push_back(OwnEvent::Delivered {
                flow: index,
                position,
                octets,
            });
        }
        let wake = end.end.next_wake();
        end.wake = wake.map(|at| at.max(now + WAIT_MIN));
    }

    /// A turn that may have made room for the application.
    fn turn_and_room(
        &mut self,
        now: Instant,
        index: usize,
        take: impl FnOnce(&mut dyn TransportEnd, &mut TransportTurn),
    ) {
        self.turn(now, index, take);
        if self.room(index) > 0 {
            self.events.push_back(OwnEvent::Writable { flow: index });
        }
    }
}

impl Machine for OwnEnds {
    type Event = OwnEvent;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Some((&[_, _, high, low], packet)) = datagram.octets.split_first_chunk() else {
            return;
        };
        if let Some(index) = flow_of(Port(u16::from_be_bytes([high, low]))) {
            self.turn_and_room(now, index, |end, turn| end.receive(now, packet, turn));
        }
    }

    fn handle_deadline(&mut self, now: Instant) {
        let is_due = |end: &OwnEnd| end.wake.is_some_and(|at| at <= now);
        let due = self.ends.iter().filter(|(_, end)| is_due(end));
        let due: Vec<usize> = due.map(|(index, _)| *index).collect();
        for index in due {
            self.turn_and_room(now, index, |end, turn| end.wake(now, turn));
        }
        for (index, end) in &mut self.ends {
            if end.offered.is_some_and(|at| at <= now) {
                end.offered = None;
                self.events.push_back(OwnEvent::Writable { flow: *index });
            }
        }
    }

    fn poll_transmit(&mut self, _: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let OwnPacket {
            path,
            port,
            kind,
            octets,
        } = self.packets.pop_front()?;
        let port = port.0.to_be_bytes();
        out.extend(port);
        out.extend(port);
        out.extend(&octets);
        Some(Transmit {
            path,
            len: OWN_HEADER_BYTES + octets.len(),
            kind,
            priority: Priority::default(),
            ecn: Ecn::NotCapable,
        })
    }

    fn poll_event(&mut self) -> Option<OwnEvent> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let ends = self.ends.values();
        let wakes = ends.flat_map(|end| end.wake.into_iter().chain(end.offered));
        wakes.min().map(|at| Deadline {
            at,
            why: "transport of one's own",
        })
    }
}

struct StackDriver<'a, 'b> {
    context: &'a mut Context<'b>,
    write: &'a mut Vec<u8>,
}

impl MachineDriver<Guarded<OwnEnds>> for StackDriver<'_, '_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.context.network.buffer()
    }

    fn send(&mut self, now: Instant, transmit: Transmit) {
        self.context
            .send_with_precedence(now, OWN_PROTOCOL, transmit, 0);
    }

    fn deliver(&mut self, now: Instant, machine: &mut Guarded<OwnEnds>, event: OwnEvent) {
        let (OwnEvent::Delivered { flow: index, .. }
        | OwnEvent::Writable { flow: index }
        | OwnEvent::TooLong { flow: index }) = event;
        let Some(flow) = self.context.flows.get_mut(index) else {
            return;
        };
        match event {
            OwnEvent::Delivered {
                position, octets, ..
            } => flow.meter.deliver(now, position, &octets),
            OwnEvent::Writable { .. } => write(now, machine.app(), index, flow, self.write),
            OwnEvent::TooLong { .. } => flow.sender_closed = Some(TOO_LONG),
        }
    }
}
