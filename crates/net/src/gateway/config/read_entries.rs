//! The tables of entries, and the names of peers and classes that they refer to.

use super::class::{ClassRules, ClassSettings, DEFAULT_CLASS};
use super::notation::{Dscp, Listen, NotationError, Place, Ports};
use super::settings::{
    EntryProtocol, FarPeer, Forward, GatewayRoute, MTU_MAX, MTU_MIN, PeerSettings, Socks,
    SocksLogin, Transparent, TunnelSettings,
};
use crate::tun::{InterfaceAddress, TunEnd};
use fulmar_proto::splice::HostName;
use fulmar_proto::units::ByteCount;
use fulmar_settings::{Keys, SettingsError, TableReader, suggestion};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

type Read<T> = Result<T, SettingsError>;

const ROUTE: &[&str] = &["listen", "peer", "class", "class_by_port", "class_by_dscp"];
pub(super) const FORWARD: Keys = &[ROUTE, &["protocol", "to"]];
pub(super) const SOCKS: Keys = &[ROUTE, &["udp_class", "user", "password_file"]];
pub(super) const TRANSPARENT: Keys = &[ROUTE, &["protocol", "only_dscp"]];
pub(super) const TUNNEL: Keys = &[&[
    "name",
    "peer",
    "device",
    "address",
    "routes",
    "mtu",
    "class",
    "class_by_port",
    "class_by_dscp",
    "accelerate",
]];
/// The usual name of a tunnel, and of its device.
const TUNNEL_NAME: &str = "tunnel";
const TUNNEL_DEVICE: &str = "tunnel0";
/// The usual largest packet inside. Records are cut anywhere, so it need not be smaller than the path's.
const TUNNEL_MTU: ByteCount = ByteCount(1_500);
const PROTOCOLS: [(&str, EntryProtocol); 2] =
    [("tcp", EntryProtocol::Tcp), ("udp", EntryProtocol::Udp)];

/// The names that rules may refer to.
pub(super) struct Names<'a> {
    pub(super) peers: &'a [PeerSettings],
    pub(super) far_peers: &'a [FarPeer],
    pub(super) classes: &'a [ClassSettings],
}

fn unknown<'a>(what: &str, given: &str, known: impl Iterator<Item = &'a str>) -> String {
    format!("there is no {what} `{given}`; {}", suggestion(given, known))
}

impl Names<'_> {
    fn route(&self, reader: &TableReader<'_>) -> Read<GatewayRoute> {
        let Some(given) = reader.text("peer")? else {
            return match (self.peers, self.far_peers) {
                ([_], []) => Ok(GatewayRoute::default()),
                _ => Err(reader.wrong(
                    "peer",
                    "is missing, and there are several; write peer = \"NAME\"",
                )),
            };
        };
        let near = self.peers.iter().position(|peer| peer.name == given);
        let near = near.map(|peer| GatewayRoute {
            peer,
            beyond: Vec::new(),
        });
        let mut far = self.far_peers.iter();
        let found = near.or_else(|| Some(far.find(|peer| peer.name == given)?.route.clone()));
        found.ok_or_else(|| {
            let near = self.peers.iter().map(|peer| peer.name.as_str());
            let known = near.chain(self.far_peers.iter().map(|peer| peer.name.as_str()));
            reader.wrong("peer", unknown("[[peer]] named", given, known))
        })
    }

    /// A peer that is reached without another gateway; `why` says why it must be.
    pub(super) fn peer(&self, reader: &TableReader<'_>, why: &str) -> Read<usize> {
        let route = self.route(reader)?;
        if route.beyond.is_empty() {
            return Ok(route.peer);
        }
        Err(reader.wrong("peer", format!("is reached via another gateway, and {why}")))
    }

    fn class(&self, given: &str, protocol: EntryProtocol) -> Result<usize, String> {
        let found = self.classes.iter().position(|class| class.name == given);
        let index = found.ok_or_else(|| {
            let known = self.classes.iter().map(|class| class.name.as_str());
            unknown("class", given, known)
        })?;
        carries(&self.classes[index], protocol)?;
        Ok(index)
    }

    fn general(
        &self,
        reader: &TableReader<'_>,
        key: &'static str,
        protocol: EntryProtocol,
    ) -> Read<usize> {
        let given = reader.text(key)?.unwrap_or(DEFAULT_CLASS);
        self.class(given, protocol)
            .map_err(|problem| reader.wrong(key, problem))
    }

    fn rules(&self, reader: &TableReader<'_>, protocol: EntryProtocol) -> Read<ClassRules> {
        let ports = reader.pairs("class_by_port", |ports, class| {
            let ports: Ports = ports.parse().map_err(|e: NotationError| e.to_string())?;
            self.class(class, protocol).map(|class| (ports, class))
        })?;
        let dscp = reader.pairs("class_by_dscp", |point, class| {
            let point: Dscp = point.parse().map_err(|e: NotationError| e.to_string())?;
            self.class(class, protocol).map(|class| (point, class))
        })?;
        Ok(ClassRules {
            general: self.general(reader, "class", protocol)?,
            ports,
            dscp,
        })
    }
}

pub(super) fn forwards(root: &TableReader<'_>, names: &Names<'_>) -> Read<Vec<Forward>> {
    let one = |reader: &TableReader<'_>| {
        let protocol = reader
            .choice("protocol", &PROTOCOLS)?
            .unwrap_or(EntryProtocol::Tcp);
        Ok(Forward {
            protocol,
            listen: reader.required::<Listen>("listen", "\"127.0.0.1:8080\"")?.0,
            to: reader.required::<Place>("to", "\"10.0.0.2:80\"")?.0,
            route: names.route(reader)?,
            classes: names.rules(reader, protocol)?,
        })
    };
    root.tables("forward", FORWARD)?.iter().map(one).collect()
}

pub(super) fn socks(root: &TableReader<'_>, names: &Names<'_>) -> Read<Vec<Socks>> {
    let one = |reader: &TableReader<'_>| {
        let tcp = names.rules(reader, EntryProtocol::Tcp)?;
        // Ports and code points are the streams'; a UDP association has one class.
        let key = if reader.has("udp_class") {
            "udp_class"
        } else {
            "class"
        };
        let udp = ClassRules {
            general: names.general(reader, key, EntryProtocol::Udp)?,
            ..ClassRules::default()
        };
        let login = match (reader.text("user")?, reader.text("password_file")?) {
            (Some(user), Some(file)) => Some(SocksLogin {
                user: user.to_owned(),
                password_file: PathBuf::from(file),
            }),
            (None, None) => None,
            (Some(_), None) => {
                let problem = "is missing beside user; write password_file = \"FILE\"";
                return Err(reader.wrong("password_file", problem));
            }
            (None, Some(_)) => {
                let problem = "is missing beside password_file; write user = \"NAME\"";
                return Err(reader.wrong("user", problem));
            }
        };
        Ok(Socks {
            listen: reader.required::<Listen>("listen", "\"127.0.0.1:1080\"")?.0,
            route: names.route(reader)?,
            tcp,
            udp,
            login,
        })
    };
    root.tables("socks", SOCKS)?.iter().map(one).collect()
}

pub(super) fn transparent(root: &TableReader<'_>, names: &Names<'_>) -> Read<Vec<Transparent>> {
    let one = |reader: &TableReader<'_>| {
        let protocol = reader
            .choice("protocol", &PROTOCOLS)?
            .unwrap_or(EntryProtocol::Tcp);
        let only_dscp = reader.list("only_dscp", str::parse::<Dscp>)?;
        Ok(Transparent {
            protocol,
            listen: reader.required::<Listen>("listen", "\":4915\"")?.0,
            route: names.route(reader)?,
            classes: names.rules(reader, protocol)?,
            only_dscp: only_dscp.unwrap_or_default(),
        })
    };
    root.tables("transparent", TRANSPARENT)?
        .iter()
        .map(one)
        .collect()
}

pub(super) fn tunnels(root: &TableReader<'_>, names: &Names<'_>) -> Read<Vec<TunnelSettings>> {
    let mut tunnels: Vec<TunnelSettings> = Vec::new();
    for reader in root.tables("tunnel", TUNNEL)? {
        let tunnel = tunnel(&reader, names)?;
        let twin = |other: &TunnelSettings| other.peer == tunnel.peer && other.name == tunnel.name;
        if tunnels.iter().any(|other| other.device == tunnel.device) {
            let problem = format!(
                "`{}` is another tunnel's; write device = \"tunnel1\"",
                tunnel.device
            );
            return Err(reader.wrong("device", problem));
        }
        if tunnels.iter().any(twin) {
            let problem = format!(
                "`{}` is another tunnel's to that peer; give each its own",
                tunnel.name
            );
            return Err(reader.wrong("name", problem));
        }
        refuse_shared_networks(&reader, &tunnel, &tunnels)?;
        tunnels.push(tunnel);
    }
    Ok(tunnels)
}

/// Refuses a network that is written twice: the kernel has one route to each.
fn refuse_shared_networks(
    reader: &TableReader<'_>,
    tunnel: &TunnelSettings,
    others: &[TunnelSettings],
) -> Read<()> {
    let networks = |it: &TunnelSettings| -> Vec<InterfaceAddress> {
        let of_addresses = it.addresses.iter().map(|address| address.network());
        of_addresses.chain(it.routes.iter().copied()).collect()
    };
    for (place, route) in tunnel.routes.iter().enumerate() {
        if tunnel.addresses.iter().any(|own| own.network() == *route) {
            let problem =
                format!("{route} is the network of an address here already; leave it out");
            return Err(reader.wrong("routes", problem));
        }
        if tunnel.routes[..place].contains(route) {
            return Err(reader.wrong("routes", format!("{route} is there twice; leave one out")));
        }
    }
    for other in others {
        let taken = networks(other);
        for (key, own) in [
            (
                "address",
                tunnel.addresses.iter().map(|one| one.network()).collect(),
            ),
            ("routes", tunnel.routes.clone()),
        ] as [(&str, Vec<InterfaceAddress>); 2]
        {
            if let Some(network) = own.iter().find(|one| taken.contains(one)) {
                let problem = format!(
                    "{network} is a network of the tunnel with device {} already; give each its own",
                    other.device
                );
                return Err(reader.wrong(key, problem));
            }
        }
    }
    Ok(())
}

fn tunnel(reader: &TableReader<'_>, names: &Names<'_>) -> Read<TunnelSettings> {
    let name = reader.text("name")?.unwrap_or(TUNNEL_NAME);
    let name = name.parse::<HostName>();
    let device = reader.text("device")?.unwrap_or(TUNNEL_DEVICE);
    if let Err(error) = TunEnd::check_device(device) {
        return Err(reader.wrong("device", error));
    }
    let networks = |key| reader.list(key, str::parse::<InterfaceAddress>);
    let Some(addresses) = networks("address")?.filter(|list| !list.is_empty()) else {
        let problem =
            "is missing; write address = \"10.77.0.1/24\", in the network of the other end's";
        return Err(reader.wrong("address", problem));
    };
    let routes = networks("routes")?.unwrap_or_default();
    if let Some(route) = routes.iter().find(|route| route.network() != **route) {
        let problem = format!(
            "{route} is an address in a network; write {}",
            route.network()
        );
        return Err(reader.wrong("routes", problem));
    }
    let mtu = reader.value_or("mtu", TUNNEL_MTU)?;
    if !(MTU_MIN..=MTU_MAX).contains(&mtu) {
        let problem = format!("is {mtu}; write {MTU_MIN} to {MTU_MAX}");
        return Err(reader.wrong("mtu", problem));
    }
    let accelerate = reader.value_or("accelerate", false)?;
    // A class that loses octets is none for TCP.
    let protocol = if accelerate {
        EntryProtocol::Tcp
    } else {
        EntryProtocol::Udp
    };
    Ok(TunnelSettings {
        name: name.map_err(|error| reader.wrong("name", error))?,
        peer: names.peer(
            reader,
            "a tunnel ends at the next; name the next one, or use [[forward]] or [[socks]]",
        )?,
        device: device.to_owned(),
        addresses,
        routes,
        mtu: u16::try_from(mtu.0).unwrap_or(u16::MAX),
        classes: names.rules(reader, protocol)?,
        accelerate,
    })
}

/// Two entries at one port would be noticed only when the second is bound.
pub(super) fn refuse_shared_ports(root: &TableReader<'_>, metrics: Option<SocketAddr>) -> Read<()> {
    let mut taken: BTreeMap<(EntryProtocol, SocketAddr), &str> = BTreeMap::new();
    if let Some(metrics) = metrics {
        taken.insert((EntryProtocol::Tcp, metrics), "[metrics]");
    }
    let entries = [
        ("forward", "[[forward]]", FORWARD),
        ("socks", "[[socks]]", SOCKS),
        ("transparent", "[[transparent]]", TRANSPARENT),
    ];
    for (key, name, keys) in entries {
        for reader in root.tables(key, keys)? {
            let Some(listen) = reader.value::<Listen>("listen")? else {
                continue;
            };
            let has_protocol = key != "socks";
            let protocol = if has_protocol {
                reader
                    .choice("protocol", &PROTOCOLS)?
                    .unwrap_or(EntryProtocol::Tcp)
            } else {
                EntryProtocol::Tcp
            };
            let other = taken.insert((protocol, listen.0), name);
            if let Some(other) = other.filter(|_| listen.0.port() != 0) {
                let problem = format!("{} is taken by {other} already; use another port", listen.0);
                return Err(reader.wrong("listen", problem));
            }
        }
    }
    Ok(())
}

/// Whether `class` can carry `protocol`, or why not.
fn carries(class: &ClassSettings, protocol: EntryProtocol) -> Result<(), String> {
    if protocol == EntryProtocol::Udp || class.is_complete() {
        return Ok(());
    }
    Err(format!(
        "class `{}` has mode {}, which may lose octets, and TCP must not; use a class with mode \
         reliable, near-reliable or nack-mack",
        class.name, class.flow.mode
    ))
}
