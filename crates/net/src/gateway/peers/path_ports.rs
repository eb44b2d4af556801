//! The sockets of further paths, which follow their devices: a path whose device or address is missing waits for it.

use super::index::index_of;
use crate::gateway::Link;
use crate::gateway::config::{GatewayConfig, PathSettings};
use crate::gateway::sockets::{InterfaceBell, NetInterface, interfaces_up};
use crate::udp::{PortBeside, PortChange, PortConfig, UdpPort};
use core::fmt;
use fulmar_proto::machine::PathId;
use fulmar_proto::units::{Duration, Instant};
use serde::Serialize;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The shortest time between two looks at the interfaces: a device that comes tells of itself a dozen times.
const LOOKS_APART: Duration = Duration::from_millis(50);
/// The time after which the kernel is asked again, where it tells nothing by itself or has refused a socket.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The reason for which a path has no socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathWait {
    /// There is no such device, or it is not up.
    Device(String),
    /// The device has no address of the peer's family.
    Unaddressed(String, &'static str),
    /// No interface has the address.
    Address(IpAddr),
    /// The kernel does not let us have the socket, for now.
    Refused(io::ErrorKind, String),
    /// The peer is no longer in the configuration.
    Removed,
}

impl fmt::Display for PathWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(device) => write!(f, "there is no device {device} that is up"),
            Self::Unaddressed(device, family) => {
                write!(f, "the device {device} has no {family} address")
            }
            Self::Address(address) => write!(f, "no device that is up has the address {address}"),
            Self::Refused(_, why) => write!(f, "the system refuses a socket: {why}"),
            Self::Removed => write!(f, "a reload took the peer out"),
        }
    }
}

/// A path that waits for its device or address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitingPath {
    /// The path, as its settings say.
    pub path: String,
    /// The thing that is missing.
    pub why: String,
}

/// The interface by which `path` leaves for `remote`: its number in the kernel.
fn interface_for(
    path: &PathSettings,
    remote: SocketAddr,
    up: &[NetInterface],
) -> Result<u32, PathWait> {
    let with_address = |address: &IpAddr| {
        let mut with_it = up.iter().filter(|one| one.addresses.contains(address));
        with_it.next().ok_or(PathWait::Address(*address))
    };
    let Some(device) = &path.device else {
        let local = path.local.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        return with_address(&local).map(|one| one.index);
    };
    let found = up.iter().find(|one| one.name == *device);
    let found = found.ok_or_else(|| PathWait::Device(device.clone()))?;
    match path.local {
        Some(local) => with_address(&local).map(|_| found.index),
        None if found.addresses.iter().any(|ip| reaches(*ip, remote.ip())) => Ok(found.index),
        None => {
            let family = if remote.is_ipv4() { "IPv4" } else { "IPv6" };
            Err(PathWait::Unaddressed(device.clone(), family))
        }
    }
}

/// Whether datagrams to `remote` can have this source. Each device has a link-local address, which is good on its link alone.
fn reaches(source: IpAddr, remote: IpAddr) -> bool {
    match (source, remote) {
        (IpAddr::V4(_), IpAddr::V4(_)) => true,
        (IpAddr::V6(source), IpAddr::V6(remote)) => {
            !source.is_unicast_link_local() || remote.is_unicast_link_local()
        }
        _ => false,
    }
}

/// The reason for which a path would have to wait now, if there is one: its device or address is missing. A path that names
/// neither needs none.
///
/// # Errors
/// The system does not say which devices there are.
pub(crate) fn missing(path: &PathSettings, remote: SocketAddr) -> io::Result<Option<PathWait>> {
    if path.device.is_none() && path.local.is_none() {
        return Ok(None);
    }
    Ok(interface_for(path, remote, &interfaces_up()?).err())
}

fn bind(path: &PathSettings, remote: SocketAddr) -> io::Result<UdpPort> {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let local = SocketAddr::new(path.local.unwrap_or(any), 0);
    let port = UdpPort::bind(local, PortConfig::for_bound(path.rate))?;
    if let Some(device) = &path.device {
        port.bind_device(device)?;
    }
    Ok(port)
}

/// A path with a socket of its own.
#[derive(Debug)]
pub(in crate::gateway) struct PathPort {
    /// The peer's place in the configuration.
    peer: usize,
    settings: PathSettings,
    remote: SocketAddr,
    /// The driver's number of the socket, and the path from there.
    socket: u16,
    path: PathId,
    /// The number of its interface, or the reason for which there is no socket.
    at: Result<u32, PathWait>,
}

impl PathPort {
    /// Looks for the interface of a path to the peer in this place, and opens a socket there if it can. `made` puts that
    /// socket to the driver, and returns the driver's number of it and the path from there. `None`: the driver has no room.
    ///
    /// # Errors
    /// The socket is refused for another reason than a missing device or address.
    pub(in crate::gateway) fn open(
        (peer, settings): (usize, &PathSettings),
        remote: SocketAddr,
        up: &[NetInterface],
        made: impl FnOnce(PortBeside) -> Option<(u16, PathId)>,
    ) -> io::Result<Option<Self>> {
        let mut at = interface_for(settings, remote, up);
        let mut port = PortBeside::Absent;
        if at.is_ok() {
            match bind(settings, remote) {
                Ok(bound) => port = PortBeside::Udp(bound),
                Err(error) if is_missing(&error) => at = Err(refused(&error)),
                Err(error) => return Err(error),
            }
        }
        Ok(made(port).map(|(socket, path)| Self {
            peer,
            settings: settings.clone(),
            remote,
            socket,
            path,
            at,
        }))
    }

    /// The path from its socket.
    pub(in crate::gateway) const fn path(&self) -> PathId {
        self.path
    }

    /// Follows the interface, as long as the peer is there. Returns the port that takes the place of the one that there was, if it is
    /// another.
    fn follow(&mut self, up: &[NetInterface], is_removed: bool) -> Option<PortBeside> {
        let found = if is_removed {
            Err(PathWait::Removed)
        } else {
            interface_for(&self.settings, self.remote, up)
        };
        if found == self.at {
            return None;
        }
        let had_port = self.at.is_ok();
        self.at = found;
        if self.at.is_ok() {
            match bind(&self.settings, self.remote) {
                Ok(port) => return Some(PortBeside::Udp(port)),
                Err(error) => self.at = Err(refused(&error)),
            }
        }
        had_port.then_some(PortBeside::Absent)
    }
}

fn refused(error: &io::Error) -> PathWait {
    PathWait::Refused(error.kind(), error.to_string())
}

/// Whether a socket was refused because its device or address has gone since it was looked for.
fn is_missing(error: &io::Error) -> bool {
    let is_no_device = error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error());
    is_no_device || error.kind() == io::ErrorKind::AddrNotAvailable
}

/// The paths with sockets of their own, and what the machine's interfaces do to them.
#[derive(Debug, Default)]
pub(in crate::gateway) struct PathPorts {
    ports: Vec<PathPort>,
    /// The paths that leave by the gateway's own socket: the peer's place in the configuration, the path, and what its settings say.
    beside: Vec<(usize, PathId, String)>,
    bell: Option<InterfaceBell>,
    /// The addresses that the machine had.
    addresses: BTreeSet<IpAddr>,
    last_look: Option<Instant>,
    next_look: Option<Instant>,
    changes: VecDeque<PortChange>,
    /// The places of paths whose sockets changed, which are tried once the driver has these: so one that is back is up at once, and
    /// one that has gone is down soon, though nothing else would leave there.
    changed: Vec<usize>,
}

impl PathPorts {
    /// Those of a start. Says which of them wait.
    pub(in crate::gateway) fn new(
        ports: Vec<PathPort>,
        beside: Vec<(usize, PathId, String)>,
        config: &GatewayConfig,
    ) -> Self {
        let bell = InterfaceBell::open().inspect_err(|error| {
            tracing::warn!(event = "interfaces_unwatched", %error);
        });
        for port in &ports {
            if let Err(why) = &port.at {
                say_wait(config, port, why);
            }
        }
        Self {
            ports,
            beside,
            bell: bell.ok(),
            // What cannot be listed yet is not taken for gone later.
            addresses: addresses(&interfaces_up().unwrap_or_default()),
            // Something may have changed before the bell was there.
            next_look: Some(Instant::START),
            ..Self::default()
        }
    }

    /// The descriptor to wait for.
    pub(in crate::gateway) const fn bell(&self) -> Option<&InterfaceBell> {
        self.bell.as_ref()
    }

    /// Notes that interfaces may have changed.
    pub(in crate::gateway) fn rang(&mut self, now: Instant) {
        if let Some(bell) = &self.bell {
            bell.silence();
        }
        let at = self
            .last_look
            .map_or(now, |last| (last + LOOKS_APART).max(now));
        self.next_look = Some(self.next_look.map_or(at, |next| next.min(at)));
    }

    /// Notes that peers may have been removed or have come back.
    pub(in crate::gateway) const fn peers_changed(&mut self, now: Instant) {
        self.next_look = Some(now);
    }

    /// The time of the next look at the interfaces.
    pub(in crate::gateway) const fn next_look(&self) -> Option<Instant> {
        self.next_look
    }

    /// The change that the driver has to make next.
    pub(in crate::gateway) fn next_change(&mut self) -> Option<PortChange> {
        self.changes.pop_front()
    }

    /// Looks at the interfaces if it is time to, and tries the paths whose sockets the driver has.
    pub(in crate::gateway) fn look(
        &mut self,
        now: Instant,
        config: &GatewayConfig,
        link: &mut Link,
    ) {
        for place in core::mem::take(&mut self.changed) {
            let port = self.ports.get(place);
            if let Some(port) = port {
                link.try_path(now, index_of(port.peer), port.path);
            }
        }
        if self.next_look.is_none_or(|at| now < at) {
            return;
        }
        self.last_look = Some(now);
        self.follow(now, interfaces_up(), config);
    }

    /// Follows the interfaces that are up. Where the kernel does not tell which, all stays as it is until the next look.
    fn follow(&mut self, now: Instant, up: io::Result<Vec<NetInterface>>, config: &GatewayConfig) {
        let up = match up {
            Ok(up) => up,
            Err(error) => {
                tracing::warn!(event = "interfaces_unlisted", %error);
                self.next_look = Some(now + LOOK_AGAIN);
                return;
            }
        };
        let had = core::mem::replace(&mut self.addresses, addresses(&up));
        let gone = had.difference(&self.addresses).copied();
        (self.changes).extend(gone.map(PortChange::AddressGone));
        for (place, port) in self.ports.iter_mut().enumerate() {
            let was = port.at.clone();
            let settings = config.peers.get(port.peer);
            // A peer that comes back has no further paths until a restart.
            let is_removed = matches!(was, Err(PathWait::Removed))
                || settings.is_none_or(|peer| peer.is_removed);
            if let Some(beside) = port.follow(&up, is_removed) {
                let change = PortChange::Exchange(port.socket, Box::new(beside));
                self.changes.push_back(change);
                self.changed.push(place);
            }
            match &port.at {
                Err(PathWait::Removed) => {}
                Err(why) if was.as_ref().err() != Some(why) => say_wait(config, port, why),
                Ok(_) if was != port.at => {
                    let peer = config.peer_name(port.peer);
                    let path = port.settings.in_words();
                    tracing::info!(event = "path_has_device", peer, path);
                }
                _ => {}
            }
        }
        let is_refused = |port: &PathPort| matches!(port.at, Err(PathWait::Refused(..)));
        let must_ask = self.bell.is_none() && !self.ports.is_empty();
        let again = must_ask || self.ports.iter().any(is_refused);
        self.next_look = again.then(|| now + LOOK_AGAIN);
    }

    /// The words of the settings for the path by which datagrams leave to the peer in this place.
    pub(in crate::gateway) fn way(&self, peer: usize, path: PathId) -> Option<String> {
        let is_it = |port: &&PathPort| port.peer == peer && port.path == path;
        let own = self.ports.iter().find(is_it);
        let own = own.map(|port| port.settings.in_words());
        let beside = || {
            let mut beside = self.beside.iter();
            let found = beside.find(|(of, one, _)| (*of, *one) == (peer, path))?;
            Some(found.2.clone())
        };
        own.or_else(beside)
    }

    /// The paths to the peer in this place that wait.
    pub(in crate::gateway) fn waiting(&self, peer: usize) -> Vec<WaitingPath> {
        let of_peer = self.ports.iter().filter(|port| port.peer == peer);
        let waiting = |port: &PathPort| {
            let why = port.at.as_ref().err()?.to_string();
            let path = port.settings.in_words();
            Some(WaitingPath { path, why })
        };
        of_peer.filter_map(waiting).collect()
    }
}

fn addresses(up: &[NetInterface]) -> BTreeSet<IpAddr> {
    up.iter()
        .flat_map(|one| one.addresses.iter().copied())
        .collect()
}

fn say_wait(config: &GatewayConfig, port: &PathPort, why: &PathWait) {
    let peer = config.peer_name(port.peer);
    let path = port.settings.in_words();
    tracing::warn!(event = "path_waits", peer, path, why = why.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOTE: ([u8; 4], u16) = ([203, 0, 113, 7], 4914);

    fn path(device: Option<&str>, local: Option<&str>) -> PathSettings {
        PathSettings {
            local: local.map(|text| text.parse().expect("an address")),
            device: device.map(str::to_owned),
            address: None,
            rate: None,
            cost: 0,
        }
    }

    fn interface(name: &str, index: u32, addresses: &[&str]) -> NetInterface {
        let addresses = addresses.iter().map(|text| text.parse().expect("one"));
        NetInterface {
            name: name.to_owned(),
            index,
            addresses: addresses.collect(),
        }
    }

    #[test]
    fn a_path_waits_for_its_device_and_then_for_an_address_there() {
        let remote = REMOTE.into();
        let wwan = path(Some("wwan0"), None);
        let found = |up: &[NetInterface]| interface_for(&wwan, remote, up);
        let eth = interface("eth0", 2, &["192.0.2.9"]);
        let waits = found(core::slice::from_ref(&eth)).expect_err("it is not there");
        assert_eq!(waits.to_string(), "there is no device wwan0 that is up");
        let bare = interface("wwan0", 7, &["fe80::1"]);
        let waits = found(&[eth.clone(), bare]).expect_err("it has no address");
        assert_eq!(waits.to_string(), "the device wwan0 has no IPv4 address");
        let whole = interface("wwan0", 7, &["fe80::1", "198.51.100.2"]);
        assert_eq!(found(&[eth, whole]), Ok(7));
    }

    #[test]
    fn a_link_local_address_reaches_its_link_alone() {
        let up = [interface("wwan0", 7, &["fe80::1"])];
        let wwan = path(Some("wwan0"), None);
        let beyond: SocketAddr = "[2001:db8::7]:4914".parse().expect("one");
        assert!(interface_for(&wwan, beyond, &up).is_err());
        let beside: SocketAddr = "[fe80::7]:4914".parse().expect("one");
        assert_eq!(interface_for(&wwan, beside, &up), Ok(7));
    }

    #[test]
    fn a_path_from_an_address_waits_for_that_wherever_it_is() {
        let remote = REMOTE.into();
        let from = path(None, Some("198.51.100.2"));
        let waits = interface_for(&from, remote, &[interface("eth0", 2, &["192.0.2.9"])]);
        let said = waits.expect_err("nobody has it").to_string();
        assert_eq!(said, "no device that is up has the address 198.51.100.2");
        let up = [interface("eth1", 3, &["198.51.100.2"])];
        assert_eq!(interface_for(&from, remote, &up), Ok(3));
    }

    #[test]
    fn the_socket_is_bound_again_where_the_device_is_another_one() {
        let remote: SocketAddr = ([127, 0, 0, 2], 4914).into();
        let lo = |index| [interface("lo", index, &["127.0.0.1"])];
        let settings = path(Some("lo"), None);
        let made = |_| Some((1, PathId(3)));
        let port = PathPort::open((0, &settings), remote, &[], made);
        let mut port = port.expect("it waits").expect("there is room");
        assert!(port.follow(&[], false).is_none(), "it still waits");
        let follow = |port: &mut PathPort, up: &[NetInterface]| port.follow(up, false);
        assert!(matches!(
            follow(&mut port, &lo(1)),
            Some(PortBeside::Udp(_))
        ));
        assert!(follow(&mut port, &lo(1)).is_none(), "nothing has changed");
        assert!(matches!(
            follow(&mut port, &lo(9)),
            Some(PortBeside::Udp(_))
        ));
        assert!(matches!(follow(&mut port, &[]), Some(PortBeside::Absent)));
        assert!(port.follow(&[], false).is_none());
    }

    /// A gateway's configuration with one peer, whose further path has a socket on the one interface.
    fn one_port() -> (GatewayConfig, PathPorts, Vec<NetInterface>) {
        let text = "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\n\
                    [egress]\nallow = [\"10.0.0.1:80\"]\n";
        let config = GatewayConfig::read("a.toml", text).expect("sound");
        let remote: SocketAddr = ([127, 0, 0, 2], 4914).into();
        let lo = NetInterface {
            addresses: BTreeSet::from([IpAddr::from([127, 0, 0, 1])]),
            ..interface("lo", 1, &[])
        };
        let up = vec![lo];
        let made = |_| Some((1, PathId(3)));
        let port = PathPort::open((0, &path(Some("lo"), None)), remote, &up, made);
        let ports = PathPorts {
            ports: vec![port.expect("it opens").expect("there is room")],
            addresses: addresses(&up),
            ..PathPorts::default()
        };
        (config, ports, up)
    }

    #[test]
    fn a_peer_that_a_reload_took_out_has_no_sockets_though_another_brings_it_back() {
        let (mut config, mut ports, up) = one_port();
        let now = Instant::START;
        let mut change = |is_removed| {
            config.peers[0].is_removed = is_removed;
            ports.follow(now, Ok(up.clone()), &config);
            ports.next_change()
        };
        let Some(PortChange::Exchange(1, beside)) = change(true) else {
            panic!("the socket stays open");
        };
        assert!(matches!(*beside, PortBeside::Absent));
        assert!(change(true).is_none(), "it is gone already");
        assert!(change(false).is_none(), "its paths wait for a restart");
    }

    #[test]
    fn where_the_kernel_does_not_list_its_interfaces_nothing_is_taken_for_gone() {
        let (config, mut ports, _) = one_port();
        let now = Instant::START;
        ports.follow(
            now,
            Err(io::Error::from(io::ErrorKind::OutOfMemory)),
            &config,
        );
        assert_eq!(ports.next_change().map(|_| ()), None);
        assert_eq!(ports.next_look(), Some(now + LOOK_AGAIN));
        ports.follow(now, Ok(Vec::new()), &config);
        assert!(ports.next_change().is_some(), "now it is gone");
    }
}
