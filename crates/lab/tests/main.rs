//! The crate's integration tests: each file is a module.

mod parts;
mod tables;
