//! TPDUs that arrived damaged and are being mended: parity for what the receiver kept is on its way.

use super::outstanding::State;
use super::{LossSign, Scoreboard};
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;

/// The time by which the receiver's word that a TPDU came damaged may come later than the sign that it was overtaken: two such
/// words are 10 ms apart at least.
const WORD_LATE: Duration = Duration::from_millis(12);
/// The time after the last such word for which an overtaken TPDU waits for one.
const EXPECTED_FOR: Duration = Duration::from_secs(1);

/// The transmission of a TPDU that is being mended.
#[derive(Clone, Copy, Debug)]
pub(super) struct AwaitedRepair {
    seq: TpduSeq,
    number: u16,
    /// The time at which it is held lost after all.
    until: Instant,
}

/// The transmissions that are being mended.
#[derive(Debug, Default)]
pub(super) struct AwaitedRepairs {
    all: Vec<AwaitedRepair>,
    /// The time of the last word that one came damaged.
    told_at: Option<Instant>,
}

impl AwaitedRepairs {
    pub(super) fn include(&self, seq: TpduSeq) -> bool {
        self.all.iter().any(|one| one.seq == seq)
    }

    /// The time for which what was overtaken waits for the word that it came damaged.
    pub(super) fn word_wait(&self, now: Instant) -> Duration {
        let is_recent = |at: Instant| now.saturating_since(at) < EXPECTED_FOR;
        if self.told_at.is_some_and(is_recent) {
            WORD_LATE
        } else {
            Duration::ZERO
        }
    }
}

impl Scoreboard {
    /// Takes the news that the transmission of `seq` that left at `left_at` arrived damaged, and that what mends it is there by
    /// `until`. Until then nothing but another word on it holds it lost.
    pub fn on_mending(&mut self, now: Instant, seq: TpduSeq, left_at: Instant, until: Instant) {
        self.awaited.told_at = Some(now);
        let Some(index) = self.index(seq) else {
            return;
        };
        let entry = &mut self.entries[index];
        entry.is_mended_later = true;
        if entry.sent_at > left_at {
            return;
        }
        self.take_loss_back(seq);
        let entry = &mut self.entries[index];
        match entry.state {
            State::InFlight => {}
            // It was held lost, and has not left again.
            State::Lost => {
                entry.state = State::InFlight;
                self.in_flight += 1;
            }
            State::Settled => return,
        }
        let number = entry.transmission;
        if let Some(path) = self.log_of(index) {
            path.log.retain(|one| one.seq != seq);
        }
        let repair = AwaitedRepair { seq, number, until };
        // A second word renews the time: what mends it leaves once more.
        self.awaited.all.retain(|one| one.seq != seq);
        self.awaited.all.push(repair);
        self.detect_overtaken(now);
    }

    /// Holds lost what was not mended in time. Returns the time of the next one.
    pub(super) fn end_awaited(&mut self, now: Instant) -> Option<Instant> {
        let mut repairs = core::mem::take(&mut self.awaited.all);
        repairs.retain(|one| {
            let entry = self.get(one.seq);
            let is_live = entry.is_some_and(|entry| {
                entry.state == State::InFlight && entry.transmission == one.number
            });
            if is_live && one.until <= now {
                self.hold_lost(one.seq, LossSign::Damaged);
            }
            is_live && one.until > now
        });
        self.awaited.all = repairs;
        self.awaited.all.iter().map(|one| one.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    fn stamp(millis: u64) -> u32 {
        at(millis).as_wrapping_micros()
    }

    fn sent(count: u64) -> Scoreboard {
        let mut board = Scoreboard::new(TpduSeq(0));
        for n in 0..count {
            board.on_first_sent(at(n), 100 * n, 100);
        }
        board
    }

    #[test]
    fn what_is_being_mended_is_neither_overtaken_nor_late_nor_asked_for_until_its_time_is_over() {
        let mut board = sent(5);
        board.on_mending(at(20), TpduSeq(1), at(1), at(60));
        board.on_acked(at(21), TpduSeq(4), None);
        board.on_arrival_of(at(21), stamp(4));
        board.handle_deadline(at(40));
        board.on_timeout(at(40));
        board.on_nack(TpduSeq(1), stamp(30));
        assert!(board.is_in_flight(TpduSeq(1)) && !board.is_in_flight(TpduSeq(0)));
        let due = board.next_deadline().expect("a time is set").at;
        assert_eq!(due, at(60));
        board.handle_deadline(due);
        assert!(!board.is_in_flight(TpduSeq(1)));
        let held = board.take_held_lost();
        assert!(held.contains(&(TpduSeq(1), LossSign::Damaged)), "{held:?}");
    }

    #[test]
    fn a_second_word_renews_the_time_to_be_mended() {
        let mut board = sent(5);
        board.on_mending(at(20), TpduSeq(1), at(1), at(60));
        board.on_mending(at(50), TpduSeq(1), at(1), at(90));
        board.handle_deadline(at(60));
        assert!(board.is_in_flight(TpduSeq(1)));
        board.handle_deadline(at(90));
        assert!(!board.is_in_flight(TpduSeq(1)));
    }

    #[test]
    fn one_that_was_held_lost_and_has_not_left_again_is_mended_and_one_that_has_is_not() {
        let mut board = sent(5);
        board.on_timeout(at(1));
        assert_eq!(board.next_lost(), Some(TpduSeq(0)));
        board.on_sent_again(at(19), TpduSeq(0));
        board.on_mending(at(20), TpduSeq(0), at(0), at(60));
        board.on_mending(at(20), TpduSeq(1), at(1), at(60));
        assert_eq!(board.next_lost(), None);
        assert_eq!(board.in_flight(), 5);
        board.on_timeout(at(30));
        let still: Vec<_> = (0..5).map(|n| board.is_in_flight(TpduSeq(n))).collect();
        assert_eq!(still, [false, true, false, false, false]);
        // The word that it is beyond repair after all.
        board.on_damaged(TpduSeq(1), at(1));
        assert!(!board.is_in_flight(TpduSeq(1)));
    }

    #[test]
    fn what_was_mended_after_it_had_come_is_no_sign_of_reordering() {
        for is_mended in [true, false] {
            let mut board = sent(5);
            board.on_timeout(at(1));
            assert_eq!(board.next_lost(), Some(TpduSeq(0)));
            board.on_sent_again(at(50), TpduSeq(0));
            if is_mended {
                board.on_mending(at(51), TpduSeq(0), at(0), at(90));
            }
            board.on_acked(at(60), TpduSeq(0), Some(Duration::from_millis(40)));
            let has_widened = board.reorder_window() > Duration::ZERO;
            assert_eq!(has_widened, !is_mended);
        }
    }

    #[test]
    fn however_fast_others_arrive_what_is_overtaken_waits_no_longer_for_its_word() {
        let mut board = sent(40);
        board.on_mending(at(50), TpduSeq(0), at(0), at(300));
        for n in (1..40).filter(|n| *n != 2) {
            let now = at(50 + u64::from(n));
            board.on_acked(now, TpduSeq(n), None);
            board.on_arrival_of(now, stamp(u64::from(n)));
            // It would have arrived at 52.
            assert_eq!(board.is_in_flight(TpduSeq(2)), n < 14, "{n}");
        }
    }

    #[test]
    fn after_a_word_of_damage_the_overtaken_wait_for_theirs_and_a_second_later_no_more() {
        let mut board = sent(5);
        board.on_mending(at(20), TpduSeq(1), at(1), at(60));
        board.on_acked(at(21), TpduSeq(4), None);
        board.on_arrival_of(at(21), stamp(4));
        assert!(board.is_in_flight(TpduSeq(2)), "its word may come");
        board.handle_deadline(at(33));
        assert!(!board.is_in_flight(TpduSeq(2)));
        let mut board = sent(5);
        board.on_mending(at(20), TpduSeq(1), at(1), at(60));
        let later = at(2_000);
        board.on_acked(later, TpduSeq(4), None);
        board.on_arrival_of(later, stamp(4));
        assert!(!board.is_in_flight(TpduSeq(2)));
    }
}
