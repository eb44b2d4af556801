//! The one notation for quantities in files, flags and reports.

use super::{
    BitErrorRate, Bitrate, ByteCount, Distance, OpticalPower, PacketErrorRate, Probability,
};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// The reason why a quantity could not be read. The message says what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// The text does not begin with a number.
    #[error("`{text}` does not start with a number: {expected}")]
    NoNumber {
        /// The text given.
        text: String,
        /// The forms accepted.
        expected: &'static str,
    },
    /// The number has no unit.
    #[error("`{text}` has no unit: {expected}")]
    NoUnit {
        /// The text given.
        text: String,
        /// The forms accepted.
        expected: &'static str,
    },
    /// The unit is not one of this quantity.
    #[error("`{unit}` in `{text}` is not a unit here: {expected}")]
    UnknownUnit {
        /// The text given.
        text: String,
        /// The part after the number.
        unit: String,
        /// The forms accepted.
        expected: &'static str,
    },
    /// The unit counts octets, or may count them, where bits are counted.
    #[error("`{text}` {why}; rates are in bits per second here: write {instead}")]
    BitsOrBytes {
        /// The text given.
        text: String,
        /// The doubt about its unit.
        why: &'static str,
        /// The rate that it means.
        instead: String,
    },
    /// The value lies outside the quantity's range.
    #[error("`{text}` is out of range: {expected}")]
    OutOfRange {
        /// The text given.
        text: String,
        /// The forms accepted.
        expected: &'static str,
    },
}

const DURATION: &str = "write a time such as 250us, 10ms, 1.5s, 2min or 1h";
const BITRATE: &str = "write a rate such as 400kbit/s, 5Mbit/s or 1Gbit/s (powers of 1000; 5M and 5mbit mean the same)";
const OCTETS: &str = "counts bytes";
const BITS_OR_OCTETS: &str =
    "may count bits or bytes (`bps` means bytes per second to tc and bits to others)";
const BYTES: &str = "write an amount such as 1500B, 20kB, 1MB, 64KiB or 2MiB";
const DISTANCE: &str = "write a distance such as 500m or 61km";
const POWER: &str = "write an optical power such as -44.3dBm, 37.2nW, 1uW or 0W";
const RATIO_IN_HUNDREDTHS: &str = "a share without a unit is between 0 and 1; for so many in a hundred write % behind it, such as 2%";
const RATIO: &str = "write a share such as 2%, 0.02 or 1e-5, between 0 and 1 (0% and 100%)";

/// Splits `1.5ms` into 1.5 and `ms`.
fn split<'a>(text: &'a str, expected: &'static str) -> Result<(f64, &'a str), UnitError> {
    let text = text.trim();
    // `e` belongs to the number only when an exponent follows, so that `1e-5` and `1eB` differ.
    let bytes = text.as_bytes();
    let mut end = 0;
    while let Some(&byte) = bytes.get(end) {
        let digit_at = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
        match byte {
            b'0'..=b'9' | b'.' => end += 1,
            b'-' | b'+' if end == 0 => end += 1,
            b'e' | b'E' if end > 0 && digit_at(end + 1) => end += 2,
            b'e' | b'E'
                if end > 0
                    && matches!(bytes.get(end + 1), Some(b'-' | b'+'))
                    && digit_at(end + 2) =>
            {
                end += 3;
            }
            _ => break,
        }
    }
    let (number, unit) = text.split_at(end);
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((value, unit.trim())),
        Ok(_) => Err(UnitError::OutOfRange {
            text: text.to_owned(),
            expected,
        }),
        _ => Err(UnitError::NoNumber {
            text: text.to_owned(),
            expected,
        }),
    }
}

fn scaled(
    text: &str,
    expected: &'static str,
    unit_of: impl Fn(&str) -> Option<f64>,
) -> Result<f64, UnitError> {
    let (value, unit) = split(text, expected)?;
    if unit.is_empty() {
        return Err(UnitError::NoUnit {
            text: text.to_owned(),
            expected,
        });
    }
    let Some(factor) = unit_of(unit) else {
        let unit = unit.to_owned();
        return Err(UnitError::UnknownUnit {
            text: text.to_owned(),
            unit,
            expected,
        });
    };
    let scaled = value * factor;
    // Up to 2^63 integer nanoseconds, bits and octets all have room.
    if !(0.0..=9.2e18).contains(&scaled) {
        return Err(UnitError::OutOfRange {
            text: text.to_owned(),
            expected,
        });
    }
    Ok(scaled)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`scaled` returns 0..=9.2e18"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Reads a span: a number with `ns`, `us`, `ms`, `s`, `min` or `h`.
///
/// # Errors
/// [`UnitError`] for a missing or unknown unit, no number, or a negative or absurd value.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let nanos = scaled(text, DURATION, |unit| match unit {
        "ns" => Some(1.0),
        "us" | "µs" | "μs" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        "min" => Some(60e9),
        "h" => Some(3600e9),
        _ => None,
    })?;
    Ok(Duration::from_nanos(whole(nanos)))
}

/// Prints a span in the largest unit that keeps it exact, such that [`parse_duration`] reads it.
pub fn format_duration(span: Duration) -> String {
    let nanos = span.as_nanos();
    for (unit, size) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if nanos.is_multiple_of(size) {
            return format!("{}{unit}", nanos / size);
        }
    }
    format!("{nanos}ns")
}

/// The error about a rate in octets a second, such as `10 MB/s`, or in a unit that leaves open what it counts; `None` if
/// `text` is neither.
fn counts_octets(text: &str) -> Option<UnitError> {
    let (value, unit) = split(text, BITRATE).ok()?;
    let letters = ["/sec", "/s", "ps"]
        .iter()
        .find_map(|end| unit.strip_suffix(end));
    let (of_a_second, letters) = (letters.is_some(), letters.unwrap_or(unit));
    let prefix = letters.strip_suffix(['B', 'b'])?;
    let factor = match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" | "m" => 1e6,
        "G" | "g" => 1e9,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    // `5mb` may be anything, and is no rate.
    let is_of_octets = letters.ends_with('B') && !unit.ends_with("ps");
    if !is_of_octets && !of_a_second {
        return None;
    }
    let bits = value * factor;
    if !(0.0..=1e18).contains(&bits) {
        return None;
    }
    let of = |bits: f64| Bitrate::from_bits_per_second(whole(bits)).to_string();
    let (why, instead) = if is_of_octets {
        (OCTETS, of(bits * 8.0))
    } else {
        let instead = format!("{}, or {} for bytes", of(bits), of(bits * 8.0));
        (BITS_OR_OCTETS, instead)
    };
    let text = text.to_owned();
    Some(UnitError::BitsOrBytes { text, why, instead })
}

impl FromStr for Bitrate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        if let Some(error) = counts_octets(text) {
            return Err(error);
        }
        let bits = scaled(text, BITRATE, |unit| match unit {
            "bit" | "bit/s" => Some(1.0),
            "kbit" | "kbit/s" | "Kbit" | "Kbit/s" | "k" | "K" => Some(1e3),
            "mbit" | "mbit/s" | "Mbit" | "Mbit/s" | "m" | "M" => Some(1e6),
            "gbit" | "gbit/s" | "Gbit" | "Gbit/s" | "g" | "G" => Some(1e9),
            _ => None,
        })?;
        Ok(Self::from_bits_per_second(whole(bits)))
    }
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.as_bits_per_second();
        for (unit, size) in [
            ("Gbit/s", 1_000_000_000),
            ("Mbit/s", 1_000_000),
            ("kbit/s", 1_000),
        ] {
            if bits >= size && bits.is_multiple_of(size / 1_000) {
                return write!(f, "{}{unit}", bits as f64 / size as f64);
            }
        }
        write!(f, "{bits}bit/s")
    }
}

impl FromStr for ByteCount {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let octets = scaled(text, BYTES, |unit| match unit {
            "B" => Some(1.0),
            "kB" => Some(1e3),
            "MB" => Some(1e6),
            "GB" => Some(1e9),
            "KiB" => Some(1024.0),
            "MiB" => Some(1024.0 * 1024.0),
            "GiB" => Some(1024.0 * 1024.0 * 1024.0),
            _ => None,
        })?;
        Ok(Self(whole(octets)))
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

impl FromStr for Distance {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let metres = scaled(text, DISTANCE, |unit| match unit {
            "m" => Some(1.0),
            "km" => Some(1e3),
            _ => None,
        })?;
        Self::from_metres(metres).ok_or_else(|| UnitError::OutOfRange {
            text: text.to_owned(),
            expected: DISTANCE,
        })
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.metres() >= 1e3 {
            write!(f, "{}km", self.metres() / 1e3)
        } else {
            write!(f, "{}m", self.metres())
        }
    }
}

impl FromStr for OpticalPower {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let power = match split(text, POWER)? {
            (decibels, "dBm") => Self::from_dbm(decibels),
            _ => Self::from_watts(scaled(text, POWER, |unit| match unit {
                "W" => Some(1.0),
                "mW" => Some(1e-3),
                "uW" | "µW" | "μW" => Some(1e-6),
                "nW" => Some(1e-9),
                "pW" => Some(1e-12),
                _ => None,
            })?),
        };
        power.ok_or_else(|| UnitError::OutOfRange {
            text: text.to_owned(),
            expected: POWER,
        })
    }
}

impl fmt::Display for OpticalPower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}W", self.watts())
    }
}

fn ratio(text: &str) -> Result<f64, UnitError> {
    let (value, unit) = split(text, RATIO)?;
    let value = match unit {
        "" => value,
        "%" => value / 100.0,
        _ => {
            return Err(UnitError::UnknownUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                expected: RATIO,
            });
        }
    };
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else if unit.is_empty() && (1.0..=100.0).contains(&value) {
        Err(UnitError::NoUnit {
            text: text.to_owned(),
            expected: RATIO_IN_HUNDREDTHS,
        })
    } else {
        Err(UnitError::OutOfRange {
            text: text.to_owned(),
            expected: RATIO,
        })
    }
}

macro_rules! ratio_text {
    ($name:ident) => {
        impl FromStr for $name {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                let out_of_range = || UnitError::OutOfRange {
                    text: text.to_owned(),
                    expected: RATIO,
                };
                Self::new(ratio(text)?).ok_or_else(out_of_range)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.value())
            }
        }
    };
}

ratio_text!(Probability);
ratio_text!(PacketErrorRate);
ratio_text!(BitErrorRate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_need_a_unit_and_keep_it() {
        assert_eq!(parse_duration("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(parse_duration("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("10us"), Ok(Duration::from_micros(10)));
        assert!(matches!(
            parse_duration("10"),
            Err(UnitError::NoUnit { .. })
        ));
        assert!(matches!(
            parse_duration("10 parsecs"),
            Err(UnitError::UnknownUnit { .. })
        ));
        assert!(matches!(
            parse_duration("-1s"),
            Err(UnitError::OutOfRange { .. })
        ));
        assert!(matches!(
            parse_duration("soon"),
            Err(UnitError::NoNumber { .. })
        ));
        assert_eq!(format_duration(Duration::from_micros(1500)), "1500us");
    }

    #[test]
    fn rates_are_powers_of_1000_and_bps_is_refused_with_a_hint() {
        assert_eq!(
            "5mbit".parse(),
            Ok(Bitrate::from_bits_per_second(5_000_000))
        );
        assert_eq!(
            "4.416mbit".parse(),
            Ok(Bitrate::from_bits_per_second(4_416_000))
        );
        let refused = "5Mbps".parse::<Bitrate>().unwrap_err().to_string();
        assert!(refused.contains("bytes per second to tc"), "{refused}");
        assert_eq!(
            Bitrate::from_bits_per_second(4_416_000).to_string(),
            "4.416Mbit/s"
        );
        // One spelling is printed, and those of other tools are read.
        for (texts, bits) in [
            (
                &[
                    "5Mbit/s", "5 Mbit/s", "5Mbit", "5mbit", "5M", "5m", "5mbit/s", "5000k",
                ][..],
                5_000_000,
            ),
            (&["400kbit/s", "400kbit", "400k", "400K", "0.4M"], 400_000),
            (
                &["1Gbit/s", "1gbit", "1G", "1g", "1e3Mbit/s"],
                1_000_000_000,
            ),
            (&["7bit/s", "7bit"], 7),
        ] {
            let rate = Bitrate::from_bits_per_second(bits);
            assert_eq!(rate.to_string(), texts[0]);
            for text in texts {
                assert_eq!(text.parse(), Ok(rate), "{text}");
            }
        }
        for text in ["5", "5MB/s", "5Mb/s", "5 MBit/s/s", "5M/s", "5Mibit"] {
            assert!(text.parse::<Bitrate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_rate_in_bytes_is_refused_with_what_it_is_in_bits() {
        for (text, instead) in [
            ("10 MB/s", "write 80Mbit/s"),
            ("10MB", "write 80Mbit/s"),
            ("1.5kB/s", "write 12kbit/s"),
            ("1 MiB/s", "write 8388.608kbit/s"),
            ("200B/s", "write 1.6kbit/s"),
            ("5Mbps", "write 5Mbit/s, or 40Mbit/s for bytes"),
            ("5MBps", "write 5Mbit/s, or 40Mbit/s for bytes"),
            ("5Mb/s", "write 5Mbit/s, or 40Mbit/s for bytes"),
        ] {
            let refused = text.parse::<Bitrate>().unwrap_err().to_string();
            assert!(refused.ends_with(instead), "{refused}");
            assert!(!refused.contains("no unit"), "{refused}");
        }
        // Neither is a rate, and nobody knows which was meant.
        for text in ["5Mb", "5 MB/h", "5"] {
            let refused = text.parse::<Bitrate>().unwrap_err().to_string();
            assert!(refused.contains("400kbit/s"), "{refused}");
        }
    }

    #[test]
    fn amounts_know_kb_from_kib() {
        assert_eq!("1500B".parse(), Ok(ByteCount(1500)));
        assert_eq!("20MB".parse(), Ok(ByteCount(20_000_000)));
        assert_eq!("64KiB".parse(), Ok(ByteCount(65_536)));
        assert!("1e".parse::<ByteCount>().is_err());
    }

    #[test]
    fn distances_and_powers_need_a_unit_and_print_as_they_are_read() {
        let far: Distance = "61km".parse().unwrap();
        assert_eq!(Some(far), Distance::from_metres(61_000.0));
        assert_eq!(far.to_string().parse(), Ok(far));
        assert!(matches!(
            "61".parse::<Distance>(),
            Err(UnitError::NoUnit { .. })
        ));
        let weak: OpticalPower = "-44.3dBm".parse().unwrap();
        assert_eq!(weak.to_string().parse(), Ok(weak));
        assert_eq!("0W".parse(), Ok(OpticalPower::ZERO));
        let refused = "-2nW".parse::<OpticalPower>().unwrap_err().to_string();
        assert!(refused.contains("-44.3dBm"), "{refused}");
        assert!("3dB".parse::<OpticalPower>().is_err());
    }

    #[test]
    fn shares_are_per_cent_or_plain_and_stay_within_0_and_1() {
        let read = |text: &str| text.parse::<Probability>().map(Probability::value);
        assert_eq!(read("2%"), Ok(0.02));
        assert_eq!(read("1e-5"), Ok(1e-5));
        assert!(matches!(read("101%"), Err(UnitError::OutOfRange { .. })));
        assert!(matches!(read("NaN"), Err(UnitError::NoNumber { .. })));
    }
}
