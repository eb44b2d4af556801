//! `aerotp-multi-mode`: set-up delay against loss, and all modes against the bit error rate.

mod claims_ber;
mod claims_setup;
mod tables;

pub use tables::MULTI_MODE;
