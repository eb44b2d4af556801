//! Gateways in the simulator: applications that speak through two splicers.
//!
//! The sending application stands for a client's TCP connection that ends at the first gateway, the
//! receiving one for the connection that the second gateway opens to its server. Local networks take no
//! time here: the application receives what the splicer delivers at once, at the pace at which it reads. So
//! the figures are those of the links between the gateways and of the splice.

mod session;

pub(crate) use session::GatewayPath;

use super::{Context, StackCounts};
use crate::flow::{Flow, flow_of};
use crate::guard::Guarded;
use crate::tap::EventLog;
use fulmar_capture::{EventPlace, FlowEnd};
use fulmar_proto::machine::{Datagram, Deadline, Machine, MachineDriver, PathId, Transmit, drain};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{
    Destination, FlowClass, FlowEvent, FlowId, FlowKind, Splicer, SplicerConfig,
};
use fulmar_proto::told::ToldFacts;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, EndpointConfig};
use fulmar_proto::units::{Bitrate, ByteCount, Instant};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::{NetworkProtocol, NodeAddress};
use session::BondedSplicer;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};

/// A node's gateway and the applications behind it.
#[derive(Debug)]
pub(crate) struct GatewayStack {
    machine: Guarded<BondedSplicer>,
    /// The classes of flows that will be opened here.
    classes: BTreeMap<usize, FlowClass>,
    pumps: Pumps,
}

/// The applications of a stack.
#[derive(Debug, Default)]
struct Pumps {
    /// The rates at which receiving applications read, by flow; the others read as fast as octets come.
    read_rates: BTreeMap<usize, Bitrate>,
    /// Sending applications by flow.
    senders: BTreeMap<usize, FlowId>,
    ends: BTreeMap<FlowId, Pump>,
    /// Applications that read again at some time.
    due: BTreeSet<(Instant, FlowId)>,
    /// The flow of each of the splicer's flow numbers, and whether this end sends.
    numbers: BTreeMap<u64, (usize, bool)>,
    write: Vec<u8>,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug)]
struct Pump {
    flow: usize,
    sends: bool,
    /// A paced reader reads no earlier.
    reads_at: Instant,
    read: u64,
}

/// The most octets that are offered to a splicer at once.
const WRITE_MAX: u64 = 64 * 1024;
/// The most octets that a paced reader takes at once.
const READ_MAX: usize = 4096;

impl GatewayStack {
    /// Takes what the radios on a path tell of it. Of several paths to a peer, each is held by its own silence.
    pub(super) fn take_told(&mut self, now: Instant, path: PathId, told: ToldFacts) {
        self.machine.app().take_told(now, path, told);
    }

    /// # Panics
    /// The settings cannot work; reading a plan checks those that can be written.
    pub(crate) fn new(config: &SplicerConfig, endpoint: EndpointConfig, rng: &Rng) -> Self {
        let endpoint = AerotpEndpoint::new(endpoint, rng.child("ports"));
        let splicer = Splicer::new(*config, endpoint, rng.child("flows"));
        Self {
            machine: Guarded::new(BondedSplicer::new(
                splicer.expect("reading a plan checks its connections"),
            )),
            classes: BTreeMap::new(),
            pumps: Pumps::default(),
        }
    }

    /// Flows go by these paths to another gateway, or come from there, in packets of AeroTP's of at most `longest` octets. The
    /// first flow with that gateway decides.
    pub(crate) fn meet(&mut self, paths: &[GatewayPath], longest: usize) {
        self.machine.app().meet(paths, longest);
    }

    /// Flow `index` will be opened here, with this class.
    pub(crate) fn send(&mut self, index: usize, class: FlowClass) {
        self.classes.insert(index, class);
    }

    /// The application that receives flow `index` here reads at `rate`, if one is given.
    pub(crate) fn receive(&mut self, index: usize, rate: Option<Bitrate>) {
        self.pumps.read_rates.extend(rate.map(|rate| (index, rate)));
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.machine.handle_datagram(now, datagram);
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        if self.machine.next_deadline().is_some_and(|d| d.at <= now) {
            self.machine.handle_deadline(now);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        Deadline::earlier(self.machine.next_deadline(), self.pumps.next_read())
    }

    pub(super) fn connect(&mut self, now: Instant, index: usize, flow: &mut Flow) {
        let Some(class) = self.classes.remove(&index) else {
            return;
        };
        // The port tells the other end which flow it is.
        let destination = SocketAddr::from((Ipv4Addr::LOCALHOST, flow.port.0));
        let opened = self.machine.app().splicer_mut().open(
            now,
            flow.path,
            FlowKind::Stream,
            Destination::from(destination),
            class,
        );
        match opened {
            Ok(id) => {
                self.pumps.senders.insert(index, id);
                let splicer = self.machine.inner().splicer();
                self.pumps.add(now, splicer, id, (index, true));
            }
            Err(_) => flow.sender_closed = Some("refused"),
        }
    }

    pub(super) fn write(&mut self, now: Instant, index: usize, flow: &mut Flow) {
        let splicer = self.machine.app().splicer_mut();
        self.pumps.write(now, splicer, index, flow);
    }

    pub(super) fn drain(&mut self, now: Instant, context: &mut Context<'_>) -> Option<Deadline> {
        while let Some((at, id)) = self.pumps.due.first().copied() {
            if at > now {
                break;
            }
            self.pumps.due.pop_first();
            let splicer = self.machine.app().splicer_mut();
            self.pumps.read(now, splicer, context.flows, id);
        }
        let mut driver = StackDriver {
            context,
            pumps: &mut self.pumps,
        };
        let deadline = drain(&mut self.machine, now, &mut driver);
        Deadline::earlier(deadline, self.pumps.next_read())
    }

    /// Shows the notes that the splicer's connections took since the last call.
    pub(super) fn show_events(&mut self, now: Instant, node: NodeAddress, events: &mut EventLog) {
        let numbers = &self.pumps.numbers;
        let endpoint = self.machine.notes().splicer_mut().endpoint_mut();
        events.take_notes(now, node, endpoint, |note, place| {
            let end = note.label.and_then(|label| numbers.get(&label));
            EventPlace {
                flow: end.map(|(flow, _)| *flow as u64),
                connection: Some(note.connection.0),
                end: end.map(|(_, sends)| FlowEnd::of(*sends)),
                ..place
            }
        });
    }

    /// The counts of this stack: none, since AeroTP's connections are the splicer's and gone with their
    /// flows.
    pub(super) fn counts(&self) -> StackCounts {
        let splicer = self.machine.inner().splicer();
        let counters = splicer.endpoint().endpoint_counters();
        StackCounts {
            damaged: counters.damaged_datagrams,
            ..StackCounts::default()
        }
    }
}

impl Pumps {
    fn add(&mut self, now: Instant, splicer: &Splicer, id: FlowId, (flow, sends): (usize, bool)) {
        if let Some(number) = splicer.number_of(id) {
            self.numbers.insert(number, (flow, sends));
        }
        let pump = Pump {
            flow,
            sends,
            reads_at: now,
            read: 0,
        };
        self.ends.insert(id, pump);
    }

    fn next_read(&self) -> Option<Deadline> {
        let (at, _) = *self.due.first()?;
        let why = "application reads";
        Some(Deadline { at, why })
    }

    /// Offers the splicer the application's octets, as far as it takes them; ends after the last.
    fn write(&mut self, now: Instant, splicer: &mut Splicer, index: usize, flow: &mut Flow) {
        let Some(&id) = self.senders.get(&index) else {
            return;
        };
        loop {
            let room = u64::try_from(splicer.capacity(id)).unwrap_or(u64::MAX);
            flow.fill(room.min(WRITE_MAX), &mut self.write);
            let taken = splicer.accept(now, id, &self.write);
            if taken == 0 {
                break;
            }
            flow.accept(now, taken as u64);
        }
        if flow.source.is_finished() {
            splicer.finish(now, id);
        }
    }

    /// Hands delivered octets to the application, which compares them, as fast as it reads.
    fn read(&mut self, now: Instant, splicer: &mut Splicer, flows: &mut [Flow], id: FlowId) {
        let Some(pump) = self.ends.get_mut(&id) else {
            return;
        };
        let Some(flow) = flows.get_mut(pump.flow).filter(|_| !pump.sends) else {
            return;
        };
        flow.meter.arrive(now);
        while let Some(octets) = splicer.peek(id) {
            let mut len = octets.len();
            if let Some(rate) = self.read_rates.get(&pump.flow) {
                if pump.reads_at > now {
                    self.due.insert((pump.reads_at, id));
                    break;
                }
                len = len.min(READ_MAX);
                pump.reads_at = now + rate.time_to_send(ByteCount::from_usize(len));
            }
            let offset = flow.meter.next_offset();
            flow.meter.deliver(now, offset, &octets[..len]);
            splicer.consume(now, id, len);
            pump.read += len as u64;
        }
        splicer.delivered(now, id, pump.read);
    }
}

struct StackDriver<'a, 'b> {
    context: &'a mut Context<'b>,
    pumps: &'a mut Pumps,
}

impl MachineDriver<Guarded<BondedSplicer>> for StackDriver<'_, '_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.context.network.buffer()
    }

    fn send(&mut self, now: Instant, transmit: Transmit) {
        let node = self.context.node;
        let network = &mut *self.context.network;
        network.send(now, node, NetworkProtocol::AEROTP, transmit, 0);
    }

    fn deliver(&mut self, now: Instant, machine: &mut Guarded<BondedSplicer>, event: FlowEvent) {
        let splicer = machine.app().splicer_mut();
        let id = event.flow();
        match event {
            FlowEvent::Requested { destination, .. } => {
                if let Some(index) = flow_of(Port(destination.port)) {
                    self.pumps.add(now, splicer, id, (index, false));
                }
                let bound = SocketAddr::from((Ipv4Addr::LOCALHOST, destination.port));
                splicer.connected(now, id, bound);
            }
            FlowEvent::Readable(_) => self.pumps.read(now, splicer, self.context.flows, id),
            FlowEvent::Writable(_) => {
                let pump = self.pumps.ends.get(&id).filter(|pump| pump.sends);
                let index = pump.map(|pump| pump.flow);
                if let Some(index) = index
                    && let Some(flow) = self.context.flows.get_mut(index)
                {
                    self.pumps.write(now, splicer, index, flow);
                }
            }
            // The server has no more to send than its client.
            FlowEvent::PeerFinished(_) => splicer.finish(now, id),
            FlowEvent::Connected { .. }
            | FlowEvent::Delivered { .. }
            | FlowEvent::Stopped(_)
            | FlowEvent::Resume { .. } => {}
            FlowEvent::Refused { code, .. } => self.close(id, code.name()),
            FlowEvent::Reset { code, .. } => self.close(id, code.name()),
            FlowEvent::Closed(_) => self.close(id, "finished"),
        }
    }
}

impl StackDriver<'_, '_> {
    fn close(&mut self, id: FlowId, how: &'static str) {
        let Some(pump) = self.pumps.ends.remove(&id) else {
            return;
        };
        self.pumps.due.retain(|(_, due)| *due != id);
        if let Some(flow) = self.context.flows.get_mut(pump.flow) {
            let closed = if pump.sends {
                &mut flow.sender_closed
            } else {
                &mut flow.receiver_closed
            };
            *closed = Some(how);
        }
    }
}
