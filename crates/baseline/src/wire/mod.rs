//! The codecs of the baselines' typed packets to octets and back: the only place that knows where a
//! bit lies.
//!
//! # Promises
//! - Parsing never panics, never allocates and never reads past its slice, whatever the octets.
//! - A packet that parses has one encoding: encoding it again gives the same octets (`fuzz/` tests
//!   this).
//!
//! # Does not
//! - Know a code: parity octets are split off and handed over, never computed here.

pub mod link;
pub mod lt_tcp;
pub mod tcp;
pub mod udp;
