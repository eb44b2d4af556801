//! The way of packets between devices and flows.

use super::device::{Device, TunnelReport, WayOut};
use super::diversion::{Diversion, DivertedPorts};
use super::far_end::TunnelChange;
use super::greeting::Listed;
use super::refusals::Refusals;
use super::route_loops;
use super::upkeep::{Lost, RouteTable};
use crate::gateway::GatewayError;
use crate::gateway::config::{ClassRules, Dscp, GatewayConfig, TunnelSettings};
use crate::gateway::flows::{
    Body, Floor, MESSAGES_PER_TURN, Messages, NewFlow, Party, Traffic, Wish,
};
use crate::gateway::sockets::{Target, interfaces_up};
use fulmar_proto::machine::PathId;
use fulmar_proto::splice::{
    ClassId, Destination, FlowClass, FlowId, FlowKind, Host, HostName, RefuseCode, Role,
};
use fulmar_proto::tunnel::{FlowBucket, InnerPacket, limit_mss};
use fulmar_proto::units::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

/// The time from a change at an interface to the look at the devices.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// The time from one look to the next while something is lost.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// The bucket on whose flow an end tells the other of itself. Any would do: a greeting is no IP packet.
const GREETING_BUCKET: u16 = 0;

/// One tunnel.
#[derive(Debug)]
struct Tunnel {
    device: Rc<Device>,
    /// The flow of each class and bucket. One that is over stays until its bucket has a packet again.
    flows: BTreeMap<(ClassId, u16), FlowId>,
    refusals: Refusals,
    /// The rules that divert its TCP, where it is split.
    diversion: Option<Diversion>,
    /// The addresses and routes that its device has lost since the start.
    lost: Lost,
}

/// The tunnels of a gateway, in the order of the configuration.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Tunnels {
    all: Vec<Tunnel>,
    /// The time to look whether their devices have lost anything.
    next_look: Option<Instant>,
}

/// A wish of the peer for a flow of packets.
#[derive(Debug)]
pub(in crate::gateway) struct PacketFlow<'a> {
    pub(in crate::gateway) kind: FlowKind,
    pub(in crate::gateway) tunnel: &'a HostName,
    pub(in crate::gateway) bucket: u16,
    pub(in crate::gateway) class: FlowClass,
}

impl Tunnels {
    /// Makes the devices.
    ///
    /// # Errors
    /// [`GatewayError`]: a device or an address cannot be had. Nothing is left behind.
    pub(in crate::gateway) fn open(config: &GatewayConfig) -> Result<Self, GatewayError> {
        let open = |settings: &TunnelSettings| {
            Ok(Tunnel {
                device: Device::open(settings, config.peer_name(settings.peer))?,
                flows: BTreeMap::new(),
                refusals: Refusals::default(),
                diversion: None,
                lost: Lost::default(),
            })
        };
        let all = config.tunnels.iter().map(open);
        let all = all.collect::<Result<_, GatewayError>>()?;
        route_loops::refuse(config)?;
        for settings in &config.tunnels {
            let (tunnel, device) = (settings.name.to_string(), &settings.device);
            let (address, routes) = (Listed(&settings.addresses), Listed(&settings.routes));
            let (mtu, peer) = (settings.mtu, config.peer_name(settings.peer));
            tracing::info!(event = "tunnel_device", tunnel, device, peer, %address, %routes, mtu);
        }
        Ok(Self {
            all,
            next_look: None,
        })
    }

    /// Diverts the TCP of tunnels to entries: those of each tunnel by its place, with their addresses.
    ///
    /// # Errors
    /// [`GatewayError::Accelerate`].
    pub(in crate::gateway) fn divert(
        &mut self,
        config: &GatewayConfig,
        entries: &[(usize, SocketAddr)],
    ) -> Result<(), GatewayError> {
        for (place, (tunnel, settings)) in self.all.iter_mut().zip(&config.tunnels).enumerate() {
            let own = || entries.iter().filter(|(of, _)| *of == place);
            let port = |is_v4| {
                let mut own = own().filter(|(_, address)| address.is_ipv4() == is_v4);
                own.next().map(|(_, address)| address.port())
            };
            let ports = DivertedPorts {
                v4: port(true),
                v6: port(false),
            };
            if own().next().is_some() {
                tunnel.diversion = Some(Diversion::begin(&settings.device, ports)?);
            }
        }
        Ok(())
    }

    /// Tells `peer`, which has come up, of the ends of its tunnels here.
    pub(in crate::gateway) fn greet(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        peer: usize,
    ) {
        for (tunnel, settings) in self.all.iter_mut().zip(&floor.config.tunnels) {
            let class = floor.config.classes.get(settings.classes.general);
            let message = tunnel.device.greeting();
            let (Some(class), Some(message)) = (class, message) else {
                continue;
            };
            if settings.peer != peer {
                continue;
            }
            // A peer that has started again may have the tunnel that it lacked.
            tunnel.refusals = Refusals::default();
            if let Some(id) = tunnel.flow(floor, traffic, settings, (class.flow, GREETING_BUCKET)) {
                traffic.accept_message(floor, id, &message);
            }
        }
    }

    /// Watches the devices for packets.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(in crate::gateway) fn watch(&self, floor: &mut Floor<'_>) -> std::io::Result<()> {
        for (place, tunnel) in self.all.iter().enumerate() {
            let token = floor.sockets.token(Target::Tunnel(place));
            floor.sockets.poller.watch_level(&*tunnel.device, token)?;
            if let Some(diversion) = &tunnel.diversion {
                let token = floor.sockets.token(Target::Diversion(place));
                floor.sockets.poller.watch_level(diversion, token)?;
            }
        }
        Ok(())
    }

    /// The report on each tunnel.
    pub(in crate::gateway) fn reports<'a>(
        &'a self,
        config: &'a GatewayConfig,
    ) -> impl Iterator<Item = TunnelReport> + 'a {
        let all = self.all.iter().zip(&config.tunnels);
        all.map(|(tunnel, settings)| {
            let peer = config.peer_name(settings.peer);
            TunnelReport {
                accelerate: match (settings.accelerate, &tunnel.diversion) {
                    (false, _) => "no",
                    (true, Some(_)) => "yes",
                    (true, None) => "lost",
                },
                lost: tunnel.lost.in_words(),
                ..tunnel.device.report(settings, peer)
            }
        })
    }

    /// The change of each tunnel to tell now, by its place. It is in the log already.
    pub(in crate::gateway) fn take_changes(
        &self,
        now: Instant,
    ) -> impl Iterator<Item = (usize, TunnelChange)> {
        let all = self.all.iter().enumerate();
        all.filter_map(move |(place, tunnel)| Some((place, tunnel.device.take_change(now)?)))
    }

    /// Looks whether the rules that divert the TCP of the tunnel in this place are there.
    pub(in crate::gateway) fn diversion_ready(&mut self, config: &GatewayConfig, place: usize) {
        let both = self.all.get_mut(place).zip(config.tunnels.get(place));
        let Some((tunnel, settings)) = both else {
            return;
        };
        if tunnel.diversion.as_mut().is_some_and(Diversion::is_over) {
            // The capability to make them again was given up.
            tunnel.diversion = None;
            let (name, device) = (settings.name.to_string(), &settings.device);
            tracing::warn!(
                event = "accelerate_lost",
                tunnel = name,
                peer = config.peer_name(settings.peer),
                device,
                why = "nft has ended, so TCP goes through the tunnel without being split",
                cure = "restart the gateway"
            );
        }
    }

    /// Notes that interfaces may have changed. Who takes one down to change it has some time to take it up again.
    pub(in crate::gateway) fn rang(&mut self, now: Instant) {
        if !self.all.is_empty() {
            self.next_look.get_or_insert(now + LOOK_AFTER);
        }
    }

    /// The time of the next look at the devices.
    pub(in crate::gateway) const fn next_look(&self) -> Option<Instant> {
        self.next_look
    }

    /// Looks at the devices if it is time to.
    pub(in crate::gateway) fn look(&mut self, now: Instant, config: &GatewayConfig) {
        if self.next_look.is_none_or(|at| now < at) {
            return;
        }
        self.next_look = None;
        let known = interfaces_up().and_then(|up| Ok((up, RouteTable::read()?)));
        let (up, table) = match known {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(event = "interfaces_unlisted", %error);
                self.next_look = Some(now + LOOK_AFTER);
                return;
            }
        };
        for (tunnel, settings) in self.all.iter_mut().zip(&config.tunnels) {
            tunnel.follow(config, settings, Lost::of(settings, &up, &table));
            if !tunnel.lost.is_nothing() {
                // A route that is put back does not ring.
                self.next_look = Some(now + LOOK_AGAIN);
            }
        }
    }

    /// Takes the packets that wait in the device of the tunnel in this place.
    pub(in crate::gateway) fn ready(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        place: usize,
    ) {
        let Some(tunnel) = self.all.get_mut(place) else {
            return;
        };
        let mut buffer = core::mem::take(&mut traffic.scratch);
        for _ in 0..MESSAGES_PER_TURN {
            match tunnel.device.receive(&mut buffer) {
                Ok(Some(len)) => tunnel.enter(floor, traffic, place, &mut buffer[..len]),
                Ok(None) => break,
                Err(error) => {
                    // Somebody has removed the device: it would be ready for ever.
                    drop(floor.sockets.poller.pause(&*tunnel.device));
                    tunnel.device.is_lost(&error);
                    break;
                }
            }
        }
        traffic.scratch = buffer;
        floor.sockets.look_again();
    }

    /// Handles a peer's wish for a flow of packets.
    pub(in crate::gateway) fn requested(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        id: FlowId,
        peer: PathId,
        wish: &PacketFlow<'_>,
    ) {
        let peer = usize::try_from(peer.0).unwrap_or(usize::MAX);
        let destination = Destination {
            host: Host::Tunnel(wish.tunnel.clone()),
            port: wish.bucket,
        };
        let mut settings = floor.config.tunnels.iter();
        let place = settings.position(|it| it.peer == peer && it.name == *wish.tunnel);
        let place = place.filter(|_| wish.kind == FlowKind::Datagrams);
        let Some(tunnel) = place.and_then(|place| self.all.get_mut(place)) else {
            let (tunnel, peer) = (wish.tunnel.to_string(), floor.config.peer_name(peer));
            if let Some(skipped) = floor.repeats.may(floor.now, "tunnel_missing_here") {
                let cure = "write the same name in the [[tunnel]] of both ends";
                tracing::warn!(event = "tunnel_missing_here", tunnel, peer, cure, skipped);
            }
            return traffic.refuse_silently(floor, id, &destination, RefuseCode::NotAllowed);
        };
        floor.report_link(peer);
        let party = Party::new(peer, Role::Acceptor);
        let Ok(permit) = traffic.admit(floor, (party, None), |_, _, _| false) else {
            return traffic.refuse(floor, id, &destination, RefuseCode::TooMany);
        };
        let new = NewFlow {
            kind: wish.kind,
            peer,
            class: wish.class,
            destination,
            proxied: false,
            entered: false,
            body: Body::Messages(tunnel.side()),
            token: None,
            permit,
        };
        traffic.flows.insert(floor.now, id, new);
        traffic.opened(floor, id);
        let nowhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        floor.link.inner_mut().connected(floor.now, id, nowhere);
        traffic.flows.wake(id);
        tunnel.adopt(traffic, (wish.class.id, wish.bucket), id);
    }

    /// A peer has refused a flow, perhaps one of a tunnel: for a while nothing is asked for that it would refuse again.
    /// Returns whether the reason was told.
    pub(in crate::gateway) fn refused(
        &mut self,
        now: Instant,
        config: &GatewayConfig,
        (to, peer): (&Destination, usize),
        code: RefuseCode,
    ) -> bool {
        let Host::Tunnel(name) = &to.host else {
            return false;
        };
        let mut settings = config.tunnels.iter();
        let place = settings.position(|it| it.peer == peer && it.name == *name);
        let Some(tunnel) = place.and_then(|place| self.all.get_mut(place)) else {
            return false;
        };
        tunnel.refusals.note(now, to.port, code);
        let is_missing = code == RefuseCode::NotAllowed;
        if is_missing {
            tunnel.device.is_missing_there();
        }
        is_missing
    }
}

impl Tunnel {
    /// Says what its device has lost, if that is something else than before.
    fn follow(&mut self, config: &GatewayConfig, settings: &TunnelSettings, lost: Lost) {
        if self.lost == lost {
            return;
        }
        let (tunnel, peer) = (settings.name.to_string(), config.peer_name(settings.peer));
        let device = &settings.device;
        if lost.is_nothing() {
            tracing::info!(event = "tunnel_device_whole", tunnel, peer, device);
        } else {
            let (what, cure) = (lost.in_words(), lost.cure(settings));
            tracing::warn!(
                event = "tunnel_device_lacks",
                tunnel,
                peer,
                device,
                lost = what,
                cure
            );
        }
        self.lost = lost;
    }

    fn side(&self) -> Messages {
        Messages::Shared(Box::new(WayOut(Rc::downgrade(&self.device))))
    }

    /// Sends on the flow that the peer opened, unless there is one already.
    fn adopt(&mut self, traffic: &Traffic, key: (ClassId, u16), id: FlowId) {
        let known = self.flows.get(&key);
        if known.is_none_or(|known| traffic.flows.get(*known).is_none()) {
            self.flows.insert(key, id);
        }
    }

    /// Takes one packet of this host.
    fn enter(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        place: usize,
        octets: &mut [u8],
    ) {
        let Some(settings) = floor.config.tunnels.get(place) else {
            return;
        };
        let Some(packet) = InnerPacket::parse(octets) else {
            return self.device.count(|counters| counters.dropped_not_ip += 1);
        };
        limit_mss(octets, &packet, usize::from(settings.mtu));
        let class = class(&settings.classes, &packet);
        let class = floor.config.classes.get(class).map(|class| class.flow);
        let Some(class) = class else {
            return;
        };
        let bucket = FlowBucket::of(&packet).number();
        let Some(id) = self.flow(floor, traffic, settings, (class, bucket)) else {
            return self.device.count(|counters| counters.dropped_no_flow += 1);
        };
        self.device.count(|counters| counters.sent += 1);
        traffic.accept_message(floor, id, octets);
    }

    /// The flow of a class and bucket, opened if there is none.
    fn flow(
        &mut self,
        floor: &mut Floor<'_>,
        traffic: &mut Traffic,
        settings: &TunnelSettings,
        (class, bucket): (FlowClass, u16),
    ) -> Option<FlowId> {
        let known = self.flows.get(&(class.id, bucket)).copied();
        let known = known.filter(|id| traffic.flows.get(*id).is_some());
        let wish = || Wish {
            peer: settings.peer,
            kind: FlowKind::Datagrams,
            to: Destination {
                host: Host::Tunnel(settings.name.clone()),
                port: bucket,
            },
            class,
        };
        known.or_else(|| self.open(floor, traffic, wish()))
    }

    /// Opens a flow to the peer's tunnel.
    fn open(&mut self, floor: &mut Floor<'_>, traffic: &mut Traffic, wish: Wish) -> Option<FlowId> {
        if self.refusals.hold(floor.now, wish.to.port) {
            return None;
        }
        let party = Party::new(wish.peer, Role::Opener);
        let permit = traffic.admit(floor, (party, None), |_, _, _| false).ok()?;
        let key = (wish.class.id, wish.to.port);
        let id = traffic.open_messages(floor, wish, (self.side(), permit))?;
        self.flows.insert(key, id);
        Some(id)
    }
}

/// The class of a packet: by its code point, or by either of its ports, for both directions of a flow have one class.
fn class(rules: &ClassRules, packet: &InnerPacket) -> usize {
    let (from, to) = packet.ports.unwrap_or_default();
    let dscp = Some(Dscp::from_tos(packet.traffic_class));
    match rules.choose(to, dscp) {
        general if general == rules.general => rules.choose(from, dscp),
        class => class,
    }
}
