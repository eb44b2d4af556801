//! `[[peer.path]]`: a further path to a peer.

use super::notation::{NotationError, not};
use crate::session::FURTHER_PATHS_MAX;
use fulmar_proto::splice::{Destination, Host};
use fulmar_proto::units::Bitrate;
use fulmar_settings::{Keys, SettingsError, TableReader};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

pub(super) const KEYS: Keys = &[&["local", "device", "address", "rate", "cost"]];
/// The longest name of a device (`IFNAMSIZ` less the octet that ends it).
const DEVICE_BYTES_MAX: usize = 15;

/// `[[peer.path]]`: a further path to a peer, beside the one that its `address` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSettings {
    /// The address here from which its datagrams leave; any by default.
    pub local: Option<IpAddr>,
    /// The device by which they leave, whatever the routes say.
    pub device: Option<String>,
    /// The peer's address on it; that of the peer by default.
    pub address: Option<SocketAddr>,
    /// Its rate, IP headers included, if it is not to be found.
    pub rate: Option<Bitrate>,
    /// Its cost: it carries data while no path that costs less is up. That of the peer's own address is 0.
    pub cost: u8,
}

impl PathSettings {
    /// Whether its datagrams leave by a socket of their own.
    pub const fn has_own_socket(&self) -> bool {
        self.local.is_some() || self.device.is_some()
    }

    /// The path in words, for people.
    pub fn in_words(&self) -> String {
        let from = self.local.map(|local| format!("from {local}"));
        let by = self.device.as_ref().map(|device| format!("by {device}"));
        let to = self.address.map(|address| format!("to {address}"));
        let cost = (self.cost > 0).then(|| format!("at cost {}", self.cost));
        let words: Vec<String> = [from, by, to, cost].into_iter().flatten().collect();
        words.join(" ")
    }
}

/// A name that a network device can have.
pub(super) struct Device(pub(super) String);

impl FromStr for Device {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let is_name = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
        let fits = (1..=DEVICE_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_name);
        fits.then(|| Self(text.to_owned())).ok_or_else(|| {
            not(
                text,
                "a network device; write its name, as `ip link` shows it",
            )
        })
    }
}

/// Reads the further paths of a peer that has this address.
pub(super) fn read_all(
    reader: &TableReader<'_>,
    of_peer: Option<&Destination>,
) -> Result<Vec<PathSettings>, SettingsError> {
    let tables = reader.tables("path", KEYS)?;
    if tables.len() > FURTHER_PATHS_MAX {
        let problem = format!("there may be {FURTHER_PATHS_MAX} beside the peer's own");
        return Err(reader.wrong("path", problem));
    }
    let own = of_peer.and_then(|of_peer| match of_peer.host {
        Host::Address(ip) => Some(SocketAddr::new(ip, of_peer.port)),
        _ => None,
    });
    let mut paths: Vec<PathSettings> = Vec::new();
    for table in &tables {
        let path = read(table)?;
        if path.address.is_none() && own.is_none() {
            let problem = "is missing, and the peer's is not one of figures; write \
                           address = \"192.0.2.1:4914\"";
            return Err(table.wrong("address", problem));
        }
        let to = path.address.or(own);
        if let Some(to) = to {
            check_families(table, &path, to)?;
        }
        if own.is_some() && to.map(canonical) == own.map(canonical) && !path.has_own_socket() {
            let problem = "is that of the peer: this would be the peer's own path again; write another address, or a \
                           `device` or `local`, or remove this path";
            return Err(table.wrong("address", problem));
        }
        let leads = |one: &PathSettings| {
            let to = one.address.or(own).map(canonical);
            (one.local, one.device.clone(), to)
        };
        if let Some(same) = paths.iter().position(|one| leads(one) == leads(&path)) {
            return Err(again(table, &path, same));
        }
        paths.push(path);
    }
    Ok(paths)
}

/// An IPv4 address as such.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Refuses a path from an address of one family to one of the other: nothing could leave on it.
fn check_families(
    table: &TableReader<'_>,
    path: &PathSettings,
    to: SocketAddr,
) -> Result<(), SettingsError> {
    let to = to.ip().to_canonical();
    let family = |ip: IpAddr| if ip.is_ipv4() { "IPv4" } else { "IPv6" };
    match path.local {
        Some(local) if local.is_ipv4() != to.is_ipv4() => {
            let (ours, theirs) = (family(local), family(to));
            let problem = format!(
                "is an {ours} address, and the path leads to {to}, which is {theirs}; write an {theirs} address of this \
                 machine, or an {ours} address of the peer as the path's `address`"
            );
            Err(table.wrong("local", problem))
        }
        _ => Ok(()),
    }
}

/// The refusal of a path that is the one at this index again.
fn again(table: &TableReader<'_>, path: &PathSettings, same: usize) -> SettingsError {
    let said = [
        ("local", path.local.is_some()),
        ("device", path.device.is_some()),
        ("address", path.address.is_some()),
    ];
    let equal: Vec<&'static str> = said
        .iter()
        .filter(|(_, is)| *is)
        .map(|(key, _)| *key)
        .collect();
    let first = equal.first().copied().unwrap_or("address");
    let equal: Vec<String> = equal.iter().map(|key| format!("`{key}`")).collect();
    let problem = format!(
        "is no other than that of `path.{same}`: both lead the same way by {}; paths differ in `local`, `device` or `address`, \
         not in `rate` or `cost` alone; change one of the three, or remove this path",
        equal.join(" and ")
    );
    table.wrong(first, problem)
}

fn read(reader: &TableReader<'_>) -> Result<PathSettings, SettingsError> {
    let path = PathSettings {
        local: reader.value("local")?,
        device: reader.value::<Device>("device")?.map(|device| device.0),
        address: reader.value("address")?,
        rate: reader.value("rate")?,
        cost: cost(reader)?,
    };
    if !path.has_own_socket() && path.address.is_none() {
        let problem = "is missing, and so are `device` and `address`: this would be the peer's own path \
                       again; write one of them";
        return Err(reader.wrong("local", problem));
    }
    Ok(path)
}

fn cost(reader: &TableReader<'_>) -> Result<u8, SettingsError> {
    let cost: Option<i64> = reader.value("cost")?;
    u8::try_from(cost.unwrap_or_default())
        .map_err(|_| reader.wrong("cost", "is out of range: write 0 to 255"))
}

#[cfg(test)]
mod tests {
    use crate::gateway::config::GatewayConfig;

    fn read(peer: &str) -> Result<GatewayConfig, String> {
        let text = format!(
            "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\n{peer}[egress]\nallow = [\"127.0.0.1:80\"]\n"
        );
        GatewayConfig::read("a.toml", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_further_path_has_a_local_address_a_device_or_a_remote_address() {
        let config = read(
            "address = \"192.0.2.1:4914\"\n[[peer.path]]\nlocal = \"198.51.100.2\"\nrate = \"5mbit\"\n\
             [[peer.path]]\ndevice = \"wwan0\"\ncost = 1\n[[peer.path]]\naddress = \"203.0.113.9:4914\"\n",
        )
        .expect("sound");
        let words: Vec<String> = config.peers[0]
            .paths
            .iter()
            .map(super::PathSettings::in_words)
            .collect();
        assert_eq!(
            words,
            [
                "from 198.51.100.2",
                "by wwan0 at cost 1",
                "to 203.0.113.9:4914"
            ]
        );
    }

    #[test]
    fn paths_that_differ_in_one_of_three_keys_are_several() {
        for peer in [
            "address = \"192.0.2.1:4914\"\n[[peer.path]]\ndevice = \"wwan0\"\n\
             [[peer.path]]\ndevice = \"wwan0\"\naddress = \"192.0.2.2:4914\"\n",
            "address = \"192.0.2.1:4914\"\n[[peer.path]]\ndevice = \"wwan0\"\n[[peer.path]]\ndevice = \"wwan1\"\n",
            "address = \"192.0.2.1:4914\"\n[[peer.path]]\naddress = \"192.0.2.1:4915\"\n",
            "address = \"192.0.2.1:4914\"\n[[peer.path]]\nlocal = \"192.0.2.7\"\naddress = \"192.0.2.1:4914\"\n",
            "address = \"[2001:db8::1]:4914\"\n[[peer.path]]\nlocal = \"192.0.2.7\"\naddress = \"192.0.2.2:4914\"\n",
            "address = \"[::ffff:192.0.2.1]:4914\"\n[[peer.path]]\nlocal = \"192.0.2.7\"\n",
        ] {
            let paths = &read(peer).expect(peer).peers[0].paths;
            assert!(!paths.is_empty(), "{peer}");
        }
    }

    #[test]
    fn what_cannot_be_a_further_path_is_refused_with_the_field_and_the_remedy() {
        for (peer, said) in [
            (
                "address = \"192.0.2.1:4914\"\n[[peer.path]]\nrate = \"5mbit\"\n",
                "`peer.0.path.0.local`: is missing",
            ),
            (
                "[[peer.path]]\nlocal = \"192.0.2.7\"\n",
                "`peer.0.path.0.address`: is missing",
            ),
            (
                "address = \"ground.example:4914\"\n[[peer.path]]\nlocal = \"192.0.2.7\"\n",
                "write address = \"192.0.2.1:4914\"",
            ),
            (
                "address = \"192.0.2.1:4914\"\n[[peer.path]]\ndevice = \"a/b\"\n",
                "`ip link`",
            ),
            (
                "address = \"192.0.2.1:4914\"\n[[peer.path]]\ndevice = \"wwan0\"\ncost = 300\n",
                "write 0 to 255",
            ),
            (
                "address = \"192.0.2.1:4914\"\n[[peer.path]]\nvia = \"wwan0\"\n",
                "via",
            ),
            (
                "address = \"192.0.2.1:4914\"\n[[peer.path]]\naddress = \"192.0.2.1:4914\"\ncost = 1\n",
                "`peer.0.path.0.address`: is that of the peer: this would be the peer's own path again; write another address",
            ),
            (
                "address = \"192.0.2.1:4914\"\n[[peer.path]]\naddress = \"[::ffff:192.0.2.1]:4914\"\n",
                "`peer.0.path.0.address`: is that of the peer",
            ),
            (
                "address = \"192.0.2.1:4914\"\n[[peer.path]]\ndevice = \"wwan0\"\n\
                 [[peer.path]]\ndevice = \"wwan0\"\ncost = 1\nrate = \"5mbit\"\n",
                "`peer.0.path.1.device`: is no other than that of `path.0`: both lead the same way by `device`;",
            ),
            (
                "address = \"192.0.2.1:4914\"\n[[peer.path]]\nlocal = \"192.0.2.7\"\n[[peer.path]]\nlocal = \"192.0.2.8\"\n\
                 [[peer.path]]\nlocal = \"192.0.2.8\"\naddress = \"192.0.2.1:4914\"\n",
                "`peer.0.path.2.local`: is no other than that of `path.1`: both lead the same way by `local` and `address`;",
            ),
            (
                "[[peer.path]]\naddress = \"192.0.2.1:4914\"\n[[peer.path]]\naddress = \"192.0.2.1:4914\"\ncost = 3\n",
                "remove this path",
            ),
            (
                "address = \"[2001:db8::1]:4914\"\n[[peer.path]]\nlocal = \"192.0.2.7\"\n",
                "`peer.0.path.0.local`: is an IPv4 address, and the path leads to 2001:db8::1, which is IPv6; write an IPv6 address",
            ),
            (
                "address = \"192.0.2.1:4914\"\n[[peer.path]]\nlocal = \"2001:db8::7\"\naddress = \"192.0.2.2:4914\"\n",
                "an IPv6 address of the peer as the path's `address`",
            ),
        ] {
            let error = read(peer).expect_err(peer);
            assert!(error.contains(said), "{peer}: {error}");
        }
    }
}
