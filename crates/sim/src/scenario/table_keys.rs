//! The keys of every table of a scenario, for those who check scenarios before we do: editors, type checkers.

use super::topology::PATH_KEYS;
use super::{flow, hop, link, lt_tcp, plan, slacp, tcp};
use fulmar_settings::Keys;

/// Each table by its path, with the keys that it may have; the path of the root is empty. `sweep` has the paths of others as
/// its keys.
pub const TABLE_KEYS: &[(&str, Keys)] = &[
    ("", plan::KEYS),
    ("run", plan::RUN_KEYS),
    ("lan", hop::LAN_KEYS),
    ("hop", hop::KEYS),
    ("hop.forward", hop::WAY_KEYS),
    ("hop.reverse", hop::WAY_KEYS),
    ("hop.link", link::KEYS),
    ("hop.link.urgent", slacp::LANE_KEYS),
    ("hop.link.class", slacp::CLASS_KEYS),
    ("hop.red", link::RED_KEYS),
    ("change", hop::CHANGE_KEYS),
    ("change.forward", hop::CHANGE_WAY_KEYS),
    ("change.reverse", hop::CHANGE_WAY_KEYS),
    ("flow", flow::KEYS),
    ("flow.path", PATH_KEYS),
    ("flow.tcp", tcp::KEYS),
    ("flow.lt_tcp", lt_tcp::KEYS),
    ("tcp", tcp::KEYS),
    ("lt_tcp", lt_tcp::KEYS),
];
