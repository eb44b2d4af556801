//! The timers of a flow.

use super::super::codes::{RefuseCode, ResetCode};
use super::super::event::FlowEvent;
use super::super::graves::Outcome;
use super::super::shared::Shared;
use super::{Flow, Phase};
use crate::timer::TimerKind;
use crate::units::Instant;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FlowTimer {
    Answer,
    Idle,
    Report,
    Reconnect,
    Away,
    Ending,
}

impl TimerKind for FlowTimer {
    const COUNT: usize = 6;
    fn index(self) -> usize {
        self as usize
    }
    fn why(self) -> &'static str {
        match self {
            Self::Answer => "flow not answered",
            Self::Idle => "flow idle",
            Self::Report => "delivery report",
            Self::Reconnect => "flow connects again",
            Self::Away => "flow without a connection for too long",
            Self::Ending => "flow not ended",
        }
    }
}

impl Flow {
    pub(in super::super) fn handle_deadline(&mut self, now: Instant, shared: &mut Shared) {
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                FlowTimer::Answer => self.on_answer_timeout(now, shared),
                FlowTimer::Idle => {
                    let at = self.last_active + shared.config.stream_idle_max;
                    if at > now {
                        self.timers.set(FlowTimer::Idle, at);
                    } else {
                        self.fail(now, shared, ResetCode::Idle);
                    }
                }
                FlowTimer::Report => self.report_in_time(now, shared),
                FlowTimer::Reconnect => self.reconnect_due = true,
                FlowTimer::Away => self.fail(now, shared, ResetCode::PeerLost),
                FlowTimer::Ending => self.give_up_ending(now, shared),
            }
        }
    }

    fn on_answer_timeout(&mut self, now: Instant, shared: &mut Shared) {
        match self.phase {
            Phase::Opening => self.fail_opening(now, shared, RefuseCode::Timeout),
            Phase::Requested => {
                shared.count_refusal(self.class.id, RefuseCode::Timeout);
                self.end(now, shared, Outcome::Refused(RefuseCode::Timeout));
                shared.tell(FlowEvent::Reset {
                    flow: self.id,
                    code: ResetCode::Timeout,
                });
            }
            Phase::Open | Phase::Ending(_) => {}
        }
    }
}
