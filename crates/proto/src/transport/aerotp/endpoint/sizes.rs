//! The size of TPDUs, as the layers below find it out.

use super::AerotpEndpoint;
use crate::machine::{
    AckedWays, ArrivalMap, Carried, Datagram, PathAck, PathFacts, PathId, PathSizes, Sealed,
    TpduForm,
};
use crate::told::ToldFacts;
use crate::transport::aerotp::{ConfigError, ConnectionConfig, ConnectionId};
use crate::units::{Bitrate, ByteCount, Instant};

impl AerotpEndpoint {
    /// Sets the sizes that the layers below have found `path` to carry. Connections on it, present
    /// and future, make TPDUs of that size, and the path's budget counts those headers. TPDUs that
    /// were sent before keep their size, see [`AerotpEndpoint::set_tpdu_bytes_max`]. The sizes are kept
    /// for every path that was named once.
    ///
    /// # Errors
    /// [`ConfigError`] if headers and parity of a connection leave no room for data. That
    /// connection stays as it was; the others change.
    pub fn set_path_sizes(
        &mut self,
        now: Instant,
        path: PathId,
        sizes: PathSizes,
    ) -> Result<(), ConfigError> {
        self.path_sizes.insert(path, sizes);
        if let Some(schedule) = self.paths.get_mut(&path) {
            schedule.pacer.set_lower_overhead(sizes.lower_overhead);
        }
        let on_path = self.connections.iter();
        let on_path = on_path.filter(|(_, entry)| entry.connection.key().path == path);
        let ids: Vec<ConnectionId> = on_path.map(|(id, _)| *id).collect();
        let mut first_error = Ok(());
        for id in ids {
            let set = self.set_tpdu_bytes_max(now, id, sizes.tpdu_bytes_max);
            first_error = first_error.and(set.map(|_| ()));
        }
        first_error
    }

    /// Notes that the layers below sent `wire` octets of their own on `path`, headers included.
    /// They are taken from the path's budget, because a queue would grow where the rate is all that
    /// the link carries.
    pub fn on_sent_below(&mut self, now: Instant, path: PathId, wire: ByteCount) {
        self.now = now;
        if let Some(schedule) = self.paths.get_mut(&path) {
            schedule.on_sent_below(now, wire);
        }
    }

    /// The largest TPDU of a new connection on `path`; in the short form, its longest content.
    pub(super) fn tpdu_bytes_max(&self, path: PathId, config: &ConnectionConfig) -> usize {
        let sizes = self.path_sizes.get(&path);
        sizes.map_or(config.tpdu_bytes_max, |sizes| sizes.tpdu_bytes_max)
    }

    /// Makes TPDUs of at most `octets` on a connection from now on, header and parity included: the
    /// path's MTU has changed. TPDUs that were sent before, and messages that wait, keep their
    /// octets, since a number stands for its octets. When they are sent (again) they may be longer,
    /// and the layer below must fragment them. Returns `false` if the connection is over.
    ///
    /// # Errors
    /// [`ConfigError`] if headers and parity leave no room for data.
    pub fn set_tpdu_bytes_max(
        &mut self,
        now: Instant,
        id: ConnectionId,
        octets: usize,
    ) -> Result<bool, ConfigError> {
        self.with(now, id, |c| c.set_tpdu_bytes_max(octets))
            .map_or(Ok(false), |changed| changed.map(|()| true))
    }
}

impl Carried for AerotpEndpoint {
    const SHORT: bool = true;

    fn hold(&mut self, now: Instant, path: PathId, held: bool) {
        Self::hold(self, now, path, held);
    }

    fn set_path_sizes(
        &mut self,
        now: Instant,
        path: PathId,
        sizes: PathSizes,
    ) -> Result<(), String> {
        Self::set_path_sizes(self, now, path, sizes).map_err(|error| error.to_string())
    }

    fn on_sent_below(&mut self, now: Instant, path: PathId, wire: ByteCount) {
        Self::on_sent_below(self, now, path, wire);
    }

    fn speak(&mut self, now: Instant, path: PathId, form: TpduForm) {
        Self::speak(self, now, path, form);
    }

    fn handle_frames(&mut self, now: Instant, datagram: Datagram<'_>) {
        Self::handle_frames(self, now, datagram);
    }

    fn number_path(&mut self, now: Instant, path: PathId, ways: AckedWays) {
        Self::number_path(self, now, path, ways);
    }

    fn use_windows(&mut self, now: Instant, path: PathId, are_taken: bool) {
        Self::use_windows(self, now, path, are_taken);
    }

    fn finds_rate(&self, path: PathId) -> bool {
        Self::finds_rate(self, path)
    }

    fn on_sealed(&mut self, now: Instant, path: PathId, sealed: Sealed, wire: ByteCount) {
        Self::on_sealed(self, now, path, sealed, wire);
    }

    fn on_path_ack(&mut self, now: Instant, path: PathId, ack: PathAck) {
        Self::on_path_ack(self, now, path, ack);
    }

    fn on_arrival_map(&mut self, now: Instant, path: PathId, map: ArrivalMap<'_>) {
        Self::on_arrival_map(self, now, path, map);
    }

    fn on_damaged(&mut self, now: Instant, path: PathId, number: u64) {
        Self::on_damaged(self, now, path, number);
    }

    fn on_mending(&mut self, now: Instant, path: PathId, number: u64) {
        Self::on_mending(self, now, path, number);
    }

    fn on_other_link(&mut self, now: Instant, path: PathId) {
        Self::on_other_link(self, now, path);
    }

    fn bond(&mut self, now: Instant, home: PathId, path: PathId, facts: PathFacts) -> bool {
        Self::bond(self, now, home, path, facts)
    }

    fn doubt(&mut self, now: Instant, path: PathId, is_doubted: bool) {
        Self::doubt(self, now, path, is_doubted);
    }

    fn take_told(&mut self, now: Instant, path: PathId, told: ToldFacts) {
        Self::take_told(self, now, path, told);
    }

    fn part(&mut self, now: Instant, path: PathId) {
        Self::part(self, now, path);
    }

    fn rate_of(&self, path: PathId) -> Option<Bitrate> {
        self.rate_seen(path)
    }

    /// Every connection with the peer ends, or those that [`AerotpEndpoint::end_with_restart`] named.
    fn peer_restarted(&mut self, now: Instant, path: PathId) {
        let stale = self.stale.remove(&path);
        let is_stale = |id| stale.as_ref().is_none_or(|stale| stale.contains(&id));
        self.forget_peer(now, path, is_stale);
    }
}
