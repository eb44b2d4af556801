//! A return link as people type it: `rbdc`, or `rbdc frame 265ms response 632.5ms timeout 2`.

use super::config::{Assignment, Dama};
use crate::text::{Forms, TextError};
use core::fmt;
use core::str::FromStr;
use fulmar_proto::units::{format_duration, parse_duration};

const DAMA: Forms = Forms {
    what: "a demand assignment",
    expected: "`cra`, `rbdc` or `vbdc`, and behind it, where they differ, `frame 265ms`, \
               `response 632.5ms` and (super-frames) `timeout 2`",
};

impl FromStr for Dama {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let mismatch = || DAMA.mismatch(text);
        let words: Vec<&str> = text.split_whitespace().collect();
        let (name, settings) = words.split_first().ok_or_else(mismatch)?;
        let assignment = Assignment::ALL
            .into_iter()
            .find(|known| known.name() == *name)
            .ok_or_else(mismatch)?;
        let mut dama = Self::new(assignment);
        for setting in settings.chunks(2) {
            match *setting {
                ["frame", span] => dama.frame = parse_duration(span)?,
                ["response", span] => dama.response = parse_duration(span)?,
                ["timeout", frames] => {
                    dama.timeout_frames = frames.parse().map_err(|_| mismatch())?;
                }
                _ => return Err(mismatch()),
            }
        }
        dama.check()?;
        Ok(dama)
    }
}

impl fmt::Display for Dama {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = Self::new(self.assignment);
        f.write_str(self.assignment.name())?;
        for (name, span, default) in [
            ("frame", self.frame, plain.frame),
            ("response", self.response, plain.response),
        ] {
            if span != default {
                write!(f, " {name} {}", format_duration(span))?;
            }
        }
        if self.timeout_frames != plain.timeout_frames {
            write!(f, " timeout {}", self.timeout_frames)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::units::Duration;

    #[test]
    fn assignments_are_read_by_name_with_the_settings_that_differ() {
        for assignment in Assignment::ALL {
            let plain = Dama::new(assignment);
            assert_eq!(assignment.name().parse(), Ok(plain));
            assert_eq!(plain.to_string(), assignment.name());
        }
        let text = "vbdc frame 100ms response 520ms timeout 5";
        let read: Dama = text.parse().unwrap();
        assert_eq!(read.assignment, Assignment::Volume);
        assert_eq!(read.frame, Duration::from_millis(100));
        assert_eq!(read.response, Duration::from_millis(520));
        assert_eq!(read.timeout_frames, 5);
        assert_eq!(read.to_string(), text);
    }

    #[test]
    fn what_does_not_describe_one_is_refused_with_what_would() {
        for text in ["", "dama", "rbdc 265ms", "rbdc frame", "rbdc timeout two"] {
            let refused = text.parse::<Dama>().unwrap_err().to_string();
            assert!(refused.contains("`cra`, `rbdc` or `vbdc`"), "{refused}");
        }
        let refused = |text: &str| text.parse::<Dama>().unwrap_err().to_string();
        assert!(refused("rbdc frame 265").contains("no unit"));
        assert!(refused("rbdc timeout 16").contains("1 to 15"));
        assert!(refused("vbdc frame 0s").contains("dama.frame is 0s"));
        assert!(refused("vbdc response 1h").contains("1ms to 10s"));
    }
}
