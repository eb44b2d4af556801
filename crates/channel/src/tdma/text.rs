//! Slots as people type them: `2ms of 20ms`, or `2ms of 20ms at 4ms guard 50us`.

use super::Tdma;
use crate::text::{Forms, TextError};
use core::fmt;
use core::str::FromStr;
use fulmar_proto::units::{format_duration, parse_duration};

const TDMA: Forms = Forms {
    what: "a slot",
    expected: "`2ms of 20ms`, and behind it, if they are not 0, `at 4ms` and `guard 50us`",
};

impl FromStr for Tdma {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let mismatch = || TDMA.mismatch(text);
        let words: Vec<&str> = text.split_whitespace().collect();
        let [slot, "of", frame, settings @ ..] = words.as_slice() else {
            return Err(mismatch());
        };
        let mut tdma = Self::new(parse_duration(slot)?, parse_duration(frame)?);
        for setting in settings.chunks(2) {
            match *setting {
                ["at", span] => tdma.offset = parse_duration(span)?,
                ["guard", span] => tdma.guard = parse_duration(span)?,
                _ => return Err(mismatch()),
            }
        }
        tdma.check()?;
        Ok(tdma)
    }
}

impl fmt::Display for Tdma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (slot, frame) = (format_duration(self.slot), format_duration(self.frame));
        write!(f, "{slot} of {frame}")?;
        for (name, span) in [("at", self.offset), ("guard", self.guard)] {
            if !span.is_zero() {
                write!(f, " {name} {}", format_duration(span))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tdma(text: &str) -> Tdma {
        text.parse().unwrap()
    }

    #[test]
    fn slots_are_read_and_written() {
        for text in ["2ms of 20ms", "2ms of 20ms at 4ms guard 50us"] {
            assert_eq!(tdma(text).to_string(), text);
        }
        let refused = |text: &str| text.parse::<Tdma>().unwrap_err().to_string();
        assert!(refused("2ms every 20ms").contains("`2ms of 20ms`"));
        assert!(refused("2 of 20ms").contains("no unit"));
        assert!(refused("20ms of 2ms").contains("at most the frame"));
        assert!(refused("2ms of 20ms at 19ms").contains("ends in the frame"));
        assert!(refused("2ms of 20ms guard 2ms").contains("less than the slot"));
    }
}
