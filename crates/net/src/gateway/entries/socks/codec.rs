//! SOCKS5 messages: octets to values and back (RFC 1928; RFC 1929 for names and passwords).
//!
//! Every reader looks at what has come so far and says whether more is needed; nothing is longer
//! than 513 octets, so that a client cannot make us keep more.

use fulmar_proto::splice::{Destination, Host, RefuseCode};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const VERSION: u8 = 5;
const LOGIN_VERSION: u8 = 1;
const NO_LOGIN: u8 = 0;
const PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xFF;

/// The result of reading.
#[derive(Debug, PartialEq, Eq)]
pub enum Read<T> {
    /// Not all of it has come.
    More,
    /// The value, and the number of octets that it took.
    Done(T, usize),
    /// The octets break the protocol in this way.
    Wrong(&'static str),
}

/// The service that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A TCP connection.
    Connect,
    /// A UDP relay.
    UdpAssociate,
    /// Anything else, which is refused.
    Other,
}

/// A client's request.
#[derive(Debug, PartialEq, Eq)]
pub struct SocksRequest {
    /// The service asked for.
    pub command: Command,
    /// The destination asked for.
    pub destination: Destination,
}

/// A user's name and password as sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Login {
    /// At most 255 octets.
    pub user: Vec<u8>,
    /// At most 255 octets.
    pub password: Vec<u8>,
}

/// The codes of a reply (RFC 1928, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The destination accepted.
    Succeeded = 0,
    /// Another cause than those below.
    GeneralFailure = 1,
    /// The destination is not permitted.
    NotAllowed = 2,
    /// No way leads there.
    NetworkUnreachable = 3,
    /// The host is unknown.
    HostUnreachable = 4,
    /// The destination refused.
    Refused = 5,
    /// The destination did not answer in time.
    TtlExpired = 6,
    /// The command is not CONNECT or UDP ASSOCIATE.
    CommandNotSupported = 7,
    /// The address is malformed.
    AddressTypeNotSupported = 8,
}

impl From<RefuseCode> for Reply {
    fn from(code: RefuseCode) -> Self {
        match code {
            RefuseCode::Refused => Self::Refused,
            RefuseCode::Unreachable => Self::NetworkUnreachable,
            RefuseCode::Timeout => Self::TtlExpired,
            RefuseCode::NotAllowed => Self::NotAllowed,
            RefuseCode::NameUnknown => Self::HostUnreachable,
            RefuseCode::TooMany
            | RefuseCode::Forgotten
            | RefuseCode::Invalid
            | RefuseCode::NotKept => Self::GeneralFailure,
        }
    }
}

/// Reads the greeting and chooses a method: [`PASSWORD`] if `login`, else none. The value is the
/// answer, and whether it is acceptable.
pub fn greeting(octets: &[u8], login: bool) -> Read<([u8; 2], bool)> {
    let (Some(version), count) = (octets.first(), octets.get(1)) else {
        return Read::More;
    };
    if *version != VERSION {
        return Read::Wrong("not SOCKS version 5");
    }
    let Some(count) = count else {
        return Read::More;
    };
    let end = 2 + usize::from(*count);
    let Some(methods) = octets.get(2..end) else {
        return Read::More;
    };
    let wanted = if login { PASSWORD } else { NO_LOGIN };
    let offered = methods.contains(&wanted);
    let method = if offered { wanted } else { NO_METHOD };
    Read::Done(([VERSION, method], offered), end)
}

/// Whether a message is a login, by its first octet: a request begins otherwise.
pub fn is_login(octets: &[u8]) -> bool {
    octets.first() == Some(&LOGIN_VERSION)
}

/// Reads a name and a password.
pub fn login(octets: &[u8]) -> Read<Login> {
    if octets
        .first()
        .is_some_and(|version| *version != LOGIN_VERSION)
    {
        return Read::Wrong("not version 1 of the login");
    }
    let field = |at: usize| {
        let len = usize::from(*octets.get(at)?);
        Some((octets.get(at + 1..at + 1 + len)?, at + 1 + len))
    };
    let both = field(1).and_then(|(user, next)| Some((user, field(next)?)));
    match both {
        None => Read::More,
        Some((user, (password, end))) => {
            let login = Login {
                user: user.to_vec(),
                password: password.to_vec(),
            };
            Read::Done(login, end)
        }
    }
}

/// The answer to a login.
pub const fn login_reply(accepted: bool) -> [u8; 2] {
    [LOGIN_VERSION, if accepted { 0 } else { 1 }]
}

/// Reads an address and a port that begin at `octets`.
fn destination(octets: &[u8]) -> Read<Destination> {
    let Some(kind) = octets.first() else {
        return Read::More;
    };
    let (host_at, host_len) = match kind {
        1 => (1, 4),
        4 => (1, 16),
        3 => match octets.get(1) {
            None => return Read::More,
            Some(len) => (2, usize::from(*len)),
        },
        _ => return Read::Wrong("an unknown type of address"),
    };
    let end = host_at + host_len + 2;
    let (Some(host), Some([high, low])) = (
        octets.get(host_at..host_at + host_len),
        octets.get(end - 2..end),
    ) else {
        return Read::More;
    };
    let port = u16::from_be_bytes([*high, *low]);
    let host = if let Ok(v4) = <[u8; 4]>::try_from(host).map(Ipv4Addr::from)
        && *kind == 1
    {
        Host::Address(v4.into())
    } else if let Ok(v6) = <[u8; 16]>::try_from(host).map(Ipv6Addr::from)
        && *kind == 4
    {
        Host::Address(IpAddr::V6(v6).to_canonical())
    } else {
        match named(host) {
            Some(host) => host,
            None => return Read::Wrong("not a host name"),
        }
    };
    Read::Done(Destination { host, port }, end)
}

/// Clients send addresses as names, too.
fn named(octets: &[u8]) -> Option<Host> {
    let text = core::str::from_utf8(octets).ok()?;
    match text.parse::<IpAddr>() {
        Ok(ip) => Some(Host::Address(ip.to_canonical())),
        Err(_) => text.parse().ok().map(Host::Name),
    }
}

/// Reads a request.
pub fn request(octets: &[u8]) -> Read<SocksRequest> {
    if octets.first().is_some_and(|version| *version != VERSION) {
        return Read::Wrong("not SOCKS version 5");
    }
    let (Some(command), Some(rest)) = (octets.get(1), octets.get(3..)) else {
        return Read::More;
    };
    let command = match command {
        1 => Command::Connect,
        3 => Command::UdpAssociate,
        _ => Command::Other,
    };
    match destination(rest) {
        Read::More => Read::More,
        Read::Wrong(why) => Read::Wrong(why),
        Read::Done(destination, len) => Read::Done(
            SocksRequest {
                command,
                destination,
            },
            3 + len,
        ),
    }
}

fn push_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(v4) => {
            out.push(1);
            out.extend(v4.octets());
        }
        IpAddr::V6(v6) => {
            out.push(4);
            out.extend(v6.octets());
        }
    }
    out.extend(address.port().to_be_bytes());
}

/// A reply; `bound` is the address it tells.
pub fn reply(code: Reply, bound: SocketAddr) -> Vec<u8> {
    let mut out = vec![VERSION, code as u8, 0];
    push_address(&mut out, bound);
    out
}

/// Takes a client's datagram apart: its destination and its payload. `None` if it is malformed, or a fragment, which
/// a relay may drop (RFC 1928, section 7).
pub fn datagram(octets: &[u8]) -> Option<(Destination, &[u8])> {
    let [0, 0, 0, rest @ ..] = octets else {
        return None;
    };
    match destination(rest) {
        Read::Done(destination, len) => Some((destination, rest.get(len..)?)),
        Read::More | Read::Wrong(_) => None,
    }
}

/// Puts the header for a client before a datagram from `source`.
pub fn wrap(source: &Destination, message: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, 0];
    let host = match &source.host {
        Host::Beyond(beyond) => beyond.host(),
        host => host,
    };
    match host {
        Host::Address(ip) => push_address(&mut out, SocketAddr::new(*ip, source.port)),
        // A way has no other way at its end.
        Host::Beyond(_) => return Vec::new(),
        Host::Name(name) | Host::Tunnel(name) => {
            let name = name.as_str().as_bytes();
            out.push(3);
            // A host name has at most 253 octets.
            out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
            out.extend(name);
            out.extend(source.port.to_be_bytes());
        }
    }
    out.extend(message);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(text: &str) -> Destination {
        text.parse::<crate::gateway::config::Place>().unwrap().0
    }

    #[test]
    fn the_method_is_the_one_that_the_configuration_wants() {
        assert_eq!(
            greeting(&[5, 2, 0, 2], false),
            Read::Done(([5, 0], true), 4)
        );
        assert_eq!(greeting(&[5, 2, 0, 2], true), Read::Done(([5, 2], true), 4));
        assert_eq!(
            greeting(&[5, 1, 0], true),
            Read::Done(([5, 0xFF], false), 3)
        );
        assert!(matches!(greeting(&[4, 1, 0], false), Read::Wrong(_)));
    }

    #[test]
    fn requests_are_read_whole_or_not_at_all() {
        let octets = [
            5, 1, 0, 3, 9, b'l', b'o', b'c', b'a', b'l', b'h', b'o', b's', b't', 0, 80, 7,
        ];
        for end in 0..16 {
            assert_eq!(request(&octets[..end]), Read::More, "{end}");
        }
        let asked = SocksRequest {
            command: Command::Connect,
            destination: to("localhost:80"),
        };
        assert_eq!(request(&octets), Read::Done(asked, 16));
        let v4 = [5, 3, 0, 1, 10, 0, 0, 1, 1, 187];
        let asked = SocksRequest {
            command: Command::UdpAssociate,
            destination: to("10.0.0.1:443"),
        };
        assert_eq!(request(&v4), Read::Done(asked, 10));
        assert!(matches!(request(&[5, 1, 0, 2, 0]), Read::Wrong(_)));
        assert!(matches!(
            request(&[5, 1, 0, 3, 1, 0xFF, 0, 80]),
            Read::Wrong(_)
        ));
    }

    #[test]
    fn an_address_sent_as_a_name_is_an_address() {
        let octets = [5, 1, 0, 3, 3, b':', b':', b'1', 0, 80];
        let Read::Done(asked, 10) = request(&octets) else {
            panic!("it is whole")
        };
        assert_eq!(asked.destination, to("[::1]:80"));
    }

    #[test]
    fn datagrams_come_back_from_their_wrapping_and_fragments_do_not() {
        for place in ["10.0.0.1:53", "[fd00::1]:53", "server.example:53"] {
            let wrapped = wrap(&to(place), b"query");
            assert_eq!(datagram(&wrapped), Some((to(place), b"query".as_slice())));
            let mut fragment = wrapped.clone();
            fragment[2] = 1;
            assert_eq!(datagram(&fragment), None);
            assert_eq!(datagram(&wrapped[..6]), None);
        }
    }

    #[test]
    fn a_login_has_two_fields() {
        let octets = [1, 2, b'm', b'e', 3, b'k', b'e', b'y'];
        for end in 0..8 {
            assert_eq!(login(&octets[..end]), Read::More);
        }
        let Read::Done(given, 8) = login(&octets) else {
            panic!("it is whole")
        };
        assert_eq!(
            (given.user.as_slice(), given.password.as_slice()),
            (&b"me"[..], &b"key"[..])
        );
    }
}
