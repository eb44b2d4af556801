//! The look behind a search that ended without a queue.

use super::*;

const DELAY: Duration = Duration::from_millis(10);
/// 10 mbit.
const SPACING: Duration = Duration::from_micros(1_200);

/// The milliseconds from the end of a search to the first look, and from the first datagram to that.
fn first_look(waiting: ByteCount, sharing: RateSharing) -> (u64, u64) {
    let mut pipe = Pipe::new(RateConfig {
        sharing,
        ..RateConfig::default()
    });
    pipe.waiting = waiting;
    let mut found_at = None;
    for millisecond in 1..2_000 {
        pipe.run(at(millisecond), SPACING, DELAY);
        if pipe.controller.start.is_some() {
            continue;
        }
        let found_at = *found_at.get_or_insert(millisecond);
        if pipe.controller.epochs.iter().any(Epoch::is_look) {
            return (millisecond - found_at, millisecond);
        }
    }
    panic!("no look");
}

#[test]
fn a_short_backlog_leaves_before_the_first_look_and_a_long_one_waits_for_it() {
    for sharing in [RateSharing::Fair, RateSharing::Own, RateSharing::Background] {
        // A quarter of a second at the link's rate and more is six looks.
        let (behind, _) = first_look(ByteCount(400_000), sharing);
        assert_eq!(behind, 0, "{sharing:?}: much waits");
        // Of some writers no more than this is known to wait, whatever is behind it.
        let (_, after) = first_look(ByteCount(30_000), sharing);
        assert!((200..450).contains(&after), "{sharing:?}: {after} ms");
    }
}

/// The parts of the estimate that are sent behind trials in the second after the search.
fn behind_trials(waiting: ByteCount) -> Vec<f64> {
    let mut pipe = Pipe::new(RateConfig::default());
    pipe.waiting = waiting;
    let (mut found_at, mut gains) = (None, Vec::new());
    for millisecond in 1..1_300 {
        pipe.run(at(millisecond), SPACING, DELAY);
        if pipe.controller.start.is_some() {
            continue;
        }
        let found_at = *found_at.get_or_insert(millisecond);
        let epoch = pipe
            .controller
            .epochs
            .back()
            .filter(|epoch| epoch.kind == EpochKind::Down);
        let behind = epoch.filter(|epoch| !epoch.is_look());
        if let Some(epoch) = behind.filter(|_| millisecond < found_at + 200)
            && gains.last() != Some(&epoch.gain)
        {
            gains.push(epoch.gain);
        }
    }
    gains
}

#[test]
fn behind_the_first_trial_a_short_answer_is_sent_at_the_estimate_and_bulk_below_it() {
    let short = behind_trials(ByteCount(30_000));
    assert!(short.first() == Some(&1.0), "{short:?}");
    let bulk = behind_trials(ENDLESS);
    assert!(bulk.first().is_some_and(|gain| *gain < 1.0), "{bulk:?}");
}

#[test]
fn one_datagram_that_waits_is_a_queue_on_a_short_way_of_our_own_alone() {
    let least = |sharing, round_trip: u64| {
        let mut pipe = Pipe::new(RateConfig {
            sharing,
            ..RateConfig::default()
        });
        pipe.run(at(2_000), SPACING, Duration::from_millis(round_trip));
        pipe.controller.queue_least() * pipe.controller.capacity / PACKET.0 as f64
    };
    for (sharing, round_trip, datagrams) in [
        (RateSharing::Own, 27, 1.0),
        (RateSharing::Own, 33, 1.5),
        (RateSharing::Fair, 27, 1.5),
        (RateSharing::Background, 27, 1.5),
    ] {
        let seen = least(sharing, round_trip);
        assert!(
            (seen - datagrams).abs() < 0.05,
            "{sharing:?}, {round_trip} ms: {seen}"
        );
    }
}

#[test]
fn what_waited_and_went_without_leaving_is_no_time_of_sending() {
    let mut pipe = Pipe::new(RateConfig::default());
    pipe.waiting = ByteCount(30_000);
    pipe.run(at(150), SPACING, DELAY);
    assert!(pipe.controller.start.is_none(), "the search has ended");
    // The connection was reset, and another begins after a pause.
    pipe.now = at(3_000);
    pipe.free_at = pipe.now;
    for millisecond in 3_001..3_100 {
        pipe.run(at(millisecond), SPACING, DELAY);
        assert!(
            !pipe.controller.epochs.iter().any(Epoch::is_look),
            "a look after {} ms",
            millisecond - 3_000
        );
    }
}

#[test]
fn there_is_no_look_behind_the_last_datagram_however_long_something_was_sent() {
    let mut pipe = Pipe::new(RateConfig::default());
    pipe.run(at(4_000), SPACING, DELAY);
    let look = 0.05;
    assert!(pipe.controller.is_worth_a_look(pipe.now, look));
    pipe.controller
        .on_sent(pipe.now, pipe.next, PACKET, ByteCount::ZERO);
    assert!(!pipe.controller.is_worth_a_look(pipe.now, look));
}

/// The looks that begin until then.
fn looks(pipe: &mut Pipe, until: Instant) -> usize {
    let mut began = Vec::new();
    while pipe.now < until {
        let later = pipe.now + Duration::from_millis(1);
        pipe.run(later, SPACING, DELAY);
        let newest = pipe.controller.epochs.iter().filter(|one| one.is_look());
        began.extend(newest.map(|look| look.began));
        began.dedup();
    }
    began.len()
}

#[test]
fn a_search_that_ends_with_a_look_leaves_none_due_of_the_search_before() {
    let mut pipe = Pipe::new(RateConfig {
        sharing: RateSharing::Own,
        ..RateConfig::default()
    });
    pipe.waiting = ByteCount(30_000);
    while pipe.controller.start.is_some() || pipe.controller.epochs.is_empty() {
        let later = pipe.now + Duration::from_millis(1);
        pipe.run(later, SPACING, DELAY);
    }
    assert!(pipe.controller.response.look_after_search);
    // The link stalled, and is searched again while much waits.
    pipe.controller.capacity /= 50.0;
    let now = pipe.now;
    pipe.controller.search_if_far_below(now);
    assert!(pipe.controller.start.is_some());
    pipe.waiting = ENDLESS;
    assert_eq!(looks(&mut pipe, now + Duration::from_secs(4)), 1);
    assert!(pipe.controller.start.is_none());
}
