//! A limit on answers to segments that cannot be accepted (RFC 5961, section 7).
//!
//! Such a segment is answered, because its sender may be a peer that lost the information in the
//! answer. A forger could make an end send as many answers as it likes, to a peer that did not ask;
//! so their number is limited. Each connection has its own limit. From a limit that all connections
//! share, a forger could learn of connections that it does not see.

use fulmar_proto::units::{Duration, Instant};

/// The most answers in a [`SPAN`]: RFC 5961's example.
const ANSWERS_MAX: u8 = 10;
const SPAN: Duration = Duration::from_secs(1);

/// The limit of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Challenges {
    since: Instant,
    answers: u8,
}

impl Challenges {
    pub(crate) const fn new() -> Self {
        Self {
            since: Instant::START,
            answers: 0,
        }
    }

    /// Whether one more segment may be answered at `now`; if so, it is counted.
    pub(crate) fn permits(&mut self, now: Instant) -> bool {
        if now.saturating_since(self.since) >= SPAN {
            (self.since, self.answers) = (now, 0);
        }
        let permitted = self.answers < ANSWERS_MAX;
        self.answers += u8::from(permitted);
        permitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_are_answered_in_a_second_and_ten_more_in_the_next() {
        let mut challenges = Challenges::new();
        let begin = Instant::START + Duration::from_millis(300);
        let answered = |challenges: &mut Challenges, now| {
            (0..1_000).filter(|_| challenges.permits(now)).count()
        };
        assert_eq!(answered(&mut challenges, begin), 10);
        let last = begin + SPAN - Duration::from_nanos(1);
        // The span that began with the run is not over before this one.
        let first_span = Instant::START + SPAN;
        assert_eq!(answered(&mut challenges, first_span), 10);
        assert_eq!(answered(&mut challenges, last), 0);
        assert_eq!(answered(&mut challenges, first_span + SPAN), 10);
    }
}
