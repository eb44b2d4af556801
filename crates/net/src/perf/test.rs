//! The test, as the client asks for it.

use core::ops::RangeInclusive;
use fulmar_proto::units::{Bitrate, ByteCount, Duration};
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::aerotp::FecStrength;
use serde::{Deserialize, Serialize};

/// The most streams of one test; iperf3 has the same bound.
pub const STREAMS_MAX: u8 = 128;
pub(super) const STREAMS: RangeInclusive<u8> = 1..=STREAMS_MAX;

/// The version in HELLO.
pub(super) const VERSION: u8 = 2;

/// The refusal of a rate of 0. The release before rates were found refuses a
/// test without the link's rate in these words, too.
pub(super) const RATE_ABOVE_ZERO: &str = "a rate must be above 0";

/// The end that sends the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TestDirection {
    /// The client.
    Up,
    /// The server.
    Down,
}

/// The end of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// The test ends after this time.
    Time(Duration),
    /// The test ends after so many octets.
    Bytes(u64),
}

/// The test, as the client asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Test {
    /// The version of the format, and therefore first.
    pub(super) version: u8,
    pub(super) id: u32,
    pub(super) mode: u8,
    /// The direction of the messages.
    pub direction: TestDirection,
    /// Octets of one message.
    pub message_bytes: u32,
    /// The rate of the messages in bit/s; without it, as much as the transport takes.
    pub rate_bps: Option<u64>,
    /// The rate of the link, in bit/s, all headers included; 0 if it is to be found.
    pub link_bps: u64,
    /// The end of the test.
    pub limit: Limit,
    /// The time between two reports of progress.
    pub interval: Option<Duration>,
    /// Parity in each TPDU, in words of 32 bits.
    pub fec_words: u16,
    /// Streams at once, each on a connection of its own. Rates and limits are for all together.
    pub streams: u8,
}

/// The shortest and the longest message. The longest is an AeroTP payload's, and more than any useful write.
const MESSAGE_BYTES: RangeInclusive<u32> = 20..=65_000;
const INTERVAL: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3_600);
const TIME: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(86_400);
/// The octets that take over a day at any rate that we reach.
const BYTES_MAX: u64 = 1 << 50;

impl Test {
    /// A test of `mode`, with an id that tells its messages from those of another.
    pub fn new(id: u32, mode: Mode, direction: TestDirection) -> Self {
        Self {
            version: VERSION,
            id,
            mode: mode.code(),
            direction,
            message_bytes: 1_000,
            rate_bps: None,
            link_bps: 5_000_000,
            limit: Limit::Time(Duration::from_secs(10)),
            interval: None,
            fec_words: 0,
            streams: 1,
        }
    }

    /// The mode under test.
    ///
    /// # Errors
    /// As [`Test::check`].
    pub fn mode(&self) -> Result<Mode, String> {
        match Mode::from_code(self.mode) {
            Some(Mode::Datagram) => {
                Err("mode datagram has no connection to measure; take unreliable".to_owned())
            }
            Some(mode) => Ok(mode),
            None => Err(format!("mode {} is not known here", self.mode)),
        }
    }

    /// Parity in each TPDU.
    pub fn fec_words(&self) -> FecStrength {
        FecStrength::from_words(self.fec_words).unwrap_or_default()
    }

    /// Whether it can be done.
    ///
    /// # Errors
    /// The fault, for the user.
    pub fn check(&self) -> Result<(), String> {
        let between =
            |what: &str, low: String, high: String| Err(format!("{what} must be {low} to {high}"));
        self.mode()?;
        if !MESSAGE_BYTES.contains(&self.message_bytes) {
            let (low, high) = (MESSAGE_BYTES.start(), MESSAGE_BYTES.end());
            return between(
                "the length of a message",
                format!("{low}B"),
                format!("{high}B"),
            );
        }
        if !STREAMS.contains(&self.streams) {
            let (low, high) = (STREAMS.start(), STREAMS.end());
            return between("the number of streams", low.to_string(), high.to_string());
        }
        if self.rate_bps == Some(0) {
            return Err(RATE_ABOVE_ZERO.to_owned());
        }
        if self.interval.is_some_and(|span| !INTERVAL.contains(&span)) {
            return between("the interval", "0.1s".to_owned(), "1h".to_owned());
        }
        match self.limit {
            Limit::Time(span) if !TIME.contains(&span) => {
                between("the time", "0.1s".to_owned(), "24h".to_owned())
            }
            Limit::Bytes(bytes) if !(1..=BYTES_MAX).contains(&bytes) => {
                between("the amount", "1B".to_owned(), format!("{BYTES_MAX}B"))
            }
            _ if FecStrength::from_words(self.fec_words).is_none() => {
                between("the parity", "0".to_owned(), "256 words".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// The rate of the link, if it was told.
    pub fn link_rate(&self) -> Option<Bitrate> {
        (self.link_bps > 0).then(|| Bitrate::from_bits_per_second(self.link_bps))
    }

    /// The octets of `messages` whole ones.
    pub fn bytes_of(&self, messages: u64) -> ByteCount {
        // A peer may tell any number of messages.
        ByteCount(messages.saturating_mul(u64::from(self.message_bytes)))
    }

    /// The time after the test's first message at which message `sequence` of `stream` is due, where messages have a
    /// rate. The streams take turns.
    pub(super) fn due(&self, stream: u8, sequence: u64) -> Duration {
        let Some(rate) = self.rate_bps else {
            return Duration::ZERO;
        };
        let before = u128::from(sequence) * u128::from(self.streams) + u128::from(stream);
        let bits = before * u128::from(self.message_bytes) * 8;
        let nanos = bits * 1_000_000_000 / u128::from(rate.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The messages of all streams that are enough, where octets decide.
    pub(super) fn messages_max(&self) -> Option<u64> {
        match self.limit {
            Limit::Time(_) => None,
            Limit::Bytes(bytes) => Some(bytes.div_ceil(u64::from(self.message_bytes.max(1)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Test);

    #[test]
    fn tests_that_cannot_be_done_are_refused_with_the_bound() {
        let good = Test::new(7, Mode::Reliable, TestDirection::Up);
        assert_eq!(good.check(), Ok(()));
        let wrong: [(Change, &str); 9] = [
            (|test| test.mode = Mode::Datagram.code(), "no connection"),
            (|test| test.mode = 200, "mode 200"),
            (|test| test.message_bytes = 1, "20B to 65000B"),
            (|test| test.rate_bps = Some(0), "above 0"),
            (|test| test.interval = Some(Duration::ZERO), "0.1s to 1h"),
            (|test| test.limit = Limit::Bytes(0), "1B to"),
            (|test| test.fec_words = 999, "256 words"),
            (|test| test.streams = 0, "1 to 128"),
            (|test| test.streams = 129, "1 to 128"),
        ];
        for (change, told) in wrong {
            let mut test = good.clone();
            change(&mut test);
            let problem = test.check().unwrap_err();
            assert!(problem.contains(told), "{problem}");
        }
        let most = Test {
            streams: 128,
            ..good
        };
        assert_eq!(most.check(), Ok(()));
    }

    #[test]
    fn streams_share_the_rate_in_turns() {
        // 1,000 octets in each millisecond, whoever sends them.
        let test = Test {
            rate_bps: Some(8_000_000),
            streams: 4,
            ..Test::new(7, Mode::Reliable, TestDirection::Up)
        };
        let due = |stream, sequence| test.due(stream, sequence).as_millis();
        assert_eq!([0, 1, 2, 3].map(|stream| due(stream, 0)), [0, 1, 2, 3]);
        assert_eq!(
            [0, 1, 2, 3].map(|stream| due(stream, 25)),
            [100, 101, 102, 103]
        );
    }
}
