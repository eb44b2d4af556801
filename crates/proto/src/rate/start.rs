//! The first search: a short train shows the link's rate by the spacing in which it arrives. A few times as many
//! datagrams prove it; without proof the rate grows fourfold a round trip until it is there, or until a queue or a cut
//! share shows sooner.

use super::evidence::{Evidence, Shares, Verdict};
use super::queue_gauge::QueueGauge;
use super::window::{Point, Window};
use crate::units::{Duration, Instant};
use proof::{Outcome, Proof};
use round::Round;

mod proof;
mod round;

/// Datagrams in the first train: the first window of RFC 6928.
pub(super) const TRAIN_DATAGRAMS: u64 = 10;
/// The growth in a round trip.
const GROWTH: f64 = 4.0;
/// The part of the rate found before that the train must show for it to be tried: trains err by that.
const AS_BEFORE: f64 = 0.5;
/// The share of the train's rate with which the search ends: trains err.
const OF_TRAIN: f64 = 0.9;
/// A train is as long when it arrives, at least, in times of when it left: otherwise its sender spaced it, not the link.
const STRETCHED: f64 = 1.5;
/// The pause for lack of data that ends a train before it is whole.
const PAUSE: Duration = Duration::from_millis(20);
/// The share of the rate that a round must have been sent at to say something about it.
const USED: f64 = 0.7;
/// The share of what was sent that passes when a queue grows, whoever sent little.
const OVERLOADED: f64 = 0.9;
/// The most that may have gone through the link, as a multiple of what arrived of the train.
const MISSING: f64 = 1.5;
/// The share that arrives below which a round is ended early, once so many datagrams were sent: the first round of
/// all may be far above the link.
const POOR: f64 = 0.15;
const POOR_SENT: f64 = 96.0;
/// The same, for the share as a part of the first train's.
const CUT_SHARE: f64 = 0.25;
const CUT_SENT: f64 = 32.0;
/// And the part of it below which less is sent, where it stays below through the round: a policer drops evenly.
const STAYS_CUT: f64 = 0.7;
/// The arrivals of a faster round, as a multiple of those of the slowest, up to which no more is carried; and the share of
/// the slowest below which that one was too fast as well.
const FLAT: f64 = 1.15;
const FLAT_SHARE: f64 = 0.7;
/// Times that the rate is lowered for one of these, to so many times what arrived, and the growth from there.
const LOWERED_MAX: u32 = 3;
const ABOVE_ARRIVING: f64 = 1.5;
const GROWTH_LOWERED: f64 = 2.0;
/// Rounds in which the path mostly held what was sent and which are passed over for it.
const PAUSED_MAX: u32 = 3;
/// A round is faster than another one from this multiple of its rate on.
const FASTER: f64 = 1.3;
/// Reports that a round needs.
const REPORTS_MIN: u32 = 3;
/// Datagrams of the train that need not be heard of before the proof begins.
const UNHEARD: u64 = 2;
/// The seconds that growth would take behind its first round from which on the train's rate is proven: what proves it is
/// lost where it is wrong.
const PROVEN_FROM: f64 = 0.15;
/// The least gain, in seconds, for which a rate that is one round away is proven: growth's round sends a quarter of it
/// anyway, so little more is at stake. The gain is that of datagrams which fill the round trip at the present rate.
const PROVEN_SOONER: f64 = 0.03;

/// The result of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// It goes on at this rate, in octets a second.
    At(f64),
    /// It ends: the link carries this.
    Found {
        /// The rate.
        rate: f64,
        /// The reason for the end.
        why: Ended,
    },
}

/// The reason for which a search ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// All that was looked for is carried: the train's rate, what was found before, or the bound.
    Carried,
    /// A queue grew, or far too little arrived.
    Queue,
    /// Less of it arrived, and no queue showed.
    Cut,
}

/// The circumstances of a report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) delays: &'a QueueGauge,
    /// The number of the last datagram that left.
    pub(super) sent_last: u64,
    /// The least round trip in seconds.
    pub(super) round_trip: f64,
    /// The octets of a datagram.
    pub(super) packet: f64,
    /// The most octets in a second.
    pub(super) bound: f64,
}

/// Datagrams that left one behind the other.
#[derive(Clone, Copy, Debug)]
struct Train {
    /// The numbers of the first and of the last of them.
    first: u64,
    last: u64,
    count: u64,
    /// The time at which the last one left.
    left_at: Instant,
    /// Whether each of the others had one waiting behind it.
    busy: bool,
    /// Octets that were under way before it.
    behind: u64,
}

impl Train {
    const fn is_whole(&self) -> bool {
        self.count == TRAIN_DATAGRAMS
    }
}

/// The state of the search.
#[derive(Clone, Debug)]
pub(super) struct Start {
    /// The train, once there was enough to send for one.
    train: Option<Train>,
    /// Whether something was heard of it, or of what left behind it.
    heard: bool,
    /// Whether there was always something to send since the train or this round began.
    busy: bool,
    train_first: Option<Point>,
    train_newest: Option<Point>,
    /// Octets of datagrams that followed each other, and the seconds between them.
    neighbours: (f64, f64),
    by_train: Option<f64>,
    /// The rate that was found before.
    first: Option<f64>,
    /// The link's rate by an earlier train, of a search that begins again.
    by_earlier: Option<f64>,
    /// The rate of this round.
    pub(super) rate: f64,
    /// The last datagram before the round's.
    round_after: u64,
    round: Option<Round>,
    /// The train's rate, tried by so many datagrams as would leave in that round trip anyway.
    proof: Proof,
    /// The shares of the first round, which is the slowest.
    pub(super) slowest: Option<Shares>,
    /// The shares of the last round.
    pub(super) newest: Option<Shares>,
    /// Rounds that were passed over since the path held what was sent.
    paused: u32,
    /// Times that the rate was lowered.
    lowered: u32,
}

impl Start {
    /// A search. `first` is the rate that was found before.
    pub(super) const fn new(first: Option<f64>) -> Self {
        Self {
            train: None,
            heard: false,
            busy: true,
            train_first: None,
            train_newest: None,
            neighbours: (0.0, 0.0),
            by_train: None,
            first,
            by_earlier: None,
            rate: 0.0,
            round_after: 0,
            round: None,
            proof: Proof::Open,
            slowest: None,
            newest: None,
            paused: 0,
            lowered: 0,
        }
    }

    /// A search that begins again at this rate, after a train that showed `by_train`.
    pub(super) const fn again(rate: f64, by_train: f64) -> Self {
        Self {
            by_earlier: Some(by_train),
            rate,
            ..Self::new(None)
        }
    }

    /// Tries this rate right behind the train, as one that was found before.
    pub(super) const fn try_first(&mut self, rate: f64) {
        self.first = Some(rate);
    }

    /// Notes a datagram that leaves while so many octets are under way; `more` says whether another one waits. What
    /// leaves alone is no train: its sender spaced it, not the link.
    pub(super) fn on_sent(&mut self, now: Instant, number: u64, under_way: u64, more: bool) {
        self.busy &= more;
        self.proof.on_sent(number, more);
        let pauses = |train: &Train| !train.busy && now.saturating_since(train.left_at) > PAUSE;
        if self
            .train
            .is_some_and(|train| !train.is_whole() && pauses(&train))
        {
            self.forget_train();
        }
        match &mut self.train {
            None if more => {
                self.busy = true;
                self.train = Some(Train {
                    first: number,
                    last: number,
                    count: 1,
                    left_at: now,
                    busy: true,
                    behind: under_way,
                });
            }
            Some(train) if !train.is_whole() => {
                (train.last, train.count, train.left_at) = (number, train.count + 1, now);
                train.busy &= more || train.is_whole();
            }
            _ => {}
        }
    }

    fn forget_train(&mut self) {
        self.train = None;
        (self.train_first, self.train_newest) = (None, None);
        (self.neighbours, self.by_train) = ((0.0, 0.0), None);
    }

    /// The rate of what may leave now; `None` for the train and what is before it.
    pub(super) fn pace(&self) -> Option<f64> {
        let is_whole = self.train.is_some_and(|train| train.is_whole());
        // What was found before is tried right behind the train, if the peer was heard before.
        let goes_on = self.heard || (self.first.is_some() && is_whole);
        let rate = self.proof.pace().unwrap_or(self.rate);
        (goes_on && rate > 0.0).then_some(rate)
    }

    /// The octets that were under way before the train, or are now: what leaves alone before it is not held.
    pub(super) fn behind(&self, under_way: u64) -> u64 {
        self.train.map_or(under_way, |train| train.behind)
    }

    /// The link's rate by the train's spacing; 0 without one.
    pub(super) fn by_train(&self) -> f64 {
        self.shown().unwrap_or_default()
    }

    /// The link's rate by this train, or an earlier one.
    fn shown(&self) -> Option<f64> {
        self.by_train.or(self.by_earlier)
    }

    /// Takes a report.
    pub(super) fn on_point(&mut self, point: Point, known: &Known<'_>) -> Step {
        let Known {
            packet,
            round_trip,
            bound,
            ..
        } = *known;
        let number = point.sent.number;
        let train = self.train.filter(|train| number >= train.first);
        if train.is_none_or(|train| number <= train.last) {
            if let Some(train) = train {
                self.on_train(point, train.busy);
                let is_spaced = !train.busy && self.by_train.is_none();
                if is_spaced && train.is_whole() && number == train.last {
                    // Its sender spaced it: it says nothing, and another one is awaited.
                    self.forget_train();
                    return Step::At(self.rate);
                }
                self.heard |= train.is_whole() && !is_spaced;
            }
            if self.rate <= 0.0 && self.first.is_some() {
                // What left before anything was heard had no pace: a few that leave alone would stretch the round, at the
                // end of which what was found before is given up.
                self.round_after = known.sent_last;
            }
            let most = GROWTH * TRAIN_DATAGRAMS as f64 * packet / round_trip;
            let shown = self.shown().unwrap_or(most / GROWTH) * OF_TRAIN;
            self.rate = shown.min(most);
            if let Some(first) = self.first {
                // What was found before needs no growth, unless the train says that the link is slower now.
                let first = OF_TRAIN * first;
                let slower = self.by_train.is_some_and(|rate| rate < AS_BEFORE * first);
                self.rate = if slower {
                    self.rate
                } else {
                    first.max(self.rate)
                };
            }
            self.rate = self.rate.min(bound);
            if train.is_some_and(|train| number + UNHEARD >= train.last) {
                self.begin_proof(known);
            }
            return Step::At(self.rate);
        }
        self.heard = true;
        if self.rate <= 0.0 {
            // The whole train was lost.
            self.rate = (TRAIN_DATAGRAMS as f64 * packet / round_trip).min(bound);
        }
        if self.ends_proof(point, known) {
            return Step::At(self.rate);
        }
        if self.proof.is_under_way() {
            return Step::At(self.rate);
        }
        if number <= self.round_after {
            self.proof.add_slow(point);
            return Step::At(self.rate);
        }
        if let Some(slow) = self.proof.take_slow(packet) {
            self.slowest.get_or_insert(slow);
        }
        let Some(round) = &mut self.round else {
            self.round = Some(Round::begin(point));
            self.round_after = number;
            return Step::At(self.rate);
        };
        round.add(point, packet);
        let whole = *round;
        let round = whole.window;
        let datagrams = round.sent() / packet;
        let long = datagrams >= 8.0 && round.arrived() >= round::ARRIVED * packet;
        let least = known.delays.queue_least(packet, self.rate);
        let queued = round.rise() > 2.0 * least || (long && round.least > least);
        let of_train = self.train_share(packet);
        let share = round.arrived() / round.sent().max(1.0);
        let poor = (datagrams >= POOR_SENT && share < POOR)
            || (datagrams >= CUT_SENT && share < CUT_SHARE * of_train);
        // Whether there was a queue or the path held what came shows in what comes next.
        let may_stall = round.is_mostly_held() && self.paused < PAUSED_MAX;
        let ends = long || ((queued || poor) && !may_stall);
        if round.reports < REPORTS_MIN || !ends {
            return Step::At(self.rate);
        }
        self.end_round(&whole, known, queued, poor)
    }

    /// Takes a report for the proof. Returns whether it is the one that proves the rate.
    fn ends_proof(&mut self, point: Point, known: &Known<'_>) -> bool {
        let outcome = self.proof.on_point(point, known);
        match outcome {
            Some(Outcome::Proven(proven)) => {
                // What left since then at the pace of before is what the round is compared with.
                self.rate = proven.min(known.bound);
                self.round = None;
                self.round_after = known.sent_last;
            }
            // A bucket is empty now: less shows what the medium loses.
            Some(Outcome::Missing) => {
                self.rate /= 2.0;
                self.round_after = known.sent_last;
            }
            Some(Outcome::Open) | None => {}
        }
        matches!(outcome, Some(Outcome::Proven(_)))
    }

    /// Takes a report on the train. Of datagrams that followed each other the spacing is the link's. Where
    /// one between them is missing, it may have been lost behind the link and took its time there, or
    /// dropped before it and took none.
    fn on_train(&mut self, point: Point, busy: bool) {
        let (Some(first), Some(last)) = (self.train_first, self.train_newest.replace(point)) else {
            self.train_first = Some(point);
            return;
        };
        if point.sent.number == last.sent.number + 1 {
            self.neighbours.0 += (point.sent.octets - last.sent.octets) as f64;
            self.neighbours.1 += point.arrived_at - last.arrived_at;
        }
        let apart = point.sent.number - first.sent.number;
        let seconds = point.arrived_at - first.arrived_at;
        let sending = point.sent.at.saturating_since(first.sent.at).as_secs_f64();
        let is_link_s = busy || seconds > STRETCHED * sending;
        if apart >= 2 && seconds > 0.0 && is_link_s {
            let sent = (point.sent.octets - first.sent.octets) as f64 / seconds;
            let arrived = point.arrived.saturating_sub(first.arrived) as f64 / seconds;
            let (octets, between) = self.neighbours;
            let carried = if between > 0.0 {
                octets / between
            } else {
                MISSING * arrived
            };
            self.by_train = Some(sent.min(carried));
        }
    }

    /// Tries the rate of a train that was heard of, if that is much more than what is sent else.
    fn begin_proof(&mut self, known: &Known<'_>) {
        let top = (self.by_train() * OF_TRAIN).min(known.bound);
        let is_new = matches!(self.proof, Proof::Open) && self.first.is_none();
        let mut grown = GROWTH * self.rate;
        let mut round_trips = 0.0;
        while grown > 0.0 && grown < top {
            grown *= GROWTH;
            round_trips += 1.0;
        }
        let is_worth_it = if round_trips > 0.0 {
            round_trips * known.round_trip > PROVEN_FROM
        } else {
            known.round_trip * (1.0 - self.rate / top.max(self.rate)) > PROVEN_SOONER
        };
        if is_new && is_worth_it {
            let share = self.share_so_far(known.packet);
            self.proof = Proof::begin(known.sent_last, top, share);
        }
    }

    /// The share that arrived of what was heard of the train.
    fn share_so_far(&self, packet: f64) -> f64 {
        let (Some(first), Some(last)) = (self.train_first, self.train_newest) else {
            return 0.0;
        };
        let apart = (last.sent.number - first.sent.number) as f64;
        let arrived = last.arrived.saturating_sub(first.arrived) as f64 / packet;
        (arrived + 1.0) / (apart + 1.0)
    }

    /// The share of the train that arrived.
    fn train_share(&self, packet: f64) -> f64 {
        let (Some(first), Some(last)) = (self.train_first, self.train_newest) else {
            return 0.0;
        };
        let arrived = last.arrived.saturating_sub(first.arrived) as f64 / packet + 1.0;
        arrived / TRAIN_DATAGRAMS as f64
    }

    fn end_round(&mut self, whole: &Round, known: &Known<'_>, queued: bool, poor: bool) -> Step {
        let round = &whole.window;
        self.round = None;
        self.round_after = known.sent_last;
        // Of a queue that grew only at the end nobody knows whether the link was in use before.
        let least = known.delays.queue_least(known.packet, self.rate);
        let stands = round.least > least;
        let is_used = core::mem::replace(&mut self.busy, true)
            || round.sent_rate() >= USED * self.rate
            || (stands && round.passed_rate() < OVERLOADED * round.sent_rate());
        if round.is_mostly_held() && self.paused < PAUSED_MAX {
            // A path that stalls says nothing of its rate; one that does in every round delivers by the clock.
            self.paused += 1;
            return Step::At(self.rate);
        }
        if !is_used {
            // Whoever has little to send learns little. The rate stays for when there is more.
            return Step::At(self.rate);
        }
        let shares = Shares {
            rate: round.sent_rate(),
            share: round.arrived() / round.sent().max(1.0),
            datagrams: round.sent() / known.packet,
            edges: 0.0,
        };
        self.newest = Some(shares);
        let may_lower = self.lowered < LOWERED_MAX;
        let stays_cut = !queued && whole.stays_below(STAYS_CUT * self.train_share(known.packet));
        let Some(slowest) = self.slowest else {
            if poor && !may_lower {
                let rate = round.sent_rate();
                let why = Ended::Queue;
                return Step::Found { rate, why };
            }
            if poor || (may_lower && stays_cut && shares.datagrams >= CUT_SENT) {
                // The medium, or far too much: less tells, and the search goes on from there.
                return self.lower(round, self.rate);
            }
            self.slowest = Some(shares);
            return self.grow(round, known, queued);
        };
        let evidence = if self.lowered > 0 && stays_cut {
            Evidence::of_even_losses()
        } else {
            Evidence::default()
        };
        let faster = shares.rate > FASTER * slowest.rate;
        let cut = poor || faster && evidence.of_pair(shares, slowest) == Verdict::Full;
        if !cut {
            return self.grow(round, known, queued);
        }
        let flat = faster
            && shares.rate * shares.share < FLAT * slowest.rate * slowest.share
            && slowest.share < FLAT_SHARE;
        if flat && may_lower && !queued {
            // As much arrived of the slowest round: that one may have been above the link, too.
            self.slowest = None;
            return self.lower(round, slowest.rate);
        }
        self.newest = Some(slowest);
        // The slowest round is the least likely to have been cut.
        let carried = round.arrived_rate() / slowest.share.max(0.05);
        let rate = carried.min(round.passed_rate());
        let why = if queued { Ended::Queue } else { Ended::Cut };
        Step::Found { rate, why }
    }

    /// Goes on from half of a rate that was too fast, or less.
    fn lower(&mut self, round: &Window, too_fast: f64) -> Step {
        self.lowered += 1;
        let less = ABOVE_ARRIVING * round.arrived_rate();
        self.rate = less.min(too_fast / 2.0);
        Step::At(self.rate)
    }

    /// Ends the search at a queue or at the train's rate, else goes on with more.
    fn grow(&mut self, round: &Window, known: &Known<'_>, queued: bool) -> Step {
        if queued {
            let rate = round.passed_rate();
            let why = Ended::Queue;
            return Step::Found { rate, why };
        }
        // Without a train what was found before is as good.
        let top = (self.shown().or(self.first))
            .map_or(f64::MAX, |rate| rate * OF_TRAIN)
            .min(known.bound);
        if self.rate >= 0.99 * top {
            let rate = self.rate;
            let why = Ended::Carried;
            return Step::Found { rate, why };
        }
        let growth = if self.lowered > 0 {
            GROWTH_LOWERED
        } else {
            GROWTH
        };
        self.rate = (growth * self.rate).min(top);
        Step::At(self.rate)
    }
}

#[cfg(test)]
mod tests;
