//! The words of the layers below on a path: its rate, its round trip, its bit errors.

use super::{Endpoint, Entry};
use crate::machine::PathId;
use crate::transport::aerotp::ConnectionId;
use crate::transport::parts::{LinkReport, RtoLimits};
use crate::units::{BitErrorRate, Duration, Instant};

impl Endpoint {
    /// Takes the report of the layer below on a path: the cross-layer hook.
    pub fn link_report(&mut self, now: Instant, path: PathId, report: LinkReport) {
        self.now = now;
        let rtt = self.path_rtt(path);
        let schedule = self.path(path);
        if report
            .available
            .is_some_and(|rate| rate != schedule.rate.bound())
        {
            schedule.link.restart();
        }
        schedule.rate.on_link_report(now, report, rtt);
        schedule.update_rate(now);
    }

    /// Takes the round-trip time on `path` from the layer below. A connection that begins there
    /// need not wait long for its first answer. The value is kept for every path that was named
    /// once.
    pub fn expect_round_trip(&mut self, path: PathId, round_trip: Duration) {
        self.round_trips.insert(path, round_trip);
    }

    /// The timeout before a connection's first sample. It is computed as after one sample of the
    /// path's known round trip (RFC 6298, 2.2). It is no longer than that of an unknown path,
    /// unless the round trip is.
    pub(super) fn first_rto(&self, path: PathId, limits: RtoLimits) -> RtoLimits {
        let known = self
            .path_rtt(path)
            .or_else(|| self.round_trips.get(&path).copied());
        known.map_or(limits, |rtt| RtoLimits {
            initial: (rtt * 3).min(limits.initial).max(rtt + limits.margin),
            ..limits
        })
    }

    pub(super) fn path_rtt(&self, path: PathId) -> Option<Duration> {
        let on_path = |entry: &&Entry| entry.connection.key().path == path;
        self.connections
            .values()
            .filter(on_path)
            .find_map(|entry| entry.connection.rtt())
    }

    /// Takes the short-term bit error rate that the link's electronics derive from the received power, for
    /// the way to this end on this path. Connections that follow the rate
    /// ([`ConnectionConfig::adapt`](super::ConnectionConfig::adapt)) use it and tell their peers.
    pub fn note_short_term_rate(&mut self, now: Instant, path: PathId, rate: BitErrorRate) {
        let ids: Vec<ConnectionId> = (self.connections.iter())
            .filter(|(_, entry)| entry.connection.key().path == path)
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            if let Some(entry) = self.connections.get_mut(&id) {
                entry.connection.on_power(now, rate);
            }
            self.settle(now, id);
        }
    }
}
