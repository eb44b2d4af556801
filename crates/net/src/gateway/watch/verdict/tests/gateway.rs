//! Several findings at once, and the gateway's own.

use super::*;

#[test]
fn the_worst_of_several_findings_grades_the_link_and_all_are_alarms() {
    let both = busy().with(|it| {
        it.status.is_unprotected = true;
        it.peer.rate = Some(RateReport {
            queue_seconds: Some(0.25),
            ..found()
        });
        it.status.custody_full = true;
    });
    let status = both.judged();
    let rules: Vec<_> = status
        .alarms
        .iter()
        .map(|alarm| (alarm.rule, alarm.peer.as_deref()))
        .collect();
    let ground = Some("ground");
    assert_eq!(
        rules,
        [
            ("security_off", None),
            ("custody_full", None),
            ("queue_standing", ground)
        ]
    );
    assert_eq!(status.grade, BAD);
}

#[test]
fn a_gateway_has_alarms_of_its_own() {
    let of = |change: fn(&mut Status, &mut Window)| {
        let (mut status, mut window) = (
            Status::default(),
            Window {
                seconds: 10.0,
                ..Window::default()
            },
        );
        change(&mut status, &mut window);
        judge(&mut status, Some(&window));
        let rules: Vec<_> = status.alarms.iter().map(|alarm| alarm.rule).collect();
        (status.grade, rules)
    };
    assert_eq!(of(|_, _| {}), (GOOD, vec![]));
    assert_eq!(
        of(|status, _| status.custody_full = true),
        (BAD, vec!["custody_full"])
    );
    assert_eq!(
        of(|status, _| status.custody_damaged_bytes = 1),
        (POOR, vec!["custody_damaged"])
    );
    assert_eq!(
        of(|_, window| window.refused_rate = 1.1),
        (POOR, vec!["flows_refused"])
    );
    assert_eq!(
        of(|_, window| window.dropped_rate = 1.1),
        (POOR, vec!["messages_dropped"])
    );
    assert_eq!(
        of(|_, window| window.false_rate = 11.0),
        (POOR, vec!["forgeries"])
    );
    let missed = |status: &mut Status, _: &mut Window| status.carrier.trace_missed_events = 1;
    assert_eq!(of(missed), (POOR, vec!["recording_holes"]));
    // At the threshold itself there is none.
    let quiet = |_: &mut Status, window: &mut Window| {
        (window.refused_rate, window.dropped_rate, window.false_rate) = (1.0, 1.0, 10.0);
    };
    assert_eq!(of(quiet), (GOOD, vec![]));
}

#[test]
fn a_gateway_that_was_just_started_is_judged_without_a_window() {
    let mut status = Status {
        peers: vec![busy().peer],
        ..Status::default()
    };
    judge(&mut status, None);
    assert_eq!(status.peers[0].verdict.text, "Nothing to carry. Fine.");
}
