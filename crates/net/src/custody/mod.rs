//! Custody on disk: a client's octets kept until the destination's host has them, across `kill -9`
//! and a restart.
//!
//! A [`Store`] is a directory that one process holds. Each flow has a [`FlowStore`] in it, which
//! grows at its end as the client sends and is released at its start as the destination
//! acknowledges.
//!
//! # Promises
//! - Octets that [`FlowStore::append`] took survive the death of the process: `pwrite` has returned. The
//!   [`SyncPolicy`] bounds what a power cut may take. No policy syncs on the caller's thread.
//! - Bounded: at its limit, or on a full disk, it takes nothing, says so once, and goes on when there
//!   is room. Releasing, finishing and forgetting need no space.
//! - The octets that come back are those that were appended, checked by CRC-32. Damage ends the flow that it hit,
//!   after the octets before it, and no other flow. It is never a panic, and keeps no store from opening.
//! - Damaged files are not deleted but set aside, up to a bound.
//! - Any call to the disk may fail, or write a part, at any time: the appended octets are still there, or
//!   the flow reports a fault.
//! - A flow is finished only if its end was recorded. A flow without an end reads as a connection that broke.
//! - A directory or file that others may have written is refused.
//!
//! # Does not
//! - Hide the octets: the files are readable by the owner only and not encrypted.
//! - Know flows: a flow's record is the driver's.
//!
//! # Files
//! `store` names the format and carries the lock. A flow lies in segments
//! `<flow>-<offset of its first octet>.segment`: a header in two slots, written in turn, then
//! records, appended. A segment is deleted when all of it is released; a damaged segment is moved to
//! `damaged/`. `trial` is there while a full disk is tried. ADR 0009 gives the reasons for files of our own and no database, ADR 0020 those for their
//! form, and the tests with a disk that fails.

mod aside;
mod directory;
mod disk;
mod error;
mod extent;
mod flow;
mod notice;
mod recovery;
mod room_look;
mod segment;
mod segment_file;
mod space;
mod store;
mod sync;

#[cfg(test)]
pub(crate) mod faults;

pub use error::{FlowFault, StoreError};
pub use flow::FlowStore;
pub use notice::StoreNotice;
pub use recovery::{Damaged, Recovered, Recovery};
pub use segment::RECORD_BYTES_MAX;
pub use store::{Claim, Store, StoreConfig};
pub use sync::SyncPolicy;
