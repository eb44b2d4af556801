//! A gateway: ordinary TCP and UDP traffic in, AeroTP over a lossy link, ordinary traffic out.
//!
//! ```text
//! clients ─▶ entries ─▶ flows ─▶ Splicer ─▶ Session ─▶ UDP ~~ lossy link ~~ the same, backwards ─▶ exits
//! ```
//!
//! [`config`] is the file, [`Gateway`] the process: one thread that waits in one place only
//! (`net/udp`), with helpers for names and HTTP. The splice (`fulmar_proto::splice`) knows flows, when
//! they may send and what survives which failure; this module moves octets between it and sockets.

mod admission;
mod applicants;
mod association;
mod clients;
mod command;
pub mod config;
mod connect;
pub mod custody;
mod decisions;
mod disk;
mod entry;
mod error;
mod events;
mod exits;
mod flow;
mod flow_record;
mod found_peers;
mod history;
pub mod http;
mod keeping;
mod kept_ports;
mod kernel;
mod messages;
mod metrics;
mod newcomers;
mod outages;
mod own_address;
mod packets;
mod page;
mod peer_names;
mod permission;
mod poller;
mod privileges;
mod proxies;
pub mod registry;
mod reload;
mod repeats;
mod reporting;
mod resolver;
mod restore;
mod running;
mod snapshots;
pub mod socks;
mod start;
mod state_place;
pub mod status;
mod stream;
mod tally;
mod trace;
mod turns;
mod view;

pub use command::Control;
pub use error::GatewayError;
pub use privileges::give_up_privileges;
pub use reload::{Asker, Reload};
pub use start::{End, Gateway, check};
pub(crate) use start::{key_question, peer_address};
pub(crate) use state_place::base as state_base;
