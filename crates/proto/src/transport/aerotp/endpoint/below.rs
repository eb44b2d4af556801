//! The words of the layers below on a path: its rate, its round trip, its bit errors.

use super::{AerotpEndpoint, Entry, packet_of};
use crate::machine::PathId;
use crate::told::ToldFacts;
use crate::transport::aerotp::{ConnectionId, RateSource};
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

    /// Sets the way in which the rate of `path` is known, instead of [`EndpointConfig::rate`]. A rate that is told anew
    /// counts at once. A search goes on under another bound, and begins anew, with what was found, for another sharing.
    /// The rate to try first stays, unless `source` names another one. The way is kept for every path that was named once.
    ///
    /// [`EndpointConfig::rate`]: crate::transport::aerotp::EndpointConfig::rate
    pub fn set_rate_source(&mut self, now: Instant, path: PathId, source: RateSource) {
        self.now = now;
        let before = self.rate_sources.get(&path);
        let first = before.and_then(|before| match before {
            RateSource::Found { first, .. } => *first,
            RateSource::Told(_) => None,
        });
        let source = match source {
            RateSource::Found { first: None, .. } => source.after(first),
            known => known,
        };
        self.rate_sources.insert(path, source);
        let rtt = self.path_rtt(path);
        if let Some(schedule) = self.paths.get_mut(&path) {
            let packet = packet_of(self.path_sizes.get(&path));
            let ways = self.acked_ways.get(&path).copied().unwrap_or_default();
            let told = self.told.get(&path).copied().unwrap_or_default();
            schedule.set_source(now, source, (packet, ways, told), rtt);
        }
    }

    /// Takes what the link below `path` tells of itself now, in place of all before. A told rate bounds what is sent at once, and
    /// is tried where more is sent than was; a told rate of wrong bits is the first guess of the length of packets; a told cost
    /// takes the place of the path's own. Whether the link is up is for [`AerotpEndpoint::hold`].
    pub fn take_told(&mut self, now: Instant, path: PathId, told: ToldFacts) {
        self.now = now;
        let before = if told.is_empty() {
            self.told.remove(&path)
        } else {
            self.told.insert(path, told)
        };
        let before = before.unwrap_or_default();
        if before == told {
            return;
        }
        let rtt = self.path_rtt(path);
        if let Some(schedule) = self.paths.get_mut(&path) {
            schedule.take_told(now, &told, rtt);
        }
        let back = told.bit_errors_back;
        if let Some(rate) = back.filter(|_| back != before.bit_errors_back) {
            self.note_short_term_rate(now, path, rate);
        }
    }

    /// The facts that the link below `path` tells.
    pub fn told(&self, path: PathId) -> Option<&ToldFacts> {
        self.told.get(&path)
    }

    /// Undoes [`AerotpEndpoint::set_rate_source`]: the rate of `path` is known as [`EndpointConfig::rate`] has it, and
    /// nothing is kept.
    ///
    /// [`EndpointConfig::rate`]: crate::transport::aerotp::EndpointConfig::rate
    pub fn forget_rate_source(&mut self, now: Instant, path: PathId) {
        if self.rate_sources.remove(&path).is_some() {
            let common = self.config.rate;
            self.set_rate_source(now, path, common);
            self.rate_sources.remove(&path);
        }
    }

    /// Whether the rate of `path` is found.
    pub fn finds_rate(&self, path: PathId) -> bool {
        let source = self.rate_sources.get(&path).unwrap_or(&self.config.rate);
        source.is_found()
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
