//! A running gateway's state, and the order of one turn of its loop.

use super::Link;
use super::command::Command;
use super::config::{ClassSettings, Custody as Keep, GatewayConfig};
use super::entries::{Applicant, Association, Entry, LastWord};
use super::flows::Newsbox;
use super::flows::{
    Admission, Budget, ClientKey, Custody, FlowRecord, Flows, Keeping, MemoryCustody,
};
use super::peers::{PeerNames, Peers, TRY_AGAIN};
use super::repeats::Repeats;
use super::sockets::{Came, Poller, Resolver, Token};
use super::watch::{Seen, Status, Watch};
use crate::session::{SessionEvent, source_octets};
use crate::udp::{Application, Step};
use fulmar_capture::GatewayEvent;
use fulmar_proto::machine::{Datagram, Deadline, PathId};
use fulmar_proto::splice::{FlowEvent, FlowId, ResetCode};
use fulmar_proto::units::{ByteCount, Duration, Instant, format_duration};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::Receiver;

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
    pub(super) peers: Peers,
    pub(super) newsbox: Newsbox,
    pub(super) watch: Watch,
    pub(super) repeats: Repeats,
    pub(super) budget: Budget,
    pub(super) keeping: Keeping,
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
            peers: Peers::new(parts.peer_names),
            newsbox: Newsbox::default(),
            watch: Watch::default(),
            repeats: Repeats::default(),
            keeping: parts.keeping,
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

    /// Tells who watches what befell flows.
    pub(super) fn tell_news(&mut self) {
        let news = self.newsbox.take();
        self.watch.news(&self.config, &news);
    }

    /// Tells who watches what the gateway does, behind the news of its flows.
    pub(super) fn tell(&mut self, now: Instant, event: &GatewayEvent<'_>) {
        self.tell_news();
        self.watch.event(now, event);
    }

    fn status(&mut self, now: Instant, link: &Link) -> Status {
        self.peers.note_rates(now, &self.config, link);
        let seen = Seen {
            config: &self.config,
            link,
            flows: &self.flows,
            keeping: &self.keeping,
            peers: &self.peers,
            captured: self.watch.captured(),
            traced: self.watch.traced(),
        };
        seen.status(now)
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
        self.tell(now, &GatewayEvent::Stopping { flows });
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

impl Application<Link> for Running {
    fn arrived(&mut self, now: Instant, link: &mut Link, datagram: Datagram<'_>, from: SocketAddr) {
        self.peers.heard(datagram.path, from);
        link.handle_datagram_from(now, datagram, &source_octets(from));
    }

    fn departing(&mut self, now: Instant, to: SocketAddr, octets: &[u8]) {
        self.watch.departing(now, to, octets);
    }

    fn too_large(&mut self, now: Instant, link: &mut Link, path: PathId) {
        link.on_too_large(now, path);
    }

    fn paths_in_use(&self, _now: Instant, link: &Link) -> Option<Vec<PathId>> {
        Some(link.paths_in_use().collect())
    }

    fn deliver(&mut self, now: Instant, link: &mut Link, event: SessionEvent<FlowEvent>) {
        // Notes are taken before events are written, so that the lines are in the order of their times.
        self.watch.take_notes(now, &self.config, link);
        let decided = self.peers.note(now, &self.config, &event);
        self.watch
            .session_event(now, &self.config, &event, decided.as_ref());
        match event {
            SessionEvent::Inner(event) => self.flow_event(now, link, event),
            SessionEvent::ReportDue(peer) => self.peers.report_to(now, &self.config, link, peer),
            SessionEvent::Reported { peer, octets } => {
                link.inner_mut().on_report(peer.inner_path(), &octets);
            }
            event => self.peers.say(&self.config, event),
        }
        self.tell_news();
    }

    fn work(&mut self, now: Instant, link: &mut Link) -> Step {
        self.watch.take_notes(now, &self.config, link);
        self.commands(now, link);
        self.sockets(now, link);
        while let Some(answer) = self.resolver.poll() {
            let addresses = answer.addresses.unwrap_or_default();
            self.resolved(now, link, answer.tag, &addresses);
        }
        self.peers.look(now, &self.config);
        self.end_rest(now);
        self.expire_applicants(now);
        self.expire_silent(now, link);
        self.flows.wake_due(now);
        for id in self.flows.take_busy() {
            self.turn(now, link, id);
        }
        self.keeping_turn(now);
        let is_over = self.end(now, link);
        self.tell_news();
        if is_over {
            self.watch.end(now, &self.config, link);
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
        self.peers.found.wanted(now)
    }

    fn path_made(
        &mut self,
        now: Instant,
        link: &mut Link,
        remote: SocketAddr,
        path: Option<PathId>,
    ) {
        let Some(path) = path else {
            self.peers.found.postpone(now, remote);
            if let Some(skipped) = self.repeats.may(now, "peer_without_path") {
                let again_in = format_duration(TRY_AGAIN);
                tracing::warn!(event = "peer_without_path", address = %remote, again_in, skipped);
            }
            return;
        };
        for peer in self.peers.found.take(remote) {
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
        let found = self.peers.found.next_try();
        let found = found.and_then(|t| at(t, "path to a peer"));
        let names = self.peers.names.next_look();
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
