//! The stretches of sending that follow each other, and the pace in each.

use super::super::config::RateSharing;
use super::super::epoch::{Epoch, EpochKind, LOOK};
use super::super::evidence::Shares;
use super::alone::PULSE;
use super::{EPOCH_MIN, EPOCH_PACKETS, RATE_MIN, RateController, bitrate, seconds};
use crate::units::{Bitrate, Instant};

/// The reports in a stretch.
const EPOCH_REPORTS: f64 = 5.0;
/// The shares by which more is tried.
const STEP_MIN: f64 = 0.03;
const STEP_MAX: f64 = 0.25;
/// The most while no queue shows, which loses as much; and where as much is missing anyway, and hides less.
const STEP_CUT: f64 = 0.1;
const STEP_MISSING: f64 = 0.2;
/// The most in a stretch that is longer than so many round trips, or seconds: a slow link's few datagrams take long.
const STEP_LONG: f64 = 0.22;
const LONG_ROUNDS: f64 = 4.0;
const LONG_MIN: f64 = 0.3;
/// The share that usually arrives above which some datagrams in less than that time tell as well, and those.
const LOSSLESS: f64 = 0.99;
const LONG_PACKETS: f64 = 8.0;
/// The part of that time which such a stretch takes.
const SHORTER: f64 = 0.9;
/// The longest stretch for the sake of numbers.
const LASTS_MAX: f64 = 1.0;
/// The share after many steps that found more.
const STEP_FAST: f64 = 1.0;
/// The datagrams sent above the estimate that a policer's bucket may hide.
const BUCKET_PACKETS: f64 = 15.0;
/// The pace of the first train, in octets a second.
const BACK_TO_BACK: f64 = 1e11;
/// The least share of the estimate that is sent.
const PACE_MIN: f64 = 0.25;
/// The time between two looks for others' queue that does not show: as a multiple of a look, which costs
/// half of it, and in seconds.
const LOOK_APART: f64 = 100.0;
const LOOK_MIN: f64 = 5.0;
/// The least time for which there is always something to send around such a look, as a multiple of it: it costs a twelfth of that.
const LOOK_BUSY: f64 = 6.0;
/// The share of the estimate that is used where no queue shows.
const UNSEEN: f64 = 0.96;

impl RateController {
    /// The share by which more is tried.
    pub(super) fn step(&self) -> (f64, f64) {
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
            let most = if self.looks.missing() {
                STEP_MISSING
            } else {
                STEP_CUT
            };
            step = deviation.min(most).max(step);
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
        let step = (step * fast).min(most);
        let long = (LONG_ROUNDS * self.round_trip).max(LONG_MIN);
        if lasts <= long || step <= STEP_LONG {
            return (step, lasts);
        }
        // No more than a quarter above what may be the link's rate for so long.
        let datagrams = long * self.capacity * (1.0 + step) / self.packet;
        if self.share > LOSSLESS && datagrams > LONG_PACKETS {
            (step, SHORTER * long)
        } else {
            (STEP_LONG, lasts)
        }
    }

    pub(super) fn next_epoch(&mut self, now: Instant, first: u64, ended: EpochKind, gain: f64) {
        let (step, lasts) = self.step();
        let unjudged = |epoch: &Epoch| epoch.kind == EpochKind::Up || epoch.kind == EpochKind::Down;
        let unjudged = self.epochs.iter().any(unjudged);
        let waits = now < self.hold_until || unjudged;
        let (kind, gain) = match ended {
            EpochKind::Up if self.queue_shows && !self.drains_behind_trial(now, lasts) => {
                (EpochKind::Down, 1.0)
            }
            EpochKind::Up => (EpochKind::Down, 1.0 - (gain - 1.0).min(STEP_MAX)),
            EpochKind::Cruise if !unjudged && self.looks_down(now) => {
                (EpochKind::Down, self.look_shape().0)
            }
            EpochKind::Cruise if !waits && self.looks(now, lasts) => (EpochKind::Down, LOOK),
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
        let lasts = if gain <= LOOK {
            let lasts = self.look_lasts(lasts);
            self.response.look_after_search = false;
            self.begin_look(now, lasts);
            self.response.look_at = now + seconds((LOOK_APART * lasts).max(LOOK_MIN));
            lasts
        } else {
            lasts
        };
        let epoch = Epoch::new(kind, first, now, seconds(lasts), gain);
        self.epochs.push_back(epoch);
    }

    /// Whether less than the estimate is sent behind a trial that showed no queue. A short answer would end later for it.
    fn drains_behind_trial(&self, now: Instant, lasts: f64) -> bool {
        self.found_more == 0 && self.is_worth_a_look(now, self.look_lasts(lasts))
    }

    /// The seconds of a look, of which a stretch would take `lasts`.
    fn look_lasts(&self, lasts: f64) -> f64 {
        lasts.max(self.round_trip / 2.0).max(self.look_shape().1)
    }

    /// Whether it is time to look for others' queue that does not show.
    fn looks(&self, now: Instant, lasts: f64) -> bool {
        let is_due = self.response.look_after_search
            || (self.sharing == RateSharing::Fair
                && !self.others.share_it()
                && now >= self.response.look_at);
        is_due && self.is_worth_a_look(now, self.look_lasts(lasts))
    }

    /// Whether what is being sent takes long enough for a look of so many seconds, by the time since when there was always
    /// something to send and by what waits. A short answer would lose half of the look, and be over when it tells.
    pub(super) fn is_worth_a_look(&self, now: Instant, lasts: f64) -> bool {
        let busy = now.saturating_since(self.busy_since).as_secs_f64();
        let is_long = busy + self.waiting / self.capacity.max(RATE_MIN) >= LOOK_BUSY * lasts;
        // Behind the last datagram there is nothing left to look with.
        self.waiting > 0.0 && is_long
    }

    /// The rate at which datagrams may leave at `now`.
    pub fn pacing(&self, now: Instant) -> Bitrate {
        let train = bitrate(self.bound.min(BACK_TO_BACK));
        if self.epochs.is_empty() {
            return train;
        }
        if let Some(start) = &self.start {
            let rate = start.pace().map(|rate| bitrate(rate.max(self.least())));
            return rate.unwrap_or(train);
        }
        if self.others.compete() {
            let pulse = match self.epochs.back().map(|epoch| (epoch.kind, epoch.gain)) {
                Some((EpochKind::Up, _)) => 1.0 + PULSE,
                Some((EpochKind::Down, gain)) if gain <= LOOK => gain,
                Some((EpochKind::Down, _)) => 1.0 - PULSE,
                _ => 1.0,
            };
            return bitrate((self.capacity * pulse).min(self.bound));
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
            (self.capacity * self.yielding.share * (gain - drain).max(PACE_MIN.min(gain)))
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
}
