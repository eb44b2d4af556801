//! The records that two splicers exchange, as typed values and as octets.
//!
//! A record is a type (1 octet), the length of its body (2 octets) and the body. In AeroTP modes that
//! deliver everything, a connection carries a stream of records, cut into TPDUs anywhere
//! ([`RecordReader`] puts them together); in the other modes a TPDU carries whole records. Octets that
//! do not parse are a [`MalformedRecord`], never a panic. The memory for an incomplete record is bounded by
//! its length field.
//!
//! `docs/protocol/splice.md` specifies every value.

mod decode;
mod encode;
mod reader;

#[cfg(test)]
mod tests;

pub use decode::MalformedRecord;
pub(in crate::splice) use encode::data_header;
pub use reader::{RecordPiece, RecordReader};

use super::address::{Destination, FlowId, FlowKind};
use super::codes::{RefuseCode, ResetCode};
use crate::fec::block::BlockPlan;
use crate::machine::Priority;
use crate::splice::class::ClassId;
use crate::transport::aerotp::ThinRepair;
use crate::units::Duration;
use crate::wire::aerotp::FecStrength;
use core::net::SocketAddr;

/// Octets of a record's type and length.
pub const HEADER_BYTES: usize = 3;
/// Octets of a record's body, at most.
pub const BODY_BYTES_MAX: usize = u16::MAX as usize;
/// Octets of a `MESSAGE` body before the message's own.
pub const MESSAGE_HEADER_BYTES: usize = 10;
/// Flows in one `ASK`, and in its answer, at most: a fresh connection takes either record at once.
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
    /// The last type that is defined below the optional ones.
    pub(super) const LAST: u8 = GONE;
    /// The first optional type: from here on, a receiver ignores types that it does not know.
    pub(super) const OPTIONAL: u8 = 128;
    pub(super) const GOAL: u8 = OPTIONAL;
    /// The first optional type that is not defined.
    pub(super) const UNKNOWN: u8 = GOAL + 1;
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpliceRecord<'a> {
    /// The opener asks for a flow, or resumes one.
    Open(Box<Open>),
    /// The destination accepted, or the acceptor resumes the flow.
    Accepted(Accepted),
    /// The flow is refused.
    Refused(RefuseCode),
    /// A stream's next octets, at least one.
    Data(&'a [u8]),
    /// No octets follow: `total` were sent in this direction.
    End {
        /// Octets of the direction, from its start.
        total: u64,
    },
    /// The flow is cut off.
    Reset(ResetCode),
    /// The octets that the sender's host has acknowledged, and the offset up to which the receiver
    /// of this record may send.
    Delivered(Delivered),
    /// A datagram flow's message, or a part of one.
    Message(MessageRecord<'a>),
    /// The flow of the records behind it, in datagram mode.
    Flow(FlowId),
    /// The flow that is to be resumed has ended, complete.
    Finished,
    /// The local connection is gone, so octets for it reach nobody. The other direction continues.
    Stop,
    /// The sender has these flows, and does not know whether the receiver has them too.
    Ask(Vec<Question>),
    /// The flows, of those that were asked about, that are not known here.
    Gone(Vec<FlowId>),
    /// The repair that the flow asks for, of what leaves as it is written: from the opener with an opening, and back from
    /// an acceptor that reads in any order from now on.
    Goal(ThinRepair),
    /// A record of a type that may be ignored.
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
    /// The number of this opening: it grows with each opening of the flow. The gateway's
    /// incarnation comes first, then a count.
    pub attempt: u64,
    /// The kind of content that the flow carries.
    pub kind: FlowKind,
    /// Whether it may outlive its connection.
    pub resume: bool,
    /// Whether the opener can resume the flow after a restart.
    pub durable: bool,
    /// The start of the acceptor that may have heard an earlier opening. If given, the opener has
    /// asked before, and data waits for the answer.
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
    /// The greatest age of a message, in whole microseconds, above zero.
    pub deadline: Option<Duration>,
    /// The class's window in octets.
    pub window: u32,
    /// Octets that may follow at once, without credit.
    pub presumed: u32,
    /// Octets of the way back that the opener has received in order.
    pub received: u64,
    /// The limit up to which the acceptor may send: octets of the way back since the flow's start.
    pub limit: u64,
    /// The first octet that the opener can still send.
    pub kept_from: u64,
    /// The destination to connect to.
    pub destination: Destination,
}

/// The start of the acceptor that may have heard an earlier opening of a flow, and connected to the destination for
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearer {
    /// The present start, at most: there was no other since the first opening left.
    Present,
    /// A start before the present one, too.
    Earlier,
    /// The opener has restarted, and does not know.
    Unknown,
    /// A start has answered that it connected.
    Answered,
}

/// The body of an `ACCEPTED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Octets that the acceptor has received in order: the place at which the opener continues.
    pub received: u64,
    /// The limit up to which the opener may send.
    pub limit: u64,
    /// The acceptor's address towards the destination.
    pub bound: SocketAddr,
}

/// The body of a `DELIVERED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Octets that the host acknowledged.
    pub offset: u64,
    /// The limit up to which the other side may send.
    pub limit: u64,
}

/// The body of a `MESSAGE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRecord<'a> {
    /// Counts the flow's messages, modulo 2^32.
    pub number: u32,
    /// Microseconds modulo 2^32 on the sender's clock when it took the message.
    pub stamp: u32,
    /// The index of this part.
    pub index: u8,
    /// The index of the last part.
    pub last: u8,
    /// The part's octets.
    pub octets: &'a [u8],
}
