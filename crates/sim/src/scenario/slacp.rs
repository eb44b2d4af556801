//! The keys of `[hop.link]` that SLACP has.

use super::SettingsError;
use super::read::narrow;
use fulmar_baseline::link::{LaneClass, LaneSettings, SlacpConfig};
use fulmar_proto::machine::Priority;
use fulmar_settings::{FieldKeys, Keys, TableReader, key_of};

/// The keys of `[hop.link]`.
pub(super) const KEYS: [&str; 8] = [
    "lanes",
    "persistence",
    "arq",
    "fec",
    "urgent",
    "class",
    "redundancy",
    "ack_delay",
];

/// The keys of `[hop.link.urgent]`.
pub(super) const LANE_KEYS: Keys = &[&["persistence", "arq", "fec"]];

/// The keys of `[[hop.link.class]]`.
pub(super) const CLASS_KEYS: Keys = &[&["priority", "persistence", "arq", "fec"]];

/// The keys of the fields that [`SlacpConfig::check`] names.
const FIELDS: &FieldKeys = &[
    ("lanes", "lanes"),
    ("ordinary.persistence", "persistence"),
    ("urgent.persistence", "urgent"),
    ("classes.persistence", "class"),
    ("classes.priority", "class"),
    ("ack_delay", "ack_delay"),
];

/// The settings that `link` gives; the others have their defaults.
pub(super) fn read(link: &TableReader<'_>) -> Result<SlacpConfig, SettingsError> {
    let plain = SlacpConfig::default();
    let urgent = match link.table("urgent", LANE_KEYS)? {
        Some(urgent) => lane(&urgent, plain.urgent)?,
        None => plain.urgent,
    };
    let lanes = link.whole("lanes", 1..=7)?;
    let tables = link.tables("class", CLASS_KEYS)?;
    if tables.len() > SlacpConfig::CLASSES_MAX {
        let problem = format!("there are at most {}", SlacpConfig::CLASSES_MAX);
        return Err(link.wrong("class", problem));
    }
    let mut classes = plain.classes;
    for (class, table) in classes.iter_mut().zip(&tables) {
        let priority = table.whole("priority", 2..=63)?.ok_or_else(|| {
            table.wrong(
                "priority",
                "is missing; write priority = 46, and the same in the flow",
            )
        })?;
        *class = Some(LaneClass {
            priority: Priority(narrow(priority)),
            settings: lane(table, plain.urgent)?,
        });
    }
    let config = SlacpConfig {
        lanes: lanes.map_or(plain.lanes, narrow),
        ordinary: lane(link, plain.ordinary)?,
        urgent,
        classes,
        redundancy: link.value_or("redundancy", plain.redundancy)?,
        ack_delay: link.duration("ack_delay")?.unwrap_or(plain.ack_delay),
    };
    match config.check() {
        Ok(()) => Ok(config),
        Err(error) => {
            let key = key_of(FIELDS, error.field).unwrap_or("layer");
            Err(link.wrong(key, format!("must be {}", error.allowed)))
        }
    }
}

fn lane(reader: &TableReader<'_>, plain: LaneSettings) -> Result<LaneSettings, SettingsError> {
    let persistence = reader.whole("persistence", 0..=4)?;
    Ok(LaneSettings {
        arq: reader.value_or("arq", plain.arq)?,
        fec: reader.value_or("fec", plain.fec)?,
        persistence: persistence.map_or(plain.persistence, narrow),
    })
}
