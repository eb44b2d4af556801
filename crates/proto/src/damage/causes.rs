//! Lost packets by cause, as their sender can know it: wrong bits, single packets lost at random, bursts, full queues, outages.
//!
//! | cause | sign |
//! |---|---|
//! | outage | nothing that left in 100 ms or more arrived, nor anything until 200 ms after the first of it, and that is no chance at the loss there is otherwise |
//! | queue | the delay of the packet behind was near its longest; as many losses as there are elsewhere are no sign |
//! | burst | losses in a row beyond what chance brings ([`runs`]) |
//! | bit errors | loss grows with the length of packets ([`LossByLength`](super::LossByLength)) |
//! | random | the rest |
//!
//! Packets are taken in the order of sending, some hundred late, so that what was held for lost wrongly can be taken back. Counts
//! are shared out for each [`EPOCH`] of packets by itself, since links change, and added up.
//!
//! Acknowledgements tell the fates of packets, and the delays that show a queue. Answers are lost, too, and what arrived is then held
//! for lost. Where the receiver itself says of each packet whether it arrived ([`LossCauses::set_told`]), fates are its word, and
//! acknowledgements tell delays alone.

mod by_cause;
mod epoch;
mod runs;
mod runs_by_length;
mod told;

pub use by_cause::{CAUSES, CauseShare, LossByCause, LossCause};

use crate::units::{Duration, Instant};
use epoch::{Apportioned, Epoch};
use runs::RUN_MAX;
use runs_by_length::LongestLately;
use std::collections::VecDeque;
use told::{ToldAnswers, ToldFate};

/// Outcomes that wait to be brought into order, and those of them that are counted when there are so many.
const WAITING: usize = 1_024;
const COUNTED: usize = WAITING / 2;
/// Packets whose losses are shared out together.
const EPOCH: f64 = 65_536.0;
/// The time from the first packet of an outage to the next one that arrives, that to the last packet lost in it, and the packets
/// lost, at least. A sender falls silent soon after the answers do.
const OUTAGE_MIN: Duration = Duration::from_millis(200);
const OUTAGE_SENT: Duration = Duration::from_millis(100);
const OUTAGE_LOST: usize = 3;
/// The probability of a run below which it is no chance.
const NO_CHANCE: f64 = 1e-4;
/// The spread of delays from which on there is a queue, and the part of it that is a full one.
const QUEUE_MIN: Duration = Duration::from_millis(10);
const FULL: f64 = 0.6;
/// Packets beside those that are judged whose departure is remembered: those of the last second.
const BESIDE_MAX: usize = 256;
/// Times from which on packets are counted anew that wait for packets; the oldest ones give way.
const BEGINS_MAX: usize = 16;
/// Looks at the delay that are remembered. Earlier ones are forgotten, since a path may become longer.
const DELAYS: usize = 32;
/// The standard errors of an interval of 90 %, with few groups.
const INTERVAL: f64 = 1.9;
/// The standard errors by which wrong bits, or loss at random, must be more than none to be named.
const SEEN: f64 = 1.65;
/// The standard error of the share of wrong bits from which on it is worth knowing better, if as large a share of losses may be
/// theirs as [`SHARE_WORTH`], and as large a share of packets is lost as [`LOSS_WORTH`].
const WORTH_KNOWING: f64 = 0.025;
const SHARE_WORTH: f64 = 0.05;
const LOSS_WORTH: f64 = 0.01;

/// A packet whose fate is known.
#[derive(Clone, Copy, Debug)]
struct Packet {
    at: Instant,
    told_at: Instant,
    octets: usize,
    is_lost: bool,
    /// The packets that it stands for, if they count in outages alone.
    repeated: Option<u16>,
}

/// A packet that arrived: the time of its departure, and the time from then to its answer. Packets with one answer have the
/// shortest of their times.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    at: Instant,
    delay: Duration,
}

/// The packet that arrived behind lost ones.
#[derive(Clone, Copy, Debug)]
struct Behind {
    at: Instant,
    /// Whether it met a full queue.
    is_full: bool,
}

/// Lost packets in a row.
#[derive(Clone, Debug, Default)]
struct Run {
    lost: usize,
    /// Lost ones beside which others of the same content left: they count in outages alone, since where they arrive nobody knows
    /// which one did.
    repeated: usize,
    /// The first ones' octets.
    octets: Vec<usize>,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Run {
    fn begin(&mut self, at: Instant) {
        self.first.get_or_insert(at);
        self.last = Some(at);
    }

    fn note(&mut self, at: Instant, octets: usize) {
        self.begin(at);
        self.lost += 1;
        if self.octets.len() <= RUN_MAX {
            self.octets.push(octets);
        }
    }
}

/// The least and the greatest delay of each look of late.
#[derive(Clone, Debug, Default)]
struct Delays(VecDeque<(Duration, Duration)>);

impl Delays {
    fn look(&mut self, mut seen: Vec<Duration>) {
        seen.sort_unstable();
        let (Some(&least), Some(&greatest)) = (seen.first(), seen.iter().rev().nth(2)) else {
            return;
        };
        if self.0.len() >= DELAYS {
            self.0.pop_front();
        }
        self.0.push_back((least, greatest));
    }

    /// The delay from which on the queue is full, if there is one.
    fn full(&self) -> Option<Duration> {
        let least = *self.0.iter().map(|(least, _)| least).min()?;
        let greatest = *self.0.iter().map(|(_, greatest)| greatest).max()?;
        let spread = greatest.saturating_sub(least);
        (spread >= QUEUE_MIN).then(|| least + spread.mul_f64(FULL))
    }
}

/// The losses on a path, by cause.
#[derive(Clone, Debug, Default)]
pub struct LossCauses {
    /// Nothing before the first loss.
    // Boxed, because most paths lose nothing for long.
    counts: Option<Box<Counts>>,
    beside: Beside,
    outcomes: u64,
    /// Whether the receiver says of each packet whether it arrived.
    is_told: bool,
}

/// The times at which packets left lately whose fate nobody tells: nothing of the kind arrives in an outage either.
#[derive(Clone, Debug, Default)]
struct Beside(VecDeque<Instant>);

impl Beside {
    fn note(&mut self, at: Instant) {
        if self.0.len() >= BESIDE_MAX {
            self.0.pop_front();
        }
        self.0.push_back(at);
    }

    /// Takes those that left within so much time; earlier ones are forgotten.
    fn take(&mut self, first: Instant, last: Instant) -> usize {
        let before = self.0.partition_point(|at| *at < first);
        let until = self.0.partition_point(|at| *at <= last);
        self.0.drain(..until);
        until - before
    }
}

#[derive(Clone, Debug, Default)]
struct Counts {
    waiting: Vec<Packet>,
    /// The receiver's word on packets, in the order of sending, and the answers that show their delays.
    fates: VecDeque<ToldFate>,
    answers: ToldAnswers,
    /// The times from which on packets went over another link.
    begins: VecDeque<Instant>,
    run: Run,
    longest: LongestLately,
    delays: Delays,
    epoch: Epoch,
    closed: Apportioned,
    sent: f64,
    lost: f64,
    /// Whether wrong bits and loss at random are to be told apart better.
    is_unclear: bool,
}

impl LossCauses {
    /// Counts a packet of so many octets that left at `at` and arrived, or was lost, as was told `now`.
    pub fn note(&mut self, now: Instant, at: Instant, octets: usize, is_lost: bool) {
        if self.is_told {
            if let Some(counts) = self.counts.as_mut().filter(|_| !is_lost) {
                counts.answers.note(now, at);
            }
            return;
        }
        if self.counts.is_none() && !is_lost {
            return;
        }
        self.outcomes += 1;
        let counts = self.counts.get_or_insert_default();
        counts.waiting.push(Packet {
            at,
            told_at: now,
            octets,
            is_lost,
            repeated: None,
        });
        if counts.waiting.len() >= WAITING {
            counts.count(COUNTED, &mut self.beside);
        }
    }

    /// Sets whether the receiver says of each packet whether it arrived: [`LossCauses::note_told`] follows.
    pub fn set_told(&mut self, is_told: bool) {
        if self.is_told != is_told {
            self.is_told = is_told;
            if let Some(counts) = &mut self.counts {
                counts.waiting.clear();
                counts.fates.clear();
            }
        }
    }

    /// Counts a packet of so many octets that left at `at` and arrived, or was lost, as the receiver says. Packets are told in
    /// the order of sending.
    pub fn note_told(&mut self, at: Instant, octets: usize, is_lost: bool) {
        if !self.is_told || (self.counts.is_none() && !is_lost) {
            return;
        }
        self.outcomes += 1;
        let counts = self.counts.get_or_insert_default();
        counts.fates.push_back(ToldFate {
            at,
            octets,
            is_lost,
        });
        if counts.fates.len() >= WAITING {
            counts.count_told(COUNTED, &mut self.beside);
        }
    }

    /// Notes that packets which left from now on go over another link than those before, so that losses have other reasons and
    /// delays another least.
    pub fn begin_anew(&mut self, now: Instant) {
        if let Some(counts) = &mut self.counts {
            if counts.begins.len() >= BEGINS_MAX {
                counts.begins.pop_front();
            }
            counts.begins.push_back(now);
        }
    }

    /// Notes that a packet left of which nobody tells whether it arrived: a probe of the layer below, say.
    pub fn note_beside(&mut self, at: Instant) {
        if !self.is_told {
            self.beside.note(at);
        }
    }

    /// Counts packets of which nobody would know which one arrived, if one had: all were lost, and the last left at `at`.
    pub fn note_repeated(&mut self, now: Instant, at: Instant, times: u16) {
        if let Some(counts) = self.counts.as_mut().filter(|_| !self.is_told) {
            self.outcomes += 1;
            counts.waiting.push(Packet {
                at,
                told_at: now,
                octets: 0,
                is_lost: true,
                repeated: Some(times),
            });
            if counts.waiting.len() >= WAITING {
                counts.count(COUNTED, &mut self.beside);
            }
        }
    }

    /// Counts a packet that was counted as lost for one that arrived. If it is too late for that, nothing changes.
    pub fn take_back(&mut self, at: Instant, octets: usize) {
        let Some(counts) = &mut self.counts else {
            return;
        };
        let is_it = |one: &Packet| one.is_lost && one.at == at && one.octets == octets;
        if let Some(place) = counts.waiting.iter().rposition(is_it) {
            // Its delay is unknown, and longer than others'.
            counts.waiting.remove(place);
            self.outcomes += 1;
        }
    }

    /// The number of calls that changed what is known: while it stays, so does [`LossCauses::by_cause`], which takes time.
    pub const fn outcomes(&self) -> u64 {
        self.outcomes
    }

    /// Whether packets of other lengths would show what is not known yet: how many losses wrong bits have caused.
    pub fn is_unclear(&self) -> bool {
        self.counts.as_ref().is_some_and(|counts| counts.is_unclear)
    }

    /// The losses until now; `None` before the first.
    pub fn by_cause(&self) -> Option<LossByCause> {
        let mut counts = self.counts.clone()?;
        let mut beside = self.beside.clone();
        counts.count(usize::MAX, &mut beside);
        counts.count_told(usize::MAX, &mut beside);
        counts.end_run(None, &mut beside);
        counts.close();
        (counts.lost > 0.0).then(|| counts.shares())
    }
}

impl Counts {
    /// Counts the oldest of those that wait.
    fn count(&mut self, packets: usize, beside: &mut Beside) {
        self.waiting.sort_by_key(|one| one.at);
        let mut left = packets.min(self.waiting.len());
        while left > 0 {
            let same_link = match self.begins.front() {
                Some(begin) => self.waiting.partition_point(|one| one.at < *begin),
                None => self.waiting.len(),
            };
            if same_link == 0 {
                self.begin_anew(beside);
            } else {
                let counted = left.min(same_link);
                self.count_waiting(counted, same_link, beside);
                left -= counted;
            }
        }
        self.close_full();
    }

    /// Counts the oldest of those that wait; so many of them went over the same link.
    fn count_waiting(&mut self, packets: usize, same_link: usize, beside: &mut Beside) {
        // Answers that come together were waited for by the oldest of what they tell of; the newest one shows the delay.
        let delay_of = |one: &Packet| one.told_at.saturating_since(one.at);
        let mut told: Vec<(Instant, Duration)> = self
            .waiting
            .iter()
            .take(same_link)
            .filter(|one| !one.is_lost)
            .map(|one| (one.told_at, delay_of(one)))
            .collect();
        told.sort_unstable();
        told.dedup_by_key(|(at, _)| *at);
        self.delays
            .look(told.iter().map(|(_, delay)| *delay).collect());
        let full = self.delays.full();
        let counted: Vec<Packet> = self.waiting.drain(..packets).collect();
        for one in counted {
            if !one.is_lost {
                let place = told.binary_search_by_key(&one.told_at, |(at, _)| *at);
                let delay = place.map_or_else(|_| delay_of(&one), |place| told[place].1);
                self.on_arrived(Arrived { at: one.at, delay }, one.octets, full, beside);
            } else if let Some(times) = one.repeated {
                self.run.begin(one.at);
                self.run.repeated += usize::from(times);
            } else {
                self.run.note(one.at, one.octets);
            }
        }
    }

    /// Counts the oldest of those of which the receiver has told.
    fn count_told(&mut self, packets: usize, beside: &mut Beside) {
        let mut left = packets.min(self.fates.len());
        while left > 0 {
            let same_link = match self.begins.front() {
                Some(begin) => self.fates.partition_point(|one| one.at < *begin),
                None => self.fates.len(),
            };
            if same_link == 0 {
                self.begin_anew(beside);
            } else {
                let counted = left.min(same_link);
                self.count_fates(counted, beside);
                left -= counted;
            }
        }
        self.close_full();
    }

    /// Counts the oldest of those of which the receiver has told, which went over the same link.
    fn count_fates(&mut self, packets: usize, beside: &mut Beside) {
        let Some(last) = packets.checked_sub(1).and_then(|last| self.fates.get(last)) else {
            return;
        };
        let last = last.at;
        let delays = self.answers.delays();
        self.delays.look(delays.until(last));
        self.answers.forget(last);
        let full = self.delays.full();
        let counted: Vec<ToldFate> = self.fates.drain(..packets).collect();
        for one in counted {
            if one.is_lost {
                self.run.note(one.at, one.octets);
            } else {
                let delay = delays.of(one.at);
                self.on_arrived(Arrived { at: one.at, delay }, one.octets, full, beside);
            }
        }
    }

    /// Begins to count what went over another link.
    fn begin_anew(&mut self, beside: &mut Beside) {
        self.begins.pop_front();
        self.end_run(None, beside);
        self.close();
        self.delays = Delays::default();
    }

    /// Shares out the losses of an epoch that is full.
    fn close_full(&mut self) {
        self.look();
        if self.epoch.sent >= EPOCH {
            self.close();
        }
    }

    fn look(&mut self) {
        let either = [LossCause::BitErrors, LossCause::Random];
        let closed: f64 = either
            .map(|cause| self.closed.by_cause[cause as usize])
            .iter()
            .sum();
        let other = closed + self.epoch.lost_elsewhere();
        let error = self.epoch.octet_losses().error;
        let variance = self.closed.variance[LossCause::BitErrors as usize] + error * error;
        let sent = self.sent + self.epoch.sent - self.epoch.lost;
        self.is_unclear = other > SHARE_WORTH * self.lost
            && other > LOSS_WORTH * sent
            && variance.sqrt() > WORTH_KNOWING * self.lost;
    }

    fn on_arrived(
        &mut self,
        arrived: Arrived,
        octets: usize,
        full: Option<Duration>,
        beside: &mut Beside,
    ) {
        let is_full = full.is_some_and(|full| arrived.delay >= full);
        let behind = Behind {
            at: arrived.at,
            is_full,
        };
        self.end_run(Some(behind), beside);
        self.longest.note(octets);
        let time = self.longest.time();
        let group = self.epoch.group();
        if is_full {
            group.full += 1.0;
        } else {
            group.lengths.note(octets, false);
            group.runs.note_arrived(time);
        }
        self.epoch.on_counted(1, 0);
    }

    /// Counts the packets lost in a row; with `None` nobody knows yet what is behind them.
    // The packet in front of them is no sign: its answer may have waited for one behind them.
    fn end_run(&mut self, behind: Option<Behind>, beside: &mut Beside) {
        let run = core::mem::take(&mut self.run);
        let mut all = run.lost + run.repeated;
        let (Some(first), Some(last)) = (run.first, run.last) else {
            return;
        };
        let lasted = last.saturating_since(first);
        let share = (self.epoch.lost / self.epoch.sent.max(1.0)).clamp(0.01, 0.9);
        let chance = libm::pow(share, all as f64);
        let silent = behind.map_or(lasted, |behind| behind.at.saturating_since(first));
        let is_long = lasted >= OUTAGE_SENT && silent >= OUTAGE_MIN;
        let is_outage = all >= OUTAGE_LOST && is_long && chance < NO_CHANCE;
        if is_outage {
            all += beside.take(first, last);
        }
        run.octets
            .iter()
            .for_each(|octets| self.longest.note(*octets));
        let time = self.longest.time();
        let group = self.epoch.group();
        let lost = run.lost as f64;
        if is_outage {
            group.outage += all as f64;
        } else if behind.is_some_and(|behind| behind.is_full) {
            group.full += lost;
            group.full_lost += lost;
        } else {
            run.octets
                .iter()
                .for_each(|octets| group.lengths.note(*octets, true));
            group.runs.note(time, run.lost);
        }
        let counted = if is_outage { all } else { run.lost };
        let lost = u32::try_from(counted).unwrap_or(u32::MAX);
        if !is_outage {
            self.epoch.on_counted(lost, lost);
        }
        self.sent += f64::from(lost);
        self.lost += f64::from(lost);
    }

    /// Shares out the losses of an epoch.
    fn close(&mut self) {
        let epoch = core::mem::take(&mut self.epoch);
        let of_epoch = epoch.apportion();
        for cause in 0..CAUSES {
            self.closed.by_cause[cause] += of_epoch.by_cause[cause];
            self.closed.variance[cause] += of_epoch.variance[cause];
        }
        self.sent += epoch.sent - epoch.lost;
    }

    fn shares(&self) -> LossByCause {
        let Apportioned { by_cause, variance } = self.closed;
        let all: f64 = by_cause.iter().sum();
        let of = |cause: LossCause| by_cause[cause as usize];
        // Three packets more or less are at the edges of every count.
        let error_of = |variance: f64| INTERVAL * variance.sqrt() + 3.0;
        // Wrong bits and loss at random share what is none of the others.
        let either = (of(LossCause::BitErrors) + of(LossCause::Random)).max(0.0);
        let others = [LossCause::Burst, LossCause::Queue, LossCause::Outage];
        let others: f64 = others.map(|cause| variance[cause as usize]).iter().sum();
        let either_most = (either + error_of(others)).min(all);
        // What is not seen to be above none is not claimed: most links have one of the two.
        let unseen = SEEN * variance[LossCause::BitErrors as usize].sqrt();
        let bits = match of(LossCause::BitErrors) {
            bits if bits < unseen => 0.0,
            bits if either - bits < unseen => either,
            bits => bits,
        };
        let share = |cause: LossCause| {
            let error = error_of(variance[cause as usize]);
            let (likeliest, most) = match cause {
                LossCause::BitErrors => (bits, either_most),
                LossCause::Random => (either - bits, either_most),
                _ => (of(cause), all),
            };
            let (low, high) = (of(cause) - error, of(cause) + error);
            let [share, low, high] = [likeliest, low.min(likeliest), high.max(likeliest)]
                .map(|packets| packets.clamp(0.0, most) / all);
            CauseShare {
                cause,
                share,
                low,
                high,
            }
        };
        LossByCause {
            sent: self.sent,
            lost: self.lost,
            shares: LossCause::ALL.map(share),
        }
    }
}

#[cfg(test)]
mod tests;
