//! The measures of a run: the same quantities, by the same definitions, for every transport.
//!
//! [`flow`] compares every delivered octet with what was sent and times it, [`wire`] counts the packets on
//! the links and their losses, [`statistics`] summarises runs. The definitions are those of
//! docs/guide/simulator.md.

pub mod capacity;
pub mod flow;
pub mod link;
pub mod statistics;
pub mod wire;
