//! The errors of an emulated link.

use crate::tun::TunError;
use fulmar_channel::{ChannelConfigError, UsedUp};
use std::io;
use std::net::SocketAddr;

/// The reason why an emulator could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The link's description is out of range.
    #[error("the {direction} link's {error}")]
    Link {
        /// `up` or `down`.
        direction: &'static str,
        /// The field and its range.
        error: ChannelConfigError,
    },
    /// The listening address is in use, not local or not permitted.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// A replayed trace came to its end.
    #[error("the {direction} link's {}: {error}", error.field)]
    Trace {
        /// `up` or `down`.
        direction: &'static str,
        /// The trace.
        error: UsedUp,
    },
    /// A socket or device broke, or the kernel refuses to wait.
    #[error("the link's sockets or devices")]
    Relay(#[source] io::Error),
    /// A TUN device, its namespace or its addresses cannot be had.
    #[error(transparent)]
    Tun(#[from] TunError),
}
