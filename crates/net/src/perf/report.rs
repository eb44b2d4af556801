//! The outcome of a test.

use super::clocks::ClockOffset;
use super::figures::{Interval, Measured, Outcome, Sent, jain};
use super::record::BadPerfRecord;
use super::test::{Limit, Test};
use fulmar_proto::damage::LossByCause;
use fulmar_proto::transport::aerotp::ConnectError;
use fulmar_proto::units::{Bitrate, Duration};

/// The share by which a rate may be missed and still counts as kept.
const RATE_TOLERANCE: f64 = 0.02;

/// The knowledge of both ends of a test.
#[derive(Clone, Debug)]
pub struct PerfReport {
    /// The test that was asked for.
    pub test: Test,
    /// The outcome of each stream.
    pub streams: Vec<Outcome>,
    /// The outcome of all together.
    pub sum: Outcome,
    /// The rate that the link was found to carry, where this end was the sender and nobody told it.
    pub link: Option<Bitrate>,
    /// The losses by cause, where this end was the sender, in a mode that acknowledges, and there were some.
    pub losses: Option<LossByCause>,
    /// The clocks; only the client knows.
    pub clocks: Option<ClockOffset>,
    /// Every interval, as far as this end heard of them and keeps them.
    pub intervals: Vec<Interval>,
    /// Whether it was stopped before its time.
    pub stopped: bool,
}

impl PerfReport {
    /// The report of the streams, each with what was sent, where that is known, and what was received; and of what was
    /// received of all.
    pub(super) fn new(
        test: Test,
        streams: impl Iterator<Item = (Option<Sent>, Measured)>,
        received: Measured,
    ) -> Self {
        let streams: Vec<Outcome> = streams
            .map(|(sent, received)| Outcome { sent, received })
            .collect();
        let sent: Option<Vec<Sent>> = streams.iter().map(|stream| stream.sent).collect();
        let sent = sent.map(|all| Sent::sum(&all));
        Self {
            test,
            streams,
            sum: Outcome { sent, received },
            link: None,
            losses: None,
            clocks: None,
            intervals: Vec::new(),
            stopped: false,
        }
    }

    /// Jain's index of fairness over the octets that arrived of each stream; `None` if nothing did.
    pub fn fairness(&self) -> Option<f64> {
        jain(self.streams.iter().map(|stream| stream.received.bytes))
    }

    /// The rate at which the transport took messages, at most, where it took them more slowly than they were to be sent; `None`
    /// where the test has no rate or the rate was kept, and of a test that was stopped.
    pub fn rate_fallen_short(&self) -> Option<Bitrate> {
        let asked = Bitrate::from_bits_per_second(self.test.rate_bps?);
        let sent = self.sum.sent.filter(|_| !self.stopped)?;
        let span = match self.test.limit {
            Limit::Time(span) => span,
            Limit::Bytes(_) => {
                // The last message was handed over no sooner than that.
                let longest = self.sum.received.delay.map_or(0, |delay| delay.max);
                let elapsed = self.sum.received.elapsed;
                elapsed.saturating_sub(Duration::from_nanos(longest))
            }
        };
        let handed_over = self.test.bytes_of(sent.messages);
        let due = asked.bytes_in(span);
        // At both ends of the time each stream may have one message less.
        let edges = self.test.bytes_of(2 * u64::from(self.test.streams));
        let tolerated = asked.bytes_in(span.mul_f64(RATE_TOLERANCE)).max(edges);
        (due.saturating_sub(handed_over) > tolerated).then(|| Bitrate::of(handed_over, span))
    }
}

/// The reason why there is no report.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PerfError {
    /// Nobody answers.
    #[error(
        "nobody answers: silence for {}; the likely causes: another address or port than `fulmar perf -s` has, \
         something on the way that drops UDP, or keys (--key, --preset) at one end only",
        fulmar_proto::units::format_duration(*.0)
    )]
    Unreachable(Duration),
    /// The network says that nobody listens.
    #[error(
        "nobody answers: the port is closed; start `fulmar perf -s` there, or check the address"
    )]
    PortClosed,
    /// The other end was there and is gone.
    #[error(
        "the other end was not heard for {}; measure again when the link is back, or with a longer --give-up",
        fulmar_proto::units::format_duration(*.0)
    )]
    Vanished(Duration),
    /// The other end ended the conversation.
    #[error("the other end was stopped")]
    Ended,
    /// The server does not want to run the test, or cannot.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// The server wants the link's rate, since it finds none.
    #[error(
        "the server refuses a test without a rate: it is of a release that cannot find one; say what the link carries with \
         --rate, or use the same fulmar at both ends"
    )]
    NeedsRate,
    /// The settings cannot work.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The other end speaks something else.
    #[error("the other end sent {0}")]
    Protocol(#[from] BadPerfRecord),
    /// The other end speaks out of turn.
    #[error("the other end says {0} out of turn")]
    Sequence(&'static str),
    /// The other end tells of a stream that was not asked for.
    #[error("the other end speaks of stream {} in a test of {streams}", u16::from(*stream) + 1)]
    Stream {
        /// The stream's number, from 0.
        stream: u8,
        /// The number of streams.
        streams: u8,
    },
    /// The other end tells of another number of streams.
    #[error("the other end tells of {told} streams in a test of {streams}")]
    Streams {
        /// The number told.
        told: usize,
        /// The number of streams.
        streams: u8,
    },
    /// The server dropped the conversation at its first word.
    #[error(
        "the server dropped the question without a word: it is of another version of fulmar, or has \
         too many clients; use the same fulmar at both ends"
    )]
    NotUnderstood,
    /// The caller asked to stop, before there was anything to report.
    #[error("stopped before there was anything to report")]
    Stopped,
}

#[cfg(test)]
mod tests {
    use super::super::figures::Spread;
    use super::super::test::TestDirection;
    use super::*;
    use fulmar_proto::wire::Mode;

    /// A test of 1,000 messages of 1,000 octets each, one every 10 ms, of which so many were handed over, the last of which
    /// arrived after this time.
    fn report(limit: Limit, messages: u64, elapsed: Duration) -> PerfReport {
        let test = Test {
            rate_bps: Some(800_000),
            limit,
            ..Test::new(1, Mode::Reliable, TestDirection::Up)
        };
        let sent = Sent {
            messages,
            ..Sent::default()
        };
        let delay = Spread {
            count: messages,
            early: 0,
            min: 20_000_000,
            mean: 30e6,
            p50: 25_000_000,
            p90: 40_000_000,
            p99: 60_000_000,
            p999: 80_000_000,
            max: 100_000_000,
        };
        let received = Measured {
            messages,
            elapsed,
            delay: Some(delay),
            ..Measured::default()
        };
        PerfReport::new(test, [(Some(sent), received)].into_iter(), received)
    }

    #[test]
    fn a_rate_that_the_transport_did_not_take_is_named() {
        let (ten, bytes) = (Duration::from_secs(10), Limit::Bytes(1_000_000));
        let short = |limit, messages, elapsed| report(limit, messages, elapsed).rate_fallen_short();
        let kbit = |rate: u64| Some(Bitrate::from_bits_per_second(1_000 * rate));
        assert_eq!(short(Limit::Time(ten), 1_000, ten), None);
        assert_eq!(short(Limit::Time(ten), 990, ten), None);
        assert_eq!(short(Limit::Time(ten), 600, ten), kbit(480));
        let late = Duration::from_millis(100);
        assert_eq!(short(bytes, 1_000, ten + late), None);
        assert_eq!(short(bytes, 1_000, ten * 2 + late), kbit(400));
        let mut stopped = report(Limit::Time(ten), 600, ten);
        stopped.stopped = true;
        assert_eq!(stopped.rate_fallen_short(), None);
        let mut free = report(Limit::Time(ten), 600, ten);
        free.test.rate_bps = None;
        assert_eq!(free.rate_fallen_short(), None);
    }
}
