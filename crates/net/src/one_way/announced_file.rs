//! A file of which the sender has told.

use super::heard::STREAMS_MAX;
use super::held::HeldUnits;
use super::request::{Asking, Needs};
use super::seal::StreamId;
use super::wire::Announcement;
use fulmar_proto::units::Instant;
use std::collections::BTreeSet;

/// A file that is being received.
#[derive(Clone, Debug)]
pub struct AnnouncedFile {
    pub(super) announcement: Announcement,
    pub(super) held: HeldUnits,
    pub(super) streams: BTreeSet<StreamId>,
    pub(super) ended: BTreeSet<StreamId>,
    pub(super) heard_at: Instant,
    pub(super) is_whole: bool,
    pub(super) asking: Option<Asking>,
}

impl AnnouncedFile {
    /// The sender's word on it.
    pub const fn announcement(&self) -> &Announcement {
        &self.announcement
    }

    /// The units that each block lacks.
    pub(super) fn needs(&self) -> Needs {
        let needs = self.held.needs();
        // A block has 16,384 sources at most.
        let needs =
            needs.map(|(block, _, missing, _)| (block, u16::try_from(missing).unwrap_or(u16::MAX)));
        needs.collect()
    }

    /// Units that are still needed.
    pub const fn missing(&self) -> u64 {
        self.held.missing()
    }

    pub(super) fn note(&mut self, now: Instant, stream: StreamId) {
        self.heard_at = now;
        if self.streams.len() < STREAMS_MAX {
            self.streams.insert(stream);
        }
    }

    /// The time at which something of it came last.
    pub const fn heard_at(&self) -> Instant {
        self.heard_at
    }
}
