use super::*;
use proptest::prelude::*;

fn at(millis: u64) -> Instant {
    Instant::START + Duration::from_millis(millis)
}

fn liveness() -> Liveness {
    Liveness::new(LivenessConfig::default(), at(0))
}

/// The things that become due up to `until`, each with its time.
fn run(liveness: &mut Liveness, until: u64) -> Vec<(u64, Due)> {
    let mut log = Vec::new();
    while let Some(deadline) = liveness.next_deadline().filter(|d| d.at <= at(until)) {
        let due = liveness.due(deadline.at).expect("named a deadline");
        log.push((deadline.at.as_nanos() / 1_000_000, due));
    }
    log
}

#[test]
fn silence_is_asked_about_and_then_is_an_outage_with_probes() {
    let mut liveness = liveness();
    liveness.on_rtt_sample(Duration::from_millis(10));
    liveness.on_sent(at(1_000), Wants::Answer);
    let silent = Duration::from_millis(300);
    assert_eq!(
        run(&mut liveness, 1_800),
        [
            (1_075, Due::Doubt),
            (1_075, Due::Probe),
            (1_150, Due::Probe),
            (1_225, Due::Probe),
            (1_300, Due::Down(silent)),
            (1_475, Due::Probe),
            (1_725, Due::Probe),
        ]
    );
    let down_for = liveness.down_for(at(1_800));
    let Heard { outage, ends_doubt } = liveness.on_heard(at(1_800), Wants::Nothing);
    assert!(ends_doubt && down_for == outage);
    let since_asked = Duration::from_millis(800);
    assert_eq!(outage, Some(since_asked), "not since it was noticed");
    assert!(!liveness.is_down());
    assert_eq!(run(&mut liveness, 11_700), []);
}

#[test]
fn what_wants_an_answer_gets_one_soon_unless_something_else_leaves_first() {
    let mut liveness = liveness();
    liveness.on_heard(at(1_000), Wants::Answer);
    assert_eq!(run(&mut liveness, 2_000), [(1_075, Due::Heartbeat)]);
    liveness.on_heard(at(2_000), Wants::Answer);
    liveness.on_sent(at(2_010), Wants::Nothing);
    assert_eq!(run(&mut liveness, 3_000), []);
}

#[test]
fn an_idle_link_is_kept_alive_without_being_suspected() {
    let mut liveness = liveness();
    assert_eq!(run(&mut liveness, 9_999), []);
    assert_eq!(run(&mut liveness, 10_000), [(10_000, Due::Probe)]);
}

/// One of several paths, of which others are up.
fn backed(rtt_millis: u64) -> Liveness {
    let mut liveness = liveness();
    liveness.on_rtt_sample(Duration::from_millis(rtt_millis));
    liveness.set_one_of_several(true);
    liveness.set_backed(true, Duration::from_millis(rtt_millis));
    liveness
}

#[test]
fn a_link_that_was_never_heard_is_down_from_when_another_path_reached_the_peer() {
    let mut liveness = liveness();
    assert!(liveness.fall_unheard(at(1_000)));
    assert!(!liveness.fall_unheard(at(1_001)), "it is down already");
    // No data leaves there, but probes do, from the first moment on.
    assert_eq!(liveness.due(at(1_001)), Some(Due::Probe));
    let outage = Some(Duration::from_millis(500));
    assert_eq!(liveness.on_heard(at(1_500), Wants::Nothing).outage, outage);
    assert!(!liveness.is_down());
}

#[test]
fn a_path_is_asked_before_it_is_down_where_others_carry_on_also_on_a_long_way() {
    for (rtt, asked, down) in [(40, 1_060, 1_150), (300, 1_450, 1_525), (600, 1_900, 2_050)] {
        let mut liveness = backed(rtt);
        liveness.on_sent(at(1_000), Wants::Answer);
        let log = run(&mut liveness, down);
        let first = [(asked, Due::Doubt), (asked, Due::Probe)];
        assert_eq!(log[..2], first, "{rtt} ms");
        let is_down = |(at, due): &(u64, Due)| *at == down && matches!(due, Due::Down(_));
        assert!(log.iter().any(is_down), "{rtt} ms: {log:?}");
    }
}

#[test]
fn the_last_path_that_is_up_has_the_patience_of_a_single_one() {
    let mut liveness = backed(40);
    assert_eq!(liveness.down_after(), BACKED_DOWN_AFTER_MIN);
    liveness.set_backed(false, Duration::ZERO);
    assert_eq!(
        liveness.down_after(),
        LivenessConfig::default().down_after_min
    );
}

/// Sends and hears something each 10 ms until `until`. Returns what became due, but for heartbeats.
fn talk(liveness: &mut Liveness, from: u64, until: u64) -> Vec<(u64, Due)> {
    let mut log = Vec::new();
    for millis in (from..until).step_by(10) {
        log.extend(run(liveness, millis));
        liveness.on_sent(at(millis), Wants::Answer);
        liveness.on_heard(at(millis), Wants::Nothing);
    }
    log
}

#[test]
fn a_path_on_which_nothing_arrives_there_is_down_until_a_proof_though_much_is_heard() {
    let mut liveness = backed(40);
    let log = talk(&mut liveness, 1_000, 1_510);
    let unproved = Due::Unproved(Duration::from_millis(495));
    let probes = [
        1_150, 1_210, 1_247, 1_285, 1_322, 1_360, 1_397, 1_435, 1_472,
    ];
    let probes = probes.map(|at| (at, Due::Probe));
    assert_eq!(log, [&probes[..], &[(1_495, unproved)]].concat());
    assert!(liveness.is_down());
    assert_eq!(liveness.on_heard(at(1_510), Wants::Nothing).outage, None);
    assert!(liveness.is_down(), "what is heard is no proof");
    let outage = Some(Duration::from_millis(600));
    assert_eq!(liveness.down_for(at(1_600)), outage, "since it was asked");
    assert_eq!(liveness.on_proved(at(1_600)), outage);
    assert!(!liveness.is_down());
    let of_it = Outages {
        count: 1,
        time: Duration::from_millis(600),
    };
    assert_eq!(liveness.outages(at(9_000)), of_it);
}

#[test]
fn an_outage_of_both_directions_ends_with_what_is_heard() {
    let mut liveness = backed(40);
    liveness.on_sent(at(1_000), Wants::Answer);
    let log = run(&mut liveness, 1_500);
    assert!(!log.iter().any(|(_, due)| matches!(due, Due::Unproved(_))));
    assert!(liveness.is_down());
    let Heard { outage, .. } = liveness.on_heard(at(2_000), Wants::Nothing);
    assert_eq!(outage, Some(Duration::from_secs(1)));
    assert_eq!(liveness.on_proved(at(2_000)), None);
}

#[test]
fn proofs_that_come_rarely_are_waited_for_longer_and_a_slow_path_is_waited_for() {
    let mut liveness = backed(40);
    for n in 0..100 {
        liveness.on_sent(at(n * 200), Wants::Answer);
        liveness.on_proved(at(n * 200 + 100));
    }
    let (asked, _) = liveness.unproved_after().expect("backed");
    assert!(asked > Duration::from_millis(299), "{asked:?}");
    let mut liveness = backed(40);
    liveness.set_backed(true, Duration::from_millis(300));
    let after = liveness.unproved_after();
    let millis = Duration::from_millis;
    assert_eq!(after, Some((millis(450), millis(795))));
}

#[test]
fn the_only_path_that_is_up_needs_no_proof() {
    let mut liveness = backed(40);
    liveness.set_backed(false, Duration::from_millis(40));
    assert_eq!(talk(&mut liveness, 1_000, 9_000), []);
    // What left before says nothing once others are there.
    liveness.set_backed(true, Duration::from_millis(40));
    assert_eq!(talk(&mut liveness, 9_000, 9_140), []);
}

#[test]
fn a_link_that_answers_rarely_is_given_more_time_within_a_bound() {
    let mut liveness = liveness();
    assert_eq!(
        liveness.down_after(),
        Duration::from_secs(3),
        "nothing is known yet"
    );
    liveness.on_rtt_sample(Duration::from_millis(10));
    for n in 0..100 {
        liveness.on_sent(at(n * 200), Wants::Answer);
        liveness.on_heard(at(n * 200 + 100), Wants::Nothing);
    }
    let twelve_times = Duration::from_millis(1_200);
    let short = twelve_times.saturating_sub(liveness.down_after());
    assert!(
        short < Duration::from_millis(1),
        "{:?}",
        liveness.down_after()
    );
    for n in 0..100 {
        liveness.on_sent(at(30_000 + n * 2_000), Wants::Answer);
        liveness.on_heard(at(30_000 + n * 2_000 + 1_000), Wants::Nothing);
    }
    assert_eq!(liveness.down_after(), Duration::from_secs(3));
    for _ in 0..30 {
        liveness.on_rtt_sample(Duration::from_secs(2));
    }
    assert!(liveness.down_after() > Duration::from_millis(5_999));
}

#[test]
fn a_path_that_falls_silent_again_before_anything_was_proved_is_up_with_a_proof_alone() {
    for is_proved in [false, true] {
        let mut liveness = backed(40);
        for (begin, silent) in [(1_000, 200), (2_000, 400)] {
            liveness.on_sent(at(begin), Wants::Answer);
            run(&mut liveness, begin + silent);
            assert!(liveness.is_down());
            let Heard { outage, .. } = liveness.on_heard(at(begin + silent + 10), Wants::Answer);
            let ends = begin == 1_000 || is_proved;
            assert_eq!(outage.is_some(), ends, "{begin} {is_proved}");
            if is_proved {
                liveness.on_proved(at(begin + silent + 50));
            }
        }
        assert_eq!(liveness.on_proved(at(2_600)).is_some(), !is_proved);
        assert!(!liveness.is_down());
    }
}

#[test]
fn doubt_begins_once_in_a_silence_and_never_where_nothing_is_awaited() {
    let mut liveness = backed(200);
    liveness.on_sent(at(1_000), Wants::Answer);
    let doubts = |log: &[(u64, Due)]| log.iter().filter(|(_, due)| *due == Due::Doubt).count();
    assert_eq!(doubts(&run(&mut liveness, 1_340)), 1);
    let heard = liveness.on_heard(at(1_341), Wants::Nothing);
    assert_eq!((heard.outage, heard.ends_doubt), (None, true));
    assert_eq!(doubts(&run(&mut liveness, 9_000)), 0);
    assert!(!liveness.on_heard(at(9_001), Wants::Nothing).ends_doubt);
}

#[test]
fn a_link_at_rest_has_nothing_due_and_looks_for_no_proofs_where_it_is_not_to() {
    let config = LivenessConfig {
        keep_alive: None,
        wants_proofs: false,
        ..LivenessConfig::USUAL
    };
    let mut liveness = Liveness::new(config, at(0));
    liveness.set_one_of_several(true);
    liveness.set_backed(true, Duration::from_millis(40));
    liveness.on_rtt_sample(Duration::from_millis(40));
    assert_eq!(talk(&mut liveness, 1_000, 4_000), []);
    liveness.on_sent(at(4_000), Wants::Answer);
    liveness.on_heard(at(4_001), Wants::Answer);
    liveness.on_sent(at(4_001), Wants::Answer);
    assert!(liveness.next_deadline().is_some());
    liveness.rest();
    assert_eq!(liveness.next_deadline(), None);
}

#[test]
fn what_the_link_tells_ends_a_doubt_in_either_direction() {
    for word in [false, true] {
        let mut liveness = liveness();
        liveness.on_rtt_sample(Duration::from_millis(10));
        liveness.on_sent(at(1_000), Wants::Answer);
        let due = run(&mut liveness, 1_080);
        assert!(due.contains(&(1_075, Due::Doubt)) && liveness.is_doubted());
        liveness.on_told(at(1_090), Some(word));
        assert!(!liveness.is_doubted(), "{word}");
    }
}

#[test]
fn without_a_keep_alive_nothing_is_due_while_the_link_tells_that_it_is_down() {
    let config = LivenessConfig {
        keep_alive: None,
        ..LivenessConfig::USUAL
    };
    let mut liveness = Liveness::new(config, at(0));
    liveness.on_sent(at(1_000), Wants::Answer);
    assert_eq!(liveness.on_told(at(1_010), Some(false)), ToldChange::Down);
    assert_eq!(liveness.next_deadline(), None);
}

/// One thing that happens to a link.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Sent(Wants),
    Heard(Wants),
    Proved,
    RoundTrip(u64),
    Backed(bool, u64),
    OneOfSeveral(bool),
    TryAgain,
    Rest,
    Told(Option<bool>),
    /// So many milliseconds pass.
    Pass(u64),
    /// The next deadline comes, so many milliseconds late.
    Deadline(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::{
        Backed, Deadline, Heard, OneOfSeveral, Pass, Proved, Rest, RoundTrip, Sent, Told, TryAgain,
    };
    let wants = || prop_oneof![Just(Wants::Answer), Just(Wants::Nothing)];
    prop_oneof![
        4 => wants().prop_map(Sent),
        3 => wants().prop_map(Heard),
        2 => Just(Proved),
        2 => (0..900_u64).prop_map(RoundTrip),
        2 => (any::<bool>(), 0..900_u64).prop_map(|(is_backed, millis)| Backed(is_backed, millis)),
        1 => any::<bool>().prop_map(OneOfSeveral),
        1 => Just(TryAgain),
        1 => Just(Rest),
        2 => any::<Option<bool>>().prop_map(Told),
        3 => (0..400_u64).prop_map(Pass),
        8 => (0..3_u64).prop_map(Deadline),
    ]
}

/// Does all that is due, as a session does. Returns how many things that were.
fn do_due(liveness: &mut Liveness, now: Instant) -> usize {
    let mut done = 0;
    while let Some(due) = liveness.due(now) {
        match due {
            Due::Heartbeat => liveness.on_sent(now, Wants::Nothing),
            Due::Probe => liveness.on_sent(now, Wants::Answer),
            Due::Doubt | Due::Down(_) | Due::Unproved(_) => {}
        }
        done += 1;
        assert!(done <= 8, "{due:?} again and again");
    }
    done
}

proptest! {
    /// A deadline that is due and does nothing makes a driver spin.
    #[test]
    fn at_each_deadline_something_is_done_and_the_next_one_is_later(
        happenings in proptest::collection::vec(happening(), 1..200),
        keeps_alive in any::<bool>(),
        wants_proofs in any::<bool>(),
    ) {
        let mut config = LivenessConfig { wants_proofs, ..LivenessConfig::USUAL };
        config.keep_alive = config.keep_alive.filter(|_| keeps_alive);
        let mut now = at(1);
        let mut liveness = Liveness::new(config, now);
        for one in happenings {
            match one {
                Happening::Sent(wants) => liveness.on_sent(now, wants),
                Happening::Heard(wants) => {
                    let was_down = liveness.is_down();
                    let heard = liveness.on_heard(now, wants);
                    prop_assert_eq!(heard.outage.is_some(), was_down && !liveness.is_down());
                }
                Happening::Proved => {
                    liveness.on_proved(now);
                }
                Happening::RoundTrip(millis) => liveness.on_rtt_sample(Duration::from_millis(millis)),
                Happening::Backed(is_backed, millis) => {
                    liveness.set_backed(is_backed, Duration::from_millis(millis));
                }
                Happening::OneOfSeveral(is_one) => liveness.set_one_of_several(is_one),
                Happening::TryAgain => liveness.try_again(),
                Happening::Rest => liveness.rest(),
                Happening::Told(is_up) => {
                    liveness.on_told(now, is_up);
                }
                Happening::Pass(millis) => now += Duration::from_millis(millis),
                Happening::Deadline(late) => {
                    if let Some(deadline) = liveness.next_deadline() {
                        now = now.max(deadline.at) + Duration::from_millis(late);
                        let done = do_due(&mut liveness, now);
                        prop_assert!(done > 0, "nothing was due at {deadline:?}");
                    }
                }
            }
            do_due(&mut liveness, now);
            let next = liveness.next_deadline();
            prop_assert!(next.is_none_or(|next| next.at > now), "{next:?} after {one:?}");
        }
    }
}
