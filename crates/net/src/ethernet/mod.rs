//! Ethernet frames of a type of our own, for links that deliver damaged frames (`AF_PACKET`).
//!
//! A frame's payload is one octet, the number of octets of padding at its end, and a datagram. Frames have at least 46
//! octets of payload, which the sender sees to itself: nobody behind it then adds padding that the receiver would take
//! for a part of the datagram.
//!
//! ```text
//!  | destination 6 | source 6 | 0x88B5 | padding count 1 | datagram | padding 0 to 45 | frame check |
//! ```
//!
//! # Does not
//! - Hear frames that the device drops for their frame check: a device for this passes them, as radios may, and as
//!   `veth` and TAP do, which have none.

mod neighbour;
mod port;

pub use neighbour::Neighbour;
pub use port::{EthernetPort, device_index};
