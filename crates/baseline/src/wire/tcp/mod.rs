//! TCP segments: header, options, checksum.
//!
//! The codec knows octets and nothing of connections. It works above any network header:
//! [`AddressPair`] gives the share of IPv4's or IPv6's addresses in the checksum.
//!
//! # Does not
//! - Encode again what it parsed to the same octets: options come in any order, and unknown ones
//!   are skipped. A header that it encoded itself parses to the same header.
//! - Treat urgent data in any way: the pointer is carried, its octets are part of the stream
//!   (RFC 6093).
//!
//! # Sources
//! RFC 9293 (header, MSS, checksum), RFC 7323 (window scale, timestamps), RFC 2018 (SACK),
//! RFC 3168 (ECE, CWR).

mod address;
mod flags;
mod header;
mod options;
mod reject;
mod seq;

pub use address::AddressPair;
pub use flags::TcpFlags;
pub use header::{TCP_HEADER_BYTES, TcpHeader, TcpSegment};
pub use options::{
    SACK_BLOCKS_MAX, SackBlock, SackBlocks, TCP_OPTIONS_MAX, TcpOptions, Timestamps,
};
pub use reject::TcpReject;
pub use seq::TcpSeq;
