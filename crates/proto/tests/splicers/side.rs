//! One side: its machine, its applications, and the host behind each flow's destination.

use super::super::FORM;
use super::{App, ECHO, PEER, REFUSES, SILENT};
use fulmar_proto::machine::{Deadline, MachineDriver, Strict, Transmit, drain};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{FlowEvent, FlowId, RefuseCode, Role, Splicer, SplicerConfig};
use fulmar_proto::transport::aerotp::{AerotpEndpoint, EndpointConfig};
use fulmar_proto::units::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// A side's machine and its applications.
pub(crate) struct Side {
    pub(crate) machine: Strict<Splicer>,
    pub(super) deadline: Option<Deadline>,
    pub(crate) apps: BTreeMap<FlowId, App>,
    pub(crate) again: u32,
    /// Whether each start has what the one before wrote down of its flows.
    pub(crate) keeps: bool,
    /// Octets that each connection of a flow to its destination received.
    given: BTreeMap<FlowId, Vec<usize>>,
    /// Flows that have ended since this side's start. Their octets count until the next start: no start
    /// remembers how flows of an earlier one ended.
    ended: BTreeSet<FlowId>,
    /// Flows of which two connections to the destination received octets.
    pub(crate) doubled: BTreeSet<FlowId>,
    pub(crate) new_flows_hold: bool,
    pub(super) sent: Vec<Vec<u8>>,
}

struct Ends<'a> {
    buffer: Vec<u8>,
    sent: Vec<Vec<u8>>,
    apps: &'a mut BTreeMap<FlowId, App>,
    again: &'a mut u32,
    keeps: bool,
    given: &'a mut BTreeMap<FlowId, Vec<usize>>,
    ended: &'a mut BTreeSet<FlowId>,
    doubled: &'a mut BTreeSet<FlowId>,
    hold: bool,
}

impl MachineDriver<Strict<Splicer>> for Ends<'_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }

    fn send(&mut self, _now: Instant, _transmit: Transmit) {
        self.sent.push(self.buffer.clone());
    }

    fn deliver(&mut self, now: Instant, machine: &mut Strict<Splicer>, event: FlowEvent) {
        let splicer = machine.app();
        let id = match &event {
            FlowEvent::Requested {
                flow,
                peer,
                destination,
                class,
                earlier,
                ..
            } => {
                *self.again += u32::from(*earlier);
                if *earlier && !self.keeps {
                    // The destination may have received octets.
                    splicer.refused(now, *flow, RefuseCode::Forgotten);
                    return;
                }
                let app = App {
                    peer: Some(*peer),
                    role: Some(Role::Acceptor),
                    class: *class,
                    destination: Some(destination.clone()),
                    echoes: destination.port == ECHO,
                    holds: self.hold,
                    ..App::default()
                };
                self.apps.insert(*flow, app);
                self.connect(now, splicer, *flow, destination.port);
                *flow
            }
            FlowEvent::Connected { flow, bound } => {
                self.apps.get_mut(flow).expect("known").bound = Some(*bound);
                *flow
            }
            FlowEvent::Readable(flow) | FlowEvent::Writable(flow) => *flow,
            FlowEvent::PeerFinished(flow) => {
                self.apps.get_mut(flow).expect("known").peer_finished = true;
                *flow
            }
            FlowEvent::Stopped(flow) => {
                self.apps.get_mut(flow).expect("known").told_to_stop += 1;
                *flow
            }
            FlowEvent::Delivered { flow, offset } => {
                self.apps.get_mut(flow).expect("known").delivered = *offset;
                *flow
            }
            FlowEvent::Resume { flow, from } => {
                let app = self.apps.get_mut(flow).expect("known");
                assert!(*from >= app.delivered, "{from} was released");
                app.sent = usize::try_from(*from).expect("small");
                app.resumed.push(*from);
                *flow
            }
            FlowEvent::Refused { flow, .. }
            | FlowEvent::Reset { flow, .. }
            | FlowEvent::Closed(flow) => {
                let app = self.apps.get_mut(flow).expect("known");
                assert_eq!(app.last, None, "one last word");
                app.last = Some(event.clone());
                self.ended.insert(*flow);
                *flow
            }
        };
        if let Some(app) = self.apps.get_mut(&id) {
            app.pump(now, id, splicer);
            let octets = app.received.len();
            self.note_given(id, octets);
        }
    }
}

impl Ends<'_> {
    /// Answers a flow as the destination.
    fn connect(&mut self, now: Instant, splicer: &mut Splicer, flow: FlowId, port: u16) {
        match port {
            REFUSES => {
                splicer.refused(now, flow, RefuseCode::Refused);
                self.apps.remove(&flow);
            }
            SILENT => {}
            _ => {
                let bound = SocketAddr::from(([10, 0, 0, 1], port));
                splicer.connected(now, flow, bound);
                self.given.entry(flow).or_default().push(0);
                if let Some(app) = self.apps.get_mut(&flow) {
                    app.bound = Some(bound);
                }
            }
        }
    }

    /// Notes that the present connection to the destination received so many octets.
    fn note_given(&mut self, flow: FlowId, octets: usize) {
        let Some(given) = self.given.get_mut(&flow) else {
            return;
        };
        if let Some(last) = given.last_mut() {
            *last = octets;
        }
        if given.iter().filter(|octets| **octets > 0).count() > 1 {
            self.doubled.insert(flow);
        }
    }
}

impl Side {
    pub(super) fn new(config: &SplicerConfig, endpoint: EndpointConfig, seed: u64) -> Self {
        let rng = Rng::from_seed(seed);
        let mut endpoint = AerotpEndpoint::new(endpoint, rng.child("ports"));
        endpoint.speak(Instant::START, PEER, FORM);
        let splicer = Splicer::new(*config, endpoint, rng.child("flows"));
        Self {
            machine: Strict::new(splicer.expect("a sound configuration")),
            deadline: None,
            apps: BTreeMap::new(),
            again: 0,
            keeps: true,
            given: BTreeMap::new(),
            ended: BTreeSet::new(),
            doubled: BTreeSet::new(),
            new_flows_hold: false,
            sent: Vec::new(),
        }
    }

    /// Notes that the driver ended the flow, and hears no last word.
    pub(crate) fn end(&mut self, flow: FlowId) {
        self.ended.insert(flow);
    }

    /// Continues after `before`, which was killed.
    pub(super) fn follow(&mut self, mut before: Self) -> BTreeMap<FlowId, App> {
        self.keeps = before.keeps;
        self.doubled = before.doubled;
        before.given.retain(|flow, _| !before.ended.contains(flow));
        self.given = before.given;
        before.apps
    }

    pub(super) fn settle(&mut self, now: Instant) {
        let mut ends = Ends {
            buffer: Vec::new(),
            sent: Vec::new(),
            apps: &mut self.apps,
            again: &mut self.again,
            keeps: self.keeps,
            given: &mut self.given,
            ended: &mut self.ended,
            doubled: &mut self.doubled,
            hold: self.new_flows_hold,
        };
        self.deadline = drain(&mut self.machine, now, &mut ends);
        self.sent = ends.sent;
    }
}
