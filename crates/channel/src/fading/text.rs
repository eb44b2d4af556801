//! Fading as people type it: `fasolt`, `gamma-gamma 0.6 time 4ms ber 1e-5`, `trace power.csv loop`.
//!
//! A source comes first, then clauses in any order, each at most once. A printed description reads
//! back as the same value.

use super::model::{CourseSeed, FadingModel, PowerSource, Recorded, RecordingPart, Synthetic};
use super::pass::{Leg, Pass, TransmitPower};
use super::preset::Demonstration;
use super::ready::Fading;
use super::trace::ObstructionRule;
use super::turbulence::Turbulence;
use crate::outage::{OutageCycle, OutagePlan};
use crate::replay::AtEnd;
use crate::series::{Lengths, Series};
use crate::text::TextError;
use core::fmt;
use core::str::FromStr;
use fulmar_proto::units::{BitErrorRate, Duration, Instant, format_duration, parse_duration};

const EXPECTED: &str = "`fasolt`, `kiodo`, `atenaa`, `testbed`, `log-normal 0.1 time 2ms`, \
     `gamma-gamma 0.6 time 4ms` (scintillation index, correlation time) or `trace FILE [loop \
     [shifted]] [part 10s+100s] [spacing 100us] [cut 10dB for 20ms]`, then any of `ber 1e-6` \
     (long-term), `over 100s`, `seed 1` or `seed run`, `blocked 50ms..500ms every 1s..3s`, `lost 50ms every 30s`, \
     `pass 610km from 2500km [setting] [levelled]`";

fn mismatch(text: &str) -> TextError {
    TextError::Form {
        text: text.trim().to_owned(),
        what: "fading",
        expected: EXPECTED,
    }
}

/// The bit error rate to which the sources scaled their measurements.
const LONG_TERM: f64 = 1e-6;

/// The reason why words cannot be read.
enum Refused {
    /// The words have none of the known forms.
    Form,
    /// A quantity among them is wrong.
    Quantity(TextError),
}

impl<E: Into<TextError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Quantity(error.into())
    }
}

/// A value, and the words behind it.
type Read<'a, T> = Result<(T, &'a [&'a str]), Refused>;
/// The words behind a clause.
type Rest<'a> = Result<&'a [&'a str], Refused>;

impl FromStr for Fading {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match model(&words) {
            Ok(model) => Ok(Self::new(model)?),
            Err(Refused::Form) => Err(mismatch(text)),
            Err(Refused::Quantity(error)) => Err(error),
        }
    }
}

fn model(words: &[&str]) -> Result<FadingModel, Refused> {
    let (mut model, mut rest) = source(words)?;
    let mut seen: Vec<&str> = Vec::new();
    // A law says nothing of time; every other source does.
    let mut is_timed = !matches!(words.first(), Some(&("log-normal" | "gamma-gamma")));
    while let Some(&keyword) = rest.first() {
        if seen.contains(&keyword) {
            return Err(Refused::Form);
        }
        seen.push(keyword);
        is_timed |= keyword == "time";
        rest = match &mut model.source {
            PowerSource::Synthetic(synthetic) => synthetic_clause(synthetic, rest),
            PowerSource::Recorded(recorded) => recorded_clause(recorded, rest),
        }
        .or_else(|refused| match refused {
            Refused::Form => medium_clause(&mut model, rest),
            Refused::Quantity(_) => Err(refused),
        })?;
    }
    if is_timed {
        Ok(model)
    } else {
        Err(Refused::Form)
    }
}

/// The source and the words behind it.
fn source<'a>(words: &'a [&'a str]) -> Read<'a, FadingModel> {
    let index = |text: &str| text.parse::<f64>().map_err(|_| Refused::Form);
    Ok(match words {
        ["log-normal", text, rest @ ..] => (synthetic(Turbulence::LogNormal(index(text)?)), rest),
        ["gamma-gamma", text, rest @ ..] => (synthetic(Turbulence::GammaGamma(index(text)?)), rest),
        ["trace", name, rest @ ..] => (recorded(name), rest),
        [name, rest @ ..] => {
            let known = Demonstration::named(name).ok_or(Refused::Form)?;
            (known.model(), rest)
        }
        [] => return Err(Refused::Form),
    })
}

fn plain(source: PowerSource) -> FadingModel {
    FadingModel {
        source,
        long_term: BitErrorRate::new(LONG_TERM).unwrap_or_default(),
        obstruction: None,
        tracking: OutagePlan::NONE,
        pass: None,
    }
}

fn synthetic(turbulence: Turbulence) -> FadingModel {
    plain(PowerSource::Synthetic(Synthetic {
        turbulence,
        correlation: Duration::from_millis(1),
        seed: None,
        over: None,
    }))
}

fn recorded(name: &str) -> FadingModel {
    plain(PowerSource::Recorded(Recorded {
        name: name.to_owned(),
        at_end: AtEnd::Stop,
        cut: None,
        spacing: None,
        part: None,
    }))
}

fn synthetic_clause<'a>(synthetic: &mut Synthetic, words: &'a [&'a str]) -> Rest<'a> {
    Ok(match words {
        ["time", time, rest @ ..] => {
            synthetic.correlation = parse_duration(time)?;
            rest
        }
        ["over", over, rest @ ..] => {
            synthetic.over = Some(parse_duration(over)?);
            rest
        }
        ["seed", seed, rest @ ..] => {
            synthetic.seed = Some(match *seed {
                "run" => CourseSeed::Run,
                number => CourseSeed::Fixed(number.parse().map_err(|_| Refused::Form)?),
            });
            rest
        }
        _ => return Err(Refused::Form),
    })
}

fn recorded_clause<'a>(recorded: &mut Recorded, words: &'a [&'a str]) -> Rest<'a> {
    Ok(match words {
        ["loop", "shifted", rest @ ..] => {
            recorded.at_end = AtEnd::LoopShifted;
            rest
        }
        ["loop", rest @ ..] => {
            recorded.at_end = AtEnd::Loop;
            rest
        }
        ["spacing", spacing, rest @ ..] => {
            recorded.spacing = Some(parse_duration(spacing)?);
            rest
        }
        ["part", part, rest @ ..] => {
            let (from, length) = part.split_once('+').ok_or(Refused::Form)?;
            recorded.part = Some(RecordingPart {
                from: parse_duration(from)?,
                length: parse_duration(length)?,
            });
            rest
        }
        ["cut", depth, "for", shortest, rest @ ..] => {
            let decibels = depth.strip_suffix("dB").and_then(|text| text.parse().ok());
            recorded.cut = Some(ObstructionRule {
                depth_decibels: decibels.ok_or(Refused::Form)?,
                shortest: parse_duration(shortest)?,
            });
            rest
        }
        _ => return Err(Refused::Form),
    })
}

/// Reads a clause that any source may have.
fn medium_clause<'a>(model: &mut FadingModel, words: &'a [&'a str]) -> Rest<'a> {
    Ok(match words {
        ["ber", rate, rest @ ..] => {
            model.long_term = rate.parse()?;
            rest
        }
        ["blocked", bad, "every", good, rest @ ..] => {
            let (bad, good) = (lengths(bad)?, lengths(good)?);
            model.obstruction = Some(Series { good, bad });
            rest
        }
        ["lost", length, "every", every, rest @ ..] => {
            let (length, every) = (parse_duration(length)?, parse_duration(every)?);
            model.tracking.cycles = vec![OutageCycle {
                first: Instant::START + every,
                every,
                length,
            }];
            rest
        }
        ["pass", altitude, "from", start, rest @ ..] => {
            let (leg, rest) = match rest {
                ["setting", rest @ ..] => (Leg::Setting, rest),
                rest => (Leg::Rising, rest),
            };
            let (transmit, rest) = match rest {
                ["levelled", rest @ ..] => (TransmitPower::Levelled, rest),
                rest => (TransmitPower::Constant, rest),
            };
            model.pass = Some(Pass {
                altitude: altitude.parse()?,
                start: start.parse()?,
                leg,
                transmit,
            });
            rest
        }
        _ => return Err(Refused::Form),
    })
}

/// `50ms..500ms`, or `50ms` for both bounds.
fn lengths(text: &str) -> Result<Lengths, TextError> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    Ok(Lengths {
        min: parse_duration(min)?,
        max: parse_duration(max)?,
    })
}

/// Prints the description in full, also that of a demonstration.
impl fmt::Display for Fading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = self.model();
        match &model.source {
            PowerSource::Synthetic(synthetic) => {
                match synthetic.turbulence {
                    Turbulence::LogNormal(index) => write!(f, "log-normal {index}")?,
                    Turbulence::GammaGamma(index) => write!(f, "gamma-gamma {index}")?,
                }
                write!(f, " time {}", format_duration(synthetic.correlation))?;
                match synthetic.seed {
                    Some(CourseSeed::Fixed(seed)) => write!(f, " seed {seed}")?,
                    Some(CourseSeed::Run) => f.write_str(" seed run")?,
                    None => {}
                }
                if let Some(over) = synthetic.over {
                    write!(f, " over {}", format_duration(over))?;
                }
            }
            PowerSource::Recorded(recorded) => {
                write!(f, "trace {}", recorded.name)?;
                f.write_str(match recorded.at_end {
                    AtEnd::Stop => "",
                    AtEnd::Loop => " loop",
                    AtEnd::LoopShifted => " loop shifted",
                })?;
                if let Some(RecordingPart { from, length }) = recorded.part {
                    let (from, length) = (format_duration(from), format_duration(length));
                    write!(f, " part {from}+{length}")?;
                }
                if let Some(spacing) = recorded.spacing {
                    write!(f, " spacing {}", format_duration(spacing))?;
                }
                if let Some(cut) = recorded.cut {
                    let shortest = format_duration(cut.shortest);
                    write!(f, " cut {}dB for {shortest}", cut.depth_decibels)?;
                }
            }
        }
        write!(f, " ber {}", model.long_term)?;
        if let Some(series) = &model.obstruction {
            let range = |Lengths { min, max }: Lengths| {
                format!("{}..{}", format_duration(min), format_duration(max))
            };
            write!(
                f,
                " blocked {} every {}",
                range(series.bad),
                range(series.good)
            )?;
        }
        for cycle in &model.tracking.cycles {
            let (length, every) = (format_duration(cycle.length), format_duration(cycle.every));
            write!(f, " lost {length} every {every}")?;
        }
        if let Some(pass) = model.pass {
            write!(f, " pass {} from {}", pass.altitude, pass.start)?;
            if pass.leg == Leg::Setting {
                f.write_str(" setting")?;
            }
            if pass.transmit == TransmitPower::Levelled {
                f.write_str(" levelled")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back_as_the_same_value() {
        for text in [
            "fasolt",
            "kiodo ber 1e-5",
            "atenaa seed 3",
            "atenaa seed run over 5s",
            "testbed",
            "log-normal 0.1 time 2ms ber 1e-4",
            "gamma-gamma 0.6 ber 1e-6 time 4ms blocked 50ms every 1s..3s lost 20ms every 7s",
            "log-normal 0.05 time 1ms pass 610km from 1200km setting",
            "log-normal 0.05 time 1ms pass 610km from 1200km setting levelled lost 20ms every 7s",
            "kiodo pass 610km from 2500km levelled",
            "trace power.csv",
            "gamma-gamma 0.6 time 4ms ber 1e-5 over 10s seed 4",
            "trace power.csv part 0s+100s ber 1e-5",
            "trace power.mat loop shifted spacing 100us cut 10dB for 20ms ber 1e-7",
        ] {
            let fading: Fading = text
                .parse()
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            let printed = fading.to_string();
            assert_eq!(printed.parse::<Fading>(), Ok(fading), "{text}: {printed}");
        }
    }

    #[test]
    fn what_is_no_fading_is_refused_with_the_forms_or_the_range() {
        for (text, word) in [
            ("", "kiodo"),
            ("faslt", "fasolt"),
            ("gamma-gamma 0.6", "time 4ms"),
            ("gamma-gamma strong time 4ms", "time 4ms"),
            ("gamma-gamma 0.6 time 4", "no unit"),
            ("gamma-gamma 1.5 time 4ms", "0.01 to 1.2"),
            ("log-normal 0.1 time 0s", "1us to 1000s"),
            ("testbed ber 1e-6 ber 1e-5", "kiodo"),
            ("testbed ber 0.5", "1e-15 to 0.4"),
            ("testbed loop", "kiodo"),
            ("trace", "trace FILE"),
            ("trace a.csv time 4ms", "trace FILE"),
            ("trace a.csv cut 0dB for 1ms", "0.1dB"),
            ("testbed blocked 5s..1s every 1s", "shorter length first"),
            ("testbed lost 2s every 1s", "below the cycle"),
            ("testbed pass 610km from 100km", "horizon, 285"),
            ("testbed over 1h", "at most 1677"),
            ("testbed over 0s", "above 0s"),
            ("testbed part 1s+1s", "trace FILE"),
            ("trace a.csv part 1s+0s", "above 0s"),
            ("trace a.csv part 1s", "trace FILE"),
            ("testbed pass 610km from 5000km", "horizon"),
            ("testbed pass 1km from 2500km", "100km to"),
        ] {
            let refused = text.parse::<Fading>().unwrap_err().to_string();
            assert!(refused.contains(word), "{text}: {refused}");
        }
    }
}
