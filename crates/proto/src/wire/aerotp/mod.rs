//! AeroTP's TPDUs: a 16-octet header under a CRC-16, descriptor words, a body, CRC-32, parity.
//!
//! ```text
//!  header 16 | FEC word 0/4 | block word 0/4 | body | CRC-32 0/4 | parity 4 w
//!  '------------- HEC -----------------------'                   |
//!  '---------------------------- CRC-32 ------------'            |
//!  '---------------------------- FEC ----------------------------'
//! ```
//!
//! Sending: [`encode`] appends everything up to the CRC-32 and the caller appends the parity; the
//! acknowledgements have their own encoder, [`Feedback`]. Receiving: [`parse`] checks the header,
//! splits the rest and says whether the body is intact; [`Tpdu::kind`] gives its kind, and
//! [`Mack::of`] and [`Nack::of`] read the lists.
//!
//! A damaged body is not an error: the header tells which connection it belongs to, and parity may
//! repair it. Repair [`Tpdu::covered`] with [`Tpdu::parity`], then [`parse`] the repaired octets
//! again. A damaged header is an error, but a receiver that knows the strength in use can repair
//! that too: [`split_parity`].
//!
//! Inside a session whose both ends speak version 2, TPDUs have a form of fewer octets: [`short`].
//!
//! # Sources
//! `docs/protocol/aerotp.md`; AeroTP multi-mode, Section III-B; AeroTP hybrid ARQ, Section IV-E.

mod channel_word;
mod descriptor;
mod feedback;
mod header;
mod kind;
mod mack;
mod nack;
mod overhead;
mod path_report;
mod reject;
mod seq_list;
pub mod short;
mod tpdu;
mod window_descriptor;

#[cfg(test)]
mod damage;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

pub use crate::units::FecStrength;
pub use channel_word::{ChannelWord, RateCode};
pub use descriptor::BlockDescriptor;
pub use feedback::{CumulativeWords, Feedback, Handshake};
pub use header::{EcnField, Flags, Header};
pub use kind::TpduKind;
pub use mack::{Acks, HoldTime, Mack, ReceiverWord};
pub use nack::{Nack, NackCause};
pub use overhead::{
    CHANNEL_NUMBERS, CRC_BYTES, CUMULATIVE_NUMBERS_MAX, DESCRIPTOR_BYTES, HEADER_BYTES,
    LISTED_NUMBERS_MAX, REPORT_NUMBERS, cumulative_numbers_max, listed_numbers_max, payload_max,
};
pub use path_report::PathReport;
pub use reject::Reject;
pub use seq_list::SeqList;
pub use tpdu::{BodyCheck, Outgoing, Tpdu, encode, parse, split_parity};
pub use window_descriptor::WindowDescriptor;
