//! Beside senders that keep a queue full: the datagrams under way follow CUBIC's curve (RFC 9438), but
//! it is the queue's turn that reduces them, not a loss.
//!
//! ```text
//! W(t) = C (t - K)^3 + W_max, K = cbrt(W_max (1 - beta) / C); or as Reno would grow, if that is more
//! ```
//!
//! The queue turns when the delay has grown to its longest and falls without our doing: the others have
//! reduced. It also turns when less than the usual share arrives while the delay is near its longest:
//! that is our own loss.

/// The constant C = 0.4 datagrams/s^3 (RFC 9438, section 5).
const C: f64 = 0.4;
/// The share of the window that a reduction leaves (section 4.6).
const BETA: f64 = 0.7;
/// Reno's growth in a round trip with that share (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The growth before the first reduction, as an exponent for each round trip: about double, as others do.
const OPENING: f64 = 0.75;
/// The greatest window as a multiple of what arrives in a round trip, which is from a round trip before.
const ABOVE: f64 = 2.0;
/// The same where much is lost: what arrives says less of what is dropped, and nobody else keeps such a queue full.
const ABOVE_LOSSY: f64 = 1.25;
/// The least window, and the greatest.
const WINDOW_MIN: f64 = 4.0;
const WINDOW_MAX: f64 = 1e7;
/// The delay has grown again when it is so many times the shortest since the last reduction.
const GROWN: f64 = 1.1;
/// The share of the longest delay above which a cut share is a full queue's.
const NEAR: f64 = 0.75;
/// The share of the longest delay to which it falls when others have reduced. Where no loss is random
/// our own losses tell more, and only a large fall counts.
const FALLEN: f64 = 0.5;
const FALLEN_LOSSY: f64 = 0.85;
/// Round trips between two reductions, and between one and a fall that is not our own.
const APART: f64 = 1.5;
const APART_FALLEN: f64 = 4.0;

/// A sign of a full queue since the last report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Signal {
    #[default]
    Nothing,
    /// Less arrived than usual.
    Cut,
    /// Something arrived with a mark.
    Marked,
}

/// A report, as the window sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// The receiver's time since the report before, in seconds.
    pub(super) gap: f64,
    /// The delay in the queue.
    pub(super) queueing: f64,
    /// The round trip, with that delay.
    pub(super) round_trip: f64,
    pub(super) signal: Signal,
    /// Whether losses are usual.
    pub(super) lossy: bool,
    /// Whether there is always something to send.
    pub(super) used: bool,
}

/// A window beside others' windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Competing {
    /// Datagrams under way.
    window: f64,
    peak: f64,
    reno: f64,
    /// Until the first reduction, while nobody knows how much is ours.
    opening: bool,
    reduced_at: f64,
    shortest: f64,
    longest: f64,
}

impl Competing {
    pub(super) fn new(now: f64, window: f64) -> Self {
        let window = window.max(WINDOW_MIN);
        Self {
            window,
            peak: window,
            reno: window,
            opening: true,
            reduced_at: now,
            shortest: f64::MAX,
            longest: 0.0,
        }
    }

    /// This window, after a time without others.
    pub(super) const fn resumed(self, now: f64) -> Self {
        Self {
            reduced_at: now,
            shortest: f64::MAX,
            longest: 0.0,
            ..self
        }
    }

    /// Takes the datagrams under way that what arrives accounts for, and those of the whole link. A window
    /// that is far above them only fills what overflows.
    pub(super) fn limit(&mut self, arrives: f64, link: f64, much_lost: bool) {
        let above = if much_lost { ABOVE_LOSSY } else { ABOVE };
        let most = if self.opening { link } else { above * arrives };
        let most = most.max(WINDOW_MIN);
        if self.window > most {
            self.window = most;
            self.opening = false;
            self.peak = self.peak.min(most);
            self.reno = self.reno.min(most);
        }
    }

    pub(super) const fn window(&self) -> f64 {
        self.window
    }

    pub(super) fn on_report(&mut self, now: f64, turn: Turn) {
        self.shortest = self.shortest.min(turn.queueing);
        if turn.queueing > GROWN * self.shortest {
            self.longest = self.longest.max(turn.queueing);
        }
        let since = now - self.reduced_at;
        let share = if turn.lossy { FALLEN_LOSSY } else { FALLEN };
        let fallen = turn.queueing < share * self.longest && since > APART_FALLEN * turn.round_trip;
        let full = match turn.signal {
            Signal::Nothing => false,
            Signal::Cut => turn.queueing > NEAR * self.longest,
            Signal::Marked => true,
        };
        if (full || fallen) && since > APART * turn.round_trip {
            self.reduce(now);
        } else if turn.used && self.window < WINDOW_MAX {
            self.grow(since, turn);
        }
    }

    fn reduce(&mut self, now: f64) {
        // Section 4.7, fast convergence: a window below the last one leaves room.
        self.peak = if self.window < self.peak {
            self.window * f64::midpoint(1.0, BETA)
        } else {
            self.window
        };
        self.window = (self.window * BETA).max(WINDOW_MIN);
        self.reno = self.window;
        self.opening = false;
        self.reduced_at = now;
        self.shortest = f64::MAX;
        self.longest = 0.0;
    }

    fn grow(&mut self, since: f64, turn: Turn) {
        let rounds = turn.gap / turn.round_trip;
        if self.opening {
            self.window *= 1.0 + OPENING * rounds.min(1.0);
            return;
        }
        let k = (self.peak * (1.0 - BETA) / C).cbrt();
        let curve = C * (since + turn.round_trip - k).powi(3) + self.peak;
        self.reno += ALPHA * rounds;
        let target = curve.max(self.reno).min(1.5 * self.window);
        if target > self.window {
            self.window += (target - self.window) * rounds.min(1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Turn = Turn {
        gap: 0.01,
        queueing: 0.02,
        round_trip: 0.06,
        signal: Signal::Nothing,
        lossy: true,
        used: true,
    };

    /// Takes reports each 10 ms for some seconds, the delay as `queueing` says.
    fn run(
        competing: &mut Competing,
        from: f64,
        seconds: f64,
        turn: Turn,
        queueing: impl Fn(f64) -> f64,
    ) {
        let mut now = from;
        while now < from + seconds {
            now += turn.gap;
            let queueing = queueing(now);
            competing.on_report(now, Turn { queueing, ..turn });
        }
    }

    /// A window of 100 that knows its place.
    fn settled() -> Competing {
        Competing {
            opening: false,
            ..Competing::new(0.0, 100.0)
        }
    }

    #[test]
    fn the_window_is_back_at_its_peak_after_k() {
        let mut competing = settled();
        competing.reduce(0.0);
        assert!((competing.window() - 70.0).abs() < 1e-9);
        // K = cbrt(100 x 0.3 / 0.4) = 4.217 s; Reno would have grown by 0.53 x 7 meanwhile.
        let slow = Turn {
            round_trip: 0.6,
            ..TURN
        };
        run(&mut competing, 0.0, 4.2, slow, |_| 0.02);
        assert!((97.0..104.0).contains(&competing.window()), "{competing:?}");
    }

    #[test]
    fn one_turn_of_the_queue_reduces_once() {
        let mut competing = settled();
        let (mut reductions, mut now) = (0, 0.0);
        while now < 6.0 {
            now += TURN.gap;
            let before = competing.window();
            // It grows for 3 s, halves within half a second, and grows again.
            let queueing = match now {
                ..3.0 => 0.01 + 0.01 * now,
                3.0..3.5 => 0.04 - 0.04 * (now - 3.0),
                _ => 0.02 + 0.01 * (now - 3.5),
            };
            competing.on_report(now, Turn { queueing, ..TURN });
            if competing.window() < before {
                reductions += 1;
                assert!((competing.window() / before - BETA).abs() < 1e-9);
                assert!((3.0..3.5).contains(&now), "{now}");
            }
        }
        assert_eq!(reductions, 1);
    }

    #[test]
    fn a_cut_share_counts_at_a_full_queue_alone() {
        let mut full = settled();
        run(&mut full, 0.0, 3.0, TURN, |now| 0.01 + 0.01 * now);
        let mut low = full;
        let cut = |queueing| Turn {
            queueing,
            signal: Signal::Cut,
            lossy: false,
            ..TURN
        };
        low.on_report(3.1, cut(0.029));
        assert!(low.window() >= 100.0, "{low:?}");
        let before = full.window();
        full.on_report(3.1, cut(0.039));
        assert!((full.window() / before - BETA).abs() < 1e-9, "{full:?}");
    }

    #[test]
    fn a_newcomer_grows_faster_until_the_first_turn() {
        let mut competing = Competing::new(0.0, 10.0);
        run(&mut competing, 0.0, 0.3, TURN, |now| 0.01 + 0.01 * now);
        // Five round trips, about double in each.
        assert!(
            (250.0..450.0).contains(&competing.window()),
            "{competing:?}"
        );
    }

    #[test]
    fn a_window_that_fills_what_overflows_is_limited_to_twice_what_arrives() {
        let mut competing = settled();
        competing.limit(60.0, 1_000.0, false);
        assert!((competing.window() - 100.0).abs() < 1e-9, "not above it");
        competing.limit(40.0, 1_000.0, false);
        assert!((competing.window() - 80.0).abs() < 1e-9, "{competing:?}");
        competing.limit(48.0, 1_000.0, true);
        assert!((competing.window() - 60.0).abs() < 1e-9, "much is lost");
        // A newcomer's grows ahead of what arrives, up to the whole link.
        let mut opening = Competing::new(0.0, 100.0);
        opening.limit(10.0, 90.0, false);
        assert!((opening.window() - 90.0).abs() < 1e-9, "{opening:?}");
    }

    #[test]
    fn a_mark_reduces_whatever_the_delay() {
        let mut competing = settled();
        run(&mut competing, 0.0, 1.0, TURN, |_| 0.0);
        let before = competing.window();
        let marked = Turn {
            signal: Signal::Marked,
            queueing: 0.0,
            ..TURN
        };
        competing.on_report(1.1, marked);
        assert!((competing.window() / before - BETA).abs() < 1e-9);
    }
}
