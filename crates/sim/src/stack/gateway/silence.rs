//! The state of one of several paths between gateways, as seen from what was sent there and heard.
//!
//! The rules are those of a real session ([ADR 0037](../../../../../docs/adr/0037-several-paths.md)), without its keep-alives and
//! without its proofs that what was sent arrives: who hears data and says nothing there sends a heartbeat; one and a half round
//! trips after something that nothing answered a probe leaves; after a silence of 150 ms, of twelve times the usual silence and of
//! seven quarters of a round trip it is down, or after 300 ms and three round trips while no other path is up. Anything that arrives
//! ends that.

use fulmar_proto::units::{Duration, Instant};

/// The shortest silence that is an outage, and that where other paths carry on.
const DOWN_AFTER_MIN: Duration = Duration::from_millis(300);
const BACKED_DOWN_AFTER_MIN: Duration = Duration::from_millis(150);
/// The longest silence that is waited for, unless round trips are longer.
const DOWN_AFTER_MAX: Duration = Duration::from_secs(3);
/// The time between two probes of a path that is down.
const PROBE_EVERY: Duration = Duration::from_millis(250);
/// The multiple of the usual silence that is an outage.
const USUAL_SILENCES: u32 = 12;
const ROUND_TRIPS: u32 = 3;
/// Quarters of round trips before a path is down beside others.
const BACKED_DOWN_QUARTERS: u32 = 7;
/// Heartbeats in the shortest silence that is an outage.
const BEATS: u32 = 4;
/// Weight of the mean before a new sample, in so many.
const GAIN: u32 = 8;

/// The thing to do about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathNeed {
    Heartbeat,
    Probe,
    /// It is held for down from now on.
    Down,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathSilence {
    round_trip: Option<Duration>,
    usual: Duration,
    /// The time since which an answer is outstanding.
    waiting_since: Option<Instant>,
    /// The time since which this end owes one.
    owing_since: Option<Instant>,
    last_probe: Option<Instant>,
    down_since: Option<Instant>,
    /// Whether other paths carry on.
    pub(super) is_backed: bool,
    is_doubted: bool,
}

impl PathSilence {
    pub(super) const fn is_down(&self) -> bool {
        self.down_since.is_some()
    }

    pub(super) const fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    pub(super) fn on_round_trip(&mut self, sample: Duration) {
        self.round_trip = Some(match self.round_trip {
            None => sample,
            // A longer one is believed soon.
            Some(known) if sample > known => (known + sample) / 2,
            Some(known) => (known * (GAIN - 1) + sample) / GAIN,
        });
    }

    pub(super) fn on_sent(&mut self, now: Instant, wants_answer: bool) {
        self.owing_since = None;
        if wants_answer {
            self.waiting_since.get_or_insert(now);
        }
    }

    /// Notes that something arrived. Returns whether the path was down, and whether it was in doubt.
    pub(super) fn on_heard(&mut self, now: Instant, wants_answer: bool) -> (bool, bool) {
        if let Some(since) = self.waiting_since.take() {
            let silence = now.saturating_since(since);
            if silence <= DOWN_AFTER_MAX {
                self.usual = (self.usual * (GAIN - 1) + silence) / GAIN;
            }
        }
        if wants_answer {
            self.owing_since.get_or_insert(now);
        }
        let was_down = self.down_since.take().is_some();
        (was_down, core::mem::take(&mut self.is_doubted))
    }

    /// Nothing is under way between the gateways: nobody waits, and nobody is asked.
    pub(super) const fn rest(&mut self) {
        self.waiting_since = None;
        self.owing_since = None;
    }

    /// Whether an answer is missing for so long that a probe leaves, which is told once.
    pub(super) fn begin_doubt(&mut self, now: Instant) -> bool {
        let asked = self.waiting_since.map(|since| since + self.probe_after());
        let begins = !self.is_doubted && !self.is_down() && asked.is_some_and(|at| at <= now);
        self.is_doubted |= begins;
        begins
    }

    fn beat() -> Duration {
        BACKED_DOWN_AFTER_MIN / BEATS
    }

    fn probe_after(&self) -> Duration {
        let trips = self.round_trip.unwrap_or_default() * 3 / 2;
        Self::beat().max(trips)
    }

    fn down_after(&self) -> Duration {
        let Some(round_trip) = self.round_trip else {
            return DOWN_AFTER_MAX;
        };
        let (trips, least) = if self.is_backed {
            (round_trip * BACKED_DOWN_QUARTERS / 4, BACKED_DOWN_AFTER_MIN)
        } else {
            (round_trip * ROUND_TRIPS, DOWN_AFTER_MIN)
        };
        (self.usual * USUAL_SILENCES)
            .max(least)
            .min(DOWN_AFTER_MAX)
            .max(trips)
    }

    /// The next thing to do, and its time.
    pub(super) fn next_need(&self) -> Option<(Instant, PathNeed)> {
        let after_probe = |span| self.last_probe.map_or(Instant::START, |at| at + span);
        if let Some(since) = self.down_since {
            return Some((since.max(after_probe(PROBE_EVERY)), PathNeed::Probe));
        }
        let beat = (self.owing_since).map(|since| (since + Self::beat(), PathNeed::Heartbeat));
        let waits = self.waiting_since.map(|since| {
            let probe = (since + self.probe_after()).max(after_probe(self.probe_after()));
            let down = since + self.down_after();
            if down <= probe {
                (down, PathNeed::Down)
            } else {
                (probe, PathNeed::Probe)
            }
        });
        let all = beat.into_iter().chain(waits);
        all.min_by_key(|(at, _)| *at)
    }

    /// One thing that is due at `now`; call until `None`.
    pub(super) fn due(&mut self, now: Instant) -> Option<PathNeed> {
        let (_, need) = self.next_need().filter(|(at, _)| *at <= now)?;
        match need {
            PathNeed::Heartbeat => self.owing_since = None,
            PathNeed::Probe => self.last_probe = Some(now),
            PathNeed::Down => {
                self.down_since = Some(now);
                self.owing_since = None;
            }
        }
        Some(need)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    fn path(is_backed: bool) -> PathSilence {
        let mut path = PathSilence {
            is_backed,
            ..PathSilence::default()
        };
        path.on_round_trip(Duration::from_millis(200));
        path
    }

    /// The times of all that is due until `end`, each done at its time.
    fn needs(path: &mut PathSilence, end: Instant) -> Vec<(Instant, PathNeed)> {
        let mut done = Vec::new();
        while let Some((at, need)) = path.next_need().filter(|(at, _)| *at <= end) {
            assert_eq!(path.due(at), Some(need));
            done.push((at, need));
        }
        done
    }

    #[test]
    fn a_silent_path_is_down_after_three_round_trips_and_sooner_beside_others() {
        let mut alone = path(false);
        alone.on_sent(at(1_000), true);
        let told = needs(&mut alone, at(2_000));
        let expected = [
            (at(1_300), PathNeed::Probe),
            (at(1_600), PathNeed::Down),
            (at(1_600), PathNeed::Probe),
            (at(1_850), PathNeed::Probe),
        ];
        assert_eq!(told, expected);
        assert!(alone.is_down());
        assert_eq!(alone.on_heard(at(2_010), false), (true, false));
        assert!(!alone.is_down() && alone.next_need().is_none());
        let mut backed = path(true);
        backed.on_sent(at(1_000), true);
        let told = needs(&mut backed, at(1_400));
        let expected = [(at(1_300), PathNeed::Probe), (at(1_350), PathNeed::Down)];
        assert_eq!(told[..2], expected);
    }

    #[test]
    fn who_hears_data_and_says_nothing_sends_a_heartbeat() {
        let mut path = path(false);
        path.on_heard(at(100), true);
        path.on_sent(at(110), false);
        assert_eq!(path.next_need(), None, "an answer left");
        path.on_heard(at(120), true);
        assert_eq!(
            needs(&mut path, at(1_000)),
            [(Instant::from_nanos(157_500_000), PathNeed::Heartbeat)]
        );
    }

    #[test]
    fn doubt_begins_once_in_a_silence() {
        let mut path = path(true);
        path.on_sent(at(0), true);
        assert!(!path.begin_doubt(at(299)));
        assert!(path.begin_doubt(at(300)) && !path.begin_doubt(at(301)));
        assert_eq!(path.on_heard(at(310), false), (false, true));
        assert!(!path.begin_doubt(at(900)), "nothing is awaited");
    }
}
