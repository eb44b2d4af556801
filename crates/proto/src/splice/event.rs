//! The events that a splicer gives its driver, and the reasons why it opens no flow.

use super::address::{Destination, FlowId, FlowKind};
use super::class::FlowClass;
use super::codes::{RefuseCode, ResetCode};
use crate::machine::PathId;
use crate::transport::aerotp::ConfigError;
use core::net::SocketAddr;

/// An event of a flow. [`FlowEvent::Refused`], [`FlowEvent::Reset`] and [`FlowEvent::Closed`] are
/// last: the flow's name means nothing afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowEvent {
    /// Acceptor: a peer asks for a connection. The driver answers with `connected` or `refused`.
    /// There may be octets to read already.
    Requested {
        /// The new flow.
        flow: FlowId,
        /// The peer that asks.
        peer: PathId,
        /// The kind of content that it will carry.
        kind: FlowKind,
        /// The destination.
        destination: Destination,
        /// The treatment.
        class: FlowClass,
        /// The opener has asked for this flow before, and an earlier start of this gateway may have heard it and
        /// connected to the destination. Refuse, unless what that start wrote down shows that it had
        /// not: the destination would get the first octets twice.
        earlier: bool,
    },
    /// Opener: the destination accepted.
    Connected {
        /// The flow.
        flow: FlowId,
        /// The acceptor's own address towards the destination.
        bound: SocketAddr,
    },
    /// Opener: the flow was not opened. The flow's last event.
    Refused {
        /// The flow.
        flow: FlowId,
        /// The reason.
        code: RefuseCode,
    },
    /// There is something to `peek` or `poll_datagram`.
    Readable(FlowId),
    /// `capacity` was 0 and is not any more.
    Writable(FlowId),
    /// Streams: everything from the far side was read, and it sends no more.
    PeerFinished(FlowId),
    /// Streams: the far side's local connection is gone. Octets that are given to `accept` from now
    /// on reach nobody; octets that the far side has taken from its own host still come. A reset
    /// follows when they have. Stop reading for `accept`, or read and drop, so that the local host
    /// is not held up.
    Stopped(FlowId),
    /// Streams: the far host has acknowledged the first `offset` octets given to `accept`. A driver
    /// that keeps octets for `resume` may release them up to there.
    Delivered {
        /// The flow.
        flow: FlowId,
        /// Octets since the start of the flow.
        offset: u64,
    },
    /// Streams with `resume`: the driver continues with `accept` from octet `from`, which is not
    /// before the last `Delivered`. The event may be repeated. Until it is fetched, `accept` takes
    /// nothing.
    Resume {
        /// The flow.
        flow: FlowId,
        /// The offset of the next octet to give to `accept`.
        from: u64,
    },
    /// The flow was cut off: by the far side, or because it cannot continue. The flow's last event.
    Reset {
        /// The flow.
        flow: FlowId,
        /// The reason.
        code: ResetCode,
    },
    /// Streams: both directions are finished and delivered. Datagrams: the association is over.
    /// This event is the flow's last.
    Closed(FlowId),
}

impl FlowEvent {
    /// The flow that the event belongs to.
    pub const fn flow(&self) -> FlowId {
        match self {
            Self::Requested { flow, .. }
            | Self::Connected { flow, .. }
            | Self::Refused { flow, .. }
            | Self::Readable(flow)
            | Self::Writable(flow)
            | Self::PeerFinished(flow)
            | Self::Stopped(flow)
            | Self::Delivered { flow, .. }
            | Self::Resume { flow, .. }
            | Self::Reset { flow, .. }
            | Self::Closed(flow) => *flow,
        }
    }
}

/// The reason why a flow cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// A stream needs a mode that delivers everything.
    #[error("a stream cannot be carried in mode {0}, which may lose octets")]
    Mode(&'static str),
    /// There are as many flows as allowed, or as many connections as the endpoint allows.
    #[error("there are already as many flows as allowed")]
    TooMany,
    /// The class's settings cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A restored flow has the name of one that exists.
    #[error("flow {0} is there already")]
    Exists(FlowId),
}
