//! Questions to an endpoint that do not change it.

use super::{AerotpEndpoint, Entry};
use crate::machine::PathId;
use crate::transport::aerotp::connection::Connection;
use crate::transport::aerotp::{ConnectionId, Counters, PathRate, State};
use crate::units::{ByteCount, Duration, Instant};
use std::collections::BTreeMap;

/// Counters of datagrams that arrived and could not be used, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounters {
    /// Datagrams, or frames in the short form, that do not parse, including those with damaged headers.
    pub rejected: u64,
    /// Datagrams with damaged headers, which `rejected` counts too.
    pub rejected_header_check: u64,
    /// TPDUs for no connection and no listener, and those under a name that no connection has.
    pub strangers: u64,
    /// TPDUs that would have opened a connection beyond the limit.
    pub refused: u64,
    /// Strangers' TPDUs that were answered by a challenge.
    pub challenged: u64,
    /// TPDUs whose mode is not their connection's.
    pub mode_mismatch: u64,
    /// Datagrams of datagram mode that were damaged.
    pub damaged_datagrams: u64,
    /// Times that a path was found to carry much less than declared, for seconds.
    pub rates_declared_wrong: u64,
}

impl AerotpEndpoint {
    /// A path's rate and the reason for it, while the path has connections.
    pub fn path_rate(&self, path: PathId) -> Option<PathRate> {
        let schedule = self.paths.get(&path)?;
        Some(schedule.control_of_rate.path_rate(self.now))
    }

    /// Whether the rate of a path is found, not told.
    pub fn finds_rates(&self) -> bool {
        let mut paths = self.paths.values();
        paths.any(|schedule| schedule.control_of_rate.is_found())
    }

    /// A connection's counters, until some time after it is forgotten.
    pub fn counters(&self, id: ConnectionId) -> Option<&Counters> {
        let past = || {
            self.past
                .iter()
                .find(|(past, _)| *past == id)
                .map(|(_, counters)| counters)
        };
        self.connection(id).map(Connection::counters).or_else(past)
    }

    /// The counters of all connections that `path` has had, by the class of their
    /// [`Share`](crate::transport::aerotp::Share). Exact for the first 1,024 pairs of a path and a class; for further
    /// pairs, only those of connections that are not forgotten.
    pub fn class_counters(&self, path: PathId) -> BTreeMap<u8, Counters> {
        let of_path = self.sums.range((path, 0)..=(path, u8::MAX));
        let mut sums: BTreeMap<u8, Counters> = of_path.map(|((_, id), sum)| (*id, *sum)).collect();
        let on_path = |entry: &&Entry| entry.connection.key().path == path;
        for entry in self.connections.values().filter(on_path) {
            *sums.entry(entry.connection.share().class).or_default() +=
                *entry.connection.counters();
        }
        sums
    }

    /// [`AerotpEndpoint::class_counters`] of all classes together.
    pub fn path_counters(&self, path: PathId) -> Counters {
        let mut sum = Counters::default();
        for of_class in self.class_counters(path).into_values() {
            sum += of_class;
        }
        sum
    }

    /// Counters of datagrams that arrived and could not be used.
    pub const fn endpoint_counters(&self) -> &EndpointCounters {
        &self.counters
    }

    /// A connection's state, until it is forgotten.
    pub fn state(&self, id: ConnectionId) -> Option<State> {
        self.connection(id).map(Connection::state)
    }

    /// A connection's smoothed round-trip time.
    pub fn rtt(&self, id: ConnectionId) -> Option<Duration> {
        self.connection(id).and_then(Connection::rtt)
    }

    /// The stamp of the newest TPDU of a connection that arrived, and the time. The stamp may lack its highest four bits.
    pub(crate) fn newest_stamp(&self, id: ConnectionId) -> Option<(u32, Instant)> {
        self.connection(id).and_then(Connection::newest_stamp)
    }

    /// The shortest round trip that a connection has seen.
    pub fn rtt_min(&self, id: ConnectionId) -> Option<Duration> {
        self.connection(id).and_then(Connection::rtt_min)
    }

    /// The mean time that what a connection sends takes from its first transmission until it and all before it are known
    /// to have arrived.
    pub fn in_order_after(&self, id: ConnectionId) -> Option<Duration> {
        self.connection(id).and_then(Connection::in_order_after)
    }

    /// Payload octets of one TPDU of a connection.
    pub fn payload_bytes(&self, id: ConnectionId) -> Option<usize> {
        self.connection(id).map(Connection::payload_bytes)
    }

    /// Octets that arrived behind a loss, so that nobody can read them yet.
    pub fn ahead_bytes(&self, id: ConnectionId) -> Option<usize> {
        self.connection(id).map(Connection::ahead_bytes)
    }

    /// Octets written to a connection and not yet sent for the first time.
    pub fn unsent_bytes(&self, id: ConnectionId) -> Option<u64> {
        self.connection(id).map(Connection::unsent_bytes)
    }

    /// Octets that a write to a connection would take now.
    pub fn write_room(&self, id: ConnectionId) -> Option<usize> {
        self.connection(id).map(Connection::write_room)
    }

    /// Whether everything written to a connection so far was confirmed or, in modes that confirm
    /// nothing, sent.
    pub fn is_settled(&self, id: ConnectionId) -> Option<bool> {
        self.connection(id).map(Connection::all_settled)
    }

    /// Whether the peer's end is known and nothing before it is missing; it may still have to be read.
    pub fn is_complete(&self, id: ConnectionId) -> Option<bool> {
        self.connection(id).map(Connection::is_complete)
    }

    /// The memory of the connections' send buffers and received payloads together.
    pub fn memory_bytes(&self) -> ByteCount {
        ByteCount::from_usize(self.memory_bytes)
    }

    /// Connections that are not forgotten, including lingering ones.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }
}
