//! The keys of `[hop.link]` and `[hop.red]`.

use super::read::narrow;
use super::{SettingsError, slacp};
use fulmar_baseline::link::{ArqConfig, HarqConfig, LinkLayer, SlacpConfig};
use fulmar_channel::{QueueLimit, RedConfig};
use fulmar_settings::{Keys, TableReader};

/// The link layer of a hop, and the queue above it.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPlan {
    /// The layer at both ends.
    pub layer: LinkLayer,
    /// The limit of the queue above it, in both directions; that of the hop if not given.
    pub queue: Option<QueueLimit>,
    /// RED on the queue above it, in both directions.
    pub red: Option<RedConfig>,
    /// Whether packets of higher precedence leave the queue above it first, in both directions.
    pub by_precedence: bool,
}

/// The orders in which packets leave the queue above a layer: whether precedence decides.
const ORDERS: [(&str, bool); 2] = [("arrival", false), ("precedence", true)];

/// A layer's settings before any key changed them.
#[derive(Clone, Copy)]
enum Preset {
    /// No layer: a hop as it is without `link`.
    None,
    Plain,
    Arq(ArqConfig),
    LlHarq,
    Slacp,
}

const LAYERS: [(&str, Preset); 9] = [
    ("none", Preset::None),
    ("plain", Preset::Plain),
    ("stop-and-wait", Preset::Arq(ArqConfig::STOP_AND_WAIT)),
    ("go-back-n", Preset::Arq(ArqConfig::GO_BACK_N)),
    ("selective-repeat", Preset::Arq(ArqConfig::SELECTIVE_REPEAT)),
    ("nak-only", Preset::Arq(ArqConfig::NAK_ONLY)),
    ("ll-arq", Preset::Arq(ArqConfig::LL_ARQ)),
    ("ll-harq", Preset::LlHarq),
    ("slacp", Preset::Slacp),
];

/// The keys of `[hop.link]`. Those of another layer are accepted and have no effect, so that one file can
/// compare several layers.
pub(super) const KEYS: Keys = &[
    &["layer", "window", "queue_order"],
    &["retries", "in_order", "retransmit_after"],
    &[
        "fragments",
        "adaptive",
        "units",
        "failure",
        "repair_failure",
        "memory",
    ],
    &slacp::KEYS,
];

/// The keys of `[hop.red]`.
pub(super) const RED_KEYS: Keys = &[&["min", "max", "probability", "weight"]];

/// More retransmissions than help on any link.
const RETRIES_MAX: u64 = 100;

/// The longest memory of a loss estimate: a thousand seconds of units at a thousand a second.
const MEMORY_MAX: u64 = 1_000_000;

/// The longest queue that a limit can name.
const QUEUE_PACKETS_MAX: u64 = 1 << 24;

impl LinkPlan {
    /// Reads `link` and `red` of a hop: a name, or a table with the layer's settings.
    pub(super) fn read(hop: &TableReader<'_>) -> Result<Option<Self>, SettingsError> {
        let red = match hop.table("red", RED_KEYS)? {
            Some(red) => Some(read_red(&red)?),
            None => None,
        };
        let mut by_precedence = false;
        let layer = if hop.is_table("link") {
            let Some(link) = hop.table("link", KEYS)? else {
                return Ok(None);
            };
            by_precedence = link.choice("queue_order", &ORDERS)?.unwrap_or_default();
            let preset = link
                .choice("layer", &LAYERS)?
                .ok_or_else(|| link.wrong("layer", "is missing; write layer = \"ll-harq\""))?;
            preset.changed(&link)?
        } else {
            hop.choice("link", &LAYERS)?.and_then(Preset::unchanged)
        };
        let queue = hop.value("ip_queue")?;
        match layer {
            Some(layer) => Ok(Some(Self {
                layer,
                queue,
                red,
                by_precedence,
            })),
            None if red.is_some() => Err(hop.wrong(
                "red",
                "needs a link layer below its queue; write link = \"plain\"",
            )),
            None if queue.is_some() => Err(hop.wrong(
                "ip_queue",
                "is the queue above a link layer; write link = \"plain\", or queue for this one",
            )),
            None => Ok(None),
        }
    }
}

impl Preset {
    fn unchanged(self) -> Option<LinkLayer> {
        Some(match self {
            Self::None => return None,
            Self::Plain => LinkLayer::Plain,
            Self::Arq(config) => LinkLayer::Arq(config),
            Self::LlHarq => LinkLayer::LlHarq(HarqConfig::default()),
            Self::Slacp => LinkLayer::Slacp(SlacpConfig::default()),
        })
    }

    fn changed(self, link: &TableReader<'_>) -> Result<Option<LinkLayer>, SettingsError> {
        // A key of another layer has no effect but must be valid: every key is read.
        let window_max = match self {
            Self::LlHarq => HarqConfig::WINDOW_MAX,
            _ => ArqConfig::WINDOW_MAX,
        };
        let window = link.whole("window", 1..=u64::from(window_max))?;
        let window = window.map(narrow);
        let preset = match self {
            Self::Arq(config) => config,
            _ => ArqConfig::SELECTIVE_REPEAT,
        };
        let arq = read_arq(preset, window, link)?;
        let harq = read_harq(window, link)?;
        let slacp = slacp::read(link)?;
        Ok(match self {
            Self::None => None,
            Self::Plain => Some(LinkLayer::Plain),
            Self::Arq(_) => Some(LinkLayer::Arq(arq)),
            Self::LlHarq => Some(LinkLayer::LlHarq(harq)),
            Self::Slacp => Some(LinkLayer::Slacp(slacp)),
        })
    }
}

fn read_arq(
    preset: ArqConfig,
    window: Option<u16>,
    link: &TableReader<'_>,
) -> Result<ArqConfig, SettingsError> {
    let retransmit_after = link.duration("retransmit_after")?;
    if retransmit_after.is_some_and(|span| span.is_zero()) {
        return Err(link.wrong("retransmit_after", "must be longer than 0"));
    }
    let retries = link.whole("retries", 0..=RETRIES_MAX)?;
    Ok(ArqConfig {
        window: window.unwrap_or(preset.window),
        retries: retries.map_or(preset.retries, narrow),
        in_order: link.value_or("in_order", preset.in_order)?,
        retransmit_after: retransmit_after.or(preset.retransmit_after),
        ..preset
    })
}

fn read_harq(window: Option<u16>, link: &TableReader<'_>) -> Result<HarqConfig, SettingsError> {
    let preset = HarqConfig::default();
    let fragments = link.whole("fragments", 1..=u64::from(HarqConfig::FRAGMENTS_MAX))?;
    let units = link.whole("units", 1..=u64::from(HarqConfig::UNITS_MAX))?;
    let memory = link.whole("memory", 1..=MEMORY_MAX)?;
    Ok(HarqConfig {
        fragments: fragments.map_or(preset.fragments, narrow),
        adaptive: link.value_or("adaptive", preset.adaptive)?,
        units: units.map_or(preset.units, narrow),
        failure: link.value_or("failure", preset.failure)?,
        repair_failure: link.value_or("repair_failure", preset.repair_failure)?,
        memory: memory.map_or(preset.memory, narrow),
        window: window.unwrap_or(preset.window),
    })
}

fn read_red(red: &TableReader<'_>) -> Result<RedConfig, SettingsError> {
    let length = |key, example| {
        let packets = red.whole(key, 0..=QUEUE_PACKETS_MAX)?;
        let packets = packets.and_then(|packets| u32::try_from(packets).ok());
        packets.ok_or_else(|| red.wrong(key, format!("is missing; write {key} = {example}")))
    };
    let plain = RedConfig::between(length("min", "15")?, length("max", "45")?);
    let config = RedConfig {
        probability: red.value_or("probability", plain.probability)?,
        weight: red.value_or("weight", plain.weight)?,
        ..plain
    };
    config.validate().map_err(|error| {
        let key = match error.field.part {
            Some("weight") => "weight",
            _ => "max",
        };
        red.wrong(key, error)
    })?;
    Ok(config)
}
