//! A gateway: ordinary TCP and UDP traffic in, AeroTP over a lossy link, ordinary traffic out. Tunnels carry any other
//! protocol, packet by packet.
//!
//! ```text
//! clients ─▶ entries ─▶ flows ─▶ Splicer ─▶ Session ─▶ UDP ~~ lossy link ~~ the same, backwards ─▶ exits
//! ```
//!
//! [`config`] is the file, [`Gateway`] the process: one thread that waits in one place only
//! (`net/udp`), with helpers for names and HTTP. The splice (`fulmar_proto::splice`) knows flows, when
//! they may send and what survives which failure; this module moves octets between it and sockets.
//!
//! It has rooms, each with an owner of its state, which the loop holds and gives its turn
//! (`docs/adr/0028-rooms-of-the-gateway.md`). A room knows those to its right only:
//!
//! ```text
//! running -> entries -> flows -> sockets
//!         -> exits   -> flows
//!         -> tunnels -> flows
//!         -> peers            -> sockets
//!         -> links   -> peers, sockets
//!         -> watch   -> flows, peers, tunnels, links
//! ```

mod carriers;
mod command;
pub mod config;
mod entries;
mod error;
mod exits;
mod flows;
mod link;
mod links;
mod peers;
mod privileges;
mod reload;
mod repeats;
mod running;
mod sockets;
mod start;
mod takeover;
mod tunnels;
mod watch;

use crate::session::Session;
use fulmar_proto::splice::Splicer;

pub use command::Control;
pub(crate) use config::state_place::base as state_base;
pub use entries::socks;
pub use error::GatewayError;
pub use flows::custody;
pub(crate) use link::{key_question, peer_address};
pub use links::ScheduleError;
pub(crate) use peers::path_missing;
pub use privileges::give_up_privileges;
pub use reload::{Asker, Reload};
pub(crate) use sockets::listed as own_addresses;
pub use start::{End, Gateway, check};
pub use watch::{http, registry, status, verdict};

/// The machine that a gateway runs.
type Link = Session<Splicer>;
