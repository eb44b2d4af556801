//! A flow whose rate the controller finds, and which always has something to send.

use fulmar_proto::rate::{RateConfig, RateController};

#[derive(Debug)]
pub(super) struct FoundFlow {
    pub(super) controller: RateController,
}

impl FoundFlow {
    pub(super) fn new(config: RateConfig) -> Self {
        Self {
            controller: RateController::new(config),
        }
    }

    pub(super) fn may_send(&self) -> bool {
        self.controller.in_flight() < self.controller.in_flight_max()
    }
}
