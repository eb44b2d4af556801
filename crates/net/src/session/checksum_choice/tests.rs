//! The choice between UDP with its checksum and without it, fed by hand.

use super::*;

const TRIP: Duration = Duration::from_millis(20);

fn at(ms: u64) -> Instant {
    Instant::START + Duration::from_millis(ms)
}

fn counts(whole: u64, mended: u64) -> DamageCounts {
    DamageCounts {
        whole,
        mended,
        ..DamageCounts::default()
    }
}

/// Asks all pairs and answers so many of each form; returns what is decided, and when.
fn asked(choice: &mut ChecksumChoice, answered: [u32; 2]) -> (Instant, Option<ChecksumDecision>) {
    asked_from(choice, 0, answered)
}

/// Does the same where so many pairs left before, without an answer.
fn asked_from(
    choice: &mut ChecksumChoice,
    pairs: u32,
    answered: [u32; 2],
) -> (Instant, Option<ChecksumDecision>) {
    let mut now = choice.next_at(TRIP).expect("it asks");
    let (before, mut pairs) = (pairs, pairs);
    while choice.ask(now, TRIP) {
        for (form, count) in answered.into_iter().enumerate() {
            if pairs - before < count
                && let Some(decision) = choice.on_answer(now, form == 1)
            {
                return (now, Some(decision));
            }
        }
        pairs += 1;
        now = choice.next_at(TRIP).expect("another pair, or the end");
    }
    assert_eq!(pairs, PAIRS);
    (now, choice.due(now, TRIP))
}

/// A choice on a path where data was tried before.
fn tried() -> ChecksumChoice {
    let mut choice = ChecksumChoice::new();
    choice.begin(at(0), true);
    choice.is_untried = false;
    choice
}

/// A choice that knows that unchecked datagrams are carried, on such a path.
fn carried() -> (Instant, ChecksumChoice) {
    assert_eq!(ChecksumChoice::new().next_at(TRIP), None, "nobody is there");
    let mut choice = tried();
    let (now, decision) = asked(&mut choice, [8, 7]);
    let decision = decision.expect("they are carried");
    assert!(!decision.is_unchecked);
    assert_eq!(decision.why, Some(ChecksumReason::Carried));
    (now, choice)
}

fn passed(choice: &mut ChecksumChoice, now: Instant, sent: u64, arrived: u64) -> bool {
    let decision = choice.on_passage(now, Passage { sent, arrived });
    decision.is_some_and(|decision| decision.is_unchecked)
}

#[test]
fn a_path_that_drops_unchecked_datagrams_is_left_alone_for_ten_minutes() {
    let mut choice = ChecksumChoice::new();
    choice.begin(at(0), true);
    let (now, decision) = asked(&mut choice, [8, 0]);
    assert_eq!(
        decision.and_then(|decision| decision.why),
        Some(ChecksumReason::NotCarried)
    );
    assert!(!passed(&mut choice, now, 1_000, 500));
    assert_eq!(choice.next_at(TRIP), Some(now + ASK_AGAIN));
}

#[test]
fn where_checked_probes_are_lost_too_the_others_are_refused_by_two_questions_in_a_row() {
    let mut choice = ChecksumChoice::new();
    choice.begin(at(0), true);
    for (answered, is_refused) in [
        ([7, 0], false),
        ([2, 0], false),
        ([4, 0], false),
        ([4, 0], true),
    ] {
        let (now, decision) = asked(&mut choice, answered);
        let pause = if is_refused { ASK_AGAIN } else { ASK_SOON };
        assert_eq!(choice.next_at(TRIP), Some(now + pause), "{answered:?}");
        assert_eq!(decision.is_some(), is_refused, "{answered:?}");
    }
    // Unchecked ones that came, though their answers were lost, are not refused.
    choice.begin(at(0), true);
    choice.ask(at(0), TRIP);
    choice.on_told(at(30), counts(2, 1));
    let (now, decision) = asked_from(&mut choice, 1, [8, 0]);
    assert_eq!(
        (decision, choice.next_at(TRIP)),
        (None, Some(now + ASK_SOON))
    );
}

#[test]
fn unchecked_probes_that_are_told_to_come_damaged_are_reason_enough() {
    let mut choice = ChecksumChoice::new();
    choice.begin(at(0), true);
    choice.ask(at(0), TRIP);
    assert_eq!(
        choice.on_told(at(20), counts(0, 4)),
        None,
        "none was answered"
    );
    let decision = choice.on_answer(at(20), true).expect("they are carried");
    let share = DamagedShare {
        damaged: 4,
        arrived: 4,
    };
    assert_eq!(decision.why, Some(ChecksumReason::Damage(share)));
    assert!(decision.is_unchecked && choice.is_unchecked());
    // What was told before the question does not count, and three may be chance.
    choice.begin(at(1_000), true);
    choice.ask(at(1_000), TRIP);
    assert_eq!(choice.on_answer(at(1_020), true), None);
    assert_eq!(choice.on_told(at(1_020), counts(0, 7)), None);
    assert!(choice.on_told(at(1_030), counts(0, 8)).is_some());
}

#[test]
fn too_few_answers_of_either_form_decide_nothing() {
    let mut choice = ChecksumChoice::new();
    choice.begin(at(0), true);
    for answered in [[0, 0], [3, 0], [8, 1], [2, 3]] {
        let (now, decision) = asked(&mut choice, answered);
        assert_eq!(decision, None, "{answered:?}");
        assert_eq!(choice.next_at(TRIP), Some(now + ASK_SOON));
    }
}

#[test]
fn a_peer_that_mends_nothing_is_asked_nothing() {
    let mut choice = ChecksumChoice::new();
    choice.begin(at(0), false);
    assert_eq!(choice.next_at(TRIP), None);
    assert!(!choice.ask(at(10_000), TRIP));
}

#[test]
fn a_path_without_loss_is_never_tried() {
    let (now, mut choice) = carried();
    for second in 1..100 {
        let now = now + Duration::from_secs(second);
        assert!(!passed(
            &mut choice,
            now,
            second * 1_000,
            second * 1_000 - 3
        ));
    }
}

#[test]
fn losses_without_damage_are_tried_more_and_more_rarely() {
    let (began, mut choice) = carried();
    let (mut sent, mut whole, mut trials) = (0, 0, Vec::new());
    for tick in 0..3_600 {
        let now = began + Duration::from_secs(tick);
        sent += 200;
        if passed(&mut choice, now, sent, sent / 10 * 8) {
            trials.push(tick);
            whole += TRIAL_DATAGRAMS;
            let end = choice.on_told(now, counts(whole, 0)).expect("it ends");
            assert!(!end.is_unchecked);
            assert!(matches!(end.why, Some(ChecksumReason::NoDamage(_))));
        }
    }
    let pauses: Vec<u64> = trials.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600, 600, 600]);
}

#[test]
fn damage_changes_the_form_and_its_end_changes_it_back() {
    let (now, mut choice) = carried();
    assert!(passed(&mut choice, now, 200, 180));
    assert!(choice.is_unchecked());
    assert_eq!(
        choice.on_told(now, counts(20, 3)),
        None,
        "three may be chance"
    );
    let decision = choice.on_told(now, counts(30, 4)).expect("enough");
    let share = DamagedShare {
        damaged: 4,
        arrived: 34,
    };
    assert_eq!(decision.why, Some(ChecksumReason::Damage(share)));
    assert!(decision.is_unchecked);
    // A thousand with damage enough, then a thousand with next to none.
    let now = now + WINDOW;
    assert_eq!(choice.on_told(now, counts(1_030, 24)), None);
    let now = now + WINDOW;
    let decision = choice.on_told(now, counts(2_030, 27)).expect("it is clean");
    assert!(!decision.is_unchecked && !choice.is_unchecked());
    assert!(matches!(decision.why, Some(ChecksumReason::NoDamage(_))));
}

#[test]
fn unchecked_datagrams_that_are_heard_of_no_more_end_it_soon() {
    let (now, mut choice) = carried();
    assert!(passed(&mut choice, now, 200, 180));
    choice.on_told(now, counts(30, 10));
    for sent in 0..UNTOLD_FEW {
        assert_eq!(choice.next_at(TRIP), None, "after {sent}");
        choice.on_sent(now, 1_000);
    }
    let end = choice.next_at(TRIP).expect("a bound");
    assert_eq!(end, now + UNTOLD_FEW_TIME + TRIP * 2);
    for _ in UNTOLD_FEW..UNTOLD_MANY {
        choice.on_sent(now, 1_000);
    }
    let end = choice.next_at(TRIP).expect("a bound");
    assert_eq!(end, now + UNTOLD_TIME + TRIP * 2);
    assert_eq!(choice.due(end - Duration::from_nanos(1), TRIP), None);
    let decision = choice.due(end, TRIP).expect("they are not carried");
    assert!(!decision.is_unchecked);
    assert_eq!(decision.why, Some(ChecksumReason::NotCarried));
    assert!(choice.next_at(TRIP).is_some(), "it asks again");
}

#[test]
fn trials_become_rarer_where_small_probes_pass_and_full_datagrams_do_not() {
    let (mut now, mut choice) = carried();
    for pause in [10, 20, 40] {
        let sent = choice.passed.sent + 200;
        assert!(passed(&mut choice, now, sent, 0));
        for _ in 0..UNTOLD_MANY {
            choice.on_sent(now, 1_000);
        }
        let end = choice.next_at(TRIP).expect("a bound");
        let decision = choice.due(end, TRIP).expect("they are not carried");
        assert_eq!(decision.why, Some(ChecksumReason::NotCarried));
        let again = choice.next_at(TRIP).expect("it asks again");
        assert_eq!(again, end + Duration::from_secs(pause));
        (now, _) = asked(&mut choice, [8, 8]);
    }
}

#[test]
fn nothing_is_missed_after_a_pause_nor_before_the_first_word_could_come() {
    let (mut now, mut choice) = carried();
    assert!(passed(&mut choice, now, 200, 180));
    for _ in 0..UNTOLD_MANY * 2 {
        choice.on_sent(now, 100);
    }
    let bound = Some(now + TRIAL_MAX);
    assert_eq!(choice.next_at(TRIP), bound, "acknowledgements alone");
    choice.on_told(now, counts(30, 10));
    for _ in 0..UNTOLD_FEW {
        choice.on_sent(now, 100);
    }
    now += UNTOLD_FEW_TIME;
    choice.on_sent(now, 100);
    assert_eq!(choice.next_at(TRIP), None, "what left before the pause");
}

#[test]
fn an_outage_and_a_move_end_it_and_it_is_asked_again() {
    let (now, mut choice) = carried();
    assert_eq!(choice.on_down(now), None, "data has checksums");
    assert!(passed(&mut choice, now, 200, 180));
    let decision = choice.on_down(now).expect("it ends");
    assert_eq!(decision.why, Some(ChecksumReason::Silence));
    assert_eq!(choice.next_at(TRIP), Some(now + ASK_SOON));
    choice.begin(now, true);
    assert_eq!(choice.next_at(TRIP), Some(now));
}

#[test]
fn a_trial_of_which_nothing_is_told_ends() {
    let (now, mut choice) = carried();
    assert!(passed(&mut choice, now, 200, 180));
    for _ in 0..UNTOLD_MANY {
        choice.on_sent(now, 100);
    }
    let end = choice.next_at(TRIP).expect("its end");
    assert_eq!(end, now + TRIAL_MAX);
    let decision = choice.due(end, TRIP).expect("it ends");
    assert!(!decision.is_unchecked);
    assert_eq!(decision.why, Some(ChecksumReason::Untold));
}

#[test]
fn the_first_data_on_a_path_that_carries_them_is_tried_unchecked_and_no_other_without_loss() {
    let mut choice = ChecksumChoice::new();
    choice.begin(at(0), true);
    let (now, decision) = asked(&mut choice, [8, 8]);
    assert!(
        now < at(200),
        "half of the answers are enough, not at {now}"
    );
    let decision = decision.expect("a trial");
    assert!(decision.is_unchecked && decision.why.is_none());
    assert_eq!(choice.next_at(TRIP), None, "it waits for data");
    let now = now + Duration::from_secs(60);
    choice.on_sent(now, 1_000);
    assert_eq!(choice.next_at(TRIP), Some(now + TRIAL_MAX));
    let end = choice.on_told(now, counts(TRIAL_DATAGRAMS, 0));
    let end = end.expect("nothing was damaged");
    assert!(!end.is_unchecked);
    for second in 1..100 {
        let now = now + Duration::from_secs(second);
        assert!(!passed(&mut choice, now, second * 1_000, second * 1_000));
    }
    // Somewhere else it is tried once more.
    choice.begin(now, true);
    let (_, decision) = asked(&mut choice, [8, 8]);
    assert!(decision.is_some_and(|decision| decision.is_unchecked));
}

#[test]
fn a_trial_with_few_datagrams_goes_on_until_they_tell_something() {
    let mut choice = ChecksumChoice::new();
    choice.begin(at(0), true);
    let (mut now, _) = asked(&mut choice, [8, 8]);
    for round in 1..4 {
        choice.on_sent(now, 100);
        assert_eq!(choice.on_told(now, counts(10 * round, round)), None);
        choice.on_sent(now, 100);
        now = choice.next_at(TRIP).expect("its end");
        assert_eq!(choice.due(now, TRIP), None, "round {round}");
        assert!(choice.is_unchecked());
    }
    let decision = choice.on_told(now, counts(40, 4)).expect("enough");
    assert!(matches!(decision.why, Some(ChecksumReason::Damage(_))));
}

#[test]
fn less_damage_than_parity_costs_keeps_the_checksum() {
    let (now, mut choice) = carried();
    assert!(passed(&mut choice, now, 200, 180));
    assert_eq!(
        choice.on_told(now, counts(396, 4)),
        None,
        "one in a hundred"
    );
    let decision = choice.on_told(now, counts(508, 5)).expect("its end");
    assert!(!decision.is_unchecked);
    assert!(matches!(decision.why, Some(ChecksumReason::NoDamage(_))));
}

#[test]
fn where_checked_probes_fare_worse_data_is_tried_at_once() {
    for (answered, tries) in [
        ([1, 4], true),
        ([4, 7], true),
        ([2, 4], false),
        ([8, 8], false),
    ] {
        let mut choice = tried();
        let (_, decision) = asked(&mut choice, answered);
        let decision = decision.expect("they are carried");
        assert_eq!(decision.is_unchecked, tries, "{answered:?}");
        assert_eq!(decision.why.is_none(), tries, "{answered:?}");
    }
}

#[test]
fn where_nothing_is_told_of_checked_data_it_is_tried_unchecked() {
    let (now, mut choice) = carried();
    for sent in 0..UNHEARD_MANY {
        assert_eq!(choice.next_at(TRIP), None, "after {sent}");
        choice.on_sent_checked(now);
    }
    let end = now + UNHEARD_TIME + TRIP * 2;
    assert_eq!(choice.next_at(TRIP), Some(end));
    assert_eq!(choice.due(end - Duration::from_nanos(1), TRIP), None);
    let decision = choice.due(end, TRIP).expect("a trial");
    assert!(decision.is_unchecked && decision.why.is_none());
    for _ in 0..UNTOLD_MANY {
        choice.on_sent(end, 100);
    }
    let over = choice.next_at(TRIP).expect("its end");
    assert_eq!(over, end + TRIAL_MAX);
    choice.due(over, TRIP).expect("it ends");
    for _ in 0..UNHEARD_MANY {
        choice.on_sent_checked(over);
    }
    let next = choice.next_at(TRIP).expect("the next trial");
    assert_eq!(next, over + TRIAL_AGAIN, "after the pause at the earliest");
}

#[test]
fn what_arrives_checked_and_what_is_lost_in_an_outage_begins_no_trial() {
    let (now, mut choice) = carried();
    for _ in 0..UNHEARD_MANY {
        choice.on_sent_checked(now);
    }
    assert!(!passed(&mut choice, now, 20, 20));
    assert_eq!(choice.next_at(TRIP), None);
    for _ in 0..UNHEARD_MANY {
        choice.on_sent_checked(now);
    }
    assert_eq!(choice.on_down(now), None);
    assert_eq!(choice.next_at(TRIP), None);
}

#[test]
fn what_left_before_the_peer_moved_begins_no_trial() {
    let (now, mut choice) = carried();
    for _ in 0..UNHEARD_MANY {
        choice.on_sent_checked(now);
    }
    choice.begin(now, true);
    choice.is_untried = false;
    let (_, decision) = asked(&mut choice, [8, 8]);
    let why = decision.and_then(|decision| decision.why);
    assert_eq!(why, Some(ChecksumReason::Carried));
    assert_eq!(choice.next_at(TRIP), None);
}
