//! The tail of a transfer: nothing is expected to follow it, so a loss in it that is lost again costs a round trip each time. It is
//! repeated while the link would be idle, as often as the losses so far ask for.
//!
//! # Ends that nobody says
//! Who keeps a connection open waits for its tail all the same. So an end is guessed once nothing was written for a part of a round
//! trip. A guess costs something where it is wrong: only what was lost before is repeated then, and a part of what was sent at most.
//! Pauses of more than half a round trip pass for ends. The reasons: `docs/adr/0007-loss-silence-and-the-tail.md`.

use super::super::counters::Counters;
use super::thin::IN_FLIGHT_MAX;
use super::{Sender, Unit};
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;

/// The share of losses from which on repeating the tail is worth it.
const LOSS_MIN: f64 = 0.001;
/// The tail is repeated until the probability that a TPDU of it is missing falls to this.
const MISS_TARGET: f64 = 0.01;
/// The least time without a write that passes for an end: a quarter of a round trip.
const QUIET_LEAST_DIVISOR: u32 = 4;
/// The multiple of the longest pause of the writer so far that passes for an end.
const QUIET_TIMES: u32 = 2;
/// The time that does in any case: half a round trip. The longest pause may have been for lack of room.
const QUIET_MOST_DIVISOR: u32 = 2;
/// The most that is repeated for guessed ends, in hundredths of what was sent.
const GUESSED_PERCENT: u8 = 12;

/// The signs of an end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// The number of times that the tail is repeated at the loss seen so far.
    repeats: u16,
    /// Whether the writer said that nothing is expected to follow.
    is_said: bool,
    /// Whether nothing was written for so long that an end is guessed.
    is_guessed: bool,
    /// TPDUs that were repeated for guessed ends, and the most that may be.
    guessed_repeats: u64,
    guessed_repeats_max: u64,
    /// The time since when everything that was written has left, if it has.
    quiet_since: Option<Instant>,
    /// The longest such time, of less than a round trip, behind which more was written.
    longest_pause: Duration,
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
        let pause = now.saturating_since(since);
        if round_trip.is_some_and(|round_trip| pause < round_trip) {
            self.longest_pause = self.longest_pause.max(pause);
        }
    }

    /// Whether nothing was written for so long that it passes for an end.
    fn is_quiet(&self, now: Instant, round_trip: Duration) -> bool {
        let (least, most) = (
            round_trip / QUIET_LEAST_DIVISOR,
            round_trip / QUIET_MOST_DIVISOR,
        );
        let after = (self.longest_pause * QUIET_TIMES).clamp(least, most);
        self.quiet_since
            .is_some_and(|since| now.saturating_since(since) > after)
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
        self.board.prune_lost_before(self.tail.repeats);
        let allowed = self.thin.as_ref();
        let allowed = allowed.map(|thin| thin.allowed().overhead_percent);
        let percent = allowed.unwrap_or(GUESSED_PERCENT).min(GUESSED_PERCENT);
        self.tail.guessed_repeats_max = counters.sent_tpdus[0] * u64::from(percent) / 100;
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
            self.tail.guessed_repeats += 1;
        }
        let unit = self.again(now, seq);
        self.board.prune_lost_before(self.tail.repeats);
        unit
    }

    const fn is_end_said(&self) -> bool {
        self.finishing || self.tail.is_said
    }

    /// The TPDU of the tail that left least recently.
    fn tail_to_repeat(&self) -> Option<TpduSeq> {
        let repeats = self.tail.repeats;
        if self.stalled || !self.rules.confirms() || self.has_new() || repeats == 0 {
            None
        } else if self.is_end_said() {
            self.board.least_recent(repeats)
        } else if self.tail.is_guessed && self.tail.guessed_repeats < self.tail.guessed_repeats_max
        {
            self.board.first_lost_before(repeats)
        } else {
            None
        }
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
