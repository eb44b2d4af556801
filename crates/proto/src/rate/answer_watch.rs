//! A watch over the other end's answers: whether a queue of them stands on their way here.

use super::delay_gauge::DelayGauge;
use crate::units::{Duration, Instant};

/// The span whose least delay counts, and the answers in it.
const SPAN: Duration = Duration::from_millis(100);
const SPAN_ANSWERS: u32 = 3;
/// The least delay that is a queue; it must also exceed so many times the mean time between two answers, and what jitter
/// explains.
const QUEUE_MIN: f64 = 0.03;
const QUEUE_GAPS: f64 = 3.0;
const QUEUE_NOISES: f64 = 4.0;
const GAP_GAIN: f64 = 1.0 / 8.0;
const GAP_MAX: f64 = 1.0;
/// A difference of delays above which the other end's clock has begun again.
const OTHER_CLOCK: f64 = 10.0;

/// A watch over the answers on one path.
#[derive(Clone, Debug, Default)]
pub struct AnswerWatch {
    /// The first difference of the two clocks; others are counted from it.
    origin: Option<u32>,
    delays: DelayGauge,
    came_at: Option<Instant>,
    gap: f64,
    span_from: Instant,
    least: f64,
    answers: u32,
}

impl AnswerWatch {
    /// Takes the clock of an answer, microseconds modulo 2^32. Returns whether a queue stands, at the end of each span in
    /// which it did.
    pub fn on_clock(&mut self, now: Instant, clock: u32) -> bool {
        let raw = now.as_wrapping_micros().wrapping_sub(clock);
        let origin = *self.origin.get_or_insert(raw);
        let delay = f64::from(raw.wrapping_sub(origin).cast_signed()) * 1e-6;
        if delay.abs() > OTHER_CLOCK {
            *self = Self::default();
            return false;
        }
        let queueing = self.delays.on_delay(now, delay);
        let since = self.came_at.replace(now);
        let gap = since.map_or(GAP_MAX, |at| now.saturating_since(at).as_secs_f64());
        self.gap += (gap.min(GAP_MAX) - self.gap) * GAP_GAIN;
        if self.answers == 0 {
            self.span_from = now;
            self.least = queueing;
        }
        self.answers += 1;
        self.least = self.least.min(queueing);
        if now.saturating_since(self.span_from) < SPAN || self.answers < SPAN_ANSWERS {
            return false;
        }
        self.answers = 0;
        let noise = QUEUE_NOISES * self.delays.noise();
        self.least > QUEUE_MIN.max(QUEUE_GAPS * self.gap).max(noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_stands_is_seen_and_a_late_answer_is_none() {
        let mut watch = AnswerWatch::default();
        let mut seen = 0;
        let mut at = |sent: u64, delay: u64| {
            let sent = Instant::START + Duration::from_millis(sent);
            let now = sent + Duration::from_millis(delay);
            // Its clock is some minutes behind.
            let clock = sent.as_wrapping_micros().wrapping_sub(300_000_000);
            seen += u32::from(watch.on_clock(now, clock));
            seen
        };
        for n in 0..100 {
            let late = if n % 10 == 9 { 9 } else { 0 };
            assert_eq!(at(10 * n, 20 + late), 0);
        }
        // A tenth more comes than goes.
        for n in 100..200 {
            at(10 * n, 20 + (n - 100) * 2);
        }
        let told = at(2_000, 220);
        assert!((5..=10).contains(&told), "{told}");
        // A longer time between answers than the delay: nobody sends too many.
        for n in 0..20 {
            at(3_000 + 200 * n, 90);
        }
        assert!(at(8_000, 90) <= told + 2);
    }
}
