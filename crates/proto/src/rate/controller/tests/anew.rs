//! Rates that are far below what a train showed, on a link that is ours.

use super::*;

const DELAY: Duration = Duration::from_millis(10);
/// 10 mbit.
const FAST: Duration = Duration::from_micros(1_200);

fn own() -> RateConfig {
    RateConfig {
        sharing: RateSharing::Own,
        ..RateConfig::default()
    }
}

/// A path of 10 mbit that stalls behind the first train until the search has ended at a small part of it.
fn stalled(config: RateConfig, spacing: Duration) -> Pipe {
    let mut pipe = Pipe::new(config);
    pipe.run(at(20), FAST, DELAY);
    while pipe.controller.start.is_some() {
        let later = pipe.now + Duration::from_millis(10);
        pipe.run(later, spacing, DELAY);
    }
    pipe
}

/// Runs until then and counts the searches that begin.
fn searches(pipe: &mut Pipe, until: Instant, spacing: Duration) -> u32 {
    let (mut began, mut was_searching) = (0, false);
    while pipe.now < until {
        let later = pipe.now + Duration::from_millis(2);
        pipe.run(later, spacing, DELAY);
        let searches = pipe.controller.start.is_some();
        began += u32::from(searches && !was_searching);
        was_searching = searches;
    }
    began
}

#[test]
fn a_rate_far_below_the_train_s_is_searched_again_once_a_trial_finds_no_queue() {
    let mut pipe = Pipe::new(own());
    pipe.run(at(2_000), FAST, DELAY);
    pipe.controller.capacity /= 50.0;
    let soon = pipe.now + Duration::from_secs(6);
    assert!(searches(&mut pipe, soon, FAST) >= 1);
    let found = pipe.rate() / 10e6;
    assert!((0.8..1.1).contains(&found), "{found}");
}

#[test]
fn a_search_begins_again_only_on_a_link_that_is_ours_and_where_nothing_was_missing_without_a_queue()
{
    let mut pipe = stalled(own(), FAST * 40);
    let now = pipe.now;
    for sharing in [RateSharing::Fair, RateSharing::Background] {
        pipe.controller.sharing = sharing;
        pipe.controller.search_if_far_below(now);
        assert!(pipe.controller.start.is_none(), "{sharing:?}");
    }
    pipe.controller.sharing = RateSharing::Own;
    pipe.controller.is_cut = true;
    pipe.controller.search_if_far_below(now);
    assert!(pipe.controller.start.is_none(), "a loss explains it");
    pipe.controller.is_cut = false;
    pipe.controller.search_if_far_below(now);
    assert!(pipe.controller.start.is_some());
}

#[test]
fn a_link_that_stays_slower_than_its_first_train_is_searched_once_more_at_most() {
    // 10 mbit, then 0.5.
    let slow = FAST * 20;
    let mut pipe = stalled(own(), slow);
    let now = pipe.now;
    let began = searches(&mut pipe, now + Duration::from_secs(60), slow);
    assert!(began <= 1, "{began}");
    let found = pipe.rate() / 0.5e6;
    assert!((0.9..1.1).contains(&found), "{found}");
}

#[test]
fn a_bucket_that_passes_every_train_at_line_rate_is_searched_more_and_more_rarely() {
    // 1 mbit behind a bucket of twelve datagrams, on a line of 1 gbit.
    let spacing = FAST * 10;
    let mut pipe = Pipe::new(own());
    pipe.bucket = 12;
    pipe.run(at(2_000), spacing, DELAY);
    let now = pipe.now;
    let began = searches(&mut pipe, now + Duration::from_secs(120), spacing);
    assert!(began <= 4, "{began}");
    let before = pipe.next;
    pipe.run(pipe.now + Duration::from_secs(10), spacing, DELAY);
    let sent = (pipe.next - before) as f64 * 12_000.0 / 10.0 / 1e6;
    assert!((0.9..1.1).contains(&sent), "{sent}");
}
