//! A path whose rate is found: the controller, fed with what leaves and with the receiver's reports.

use super::super::event::{PathRate, RateReason};
use super::heard::{Counts, Heard, OtherStart};
use crate::machine::{Deadline, PathAck, Sealed, SealedContent};
use crate::rate::{ArrivalReport, RateCause, RateConfig, RateController, RateSharing};
use crate::transport::parts::DeliveryReport;
use crate::units::{Bitrate, ByteCount, Duration, Instant};
use crate::wire::cut;

/// The time for which the pace holds, unless a report comes: the controller need not be asked for every datagram.
const PACE_HOLDS: Duration = Duration::from_micros(250);
/// The unit of the times by which reports name datagrams, in the short form. The datagrams of the first train are
/// as far apart, so that each has a time of its own.
const STAMP_UNIT: Duration = Duration::from_micros(cut::TIME_UNIT_MICROS as u64);
const MICROSECOND: Duration = Duration::from_micros(1);
/// The time after data for which answers are told of as often.
const FLOWING: Duration = Duration::from_millis(500);
/// The pause in data after which totals are compared anew.
const REBASED: Duration = Duration::from_secs(1);
/// The part of the bound below which a rate that was found shows the bound to be wrong, after this time.
const MUCH_LESS: f64 = 0.8;
const WRONG_FOR: Duration = Duration::from_secs(10);
/// The span over which the rate of arrival is taken.
const DELIVERY_SPAN: Duration = Duration::from_millis(100);

/// The state of a path whose rate is found.
#[derive(Debug)]
pub(in super::super) struct FoundPath {
    config: RateConfig,
    /// The rate that the link tells, and the most that its medium could carry.
    told: Option<Bitrate>,
    ceiling: Option<Bitrate>,
    controller: RateController,
    /// Whether a session numbers the datagrams, and the peer tells of them; otherwise they are numbered here, and reports
    /// name them by their times.
    is_numbered: bool,
    /// The number of the datagram that leaves next, where they are numbered here.
    next_number: u64,
    /// Whether anything was sent of which the peer tells.
    has_sent: bool,
    /// Octets that left since, of which it does not tell at once.
    untold: ByteCount,
    /// The time at which data left last.
    data_at: Option<Instant>,
    pace: Bitrate,
    paced_until: Instant,
    heard: Option<Heard>,
    /// Octets that arrived damaged beyond repair, of which the peer tells apart.
    damaged: u64,
    /// The time since when the link carries much less than what was said to arrive.
    below_bound_since: Option<Instant>,
    /// The rate of arrival, and where its next span begins: octets and the receiver's clock.
    delivered: Option<Bitrate>,
    span_from: Option<(u64, Duration)>,
}

impl FoundPath {
    pub(super) fn new(config: RateConfig) -> Self {
        Self {
            config,
            told: None,
            ceiling: None,
            controller: RateController::new(config),
            is_numbered: false,
            next_number: 0,
            has_sent: false,
            untold: ByteCount::ZERO,
            data_at: None,
            pace: Bitrate::ZERO,
            paced_until: Instant::START,
            heard: None,
            damaged: 0,
            below_bound_since: None,
            delivered: None,
            span_from: None,
        }
    }

    pub(super) fn set_bound(&mut self, bound: Option<Bitrate>) {
        self.config.bound = bound;
        self.bound_anew();
    }

    fn bound_anew(&mut self) {
        let found = self.controller.belief().rate;
        self.controller.set_bound(self.bound());
        self.paced_until = Instant::START;
        // A bound that moves and stays far beyond what the link carries is as wrong as one that stands still.
        if !self.is_much_less(found) {
            self.below_bound_since = None;
        }
    }

    /// Whether this rate is much less than what was said to arrive.
    fn is_much_less(&self, rate: Bitrate) -> bool {
        self.stated()
            .is_some_and(|stated| rate < stated.scaled(MUCH_LESS))
    }

    /// The most that may be sent, as anybody said.
    fn bound(&self) -> Option<Bitrate> {
        [self.stated(), self.ceiling].into_iter().flatten().min()
    }

    /// The most that may be sent of what was said to arrive.
    fn stated(&self) -> Option<Bitrate> {
        [self.config.bound, self.told].into_iter().flatten().min()
    }

    /// Takes the rate that the link tells: no more is sent from now on, and as much is tried. Its ceiling is a bound alone.
    /// `None`: it tells none any more.
    pub(in super::super) fn take_told(
        &mut self,
        now: Instant,
        told: Option<Bitrate>,
        ceiling: Option<Bitrate>,
    ) {
        if (told, ceiling) == (self.told, self.ceiling) {
            return;
        }
        let is_new = told != self.told;
        (self.told, self.ceiling) = (told, ceiling);
        self.bound_anew();
        // While the word is known to be far beyond the link, another one like it is not tried.
        let is_tried = is_new && self.below_bound_since.is_none();
        if let Some(told) = told.filter(|_| is_tried) {
            self.controller.try_told(now, told);
        }
    }

    /// Takes another bound at once. Another way with others is another search, which begins with what was found.
    pub(in super::super) fn follow(&mut self, bound: Option<Bitrate>, sharing: RateSharing) {
        if bound != self.config.bound {
            self.set_bound(bound);
        }
        if sharing != self.config.sharing {
            self.config.sharing = sharing;
            self.begin_again();
        }
    }

    /// The octets of a full datagram, headers of the layers below included.
    pub(in super::super) const fn packet(&self) -> ByteCount {
        self.config.packet
    }

    /// Whether nothing was heard of datagrams that left as a train: the next ones do.
    pub(in super::super) fn is_first_train(&self) -> bool {
        self.controller.awaits_train()
    }

    /// The rate at which datagrams may leave.
    pub(in super::super) fn pace(&mut self, now: Instant) -> Bitrate {
        if now >= self.paced_until {
            self.pace = self.controller.pacing(now);
            if self.is_first_train() && !self.is_numbered {
                let apart = Bitrate::of(self.config.packet, STAMP_UNIT);
                self.pace = self.pace.min(apart);
            }
            self.paced_until = now + PACE_HOLDS;
        }
        self.pace
    }

    /// Whether more may be under way.
    pub(in super::super) fn has_room(&mut self, now: Instant) -> bool {
        if self.is_full() {
            self.controller.handle_deadline(now);
        }
        !self.is_full()
    }

    fn is_full(&self) -> bool {
        self.controller.in_flight() >= self.controller.in_flight_max()
    }

    /// The time at which what is under way is taken for lost, if nothing may leave before.
    pub(in super::super) fn blocked_until(&self) -> Option<Deadline> {
        self.controller.next_deadline().filter(|_| self.is_full())
    }

    /// Counts a datagram that left, headers of the layers below included, behind which so many octets of data wait.
    /// Control alone begins no search: nobody reports on it.
    pub(in super::super) fn on_sent(
        &mut self,
        now: Instant,
        octets: ByteCount,
        control: bool,
        waiting: ByteCount,
    ) {
        if self.is_numbered || (control && !self.has_sent) {
            return;
        }
        let number = self.next_number;
        self.next_number += 1;
        if control {
            self.controller.on_sent_beside(now, number, octets);
        } else {
            self.count(now, number, octets, waiting);
        }
    }

    /// Counts a datagram that leaves on a numbered path.
    pub(in super::super) fn on_sealed(
        &mut self,
        now: Instant,
        sealed: Sealed,
        octets: ByteCount,
        waiting: ByteCount,
    ) {
        if !self.is_numbered {
            return;
        }
        let number = sealed.number;
        let is_recent = |at: Instant, span| now.saturating_since(at) < span;
        match sealed.content {
            SealedContent::Data => {
                if self.data_at.is_none_or(|at| !is_recent(at, REBASED)) {
                    // What left meanwhile was not under way all the time, and reports before say nothing of data now.
                    self.untold = ByteCount::ZERO;
                }
                self.data_at = Some(now);
            }
            // While data flow the peer tells so often that answers are told of as well.
            SealedContent::Answers if self.data_at.is_some_and(|at| is_recent(at, FLOWING)) => {
                let octets = octets + core::mem::take(&mut self.untold);
                self.controller.on_sent_beside(now, number, octets);
                return;
            }
            SealedContent::Answers | SealedContent::Own => {
                if self.has_sent {
                    self.untold += octets;
                    self.controller.on_number(now, number);
                }
                return;
            }
        }
        let octets = octets + core::mem::take(&mut self.untold);
        self.count(now, number, octets, waiting);
    }

    fn count(&mut self, now: Instant, number: u64, octets: ByteCount, waiting: ByteCount) {
        self.controller.on_sent(now, number, octets, waiting);
        if !core::mem::replace(&mut self.has_sent, true) {
            self.paced_until = now;
        }
    }

    /// Counts octets that arrived damaged beyond repair: the link carried them.
    pub(in super::super) const fn on_damaged(&mut self, octets: ByteCount) {
        self.damaged += octets.0;
    }

    pub(in super::super) const fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    /// Sets whether the peer tells of numbered datagrams. What was found stays, but is judged by new counts.
    pub(in super::super) fn set_numbered(&mut self, is_numbered: bool) {
        if self.is_numbered != is_numbered {
            self.begin_again();
            self.is_numbered = is_numbered;
        }
    }

    fn is_found(&self) -> bool {
        self.controller.belief().cause != RateCause::Searching
    }

    /// The rate found, once something was heard.
    pub(in super::super) fn rate(&self) -> Option<Bitrate> {
        let found = self.heard.filter(|_| self.has_sent);
        found.map(|_| self.controller.belief().rate)
    }

    /// The rate of the link as far as it was seen.
    pub(in super::super) fn seen(&self) -> Option<Bitrate> {
        self.controller.seen()
    }

    /// The most that the path may carry: the rate found, or that of the first train while less was needed.
    pub(in super::super) fn hoped(&self) -> Option<Bitrate> {
        let hoped = self
            .rate()?
            .max(self.controller.belief().link.unwrap_or_default());
        Some(self.bound().map_or(hoped, |bound| hoped.min(bound)))
    }

    /// Takes what the peer tells of a numbered path.
    pub(in super::super) fn on_path_ack(&mut self, now: Instant, ack: &PathAck) {
        if !self.is_numbered {
            return;
        }
        let counts = Counts {
            arrived: ack.octets,
            clock: ack.clock,
            marks: ack.marks,
        };
        if let Some(heard) = self.after(now, counts) {
            self.take(now, heard, ack.newest, ack.hold);
        }
    }

    /// The counts of a report, all in all; `None` if it is older than the last one.
    fn after(&mut self, now: Instant, counts: Counts) -> Option<Heard> {
        match self.heard.map(|heard| heard.next(now, counts)) {
            Some(Ok(next)) => next,
            Some(Err(OtherStart)) => {
                self.begin_again();
                Some(Heard::first(now, counts))
            }
            None => Some(Heard::first(now, counts)),
        }
    }

    /// Takes a report of an acknowledgement, which names a datagram by its time.
    pub(super) fn on_report(&mut self, now: Instant, report: &DeliveryReport) {
        if self.is_numbered {
            return;
        }
        let counts = Counts {
            arrived: report.arrived,
            clock: report.clock,
            marks: 0,
        };
        let Some(heard) = self.after(now, counts) else {
            return;
        };
        let age = now.as_wrapping_micros().wrapping_sub(report.echo);
        let is_ours = u64::from(age) <= now.as_nanos() / 1_000;
        let named = (age < 1 << 31 && is_ours).then(|| {
            let micros = now.as_nanos() / 1_000 - u64::from(age);
            let named = Instant::START + Duration::from_micros(micros);
            let until = named + MICROSECOND;
            self.controller.number_sent_in(named - STAMP_UNIT, until)
        });
        if let Some(newest) = named.flatten() {
            self.take(now, heard, newest, report.hold);
        }
    }

    fn take(&mut self, now: Instant, heard: Heard, newest: u64, hold: Duration) {
        self.heard = Some(heard);
        let arrived = ArrivalReport {
            newest,
            arrived_at: heard.clock_total.saturating_sub(hold),
            hold,
            octets: ByteCount(heard.arrived_total + self.damaged),
            marked: heard.marks_total,
        };
        self.controller.on_report(now, &arrived);
        self.paced_until = now;
        self.meter(heard);
        let belief = self.controller.belief();
        let is_links = matches!(belief.cause, RateCause::Queue | RateCause::Cut);
        if is_links && !belief.beside_others && self.is_much_less(belief.rate) {
            self.below_bound_since.get_or_insert(now);
        } else {
            self.below_bound_since = None;
        }
    }

    /// Whether the link has carried much less than the bound for long, up to the last report, and nobody else took the
    /// rest.
    fn is_bound_wrong(&self) -> bool {
        let span = self.below_bound_since.zip(self.heard);
        span.is_some_and(|(since, heard)| heard.at.saturating_since(since) > WRONG_FOR)
    }

    fn meter(&mut self, heard: Heard) {
        let (octets, clock) = *self
            .span_from
            .get_or_insert((heard.arrived_total, heard.clock_total));
        let span = heard.clock_total.saturating_sub(clock);
        if span >= DELIVERY_SPAN {
            let octets = ByteCount(heard.arrived_total - octets);
            self.delivered = Some(Bitrate::of(octets, span));
            self.span_from = Some((heard.arrived_total, heard.clock_total));
        }
    }

    /// Searches anew, beginning with what was found unless that is doubted: what arrived is counted anew.
    pub(in super::super) fn begin_again(&mut self) {
        let belief = self.controller.belief();
        let is_known = self.has_sent && self.is_found() && !belief.doubted;
        let found = self.heard.filter(|_| is_known);
        self.config.first = found.map_or(self.config.first, |_| Some(belief.rate));
        self.controller = RateController::new(RateConfig {
            bound: self.bound(),
            first: self.told.or(self.config.first),
            ..self.config
        });
        self.next_number = 0;
        self.has_sent = false;
        self.untold = ByteCount::ZERO;
        self.data_at = None;
        self.paced_until = Instant::START;
        self.heard = None;
        self.span_from = None;
        self.below_bound_since = None;
    }

    pub(super) fn path_rate(&self, now: Instant) -> PathRate {
        let belief = self.controller.belief();
        let declared = self.bound().unwrap_or(belief.rate);
        PathRate {
            declared,
            marked: declared,
            link: self.heard.map(|_| belief.rate),
            delivered: self.delivered,
            current: self.controller.pacing(now).min(declared),
            reason: RateReason::Found(belief.cause),
            queues_tried: 0,
            declared_wrong: self.is_bound_wrong(),
            belief: Some(belief),
        }
    }
}

#[cfg(test)]
mod tests;
