//! AeroTP: one connection machine, seven modes.
//!
//! An [`Endpoint`] is the machine that a driver runs: it owns the connections, shares one rate
//! budget for each path between them by priority, and routes datagrams. What a mode does is a row of the
//! table in `modes`; nothing else asks which mode it is.
//!
//! # Sources
//! Multi-mode paper (Section III: connection management, segment structure, transfer modes),
//! hybrid-ARQ paper (Section III: NACK and NACK+MACK operation), and the resolved ambiguities in
//! spec, sections 1 and 8. The octets are specified in `docs/protocol/aerotp.md`.

mod acknowledger;
mod adaptation;
mod ber_estimate;
mod blocks;
mod config;
mod connection;
mod counters;
mod endpoint;
mod event;
mod intake;
mod modes;
mod patience;
mod receiver;
mod schedule;
mod sender;
mod tombstones;
mod tpdu_shape;

pub use config::{
    AckPolicy, AckStyle, ConfigError, ConnectionConfig, EndpointConfig, HoleWaits, Share, Treatment,
};
pub use counters::Counters;
pub use endpoint::{AddressKey, Endpoint, EndpointCounters, Note, PathSizes};
pub use event::{
    CloseReason, ConnectError, ConnectionId, Event, PathRate, RateReason, State, WriteError,
};
pub use modes::{Acks, ModeRules, Nacks};
pub use tpdu_shape::TpduShape;
