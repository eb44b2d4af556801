//! Comparison of adaptive transport-layer error control: AeroTP with ARQ, FEC and both.

mod claims_aggregation;
mod claims_delivery;
mod claims_design;
mod claims_modes;
mod experiments;
mod reading;
mod tables;

pub use tables::HYBRID;
