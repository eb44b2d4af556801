//! Entries: the ports where clients come in.

use super::socks::Credentials;
use crate::gateway::GatewayError;
use crate::gateway::config::{
    ClassRules, EntryProtocol, GatewayConfig, SocksLogin, TunnelSettings,
};
use crate::gateway::flows::Wish;
use crate::gateway::sockets::packets;
use crate::ownership::{self, SECRET_FORBIDDEN};
use fulmar_proto::splice::{Destination, FlowClass, FlowKind, HostName};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use zeroize::Zeroizing;

/// Connections waiting to be accepted.
const BACKLOG: i32 = 1_024;

/// The kind of an entry, which tells where its flows go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Way {
    /// All flows go to this destination.
    Forward(Destination),
    /// Flows go where the client asks.
    Socks(Option<Credentials>),
    /// Flows go where the client meant to go before the kernel diverted it.
    Transparent,
    /// The same, for what would have gone into the tunnel in this place of the configuration.
    Accelerated(usize),
}

impl Way {
    /// The name in logs.
    pub(in crate::gateway) const fn name(&self) -> &'static str {
        match self {
            Self::Forward(_) => "forward",
            Self::Socks(_) => "socks",
            Self::Transparent => "transparent",
            Self::Accelerated(_) => "accelerated",
        }
    }
}

/// An entry's rule for its clients.
#[derive(Clone, Debug)]
pub(in crate::gateway) struct Rule {
    pub(in crate::gateway) protocol: EntryProtocol,
    pub(in crate::gateway) listen: SocketAddr,
    pub(in crate::gateway) way: Way,
    pub(in crate::gateway) peer: usize,
    /// The gateways behind the peer.
    pub(in crate::gateway) beyond: Vec<HostName>,
    pub(in crate::gateway) classes: ClassRules,
    /// The classes of a SOCKS entry's UDP associations.
    pub(in crate::gateway) udp_classes: ClassRules,
}

impl Rule {
    /// The wish of a client for a flow to `to`, which lies behind the gateways of this rule. Of the class's deadline each
    /// hop has an equal part. `None` if the destination's name is too long beside those of the gateways.
    pub(super) fn wish(&self, kind: FlowKind, to: Destination, class: FlowClass) -> Option<Wish> {
        wish((self.peer, &self.beyond), kind, to, class)
    }

    /// The beginning of the keeper's names for a TCP port: ports whose names begin alike can serve each other's rules.
    pub(in crate::gateway) fn port_name(&self) -> Option<String> {
        let kind = match &self.way {
            Way::Transparent => "transparent",
            Way::Forward(_) | Way::Socks(_) => "own",
            // The rules that divert to it go with this process.
            Way::Accelerated(_) => return None,
        };
        (self.protocol == EntryProtocol::Tcp).then(|| format!("{} {kind}", self.listen))
    }

    /// The tunnel whose TCP it takes, by its place in the configuration.
    pub(in crate::gateway) const fn tunnel(&self) -> Option<usize> {
        match &self.way {
            Way::Accelerated(place) => Some(*place),
            Way::Forward(_) | Way::Socks(_) | Way::Transparent => None,
        }
    }

    /// Whether a socket of one can serve the other.
    pub(super) fn same_socket(&self, other: &Self) -> bool {
        let kind = |rule: &Self| match rule.way {
            Way::Transparent => (true, None),
            Way::Accelerated(tunnel) => (false, Some(tunnel)),
            Way::Forward(_) | Way::Socks(_) => (false, None),
        };
        (self.protocol, self.listen, kind(self)) == (other.protocol, other.listen, kind(other))
    }
}

/// The wish for a flow that goes to `peer` and through the gateways behind it.
pub(super) fn wish(
    (peer, beyond): (usize, &[HostName]),
    kind: FlowKind,
    to: Destination,
    class: FlowClass,
) -> Option<Wish> {
    let hops = u32::try_from(beyond.len())
        .unwrap_or(u32::MAX)
        .saturating_add(1);
    let (class, left) = class.for_one_hop(class.message_deadline(), hops);
    let class = class.with_misses_shared(hops);
    Some(Wish {
        peer,
        kind,
        to: to.behind(beyond, left).ok()?,
        class,
    })
}

/// An entry's socket.
#[derive(Debug)]
pub(in crate::gateway) enum Port {
    Tcp(TcpListener),
    Udp(Rc<UdpSocket>),
}

/// One entry.
#[derive(Debug)]
pub(in crate::gateway) struct Entry {
    pub(in crate::gateway) rule: Rule,
    pub(in crate::gateway) port: Port,
    /// The keeper's name for its port, see [`crate::gateway::flows::kept_ports`].
    pub(in crate::gateway) kept: Option<String>,
}

impl Entry {
    /// The address where it really listens.
    pub(in crate::gateway) fn local(&self) -> io::Result<SocketAddr> {
        match &self.port {
            Port::Tcp(listener) => listener.local_addr(),
            Port::Udp(socket) => socket.local_addr(),
        }
    }
}

fn credentials(login: &SocksLogin) -> Result<Credentials, GatewayError> {
    let text = password_text(&login.password_file).map_err(|source| GatewayError::Password {
        path: login.password_file.clone(),
        source,
    })?;
    let password = text.lines().next().unwrap_or_default();
    Ok(Credentials {
        user: login.user.clone().into_bytes(),
        password: password.as_bytes().to_vec(),
    })
}

/// The longest password file: passwords of people and programs have at most some hundred octets.
const PASSWORD_BYTES_MAX: u64 = 4_096;

/// The text of a password file; an error if anyone but its owner and its group can read it.
fn password_text(path: &Path) -> io::Result<Zeroizing<String>> {
    let file = ownership::open_secret(path)?;
    let mode = file.metadata()?.mode() & 0o777;
    if mode & SECRET_FORBIDDEN != 0 {
        let why = format!(
            "it is open to others (mode {mode:03o}); run: chmod 600 {}",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(PASSWORD_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// The entries of a configuration.
pub(in crate::gateway) fn rules(config: &GatewayConfig) -> Result<Vec<Rule>, GatewayError> {
    let forwards = config.forwards.iter().map(|forward| Rule {
        protocol: forward.protocol,
        listen: forward.listen,
        way: Way::Forward(forward.to.clone()),
        peer: forward.route.peer,
        beyond: forward.route.beyond.clone(),
        classes: forward.classes.clone(),
        udp_classes: ClassRules::default(),
    });
    let transparent = config.transparent.iter().map(|entry| Rule {
        protocol: entry.protocol,
        listen: entry.listen,
        way: Way::Transparent,
        peer: entry.route.peer,
        beyond: entry.route.beyond.clone(),
        classes: entry.classes.clone(),
        udp_classes: ClassRules::default(),
    });
    let mut rules: Vec<Rule> = forwards.chain(transparent).collect();
    for socks in &config.socks {
        rules.push(Rule {
            protocol: EntryProtocol::Tcp,
            listen: socks.listen,
            way: Way::Socks(socks.login.as_ref().map(credentials).transpose()?),
            peer: socks.route.peer,
            beyond: socks.route.beyond.clone(),
            classes: socks.tcp.clone(),
            udp_classes: socks.udp.clone(),
        });
    }
    for (place, tunnel) in config.tunnels.iter().enumerate() {
        if tunnel.accelerate {
            rules.extend(accelerated(place, tunnel));
        }
    }
    Ok(rules)
}

/// The entries to which the kernel diverts the TCP of a tunnel: one for each family that it has.
fn accelerated(place: usize, tunnel: &TunnelSettings) -> impl Iterator<Item = Rule> {
    let anywhere = [
        IpAddr::from(Ipv4Addr::UNSPECIFIED),
        Ipv6Addr::UNSPECIFIED.into(),
    ];
    let wanted = anywhere.into_iter().filter(|any| {
        let mut addresses = tunnel.addresses.iter();
        addresses.any(|own| own.ip().is_ipv4() == any.is_ipv4())
    });
    wanted.map(move |any| Rule {
        protocol: EntryProtocol::Tcp,
        // A port of the system's choice; the rules name it.
        listen: SocketAddr::new(any, 0),
        way: Way::Accelerated(place),
        peer: tunnel.peer,
        beyond: Vec::new(),
        classes: tunnel.classes.clone(),
        udp_classes: ClassRules::default(),
    })
}

fn bind(rule: &Rule) -> io::Result<Port> {
    let transparent = rule.way == Way::Transparent;
    if rule.protocol == EntryProtocol::Udp {
        return packets::listen(rule.listen, transparent).map(|socket| Port::Udp(Rc::new(socket)));
    }
    let domain = Domain::for_address(rule.listen);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    if rule.listen.is_ipv6() {
        let is_for_both = rule.listen.ip().is_unspecified() && rule.tunnel().is_none();
        socket.set_only_v6(!is_for_both)?;
    }
    if transparent {
        packets::make_transparent(&socket, rule.listen)?;
    }
    // A restart need not wait for the connections of before.
    socket.set_reuse_address(true)?;
    socket.bind(&rule.listen.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(Port::Tcp(socket.into()))
}

/// An entry at a port that is open already, and that [`Rule::port_name`] calls the same.
pub(super) fn reopen(rule: Rule, listener: TcpListener) -> io::Result<Entry> {
    listener.set_nonblocking(true)?;
    let port = Port::Tcp(listener);
    let kept = None;
    Ok(Entry { rule, port, kept })
}

/// Opens an entry's port.
pub(in crate::gateway) fn open(rule: Rule) -> Result<Entry, GatewayError> {
    match bind(&rule) {
        Ok(port) => Ok(Entry {
            rule,
            port,
            kept: None,
        }),
        Err(source) if rule.way == Way::Transparent && is_denied(&source) => {
            Err(GatewayError::Transparent {
                listen: rule.listen,
                source,
            })
        }
        Err(source) => Err(GatewayError::Listen {
            what: "entry",
            listen: rule.listen,
            source,
        }),
    }
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_password_is_read_from_a_file_that_others_cannot_open_and_from_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("password");
        fs::write(&path, "hush\n").expect("it is written");
        for (mode, is_read) in [(0o600, true), (0o640, true), (0o644, false), (0o602, false)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
            let read = password_text(&path);
            assert_eq!(read.is_ok(), is_read, "{mode:o}: {read:?}");
            if let Err(error) = read {
                let cure = format!("chmod 600 {}", path.display());
                assert!(error.to_string().contains(&cure), "{error}");
            }
        }
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .expect("a pipe");
        let error = password_text(&pipe).expect_err("nobody writes into it");
        assert!(error.to_string().contains("no regular file"), "{error}");
    }

    #[test]
    fn a_wish_through_gateways_has_a_part_of_the_deadline_and_of_what_may_be_missed() {
        use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
        use fulmar_proto::transport::aerotp::ThinRepair;
        use fulmar_proto::units::Duration;
        let goal = |millis, missed_millionths| DeliveryGoal {
            deadline: Duration::from_millis(millis),
            missed_millionths,
            deliver: Deliver::ByDeadline,
            order: DeliveryOrder::Any,
        };
        let thin = ThinRepair::at_most(40).with_goal(goal(300, 900));
        let class = FlowClass {
            thin_messages: Some(thin.expect("in range")),
            ..FlowClass::default()
        };
        let names = ["b", "c"].map(|name| name.parse().expect("a name"));
        let to = || Destination::from(SocketAddr::from(([192, 0, 2, 1], 80)));
        let goal_of = |beyond: &[HostName]| {
            let wish = wish((0, beyond), FlowKind::Datagrams, to(), class).expect("a way");
            wish.class.thin_messages.and_then(|thin| thin.goal())
        };
        assert_eq!(goal_of(&names), Some(goal(100, 300)));
        assert_eq!(goal_of(&[]), Some(goal(300, 900)));
    }
}
