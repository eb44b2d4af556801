//! `aerotp-multi-mode`: set-up against loss, strengths of parity, and all modes against the bit error rate.

mod causes;
mod claims_ber;
mod claims_setup;
mod claims_strength;
mod strength;
mod tables;
mod variants;

pub use tables::MULTI_MODE;
