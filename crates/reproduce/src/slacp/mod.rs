//! SLACP under TCP over a satellite return link (Kojo, FDPW 2005, slides).

mod cells;
mod claims_dama;
mod claims_slacp;
mod claims_tcp;
mod cures;
mod experiments;
mod lanes;
mod single;
mod tables;

pub use tables::SLACP;
