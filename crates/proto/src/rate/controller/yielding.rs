//! Making way: the share of the estimate that is sent while others keep a queue.
//!
//! A queue that lasts through a whole round trip is not ours: ours is a few datagrams and drains within
//! half of one. Then less is sent, by half each round trip, and a little more again for each one that
//! saw the queue empty (the idea of LEDBAT++, draft-irtf-iccrg-ledbat-plus-plus, section 4).

use super::RateController;
use crate::units::Instant;

/// The span that tells, in round trips and in seconds.
const SPAN_ROUNDS: f64 = 1.5;
const SPAN_MIN: f64 = 0.1;
/// The factors for a span with a queue and for one without.
const LESS: f64 = 0.5;
const MORE: f64 = 1.2;
/// The least share, which keeps the path in view.
const SHARE_MIN: f64 = 0.01;

/// The share that is sent, and the span that will change it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Yielding {
    pub(super) share: f64,
    until: f64,
    least: f64,
}

impl Default for Yielding {
    fn default() -> Self {
        Self {
            share: 1.0,
            until: 0.0,
            least: f64::MAX,
        }
    }
}

impl RateController {
    /// Takes a report's delay in queues, in mode background.
    pub(super) fn make_way(&mut self, now: Instant, queueing: f64) {
        let queue = self.queue_least();
        let seconds = now.as_secs_f64();
        let yielding = &mut self.yielding;
        yielding.least = yielding.least.min(queueing);
        if seconds < yielding.until {
            return;
        }
        let factor = if yielding.least > queue { LESS } else { MORE };
        yielding.share = (yielding.share * factor).clamp(SHARE_MIN, 1.0);
        yielding.least = f64::MAX;
        yielding.until = seconds + (SPAN_ROUNDS * (self.round_trip + queueing)).max(SPAN_MIN);
    }
}
