//! AeroTP in the simulator: one endpoint for each end, a connection for each flow.
//!
//! Modes that deliver everything in order need no position from the transport: each delivery continues the
//! one before. Where a mode may leave holes, a TPDU's position in the stream is known to its sender alone,
//! which notes it with the number when it first sends the TPDU. The receiving side looks it up by the number
//! it received.

use super::seal::{self, SealLabel};
use super::{AdaptationCounts, Context, StackCounts};
use crate::app::Traffic;
use crate::flow::{Flow, flow_of};
use crate::guard::Guarded;
use crate::own::{ControllerView, FlowOutcome, RepairController};
use crate::recording::is_decision;
use crate::scenario::{SEAL_BYTES, TransportPlan};
use crate::tap::EventLog;
use fulmar_capture::{EventPlace, FlowEnd};
use fulmar_proto::bytes::Chunk;
use fulmar_proto::machine::{
    Datagram, Deadline, Machine, MachineDriver, PathId, TpduForm, Transmit, drain,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::told::ToldFacts;
use fulmar_proto::trace::TraceRecord;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, CloseReason, ConnectionConfig, ConnectionId, Counters, EndpointConfig, Event,
    Note, RateSource,
};
use fulmar_proto::units::{BitErrorRate, ByteCount, Duration, Instant};
use fulmar_proto::wire::network::{NETWORK_HEADER_BYTES, NetworkProtocol, NodeAddress};
use fulmar_proto::wire::{Mode, Port, TpduSeq};
use std::collections::{BTreeMap, BTreeSet};

/// A node's AeroTP endpoint and its applications.
#[derive(Debug)]
pub(crate) struct AerotpStack {
    pub(super) machine: Guarded<AerotpEndpoint>,
    ends: Ends,
    /// The settings of flows that will be sent from here.
    outgoing: BTreeMap<usize, ConnectionConfig>,
    /// Whether the machine is told the bit error rate that follows from the received power.
    hears_power: bool,
    /// Whether packets are those of a session.
    sealed: bool,
    /// The paths that flows told of.
    met: BTreeSet<PathId>,
    /// Flows whose repair a controller of one's own chooses.
    controlled: BTreeMap<usize, Controlled>,
}

/// A controller of one's own at work.
#[derive(Debug)]
struct Controlled {
    controller: Box<dyn RepairController>,
    /// The time from which it may be asked again.
    next_at: Instant,
}

/// The time between two questions to a controller: that between two choices of `auto`'s.
const CONTROL_EVERY: Duration = Duration::from_millis(500);

/// The success of a flow up to now: messages that are not due yet do not count.
fn outcome(now: Instant, flow: &Flow, counters: Option<&Counters>) -> FlowOutcome {
    let age = now.saturating_since(Instant::START);
    let deadline = flow.plan.deadline.unwrap_or_default();
    let due = Instant::START + age.saturating_sub(deadline);
    FlowOutcome {
        fates: flow
            .meter
            .punctuality(Instant::START, due)
            .unwrap_or_default(),
        written: flow.meter.submitted(),
        sent: ByteCount(counters.map_or(0, |counters| counters.sent_bytes.iter().sum())),
    }
}

/// The connections of a stack.
#[derive(Debug, Default)]
struct Ends {
    /// Sending connections by flow, and whether each write is a message.
    senders: BTreeMap<usize, (ConnectionId, bool)>,
    /// Flows by connection, of either direction.
    flows: BTreeMap<ConnectionId, End>,
    write: Vec<u8>,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug)]
struct End {
    flow: usize,
    sends: bool,
    /// The counters as of the last event; an endpoint forgets a connection that is over.
    counters: Counters,
}

impl End {
    const fn side(&self) -> FlowEnd {
        FlowEnd::of(self.sends)
    }
}

/// The most octets that are offered to a machine at once.
const WRITE_MAX: u64 = 64 * 1024;

impl AerotpStack {
    pub(crate) fn new(config: EndpointConfig, hears_power: bool, rng: Rng) -> Self {
        Self {
            machine: Guarded::new(AerotpEndpoint::new(config, rng)),
            ends: Ends::default(),
            outgoing: BTreeMap::new(),
            hears_power,
            sealed: false,
            met: BTreeSet::new(),
            controlled: BTreeMap::new(),
        }
    }

    /// The repair of flow `index`, which will be sent from here, is chosen by `controller`.
    pub(crate) fn control(&mut self, index: usize, controller: Box<dyn RepairController>) {
        let next_at = Instant::START;
        self.controlled.insert(
            index,
            Controlled {
                controller,
                next_at,
            },
        );
    }

    /// Asks the controller of flow `index`, if it has one and it is time.
    fn ask_controller(&mut self, now: Instant, index: usize, flow: &Flow) {
        let Some(controlled) = self.controlled.get_mut(&index) else {
            return;
        };
        let TransportPlan::Aerotp(plan) = &flow.plan.transport else {
            return;
        };
        let (Some(&(id, _)), Some(thin), Some(goal)) = (
            self.ends.senders.get(&index),
            plan.connection.thin,
            plan.goal(),
        ) else {
            return;
        };
        if now < controlled.next_at {
            return;
        }
        let Some(seen) = self.machine.inner().repair_view(id) else {
            return;
        };
        controlled.next_at = now + CONTROL_EVERY;
        let counters = self.machine.inner().counters(id);
        let outcome = outcome(now, flow, counters);
        let chosen = controlled.controller.choose(&ControllerView {
            now,
            goal,
            overhead_percent: thin.overhead_percent,
            seen,
            outcome,
        });
        if let Some(chosen) = chosen {
            let machine = self.machine.app();
            machine.allow_thin(now, id, thin.with_plan(chosen));
        }
    }

    /// A flow uses this path, one of several that may have rates of their own. The first flow on a path decides.
    pub(crate) fn meet(&mut self, path: PathId, rate: RateSource) {
        if !self.met.insert(path) {
            return;
        }
        let machine = self.machine.app();
        machine.set_rate_source(Instant::START, path, rate);
        if self.sealed {
            self.seal(path);
        }
    }

    /// Speaks to this path as sessions do: in the short form, under a seal, with repair symbols over windows.
    pub(crate) fn seal(&mut self, path: PathId) {
        self.sealed = true;
        let machine = self.machine.app();
        machine.speak(Instant::START, path, TpduForm::Short);
        machine.use_windows(Instant::START, path, true);
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        if !self.sealed {
            self.machine.handle_datagram(now, datagram);
        } else if let Some((octets, _)) = seal::open(datagram.octets) {
            let content = Datagram { octets, ..datagram };
            self.machine.app().handle_frames(now, content);
        }
    }

    /// Tells the machine the bit error rate that follows from the received power of a path. Returns whether
    /// the machine was told, and so has to be drained.
    pub(super) fn note_short_term_rate(
        &mut self,
        now: Instant,
        path: PathId,
        rate: BitErrorRate,
    ) -> bool {
        if self.hears_power {
            self.machine.app().note_short_term_rate(now, path, rate);
        }
        self.hears_power
    }

    /// Takes what the radios on a path tell of it. Nothing is sent while one of them passes nothing.
    pub(super) fn take_told(&mut self, now: Instant, path: PathId, told: ToldFacts) {
        let machine = self.machine.app();
        machine.take_told(now, path, told);
        machine.hold(now, path, told.is_up == Some(false));
    }

    /// Flow `index` will be sent from here, with these settings.
    pub(crate) fn send(&mut self, index: usize, config: ConnectionConfig) {
        self.outgoing.insert(index, config);
    }

    /// The receiving application waits for a flow at `port`.
    pub(crate) fn listen(&mut self, port: Port, config: ConnectionConfig) {
        self.machine
            .app()
            .listen(port, config)
            .expect("reading a plan checks its connections");
    }

    pub(super) fn connect(&mut self, now: Instant, index: usize, flow: &mut Flow) {
        let Some(config) = self.outgoing.remove(&index) else {
            return;
        };
        let id = self
            .machine
            .app()
            .connect(now, flow.path, flow.port, config);
        match id {
            Ok(id) => {
                let messages = config.mode == Mode::Datagram
                    || matches!(flow.plan.traffic, Traffic::Messages { .. });
                self.ends.senders.insert(index, (id, messages));
                self.ends.add(id, index, true);
            }
            Err(_) => flow.sender_closed = Some("refused"),
        }
    }

    pub(super) fn write(&mut self, now: Instant, index: usize, flow: &mut Flow) {
        self.ask_controller(now, index, flow);
        self.ends.write(now, self.machine.app(), index, flow);
    }

    pub(super) fn drain(&mut self, now: Instant, context: &mut Context<'_>) -> Option<Deadline> {
        let mut driver = StackDriver {
            context,
            ends: &mut self.ends,
            sealed: self.sealed,
        };
        drain(&mut self.machine, now, &mut driver)
    }

    /// Takes the notes that the connections made since the last call: the places of TPDUs are kept, and
    /// `events` is shown all.
    pub(super) fn take_notes(
        &mut self,
        now: Instant,
        node: NodeAddress,
        flows: &mut [Flow],
        events: Option<&mut EventLog>,
    ) {
        let ends = &self.ends.flows;
        let mut keep = |note: &Note| {
            let end = ends.get(&note.connection);
            if is_decision(&note.record)
                && let Some(flow) = end.filter(|end| end.sends)
                && let Some(flow) = flows.get_mut(flow.flow)
                && let Some(decisions) = &mut flow.decisions
            {
                decisions.push((note.at, note.record));
            }
            if let TraceRecord::Sent { seq, position, .. } = note.record
                && let Some(flow) = end.and_then(|end| flows.get_mut(end.flow))
                && let Some(positions) = &mut flow.positions
            {
                positions.note(seq, position);
            }
            end
        };
        let endpoint = self.machine.notes();
        let Some(events) = events else {
            while let Some(note) = endpoint.take_note() {
                keep(&note);
            }
            return;
        };
        events.take_notes(now, node, endpoint, |note, place| {
            let end = keep(note);
            EventPlace {
                flow: end.map(|end| end.flow as u64),
                end: end.map(End::side),
                ..place
            }
        });
    }

    pub(super) fn counts(&self) -> StackCounts {
        let machine = self.machine.inner();
        let mut counts = StackCounts {
            damaged: machine.endpoint_counters().damaged_datagrams,
            ..StackCounts::default()
        };
        for (&id, end) in &self.ends.flows {
            let counters = machine.counters(id).unwrap_or(&end.counters);
            let [first, second, later] = counters.recovered_arq;
            counts.recovered.fec_words += counters.recovered_fec_words;
            counts.recovered.fec_block += counters.recovered_fec_block;
            counts.recovered.arq_first += first;
            counts.recovered.arq_second += second;
            counts.recovered.arq_later += later;
            counts.damaged += counters.residual_damaged;
            counts.adaptation += AdaptationCounts {
                switched: counters.adaptations,
                tpdus: counters.adapted_tpdus,
                payload_bytes: counters.adapted_bytes,
                words: counters.adapted_words,
                quarter_octaves: counters.adapted_quarter_octaves,
            };
        }
        counts
    }
}

impl Ends {
    fn add(&mut self, id: ConnectionId, flow: usize, sends: bool) {
        let end = End {
            flow,
            sends,
            counters: Counters::default(),
        };
        self.flows.insert(id, end);
    }

    /// Writes the application's octets until the machine accepts no more; closes after the last.
    fn write(&mut self, now: Instant, machine: &mut AerotpEndpoint, index: usize, flow: &mut Flow) {
        let Some(&(id, message)) = self.senders.get(&index) else {
            return;
        };
        let max = if message {
            match flow.plan.traffic {
                Traffic::Messages { size, .. } => size.0,
                Traffic::Bulk { .. } | Traffic::ConstantRate { .. } | Traffic::Own { .. } => {
                    flow.plan.payload.0
                }
            }
        } else {
            WRITE_MAX
        };
        loop {
            flow.fill(max, &mut self.write);
            if self.write.is_empty() {
                break;
            }
            let taken = if message {
                match machine.write_message(now, id, &self.write) {
                    Ok(true) => self.write.len(),
                    _ => 0,
                }
            } else {
                machine.write(now, id, &self.write).unwrap_or(0)
            };
            if taken > 0 {
                flow.accept(now, taken as u64);
            }
            if taken < self.write.len() {
                return;
            }
        }
        if flow.source.is_finished() {
            machine.close(now, id);
        }
    }

    /// Hands everything readable to the application, which compares it.
    fn read(now: Instant, machine: &mut AerotpEndpoint, id: ConnectionId, flow: &mut Flow) {
        while let Some(Chunk { seq, octets, .. }) = machine.read(now, id) {
            let offset = flow.position_of(seq);
            flow.meter.deliver(now, offset, &octets);
            machine.recycle(id, octets);
        }
    }
}

struct StackDriver<'a, 'b> {
    context: &'a mut Context<'b>,
    ends: &'a mut Ends,
    sealed: bool,
}

impl MachineDriver<Guarded<AerotpEndpoint>> for StackDriver<'_, '_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.context.network.buffer()
    }

    fn send(&mut self, now: Instant, mut transmit: Transmit) {
        let node = self.context.node;
        let network = &mut *self.context.network;
        if self.sealed {
            seal::seal(NETWORK_HEADER_BYTES, network.buffer(), SealLabel::default());
            transmit.len += SEAL_BYTES;
        }
        network.send(now, node, NetworkProtocol::AEROTP, transmit, 0);
    }

    fn deliver(&mut self, now: Instant, machine: &mut Guarded<AerotpEndpoint>, event: Event) {
        match event {
            Event::Incoming { id, local, .. } => {
                if let Some(index) = flow_of(local) {
                    self.ends.add(id, index, false);
                }
            }
            Event::Readable(id) => self.with(machine, id, |_, machine, flow, _| {
                Ends::read(now, machine, id, flow);
            }),
            Event::Writable(id) => self.with(machine, id, |ends, machine, flow, end| {
                if end.sends {
                    ends.write(now, machine, end.flow, flow);
                }
            }),
            Event::PeerFinished(id) => self.with(machine, id, |_, machine, _, _| {
                machine.close(now, id);
            }),
            Event::Connected(_) | Event::AllSent(_) => {}
            Event::Closed { id, why } => self.with(machine, id, |_, _, flow, end| {
                let closed = if end.sends {
                    &mut flow.sender_closed
                } else {
                    &mut flow.receiver_closed
                };
                *closed = Some(name(why));
            }),
            Event::Datagram {
                local,
                ordinal,
                octets,
                ..
            } => {
                let flow = flow_of(local).and_then(|index| self.context.flows.get_mut(index));
                if let Some(flow) = flow {
                    let offset = flow.position_of(TpduSeq(ordinal));
                    flow.meter.deliver(now, offset, &octets);
                }
            }
        }
    }
}

impl StackDriver<'_, '_> {
    /// Runs `call` for the flow of connection `id`, and remembers its counters.
    fn with(
        &mut self,
        machine: &mut Guarded<AerotpEndpoint>,
        id: ConnectionId,
        call: impl FnOnce(&mut Ends, &mut AerotpEndpoint, &mut Flow, End),
    ) {
        let Some(&end) = self.ends.flows.get(&id) else {
            return;
        };
        let machine = machine.app();
        if let Some(flow) = self.context.flows.get_mut(end.flow) {
            call(self.ends, machine, flow, end);
        }
        if let (Some(counters), Some(end)) = (machine.counters(id), self.ends.flows.get_mut(&id)) {
            end.counters = *counters;
        }
    }
}

const fn name(why: CloseReason) -> &'static str {
    match why {
        CloseReason::Finished => "finished",
        CloseReason::Aborted => "aborted",
        CloseReason::Disagreed => "disagreed",
        CloseReason::Reset => "reset",
        CloseReason::PeerVanished => "peer_vanished",
    }
}
