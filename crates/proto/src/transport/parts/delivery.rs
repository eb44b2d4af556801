//! The delivery of octets: the share that arrives, their rate, and their time in queues on the way.
//!
//! The receiver reports how many octets have arrived on the path and its clock; with the echoed
//! timestamp that gives the one-way delay up to a constant (the two clocks need not agree, as in
//! RFC 6817, section 2), and from two reports the rate of arrival. Lost or late reports change
//! nothing, for every report holds totals.

use crate::units::{Bitrate, ByteCount, Duration, Instant};
use std::collections::VecDeque;

/// A receiver's report on a path, as it came with an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryReport {
    /// Our timestamp that is echoed: microseconds, modulo 2^32.
    pub echo: u32,
    /// The time from that TPDU's arrival to the report.
    pub hold: Duration,
    /// Octets that have arrived on the path, modulo 2^32.
    pub arrived: u32,
    /// The receiver's clock: microseconds, modulo 2^32.
    pub clock: u32,
}

/// One report's delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelaySample {
    /// The time at which the TPDU was sent.
    pub sent_at: Instant,
    /// Its delay beyond the path's least.
    pub queueing: Duration,
}

/// The summary of a span of reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeliveryWindow {
    /// The rate at which octets were sent, by our clock.
    pub sent: Bitrate,
    /// The rate at which they arrived, by the receiver's clock.
    pub delivered: Bitrate,
    /// The octets that arrived for each one sent; above 1 when a queue drains.
    pub share: f64,
    /// Octets sent.
    pub octets: ByteCount,
    /// The least and the longest delay beyond the path's least.
    pub queueing: (Duration, Duration),
    /// The number of reports in it.
    pub samples: u32,
}

/// Entries of the log of octets sent: two seconds and more.
const LOG_MAX: usize = 1024;
/// The time between entries of the log.
const LOG_STEP: Duration = Duration::from_millis(2);
/// The span of the least delay, which is that of the last one to two spans: routes change, and
/// clocks drift apart by milliseconds in this time.
const BASE_SPAN: Duration = Duration::from_secs(15);
/// The longest time between two reports that belong together.
const GAP_MAX: Duration = Duration::from_secs(1);
/// The divisor that gives the share of a new difference in the mean.
const VARIATION_GAIN: u32 = 16;

/// The number of reports that a window needs before its least delay is trusted.
pub(super) const SAMPLES_MIN: u32 = 5;
/// The number of spans that a window waits for them.
const FEW_SAMPLES_SPANS: u32 = 5;

#[derive(Clone, Copy, Debug)]
struct Total {
    sent: u64,
    sent_by: Instant,
    arrived: u32,
    clock: u32,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    start: Total,
    least: Duration,
    longest: Duration,
    samples: u32,
}

/// A meter that turns reports into delays and windows.
#[derive(Clone, Debug, Default)]
pub struct DeliveryMeter {
    sent: u64,
    log: VecDeque<(Instant, u64)>,
    /// The first delay seen, by the two clocks; others are counted relative to it.
    origin: Option<u32>,
    /// The least delay of this span and of the one before, in microseconds from the origin.
    base: Option<(i64, i64)>,
    base_since: Instant,
    last_delay: Option<i64>,
    variation_micros: u64,
    /// The receiver's clock in the last report, and the report's arrival.
    last_report: Option<(u32, Instant)>,
    open: Option<Open>,
}

/// The time by which `a` lies after `b` on the wrapping circle; `None` if before.
fn micros_after(a: u32, b: u32) -> Option<Duration> {
    let after = a.wrapping_sub(b);
    (after < 1 << 31).then(|| Duration::from_micros(u64::from(after)))
}

impl DeliveryMeter {
    /// Counts octets that were sent, headers of the layers below included.
    pub fn on_sent(&mut self, now: Instant, octets: ByteCount) {
        self.sent += octets.0;
        let before_last = self.log.len().checked_sub(2).and_then(|i| self.log.get(i));
        if before_last.is_some_and(|(at, _)| now.saturating_since(*at) < LOG_STEP) {
            self.log.pop_back();
        }
        if self.log.len() == LOG_MAX {
            self.log.pop_front();
        }
        self.log.push_back((now, self.sent));
    }

    fn sent_by(&self, at: Instant) -> Option<u64> {
        let later = self.log.partition_point(|(sent_at, _)| *sent_at <= at);
        self.log.get(later.checked_sub(1)?).map(|(_, sent)| *sent)
    }

    /// The mean difference between the delays of consecutive reports: the part that jitter alone
    /// explains.
    pub fn variation(&self) -> Duration {
        Duration::from_micros(self.variation_micros)
    }

    /// Takes a report. `None` if it is older than the last one, or makes no sense.
    pub fn on_report(&mut self, now: Instant, report: &DeliveryReport) -> Option<DelaySample> {
        let age = micros_after(now.as_wrapping_micros(), report.echo)?;
        let recent = |(_, at): &(u32, Instant)| now.saturating_since(*at) <= GAP_MAX;
        let last = self.last_report.filter(recent);
        if let Some((clock, _)) = last {
            micros_after(report.clock, clock).filter(|gap| !gap.is_zero())?;
        }
        self.last_report = Some((report.clock, now));
        let hold = u32::try_from(report.hold.as_micros()).ok()?;
        let raw = report.clock.wrapping_sub(hold).wrapping_sub(report.echo);
        let origin = *self.origin.get_or_insert(raw);
        let delay = i64::from(raw.wrapping_sub(origin).cast_signed());
        let base = self.least_delay(now, delay);
        let queueing = Duration::from_micros(u64::try_from(delay - base).unwrap_or(0));
        let sent_at = now - age;
        if last.is_none() {
            self.open = None;
            self.last_delay = None;
        }
        if let Some(last) = self.last_delay.replace(delay) {
            let gain = u64::from(VARIATION_GAIN);
            let kept = self.variation_micros - self.variation_micros / gain;
            self.variation_micros = kept + last.abs_diff(delay) / gain;
        }
        let sent_by = sent_at + report.hold;
        if let Some(open) = &mut self.open {
            open.least = open.least.min(queueing);
            open.longest = open.longest.max(queueing);
            open.samples += 1;
        } else if let Some(sent) = self.sent_by(sent_by) {
            let start = Total {
                sent,
                sent_by,
                arrived: report.arrived,
                clock: report.clock,
            };
            self.open = Some(Open {
                start,
                least: Duration::MAX,
                longest: Duration::ZERO,
                samples: 0,
            });
        }
        Some(DelaySample { sent_at, queueing })
    }

    fn least_delay(&mut self, now: Instant, delay: i64) -> i64 {
        let (current, before) = self.base.unwrap_or((delay, delay));
        let turn = now.saturating_since(self.base_since) > BASE_SPAN;
        let pair = if turn {
            self.base_since = now;
            (delay, current)
        } else {
            (current.min(delay), before)
        };
        self.base = Some(pair);
        pair.0.min(pair.1)
    }

    /// Forgets the least delay: reports from now on show it.
    pub const fn forget_base(&mut self) {
        self.base = None;
        self.open = None;
    }

    /// Forgets the window that is open: later reports belong to another time.
    pub const fn forget_window(&mut self) {
        self.open = None;
    }

    /// The window up to `report`, the last one taken, once it has lasted `span` and has enough
    /// reports, or has lasted much longer.
    pub fn take_window(
        &mut self,
        now: Instant,
        report: &DeliveryReport,
        span: Duration,
    ) -> Option<DeliveryWindow> {
        let open = self.open?;
        let lasted = micros_after(report.clock, open.start.clock)?;
        let few = open.samples < SAMPLES_MIN && lasted < span * FEW_SAMPLES_SPANS;
        if lasted < span || few || open.samples == 0 {
            return None;
        }
        self.open = None;
        let age = micros_after(now.as_wrapping_micros(), report.echo)?;
        let sent_by = now - age + report.hold;
        let octets = self.sent_by(sent_by)?.checked_sub(open.start.sent)?;
        let arrived = u64::from(report.arrived.wrapping_sub(open.start.arrived));
        let spent = sent_by.saturating_since(open.start.sent_by);
        if spent.is_zero() || octets == 0 {
            return None;
        }
        // The next window begins where this one ends.
        self.open = Some(Open {
            start: Total {
                sent: open.start.sent + octets,
                sent_by,
                arrived: report.arrived,
                clock: report.clock,
            },
            least: Duration::MAX,
            longest: Duration::ZERO,
            samples: 0,
        });
        Some(DeliveryWindow {
            sent: Bitrate::of(ByteCount(octets), spent),
            delivered: Bitrate::of(ByteCount(arrived), lasted),
            share: arrived as f64 / octets as f64,
            octets: ByteCount(octets),
            queueing: (open.least, open.longest),
            samples: open.samples,
        })
    }
}
