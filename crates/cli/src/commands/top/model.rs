//! The part of a gateway's view that is shown; fields that a later version adds are ignored.

use super::super::verdicts::{Grade, ShownAlarm, ShownVerdict};
use serde::Deserialize;

/// A figure: its label, and its value in words.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Figure {
    #[serde(default)]
    pub(super) series: String,
    pub(super) label: String,
    pub(super) text: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Group {
    pub(super) title: String,
    pub(super) figures: Vec<Figure>,
}

/// The fate of one direction's datagrams, in a sentence.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ShownWay {
    pub(super) title: String,
    pub(super) says: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Peer {
    pub(super) name: String,
    #[serde(default)]
    pub(super) verdict: ShownVerdict,
    pub(super) link: String,
    pub(super) says: String,
    #[serde(default)]
    pub(super) ways: Vec<ShownWay>,
    pub(super) groups: Vec<Group>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) figures: Vec<Figure>,
}

impl Group {
    pub(super) fn of_class(class: &Class) -> Self {
        Self {
            title: format!("class {}", class.name),
            figures: class.figures.clone(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Flow {
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) sent_bytes: u64,
    #[serde(default)]
    pub(super) received_bytes: u64,
    #[serde(default)]
    pub(super) seconds: f64,
    pub(super) protocol: String,
    pub(super) direction: String,
    pub(super) destination: String,
    pub(super) class: String,
    pub(super) peer: String,
    pub(super) sent_text: String,
    pub(super) received_text: String,
    pub(super) age_text: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Decision {
    pub(super) uptime_seconds: f64,
    pub(super) peer: Option<String>,
    pub(super) what: String,
    pub(super) why: String,
}

/// The part of `/view` that is shown; fields that a later version adds are ignored.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct View {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) sequence: u64,
    pub(super) uptime_seconds: f64,
    #[serde(default)]
    pub(super) grade: Grade,
    /// Whether there are no keys.
    #[serde(default)]
    pub(super) unprotected: bool,
    #[serde(default)]
    pub(super) alarms: Vec<ShownAlarm>,
    pub(super) groups: Vec<Group>,
    pub(super) peers: Vec<Peer>,
    pub(super) classes: Vec<Class>,
    pub(super) flows: Vec<Flow>,
    pub(super) flows_left_out: u64,
    pub(super) decisions: Vec<Decision>,
}
