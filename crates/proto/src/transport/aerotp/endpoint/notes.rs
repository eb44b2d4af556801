//! Notes of the connections, in one bounded queue that outlives them.

use crate::machine::PathId;
use crate::trace::TraceRecord;
use crate::transport::aerotp::connection::Connection;
use crate::transport::aerotp::event::ConnectionId;
use crate::units::Instant;
use std::collections::VecDeque;

/// An event that a connection noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The time of the event.
    pub at: Instant,
    /// The connection.
    pub connection: ConnectionId,
    /// The path to its peer.
    pub path: PathId,
    /// The class of its [`Share`](crate::transport::aerotp::Share).
    pub class: u8,
    /// The label that [`AerotpEndpoint::label`](super::AerotpEndpoint::label) gave it.
    pub label: Option<u64>,
    /// The event.
    pub record: TraceRecord,
}

/// The notes that nobody has taken yet.
#[derive(Debug)]
pub(super) struct Notes {
    queue: VecDeque<Note>,
    capacity: usize,
    missed: u64,
}

impl Notes {
    pub(super) const fn bounded(capacity: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            capacity,
            missed: 0,
        }
    }

    /// Takes over the notes that a connection made since the last time.
    pub(super) fn collect(&mut self, connection: &mut Connection, label: Option<u64>) {
        if self.capacity == 0 {
            return;
        }
        let (path, class) = (connection.key().path, connection.share().class);
        let id = connection.id();
        let trace = connection.trace_mut();
        self.missed += trace.take_dropped();
        while let Some((at, record)) = trace.take() {
            if self.queue.len() >= self.capacity {
                self.missed += 1;
                continue;
            }
            self.queue.push_back(Note {
                at,
                connection: id,
                path,
                class,
                label,
                record,
            });
        }
    }

    pub(super) fn take(&mut self) -> Option<Note> {
        self.queue.pop_front()
    }

    pub(super) const fn take_missed(&mut self) -> u64 {
        core::mem::replace(&mut self.missed, 0)
    }
}
