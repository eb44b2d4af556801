//! The queue on the way to the peer, by two clocks that run at different rates.

use super::delay_gauge::DelayGauge;
use crate::units::{Duration, Instant};
use std::collections::VecDeque;

/// The span of the least delay on the way back, which is that of the last one to two spans: clocks that differ by 100 millionths
/// come 0.2 ms apart in it.
const BACK_SPAN: Duration = Duration::from_secs(1);
/// The share of a new difference in the mean of the way back, and the means that jitter explains.
const NOISE_GAIN: f64 = 1.0 / 16.0;
const NOISES: f64 = 2.0;

/// A gauge of the queue on the way to the peer. The one-way delay shows it without the way back, but by two clocks: where the peer's
/// is quicker, by 50 millionths for instance, it grows by a millisecond in twenty seconds, for ever. Two things keep that out. What
/// the clock gains steadily is taken off. And the round trip is by one clock: less what the one-way delay tells of the way back,
/// over a span too short for clocks to come apart, it is no shorter than the queue.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueGauge {
    one_way: DelayGauge,
    there_and_back: DelayGauge,
    drift: ClockDrift,
    /// The least delay on the way back of this span, and of the one before, by the difference of the two clocks.
    back: Option<(f64, f64)>,
    back_since: Instant,
    last_back: Option<f64>,
    back_noise: f64,
}

impl QueueGauge {
    /// Takes a one-way delay and the round trip of the same datagram, in seconds, and gives the time that it stood in queues.
    pub(super) fn on_delays(&mut self, now: Instant, one_way: f64, round_trip: f64) -> f64 {
        let back = round_trip - one_way;
        let gained = self.drift.gained(now, back);
        let on_the_way_back = back - self.least_back(now, back);
        let both = self.there_and_back.on_delay(now, round_trip);
        let most = both - on_the_way_back + NOISES * self.back_noise;
        (self.one_way.on_delay(now, one_way - gained)).min(most.max(0.0))
    }

    fn least_back(&mut self, now: Instant, back: f64) -> f64 {
        if let Some(last) = self.last_back.replace(back) {
            self.back_noise += ((back - last).abs() - self.back_noise) * NOISE_GAIN;
        }
        let (current, before) = self.back.unwrap_or((back, back));
        let age = now.saturating_since(self.back_since);
        let pair = if age <= BACK_SPAN {
            (current.min(back), before)
        } else if age <= 2 * BACK_SPAN {
            (back, current)
        } else {
            // Nothing was heard for as long.
            (back, back)
        };
        if age > BACK_SPAN {
            self.back_since = now;
        }
        self.back = Some(pair);
        pair.0.min(pair.1)
    }

    /// The mean difference of delays that follow each other: what jitter explains.
    pub(super) const fn noise(&self) -> f64 {
        self.one_way.noise()
    }

    /// Whether delays differ by less than this on either way, in seconds: a queue of as much can be told.
    pub(super) fn sees(&self, queueing: f64) -> bool {
        self.one_way.noise().max(self.back_noise) < queueing
    }

    /// The least delay that is a queue, with datagrams of `packet` octets at `rate` octets a second.
    pub(super) fn queue_least(&self, packet: f64, rate: f64) -> f64 {
        self.one_way.queue_least(packet, rate)
    }

    /// Keeps the least delay, or forgets it after a time again.
    pub(super) const fn hold_base(&mut self, held: bool) {
        self.one_way.hold_base(held);
        self.there_and_back.hold_base(held);
    }

    /// Takes a delay of `queueing` above the least as the path's own.
    pub(super) fn raise_base(&mut self, now: Instant, queueing: f64) {
        self.one_way.raise_base(now, queueing);
        self.there_and_back.raise_base(now, queueing);
    }
}

/// The span of which the least delay on the way back is compared with that of the span before, and the spans that are kept: the
/// median of what they show counts.
const DRIFT_SPAN: Duration = Duration::from_secs(5);
const DRIFT_SPANS: usize = 12;
const DRIFT_SPANS_LEAST: usize = 3;
/// The most that a clock gains in a second: quartz by up to 100 millionths, and what sets it by more for a while.
const GAIN_MAX: f64 = 0.000_2;

/// The seconds that the peer's clock gains on ours. The least delay on the way back falls steadily by as much, whatever queue is on
/// the way there. One that rises is a queue on the way back, or a clock that loses, which hides a queue that stands for minutes and
/// shows none that is not there.
#[derive(Clone, Debug, Default)]
struct ClockDrift {
    /// The least delay on the way back in this span, and its time.
    least: Option<(f64, Instant)>,
    before: Option<(f64, Instant)>,
    span_from: Instant,
    /// Seconds gained in a second, of the last spans.
    gains: VecDeque<f64>,
    gain: f64,
    gained: f64,
    at: Instant,
}

impl ClockDrift {
    /// Takes the delay on the way back, by the difference of both clocks. Returns the time that the peer's has gained.
    fn gained(&mut self, now: Instant, back: f64) -> f64 {
        self.gained += self.gain * now.saturating_since(self.at).as_secs_f64();
        self.at = now;
        if now.saturating_since(self.span_from) > DRIFT_SPAN {
            self.end_span();
            self.span_from = now;
        }
        if self.least.is_none_or(|(least, _)| back < least) {
            self.least = Some((back, now));
        }
        self.gained
    }

    fn end_span(&mut self) {
        let Some((least, at)) = self.least.take() else {
            return;
        };
        let Some((before, since)) = self.before.replace((least, at)) else {
            return;
        };
        let seconds = at.saturating_since(since).as_secs_f64().max(1e-3);
        self.gains.push_back((before - least) / seconds);
        if self.gains.len() > DRIFT_SPANS {
            self.gains.pop_front();
        }
        if self.gains.len() >= DRIFT_SPANS_LEAST {
            let mut sorted: Vec<f64> = self.gains.iter().copied().collect();
            sorted.sort_unstable_by(f64::total_cmp);
            self.gain = sorted[sorted.len() / 2].clamp(0.0, GAIN_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_runs_faster_is_no_queue_and_a_queue_on_the_way_there_is_one() {
        let mut gauge = QueueGauge::default();
        let mut queueing = |milliseconds: u64, queue: f64, back: f64| {
            let now = Instant::START + Duration::from_millis(milliseconds);
            let skew = 1e-4 * now.as_secs_f64();
            gauge.on_delays(now, 0.02 + skew + queue, 0.04 + queue + back)
        };
        for hundredth in 0..8_000 {
            // From some time on, most of what comes back is late.
            let is_late = hundredth > 4_000 && hundredth % 10 != 3;
            let shown = queueing(10 * hundredth, 0.0, if is_late { 0.003 } else { 0.0 });
            assert!(shown < 0.000_21, "{shown} at {hundredth} hundredths");
        }
        assert!((0.005..0.005_3).contains(&queueing(80_000, 0.005, 0.003)));
    }
}
