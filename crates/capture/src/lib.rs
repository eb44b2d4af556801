//! A record of a run for people to look at: packets as pcapng, events as JSON lines.
//!
//! ```text
//!  packets --- Pcapng: interface, direction, time, comment ---> a capture that Wireshark opens
//!  events ---- EventLines: one JSON object each --------------> a log that jq reads
//! ```
//!
//! The simulator, the emulator and the gateway write both formats with this crate. A captured packet
//! names the dissector of its octets ([`Dissector`]) in the link type that Wireshark keeps for that
//! (252, "exported PDU"), so that no setting is needed to read them.
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! use fulmar_capture::{Pcapng, Section};
//! let mut file = Vec::new();
//! let mut capture = Pcapng::new(&mut file, &Section::default())?;
//! capture.interface("hop 0", "the lossy link")?;
//! drop(capture);
//! assert_eq!(file[..4], [0x0A, 0x0D, 0x0D, 0x0A], "a section header");
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - No files and no clock: octets go to a [`std::io::Write`], times are arguments.
//! - The same calls give the same octets.
//! - Every block, and every line, is handed over whole, in one call of `write_all`.
//!
//! # Sources
//! pcapng: draft-ietf-opsawg-pcapng-03. Exported PDU: <https://www.tcpdump.org/linktypes.html> and Wireshark's
//! `wsutil/exported_pdu_tlvs.h`. docs/guide/captures.md is the page for users.

mod block;
mod comment;
mod events;
mod gateway_events;
mod pcapng;
mod pdu;

pub use block::{packet_count, whole_octets};
pub use comment::Comment;
pub use events::{About, EVENT_SCHEMA, EventLines, EventPlace, FlowEnd, Started};
pub use gateway_events::{GatewayEvent, TracedCause};
pub use pcapng::{InterfaceId, Packet, PacketDirection, Pcapng, Section};
pub use pdu::{Dissector, PacketEnds};
