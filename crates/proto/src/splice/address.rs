//! The name of a flow, and its destination.

use crate::units::Duration;
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
    /// A host behind further gateways.
    Beyond(Box<Beyond>),
}

/// A host that a flow reaches through gateways behind its acceptor: each carries it on to the next, on a session of its
/// own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Beyond {
    gateways: Vec<HostName>,
    passed: u8,
    left: Option<Duration>,
    host: Host,
}

/// The reason why a way through gateways is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BeyondError {
    /// There are no gateways, or too many.
    #[error("a way leads through 1 to 7 gateways beyond the peer, this through {0}")]
    Gateways(usize),
    /// The names of the gateways and of the host together are too long.
    #[error("the gateways' names and the host's have 253 octets at most together, these have {0}")]
    Length(usize),
    /// The host at the end is no address and no name.
    #[error("what lies behind further gateways is an address or a name")]
    Host,
}

/// The most gateways on a way behind the acceptor.
const GATEWAYS_MAX: usize = 7;
/// The number of the gateway that carries a flow on no more: so many are a circle.
const PASSED_MAX: u8 = 8;

impl Beyond {
    /// The way through `gateways` to `host`. The first of them is a peer of the flow's acceptor.
    ///
    /// # Errors
    /// [`BeyondError`] says what makes it no way.
    pub fn new(gateways: Vec<HostName>, host: Host) -> Result<Self, BeyondError> {
        if !(1..=GATEWAYS_MAX).contains(&gateways.len()) {
            return Err(BeyondError::Gateways(gateways.len()));
        }
        let end = match &host {
            Host::Address(_) => 0,
            Host::Name(name) => name.as_str().len(),
            Host::Tunnel(_) | Host::Beyond(_) => return Err(BeyondError::Host),
        };
        let names = gateways.iter().map(|name| name.as_str().len());
        let octets = end + names.sum::<usize>();
        if octets > NAME_BYTES_MAX {
            return Err(BeyondError::Length(octets));
        }
        Ok(Self {
            gateways,
            passed: 0,
            left: None,
            host,
        })
    }

    /// It, with the number of gateways that have carried the flow on already.
    #[must_use]
    pub fn after(self, passed: u8) -> Self {
        Self { passed, ..self }
    }

    /// It, with what is left of a message's deadline for the gateways beyond the acceptor.
    #[must_use]
    pub fn with_left(self, left: Option<Duration>) -> Self {
        Self { left, ..self }
    }

    /// The gateways, the next first: each is the name that the one before has for it.
    pub fn gateways(&self) -> &[HostName] {
        &self.gateways
    }

    /// The gateways that have carried the flow on before the acceptor.
    pub const fn passed(&self) -> u8 {
        self.passed
    }

    /// The rest of a message's deadline, for the gateways beyond the acceptor.
    pub const fn left(&self) -> Option<Duration> {
        self.left
    }

    /// The host at the end.
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// The host as the next gateway is to be told; `detour` are gateways that the acceptor itself puts before those behind
    /// the next. `None` if the way is too long then, or the flow has been carried on so often that it runs in a circle.
    pub fn onward(&self, detour: &[HostName]) -> Option<Host> {
        let passed = self.passed.checked_add(1).filter(|n| *n < PASSED_MAX)?;
        let behind = self.gateways.get(1..).unwrap_or_default();
        let gateways = [detour, behind].concat();
        if gateways.is_empty() {
            return Some(self.host.clone());
        }
        let beyond = Self::new(gateways, self.host.clone()).ok()?;
        Some(Host::Beyond(Box::new(beyond.after(passed))))
    }
}

/// The place that a flow's acceptor connects to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    /// The host.
    pub host: Host,
    /// The TCP or UDP port, or the bucket of a tunnel's packets.
    pub port: u16,
}

impl Destination {
    /// It, behind further `gateways`, if there are any; `left` is what they have of a message's deadline.
    ///
    /// # Errors
    /// [`BeyondError`] says what makes it no way.
    pub fn behind(
        self,
        gateways: &[HostName],
        left: Option<Duration>,
    ) -> Result<Self, BeyondError> {
        if gateways.is_empty() {
            return Ok(self);
        }
        let beyond = Beyond::new(gateways.to_vec(), self.host)?.with_left(left);
        Ok(Self {
            host: Host::Beyond(Box::new(beyond)),
            port: self.port,
        })
    }

    /// The last of the gateways behind the acceptor, if there are any.
    pub fn last_gateway(&self) -> Option<&HostName> {
        match &self.host {
            Host::Beyond(beyond) => beyond.gateways.last(),
            Host::Address(_) | Host::Name(_) | Host::Tunnel(_) => None,
        }
    }
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
            Host::Beyond(beyond) => {
                let end = Self {
                    host: beyond.host.clone(),
                    port: self.port,
                };
                write!(f, "{end} behind ")?;
                let mut names = beyond.gateways.iter();
                names.next().into_iter().try_for_each(|name| name.fmt(f))?;
                names.try_for_each(|name| write!(f, " and {name}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> Vec<HostName> {
        let name = |text: &&str| text.parse().expect("a name");
        texts.iter().map(name).collect()
    }

    fn end() -> Host {
        Host::Address([192, 0, 2, 1].into())
    }

    #[test]
    fn a_way_gets_shorter_by_a_gateway_and_ends_at_the_host() {
        let way = Beyond::new(names(&["b", "c"]), end()).expect("a way");
        let Some(Host::Beyond(second)) = way.onward(&[]) else {
            panic!("one gateway is left")
        };
        assert_eq!(
            (second.gateways(), second.passed()),
            (&names(&["c"])[..], 1)
        );
        assert_eq!(second.onward(&[]), Some(end()));
        let Some(Host::Beyond(longer)) = second.onward(&names(&["x"])) else {
            panic!("a detour has a gateway")
        };
        assert_eq!(
            (longer.gateways(), longer.passed()),
            (&names(&["x"])[..], 2)
        );
    }

    #[test]
    fn a_flow_that_runs_in_a_circle_is_carried_on_seven_times_at_most() {
        let mut way = Beyond::new(names(&["a"]), end()).expect("a way");
        let mut carried = 0;
        while let Some(Host::Beyond(next)) = way.onward(&names(&["a"])) {
            way = *next;
            carried += 1;
            assert!(carried < 100, "for ever");
        }
        assert_eq!(carried, 7);
    }

    #[test]
    fn ways_are_bounded_in_gateways_and_octets() {
        let many = names(&["g"; 8]);
        assert_eq!(Beyond::new(many[..7].to_vec(), end()).map(|_| ()), Ok(()));
        assert_eq!(Beyond::new(many, end()), Err(BeyondError::Gateways(8)));
        assert_eq!(
            Beyond::new(Vec::new(), end()),
            Err(BeyondError::Gateways(0))
        );
        let long = Host::Name("h".repeat(250).parse().expect("a name"));
        assert!(Beyond::new(names(&["abc"]), long.clone()).is_ok());
        assert_eq!(
            Beyond::new(names(&["abcd"]), long),
            Err(BeyondError::Length(254))
        );
        let tunnel = Host::Tunnel("t".parse().expect("a name"));
        assert_eq!(Beyond::new(names(&["a"]), tunnel), Err(BeyondError::Host));
    }
}
