//! `aerotp-multi-mode`: set-up against loss, strengths of parity, aggregation of acknowledgements, and all
//! modes against the bit error rate, under every reading of the conditions that the paper leaves open.

pub(crate) mod absent;
pub(crate) mod causes;
mod claims_ber;
mod claims_design;
pub(crate) mod claims_drawbacks;
mod claims_saturation;
mod claims_setup;
mod claims_strength;
pub(crate) mod design;
mod features;
mod mack;
mod overlays;
mod readings;
mod slots;
mod strength;
mod tables;
mod variants;

pub use tables::MULTI_MODE;
