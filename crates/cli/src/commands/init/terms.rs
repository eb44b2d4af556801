//! The facts that both ends' files share: what they are called, and what they carry.

use super::{PROXY, wrong};
use crate::exit::Failure;
use anyhow::anyhow;
use fulmar_net::tun::InterfaceAddress;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A network as text.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Network(pub(super) InterfaceAddress);

impl TryFrom<String> for Network {
    type Error = <InterfaceAddress as core::str::FromStr>::Err;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.0.to_string()
    }
}

/// The kind of traffic between two ends.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Carried {
    /// Any packet.
    Tunnel {
        network: Network,
        /// Networks behind the called end, and behind the caller.
        behind_called: Vec<Network>,
        behind_caller: Vec<Network>,
    },
    /// TCP and UDP of programs that ask a SOCKS5 proxy at the caller.
    Proxy {},
}

/// The terms of two ends. The called end sets them; pairing takes them across.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Terms {
    /// The name of the end that is called.
    pub(super) called: String,
    /// The name of the end that calls.
    pub(super) caller: String,
    pub(super) carried: Carried,
}

/// One of two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Called,
    Caller,
}

impl End {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Called => Self::Caller,
            Self::Caller => Self::Called,
        }
    }
}

impl Terms {
    /// Refuses names that cannot be, and a network without room. `source` says whose mistake it is.
    ///
    /// # Errors
    /// There is one.
    pub(super) fn check(&self, source: &str) -> Result<(), Failure> {
        let (first, second) = (&self.called, &self.caller);
        for name in [first, second] {
            let sound = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || name.len() > 64 || !name.chars().all(sound) {
                let problem = "a name has letters, digits, - and _, at most 64 of them";
                return Err(wrong(anyhow!("{source} {name:?}: {problem}")));
            }
        }
        if first == second {
            return Err(wrong(anyhow!("{source}: both ends are called {first}")));
        }
        match self.carried {
            Carried::Tunnel { network, .. }
                if host(network.0, 1).is_none() || host(network.0, 2).is_none() =>
            {
                let network = network.0;
                Err(wrong(anyhow!(
                    "--network {network}: has no room for two ends"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The name of an end.
    pub(super) fn name(&self, end: End) -> &str {
        match end {
            End::Called => &self.called,
            End::Caller => &self.caller,
        }
    }

    /// The networks behind an end.
    pub(super) fn behind(&self, end: End) -> Vec<InterfaceAddress> {
        let networks = match (&self.carried, end) {
            (Carried::Proxy {}, _) => return Vec::new(),
            (Carried::Tunnel { behind_called, .. }, End::Called) => behind_called,
            (Carried::Tunnel { behind_caller, .. }, End::Caller) => behind_caller,
        };
        networks.iter().map(|network| network.0).collect()
    }

    /// The address of an end in the tunnel, if there is one.
    pub(super) fn tunnel_address(&self, end: End) -> Option<InterfaceAddress> {
        match self.carried {
            Carried::Proxy {} => None,
            Carried::Tunnel { network, .. } => host(network.0, 1 + u8::from(end == End::Caller)),
        }
    }

    /// The line of what an end's file carries. `allow`: what the proxy may reach from the called end.
    pub(super) fn line(&self, end: End, allow: &[String]) -> String {
        if let Some(address) = self.tunnel_address(end) {
            let behind = self.behind(end.other());
            let routes = if behind.is_empty() {
                String::new()
            } else {
                format!(", routes = {}", listed(behind.iter()))
            };
            return format!("tunnel = [{{ address = \"{address}\"{routes} }}]");
        }
        match end {
            End::Called if allow.is_empty() => {
                "egress = { allow = [\"0.0.0.0/0:1-65535\", \"[::/0]:1-65535\"] }".to_owned()
            }
            End::Called => format!("egress = {{ allow = {} }}", listed(allow.iter())),
            End::Caller => format!("socks = [{{ listen = \"{PROXY}\" }}]"),
        }
    }
}

/// The host of this number in a network.
fn host(network: InterfaceAddress, number: u8) -> Option<InterfaceAddress> {
    let ip = match network.network().ip() {
        IpAddr::V4(ip) => IpAddr::V4(ip.to_bits().checked_add(number.into())?.into()),
        IpAddr::V6(ip) => IpAddr::V6(ip.to_bits().checked_add(number.into())?.into()),
    };
    network.with_host(ip)
}

fn listed(values: impl Iterator<Item = impl ToString>) -> String {
    let quoted: Vec<String> = values
        .map(|value| format!("{:?}", value.to_string()))
        .collect();
    format!("[{}]", quoted.join(", "))
}
