//! Feedback: each block's needs, the estimate and the margins, and the number of repetitions.

use super::{HarqReceiver, Owed};
use crate::link::FrameTransmit;
use crate::link::harq::HarqConfig;
use crate::wire::link::FrameNumber;
use crate::wire::link::harq::{HarqBlockReport, HarqFeedback, HarqFrame};
use fulmar_proto::units::{Duration, Instant, PacketErrorRate};

/// Unit times after which feedback with a request is repeated.
pub(in crate::link::harq) const REPEAT_UNITS: u32 = 4;
/// The greatest probability that feedback stays unheard: it is repeated as often as that takes. If
/// it stays unheard, its block is answered in vain.
const UNHEARD: f64 = 0.01;
const REPEATS_MAX: u32 = 6;
/// The least time before feedback is repeated, so that an answer comes first even on a medium that
/// takes no time. It is less than the time that a sender adds to its wait for feedback.
const REPEAT_STEP: Duration = Duration::from_micros(10);

/// The number of repetitions of feedback over a way that loses this share of the frames.
pub(in crate::link::harq) fn repeats(loss: PacketErrorRate) -> u32 {
    if loss <= HarqConfig::floor() {
        return 0;
    }
    let mut unheard = loss.value();
    let mut repeats = 0;
    while unheard > UNHEARD && repeats < REPEATS_MAX {
        unheard *= loss.value();
        repeats += 1;
    }
    repeats
}

/// A share as a frame tells it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of at most 1 times 65,535"
)]
fn told(share: PacketErrorRate) -> u16 {
    (share.value() * f64::from(u16::MAX)).round() as u16
}

impl HarqReceiver {
    /// Appends a challenge or feedback, if one is due; `loss` is that of the way back.
    pub(in crate::link::harq) fn poll(
        &mut self,
        now: Instant,
        loss: PacketErrorRate,
        out: &mut Vec<u8>,
    ) -> Option<FrameTransmit> {
        let start = out.len();
        if let Some(challenge) = self.peer.poll_challenge() {
            HarqFrame::Challenge(challenge).encode(out);
        } else {
            self.feed_back(now, loss)?.encode(out);
        }
        Some(FrameTransmit::control(out.len() - start))
    }

    /// The feedback on everything that is known, if it is due.
    fn feed_back(&mut self, now: Instant, loss: PacketErrorRate) -> Option<HarqFeedback> {
        let epoch = self.peer.known()?;
        match core::mem::take(&mut self.owed) {
            Owed::Nothing => return None,
            Owed::Again => {}
            Owed::News => self.repeats = repeats(loss),
        }
        let next = self.blocks.next();
        let begun = if self.horizon.is_behind(next) {
            0
        } else {
            self.horizon.ahead_of(next)
        };
        let reports: Vec<HarqBlockReport> = (0..begun.min(self.blocks.size()))
            .map(|distance| self.report(next.plus(distance)))
            .collect();
        let lacks = |report: &HarqBlockReport| matches!(report, HarqBlockReport::Heard { span, need } if *need > 0 || *span == 0);
        let wants = reports.iter().any(lacks);
        let again = wants && !self.verdicts.is_empty() || self.repeats > 0;
        self.repeats = self.repeats.saturating_sub(1);
        self.repeat_at = again.then(|| now + self.unit_time * REPEAT_UNITS + REPEAT_STEP);
        Some(HarqFeedback {
            epoch,
            next,
            loss: told(self.estimate.value()),
            damage: self.config.adaptive.then(|| told(self.damage.value())),
            margin: self.margin.told(),
            answer_margin: self.answer_margin.told(),
            reports,
        })
    }

    fn report(&self, number: FrameNumber) -> HarqBlockReport {
        if number.plus(1) == self.horizon && !self.ended {
            return HarqBlockReport::Coming;
        }
        if !self.blocks.is_open(number) {
            let span = HarqConfig::FRAGMENTS_MAX;
            return HarqBlockReport::Heard { span, need: 0 };
        }
        let (span, need) = self.blocks.needs(number);
        let need = u8::try_from(need).unwrap_or(u8::MAX);
        HarqBlockReport::Heard { span, need }
    }
}
