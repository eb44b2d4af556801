//! The length of packets on a path, which follows the link where damage is dropped.

use super::super::connection::Connection;
use super::super::schedule::PathSchedule;
use super::AerotpEndpoint;
use crate::damage::{LengthBelief, PacketShape};
use crate::machine::PathId;
use crate::transport::parts::{AttemptFate, AttemptOutcome};
use crate::units::ByteCount;

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
}

impl PathSchedule {
    /// Takes the outcomes of a connection's packets.
    pub(super) fn note_outcomes(&mut self, connection: &mut Connection) {
        let shape = shape_of(connection, self.pacer.wire_bytes(0));
        connection.drain_outcomes(|AttemptOutcome { len, fate, .. }| {
            let octets = len as usize + shape.headers;
            if fate == AttemptFate::ArrivedAfterAll {
                self.lengths.take_back(octets);
            } else {
                let is_lost = fate == AttemptFate::Lost;
                self.lengths.note(shape, octets, is_lost);
            }
        });
    }
}
