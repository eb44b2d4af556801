//! The controller: what was sent and what arrived, to how fast to send.

mod alone;
mod anew;
mod doubt;
mod holding;
mod levels;
mod looks;
mod others;
mod pace;
mod queues;
mod reported;
mod told;
mod trials;
mod yielding;

use super::ArrivalReport;
use super::belief::{RateBelief, RateCause};
use super::config::{RateConfig, RateSharing};
use super::delay_gauge::DelayGauge;
use super::epoch::{Epoch, EpochKind};
use super::evidence::Evidence;
use super::queue_gauge::QueueGauge;
use super::sent_log::SentLog;
use super::start::{Ended, Known, Start, Step, TRAIN_DATAGRAMS};
use super::window::{Point, Window};
use crate::machine::Deadline;
use crate::units::{Bitrate, ByteCount, Duration, Instant};
use alone::Response;
use anew::Anew;
use levels::Levels;
use looks::Looks;
use others::Others;
use queues::Standing;
use reported::ReportedOctets;
use std::collections::VecDeque;
use yielding::Yielding;

/// The least length of a stretch above or below the estimate, which also lasts [`EPOCH_PACKETS`] and a
/// quarter of the round trip.
const EPOCH_MIN: f64 = 0.05;
const EPOCH_PACKETS: f64 = 16.0;
/// The least length of a window, and the reports in it.
const WINDOW_MIN: f64 = 0.03;
const WINDOW_REPORTS: u32 = 4;
const WINDOW_PACKETS: f64 = 12.0;
/// The threshold for a queue on a short way of our own, as a part of the usual one: one datagram in place of one and a half. Small
/// datagrams take places in a short queue, which drops before a longer delay shows.
const QUEUE_OF_OWN: f64 = 2.0 / 3.0;
/// The round trip in seconds below which a way is short. At 40 ms a path beside a slow one brings 2 % less with such a queue.
const SHORT_WAY: f64 = 0.03;
/// The time from the search to the first look for others, in seconds.
const FIRST_LOOK: f64 = 2.0;
/// The least of it as a multiple of the look itself, which costs half of what a slow link carries in seconds.
const FIRST_LOOK_TIMES: f64 = 6.0;
/// The least estimate, in octets a second.
const RATE_MIN: f64 = 500.0;
/// The longest time in seconds that a full datagram takes at the estimate: at less, nobody who waits would find more in time.
const DATAGRAM_TAKES: f64 = 1.0;
/// The time without reports for which sending goes on as before, besides two round trips.
const BLIND: f64 = 1.0;
/// The least silence after which what is under way is taken for lost.
const SILENCE_MIN: f64 = 0.3;
/// The time after which the first train is followed by three datagrams more; it doubles.
const FIRST_SILENCE: f64 = 0.05;
/// Data under way that left one by one before any train, at most, in full datagrams; and the datagrams that are counted.
const ALONE_OCTETS: f64 = 40.0;
const ALONE_MAX: usize = 1_024;
/// The datagrams whose time, beside a round trip, is a pause in what is sent.
const PAUSE_DATAGRAMS: f64 = 4.0;
/// The time after which what was sent is not told of any more, besides a round trip.
const LATE: f64 = 0.1;

/// A controller of one path's rate.
#[derive(Clone, Debug)]
pub struct RateController {
    packet: f64,
    bound: f64,
    first: Option<f64>,
    log: SentLog,
    delays: QueueGauge,
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
    reported: ReportedOctets,
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
    /// The part of what is sent above the estimate that is missing beyond the usual, in the last stretches.
    overfilled: f64,
    /// The rate that the last stretch above the estimate shows at least, if it ended with a queue and began without one.
    carried: Option<f64>,
    /// The time before which nothing more is tried.
    hold_until: Instant,
    standing: Standing,
    levels: Levels,
    looks: Looks,
    sharing: RateSharing,
    others: Others,
    response: Response,
    yielding: Yielding,
    anew: Anew,
    /// Whether more was missing where no queue showed, and none has shown since.
    is_cut: bool,
    share: f64,
    share_octets: f64,
    /// Octets sent before this total are taken for arrived or lost.
    forgiven: u64,
    /// Times that nothing came before the first report.
    silences: u32,
    /// The time since which there was always something to send, and the octets that wait, as far as they are known.
    busy_since: Instant,
    waiting: f64,
    /// The time at which a datagram left last.
    left_at: Instant,
    /// The numbers and octets of data that left one by one, before any train, and were not told of.
    alone: VecDeque<(u64, u64)>,
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
pub(super) fn bitrate(octets: f64) -> Bitrate {
    Bitrate::from_bits_per_second((octets * 8.0) as u64)
}

impl RateController {
    /// A controller that knows nothing of the path.
    pub fn new(config: RateConfig) -> Self {
        let bound = octets_of(config.bound);
        Self {
            packet: config.packet.0 as f64,
            bound,
            first: (config.first).map(|rate| rate.as_bits_per_second() as f64 / 8.0),
            log: SentLog::default(),
            delays: QueueGauge::default(),
            round_trips: DelayGauge::default(),
            round_trip: 0.0,
            start: None,
            capacity: 0.0,
            cause: RateCause::Searching,
            epochs: VecDeque::new(),
            window: None,
            last: None,
            reported: ReportedOctets::default(),
            reported_at: Instant::START,
            report_gap: 0.01,
            recent: [0.0; 3],
            evidence: Evidence::default(),
            tried: None,
            queue_shows: true,
            found_more: 0,
            cuts: 0,
            open_pairs: 0,
            overfilled: 0.0,
            carried: None,
            hold_until: Instant::START,
            standing: Standing::default(),
            levels: Levels::default(),
            looks: Looks::default(),
            sharing: config.sharing,
            others: Others::default(),
            response: Response::default(),
            yielding: Yielding::default(),
            anew: Anew::default(),
            is_cut: false,
            share: 1.0,
            share_octets: 0.0,
            forgiven: 0,
            silences: 0,
            busy_since: Instant::START,
            left_at: Instant::START,
            waiting: 0.0,
            alone: VecDeque::new(),
        }
    }

    /// The rate, and why it is not more.
    pub fn belief(&self) -> RateBelief {
        let by_train = (self.start.as_ref()).map_or(self.others.link, Start::by_train);
        RateBelief {
            rate: bitrate(self.estimate()),
            cause: self.cause,
            queueing: seconds(self.queueing()),
            lost: 1.0 - self.share,
            link: (by_train > 0.0).then(|| bitrate(by_train)),
            beside_others: self.others.share_it() || self.yielding.share < 1.0,
            doubted: self.is_doubted(),
        }
    }

    fn estimate(&self) -> f64 {
        self.start
            .as_ref()
            .map_or(self.capacity, |start| start.rate)
    }

    /// The least rate that is sent.
    fn least(&self) -> f64 {
        RATE_MIN.max(self.packet / DATAGRAM_TAKES).min(self.bound)
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
        let part = match self.sharing {
            RateSharing::Own if self.round_trip < SHORT_WAY => QUEUE_OF_OWN,
            RateSharing::Own | RateSharing::Fair | RateSharing::Background => 1.0,
        };
        self.delays
            .queue_least(part * self.packet, self.capacity.max(RATE_MIN))
    }

    /// Counts a datagram that left, behind which so many octets wait as far as is known: none if nothing does.
    pub fn on_sent(&mut self, now: Instant, number: u64, octets: ByteCount, waiting: ByteCount) {
        let more = waiting > ByteCount::ZERO;
        if self.epochs.is_empty() {
            self.start = Some(Start::new(self.first));
            self.reported_at = now;
            let lasts = Duration::MAX;
            let epoch = Epoch::new(EpochKind::Start, number, now, lasts, 1.0);
            self.epochs.push_back(epoch);
        }
        // What waited may have gone without leaving: of a connection that was reset, of messages that were given up.
        let takes = PAUSE_DATAGRAMS * self.packet / self.capacity.max(self.least());
        let paused = now.saturating_since(self.left_at).as_secs_f64();
        let has_paused = paused > self.round_trip + takes;
        if core::mem::replace(&mut self.waiting, waiting.0 as f64) <= 0.0 || has_paused {
            self.busy_since = now;
        }
        self.left_at = now;
        let under_way = self.in_flight().0;
        if let Some(start) = &mut self.start {
            start.on_sent(now, number, under_way, more);
        }
        if self.awaits_train() {
            if self.alone.len() >= ALONE_MAX {
                self.alone.pop_front();
            }
            self.alone.push_back((number, octets.0));
        } else {
            self.alone.clear();
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

    /// The octets that may be under way without a report.
    pub fn in_flight_max(&self) -> ByteCount {
        let train = TRAIN_DATAGRAMS as f64 * self.packet;
        let behind = match &self.start {
            Some(start) if start.pace().is_none() => Some(start.behind(self.held_behind())),
            None if self.last.is_none() => Some(0),
            _ => None,
        };
        let octets = behind.map_or_else(
            || 2.0 * train + self.estimate() * (2.0 * self.round_trip + BLIND),
            |behind| behind as f64 + train + f64::from(3 * self.silences) * self.packet,
        );
        byte_count(octets)
    }

    /// The octets under way before a train that hold nothing. Data that leave one by one are held once there are
    /// [`ALONE_OCTETS`] of them: then they wait, and what waits is a train.
    fn held_behind(&self) -> u64 {
        let alone: u64 = self.alone.iter().map(|(_, octets)| octets).sum();
        if alone as f64 > ALONE_OCTETS * self.packet {
            0
        } else {
            self.in_flight().0
        }
    }

    /// Counts a datagram of answers that left beside data. It is part of what arrives; when it left says nothing, since it is not
    /// paced as data are.
    pub fn on_sent_beside(&mut self, now: Instant, number: u64, octets: ByteCount) {
        if !self.epochs.is_empty() {
            self.log.on_sent(now, number, octets);
        }
    }

    /// Counts a number that leaves with something of which nobody tells at once, so that its time is known: the octets count
    /// with what follows.
    pub fn on_number(&mut self, now: Instant, number: u64) {
        if !self.epochs.is_empty() {
            self.log.on_sent(now, number, ByteCount::ZERO);
        }
    }

    /// Whether what may leave now is the first train, or before it.
    pub fn awaits_train(&self) -> bool {
        (self.start.as_ref()).map_or(self.epochs.is_empty(), |start| start.pace().is_none())
    }

    /// The rate of the link as far as it was seen: what was found, or what the first train showed. `None` before.
    pub fn seen(&self) -> Option<Bitrate> {
        let seen = (self.start.as_ref()).map_or(self.capacity, Start::by_train);
        (seen > 0.0).then(|| bitrate(seen))
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
                self.give_up_search(now);
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
        if self.bound < self.capacity {
            self.capacity = self.bound;
            self.cause = RateCause::Bound;
        }
    }

    /// Takes a receiver's report.
    pub fn on_report(&mut self, now: Instant, report: &ArrivalReport) {
        let newer = self
            .last
            .is_none_or(|last| report.newest > last.sent.number);
        let Some(sent) = self.log.at(report.newest).filter(|_| newer) else {
            return;
        };
        while (self.alone.front()).is_some_and(|(number, _)| *number <= report.newest) {
            self.alone.pop_front();
        }
        let arrived_at = report.arrived_at.as_secs_f64();
        let delay = arrived_at - sent.at.as_secs_f64();
        let round_trip = now.saturating_since(sent.at).saturating_sub(report.hold);
        let round_trip = round_trip.as_secs_f64();
        let queueing = self.delays.on_delays(now, delay, round_trip);
        let excess = self.round_trips.on_delay(now, round_trip);
        self.round_trip = (round_trip - excess).max(1e-5);
        self.recent.rotate_left(1);
        self.recent[2] = queueing;
        let late_most = self.estimate() * (self.round_trip + LATE);
        let point = Point {
            sent,
            arrived: (self.reported).take(sent.octets, report.octets.0, late_most, self.packet),
            marked: report.marked,
            arrived_at,
            queueing,
        };
        let before = self.last.replace(point);
        self.reported_at = now;
        if self.start.is_some() {
            self.on_start(now, point);
        } else {
            self.on_point(now, point, before);
            match self.sharing {
                RateSharing::Own => {}
                RateSharing::Fair => self.beside_others(now, point, before),
                RateSharing::Background => {
                    self.make_way(now, queueing);
                    self.beside_others(now, point, before);
                }
            }
            self.capacity = self.capacity.max(self.least());
            self.search_if_queue_is_gone(now, point);
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
        };
        let (rate, why) = match start.on_point(point, &known) {
            Step::At(_) => {
                self.start = Some(start);
                return;
            }
            Step::Found { rate, why } => (rate, why),
        };
        self.capacity = rate.clamp(RATE_MIN, self.bound);
        self.others.link = start.by_train();
        let slowest = start.slowest.map(|slowest| slowest.share);
        self.others.first_share = slowest.unwrap_or_default().min(1.0);
        self.levels = Levels::from(start.slowest);
        self.looks = Looks::from(start.newest, self.packet, self.capacity);
        // A rate that was cut without a queue says that none shows; otherwise one is hoped for.
        self.is_cut = why == Ended::Cut;
        self.queue_shows = !self.is_cut;
        self.cause = if rate >= 0.99 * self.bound {
            RateCause::Bound
        } else {
            RateCause::Free
        };
        self.end_search(now, last);
        self.epochs.clear();
        let packets = EPOCH_PACKETS * self.packet / self.capacity;
        let (gain, lasts) = self.look_shape();
        let lasts = self.round_trip.max(lasts).max(packets);
        self.response.look_after_search =
            why == Ended::Carried && !self.is_worth_a_look(now, lasts);
        if self.response.look_after_search {
            // What is short leaves first: it left no queue so far.
            self.response.look_at = now + seconds(FIRST_LOOK);
            let epoch = Epoch::new(EpochKind::Cruise, last + 1, now, seconds(packets), 1.0);
            self.epochs.push_back(epoch);
            return;
        }
        // Whoever came to a full queue does not know it: all delays so far were as long. Less is sent for
        // a moment, and what the delay and the share are then is the path's own.
        let lasts = seconds(lasts);
        self.response.look_at = now + seconds(FIRST_LOOK.max(FIRST_LOOK_TIMES * packets));
        let epoch = Epoch::new(EpochKind::Down, last + 1, now, lasts, gain);
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
        let ended = (self.epochs.iter().skip(1))
            .take_while(|next| next.first <= point.sent.number)
            .count();
        for _ in 0..ended {
            self.close_window(now);
            self.window = None;
            if let Some(epoch) = self.epochs.pop_front() {
                self.take_look(now, &epoch, point, ended == 1);
                self.judge(now, &epoch);
            }
            self.epochs[0].broken = broken;
        }
        if point.sent.number < self.epochs[0].first {
            return;
        }
        self.looks.begin(point);
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
