//! The events that an endpoint gives the application, and the errors of its calls.

use crate::machine::PathId;
use crate::rate::{RateBelief, RateCause};
use crate::units::{Bitrate, ByteCount};
use crate::wire::{Mode, Port};

/// A connection of one endpoint. Never reused within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// The states of the papers' diagram (multi-mode paper, Figure 6 and Table II).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// ASYN sent, nothing heard.
    AsynSent,
    /// Data flows.
    Established,
    /// We told the peer that no new data follows.
    AfinSent,
    /// The peer told us that no new data follows.
    AfinReceived,
    /// The connection is over; late TPDUs are still answered for a while.
    Closed,
}

impl State {
    /// The papers' name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AsynSent => "ASYN_SENT",
            Self::Established => "ESTABLISHED",
            Self::AfinSent => "AFIN_SENT",
            Self::AfinReceived => "AFIN_RECEIVED",
            Self::Closed => "CLOSED",
        }
    }
}

/// The reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Both directions were closed and, where the mode confirms, everything was confirmed.
    Finished,
    /// This side aborted.
    Aborted,
    /// The peer reset the connection (nobody listens, or its application aborted), or shows that it
    /// has forgotten it.
    Reset,
    /// Nothing was heard for the configured time.
    PeerVanished,
    /// The peer took a message back that came too late, though this end reads in order: the ends' settings disagree
    /// (`order` of the goals in [`ConnectionConfig::thin`](super::ConnectionConfig::thin)). The peer is told.
    Disagreed,
}

/// The reason for a path's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateReason {
    /// The layer below: the configured or reported rate.
    Declared,
    /// Congestion marks.
    Marks,
    /// The link carries less than declared.
    Link,
    /// A queue on the way is being emptied.
    Draining,
    /// The rate is found, not told.
    Found(RateCause),
}

/// A path's rate and the reason for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathRate {
    /// The rate that the layer below names: the upper bound. Where the rate is found without one, the rate found.
    pub declared: Bitrate,
    /// The part of it that congestion marks allow.
    pub marked: Bitrate,
    /// The rate that the link was found to carry, where that is less, or where the rate is found.
    pub link: Option<Bitrate>,
    /// The rate at which octets arrived lately, as the peer reports; `None` before its first
    /// report.
    pub delivered: Option<Bitrate>,
    /// The rate in use.
    pub current: Bitrate,
    /// The reason for the rate in use.
    pub reason: RateReason,
    /// The number of trials in which a standing queue was emptied.
    pub queues_tried: u64,
    /// Whether the link has carried less than 0.8 of what is declared for seconds.
    pub declared_wrong: bool,
    /// The belief of the search for the rate, where it is found.
    pub belief: Option<RateBelief>,
}

/// An event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A listener has a new connection.
    Incoming {
        /// The new connection.
        id: ConnectionId,
        /// The path it comes from.
        path: PathId,
        /// The local port it arrived at.
        local: Port,
        /// Its mode.
        mode: Mode,
    },
    /// The peer answered.
    Connected(ConnectionId),
    /// There is something to read.
    Readable(ConnectionId),
    /// There is room to write again, after a write that took less than was offered.
    Writable(ConnectionId),
    /// The peer will send no more, and everything it sent has been read or given up.
    PeerFinished(ConnectionId),
    /// Everything written was confirmed, or, in modes that confirm nothing, sent.
    AllSent(ConnectionId),
    /// The connection is over.
    Closed {
        /// The connection.
        id: ConnectionId,
        /// The reason.
        why: CloseReason,
    },
    /// A datagram without a connection.
    Datagram {
        /// The path it comes from.
        path: PathId,
        /// The sender's port.
        source: Port,
        /// The local port.
        local: Port,
        /// The sender's count of datagrams, modulo 2^32; in the short form modulo 2^24, as the number nearest to the
        /// listener's first.
        ordinal: u32,
        /// Its payload.
        octets: Vec<u8>,
    },
}

/// The reason why a connection cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A setting is out of range.
    #[error(transparent)]
    Config(#[from] super::ConfigError),
    /// The endpoint has as many connections as it may.
    #[error("the endpoint already has {0} connections, its limit")]
    TooMany(usize),
    /// The endpoint's connections hold as many octets as it may.
    #[error("the endpoint's connections hold {0} of data, its limit for opening more")]
    TooMuchHeld(ByteCount),
}

/// The reason why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The connection is over or never existed.
    #[error("the connection is closed")]
    Closed,
    /// `close` was called before.
    #[error("the connection was closed for writing")]
    Finishing,
    /// Only datagrams may be empty.
    #[error("an empty message can only be sent in datagram mode")]
    EmptyMessage,
    /// The message does not fit one TPDU.
    #[error("a message of {len} octets does not fit a TPDU, which carries {max}")]
    MessageTooLong {
        /// The message's length.
        len: usize,
        /// The longest message.
        max: usize,
    },
}
