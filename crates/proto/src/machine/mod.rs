//! The contract between a protocol and its driver.
//!
//! > Feed a machine one thing (`handle_*`, or an application call), then drain it completely, then
//! > wait for the deadline it names. Time never goes backwards. A machine never fails on input:
//! > what it cannot use it counts, traces and drops.
//!
//! Application calls (`write`, `read`, `close`) are inherent methods of the concrete machine.
//! A driver implements [`MachineDriver`] once and calls [`drain()`], the only drain loop in the project.
//! [`Strict`] wraps a machine and panics when a driver, or the machine, breaks the contract.

mod carried;
mod drain;
mod strict;

pub use carried::{
    AckedWays, ArrivalMap, Carried, PathAck, PathFacts, PathSizes, Sealed, SealedContent, TpduForm,
};
pub use drain::{MachineDriver, drain, drain_between_inputs};
pub use strict::Strict;

use crate::units::Instant;

/// One end of a conversation: owns no clock, socket, thread or entropy source.
pub trait Machine {
    /// The events that the application gets.
    type Event;

    /// A datagram arrived. One that cannot be used is counted and traced; it is never an error.
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>);

    /// The deadline last named by [`Machine::next_deadline`] has come.
    fn handle_deadline(&mut self, now: Instant);

    /// Appends at most one datagram to `out`, exactly [`Transmit::len`] octets; `None` until the
    /// next input or deadline.
    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit>;

    /// The next event for the application.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// The deadline at which to call [`Machine::handle_deadline`], if nothing arrives before.
    /// Meaningful only after a complete drain.
    fn next_deadline(&self) -> Option<Deadline>;
}

/// A way to a remote over one of the driver's sockets: the driver maps it to addresses. Machines
/// only compare it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

impl PathId {
    /// The bit by which a single datagram leaves without checksum. Drivers give no id that has it.
    const UNCHECKED: u32 = 1 << 31;

    /// The first of the ids that no driver gives: a machine's own ways to a remote, which lead through another remote.
    const INSIDE: u32 = 0x7FFF_0000;

    /// A machine's own way of this number: datagrams leave on it inside what goes to another remote. It is never in a [`Transmit`].
    #[must_use]
    pub const fn inside(number: u16) -> Self {
        Self(Self::INSIDE | number as u32)
    }

    /// Whether it is a machine's own way.
    pub const fn is_inside(self) -> bool {
        let (_, id) = self.split_checksum();
        id.0 >= Self::INSIDE
    }

    /// The way to send a single datagram without the checksum by which a network drops what is damaged; where the driver
    /// has no such form, the same way as before.
    #[must_use]
    pub const fn without_checksum(self) -> Self {
        Self(self.0 | Self::UNCHECKED)
    }

    /// Whether a datagram is to leave without checksum, and the id that the driver gave.
    pub const fn split_checksum(self) -> (bool, Self) {
        (
            self.0 & Self::UNCHECKED != 0,
            Self(self.0 & !Self::UNCHECKED),
        )
    }
}

/// The ECN codepoint of the network header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The transport is not ECN-capable.
    #[default]
    NotCapable,
    /// ECN-capable transport: may be marked instead of dropped. ECT(0).
    Capable,
    /// Congestion was experienced.
    Congested,
}

/// An arriving datagram. Its octets may be damaged; only the checks inside them can show it.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The path on which it came.
    pub path: PathId,
    /// The transport's octets, without network and carrier headers.
    pub octets: &'a [u8],
    /// The network header's ECN field.
    pub ecn: Ecn,
}

/// The kind of a datagram: the four shares of wire octets in every report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransmitKind {
    /// Application octets for the first time.
    Source,
    /// Parity across datagrams.
    Repair,
    /// Application octets that are retransmitted.
    Retransmission,
    /// Set-up, acknowledgements, close.
    Control,
}

impl TransmitKind {
    /// All kinds, in report order.
    pub const ALL: [Self; 4] = [
        Self::Source,
        Self::Repair,
        Self::Retransmission,
        Self::Control,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Repair => "repair",
            Self::Retransmission => "retransmission",
            Self::Control => "control",
        }
    }
}

/// A flow's precedence: whatever has a higher number goes first (AeroTP, Section III-D: mission control before
/// bulk telemetry).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u8);

/// A datagram to send: the octets were appended to the buffer given to `poll_transmit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The path to send it on.
    pub path: PathId,
    /// The number of octets appended.
    pub len: usize,
    /// The kind of datagram.
    pub kind: TransmitKind,
    /// The precedence, which the link may use.
    pub priority: Priority,
    /// The value for the network header's ECN field.
    pub ecn: Ecn,
}

/// A point in time at which a machine wants to be woken, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The time.
    pub at: Instant,
    /// The name of the timer, for traces and for [`Strict`].
    pub why: &'static str,
}

impl Deadline {
    /// The earlier of two optional deadlines.
    #[inline]
    pub fn earlier(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}
