//! The parts of one's own that a scenario names: channels, sources of traffic, controllers of repair and transports.

use crate::own::{OwnRepair, OwnTraffic, OwnTransport};
use fulmar_channel::OwnChannel;

/// Parts of one's own, by the names that scenarios give them in `hop.channel`, `flow.source`, `flow.controller` and
/// `flow.transport`.
#[derive(Clone, Debug, Default)]
pub struct OwnParts {
    /// The channels.
    pub channels: Vec<OwnChannel>,
    /// The sources of traffic.
    pub sources: Vec<OwnTraffic>,
    /// The controllers of repair.
    pub controllers: Vec<OwnRepair>,
    /// The transports.
    pub transports: Vec<OwnTransport>,
}

impl OwnParts {
    /// No parts.
    pub const NONE: &Self = &Self {
        channels: Vec::new(),
        sources: Vec::new(),
        controllers: Vec::new(),
        transports: Vec::new(),
    };

    pub(super) fn channel(&self, name: &str) -> Result<OwnChannel, String> {
        named(&self.channels, OwnChannel::name, name, "channel")
    }

    /// The transport of this name, if there is one.
    pub(super) fn transport(&self, name: &str) -> Option<OwnTransport> {
        let mut transports = self.transports.iter();
        transports.find(|own| own.name() == name).cloned()
    }

    pub(super) fn source(&self, name: &str) -> Result<OwnTraffic, String> {
        named(&self.sources, OwnTraffic::name, name, "source of traffic")
    }

    pub(super) fn controller(&self, name: &str) -> Result<OwnRepair, String> {
        let what = "controller of repair";
        named(&self.controllers, OwnRepair::name, name, what)
    }
}

fn named<T: Clone>(
    parts: &[T],
    name_of: impl Fn(&T) -> &str,
    name: &str,
    what: &str,
) -> Result<T, String> {
    let found = parts.iter().find(|part| name_of(part) == name);
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> = parts.iter().map(&name_of).collect();
        let given = if names.is_empty() {
            "none is given with the scenario".to_owned()
        } else {
            format!("given with the scenario are: {}", names.join(", "))
        };
        format!("there is no {what} `{name}`; {given}")
    })
}
