//! The splice: flows of ordinary TCP and UDP traffic, carried over AeroTP between two gateways.
//!
//! A [`Splicer`] is the machine that a gateway runs. It owns an AeroTP
//! [`AerotpEndpoint`](crate::transport::aerotp::AerotpEndpoint) and gives every **flow** - one proxied TCP
//! connection, or one UDP association - a connection of its own, in which it speaks a small record
//! protocol: open, data, end, reset, delivered. It holds no socket: a driver moves octets between
//! sockets and flows, and the same splicer runs in the simulator.
//!
//! - A flow with a slow reader stalls neither another flow nor its own control records: data needs
//!   credit, control does not, and arriving octets are always read.
//! - Memory is bounded for each flow and in total. Credit shrinks as flows grow in number; credit
//!   that was given is never taken back.
//! - Octets are delivered in order, once, unaltered. Where a flow may `resume`, that holds across a
//!   lost connection and a restarted peer, as long as the driver keeps the octets that were not
//!   confirmed.
//! - Every flow ends: each of its states has a limit in time.
//!
//! # Words
//! *Opener*: the gateway whose client asked (ingress). *Acceptor*: the gateway that connects to the
//! destination (egress). *Delivered*: acknowledged by the destination's host.
//!
//! # Sources
//! Multi-mode paper, Sections III-B to III-D (gateways, opportunistic set-up, custody). The octets
//! are specified in `docs/protocol/splice.md`. Why: ADR 0008.

mod address;
mod any_flow;
mod association;
mod class;
mod codes;
mod config;
mod counters;
mod credit;
mod datagrams;
mod event;
mod flow;
mod graves;
mod link;
pub mod records;
mod relay;
mod report;
mod restored;
mod retention;
mod shared;
mod spare_buffers;
mod splicer;
mod stream;
mod told_losses;

pub use address::{
    Beyond, BeyondError, Destination, FlowId, FlowKind, Host, HostName, HostNameError,
};
pub use class::{ClassId, FlowClass};
pub use codes::{RefuseCode, ResetCode};
pub use config::{SplicerConfig, SplicerConfigError};
pub use counters::{ClassCounters, SplicerCounters};
pub use event::{FlowEvent, OpenError};
pub use relay::{Acknowledge, RelayStore, RelayTurn, StreamRelay};
pub use report::{MessageTotals, RepairTotals, SpliceReport};
pub use restored::{Restored, Role};
pub use retention::Retention;
pub use splicer::Splicer;
pub use told_losses::{ToldLosses, ToldShare};
