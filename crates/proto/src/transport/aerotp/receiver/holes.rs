//! Holes in modes that may lose data: the wait for each, and its end.

use super::super::counters::Counters;
use super::super::patience::Hole;
use super::{REPORT_INTERVAL, Receiver, ReceiverTimer};
use crate::trace::{Trace, TraceRecord};
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;
use crate::wire::aerotp::LISTED_NUMBERS_MAX;

impl Receiver {
    /// Sets the wait for the first hole. Called after every arrival.
    pub(super) fn after_arrival(&mut self, now: Instant) {
        if !self.rules.confirms() {
            // The first report shows the path's delay before any queue has grown.
            let interval = if core::mem::replace(&mut self.has_reported, true) {
                REPORT_INTERVAL
            } else {
                Duration::ZERO
            };
            self.timers
                .set_if_idle(ReceiverTimer::Report, now + interval);
        }
        if self.rules.complete {
            return;
        }
        let tpdus = self.ring.end_seen().offset_from(self.first_seq);
        self.patience.note_progress(tpdus);
        match self.first_hole() {
            Some(hole) => {
                let until = self.patience.ends_at(hole);
                self.timers.set(ReceiverTimer::HoleWait, until.max(now));
            }
            None => self.timers.stop(ReceiverTimer::HoleWait),
        }
    }

    /// Asks once more behind the copies of a damaged TPDU. The data TPDU `arrived` shows that the copies of
    /// earlier TPDUs have passed.
    pub(super) fn ask_behind_copies(&mut self, arrived: TpduSeq) {
        let passed = |awaited: &mut TpduSeq| arrived.distance_from(*awaited) > 0;
        if let Some(seq) = self.copies_awaited.take_if(passed)
            && self.ring.is_missing(seq)
            && !self.asked_damaged.contains(&seq)
            && self.asked_damaged.len() < LISTED_NUMBERS_MAX
        {
            self.asked_damaged.push_back(seq);
        }
    }

    fn first_hole(&self) -> Option<Hole> {
        let (since, damaged) = self.ring.first_hole()?;
        Some(Hole {
            since,
            damaged,
            is_newest: self.ring.end_seen() == self.ring.next_expected().plus(1),
        })
    }

    pub(super) fn give_up_holes(
        &mut self,
        now: Instant,
        counters: &mut Counters,
        trace: &mut Trace,
    ) {
        while let Some(hole) = self.first_hole() {
            if self.patience.ends_at(hole) > now {
                break;
            }
            if let Some((seq, damaged)) = self.ring.give_up_first_hole() {
                if damaged {
                    counters.residual_damaged += 1;
                } else {
                    counters.residual_lost += 1;
                }
                trace.note(now, TraceRecord::GivenUp { seq });
            }
        }
        self.after_arrival(now);
    }
}
