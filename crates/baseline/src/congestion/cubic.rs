//! CUBIC (RFC 9438).
//!
//! `W(t) = C (t - K)^3 + W_max` in segments, with `K = cbrt((W_max - cwnd_epoch) / C)`; where that is
//! below Reno's window, Reno's estimate counts (section 4.3). Windows are kept as fractions of a
//! segment.

use super::{Acked, CongestionControl, THRESHOLD_SEGMENTS_MIN};
use fulmar_proto::units::Instant;

/// The constant C = 0.4 segments/s^3 (section 5).
const C: f64 = 0.4;
/// The share of the window that a reduction leaves (section 4.6).
const BETA: f64 = 0.7;
/// The growth that makes Reno's estimate as fast as Reno with beta = 0.5: 3 (1 - b) / (1 + b)
/// (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// The text that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revision {
    Rfc9438,
    Rfc8312,
}

/// CUBIC's window, in segments.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    revision: Revision,
    /// The most that an acknowledgement adds in slow start.
    slow_start_step: f64,
    mss: u64,
    window: f64,
    threshold: Option<f64>,
    /// `W_max` of section 4.7; 0 after a timeout, when the next stage begins at its own maximum.
    window_max: f64,
    /// The window before the last reduction, `cwnd_prior`.
    prior: f64,
    epoch: Option<Epoch>,
    before: Before,
}

/// The state that a reduction changes.
#[derive(Clone, Copy, Debug)]
struct Before {
    window: f64,
    threshold: Option<f64>,
    window_max: f64,
    prior: f64,
}

/// A stage of congestion avoidance, from its first acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    k: f64,
    /// The window at K.
    peak: f64,
    reno: f64,
}

impl Cubic {
    pub(crate) fn new(mss: u64, window: u64, revision: Revision, byte_counting: bool) -> Self {
        let window = window as f64 / mss as f64;
        Self {
            revision,
            slow_start_step: if byte_counting { 2.0 } else { 1.0 },
            mss,
            window,
            threshold: None,
            window_max: 0.0,
            prior: window,
            epoch: None,
            before: Before {
                window,
                threshold: None,
                window_max: 0.0,
                prior: window,
            },
        }
    }

    fn octets(&self, segments: f64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "windows are positive, and a cast saturates"
        )]
        let octets = (segments * self.mss as f64) as u64;
        octets
    }

    fn remember(&mut self) {
        self.before = Before {
            window: self.window,
            threshold: self.threshold,
            window_max: self.window_max,
            prior: self.prior,
        };
    }

    fn reduce(&mut self, base: u64) {
        let base = base as f64 / self.mss as f64;
        self.prior = self.window;
        // Section 4.7, fast convergence: a window below the last one leaves room.
        self.window_max = if self.window < self.window_max {
            self.window * f64::midpoint(1.0, BETA)
        } else {
            self.window
        };
        let threshold = match self.revision {
            Revision::Rfc9438 => base * BETA,
            Revision::Rfc8312 => (base.floor() * BETA).floor(),
        };
        self.threshold = Some(threshold.max(THRESHOLD_SEGMENTS_MIN as f64));
        self.epoch = None;
    }

    fn avoid(&mut self, acked: Acked) {
        let segments = acked.octets as f64 / self.mss as f64;
        let (window, window_max) = (self.window, self.window_max);
        let epoch = self.epoch.get_or_insert_with(|| {
            let gap = (window_max - window).max(0.0);
            Epoch {
                start: acked.now,
                k: (gap / C).cbrt(),
                peak: window_max.max(window),
                reno: window,
            }
        });
        let rtt = acked.rtt.unwrap_or_default();
        let since = acked.now.saturating_since(epoch.start);
        let (k, peak) = (epoch.k, epoch.peak);
        let cubic = |t: f64| C * (t - k).powi(3) + peak;
        // Section 4.3: from that point on Reno's estimate grows by a whole segment for each window.
        let is_past = epoch.reno >= self.prior && self.revision == Revision::Rfc9438;
        let alpha = if is_past { 1.0 } else { ALPHA };
        epoch.reno += alpha * segments / self.window;
        if cubic(since.as_secs_f64()) < epoch.reno {
            self.window = self.window.max(epoch.reno);
        } else {
            // Section 4.4: at most half of the window more in a round trip.
            let target = cubic((since + rtt).as_secs_f64()).clamp(window, 1.5 * window);
            self.window += (target - window) / window * segments;
        }
    }
}

impl CongestionControl for Cubic {
    fn window(&self) -> u64 {
        self.octets(self.window)
    }

    fn threshold(&self) -> u64 {
        self.threshold.map_or(u64::MAX, |t| self.octets(t))
    }

    fn on_acked(&mut self, acked: Acked) {
        if self.threshold.is_none_or(|t| self.window < t) {
            // As in RFC 5681, or RFC 3465 with L = 2.
            let segments = acked.octets as f64 / self.mss as f64;
            self.window += segments.min(self.slow_start_step);
        } else {
            self.avoid(acked);
        }
    }

    fn on_loss(&mut self, _now: Instant, base: u64) {
        self.remember();
        self.reduce(base);
        self.window = self.threshold.unwrap_or(self.window);
    }

    fn on_timeout(&mut self, _now: Instant, base: u64, again: bool) {
        if !again {
            self.remember();
            self.reduce(base);
        }
        // Section 4.8: the stage that follows has K = 0, and its maximum is where it begins.
        self.window_max = 0.0;
        self.epoch = None;
        self.window = 1.0;
    }

    fn undo(&mut self, _now: Instant) {
        let Before {
            window,
            threshold,
            window_max,
            prior,
        } = self.before;
        (self.window, self.threshold) = (window, threshold);
        (self.window_max, self.prior) = (window_max, prior);
        self.epoch = None;
    }

    fn on_idle(&mut self, _now: Instant, window: u64) {
        // Section 4.2.1: time without data does not count.
        self.epoch = None;
        self.window = self.window.min(window as f64 / self.mss as f64);
    }

    fn set_threshold(&mut self, threshold: u64) {
        let segments = threshold as f64 / self.mss as f64;
        self.threshold = Some(segments.max(THRESHOLD_SEGMENTS_MIN as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::units::Duration;

    const MSS: u64 = 1000;

    /// The window after `seconds` in which each round trip acknowledges a full window.
    fn grown(cubic: &mut Cubic, seconds: u64, rtt: Duration) -> f64 {
        let mut now = Instant::START;
        let end = now + Duration::from_secs(seconds);
        while now < end {
            let mut left = cubic.window();
            while left > 0 {
                let octets = left.min(2 * MSS);
                left -= octets;
                cubic.on_acked(Acked {
                    now,
                    octets,
                    rtt: Some(rtt),
                });
            }
            now += rtt;
        }
        cubic.window
    }

    #[test]
    fn the_window_is_back_at_its_maximum_after_k() {
        let mut cubic = Cubic::new(MSS, 100 * MSS, Revision::Rfc9438, false);
        cubic.on_loss(Instant::START, 100 * MSS);
        assert!((cubic.window - 70.0).abs() < 1e-9);
        // K = cbrt(100 x 0.3 / 0.4) = 4.217 s; the curve is flat there.
        let window = grown(&mut cubic, 4, Duration::from_millis(100));
        assert!((97.0..=100.5).contains(&window), "{window}");
        let window = grown(&mut cubic, 9, Duration::from_millis(100));
        assert!(window > 120.0, "{window}");
    }

    #[test]
    fn with_a_short_round_trip_it_is_as_fast_as_reno() {
        let mut cubic = Cubic::new(MSS, 10 * MSS, Revision::Rfc9438, false);
        cubic.on_loss(Instant::START, 10 * MSS);
        // 1 s of 100 round trips of 10 ms: alpha = 0.53 segments each up to 10, then 1.
        let window = grown(&mut cubic, 1, Duration::from_millis(10));
        let expected = 10.0 + (100.0 - 3.0 / ALPHA);
        assert!(
            (window / expected - 1.0).abs() < 0.05,
            "{window}, {expected}"
        );
    }

    /// Tests section 4.8.
    #[test]
    fn after_a_timeout_the_curve_begins_flat_at_the_threshold() {
        let mut cubic = Cubic::new(MSS, 1000 * MSS, Revision::Rfc9438, false);
        cubic.on_timeout(Instant::START, 1000 * MSS, false);
        cubic.window = 700.0;
        // The last of six rounds begins at 2.5 s, with the curve at 700 + 0.4 x 15.6, and aims at 3 s,
        // at 700 + 0.4 x 27. With the old maximum of 1000 the curve would be steepest at its
        // beginning: 910.
        let window = grown(&mut cubic, 3, Duration::from_millis(500));
        assert!((706.2..=710.8).contains(&window), "{window}");
    }

    #[test]
    fn two_losses_in_a_row_lower_the_maximum() {
        let mut cubic = Cubic::new(MSS, 100 * MSS, Revision::Rfc9438, false);
        cubic.on_loss(Instant::START, 100 * MSS);
        cubic.on_loss(Instant::START, 70 * MSS);
        assert!((cubic.window_max - 70.0 * 0.85).abs() < 1e-9);
        cubic.undo(Instant::START);
        assert!((cubic.window_max - 100.0).abs() < 1e-9);
        assert!((cubic.window - 70.0).abs() < 1e-9);
    }
}
