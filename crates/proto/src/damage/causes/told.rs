//! Fates of packets as the receiver tells them, and the delays that answers show beside.

use crate::units::{Duration, Instant};

/// Answers that wait for the fates of the packets that left with them; half of them give way when there are so many.
const ANSWERS_MAX: usize = 4_096;
/// The time by which the packet that shows a delay may have left later than the one whose delay it is.
const NEAR: Duration = Duration::from_millis(50);

/// A packet of which the receiver has told.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToldFate {
    pub(super) at: Instant,
    pub(super) octets: usize,
    pub(super) is_lost: bool,
}

/// Packets that were answered: when each answer came, and when the packet left.
#[derive(Clone, Debug, Default)]
pub(super) struct ToldAnswers(Vec<(Instant, Instant)>);

/// The delays of packets, by the time of their departure.
#[derive(Debug)]
pub(super) struct ToldDelays(Vec<(Instant, Duration)>);

impl ToldAnswers {
    pub(super) fn note(&mut self, now: Instant, at: Instant) {
        if self.0.len() >= ANSWERS_MAX {
            self.0.drain(..ANSWERS_MAX / 2);
        }
        self.0.push((now, at));
    }

    /// The delays that they show. Answers that come together were waited for by the oldest of what they tell of; the newest one
    /// shows the delay.
    pub(super) fn delays(&mut self) -> ToldDelays {
        self.0.sort_unstable();
        let together = self.0.chunk_by(|(one, _), (next, _)| one == next);
        let newest = together.filter_map(<[_]>::last);
        let mut delays: Vec<(Instant, Duration)> = newest
            .map(|(now, at)| (*at, now.saturating_since(*at)))
            .collect();
        delays.sort_unstable();
        ToldDelays(delays)
    }

    /// Forgets what left at that time or earlier.
    pub(super) fn forget(&mut self, last: Instant) {
        self.0.retain(|(_, at)| *at > last);
    }
}

impl ToldDelays {
    /// The delays of what left at that time or earlier.
    pub(super) fn until(&self, last: Instant) -> Vec<Duration> {
        let until = self.0.iter().take_while(|(at, _)| *at <= last);
        until.map(|(_, delay)| *delay).collect()
    }

    /// The delay of a packet: that of the next one whose delay is known, if it left soon; otherwise none.
    pub(super) fn of(&self, at: Instant) -> Duration {
        let place = self.0.partition_point(|(one, _)| *one < at);
        let next = self.0.get(place).filter(|(one, _)| *one <= at + NEAR);
        next.map_or(Duration::ZERO, |(_, delay)| *delay)
    }
}
