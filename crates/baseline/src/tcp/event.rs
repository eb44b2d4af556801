//! The events for an application, and the errors of its calls.

use super::config::TcpConfigError;
use fulmar_proto::machine::PathId;
use fulmar_proto::wire::Port;

/// A connection of one endpoint. Never reused within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpConnectionId(pub u64);

/// The states of RFC 9293, figure 5, without LISTEN, which is the endpoint's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    /// SYN sent, nothing heard.
    SynSent,
    /// SYNs crossed or came to a listener; ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged, the peer still sends.
    FinWait2,
    /// The peer closed, we still send.
    CloseWait,
    /// Both closed at once; our FIN is not acknowledged.
    Closing,
    /// The peer closed, then we; our FIN is not acknowledged.
    LastAck,
    /// Both ends are closed; late copies are still answered.
    TimeWait,
    /// The connection is over.
    Closed,
}

impl TcpState {
    /// The state's name in the RFC.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
            Self::Closed => "CLOSED",
        }
    }

    /// Whether both SYNs are acknowledged.
    pub(crate) const fn is_synchronized(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }

    /// Whether octets and FIN of ours may leave.
    pub(crate) const fn may_send(self) -> bool {
        matches!(
            self,
            Self::Established | Self::FinWait1 | Self::CloseWait | Self::Closing | Self::LastAck
        )
    }

    /// Whether octets of the peer are wanted.
    pub(super) const fn may_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}

/// The reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpCloseReason {
    /// Both directions were closed and acknowledged.
    Finished,
    /// This side aborted.
    Aborted,
    /// The peer refused the connection.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// Every allowed try was made, and nothing came back.
    TimedOut,
}

/// An event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpEvent {
    /// A listener has a new connection, established.
    Incoming {
        /// The new connection.
        id: TcpConnectionId,
        /// The path it comes from.
        path: PathId,
        /// The local port.
        local: Port,
        /// The peer's port.
        remote: Port,
    },
    /// The connection is established.
    Connected(TcpConnectionId),
    /// There is something to read.
    Readable(TcpConnectionId),
    /// There is room to write again, after a write that took less than was offered.
    Writable(TcpConnectionId),
    /// The peer will send no more, and everything it sent can be read.
    PeerFinished(TcpConnectionId),
    /// The connection is over.
    Closed {
        /// The connection.
        id: TcpConnectionId,
        /// The reason.
        why: TcpCloseReason,
    },
}

/// The reason why a connection cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TcpConnectError {
    /// A setting is out of range.
    #[error(transparent)]
    Config(#[from] TcpConfigError),
    /// The endpoint has as many connections as it may.
    #[error("the endpoint already has {0} connections, its limit")]
    TooMany(usize),
    /// There is a connection between these ports.
    #[error("ports {0} and {1} have a connection already")]
    InUse(Port, Port),
}

/// The reason why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TcpWriteError {
    /// The connection is over or never existed.
    #[error("the connection is closed")]
    Closed,
    /// `close` was called before.
    #[error("the connection was closed for writing")]
    Finishing,
}
