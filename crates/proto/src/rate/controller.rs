//! The controller: what was sent and what arrived, to how fast to send.

mod others;
mod queues;
mod trials;

use super::ArrivalReport;
use super::delay_gauge::DelayGauge;
use super::epoch::{Epoch, EpochKind};
use super::evidence::{Evidence, Shares};
use super::sent_log::SentLog;
use super::start::{Known, Start, Step, TRAIN_DATAGRAMS};
use super::window::{Point, Window};
use crate::machine::Deadline;
use crate::units::{Bitrate, ByteCount, Duration, Instant};
use others::Others;
use queues::Standing;
use std::collections::VecDeque;

/// The least length of a stretch above or below the estimate, which also lasts [`EPOCH_PACKETS`] and a
/// quarter of the round trip.
const EPOCH_MIN: f64 = 0.05;
const EPOCH_PACKETS: f64 = 16.0;
const EPOCH_REPORTS: f64 = 5.0;
/// The shares by which more is tried.
const STEP_MIN: f64 = 0.03;
const STEP_MAX: f64 = 0.25;
/// The most while no queue shows, which loses as much.
const STEP_CUT: f64 = 0.1;
/// The longest stretch for the sake of numbers.
const LASTS_MAX: f64 = 1.0;
/// The share after many steps that found more.
const STEP_FAST: f64 = 1.0;
/// The least length of a window, and the reports in it.
const WINDOW_MIN: f64 = 0.03;
const WINDOW_REPORTS: u32 = 4;
const WINDOW_PACKETS: f64 = 12.0;
/// The datagrams sent above the estimate that a policer's bucket may hide.
const BUCKET_PACKETS: f64 = 15.0;
/// The pace of the first train, in octets a second.
const BACK_TO_BACK: f64 = 1e11;
/// The least share of the estimate that is sent.
const PACE_MIN: f64 = 0.25;
/// The share of the estimate that is sent right after the first search.
const AFTER_START: f64 = 0.5;
/// The share of the estimate that is used where no queue shows.
const UNSEEN: f64 = 0.98;
/// The least estimate, in octets a second.
const RATE_MIN: f64 = 500.0;
/// The time without reports for which sending goes on as before, besides two round trips.
const BLIND: f64 = 1.0;
/// The least silence after which what is under way is taken for lost.
const SILENCE_MIN: f64 = 0.3;
/// The time after which the first train is followed by three datagrams more; it doubles.
const FIRST_SILENCE: f64 = 0.05;

/// The settings of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateConfig {
    /// The most that may be sent, if anybody said so; at least 4 kbit.
    pub bound: Option<Bitrate>,
    /// The octets of a full datagram, headers of the layers below included.
    pub packet: ByteCount,
    /// Whose the link is.
    pub sharing: RateSharing,
}

/// The way with others' senders in the same queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateSharing {
    /// The link is ours. Whoever else keeps a queue gets most of it: none is built.
    Own,
    /// Others get their share, and leave us ours.
    #[default]
    Fair,
}

impl Default for RateConfig {
    fn default() -> Self {
        Self {
            bound: None,
            packet: ByteCount(1500),
            sharing: RateSharing::default(),
        }
    }
}

/// The reason of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateCause {
    /// The rate is being searched for.
    Searching,
    /// More builds a queue.
    Queue,
    /// More is lost, without a queue.
    Cut,
    /// More was not tried, or arrives.
    Free,
    /// The bound is in use.
    Bound,
    /// Others keep the queue full, and this is our share.
    Shared,
}

/// A controller's belief about its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateBelief {
    /// The rate that the link carries.
    pub rate: Bitrate,
    /// Why it is not more.
    pub cause: RateCause,
    /// The delay in queues.
    pub queueing: Duration,
    /// The share that is lost for reasons that have nothing to do with the rate.
    pub lost: f64,
}

/// A controller of one path's rate.
#[derive(Clone, Debug)]
pub struct RateController {
    packet: f64,
    bound: f64,
    log: SentLog,
    delays: DelayGauge,
    round_trips: DelayGauge,
    /// The least round trip, in seconds.
    round_trip: f64,
    start: Option<Start>,
    /// The estimate, in octets a second.
    capacity: f64,
    cause: RateCause,
    epochs: VecDeque<Epoch>,
    window: Option<Window>,
    last: Option<Point>,
    reported_at: Instant,
    /// The mean time between reports, by the receiver's clock.
    report_gap: f64,
    /// Delays of the last reports.
    recent: [f64; 3],
    evidence: Evidence,
    /// The last stretch above the estimate, until the one below it is judged.
    tried: Option<Epoch>,
    /// Whether a queue shows before datagrams are dropped, as far as is known.
    queue_shows: bool,
    /// Steps up in a row that found more.
    found_more: u32,
    /// Times that more was not carried and no queue showed it.
    cuts: u32,
    /// Pairs since then that said nothing.
    open_pairs: u32,
    /// The time before which nothing more is tried.
    hold_until: Instant,
    standing: Standing,
    sharing: RateSharing,
    others: Others,
    share: f64,
    share_octets: f64,
    /// Octets sent before this total are taken for arrived or lost.
    forgiven: u64,
    /// Times that nothing came before the first report.
    silences: u32,
}

fn seconds(span: f64) -> Duration {
    Duration::from_secs_f64(span.clamp(0.0, 1e6))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "amounts are positive, and a cast saturates"
)]
fn byte_count(octets: f64) -> ByteCount {
    ByteCount(octets as u64)
}

/// The bound in octets a second.
fn octets_of(bound: Option<Bitrate>) -> f64 {
    bound
        .map_or(f64::MAX, |bound| bound.as_bits_per_second() as f64 / 8.0)
        .max(RATE_MIN)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive, and a cast saturates"
)]
fn bitrate(octets: f64) -> Bitrate {
    Bitrate::from_bits_per_second((octets * 8.0) as u64)
}

impl RateController {
    /// A controller that knows nothing of the path.
    pub fn new(config: RateConfig) -> Self {
        let bound = octets_of(config.bound);
        Self {
            packet: config.packet.0 as f64,
            bound,
            log: SentLog::default(),
            delays: DelayGauge::default(),
            round_trips: DelayGauge::default(),
            round_trip: 0.0,
            start: None,
            capacity: 0.0,
            cause: RateCause::Searching,
            epochs: VecDeque::new(),
            window: None,
            last: None,
            reported_at: Instant::START,
            report_gap: 0.01,
            recent: [0.0; 3],
            evidence: Evidence::default(),
            tried: None,
            queue_shows: true,
            found_more: 0,
            cuts: 0,
            open_pairs: 0,
            hold_until: Instant::START,
            standing: Standing::default(),
            sharing: config.sharing,
            others: Others::default(),
            share: 1.0,
            share_octets: 0.0,
            forgiven: 0,
            silences: 0,
        }
    }

    /// The rate, and why it is not more.
    pub fn belief(&self) -> RateBelief {
        RateBelief {
            rate: bitrate(self.estimate()),
            cause: self.cause,
            queueing: seconds(self.queueing()),
            lost: 1.0 - self.share,
        }
    }

    fn estimate(&self) -> f64 {
        self.start
            .as_ref()
            .map_or(self.capacity, |start| start.rate)
    }

    fn queueing(&self) -> f64 {
        self.recent
            .iter()
            .copied()
            .fold(f64::MAX, f64::min)
            .max(0.0)
    }

    /// The least delay that is a queue, at the estimate.
    fn queue_least(&self) -> f64 {
        self.delays
            .queue_least(self.packet, self.capacity.max(RATE_MIN))
    }

    /// Counts a datagram that left; `more` says whether another one waits.
    pub fn on_sent(&mut self, now: Instant, number: u64, octets: ByteCount, more: bool) {
        if self.epochs.is_empty() {
            self.start = Some(Start::new(number));
            self.reported_at = now;
            let lasts = Duration::MAX;
            let epoch = Epoch::new(EpochKind::Start, number, now, lasts, 1.0);
            self.epochs.push_back(epoch);
        }
        self.log.on_sent(now, number, octets);
        if let Some(epoch) = self.epochs.back_mut() {
            epoch.busy &= more;
            if self.start.is_none() && now.saturating_since(epoch.began) >= epoch.lasts {
                let (kind, gain) = (epoch.kind, epoch.gain);
                self.next_epoch(now, number + 1, kind, gain);
            }
        }
    }

    /// The share by which more is tried.
    fn step(&self) -> (f64, f64) {
        let queue = self.queue_least();
        let mut lasts = (self.round_trip / 4.0)
            .max(EPOCH_MIN)
            .max(EPOCH_PACKETS * self.packet / self.capacity)
            .max(EPOCH_REPORTS * self.report_gap)
            .max(3.0 * queue);
        let mut step = (1.5 * queue / lasts).clamp(STEP_MIN, STEP_MAX);
        if !self.queue_shows {
            let shares = Shares {
                rate: self.capacity,
                share: self.share,
                datagrams: lasts * self.capacity / self.packet,
                edges: self.delays.noise() / lasts,
            };
            let deviation = self.evidence.variance(shares, shares).sqrt();
            step = deviation.min(STEP_CUT).max(step);
            // Long enough for the step to tell.
            let longer = lasts * (deviation / step).powi(2).clamp(1.0, 10.0);
            // A policer's bucket takes a short burst of any rate.
            let bucket = BUCKET_PACKETS * self.packet / (step * self.capacity);
            lasts = longer.max(bucket).min(LASTS_MAX.max(lasts));
        }
        let found_more = if self.queue_shows {
            self.found_more
        } else {
            self.found_more.saturating_sub(1)
        };
        let fast = f64::from(3_u32.pow(found_more.min(4)));
        let most = if self.queue_shows {
            STEP_FAST
        } else {
            STEP_MAX
        };
        ((step * fast).min(most), lasts)
    }

    fn next_epoch(&mut self, now: Instant, first: u64, ended: EpochKind, gain: f64) {
        let (step, lasts) = self.step();
        let unjudged = |epoch: &Epoch| epoch.kind == EpochKind::Up || epoch.kind == EpochKind::Down;
        let waits = now < self.hold_until || self.epochs.iter().any(unjudged);
        let (kind, gain) = match ended {
            EpochKind::Up if self.queue_shows && self.found_more > 0 => (EpochKind::Down, 1.0),
            EpochKind::Up => (EpochKind::Down, 1.0 - (gain - 1.0).min(STEP_MAX)),
            EpochKind::Cruise if !waits && self.capacity < 0.999 * self.bound => {
                (EpochKind::Up, 1.0 + step)
            }
            _ => (EpochKind::Cruise, 1.0),
        };
        let lasts = if kind == EpochKind::Cruise {
            lasts / 4.0
        } else {
            lasts
        };
        if kind == EpochKind::Cruise && ended == EpochKind::Cruise {
            // One stretch for all the time between two trials.
            if let Some(epoch) = self.epochs.back_mut() {
                epoch.lasts = now.saturating_since(epoch.began) + seconds(lasts);
            }
            return;
        }
        let epoch = Epoch::new(kind, first, now, seconds(lasts), gain);
        self.epochs.push_back(epoch);
    }

    /// The rate at which datagrams may leave at `now`.
    pub fn pacing(&self, now: Instant) -> Bitrate {
        let train = bitrate(self.bound.min(BACK_TO_BACK));
        if self.epochs.is_empty() {
            return train;
        }
        if let Some(start) = &self.start {
            let searching = self.last.is_some() && start.rate > 0.0;
            return if searching {
                bitrate(start.rate.max(RATE_MIN))
            } else {
                train
            };
        }
        if self.others.compete() {
            return bitrate(self.capacity);
        }
        let gain = self.epochs.back().map_or(1.0, |epoch| epoch.gain);
        let gain = if self.queue_shows {
            gain
        } else {
            gain.min((gain * UNSEEN).max(UNSEEN))
        };
        let least = self.queue_least();
        let target = match self.epochs.back().map(|epoch| epoch.kind) {
            Some(EpochKind::Up) => 4.0 * least + self.round_trip * 0.25,
            Some(EpochKind::Down) => 0.0,
            _ => least,
        };
        let above = self.predicted_queueing(now) - target;
        let drain = (above / (self.round_trip / 2.0).max(EPOCH_MIN)).clamp(0.0, 0.5);
        bitrate(
            (self.capacity * (gain - drain).max(PACE_MIN))
                .max(RATE_MIN)
                .min(self.bound),
        )
    }

    /// The delay in the queue that a datagram sent now will find, if the estimate is right.
    fn predicted_queueing(&self, now: Instant) -> f64 {
        let Some(last) = self.last else { return 0.0 };
        let unreported = (self.log.total() - last.sent.octets.max(self.forgiven)) as f64;
        let since = now.saturating_since(last.sent.at).as_secs_f64();
        (self.queueing() + unreported / self.capacity.max(RATE_MIN) - since).max(0.0)
    }

    /// The octets that may be under way without a report.
    pub fn in_flight_max(&self) -> ByteCount {
        let train = TRAIN_DATAGRAMS as f64 * self.packet;
        let octets = if self.last.is_none() {
            train + f64::from(3 * self.silences) * self.packet
        } else {
            2.0 * train + self.estimate() * (2.0 * self.round_trip + BLIND)
        };
        byte_count(octets)
    }

    /// The octets that are under way without a report.
    pub fn in_flight(&self) -> ByteCount {
        let reported = self.last.map_or(0, |last| last.sent.octets);
        ByteCount(self.log.total() - reported.max(self.forgiven))
    }

    /// The time at which what is under way will be taken for lost.
    pub fn next_deadline(&self) -> Option<Deadline> {
        if self.in_flight().0 == 0 {
            return None;
        }
        let silence = if self.last.is_none() {
            FIRST_SILENCE * f64::from(1_u32 << self.silences.min(3))
        } else {
            (4.0 * self.round_trip).max(SILENCE_MIN)
        };
        Some(Deadline {
            at: self.reported_at + seconds(silence),
            why: "no report",
        })
    }

    /// Takes what is under way for lost, if no report came for long.
    pub fn handle_deadline(&mut self, now: Instant) {
        if self
            .next_deadline()
            .is_some_and(|deadline| deadline.at <= now)
        {
            self.reported_at = now;
            if self.last.is_none() {
                self.silences += 1;
            } else {
                self.forgiven = self.log.total();
            }
        }
    }

    /// The number of the newest datagram that left in the span from `from` to before `until`, if it was not reported
    /// yet: for reports that name a time.
    pub fn number_sent_in(&self, from: Instant, until: Instant) -> Option<u64> {
        self.log.number_in(from, until)
    }

    /// Sends at most at this rate from now on.
    pub fn set_bound(&mut self, bound: Option<Bitrate>) {
        self.bound = octets_of(bound);
        self.capacity = self.capacity.min(self.bound);
    }

    /// Takes a receiver's report.
    pub fn on_report(&mut self, now: Instant, report: &ArrivalReport) {
        let newer = self
            .last
            .is_none_or(|last| report.newest > last.sent.number);
        let Some(sent) = self.log.at(report.newest).filter(|_| newer) else {
            return;
        };
        let arrived_at = report.arrived_at.as_secs_f64();
        let delay = arrived_at - sent.at.as_secs_f64();
        let queueing = self.delays.on_delay(now, delay);
        let round_trip = now.saturating_since(sent.at).saturating_sub(report.hold);
        let round_trip = round_trip.as_secs_f64();
        let excess = self.round_trips.on_delay(now, round_trip);
        self.round_trip = (round_trip - excess).max(1e-5);
        self.recent.rotate_left(1);
        self.recent[2] = queueing;
        let point = Point {
            sent,
            arrived: report.octets.0,
            arrived_at,
            queueing,
        };
        let before = self.last.replace(point);
        self.reported_at = now;
        if self.start.is_some() {
            self.on_start(now, point);
        } else {
            self.on_point(now, point, before);
            if self.sharing == RateSharing::Fair {
                self.beside_others(now, point, before);
            }
        }
        self.log.forget_before(report.newest);
    }

    fn on_start(&mut self, now: Instant, point: Point) {
        let last = self.log.newest();
        let Some(mut start) = self.start.take() else {
            return;
        };
        let known = Known {
            delays: &self.delays,
            sent_last: last,
            round_trip: self.round_trip,
            packet: self.packet,
            bound: self.bound,
            busy: self.epochs.back().is_some_and(|epoch| epoch.busy),
        };
        let (rate, shows) = match start.on_point(point, &known) {
            Step::At(_) => {
                self.start = Some(start);
                return;
            }
            Step::Found { rate, cut } => (rate, !cut),
        };
        self.capacity = rate.clamp(RATE_MIN, self.bound);
        // A rate that was cut without a queue says that none shows; otherwise one is hoped for.
        self.queue_shows = shows;
        self.cause = if rate >= 0.99 * self.bound {
            RateCause::Bound
        } else {
            RateCause::Free
        };
        self.epochs.clear();
        // Whoever came to a full queue does not know it: all delays so far were as long. Less is sent for
        // a moment, and what the delay and the share are then is the path's own.
        let packets = EPOCH_PACKETS * self.packet / self.capacity;
        let lasts = seconds((self.round_trip / 4.0).max(EPOCH_MIN).max(packets));
        let epoch = Epoch::new(EpochKind::Down, last + 1, now, lasts, AFTER_START);
        self.epochs.push_back(epoch);
    }

    fn on_point(&mut self, now: Instant, point: Point, before: Option<Point>) {
        let gap = before.map_or(0.0, |before| point.arrived_at - before.arrived_at);
        let broken = gap > 12.0 * self.report_gap + 0.2;
        self.report_gap += (gap.min(1.0) - self.report_gap) / 16.0;
        if broken {
            self.window = None;
            self.epochs[0].broken = true;
        }
        while self
            .epochs
            .get(1)
            .is_some_and(|next| next.first <= point.sent.number)
        {
            self.close_window(now);
            self.window = None;
            if let Some(epoch) = self.epochs.pop_front() {
                self.judge(now, &epoch);
            }
            self.epochs[0].broken = broken;
        }
        if point.sent.number < self.epochs[0].first {
            return;
        }
        let Some(window) = &mut self.window else {
            self.window = Some(Window::begin(point));
            return;
        };
        window.add(point);
        let long = (self.round_trip / 4.0)
            .max(WINDOW_MIN)
            .max(WINDOW_PACKETS * self.packet / self.capacity);
        let full = window.arriving() >= long && window.reports >= WINDOW_REPORTS;
        self.epochs[0].tail = self.recent[1].min(self.recent[2]);
        if full {
            self.close_window(now);
            self.window = Some(Window::begin(point));
        }
    }
}

#[cfg(test)]
mod tests;
