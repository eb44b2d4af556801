//! A message over a socket: one JSON object a line (`docs/protocol/link.md`).

use fulmar_proto::told::{LinkNews, PlannedOutage, TOLD_RATES};
use fulmar_proto::units::{BitErrorRate, Bitrate, Duration, Instant};
use serde::Deserialize;

/// The longest line, without the octet that ends it.
pub(super) const LINE_BYTES_MAX: usize = 4_096;
/// The version of the messages.
const VERSION: u64 = 1;
/// The longest span that may be named: a year.
const SECONDS_MAX: f64 = 31_536_000.0;
const DECIBELS_MAX: f64 = 200.0;
/// More wrong bits than right ones are no link.
const BITS_WRONG_MAX: f64 = 0.5;

/// The fields of a message, as they are written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    v: u64,
    up: Option<bool>,
    rate_out_bits_per_second: Option<u64>,
    rate_back_bits_per_second: Option<u64>,
    ceiling_out_bits_per_second: Option<u64>,
    signal_dbm: Option<f64>,
    signal_to_noise_decibels: Option<f64>,
    bit_error_ratio_out: Option<f64>,
    bit_error_ratio_back: Option<f64>,
    queue_seconds: Option<f64>,
    next_outage_in_seconds: Option<f64>,
    next_outage_seconds: Option<f64>,
    cost: Option<u8>,
    valid_seconds: Option<f64>,
}

/// The reason why a line is no message.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error("it is no JSON object of the known fields: {0}")]
    Json(#[from] serde_json::Error),
    #[error("`v` is {0}; write 1")]
    Version(u64),
    #[error("`{0}` is out of range; {1}")]
    Range(&'static str, &'static str),
    #[error("it is longer than {LINE_BYTES_MAX} octets")]
    Long,
}

/// A message, and how long it says that it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Message {
    pub(super) news: LinkNews,
    pub(super) valid_for: Option<Duration>,
}

fn rate(field: &'static str, given: Option<u64>) -> Result<Option<Bitrate>, LineError> {
    let fits = given.is_none_or(|bits| TOLD_RATES.contains(&bits));
    if fits {
        Ok(given.map(Bitrate::from_bits_per_second))
    } else {
        Err(LineError::Range(field, "write 1000 to 1000000000000"))
    }
}

fn decibels(field: &'static str, given: Option<f64>) -> Result<Option<f64>, LineError> {
    let fits = given.is_none_or(|it| (-DECIBELS_MAX..=DECIBELS_MAX).contains(&it));
    if fits {
        Ok(given)
    } else {
        Err(LineError::Range(field, "write -200 to 200"))
    }
}

fn ratio(field: &'static str, given: Option<f64>) -> Result<Option<BitErrorRate>, LineError> {
    let known = given.map(|value| BitErrorRate::new(value).filter(|_| value <= BITS_WRONG_MAX));
    match known {
        None => Ok(None),
        Some(Some(rate)) => Ok(Some(rate)),
        Some(None) => Err(LineError::Range(field, "write 0 to 0.5")),
    }
}

fn span(field: &'static str, given: Option<f64>) -> Result<Option<Duration>, LineError> {
    let fits = given.is_none_or(|seconds| (0.0..=SECONDS_MAX).contains(&seconds));
    if fits {
        Ok(given.map(Duration::from_secs_f64))
    } else {
        Err(LineError::Range(field, "write 0 to 31536000"))
    }
}

impl Message {
    /// Reads a line, without the octet that ends it. Times in it count from `now`.
    pub(super) fn read(now: Instant, octets: &[u8]) -> Result<Self, LineError> {
        if octets.len() > LINE_BYTES_MAX {
            return Err(LineError::Long);
        }
        let line: Line = serde_json::from_slice(octets)?;
        if line.v != VERSION {
            return Err(LineError::Version(line.v));
        }
        let begins = span("next_outage_in_seconds", line.next_outage_in_seconds)?;
        let lasts = span("next_outage_seconds", line.next_outage_seconds)?;
        let outage = match (begins, lasts) {
            (Some(begins), Some(lasts)) => Some(PlannedOutage {
                begins: now + begins,
                lasts,
            }),
            (None, None) => None,
            _ => {
                let field = "next_outage_seconds";
                let remedy = "write it together with next_outage_in_seconds";
                return Err(LineError::Range(field, remedy));
            }
        };
        let news = LinkNews {
            is_up: line.up,
            rate_out: rate("rate_out_bits_per_second", line.rate_out_bits_per_second)?,
            rate_back: rate("rate_back_bits_per_second", line.rate_back_bits_per_second)?,
            ceiling_out: rate(
                "ceiling_out_bits_per_second",
                line.ceiling_out_bits_per_second,
            )?,
            signal_dbm: decibels("signal_dbm", line.signal_dbm)?,
            signal_to_noise_decibels: decibels(
                "signal_to_noise_decibels",
                line.signal_to_noise_decibels,
            )?,
            bit_errors_out: ratio("bit_error_ratio_out", line.bit_error_ratio_out)?,
            bit_errors_back: ratio("bit_error_ratio_back", line.bit_error_ratio_back)?,
            queue: span("queue_seconds", line.queue_seconds)?,
            outage,
            cost: line.cost,
        };
        let valid_for = span("valid_seconds", line.valid_seconds)?;
        Ok(Self { news, valid_for })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Message, String> {
        Message::read(Instant::START, text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn each_field_is_read_and_what_is_absent_is_not_known() {
        let all = r#"{"v":1,"up":true,"rate_out_bits_per_second":2000000,"rate_back_bits_per_second":64000,"ceiling_out_bits_per_second":9000000,"signal_dbm":-61,"signal_to_noise_decibels":12.5,
            "bit_error_ratio_out":1e-5,"bit_error_ratio_back":0,"queue_seconds":0.02,"next_outage_in_seconds":30,"next_outage_seconds":90.5,"cost":10,"valid_seconds":5}"#;
        let message = read(all).expect("sound");
        let outage = PlannedOutage {
            begins: Instant::START + Duration::from_secs(30),
            lasts: Duration::from_millis(90_500),
        };
        let news = LinkNews {
            is_up: Some(true),
            rate_out: Some(Bitrate::from_bits_per_second(2_000_000)),
            rate_back: Some(Bitrate::from_bits_per_second(64_000)),
            ceiling_out: Some(Bitrate::from_bits_per_second(9_000_000)),
            signal_dbm: Some(-61.0),
            signal_to_noise_decibels: Some(12.5),
            bit_errors_out: BitErrorRate::new(1e-5),
            bit_errors_back: BitErrorRate::new(0.0),
            queue: Some(Duration::from_millis(20)),
            outage: Some(outage),
            cost: Some(10),
        };
        let valid_for = Some(Duration::from_secs(5));
        assert_eq!(message, Message { news, valid_for });
        assert_eq!(read(r#"{"v":1}"#).expect("sound").news, LinkNews::default());
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_field() {
        for (text, said) in [
            ("", "no JSON object"),
            ("[1]", "no JSON object"),
            (r#"{"up":true}"#, "missing field `v`"),
            (r#"{"v":2}"#, "`v` is 2; write 1"),
            (r#"{"v":1,"rate":5}"#, "unknown field `rate`"),
            (r#"{"v":1,"up":true,"up":false}"#, "duplicate field"),
            (
                r#"{"v":1,"rate_out_bits_per_second":0}"#,
                "`rate_out_bits_per_second` is out of range",
            ),
            (r#"{"v":1,"rate_out_bits_per_second":-1}"#, "no JSON object"),
            (r#"{"v":1,"bit_error_ratio_out":0.6}"#, "write 0 to 0.5"),
            (
                r#"{"v":1,"queue_seconds":1e300}"#,
                "`queue_seconds` is out of range",
            ),
            (r#"{"v":1,"queue_seconds":NaN}"#, "no JSON object"),
            (r#"{"v":1,"cost":256}"#, "no JSON object"),
            (r#"{"v":1,"signal_dbm":-201}"#, "write -200 to 200"),
            (
                r#"{"v":1,"signal_to_noise_decibels":1e9}"#,
                "write -200 to 200",
            ),
            (
                r#"{"v":1,"next_outage_seconds":5}"#,
                "together with next_outage_in_seconds",
            ),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
        let long = format!("{{\"v\":1{}}}", " ".repeat(LINE_BYTES_MAX));
        assert!(
            read(&long)
                .expect_err("it is long")
                .contains("longer than 4096")
        );
    }

    proptest! {
        #[test]
        fn whatever_is_written_nothing_panics(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(Message::read(Instant::START, &octets));
        }

        #[test]
        fn whatever_numbers_are_written_what_is_read_is_in_range(rate in any::<f64>(), bits in any::<f64>(), span in any::<f64>()) {
            let text = format!(r#"{{"v":1,"bit_error_ratio_out":{bits},"queue_seconds":{span},"valid_seconds":{rate}}}"#);
            if let Ok(message) = read(&text) {
                prop_assert!(message.news.bit_errors_out.expect("named").value() <= 0.5);
                prop_assert!(message.news.queue.expect("named") <= Duration::from_secs(31_536_000));
            }
        }
    }
}
