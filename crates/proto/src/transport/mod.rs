//! Who sends what, and when.
//!
//! [`aerotp`] is the papers' transport in all its modes; [`parts`] are what transports are put together from.

pub mod aerotp;
pub mod parts;
