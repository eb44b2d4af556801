//! The measuring of a path with a flow of numbered, timed messages, as `fulmar perf` does at both ends.
//!
//! [`Client`] and [`PerfServer`] are applications for [`crate::udp::UdpDriver`] on an
//! [`AerotpEndpoint`](fulmar_proto::transport::aerotp::AerotpEndpoint). Their records go on a reliable connection.
//! The messages go on connections of the mode under test, one for each stream, in either direction. The end that
//! receives them measures, and both ends get the figures.
//!
//! # Promises
//! - One test runs at a time; a second client is told so. Only the list of intervals that the client keeps grows with
//!   a test's length.
//! - A server sends nothing but answers before its client has repeated a number that only a receiver at
//!   that address can know: nobody can point a flow at somebody else.
//! - A delay is the time between handing a message over and its whole arrival, by clocks whose
//!   difference was measured ([`ClockOffset`] tells how, and its largest error).
//!
//! # Does not
//! - Authenticate: whoever reaches the port may measure, at the server's rate at most, unless a session
//!   ([`crate::secured`]) is below.

mod client;
mod clocks;
mod figures;
mod flows;
mod incoming;
mod message;
mod meter;
mod outgoing;
mod record;
mod report;
mod server;
mod sounding;
mod streams;
mod test;

#[cfg(test)]
pub(crate) mod pair;
#[cfg(test)]
mod samples;

pub use client::{Client, ClientPlan};
pub use clocks::ClockOffset;
pub use figures::{Interval, Measured, Outcome, Sent, Spread};
pub use record::BadPerfRecord;
pub use report::{PerfError, PerfReport};
pub use server::{PerfServer, ServerPlan};
pub use test::{Limit, STREAMS_MAX, Test, TestDirection};

use fulmar_proto::wire::Port;

/// The AeroTP port of the conversation, in our own numbering: nothing is registered.
pub const PERF_PORT: Port = Port(4_915);
/// The AeroTP port of the first stream's messages; the others' follow.
pub const PERF_DATA_PORT: Port = Port(5_120);
/// The AeroTP port of soundings, at which nobody listens.
pub const PERF_SOUNDING_PORT: Port = Port(4_916);

/// Someone who watches a test.
pub trait Observer {
    /// So much arrived in an interval.
    fn interval(&mut self, _test: &Test, _interval: &Interval) {}
    /// A server begins a test.
    fn began(&mut self, _test: &Test) {}
    /// A server has sent the messages of a test, so many of each stream. The client knows how many arrived.
    fn sent(&mut self, _streams: &[Sent]) {}
    /// A server has measured, or a test ended before its time.
    fn ended(&mut self, _outcome: &Result<PerfReport, PerfError>) {}
}

impl Observer for () {}
