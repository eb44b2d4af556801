//! From a configuration to a running gateway: keys, ports, machines, threads.

use super::Link;
use super::command::Control;
use super::config::{GatewayConfig, Keys, PeerSettings, read_keys, state_place};
use super::entries::{Entry, Rule, entry, open_entry};
use super::error::GatewayError;
use super::flows::{Keeping, kept_ports};
use super::peers::{PeerNames, index_of, usable};
use super::running::{Parts, Running};
use super::sockets::{Poller, Resolver};
use super::watch::{Watch, http};
use crate::clock::Clock;
use crate::descriptors;
use crate::session::{
    Entropy, EpochError, KeyQuestion, MtuConfig, PeerConfig, PeerIndex, PublicKey,
    SESSION_OVERHEAD, Security, Session, SessionConfig, StateDirectory, fast_cipher,
    next_boot_epoch, reports,
};
use crate::udp::{BURST_TIME, PathTableConfig, PortConfig, UdpDriver, UdpPort};
use crate::wait::{WakeUp, waker};
use fulmar_proto::machine::{PathId, PathSizes};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{Host, Splicer, SplicerConfig};
use fulmar_proto::transport::aerotp::{AckPolicy, ConnectionConfig, Endpoint, EndpointConfig};
use fulmar_proto::units::{Bitrate, ByteCount, Instant};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// IPv6 and UDP headers.
const V6_OVERHEAD: ByteCount = ByteCount(48);
/// TPDUs in flight: 11 MB of the usual size.
const WINDOW_TPDUS: u16 = 8_192;
/// TPDUs to one MACK. On links below 77 mbit the 5 ms that a MACK waits at most come first; above, an
/// answer to every eighth would be a tenth of the work.
const ACK_EVERY: u16 = 32;
/// The most octets of a connection that are not confirmed: at 10 mbit, a link of 3 s.
const SEND_BUFFER: usize = 4 << 20;

/// The bits of an epoch that are finer than a start.
const EPOCH_FRACTION_BITS: u32 = 24;

/// The end of a gateway's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Flows that were cut off.
    pub cut: usize,
}

/// A gateway that has its ports, ready to run.
pub struct Gateway {
    driver: UdpDriver,
    link: Link,
    running: Running,
    control: Control,
    carrier: SocketAddr,
    entries: Vec<SocketAddr>,
    metrics: Option<SocketAddr>,
}

/// Tries every file and port name of a configuration without opening a port.
///
/// # Errors
/// [`GatewayError`] for a key that cannot be read or used.
pub fn check(config: &GatewayConfig) -> Result<(), GatewayError> {
    let keys = read_keys(&config.security)?;
    entry::rules(config)?;
    session_settings(config, &keys, Vec::new(), 0).check()?;
    Ok(())
}

fn system(what: &'static str) -> impl Fn(io::Error) -> GatewayError {
    move |source| GatewayError::System { what, source }
}

/// A peer's address in the form of the carrier's socket. Waits for the answer, if the peer has a name.
pub(crate) fn peer_address(
    config: &GatewayConfig,
    peer: usize,
) -> Result<Option<SocketAddr>, GatewayError> {
    let Some(peer) = config.peers.get(peer) else {
        return Ok(None);
    };
    let Some(address) = &peer.address else {
        return Ok(None);
    };
    let wrong = |source| GatewayError::PeerAddress {
        peer: peer.name.clone(),
        address: address.to_string(),
        source,
    };
    let found = address.to_string().to_socket_addrs().map_err(wrong)?;
    let address = usable(found, config.listen.is_ipv6());
    address.map(Some).map_err(wrong)
}

/// The address of a peer that has no name to be resolved; peers with names get theirs once they are resolved.
pub(super) fn known_address(
    config: &GatewayConfig,
    peer: usize,
) -> Result<Option<SocketAddr>, GatewayError> {
    let settings = config.peers.get(peer);
    let address = settings.and_then(|peer| peer.address.as_ref());
    let is_known = address.is_some_and(|address| matches!(address.host, Host::Address(_)));
    if is_known {
        peer_address(config, peer)
    } else {
        Ok(None)
    }
}

/// A question to the peer at place `index` whether its keys and ours fit; `None` if none can be made.
///
/// # Errors
/// [`GatewayError`] for a key that cannot be read, or a system without entropy.
pub(crate) fn key_question(
    config: &GatewayConfig,
    index: usize,
) -> Result<Option<KeyQuestion>, GatewayError> {
    let keys = read_keys(&config.security)?;
    let mut entropy = Entropy::from_system().map_err(system("asking for entropy"))?;
    let question = config.peers.get(index).and_then(|peer| {
        let (security, _) = security_of(&keys, index, peer);
        KeyQuestion::new(&security, keys.identity.as_ref(), &mut entropy)
    });
    Ok(question)
}

/// The sizes of packets to a peer.
pub(super) fn mtu_config(peer: &PeerSettings) -> MtuConfig {
    if peer.mtu_discovery {
        MtuConfig {
            max: peer.mtu,
            rate: Some(peer.rate),
            ..MtuConfig::default()
        }
    } else {
        MtuConfig::fixed(peer.mtu)
    }
}

/// The sizes that fit every peer's packets before anything is known of the paths; the session tells better ones.
fn first_sizes(config: &GatewayConfig) -> PathSizes {
    let packets = config.peers.iter().map(|peer| mtu_config(peer).start);
    let packet = packets.min().unwrap_or(MtuConfig::default().start);
    let parity = ByteCount::from_usize(config.fec_words.parity_bytes());
    let lower_overhead = V6_OVERHEAD + SESSION_OVERHEAD + parity;
    PathSizes {
        tpdu_bytes_max: packet.saturating_sub(lower_overhead).as_usize(),
        lower_overhead,
    }
}

/// The inner paths of the peers, by which their connections are known.
pub(super) fn inner_paths(config: &GatewayConfig) -> impl Iterator<Item = PathId> {
    let peers = u32::try_from(config.peers.len()).unwrap_or(u32::MAX);
    (0..peers).map(|peer| PeerIndex(peer).inner_path())
}

fn splicer(config: &GatewayConfig, epoch: u64) -> Result<Splicer, GatewayError> {
    let mut entropy = Entropy::from_system().map_err(system("asking for entropy"))?;
    let rng = Rng::from_seed(u64::from_le_bytes(entropy.array()));
    let rate = config.peers.iter().map(|peer| peer.rate).max();
    let limits = &config.limits;
    let sizes = first_sizes(config);
    let endpoint = EndpointConfig {
        rate: rate.unwrap_or(Bitrate::ZERO),
        burst: BURST_TIME,
        lower_overhead: sizes.lower_overhead,
        // A flow that ends lingers while the next begins.
        connections_max: limits.flows.saturating_mul(4),
        ..EndpointConfig::default()
    };
    let mut endpoint = Endpoint::new(endpoint, rng.child("ports"));
    endpoint.share_among(inner_paths(config));
    let settings = SplicerConfig {
        connection: ConnectionConfig {
            tpdu_bytes_max: sizes.tpdu_bytes_max,
            // The session's tag notices every damage.
            payload_crc: false,
            window_tpdus: WINDOW_TPDUS,
            send_buffer_bytes: SEND_BUFFER,
            give_up_after: limits.outage,
            ack: AckPolicy {
                every: ACK_EVERY,
                ..AckPolicy::default()
            },
            ..ConnectionConfig::default()
        },
        incarnation: u32::try_from((epoch >> EPOCH_FRACTION_BITS) & u64::from(u32::MAX))
            .unwrap_or_default(),
        flows_max: limits.flows.saturating_mul(2),
        // An outage may end them all without an answer.
        ends_max: SplicerConfig::default()
            .ends_max
            .max(limits.flows.saturating_mul(2)),
        receive_memory: limits.memory,
        stream_idle_max: limits.tcp_idle,
        datagram_idle_max: limits.udp_idle,
        resume_within: limits.outage,
        ..SplicerConfig::default()
    };
    Ok(Splicer::new(settings, endpoint, rng.child("flows"))?)
}

/// A peer's way of being recognised: by one key, and perhaps by another public one.
pub(super) type Recognition = (Security, Option<PublicKey>);

/// The way in which the peer at this place in the file is recognised.
pub(super) fn security_of(keys: &Keys, place: usize, peer: &PeerSettings) -> Recognition {
    let mut public = peer.public_keys().filter_map(|key| key.parse().ok());
    let security = match (&keys.preset, public.next()) {
        (preset, Some(key)) => Security::Noise {
            peer: key,
            preset: preset.clone(),
        },
        (Some(key), None) => Security::Preset { key: key.clone() },
        (None, None) => Security::None {
            label: u32::try_from(place).unwrap_or(u32::MAX),
        },
    };
    (security, public.next())
}

/// The session's settings, with the paths where its peers may be found.
pub(super) fn session_settings(
    config: &GatewayConfig,
    keys: &Keys,
    endpoints: Vec<Vec<PathId>>,
    epoch: u64,
) -> SessionConfig {
    let mut endpoints = endpoints.into_iter();
    let peers = config
        .peers
        .iter()
        .enumerate()
        .map(|(index, peer)| PeerConfig {
            name: peer.name.clone(),
            security: security_of(keys, index, peer).0,
            endpoints: endpoints.next().unwrap_or_default(),
            mtu: mtu_config(peer),
        });
    let peers = peers.collect();
    SessionConfig {
        fec_words: config.fec_words,
        capabilities: fast_cipher().into_iter().chain([reports()]).collect(),
        ..SessionConfig::new(keys.identity.clone(), peers, epoch)
    }
}

fn session(
    config: &GatewayConfig,
    keys: &Keys,
    driver: &mut UdpDriver,
    epoch: u64,
) -> Result<Link, GatewayError> {
    let mut endpoints = Vec::new();
    for index in 0..config.peers.len() {
        let path =
            known_address(config, index)?.and_then(|address| driver.path_while_used(address));
        endpoints.push(path.into_iter().collect());
    }
    let settings = session_settings(config, keys, endpoints, epoch);
    let entropy = Entropy::from_system().map_err(system("asking for entropy"))?;
    let mut splicer = splicer(config, epoch)?;
    // No TPDU is made for a peer before it is there.
    for peer in 0..config.peers.len() {
        let peer = PeerIndex(u32::try_from(peer).unwrap_or(u32::MAX));
        splicer.hold(Instant::START, peer.inner_path(), true);
    }
    let mut session = Session::new(settings, splicer, entropy)?;
    session.set_identity(Instant::START, keys.identity.clone(), keys.former.clone());
    for (index, peer) in config.peers.iter().enumerate() {
        let (security, also) = security_of(keys, index, peer);
        session.set_security(Instant::START, index_of(index), security, also);
    }
    Ok(session)
}

/// The epoch of this start, which is larger than at any earlier start.
fn boot_epoch(config: &GatewayConfig, keys: &Keys) -> Result<u64, GatewayError> {
    let place = state_place::directory(config, keys)?;
    let directory = StateDirectory::open(&place).map_err(EpochError::from)?;
    let epoch = next_boot_epoch(&directory, &format!("fulmar-{}.epoch", config.name));
    Ok(epoch?)
}

/// Opens an entry's port before anything else is there. A port that is taken may be the keeper's, which is asked later.
fn early(rule: Rule, has_keeper: bool) -> Result<(Rule, Option<Entry>), GatewayError> {
    match entry::open(rule.clone()) {
        Ok(entry) => Ok((rule, Some(entry))),
        Err(GatewayError::Listen { source, .. })
            if has_keeper && source.kind() == io::ErrorKind::AddrInUse =>
        {
            Ok((rule, None))
        }
        Err(error) => Err(error),
    }
}

impl Gateway {
    /// Takes the ports and starts the helping threads.
    ///
    /// # Errors
    /// [`GatewayError`]: a port, a file or a capability cannot be had.
    pub fn start(clock: Clock, config: GatewayConfig) -> Result<Self, GatewayError> {
        Self::start_with(clock, config, |_| Ok(()))
    }

    /// Does the same as [`Gateway::start`], and calls `ports_are_open` once the ports are open, before there is another
    /// thread or process.
    ///
    /// # Errors
    /// As [`Gateway::start`], or the error of `ports_are_open`.
    pub fn start_with(
        clock: Clock,
        config: GatewayConfig,
        ports_are_open: impl FnOnce(&GatewayConfig) -> Result<(), GatewayError>,
    ) -> Result<Self, GatewayError> {
        descriptors::raise_limit();
        let keys = read_keys(&config.security)?;
        let rules = entry::rules(&config)?;
        let (waker, wake_up): (_, WakeUp) = waker().map_err(system("making a waker"))?;
        let fastest = config.peers.iter().map(|peer| peer.rate).max();
        let port = fastest.map_or_else(PortConfig::default, PortConfig::for_rate);
        let port = UdpPort::bind(config.listen, port).map_err(|source| GatewayError::Listen {
            what: "carrier",
            listen: config.listen,
            source,
        })?;
        let carrier = port
            .local()
            .map_err(system("reading the carrier's address"))?;
        let has_keeper = config.custody.directory.is_some();
        let entries = rules.into_iter().map(|rule| early(rule, has_keeper));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        let metrics = config.metrics.map(http::bind).transpose()?;
        ports_are_open(&config)?;
        let mut driver = UdpDriver::new(clock, port, wake_up, PathTableConfig::default());
        let epoch = boot_epoch(&config, &keys)?;
        let mut link = session(&config, &keys, &mut driver, epoch)?;
        let poller = Poller::new().map_err(system("making a poller"))?;
        let resolver = Resolver::new(&waker).map_err(system("starting the resolver"))?;
        let resolver_of_peers = Resolver::new(&waker).map_err(system("starting the resolver"))?;
        let mut peer_names = PeerNames::new(resolver_of_peers, config.listen.is_ipv6());
        peer_names.follow(clock.now(), &config.peers);
        let waker_of_store = waker.try_clone().map_err(system("copying the waker"))?;
        let (keeping, found) = Keeping::open(&config, waker_of_store)?;
        let (control, inbox) = Control::new(waker);
        let metrics = match metrics {
            Some(listener) => {
                let control = control.try_clone().map_err(system("copying the waker"))?;
                Some(http::serve(listener, Box::new(control))?)
            }
            None => None,
        };
        let mut running = Running::new(Parts {
            config,
            poller,
            resolver,
            peer_names,
            inbox,
            keeping,
        });
        let names = entries.iter().filter_map(|(rule, _)| rule.port_name());
        let kept = kept_ports::each(names);
        running.traffic.keeping.forget_other_ports(&kept);
        let entries = {
            let floor = &mut running.ground.floor(clock.now(), &mut link);
            let traffic = &mut running.traffic;
            let open = entries.into_iter().map(|(rule, entry)| {
                let entry = open_entry(&mut traffic.keeping, rule, entry)?;
                running.entries.watch_entry(floor, traffic, entry)
            });
            open.collect::<Result<_, _>>()?
        };
        running.watch = Watch::begin(clock, &running.ground.config, &mut link, carrier)?;
        if running.watch.has_trace() {
            running.traffic.newsbox.want();
        }
        let floor = &mut running.ground.floor(clock.now(), &mut link);
        running.traffic.restore(floor, found);
        let floor = &mut running.ground.floor(clock.now(), &mut link);
        running.entries.restore_clients(floor, &mut running.traffic);
        running.tell_news();
        Ok(Self {
            driver,
            link,
            running,
            control,
            carrier,
            entries,
            metrics,
        })
    }

    /// The address where peers reach it.
    pub const fn carrier(&self) -> SocketAddr {
        self.carrier
    }

    /// The addresses where clients reach it: forwards, transparent entries, SOCKS proxies, in the order of the
    /// configuration.
    pub fn entries(&self) -> &[SocketAddr] {
        &self.entries
    }

    /// The address where metrics are served.
    pub const fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// A handle to stop it, reload it, or ask for its status.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn control(&self) -> io::Result<Control> {
        self.control.try_clone()
    }

    /// Runs until it is told to stop.
    ///
    /// # Errors
    /// [`GatewayError::Driver`]: the system no longer lets us receive or wait.
    pub fn run(mut self) -> Result<End, GatewayError> {
        self.driver.run(&mut self.link, &mut self.running)?;
        let traffic = &mut self.running.traffic;
        traffic.keeping.stop(traffic.left);
        Ok(End {
            cut: self.running.cut,
        })
    }
}
