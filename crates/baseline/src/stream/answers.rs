//! The answer that a receiver owes its peer, and its time.

use fulmar_proto::machine::Ecn;
use fulmar_proto::units::{Duration, Instant};

/// The time at which an answer is owed, if one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owed {
    /// No answer is owed.
    Nothing,
    /// An answer is owed with the next segment, or at this instant.
    At(Instant),
    /// An answer is owed at once.
    Now,
}

/// The answer that is owed, and whether it echoes a congestion mark.
#[derive(Debug)]
pub(crate) struct OwedAnswers {
    owed: Owed,
    /// Segments that arrived in order since the last answer.
    waiting: u8,
    /// Whether congestion was marked and the sender has not told yet that it knows (RFC 3168,
    /// section 6.1.3).
    echo_congestion: bool,
}

impl OwedAnswers {
    pub(crate) const fn new() -> Self {
        Self {
            owed: Owed::Nothing,
            waiting: 0,
            echo_congestion: false,
        }
    }

    /// Notes a segment that arrived in order. It is answered together with others, `every` of them,
    /// or after `time`; at once if `at_once`.
    pub(crate) fn wait(&mut self, now: Instant, every: u8, time: Duration, at_once: bool) {
        self.waiting = self.waiting.saturating_add(1);
        self.owed = match self.owed {
            _ if at_once || time.is_zero() || self.waiting >= every => Owed::Now,
            Owed::Nothing => Owed::At(now + time),
            owed => owed,
        };
    }

    /// Counts `count` segments as if they waited already.
    pub(crate) const fn expect(&mut self, count: u8) {
        self.waiting = count;
    }

    /// Takes congestion marks; `reduced` is the sender's answer to the echo.
    pub(crate) fn on_ecn(&mut self, ecn: Ecn, reduced: bool) {
        if reduced {
            self.echo_congestion = false;
        }
        if ecn == Ecn::Congested {
            self.echo_congestion = true;
            self.owed = Owed::Now;
        }
    }

    /// Whether answers echo a congestion mark.
    pub(crate) const fn echoes_congestion(&self) -> bool {
        self.echo_congestion
    }

    /// Makes an answer due at once.
    pub(crate) const fn owe_now(&mut self) {
        self.owed = Owed::Now;
    }

    /// Notes that the application has read. The window is `window` now, and the peer knows `told`. A
    /// window that was almost shut and opens is told at once, because the peer waits for that.
    pub(crate) const fn on_read(&mut self, told: u64, window: u64, buffer: u64) {
        if told < buffer / 2 && window >= told + buffer / 2 {
            self.owed = Owed::Now;
        }
    }

    /// Whether an answer is owed.
    pub(crate) const fn owed(&self) -> Owed {
        self.owed
    }

    /// Makes a delayed answer due if its time has come.
    pub(crate) fn handle_deadline(&mut self, now: Instant) {
        if matches!(self.owed, Owed::At(at) if at <= now) {
            self.owed = Owed::Now;
        }
    }

    /// Notes that an answer was sent.
    pub(crate) const fn on_sent(&mut self) {
        self.owed = Owed::Nothing;
        self.waiting = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_millis(200);

    #[test]
    fn the_second_segment_is_answered_at_once_and_one_alone_when_its_time_has_come() {
        let mut answers = OwedAnswers::new();
        let due = Instant::START + TIME;
        answers.wait(Instant::START, 2, TIME, false);
        assert_eq!(answers.owed(), Owed::At(due));
        answers.wait(Instant::START + TIME / 2, 2, TIME, false);
        assert_eq!(answers.owed(), Owed::Now);
        answers.on_sent();
        assert_eq!(answers.owed(), Owed::Nothing);
        answers.wait(Instant::START, 2, TIME, false);
        answers.handle_deadline(due - Duration::from_nanos(1));
        assert_eq!(answers.owed(), Owed::At(due));
        answers.handle_deadline(due);
        assert_eq!(answers.owed(), Owed::Now);
    }

    #[test]
    fn a_window_that_opens_by_half_of_the_buffer_is_told() {
        let mut answers = OwedAnswers::new();
        answers.on_read(100, 599, 1000);
        assert_eq!(answers.owed(), Owed::Nothing);
        answers.on_read(500, 1000, 1000);
        assert_eq!(answers.owed(), Owed::Nothing);
        answers.on_read(100, 600, 1000);
        assert_eq!(answers.owed(), Owed::Now);
    }

    #[test]
    fn a_mark_is_echoed_until_the_sender_has_reduced() {
        let mut answers = OwedAnswers::new();
        answers.on_ecn(Ecn::Congested, false);
        answers.on_ecn(Ecn::Capable, false);
        assert!(answers.echoes_congestion());
        answers.on_ecn(Ecn::Capable, true);
        assert!(!answers.echoes_congestion());
    }
}
