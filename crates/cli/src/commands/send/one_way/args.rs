//! The options of `fulmar send` for links without a way back.

use fulmar_proto::units::{Duration, Probability, parse_duration};
use std::path::PathBuf;

/// Options for links without a way back.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Without a way back (--return none)")]
pub(in super::super) struct OneWaySendArgs {
    /// The way back of the link: none (a diode, a broadcast, radio silence), or thin, which all receivers share. What repairs is sent
    /// ahead, at --rate, under --preset; over a thin way back more is sent when receivers ask. HOST may be a broadcast address or a
    /// group. Receivers run with the same --return.
    #[arg(long = "return", value_name = "WAY", value_parser = ["none", "thin"], requires = "preset", requires = "rate")]
    #[arg(conflicts_with_all = ["mode", "share", "fec_words", "block", "mack", "give_up", "connect_timeout", "wait", "burst",
        "trace", "key", "peers", "carrier"])]
    way_back: Option<String>,
    /// The loss up to which each receiver gets the file.
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "20%",
        requires = "way_back"
    )]
    pub(super) loss: Probability,
    /// The probability that a receiver misses the file at that loss.
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "1e-6",
        requires = "way_back",
        value_parser = residual
    )]
    pub(super) residual: Probability,
    /// Repair ahead, as a share of the file, such as 35% or 150%: instead of --loss and --residual.
    #[arg(long, value_name = "SHARE", requires = "way_back", value_parser = overhead, conflicts_with_all = ["loss", "residual"])]
    pub(super) overhead: Option<f64>,
    /// Rounds; each sends repair that was not sent before, so all of it is of use.
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 1,
        requires = "way_back",
        conflicts_with = "carousel"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) rounds: u32,
    /// Rounds until Ctrl-C, for receivers that come later.
    #[arg(long, requires = "way_back")]
    pub(super) carousel: bool,
    /// Send what a receiver misses, by the report that it wrote; again for further receivers.
    #[arg(long = "report", value_name = "FILE", requires = "way_back", conflicts_with_all = ["overhead", "rounds", "carousel"])]
    pub(super) reports: Vec<PathBuf>,
    /// The directory in which the numbers of datagrams are kept [default: in the user's place for state]. Never copy it.
    #[arg(long = "state", value_name = "DIR", requires = "way_back")]
    pub(super) state: Option<PathBuf>,
    /// Send by this network device, whatever the routes say.
    #[arg(long, value_name = "DEVICE", requires = "way_back")]
    pub(super) device: Option<String>,
    /// Over a thin way back: where requests are heard [default: any port; receivers answer to it].
    #[arg(long, value_name = "ADDRESS", requires = "way_back")]
    pub(super) requests: Option<String>,
    /// Over a thin way back: the time over which receivers spread their requests [default: 500ms].
    #[arg(long, value_name = "DURATION", requires = "way_back", value_parser = spread)]
    pub(super) spread: Option<Duration>,
    /// Hops that what goes to a group may take.
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "way_back")]
    pub(super) hops: u8,
}

impl OneWaySendArgs {
    /// Whether the link has no way back, or a thin one.
    pub(in super::super) const fn is_given(&self) -> bool {
        self.way_back.is_some()
    }

    /// Whether receivers may ask.
    pub(super) fn is_thin(&self) -> bool {
        self.way_back.as_deref() == Some("thin")
    }
}

/// A residual that an announcement can tell: it counts in billionths.
fn residual(text: &str) -> Result<Probability, String> {
    let share = text
        .parse::<Probability>()
        .map_err(|error| error.to_string())?;
    if share.value() >= 1e-9 && share.value() < 1.0 {
        Ok(share)
    } else {
        Err("write a probability from 1e-9 to below 1".to_owned())
    }
}

/// A time that an invitation can tell: it counts milliseconds in 16 bits.
fn spread(text: &str) -> Result<Duration, String> {
    let span = parse_duration(text).map_err(|error| error.to_string())?;
    if (1..=u128::from(u16::MAX)).contains(&span.as_millis()) {
        Ok(span)
    } else {
        Err("write a time from 1ms to 65s".to_owned())
    }
}

/// A share that may be above one.
fn overhead(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let share = number
        .trim()
        .parse::<f64>()
        .ok()
        .map(|number| number / unit);
    let share = share.filter(|share| (0.0..=100.0).contains(share));
    share.ok_or_else(|| format!("`{text}`: write a share of the file, such as 35% or 1.5"))
}
