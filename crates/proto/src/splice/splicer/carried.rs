//! The news of a session about a path, as flows see it.

use super::Splicer;
use crate::machine::{
    AckedWays, ArrivalMap, Carried, Datagram, PathAck, PathFacts, PathId, PathSizes, Sealed,
    TpduForm,
};
use crate::told::ToldFacts;
use crate::units::{Bitrate, ByteCount, Duration, Instant};

impl Carried for Splicer {
    const SHORT: bool = true;

    fn hold(&mut self, now: Instant, peer: PathId, held: bool) {
        Self::hold(self, now, peer, held);
    }

    fn set_path_sizes(
        &mut self,
        now: Instant,
        peer: PathId,
        sizes: PathSizes,
    ) -> Result<(), String> {
        let set = self.endpoint_mut().set_path_sizes(now, peer, sizes);
        set.map_err(|error| error.to_string())
    }

    fn on_sent_below(&mut self, now: Instant, peer: PathId, wire: ByteCount) {
        self.endpoint_mut().on_sent_below(now, peer, wire);
    }

    fn on_round_trip(&mut self, _now: Instant, peer: PathId, round_trip: Duration) {
        self.endpoint_mut().expect_round_trip(peer, round_trip);
        let least = self.shared.least_round_trips.entry(peer);
        let least = least.or_insert(round_trip);
        *least = round_trip.min(*least);
    }

    fn speak(&mut self, now: Instant, peer: PathId, form: TpduForm) {
        self.now = now;
        self.endpoint_mut().speak(now, peer, form);
        self.pump(now);
    }

    fn handle_frames(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.now = now;
        self.endpoint_mut().handle_frames(now, datagram);
        self.pump(now);
    }

    fn peer_restarted(&mut self, now: Instant, peer: PathId) {
        Self::peer_restarted(self, now, peer);
    }

    fn number_path(&mut self, now: Instant, peer: PathId, ways: AckedWays) {
        self.endpoint_mut().number_path(now, peer, ways);
    }

    fn use_windows(&mut self, now: Instant, peer: PathId, are_taken: bool) {
        self.endpoint_mut().use_windows(now, peer, are_taken);
    }

    fn finds_rate(&self, peer: PathId) -> bool {
        self.endpoint().finds_rate(peer)
    }

    fn on_sealed(&mut self, now: Instant, peer: PathId, sealed: Sealed, wire: ByteCount) {
        self.endpoint_mut().on_sealed(now, peer, sealed, wire);
    }

    fn on_path_ack(&mut self, now: Instant, peer: PathId, ack: PathAck) {
        self.endpoint_mut().on_path_ack(now, peer, ack);
    }

    fn on_arrival_map(&mut self, now: Instant, peer: PathId, map: ArrivalMap<'_>) {
        self.endpoint_mut().on_arrival_map(now, peer, map);
    }

    fn on_damaged(&mut self, now: Instant, peer: PathId, number: u64) {
        self.endpoint_mut().on_damaged(now, peer, number);
    }

    fn on_mending(&mut self, now: Instant, peer: PathId, number: u64) {
        self.endpoint_mut().on_mending(now, peer, number);
    }

    fn on_other_link(&mut self, now: Instant, peer: PathId) {
        self.shared.least_round_trips.remove(&peer);
        self.endpoint_mut().on_other_link(now, peer);
    }

    fn bond(&mut self, now: Instant, home: PathId, path: PathId, facts: PathFacts) -> bool {
        self.now = now;
        let is_bonded = self.endpoint_mut().bond(now, home, path, facts);
        self.pump(now);
        is_bonded
    }

    fn doubt(&mut self, now: Instant, path: PathId, is_doubted: bool) {
        self.endpoint_mut().doubt(now, path, is_doubted);
    }

    fn take_told(&mut self, now: Instant, path: PathId, told: ToldFacts) {
        self.now = now;
        self.endpoint_mut().take_told(now, path, told);
        self.pump(now);
    }

    fn part(&mut self, now: Instant, path: PathId) {
        self.now = now;
        self.endpoint_mut().part(now, path);
        self.pump(now);
    }

    fn rate_of(&self, peer: PathId) -> Option<Bitrate> {
        self.endpoint().rate_seen(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::splice::SplicerConfig;
    use crate::transport::aerotp::{AerotpEndpoint, EndpointConfig};

    #[test]
    fn the_least_round_trip_told_holds_until_another_link_carries_the_path() {
        let endpoint = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(1));
        let splicer = Splicer::new(SplicerConfig::default(), endpoint, Rng::from_seed(2));
        let mut splicer = splicer.expect("the usual settings");
        let (now, [moved, stays]) = (Instant::START, [PathId(0), PathId(1)]);
        let least = |splicer: &Splicer, peer| {
            let least = splicer.shared.least_round_trips.get(&peer);
            least.map(Duration::as_millis)
        };
        for millis in [30, 20, 40] {
            for peer in [moved, stays] {
                splicer.on_round_trip(now, peer, Duration::from_millis(millis));
            }
        }
        assert_eq!(least(&splicer, moved), Some(20));
        Carried::on_other_link(&mut splicer, now, moved);
        assert_eq!(least(&splicer, moved), None);
        splicer.on_round_trip(now, moved, Duration::from_millis(600));
        assert_eq!(least(&splicer, moved), Some(600));
        assert_eq!(least(&splicer, stays), Some(20), "another peer's");
    }
}
