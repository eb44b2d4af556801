//! From a configuration to a running gateway: keys, ports, machines, threads.

use super::Link;
use super::carriers::{self, OpenedPath};
use super::command::Control;
use super::config::{CarrierChoice, GatewayConfig, Keys, read_keys, state_place};
use super::entries::{Entry, Rule, entry, open_entry};
use super::error::GatewayError;
use super::flows::{Keeping, kept_ports};
use super::link::{
    first_sizes, inner_paths, known_address, security_of, session_settings, set_meetings, system,
};
use super::links::Links;
use super::peers::{KeptRates, PathPorts, PeerNames, index_of};
use super::running::{Parts, Running};
use super::sockets::{Poller, Resolver, Target};
use super::tunnels::Tunnels;
use super::watch::{Watch, http};
use crate::clock::Clock;
use crate::descriptors;
use crate::session::{Armour, Entropy, EpochError, Session, StateDirectory, next_boot_epoch};
use crate::udp::{BURST_TIME, UdpDriver};
use crate::wait::{WakeUp, waker};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{Splicer, SplicerConfig};
use fulmar_proto::transport::aerotp::{
    AckPolicy, AerotpEndpoint, ConnectionConfig, EndpointConfig,
};
use fulmar_proto::units::{ByteCount, Instant};
use std::io;
use std::net::{SocketAddr, TcpListener};

/// TPDUs in flight: 47 MB of the usual size.
const WINDOW_TPDUS: u16 = 32_768;
/// TPDUs to one MACK. On links below 77 mbit the 5 ms that a MACK waits at most come first; above, an
/// answer to every eighth would be a tenth of the work.
const ACK_EVERY: u16 = 32;
/// The most octets of a connection that are not confirmed: five round trips of 0.8 s at 100 mbit. They take memory as
/// they come, and no more than a part of what all flows may take.
const SEND_BUFFER: usize = 48 << 20;
const SEND_BUFFER_PART: usize = 8;
/// The part of `limits.memory` beyond it that messages and packets may take while they wait to be sent.
const WAITING_PART: u64 = 4;

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

/// Tries every file and port name of a configuration without opening a port. Returns sentences on what the files say.
///
/// # Errors
/// [`GatewayError`] for a key that cannot be read or used.
pub fn check(config: &GatewayConfig) -> Result<Vec<String>, GatewayError> {
    let keys = read_keys(config)?;
    entry::rules(config)?;
    let said = Links::check(config)?;
    session_settings(config, &keys, Vec::new(), 0).check()?;
    Ok(said)
}

fn splicer(config: &GatewayConfig, epoch: u64) -> Result<Splicer, GatewayError> {
    let mut entropy = Entropy::from_system().map_err(system("asking for entropy"))?;
    let rng = Rng::from_seed(u64::from_le_bytes(entropy.array()));
    let limits = &config.limits;
    let sizes = first_sizes(config);
    let endpoint = EndpointConfig {
        burst: BURST_TIME,
        lower_overhead: sizes.lower_overhead,
        // A flow that ends lingers while the next begins.
        connections_max: limits.flows.saturating_mul(4),
        follows_length: true,
        ..EndpointConfig::default()
    };
    let mut endpoint = AerotpEndpoint::new(endpoint, rng.child("ports"));
    endpoint.share_among(inner_paths(config));
    let settings = SplicerConfig {
        connection: ConnectionConfig {
            tpdu_bytes_max: sizes.tpdu_bytes_max,
            // The session's tag notices every damage.
            payload_crc: false,
            window_tpdus: WINDOW_TPDUS,
            send_buffer_bytes: SEND_BUFFER.min(limits.memory.as_usize() / SEND_BUFFER_PART),
            give_up_after: limits.outage,
            thin: Some(config.thin),
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
        waiting_memory: ByteCount(limits.memory.0 / WAITING_PART),
        stream_idle_max: limits.tcp_idle,
        datagram_idle_max: limits.udp_idle,
        resume_within: limits.outage,
        ..SplicerConfig::default()
    };
    Ok(Splicer::new(settings, endpoint, rng.child("flows"))?)
}

fn session(
    config: &GatewayConfig,
    keys: &Keys,
    driver: &mut UdpDriver,
    (epoch, rates): (u64, &KeptRates),
    links: &mut Links,
) -> Result<(Link, PathPorts), GatewayError> {
    let mut endpoints = Vec::new();
    for (index, peer) in config.peers.iter().enumerate() {
        let path = carriers::path_to(driver, peer, known_address(config, index)?)?;
        endpoints.push(path.into_iter().collect());
    }
    let settings = session_settings(config, keys, endpoints, epoch);
    let entropy = Entropy::from_system().map_err(system("asking for entropy"))?;
    let mut splicer = splicer(config, epoch)?;
    for (index, peer) in config.peers.iter().enumerate() {
        let path = index_of(index).inner_path();
        let kept = rates.of(&peer.name).filter(|_| peer.rate.is_found());
        if let Some((rate, age)) = kept {
            let age_seconds = age.as_secs();
            tracing::info!(event = "rate_tried_first", peer = peer.name, %rate, age_seconds);
        }
        // The session asks for path acks where the rate is found.
        let source = peer.rate.after(kept.map(|(rate, _)| rate));
        (splicer.endpoint_mut()).set_rate_source(Instant::START, path, source);
        // No TPDU is made for a peer before it is there.
        splicer.hold(Instant::START, path, true);
    }
    let mut session = Session::new(settings, splicer, entropy)?;
    session.set_identity(Instant::START, keys.identity.clone(), keys.former.clone());
    for (index, peer) in config.peers.iter().enumerate() {
        let (security, also) = security_of(keys, index, peer);
        session.set_security(Instant::START, index_of(index), security, also);
        let may_armour = peer.carrier.may_let_damage_in();
        session.set_armour(index_of(index), may_armour.then_some(Armour::Follows));
        if peer.carrier == CarrierChoice::Auto {
            session.choose_checksum(index_of(index));
        }
        set_meetings(config, &mut session, index);
    }
    let (paths, ports) = carriers::open_paths(config, driver)?;
    for OpenedPath {
        peer,
        number,
        path,
        terms,
    } in paths
    {
        links.serve((peer, number), path);
        session.add_path(Instant::START, (index_of(peer), path), terms);
    }
    Ok((session, ports))
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

/// Serves metrics and status, as `control` can be asked for them.
fn serve(listener: TcpListener, control: &Control) -> Result<SocketAddr, GatewayError> {
    let control = control.try_clone().map_err(system("copying the waker"))?;
    http::serve(listener, Box::new(control))
}

/// Waits for the devices of tunnels, and for the kernel's word of changes at interfaces.
fn watch_devices(now: Instant, running: &mut Running, link: &mut Link) -> Result<(), GatewayError> {
    let floor = &mut running.ground.floor(now, link);
    let watched = running.tunnels.watch(floor);
    watched.map_err(system("watching the devices of tunnels"))?;
    let watched = running.links.watch(&mut running.ground.sockets);
    watched.map_err(system("watching the sources of links' words"))?;
    if let Some(bell) = running.peers.ports.bell() {
        let sockets = &mut running.ground.sockets;
        let token = sockets.token(Target::Interfaces);
        let watched = sockets.poller.watch_level(bell, token);
        watched.map_err(system("watching the interfaces"))?;
    }
    Ok(())
}

/// The addresses of the entries that take the TCP of tunnels, with the tunnels' places.
fn diverted(entries: &[(Rule, Option<Entry>)]) -> Vec<(usize, SocketAddr)> {
    let all = entries.iter().filter_map(|(rule, entry)| {
        let local = entry.as_ref()?.local().ok()?;
        Some((rule.tunnel()?, local))
    });
    all.collect()
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
        let keys = read_keys(&config)?;
        let rules = entry::rules(&config)?;
        let (waker, wake_up): (_, WakeUp) = waker().map_err(system("making a waker"))?;
        let (port, beside) = carriers::open(&config)?;
        let carrier = port.local();
        let carrier = carrier.map_err(system("reading the carrier's address"))?;
        let has_keeper = config.custody.directory.is_some();
        let entries = rules.into_iter().map(|rule| early(rule, has_keeper));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        let metrics = config.metrics.map(http::bind).transpose()?;
        let mut tunnels = Tunnels::open(&config)?;
        tunnels.divert(&config, &diverted(&entries))?;
        let mut links = Links::open(&config)?;
        ports_are_open(&config)?;
        let mut driver = UdpDriver::new(clock, port, wake_up, carriers::path_table(&config));
        for port in beside {
            driver.add_port(port);
        }
        driver.set_carrier_of_strangers(carriers::of_strangers(&config));
        let epoch = boot_epoch(&config, &keys)?;
        let rates = KeptRates::read(state_place::directory(&config, &keys)?, &config);
        let (mut link, path_ports) =
            session(&config, &keys, &mut driver, (epoch, &rates), &mut links)?;
        let poller = Poller::new().map_err(system("making a poller"))?;
        let resolver = Resolver::new(&waker).map_err(system("starting the resolver"))?;
        let resolver_of_peers = Resolver::new(&waker).map_err(system("starting the resolver"))?;
        let mut peer_names = PeerNames::new(resolver_of_peers, config.listen.is_ipv6());
        peer_names.follow(clock.now(), &config.peers);
        let waker_of_store = waker.try_clone().map_err(system("copying the waker"))?;
        let (keeping, found) = Keeping::open(&config, waker_of_store)?;
        let (control, inbox) = Control::new(waker);
        let metrics = metrics.map(|listener| serve(listener, &control));
        let metrics = metrics.transpose()?;
        let mut running = Running::new(Parts {
            config,
            poller,
            resolver,
            peer_names,
            inbox,
            keeping,
            tunnels,
            links,
        });
        let kept = kept_ports::each(entries.iter().filter_map(|(rule, _)| rule.port_name()));
        running.traffic.keeping.forget_other_ports(&kept);
        running.peers.rates = rates;
        running.peers.ports = path_ports;
        let entries = {
            let floor = &mut running.ground.floor(clock.now(), &mut link);
            let traffic = &mut running.traffic;
            let open = entries.into_iter().map(|(rule, entry)| {
                let entry = open_entry(&mut traffic.keeping, rule, entry)?;
                running.entries.watch_entry(floor, traffic, entry)
            });
            open.collect::<Result<_, _>>()?
        };
        watch_devices(clock.now(), &mut running, &mut link)?;
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
        self.running.peers.rates.write();
        let traffic = &mut self.running.traffic;
        traffic.keeping.stop(traffic.left);
        Ok(End {
            cut: self.running.cut,
        })
    }
}
