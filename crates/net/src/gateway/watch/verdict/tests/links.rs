//! A link that is up, idle, silent, down or open, and what is confirmed of its traffic.

use super::*;

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
fn what_is_received_is_told_where_it_is_more_than_what_is_delivered() {
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
    let mainly = lossy().with(|it| {
        it.window.wire_rate = 60_000.0;
        it.window.confirmed_rate = 39_000.0;
        it.window.payload_rate = 3.4 * MBIT;
    });
    check(
        "mainly receives",
        &mainly,
        (
            "lossy",
            GOOD,
            "Loses 20.1 % there, 19.8 % here, mostly one by one; receives 3.40 Mbit/s; delivers 39.0 kbit/s, and could deliver 7.84 Mbit/s. Fine.",
        ),
    );
    let less = mainly.with(|it| it.window.payload_rate = 38_000.0);
    check(
        "receives less than it delivers",
        &less,
        (
            "lossy",
            GOOD,
            "Loses 20.1 % there, 19.8 % here, mostly one by one; delivers 39.0 kbit/s, and could deliver 7.84 Mbit/s. Fine.",
        ),
    );
    let busy_both_ways = busy().with(|it| it.window.payload_rate = 30.0 * MBIT);
    check(
        "receives more, and has enough to send",
        &busy_both_ways,
        (
            "good",
            GOOD,
            "Loses nothing; receives 30.0 Mbit/s; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %). Fine.",
        ),
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

/// A peer that never answered.
fn silent() -> Situation {
    busy().with(|it| {
        it.peer.link = "connecting".to_owned();
        it.peer.secure = false;
    })
}

/// A peer that refused us.
fn refused() -> Situation {
    silent().with(|it| {
        it.status.decisions = vec![decided(
            "refused_by_peer",
            "the ends do not agree on the label",
            60.0,
        )];
    })
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
    check(
        "unreachable",
        &silent(),
        (
            "unreachable",
            BAD,
            "No answer from ground yet: it has not called; ask it with `fulmar doctor -c FILE`.",
        ),
    );
    let called = silent().with(|it| {
        it.peer.address = Some("192.0.2.1:4914".to_owned());
        it.peer.calling_seconds = Some(12.0);
    });
    check(
        "unreachable at an address",
        &called,
        (
            "unreachable",
            BAD,
            "No answer from ground yet, called at 192.0.2.1:4914 for 12.00 s; ask it with `fulmar doctor -c FILE`.",
        ),
    );
    let met_through_a_hub = called.with(|it| it.peer.address = None);
    let verdict = met_through_a_hub.judged().peers[0].verdict.clone();
    assert!(
        verdict
            .text
            .starts_with("No answer from ground yet, called for 12.00 s;"),
        "{}",
        verdict.text
    );
    let removed = busy().with(|it| it.peer.link = REMOVED.to_owned());
    check(
        "removed",
        &removed,
        ("removed", GOOD, "A reload took this peer out."),
    );
}

#[test]
fn a_refused_handshake_is_told_until_it_would_be_refused_again() {
    check(
        "refused",
        &refused(),
        (
            "refused",
            BAD,
            "A handshake was refused: the ends do not agree on the label; do what the reason says, at the end that it names.",
        ),
    );
    let long_ago = silent().with(|it| {
        it.status.decisions = vec![decided(
            "refused_by_peer",
            "the ends do not agree on the label",
            34.0,
        )];
    });
    assert_eq!(long_ago.judged().peers[0].verdict.state, "unreachable");
    let goes_on = long_ago.with(|it| {
        // The session tells the next one after its pause, at the caller's next call.
        it.status.decisions[0].uptime_seconds = 100.0 - COMPLAINT_PAUSE.as_secs_f64() - 2.0;
    });
    assert_eq!(goes_on.judged().peers[0].verdict.state, "refused");
    let disagreed = goes_on.with(|it| {
        it.status.decisions = vec![decided(
            "peer_mismatch",
            "the ends do not agree on the label: here a, there b",
            60.0,
        )];
    });
    check(
        "refused, of other settings",
        &disagreed,
        (
            "refused",
            BAD,
            "A handshake was refused: the ends do not agree on the label: here a, there b; do what the reason says, at the end that it names.",
        ),
    );
}

#[test]
fn a_refused_stranger_is_told_as_such_and_is_the_state_of_no_peer() {
    // Our own session's words, of a caller that no [[peer]] here has.
    let stranger = |at| Decision {
        peer: None,
        ..decided(
            "handshake_refused",
            "called from 192.0.2.7:4914: no [[peer]] in the file of this end has the caller's public key K",
            at,
        )
    };
    let called = silent().with(|it| it.status.decisions = vec![stranger(60.0)]);
    check(
        "a stranger called",
        &called,
        (
            "unreachable",
            BAD,
            "No answer from ground yet: it has not called, unless it is the caller that was refused; ask it with `fulmar doctor -c FILE`.",
        ),
    );
    let alarms = called.judged().alarms;
    let told = alarms.iter().find(|alarm| alarm.rule == "stranger_refused");
    let told = told.expect("an alarm of its own");
    assert_eq!((told.grade, &told.peer), (POOR, &None));
    assert_eq!(
        told.text,
        "a stranger was refused: called from 192.0.2.7:4914: no [[peer]] in the file of this end has the caller's public key K"
    );
    let is_told = |situation: &Situation| {
        let alarms = situation.judged().alarms;
        alarms.iter().any(|alarm| alarm.rule == "stranger_refused")
    };
    // Of a peer that is called, nothing says that it calls.
    let elsewhere = called
        .clone()
        .with(|it| it.peer.address = Some("192.0.2.1:4914".to_owned()));
    let text = elsewhere.judged().peers[0].verdict.text.clone();
    assert!(!text.contains("refused"), "{text}");
    // The peer's own refusal says more.
    let both = refused().with(|it| it.status.decisions.push(stranger(70.0)));
    assert_eq!(
        both.judged().peers[0].verdict,
        refused().judged().peers[0].verdict
    );
    let before = called
        .clone()
        .with(|it| it.status.decisions[0].uptime_seconds = 34.0);
    assert!(!is_told(&before));
    // Whoever calls a gateway whose peers are all there makes it no worse.
    let fine = called.with(|it| it.peer.link = "up".to_owned());
    assert!(!is_told(&fine));
}

#[test]
fn a_gateway_without_keys_says_so_beside_what_its_links_do() {
    let open = busy().with(|it| {
        it.peer.secure = false;
        it.status.is_unprotected = true;
    });
    check(
        "no keys",
        &open,
        (
            "good",
            GOOD,
            "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %). Fine, but not protected: there are no keys.",
        ),
    );
    let idle = open.clone().with(|it| {
        it.window = PeerWindow {
            is_up: true,
            ..PeerWindow::default()
        }
    });
    check(
        "no keys and idle",
        &idle,
        (
            "idle",
            GOOD,
            "Nothing to carry. Fine, but not protected: there are no keys.",
        ),
    );
    let status = open.judged();
    assert_eq!(status.grade, GOOD, "its links do what they are for");
    let [alarm] = &status.alarms[..] else {
        panic!("{:?}", status.alarms);
    };
    assert_eq!(
        (alarm.rule, alarm.grade, &alarm.peer),
        ("security_off", BAD, &None)
    );
    for cure in ["`fulmar init`", "`fulmar keygen`"] {
        assert!(alarm.cure.contains(cure), "{}", alarm.cure);
    }
    let down = open.with(|it| it.peer.link = "down".to_owned());
    assert_eq!(down.judged().grade, BAD, "a link is down");
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
