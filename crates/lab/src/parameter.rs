//! The swept parameters as columns: numbers in one unit where all their values are, else texts as written.

use arrow_array::ArrayRef;
use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_schema::{DataType, Field};
use core::str::FromStr;
use fulmar_proto::units::{Bitrate, ByteCount, parse_duration};
use fulmar_sim::SweepPoint;
use std::collections::HashMap;
use std::sync::Arc;

/// A swept path as a column.
#[derive(Clone, Debug)]
pub(crate) struct ParameterColumn {
    path: String,
    /// The unit of the numbers; `None` where the values are texts.
    unit: Option<&'static str>,
}

/// The value of a written number, and its unit.
type Quantity = (f64, &'static str);

const SHARE: &str = "share";
const PLAIN: &str = "1";

impl ParameterColumn {
    /// The columns of the swept paths, in the order of the sweep.
    pub(crate) fn of(points: &[SweepPoint]) -> Vec<Self> {
        let Some(first) = points.first() else {
            return Vec::new();
        };
        let paths = first.varied.iter().map(|(path, _)| path.clone());
        let unit = |path: &str| {
            let written = points.iter().filter_map(|point| written(point, path));
            unit_of(written)
        };
        paths
            .map(|path| Self {
                unit: unit(&path),
                path,
            })
            .collect()
    }

    pub(crate) fn field(&self) -> Field {
        let (data_type, unit) = match self.unit {
            Some(unit) => (DataType::Float64, unit),
            None => (DataType::Utf8, "text"),
        };
        let about = "as the scenario has it";
        let metadata = [("unit", unit), ("about", about), ("role", "swept")];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Field::new(&self.path, data_type, true).with_metadata(HashMap::from(metadata))
    }

    /// The values at these points, in their order.
    pub(crate) fn array<'a>(&self, points: impl Iterator<Item = &'a SweepPoint>) -> ArrayRef {
        if self.unit.is_some() {
            let mut numbers = Float64Builder::new();
            for point in points {
                let quantity = written(point, &self.path).and_then(quantity);
                numbers.append_option(quantity.map(|(value, _)| value));
            }
            return Arc::new(numbers.finish());
        }
        let mut texts = StringBuilder::new();
        for point in points {
            texts.append_option(written(point, &self.path));
        }
        Arc::new(texts.finish())
    }
}

fn written<'a>(point: &'a SweepPoint, path: &str) -> Option<&'a str> {
    let mut varied = point.varied.iter();
    let found = varied.find(|(known, _)| known == path);
    found.map(|(_, text)| text.as_str())
}

/// The one unit of all these values. A zero and a plain number join any share, a zero any unit.
fn unit_of<'a>(written: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let mut unit = PLAIN;
    let mut plain_beyond_zero = false;
    for text in written {
        let (value, own) = quantity(text)?;
        if own == PLAIN {
            plain_beyond_zero |= value != 0.0;
        } else if unit == PLAIN {
            unit = own;
        } else if unit != own {
            return None;
        }
    }
    let is_mixed = plain_beyond_zero && unit != PLAIN && unit != SHARE;
    (!is_mixed).then_some(unit)
}

fn quantity(text: &str) -> Option<Quantity> {
    if let Ok(plain) = f64::from_str(text) {
        return plain.is_finite().then_some((plain, PLAIN));
    }
    if let Some(percent) = text.strip_suffix('%') {
        let value = f64::from_str(percent.trim()).ok()?;
        return value.is_finite().then_some((value / 100.0, SHARE));
    }
    if let Ok(span) = parse_duration(text) {
        return Some((span.as_secs_f64(), "s"));
    }
    if let Ok(rate) = Bitrate::from_str(text) {
        return Some((rate.as_bits_per_second() as f64, "bit/s"));
    }
    let octets = ByteCount::from_str(text).ok()?;
    Some((octets.0 as f64, "octet"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_unit_are_numbers_and_others_texts() {
        let unit = |texts: &[&str]| unit_of(texts.iter().copied());
        assert_eq!(unit(&["0", "1e-5", "2.5e-5"]), Some("1"));
        assert_eq!(unit(&["0", "10%", "0.3"]), Some("share"));
        assert_eq!(unit(&["0", "10ms", "1s"]), Some("s"));
        assert_eq!(unit(&["5mbit", "10kbit"]), Some("bit/s"));
        assert_eq!(unit(&["20MB", "100kB"]), Some("octet"));
        assert_eq!(unit(&["3", "10ms"]), None, "three of what?");
        assert_eq!(unit(&["10ms", "5mbit"]), None);
        assert_eq!(unit(&["reliable", "nack"]), None);
        assert_eq!(unit(&["0", "found"]), None);
        assert_eq!(quantity("10%"), Some((0.1, "share")));
        assert_eq!(quantity("5mbit"), Some((5e6, "bit/s")));
        assert_eq!(quantity("inf"), None);
    }
}
