//! SOCKS5 entries (RFC 1928): the messages, and what a client says before its flow begins.

pub mod codec;
mod negotiation;

pub(super) use negotiation::{Credentials, Moved, Negotiation, Step, no_address, take_out};
