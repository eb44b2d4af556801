//! Recordings and their contents.
//!
//! One program for all of the tests: it is linked once, and a test that waits leaves its core to
//! another.

mod captures;
mod power;
mod recovery;
mod tables;
