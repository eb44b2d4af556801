//! Who sends what, and when.
//!
//! [`aerotp`] is the papers' transport in all its modes; [`datagram`] is UDP's stand-in, the
//! baseline of every comparison; [`tcp`] is the TCP family and [`lt_tcp`] the loss-tolerant one; `parts` are what transports are put together from.

pub mod aerotp;
pub mod datagram;
pub mod lt_tcp;
pub mod parts;
pub mod tcp;
