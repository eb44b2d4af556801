//! Files over links without a way back: a diode, a broadcast, radio silence.
//!
//! [`OneWaySender`] sends sources and repair symbols of long blocks ([`fulmar_proto::fec::long_block`]) at a told rate, as many as
//! a promise takes ([`units_to_send`]), once, in rounds or for ever. [`OneWayReceiver`] collects them and sends nothing. Both are
//! machines without sockets or files. [`OneWaySending`] and [`OneWayReceiving`] are the applications around them, for
//! [`crate::udp::UdpDriver`].
//!
//! Over a thin way back that all receivers share, few of them ask, and what is sent mends different losses at once ([`ThinReturn`],
//! [`OneWayReturn`]).
//!
//! # Promises
//! - Without a way back the receiver's machine has nothing to transmit, whatever arrives.
//! - No two datagrams are sealed under one key and nonce, over all starts, crashes and losses of the state ([`CounterFile`]).
//! - A datagram that is forged, cut, damaged or heard before changes nothing but a counter. After a kill "before" ends with the last
//!   checkpoint.
//! - Everything in memory is bounded: senders, files, symbols of files that were not announced yet. The sender or file that was heard
//!   longest ago makes room. Logs of files that never came whole stay on the disk.
//! - A file gets its name complete and verified by BLAKE3 only. After a kill, a power loss or a full disk its symbols are gone on with.
//!
//! # Does not
//! - Tell one holder of the key from another: whoever has it may send.
//! - Find the rate, or share it.
//!
//! ADR 0040 has the reasons, `docs/guide/one-way.md` is the user's view, `docs/protocol/one-way.md` has the octets.

mod announced_file;
mod assembly;
mod counters;
mod digest;
mod disk_worker;
mod file_work;
mod heard;
mod held;
mod layout;
mod news;
mod promise;
mod receiver;
mod receiving;
mod remembered;
mod report;
mod request;
#[cfg(test)]
mod samples;
mod schedule;
mod seal;
mod sender;
mod sending;
mod symbol_log;
mod symbols;
#[cfg(test)]
mod test_file;
mod wire;

pub use announced_file::AnnouncedFile;
pub use counters::{CounterFile, CounterFileError, counters_directory};
pub use digest::file_digest;
pub use layout::{FileLayout, LayoutError};
pub use news::{OneWayNews, OneWayReceivePlan, OneWayVerdict, ThinReturnPlan};
pub use promise::{sends_for_overhead, sends_for_promise, units_to_send};
pub use receiver::{OneWayEvent, OneWayReceiver, OneWayReturn};
pub use receiving::OneWayReceiving;
pub use report::{
    BlockReport, OneWayNameError, OneWayReport, OneWayReportError, REPORT_SUFFIX,
    check_one_way_name, sends_for_reports, symbol_bytes_in,
};
pub use request::rewrite_content;
pub use schedule::BlockSends;
pub use seal::{OneWayCounters, OneWayOpener, OneWayRefusal, OneWaySeal, StreamId};
pub use sender::{OneWayPlan, OneWaySendEvent, OneWaySender, OneWaySent, ThinReturn};
pub use sending::{OneWaySendError, OneWaySending};
pub use symbols::{FileSymbols, SymbolSource};
pub use wire::{Announcement, FileTag, Invitation, ONE_WAY_OVERHEAD, OneWayPromise};
