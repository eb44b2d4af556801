//! One hop's own repair: plain, ARQ, LL-HARQ, SLACP, each a machine at each end of the hop.
//!
//! ```text
//! network packets    queue (drop-tail or RED)        node
//!                      | next_packet   ^ deliver
//!                    a link machine              [`LinkMachine`]
//!                      | poll_frame    ^ handle_frame
//!                    the medium's transmitter        MAC buffer, channel
//! ```
//!
//! A link machine is pulled from below: its driver asks for a frame when the medium takes one, and
//! takes a packet from the queue above when the machine has no frame to send. So the machine holds
//! at most one packet that was never sent. All other packets wait in the queue above, where a
//! router's marks and drops work.
//!
//! # Promises
//! - A machine takes whole packets and releases whole packets, octet for octet, none twice. Layers
//!   that keep order say so in their promises.
//! - The contract of [`fulmar_proto::machine`]: fed one thing, drained completely by [`drain()`], woken at
//!   the deadline it names. It never fails on input: a frame that it cannot use is counted and dropped.
//! - Memory is bounded by a window; the time for a packet's repair is bounded by the number of
//!   tries.
//!
//! # Does not
//! - Look into packets: whoever offers a packet names its flow and its worth ([`LinkPacket`]).
//! - Know the channel: losses and damage show in checks, gaps and timers.
//!
//! # Sources
//! LT-TCP + LL-HARQ slides; SLACP slides (Kojo et al., FDPW 2005); `docs/models/link.md`.

mod arq;
#[cfg(test)]
mod by_hand;
mod counters;
mod drain;
mod frame_class;
mod harq;
mod layer;
mod medium;
mod packet;
mod parts;
mod plain;
mod slacp;
mod strict;

pub use arq::{Arq, ArqConfig, ArqScheme};
pub use counters::{FrameCounts, LinkCounters};
pub use drain::{LinkDriver, drain};
pub use frame_class::FrameClass;
pub use harq::{HarqConfig, LlHarq};
pub use layer::{AnyLink, LinkLayer};
pub use medium::Medium;
pub use packet::{FlowHash, FrameTransmit, LinkMachine, LinkPacket};
pub use plain::Plain;
pub use slacp::{LaneClass, LaneSettings, Slacp, SlacpConfig, SlacpConfigError};
pub use strict::StrictLink;
