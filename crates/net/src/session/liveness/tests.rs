use super::*;

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
            (1_075, Due::Probe),
            (1_150, Due::Probe),
            (1_225, Due::Probe),
            (1_300, Due::Down(silent)),
            (1_475, Due::Probe),
            (1_725, Due::Probe),
        ]
    );
    let down_for = liveness.down_for(at(1_800));
    let outage = liveness.on_heard(at(1_800), Wants::Nothing);
    assert_eq!(down_for, outage);
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
fn a_path_is_asked_before_it_is_down_where_others_carry_on_also_on_a_long_way() {
    for (rtt, asked, down) in [(40, 1_060, 1_150), (300, 1_450, 1_525), (600, 1_900, 2_050)] {
        let mut liveness = backed(rtt);
        liveness.on_sent(at(1_000), Wants::Answer);
        let log = run(&mut liveness, down);
        assert_eq!(log[0], (asked, Due::Probe), "{rtt} ms");
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
    assert_eq!(liveness.on_heard(at(1_510), Wants::Nothing), None);
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
    let outage = liveness.on_heard(at(2_000), Wants::Nothing);
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
            let outage = liveness.on_heard(at(begin + silent + 10), Wants::Answer);
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
