//! The router's side of DLEP (RFC 8175): a modem tells the rates, the delay and the quality of its links.
//!
//! [`wire`] has signals, messages and data items as octets, [`DlepRouter`] the session: discovery, initialization, heartbeats,
//! destinations that come and go, termination. A driver moves octets and tells the time.
//!
//! # Does not
//! - Speak TLS, announce destinations, or ask for link characteristics.
//! - Trust the modem: whatever it sends, what cannot be used is counted, and a modem that breaks the protocol is left.

mod destinations;
mod router;
pub mod wire;

pub use destinations::{DESTINATIONS_MAX, DlepLink};
pub use router::{DlepAction, DlepConfig, DlepCounters, DlepRouter};
