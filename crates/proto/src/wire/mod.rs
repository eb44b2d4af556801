//! The codecs from typed packets to octets and back: the only place that knows where a bit lies.
//!
//! A machine speaks in [`aerotp::Outgoing`], [`aerotp::Tpdu`], [`aerotp::Mack`] and
//! [`aerotp::Nack`]; this module gives them their octets, checks what arrives, and names the reason
//! when it cannot be used ([`aerotp::Reject`]).
//!
//! # Promises
//! - Parsing never panics, never allocates and never reads past its slice, whatever the octets.
//! - A packet that parses has one encoding: encoding it again gives the same octets (`fuzz/` tests
//!   this). The short form's lists may be written longer than need be; they come back with the same numbers.
//! - Sequence numbers wrap and have no `<` ([`TpduSeq`]).
//!
//! # Does not
//! - Know a code: parity octets are split off and handed over, never computed here.
//! - Judge a sequence number: whether it is new, old or absurd is for the machine to decide.
//!
//! [`network`] is the lab's header below AeroTP: the simulator puts the same octets on
//! its links as a real path would, so overhead counts and damage hits headers too.
//!
//! # Sources
//! `docs/protocol/aerotp.md` is the format as a specification; ADR-0002 and ADR-0003 say why.

pub mod aerotp;
pub mod checksum;
pub mod cut;
mod mode;
pub mod network;
mod port;
mod seq;
pub mod varint;

pub use mode::{Mode, UnknownMode};
pub use port::Port;
pub use seq::TpduSeq;
