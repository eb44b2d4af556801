//! UDP in the simulator: one datagram for each write, or several for one that is too long.
//!
//! A UDP datagram does not say where in the stream it belongs, and putting that into the payload
//! would change what is measured. So each packet carries the stream position as a tag that only
//! the measurement sees; the octets are compared at that position.

use super::{Context, StackCounts};
use crate::flow::{Flow, flow_of};
use crate::guard::Guarded;
use core::num::NonZeroU8;
use fulmar_baseline::datagram::{DatagramConfig, DatagramEndpoint, DatagramEvent, Route};
use fulmar_proto::machine::{Deadline, MachineDriver, Transmit, drain};
use fulmar_proto::units::Instant;
use fulmar_proto::wire::network::NetworkProtocol;
use std::collections::{BTreeMap, VecDeque};

/// A node's UDP and its applications.
#[derive(Debug)]
pub(crate) struct DatagramStack {
    pub(super) machine: Guarded<DatagramEndpoint>,
    writes: WriteSide,
}

/// The parts of the stack that writing needs besides the machine.
#[derive(Debug, Default)]
struct WriteSide {
    /// The number of times that each packet is sent, by flow.
    copies: BTreeMap<usize, NonZeroU8>,
    /// Stream positions of the datagrams that were given to the machine and not sent yet, one for each
    /// copy.
    tags: VecDeque<u64>,
    /// Flows that a full queue turned away.
    waiting: VecDeque<usize>,
    write: Vec<u8>,
}

impl DatagramStack {
    pub(crate) fn new(config: DatagramConfig) -> Self {
        Self {
            machine: Guarded::new(DatagramEndpoint::new(config)),
            writes: WriteSide::default(),
        }
    }

    /// Each packet of flow `index` is sent `copies` times.
    pub(crate) fn send_copies(&mut self, index: usize, copies: NonZeroU8) {
        self.writes.copies.insert(index, copies);
    }

    pub(super) fn write(&mut self, now: Instant, index: usize, flow: &mut Flow) {
        self.writes.write(now, self.machine.app(), index, flow);
    }

    pub(super) fn drain(&mut self, now: Instant, context: &mut Context<'_>) -> Option<Deadline> {
        let mut driver = StackDriver {
            context,
            writes: &mut self.writes,
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

impl WriteSide {
    /// Sends the application's octets, piece by piece, until the machine refuses.
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
        let copies = self.copies.get(&index).copied();
        let copies = copies.unwrap_or(NonZeroU8::MIN);
        loop {
            let offset = flow.fill(flow.plan.payload.0.min(flow.plan.piece.0), &mut self.write);
            if self.write.is_empty() {
                return;
            }
            if machine.send_copies(route, &self.write, copies).is_err() {
                if !self.waiting.contains(&index) {
                    self.waiting.push_back(index);
                }
                return;
            }
            for _ in 0..copies.get() {
                self.tags.push_back(offset);
            }
            flow.accept(now, self.write.len() as u64);
        }
    }
}

struct StackDriver<'a, 'b> {
    context: &'a mut Context<'b>,
    writes: &'a mut WriteSide,
}

impl MachineDriver<Guarded<DatagramEndpoint>> for StackDriver<'_, '_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.context.network.buffer()
    }

    fn send(&mut self, now: Instant, transmit: Transmit) {
        let tag = self.writes.tags.pop_front().unwrap_or_default();
        self.context
            .send_with_precedence(now, NetworkProtocol::UDP, transmit, tag);
    }

    fn deliver(
        &mut self,
        now: Instant,
        machine: &mut Guarded<DatagramEndpoint>,
        event: DatagramEvent,
    ) {
        match event {
            DatagramEvent::Received { local, octets, .. } => {
                let tag = self.context.tag;
                let flow = flow_of(local).and_then(|index| self.context.flows.get_mut(index));
                if let Some(flow) = flow {
                    flow.meter.deliver(now, tag, &octets);
                }
                machine.app().recycle(octets);
            }
            DatagramEvent::Writable => {
                for index in core::mem::take(&mut self.writes.waiting) {
                    let flow = &mut self.context.flows[index];
                    self.writes.write(now, machine.app(), index, flow);
                }
            }
        }
    }
}
