//! The fates of attempts, as answers show them: of each, for whoever counts losses, and of the first and of late ones, for
//! the timers.

use super::outstanding::HeldLost;
use super::stamps::{NewestArrival, stamp_before};
use super::{Outstanding, Scoreboard, State};
use crate::trace::LossSign;
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;

/// The share of the shortest round trip, as a fraction, below which an acknowledgement answers an
/// earlier attempt.
const SPURIOUS_RTT_NUMERATOR: u32 = 3;
const SPURIOUS_RTT_DENOMINATOR: u32 = 4;

/// The time beyond two of the shortest round trips after which the answer to a repetition may be one to what left before it:
/// answers that would have said so fail in an outage.
const ANSWERED_WITHIN: Duration = Duration::from_millis(150);

/// The verdict on a repetition that was made because no answer had come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateRepetition {
    /// There was no such repetition.
    Never,
    /// An earlier transmission was lost, so the repetition was needed.
    Rightly,
    /// An earlier transmission arrived, so the repetition was not needed, or would not have been if it had left.
    Needlessly,
    /// The receiver had the TPDU before the repetition, by an earlier transmission or out of a repair symbol.
    Unclear,
}

/// The fate of a TPDU's first transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstFate {
    /// It arrived.
    Arrived,
    /// It was lost.
    Lost,
    /// The answers fit both.
    Unknown,
}

/// A TPDU that the receiver turned out to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Its number.
    pub seq: TpduSeq,
    /// The number of times it had been sent; copies that followed at once are not counted.
    pub attempts: u16,
    /// The number of those that were made because it was held for lost, and not as a precaution.
    pub repetitions: u16,
    /// Payload octets.
    pub len: u32,
    /// The time from its first transmission until that was known.
    pub took: Duration,
    /// The same from its writing.
    pub age: Duration,
    /// The verdict on its late repetition.
    pub late: LateRepetition,
    /// The fate of its first transmission.
    pub first: FirstFate,
}

/// The fate of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttemptFate {
    /// It arrived.
    Arrived,
    /// It is held for lost, and not for damage that the receiver named.
    Lost,
    /// It was told as lost, and had arrived, whole or damaged.
    ArrivedAfterAll,
}

/// The outcome of an attempt that left once, without copies, or of all that left of a TPDU since it was last held for lost, if
/// they were lost, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptOutcome {
    /// The time at which it left.
    pub at: Instant,
    /// The place of the path on which it did, among those to the peer.
    pub path: u8,
    /// Payload octets.
    pub len: u32,
    /// Its fate.
    pub fate: AttemptFate,
    /// The transmissions that had this fate: copies, and those that left as precautions before it, too.
    pub times: u16,
    /// Whether nothing else ever left of the TPDU but for a reason, so that its fate could have been told, had it been the other.
    pub is_single: bool,
}

impl Outstanding {
    /// The time of the latest attempt, and its path: copies leave for the same attempt, if not always on the same path.
    const fn latest(&self) -> (Instant, u8) {
        (self.attempt_at, self.path)
    }

    /// The outcome of the attempt that left at `at` on `path`, if nothing else of this TPDU left that could be taken for it.
    fn outcome(&self, (at, path): (Instant, u8), fate: AttemptFate) -> Option<AttemptOutcome> {
        let is_single = self.transmission == self.attempts && self.repeats == 0;
        // Of several that are all lost, nothing need be told apart.
        let is_known = is_single || fate == AttemptFate::Lost;
        is_known.then_some(AttemptOutcome {
            at,
            path,
            len: self.len,
            fate,
            times: self.repeats.saturating_add(1),
            is_single,
        })
    }
}

/// An answer that a TPDU arrived, beside what is known of the TPDU.
#[derive(Clone, Copy, Debug)]
struct AnswerSigns {
    first: FirstFate,
    /// The receiver had it before it saw anything that left with the latest attempt, or after that.
    came_before: bool,
    /// It may have come out of a repair symbol.
    may_be_rebuilt: bool,
    /// It came so long after the latest attempt that earlier answers may have failed.
    is_belated: bool,
}

impl Scoreboard {
    /// Notes that `seq` arrived. `None` if that was known, or if it was never sent.
    pub fn on_acked(
        &mut self,
        now: Instant,
        seq: TpduSeq,
        rtt_min: Option<Duration>,
    ) -> Option<Settled> {
        let index = self.index(seq)?;
        let entry = &self.entries[index];
        match entry.state {
            State::Settled => return None,
            State::InFlight => self.in_flight -= 1,
            State::Lost => {}
        }
        let is_sent_again = entry.is_sent_again();
        let since_last = now.saturating_since(entry.attempt_at);
        let path = usize::from(entry.path);
        let lag = self.paths.get(path).map_or(Duration::ZERO, |path| path.lag);
        let rtt_min = rtt_min.map(|rtt_min| rtt_min + lag);
        let answers_earlier = rtt_min.filter(|rtt_min| {
            is_sent_again
                && since_last * SPURIOUS_RTT_DENOMINATOR < *rtt_min * SPURIOUS_RTT_NUMERATOR
        });
        // It may have come out of a symbol that left with an earlier repetition.
        let of_symbol = |rtt_min: &Duration| {
            let answered = |at: Instant| now <= at + *rtt_min * 2;
            self.symbol_at.is_some_and(answered)
        };
        let may_be_rebuilt = rtt_min.as_ref().is_some_and(of_symbol);
        let is_early = answers_earlier.is_some();
        let answers_earlier = answers_earlier.filter(|_| !may_be_rebuilt);
        // The receiver had it before it saw anything that left with a later attempt, or after that.
        let came_before = match entry.state {
            State::Lost => true,
            _ => is_early || (is_sent_again && self.knows_none_since(entry.attempt_at)),
        };
        let late = match (entry.was_late, came_before) {
            (false, _) => LateRepetition::Never,
            (true, false) => LateRepetition::Rightly,
            (true, true) if may_be_rebuilt => LateRepetition::Unclear,
            (true, true) => LateRepetition::Needlessly,
        };
        let first = self.first_fate(entry, late, may_be_rebuilt);
        // Its own stamp shows that it came by itself.
        let came_overtaken =
            may_be_rebuilt && first == FirstFate::Arrived && self.was_overtaken(entry);
        let signs = AnswerSigns {
            first,
            came_before,
            may_be_rebuilt,
            is_belated: rtt_min.is_some_and(|rtt_min| since_last > rtt_min * 2 + ANSWERED_WITHIN),
        };
        let outcome = outcome_of_settled(entry, signs);
        let settled = Settled {
            seq,
            attempts: entry.attempts,
            repetitions: entry.repetitions,
            len: entry.len,
            took: now.saturating_since(entry.first_sent_at),
            age: now.saturating_since(entry.written_at),
            late,
            first,
        };
        // Of a copied one nobody knows on which path it came.
        let is_latest = entry.transmission == 1 || (entry.repeats == 0 && !came_before);
        let latest = is_latest.then_some(entry.sent_at);
        self.entries[index].state = State::Settled;
        self.note_outcome(outcome);
        if self.has_several_paths()
            && let Some(sent_at) = latest
        {
            self.paths[path].on_arrived(now, sent_at);
        }
        // A late answer says nothing of order: answers are lost, too. Nor does one to what was mended after it had come, to what
        // left on a path of which the answers were lost, or to what was sent again while nobody held it lost.
        let shows_order = settled.late == LateRepetition::Never
            && !self.entries[index].is_precaution
            && !self.entries[index].is_mended_later
            && !self.entries[index].was_on_dead_path;
        let answers_earlier = answers_earlier.filter(|_| shows_order);
        if let Some(rtt_min) = answers_earlier.or(rtt_min.filter(|_| came_overtaken)) {
            let widened = (self.reorder_window * 2).max(rtt_min / 8);
            self.reorder_window = widened.min(rtt_min);
        }
        Some(settled)
    }

    /// Whether the receiver had seen nothing that left at that time or later when it answered.
    fn knows_none_since(&self, at: Instant) -> bool {
        let before = |echo| stamp_before(echo, self.stamps.of(at));
        self.echo.is_some_and(before)
    }

    /// Whether an earlier answer knew of something that left later than the first transmission, and not of this TPDU.
    fn was_overtaken(&self, entry: &Outstanding) -> bool {
        let first = self.stamps.of(entry.first_sent_at + self.reorder_window);
        let is_later = |newest: NewestArrival| {
            // Stamps of different turns of the clock say nothing.
            entry.first_sent_at < newest.learned_at && stamp_before(first, newest.stamp)
        };
        !self.has_several_paths() && !entry.is_mended_later && self.newest.is_some_and(is_later)
    }

    /// The fate of the first transmission of a TPDU that arrived.
    fn first_fate(
        &self,
        entry: &Outstanding,
        late: LateRepetition,
        may_be_rebuilt: bool,
    ) -> FirstFate {
        let echoes = |at: Instant| self.echo == Some(self.stamps.of(at));
        let is_once = entry.attempts == 1 && entry.state == State::InFlight;
        if echoes(entry.first_sent_at) {
            return FirstFate::Arrived;
        }
        if may_be_rebuilt
            && (self.knows_none_since(entry.first_sent_at) || self.was_overtaken(entry))
        {
            // Symbols have no stamp: it came out of one.
            return FirstFate::Lost;
        }
        if is_once {
            let only_copied = entry.sent_at > entry.attempt_at && echoes(entry.sent_at);
            return if only_copied {
                FirstFate::Lost
            } else {
                FirstFate::Arrived
            };
        }
        let was_held_lost = entry.held_lost != HeldLost::Never;
        let repeated_before = |at: Instant| self.knows_none_since(at);
        match (late, entry.attempts) {
            _ if may_be_rebuilt && was_held_lost => FirstFate::Lost,
            _ if may_be_rebuilt => FirstFate::Unknown,
            (_, 1) => FirstFate::Arrived,
            (LateRepetition::Needlessly, 2) if entry.is_sent_again() => FirstFate::Arrived,
            _ if entry.repeated_at.is_some_and(repeated_before) => FirstFate::Arrived,
            _ if was_held_lost => FirstFate::Lost,
            _ => FirstFate::Unknown,
        }
    }

    /// Keeps the outcomes of attempts from now on, for [`Scoreboard::drain_outcomes`].
    pub fn keep_outcomes(&mut self) {
        self.outcomes.get_or_insert_default();
    }

    /// Whether outcomes of attempts are kept.
    pub const fn keeps_outcomes(&self) -> bool {
        self.outcomes.is_some()
    }

    fn note_outcome(&mut self, outcome: Option<AttemptOutcome>) {
        if let (Some(outcomes), Some(outcome)) = (&mut self.outcomes, outcome) {
            outcomes.push(outcome);
        }
    }

    /// Notes that the latest attempt of an entry is held for lost.
    pub(super) fn note_lost(&mut self, index: usize, sign: LossSign) {
        let entry = &mut self.entries[index];
        let outcome = entry.outcome(entry.latest(), AttemptFate::Lost);
        let outcome = outcome.filter(|_| sign != LossSign::Damaged);
        entry.held_lost = if outcome.is_some_and(|outcome| outcome.is_single) {
            HeldLost::Told
        } else {
            HeldLost::Untold
        };
        self.note_outcome(outcome);
    }

    /// Whether [`Scoreboard::drain_outcomes`] has something to give.
    pub fn has_outcomes(&self) -> bool {
        let outcomes = self.outcomes.as_ref();
        outcomes.is_some_and(|outcomes| !outcomes.is_empty())
    }

    /// Notes that the latest attempt of `seq` arrived, if it was told as lost.
    pub(super) fn take_loss_back(&mut self, seq: TpduSeq) {
        let Some(index) = self.index(seq) else { return };
        let entry = &mut self.entries[index];
        if entry.state == State::Lost && entry.held_lost == HeldLost::Told {
            entry.held_lost = HeldLost::Untold;
            let outcome = entry.outcome(entry.latest(), AttemptFate::ArrivedAfterAll);
            self.note_outcome(outcome);
        }
    }

    /// Gives the outcomes of attempts since the last call to `each`, in the order of sending.
    pub fn drain_outcomes(&mut self, each: impl FnMut(AttemptOutcome)) {
        if let Some(outcomes) = &mut self.outcomes {
            // The memory stays while data flows: this happens with every burst.
            outcomes.sort_unstable_by_key(|one| (one.at, one.len, one.fate, one.times));
            outcomes.drain(..).for_each(each);
        }
    }
}

/// The outcome that the answer to a TPDU shows.
fn outcome_of_settled(entry: &Outstanding, signs: AnswerSigns) -> Option<AttemptOutcome> {
    let is_in_flight = entry.state == State::InFlight;
    let is_told = entry.held_lost == HeldLost::Told;
    let (left, fate) = match (is_in_flight, entry.attempts) {
        (true, 1) => match signs.first {
            FirstFate::Arrived => (entry.latest(), AttemptFate::Arrived),
            FirstFate::Lost => (entry.latest(), AttemptFate::Lost),
            FirstFate::Unknown => return None,
        },
        // A symbol brought it, or an attempt; it may be any of them.
        _ if signs.may_be_rebuilt => return None,
        // Any of the attempts may have arrived.
        (true, _) if !signs.came_before && signs.is_belated => return None,
        (true, _) if !signs.came_before => (entry.latest(), AttemptFate::Arrived),
        // The attempt before the latest arrived. With two of them its time is known, and the latest one's fate is not.
        (true, 2) if is_told => {
            let first = (entry.first_sent_at, entry.first_path);
            (first, AttemptFate::ArrivedAfterAll)
        }
        (false, _) if is_told => (entry.latest(), AttemptFate::ArrivedAfterAll),
        _ => return None,
    };
    entry.outcome(left, fate)
}
