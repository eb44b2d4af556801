//! The forms that people type: `2% burst 4`, `on-off 30% period 50ms`, `every 30s for 2s`.
//!
//! A printed value reads back as the same value. Quantities are those of [`fulmar_proto::units`]; a
//! missing unit is an error that names the units accepted.

use crate::aqm::Aqm;
use crate::bits::BitErrors;
use crate::config_error::ChannelConfigError;
use crate::fates::Fates;
use crate::gilbert::{GilbertElliott, PacketState, PacketStates};
use crate::loss::LossModel;
use crate::outage::{Outage, OutageClock, OutageCycle, OutagePlan};
use crate::path::{Jitter, PacketOrder, Reorder};
use crate::policer::Policer;
use crate::red::RedConfig;
use crate::replay::{AtEnd, Replay};
use crate::series::{Lengths, Series};
use crate::transmitter::QueueLimit;
use crate::two_state::{LossState, OnOff, Sojourn, TwoState};
use core::fmt;
use core::str::FromStr;
use fulmar_proto::units::{Instant, PacketErrorRate, UnitError, format_duration, parse_duration};

/// The reason why a description could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// A quantity in it is wrong.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A value in it is out of range.
    #[error(transparent)]
    Range(#[from] ChannelConfigError),
    /// The description has none of the known forms.
    #[error("`{text}` does not describe {what}: write {expected}")]
    Form {
        /// The text given.
        text: String,
        /// The kind of description that was expected.
        what: &'static str,
        /// The known forms.
        expected: &'static str,
    },
}

/// An error that shows the forms of one kind of description.
pub(crate) struct Forms {
    pub(crate) what: &'static str,
    pub(crate) expected: &'static str,
}

impl Forms {
    pub(crate) fn mismatch(&self, text: &str) -> TextError {
        TextError::Form {
            text: text.trim().to_owned(),
            what: self.what,
            expected: self.expected,
        }
    }
}

const LOSS: Forms = Forms {
    what: "packet loss",
    expected: "`none`, `2%`, `2% burst 4` (packets), `on-off 30% period 50ms [exponential]`, \
               `two-state 1% 80ms 50% 20ms [exponential]`, `gilbert-elliott 0.1% 200 60% 8` \
               (packets), `good 5s..15s bad 100ms..300ms`, `slacp medium`, \
               `trace FILE [loop [shifted]]` or `fates 31+1 5+2 [shifted]` (packets that arrived and that were lost, 1048576 \
               in all at most)",
};

impl FromStr for LossModel {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let model = match *words.as_slice() {
            ["none"] => Self::None,
            ["on-off", mean, "period", period, ref rest @ ..] => Self::OnOff(OnOff {
                mean_loss: mean.parse()?,
                period: parse_duration(period)?,
                sojourn: sojourn(rest).ok_or_else(|| LOSS.mismatch(text))?,
            }),
            ["two-state", off, off_mean, on, on_mean, ref rest @ ..] => Self::TwoState(TwoState {
                off: LossState {
                    loss: off.parse()?,
                    mean: parse_duration(off_mean)?,
                },
                on: LossState {
                    loss: on.parse()?,
                    mean: parse_duration(on_mean)?,
                },
                sojourn: sojourn(rest).ok_or_else(|| LOSS.mismatch(text))?,
            }),
            ["gilbert-elliott", good, good_packets, bad, bad_packets] => {
                let state = |loss: &str, packets: &str| {
                    Ok::<_, TextError>(PacketState {
                        loss: loss.parse()?,
                        mean_packets: packets.parse().map_err(|_| LOSS.mismatch(text))?,
                    })
                };
                Self::PacketStates(PacketStates {
                    good: state(good, good_packets)?,
                    bad: state(bad, bad_packets)?,
                })
            }
            ["good", good, "bad", bad] => Self::Series(Series {
                good: lengths(good)?,
                bad: lengths(bad)?,
            }),
            ["slacp", name] => {
                Self::Series(Series::slacp(name).ok_or_else(|| SLACP.mismatch(name))?)
            }
            ["trace", _, ..] => Self::Replay(replay(text)),
            ["fates", ref runs @ ..] => {
                Self::Fates(Fates::read(runs).ok_or_else(|| LOSS.mismatch(text))?)
            }
            [mean, "burst", burst] => Self::GilbertElliott(GilbertElliott {
                mean_loss: mean.parse()?,
                mean_burst: burst.parse().map_err(|_| LOSS.mismatch(text))?,
            }),
            [rate] if starts_as_number(rate) => Self::Bernoulli(rate.parse()?),
            _ => return Err(LOSS.mismatch(text)),
        };
        model.check()?;
        Ok(model)
    }
}

const SLACP: Forms = Forms {
    what: "a series of the SLACP tests",
    expected: "low, medium, high, vhigh, huge-literal or huge-calibrated behind `slacp`",
};

/// `5s..15s`, or `60ms` for both bounds.
fn lengths(text: &str) -> Result<Lengths, TextError> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    Ok(Lengths {
        min: parse_duration(min)?,
        max: parse_duration(max)?,
    })
}

/// A trace by its notation `trace FILE [loop [shifted]]`; FILE may contain blanks.
fn replay(text: &str) -> Replay {
    let rest = text.trim().trim_start_matches("trace").trim();
    let without = |rest: &'_ str, word: &str| {
        let shorter = rest.strip_suffix(word)?;
        let name = shorter.trim_end();
        (name.len() < shorter.len() && !name.is_empty()).then(|| name.to_owned())
    };
    let (name, at_end) =
        if let Some(name) = without(rest, "shifted").and_then(|rest| without(&rest, "loop")) {
            (name, AtEnd::LoopShifted)
        } else if let Some(name) = without(rest, "loop") {
            (name, AtEnd::Loop)
        } else {
            (rest.to_owned(), AtEnd::Stop)
        };
    Replay {
        name,
        at_end,
        trace: None,
    }
}

/// A rate of loss in per cent, where that is exact.
fn percent(rate: PacketErrorRate) -> String {
    // Twelve digits hide the errors of binary fractions; reading the text back decides.
    let text = format!("{}%", (rate.value() * 1e14).round() / 1e12);
    if text.parse() == Ok(rate) {
        text
    } else {
        rate.to_string()
    }
}

impl fmt::Display for LossModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Bernoulli(rate) => f.write_str(&percent(*rate)),
            Self::OnOff(on_off) => {
                let period = format_duration(on_off.period);
                let sojourn = suffix(on_off.sojourn);
                let loss = percent(on_off.mean_loss);
                write!(f, "on-off {loss} period {period}{sojourn}")
            }
            Self::TwoState(TwoState { off, on, sojourn }) => {
                let (off_mean, on_mean) = (format_duration(off.mean), format_duration(on.mean));
                let (off_loss, on_loss) = (percent(off.loss), percent(on.loss));
                write!(f, "two-state {off_loss} {off_mean} {on_loss} {on_mean}")?;
                f.write_str(suffix(*sojourn))
            }
            Self::GilbertElliott(bursts) => {
                let loss = percent(bursts.mean_loss);
                write!(f, "{loss} burst {}", bursts.mean_burst)
            }
            Self::PacketStates(PacketStates { good, bad }) => {
                let (good_loss, bad_loss) = (percent(good.loss), percent(bad.loss));
                let (good, bad) = (good.mean_packets, bad.mean_packets);
                write!(f, "gilbert-elliott {good_loss} {good} {bad_loss} {bad}")
            }
            Self::Series(Series { good, bad }) => {
                let range = |Lengths { min, max }: Lengths| {
                    let (shortest, longest) = (format_duration(min), format_duration(max));
                    if min == max {
                        shortest
                    } else {
                        format!("{shortest}..{longest}")
                    }
                };
                write!(f, "good {} bad {}", range(*good), range(*bad))
            }
            Self::Replay(Replay { name, at_end, .. }) => {
                let suffix = match at_end {
                    AtEnd::Stop => "",
                    AtEnd::Loop => " loop",
                    AtEnd::LoopShifted => " loop shifted",
                };
                write!(f, "trace {name}{suffix}")
            }
            Self::Fates(fates) => write!(f, "fates {fates}"),
        }
    }
}

fn sojourn(words: &[&str]) -> Option<Sojourn> {
    match words {
        [] | ["fixed"] => Some(Sojourn::Fixed),
        ["exponential"] => Some(Sojourn::Exponential),
        _ => None,
    }
}

const fn suffix(sojourn: Sojourn) -> &'static str {
    match sojourn {
        Sojourn::Fixed => "",
        Sojourn::Exponential => " exponential",
    }
}

/// Tells a mistyped quantity, whose own error is the better one, from another word.
fn starts_as_number(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '.' | '-' | '+'))
}

const BITS: Forms = Forms {
    what: "bit errors",
    expected: "`none`, `1e-5` (each bit), `1e-5 per octet` or `received -45dBm`",
};

impl FromStr for BitErrors {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match *words.as_slice() {
            ["none"] => Ok(Self::None),
            [rate] if starts_as_number(rate) => Ok(Self::Independent(rate.parse()?)),
            [rate, "per", "octet" | "byte"] => Ok(Self::PerOctet(rate.parse()?)),
            ["received", power] => Ok(Self::Received(power.parse()?)),
            _ => Err(BITS.mismatch(text)),
        }
    }
}

impl fmt::Display for BitErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Independent(rate) => write!(f, "{rate}"),
            Self::PerOctet(rate) => write!(f, "{rate} per octet"),
            Self::Received(power) => write!(f, "received {power}"),
        }
    }
}

const OUTAGES: Forms = Forms {
    what: "outages",
    expected: "`none`, `10s+2s` (start+length) or `every 30s for 2s [from 10s]`, several with \
               commas between them",
};

impl FromStr for OutagePlan {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let mut plan = Self::NONE;
        if text.trim() == "none" {
            return Ok(plan);
        }
        for part in text.split(',') {
            let words: Vec<&str> = part.split_whitespace().collect();
            match *words.as_slice() {
                ["every", every, "for", length] => plan.cycles.push(OutageCycle {
                    first: instant(every)?,
                    every: parse_duration(every)?,
                    length: parse_duration(length)?,
                }),
                ["every", every, "for", length, "from", first] => plan.cycles.push(OutageCycle {
                    first: instant(first)?,
                    every: parse_duration(every)?,
                    length: parse_duration(length)?,
                }),
                _ => {
                    let (start, length) =
                        part.split_once('+').ok_or_else(|| OUTAGES.mismatch(text))?;
                    plan.single.push(Outage {
                        start: instant(start)?,
                        length: parse_duration(length)?,
                    });
                }
            }
        }
        OutageClock::new(&plan)?;
        Ok(plan)
    }
}

fn instant(text: &str) -> Result<Instant, UnitError> {
    Ok(Instant::START + parse_duration(text)?)
}

impl fmt::Display for OutagePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let since_start = |at: Instant| format_duration(at.saturating_since(Instant::START));
        let mut separator = "";
        for outage in &self.single {
            let (start, length) = (since_start(outage.start), format_duration(outage.length));
            write!(f, "{separator}{start}+{length}")?;
            separator = ", ";
        }
        for cycle in &self.cycles {
            let (every, length) = (format_duration(cycle.every), format_duration(cycle.length));
            write!(
                f,
                "{separator}every {every} for {length} from {}",
                since_start(cycle.first)
            )?;
            separator = ", ";
        }
        Ok(())
    }
}

const QUEUE: Forms = Forms {
    what: "a queue limit",
    expected: "`100 packets`, `150kB`, `100 packets 150kB` (the tighter counts) or `unlimited`",
};

impl FromStr for QueueLimit {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let count = |word: &str| word.parse().map_err(|_| QUEUE.mismatch(text));
        match *words.as_slice() {
            ["unlimited"] => Ok(Self::UNLIMITED),
            [packets, "packets" | "packet"] => Ok(Self::packets(count(packets)?)),
            [packets, "packets" | "packet", bytes] => Ok(Self {
                packets: Some(count(packets)?),
                bytes: Some(bytes.parse()?),
            }),
            [bytes] if starts_as_number(bytes) => match bytes.parse() {
                Ok(bytes) => Ok(Self::bytes(bytes)),
                // `100` alone could be packets or octets: show both.
                Err(UnitError::NoUnit { .. }) => Err(QUEUE.mismatch(text)),
                Err(error) => Err(error.into()),
            },
            _ => Err(QUEUE.mismatch(text)),
        }
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.packets, self.bytes) {
            (None, None) => f.write_str("unlimited"),
            (Some(packets), None) => write!(f, "{packets} packets"),
            (None, Some(bytes)) => write!(f, "{bytes}"),
            (Some(packets), Some(bytes)) => write!(f, "{packets} packets {bytes}"),
        }
    }
}

const POLICER: Forms = Forms {
    what: "a policer",
    expected: "`10Mbit/s,15kB` (the rate and the burst)",
};

impl FromStr for Policer {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let (rate, burst) = text.split_once(',').ok_or_else(|| POLICER.mismatch(text))?;
        let policer = Self {
            rate: rate.trim().parse()?,
            burst: burst.trim().parse()?,
        };
        policer.check()?;
        Ok(policer)
    }
}

impl fmt::Display for Policer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.rate, self.burst)
    }
}

const AQM: Forms = Forms {
    what: "a managed queue",
    expected: "`codel`, or `red 20 60` (average lengths in packets where signals begin, and where one in ten is signalled)",
};

impl FromStr for Aqm {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let count = |word: &str| word.parse().map_err(|_| AQM.mismatch(text));
        let law = match *words.as_slice() {
            ["codel"] => Self::CoDel,
            ["red", min, max] => Self::Red(RedConfig::between(count(min)?, count(max)?)),
            _ => return Err(AQM.mismatch(text)),
        };
        law.check()?;
        Ok(law)
    }
}

impl fmt::Display for Aqm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CoDel => f.write_str("codel"),
            Self::Red(red) => write!(f, "red {} {}", red.min, red.max),
        }
    }
}

const JITTER: Forms = Forms {
    what: "jitter",
    expected: "`2ms` (up and down, order kept) or `2ms reordering`",
};

impl FromStr for Jitter {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (spread, order) = match *words.as_slice() {
            [spread] => (spread, PacketOrder::Kept),
            [spread, "reordering"] => (spread, PacketOrder::Free),
            _ => return Err(JITTER.mismatch(text)),
        };
        Ok(Self {
            spread: parse_duration(spread)?,
            order,
        })
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.order {
            PacketOrder::Kept => "",
            PacketOrder::Free => " reordering",
        };
        write!(f, "{}{order}", format_duration(self.spread))
    }
}

const REORDER: Forms = Forms {
    what: "reordering",
    expected: "`1% by 5ms`: the share of packets held back, and how long",
};

impl FromStr for Reorder {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [probability, "by", extra] = *words.as_slice() else {
            return Err(REORDER.mismatch(text));
        };
        Ok(Self {
            probability: probability.parse()?,
            extra: parse_duration(extra)?,
        })
    }
}

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.probability, format_duration(self.extra))
    }
}

#[cfg(test)]
mod tests;
