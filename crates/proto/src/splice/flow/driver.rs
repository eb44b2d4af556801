//! Calls of the driver on a flow.

use super::super::codes::{RefuseCode, ResetCode};
use super::super::graves::Outcome;
use super::super::records::{HEADER_BYTES, SpliceRecord};
use super::super::shared::Shared;
use super::timers::FlowTimer;
use super::{Flow, Phase};
use crate::transport::aerotp::ConnectionId;
use crate::units::Instant;
use core::net::SocketAddr;

/// Octets of one DATA record, at most. The rest of a record that AeroTP does not take is kept here.
const DATA_RECORD_MAX: usize = 16 << 10;
/// The round trips whose octets may be ahead of the destination.
const ROUND_TRIPS: u32 = 5;
/// Octets taken, if there is credit, although AeroTP has no room: its next event then says when it
/// has.
const TAKEN_WITHOUT_ROOM: usize = 4 << 10;
/// Octets delivered from which on a report of them is made soon; one of fewer waits so many times as long.
const MUCH_UNTOLD_BYTES: u64 = 16 << 10;
const OF_LITTLE: u32 = 4;

impl Flow {
    pub(in super::super) fn capacity(&self, shared: &Shared) -> usize {
        let clear = |link: &&super::Link| link.is_clear() && self.resumes_untold == 0;
        let Some(link) = self.link.as_ref().filter(clear) else {
            return 0;
        };
        let mut allowance = self.stream.out.allowance(self.class.window.0);
        if allowance == 0 {
            allowance = self
                .stream
                .out
                .allowance(self.window_needed(shared, link.id));
        }
        let allowance = usize::try_from(allowance).unwrap_or(usize::MAX);
        let room = shared.endpoint.write_room(link.id).unwrap_or(0);
        allowance.min(room.saturating_sub(HEADER_BYTES).max(TAKEN_WITHOUT_ROOM))
    }

    /// The window that the path's rate and round trip take, within what the class allows: octets that are lost are under
    /// way again for a round trip, some of these twice more, and what is behind them waits for the last.
    fn window_needed(&self, shared: &Shared, connection: ConnectionId) -> u64 {
        let (window, most) = (self.class.window.0, self.class.window_most());
        let rate = shared
            .endpoint
            .rate_hoped(self.peer)
            .filter(|_| most > window);
        let round_trip = shared.endpoint.rtt(connection);
        let needed = rate.zip(round_trip);
        let needed = needed.map(|(rate, round_trip)| rate.bytes_in(ROUND_TRIPS * round_trip).0);
        needed.unwrap_or_default().clamp(window, most)
    }

    /// Notes that the driver fetched the place to continue at.
    pub(in super::super) const fn on_resume_told(&mut self) {
        self.resumes_untold = self.resumes_untold.saturating_sub(1);
    }

    pub(in super::super) fn accepted_offset(&self) -> u64 {
        self.stream.out.accepted()
    }

    pub(in super::super) fn accept(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        octets: &[u8],
    ) -> usize {
        let offered = octets.len().min(self.capacity(shared));
        let mut taken = 0;
        for part in octets[..offered].chunks(DATA_RECORD_MAX) {
            if !self.link.as_ref().is_some_and(super::Link::is_clear) {
                break;
            }
            self.send(now, shared, &SpliceRecord::Data(part));
            taken += part.len();
        }
        if taken > 0 {
            let new = self.stream.out.take(taken as u64);
            let counters = shared.class(self.class.id);
            counters.octets_accepted += new;
            counters.octets_repeated += taken as u64 - new;
            self.note_activity(now, shared);
            self.say_end(now, shared);
        }
        taken
    }

    pub(in super::super) fn finish(&mut self, now: Instant, shared: &mut Shared) {
        self.stream.out.finish();
        self.note_activity(now, shared);
        self.say_end(now, shared);
    }

    /// Cuts the flow off for the driver.
    pub(in super::super) fn reset(&mut self, now: Instant, shared: &mut Shared, code: ResetCode) {
        shared.count_local_reset(self.class.id, code);
        self.end(now, shared, Outcome::Reset(code));
    }

    /// Notes that octets from the far side reach nobody any more.
    pub(in super::super) fn stop(&mut self, now: Instant, shared: &mut Shared) {
        if !core::mem::replace(&mut self.stopped, true) {
            self.say_stop(now, shared);
        }
    }

    pub(in super::super) fn peek(&self) -> Option<&[u8]> {
        self.stream.incoming.peek()
    }

    pub(in super::super) fn consume(&mut self, now: Instant, shared: &mut Shared, len: usize) {
        self.stream.incoming.consume(&mut shared.spare, len);
        self.note_activity(now, shared);
    }

    pub(in super::super) fn delivered(&mut self, now: Instant, shared: &mut Shared, total: u64) {
        let incoming = &mut self.stream.incoming;
        let before = incoming.credit.delivered();
        incoming.on_delivered(&mut shared.pool, total);
        let news = incoming.credit.delivered() - before;
        if news > 0 {
            shared.class(self.class.id).octets_received += news;
            self.note_activity(now, shared);
        }
        let credit = &self.stream.incoming.credit;
        if credit.is_report_due() || (self.stream.incoming.is_delivered() && !credit.is_told()) {
            self.report_if_possible(now, shared);
        } else if !credit.is_told() {
            // A report costs an answer: of little it may be late, where much waits the credit it brings is wanted.
            let is_much = credit.untold() >= MUCH_UNTOLD_BYTES;
            let patience = if is_much { 1 } else { OF_LITTLE };
            let at = now + shared.config.report_after * patience;
            if self.timers.at(FlowTimer::Report).is_none_or(|due| at < due) {
                self.timers.set(FlowTimer::Report, at);
            }
        }
    }

    /// Reports, unless the report would be lost or wrong. Without a connection the report would be
    /// lost, and with it the fact that it is due. Before both sides know the place to continue at, a
    /// report could complete the flow here while the restarted far side still has to hear the end
    /// again. Once they know it, a report follows anyway.
    pub(super) fn report_if_possible(&mut self, now: Instant, shared: &mut Shared) {
        if self.link.is_some() && self.phase == Phase::Open && self.stream.out.is_ready() {
            self.report(now, shared);
        }
    }

    pub(in super::super) fn connected(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        bound: SocketAddr,
    ) {
        if self.phase == Phase::Requested {
            self.phase = Phase::Open;
            self.bound = Some(bound);
            self.timers.stop(FlowTimer::Answer);
            self.note_activity(now, shared);
            self.answer(now, shared);
        }
    }

    pub(in super::super) fn refuse(&mut self, now: Instant, shared: &mut Shared, code: RefuseCode) {
        if self.phase == Phase::Requested {
            shared.count_refusal(self.class.id, code);
            self.end(now, shared, Outcome::Refused(code));
        }
    }
}
