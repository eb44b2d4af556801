//! Paths on which a session numbers the datagrams, and the remote tells what arrives of them.

use super::AerotpEndpoint;
use super::left_log::SettledCounts;
use crate::machine::{AckedWays, ArrivalMap, PathAck, PathId, Sealed, SealedContent};
use crate::units::{Bitrate, ByteCount, Instant};

impl AerotpEndpoint {
    /// The directions of `path` in which the receiver tells what arrives of numbered datagrams. Where the remote does, a
    /// rate that is found is found by that, and no more by the reports in acknowledgements; where this end does,
    /// acknowledgements need no reports. The state is kept for every path that is numbered.
    pub fn number_path(&mut self, now: Instant, path: PathId, ways: AckedWays) {
        self.now = now;
        if ways.damaged || ways.mapped {
            self.left_logs.entry(path).or_default();
        } else {
            self.left_logs.remove(&path);
        }
        if ways == AckedWays::default() {
            self.acked_ways.remove(&path);
        } else {
            self.acked_ways.insert(path, ways);
        }
        if let Some(schedule) = self.paths.get_mut(&path) {
            schedule.set_acked(ways);
        }
    }

    /// Counts a datagram of `wire` octets, headers included, that leaves on a numbered path.
    pub fn on_sealed(&mut self, now: Instant, path: PathId, sealed: Sealed, wire: ByteCount) {
        if let Some(log) = self.left_logs.get_mut(&path) {
            let is_data = sealed.content == SealedContent::Data;
            let tpdu = self.last_tpdu.filter(|_| is_data);
            log.on_left(now, sealed.number, wire, tpdu);
        }
        let ways = self.acked_ways.get(&path).copied().unwrap_or_default();
        if ways.mapped && !(ways.out || ways.damaged) {
            // The rate is told: what arrives is looked at for the causes of loss alone.
            return;
        }
        let waiting = self.waiting_octets(path);
        if let Some(schedule) = self.paths.get_mut(&path) {
            schedule.on_sealed(now, sealed, wire, waiting);
        }
    }

    /// Takes the remote's word which datagrams of a numbered path arrived.
    pub fn on_arrival_map(&mut self, now: Instant, path: PathId, map: ArrivalMap<'_>) {
        self.now = now;
        let log = self.left_logs.get_mut(&path);
        if let (Some(log), Some(schedule)) = (log, self.paths.get_mut(&path)) {
            log.settle(map, |at, wire, is_lost| {
                schedule.causes.note_told(at, wire.as_usize(), is_lost);
            });
        }
    }

    /// The datagrams of a numbered path of which the remote's maps have told.
    pub fn path_settled(&self, path: PathId) -> SettledCounts {
        self.left_logs
            .get(&path)
            .map_or_else(Default::default, |log| log.settled)
    }

    /// Takes the remote's word that a numbered datagram arrived damaged beyond repair. Its TPDU is sent again at once, and
    /// its octets count as carried: damage is no sign of a queue.
    pub fn on_damaged(&mut self, now: Instant, path: PathId, number: u64) {
        self.now = now;
        let Some(left) = self
            .left_logs
            .get_mut(&path)
            .and_then(|log| log.take(number))
        else {
            return;
        };
        if !left.is_mending
            && let Some(schedule) = self.paths.get_mut(&path)
        {
            schedule.on_damaged(left.wire);
        }
        if let Some((id, seq)) = left.tpdu {
            self.with(now, id, |connection| {
                connection.on_damaged(now, (seq, left.at));
            });
        }
    }

    /// Takes the remote's word that a numbered datagram arrived damaged, where the session sends what mends it. Its octets count
    /// as carried, once; its TPDU is sent again if it has not arrived in time, or if [`AerotpEndpoint::on_damaged`] follows.
    pub fn on_mending(&mut self, now: Instant, path: PathId, number: u64) {
        self.now = now;
        let log = self.left_logs.get_mut(&path);
        let Some((left, is_first)) = log.and_then(|log| log.mend(number)) else {
            return;
        };
        if let Some(schedule) = self.paths.get_mut(&path).filter(|_| is_first) {
            schedule.on_damaged(left.wire);
        }
        if let Some((id, seq)) = left.tpdu {
            self.with(now, id, |connection| {
                connection.on_mending(now, (seq, left.at));
            });
        }
    }

    /// Takes what the remote tells of a numbered path.
    pub fn on_path_ack(&mut self, now: Instant, path: PathId, ack: PathAck) {
        self.now = now;
        // Only a told path asks for it.
        let finds = self.finds_rate(path);
        let rtt = (!finds).then(|| self.path_rtt(path)).flatten();
        if let Some(schedule) = self.paths.get_mut(&path)
            && schedule.on_path_ack(now, &ack, rtt)
        {
            self.counters.rates_declared_wrong += 1;
        }
    }

    /// The most that a path may carry: the rate told, or what was found or hoped for once something was heard. Windows follow it, since
    /// a rate that is found is no more than what they let through.
    pub fn rate_hoped(&self, path: PathId) -> Option<Bitrate> {
        self.paths.get(&path)?.rate_hoped()
    }

    /// The rate of a path as it was told, or as far as it was seen; less, while its answers show that it carries less. Who has
    /// little to send sees nothing.
    pub fn rate_seen(&self, path: PathId) -> Option<Bitrate> {
        self.paths.get(&path)?.rate_seen()
    }

    /// The rate of a path as it was told, or as it was found once something was heard; less, while its answers show that it
    /// carries less.
    pub fn rate_of(&self, path: PathId) -> Option<Bitrate> {
        self.paths.get(&path)?.rate()
    }
}
