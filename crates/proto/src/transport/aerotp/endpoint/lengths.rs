//! Loss on a path as its packets' fates tell it: the length that follows where damage is dropped, and the causes.

use super::super::connection::Connection;
use super::super::schedule::PathSchedule;
use super::AerotpEndpoint;
use super::bonds::Bond;
use crate::damage::{LengthBelief, LossByCause, PacketShape};
use crate::machine::PathId;
use crate::transport::parts::{AttemptFate, AttemptOutcome};
use crate::units::{ByteCount, Instant};
use std::collections::BTreeMap;

/// The sizes of a connection's packets of data, where so many octets are added below.
pub(super) fn shape_of(connection: &Connection, lower_overhead: ByteCount) -> PacketShape {
    let full = connection.tpdu_bytes_max() + lower_overhead.as_usize();
    PacketShape {
        full,
        headers: full.saturating_sub(connection.payload_bytes()),
    }
}

impl AerotpEndpoint {
    /// The loss found on a path by the length of packets, and the length that follows from it; `None` before anything was
    /// lost, or where lengths do not follow the link.
    pub fn path_length(&self, path: PathId) -> Option<LengthBelief> {
        self.paths.get(&path)?.lengths.belief()
    }

    /// The losses of streams on a path, by cause; `None` before the first, or where lengths do not follow the link.
    pub fn path_losses(&self, path: PathId) -> Option<LossByCause> {
        self.paths.get(&path)?.causes.by_cause()
    }

    /// Counts the losses of what leaves on a path from now on apart from those before, which went over another link.
    pub fn on_other_link(&mut self, now: Instant, path: PathId) {
        if let Some(path) = self.paths.get_mut(&path) {
            path.causes.begin_anew(now);
        }
    }

    /// A number that changes whenever [`AerotpEndpoint::path_losses`] may have.
    pub fn path_outcomes(&self, path: PathId) -> u64 {
        self.paths
            .get(&path)
            .map_or(0, |path| path.causes.outcomes())
    }
}

impl PathSchedule {
    /// Takes the outcomes of a connection's packets, as they were told now.
    pub(super) fn note_outcomes(&mut self, now: Instant, connection: &mut Connection) {
        let shape = shape_of(connection, self.pacer.wire_bytes(0));
        connection.drain_outcomes(|outcome| {
            self.note_length(&outcome, shape);
            self.note_cause(now, &outcome, shape);
        });
        self.ask_lengths(connection);
    }

    fn note_length(&mut self, outcome: &AttemptOutcome, shape: PacketShape) {
        let octets = outcome.len as usize + shape.headers;
        if !outcome.is_single {
            return;
        }
        if outcome.fate == AttemptFate::ArrivedAfterAll {
            self.lengths.take_back(octets);
        } else {
            let is_lost = outcome.fate == AttemptFate::Lost;
            self.lengths.note(shape, octets, is_lost);
        }
    }

    fn note_cause(&mut self, now: Instant, outcome: &AttemptOutcome, shape: PacketShape) {
        let (at, octets) = (outcome.at, outcome.len as usize + shape.headers);
        if !outcome.is_single {
            self.causes.note_repeated(now, at, outcome.times);
        } else if outcome.fate == AttemptFate::ArrivedAfterAll {
            self.causes.take_back(at, octets);
        } else {
            let is_lost = outcome.fate == AttemptFate::Lost;
            self.causes.note(now, at, octets, is_lost);
        }
    }

    fn ask_lengths(&mut self, connection: &Connection) {
        // A window counts packets: where it may soon hold the flow up, short ones would take the place of full ones.
        self.lengths
            .ask(self.causes.is_unclear() && connection.has_window_to_spare());
    }
}

/// Takes the outcomes of the packets of a connection that leave on several paths: each path has losses of its own, and the length
/// of packets follows what all of them lose.
pub(super) fn note_outcomes_in(
    now: Instant,
    connection: &mut Connection,
    (bond, paths): (&Bond, &mut BTreeMap<PathId, PathSchedule>),
) {
    let home = connection.key().path;
    let Some(schedule) = paths.get(&home) else {
        return;
    };
    let shape = shape_of(connection, schedule.pacer.wire_bytes(0));
    connection.drain_outcomes(|outcome| {
        if let Some(schedule) = paths.get_mut(&home) {
            schedule.note_length(&outcome, shape);
        }
        // A path that was parted has lost what was under way on it.
        let path = bond.path_in(outcome.path);
        if let Some(schedule) = path.and_then(|path| paths.get_mut(&path)) {
            schedule.note_cause(now, &outcome, shape);
        }
    });
    if let Some(schedule) = paths.get_mut(&home) {
        schedule.ask_lengths(connection);
    }
}
