//! The addresses and routes of a tunnel's device after the start. Others may take them away: `ip link set tunnel0 down` takes
//! all routes and the addresses of IPv6 with it, and the gateway has given up the capability to put them back.

use super::greeting::Shortened;
use crate::gateway::config::TunnelSettings;
use crate::gateway::sockets::NetInterface;
use crate::tun::{InterfaceAddress, TunEnd};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most commands in a line of the log.
const COMMANDS_MAX: usize = 6;

/// The routes of this machine (`proc_net(5)`).
#[derive(Debug, Default)]
pub(super) struct RouteTable {
    v4: String,
    v6: String,
}

impl RouteTable {
    /// Those of now.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(super) fn read() -> io::Result<Self> {
        let v6 = std::fs::read_to_string("/proc/thread-self/net/ipv6_route");
        Ok(Self {
            v4: std::fs::read_to_string("/proc/thread-self/net/route")?,
            // A kernel without IPv6 has no such file.
            v6: v6.unwrap_or_default(),
        })
    }

    /// Whether there is a route to exactly this network by a device.
    fn has(&self, device: &str, network: InterfaceAddress) -> bool {
        if network.ip().is_ipv4() {
            let mut rows = self.v4.lines().filter_map(v4_route);
            rows.any(|(by, to)| by == device && to == network)
        } else {
            let mut rows = self.v6.lines().filter_map(v6_route);
            rows.any(|(by, to)| by == device && to == network)
        }
    }
}

/// A row of `/proc/net/route`: the device, and the network, which stands there as the processor has it.
fn v4_route(row: &str) -> Option<(&str, InterfaceAddress)> {
    let mut words = row.split_ascii_whitespace();
    let (device, network) = (words.next()?, words.next()?);
    let mask = words.nth(5)?;
    let bits = |word| u32::from_str_radix(word, 16).ok();
    let network = Ipv4Addr::from(bits(network)?.to_ne_bytes());
    let prefix_len = u8::try_from(bits(mask)?.count_ones()).ok()?;
    Some((device, InterfaceAddress::new(network.into(), prefix_len)?))
}

/// A row of `/proc/net/ipv6_route`.
fn v6_route(row: &str) -> Option<(&str, InterfaceAddress)> {
    let words: Vec<&str> = row.split_ascii_whitespace().collect();
    let (network, prefix_len) = (words.first()?, words.get(1)?);
    let network = Ipv6Addr::from(u128::from_str_radix(network, 16).ok()?);
    let prefix_len = u8::from_str_radix(prefix_len, 16).ok()?;
    let network = InterfaceAddress::new(network.into(), prefix_len)?;
    Some((words.last()?, network))
}

/// The addresses and routes that a tunnel's device has lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    /// Whether the device is down, and so leads nowhere.
    is_down: bool,
    addresses: Vec<InterfaceAddress>,
    routes: Vec<InterfaceAddress>,
}

impl Lost {
    /// The losses of a tunnel's device, by the interfaces that are up and the routes that there are.
    pub(super) fn of(tunnel: &TunnelSettings, up: &[NetInterface], table: &RouteTable) -> Self {
        let Some(device) = up.iter().find(|one| one.name == tunnel.device) else {
            return Self {
                is_down: true,
                ..Self::default()
            };
        };
        let lacks = |ip: IpAddr| !device.addresses.contains(&ip);
        let addresses = tunnel.addresses.iter().filter(|one| lacks(one.ip()));
        let routes = tunnel.routes.iter();
        let routes = routes.filter(|route| !table.has(&tunnel.device, route.network()));
        Self {
            is_down: false,
            addresses: addresses.copied().collect(),
            routes: routes.copied().collect(),
        }
    }

    /// Whether everything is in its place.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The losses in words, for `/status`; empty if there are none.
    pub(super) fn in_words(&self) -> String {
        if self.is_down {
            return "the device is down".to_owned();
        }
        let part = |what: &str, all: &[InterfaceAddress]| {
            (!all.is_empty()).then(|| format!("{what} {}", Shortened(all)))
        };
        let parts = [
            part("addresses", &self.addresses),
            part("routes", &self.routes),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join(", ")
    }

    /// The commands that put them back.
    pub(super) fn cure(&self, tunnel: &TunnelSettings) -> String {
        let device = &tunnel.device;
        if self.is_down {
            return format!("ip link set dev {device} up");
        }
        let end = TunEnd {
            addresses: self.addresses.clone(),
            routes: self.routes.clone(),
            ..tunnel.end()
        };
        let commands = end.commands();
        // The others are for a device that is new.
        let adds = |command: &&String| command.contains(" add ");
        let adds: Vec<&String> = commands.iter().filter(adds).collect();
        if adds.len() > COMMANDS_MAX {
            return "restart the gateway".to_owned();
        }
        let adds: Vec<String> = adds.iter().map(|command| format!("ip {command}")).collect();
        format!("{}; or restart the gateway", adds.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::config::GatewayConfig;

    fn tunnel() -> TunnelSettings {
        let text = "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\n\
                    [[tunnel]]\naddress = [\"10.90.0.1/24\", \"fd90::1/64\"]\n\
                    routes = [\"10.79.0.0/24\", \"fd79::/64\"]\n";
        let config = GatewayConfig::read("a.toml", text).expect("sound");
        config.tunnels[0].clone()
    }

    fn device(addresses: &[&str]) -> NetInterface {
        let addresses = addresses.iter().map(|text| text.parse().expect("one"));
        NetInterface {
            name: "tunnel0".to_owned(),
            index: 3,
            addresses: addresses.collect(),
        }
    }

    /// As a kernel wrote them, whose processor puts the least octet first.
    fn table() -> RouteTable {
        let v4 = |hex: &str| {
            let bits = u32::from_str_radix(hex, 16).expect("hexadecimal");
            format!("{:08X}", u32::from_ne_bytes(bits.to_le_bytes()))
        };
        let (network, mask) = (v4("00004F0A"), v4("00FFFFFF"));
        RouteTable {
            v4: format!(
                "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                 tunnel0\t{network}\t00000000\t0001\t0\t0\t0\t{mask}\t0\t0\t0\n"
            ),
            v6: "fd790000000000000000000000000000 40 00000000000000000000000000000000 00 \
                 00000000000000000000000000000000 00000400 00000001 00000000 00000001  tunnel0\n"
                .to_owned(),
        }
    }

    #[test]
    fn a_device_that_has_everything_has_lost_nothing() {
        let up = [device(&["10.90.0.1", "fd90::1"])];
        let lost = Lost::of(&tunnel(), &up, &table());
        assert!(lost.is_nothing(), "{lost:?}");
        assert_eq!(lost.in_words(), "");
    }

    #[test]
    fn a_device_that_went_down_and_up_has_lost_its_routes_and_they_can_be_put_back_by_hand() {
        let lost = Lost::of(&tunnel(), &[], &table());
        assert_eq!(lost.in_words(), "the device is down");
        assert_eq!(lost.cure(&tunnel()), "ip link set dev tunnel0 up");
        let up = [device(&["10.90.0.1"])];
        let lost = Lost::of(&tunnel(), &up, &RouteTable::default());
        assert_eq!(
            lost.in_words(),
            "addresses fd90::1/64, routes 10.79.0.0/24 fd79::/64"
        );
        assert_eq!(
            lost.cure(&tunnel()),
            "ip address add fd90::1/64 dev tunnel0 nodad; ip route add 10.79.0.0/24 dev tunnel0; \
             ip route add fd79::/64 dev tunnel0; or restart the gateway"
        );
        // A route by another device is another route.
        let mut elsewhere = table();
        elsewhere.v4 = elsewhere.v4.replace("tunnel0", "eth0");
        let up = [device(&["10.90.0.1", "fd90::1"])];
        let lost = Lost::of(&tunnel(), &up, &elsewhere);
        assert_eq!(lost.in_words(), "routes 10.79.0.0/24");
    }
}
