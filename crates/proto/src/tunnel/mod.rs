//! IP packets that a tunnel carries between two gateways: their flows, their queue, their marks.
//!
//! [`InnerPacket`] reads as much of a packet as its way through the tunnel depends on, [`FlowBucket`] says which packets
//! keep their order among each other, [`Codel`] keeps the queue before the link short, [`mark_packet`] and [`limit_mss`]
//! change what a router may change. Nothing here holds a device.
//!
//! # Sources
//! RFC 791 and 8200 (headers), RFC 8289 (`CoDel`), RFC 3168 (marks), RFC 6691 and 9293 (the maximum segment size),
//! RFC 1624 (checksums brought up to date). Why: ADR 0036.

mod codel;
mod ecn;
mod flow_bucket;
mod inner_packet;
mod segment_size;

pub use codel::{Codel, CodelVerdict};
pub use ecn::{ecn_of, mark_arrived, mark_packet};
pub use flow_bucket::{FLOW_BUCKETS, FlowBucket};
pub use inner_packet::InnerPacket;
pub use segment_size::limit_mss;
