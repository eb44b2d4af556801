//! SOCKS5 entries (RFC 1928): the messages, and the negotiation before a client's flow begins.

pub mod codec;
mod negotiation;

pub(in crate::gateway) use negotiation::{
    Credentials, Moved, Negotiation, Step, no_address, take_out,
};
