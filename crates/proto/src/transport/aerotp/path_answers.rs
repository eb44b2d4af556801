//! The answers on a path, both ways: ours leave as the way back carries them, and the remote is told when a queue of
//! its own stands.
//!
//! # How an end learns of the queue of its answers
//! - Where a session numbers datagrams, the remote tells of them: the delay is known.
//! - Otherwise the end that gets the answers watches the clock in their reports. While a queue stands it sends a
//!   cumulative MACK that echoes that clock and has a report of its own (`docs/protocol/aerotp.md`, section 5). Such a MACK
//!   names no datagram of ours that held data, so it is known.

use super::path_control::{Counts, Heard};
use crate::machine::{PathAck, Sealed, SealedContent};
use crate::rate::{AnswerRate, AnswerWatch, AnswersReport};
use crate::transport::parts::DeliveryReport;
use crate::units::{Bitrate, ByteCount, Duration, Instant};
use crate::wire::cut;

/// The time after data for which answers are no matter of their own: the rate of data is found, or told.
const FLOWING: Duration = Duration::from_millis(500);
/// The time by which a limited answer may keep the way back busy.
const ANSWER_TIME: Duration = Duration::from_millis(60);
/// The least size to which answers are limited, in octets.
const ANSWER_MIN: usize = 160;

/// The answers on one path.
#[derive(Debug, Default)]
pub(super) struct PathAnswers {
    rate: AnswerRate,
    watch: AnswerWatch,
    heard: Option<Heard>,
    /// The time at which something left last that names its time, as data and the end of data do.
    stamped_at: Option<Instant>,
    /// The time at which data left last, and came last.
    data_left: Option<Instant>,
    data_came: Option<Instant>,
}

fn is_recent(now: Instant, at: Option<Instant>) -> bool {
    at.is_some_and(|at| now.saturating_since(at) < FLOWING)
}

impl PathAnswers {
    /// Counts a datagram that left without a number.
    pub(super) fn on_sent(&mut self, now: Instant, octets: ByteCount, is_answer: bool) {
        if is_answer {
            self.rate.on_sent(now, octets);
        } else {
            self.data_left = Some(now);
        }
    }

    /// Notes that control with a time of its own left.
    pub(super) const fn on_stamped(&mut self, now: Instant) {
        self.stamped_at = Some(now);
    }

    /// Counts a datagram that left with a number.
    pub(super) fn on_sealed(&mut self, now: Instant, sealed: Sealed) {
        self.rate.on_numbered(now, sealed.number);
        if sealed.content == SealedContent::Data {
            self.data_left = Some(now);
        }
    }

    /// Counts octets that the layer below sent of its own.
    pub(super) fn on_sent_below(&mut self, now: Instant, octets: ByteCount) {
        self.rate.on_sent(now, octets);
    }

    pub(super) const fn on_data(&mut self, now: Instant) {
        self.data_came = Some(now);
    }

    pub(super) fn allows(&self, now: Instant) -> bool {
        self.rate.allows(now)
    }

    pub(super) const fn next_at(&self) -> Instant {
        self.rate.next_at()
    }

    /// The rate that the way back was seen to carry, while answers are limited.
    pub(super) fn carried(&self) -> Option<Bitrate> {
        self.rate.carried()
    }

    /// The octets that an answer may have, while answers are limited.
    pub(super) fn bytes_max(&self) -> Option<usize> {
        let octets = self.carried()?.bytes_in(ANSWER_TIME);
        Some(octets.as_usize().max(ANSWER_MIN))
    }

    /// Takes what the remote tells of numbered datagrams. Returns the round trip that it shows.
    pub(super) fn on_path_ack(&mut self, now: Instant, ack: &PathAck) -> Option<Duration> {
        let counts = Counts {
            arrived: ack.octets,
            clock: ack.clock,
            marks: ack.marks,
        };
        let sent_at = self.rate.sent_at(ack.newest);
        self.take(now, (counts, ack.hold), sent_at, false);
        now.saturating_since(sent_at?).checked_sub(ack.hold)
    }

    /// Takes the report of an acknowledgement, if it is about answers: it names a time after that of all else that names one.
    pub(super) fn takes_report(&mut self, now: Instant, report: &DeliveryReport) -> bool {
        let age = now.as_wrapping_micros().wrapping_sub(report.echo);
        let micros = (now.as_nanos() / 1_000).checked_sub(u64::from(age));
        let named = micros.map(|micros| Instant::START + Duration::from_micros(micros));
        let until = |at: Instant| at + Duration::from_micros(u64::from(cut::TIME_UNIT_MICROS));
        let stamped = self.data_left.max(self.stamped_at);
        let Some(sent_at) = named.filter(|at| stamped.is_none_or(|stamped| *at > until(stamped)))
        else {
            return false;
        };
        let counts = Counts {
            arrived: report.arrived,
            clock: report.clock,
            marks: 0,
        };
        self.take(now, (counts, report.hold), Some(sent_at), true);
        true
    }

    fn take(
        &mut self,
        now: Instant,
        (counts, hold): (Counts, Duration),
        sent_at: Option<Instant>,
        is_of_queue: bool,
    ) {
        let heard = match self.heard.map(|heard| heard.next(now, counts)) {
            Some(Ok(None)) => return,
            Some(Ok(Some(next))) => next,
            Some(Err(_)) | None => Heard::first(now, counts),
        };
        self.heard = Some(heard);
        if let Some(sent_at) = sent_at.filter(|_| !is_recent(now, self.data_left)) {
            let report = AnswersReport {
                sent_at,
                arrived_at: heard.clock_total.saturating_sub(hold),
                octets: heard.arrived_total,
                is_of_queue,
            };
            self.rate.on_report(now, report);
        }
    }

    /// Takes the clock of the remote's answer. Returns whether the remote should be told that a queue of its answers
    /// stands.
    pub(super) fn sees_queue(&mut self, now: Instant, clock: u32) -> bool {
        self.watch.on_clock(now, clock) && !is_recent(now, self.data_came)
    }
}
