//! Quantities in our notation, or as iperf3 takes them.

use super::connection;
use fulmar_net::perf::STREAMS_MAX;
use fulmar_proto::units::{Bitrate, ByteCount, Duration};

/// A bare number, or one with iperf3's `k`, `m` or `g` of either case, with the unit that it means here.
fn with_unit(text: &str, units: [&str; 4]) -> Option<String> {
    let text = text.trim();
    let last = text.chars().last()?.to_ascii_lowercase();
    let (number, unit) = match ['k', 'm', 'g'].iter().position(|letter| *letter == last) {
        Some(place) => (text.get(..text.len() - 1)?, units[place + 1]),
        None => (text, units[0]),
    };
    number
        .parse::<f64>()
        .is_ok()
        .then(|| format!("{number}{unit}"))
}

/// `5Mbit/s`, `5M` or a bare number of bit/s: iperf3 counts rates in powers of 1000.
pub(super) fn rate(text: &str) -> Result<Bitrate, String> {
    let meant = with_unit(text, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]);
    connection::rate(meant.as_deref().unwrap_or(text))
}

/// `10MB`, or `10M`: iperf3 counts octets in powers of 1024.
pub(super) fn bytes(text: &str) -> Result<ByteCount, String> {
    let meant = with_unit(text, ["B", "KiB", "MiB", "GiB"]);
    let meant = meant.as_deref().unwrap_or(text);
    meant.parse().map_err(|error| format!("{error}"))
}

/// `1500ms`, or `1.5`: iperf3 counts seconds.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    match text.trim().parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|_| format!("`{text}` is no time; write seconds, or a time such as 10s")),
        Err(_) => connection::span(text),
    }
}

/// The number of streams.
pub(super) fn streams(text: &str) -> Result<u8, String> {
    let streams = text.trim().parse::<u8>().ok();
    let expected = || format!("`{text}` is out of range: 1 to {STREAMS_MAX} streams at once");
    streams
        .filter(|streams| (1..=STREAMS_MAX).contains(streams))
        .ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_notations_mean_the_same() {
        assert_eq!(rate("5M"), rate("5mbit"));
        assert_eq!(rate("300k"), rate("300kbit"));
        assert_eq!(rate("1000000"), rate("1mbit"));
        assert_eq!(bytes("10M"), Ok(ByteCount(10 << 20)));
        assert_eq!(bytes("10MB"), Ok(ByteCount(10_000_000)));
        assert_eq!(bytes("1470"), Ok(ByteCount(1470)));
        assert_eq!(time("1.5"), Ok(Duration::from_millis(1_500)));
        assert_eq!(time("1500ms"), Ok(Duration::from_millis(1_500)));
    }

    #[test]
    fn streams_are_within_iperf3_s_bound() {
        assert_eq!((streams("1"), streams("128")), (Ok(1), Ok(128)));
        for text in ["0", "129", "1000", "-1", "2.5", ""] {
            let problem = streams(text).unwrap_err();
            assert!(problem.contains("1 to 128"), "{problem}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_told() {
        for text in ["", "M", "-5M", "0", "5Q", "nan"] {
            assert!(rate(text).is_err(), "{text}");
        }
        for text in ["-1", "nan", "1e40", "10x", ""] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
