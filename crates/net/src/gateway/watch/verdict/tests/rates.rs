//! Wrong rates, queues, and a delivery that is less or more than the losses explain.

use super::*;

#[test]
fn a_wrong_rate_is_told_with_both_rates() {
    let high = busy().with(|it| {
        let rate = RateReport {
            declared_wrong: true,
            reason: "link",
            current_bits_per_second: 5_000_000,
            link_bits_per_second: Some(5_000_000),
            ..configured()
        };
        it.peer.rate = Some(rate);
        it.window.wire_rate = 4.9 * MBIT;
        it.window.confirmed_rate = 4.7 * MBIT;
    });
    check(
        "too high",
        &high,
        (
            "rate_too_high",
            POOR,
            "Loses nothing; delivers 4.70 of the 4.91 Mbit/s that such a link allows (96 %): the configured rate, 10.0 Mbit/s, is more than \
         the link has, which carries 5.00 Mbit/s; lower `rate` of this [[peer]], or leave it out.",
        ),
    );
    let low = busy().with(|it| {
        let rate = RateReport {
            declared_low_beside: Some(40_000_000),
            reason: "bound",
            ..found()
        };
        it.peer.rate = Some(rate);
    });
    check(
        "too low",
        &low,
        (
            "rate_too_low",
            POOR,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %): the configured rate, 10.0 Mbit/s, limits, and \
         the link seems to carry 40.0 Mbit/s; raise `rate` of this [[peer]], or leave it out.",
        ),
    );
}

#[test]
fn a_rate_that_is_far_below_what_the_link_showed_is_not_fine() {
    let stuck = busy().with(|it| {
        it.peer.rate = Some(RateReport {
            reason: "free",
            doubted: true,
            current_bits_per_second: 30_000,
            link_bits_per_second: Some(60_000),
            seen_bits_per_second: Some(10_000_000),
            ..found()
        });
        it.peer.rate_bits_per_second = None;
        // The look behind a search takes half of the rate.
        it.window.wire_rate = 30_000.0;
        it.window.confirmed_rate = 23_200.0;
    });
    check(
        "stuck",
        &stuck,
        (
            "rate_doubted",
            POOR,
            "Loses nothing; delivers 23.2 kbit/s, and could deliver 9.81 Mbit/s: the rate found, 60.0 kbit/s, is far below the 10.0 Mbit/s \
         that the link showed, and neither a queue nor a loss says that it is full; it grows by itself, for minutes at worst; \
         start this gateway again, and it is searched for anew; or set `rate` of this [[peer]] to what the link carries.",
        ),
    );
    let little_to_send = stuck.with(|it| it.window.wire_rate = 10_000.0);
    assert_eq!(little_to_send.judged().peers[0].verdict.grade, GOOD);
}

#[test]
fn a_queue_that_others_share_is_the_reason_for_what_is_missing() {
    let shared = busy().with(|it| {
        let rate = RateReport {
            bottleneck: Some("shared"),
            reason: "shared",
            link_bits_per_second: Some(6_000_000),
            current_bits_per_second: 6_000_000,
            seen_bits_per_second: Some(8_000_000),
            ..found()
        };
        it.peer.rate = Some(rate);
        it.window.wire_rate = 5.9 * MBIT;
        it.window.confirmed_rate = 4.79 * MBIT;
    });
    check(
        "shared",
        &shared,
        (
            "queue_shared",
            POOR,
            "Loses nothing; delivers 4.79 of the 7.85 Mbit/s that such a link allows (61 %): the queue ahead is shared with others; set \
         share = \"background\" if it comes first, or share = \"own\" if the link is yours.",
        ),
    );
    // Who has most of it has nothing to complain of.
    let mostly_ours = shared.with(|it| it.window.confirmed_rate = 7.0 * MBIT);
    assert_eq!(mostly_ours.judged().peers[0].verdict.grade, GOOD);
}

#[test]
fn a_queue_that_stands_and_marks_that_hold_the_rate_down_are_told() {
    let standing = busy().with(|it| {
        it.peer.rate = Some(RateReport {
            queue_seconds: Some(0.25),
            ..found()
        });
    });
    check(
        "standing",
        &standing,
        (
            "queue_standing",
            POOR,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %): what is sent now waits 250 ms in queues ahead; \
         where `rate` of this [[peer]] is configured, lower it or leave it out; where others fill the queue, they need a shorter one.",
        ),
    );
    let draining = busy().with(|it| {
        it.peer.rate = Some(RateReport {
            reason: "draining",
            ..configured()
        });
    });
    assert_eq!(draining.judged().peers[0].verdict.state, "queue_standing");
    let marked = busy().with(|it| {
        it.peer.rate = Some(RateReport {
            reason: "marks",
            current_bits_per_second: 5_000_000,
            ..configured()
        });
        it.window.wire_rate = 4.9 * MBIT;
        it.window.confirmed_rate = 4.7 * MBIT;
    });
    check(
        "marked",
        &marked,
        (
            "marked",
            POOR,
            "Loses nothing; delivers 4.70 of the 9.81 Mbit/s that such a link allows (48 %): a queue ahead marks what is sent, and the rate \
         is held down; nothing, if the others are to have their share; else give the link to this traffic alone.",
        ),
    );
}

#[test]
fn less_than_the_losses_explain_is_poor() {
    let slow = lossy().with(|it| it.window.confirmed_rate = 6.0 * MBIT);
    check(
        "slow",
        &slow,
        (
            "slow",
            POOR,
            "Loses 20.1 % there, 19.8 % here, mostly one by one; delivers 6.00 of the 7.84 Mbit/s that such a link allows (77 %): less is \
         delivered than the losses explain; look at the decisions, and at the losses by cause.",
        ),
    );
    let dear = busy().with(|it| it.window.repair_share = Some(0.6));
    check(
        "dear",
        &dear,
        (
            "repair_dear",
            POOR,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %): parity and repetitions are 60.00 % of what is \
         sent; lower `overhead` of the class, or look at the decisions.",
        ),
    );
    let needed = lossy().with(|it| {
        it.window.outward = loss(0.28);
        it.window.confirmed_rate = 6.9 * MBIT;
        it.window.repair_share = Some(0.52);
    });
    assert_eq!(
        needed.judged().peers[0].verdict.grade,
        GOOD,
        "the losses explain it"
    );
}

#[test]
fn no_more_is_delivered_than_the_link_allows() {
    let held_down = |mbit: f64| {
        lossy().with(|it| {
            let rate = RateReport {
                reason: "link",
                current_bits_per_second: 5_300_000,
                link_bits_per_second: Some(5_300_000),
                ..configured()
            };
            it.peer.rate = Some(rate);
            it.window.confirmed_rate = mbit * MBIT;
        })
    };
    // Held down for a moment, a link is still judged by what is configured.
    let text = &held_down(5.51).judged().peers[0].verdict.text;
    assert!(
        text.contains("delivers 5.51 of the 7.84 Mbit/s that such a link allows (70 %)"),
        "{text}"
    );
    let text = &held_down(8.5).judged().peers[0].verdict.text;
    assert!(
        text.contains("delivers 8.50 Mbit/s, all that such a link allows. Fine."),
        "{text}"
    );
}
