//! The protocols that AeroTP is compared with, as sans-IO state machines like those of `fulmar-proto`.
//!
//! | module | content |
//! |---|---|
//! | [`tcp`] | the TCP family: Reno, `NewReno`, SACK, CUBIC |
//! | [`lt_tcp`] | loss-tolerant TCP |
//! | [`datagram`] | UDP |
//! | [`link`] | error control on one link: plain, stop-and-wait, go-back-N, selective repeat, LL-ARQ, LL-HARQ, SLACP |
//! | [`wire`] | their packets' octets |
//!
//! The laboratory runs them in its simulated networks. Nothing that is deployed depends on this
//! crate.

mod congestion;
pub mod datagram;
pub mod link;
pub mod lt_tcp;
mod stream;
pub mod tcp;
pub mod wire;

pub use stream::StreamEndpoint;
