//! TCP, from what RFC 793 had to what hosts run today.
//!
//! One machine with real segments; what makes a TCP of 1981, 2005 or today is a setting
//! ([`TcpConfig`]), and the sets that papers and systems use have names ([`Preset`]).
//!
//! | part | what it does |
//! |---|---|
//! | `endpoint` | ports, listeners, resets for strangers; the [`fulmar_proto::machine::Machine`] |
//! | `connection` | RFC 9293's states; translates sequence numbers into positions |
//! | `sender` | what leaves, what is lost, timers (RFC 6298, 6582, 6675, 3042, 5682, 9937, 3168) |
//! | `receiver` | reassembly, window, when to acknowledge (RFC 5681, 2018) |
//! | `scoreboard` | which segments are out, arrived, lost |
//! | `parts::congestion` | the window: RFC 5681, RFC 9438 and 8312, none |
//!
//! # Does not
//! - Pace: a window's segments leave at once.
//! - Keep idle connections alive, fragment, find the path's MTU, open with data (RFC 7413), or tell
//!   duplicates by D-SACK (RFC 2883). Urgent octets are octets.
//! - Detect loss by time (RACK-TLP, RFC 8985).
//!
//! # Sources
//! The RFCs above; RFC 7323 for window scale and timestamps, RFC 5961 for challenges, RFC 9040 for
//! what connections share; `docs/models/tcp.md` for what agrees with ns-3 and what does not.

mod config;
mod connection;
mod endpoint;
mod event;
mod presets;
mod receiver;
mod scoreboard;
mod sender;

pub use crate::congestion::Algorithm;
pub use config::{
    DelayedAcks, Growth, Recovery, ReduceFrom, RtoBounds, RtoRule, Sharing, TcpConfig,
    TcpConfigError,
};
pub use endpoint::{TcpCounters, TcpEndpoint, TcpEndpointConfig, TcpStatus};
pub use event::{
    TcpCloseReason, TcpConnectError, TcpConnectionId, TcpEvent, TcpState, TcpWriteError,
};
pub use presets::Preset;
