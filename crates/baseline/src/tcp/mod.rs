//! TCP, from RFC 793 to the versions that hosts run today.
//!
//! There is one machine with real segments. Settings ([`TcpConfig`]) make it a TCP of 1981, 2005 or
//! today, and the sets that papers and systems use have names ([`TcpPreset`]).
//!
//! | part | work |
//! |---|---|
//! | `endpoint` | ports, listeners, resets for strangers; the [`fulmar_proto::machine::Machine`] |
//! | `connection` | RFC 9293's states; translates sequence numbers into positions |
//! | `sender` | segments to send, losses, timers (RFC 6298, 6582, 6675, 3042, 5682, 9937, 3168) |
//! | `receiver` | reassembly, window, the time of acknowledgements (RFC 5681, 2018) |
//! | `scoreboard` | segments in flight, arrived, lost |
//! | `crate::congestion` | the window: RFC 5681, RFC 9438 and 8312, none |
//!
//! # Does not
//! - Pace: a window's segments leave at once.
//! - Keep idle connections alive, fragment, find the path's MTU, open with data (RFC 7413), or tell
//!   duplicates by D-SACK (RFC 2883). Urgent octets are octets.
//! - Detect loss by time (RACK-TLP, RFC 8985).
//!
//! # Sources
//! The RFCs above; RFC 7323 for window scale and timestamps, RFC 5961 for challenges, RFC 9040 for
//! values that connections share; `docs/models/tcp.md` for the agreement with ns-3 and its limits.

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
    DelayedAcks, Growth, RecoveryRules, ReduceFrom, RtoBounds, RtoRule, Sharing, TcpConfig,
    TcpConfigError, TcpEndpointConfig,
};
pub use endpoint::{TcpCounters, TcpEndpoint, TcpStatus};
pub use event::{
    TcpCloseReason, TcpConnectError, TcpConnectionId, TcpEvent, TcpState, TcpWriteError,
};
pub use presets::TcpPreset;
