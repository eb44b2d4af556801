//! The choice between UDP with its checksum and without, for one peer.
//!
//! Without a checksum damaged datagrams arrive, and parity mends them; but some middleboxes drop such datagrams, and no
//! segmentation offload takes them. So two things are asked of the path, in this order
//! ([ADR 0033](../../../../docs/adr/0033-damaged-datagrams-count.md), section 1).
//!
//! 1. *Are they carried?* Pairs of probes, a small one with a checksum and one as long as data without, as soon as the
//!    peer is there. Where the peer tells that those without came damaged, the second question is answered as well.
//! 2. *Does damage arrive?* Data leaves armoured and unchecked for some hundred datagrams, and the peer's damage reports say
//!    what became of them. The first data on a path is such a trial: a search for the rate that begins where most datagrams are
//!    lost takes seconds to mend. Another one can only be worth it where datagrams are lost.
//!
//! # Promises
//! - Data leaves unchecked only where most such probes were answered lately.
//! - Where so many bits are wrong that hardly anything checked arrives, reports of losses do not arrive either: a trial begins
//!   where checked probes fared worse than unchecked ones, and where data was told nothing of for seconds.
//! - It leaves checked again soon after nothing of it is told to arrive any more, and when the peer falls silent.
//! - A trial that shows no damage, or that nothing arrives, is repeated after 10 s, then after twice that each time, to ten minutes.

use super::damage_reports::DamageCounts;
use super::reports::Passage;
use core::fmt;
use fulmar_proto::units::{Duration, Instant};

/// Pairs of probes for one answer to whether unchecked datagrams are carried.
const PAIRS: u32 = 8;
/// Answers to probes of one form that show that the path carries that form.
const CARRIED_ENOUGH: u32 = PAIRS / 2;
/// Checked probes that were answered less often than unchecked ones, which shows that their checksum cost them.
const FARED_WORSE: u32 = 3;
/// The time between two pairs, unless half a round trip is longer.
const PAIR_EVERY: Duration = Duration::from_millis(25);
/// The time for the last answers, beside two round trips.
const ANSWER_TIME: Duration = Duration::from_millis(500);
/// The pause before the next question where unchecked datagrams are not carried.
const ASK_AGAIN: Duration = Duration::from_secs(600);
/// The pause before the next question where too few probes of either form were answered.
const ASK_SOON: Duration = Duration::from_secs(2);

/// Datagrams over which losses are looked at.
const LOOK_DATAGRAMS: u64 = 100;
/// The least share of lost datagrams that makes a trial worth it: damage is at most what is lost.
const LOSS_MIN: f64 = 0.005;
/// The losses that make a look shorter where their share is [`LOSS_HEAVY`]: hardly anything passes, and little leaves.
const LOST_ENOUGH: u64 = 8;
const LOSS_HEAVY: f64 = 0.25;
/// Checked data datagrams of which nothing was told, and for how long beside two round trips, before a trial begins. An outage
/// is known earlier, and reports come once a second.
const UNHEARD_MANY: u64 = 8;
const UNHEARD_TIME: Duration = Duration::from_secs(4);
/// Datagrams that arrive in a trial, and its longest time.
const TRIAL_DATAGRAMS: u64 = 512;
const TRIAL_MAX: Duration = Duration::from_secs(5);
/// Datagrams that arrive in a trial before it ends for its time: those of an idle session say nothing.
const TRIAL_MIN: u64 = 64;
/// The pause after the first trial that shows no damage. It doubles with each.
const TRIAL_AGAIN: Duration = Duration::from_secs(10);
const TRIAL_AGAIN_MAX: Duration = Duration::from_secs(600);
/// The damaged datagrams of a trial that decide for data without checksum.
const DAMAGED_MIN: u64 = 4;
/// Their least share: at a bit error rate of 1e-6 armour costs what it saves.
const SHARE_IN: f64 = 0.013;
/// The share of damaged ones below which data has its checksum again, over [`WINDOW_DATAGRAMS`] and [`WINDOW`].
const SHARE_OUT: f64 = 0.006;
const WINDOW_DATAGRAMS: u64 = 1_000;
const WINDOW: Duration = Duration::from_secs(10);
/// Unchecked datagrams of which the peer told nothing, and the time beside two round trips, after which they count as not
/// carried: two reports on a clean path, which come once a second.
const UNTOLD_MANY: u64 = 64;
const UNTOLD_TIME: Duration = Duration::from_millis(2_500);
/// The same for a flow that sends little. It is counted anew after a pause of [`UNTOLD_FEW_TIME`].
const UNTOLD_FEW: u64 = 8;
const UNTOLD_FEW_TIME: Duration = Duration::from_secs(4);
/// Octets that leave before the first word is missed: an end tells of damage once it has seen 25,000.
const UNTOLD_BYTES: u64 = 50_000;

/// The reason for a choice between the two forms of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumReason {
    /// So many of those that arrived without checksum were damaged.
    Damage(DamagedShare),
    /// Datagrams without checksum are carried. Checked ones serve until losses suggest damage.
    Carried,
    /// Datagrams without checksum do not arrive.
    NotCarried,
    /// The peer reported nothing about datagrams that left without checksum.
    Untold,
    /// So few of those that arrived without checksum were damaged that parity costs more.
    NoDamage(DamagedShare),
    /// The peer fell silent.
    Silence,
    /// The peer lets no damage in.
    NotAgreed,
}

impl fmt::Display for ChecksumReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damage(seen) => write!(f, "{seen}, and are mended"),
            Self::NoDamage(seen) => write!(f, "{seen}: less than parity costs"),
            Self::Carried => f.write_str(
                "the path carries datagrams without checksum; they are tried again once some are lost",
            ),
            Self::NotCarried => {
                f.write_str("datagrams without checksum do not arrive: the path drops them")
            }
            Self::Untold => f.write_str("the peer told nothing of what left without checksum"),
            Self::Silence => f.write_str("the peer fell silent"),
            Self::NotAgreed => f.write_str(
                "the peer mends nothing that is damaged: its `carrier` is `udp`, or its release is older",
            ),
        }
    }
}

impl fmt::Display for DamagedShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (damaged, arrived, percent) = (self.damaged, self.arrived, 100.0 * self.share());
        write!(
            f,
            "of {arrived} datagrams that arrived without checksum {damaged} were damaged ({percent:.1} %)"
        )
    }
}

/// The damaged ones among datagrams that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedShare {
    /// Damaged datagrams, mended or not.
    pub damaged: u64,
    /// All that arrived.
    pub arrived: u64,
}

impl DamagedShare {
    /// The datagrams between two totals that the peer told.
    fn between(from: DamageCounts, until: DamageCounts) -> Self {
        let all = arrived(until).saturating_sub(arrived(from));
        Self {
            damaged: all.saturating_sub(until.whole.saturating_sub(from.whole)),
            arrived: all,
        }
    }

    /// The share, 0 of none.
    pub fn share(self) -> f64 {
        share(self.damaged, self.arrived)
    }
}

/// A decision on what leaves from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChecksumDecision {
    /// Whether data leaves armoured and without checksum.
    pub(super) is_unchecked: bool,
    /// The reason, unless data is merely tried.
    pub(super) why: Option<ChecksumReason>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The first pair of probes leaves at that time. `None`: the peer is not there, or does not mend damage.
    Waiting(Option<Instant>),
    Asking {
        pairs: u32,
        next_at: Instant,
        /// Checked and unchecked probes that were answered.
        answered: [u32; 2],
        /// The totals that the peer had told when it began.
        from: DamageCounts,
    },
    /// Checked data leaves. From `at` on, losses since `seen` decide whether a trial begins.
    Checked {
        at: Instant,
        seen: Passage,
    },
    /// `since` is the time of its first datagram.
    Trial {
        since: Option<Instant>,
        from: DamageCounts,
    },
    Unchecked {
        since: Instant,
        from: DamageCounts,
    },
}

/// The choice between UDP with its checksum and without it on the way to one peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChecksumChoice {
    phase: Phase,
    /// The time from one trial to the next.
    pause: Duration,
    /// Unchecked datagrams that left since the peer last told of one, and the time of the first.
    untold: u64,
    untold_bytes: u64,
    untold_since: Option<Instant>,
    untold_last: Instant,
    /// Checked data datagrams that left since the peer last told what arrived, and the time of the first.
    unheard: u64,
    unheard_since: Option<Instant>,
    /// Whether no unchecked probe of the last question was answered, though some checked ones were lost as well.
    was_refused: bool,
    /// Whether no data was tried without checksum on this path yet.
    is_untried: bool,
    told: DamageCounts,
    passed: Passage,
}

fn arrived(counts: DamageCounts) -> u64 {
    counts.whole + counts.mended + counts.beyond_repair
}

#[expect(clippy::cast_precision_loss, reason = "a share of some thousands")]
fn share(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64
}

impl ChecksumChoice {
    pub(super) const fn new() -> Self {
        Self {
            phase: Phase::Waiting(None),
            pause: TRIAL_AGAIN,
            untold: 0,
            untold_bytes: 0,
            untold_since: None,
            untold_last: Instant::START,
            unheard: 0,
            unheard_since: None,
            was_refused: false,
            is_untried: true,
            told: DamageCounts {
                whole: 0,
                mended: 0,
                beyond_repair: 0,
                corrected_symbols: 0,
            },
            passed: Passage {
                sent: 0,
                arrived: 0,
            },
        }
    }

    /// Whether data leaves without checksum now.
    pub(super) const fn is_unchecked(&self) -> bool {
        matches!(self.phase, Phase::Trial { .. } | Phase::Unchecked { .. })
    }

    /// Notes that the peer is there, or somewhere else, and mends damaged data, or does not.
    pub(super) fn begin(&mut self, now: Instant, mends: bool) -> Option<ChecksumDecision> {
        let was = self.is_unchecked();
        self.phase = Phase::Waiting(mends.then_some(now));
        self.pause = TRIAL_AGAIN;
        self.was_refused = false;
        self.is_untried = true;
        self.forget_unheard();
        was.then_some(ChecksumDecision {
            is_unchecked: false,
            why: None,
        })
    }

    /// Notes that an unchecked datagram of so many octets left.
    pub(super) fn on_sent(&mut self, now: Instant, octets: usize) {
        if now.saturating_since(self.untold_last) >= UNTOLD_FEW_TIME {
            self.forget_untold();
        }
        if let Phase::Trial { since, .. } = &mut self.phase {
            since.get_or_insert(now);
        }
        self.untold_last = now;
        self.untold += 1;
        self.untold_bytes += octets as u64;
        self.untold_since.get_or_insert(now);
    }

    /// Notes that data left with a checksum.
    pub(super) fn on_sent_checked(&mut self, now: Instant) {
        self.unheard += 1;
        self.unheard_since.get_or_insert(now);
    }

    const fn forget_unheard(&mut self) {
        self.unheard = 0;
        self.unheard_since = None;
    }

    /// The time at which a trial begins because nothing is told of checked data.
    fn unheard_until(&self, begins_at: Instant, round_trip: Duration) -> Option<Instant> {
        let since = self
            .unheard_since
            .filter(|_| self.unheard >= UNHEARD_MANY)?;
        Some((since + UNHEARD_TIME + round_trip * 2).max(begins_at))
    }

    /// Begins a trial, which lasts from the first datagram on.
    fn try_it(&mut self) -> ChecksumDecision {
        let from = self.told;
        self.phase = Phase::Trial { since: None, from };
        self.is_untried = false;
        self.forget_untold();
        self.forget_unheard();
        ChecksumDecision {
            is_unchecked: true,
            why: None,
        }
    }

    const fn forget_untold(&mut self) {
        self.untold = 0;
        self.untold_bytes = 0;
        self.untold_since = None;
    }

    /// The time until the next trial, which doubles.
    fn take_pause(&mut self) -> Duration {
        let next = (self.pause * 2).min(TRIAL_AGAIN_MAX);
        core::mem::replace(&mut self.pause, next)
    }

    fn leave(&mut self, ask_at: Instant, why: ChecksumReason) -> ChecksumDecision {
        self.phase = Phase::Waiting(Some(ask_at));
        self.decide(why)
    }

    fn decide(&mut self, why: ChecksumReason) -> ChecksumDecision {
        self.forget_untold();
        ChecksumDecision {
            is_unchecked: self.is_unchecked(),
            why: Some(why),
        }
    }

    fn check(&mut self, at: Instant, why: ChecksumReason) -> ChecksumDecision {
        let seen = self.passed;
        self.phase = Phase::Checked { at, seen };
        self.decide(why)
    }

    /// Notes that the link is held for down: whether it is the checksum that is missing is asked when it is up again.
    pub(super) fn on_down(&mut self, now: Instant) -> Option<ChecksumDecision> {
        if let Phase::Waiting(Some(at)) = &mut self.phase {
            // The path may be another one.
            *at = (*at).min(now + ASK_SOON);
        }
        self.forget_unheard();
        let why = ChecksumReason::Silence;
        self.is_unchecked().then(|| self.leave(now + ASK_SOON, why))
    }

    fn untold_until(&self, round_trip: Duration) -> Option<Instant> {
        if arrived(self.told) == 0 && self.untold_bytes < UNTOLD_BYTES {
            return None;
        }
        let wait = match self.untold {
            UNTOLD_MANY.. => UNTOLD_TIME,
            UNTOLD_FEW.. => UNTOLD_FEW_TIME,
            _ => return None,
        };
        Some(self.untold_since? + wait + round_trip * 2)
    }

    /// The time at which something is due.
    pub(super) fn next_at(&self, round_trip: Duration) -> Option<Instant> {
        match self.phase {
            Phase::Waiting(at) => at,
            Phase::Asking { next_at, .. } => Some(next_at),
            Phase::Checked { at, .. } => self.unheard_until(at, round_trip),
            Phase::Trial { since, .. } => {
                let end = since? + TRIAL_MAX;
                Some(self.untold_until(round_trip).map_or(end, |at| at.min(end)))
            }
            Phase::Unchecked { .. } => self.untold_until(round_trip),
        }
    }

    /// Whether a pair of probes is due; it counts as sent then.
    pub(super) fn ask(&mut self, now: Instant, round_trip: Duration) -> bool {
        let (pairs, answered, from) = match self.phase {
            Phase::Waiting(Some(at)) if at <= now => (0, [0, 0], self.told),
            Phase::Asking {
                pairs,
                next_at,
                answered,
                from,
            } if next_at <= now && pairs < PAIRS => (pairs, answered, from),
            _ => return false,
        };
        let pairs = pairs + 1;
        let wait = if pairs < PAIRS {
            PAIR_EVERY.max(round_trip / 2)
        } else {
            ANSWER_TIME + round_trip * 2
        };
        self.phase = Phase::Asking {
            pairs,
            next_at: now + wait,
            answered,
            from,
        };
        true
    }

    /// Takes the answer to a probe that left in one form.
    pub(super) fn on_answer(
        &mut self,
        now: Instant,
        was_unchecked: bool,
    ) -> Option<ChecksumDecision> {
        if let Phase::Asking { answered, .. } = &mut self.phase {
            answered[usize::from(was_unchecked)] += 1;
        }
        self.see_probes(now)
    }

    /// Decides for data without checksum if unchecked probes are carried and came damaged.
    fn see_probes(&mut self, now: Instant) -> Option<ChecksumDecision> {
        let Phase::Asking {
            from,
            answered: [_, unchecked],
            ..
        } = self.phase
        else {
            return None;
        };
        if unchecked == 0 {
            return None;
        }
        let seen = self.see_damage(now, from);
        if seen.is_none() && self.is_untried && unchecked >= CARRIED_ENOUGH {
            // Data may wait already, and a search for the rate that begins among losses takes long.
            return Some(self.try_it());
        }
        seen
    }

    /// Decides for data without checksum if enough of what arrived since was damaged.
    fn see_damage(&mut self, now: Instant, from: DamageCounts) -> Option<ChecksumDecision> {
        let seen = DamagedShare::between(from, self.told);
        if seen.damaged < DAMAGED_MIN || seen.share() < SHARE_IN {
            return None;
        }
        let from = self.told;
        self.phase = Phase::Unchecked { since: now, from };
        self.pause = TRIAL_AGAIN;
        self.was_refused = false;
        Some(self.decide(ChecksumReason::Damage(seen)))
    }

    /// Does what is due without a word of the peer.
    pub(super) fn due(&mut self, now: Instant, round_trip: Duration) -> Option<ChecksumDecision> {
        if self.is_unchecked() && self.untold_until(round_trip).is_some_and(|at| at <= now) {
            // Small probes may pass where full datagrams do not, so trials become rarer all the same.
            let again = match self.phase {
                Phase::Trial { .. } => self.take_pause(),
                _ => ASK_SOON,
            };
            return Some(self.leave(now + again, ChecksumReason::NotCarried));
        }
        match self.phase {
            Phase::Asking {
                pairs,
                next_at,
                answered: [checked, unchecked],
                from,
            } if pairs >= PAIRS && next_at <= now => {
                let is_refused = checked >= CARRIED_ENOUGH
                    && unchecked == 0
                    && arrived(self.told) == arrived(from);
                // Where checked ones are lost as well, chance may have lost all of the others: then it is asked twice.
                let is_certain = checked == PAIRS || self.was_refused;
                self.was_refused = is_refused && !is_certain;
                let is_worth_it = self.is_untried || unchecked >= checked + FARED_WORSE;
                if unchecked >= CARRIED_ENOUGH && is_worth_it {
                    Some(self.try_it())
                } else if unchecked >= CARRIED_ENOUGH {
                    Some(self.check(now, ChecksumReason::Carried))
                } else if is_refused && is_certain {
                    Some(self.leave(now + ASK_AGAIN, ChecksumReason::NotCarried))
                } else {
                    self.phase = Phase::Waiting(Some(now + ASK_SOON));
                    None
                }
            }
            Phase::Checked { at, .. }
                if (self.unheard_until(at, round_trip)).is_some_and(|until| until <= now) =>
            {
                Some(self.try_it())
            }
            Phase::Trial {
                since: Some(since), ..
            } if since + TRIAL_MAX <= now => self.end_trial_in_time(now),
            _ => None,
        }
    }

    /// Ends a trial that lasted long enough, or waits for the next datagram where too few left.
    fn end_trial_in_time(&mut self, now: Instant) -> Option<ChecksumDecision> {
        let told = self.told;
        let Phase::Trial { since, from } = &mut self.phase else {
            return None;
        };
        let arrived = DamagedShare::between(*from, told).arrived;
        if arrived < TRIAL_MIN && self.untold < UNTOLD_MANY {
            *since = None;
            return None;
        }
        self.end_trial(now)
    }

    fn end_trial(&mut self, now: Instant) -> Option<ChecksumDecision> {
        let Phase::Trial { from, .. } = self.phase else {
            return None;
        };
        let seen = DamagedShare::between(from, self.told);
        let why = if seen.arrived == 0 {
            ChecksumReason::Untold
        } else {
            ChecksumReason::NoDamage(seen)
        };
        let again = self.take_pause();
        Some(self.check(now + again, why))
    }

    /// Takes the numbers of datagrams that left and that arrived, as the peer reports them.
    pub(super) fn on_passage(&mut self, now: Instant, passed: Passage) -> Option<ChecksumDecision> {
        self.passed = passed;
        self.forget_unheard();
        let Phase::Checked { at, seen } = &mut self.phase else {
            return None;
        };
        let sent = passed.sent.saturating_sub(seen.sent);
        let lost = sent.saturating_sub(passed.arrived.saturating_sub(seen.arrived));
        let is_heavy = lost >= LOST_ENOUGH && share(lost, sent) >= LOSS_HEAVY;
        if sent < LOOK_DATAGRAMS && !is_heavy {
            return None;
        }
        *seen = passed;
        if *at > now || share(lost, sent) < LOSS_MIN {
            return None;
        }
        Some(self.try_it())
    }

    /// Takes what became of unchecked datagrams, as the peer tells it.
    pub(super) fn on_told(&mut self, now: Instant, told: DamageCounts) -> Option<ChecksumDecision> {
        if arrived(told) > arrived(self.told) {
            self.forget_untold();
        }
        self.told = told;
        match self.phase {
            Phase::Asking { .. } => self.see_probes(now),
            Phase::Trial { from, .. } => self.see_damage(now, from).or_else(|| {
                let seen = DamagedShare::between(from, told);
                (seen.arrived >= TRIAL_DATAGRAMS).then(|| self.end_trial(now))?
            }),
            Phase::Unchecked { since: began, from } => {
                let seen = DamagedShare::between(from, told);
                if seen.arrived < WINDOW_DATAGRAMS || now.saturating_since(began) < WINDOW {
                    return None;
                }
                if seen.share() < SHARE_OUT {
                    let why = ChecksumReason::NoDamage(seen);
                    return Some(self.check(now + self.pause, why));
                }
                let from = told;
                self.phase = Phase::Unchecked { since: now, from };
                None
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
