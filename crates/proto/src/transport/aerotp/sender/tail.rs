//! The tail of a transfer: nothing is expected to follow it, so a loss in it that is lost again costs a round trip each time. It is
//! repeated while the link would be idle, as often as the losses so far ask for.

use super::super::counters::Counters;
use super::thin::IN_FLIGHT_MAX;
use super::{Sender, Unit};
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;

/// The share of losses from which on repeating the tail is worth it.
const LOSS_MIN: f64 = 0.001;
/// The tail is repeated until the probability that a TPDU of it is missing falls to this.
const MISS_TARGET: f64 = 0.01;
/// The times without a write that are a sign of an end, as parts of a round trip: the least, and the most. And the multiple of the
/// longest one so far behind which more came. That may have been for lack of room.
const QUIET_PART_MIN: u32 = 4;
const QUIET_PART_MAX: u32 = 2;
const QUIET_TIMES: u32 = 2;
/// The most that is repeated where nobody said an end, in hundredths of what was sent: it may be none.
const GUESSED_PERCENT: u8 = 12;

/// The signs of an end that nobody said: who keeps a connection open waits for its tail all the same.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// The number of times that the tail is repeated at the loss seen so far.
    repeats: u16,
    /// Whether the writer said that nothing is expected to follow, so that the end of what was written is a tail.
    is_said: bool,
    /// Whether it seems so; the TPDUs that were repeated for that, and those that may be.
    is_guessed: bool,
    guessed: u64,
    guessed_max: u64,
    /// The time since when everything that was written has left, if it has.
    quiet_since: Option<Instant>,
    /// The longest such time, of less than a round trip, behind which more was written.
    longest_gap: Duration,
}

impl Tail {
    /// Notes that everything that was written has left.
    pub(super) fn on_all_left(&mut self, now: Instant) {
        self.quiet_since.get_or_insert(now);
    }

    /// Notes that more was written. Who took a round trip for it may have waited for an answer.
    pub(super) fn on_written(&mut self, now: Instant, round_trip: Option<Duration>) {
        (self.is_said, self.is_guessed) = (false, false);
        let Some(since) = self.quiet_since.take() else {
            return;
        };
        let gap = now.saturating_since(since);
        if round_trip.is_some_and(|round_trip| gap < round_trip) {
            self.longest_gap = self.longest_gap.max(gap);
        }
    }

    /// Whether nothing was written for longer than this sender's writer ever took.
    fn is_quiet(&self, now: Instant, round_trip: Duration) -> bool {
        let (min, max) = (round_trip / QUIET_PART_MIN, round_trip / QUIET_PART_MAX);
        let least = (self.longest_gap * QUIET_TIMES).clamp(min, max);
        self.quiet_since
            .is_some_and(|since| now.saturating_since(since) > least)
    }
}

impl Sender {
    /// Notes that nothing is expected to follow for now.
    pub(in super::super) fn pause(&mut self) {
        self.tail.is_said = true;
    }

    /// Takes the losses so far, and what is under way for a tail where nothing was written for long. Thin flows have repair of
    /// their own.
    pub(super) fn look_for_tail(&mut self, now: Instant, counters: &Counters) {
        self.tail.repeats = self.tail_repeats.min(repeats_for(counters));
        let allowed = self
            .thin
            .as_ref()
            .map(|thin| thin.allowed().overhead_percent);
        let percent = allowed.unwrap_or(GUESSED_PERCENT).min(GUESSED_PERCENT);
        self.tail.guessed_max = counters.sent_tpdus[0] * u64::from(percent) / 100;
        let round_trip = self.rtt.smoothed();
        self.tail.is_guessed |= self.board.in_flight() > IN_FLIGHT_MAX
            && round_trip.is_some_and(|round_trip| self.tail.is_quiet(now, round_trip));
    }

    /// Whether repeating the tail would be of use, if the link is idle.
    pub(in super::super) fn wants_spare(&self) -> bool {
        self.tail_to_repeat().is_some()
    }

    /// A TPDU of the tail, to be repeated; it counts as sent.
    pub(in super::super) fn next_spare(&mut self, now: Instant) -> Option<Unit> {
        let seq = self.tail_to_repeat()?;
        if !self.is_end_said() {
            self.tail.guessed += 1;
        }
        self.again(now, seq)
    }

    const fn is_end_said(&self) -> bool {
        self.finishing || self.tail.is_said
    }

    /// The TPDU of the tail that left least recently.
    fn tail_to_repeat(&self) -> Option<TpduSeq> {
        // Without a word of an end only what was lost before is worth it: more may follow.
        let losses_min = u16::from(!self.is_end_said());
        let seems_so = self.tail.is_guessed && self.tail.guessed < self.tail.guessed_max;
        let is_tail = (self.is_end_said() || seems_so)
            && !self.stalled
            && self.rules.confirms()
            && !self.has_new()
            && self.tail.repeats > 0;
        if !is_tail {
            return None;
        }
        self.board.least_recent(losses_min, self.tail.repeats)
    }
}

/// The number of times that the tail should be repeated at the loss seen so far.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate; the user's cap follows"
)]
fn repeats_for(counters: &Counters) -> u16 {
    let lost = counters.held_lost();
    // A repetition has its copies, too: the count is of times that all of them were lost.
    let sent =
        (counters.sent_tpdus[0] + counters.sent_tpdus[2]).saturating_sub(counters.copied_tpdus);
    let share = lost as f64 / sent.max(1) as f64;
    if share < LOSS_MIN {
        return 0;
    }
    (MISS_TARGET.ln() / share.min(0.9).ln()).ceil() as u16
}
