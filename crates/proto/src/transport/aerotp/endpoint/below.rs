//! The words of the layers below on a path: its rate, its round trip, its bit errors.

use super::{AerotpEndpoint, Entry};
use crate::machine::PathId;
use crate::transport::aerotp::ConnectionId;
use crate::transport::parts::{LinkReport, RtoLimits};
use crate::units::{BitErrorRate, Duration, Instant};

impl AerotpEndpoint {
    /// Takes the report of the layer below on a path: the cross-layer hook.
    pub fn link_report(&mut self, now: Instant, path: PathId, report: LinkReport) {
        self.now = now;
        let rtt = self.path_rtt(path);
        let schedule = self.path(path);
        schedule.control_of_rate.on_link_report(now, report, rtt);
        schedule.update_rate(now);
    }

    /// Takes the round-trip time on `path` from the layer below. A connection that begins there
    /// need not wait long for its first answer. The value is kept for every path that was named
    /// once.
    pub fn expect_round_trip(&mut self, path: PathId, round_trip: Duration) {
        self.round_trips.insert(path, round_trip);
    }

    /// Does the same, also for connections on the path that [ask early](RtoLimits::asking_early) and have no answer yet:
    /// they may have begun while the path was [held](AerotpEndpoint::hold).
    pub fn learn_round_trip(&mut self, now: Instant, path: PathId, round_trip: Duration) {
        self.expect_round_trip(path, round_trip);
        let ids: Vec<ConnectionId> = self.connections_on(path).collect();
        for id in ids {
            self.with(now, id, |connection| {
                connection.expect_round_trip(now, round_trip);
            });
        }
    }

    /// The limits of the timeout of a connection that begins on `path`, by what is known of the round trip there.
    pub(super) fn first_rto(&self, path: PathId, limits: RtoLimits) -> RtoLimits {
        let known = self
            .path_rtt(path)
            .or_else(|| self.round_trips.get(&path).copied())
            .or_else(|| {
                self.shown_in(path)
                    .filter(|_| limits.probe_millis.is_some())
            });
        known.map_or(limits, |rtt| limits.expecting(rtt))
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
