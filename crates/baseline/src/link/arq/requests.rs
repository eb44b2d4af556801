//! The receiver's requests for frames that are missing, where the sender has no timer.
//!
//! A frame is missing as soon as a later one came. It is asked for at once and again each time that a retransmission should have
//! come, `retries` times in all. Then it is hopeless, and passed over.

use crate::wire::link::FrameNumber;
use crate::wire::link::arq::{ARQ_RANGES_MAX, ArqFrame, Epoch, push_range};
use fulmar_proto::machine::Deadline;
use fulmar_proto::units::{Duration, Instant};
use std::collections::VecDeque;

/// The requests of one end.
#[derive(Clone, Debug)]
pub(super) struct ArqRequests {
    /// The number of requests for a frame.
    tries: u8,
    /// The frames that are missing, in order.
    missing: VecDeque<Missing>,
    /// The number behind the last that came.
    end: FrameNumber,
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    number: FrameNumber,
    /// Requests that are left.
    left: u8,
    state: RequestState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestState {
    /// To be asked for.
    Due,
    /// Asked for; the answer should have come by then.
    Asked(Instant),
    /// Asked for as often as it may be.
    Hopeless,
}

impl ArqRequests {
    pub(super) const fn new(tries: u8) -> Self {
        Self {
            tries,
            missing: VecDeque::new(),
            end: FrameNumber(0),
        }
    }

    /// Frames from this number on are expected, and none before.
    pub(super) fn restart_at(&mut self, first: FrameNumber) {
        self.missing.clear();
        self.end = first;
    }

    /// Asks for nothing before this number any more.
    pub(super) fn forget_before(&mut self, next: FrameNumber) {
        while self
            .missing
            .front()
            .is_some_and(|one| one.number.is_behind(next))
        {
            self.missing.pop_front();
        }
        if self.end.is_behind(next) {
            self.end = next;
        }
    }

    /// A frame came, and `next` is the lowest number that is awaited now.
    pub(super) fn arrived(&mut self, number: FrameNumber, next: FrameNumber) {
        self.forget_before(next);
        if number.is_behind(self.end) {
            self.missing.retain(|one| one.number != number);
            return;
        }
        let state = if self.tries == 0 {
            RequestState::Hopeless
        } else {
            RequestState::Due
        };
        for distance in 0..number.ahead_of(self.end) {
            self.missing.push_back(Missing {
                number: self.end.plus(distance),
                left: self.tries,
                state,
            });
        }
        self.end = number.plus(1);
    }

    pub(super) fn handle_deadline(&mut self, now: Instant) {
        for one in &mut self.missing {
            if matches!(one.state, RequestState::Asked(until) if until <= now) {
                one.state = if one.left == 0 {
                    RequestState::Hopeless
                } else {
                    RequestState::Due
                };
            }
        }
    }

    /// Takes the first missing frame if it is hopeless: what came behind it need not wait.
    pub(super) fn pop_hopeless(&mut self) -> Option<FrameNumber> {
        let first = self.missing.front()?;
        if first.state != RequestState::Hopeless {
            return None;
        }
        self.missing.pop_front().map(|one| one.number)
    }

    /// Appends a request for the frames that are to be asked for, as many as it names.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        timeout: Duration,
        epoch: Epoch,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let mut runs: Vec<(FrameNumber, u16)> = Vec::new();
        for one in &mut self.missing {
            if one.state != RequestState::Due {
                continue;
            }
            let is_full = runs.len() == ARQ_RANGES_MAX;
            match runs.last_mut() {
                Some((first, count)) if first.plus(*count) == one.number => *count += 1,
                _ if is_full => break,
                _ => runs.push((one.number, 1)),
            }
            one.left = one.left.saturating_sub(1);
            one.state = RequestState::Asked(now + timeout);
        }
        if runs.is_empty() {
            return None;
        }
        let mut ranges = Vec::new();
        for (first, count) in runs {
            push_range(first, count, &mut ranges);
        }
        let ranges = &ranges;
        ArqFrame::Request { epoch, ranges }.encode(out);
        Some(())
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let asked = self.missing.iter().filter_map(|one| match one.state {
            RequestState::Asked(until) => Some(until),
            RequestState::Due | RequestState::Hopeless => None,
        });
        asked.min().map(|at| Deadline { at, why: "request" })
    }
}
