//! Situations, each with the sentence that it must have.

use super::super::status::{
    CauseFigures, DamageFigures, DamagedDirection, LossFigures, PathFigures, PeerReport, REMOVED,
    RateReport, ToldLinkReport, WaitingPath,
};
use super::super::tally::{Loss, PeerWindow};
use super::*;
use crate::gateway::peers::Decision;

const MBIT: f64 = 1e6;

/// A link of which one thing differs from a good one.
#[derive(Clone)]
struct Situation {
    peer: PeerReport,
    window: PeerWindow,
    status: Status,
}

/// A rate of 10 Mbit/s that was configured.
fn configured() -> RateReport {
    RateReport {
        current_bits_per_second: 10_000_000,
        reason: "declared",
        why: "of the test",
        share: "own",
        link_bits_per_second: None,
        delivered_bits_per_second: None,
        declared_wrong: false,
        declared_low_beside: None,
        seen_bits_per_second: None,
        bottleneck: None,
        queue_seconds: None,
        random_loss_ratio: None,
    }
}

/// A rate of 10 Mbit/s that was found.
fn found() -> RateReport {
    RateReport {
        reason: "queue",
        share: "fair",
        link_bits_per_second: Some(10_000_000),
        bottleneck: Some("own"),
        queue_seconds: Some(0.002),
        random_loss_ratio: Some(0.0),
        ..configured()
    }
}

const fn loss(share: f64) -> Loss {
    Loss {
        share: Some(share),
        rate: 100.0 * share,
        sent: 1_000,
    }
}

/// A busy link of 10 Mbit/s without losses that delivers 98 % of what it allows.
fn busy() -> Situation {
    Situation {
        peer: PeerReport {
            name: "ground".to_owned(),
            link: "up".to_owned(),
            secure: true,
            carrier: "udp".to_owned(),
            path_mtu_bytes: 1_500,
            rate_bits_per_second: Some(10_000_000),
            rate: Some(configured()),
            ..PeerReport::default()
        },
        window: PeerWindow {
            wire_rate: 9.9 * MBIT,
            confirmed_rate: 9.62 * MBIT,
            outward: loss(0.0),
            inward: loss(0.0),
            repair_share: Some(0.0),
            residual_share: Some(0.0),
            far_residual_share: Some(0.0),
            is_up: true,
            ..PeerWindow::default()
        },
        status: Status {
            uptime_seconds: 100.0,
            ..Status::default()
        },
    }
}

/// The same with a fifth lost in both directions.
fn lossy() -> Situation {
    let mut situation = busy();
    situation.window.outward = loss(0.201);
    situation.window.inward = loss(0.198);
    situation.window.confirmed_rate = 7.55 * MBIT;
    situation.window.repair_share = Some(0.2);
    situation.peer.losses = Some(causes(&[("random", 0.95), ("burst", 0.05)]));
    situation
}

fn causes(shares: &[(&'static str, f64)]) -> LossFigures {
    let causes = shares.iter().map(|&(cause, ratio)| {
        let figures = CauseFigures {
            ratio,
            low_ratio: ratio - 0.01,
            high_ratio: ratio + 0.01,
        };
        (cause, figures)
    });
    LossFigures {
        sent_packets: 5_000,
        lost_packets: 1_000,
        mended_packets: 0,
        causes: causes.collect(),
    }
}

fn path(path: u8, state: &'static str, mbit: u64) -> PathFigures {
    let rate = RateReport {
        current_bits_per_second: mbit * 1_000_000,
        ..configured()
    };
    PathFigures {
        path,
        state,
        rate: Some(rate),
        ..PathFigures::default()
    }
}

fn decided(what: &'static str, why: &str, at: f64) -> Decision {
    Decision {
        number: 0,
        uptime_seconds: at,
        peer: Some("ground".to_owned()),
        what,
        why: why.to_owned(),
    }
}

impl Situation {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn judged(&self) -> Status {
        let mut status = self.status.clone();
        status.peers = vec![self.peer.clone()];
        let window = Window {
            seconds: 10.0,
            peers: vec![self.window.clone()],
            ..Window::default()
        };
        judge(&mut status, Some(&window));
        status
    }
}

/// The state, the grade and the sentence that a situation must have.
fn check(what: &str, situation: &Situation, (state, grade, text): (&str, LinkGrade, &str)) {
    let status = situation.judged();
    let verdict = &status.peers[0].verdict;
    assert_eq!(verdict.text, text, "{what}");
    assert_eq!((verdict.state, verdict.grade), (state, grade), "{what}");
    // Whoever is not good has an alarm that says why, and what to do.
    let has_alarm = status.alarms.iter().any(|alarm| alarm.rule == state);
    assert_eq!(
        has_alarm,
        grade > LinkGrade::Good,
        "{what}: {:?}",
        status.alarms
    );
}

const GOOD: LinkGrade = LinkGrade::Good;
const POOR: LinkGrade = LinkGrade::Poor;
const BAD: LinkGrade = LinkGrade::Bad;

#[test]
fn a_link_that_is_up_and_does_its_work_is_fine() {
    check(
        "busy",
        &busy(),
        (
            "good",
            GOOD,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %). Fine.",
        ),
    );
    check(
        "a fifth lost",
        &lossy(),
        (
            "lossy",
            GOOD,
            "Loses 20.1 % there, 19.8 % here, mostly one by one; delivers 7.55 of the 7.84 Mbit/s that such a link allows (96 %). Fine.",
        ),
    );
    let bursts =
        lossy().with(|it| it.peer.losses = Some(causes(&[("burst", 0.8), ("random", 0.2)])));
    check(
        "bursts",
        &bursts,
        (
            "lossy",
            GOOD,
            "Loses 20.1 % there, 19.8 % here, mostly in bursts; delivers 7.55 of the 7.84 Mbit/s that such a link allows (96 %). Fine.",
        ),
    );
    let mixed =
        lossy().with(|it| it.peer.losses = Some(causes(&[("burst", 0.5), ("random", 0.5)])));
    check(
        "no main cause",
        &mixed,
        (
            "lossy",
            GOOD,
            "Loses 20.1 % there, 19.8 % here; delivers 7.55 of the 7.84 Mbit/s that such a link allows (96 %). Fine.",
        ),
    );
    let one_way = lossy().with(|it| it.window.inward = loss(0.0));
    check(
        "one way",
        &one_way,
        (
            "lossy",
            GOOD,
            "Loses 20.1 % there, nothing here, mostly one by one; delivers 7.55 of the 7.84 Mbit/s that such a link allows (96 %). Fine.",
        ),
    );
    let back = busy().with(|it| it.window.inward = loss(0.006));
    check(
        "the way back",
        &back,
        (
            "lossy",
            GOOD,
            "Loses nothing there, 0.60 % here; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %). Fine.",
        ),
    );
}

#[test]
fn a_link_with_little_to_do_is_not_judged_by_its_rate() {
    let idle = busy().with(|it| {
        it.window = PeerWindow {
            is_up: true,
            ..PeerWindow::default()
        }
    });
    check("idle", &idle, ("idle", GOOD, "Nothing to carry. Fine."));
    let little = lossy().with(|it| {
        it.window.wire_rate = MBIT;
        it.window.confirmed_rate = 0.8 * MBIT;
    });
    check(
        "little to send",
        &little,
        (
            "lossy",
            GOOD,
            "Loses 20.1 % there, 19.8 % here, mostly one by one; delivers 800 kbit/s, and could deliver 7.84 Mbit/s. Fine.",
        ),
    );
    let receives = busy().with(|it| {
        it.window.wire_rate = 5_000.0;
        it.window.confirmed_rate = 0.0;
        it.window.payload_rate = 3.0 * MBIT;
    });
    check(
        "only receives",
        &receives,
        ("good", GOOD, "Loses nothing; receives 3.00 Mbit/s. Fine."),
    );
    let few = busy().with(|it| {
        it.window = PeerWindow {
            outward: Loss {
                share: Some(0.5),
                rate: 0.5,
                sent: 10,
            },
            is_up: true,
            ..PeerWindow::default()
        };
    });
    check(
        "few datagrams",
        &few,
        ("idle", GOOD, "Nothing to carry. Fine."),
    );
    let unknown = busy().with(|it| {
        it.peer.rate = None;
        it.peer.rate_bits_per_second = None;
    });
    check(
        "no rate yet",
        &unknown,
        ("good", GOOD, "Loses nothing; delivers 9.62 Mbit/s. Fine."),
    );
}

#[test]
fn nothing_is_said_to_be_delivered_that_nobody_confirmed() {
    let unconfirmed = busy().with(|it| {
        it.window.confirmed_rate = 0.0;
        it.window.unconfirmed_rate = 9.5 * MBIT;
    });
    check(
        "nothing confirmed",
        &unconfirmed,
        (
            "good",
            GOOD,
            "Loses nothing; sends 9.50 Mbit/s without confirmations. Fine.",
        ),
    );
    // Beside confirmed payload there is no share of what is allowed.
    let mixed = busy().with(|it| {
        it.window.confirmed_rate = 6.0 * MBIT;
        it.window.unconfirmed_rate = 3.0 * MBIT;
    });
    check(
        "a third not confirmed",
        &mixed,
        (
            "good",
            GOOD,
            "Loses nothing; delivers 6.00 Mbit/s, and could deliver 9.81 Mbit/s. Fine.",
        ),
    );
}

#[test]
fn a_link_that_is_not_up_says_so_and_what_to_do() {
    let down = busy().with(|it| {
        it.peer.link = "down".to_owned();
        it.peer.down_seconds = Some(12.0);
    });
    check(
        "outage",
        &down,
        (
            "outage",
            BAD,
            "Nothing has come back for 12.00 s: sending is held, flows wait; wait for the link, or ask with `fulmar doctor -c FILE`; \
         flows are ended after [limits] outage.",
        ),
    );
    let told = down.with(|it| {
        it.peer.links = vec![ToldLinkReport {
            name: "satellite".to_owned(),
            up: Some(false),
            is_trusted: true,
            ..ToldLinkReport::default()
        }];
    });
    check(
        "told down",
        &told,
        (
            "outage",
            BAD,
            "The link satellite tells that it is down for 12.00 s: sending is held, flows wait; wait for the link, or ask with `fulmar doctor -c FILE`; flows are ended after [limits] outage.",
        ),
    );
    let silent = busy().with(|it| {
        it.peer.link = "connecting".to_owned();
        it.peer.secure = false;
    });
    check(
        "unreachable",
        &silent,
        (
            "unreachable",
            BAD,
            "There are no keys yet: the peer has not answered, or has not called; ask it with `fulmar doctor -c FILE`.",
        ),
    );
    let refused = silent.clone().with(|it| {
        it.status.decisions = vec![decided(
            "refused_by_peer",
            "the ends do not agree on the label",
            60.0,
        )];
    });
    check(
        "refused",
        &refused,
        (
            "refused",
            BAD,
            "A handshake was refused: the ends do not agree on the label; do what the reason says, at the end that it names.",
        ),
    );
    let long_ago = silent.with(|it| {
        it.status.decisions = vec![decided(
            "refused_by_peer",
            "the ends do not agree on the label",
            39.0,
        )];
    });
    assert_eq!(long_ago.judged().peers[0].verdict.state, "unreachable");
    let removed = busy().with(|it| it.peer.link = REMOVED.to_owned());
    check(
        "removed",
        &removed,
        ("removed", GOOD, "A reload took this peer out."),
    );
}

#[test]
fn a_link_without_protection_is_bad_however_well_it_delivers() {
    let open = busy().with(|it| it.peer.secure = false);
    check(
        "security off",
        &open,
        (
            "security_off",
            BAD,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %): it is not protected, and whoever is on the way \
         can read and change it; give both ends keys with `fulmar keygen`.",
        ),
    );
}

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

#[test]
fn what_is_lost_for_good_and_a_link_that_is_poor_itself_are_told() {
    let given_up = lossy().with(|it| it.window.far_residual_share = Some(0.02));
    check(
        "given up there",
        &given_up,
        (
            "lost_for_good",
            POOR,
            "Loses 20.1 % there, 19.8 % here, mostly one by one; delivers 7.55 of the 7.84 Mbit/s that such a link allows (96 %): 2.00 % of \
         the packets are lost for good there; nothing, if the class may lose; else another mode or more `overhead`.",
        ),
    );
    let here = lossy().with(|it| it.window.residual_share = Some(0.05));
    assert_eq!(here.judged().peers[0].verdict.state, "lost_for_good");
    let of_few = lossy().with(|it| {
        it.window.residual_share = Some(0.33);
        it.window.inward.sent = 19;
    });
    assert_ne!(of_few.judged().peers[0].verdict.state, "lost_for_good");
    let hardly = lossy().with(|it| it.window.residual_share = Some(0.000_9));
    assert_eq!(hardly.judged().peers[0].verdict.state, "lossy");
    let heavy = lossy().with(|it| {
        it.window.outward = loss(0.45);
        it.window.confirmed_rate = 5.2 * MBIT;
    });
    check(
        "heavy",
        &heavy,
        (
            "loss_high",
            POOR,
            "Loses 45.0 % there, 19.8 % here, mostly one by one; delivers 5.20 of the 5.40 Mbit/s that such a link allows (96 %): the link \
         itself is poor; look at the losses by cause, then at the link.",
        ),
    );
}

#[test]
fn damage_that_is_mended_is_fine_and_damage_beyond_repair_is_not() {
    let damaged = |residual: f64| {
        busy().with(|it| {
            let way = DamagedDirection {
                residual_ratio: Some(residual),
                ..DamagedDirection::default()
            };
            it.peer.carrier = "udp-nochecksum".to_owned();
            it.peer.damage = Some(DamageFigures {
                words: 6,
                outward: way,
                inward: DamagedDirection::default(),
            });
        })
    };
    check(
        "mended",
        &damaged(0.01),
        (
            "unchecked",
            GOOD,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %). Fine.",
        ),
    );
    check(
        "beyond repair",
        &damaged(0.2),
        (
            "beyond_repair",
            POOR,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %): 20.00 % of what arrives is damaged beyond \
         repair; wait until parity has followed; else a better link: antenna, power, interference.",
        ),
    );
}

#[test]
fn of_several_paths_those_that_carry_are_summed_and_one_that_is_down_is_told() {
    let two = busy().with(|it| {
        it.peer.paths = vec![path(0, "up", 6), path(1, "up", 4)];
        it.peer.rate_bits_per_second = None;
    });
    check(
        "two paths",
        &two,
        (
            "good",
            GOOD,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %). Fine.",
        ),
    );
    let stands_by = two.clone().with(|it| {
        it.peer.paths[1].cost = 1;
        it.window.wire_rate = 5.9 * MBIT;
        it.window.confirmed_rate = 5.7 * MBIT;
    });
    check(
        "one stands by",
        &stands_by,
        (
            "good",
            GOOD,
            "Loses nothing; delivers 5.70 of the 5.89 Mbit/s that such a link allows (97 %). Fine.",
        ),
    );
    let one_down = two.clone().with(|it| {
        it.peer.paths[1] = PathFigures {
            down_seconds: Some(30.0),
            ..path(1, "down", 4)
        };
        it.window.wire_rate = 5.9 * MBIT;
        it.window.confirmed_rate = 5.7 * MBIT;
    });
    check(
        "one is down",
        &one_down,
        (
            "path_down",
            POOR,
            "Loses nothing; delivers 5.70 of the 5.89 Mbit/s that such a link allows (97 %): path 1 is down for 30.00 s; look at the device \
         of this path.",
        ),
    );
    let waits = two.with(|it| {
        let waiting = WaitingPath {
            path: "usb0".to_owned(),
            why: "there is no such device".to_owned(),
        };
        it.peer.waiting_paths = vec![waiting];
    });
    check(
        "one waits",
        &waits,
        (
            "path_waits",
            POOR,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %): the path usb0 waits: there is no such device; \
         plug it in, or take the path out of the file.",
        ),
    );
}

#[test]
fn a_link_whose_words_are_wrong_is_poor_however_well_it_delivers() {
    let wrong = busy().with(|it| {
        it.peer.links = vec![ToldLinkReport {
            name: "satellite".to_owned(),
            up: Some(true),
            fault: Some("nothing comes back, while the link tells that it is up"),
            ..ToldLinkReport::default()
        }];
    });
    check(
        "told wrong",
        &wrong,
        (
            "link_told_wrong",
            POOR,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %): the link satellite is not believed: nothing \
         comes back, while the link tells that it is up; look at what the link tells (`fulmar status`) and at its source, [[link]].",
        ),
    );
}

#[test]
fn the_worst_of_several_findings_grades_the_link_and_all_are_alarms() {
    let both = busy().with(|it| {
        it.peer.secure = false;
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
            ("security_off", ground),
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
