//! Results: one record for each run, one for each point, and their forms as NDJSON, CSV and table
//! rows.
//!
//! [`record`] has the fields; their meanings are in docs/guide/simulator.md.

pub mod adaptation;
pub mod aggregate;
pub mod column;
pub mod csv;
pub mod graph;
pub mod link;
pub mod record;
