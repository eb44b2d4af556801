//! The crate's integration tests: each file is a module.

mod crossings;
mod parts;
mod replay;
mod tables;
