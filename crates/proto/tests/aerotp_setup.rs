//! Opportunistic set-up: data needs no permission, and any first TPDU opens the connection.
//!
//! Method: a pipe that drops exactly the datagrams a case names (multi-mode paper, Section IV-A).

use super::pair::{PORT, Pair, Script, Way, clean, octets};
use super::sight::tpdu;
use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId, TransmitKind};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, CloseReason, ConnectionConfig, EndpointConfig, Event, RateSource, State,
};
use fulmar_proto::units::{Bitrate, Duration, FecStrength, Instant};
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::TpduSeq;
use fulmar_proto::wire::aerotp::{
    EcnField, Feedback, Handshake, HoldTime, ReceiverWord, TpduKind, parse,
};

const DELAY: Duration = Duration::from_millis(5);

fn endpoint() -> EndpointConfig {
    EndpointConfig {
        rate: RateSource::Told(Bitrate::from_bits_per_second(10_000_000)),
        ..EndpointConfig::default()
    }
}

fn config() -> ConnectionConfig {
    ConnectionConfig {
        mode: Mode::Reliable,
        ..ConnectionConfig::default()
    }
}

/// A script that drops the forward datagrams with these ordinals.
fn dropping(ordinals: &'static [u64]) -> Script {
    Box::new(move |way, ordinal, _, octets| {
        let dropped = way == Way::Forward && ordinals.contains(&ordinal);
        if dropped {
            Vec::new()
        } else {
            vec![(DELAY, octets.to_vec())]
        }
    })
}

#[test]
fn the_first_octets_ride_on_the_asyn_and_arrive_after_one_delay() {
    let mut pair = Pair::new(endpoint(), config(), clean(DELAY));
    let sent = octets(100);
    pair.send(config(), &sent);
    pair.run(DELAY);
    assert_eq!(pair.received(), sent);
}

#[test]
fn a_lost_first_tpdu_does_not_stop_the_second_from_opening_the_connection() {
    let mut pair = Pair::new(endpoint(), config(), dropping(&[0]));
    let sent = octets(20_000);
    pair.send(config(), &sent);
    // The second TPDU leaves one packet time after the first; a round trip brings its answer.
    pair.run(DELAY * 2 + Duration::from_millis(3));
    let opened = pair
        .events(Way::Back)
        .iter()
        .any(|e| matches!(e, Event::Incoming { .. }));
    assert!(opened, "the second TPDU opened it");
    assert_eq!(
        pair.events(Way::Forward).first(),
        Some(&Event::Connected(pair.id(Way::Forward).expect("in range")))
    );
    pair.run(Duration::from_secs(10));
    assert!(pair.received() == sent, "the first TPDU came again");
}

#[test]
fn without_data_a_pure_asyn_opens_the_connection_and_is_repeated_until_answered() {
    let mut pair = Pair::new(endpoint(), config(), dropping(&[0, 1]));
    pair.connect_only(config());
    pair.run(Duration::from_secs(5));
    let id = pair.id(Way::Forward).expect("in range");
    assert_eq!(
        pair.endpoint(Way::Forward).state(id),
        Some(State::Established)
    );
    assert_eq!(pair.sent(TransmitKind::Control), 3);
}

#[test]
fn a_lost_asynack_does_not_kill_the_connection_because_any_mack_establishes() {
    let script: Script = Box::new(|_, _, _, octets| {
        let is_asynack =
            tpdu(octets).is_ok_and(|tpdu| matches!(tpdu.kind(), TpduKind::Mack { asyn: true, .. }));
        if is_asynack {
            Vec::new()
        } else {
            vec![(DELAY, octets.to_vec())]
        }
    });
    let mut pair = Pair::new(endpoint(), config(), script);
    let sent = octets(20_000);
    pair.send(config(), &sent);
    pair.run(Duration::from_secs(10));
    assert!(pair.received() == sent);
    assert!(
        pair.events(Way::Forward)
            .iter()
            .any(|e| matches!(e, Event::Connected(_)))
    );
}

#[test]
fn a_port_nobody_listens_at_answers_with_a_reset() {
    let mut pair = Pair::new(endpoint(), config(), clean(DELAY));
    pair.connect_elsewhere(config(), b"anyone?");
    pair.run(Duration::from_secs(1));
    let reset = |e: &Event| {
        matches!(
            e,
            Event::Closed {
                why: CloseReason::Reset,
                ..
            }
        )
    };
    assert!(pair.events(Way::Forward).iter().any(reset));
}

#[test]
fn a_peer_that_vanishes_is_given_up_after_the_configured_time_and_not_before() {
    let patient = ConnectionConfig {
        give_up_after: Duration::from_secs(30),
        ..config()
    };
    let script: Script = Box::new(|_, _, now, octets| {
        if now < Instant::START + Duration::from_millis(100) {
            vec![(DELAY, octets.to_vec())]
        } else {
            Vec::new()
        }
    });
    let mut pair = Pair::new(endpoint(), patient, script);
    pair.send(patient, &octets(1_000_000));
    pair.run(Duration::from_secs(29));
    let gone = |e: &Event| {
        matches!(
            e,
            Event::Closed {
                why: CloseReason::PeerVanished,
                ..
            }
        )
    };
    assert!(!pair.events(Way::Forward).iter().any(gone));
    pair.run(Duration::from_secs(2));
    assert!(pair.events(Way::Forward).iter().any(gone), "the sender");
    assert!(pair.events(Way::Back).iter().any(gone), "the receiver");
    assert_eq!(pair.endpoint(Way::Forward).connection_count(), 0);
}

#[test]
fn an_idle_connection_lives_on_keep_alives() {
    let patient = ConnectionConfig {
        give_up_after: Duration::from_secs(30),
        ..config()
    };
    let mut pair = Pair::new(endpoint(), patient, clean(DELAY));
    pair.connect_only(patient);
    pair.run(Duration::from_secs(600));
    let id = pair.id(Way::Forward).expect("in range");
    assert_eq!(
        pair.endpoint(Way::Forward).state(id),
        Some(State::Established)
    );
    assert!(
        pair.sent(TransmitKind::Control) < 200,
        "a few keep-alives a minute"
    );
}

#[test]
fn answers_of_a_restarted_peer_that_forgot_the_connection_end_it() {
    let patient = ConnectionConfig {
        give_up_after: Duration::from_secs(30),
        ..config()
    };
    let mut pair = Pair::new(endpoint(), patient, clean(DELAY));
    pair.send(patient, &octets(8_000_000));
    pair.run(Duration::from_secs(1));
    let closed = |e: &Event| {
        matches!(
            e,
            Event::Closed {
                why: CloseReason::Reset,
                ..
            }
        )
    };
    assert!(!pair.events(Way::Forward).iter().any(closed));
    pair.restart_listener(endpoint(), patient);
    // The next TPDUs are under way already, and their answers take earlier confirmations back.
    pair.run(DELAY * 4);
    assert!(pair.events(Way::Forward).iter().any(closed));
}

#[test]
fn an_end_before_what_was_received_is_a_restarted_peers_and_both_sides_let_go() {
    let patient = ConnectionConfig {
        give_up_after: Duration::from_secs(3600),
        ..config()
    };
    let outage = Instant::START + DELAY * 20..Instant::START + Duration::from_secs(1);
    let script: Script = Box::new(move |way, _, now, octets| {
        if way == Way::Forward && outage.contains(&now) {
            return Vec::new();
        }
        vec![(DELAY, octets.to_vec())]
    });
    let mut pair = Pair::new(endpoint(), patient, script);
    pair.connect_only(patient);
    pair.run(DELAY * 20);
    pair.app(Way::Back, |endpoint, now, id| {
        endpoint.write(now, id, b"taken").expect("open");
    });
    pair.run(DELAY * 10);
    pair.app(Way::Forward, |endpoint, now, id| {
        endpoint.write(now, id, b"not taken").expect("open");
        endpoint.close(now, id);
    });
    pair.restart_listener(endpoint(), patient);
    // The new listener takes the TPDU with "not taken" for the beginning of a connection. It ends
    // its own direction before the first octet, of which this side has had one already.
    pair.run(Duration::from_secs(10));
    let reset = |e: &Event| {
        matches!(
            e,
            Event::Closed {
                why: CloseReason::Reset,
                ..
            }
        )
    };
    assert!(pair.events(Way::Forward).iter().any(reset));
    for way in [Way::Forward, Way::Back] {
        assert_eq!(pair.endpoint(way).connection_count(), 0, "{way:?}");
    }
}

#[test]
fn a_connection_under_ports_that_the_peer_remembers_from_before_a_restart_ends_at_once() {
    let mut sender = AerotpEndpoint::new(endpoint(), Rng::from_seed(1));
    let now = Instant::START;
    let id = sender
        .connect(now, PathId(0), PORT, config())
        .expect("connects");
    sender.write(now, id, b"once more").expect("open");
    let mut sent = Vec::new();
    sender.poll_transmit(now, &mut sent).expect("an ASYN");
    let asks = parse(&sent).expect("sound").header;
    // The end of a longer connection that the same ports had, which finished.
    let remembers = Feedback {
        source: asks.destination,
        destination: asks.source,
        mode: asks.mode,
        ecn: EcnField::NONE,
        echo: asks.timestamp,
        crc: true,
        fec_words: FecStrength::NONE,
    };
    let receiver = ReceiverWord {
        window: u16::MAX,
        hold: HoldTime::from_duration(Duration::ZERO),
    };
    let mut answer = Vec::new();
    remembers.cumulative(Handshake::Afin, TpduSeq(47), receiver, [], &mut answer);
    let datagram = Datagram {
        path: PathId(0),
        octets: &answer,
        ecn: Ecn::NotCapable,
    };
    sender.handle_datagram(now + DELAY, datagram);
    let why = CloseReason::Reset;
    let events: Vec<Event> = core::iter::from_fn(|| sender.poll_event()).collect();
    assert!(events.contains(&Event::Closed { id, why }), "{events:?}");
}
