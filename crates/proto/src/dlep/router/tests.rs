use super::*;
use crate::units::Bitrate;
use proptest::prelude::*;

const MODEM: ([u8; 4], u16) = ([192, 0, 2, 9], 854);
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn at(millis: u64) -> Instant {
    Instant::START + Duration::from_millis(millis)
}

fn actions(router: &mut DlepRouter) -> Vec<DlepAction> {
    core::iter::from_fn(|| router.poll_action()).collect()
}

/// The types of the messages that were sent.
fn sent(router: &mut DlepRouter) -> Vec<u16> {
    let kinds = actions(router)
        .into_iter()
        .filter_map(|action| match action {
            DlepAction::Send(octets) => Some(first_message(&octets).expect("whole").0),
            _ => None,
        });
    kinds.collect()
}

fn offer() -> Vec<u8> {
    DlepWriter::signal(signal::PEER_OFFER).finish()
}

fn response(millis: u32) -> Vec<u8> {
    DlepWriter::message(message::SESSION_INITIALIZATION_RESPONSE)
        .status(status::SUCCESS)
        .item(item::HEARTBEAT_INTERVAL, &millis.to_be_bytes())
        .item(item::CDRT, &1_000_000_u64.to_be_bytes())
        .finish()
}

fn destination(kind: u16, rate: u64) -> Vec<u8> {
    DlepWriter::message(kind)
        .item(item::MAC_ADDRESS, &MAC)
        .item(item::CDRT, &rate.to_be_bytes())
        .finish()
}

/// A router in session from 10 ms on.
fn in_session(config: DlepConfig) -> DlepRouter {
    let mut router = DlepRouter::new(config);
    router.handle_deadline(at(0));
    assert!(matches!(
        actions(&mut router)[..],
        [DlepAction::Discover(_)]
    ));
    router.handle_datagram(at(5), MODEM.into(), &offer());
    assert_eq!(actions(&mut router), [DlepAction::Connect(MODEM.into())]);
    router.handle_connected(at(8));
    assert_eq!(sent(&mut router), [message::SESSION_INITIALIZATION]);
    router.handle_octets(at(10), &response(5_000));
    assert!(router.is_in_session());
    router
}

fn rate(router: &mut DlepRouter) -> Option<u64> {
    let news = router.poll_news().expect("news").expect("of a link");
    news.rate_out.map(Bitrate::as_bits_per_second)
}

#[test]
fn a_modem_is_found_and_its_destinations_tell_their_rates() {
    let mut router = in_session(DlepConfig::default());
    assert_eq!(
        router.poll_news(),
        Some(Some(down())),
        "there is no destination"
    );
    router.handle_octets(
        at(20),
        &DlepWriter::message(message::DESTINATION_UP)
            .item(item::MAC_ADDRESS, &MAC)
            .finish(),
    );
    assert_eq!(rate(&mut router), Some(1_000_000), "that of the session");
    assert_eq!(sent(&mut router), [message::DESTINATION_UP_RESPONSE]);
    router.handle_octets(at(30), &destination(message::DESTINATION_UPDATE, 2_000_000));
    assert_eq!(rate(&mut router), Some(2_000_000));
    router.handle_octets(
        at(40),
        &DlepWriter::message(message::SESSION_UPDATE)
            .item(item::CDRT, &3_000_000_u64.to_be_bytes())
            .finish(),
    );
    assert_eq!(rate(&mut router), Some(3_000_000));
    assert_eq!(sent(&mut router), [message::SESSION_UPDATE_RESPONSE]);
    router.handle_octets(at(50), &destination(message::DESTINATION_DOWN, 0));
    assert_eq!(router.poll_news(), Some(Some(down())));
    assert_eq!(
        router.counters(),
        DlepCounters {
            messages: 6,
            wrong: 0,
            sessions: 1
        }
    );
}

#[test]
fn messages_come_whole_however_the_stream_is_cut() {
    let mut router = in_session(DlepConfig::default());
    let mut stream = destination(message::DESTINATION_UP, 7_000);
    stream.extend(destination(message::DESTINATION_UPDATE, 8_000));
    for octet in &stream {
        router.handle_octets(at(20), core::slice::from_ref(octet));
    }
    assert_eq!(rate(&mut router), Some(8_000));
}

#[test]
fn heartbeats_leave_in_time_and_two_that_are_missing_end_the_session() {
    let mut router = in_session(DlepConfig::default());
    let mut beats = 0;
    let mut now = at(10);
    while router.is_in_session() {
        let next = router.next_deadline().expect("something is due").at;
        assert!(next > now, "it would spin");
        now = next;
        router.handle_deadline(now);
        beats += sent(&mut router)
            .iter()
            .filter(|kind| **kind == message::HEARTBEAT)
            .count();
    }
    // Two intervals of five seconds; ours are two seconds.
    assert_eq!((now, beats), (at(10_010), 4));
    assert_eq!(router.poll_news(), Some(None));
    // Nobody answers the termination: the modem is looked for again.
    let next = router.next_deadline().expect("patience").at;
    router.handle_deadline(next);
    assert_eq!(actions(&mut router), [DlepAction::Close]);
    let next = router.next_deadline().expect("discovery").at;
    router.handle_deadline(next);
    assert!(matches!(
        actions(&mut router)[..],
        [DlepAction::Discover(_)]
    ));
}

#[test]
fn a_modem_that_restarts_is_met_again() {
    let mut router = in_session(DlepConfig::default());
    router.handle_octets(at(20), &destination(message::DESTINATION_UP, 7_000));
    assert_eq!(rate(&mut router), Some(7_000));
    router.handle_closed(at(30));
    assert_eq!(router.poll_news(), Some(None), "nothing is known any more");
    actions(&mut router);
    let again = router.next_deadline().expect("discovery").at;
    router.handle_deadline(again);
    router.handle_datagram(again, MODEM.into(), &offer());
    router.handle_connected(again);
    router.handle_octets(again, &response(1_000));
    router.handle_octets(again, &destination(message::DESTINATION_UP, 9_000));
    assert_eq!(rate(&mut router), Some(9_000));
    assert_eq!(router.counters().sessions, 2);
}

#[test]
fn what_breaks_the_protocol_is_counted_and_ends_the_session_politely() {
    let no_mac = DlepWriter::message(message::DESTINATION_UP).finish();
    let bad_item = DlepWriter::message(message::DESTINATION_UP)
        .item(item::MAC_ADDRESS, &[1])
        .finish();
    let unknown = DlepWriter::message(99).finish();
    let out_of_place = DlepWriter::message(message::SESSION_INITIALIZATION).finish();
    for octets in [no_mac, bad_item, unknown, out_of_place] {
        let mut router = in_session(DlepConfig::default());
        router.handle_octets(at(20), &octets);
        assert!(!router.is_in_session());
        assert_eq!(sent(&mut router), [message::SESSION_TERMINATION]);
        assert_eq!(router.counters().wrong, 1);
        let response = DlepWriter::message(message::SESSION_TERMINATION_RESPONSE).finish();
        router.handle_octets(at(30), &response);
        assert_eq!(actions(&mut router), [DlepAction::Close]);
    }
}

/// Waits until the modem is looked for, and meets it again.
fn meet_again(router: &mut DlepRouter) -> Instant {
    actions(router);
    loop {
        let next = router.next_deadline().expect("discovery").at;
        router.handle_deadline(next);
        if matches!(actions(router)[..], [DlepAction::Discover(_)]) {
            router.handle_datagram(next, MODEM.into(), &offer());
            router.handle_connected(next);
            router.handle_octets(next, &response(5_000));
            actions(router);
            return next;
        }
    }
}

#[test]
fn a_wrong_message_takes_nothing_back_until_the_modem_is_met_again() {
    let mut router = in_session(DlepConfig::default());
    router.handle_octets(at(20), &destination(message::DESTINATION_UP, 7_000));
    let wrong = DlepWriter::message(99).finish();
    // Even if the driver has not fetched the news before.
    router.handle_octets(at(30), &wrong);
    assert!(!router.is_in_session());
    assert_eq!(rate(&mut router), Some(7_000));
    router.handle_octets(
        at(40),
        &DlepWriter::message(message::SESSION_TERMINATION_RESPONSE).finish(),
    );
    let met = meet_again(&mut router);
    assert!(router.is_in_session() && met < at(30) + VALID_FOR);
    assert_eq!(
        router.poll_news(),
        None,
        "no destination yet, and no word of it"
    );
    router.handle_octets(met, &destination(message::DESTINATION_UP, 9_000));
    assert_eq!(rate(&mut router), Some(9_000));
    router.handle_octets(met, &destination(message::DESTINATION_DOWN, 0));
    assert_eq!(router.poll_news(), Some(Some(down())));
}

#[test]
fn a_last_word_ages_however_often_the_protocol_is_broken() {
    let mut router = in_session(DlepConfig::default());
    router.handle_octets(at(20), &destination(message::DESTINATION_UP, 7_000));
    assert_eq!(rate(&mut router), Some(7_000));
    let (mut now, mut sessions) = (at(30), 0);
    while now < at(30) + VALID_FOR {
        router.handle_octets(now, &DlepWriter::message(99).finish());
        assert_eq!(router.poll_news(), None, "{now}");
        now = meet_again(&mut router);
        sessions += 1;
    }
    assert!(sessions > 2, "{sessions}");
    assert_eq!(
        router.poll_news(),
        Some(Some(down())),
        "that of the session"
    );
}

#[test]
fn a_modem_that_is_gone_after_a_fault_is_forgotten_in_time() {
    let mut router = in_session(DlepConfig::default());
    router.handle_octets(at(20), &destination(message::DESTINATION_UP, 7_000));
    router.handle_octets(at(30), &DlepWriter::message(99).finish());
    assert_eq!(rate(&mut router), Some(7_000));
    let mut now = at(30);
    while router.poll_news() != Some(None) {
        let next = router.next_deadline().expect("something is due").at;
        assert!(next > now, "it would spin");
        now = next;
        router.handle_deadline(now);
    }
    assert_eq!(now, at(30) + VALID_FOR);
}

#[test]
fn several_destinations_are_named_where_none_was_said_to_count() {
    let mut router = in_session(DlepConfig::default());
    router.handle_octets(at(20), &destination(message::DESTINATION_UP, 7_000));
    assert!(!router.is_ambiguous());
    let other = DlepWriter::message(message::DESTINATION_UP)
        .item(item::MAC_ADDRESS, &[2, 0, 0, 0, 0, 2])
        .finish();
    router.handle_octets(at(30), &other);
    assert!(router.is_ambiguous());
    assert_eq!(router.poll_news(), Some(None), "nothing is known");
    assert_eq!(router.destinations().count(), 2);
    let named = in_session(DlepConfig {
        destination: MacAddress::of(&MAC),
    });
    assert!(!named.is_ambiguous());
}

#[test]
fn a_modem_s_heartbeats_may_be_as_far_apart_as_it_says() {
    let mut router = in_session(DlepConfig::default());
    router.handle_closed(at(20));
    actions(&mut router);
    let next = router.next_deadline().expect("discovery").at;
    router.handle_deadline(next);
    assert_eq!(router.unanswered(), 1);
    router.handle_datagram(next, MODEM.into(), &offer());
    router.handle_connected(next);
    router.handle_octets(next, &response(300_000));
    assert_eq!(router.unanswered(), 0);
    let beat = DlepWriter::message(message::HEARTBEAT).finish();
    for minutes in [5, 10, 15] {
        let until = at(minutes * 60_000);
        while let Some(next) = router.next_deadline().filter(|next| next.at < until) {
            router.handle_deadline(next.at);
            actions(&mut router);
        }
        router.handle_octets(until, &beat);
        assert!(router.is_in_session(), "after {minutes} minutes");
    }
}

#[test]
fn a_modem_that_says_goodbye_is_answered_and_left() {
    let mut router = in_session(DlepConfig::default());
    router.handle_octets(
        at(20),
        &DlepWriter::message(message::SESSION_TERMINATION)
            .status(255)
            .finish(),
    );
    let last = actions(&mut router);
    assert!(
        matches!(&last[..], [DlepAction::Send(_), DlepAction::Close]),
        "{last:?}"
    );
}

#[test]
fn the_destination_that_is_named_counts_and_the_others_are_bounded() {
    let named = MacAddress::of(&[2, 0, 0, 0, 0, 9]);
    let mut router = in_session(DlepConfig { destination: named });
    router.handle_octets(at(20), &destination(message::DESTINATION_UP, 7_000));
    assert_eq!(router.poll_news(), Some(Some(down())), "another one is up");
    for place in 0..100_u8 {
        let up = DlepWriter::message(message::DESTINATION_UP)
            .item(item::MAC_ADDRESS, &[3, 0, 0, 0, 0, place]);
        router.handle_octets(at(30), &up.finish());
    }
    assert_eq!(router.destinations.len(), super::super::DESTINATIONS_MAX);
    let denied = actions(&mut router)
        .into_iter()
        .filter_map(|action| match action {
            DlepAction::Send(octets) => read_items(&octets[4..]).ok(),
            _ => None,
        });
    let denied = denied.filter(|items| items.contains(&DataItem::Status(status::REQUEST_DENIED)));
    assert_eq!(denied.count(), 101 - super::super::DESTINATIONS_MAX);
}

#[test]
fn offers_of_strangers_and_noise_begin_nothing() {
    let mut router = DlepRouter::new(DlepConfig::default());
    router.handle_datagram(at(0), MODEM.into(), b"DLEP");
    router.handle_datagram(
        at(0),
        MODEM.into(),
        &DlepWriter::signal(signal::PEER_DISCOVERY).finish(),
    );
    let tls = DlepWriter::signal(signal::PEER_OFFER)
        .item(item::IPV4_CONNECTION_POINT, &[1, 192, 0, 2, 9]);
    router.handle_datagram(at(0), MODEM.into(), &tls.finish());
    let elsewhere = DlepWriter::signal(signal::PEER_OFFER)
        .item(item::IPV4_CONNECTION_POINT, &[0, 198, 51, 100, 7, 0, 22]);
    router.handle_datagram(at(0), MODEM.into(), &elsewhere.finish());
    assert_eq!(actions(&mut router), []);
    assert_eq!(router.counters().wrong, 4);
}

#[test]
fn a_modem_that_asks_for_more_than_it_reads_is_left() {
    let mut router = in_session(DlepConfig::default());
    let flood: Vec<u8> = (0..300)
        .flat_map(|_| destination(message::DESTINATION_UP, 7_000))
        .collect();
    router.handle_octets(at(20), &flood);
    assert_eq!(actions(&mut router), [DlepAction::Close]);
    assert!(!router.is_in_session());
    assert_eq!(router.counters().wrong, 1);
    assert_eq!(rate(&mut router), Some(7_000), "its last word stays");
}

#[test]
fn a_rate_that_no_link_has_is_not_known() {
    let mut router = in_session(DlepConfig::default());
    router.handle_octets(at(20), &destination(message::DESTINATION_UP, 1));
    assert_eq!(rate(&mut router), None, "a packet would take hours");
    router.handle_octets(at(30), &destination(message::DESTINATION_UPDATE, u64::MAX));
    assert_eq!(rate(&mut router), None);
}

proptest! {
    #[test]
    fn whatever_a_modem_sends_the_router_keeps_its_bounds(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..40), session in any::<bool>()) {
        let mut router = if session { in_session(DlepConfig::default()) } else { DlepRouter::new(DlepConfig::default()) };
        let mut now = at(20);
        for piece in pieces {
            router.handle_octets(now, &piece);
            router.handle_datagram(now, MODEM.into(), &piece);
            router.handle_connected(now);
            prop_assert!(router.received.len() <= MESSAGE_BYTES_MAX);
            prop_assert!(router.actions.len() <= ACTIONS_MAX);
            if let Some(deadline) = router.next_deadline() {
                now = now.max(deadline.at);
                router.handle_deadline(now);
                prop_assert!(router.next_deadline().is_none_or(|next| next.at > now));
            }
            while router.poll_action().is_some() {}
        }
    }
}
