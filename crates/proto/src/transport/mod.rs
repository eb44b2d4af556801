//! Transports: the order and the time in which data is sent.
//!
//! [`aerotp`] is the papers' transport in all its modes; [`parts`] has the parts that transports are built from.

pub mod aerotp;
pub mod parts;
