//! Transports: the order and the time in which data is sent.
//!
//! [`aerotp`] is the papers' transport in all its modes; [`parts`] are what transports are put together from.

pub mod aerotp;
pub mod parts;
