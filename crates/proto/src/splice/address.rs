//! The name of a flow, and its destination.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::str::FromStr;

/// A flow's name, the same at both gateways and after a restart of either. The opener chooses it at
/// random.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub [u8; 16]);

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowId({self})")
    }
}

/// The kind of content that a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowKind {
    /// Octets in order, each direction with an end of its own: a TCP connection.
    Stream,
    /// Messages that keep their borders: a UDP association.
    Datagrams,
}

/// A host name as a client gave it: 1 to 253 octets of letters, digits, `-`, `_` and `.` (RFC 1035,
/// section 2.3; underscores are common in practice). The acceptor resolves it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

/// The reason why a text is no host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostNameError {
    /// The text is empty, or longer than a name may be.
    #[error("a host name has 1 to 253 octets, this has {0}")]
    Length(usize),
    /// The text has a character that no name has.
    #[error("a host name has letters, digits, `-`, `_` and `.` only, this has {0:?}")]
    Character(char),
}

/// The longest name: RFC 1035, section 2.3.4, without the root's dot.
pub(super) const NAME_BYTES_MAX: usize = 253;

impl HostName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, HostNameError> {
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return Err(HostNameError::Length(text.len()));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        match text.chars().find(|c| !allowed(*c)) {
            Some(wrong) => Err(HostNameError::Character(wrong)),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A destination's host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A host by its address.
    Address(IpAddr),
    /// A host by its name, which the acceptor resolves.
    Name(HostName),
    /// The tunnel of this name at the acceptor. The port is the bucket of the packets
    /// ([`FlowBucket`](crate::tunnel::FlowBucket)).
    Tunnel(HostName),
}

/// The place that a flow's acceptor connects to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    /// The host.
    pub host: Host,
    /// The TCP or UDP port, or the bucket of a tunnel's packets.
    pub port: u16,
}

impl From<SocketAddr> for Destination {
    fn from(address: SocketAddr) -> Self {
        Self {
            host: Host::Address(address.ip()),
            port: address.port(),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(ip) => SocketAddr::new(*ip, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Tunnel(name) => write!(f, "tunnel {name}, bucket {}", self.port),
        }
    }
}
