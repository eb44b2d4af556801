//! A datagram flow's messages on their way: what waits to be sent, what is being put together.
//!
//! A message is sent whole where AeroTP carries a stream, and in parts of one TPDU each where it
//! carries TPDUs. One that is older than its class allows is dropped at the first of two places to
//! notice: before it is sent, or when it arrives.

mod inbox;
mod lateness;
mod outbox;
mod seen;

pub(super) use inbox::Inbox;
pub(super) use outbox::Outbox;

/// What a message counts as at least, however short: about what its place in a queue takes.
const COST_MIN: usize = 64;

/// Octets of memory that a message, or a part of one, is counted as.
fn cost(octets: &[u8]) -> usize {
    octets.len().max(COST_MIN)
}
