//! AeroTP: one connection machine, seven modes.
//!
//! An [`AerotpEndpoint`] is the machine that a driver runs: it owns the connections, shares one rate budget
//! for each path between them by priority, and routes datagrams. A mode's behaviour is a row of the
//! table in `modes`; no other code asks for the mode.
//!
//! # Sources
//! Multi-mode paper (Section III: connection management, segment structure, transfer modes) and
//! hybrid-ARQ paper (Section III: NACK and NACK+MACK operation). The octets are specified in
//! `docs/protocol/aerotp.md`; `docs/models/aerotp.md` has the choices where the papers are silent.

mod acknowledger;
mod adaptation;
mod answer;
mod blocks;
mod config;
mod config_error;
mod connection;
mod counters;
mod endpoint;
mod event;
mod intake;
mod key;
mod modes;
mod packing;
mod path_answers;
mod path_control;
mod patience;
mod prompt_answers;
mod rate_source;
mod receiver;
mod schedule;
mod sender;
mod thin_repair;
mod tombstones;
mod tpdu_shape;
mod window_repair;

pub use config::{
    AckPolicy, AckStyle, ConnectionConfig, EndpointConfig, HoleWaits, Share, Treatment,
};
pub use config_error::ConfigError;
pub use counters::Counters;
pub use endpoint::{
    AddressKey, AerotpEndpoint, EndpointCounters, Note, RepairChange, SettledCounts,
};
pub use event::{
    CloseReason, ConnectError, ConnectionId, Event, PathRate, RateReason, State, WriteError,
};
pub use modes::{AckScheme, ModeRules, Nacks};
pub use rate_source::{RateSource, SHARINGS};
pub use thin_repair::ThinRepair;
pub use tpdu_shape::TpduShape;
