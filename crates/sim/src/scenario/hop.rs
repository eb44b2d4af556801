//! The keys of `[hop]` and `[lan]`.

use super::SettingsError;
use super::link::LinkPlan;
use super::recordings::Recordings;
use super::topology::{self, TopologyPlan};
use core::fmt::Display;
use core::iter;
use core::str::FromStr;
use fulmar_baseline::wire::link::harq::HARQ_OVERHEAD_BYTES;
use fulmar_channel::fading::Fading;
use fulmar_channel::{ChannelConfig, LossModel, OwnChannel, QueueLimit, Setting};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration};
use fulmar_settings::{Keys, TableReader, suggestion};

/// The default length of ns-3's `DropTailQueue`, with which the papers' scenarios were run.
const QUEUE_PACKETS: u32 = 100;

/// The keys of one direction, by the names of [`ChannelConfig`]'s fields (`ber` is its `bits`).
const DIRECTION_KEYS: [&str; 15] = [
    "rate",
    "delay",
    "queue",
    "ecn_threshold",
    "aqm",
    "policer",
    "loss",
    "ber",
    "fading",
    "outages",
    "reorder",
    "duplicate",
    "jitter",
    "tdma",
    "channel",
];

/// The keys that only one direction can have: a terminal's capacity on demand.
const TERMINAL_KEYS: [&str; 1] = ["dama"];

/// Octets that a link layer puts around a packet, at most: a repair symbol of LL-HARQ over whole packets has the most.
const LAYER_BYTES: ByteCount = ByteCount(HARQ_OVERHEAD_BYTES as u64);

/// The keys of `[hop]`: those of a direction, and its own.
pub(super) const KEYS: Keys = &[
    &DIRECTION_KEYS,
    &topology::HOP_KEYS,
    &[
        "forward",
        "reverse",
        "frame_check",
        "framing",
        "link",
        "red",
        "ip_queue",
        "told_after",
    ],
];

/// The keys of `[hop.forward]` and `[hop.reverse]`.
pub(super) const WAY_KEYS: Keys = &[&DIRECTION_KEYS, &TERMINAL_KEYS];

/// The keys of `[lan]`.
pub(super) const LAN_KEYS: Keys = &[&["rate", "delay", "queue", "framing"]];

/// One measured hop: a channel for each direction.
#[derive(Clone, Debug, PartialEq)]
pub struct HopPlan {
    /// The channel from the source towards the sink.
    pub forward: ChannelConfig,
    /// The channel from the sink towards the source.
    pub reverse: ChannelConfig,
    /// Whether the link has a frame check of its own and drops damaged packets, as Ethernet and
    /// PPP do. Without one, damage is passed up for the transport to correct.
    pub frame_check: bool,
    /// Octets that the link itself puts around each packet: they take time, can be hit and are counted.
    pub framing: ByteCount,
    /// The link layer at its ends, if it has one.
    pub link: Option<LinkPlan>,
    /// The time after which the radios at its ends tell what it is from a time on: rate, wrong bits, whether it passes anything.
    /// `None`: they say nothing.
    pub told_after: Option<Duration>,
    /// The hop as it is from given times on, in the order of the times.
    pub changes: Vec<HopChange>,
}

/// The channels of a hop from a time on. They differ from those before in rate, delay, loss and bit errors alone.
#[derive(Clone, Debug, PartialEq)]
pub struct HopChange {
    /// The time, from the start of the run.
    pub at: Duration,
    /// The channel from the source towards the sink.
    pub forward: ChannelConfig,
    /// The channel from the sink towards the source.
    pub reverse: ChannelConfig,
}

/// The keys that can change on the way.
const CHANGING_KEYS: [&str; 4] = ["rate", "delay", "loss", "ber"];
/// The keys of `[change.forward]` and `[change.reverse]`.
pub(super) const CHANGE_WAY_KEYS: Keys = &[&CHANGING_KEYS];
/// The keys of `[[change]]`.
pub(super) const CHANGE_KEYS: Keys = &[&CHANGING_KEYS, &["at", "hop", "forward", "reverse"]];

/// The access links at both ends: error-free, and not counted in any measure.
#[derive(Clone, Debug, PartialEq)]
pub struct LanPlan {
    /// The channel of each direction of each access link.
    pub config: ChannelConfig,
    /// Octets that the link itself puts around each packet.
    pub framing: ByteCount,
}

impl HopPlan {
    pub(super) fn read(
        reader: &TableReader<'_>,
        recordings: &dyn Recordings,
    ) -> Result<Self, SettingsError> {
        let rate: Bitrate = reader.required("rate", "\"5Mbit/s\"")?;
        let plain = ChannelConfig {
            rate: Some(rate),
            queue: QueueLimit::packets(QUEUE_PACKETS),
            ..ChannelConfig::default()
        };
        let both = direction(&plain, reader, recordings)?;
        check(&both, reader)?;
        let one = |key| match reader.table(key, WAY_KEYS)? {
            Some(own) => {
                let mut config = direction(&both, &own, recordings)?;
                config.dama = own.value("dama")?;
                check(&config, &own)?;
                Ok(config)
            }
            None => Ok(both.clone()),
        };
        let plan = Self {
            forward: one("forward")?,
            reverse: one("reverse")?,
            frame_check: reader.value_or("frame_check", false)?,
            framing: framing(reader)?,
            link: LinkPlan::read(reader)?,
            told_after: reader.duration("told_after")?,
            changes: Vec::new(),
        };
        if plan.link.is_some() && (plan.forward.aqm.is_some() || plan.reverse.aqm.is_some()) {
            let problem = "manages the queue of a hop without a link layer; write [hop.red] for the queue above one";
            return Err(reader.wrong("aqm", problem));
        }
        Ok(plan)
    }

    /// Reads the times at which hops change, and gives each hop its own.
    pub(super) fn read_changes(
        hops: &mut [Self],
        readers: &[TableReader<'_>],
        topology: &TopologyPlan,
        recordings: &dyn Recordings,
    ) -> Result<(), SettingsError> {
        let mut before = Duration::ZERO;
        for reader in readers {
            let at = reader.duration("at")?;
            let at = at.ok_or_else(|| reader.wrong("at", "is missing; write at = \"5s\""))?;
            if at <= before {
                let problem = "must be above 0 and later than that of the change before";
                return Err(reader.wrong("at", problem));
            }
            before = at;
            let only = changed_hop(reader, topology)?;
            if !CHANGE_KEYS
                .concat()
                .iter()
                .any(|key| *key != "at" && *key != "hop" && reader.has(key))
            {
                let problem = "changes nothing; write loss, ber, delay or rate, or remove it";
                return Err(reader.wrong("at", problem));
            }
            for (index, hop) in hops.iter_mut().enumerate() {
                if only.is_none_or(|only| only == index) {
                    let change = hop.change(at, reader, recordings)?;
                    hop.changes.push(change);
                }
            }
        }
        Ok(())
    }

    fn change(
        &self,
        at: Duration,
        reader: &TableReader<'_>,
        recordings: &dyn Recordings,
    ) -> Result<HopChange, SettingsError> {
        let (forward, reverse) = self
            .changes
            .last()
            .map_or((&self.forward, &self.reverse), |last| {
                (&last.forward, &last.reverse)
            });
        let one = |base: &ChannelConfig, key| {
            let both = changed(base, reader, recordings)?;
            match reader.table(key, CHANGE_WAY_KEYS)? {
                Some(own) => changed(&both, &own, recordings),
                None => Ok(both),
            }
        };
        Ok(HopChange {
            at,
            forward: one(forward, "forward")?,
            reverse: one(reverse, "reverse")?,
        })
    }

    /// Checks that the slots hold the longest packet that crosses the hop, at every rate it has in the run. A packet is never cut.
    pub(super) fn check_slots(
        &self,
        longest: ByteCount,
        reader: &TableReader<'_>,
    ) -> Result<(), SettingsError> {
        let around = self.around();
        for (direction, configs) in ["forward", "reverse"].into_iter().zip(self.ways()) {
            let Some(holds) = slot_octets(configs) else {
                continue;
            };
            if longest + around > holds {
                let problem = format!(
                    "the {direction} slot holds {holds} at the lowest rate, and a packet of {longest}, the flows' mtu, with {around} \
                     around it is longer; write mtu = \"slot\" in the flows, or a longer slot"
                );
                return Err(reader.wrong("tdma", problem));
            }
        }
        Ok(())
    }

    /// The longest packet that fits into the slots of both directions, if there are any; none if they do not even hold what
    /// stands around it.
    pub(super) fn slot(&self) -> Option<ByteCount> {
        let holds = self.ways().into_iter().filter_map(slot_octets);
        holds
            .min()
            .map(|octets| octets.saturating_sub(self.around()))
    }

    /// The channels of each direction, one after another.
    fn ways(&self) -> [Vec<&ChannelConfig>; 2] {
        let later = |way: fn(&HopChange) -> &ChannelConfig| self.changes.iter().map(way);
        [
            iter::once(&self.forward)
                .chain(later(|change| &change.forward))
                .collect(),
            iter::once(&self.reverse)
                .chain(later(|change| &change.reverse))
                .collect(),
        ]
    }

    /// Octets around a packet on the link.
    fn around(&self) -> ByteCount {
        let layer = self.link.as_ref().map_or(ByteCount::ZERO, |_| LAYER_BYTES);
        self.framing + layer
    }

    /// Checks the queue above a link layer. The layer takes its packets out of that queue, where all of
    /// them wait: a queue that holds none lets none through. (Without a link layer the packet on its way
    /// does not wait.)
    pub(super) fn check_queue_above(
        &self,
        longest: ByteCount,
        reader: &TableReader<'_>,
    ) -> Result<(), SettingsError> {
        let Some(link) = &self.link else {
            return Ok(());
        };
        let key = if link.queue.is_some() {
            "ip_queue"
        } else {
            "queue"
        };
        for own in [self.forward.queue, self.reverse.queue] {
            let limit = link.queue.unwrap_or(own);
            if limit.packets == Some(0) {
                let problem =
                    "lets no packet through to the link layer; write \"1 packets\" or more";
                return Err(reader.wrong(key, problem));
            }
            if let Some(bytes) = limit.bytes.filter(|bytes| *bytes < longest) {
                let problem = format!(
                    "`{bytes}` lets no packet of {longest}, the flows' mtu, through to the link layer; \
                     write \"{longest}\" or more, or a smaller mtu"
                );
                return Err(reader.wrong(key, problem));
            }
        }
        Ok(())
    }
}

impl LanPlan {
    pub(super) fn read(reader: &TableReader<'_>) -> Result<Self, SettingsError> {
        let config = ChannelConfig {
            rate: Some(reader.required("rate", "\"10Gbit/s\"")?),
            delay: reader.duration("delay")?.unwrap_or_default(),
            queue: reader.value_or("queue", QueueLimit::UNLIMITED)?,
            ..ChannelConfig::default()
        };
        check(&config, reader)?;
        let framing = framing(reader)?;
        Ok(Self { config, framing })
    }
}

/// Octets that a slot holds at the lowest of a direction's rates, if it has slots.
fn slot_octets(configs: Vec<&ChannelConfig>) -> Option<ByteCount> {
    let holds = configs.into_iter();
    holds
        .filter_map(|config| Some(config.tdma?.octets(config.rate?)))
        .min()
}

/// More framing than any link has.
const FRAMING_MAX: ByteCount = ByteCount(256);

fn framing(reader: &TableReader<'_>) -> Result<ByteCount, SettingsError> {
    let framing = reader.value_or("framing", ByteCount::ZERO)?;
    if framing > FRAMING_MAX {
        let problem = format!("`{framing}` must be at most {FRAMING_MAX}");
        return Err(reader.wrong("framing", problem));
    }
    Ok(framing)
}

/// A value that a direction or a sweep can be without, as `none`.
struct Maybe<T>(Option<T>);

impl<T: FromStr> FromStr for Maybe<T> {
    type Err = T::Err;
    fn from_str(text: &str) -> Result<Self, T::Err> {
        match text.trim() {
            "none" => Ok(Self(None)),
            text => text.parse().map(|value| Self(Some(value))),
        }
    }
}

/// The hop that a change is of, by its number or by its name in a graph; all hops if none is told.
fn changed_hop(
    reader: &TableReader<'_>,
    topology: &TopologyPlan,
) -> Result<Option<usize>, SettingsError> {
    let Some(told) = reader.text("hop")? else {
        return Ok(None);
    };
    if let Some(hop) = topology.hop(told) {
        return Ok(Some(hop));
    }
    if !topology.is_chain() && told.parse::<u64>().is_err() {
        let names = (0..topology.hop_count()).map(|hop| topology.hop_name(hop));
        let problem = format!("`{told}` is no hop; {}", suggestion(told, names));
        return Err(reader.wrong("hop", problem));
    }
    let last = topology.hop_count() as u64 - 1;
    let number = reader.whole("hop", 0..=last)?;
    Ok(number.and_then(|hop| usize::try_from(hop).ok()))
}

/// The channel of one direction with the rate, the delay, the loss and the bit errors that `reader` gives.
fn changed(
    base: &ChannelConfig,
    reader: &TableReader<'_>,
    recordings: &dyn Recordings,
) -> Result<ChannelConfig, SettingsError> {
    let config = ChannelConfig {
        rate: reader.value("rate")?.or(base.rate),
        delay: reader.duration("delay")?.unwrap_or(base.delay),
        loss: loss(base, reader, recordings)?,
        bits: reader.value_or("ber", base.bits)?,
        ..base.clone()
    };
    check(&config, reader)?;
    Ok(config)
}

/// The loss that `reader` gives, or that of `base`.
fn loss(
    base: &ChannelConfig,
    reader: &TableReader<'_>,
    recordings: &dyn Recordings,
) -> Result<LossModel, SettingsError> {
    let mut loss = reader.value_or("loss", base.loss.clone())?;
    if let LossModel::Replay(replay) = &mut loss
        && replay.trace.is_none()
    {
        let trace = recordings
            .loss(&replay.name)
            .map_err(|problem| reader.wrong("loss", problem))?;
        replay.trace = Some(trace);
    }
    Ok(loss)
}

/// The channel of one direction as `reader` gives it; what it does not give is as in `base`.
fn direction(
    base: &ChannelConfig,
    reader: &TableReader<'_>,
    recordings: &dyn Recordings,
) -> Result<ChannelConfig, SettingsError> {
    let loss = loss(base, reader, recordings)?;
    let mut fading = reader.value("fading")?.or_else(|| base.fading.clone());
    if let Some(missing) = fading.as_ref().and_then(Fading::missing_trace) {
        let problem = |problem: &dyn Display| reader.wrong("fading", problem);
        let trace = recordings.power(missing).map_err(|error| problem(&error))?;
        let whole = fading.map(|fading| fading.with_trace(trace)).transpose();
        fading = whole.map_err(|error| problem(&error))?;
    }
    let span =
        |key, default: Duration| Ok::<_, SettingsError>(reader.duration(key)?.unwrap_or(default));
    Ok(ChannelConfig {
        rate: reader.value("rate")?.or(base.rate),
        delay: span("delay", base.delay)?,
        queue: reader.value_or("queue", base.queue)?,
        ecn_threshold: reader.value("ecn_threshold")?.or(base.ecn_threshold),
        aqm: (reader.value("aqm")?).map_or(base.aqm, |Maybe(aqm)| aqm),
        policer: (reader.value("policer")?).map_or(base.policer, |Maybe(policer)| policer),
        loss,
        bits: reader.value_or("ber", base.bits)?,
        fading,
        outages: reader.value_or("outages", base.outages.clone())?,
        reorder: reader.value("reorder")?.or(base.reorder),
        duplicate: reader.value_or("duplicate", base.duplicate)?,
        jitter: reader.value("jitter")?.or(base.jitter),
        dama: base.dama,
        tdma: (reader.value("tdma")?).map_or(base.tdma, |Maybe(tdma)| tdma),
        own: own(base, reader, recordings)?,
    })
}

/// The channel of one's own that `reader` names, or that of `base`.
fn own(
    base: &ChannelConfig,
    reader: &TableReader<'_>,
    recordings: &dyn Recordings,
) -> Result<Option<OwnChannel>, SettingsError> {
    match reader.text("channel")? {
        None => Ok(base.own.clone()),
        Some("none") => Ok(None),
        Some(name) => {
            let found = recordings.own().channel(name);
            found
                .map(Some)
                .map_err(|problem| reader.wrong("channel", problem))
        }
    }
}

/// Runs the channel's own checks, and names the place of the key that they complain about.
fn check(config: &ChannelConfig, reader: &TableReader<'_>) -> Result<(), SettingsError> {
    // A law of one's own is made for runs alone.
    let config = ChannelConfig {
        own: None,
        ..config.clone()
    };
    let Err(error) = fulmar_channel::Channel::new(config, &Rng::from_seed(0)) else {
        return Ok(());
    };
    let key = match error.field.setting {
        Setting::Rate => "rate",
        Setting::Delay => "delay",
        // The reader of `red` checks it where it reads it.
        Setting::Queue | Setting::Red => "queue",
        Setting::EcnThreshold => "ecn_threshold",
        Setting::Policer => "policer",
        Setting::Aqm => "aqm",
        Setting::Loss => "loss",
        Setting::Fading => "fading",
        Setting::Outages => "outages",
        Setting::Reorder => "reorder",
        Setting::Jitter => "jitter",
        Setting::Dama => "dama",
        Setting::Tdma => "tdma",
    };
    Err(reader.wrong(key, error))
}
