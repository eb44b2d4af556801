//! The flags that describe a link: one set for both directions and one for each alone.

use crate::exit::{Exit, Failure};
use core::fmt::Display;
use core::str::FromStr;
use fulmar_channel::fading::Fading;
use fulmar_channel::preset::ChannelPreset;
use fulmar_channel::{
    Aqm, BitErrors, ChannelConfig, Jitter, LossModel, OutagePlan, Policer, QueueLimit, Reorder,
    TextError,
};
use fulmar_lab::Traces;
use fulmar_net::emulator::LinkChange;
use fulmar_proto::units::{Bitrate, Duration, Probability, parse_duration};
use std::path::{Path, PathBuf};

/// The limit of a queue. A bare count is packets, as in `tc`: a count has no unit that could be mistaken.
fn queue(text: &str) -> Result<QueueLimit, TextError> {
    match text.parse::<u32>() {
        Ok(packets) => Ok(QueueLimit::packets(packets)),
        Err(_) => text.parse(),
    }
}

macro_rules! link_args {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $heading:literal, $hide:literal) => {
        $(#[$doc])*
        #[derive(clap::Args, Clone, Debug, Default)]
        #[command(next_help_heading = $heading)]
        pub(crate) struct $name {
            /// Rate, such as 5Mbit/s; without it packets take no time on the link.
            #[arg(id = concat!($prefix, "rate"), long = concat!($prefix, "rate"))]
            #[arg(value_name = "RATE", hide_short_help = $hide)]
            rate: Option<Bitrate>,
            /// Propagation delay, such as 10ms.
            #[arg(id = concat!($prefix, "delay"), long = concat!($prefix, "delay"))]
            #[arg(value_name = "TIME", hide_short_help = $hide, value_parser = parse_duration)]
            delay: Option<Duration>,
            /// Limit of the queue: 100 (packets), 150kB, '100 packets 150kB' or unlimited.
            #[arg(id = concat!($prefix, "queue"), long = concat!($prefix, "queue"))]
            #[arg(value_name = "LIMIT", hide_short_help = $hide, value_parser = queue)]
            queue: Option<QueueLimit>,
            /// Packets lost: 2%, '2% burst 4', 'on-off 30% period 50ms', 'slacp medium',
            /// 'good 5s..15s bad 100ms..300ms', 'trace FILE loop' or none.
            #[arg(id = concat!($prefix, "loss"), long = concat!($prefix, "loss"))]
            #[arg(value_name = "MODEL", hide_short_help = $hide)]
            loss: Option<LossModel>,
            /// Bits inverted: 1e-5, '1e-5 per octet', 'received -45dBm' (by the optical receiver) or none.
            #[arg(id = concat!($prefix, "ber"), long = concat!($prefix, "ber"))]
            #[arg(value_name = "MODEL", hide_short_help = $hide)]
            ber: Option<BitErrors>,
            /// Received power that fades: fasolt, kiodo, atenaa, testbed, 'gamma-gamma 0.6 time 4ms',
            /// 'log-normal 0.1 time 2ms ber 1e-5', 'trace POWER.csv loop'.
            #[arg(id = concat!($prefix, "fading"), long = concat!($prefix, "fading"))]
            #[arg(value_name = "MODEL", hide_short_help = $hide)]
            fading: Option<Fading>,
            /// Outages, when nothing gets through: 10s+2s (start+length), 'every 30s for 2s' or none.
            #[arg(id = concat!($prefix, "outage"), long = concat!($prefix, "outage"))]
            #[arg(value_name = "PLAN", hide_short_help = $hide)]
            outage: Option<OutagePlan>,
            /// Packets held back so that others overtake them: '1% by 5ms'.
            #[arg(id = concat!($prefix, "reorder"), long = concat!($prefix, "reorder"))]
            #[arg(value_name = "SHARE", hide_short_help = $hide)]
            reorder: Option<Reorder>,
            /// The share of packets that arrive twice.
            #[arg(id = concat!($prefix, "duplicate"), long = concat!($prefix, "duplicate"))]
            #[arg(value_name = "SHARE", hide_short_help = $hide)]
            duplicate: Option<Probability>,
            /// A delay that varies: 2ms (order kept) or '2ms reordering'.
            #[arg(id = concat!($prefix, "jitter"), long = concat!($prefix, "jitter"))]
            #[arg(value_name = "TIME", hide_short_help = $hide)]
            jitter: Option<Jitter>,
            /// Mark instead of only queueing above this: 50 (packets) or 75kB.
            #[arg(id = concat!($prefix, "ecn"), long = concat!($prefix, "ecn"))]
            #[arg(value_name = "LIMIT", hide_short_help = $hide, value_parser = queue)]
            ecn: Option<QueueLimit>,
            /// Queue that signals before it is full, by marks, and by drops of what cannot be marked: codel, or
            /// 'red 20 60' (average lengths in packets).
            #[arg(id = concat!($prefix, "aqm"), long = concat!($prefix, "aqm"))]
            #[arg(value_name = "LAW", hide_short_help = $hide)]
            aqm: Option<Aqm>,
            /// Policer before the queue, which drops what it has no tokens for: 10mbit,15kB.
            #[arg(id = concat!($prefix, "policer"), long = concat!($prefix, "policer"))]
            #[arg(value_name = "RATE,BURST", hide_short_help = $hide)]
            policer: Option<Policer>,
        }

        impl $name {
            fn apply(&self, config: &mut ChannelConfig) {
                config.rate = self.rate.or(config.rate);
                config.ecn_threshold = self.ecn.or(config.ecn_threshold);
                config.aqm = self.aqm.or(config.aqm);
                config.policer = self.policer.or(config.policer);
                config.reorder = self.reorder.or(config.reorder);
                config.jitter = self.jitter.or(config.jitter);
                config.delay = self.delay.unwrap_or(config.delay);
                config.queue = self.queue.unwrap_or(config.queue);
                config.duplicate = self.duplicate.unwrap_or(config.duplicate);
                config.bits = self.ber.unwrap_or(config.bits);
                if let Some(loss) = &self.loss {
                    config.loss = loss.clone();
                }
                if self.fading.is_some() {
                    config.fading.clone_from(&self.fading);
                }
                if let Some(outages) = &self.outage {
                    config.outages = outages.clone();
                }
            }
        }
    };
}

link_args!(
    /// Both directions.
    BothArgs, "", "Link, both directions", false
);
link_args!(
    /// Clients to target only.
    UpArgs, "up-", "Link, from the clients to the target only", true
);
link_args!(
    /// Target to clients only.
    DownArgs, "down-", "Link, from the target to the clients only", true
);

/// A change of the link while it runs, as typed: a time, and rate, delay, loss or bit errors from then on.
#[derive(Clone, Debug)]
struct ChangeArg {
    after: Duration,
    rate: Option<Bitrate>,
    delay: Option<Duration>,
    loss: Option<LossModel>,
    ber: Option<BitErrors>,
}

impl FromStr for ChangeArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write a time and what changes, such as '5s rate=4mbit delay=60ms' or '9s loss=2% burst 4 ber=1e-6'";
        let (after, mut rest) = text.trim().split_once(' ').ok_or(form)?;
        let after = parse_duration(after).map_err(|error| format!("{error}; {form}"))?;
        let mut change = Self {
            after,
            rate: None,
            delay: None,
            loss: None,
            ber: None,
        };
        while !rest.trim().is_empty() {
            let (key, value) = rest.trim().split_once('=').ok_or(form)?;
            // A value may have several words; the last one before another `=` is the next key.
            let end = value.find('=').map_or(value.len(), |next| {
                value[..next].rfind(' ').unwrap_or_default()
            });
            let (value, behind) = value.split_at(end);
            let wrong = |error: &dyn Display| format!("{key}: {error}");
            match key {
                "rate" => change.rate = Some(value.parse().map_err(|error| wrong(&error))?),
                "delay" => {
                    change.delay = Some(parse_duration(value).map_err(|error| wrong(&error))?);
                }
                "loss" => change.loss = Some(value.parse().map_err(|error| wrong(&error))?),
                "ber" => change.ber = Some(value.parse().map_err(|error| wrong(&error))?),
                _ => {
                    return Err(format!(
                        "`{key}`: rate, delay, loss and ber can change; {form}"
                    ));
                }
            }
            rest = behind;
        }
        Ok(change)
    }
}

impl ChangeArg {
    fn apply(&self, config: &mut ChannelConfig) {
        config.rate = self.rate.or(config.rate);
        config.delay = self.delay.unwrap_or(config.delay);
        config.bits = self.ber.unwrap_or(config.bits);
        if let Some(loss) = &self.loss {
            config.loss = loss.clone();
        }
    }
}

/// A link in both directions as typed.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct LinkArgs {
    /// Start from a published link: airborne (5Mbit/s, 10us), airborne-10ms, setup (10Mbit/s, 5ms).
    #[arg(long, value_name = "NAME")]
    preset: Option<ChannelPreset>,
    /// Change both directions while the link runs: a time from the start, and rate, delay, loss or ber from then on, such as
    /// '5s rate=4mbit loss=2%'. May be given several times, in the order of the times.
    #[arg(long, value_name = "CHANGE")]
    change: Vec<ChangeArg>,
    #[command(flatten)]
    both: BothArgs,
    #[command(flatten)]
    up: UpArgs,
    #[command(flatten)]
    down: DownArgs,
}

/// A link in both directions, as checked settings.
#[derive(Clone, Debug)]
pub(crate) struct LinkSettings {
    pub(crate) up: ChannelConfig,
    pub(crate) down: ChannelConfig,
    /// The changes while it runs.
    pub(crate) changes: Vec<LinkChange>,
    /// The traces that it replays.
    pub(crate) traces: Vec<PathBuf>,
}

impl LinkArgs {
    /// The two channels: preset, then the common flags, then those of one direction.
    ///
    /// # Errors
    /// A combination that no channel can have, such as jitter above the delay; a trace that cannot be
    /// read.
    pub(crate) fn link(&self) -> Result<LinkSettings, Failure> {
        let mut up = self.preset.map(ChannelPreset::config).unwrap_or_default();
        self.both.apply(&mut up);
        let mut down = up.clone();
        self.up.apply(&mut up);
        self.down.apply(&mut down);
        let traces = Traces::below(Path::new(""));
        for (direction, config) in [("up", &mut up), ("down", &mut down)] {
            let failure = |problem: &dyn Display| Failure {
                exit: Exit::Usage,
                cause: anyhow::anyhow!("the {direction} link's {problem}"),
            };
            traces.put_into(config).map_err(|error| failure(&error))?;
            config.validate().map_err(|error| failure(&error))?;
        }
        let changes = self.changes(&traces, &up, &down)?;
        let traces = traces.into_files();
        Ok(LinkSettings {
            up,
            down,
            changes,
            traces,
        })
    }

    /// The changes, each on top of those before it.
    fn changes(
        &self,
        traces: &Traces,
        up: &ChannelConfig,
        down: &ChannelConfig,
    ) -> Result<Vec<LinkChange>, Failure> {
        let failure = |problem: &dyn Display| Failure {
            exit: Exit::Usage,
            cause: anyhow::anyhow!("--change: {problem}"),
        };
        let (mut up, mut down) = (up.clone(), down.clone());
        let mut before = Duration::ZERO;
        let mut changes = Vec::new();
        for change in &self.change {
            if change.after < before {
                return Err(failure(&"give the changes in the order of their times"));
            }
            before = change.after;
            for config in [&mut up, &mut down] {
                change.apply(config);
                traces.put_into(config).map_err(|error| failure(&error))?;
                config.validate().map_err(|error| failure(&error))?;
            }
            changes.push(LinkChange {
                after: change.after,
                up: up.clone(),
                down: down.clone(),
            });
        }
        Ok(changes)
    }
}

/// A link in one line, for people.
pub(crate) fn describe(config: &ChannelConfig) -> String {
    use fulmar_proto::units::format_duration;
    let rate = config
        .rate
        .map_or_else(|| "no rate limit".to_owned(), |rate| rate.to_string());
    let mut parts = vec![rate, format_duration(config.delay)];
    if config.rate.is_some() {
        parts.push(format!("queue {}", config.queue));
    }
    if config.loss != LossModel::None {
        parts.push(format!("loss {}", config.loss));
    }
    if config.bits != BitErrors::None {
        parts.push(format!("ber {}", config.bits));
    }
    if let Some(fading) = &config.fading {
        parts.push(format!("fading {fading}"));
    }
    if !config.outages.is_empty() {
        parts.push(format!("outages {}", config.outages));
    }
    if let Some(reorder) = config.reorder {
        parts.push(format!("reorder {reorder}"));
    }
    if !config.duplicate.is_zero() {
        parts.push(format!("duplicate {}", config.duplicate));
    }
    if let Some(jitter) = config.jitter {
        parts.push(format!("jitter {jitter}"));
    }
    if let Some(limit) = config.ecn_threshold {
        parts.push(format!("marks above {limit}"));
    }
    if let Some(law) = config.aqm {
        parts.push(law.to_string());
    }
    if let Some(policer) = config.policer {
        parts.push(format!("policer {policer}"));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_a_time_and_what_changes() {
        let change: ChangeArg = "5s rate=4mbit loss=2% burst 4 ber=received -45dBm delay=60ms"
            .parse()
            .expect("a change");
        assert_eq!(change.after, Duration::from_secs(5));
        assert_eq!(change.rate, Some(Bitrate::from_bits_per_second(4_000_000)));
        assert_eq!(change.delay, Some(Duration::from_millis(60)));
        assert_eq!(change.loss, Some("2% burst 4".parse().expect("a loss")));
        let power = "-45dBm".parse().expect("a power");
        assert_eq!(change.ber, Some(BitErrors::Received(power)));
    }

    #[test]
    fn a_change_that_is_none_says_how_it_is_written() {
        for (text, expected) in [
            ("5s", "write a time and what changes"),
            ("soon rate=4mbit", "write a time and what changes"),
            ("5s 4mbit", "write a time and what changes"),
            (
                "5s queue=3",
                "`queue`: rate, delay, loss and ber can change",
            ),
            ("5s rate=4", "rate: "),
        ] {
            let problem = text.parse::<ChangeArg>().expect_err(text);
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn changes_build_on_those_before_them_and_come_in_order() {
        let with = |changes: &[&str]| LinkArgs {
            change: changes
                .iter()
                .map(|text| text.parse().expect("a change"))
                .collect(),
            ..LinkArgs::default()
        };
        let link = with(&["1s rate=4mbit", "2s delay=9ms"])
            .link()
            .expect("a link");
        let rates: Vec<_> = link.changes.iter().map(|change| change.up.rate).collect();
        assert_eq!(rates, [Some(Bitrate::from_bits_per_second(4_000_000)); 2]);
        assert_eq!(link.changes[1].down.delay, Duration::from_millis(9));
        let failed = with(&["2s rate=4mbit", "1s delay=9ms"])
            .link()
            .expect_err("out of order");
        assert!(failed.cause.to_string().contains("order of their times"));
    }
}
