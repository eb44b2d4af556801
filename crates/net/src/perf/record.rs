//! The words of the two ends to each other, and their octets: a 16-bit length, big-endian, and as many octets of
//! postcard.
//!
//! ```text
//!  client  HELLO(test)            PROBE..     BEGIN(token, offset)    [END..]
//!  server          ACCEPT(token)         ECHO..               GO  INTERVAL..  RESULT..
//! ```
//!
//! END comes from the end that sends the messages, INTERVAL and RESULT from the one that receives them. The first
//! octet of every record is its type, and the second octet of every HELLO its version, whatever the version.

use super::figures::{Interval, Measured, Sent};
use super::test::{Test, VERSION};
use serde::{Deserialize, Serialize};

/// A length above any record's: an interval of 128 streams has some 1,300 octets.
const RECORD_BYTES_MAX: usize = 2_048;
/// The longest text of a refusal.
const TEXT_BYTES_MAX: usize = 500;
/// The type of HELLO.
const HELLO: u8 = 0;

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Record {
    Hello(Test),
    /// The token is to be repeated from here on: who knows it receives at the address that it claims.
    Accept {
        token: u64,
    },
    Refuse {
        text: String,
    },
    /// A question, with the client's clock when it left.
    Probe {
        token: u64,
        sent: u64,
    },
    /// The answer: the probe's clock, and the server's clock when the probe came and when this left.
    Echo {
        sent: u64,
        came: u64,
        answered: u64,
    },
    /// The order to begin, with the nanoseconds by which the server's clock is ahead of the client's.
    Begin {
        token: u64,
        ahead: i64,
    },
    /// The server expects the messages.
    Go,
    Interval(Interval),
    /// The sender's figures of one stream; one for each, once all have sent their last.
    End {
        stream: u8,
        sent: Sent,
    },
    /// The receiver's figures of one stream; one for each, and one without a stream for all together.
    Result {
        stream: Option<u8>,
        measured: Measured,
    },
}

/// The octets are no conversation of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPerfRecord {
    /// Longer than any record.
    #[error("a record of {0} octets")]
    Length(usize),
    /// A HELLO of another version; what follows in it is not read.
    #[error(
        "a question of version {0}, and version {VERSION} is what is spoken here; use the same \
         fulmar at both ends"
    )]
    Version(u8),
    /// Not a record of this version.
    #[error("a record that means nothing")]
    Meaning,
}

impl Record {
    /// Its name, for an end that gets it out of turn.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "HELLO",
            Self::Accept { .. } => "ACCEPT",
            Self::Refuse { .. } => "REFUSE",
            Self::Probe { .. } => "PROBE",
            Self::Echo { .. } => "ECHO",
            Self::Begin { .. } => "BEGIN",
            Self::Go => "GO",
            Self::Interval(_) => "INTERVAL",
            Self::End { .. } => "END",
            Self::Result { .. } => "RESULT",
        }
    }

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

/// A reader that takes a stream of records apart, however it is cut.
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
        let record = match (body, postcard::take_from_bytes(body)) {
            (&[HELLO, version, ..], _) if version != VERSION => {
                Err(BadPerfRecord::Version(version))
            }
            (_, Ok((record, []))) => Ok(Some(record)),
            (_, Ok(_) | Err(_)) => Err(BadPerfRecord::Meaning),
        };
        self.held.clear();
        record
    }

    /// Moves octets over until `wanted` are held; returns whether they are.
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
    use super::super::test::TestDirection;
    use super::*;
    use fulmar_proto::units::Duration;
    use fulmar_proto::wire::Mode;
    use proptest::prelude::*;

    fn examples() -> Vec<Record> {
        let test = Test::new(7, Mode::Reliable, TestDirection::Down);
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
            Record::Interval(Interval {
                from: Duration::ZERO,
                until: Duration::from_secs(1),
                messages: vec![u64::MAX; 128],
            }),
            Record::End {
                stream: 0,
                sent: Sent::default(),
            },
            Record::Result {
                stream: None,
                measured: Measured::default(),
            },
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

    #[test]
    fn a_question_of_another_version_is_known_by_its_version_however_it_goes_on() {
        // A record of version 1, and one that a later version may send.
        let first = b"\x00\x15\x00\x01\xa1\x86\x95\xbb\x08\x04\x00\xe8\x07\x00\xc0\x96\xb1\x02\x00\x0a\x00\x00\x00";
        let later = b"\x00\x03\x00\xff\xff";
        for (mut octets, version) in [(first.as_slice(), 1), (later.as_slice(), 255)] {
            let outcome = Records::default().next(&mut octets);
            assert_eq!(outcome, Err(BadPerfRecord::Version(version)));
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
