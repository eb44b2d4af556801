//! What the two ends say to each other, and the octets it is said in: a 16-bit length, big-endian,
//! and as many octets of postcard.
//!
//! ```text
//!  client  HELLO(test)            PROBE..     BEGIN(token, offset)    [END]
//!  server          ACCEPT(token)         ECHO..               GO  INTERVAL..  RESULT
//! ```
//!
//! END is of the end that sends the messages, INTERVAL and RESULT of the one that receives them.

use core::ops::RangeInclusive;
use fulmar_proto::transport::aerotp::Counters;
use fulmar_proto::units::{Bitrate, ByteCount, Duration};
use fulmar_proto::wire::aerotp::{FecStrength, Mode};
use serde::{Deserialize, Serialize};

/// The version in HELLO.
pub(super) const VERSION: u8 = 1;
/// Longer than any record.
const RECORD_BYTES_MAX: usize = 2_048;
/// The text of a refusal, at most.
const TEXT_BYTES_MAX: usize = 500;

/// Which end sends the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// The client.
    Up,
    /// The server.
    Down,
}

/// When enough was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// After so long.
    Time(Duration),
    /// After so many octets.
    Bytes(u64),
}

/// What is measured, as the client asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Test {
    pub(super) version: u8,
    pub(super) id: u32,
    pub(super) mode: u8,
    /// Which way the messages go.
    pub direction: Direction,
    /// Octets of one message.
    pub message_bytes: u32,
    /// The rate of the messages in bit/s; without it, as much as the transport takes.
    pub rate_bps: Option<u64>,
    /// What the link carries, in bit/s, all headers included.
    pub link_bps: u64,
    /// When it is over.
    pub limit: Limit,
    /// How often to tell how it goes.
    pub interval: Option<Duration>,
    /// Parity in each TPDU, in words of 32 bits.
    pub fec_words: u16,
}

/// The longest message: an AeroTP payload's longest, and more than any useful write.
const MESSAGE_BYTES: RangeInclusive<u32> = 20..=65_000;
const INTERVAL: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3_600);
const TIME: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(86_400);
/// What is over a day at any rate that we reach.
const BYTES_MAX: u64 = 1 << 50;

impl Test {
    /// A test of `mode`, with an id that tells its messages from those of another.
    pub fn new(id: u32, mode: Mode, direction: Direction) -> Self {
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
    /// What is wrong, for the user.
    pub fn check(&self) -> Result<(), String> {
        let between =
            |what: &str, low: String, high: String| Err(format!("{what} must be {low} to {high}"));
        if self.version != VERSION {
            let (theirs, ours) = (self.version, VERSION);
            return Err(format!(
                "the client speaks version {theirs} of this test, the server version {ours}; use \
                 the same fulmar at both ends"
            ));
        }
        self.mode()?;
        if !MESSAGE_BYTES.contains(&self.message_bytes) {
            let (low, high) = (MESSAGE_BYTES.start(), MESSAGE_BYTES.end());
            return between(
                "the length of a message",
                format!("{low}B"),
                format!("{high}B"),
            );
        }
        if self.rate_bps == Some(0) || self.link_bps == 0 {
            return Err("a rate must be above 0".to_owned());
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

    /// What the link carries.
    pub fn link_rate(&self) -> Bitrate {
        Bitrate::from_bits_per_second(self.link_bps)
    }

    /// When message `sequence` is due after the first, where messages have a rate.
    pub(super) fn due(&self, sequence: u64) -> Duration {
        let Some(rate) = self.rate_bps else {
            return Duration::ZERO;
        };
        let bits = u128::from(sequence) * u128::from(self.message_bytes) * 8;
        let nanos = bits * 1_000_000_000 / u128::from(rate.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// What arrived in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Its begin, from the arrival of the first message.
    pub from: Duration,
    /// Its end.
    pub until: Duration,
    /// Whole messages.
    pub messages: u64,
    /// Their octets.
    pub bytes: u64,
}

/// Delays, in nanoseconds but for the counts; percentiles within 0.1 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Messages.
    pub count: u64,
    /// Of these, how many would have arrived before they were sent, by the clocks; counted as 0.
    pub early: u64,
    /// The shortest delay.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// Of ten messages nine take no longer.
    pub p90: u64,
    /// Of a hundred ninety-nine.
    pub p99: u64,
    /// Of a thousand all but one.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

/// What the end that received the messages knows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Whole messages.
    pub messages: u64,
    /// Their octets.
    pub bytes: u64,
    /// Those behind one with a higher number.
    pub reordered: u64,
    /// From when the first was handed over to when the last had arrived.
    pub elapsed: Duration,
    /// TPDUs accepted.
    pub accepted_tpdus: u64,
    /// Holes noticed: TPDUs lost on the wire.
    pub wire_lost_tpdus: u64,
    /// TPDUs that arrived damaged beyond their parity.
    pub wire_damaged_tpdus: u64,
    /// TPDUs put right by their parity words.
    pub recovered_fec_words_tpdus: u64,
    /// TPDUs rebuilt from blocks.
    pub recovered_fec_block_tpdus: u64,
    /// TPDUs given up.
    pub residual_tpdus: u64,
    /// One-way delays, if any message came.
    pub delay: Option<Spread>,
}

/// What the end that sent the messages knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Messages handed over.
    pub messages: u64,
    /// Their octets.
    pub bytes: u64,
    /// Octets on the wire of first copies, parity across TPDUs, retransmissions and control.
    pub wire_bytes: [u64; 4],
    /// TPDUs confirmed after one, two, or more retransmissions.
    pub recovered_arq_tpdus: [u64; 3],
    /// Whole timeouts passed in silence.
    pub stalls: u64,
}

impl Sent {
    pub(super) fn of(messages: u64, message_bytes: u32, counters: Option<&Counters>) -> Self {
        let counters = counters.copied().unwrap_or_default();
        Self {
            messages,
            bytes: messages.saturating_mul(u64::from(message_bytes)),
            wire_bytes: counters.sent_bytes,
            recovered_arq_tpdus: counters.recovered_arq,
            stalls: counters.stalls,
        }
    }

    /// Octets on the wire, all kinds.
    pub fn wire_total(&self) -> ByteCount {
        let sum = |sum: u64, kind: &u64| sum.saturating_add(*kind);
        ByteCount(self.wire_bytes.iter().fold(0, sum))
    }
}

/// One thing said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Record {
    Hello(Test),
    /// To be repeated from here on: who knows it receives where it says it does.
    Accept {
        token: u64,
    },
    Refuse {
        text: String,
    },
    /// The client's clock when it said this.
    Probe {
        token: u64,
        sent: u64,
    },
    /// The probe's, and the server's clock when it came and when this was said.
    Echo {
        sent: u64,
        came: u64,
        answered: u64,
    },
    /// How far the server's clock is ahead of the client's, in nanoseconds.
    Begin {
        token: u64,
        ahead: i64,
    },
    /// The server expects the messages.
    Go,
    Interval(Interval),
    End(Sent),
    Result(Measured),
}

/// The octets are no conversation of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPerfRecord {
    /// Longer than any record.
    #[error("a record of {0} octets")]
    Length(usize),
    /// Not a record of this version.
    #[error("a record that means nothing")]
    Meaning,
}

impl Record {
    /// Appends the record's octets.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let body = match self {
            Self::Refuse { text } if text.len() > TEXT_BYTES_MAX => {
                let mut end = TEXT_BYTES_MAX;
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                let text = text[..end].to_owned();
                postcard::to_allocvec(&Self::Refuse { text })
            }
            record => postcard::to_allocvec(record),
        };
        let body = body.expect("records are plain data");
        let length = u16::try_from(body.len()).expect("records are short");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&body);
    }
}

/// Takes a stream of records apart, however it is cut.
#[derive(Debug, Default)]
pub(super) struct Records {
    held: Vec<u8>,
}

impl Records {
    /// Takes one record from the front of `octets`; `None` when it needs more of them.
    ///
    /// # Errors
    /// [`BadPerfRecord`]; the stream makes no sense from here on.
    pub(super) fn next(&mut self, octets: &mut &[u8]) -> Result<Option<Record>, BadPerfRecord> {
        if !self.fill(octets, 2) {
            return Ok(None);
        }
        let length = match self.held.first_chunk::<2>() {
            Some(head) => usize::from(u16::from_be_bytes(*head)),
            None => return Ok(None),
        };
        if length > RECORD_BYTES_MAX {
            return Err(BadPerfRecord::Length(length));
        }
        if !self.fill(octets, 2 + length) {
            return Ok(None);
        }
        let body = self.held.get(2..).unwrap_or_default();
        let taken = postcard::take_from_bytes(body);
        let record = match taken {
            Ok((record, [])) => Ok(Some(record)),
            Ok(_) | Err(_) => Err(BadPerfRecord::Meaning),
        };
        self.held.clear();
        record
    }

    /// Moves octets over until `wanted` are held; whether they are.
    fn fill(&mut self, octets: &mut &[u8], wanted: usize) -> bool {
        let missing = wanted.saturating_sub(self.held.len());
        let (taken, rest) = octets.split_at(missing.min(octets.len()));
        self.held.extend_from_slice(taken);
        *octets = rest;
        self.held.len() >= wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn examples() -> Vec<Record> {
        let test = Test::new(7, Mode::Reliable, Direction::Down);
        vec![
            Record::Hello(test),
            Record::Accept { token: u64::MAX },
            Record::Refuse {
                text: "busy".to_owned(),
            },
            Record::Probe { token: 5, sent: 1 },
            Record::Echo {
                sent: 1,
                came: 2,
                answered: 3,
            },
            Record::Begin {
                token: 5,
                ahead: -40,
            },
            Record::Go,
            Record::End(Sent::default()),
        ]
    }

    #[test]
    fn records_come_out_as_they_went_in_however_the_stream_is_cut() {
        let mut stream = Vec::new();
        for record in examples() {
            record.encode(&mut stream);
        }
        for size in 1..stream.len() {
            let mut records = Records::default();
            let mut found = Vec::new();
            for mut piece in stream.chunks(size) {
                while let Some(record) = records.next(&mut piece).unwrap() {
                    found.push(record);
                }
            }
            assert_eq!(found, examples(), "pieces of {size}");
        }
    }

    #[test]
    fn a_long_refusal_is_cut_between_characters() {
        let mut octets = Vec::new();
        let text = "ü".repeat(1_000);
        Record::Refuse { text }.encode(&mut octets);
        let record = Records::default().next(&mut octets.as_slice()).unwrap();
        let Some(Record::Refuse { text }) = record else {
            panic!("{record:?}")
        };
        assert_eq!(text, "ü".repeat(TEXT_BYTES_MAX / 2));
    }

    type Change = fn(&mut Test);

    #[test]
    fn tests_that_cannot_be_done_are_refused_with_the_bound() {
        let good = Test::new(7, Mode::Reliable, Direction::Up);
        assert_eq!(good.check(), Ok(()));
        let wrong: [(Change, &str); 8] = [
            (|test| test.version = 9, "version 9"),
            (|test| test.mode = Mode::Datagram.code(), "no connection"),
            (|test| test.mode = 200, "mode 200"),
            (|test| test.message_bytes = 1, "20B to 65000B"),
            (|test| test.rate_bps = Some(0), "above 0"),
            (|test| test.interval = Some(Duration::ZERO), "0.1s to 1h"),
            (|test| test.limit = Limit::Bytes(0), "1B to"),
            (|test| test.fec_words = 999, "256 words"),
        ];
        for (change, told) in wrong {
            let mut test = good.clone();
            change(&mut test);
            let problem = test.check().unwrap_err();
            assert!(problem.contains(told), "{problem}");
        }
    }

    proptest! {
        #[test]
        fn any_octets_end_in_records_or_one_error(octets in prop::collection::vec(any::<u8>(), 0..3000)) {
            let mut records = Records::default();
            let mut rest = octets.as_slice();
            while let Ok(Some(_)) = records.next(&mut rest) {}
            prop_assert!(records.held.len() <= 2 + RECORD_BYTES_MAX);
        }
    }
}
