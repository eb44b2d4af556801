//! The octets of a session: header, hello, messages. `docs/protocol/session.md` specifies them.

mod armour;
mod arrival_map;
mod damage_report;
mod data_header;
mod further_parity;
mod header;
mod hello;
mod meeting;
mod message;
mod notice;
mod path_ack;
mod question;

#[cfg(test)]
mod samples;

pub(super) use armour::{ARMOURED_HEADER_BYTES, Armoured};
pub(super) use arrival_map::{ARRIVAL_MAP_BYTES, ArrivedCounters, MAP_BYTES_MAX};
pub(super) use damage_report::{CLAIM_BYTES, CLAIMS_MAX, DAMAGE_REPORT_BYTES, DamageReport};
pub(super) use data_header::{DATA_HEADER_BYTES, DataHeader};
pub(super) use further_parity::{FurtherParity, FurtherPart};
pub use header::SESSION_VERSION;
pub(super) use header::{DatagramType, HEADER_BYTES, Header, HeaderReject};
pub use hello::{Capability, HelloError};
pub(super) use hello::{HELLO_BYTES, Hello};
pub(super) use meeting::{Meet, Met, RELAYED_BYTES, Relayed, RelayedWay, RemoteNumber};
pub use message::rewrite_message;
pub(super) use message::{
    FRAGMENT_BYTES, MESSAGE_TYPE_BYTES, Message, PROBE_BYTES, Probe, RELAYED, REPORT_BYTES, Report,
};
pub(super) use notice::Notice;
pub(super) use path_ack::{PATH_ACK_BYTES, PathAck};
pub(super) use question::QUESTION_VERSION;
pub use question::{QUESTION_BYTES, version_answer, version_question};
