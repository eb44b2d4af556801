//! A datagram flow's messages on their way: those that wait to be sent, and those in reassembly.
//!
//! A message is sent whole where AeroTP carries a stream, and in parts of one TPDU each where it
//! carries TPDUs. A message older than its class allows is dropped where that is first noticed:
//! before it is sent, or when it arrives.

mod inbox;
mod lateness;
mod outbox;
mod seen;

pub(super) use inbox::Inbox;
pub(super) use outbox::Outbox;

/// The least size that a message counts as, however short: about the memory of its place in a
/// queue.
const COST_MIN: usize = 64;

/// The octets of memory that a message, or a part of one, counts as.
pub(super) fn cost(octets: &[u8]) -> usize {
    octets.len().max(COST_MIN)
}
