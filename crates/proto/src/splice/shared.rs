//! The parts of a splicer that its flows share.

use super::class::ClassId;
use super::codes::{RefuseCode, ResetCode};
use super::config::SplicerConfig;
use super::counters::{ClassCounters, SplicerCounters};
use super::credit::CreditPool;
use super::event::FlowEvent;
use super::report::Reports;
use super::spare_buffers::SpareBuffers;
use crate::machine::PathId;
use crate::transport::aerotp::AerotpEndpoint;
use crate::units::Duration;
use std::collections::{BTreeMap, VecDeque};

/// The endpoint below, the driver above, and the counters and memory between them.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: SplicerConfig,
    pub(super) endpoint: AerotpEndpoint,
    pub(super) pool: CreditPool,
    pub(super) spare: SpareBuffers,
    pub(super) counters: SplicerCounters,
    pub(super) events: VecDeque<FlowEvent>,
    pub(super) reports: Reports,
    /// The least round trip to each peer that the layer below has told since its path began.
    pub(super) least_round_trips: BTreeMap<PathId, Duration>,
}

impl Shared {
    pub(super) fn tell(&mut self, event: FlowEvent) {
        self.events.push_back(event);
    }

    pub(super) fn class(&mut self, id: ClassId) -> &mut ClassCounters {
        self.counters.classes.entry(id).or_default()
    }

    pub(super) fn count_refusal(&mut self, id: ClassId, code: RefuseCode) {
        let index = usize::from(code.number()) - 1;
        if let Some(count) = self.class(id).flows_refused.get_mut(index) {
            *count += 1;
        }
    }

    pub(super) fn count_local_reset(&mut self, id: ClassId, code: ResetCode) {
        let index = usize::from(code.number()) - 1;
        if let Some(count) = self.class(id).resets_local.get_mut(index) {
            *count += 1;
        }
    }

    pub(super) fn count_remote_reset(&mut self, id: ClassId, code: ResetCode) {
        let index = usize::from(code.number()) - 1;
        if let Some(count) = self.class(id).resets_remote.get_mut(index) {
            *count += 1;
        }
    }
}
