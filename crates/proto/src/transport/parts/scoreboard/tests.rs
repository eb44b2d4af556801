//! TPDUs held lost by overtaking, by request and by timeout, and overtaking that is tolerated.

use super::*;

const RTT: Duration = Duration::from_millis(20);

fn at(ms: u64) -> Instant {
    Instant::START + Duration::from_millis(ms)
}

fn stamp(ms: u64) -> u32 {
    at(ms).as_wrapping_micros()
}

/// Ten TPDUs sent a millisecond apart, numbered across the wrap.
fn ten() -> Scoreboard {
    let mut board = Scoreboard::new(TpduSeq(u32::MAX - 4));
    for i in 0..10 {
        board.on_first_sent(at(i), i * 100, 100);
    }
    board
}

fn nth(i: u32) -> TpduSeq {
    TpduSeq(u32::MAX - 4).plus(i)
}

fn lost(board: &mut Scoreboard) -> Vec<TpduSeq> {
    core::iter::from_fn(|| board.next_lost()).collect()
}

#[test]
fn what_was_sent_before_an_arrival_and_not_acknowledged_is_lost() {
    let mut board = ten();
    assert!(board.on_acked(at(25), nth(4), None).is_some());
    board.on_arrival_of(at(25), stamp(4));
    assert_eq!(lost(&mut board), [nth(0), nth(1), nth(2), nth(3)]);
}

#[test]
fn retransmissions_are_judged_by_their_own_sending_time() {
    let mut board = ten();
    board.on_acked(at(25), nth(1), None);
    board.on_arrival_of(at(25), stamp(1));
    assert_eq!(lost(&mut board), [nth(0)]);
    board.on_sent_again(at(26), nth(0));
    board.on_arrival_of(at(29), stamp(9));
    assert!(
        !lost(&mut board).contains(&nth(0)),
        "sent after the newest arrival"
    );
}

#[test]
fn a_cumulative_acknowledgement_releases_across_the_wrap() {
    let mut board = ten();
    let mut settled = 0;
    board.on_acked_before(at(30), nth(7), None, |_| settled += 1);
    assert_eq!((settled, board.len(), board.base()), (7, 3, nth(7)));
    board.on_acked_before(at(30), nth(11), None, |_| settled += 1);
    assert_eq!(settled, 7, "a number never sent is not believed");
}

#[test]
fn an_acknowledgement_sooner_than_a_round_trip_widens_the_reorder_window() {
    let mut board = ten();
    board.on_acked(at(25), nth(1), Some(RTT));
    board.on_arrival_of(at(25), stamp(1));
    assert_eq!(board.next_lost(), Some(nth(0)));
    board.on_sent_again(at(25), nth(0));
    board.on_acked(at(26), nth(0), Some(RTT)); // the first attempt, late
    board.on_acked(at(27), nth(3), Some(RTT));
    board.on_arrival_of(at(27), stamp(3));
    assert_eq!(board.next_lost(), None, "TPDU 2 is forgiven for now");
    let deadline = board.next_deadline().expect("a timer for TPDU 2").at;
    assert_eq!(deadline, at(27) + RTT / 8 - Duration::from_millis(1));
    board.handle_deadline(deadline);
    assert_eq!(lost(&mut board), [nth(2)]);
}

#[test]
fn an_early_answer_to_what_was_repeated_as_a_precaution_says_nothing_of_order() {
    let mut board = ten();
    board.on_sent_again(at(19), nth(0));
    board.on_acked(at(20), nth(0), Some(RTT));
    assert_eq!(board.reorder_window(), Duration::ZERO);
    board.on_acked(at(22), nth(2), Some(RTT));
    board.on_arrival_of(at(22), stamp(2));
    assert_eq!(lost(&mut board), [nth(1)], "at once");
}

#[test]
fn a_request_older_than_the_latest_transmission_is_already_answered() {
    let mut board = ten();
    board.on_nack(nth(2), stamp(2));
    assert_eq!(board.next_lost(), Some(nth(2)));
    board.on_sent_again(at(40), nth(2));
    board.on_nack(nth(2), stamp(9));
    assert_eq!(board.next_lost(), None);
}

#[test]
fn a_timeout_takes_exactly_what_is_old_enough() {
    let mut board = ten();
    board.on_timeout(at(2));
    assert_eq!(lost(&mut board), [nth(0), nth(1), nth(2)]);
    assert_eq!(board.in_flight(), 7);
}

#[test]
fn a_repetition_passes_over_what_was_repeated_enough_but_not_over_the_others() {
    let mut board = ten();
    for i in 0..10 {
        board.on_sent_again(at(20 + i), nth(u32::try_from(i).expect("small")));
    }
    assert_eq!(board.least_recent(1), None);
    assert_eq!(board.least_recent(2), Some(nth(0)));
    board.on_nack(nth(4), stamp(40));
    assert_eq!(board.next_lost(), Some(nth(4)));
    board.on_sent_again(at(41), nth(4));
    assert_eq!(
        board.least_recent(1),
        Some(nth(4)),
        "sent for a reason, so it counts anew"
    );
    assert_eq!(board.first_lost_before(2), Some(nth(4)), "no other was");
    board.on_sent_again(at(42), nth(4));
    board.on_sent_again(at(43), nth(4));
    board.prune_lost_before(2);
    assert_eq!(board.first_lost_before(2), None, "repeated enough");
}

#[test]
fn a_tpdu_with_copies_is_lost_when_its_last_copy_is() {
    let mut board = Scoreboard::new(nth(0));
    board.on_first_sent(at(0), 0, 100);
    board.on_copied(at(1), nth(0));
    board.on_first_sent(at(2), 100, 100);
    board.on_nack(nth(0), stamp(0));
    board.on_arrival_of(at(21), stamp(1));
    assert_eq!(lost(&mut board), [], "the second copy may have arrived");
    assert_eq!(board.oldest_in_flight(), Some((nth(0), at(1))));
    board.on_arrival_of(at(22), stamp(2));
    assert_eq!(lost(&mut board), [nth(0)]);
}

#[test]
fn copies_count_as_one_attempt_and_their_answers_widen_nothing() {
    let mut board = Scoreboard::new(nth(0));
    board.on_first_sent(at(0), 0, 100);
    for ms in [5, 10, 15] {
        board.on_copied(at(ms), nth(0));
    }
    let settled = board.on_acked(at(20), nth(0), Some(RTT));
    assert_eq!(settled.map(|settled| settled.attempts), Some(1));
    assert_eq!(board.reorder_window(), Duration::ZERO);
}

#[test]
fn what_is_settled_or_held_lost_gets_no_copies() {
    let mut board = Scoreboard::new(nth(0));
    board.on_first_sent(at(0), 0, 100);
    board.on_first_sent(at(1), 100, 100);
    board.on_acked(at(20), nth(1), None);
    board.on_arrival_of(at(20), stamp(1));
    for i in [0, 1] {
        assert!(!board.is_in_flight(nth(i)));
        board.on_copied(at(21), nth(i));
    }
    assert_eq!(lost(&mut board), [nth(0)]);
    assert_eq!(board.in_flight(), 0);
}

#[test]
fn the_answer_to_what_was_late_says_whether_the_repetition_was_needless() {
    let answered_at = |ms| {
        let mut board = Scoreboard::new(TpduSeq(0));
        let seq = board.on_first_sent(at(0), 0, 100);
        board.on_late(at(5));
        assert_eq!(lost(&mut board), [seq]);
        board.on_sent_again(at(25), seq);
        let settled = board.on_acked(at(ms), seq, Some(RTT)).expect("in flight");
        assert_eq!(board.reorder_window(), Duration::ZERO, "no sign of order");
        settled.late
    };
    assert_eq!(answered_at(30), LateRepetition::Needlessly);
    assert_eq!(answered_at(45), LateRepetition::Rightly);
    let mut board = ten();
    board.on_late(at(4));
    assert_eq!(lost(&mut board).len(), 5, "those sent by then");
    let settled = board
        .on_acked(at(25), nth(7), Some(RTT))
        .expect("in flight");
    assert_eq!(settled.late, LateRepetition::Never);
}

/// A TPDU that is sent at 0 and 25 ms for being late, and its answer at `ms`, which knows of what left by `echo`.
fn late_and_answered(ms: u64, echo: u64) -> Settled {
    let mut board = Scoreboard::new(TpduSeq(0));
    let seq = board.on_first_sent(at(0), 0, 100);
    board.on_late(at(5));
    assert_eq!(lost(&mut board), [seq]);
    board.on_sent_again(at(25), seq);
    board.on_echo(Some(at(echo).as_wrapping_micros()));
    board.on_acked(at(ms), seq, Some(RTT)).expect("in flight")
}

#[test]
fn an_answer_that_knows_nothing_of_the_repetition_shows_that_it_was_needless_however_late_it_is() {
    let slow = late_and_answered(400, 0);
    let told = (LateRepetition::Needlessly, FirstFate::Arrived);
    assert_eq!((slow.late, slow.first), told);
    let rightful = late_and_answered(45, 25);
    let told = (LateRepetition::Rightly, FirstFate::Lost);
    assert_eq!((rightful.late, rightful.first), told);
}

#[test]
fn an_answer_before_the_repetition_leaves_shows_that_it_would_be_needless() {
    let mut board = Scoreboard::new(TpduSeq(0));
    let seq = board.on_first_sent(at(0), 0, 100);
    board.on_late(at(5));
    let settled = board.on_acked(at(30), seq, Some(RTT)).expect("held lost");
    let told = (LateRepetition::Needlessly, FirstFate::Arrived);
    assert_eq!((settled.late, settled.first), told);
}

#[test]
fn behind_a_repair_symbol_nobody_knows_what_an_early_answer_means() {
    let mut board = Scoreboard::new(TpduSeq(0));
    let seq = board.on_first_sent(at(0), 0, 100);
    board.on_late(at(5));
    board.on_sent_again(at(25), seq);
    board.on_symbol(at(25));
    board.on_echo(Some(at(0).as_wrapping_micros()));
    let settled = board.on_acked(at(45), seq, Some(RTT)).expect("in flight");
    // Its own stamp is the newest there: it arrived as it left first.
    let told = (LateRepetition::Unclear, FirstFate::Arrived);
    assert_eq!((settled.late, settled.first), told);
}

#[test]
fn what_arrives_before_its_own_stamp_came_out_of_a_symbol() {
    let mut board = Scoreboard::new(TpduSeq(0));
    board.on_first_sent(at(0), 0, 100);
    let seq = board.on_first_sent(at(10), 100, 100);
    board.on_symbol(at(11));
    board.on_echo(Some(at(0).as_wrapping_micros()));
    let settled = board.on_acked(at(32), seq, Some(RTT)).expect("in flight");
    assert_eq!(settled.first, FirstFate::Lost);
}

#[test]
fn what_an_earlier_answer_did_not_know_of_though_it_knew_of_later_ones_came_out_of_a_symbol() {
    let answered_again = |window: u64| {
        let mut board = Scoreboard::new(TpduSeq(0));
        board.wait_for_symbols(Duration::from_millis(4));
        board.reorder_window = Duration::from_millis(window);
        let seq = board.on_first_sent(at(0), 0, 100);
        board.on_first_sent(at(2), 100, 100);
        board.on_symbol(at(3));
        board.on_first_sent(at(4), 200, 100);
        board.on_echo(Some(stamp(2)));
        board.on_acked(at(22), TpduSeq(1), Some(RTT));
        board.on_arrival_of(at(22), stamp(2));
        board.on_echo(Some(stamp(4)));
        let settled = board.on_acked(at(24), seq, Some(RTT)).expect("in flight");
        settled.first
    };
    assert_eq!(answered_again(0), FirstFate::Lost);
    // It may only have been overtaken where that happens.
    assert_eq!(answered_again(3), FirstFate::Arrived);
}

#[test]
fn what_was_known_an_hour_ago_overtook_nothing_that_left_since() {
    let mut board = Scoreboard::new(TpduSeq(0));
    board.on_first_sent(at(5), 0, 100);
    board.on_acked(at(25), TpduSeq(0), Some(RTT));
    board.on_arrival_of(at(25), stamp(5));
    // More than half a turn of the 32-bit clock later.
    let later = 45 * 60 * 1_000;
    let seq = board.on_first_sent(at(later), 100, 100);
    board.on_first_sent(at(later + 2), 200, 100);
    board.on_symbol(at(later + 3));
    board.on_echo(Some(stamp(later + 2)));
    let settled = board.on_acked(at(later + 22), seq, Some(RTT));
    assert_eq!(
        settled.map(|settled| settled.first),
        Some(FirstFate::Arrived)
    );
}

#[test]
fn what_comes_by_itself_behind_a_later_one_shows_that_the_path_reorders_also_beside_symbols() {
    let mut board = Scoreboard::new(TpduSeq(0));
    board.wait_for_symbols(Duration::from_millis(4));
    let seq = board.on_first_sent(at(0), 0, 100);
    board.on_first_sent(at(2), 100, 100);
    board.on_symbol(at(3));
    board.on_echo(Some(stamp(2)));
    board.on_acked(at(22), TpduSeq(1), Some(RTT));
    board.on_arrival_of(at(22), stamp(2));
    board.on_echo(Some(stamp(0)));
    let settled = board.on_acked(at(23), seq, Some(RTT));
    assert_eq!(
        settled.map(|settled| settled.first),
        Some(FirstFate::Arrived)
    );
    assert!(board.reorder_window() > Duration::ZERO);
}

#[test]
fn what_is_overtaken_may_come_out_of_the_symbol_behind_what_overtook_it() {
    let mut board = Scoreboard::new(TpduSeq(0));
    board.wait_for_symbols(Duration::from_millis(4));
    board.on_first_sent(at(0), 0, 100);
    board.on_first_sent(at(10), 100, 100);
    board.on_acked(at(30), TpduSeq(1), Some(RTT));
    board.on_arrival_of(at(30), stamp(10));
    assert_eq!(lost(&mut board), []);
    board.handle_deadline(at(34));
    assert_eq!(lost(&mut board), [TpduSeq(0)]);
}

fn outcomes(board: &mut Scoreboard) -> Vec<(Instant, AttemptFate)> {
    let mut seen = Vec::new();
    board.drain_outcomes(|outcome| seen.push((outcome.at, outcome.fate)));
    seen
}

/// A TPDU that is held for lost because another one overtook it, on a board that keeps outcomes.
fn overtaken() -> Scoreboard {
    let mut board = Scoreboard::new(TpduSeq(0));
    board.keep_outcomes();
    board.on_first_sent(at(0), 0, 100);
    board.on_first_sent(at(1), 100, 100);
    board.on_acked(at(21), TpduSeq(1), Some(RTT));
    board.on_arrival_of(at(21), stamp(1));
    assert_eq!(lost(&mut board), [TpduSeq(0)]);
    let told = [(at(0), AttemptFate::Lost), (at(1), AttemptFate::Arrived)];
    assert_eq!(outcomes(&mut board), told);
    board
}

#[test]
fn an_attempt_that_was_lost_and_its_repetition_have_an_outcome_each() {
    let mut board = overtaken();
    board.on_sent_again(at(22), TpduSeq(0));
    board.on_acked(at(43), TpduSeq(0), Some(RTT));
    assert_eq!(outcomes(&mut board), [(at(22), AttemptFate::Arrived)]);
}

#[test]
fn a_needless_repetition_takes_the_loss_back_and_has_no_outcome_of_its_own() {
    let taken_back = [(at(0), AttemptFate::ArrivedAfterAll)];
    let mut board = overtaken();
    board.on_acked(at(22), TpduSeq(0), Some(RTT));
    assert_eq!(outcomes(&mut board), taken_back, "before it left");
    let mut board = overtaken();
    board.on_sent_again(at(22), TpduSeq(0));
    board.on_acked(at(25), TpduSeq(0), Some(RTT));
    assert_eq!(outcomes(&mut board), taken_back, "too soon for an answer");
    let mut board = overtaken();
    board.on_sent_again(at(22), TpduSeq(0));
    board.on_echo(Some(stamp(1)));
    board.on_acked(at(400), TpduSeq(0), Some(RTT));
    assert_eq!(outcomes(&mut board), taken_back, "it knows nothing of it");
}

#[test]
fn an_answer_long_after_a_repetition_does_not_say_that_it_arrived() {
    let told = |ms: u64| {
        let mut board = overtaken();
        board.on_sent_again(at(22), TpduSeq(0));
        board.on_acked(at(ms), TpduSeq(0), Some(RTT));
        outcomes(&mut board)
    };
    // Two round trips of 20 ms, and 150 ms.
    assert_eq!(told(212), [(at(22), AttemptFate::Arrived)]);
    assert_eq!(told(213), [], "an answer to the first may have failed");
}

#[test]
fn damage_that_was_named_copies_precautions_and_symbols_have_no_outcome_that_could_be_wrong() {
    let mut board = Scoreboard::new(TpduSeq(0));
    board.keep_outcomes();
    for place in 0..4 {
        board.on_first_sent(at(place), place * 100, 100);
    }
    board.on_damaged(TpduSeq(0), at(0));
    board.on_copied(at(4), TpduSeq(1));
    board.on_sent_again(at(4), TpduSeq(2));
    board.on_acked(at(22), TpduSeq(0), Some(RTT));
    board.on_acked(at(22), TpduSeq(1), Some(RTT));
    board.on_acked(at(22), TpduSeq(2), Some(RTT));
    assert_eq!(outcomes(&mut board), []);
    board.on_nack(TpduSeq(3), stamp(3));
    board.on_symbol(at(22));
    assert_eq!(outcomes(&mut board), [(at(3), AttemptFate::Lost)]);
    board.on_acked(at(23), TpduSeq(3), Some(RTT));
    assert_eq!(outcomes(&mut board), [], "it came out of the symbol");
}

#[test]
fn a_claim_behind_the_sign_of_loss_takes_the_loss_back() {
    let mut board = overtaken();
    board.on_damaged(TpduSeq(0), at(0));
    let taken_back = [(at(0), AttemptFate::ArrivedAfterAll)];
    assert_eq!(outcomes(&mut board), taken_back);
    board.on_damaged(TpduSeq(0), at(0));
    board.on_sent_again(at(22), TpduSeq(0));
    board.on_acked(at(43), TpduSeq(0), Some(RTT));
    assert_eq!(outcomes(&mut board), [(at(22), AttemptFate::Arrived)]);
}

#[test]
fn precautions_that_are_all_lost_are_one_outcome_of_so_many() {
    let mut board = Scoreboard::new(TpduSeq(0));
    board.keep_outcomes();
    board.on_first_sent(at(0), 0, 100);
    board.on_sent_again(at(5), TpduSeq(0));
    board.on_sent_again(at(9), TpduSeq(0));
    board.on_timeout(at(9));
    let mut seen = Vec::new();
    board.drain_outcomes(|outcome| seen.push((outcome.at, outcome.fate, outcome.times)));
    assert_eq!(seen, [(at(9), AttemptFate::Lost, 3)]);
    board.on_acked(at(30), TpduSeq(0), Some(RTT));
    assert_eq!(
        outcomes(&mut board),
        [],
        "nobody knows which of them arrived"
    );
}

#[test]
fn copies_that_are_all_lost_are_one_outcome_of_so_many_and_the_next_attempt_is_not_alone() {
    let mut board = Scoreboard::new(TpduSeq(0));
    board.keep_outcomes();
    board.on_first_sent(at(0), 0, 100);
    board.on_copied(at(1), TpduSeq(0));
    board.on_timeout(at(9));
    board.on_sent_again(at(10), TpduSeq(0));
    board.on_timeout(at(19));
    let mut seen = Vec::new();
    board.drain_outcomes(|one| seen.push((one.at, one.fate, one.times, one.is_single)));
    assert_eq!(
        seen,
        [
            (at(0), AttemptFate::Lost, 2, false),
            (at(10), AttemptFate::Lost, 1, false)
        ]
    );
}

#[test]
fn outcomes_keep_no_memory_once_it_is_given_back() {
    let mut board = ten();
    board.keep_outcomes();
    board.on_acked_before(at(30), nth(9), None, |_| {});
    assert_eq!(outcomes(&mut board).len(), 9);
    board.give_back();
    let held = board.outcomes.as_ref().map(Vec::capacity);
    assert_eq!(held, Some(0));
}

#[test]
fn what_waits_for_an_earlier_tpdu_is_in_order_once_that_has_come() {
    let mut board = Scoreboard::new(nth(0));
    board.on_first_sent(at(0), 0, 100);
    board.on_first_sent(at(10), 100, 100);
    board.on_acked(at(50), nth(1), None);
    board.release_settled(at(50));
    assert_eq!(board.in_order_after(), None);
    board.on_sent_again(at(60), nth(0));
    board.on_acked(at(100), nth(0), None);
    board.release_settled(at(100));
    // A hundred milliseconds, then 90 with a weight of one in 64.
    let expected = Duration::from_nanos(99_843_750);
    assert_eq!(board.in_order_after(), Some(expected));
}
