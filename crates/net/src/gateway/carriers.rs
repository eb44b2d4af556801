//! The ports of a gateway's carriers, and the carrier of each path.

use super::config::{CarrierChoice, GatewayConfig, PeerSettings};
use super::error::GatewayError;
use super::link::{known_address, system};
use super::peers::{PathPort, PathPorts, usable};
use super::sockets::interfaces_up;
use crate::ethernet::{EthernetPort, Neighbour, device_index};
use crate::session::PathTerms;
use crate::udp::{
    Carrier, PathTableConfig, PortBeside, PortConfig, PortProtocol, UdpDriver, UdpPort,
};
use fulmar_proto::machine::PathId;
use fulmar_proto::units::Bitrate;
use std::io;
use std::net::SocketAddr;

/// Opens the port for UDP, and those beside it that the peers' carriers need.
pub(super) fn open(config: &GatewayConfig) -> Result<(UdpPort, Vec<PortBeside>), GatewayError> {
    let bounds = config.peers.iter().map(|peer| peer.rate.bound());
    // A rate that is to be found may be any.
    let fastest = bounds.max_by_key(|bound| bound.map_or(u64::MAX, Bitrate::as_bits_per_second));
    let port = PortConfig {
        takes_unchecked: config.lets_damage_in(),
        ..PortConfig::for_bound(fastest.flatten())
    };
    let beside = open_beside(config, port)?;
    let port = UdpPort::bind(config.listen, port).map_err(|source| GatewayError::Listen {
        what: "carrier",
        listen: config.listen,
        source,
    })?;
    Ok((port, beside))
}

fn open_beside(config: &GatewayConfig, port: PortConfig) -> Result<Vec<PortBeside>, GatewayError> {
    let mut ports = Vec::new();
    let mut devices: Vec<&str> = Vec::new();
    for peer in &config.peers {
        match &peer.carrier {
            CarrierChoice::Auto | CarrierChoice::Udp | CarrierChoice::UdpNoChecksum => {}
            CarrierChoice::UdpLite => {
                let has_one = |one: &PortBeside| matches!(one, PortBeside::UdpLite(_));
                if !ports.iter().any(has_one) {
                    let port = PortConfig {
                        protocol: PortProtocol::UdpLite,
                        ..port
                    };
                    let port = UdpPort::bind(config.listen, port);
                    let port = port.map_err(|source| GatewayError::Listen {
                        what: "UDP-Lite, which not every kernel has",
                        listen: config.listen,
                        source,
                    })?;
                    ports.push(PortBeside::UdpLite(port));
                }
            }
            CarrierChoice::Ethernet(device) if devices.contains(&device.as_str()) => {}
            CarrierChoice::Ethernet(device) => {
                let opened = EthernetPort::open(device, port.buffer);
                ports.push(PortBeside::Ethernet(opened.map_err(no_device(peer))?));
                devices.push(device);
            }
        }
    }
    Ok(ports)
}

fn no_device(peer: &PeerSettings) -> impl FnOnce(io::Error) -> GatewayError {
    let (peer, carrier) = (peer.name.clone(), peer.carrier.to_string());
    move |source| GatewayError::Device {
        peer,
        carrier,
        source,
    }
}

/// The carrier of what goes back to an address from which the first datagram came by UDP: that of all peers, if they have
/// one.
pub(super) fn of_strangers(config: &GatewayConfig) -> Carrier {
    let is_unchecked = |peer: &PeerSettings| peer.carrier == CarrierChoice::UdpNoChecksum;
    if !config.peers.is_empty() && config.peers.iter().all(is_unchecked) {
        Carrier::UdpNoChecksum
    } else {
        Carrier::Udp
    }
}

/// A further path of a peer, with its terms.
pub(super) struct OpenedPath {
    /// The peer's place in the configuration.
    pub(super) peer: usize,
    /// Its place among the further paths of the peer, from 1 on.
    pub(super) number: usize,
    pub(super) path: PathId,
    pub(super) terms: PathTerms,
}

/// The table of the paths of such a gateway: named ones take no room from others.
pub(super) fn path_table(config: &GatewayConfig) -> PathTableConfig {
    let usual = PathTableConfig::default();
    let named: usize = config.peers.iter().map(|peer| peer.paths.len()).sum();
    PathTableConfig {
        paths_max: usual.paths_max + named,
        ..usual
    }
}

/// Opens the sockets of the peers' further paths. Returns the paths, and the sockets that follow their devices.
pub(super) fn open_paths(
    config: &GatewayConfig,
    driver: &mut UdpDriver,
) -> Result<(Vec<OpenedPath>, PathPorts), GatewayError> {
    let mut opened = Vec::new();
    let mut ports = Vec::new();
    let mut beside = Vec::new();
    let up = interfaces_up().map_err(system("listing the network interfaces"))?;
    for (index, peer) in config.peers.iter().enumerate() {
        for (number, path) in (1..).zip(&peer.paths) {
            let refused = |source| GatewayError::Path {
                peer: peer.name.clone(),
                path: path.in_words(),
                source,
            };
            let known = known_address(config, index)?;
            let Some(address) = path.address.or(known) else {
                continue;
            };
            let made = if path.has_own_socket() {
                let address = SocketAddr::new(address.ip().to_canonical(), address.port());
                let port = PathPort::open((index, path), address, &up, |port| {
                    let socket = driver.add_port(port)?;
                    Some((socket, driver.path_from(socket, address)?))
                });
                let port = port.map_err(refused)?;
                let made = port.as_ref().map(PathPort::path);
                ports.extend(port);
                made
            } else {
                let found = core::iter::once(address);
                let address = usable(found, config.listen.is_ipv6()).map_err(refused)?;
                let made = driver.path_from(0, address);
                beside.extend(made.map(|made| (index, made, path.in_words())));
                made
            };
            let made = made.ok_or_else(|| GatewayError::TooManyPaths {
                peer: peer.name.clone(),
                path: path.in_words(),
                most: path_table(config).paths_max,
            })?;
            let terms = PathTerms {
                rate: path.rate,
                cost: path.cost,
            };
            opened.push(OpenedPath {
                peer: index,
                number,
                path: made,
                terms,
            });
        }
    }
    Ok((opened, PathPorts::new(ports, beside, config)))
}

/// The path to a peer at `address`, or to everybody on its device, by its carrier.
pub(super) fn path_to(
    driver: &mut UdpDriver,
    peer: &PeerSettings,
    address: Option<SocketAddr>,
) -> Result<Option<PathId>, GatewayError> {
    let address = match &peer.carrier {
        CarrierChoice::Ethernet(device) => {
            let device = device_index(device).map_err(no_device(peer))?;
            Some(Neighbour::everybody(device).address())
        }
        _ => address,
    };
    let path = address.and_then(|address| driver.path_while_used(address));
    if let Some(path) = path {
        driver.set_carrier(path, peer.carrier.carrier());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::session::{FURTHER_PATHS_MAX, PEERS_MAX};
    use crate::wait::waker;
    use std::collections::BTreeSet;
    use std::fmt::Write;

    /// As many paths as a file can name, each by a device that is not there.
    fn config() -> GatewayConfig {
        let mut text = String::from(
            "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n[egress]\nallow = [\"10.0.0.1:80\"]\n",
        );
        for peer in 0..PEERS_MAX {
            let port = 10_000 + peer;
            writeln!(
                text,
                "[[peer]]\nname = \"p{peer}\"\naddress = \"127.0.0.1:{port}\""
            )
            .expect("a text");
            for path in 0..FURTHER_PATHS_MAX {
                writeln!(text, "[[peer.path]]\ndevice = \"none{path}\"").expect("a text");
            }
        }
        GatewayConfig::read("a.toml", &text).expect("sound")
    }

    fn driver(paths: PathTableConfig) -> UdpDriver {
        let local = ([127, 0, 0, 1], 0).into();
        let port = UdpPort::bind(local, PortConfig::default()).expect("a port");
        let (_, wake_up) = waker().expect("a waker");
        UdpDriver::new(Clock::start(), port, wake_up, paths)
    }

    #[test]
    fn as_many_paths_as_a_file_can_name_have_a_socket_each() {
        let config = config();
        let mut driver = driver(path_table(&config));
        let (opened, _) = open_paths(&config, &mut driver).expect("there is room");
        assert_eq!(opened.len(), PEERS_MAX * FURTHER_PATHS_MAX);
        let paths: BTreeSet<PathId> = opened.iter().map(|one| one.path).collect();
        assert_eq!(paths.len(), opened.len(), "no two leave by one socket");
    }

    #[test]
    fn a_path_for_which_there_is_no_room_is_refused_with_the_number() {
        let config = config();
        let paths_max = PEERS_MAX * FURTHER_PATHS_MAX;
        let with = |paths_max| PathTableConfig {
            paths_max,
            ..PathTableConfig::default()
        };
        open_paths(&config, &mut driver(with(paths_max))).expect("there is room");
        let refused = open_paths(&config, &mut driver(with(paths_max - 1)));
        let error = refused.err().expect("one too many").to_string();
        assert!(
            error.starts_with("cannot open the path by none6 to peer `p255`"),
            "{error}"
        );
        assert!(error.contains("2816"), "{error}");
    }
}
