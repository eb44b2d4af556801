//! Slow start and congestion avoidance (RFC 5681).

use super::{Acked, CongestionControl, THRESHOLD_SEGMENTS_MIN};
use fulmar_proto::units::Instant;

/// The window of RFC 5681.
#[derive(Clone, Debug)]
pub(crate) struct NewReno {
    mss: u64,
    window: u64,
    threshold: u64,
    byte_counting: bool,
    /// Acknowledged octets for which the window has not grown yet.
    uncredited: u64,
    before: (u64, u64),
}

impl NewReno {
    pub(crate) const fn new(mss: u64, window: u64, byte_counting: bool) -> Self {
        Self {
            mss,
            window,
            threshold: u64::MAX,
            byte_counting,
            uncredited: 0,
            before: (window, u64::MAX),
        }
    }

    fn reduced(&self, base: u64) -> u64 {
        (base / 2).max(THRESHOLD_SEGMENTS_MIN * self.mss)
    }
}

impl CongestionControl for NewReno {
    fn window(&self) -> u64 {
        self.window
    }

    fn threshold(&self) -> u64 {
        self.threshold
    }

    fn on_acked(&mut self, acked: Acked) {
        if self.window < self.threshold {
            // Equation 2, or RFC 3465 with L = 2; small segments add up to a large one.
            self.uncredited += acked.octets;
            let step = if self.byte_counting { 2 } else { 1 };
            let growth = self.uncredited.min(step * self.mss);
            self.window = self.window.saturating_add(growth);
            self.uncredited = (self.uncredited - growth).min(self.mss - 1);
            return;
        }
        if self.byte_counting {
            self.uncredited += acked.octets;
            if self.uncredited >= self.window {
                self.uncredited -= self.window;
                self.window = self.window.saturating_add(self.mss);
            }
        } else {
            // Equation 3.
            let growth = (self.mss * self.mss / self.window.max(1)).max(1);
            self.window = self.window.saturating_add(growth);
        }
    }

    fn on_loss(&mut self, _now: Instant, base: u64) {
        self.before = (self.window, self.threshold);
        self.threshold = self.reduced(base);
        self.window = self.threshold;
        self.uncredited = 0;
    }

    fn on_timeout(&mut self, _now: Instant, base: u64, again: bool) {
        if !again {
            self.before = (self.window, self.threshold);
            self.threshold = self.reduced(base);
        }
        self.window = self.mss;
        self.uncredited = 0;
    }

    fn undo(&mut self, _now: Instant) {
        (self.window, self.threshold) = self.before;
    }

    fn on_idle(&mut self, _now: Instant, window: u64) {
        self.window = self.window.min(window);
    }

    fn set_threshold(&mut self, threshold: u64) {
        self.threshold = threshold.max(THRESHOLD_SEGMENTS_MIN * self.mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn acked(octets: u64) -> Acked {
        Acked {
            now: Instant::START,
            octets,
            rtt: None,
        }
    }

    #[test]
    fn slow_start_adds_a_segment_for_each_acknowledgement_of_one_or_more() {
        let mut reno = NewReno::new(MSS, 2 * MSS, false);
        reno.on_acked(acked(2 * MSS));
        assert_eq!(reno.window(), 3 * MSS);
        reno.on_acked(acked(MSS));
        assert_eq!(reno.window(), 4 * MSS);
    }

    #[test]
    fn avoidance_adds_a_segment_for_each_window() {
        for byte_counting in [true, false] {
            let mut reno = NewReno::new(MSS, 2 * MSS, byte_counting);
            reno.on_loss(Instant::START, 20 * MSS);
            assert_eq!((reno.window(), reno.threshold()), (10 * MSS, 10 * MSS));
            for _ in 0..10 {
                reno.on_acked(acked(MSS));
            }
            // Equation 3 divides by the growing window: between 0.95 and 1 segment.
            assert!((10_950..=11_000).contains(&reno.window()), "{reno:?}");
        }
    }

    #[test]
    fn a_second_timeout_keeps_the_threshold_and_an_undo_restores_both() {
        let mut reno = NewReno::new(MSS, 8 * MSS, false);
        reno.on_timeout(Instant::START, 8 * MSS, false);
        assert_eq!((reno.window(), reno.threshold()), (MSS, 4 * MSS));
        reno.on_timeout(Instant::START, MSS, true);
        assert_eq!((reno.window(), reno.threshold()), (MSS, 4 * MSS));
        reno.undo(Instant::START);
        assert_eq!((reno.window(), reno.threshold()), (8 * MSS, u64::MAX));
        reno.on_loss(Instant::START, MSS);
        assert_eq!(reno.threshold(), 2 * MSS);
    }
}
