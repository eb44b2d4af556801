//! No congestion control.

use super::{Acked, CongestionControl};
use fulmar_proto::units::Instant;

/// A rule without a congestion window: the peer's window alone limits the octets in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unlimited;

impl CongestionControl for Unlimited {
    fn window(&self) -> u64 {
        // Far above any receive window, with room for sums.
        u64::MAX / 4
    }
    fn threshold(&self) -> u64 {
        u64::MAX
    }
    fn on_acked(&mut self, _acked: Acked) {}
    fn on_loss(&mut self, _now: Instant, _base: u64) {}
    fn on_timeout(&mut self, _now: Instant, _base: u64, _again: bool) {}
    fn undo(&mut self, _now: Instant) {}
    fn on_idle(&mut self, _now: Instant, _window: u64) {}
    fn set_threshold(&mut self, _threshold: u64) {}
}
