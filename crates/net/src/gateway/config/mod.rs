//! A gateway's configuration: one TOML file for each side.
//!
//! [`GatewayConfig::read`] turns the file into checked values, or into one error that names file, line,
//! field and remedy. [`explain`] says it back in words. [`change`] lists what a reload may change.
//! [`rules`] prints the kernel's rules for transparent entries, [`commands`] those that make tunnels' devices. [`mod@reference`] has the words on every key, for `docs/guide/gateway.md` and the manual page.

mod carrier;
pub mod change;
mod class;
pub mod commands;
pub mod explain;
mod far_peer;
mod files;
mod keys;
mod link;
mod meeting;
mod notation;
mod own_entries;
mod path;
mod permission;
mod read;
mod read_entries;
pub mod reference;
pub mod rules;
mod settings;
pub(super) mod state_place;
mod thin;

pub use carrier::CarrierChoice;
pub use class::{ClassRules, ClassSettings, CustodyPlace, DEFAULT_CLASS};
pub(super) use keys::{Keys, read_keys};
pub use notation::{Allow, Dscp, Listen, NotationError, Place, Ports, reachable};
pub use path::PathSettings;
pub use read::RECORDING_MAX;
#[cfg(test)]
pub(super) use settings::PEER_NAME_BYTES_MAX;
pub use settings::{
    CustodySettings, Egress, EntryProtocol, FarPeer, Forward, GatewayConfig, GatewayRoute, Limits,
    LinkSource, LogLevel, MeetingSettings, PeerSettings, SecurityKind, Socks, SocksLogin,
    ToldLinkSettings, Transparent, TunnelSettings,
};
