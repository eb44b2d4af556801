//! One run: nodes, their machines and applications in virtual time.
//!
//! The loop takes the next event, feeds one machine, drains it completely and remembers the
//! deadline it named. A machine has at most one live wake-up in the queue: a later deadline does
//! not move it (the wake-up then finds nothing due and is renewed), an earlier one replaces it,
//! and the replaced one is ignored when it comes.

mod figures;
mod placement;

use crate::flow::{Flow, note_arrival};
use crate::flow_packets::FlowLog;
use crate::network::{Network, NetworkEvent, path_of};
use crate::node::{NodeId, StackId, WayId};
use crate::pool::PacketId;
use crate::recording::{PacketLog, RecordedDecision, RunRecording, pieces};
use crate::scenario::PointPlan;
use crate::stack::{Context, Stack};
use crate::tap::{EventLog, Observed, Observers, Tap};
use crate::topology;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use fulmar_capture::About;
use fulmar_channel::ChannelConfigError;
use fulmar_proto::machine::{Datagram, Deadline, PathId, TransmitKind};
use fulmar_proto::rng::Rng;
use fulmar_proto::told::ToldFacts;
use fulmar_proto::units::Instant;
use fulmar_proto::wire::network::NodeAddress;
use placement::Placement;
use std::collections::BTreeMap;
use std::io;

/// The reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Every octet of every flow arrived, and nothing was left to happen.
    Completed,
    /// Nothing was left to happen, and something is missing.
    Quiet,
    /// The scenario's longest duration was reached.
    TimeLimit,
    /// A transport broke its promise.
    Violation,
    /// A replayed trace came to its end before the packets did.
    TraceUsedUp,
    /// The user asked for an end.
    Cancelled,
}

impl EndReason {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Quiet => "quiet",
            Self::TimeLimit => "time_limit",
            Self::Violation => "violation",
            Self::TraceUsedUp => "trace_used_up",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Options in which two runs of a plan may differ without a change of what is simulated.
#[derive(Clone, Debug, Default)]
pub struct WorldOptions {
    /// The positions of nodes in the order in which they are created; in the plan's order if
    /// empty.
    pub creation_order: Vec<usize>,
    /// Checks now and then whether a transport takes more memory than its settings allow; a run in which
    /// one does ends there.
    pub watch_memory: bool,
}

/// A machine and its pending wake-up.
#[derive(Debug)]
struct Slot {
    stack: Stack,
    node: NodeId,
    wake: Option<Wake>,
}

#[derive(Clone, Copy, Debug)]
struct Wake {
    /// The deadline the machine named.
    deadline: Instant,
    /// The time at which the driver will call.
    at: Instant,
}

/// A run in progress.
#[derive(Debug)]
pub struct World {
    now: Instant,
    ends_at: Instant,
    network: Network,
    stacks: Vec<Slot>,
    flows: Vec<Flow>,
    lateness: Duration,
    lateness_rng: Rng,
    /// The hops that have a link layer.
    link_hops: Vec<usize>,
    /// The names of the hops of a graph.
    hop_names: Vec<String>,
    watch_memory: bool,
    /// The times at which hops changed, with the octets that the measured flows' machines had sent, and those
    /// that had been delivered.
    marks: Vec<(Instant, u64, u64)>,
    /// The last word of each way's radio.
    told: BTreeMap<WayId, ToldFacts>,
    /// The log of machines' events, if they are observed.
    events: Option<Box<EventLog>>,
    /// The reason why observers see nothing.
    unobserved: Option<io::Error>,
}

/// The number of events between two looks at the cancel flag.
const CANCEL_CHECK_EVENTS: u32 = 4096;
/// The number of events between two looks at memory.
const MEMORY_CHECK_EVENTS: u32 = 16;

impl World {
    /// Builds the world of `plan` for one seed.
    ///
    /// # Errors
    /// A channel's settings are out of range; a plan that was read from a document has been
    /// checked for that.
    pub fn new(
        plan: &PointPlan,
        seed: u64,
        options: &WorldOptions,
    ) -> Result<Self, ChannelConfigError> {
        let nobody = Observers::default();
        Self::observed_by(plan, seed, options, nobody)
    }

    /// As [`World::new`], and shows the run to `observers`. They do not change it; if one could not be
    /// written, [`World::finish_observers`] says so.
    ///
    /// # Errors
    /// As [`World::new`].
    pub fn observed_by(
        plan: &PointPlan,
        seed: u64,
        options: &WorldOptions,
        observers: Observers,
    ) -> Result<Self, ChannelConfigError> {
        let rng = Rng::from_seed(seed);
        let nodes = topology::node_count(plan);
        let order = if options.creation_order.len() == nodes {
            options.creation_order.clone()
        } else {
            (0..nodes).collect()
        };
        let (mut network, places) = topology::build(plan, &rng, &order)?;
        let mut unobserved = None;
        let mut or_tell = |error| unobserved = Some(error);
        let about = About {
            scenario: &observers.scenario,
            point: observers.point,
            seed,
        };
        network.tap = observers.capture.and_then(|output| {
            let tap = Tap::new(output, observers.about, &topology::tap_ends(plan));
            tap.map_err(&mut or_tell).ok().map(Box::new)
        });
        let events = observers.events.and_then(|output| {
            let log = EventLog::new(output, &about);
            log.map_err(&mut or_tell).ok().map(Box::new)
        });
        let mut world = Self {
            now: Instant::START,
            ends_at: plan.ends_at(),
            network,
            stacks: Vec::new(),
            flows: Vec::new(),
            lateness: plan.run.lateness,
            lateness_rng: rng.child("lateness"),
            link_hops: topology::link_hops(plan),
            hop_names: topology::graph_hops(plan),
            watch_memory: options.watch_memory,
            marks: Vec::new(),
            told: BTreeMap::new(),
            events,
            unobserved,
        };
        let first_way = world.network.ways.iter().position(|way| way.measured);
        let first_way = first_way.unwrap_or_default();
        if observers.recording {
            world.network.log = Some(Box::new(PacketLog {
                first_way,
                packets: Vec::new(),
            }));
        }
        world.network.flow_log = observers.window.and_then(|window| {
            let flow = plan.flows.get(window.flow)?;
            Some(Box::new(FlowLog::new(window, flow, first_way)))
        });
        let notes = world.events.is_some() || observers.recording;
        let mut placement = Placement::new(plan, &rng, notes);
        for (index, flow) in plan.flows.iter().enumerate() {
            let mut flow = placement.add(&mut world.network, index, flow, &places);
            if observers.recording {
                flow.meter.record();
                flow.decisions = Some(Vec::new());
            }
            world.flows.push(flow);
        }
        world.stacks = placement.into_slots();
        world.network.await_change();
        world.network.await_news();
        // Listening is an application call, and every call is followed by a drain.
        for id in 0..world.stacks.len() {
            world.drain(StackId(id), 0);
        }
        Ok(world)
    }

    /// Runs to the end, or until `cancel` is set.
    pub fn run(&mut self, cancel: &AtomicBool) -> EndReason {
        let mut until_check = CANCEL_CHECK_EVENTS;
        while let Some((at, event)) = self.network.queue.pop() {
            if at > self.ends_at {
                self.now = self.ends_at;
                return EndReason::TimeLimit;
            }
            if matches!(event, NetworkEvent::Change | NetworkEvent::News)
                && self.network.queue.is_empty()
            {
                // Nobody is there to notice.
                break;
            }
            self.now = at;
            self.handle(event);
            until_check -= 1;
            if self.watch_memory
                && until_check.is_multiple_of(MEMORY_CHECK_EVENTS)
                && self.memory_excess().is_some()
            {
                return EndReason::Violation;
            }
            if until_check == 0 {
                until_check = CANCEL_CHECK_EVENTS;
                if cancel.load(Relaxed) {
                    return EndReason::Cancelled;
                }
                if self.flows.iter().any(|f| f.meter.violation().is_some()) {
                    return EndReason::Violation;
                }
                if self.network.trace_used_up().is_some() {
                    return EndReason::TraceUsedUp;
                }
            }
        }
        if self.flows.iter().any(|f| f.meter.violation().is_some()) {
            EndReason::Violation
        } else if self.network.trace_used_up().is_some() {
            EndReason::TraceUsedUp
        } else if self.flows.iter().all(|f| f.meter.is_complete()) {
            EndReason::Completed
        } else {
            EndReason::Quiet
        }
    }

    fn handle(&mut self, event: NetworkEvent) {
        match event {
            NetworkEvent::Arrive { node, packet } => {
                if let Some(arrival) = self.network.receive(self.now, node, packet) {
                    self.hand_over(arrival, packet);
                }
            }
            NetworkEvent::Frame { link, frame } => {
                self.network.receive_frame(self.now, link, frame);
            }
            NetworkEvent::LinkWake(link) => self.network.wake_link(self.now, link),
            NetworkEvent::LinkFree(link) => self.network.free_link(self.now, link),
            NetworkEvent::Wake(id) => self.wake(id),
            NetworkEvent::Depart(way) => self.network.look_at_terminal(self.now, way),
            NetworkEvent::Mark => self.mark(),
            NetworkEvent::Change => {
                self.mark();
                self.network.make_changes(self.now);
                self.network.await_change();
            }
            NetworkEvent::News => self.hear_news(),
            NetworkEvent::Start(index) => {
                let sender = self.flows[index].sender;
                let stack = &mut self.stacks[sender.0].stack;
                let flow = &mut self.flows[index];
                flow.awaits_connection = flow.source.waits_for_connection() && flow.has_handshake();
                stack.connect(self.now, index, flow);
                self.drain(sender, 0);
                self.schedule_write(index);
            }
            NetworkEvent::Write(index) => {
                let flow = &mut self.flows[index];
                flow.make_write(self.now);
                let sender = flow.sender;
                self.stacks[sender.0].stack.write(self.now, index, flow);
                self.drain(sender, 0);
                let flow = &mut self.flows[index];
                if flow.plan_write(self.now) {
                    // The transport closes.
                    self.stacks[sender.0].stack.write(self.now, index, flow);
                    self.drain(sender, 0);
                }
                self.schedule_write(index);
            }
        }
    }

    /// Starts the sources that waited for their connection.
    fn begin_connected(&mut self) {
        for index in core::mem::take(&mut self.network.connected) {
            let flow = &mut self.flows[index];
            if core::mem::take(&mut flow.awaits_connection) {
                flow.source.start_at(self.now);
                self.schedule_write(index);
            }
        }
    }

    /// Hands the words of radios that are due to the machines whose packets cross their hops.
    fn hear_news(&mut self) {
        while let Some(news) = self.network.news.pop_front() {
            if news.at > self.now {
                self.network.news.push_front(news);
                break;
            }
            self.told.insert(news.way, news.told);
            for index in 0..self.flows.len() {
                let flow = &self.flows[index];
                for (id, path) in [(flow.sender, flow.path), (flow.receiver, flow.path_back)] {
                    self.tell(news.way, (id, path));
                }
            }
        }
        self.network.await_news();
    }

    /// Tells a machine what the ways of its path are said to be, if this one is among them: the least of all.
    fn tell(&mut self, way: WayId, (id, path): (StackId, PathId)) {
        let slot = &mut self.stacks[id.0];
        let route = self.network.route(slot.node, NodeAddress(path.0));
        if !route.contains(&way) {
            return;
        }
        let told = route.iter().filter_map(|way| self.told.get(way));
        let told = told.fold(ToldFacts::default(), |least, one| ToldFacts {
            is_up: [least.is_up, one.is_up].into_iter().flatten().min(),
            rate: [least.rate, one.rate].into_iter().flatten().min(),
            bit_errors: one.bit_errors.or(least.bit_errors),
            ..ToldFacts::default()
        });
        if slot.stack.take_told(self.now, path, told) {
            self.drain(id, 0);
        }
    }

    fn schedule_write(&mut self, index: usize) {
        if self.flows[index].awaits_connection {
            return;
        }
        if let Some(at) = self.flows[index].source.next_write_at() {
            self.network
                .queue
                .push(at.max(self.now), NetworkEvent::Write(index));
        }
    }

    fn hand_over(&mut self, arrival: crate::network::PacketArrival, packet: PacketId) {
        let id = arrival.stack;
        let (tag, kind, rate) = {
            let packet = self.network.pool.packet(packet);
            (packet.tag, packet.kind, packet.short_term_rate)
        };
        if let Some(rate) = rate {
            let path = path_of(arrival.header.source);
            if self.stacks[id.0]
                .stack
                .note_short_term_rate(self.now, path, rate)
            {
                self.drain(id, 0);
            }
        }
        let octets = self.network.payload(packet);
        if kind != TransmitKind::Control {
            note_arrival(&mut self.flows, id, octets, self.now);
        }
        let datagram = Datagram {
            path: path_of(arrival.header.source),
            octets,
            ecn: arrival.header.ecn,
        };
        self.stacks[id.0].stack.handle_datagram(self.now, datagram);
        self.network.pool.release(packet);
        self.drain(id, tag);
    }

    fn wake(&mut self, id: StackId) {
        let slot = &mut self.stacks[id.0];
        match slot.wake {
            Some(wake) if wake.at == self.now => slot.wake = None,
            // Replaced by an earlier one.
            _ => return,
        }
        let due = slot.stack.next_deadline().is_some_and(|d| d.at <= self.now);
        if due {
            slot.stack.handle_deadline(self.now);
        }
        self.drain(id, 0);
    }

    fn drain(&mut self, id: StackId, tag: u64) {
        let slot = &mut self.stacks[id.0];
        let mut context = Context {
            network: &mut self.network,
            flows: &mut self.flows,
            node: slot.node,
            tag,
        };
        let deadline = slot.stack.drain(self.now, &mut context);
        let address = self.network.nodes[slot.node.0].address;
        let (flows, events) = (&mut self.flows, self.events.as_deref_mut());
        slot.stack.take_notes(self.now, address, flows, events);
        if let Some(deadline) = deadline {
            self.schedule_wake(id, deadline);
        }
        if !self.network.connected.is_empty() {
            self.begin_connected();
        }
    }

    fn schedule_wake(&mut self, id: StackId, Deadline { at: deadline, .. }: Deadline) {
        let slot = &mut self.stacks[id.0];
        if slot.wake.is_some_and(|wake| wake.deadline <= deadline) || deadline > self.ends_at {
            return;
        }
        let late = u64::try_from(self.lateness.as_nanos()).unwrap_or(u64::MAX);
        let late = Duration::from_nanos(if late == 0 {
            0
        } else {
            self.lateness_rng.below(late)
        });
        let at = deadline.max(self.now) + late;
        slot.wake = Some(Wake { deadline, at });
        self.network.queue.push(at, NetworkEvent::Wake(id));
    }

    /// Hands the observers the rest, after the run, and returns the amounts that they were shown.
    ///
    /// # Errors
    /// The first error of an observer's output, after which that observer received no more.
    pub fn finish_observers(&mut self, end: EndReason) -> io::Result<Observed> {
        let mut observed = Observed::default();
        if let Some(error) = self.unobserved.take() {
            return Err(error);
        }
        if let Some(tap) = &mut self.network.tap {
            observed.packets = tap.finish()?;
        }
        if let Some(events) = &mut self.events {
            observed.lines = events.finish(self.now, end.name())?;
        }
        observed.flow = self.network.flow_log.take().map(|log| log.noted);
        Ok(observed)
    }

    /// Takes the single events of the run, if they were recorded.
    pub fn take_recording(&mut self) -> Option<RunRecording> {
        let log = self.network.log.take()?;
        let mut recording = RunRecording {
            packets: log.packets,
            ..RunRecording::default()
        };
        for (index, flow) in self.flows.iter_mut().enumerate() {
            if flow.plan.measured {
                recording.pieces.extend(pieces(index, &flow.meter));
            }
            let decisions = flow.decisions.take().unwrap_or_default().into_iter();
            recording
                .decisions
                .extend(decisions.map(|(at, decision)| RecordedDecision {
                    flow: index,
                    at,
                    decision,
                }));
        }
        Some(recording)
    }

    fn mark(&mut self) {
        let delivered = self.measured().map(|meter| meter.delivered().0).sum();
        self.marks.push((self.now, self.octets_sent(), delivered));
    }

    /// Marks this time, too, as if hops changed then.
    pub fn mark_at(&mut self, at: Instant) {
        self.network.queue.push(at, NetworkEvent::Mark);
    }
}
