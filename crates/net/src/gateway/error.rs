//! Why a gateway does not start or cannot go on.

use super::links::ScheduleError;
use crate::custody::StoreError;
use crate::keeper::KeeperError;
use crate::recording::RecordingError;
use crate::session::{EpochError, KeyFileError, SessionConfigError};
use crate::tun::TunError;
use crate::udp::DriverError;
use fulmar_proto::splice::SplicerConfigError;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Why a gateway does not start or cannot go on. Each prints with its causes as one line with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// A port cannot be had.
    #[error("cannot listen at {listen} ({what}): {}", listen_remedy(.source))]
    Listen {
        /// Carrier, entry or metrics.
        what: &'static str,
        /// The address.
        listen: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// Transparent entries need a capability.
    #[error(
        "cannot divert traffic at {listen} ([[transparent]]): CAP_NET_ADMIN is missing; run as \
         root, or `setcap cap_net_admin+ep` the binary, or give the unit transparent.conf \
         (docs/guide/operating.md); after a reload, restart it, for a gateway that runs has given it up"
    )]
    Transparent {
        /// The address.
        listen: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// A further path of a peer cannot be opened.
    #[error(
        "cannot open the path {path} to peer `{peer}` ([[peer.path]]): its address must be one of this machine, and its \
         device must be there; `ip address` lists both"
    )]
    Path {
        /// The peer's name.
        peer: String,
        /// The path in words.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// There are more further paths than can be told apart.
    #[error(
        "cannot open the path {path} to peer `{peer}` ([[peer.path]]): it is one more than the {most} addresses and sockets \
         of peers that a gateway has; remove paths, or share the peers among two gateways"
    )]
    TooManyPaths {
        /// The peer's name.
        peer: String,
        /// The path in words.
        path: String,
        /// The most of them.
        most: usize,
    },
    /// A link's schedule cannot be used.
    #[error("cannot use the schedule {at} of link `{link}` ([[link]] schedule)", at = .file.display())]
    Schedule {
        /// The link's name.
        link: String,
        /// The file.
        file: PathBuf,
        /// The line and the cure.
        source: ScheduleError,
    },
    /// The source of a link's words cannot be had.
    #[error(
        "cannot hear link `{link}` ([[link]] {field}): {}",
        told_link_remedy(.source)
    )]
    ToldLink {
        /// The link's name.
        link: String,
        /// The key of its source.
        field: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The device of a peer's carrier cannot be had.
    #[error(
        "cannot send frames to peer `{peer}` (carrier = \"{carrier}\"): the device must be there and up, and a packet \
         socket takes CAP_NET_RAW (docs/guide/operating.md)"
    )]
    Device {
        /// The peer's name.
        peer: String,
        /// Its carrier.
        carrier: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The device of a tunnel cannot be had.
    #[error("cannot make the device of tunnel `{tunnel}`")]
    Tunnel {
        /// The tunnel's name.
        tunnel: String,
        /// The reason, with the remedy.
        source: TunError,
    },
    /// An address of a tunnel is an interface's already.
    #[error(
        "cannot give {address} to the device {device}: an interface of this machine has it already; write another \
         address in [[tunnel]], or end what made that interface"
    )]
    TunnelAddress {
        /// The address.
        address: IpAddr,
        /// The tunnel's device.
        device: String,
    },
    /// The kernel's rules that divert a tunnel's TCP cannot be had.
    #[error(
        "cannot divert the TCP that goes into {device} (accelerate = true): nft says: {said}; leave accelerate out, and TCP \
         is carried packet by packet"
    )]
    Accelerate {
        /// The tunnel's device.
        device: String,
        /// The reason.
        said: String,
    },
    /// The routes of a tunnel lead its own datagrams into its device.
    #[error(
        "the way to peer `{peer}` at {address} leads into the device {device} of its own tunnel: give {address} a route of \
         its own (`ip route get {address}` before the start shows the one it has now), or name narrower networks in \
         routes and address of [[tunnel]]"
    )]
    TunnelLoop {
        /// The peer's name.
        peer: String,
        /// The peer's address.
        address: IpAddr,
        /// The tunnel's device.
        device: String,
    },
    /// A key cannot be read.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// A peer has our own public key.
    #[error(
        "{place}: is our own public key, whose secret half is in {}; write the one that `fulmar keygen --public \
         FILE` prints at the other end",
        file.display()
    )]
    OwnPublicKey {
        /// The place in the configuration, with the field.
        place: String,
        /// The file with our key.
        file: PathBuf,
    },
    /// A password cannot be read.
    #[error("cannot read the password in {}", path.display())]
    Password {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A peer's address does not resolve.
    #[error("the address {address} of peer `{peer}` is not known")]
    PeerAddress {
        /// The peer's name.
        peer: String,
        /// The address as configured.
        address: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The session's settings contradict each other.
    #[error(transparent)]
    Session(#[from] SessionConfigError),
    /// The splice's settings cannot work.
    #[error(transparent)]
    Splice(#[from] SplicerConfigError),
    /// The state directory cannot be used.
    #[error("cannot keep state")]
    State(#[from] EpochError),
    /// There is no place for the state directory.
    #[error(
        "cannot keep state: neither STATE_DIRECTORY, XDG_STATE_HOME nor HOME says where; write \
         state_dir in [gateway]"
    )]
    StatePlace,
    /// The custody store cannot be used.
    #[error(transparent)]
    Custody(#[from] StoreError),
    /// The capture or the trace cannot begin.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The keeper of the sockets cannot be used.
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    /// The system gives no descriptor, thread or entropy.
    #[error("{what}")]
    System {
        /// The attempt.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The loop broke.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

fn told_link_remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => {
            "something is there already: another process listens, or it is no socket; name another place, or remove it"
        }
        io::ErrorKind::NotFound => "its directory is missing; make it, or name another place",
        io::ErrorKind::PermissionDenied => {
            "this user may not; give the user the right, or name another place"
        }
        io::ErrorKind::Unsupported => "use another source",
        _ => {
            "it may be for want of descriptors or memory; look at the reason, free some, and start again"
        }
    }
}

fn listen_remedy(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "the port is taken; stop what listens there (see `ss -lntup`), or choose another"
                .to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "not permitted; ports below 1024 need CAP_NET_BIND_SERVICE, and after a reload a restart, for \
             a gateway that runs has given it up"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "no interface of this host has that address (see `ip address`)".to_owned()
        }
        _ => error.to_string(),
    }
}

impl GatewayError {
    /// Whether the configuration is to blame, rather than the system.
    pub const fn is_configuration(&self) -> bool {
        matches!(
            self,
            Self::KeyFile(KeyFileError::Key { .. } | KeyFileError::Count { .. })
                // The start waits for no name's resolution, so the fault is in the configuration.
                | Self::PeerAddress { .. }
                | Self::OwnPublicKey { .. }
                | Self::Session(_)
                | Self::Splice(_)
        )
    }
}
