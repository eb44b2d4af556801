//! A running gateway's state, and the order of one turn of its loop.

use super::Link;
use super::command::{Command, StatusReader};
use super::config::GatewayConfig;
use super::entries::{Entries, connected, refused};
use super::exits::{Asked, Exits};
use super::flows::{Floor, Flow, Keeping, Stream, Traffic};
use super::links::Links;
use super::peers::{PeerNames, Peers, TRY_AGAIN, of_peer_there, usable};
use super::repeats::Repeats;
use super::sockets::{Came, Poller, Resolver, Sockets, Target};
use super::tunnels::{PacketFlow, Tunnels};
use super::watch::{Seen, Status, Watch};
use crate::session::{DatagramArrival, SessionEvent, source_octets};
use crate::udp::{Application, Carrier, DatagramOrigin, PortChange, Step};
use fulmar_capture::GatewayEvent;
use fulmar_proto::machine::{Datagram, Deadline, PathId};
use fulmar_proto::splice::{FlowEvent, FlowId, Host, ResetCode};
use fulmar_proto::transport::aerotp::RateSource;
use fulmar_proto::units::{Duration, Instant, format_duration};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::Receiver;

/// The time after a stop at which flows that are not over are cut off.
const STOP_WITHIN: Duration = Duration::from_secs(3);
/// The time in which the last words must have left before the loop ends.
const FAREWELL: Duration = Duration::from_millis(200);

/// The progress towards the end of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    No,
    /// No new flows; the present ones may finish until then.
    Finishing(Instant),
    /// Everything was said; queued datagrams leave until then.
    Leaving(Instant),
}

/// The ground below the rooms that carry flows.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) config: GatewayConfig,
    pub(super) sockets: Sockets,
    pub(super) repeats: Repeats,
}

impl Ground {
    /// It, at this time and with the link.
    pub(super) const fn floor<'a>(&'a mut self, now: Instant, link: &'a mut Link) -> Floor<'a> {
        Floor {
            now,
            config: &self.config,
            link,
            sockets: &mut self.sockets,
            repeats: &mut self.repeats,
        }
    }
}

/// The rooms of a gateway, one value each, and the loop's own state. The machine is beside it.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) ground: Ground,
    pub(super) entries: Entries,
    pub(super) exits: Exits,
    pub(super) tunnels: Tunnels,
    pub(super) traffic: Traffic,
    pub(super) peers: Peers,
    pub(super) links: Links,
    pub(super) watch: Watch,
    /// Flows that were cut off at the end.
    pub(super) cut: usize,
    ending: Ending,
    inbox: Receiver<Command>,
    came: Vec<Came>,
    /// Whether there is more to do at once; the link gets its turn first.
    more: bool,
}

/// The parts of a running gateway.
pub(super) struct Parts {
    pub(super) config: GatewayConfig,
    pub(super) poller: Poller,
    pub(super) resolver: Resolver<FlowId>,
    pub(super) peer_names: PeerNames,
    pub(super) inbox: Receiver<Command>,
    pub(super) keeping: Keeping,
    pub(super) tunnels: Tunnels,
    pub(super) links: Links,
}

impl Running {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            entries: Entries::default(),
            exits: Exits::new(parts.resolver),
            tunnels: parts.tunnels,
            traffic: Traffic::new(&parts.config, parts.keeping),
            peers: Peers::new(parts.peer_names),
            links: parts.links,
            watch: Watch::default(),
            ground: Ground {
                config: parts.config,
                sockets: Sockets::new(parts.poller),
                repeats: Repeats::default(),
            },
            cut: 0,
            ending: Ending::No,
            inbox: parts.inbox,
            came: Vec::new(),
            more: false,
        }
    }

    /// Tells who watches what befell flows.
    pub(super) fn tell_news(&mut self) {
        let news = self.traffic.newsbox.take();
        self.watch.news(&self.ground.config, &news);
    }

    fn tell_tunnels(&self, now: Instant) {
        for (place, change) in self.tunnels.take_changes(now) {
            self.watch
                .tunnel(now, &self.ground.config, (place, &change));
        }
    }

    /// Tells who watches what the gateway does, behind the news of its flows.
    pub(super) fn tell(&mut self, now: Instant, event: &GatewayEvent<'_>) {
        self.tell_news();
        self.watch.event(now, event);
    }

    fn status(&mut self, now: Instant, link: &Link, reader: StatusReader) -> Status {
        self.peers.note_rates(now, &self.ground.config, link);
        if reader == StatusReader::Anybody {
            self.watch.find_losses(&self.ground.config, link);
        }
        let seen = Seen {
            config: &self.ground.config,
            link,
            traffic: &self.traffic,
            tunnels: &self.tunnels,
            peers: &self.peers,
            links: &self.links,
            captured: self.watch.captured(),
            traced: self.watch.traced(),
            losses: self.watch.losses(),
        };
        seen.status(now)
    }

    fn commands(&mut self, now: Instant, link: &mut Link) {
        while let Ok(command) = self.inbox.try_recv() {
            match command {
                Command::Reload(reload) => self.reload(now, link, *reload),
                Command::Stop => self.begin_end(now, link),
                Command::Status(reader, reply) => {
                    // The one who asked may have lost patience.
                    let _ = reply.try_send(self.status(now, link, reader));
                }
            }
        }
    }

    fn begin_end(&mut self, now: Instant, link: &mut Link) {
        if self.ending != Ending::No {
            return;
        }
        let flows = self.traffic.flows.len();
        tracing::info!(event = "stopping", flows);
        let flows = flows as u64;
        self.tell(now, &GatewayEvent::Stopping { flows });
        self.ending = Ending::Finishing(now + STOP_WITHIN);
        let floor = &mut self.ground.floor(now, link);
        self.entries.close(floor, &mut self.traffic);
    }

    /// Cuts off what is left when the time is over; `true` when the loop may end.
    fn end(&mut self, now: Instant, link: &mut Link) -> bool {
        match self.ending {
            Ending::No => false,
            Ending::Finishing(until) => {
                let must_finish = self.traffic.must_finish();
                if must_finish && now < until {
                    return false;
                }
                let floor = &mut self.ground.floor(now, link);
                for id in self.traffic.flows.ids() {
                    if self.traffic.leave_to_the_next(floor, id) {
                        continue;
                    }
                    floor.link.inner_mut().reset(now, id, ResetCode::Shutdown);
                    let is_of_tunnel = self.traffic.flows.get(id).is_some_and(Flow::is_of_tunnel);
                    self.cut += usize::from(!is_of_tunnel);
                    self.traffic.drop_flow(floor, id, "shutdown", true);
                }
                self.ending = Ending::Leaving(now + FAREWELL);
                false
            }
            Ending::Leaving(until) => now >= until,
        }
    }

    fn sockets(&mut self, now: Instant, link: &mut Link) {
        if !self.ground.sockets.take_ready() {
            return;
        }
        let mut came = core::mem::take(&mut self.came);
        match self.ground.sockets.poller.collect(&mut came) {
            Ok(true) => self.ground.sockets.look_again(),
            Ok(false) => {}
            Err(error) => tracing::error!(event = "poll_failed", %error),
        }
        let floor = &mut self.ground.floor(now, link);
        let (entries, traffic) = (&mut self.entries, &mut self.traffic);
        for one in &came {
            match floor.sockets.target(one.token) {
                Some(Target::Entry) => entries.entry_ready(floor, traffic, one.token),
                Some(Target::Negotiation) => entries.applicant_ready(floor, traffic, one.token),
                Some(Target::Association(token)) => {
                    entries.association_ready(floor, traffic, token);
                }
                Some(Target::Flow(id)) => traffic.socket_ready(id, *one),
                Some(Target::Tunnel(place)) => self.tunnels.ready(floor, traffic, place),
                Some(Target::Diversion(place)) => {
                    self.tunnels.diversion_ready(floor.config, place);
                }
                Some(Target::Interfaces) => {
                    self.peers.ports.rang(now);
                    self.tunnels.rang(now);
                }
                Some(Target::ToldLink(place)) => self.links.rang(place),
                Some(Target::Keeper) => traffic.keeping.look_now(now),
                // It was closed in this very turn.
                None => {}
            }
        }
        self.came = came;
    }

    fn flow_event(&mut self, now: Instant, link: &mut Link, event: FlowEvent) {
        let floor = &mut self.ground.floor(now, link);
        let traffic = &mut self.traffic;
        if traffic.relay_event(floor, &event) {
            return;
        }
        match event {
            FlowEvent::Requested {
                flow,
                peer,
                kind,
                destination,
                class,
                earlier,
            } => {
                if let Host::Tunnel(tunnel) = &destination.host {
                    let wish = PacketFlow {
                        kind,
                        tunnel,
                        bucket: destination.port,
                        class,
                    };
                    return self.tunnels.requested(floor, traffic, flow, peer, &wish);
                }
                let asked = Asked {
                    kind,
                    destination,
                    class,
                    earlier,
                };
                self.exits.requested(floor, traffic, flow, peer, asked);
            }
            FlowEvent::Connected { flow, bound } => connected(floor, traffic, flow, bound),
            FlowEvent::Refused { flow, code } => {
                let is_told = traffic.flows.get(flow).is_some_and(|flow| {
                    let to = (&flow.destination, flow.peer);
                    self.tunnels.refused(now, floor.config, to, code)
                });
                if is_told {
                    traffic.drop_flow(floor, flow, code.name(), true);
                } else {
                    refused(floor, traffic, flow, code);
                }
            }
            FlowEvent::Readable(flow) | FlowEvent::Writable(flow) => traffic.flows.wake(flow),
            FlowEvent::Resume { flow, from } => traffic.resumed(floor, flow, from),
            FlowEvent::PeerFinished(id) => traffic.with_stream(id, Stream::far_finished),
            FlowEvent::Stopped(id) => traffic.with_stream(id, Stream::unheard),
            FlowEvent::Delivered { flow, offset } => {
                traffic.with_stream(flow, |stream| stream.far_delivered(offset));
            }
            FlowEvent::Reset { flow, code } => traffic.drop_flow(floor, flow, code.name(), true),
            FlowEvent::Closed(flow) => traffic.drop_flow(floor, flow, "finished", false),
        }
    }

    /// Gives the flows that have something to do their turn, each once.
    fn turns(&mut self, now: Instant, link: &mut Link) {
        let floor = &mut self.ground.floor(now, link);
        let traffic = &mut self.traffic;
        traffic.flows.wake_due(now);
        for id in traffic.flows.take_busy() {
            if traffic.is_connecting(id) && !self.exits.connect_turn(floor, traffic, id) {
                continue;
            }
            traffic.turn(floor, id);
        }
        traffic.keeping_turn(floor, self.entries.waiting());
    }
}

impl Application<Link> for Running {
    fn arrived(
        &mut self,
        now: Instant,
        link: &mut Link,
        datagram: Datagram<'_>,
        origin: DatagramOrigin,
    ) {
        let DatagramOrigin { from, at } = origin;
        self.peers.heard(datagram.path, from);
        let source = &source_octets(from);
        link.handle_arrival(
            now,
            DatagramArrival {
                datagram,
                source,
                at,
            },
        );
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
        self.watch.take_notes(now, &self.ground.config, link);
        let event = of_peer_there(link, event);
        let decided = self.peers.note(now, &self.ground.config, &event);
        self.watch
            .session_event(now, &self.ground.config, &event, decided.as_ref());
        let carriers = &mut self.peers.carriers;
        carriers.follow(&self.ground.config, link, &event);
        match event {
            SessionEvent::Inner(event) => self.flow_event(now, link, event),
            SessionEvent::ReportDue(peer) => {
                self.watch.tell_peer(now, link, peer);
                self.peers.report_to(now, &self.ground.config, link, peer);
            }
            SessionEvent::Introduced { peer, address, .. } => {
                self.peers.say(&self.ground.config, event);
                let v6 = self.ground.config.listen.is_ipv6();
                // An address of IPv6 is of no use to a socket of IPv4; the hub carries the datagrams then.
                if let Ok(address) = usable(core::iter::once(address), v6) {
                    self.peers.found.add(now, peer, address);
                }
            }
            SessionEvent::Reported { peer, octets } => {
                link.inner_mut().on_report(peer.inner_path(), &octets);
            }
            event => {
                if let SessionEvent::Up { peer, .. } = &event {
                    let place = peer.inner_path().0;
                    let place = usize::try_from(place).unwrap_or(usize::MAX);
                    let floor = &mut self.ground.floor(now, link);
                    self.tunnels.greet(floor, &mut self.traffic, place);
                }
                self.peers.say(&self.ground.config, event);
            }
        }
        self.tell_news();
        self.exits.forget(&self.traffic.flows.take_unreached());
    }

    fn work(&mut self, now: Instant, link: &mut Link) -> Step {
        self.watch.take_notes(now, &self.ground.config, link);
        self.commands(now, link);
        self.sockets(now, link);
        let floor = &mut self.ground.floor(now, link);
        self.exits.look(floor, &mut self.traffic);
        self.peers.look(now, floor.config);
        self.peers.ports.look(now, floor.config, floor.link);
        self.tunnels.look(now, floor.config);
        let poller = &floor.sockets.poller;
        self.links.turn(now, (floor.config, poller), floor.link);
        self.entries.end_rest(floor);
        self.entries.expire_applicants(floor, &mut self.traffic);
        self.traffic.expire_silent(floor);
        self.turns(now, link);
        let is_over = self.end(now, link);
        self.tell_news();
        self.tell_tunnels(now);
        self.exits.forget(&self.traffic.flows.take_unreached());
        if is_over {
            self.watch.end(now, &self.ground.config, link);
            return Step::Stop;
        }
        self.more = self.ground.sockets.is_ready() || self.traffic.flows.is_busy();
        Step::Wait
    }

    fn unreachable(&mut self, now: Instant, link: &mut Link, path: PathId) {
        let place = link
            .peer_on(path)
            .and_then(|peer| usize::try_from(peer.0).ok());
        let repeats = &mut self.ground.repeats;
        if let Some(skipped) = repeats.may_about(now, "unreachable", place) {
            let peer = place.map_or("unknown", |place| self.ground.config.peer_name(place));
            tracing::info!(event = "peer_unreachable", peer, skipped);
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
            if let Some(skipped) = self.ground.repeats.may(now, "peer_without_path") {
                let again_in = format_duration(TRY_AGAIN);
                tracing::warn!(event = "peer_without_path", address = %remote, again_in, skipped);
            }
            return;
        };
        for peer in self.peers.found.take(remote) {
            let place = usize::try_from(peer.0).unwrap_or(usize::MAX);
            let Some(settings) = self.ground.config.peers.get(place) else {
                continue;
            };
            // What a hub tells changes nothing of a path that there is: another peer may be there.
            if settings.meeting.rendezvous.is_none() {
                link.set_endpoints(peer, vec![path]);
                self.peers.carriers.add(path, settings.carrier.carrier());
            } else if let Err(other) = link.set_told_address(peer, path)
                && let Some(skipped) = self.ground.repeats.may(now, "told_address_refused")
            {
                let place = usize::try_from(other.0).unwrap_or(usize::MAX);
                let of = self.ground.config.peer_name(place);
                let peer = &settings.name;
                tracing::warn!(event = "told_address_refused", peer, address = %remote, of, skipped);
            }
        }
    }

    fn wants_carrier(&mut self) -> Option<(PathId, Carrier)> {
        self.peers.carriers.next()
    }

    fn wants_port(&mut self) -> Option<PortChange> {
        self.peers.ports.next_change()
    }

    fn times_departures(&self, _link: &Link) -> bool {
        let mut peers = self.ground.config.peers.iter();
        peers.any(|peer| matches!(peer.rate, RateSource::Found { .. }))
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let at = |at, why| Some(Deadline { at, why });
        if self.more {
            return at(Instant::START, "more to do");
        }
        let flows = &self.traffic.flows;
        let timer = flows.next_timer().and_then(|t| at(t, "flow"));
        let rest = self.entries.next_look();
        let rest = rest.and_then(|t| at(t, "entry rests"));
        let applicants = self.entries.next_expiry();
        let applicants = applicants.and_then(|t| at(t, "negotiation"));
        let found = self.peers.found.next_try();
        let found = found.and_then(|t| at(t, "path to a peer"));
        let names = self.peers.names.next_look();
        let names = names.and_then(|t| at(t, "peer's name"));
        let interfaces = self.peers.ports.next_look();
        let interfaces = interfaces.and_then(|t| at(t, "interfaces"));
        let devices = self.tunnels.next_look();
        let devices = devices.and_then(|t| at(t, "devices of tunnels"));
        let told = self.links.next_turn();
        let told = told.and_then(|t| at(t, "link that tells"));
        let silent = flows.next_patience().and_then(|t| at(t, "silent client"));
        let keeper = self.traffic.keeping.next_deadline();
        let keeper = keeper.and_then(|t| at(t, "keeper"));
        let ending = match self.ending {
            Ending::No => None,
            Ending::Finishing(t) | Ending::Leaving(t) => at(t, "end"),
        };
        [
            timer, rest, applicants, found, names, interfaces, devices, told, silent, keeper,
            ending,
        ]
        .into_iter()
        .fold(None, Deadline::earlier)
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ground.sockets.poller.as_fd())
    }

    fn source_ready(&mut self) {
        self.ground.sockets.look_again();
    }
}
