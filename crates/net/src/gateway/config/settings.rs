//! The checked values of a configuration.

use super::carrier::CarrierChoice;
use super::class::{ClassRules, ClassSettings};
use super::notation::{Allow, Dscp};
use super::path::PathSettings;
use crate::custody::SyncPolicy;
use crate::recording::RecordingConfig;
use crate::session::Introduce;
use crate::tun::InterfaceAddress;
use core::time::Duration;
use fulmar_proto::dlep::wire::MacAddress;
use fulmar_proto::splice::{Destination, HostName};
use fulmar_proto::transport::aerotp::{RateSource, ThinRepair};
use fulmar_proto::units::{ByteCount, FecStrength};
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// The detail of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Faults that somebody must mend.
    Error,
    /// Errors, and faults that somebody may want to mend.
    Warn,
    /// Also beginnings, ends and changes.
    Info,
    /// Also every flow.
    Debug,
}

/// The way in which gateways know each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecurityKind {
    /// Static key pairs; the file holds ours.
    Noise {
        /// Our private key.
        private_key_file: PathBuf,
        /// The key before, which peers may still call.
        former_private_key_file: Option<PathBuf>,
        /// A key on top that both sides were given.
        preset_key_file: Option<PathBuf>,
    },
    /// One key for both sides.
    Preset {
        /// The key.
        preset_key_file: PathBuf,
    },
    /// Nothing is protected. For the lab.
    None,
}

impl SecurityKind {
    /// The name in the file.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Noise { .. } => "noise",
            Self::Preset { .. } => "preset",
            Self::None => "none",
        }
    }
}

/// `[[peer]]`: a gateway at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// Its name here.
    pub name: String,
    /// Its address; a peer without one calls us.
    pub address: Option<Destination>,
    /// The way in which datagrams travel to it.
    pub carrier: CarrierChoice,
    /// Further paths to it.
    pub paths: Vec<PathSettings>,
    /// Meetings through a hub: the one that introduces it to us, or our help for it to meet others.
    pub meeting: MeetingSettings,
    /// Its public key, in base64, with security `noise`.
    pub public_key: Option<String>,
    /// A second public key of it, while it changes its key.
    pub other_public_key: Option<String>,
    /// The place of its public key in the file, and the field, for errors.
    pub key_place: String,
    /// The rate of the link towards it, IP headers included, and whose the link is.
    pub rate: RateSource,
    /// The largest IP packet towards it.
    pub mtu: ByteCount,
    /// Whether the largest packet of the path is searched for, up to `mtu`; else `mtu` is taken to pass.
    pub mtu_discovery: bool,
    /// Whether a reload has removed it. Its place stays empty until a restart.
    pub is_removed: bool,
}

impl PeerSettings {
    /// Its public keys.
    pub fn public_keys(&self) -> impl Iterator<Item = &str> {
        let keys = [&self.public_key, &self.other_public_key];
        keys.into_iter().filter_map(|key| key.as_deref())
    }
}

/// A peer's meetings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeetingSettings {
    /// The peer, by name, that introduces this one to us.
    pub rendezvous: Option<String>,
    /// The help that this end gives it to meet others.
    pub introduce: Introduce,
}

/// `[[peer]]` with `via`: a gateway that is reached through others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarPeer {
    /// Its name here.
    pub name: String,
    /// The way to it.
    pub route: GatewayRoute,
}

/// The way to a gateway: the peer, and the gateways behind it by the names that each has for the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayRoute {
    /// Index of the peer.
    pub peer: usize,
    /// The gateways behind it, the nearest first.
    pub beyond: Vec<HostName>,
}

/// The protocol that is proxied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryProtocol {
    /// Streams.
    Tcp,
    /// Datagrams.
    Udp,
}

impl EntryProtocol {
    /// The name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// `[[forward]]`: a port here that stands for one at the far side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// TCP or UDP.
    pub protocol: EntryProtocol,
    /// The port here.
    pub listen: SocketAddr,
    /// The destination, resolved by the far gateway.
    pub to: Destination,
    /// The way to the gateway that connects.
    pub route: GatewayRoute,
    /// The classes of its flows.
    pub classes: ClassRules,
}

/// A name and a password (RFC 1929).
#[derive(Clone, PartialEq, Eq)]
pub struct SocksLogin {
    /// The user.
    pub user: String,
    /// Holds the password in its first line.
    pub password_file: PathBuf,
}

impl core::fmt::Debug for SocksLogin {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SocksLogin({})", self.user)
    }
}

/// `[[socks]]`: a SOCKS5 proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socks {
    /// The port here.
    pub listen: SocketAddr,
    /// The way to the gateway that connects.
    pub route: GatewayRoute,
    /// The classes of its TCP flows.
    pub tcp: ClassRules,
    /// The classes of its UDP associations.
    pub udp: ClassRules,
    /// Who may use it; without one, everybody who reaches it.
    pub login: Option<SocksLogin>,
}

/// `[[transparent]]`: traffic that the kernel diverts to us (TPROXY).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transparent {
    /// TCP or UDP.
    pub protocol: EntryProtocol,
    /// The address that the kernel's rules divert to.
    pub listen: SocketAddr,
    /// The way to the gateway that connects.
    pub route: GatewayRoute,
    /// The classes of its flows.
    pub classes: ClassRules,
    /// Code points that are diverted; empty for all.
    pub only_dscp: Vec<Dscp>,
}

/// `[[tunnel]]`: a device here whose packets come out of the peer's tunnel of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelSettings {
    /// Its name, the same at both gateways.
    pub name: HostName,
    /// Index of the peer.
    pub peer: usize,
    /// The name of the device.
    pub device: String,
    /// The addresses of the device, with their networks.
    pub addresses: Vec<InterfaceAddress>,
    /// Networks behind the peer: they are routed into the device.
    pub routes: Vec<InterfaceAddress>,
    /// The largest packet.
    pub mtu: u16,
    /// The classes of its packets.
    pub classes: ClassRules,
    /// Whether TCP that would enter it is split: it ends here, and goes on from the peer.
    pub accelerate: bool,
}

impl TunnelSettings {
    /// Whether it leads to `ip`.
    pub fn leads_to(&self, ip: IpAddr) -> bool {
        let is_own = self.addresses.iter().any(|own| own.ip() == ip);
        let mut networks = self.addresses.iter().chain(&self.routes);
        !is_own && networks.any(|network| network.has(ip))
    }
}

/// The source of a link's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkSource {
    /// A Unix socket here, to which a modem's program writes a JSON object a line.
    Socket(PathBuf),
    /// A file that says what the link will be and when.
    Schedule(PathBuf),
    /// A modem on a device that speaks DLEP (RFC 8175), and the destination behind it that is the peer.
    Dlep {
        /// The device.
        device: String,
        /// The destination; without one the only one that is up.
        destination: Option<MacAddress>,
    },
    /// A device of this machine, Wi-Fi or Ethernet, as the kernel tells of it.
    Device {
        /// The device.
        device: String,
        /// The Wi-Fi station that is the peer, where there are several.
        station: Option<MacAddress>,
    },
}

impl LinkSource {
    /// Its key in the file.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Socket(_) => "socket",
            Self::Schedule(_) => "schedule",
            Self::Dlep { .. } => "dlep",
            Self::Device { .. } => "device",
        }
    }

    /// The source in words.
    pub fn in_words(&self) -> String {
        match self {
            Self::Socket(path) => format!("whoever writes to the socket {}", path.display()),
            Self::Schedule(path) => format!("the schedule {}", path.display()),
            Self::Dlep {
                device,
                destination,
            } => {
                let to = destination
                    .map_or_else(String::new, |to| format!(", about its destination {to}"));
                format!("a modem on {device} that speaks DLEP{to}")
            }
            Self::Device { device, station } => {
                let about =
                    station.map_or_else(String::new, |one| format!(", about its station {one}"));
                format!("the kernel, of the device {device}{about}")
            }
        }
    }
}

/// `[[link]]`: a link below a path to a peer, and who tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldLinkSettings {
    /// Its name, for logs and figures.
    pub name: String,
    /// Index of the peer.
    pub peer: usize,
    /// The path to the peer that it serves: 0 is the peer's own address, n the n-th of its `[[peer.path]]`.
    pub path: usize,
    /// The source of its words.
    pub source: LinkSource,
    /// The time for which a message holds that does not say how long.
    pub valid_for: Duration,
}

/// `[egress]`: what the peer's clients may reach from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    /// Permissions; nothing else is connected to.
    pub allow: Vec<Allow>,
    /// The peers, by name, to which flows of other peers are carried on.
    pub relay: Vec<String>,
    /// The time that a destination has to answer.
    pub connect_timeout: Duration,
}

/// `[custody]`: what is kept for destinations that cannot be reached now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustodySettings {
    /// The limit for all flows together.
    pub limit: ByteCount,
    /// The directory for classes with custody on disk.
    pub directory: Option<PathBuf>,
    /// The octets that a power cut may take.
    pub sync: SyncPolicy,
    /// The time for which clients' connections outlive this gateway's death; none without a keeper.
    pub keep_for: Option<Duration>,
}

/// `[limits]`: the bounds on what flows may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most flows at once.
    pub flows: usize,
    /// The most flows of one client towards one peer at once; sharing may allow it fewer.
    pub flows_per_client: Option<usize>,
    /// The most octets of all flows that are promised to peers or wait for local sockets.
    pub memory: ByteCount,
    /// The time after which a TCP flow that carried nothing is reset.
    pub tcp_idle: Duration,
    /// The time after which a TCP client that has sent nothing is reset, if nothing came for it either.
    pub tcp_silent: Duration,
    /// The time after which a UDP flow that carried nothing is forgotten.
    pub udp_idle: Duration,
    /// The longest outage of a link that its flows outlive.
    pub outage: Duration,
}

/// Words of parity where damaged datagrams arrive and the file does not say how many, until the peer tells of damage: they
/// mend two wrong octets in each of a full datagram's six codewords (ADR 0033, section 5).
const ARMOUR: FecStrength = FecStrength::from_words(6).expect("a few words");

/// The IPv6 packet that every link carries (RFC 8200, section 5).
pub(super) const MTU_MIN: ByteCount = ByteCount(1_280);
pub(super) const MTU_MAX: ByteCount = ByteCount(9_216);
/// The longest name of a peer, which is kept with each of its flows.
pub(in crate::gateway) const PEER_NAME_BYTES_MAX: usize = 64;

impl GatewayConfig {
    /// The peers that no reload took out.
    pub fn live_peers(&self) -> impl Iterator<Item = &PeerSettings> {
        self.peers.iter().filter(|peer| !peer.is_removed)
    }

    /// Words of parity behind each full datagram to a peer at first, and always if the file says how many; none where
    /// damaged ones do not arrive.
    pub fn first_parity(&self, peer: &PeerSettings) -> FecStrength {
        match self.fec_words {
            FecStrength::NONE if peer.carrier.carrier().lets_damage_in() => ARMOUR,
            words => words,
        }
    }

    /// Whether damaged datagrams of any peer are let in.
    pub fn lets_damage_in(&self) -> bool {
        let mut peers = self.peers.iter();
        peers.any(|peer| peer.carrier.may_let_damage_in())
    }

    /// The places of these peers.
    pub(in crate::gateway) fn live_places(&self) -> impl Iterator<Item = usize> {
        let all = self.peers.iter().enumerate();
        all.filter(|(_, peer)| !peer.is_removed)
            .map(|(place, _)| place)
    }

    /// The way to the peer of this name, which may be reached through others.
    pub(in crate::gateway) fn route_to(&self, name: &str) -> Option<GatewayRoute> {
        let mut places = self.live_places();
        let near = places.find(|place| self.peer_name(*place) == name);
        let near = near.map(|peer| GatewayRoute {
            peer,
            beyond: Vec::new(),
        });
        let mut far = self.far_peers.iter();
        near.or_else(|| Some(far.find(|peer| peer.name == name)?.route.clone()))
    }

    /// The place of the peer that introduces the one in this place to us, if one does.
    pub(in crate::gateway) fn hub_of(&self, peer: usize) -> Option<usize> {
        let hub = self.peers.get(peer)?.meeting.rendezvous.as_deref()?;
        let mut places = self.live_places();
        places.find(|place| self.peer_name(*place) == hub)
    }

    /// The name of the peer in this place.
    pub(crate) fn peer_name(&self, peer: usize) -> &str {
        self.peers.get(peer).map_or("?", |peer| peer.name.as_str())
    }

    /// The configured name of a class, or one made from its number.
    pub(in crate::gateway) fn class_name(&self, id: u8) -> Cow<'_, str> {
        let named = self.classes.iter().find(|class| class.flow.id.0 == id);
        named.map_or_else(
            || Cow::Owned(format!("class_{id}")),
            |class| Cow::Borrowed(class.name.as_str()),
        )
    }
}

/// A whole configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    /// This gateway's name, for logs and metrics.
    pub name: String,
    /// The UDP port towards the peers.
    pub listen: SocketAddr,
    /// The directory for what must survive a restart.
    pub state_dir: Option<PathBuf>,
    /// Parity behind every datagram, for carriers that deliver damaged ones.
    pub fec_words: FecStrength,
    /// The repair of thin flows' data that this gateway sends.
    pub thin: ThinRepair,
    /// The detail of the log.
    pub log: LogLevel,
    /// The way in which gateways know each other.
    pub security: SecurityKind,
    /// The peers.
    pub peers: Vec<PeerSettings>,
    /// The gateways that are reached through peers.
    pub far_peers: Vec<FarPeer>,
    /// The classes; the first is the default.
    pub classes: Vec<ClassSettings>,
    /// Port forwards.
    pub forwards: Vec<Forward>,
    /// SOCKS5 proxies.
    pub socks: Vec<Socks>,
    /// Tunnels.
    pub tunnels: Vec<TunnelSettings>,
    /// Transparent entries.
    pub transparent: Vec<Transparent>,
    /// Links that tell of themselves.
    pub links: Vec<ToldLinkSettings>,
    /// The destinations that may be reached from here.
    pub egress: Egress,
    /// The settings of custody.
    pub custody: CustodySettings,
    /// Bounds.
    pub limits: Limits,
    /// The address where metrics and status are served.
    pub metrics: Option<SocketAddr>,
    /// The capture of packets, if there is one.
    pub capture: Option<RecordingConfig>,
    /// The trace of events, if there is one.
    pub trace: Option<RecordingConfig>,
}
