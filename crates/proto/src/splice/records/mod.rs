//! The records that two splicers exchange, as typed values and as octets.
//!
//! A record is a type (1 octet), the length of its body (2 octets) and the body. In AeroTP modes
//! that deliver everything, a connection carries a stream of records, cut into TPDUs anywhere
//! ([`RecordReader`] puts them together); in the others a TPDU carries whole records. What does
//! not parse is a [`Malformed`], never a panic; what is kept while a record is incomplete is bounded by
//! its length field.
//!
//! `docs/protocol/splice.md` specifies every value.

mod decode;
mod encode;
mod reader;

#[cfg(test)]
mod tests;

pub use decode::Malformed;
pub(in crate::splice) use encode::data_header;
pub use reader::{Piece, RecordReader};

use super::address::{Destination, FlowId, FlowKind};
use super::codes::{RefuseCode, ResetCode};
use crate::fec::block::BlockPlan;
use crate::machine::Priority;
use crate::splice::class::ClassId;
use crate::units::Duration;
use crate::wire::aerotp::FecStrength;
use core::net::SocketAddr;

/// Octets of a record's type and length.
pub const HEADER_BYTES: usize = 3;
/// Octets of a record's body, at most.
pub const BODY_BYTES_MAX: usize = u16::MAX as usize;
/// Octets of a `MESSAGE` body before the message's own.
pub const MESSAGE_HEADER_BYTES: usize = 10;
/// Flows in one `ASK`, and in its answer, at most: either is what a fresh connection takes at once.
pub const QUESTIONS_MAX: usize = 1_024;

/// Record types on the wire.
mod kind {
    pub(super) const OPEN: u8 = 1;
    pub(super) const ACCEPTED: u8 = 2;
    pub(super) const REFUSED: u8 = 3;
    pub(super) const DATA: u8 = 4;
    pub(super) const END: u8 = 5;
    pub(super) const RESET: u8 = 6;
    pub(super) const DELIVERED: u8 = 7;
    pub(super) const MESSAGE: u8 = 8;
    pub(super) const FLOW: u8 = 9;
    pub(super) const FINISHED: u8 = 10;
    pub(super) const STOP: u8 = 11;
    pub(super) const ASK: u8 = 12;
    pub(super) const GONE: u8 = 13;
    /// The last that is defined below the optional ones.
    pub(super) const LAST: u8 = GONE;
    /// From here on, a receiver ignores what it does not know.
    pub(super) const OPTIONAL: u8 = 128;
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The opener asks for a flow, or goes on with one.
    Open(Box<Open>),
    /// The destination accepted, or the acceptor goes on.
    Accepted(Accepted),
    /// There will be no flow.
    Refused(RefuseCode),
    /// A stream's next octets, at least one.
    Data(&'a [u8]),
    /// No octets follow: the direction had `total`.
    End {
        /// Octets of the direction, from its start.
        total: u64,
    },
    /// The flow is cut off.
    Reset(ResetCode),
    /// What the sender's host has acknowledged, and how far the receiver of this may send.
    Delivered(Delivered),
    /// A datagram flow's message, or a part of one.
    Message(Message<'a>),
    /// In datagram mode: which flow the records behind it belong to.
    Flow(FlowId),
    /// The flow that should go on has ended, complete.
    Finished,
    /// The local connection is gone: what comes for it reaches nobody. The other direction goes on.
    Stop,
    /// The sender has these flows, and does not know whether the receiver has them too.
    Ask(Vec<Question>),
    /// Which of the flows that were asked about are not known here.
    Gone(Vec<FlowId>),
    /// Of a type that may be ignored.
    Ignored,
}

/// One flow of an `ASK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The flow's name.
    pub flow: FlowId,
    /// The number of the opening whose connection the acceptor has lost; 0 if the sender has a connection, or is
    /// the opener.
    pub attempt: u64,
}

/// The body of an `OPEN`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the record")]
pub struct Open {
    /// The flow's name.
    pub flow: FlowId,
    /// Grows with each opening of the flow: the gateway's incarnation, then a count.
    pub attempt: u64,
    /// What it carries.
    pub kind: FlowKind,
    /// Whether it may outlive its connection.
    pub resume: bool,
    /// Whether the opener can go on with it after a restart.
    pub durable: bool,
    /// The opener has asked before: data waits for the answer. Who may have heard it.
    pub again: Option<Hearer>,
    /// Datagrams: the acceptor has answered before, and need not answer again.
    pub refresh: bool,
    /// The opener only says its last word: there is nothing to open.
    pub farewell: bool,
    /// Precedence.
    pub priority: Priority,
    /// The class.
    pub class: ClassId,
    /// The class's share.
    pub weight: u8,
    /// Parity inside TPDUs.
    pub fec_words: FecStrength,
    /// Parity across TPDUs.
    pub block: Option<BlockPlan>,
    /// How old a message may become, in whole microseconds, above zero.
    pub deadline: Option<Duration>,
    /// The class's window in octets.
    pub window: u32,
    /// Octets that may follow at once, without credit.
    pub presumed: u32,
    /// Octets of the way back that the opener has received in order.
    pub received: u64,
    /// How far the acceptor may send: octets of the way back since the flow's start.
    pub limit: u64,
    /// The first octet that the opener can still send.
    pub kept_from: u64,
    /// Where to connect.
    pub destination: Destination,
}

/// Which start of the acceptor may have heard an earlier opening of a flow, and connected to the destination for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearer {
    /// The present one at most: no other was there since the first opening left.
    Present,
    /// One before, too.
    Earlier,
    /// The opener has restarted, and does not know.
    Unknown,
    /// One has answered that it connected.
    Answered,
}

/// The body of an `ACCEPTED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Octets that the acceptor has received in order: where the opener goes on.
    pub received: u64,
    /// How far the opener may send.
    pub limit: u64,
    /// The acceptor's address towards the destination.
    pub bound: SocketAddr,
}

/// The body of a `DELIVERED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Octets that the host acknowledged.
    pub offset: u64,
    /// How far the other side may send.
    pub limit: u64,
}

/// The body of a `MESSAGE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Counts the flow's messages, modulo 2^32.
    pub number: u32,
    /// Microseconds modulo 2^32 on the sender's clock when it took the message.
    pub stamp: u32,
    /// Which part this is.
    pub index: u8,
    /// The index of the last part.
    pub last: u8,
    /// The part's octets.
    pub octets: &'a [u8],
}
