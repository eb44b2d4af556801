//! The keys of `[hop.link]` and `[hop.red]`.

use super::ScenarioError;
use fulmar_channel::{QueueLimit, RedConfig};
use fulmar_proto::link::LinkLayer;
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
}

#[derive(Clone, Copy)]
enum LayerName {
    Plain,
}

const LAYERS: [(&str, LayerName); 1] = [("plain", LayerName::Plain)];

/// The keys of `[hop.link]`. Those of another layer are let stand, so that one file can compare
/// them.
const KEYS: Keys = &[&["layer"]];

const RED_KEYS: Keys = &[&["min", "max", "probability", "weight"]];

/// The longest queue that a limit can name.
const QUEUE_PACKETS_MAX: u64 = 1 << 24;

impl LinkPlan {
    /// Reads `link` and `red` of a hop: a name, or a table with the layer's settings.
    pub(super) fn read(hop: &TableReader<'_>) -> Result<Option<Self>, ScenarioError> {
        let red = match hop.table("red", RED_KEYS)? {
            Some(red) => Some(read_red(&red)?),
            None => None,
        };
        let layer = if hop.is_table("link") {
            let Some(link) = hop.table("link", KEYS)? else {
                return Ok(None);
            };
            let name = link.choice("layer", &LAYERS)?;
            name.ok_or_else(|| link.wrong("layer", "is missing; write layer = \"ll-harq\""))
                .map(|name| Some(read_layer(name)))?
        } else {
            hop.choice("link", &LAYERS)?.map(read_layer)
        };
        let queue = hop.value("ip_queue")?;
        match layer {
            Some(layer) => Ok(Some(Self { layer, queue, red })),
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

fn read_layer(name: LayerName) -> LinkLayer {
    match name {
        LayerName::Plain => LinkLayer::Plain,
    }
}

fn read_red(red: &TableReader<'_>) -> Result<RedConfig, ScenarioError> {
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
        let key = if error.field == "red.weight" {
            "weight"
        } else {
            "max"
        };
        red.wrong(key, error)
    })?;
    Ok(config)
}
