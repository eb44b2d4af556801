//! The rate at which answers leave: what the way back carries of them, once a queue of them is seen there.
//!
//! Acknowledgements and reports need little, and mostly the way back carries far more. Where it does not, a queue of
//! answers grows, each comes late, and at last they are dropped. They are totals, so fewer of them say as much: they
//! thin out to what arrives while the queue stands (TACK, SIGCOMM 2020, and RFC 3449 have the same aim). Without a queue
//! nothing is limited.
//!
//! # Promises
//! - Half of what was carried is sent until the queue is gone, then nearly all of it, and more each second, faster the
//!   longer no queue shows.
//! - A queue that stays as it is although less is sent is others', and limits nothing for a while.

use super::delay_gauge::DelayGauge;
use crate::units::{Bitrate, ByteCount, Duration, Instant};
use std::collections::VecDeque;

/// The least delay that is a queue of answers, which is more than so many of them as well.
const QUEUE_MIN: f64 = 0.03;
const QUEUE_ANSWERS: f64 = 3.0;
/// The least span over which the rate of arrival is taken, and the answers in it.
const SPAN: f64 = 0.1;
const SPAN_ANSWERS: f64 = 6.0;
/// The greatest span between two reports that belong together, in seconds.
const SPAN_MAX: f64 = 2.0;
/// The part of what is carried that is sent while a queue drains, and at first without one.
const DRAINING: f64 = 0.5;
const HEADROOM: f64 = 0.95;
/// The growth of the limit in the first second without a queue; each second more has as much more.
const GROWTH: f64 = 0.05;
/// The multiple of what was carried with which the limit ends.
const UNLIMITED: f64 = 4.0;
/// The part of what was carried that arrives, while less is sent, of a queue that is others' or just gone, and the spans
/// in a row after which it is others'.
const OTHERS: f64 = 0.75;
const OTHERS_SPANS: u32 = 5;
/// The time for which others' queue limits nothing.
const OTHERS_FOR: Duration = Duration::from_secs(5);
/// The time without word of a queue after which it is gone, where only queues are told of.
const UNTOLD: Duration = Duration::from_millis(300);
/// The time without any report after which nothing is known of the queue any more.
const UNREPORTED: Duration = Duration::from_secs(2);
/// The least rate, in octets a second.
const RATE_MIN: f64 = 250.0;
/// The least time between two entries of the record of what left, and their number.
const RECORD_STEP: Duration = Duration::from_millis(5);
const RECORD_MAX: usize = 512;

/// A report's news of answers.
#[derive(Clone, Copy, Debug)]
pub struct AnswersReport {
    /// The time at which the newest answer that arrived was sent.
    pub sent_at: Instant,
    /// The other end's clock when it arrived.
    pub arrived_at: Duration,
    /// Octets that had arrived then.
    pub octets: u64,
    /// Whether the other end tells of queues only, and sees one.
    pub is_of_queue: bool,
}

/// The limit while there is one, in octets a second.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// The rate that the way back carries.
    carried: f64,
    /// The rate that may be sent.
    rate: f64,
    /// The time since when a queue drains.
    draining: Option<Instant>,
    /// Spans in a row in which it did not although less was sent.
    unmoved: u32,
    /// The time since when there is no queue.
    clear_since: Instant,
    grown_at: Instant,
}

/// The rate of answers on one path.
#[derive(Clone, Debug, Default)]
pub struct AnswerRate {
    /// The numbers of datagrams, and when they left.
    record: VecDeque<(u64, Instant)>,
    delays: DelayGauge,
    /// The mean size of an answer, in octets.
    mean: f64,
    /// The report with which the span begins, and the least delay in it.
    from: Option<(AnswersReport, f64)>,
    newest: Option<AnswersReport>,
    told_at: Option<Instant>,
    reported_at: Option<Instant>,
    limit: Option<Limit>,
    unlimited_until: Option<Instant>,
    even_at: Instant,
}

impl AnswerRate {
    /// Notes the number of a datagram that leaves, of any kind.
    pub fn on_numbered(&mut self, now: Instant, number: u64) {
        let last = self.record.back();
        if last.is_some_and(|(_, at)| now.saturating_since(*at) < RECORD_STEP) {
            return;
        }
        if self.record.len() == RECORD_MAX {
            self.record.pop_front();
        }
        self.record.push_back((number, now));
    }

    /// The time at which datagram `number` left, as far as the record tells.
    pub fn sent_at(&self, number: u64) -> Option<Instant> {
        let after = self.record.partition_point(|(at, _)| *at <= number);
        let (before, from) = *self.record.get(after.checked_sub(1)?)?;
        let Some((next, until)) = self.record.get(after).copied() else {
            return Some(from);
        };
        let part = (number - before) as f64 / (next - before) as f64;
        let later = until.saturating_since(from).mul_f64(part);
        // What has no entry left right behind one, however long nothing did then.
        Some(from + later.min(RECORD_STEP))
    }

    /// Counts an answer of so many octets, headers included.
    pub fn on_sent(&mut self, now: Instant, octets: ByteCount) {
        let octets = octets.0 as f64;
        self.mean += (octets - self.mean) / if self.mean > 0.0 { 16.0 } else { 1.0 };
        if let Some(rate) = self.rate_at(now) {
            let takes = Duration::from_secs_f64(octets / rate);
            self.even_at = self.even_at.max(now) + takes;
        }
    }

    /// Whether answers are limited.
    pub const fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Whether an answer may leave.
    pub fn allows(&self, now: Instant) -> bool {
        self.even_at <= now || self.limit.is_none()
    }

    /// The time at which the next answer may leave.
    pub const fn next_at(&self) -> Instant {
        if self.limit.is_none() {
            Instant::START
        } else {
            self.even_at
        }
    }

    /// The rate that the way back was seen to carry, while answers are limited.
    pub fn carried(&self) -> Option<Bitrate> {
        let limit = self.limit?;
        Some(super::controller::bitrate(limit.rate.min(limit.carried)))
    }

    fn rate_at(&mut self, now: Instant) -> Option<f64> {
        let limit = self.limit.as_mut()?;
        let silent =
            |at: Option<Instant>, span| at.is_some_and(|at| now.saturating_since(at) > span);
        let is_over = silent(self.told_at, UNTOLD) || silent(self.reported_at, UNREPORTED);
        if limit.draining.is_some() && is_over {
            limit.end_draining(now);
        }
        if limit.draining.is_none() {
            let grown = now.saturating_since(limit.grown_at).as_secs_f64();
            let clear = now.saturating_since(limit.clear_since).as_secs_f64();
            limit.rate += limit.rate * GROWTH * (1.0 + clear) * grown.min(1.0);
            limit.grown_at = now;
            if limit.rate > UNLIMITED * limit.carried {
                self.limit = None;
                return None;
            }
        }
        Some(limit.rate)
    }

    /// Takes a report.
    pub fn on_report(&mut self, now: Instant, report: AnswersReport) {
        let arrived_at = report.arrived_at.as_secs_f64();
        if self
            .newest
            .is_some_and(|newest| newest.arrived_at >= report.arrived_at)
        {
            return;
        }
        self.newest = Some(report);
        self.reported_at = Some(now);
        let queueing = if report.is_of_queue {
            self.told_at = Some(now);
            f64::MAX
        } else {
            self.told_at = None;
            self.delays
                .on_delay(now, arrived_at - report.sent_at.as_secs_f64())
        };
        let Some((from, least)) = &mut self.from else {
            self.from = Some((report, queueing));
            return;
        };
        *least = least.min(queueing);
        let least = *least;
        let span = arrived_at - from.arrived_at.as_secs_f64();
        let octets = report.octets.saturating_sub(from.octets) as f64;
        if span > SPAN_MAX {
            self.from = Some((report, queueing));
        } else if span >= SPAN && octets >= SPAN_ANSWERS * self.mean {
            let from_sent = from.sent_at;
            self.from = Some((report, queueing));
            self.judge(now, (least, from_sent), octets / span);
        }
    }

    /// Takes a span that began with an answer sent at `sent_from`, in which the least delay was `least` and so many
    /// octets a second arrived.
    fn judge(&mut self, now: Instant, (least, sent_from): (f64, Instant), arrived: f64) {
        let arrived = arrived.max(RATE_MIN);
        let carried = self.limit.map_or(arrived, |limit| limit.carried);
        let stands = least > QUEUE_MIN.max(QUEUE_ANSWERS * self.mean / carried);
        self.rate_at(now);
        if !stands {
            if let Some(limit) = &mut self.limit {
                limit.end_draining(now);
            }
            return;
        }
        if self.unlimited_until.is_some_and(|until| now < until) {
            return;
        }
        let Some(limit) = &mut self.limit else {
            self.even_at = now;
            self.limit = Some(Limit {
                carried: arrived,
                rate: (DRAINING * arrived).max(RATE_MIN),
                draining: Some(now),
                unmoved: 0,
                clear_since: now,
                grown_at: now,
            });
            return;
        };
        let since = *limit.draining.get_or_insert(now);
        if since <= sent_from && arrived < OTHERS * limit.carried {
            limit.unmoved += 1;
            if limit.unmoved >= OTHERS_SPANS {
                self.limit = None;
                self.unlimited_until = Some(now + OTHERS_FOR);
            }
            return;
        }
        limit.unmoved = 0;
        limit.carried = f64::midpoint(limit.carried, arrived);
        limit.rate = (DRAINING * limit.carried).max(RATE_MIN);
    }
}

impl Limit {
    fn end_draining(&mut self, now: Instant) {
        self.unmoved = 0;
        if self.draining.take().is_some() {
            self.rate = (HEADROOM * self.carried).max(RATE_MIN);
            self.clear_since = now;
            self.grown_at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_right_behind_another_before_a_pause_left_then() {
        let mut answers = AnswerRate::default();
        let at = |millis| Instant::START + Duration::from_millis(millis);
        for (number, millis) in [(7, 100), (8, 101), (9, 700)] {
            answers.on_numbered(at(millis), number);
        }
        let sent = answers.sent_at(8).expect("it is known");
        assert!((at(100)..=at(105)).contains(&sent), "{sent}");
    }

    const ANSWER: ByteCount = ByteCount(100);
    const WAY: Duration = Duration::from_millis(10);

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    /// The answers that arrive, and the mean wait of the later half, when 300 a second are due for 20 s on a way back that
    /// carries so many octets a second and has room for a hundred; `numbered` says who sees the queue.
    fn arrived(carries: f64, numbered: bool) -> (usize, f64) {
        let mut answers = AnswerRate::default();
        let mut leaves = Vec::new();
        let mut free = at(0);
        let (mut waits, mut reported) = (0.0, 0);
        for step in 0..6_000_u64 {
            let now = at(step * 10 / 3);
            let waiting = free.saturating_since(now);
            let room = waiting.as_secs_f64() * carries < 100.0 * 100.0;
            if answers.allows(now) {
                answers.on_numbered(now, leaves.len() as u64);
                answers.on_sent(now, ANSWER);
                if room {
                    free = free.max(now) + Duration::from_secs_f64(100.0 / carries);
                    leaves.push((now, free + WAY));
                    if step > 3_000 {
                        waits += waiting.as_secs_f64();
                    }
                }
            }
            if step % 30 == 0 {
                let here = leaves.iter().filter(|(_, at)| *at + WAY <= now).count();
                let Some((sent_at, arrived)) = here.checked_sub(1).map(|last| leaves[last]) else {
                    continue;
                };
                let queue = Duration::from_secs_f64(0.03 + 300.0 / carries);
                let stands = arrived.saturating_since(sent_at) > WAY + queue;
                if here > reported && (numbered || stands) {
                    let sent_at = if numbered {
                        answers.sent_at(here as u64 - 1).unwrap_or(sent_at)
                    } else {
                        sent_at
                    };
                    reported = here;
                    let report = AnswersReport {
                        sent_at,
                        arrived_at: arrived.saturating_since(Instant::START),
                        octets: 100 * here as u64,
                        is_of_queue: !numbered,
                    };
                    answers.on_report(now, report);
                }
            }
        }
        (leaves.len(), waits * 2.0 / leaves.len() as f64)
    }

    #[test]
    fn answers_thin_out_to_what_arrives_of_them() {
        for carries in [2_000.0, 8_000.0, 20_000.0] {
            for numbered in [false, true] {
                let (count, wait) = arrived(carries, numbered);
                let used = count as f64 * 100.0 / (20.0 * carries);
                println!("{carries} {numbered}: {used:.2} used, {wait:.3} s of queue");
                assert!(used > 0.8, "{carries} {numbered}: {used}");
                // A hundred in the queue would wait 5, 1.25 and 0.5 s.
                assert!(wait < 0.1 + 400.0 / carries, "{carries} {numbered}: {wait}");
            }
        }
    }

    #[test]
    fn where_the_way_back_is_wide_nothing_is_limited() {
        for numbered in [false, true] {
            let (count, _) = arrived(1e6, numbered);
            assert_eq!(count, 6_000, "{numbered}");
        }
    }

    #[test]
    fn a_queue_that_stays_when_less_is_sent_is_others() {
        let mut answers = AnswerRate::default();
        let mut sent = 0;
        for step in 0..3_000_u64 {
            let now = at(10 * step);
            if answers.allows(now) {
                answers.on_sent(now, ANSWER);
                sent += 1;
            }
            if step % 10 == 0 {
                answers.on_report(
                    now,
                    AnswersReport {
                        sent_at: now - WAY,
                        arrived_at: now.saturating_since(Instant::START),
                        octets: 100 * sent,
                        is_of_queue: true,
                    },
                );
            }
        }
        assert!(sent > 2_400, "{sent} of 3000");
    }

    #[test]
    fn numbers_between_those_of_the_record_left_between_them() {
        let mut answers = AnswerRate::default();
        for number in 0..2_000_u64 {
            answers.on_numbered(at(number), number);
        }
        assert!(answers.record.len() <= RECORD_MAX);
        let seen = answers.sent_at(1_987).expect("recorded");
        assert!(seen <= at(1_990) && at(1_985) <= seen, "{seen}");
        assert_eq!(AnswerRate::default().sent_at(0), None);
    }

    #[test]
    fn a_queue_that_nobody_tells_of_any_more_drains_no_longer() {
        let mut answers = AnswerRate::default();
        let report = |answers: &mut AnswerRate, n: u64, queue: u64| {
            answers.on_sent(at(100 * n), ANSWER);
            let report = AnswersReport {
                sent_at: at(100 * n),
                arrived_at: Duration::from_millis(100 * n + queue),
                octets: 1_000 * n,
                is_of_queue: false,
            };
            answers.on_report(at(100 * n + queue), report);
        };
        for n in 0..6 {
            report(&mut answers, n, if n < 2 { 10 } else { 200 });
        }
        let limit = |answers: &AnswerRate| answers.limit.map(|limit| limit.draining.is_some());
        assert_eq!(limit(&answers), Some(true));
        answers.on_sent(at(2_000), ANSWER);
        assert_eq!(limit(&answers), Some(true), "it may still stand");
        answers.on_sent(at(3_000), ANSWER);
        assert_eq!(limit(&answers), Some(false));
    }
}
