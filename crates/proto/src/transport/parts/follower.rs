//! A rate that follows a link which is slower than declared.
//!
//! Loss alone says nothing, since on these links it is the medium's. A link that is sent more than
//! it carries shows a queue that stays, and the queue disappears when less is sent; only both
//! together lower the rate. The rate is then the one at which octets arrived while the queue stood,
//! corrected for the loss seen without a queue. Better still is the rate that the draining queue
//! shows: the queue shrinks by the share of the link's rate that was not sent (`C = s / (1 + d
//! delay / d t)`), whatever is lost.
//!
//! A delay that does not disappear is no queue: the path has become longer, and the rate stays.

use super::DeliveryMeter;
use super::delivery::{DelaySample, DeliveryReport, DeliveryWindow, SAMPLES_MIN};
use crate::units::{Bitrate, ByteCount, Duration, Instant};

/// The least delay that counts as a queue; it must also exceed [`QUEUE_PACKETS`] and the delay that
/// jitter explains.
const QUEUE_MIN: Duration = Duration::from_millis(2);
const QUEUE_PACKETS: u32 = 5;
const PACKET: ByteCount = ByteCount(1500);
const QUEUE_VARIATIONS: u32 = 2;
/// The least length of a window, which lasts a round trip within these two bounds.
const WINDOW_MIN: Duration = Duration::from_millis(100);
const WINDOW_MAX: Duration = Duration::from_millis(600);
/// The share of the link's rate at which a queue is drained: in twice its own time.
const DRAIN_SHARE: f64 = 0.5;
/// The share of the estimate that is used, so that the queue stays empty.
const HEADROOM: f64 = 0.98;
/// Octets without a queue after which their loss is known well enough.
const LOSS_KNOWN: f64 = 50.0 * 1500.0;
/// Octets over which the loss seen is averaged.
const LOSS_MEMORY: f64 = 1000.0 * 1500.0;
/// The time for which a link's rate is kept after it was found. It doubles if the same rate is
/// found again, up to the maximum.
const HOLD_MIN: Duration = Duration::from_secs(2);
const HOLD_MAX: Duration = Duration::from_secs(10);
/// The share by which the rate is raised in a second at first. It doubles every second up to the
/// maximum.
const GROWTH: f64 = 0.05;
const GROWTH_MAX: f64 = 0.4;
/// The share of the declared rate below which, for longer than the time given next, the declaration
/// is wrong.
const WRONG_SHARE: f64 = 0.8;
const WRONG_AFTER: Duration = Duration::from_secs(3);

/// A trial: a queue is emptied to see whether it is one.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// The rate before the trial.
    before: Option<Bitrate>,
    sending: Bitrate,
    estimate: Bitrate,
    /// The rate of arrival while the queue stood: the link carries at least that.
    at_least: Bitrate,
    queue_max: Duration,
    /// The queueing delay before the trial.
    queue: Duration,
    drain_from: Instant,
    drain_until: Instant,
    give_up_at: Instant,
    first: Option<DelaySample>,
    last: Option<DelaySample>,
    least: Duration,
}

/// A follower of the link's rate below a declared one.
#[derive(Clone, Debug, Default)]
pub struct LinkFollower {
    meter: DeliveryMeter,
    cap: Option<Bitrate>,
    trial: Option<Trial>,
    loss: f64,
    loss_octets: f64,
    hold: Duration,
    hold_until: Instant,
    grown_at: Instant,
    slow_since: Option<Instant>,
    delivered: Option<Bitrate>,
    trials: u64,
}

impl LinkFollower {
    /// Counts octets that were sent, headers of the layers below included.
    pub fn on_sent(&mut self, now: Instant, octets: ByteCount) {
        self.meter.on_sent(now, octets);
    }

    /// The rate that the link carries, if it was found to be less than declared.
    pub const fn cap(&self) -> Option<Bitrate> {
        self.cap
    }

    /// The rate at which octets arrived lately.
    pub const fn delivered(&self) -> Option<Bitrate> {
        self.delivered
    }

    /// The number of trials in which a queue was emptied.
    pub const fn trials(&self) -> u64 {
        self.trials
    }

    /// Whether a queue is being emptied.
    pub const fn is_draining(&self) -> bool {
        self.trial.is_some()
    }

    /// The rate that may be used at `now`, at most `allowed`.
    pub fn rate(&self, now: Instant, allowed: Bitrate) -> Bitrate {
        let rate = match &self.trial {
            Some(trial) if now < trial.drain_until => trial.estimate.scaled(DRAIN_SHARE),
            Some(trial) => trial.estimate.scaled(HEADROOM),
            None => self.cap.unwrap_or(allowed),
        };
        rate.min(allowed)
    }

    /// Whether the link was found much slower than declared for some time.
    pub fn is_declared_wrong(&self, now: Instant) -> bool {
        self.slow_since
            .is_some_and(|since| now.saturating_since(since) >= WRONG_AFTER)
    }

    /// Takes another declared rate in place of `before`. What was found stays while the link carries much less than either of
    /// the two: a declaration that moves is as wrong as one that stands still. Else everything begins again.
    pub fn on_declared(&mut self, before: Bitrate, declared: Bitrate) {
        let least = before.min(declared).scaled(WRONG_SHARE);
        let found = self.cap.or(self.trial.map(|trial| trial.estimate));
        if found.is_none_or(|found| found >= least) {
            self.restart();
        }
    }

    fn restart(&mut self) {
        self.cap = None;
        self.trial = None;
        self.slow_since = None;
        self.meter.forget_window();
    }

    /// Forgets the span that is being measured: what is counted from now on begins anew. What was found stays.
    pub fn forget_window(&mut self) {
        self.meter.forget_window();
    }

    /// Takes a report. `bound` is the declared rate, `allowed` the rate that may be sent for other
    /// reasons.
    pub fn on_report(
        &mut self,
        now: Instant,
        report: &DeliveryReport,
        bound: Bitrate,
        allowed: Bitrate,
        rtt: Duration,
    ) {
        let Some(sample) = self.meter.on_report(now, report) else {
            return;
        };
        if self.trial.is_some() {
            self.on_trial_sample(now, sample);
        } else {
            let span = rtt.clamp(WINDOW_MIN, WINDOW_MAX);
            if let Some(window) = self.meter.take_window(now, report, span) {
                self.on_window(now, &window, bound, allowed, rtt);
            }
        }
        let slow = self.cap.is_some_and(|cap| cap < bound.scaled(WRONG_SHARE));
        if slow {
            self.slow_since.get_or_insert(now);
        } else if self.trial.is_none() {
            self.slow_since = None;
        }
    }

    fn queue_max(&self, delivered: Bitrate) -> Duration {
        let packets = delivered.max(Bitrate::from_bits_per_second(1));
        let packets = packets.time_to_send(PACKET) * QUEUE_PACKETS;
        let jitter = self.meter.variation() * QUEUE_VARIATIONS;
        QUEUE_MIN.max(packets).max(jitter)
    }

    fn known_loss(&self) -> f64 {
        if self.loss_octets >= LOSS_KNOWN {
            self.loss
        } else {
            0.0
        }
    }

    fn on_window(
        &mut self,
        now: Instant,
        window: &DeliveryWindow,
        bound: Bitrate,
        allowed: Bitrate,
        rtt: Duration,
    ) {
        self.delivered = Some(window.delivered);
        let queue_max = self.queue_max(window.delivered);
        let (least, longest) = window.queueing;
        if longest <= queue_max {
            let octets = window.octets.0 as f64;
            self.loss_octets = (self.loss_octets + octets).min(LOSS_MEMORY);
            let gain = octets / self.loss_octets.max(octets);
            let loss = (1.0 - window.share).clamp(0.0, 0.95);
            self.loss += (loss - self.loss) * gain;
        }
        if least > queue_max && window.samples >= SAMPLES_MIN {
            let rate = self.rate(now, allowed);
            let keen = window.sent > rate.scaled(0.5);
            let short = window.share < 0.9 * (1.0 - self.known_loss());
            if keen || short {
                self.begin_trial(now, window, queue_max, rtt);
            }
        } else if let Some(cap) = self.cap {
            self.grow(now, cap, bound, window);
        }
    }

    fn begin_trial(
        &mut self,
        now: Instant,
        window: &DeliveryWindow,
        queue_max: Duration,
        rtt: Duration,
    ) {
        let queue = window.queueing.1;
        let carried = window.delivered.scaled(1.0 / (1.0 - self.known_loss()));
        let estimate = carried.min(window.sent.scaled(HEADROOM));
        let drain_until = now + queue.mul_f64(1.0 / (1.0 - DRAIN_SHARE));
        let slack = rtt * 2 + WINDOW_MIN + self.meter.variation() * 4;
        self.trials += 1;
        self.trial = Some(Trial {
            before: self.cap,
            sending: window.sent,
            estimate,
            at_least: window.delivered,
            queue_max,
            queue,
            drain_from: now,
            drain_until,
            give_up_at: drain_until + slack,
            first: None,
            last: None,
            least: Duration::MAX,
        });
    }

    fn on_trial_sample(&mut self, now: Instant, sample: DelaySample) {
        let Some(trial) = &mut self.trial else { return };
        if sample.sent_at >= trial.drain_from {
            trial.least = trial.least.min(sample.queueing);
            if sample.sent_at <= trial.drain_until && sample.queueing > trial.queue_max / 2 {
                trial.first.get_or_insert(sample);
                trial.last = Some(sample);
            }
        }
        let trial = *trial;
        if trial.least <= trial.queue_max / 2 {
            self.end_trial(now, &trial, true);
        } else if now >= trial.give_up_at {
            // The delay is much shorter, if not gone: it is a queue, and longer than it looked.
            let shrunk = trial.least < trial.queue.mul_f64(0.7);
            self.end_trial(now, &trial, shrunk);
        }
    }

    fn end_trial(&mut self, now: Instant, trial: &Trial, is_queue: bool) {
        self.trial = None;
        self.meter.forget_window();
        if !is_queue {
            self.meter.forget_base();
            self.cap = trial.before;
            return;
        }
        let found = self.drained_at(trial).unwrap_or(trial.estimate);
        // The rate is never less than that of arrival, nor as much as the one that made the queue.
        let found = found
            .max(trial.at_least)
            .min(trial.sending)
            .scaled(HEADROOM);
        let same = trial
            .before
            .is_some_and(|before| found > before.scaled(0.85) && before > found.scaled(0.85));
        self.hold = if same {
            (self.hold * 2).clamp(HOLD_MIN, HOLD_MAX)
        } else {
            HOLD_MIN
        };
        self.cap = Some(found);
        self.hold_until = now + self.hold;
        self.grown_at = self.hold_until;
    }

    /// The link's rate as the draining queue shows it, if it is longer than jitter.
    fn drained_at(&self, trial: &Trial) -> Option<Bitrate> {
        let (first, last) = (trial.first?, trial.last?);
        let took = last.sent_at.saturating_since(first.sent_at);
        let drop = first.queueing.checked_sub(last.queueing)?;
        if drop < self.meter.variation() * 8 || drop < trial.queue_max || took.is_zero() {
            return None;
        }
        let sent = trial.estimate.scaled(DRAIN_SHARE);
        let slope = drop.as_secs_f64() / took.as_secs_f64();
        (slope < 0.95).then(|| sent.scaled(1.0 / (1.0 - slope)))
    }

    fn grow(&mut self, now: Instant, cap: Bitrate, bound: Bitrate, window: &DeliveryWindow) {
        if now < self.hold_until {
            return;
        }
        let since = now.saturating_since(self.grown_at);
        self.grown_at = now;
        // A rate that is not used says nothing about how much more there is.
        if window.sent < cap.scaled(0.8) {
            return;
        }
        let tried = now.saturating_since(self.hold_until).as_secs_f64();
        let growth = (GROWTH * tried.exp2()).min(GROWTH_MAX);
        let grown = cap.scaled(1.0 + growth * since.as_secs_f64().min(1.0));
        self.cap = (grown < bound).then_some(grown);
    }
}
