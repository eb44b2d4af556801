//! Whether anybody else is in a queue that stands.
//!
//! In a queue of ours alone datagrams leave at the link's rate, however fast they came. Beside others
//! they leave as they came, since others' are between them. So a little more is sent in one stretch and
//! a little less in the next, and the spacing of what arrives is compared (the idea of Nimbus, Goyal et
//! al., SIGCOMM 2022, without its transform).

use super::super::epoch::{Epoch, EpochKind};
use super::{RateController, seconds};
use crate::units::Instant;

/// The share by which more and less is sent.
pub(super) const PULSE: f64 = 0.1;
/// The response below which nobody else is there, in so many pairs in a row. Beside others it is the
/// share of the link that is not ours.
const ALONE: f64 = 0.12;
const PAIRS: u32 = 2;
/// The time between pairs while others are there, in seconds.
const REST: f64 = 2.0;
/// The least difference of the rates that were sent, as a logarithm.
const APART: f64 = 0.05;

/// The datagrams of each of the two stretches that tell, and the jitter as a share of it that
/// spoils it.
const HIDDEN_PACKETS: f64 = 12.0;
const HIDDEN_NOISE: f64 = 0.1;
/// The least difference of the two, as a logarithm, and the response below which there is a queue.
const HIDDEN_APART: f64 = 0.3;
const HIDDEN: f64 = 0.75;

/// The response of what arrives to what was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Response {
    more: Option<Epoch>,
    alone: u32,
    /// The stretch of little with which a look for a hidden queue begins.
    first: Option<Epoch>,
    /// Whether the last look found a queue that does not show.
    hidden: bool,
    /// The time of the next look.
    pub(super) look_at: Instant,
    /// Whether one is due since the search ended.
    pub(super) look_after_search: bool,
}

impl RateController {
    /// Takes a stretch, while others are supposed to be there.
    pub(super) fn take_response(&mut self, now: Instant, epoch: &Epoch) {
        let useful = epoch.queued && !epoch.broken && epoch.busy && epoch.arriving > 0.0;
        let response = &mut self.response;
        if epoch.kind == EpochKind::Up {
            response.more = Some(*epoch).filter(|_| useful);
            return;
        }
        let more = response
            .more
            .take()
            .filter(|_| useful && epoch.kind == EpochKind::Down);
        let Some(more) = more else { return };
        let sent = (more.sent_rate() / epoch.sent_rate()).ln();
        let (high, low) = (more.passed_rate(), epoch.passed_rate());
        if sent < APART || high <= 0.0 || low <= 0.0 {
            return;
        }
        let measured = ((high / low).ln() / sent).clamp(-1.0, 2.0);
        if measured < ALONE {
            response.alone += 1;
        } else {
            response.alone = 0;
            self.hold_until = now + seconds(REST);
        }
        if response.alone >= PAIRS {
            self.end_competing(now.as_secs_f64());
            self.capacity = low.min(self.bound);
        }
    }

    /// Takes a stretch of little, as after the search, or the one behind it. Whoever came to a full queue sees none, but
    /// what arrives does not follow what is sent as it would on an empty link.
    pub(super) fn take_hidden(&mut self, now: Instant, epoch: &Epoch) {
        let useful = !epoch.broken
            && epoch.busy
            && epoch.sent > HIDDEN_PACKETS * self.packet
            && self.delays.noise() < HIDDEN_NOISE * epoch.sending.min(epoch.arriving);
        if epoch.is_look() {
            self.response.first = Some(*epoch).filter(|_| useful);
            return;
        }
        let Some(first) = self.response.first.take().filter(|_| useful) else {
            return;
        };
        let sent = (epoch.sent_rate() / first.sent_rate()).ln();
        let passed = (epoch.passed_rate() / first.passed_rate()).ln();
        let hidden = sent > HIDDEN_APART && passed < HIDDEN * sent;
        if hidden && self.response.hidden {
            self.share_hidden(now);
        } else if hidden {
            self.response.hidden = true;
            self.response.look_at = now;
        } else {
            self.response.hidden = false;
        }
    }
}
