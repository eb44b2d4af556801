//! A running gateway's state, and the order of one turn of its loop.

use super::command::Command;
use super::config::{ClassSettings, Custody as Keep, GatewayConfig};
use super::entries::{Applicant, Association, Entry, LastWord};
use super::flows::{
    Admission, Budget, ClientKey, Custody, FlowRecord, Flows, Keeping, MemoryCustody,
};
use super::peers::{Decisions, FoundPeers, Outages, PeerNames, TRY_AGAIN};
use super::repeats::Repeats;
use super::sockets::{Came, Poller, Resolver, Token};
use super::watch::{GatewayTrace, index_of};
use crate::capture::Capture;
use crate::session::{LinkState, Session, SessionEvent, SessionTap, source_octets};
use crate::udp::{Application, Step};
use fulmar_capture::{GatewayEvent, Place};
use fulmar_proto::machine::{Datagram, Deadline, PathId};
use fulmar_proto::splice::{FlowEvent, FlowId, ResetCode, Splicer};
use fulmar_proto::units::{ByteCount, Duration, Instant, format_duration};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::Receiver;

/// The machine that a gateway runs.
pub(super) type Link = Session<Splicer>;

/// Octets read from a socket at once.
const SCRATCH_BYTES: usize = 256 * 1024;
/// The time after a stop at which flows that are not over are cut off.
const STOP_WITHIN: Duration = Duration::from_secs(3);
/// The time in which the last words must have left before the loop ends.
const FAREWELL: Duration = Duration::from_millis(200);
/// The pause of an entry when the system has no descriptor left.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// The time that a proxy's client has to say what it wants.
pub(super) const NEGOTIATION_MAX: Duration = Duration::from_secs(30);

/// The owner of a ready socket.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Entry,
    Negotiation,
    /// The relay or the control connection of an association.
    Association(Token),
    Flow(FlowId),
    Keeper,
}

/// The progress towards the end of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    No,
    /// No new flows; the present ones may finish until then.
    Finishing(Instant),
    /// Everything was said; queued datagrams leave until then.
    Leaving(Instant),
}

/// Everything but the machine.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) config: GatewayConfig,
    pub(super) poller: Poller,
    pub(super) targets: BTreeMap<Token, Target>,
    pub(super) entries: BTreeMap<Token, Entry>,
    pub(super) applicants: BTreeMap<Token, Applicant>,
    pub(super) associations: BTreeMap<Token, Association>,
    pub(super) admission: Admission,
    pub(super) flows: Flows,
    /// Datagram flows of entries: by port, client, and original destination.
    pub(super) clients: BTreeMap<ClientKey, FlowId>,
    pub(super) resolver: Resolver<FlowId>,
    pub(super) peer_names: PeerNames,
    pub(super) found_peers: FoundPeers,
    pub(super) repeats: Repeats,
    pub(super) budget: Budget,
    pub(super) keeping: Keeping,
    pub(super) decisions: Decisions,
    pub(super) outages: Outages,
    pub(super) scratch: Vec<u8>,
    pub(super) resting: Option<(Instant, Vec<Token>)>,
    pub(super) cut: usize,
    /// Flows of the gateway before that could not go on; its store and its keeper bound their number.
    pub(super) given_up: BTreeSet<FlowId>,
    /// Whether flows were left to the next gateway.
    pub(super) left: bool,
    pub(super) ending: Ending,
    inbox: Receiver<Command>,
    came: Vec<Came>,
    source_ready: bool,
    /// Whether there is more to do at once; the link gets its turn first.
    more: bool,
    next_token: u64,
    /// The path and address of the last datagram.
    pub(super) heard: Option<(PathId, SocketAddr)>,
    /// A capture, and the tap of what the carrier sends.
    pub(super) capture: Option<(Capture, SessionTap)>,
    pub(super) trace: Option<GatewayTrace>,
}

/// The parts of a running gateway.
pub(super) struct Parts {
    pub(super) config: GatewayConfig,
    pub(super) poller: Poller,
    pub(super) resolver: Resolver<FlowId>,
    pub(super) peer_names: PeerNames,
    pub(super) inbox: Receiver<Command>,
    pub(super) keeping: Keeping,
}

impl Running {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            admission: Admission::new(&parts.config),
            budget: Budget::new(parts.config.custody.limit, parts.config.peers.len()),
            config: parts.config,
            poller: parts.poller,
            targets: BTreeMap::new(),
            entries: BTreeMap::new(),
            applicants: BTreeMap::new(),
            associations: BTreeMap::new(),
            flows: Flows::default(),
            clients: BTreeMap::new(),
            resolver: parts.resolver,
            peer_names: parts.peer_names,
            found_peers: FoundPeers::default(),
            repeats: Repeats::default(),
            keeping: parts.keeping,
            decisions: Decisions::default(),
            outages: Outages::default(),
            scratch: vec![0; SCRATCH_BYTES],
            resting: None,
            cut: 0,
            given_up: BTreeSet::new(),
            left: false,
            ending: Ending::No,
            inbox: parts.inbox,
            came: Vec::new(),
            source_ready: true,
            more: false,
            next_token: 0,
            heard: None,
            capture: None,
            trace: None,
        }
    }

    pub(super) fn token(&mut self, target: Target) -> Token {
        let token = Token(self.next_token);
        self.next_token += 1;
        self.targets.insert(token, target);
        token
    }

    /// Makes the loop look at the sockets again: those watched for levels may have more.
    pub(super) const fn source_again(&mut self) {
        self.source_ready = true;
    }

    /// A store in memory for a flow of `peer`.
    pub(super) fn memory(&self, peer: usize, limit: ByteCount) -> Box<dyn Custody> {
        Box::new(MemoryCustody::new(limit.as_usize(), self.budget.of(peer)))
    }

    /// A store for a flow of `class` with `peer`, if it keeps anything.
    pub(super) fn custody(
        &self,
        (id, peer): (FlowId, usize),
        class: &ClassSettings,
        record: impl FnOnce() -> FlowRecord,
    ) -> Option<Box<dyn Custody>> {
        match class.custody {
            Keep::None => None,
            Keep::Memory => Some(self.memory(peer, class.keep)),
            Keep::Disk => self.keeping.custody(id, record(), None, class.keep),
        }
    }

    pub(super) fn peer_name(&self, peer: usize) -> &str {
        self.config
            .peers
            .get(peer)
            .map_or("?", |peer| peer.name.as_str())
    }

    pub(super) fn class_name(&self, id: u8) -> String {
        let named = self
            .config
            .classes
            .iter()
            .find(|class| class.flow.id.0 == id);
        named.map_or_else(|| format!("class_{id}"), |class| class.name.clone())
    }

    fn commands(&mut self, now: Instant, link: &mut Link) {
        while let Ok(command) = self.inbox.try_recv() {
            match command {
                Command::Reload(reload) => self.reload(now, link, *reload),
                Command::Stop => self.begin_end(now),
                Command::Status(reply) => {
                    // The one who asked may have lost patience.
                    let _ = reply.try_send(self.status(now, link));
                }
            }
        }
    }

    fn begin_end(&mut self, now: Instant) {
        if self.ending != Ending::No {
            return;
        }
        tracing::info!(event = "stopping", flows = self.flows.len());
        let flows = self.flows.len() as u64;
        self.trace_event(now, Place::default(), &GatewayEvent::Stopping { flows });
        self.ending = Ending::Finishing(now + STOP_WITHIN);
        for (token, entry) in core::mem::take(&mut self.entries) {
            self.targets.remove(&token);
            self.close_port(&entry);
        }
        let applicants: Vec<Token> = self.applicants.keys().copied().collect();
        for token in applicants {
            self.end_applicant(token, LastWord::End);
        }
    }

    /// Cuts off what is left when the time is over; `true` when the loop may end.
    fn end(&mut self, now: Instant, link: &mut Link) -> bool {
        match self.ending {
            Ending::No => false,
            Ending::Finishing(until) => {
                let must_finish = self.flows.iter().any(|(_, flow)| !flow.is_durable());
                if must_finish && now < until {
                    return false;
                }
                for id in self.flows.ids() {
                    if self.leave_to_the_next(now, id) {
                        continue;
                    }
                    link.inner_mut().reset(now, id, ResetCode::Shutdown);
                    self.cut += 1;
                    self.drop_flow(now, id, "shutdown", true);
                }
                self.ending = Ending::Leaving(now + FAREWELL);
                false
            }
            Ending::Leaving(until) => now >= until,
        }
    }

    fn sockets(&mut self, now: Instant, link: &mut Link) {
        if !core::mem::take(&mut self.source_ready) {
            return;
        }
        let mut came = core::mem::take(&mut self.came);
        match self.poller.collect(&mut came) {
            Ok(more) => self.source_ready = more,
            Err(error) => tracing::error!(event = "poll_failed", %error),
        }
        for one in &came {
            match self.targets.get(&one.token).copied() {
                Some(Target::Entry) => self.entry_ready(now, link, one.token),
                Some(Target::Negotiation) => self.applicant_ready(now, link, one.token),
                Some(Target::Association(token)) => self.association_ready(now, link, token),
                Some(Target::Flow(id)) => {
                    if let Some(flow) = self.flows.get_mut(id) {
                        if let super::flows::Body::Stream(stream) = &mut flow.body {
                            stream.ready(one.readable, one.writable);
                        }
                        self.flows.wake(id);
                    }
                }
                Some(Target::Keeper) => self.keeping.look_now(now),
                // It was closed in this very turn.
                None => {}
            }
        }
        self.came = came;
    }
}

pub(super) const fn link_name(state: LinkState) -> &'static str {
    match state {
        LinkState::Up => "up",
        LinkState::Down => "down",
        LinkState::Connecting => "connecting",
    }
}

impl Application<Link> for Running {
    fn arrived(&mut self, now: Instant, link: &mut Link, datagram: Datagram<'_>, from: SocketAddr) {
        self.heard = Some((datagram.path, from));
        link.handle_datagram_from(now, datagram, &source_octets(from));
    }

    fn departing(&mut self, now: Instant, to: SocketAddr, octets: &[u8]) {
        if let Some((_, tap)) = &self.capture {
            tap.sent(now, to, octets);
        }
    }

    fn too_large(&mut self, now: Instant, link: &mut Link, path: PathId) {
        link.on_too_large(now, path);
    }

    fn paths_in_use(&self, _now: Instant, link: &Link) -> Option<Vec<PathId>> {
        Some(link.paths_in_use().collect())
    }

    fn deliver(&mut self, now: Instant, link: &mut Link, event: SessionEvent<FlowEvent>) {
        self.trace_notes(now, link);
        self.session_event(now, link, event);
    }

    fn work(&mut self, now: Instant, link: &mut Link) -> Step {
        self.trace_notes(now, link);
        self.commands(now, link);
        self.sockets(now, link);
        while let Some(answer) = self.resolver.poll() {
            let addresses = answer.addresses.unwrap_or_default();
            self.resolved(now, link, answer.tag, &addresses);
        }
        while let Some((peer, address)) = self.peer_names.poll(now) {
            tracing::info!(event = "peer_resolved", peer = self.peer_name(peer), %address);
            self.found_peers.add(now, index_of(peer), address);
        }
        self.end_rest(now);
        self.expire_applicants(now);
        self.expire_silent(now, link);
        self.flows.wake_due(now);
        for id in self.flows.take_busy() {
            self.turn(now, link, id);
        }
        self.keeping_turn(now);
        if self.end(now, link) {
            self.end_trace(now, link);
            return Step::Stop;
        }
        self.more = self.source_ready || self.flows.is_busy();
        Step::Wait
    }

    fn unreachable(&mut self, now: Instant, _link: &mut Link, _path: PathId) {
        if let Some(skipped) = self.repeats.may(now, "unreachable") {
            tracing::info!(event = "peer_unreachable", skipped);
        }
    }

    fn wants_path(&self, now: Instant) -> Option<SocketAddr> {
        self.found_peers.wanted(now)
    }

    fn path_made(
        &mut self,
        now: Instant,
        link: &mut Link,
        remote: SocketAddr,
        path: Option<PathId>,
    ) {
        let Some(path) = path else {
            self.found_peers.postpone(now, remote);
            if let Some(skipped) = self.repeats.may(now, "peer_without_path") {
                let again_in = format_duration(TRY_AGAIN);
                tracing::warn!(event = "peer_without_path", address = %remote, again_in, skipped);
            }
            return;
        };
        for peer in self.found_peers.take(remote) {
            link.set_endpoints(peer, vec![path]);
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let at = |at, why| Some(Deadline { at, why });
        if self.more {
            return at(Instant::START, "more to do");
        }
        let timer = self.flows.next_timer().and_then(|t| at(t, "flow"));
        let rest = self
            .resting
            .as_ref()
            .and_then(|(t, _)| at(*t, "entry rests"));
        // The first has waited for longest: tokens are given in order.
        let applicants = self
            .applicants
            .first_key_value()
            .and_then(|(_, applicant)| at(applicant.since + NEGOTIATION_MAX, "negotiation"));
        let found = self.found_peers.next_try();
        let found = found.and_then(|t| at(t, "path to a peer"));
        let names = self.peer_names.next_look();
        let names = names.and_then(|t| at(t, "peer's name"));
        let silent = self
            .flows
            .next_patience()
            .and_then(|t| at(t, "silent client"));
        let keeper = self.keeping.next_deadline();
        let keeper = keeper.and_then(|t| at(t, "keeper"));
        let ending = match self.ending {
            Ending::No => None,
            Ending::Finishing(t) | Ending::Leaving(t) => at(t, "end"),
        };
        [
            timer, rest, applicants, found, names, silent, keeper, ending,
        ]
        .into_iter()
        .fold(None, Deadline::earlier)
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poller.as_fd())
    }

    fn source_ready(&mut self) {
        self.source_ready = true;
    }
}
