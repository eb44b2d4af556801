//! Recordings and what is found in them.
//!
//! One program for all of them: it is linked once, and one that waits leaves its core to another.

mod captures;
mod power;
mod recovery;
mod tables;
