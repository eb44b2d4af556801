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
use std::collections::VecDeque;

/// Octets are counted over this span and the one before it.
const SPAN: Duration = Duration::from_millis(500);
/// Reports are data's if data is at least one in so many of the octets: its rate is found, or told. What an application
/// says now and then beside many answers (a gateway's credit, say) is not. Answers that are limited already are fewer.
const DATA_PART: u64 = 4;
const DATA_PART_LIMITED: u64 = 2;
/// The times of data that are kept, to know what a report is about. Older ones are data's.
const STAMPS_MAX: usize = 64;
/// The unit of the times that reports name, to which they are cut.
const STAMP_UNIT: Duration = Duration::from_micros(cut::TIME_UNIT_MICROS as u64);
/// The time by which a limited answer may keep the way back busy.
const ANSWER_TIME: Duration = Duration::from_millis(60);
/// The least size to which answers are limited, in octets.
const ANSWER_MIN: usize = 160;

/// The octets that pass one way.
#[derive(Clone, Copy, Debug, Default)]
struct Octets {
    all: u64,
    data: u64,
}

impl Octets {
    const fn data(octets: ByteCount) -> Self {
        Self {
            all: octets.0,
            data: octets.0,
        }
    }

    const fn other(octets: ByteCount) -> Self {
        Self {
            all: octets.0,
            data: 0,
        }
    }
}

/// The octets that passed one way of late.
#[derive(Clone, Copy, Debug, Default)]
struct Mixture {
    since: Instant,
    now: Octets,
    before: Octets,
}

impl Mixture {
    fn note(&mut self, now: Instant, octets: Octets) {
        let span = now.saturating_since(self.since);
        if span >= SPAN {
            self.since = now;
            let ended = core::mem::take(&mut self.now);
            self.before = if span < SPAN * 2 {
                ended
            } else {
                Octets::default()
            };
        }
        self.now.all += octets.all;
        self.now.data += octets.data;
    }

    /// Whether data is at least one in `part` of the octets.
    fn has_data(&self, now: Instant, part: u64) -> bool {
        let data = self.now.data + self.before.data;
        let all = self.now.all + self.before.all;
        let is_recent = now.saturating_since(self.since) < SPAN * 2;
        is_recent && data > 0 && data * part >= all
    }
}

/// The times at which something left that names its time, as data and the end of data do: the latest of them.
#[derive(Debug, Default)]
struct Stamps(VecDeque<Instant>);

impl Stamps {
    fn note(&mut self, now: Instant) {
        if self.0.back() == Some(&now) {
            return;
        }
        if self.0.len() == STAMPS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(now);
    }

    /// Whether this is one of them, or of those that are not kept any more.
    fn holds(&self, named: Instant) -> bool {
        let near = |at: &Instant| named <= *at + STAMP_UNIT && *at <= named + STAMP_UNIT;
        let is_older = self.0.front().is_some_and(|oldest| named < *oldest);
        (is_older && self.0.len() == STAMPS_MAX) || self.0.iter().any(near)
    }
}

/// The answers on one path.
#[derive(Debug, Default)]
pub(super) struct PathAnswers {
    rate: AnswerRate,
    watch: AnswerWatch,
    heard: Option<Heard>,
    stamps: Stamps,
    left: Mixture,
    came: Mixture,
}

impl PathAnswers {
    /// Counts a datagram that left; one that is numbered afterwards counts twice, whatever it holds.
    pub(super) fn on_sent(&mut self, now: Instant, octets: ByteCount, is_answer: bool) {
        if is_answer {
            self.left.note(now, Octets::other(octets));
            self.rate.on_sent(now, octets);
        } else {
            self.left.note(now, Octets::data(octets));
            self.stamps.note(now);
        }
    }

    /// Notes that control with a time of its own left.
    pub(super) fn on_stamped(&mut self, now: Instant) {
        self.stamps.note(now);
    }

    /// Counts a datagram that left with a number.
    pub(super) fn on_sealed(&mut self, now: Instant, sealed: Sealed, octets: ByteCount) {
        self.rate.on_numbered(now, sealed.number);
        let octets = match sealed.content {
            SealedContent::Data => Octets::data(octets),
            SealedContent::Answers | SealedContent::Own => Octets::other(octets),
        };
        self.left.note(now, octets);
    }

    /// Counts octets that the layer below sent of its own.
    pub(super) fn on_sent_below(&mut self, now: Instant, octets: ByteCount) {
        self.rate.on_sent(now, octets);
        self.left.note(now, Octets::other(octets));
    }

    /// Counts a datagram that arrived.
    pub(super) fn on_arrived(&mut self, now: Instant, octets: ByteCount) {
        self.came.note(now, Octets::other(octets));
    }

    /// Notes that so many of the octets that arrived are data.
    pub(super) fn on_data(&mut self, now: Instant, octets: ByteCount) {
        let Octets { data, .. } = Octets::data(octets);
        self.came.note(now, Octets { all: 0, data });
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

    /// Takes the report of an acknowledgement, if it is about answers: it names a time at which nothing left that names one.
    pub(super) fn takes_report(&mut self, now: Instant, report: &DeliveryReport) -> bool {
        let age = now.as_wrapping_micros().wrapping_sub(report.echo);
        if age >= 1 << 31 {
            return false;
        }
        let micros = (now.as_nanos() / 1_000).checked_sub(u64::from(age));
        let named = micros.map(|micros| Instant::START + Duration::from_micros(micros));
        let Some(sent_at) = named.filter(|at| !self.stamps.holds(*at)) else {
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

    /// Whether what is told of the way out is about data.
    fn is_data_s(&self, now: Instant) -> bool {
        let part = if self.rate.is_limited() {
            DATA_PART_LIMITED
        } else {
            DATA_PART
        };
        self.left.has_data(now, part)
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
        if let Some(sent_at) = sent_at.filter(|_| !self.is_data_s(now)) {
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
        self.watch.on_clock(now, clock) && !self.came.has_data(now, DATA_PART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    #[test]
    fn a_word_now_and_then_beside_answers_leaves_the_way_to_these_and_data_takes_it() {
        let mut mixture = Mixture::default();
        let note = |mixture: &mut Mixture, millis, octets, is_data| {
            let octets = ByteCount(octets);
            let octets = if is_data {
                Octets::data(octets)
            } else {
                Octets::other(octets)
            };
            mixture.note(at(millis), octets);
            mixture.has_data(at(millis), DATA_PART)
        };
        assert!(note(&mut mixture, 0, 100, true), "nothing else passes");
        for n in 1..100 {
            let answers = note(&mut mixture, 10 * n, 80, false);
            let word = n % 25 == 0 && note(&mut mixture, 10 * n, 100, true);
            // Until then the first word was most of what passed.
            assert!(n < 5 || !answers && !word, "{n}");
        }
        let data = (0..4).filter(|n| note(&mut mixture, 990 + n, 1_500, true));
        assert_eq!(data.count(), 3, "from the second datagram on");
        assert!(!mixture.has_data(at(2_500), DATA_PART), "long ago");
    }

    #[test]
    fn a_report_is_about_data_if_it_names_its_time_or_one_before_all_that_are_kept() {
        let mut stamps = Stamps::default();
        assert!(!stamps.holds(at(0)));
        for n in 0..10 {
            stamps.note(at(1_000 + 10 * n));
        }
        for named in [at(1_030), at(1_030) + STAMP_UNIT] {
            assert!(stamps.holds(named));
        }
        for named in [at(500), at(1_035), at(1_100)] {
            assert!(!stamps.holds(named));
        }
        for n in 10..100 {
            stamps.note(at(1_000 + 10 * n));
        }
        assert!(stamps.holds(at(500)) && !stamps.holds(at(1_985)));
    }
}
