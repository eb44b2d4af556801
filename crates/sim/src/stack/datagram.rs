//! UDP in the simulator: one datagram for each write, or several for one that is too long.
//!
//! A UDP datagram does not say where in the stream it belongs, and putting that into the payload
//! would change what is measured. So each packet carries the stream position as a tag that only
//! the measurement sees; the octets are compared at that position.

use super::{Context, StackCounts};
use crate::flow::{Flow, flow_of};
use crate::guard::Guarded;
use fulmar_proto::machine::{Datagram, Deadline, Driver, Machine, Transmit, drain};
use fulmar_proto::transport::datagram::{DatagramConfig, DatagramEndpoint, Event, Route};
use fulmar_proto::units::Instant;
use fulmar_proto::wire::network::Protocol;
use std::collections::VecDeque;

/// A node's UDP and its applications.
#[derive(Debug)]
pub(crate) struct DatagramStack {
    machine: Guarded<DatagramEndpoint>,
    /// Stream positions of the datagrams that were given to the machine and not sent yet.
    tags: VecDeque<u64>,
    /// Flows that a full queue turned away.
    waiting: VecDeque<usize>,
    write: Vec<u8>,
}

impl DatagramStack {
    pub(crate) fn new(config: DatagramConfig) -> Self {
        Self {
            machine: Guarded::new(DatagramEndpoint::new(config)),
            tags: VecDeque::new(),
            waiting: VecDeque::new(),
            write: Vec::new(),
        }
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.machine.handle_datagram(now, datagram);
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        self.machine.handle_deadline(now);
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        self.machine.next_deadline()
    }

    pub(super) fn write(&mut self, now: Instant, index: usize, flow: &mut Flow) {
        let machine = self.machine.app();
        let mut io = WriteSide {
            tags: &mut self.tags,
            waiting: &mut self.waiting,
            write: &mut self.write,
        };
        io.write(now, machine, index, flow);
    }

    pub(super) fn drain(&mut self, now: Instant, context: &mut Context<'_>) -> Option<Deadline> {
        let mut driver = StackDriver {
            context,
            io: WriteSide {
                tags: &mut self.tags,
                waiting: &mut self.waiting,
                write: &mut self.write,
            },
        };
        drain(&mut self.machine, now, &mut driver)
    }

    pub(super) fn counts(&self) -> StackCounts {
        StackCounts {
            damaged: self.machine.inner().counters().checksum,
            ..StackCounts::default()
        }
    }
}

/// What writing needs besides the machine.
struct WriteSide<'a> {
    tags: &'a mut VecDeque<u64>,
    waiting: &'a mut VecDeque<usize>,
    write: &'a mut Vec<u8>,
}

impl WriteSide<'_> {
    /// Sends what the application has, piece by piece, until the machine refuses.
    fn write(
        &mut self,
        now: Instant,
        machine: &mut DatagramEndpoint,
        index: usize,
        flow: &mut Flow,
    ) {
        let route = Route {
            path: flow.path,
            source: flow.port,
            destination: flow.port,
        };
        loop {
            let offset = flow.fill(flow.plan.payload.0.min(flow.plan.piece.0), self.write);
            if self.write.is_empty() {
                return;
            }
            if machine.send(route, self.write).is_err() {
                if !self.waiting.contains(&index) {
                    self.waiting.push_back(index);
                }
                return;
            }
            self.tags.push_back(offset);
            flow.accept(now, self.write.len() as u64);
        }
    }
}

struct StackDriver<'a, 'b> {
    context: &'a mut Context<'b>,
    io: WriteSide<'a>,
}

impl Driver<Guarded<DatagramEndpoint>> for StackDriver<'_, '_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.context.network.buffer()
    }

    fn send(&mut self, now: Instant, transmit: Transmit) {
        let tag = self.io.tags.pop_front().unwrap_or_default();
        let node = self.context.node;
        let network = &mut *self.context.network;
        network.send(now, node, Protocol::UDP, transmit, tag);
    }

    fn deliver(&mut self, now: Instant, machine: &mut Guarded<DatagramEndpoint>, event: Event) {
        match event {
            Event::Received { local, octets, .. } => {
                let tag = self.context.tag;
                let flow = flow_of(local).and_then(|index| self.context.flows.get_mut(index));
                if let Some(flow) = flow {
                    flow.meter.deliver(now, tag, &octets);
                }
                machine.app().recycle(octets);
            }
            Event::Writable => {
                for index in core::mem::take(self.io.waiting) {
                    let flow = &mut self.context.flows[index];
                    self.io.write(now, machine.app(), index, flow);
                }
            }
        }
    }
}
