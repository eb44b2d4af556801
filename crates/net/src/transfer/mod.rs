//! Files over AeroTP: one end sends, the other receives, and both know for certain how it ended.
//!
//! [`Sender`] and [`Receiver`] are applications for [`crate::udp::UdpDriver`] on an
//! [`AerotpEndpoint`](fulmar_proto::transport::aerotp::AerotpEndpoint). In modes that deliver everything, the
//! file and the records about it share one connection. In the other modes the file goes in messages on a
//! connection (or in datagrams) of its mode, and the records go on a reliable connection beside it.
//! The octets are verified by BLAKE3 at the end. In modes that deliver everything, a transfer continues after
//! either side was killed.
//!
//! # Does not
//! - Authenticate or encrypt: whoever reaches the port may send, unless a session ([`crate::secured`]) is
//!   below.
//!
//! `docs/guide/files.md` is the user's view, with the policy for syncing.

mod coverage;
mod incoming;
mod name;
#[cfg(test)]
mod pair;
mod part;
mod pipe;
mod present;
mod receiver;
mod record;
mod report;
mod sender;
mod source;
mod stop;
mod verified;

pub use coverage::Coverage;
pub use name::{UnsafeName, check_name};
pub use part::StorageError;
pub use receiver::{FileDestination, ReceiveObserver, ReceivePlan, Receiver};
pub use record::{BadRecord, TransferRefusal, rewrite_conversation};
pub use report::{ReceiveError, ReceiveReport, SendError, SendReport, SentSoFar, TransferVerdict};
pub use sender::{SendObserver, SendPlan, Sender};
pub use source::Source;
pub use stop::Stop;

use fulmar_proto::wire::Port;

/// The AeroTP port of the file service, in our own numbering: nothing is registered.
pub const FILE_PORT: Port = Port(4_914);
