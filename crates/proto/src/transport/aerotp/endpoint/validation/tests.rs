//! The answer to a stranger, the cost of the question to a genuine peer, and the harm that a flood does to it.

use super::super::super::{CloseReason, ConnectionConfig, ConnectionId, EndpointConfig, Event};
use super::*;
use crate::machine::Machine;
use crate::rng::Rng;
use crate::wire::Port;

const PORT: Port = Port(7);
const ONE_WAY: Duration = Duration::from_millis(50);
const CLIENT: PathId = PathId(0);

fn listener() -> AerotpEndpoint {
    let config = EndpointConfig {
        address_key: Some(AddressKey::new([7; 32])),
        ..EndpointConfig::default()
    };
    let mut listener = AerotpEndpoint::new(config, Rng::from_seed(1));
    let listened = listener.listen(PORT, ConnectionConfig::default());
    listened.expect("the defaults work");
    listener
}

fn caller() -> (AerotpEndpoint, ConnectionId) {
    let mut caller = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(2));
    let id = caller.connect(Instant::START, CLIENT, PORT, ConnectionConfig::default());
    (caller, id.expect("room"))
}

fn sent(endpoint: &mut AerotpEndpoint, now: Instant) -> Vec<(PathId, Vec<u8>)> {
    let mut all = Vec::new();
    let mut out = Vec::new();
    while let Some(transmit) = endpoint.poll_transmit(now, &mut out) {
        all.push((transmit.path, std::mem::take(&mut out)));
    }
    all
}

fn events(endpoint: &mut AerotpEndpoint) -> Vec<Event> {
    core::iter::from_fn(|| endpoint.poll_event()).collect()
}

fn give(endpoint: &mut AerotpEndpoint, now: Instant, path: PathId, octets: &[u8]) {
    let ecn = Ecn::NotCapable;
    endpoint.handle_datagram(now, Datagram { path, octets, ecn });
}

/// The TPDU that opens a connection, with `body`.
fn opening(source: u16, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let header = Header {
        source: Port(source),
        destination: PORT,
        seq: TpduSeq(0),
        timestamp: 9,
        mode: Mode::Reliable,
        ecn: EcnField::NONE,
        flags: Flags::ASYN,
    };
    let outgoing = crate::wire::aerotp::Outgoing {
        header,
        crc: true,
        fec_words: crate::units::FecStrength::NONE,
        block: None,
        body,
    };
    crate::wire::aerotp::encode(&outgoing, &mut out);
    out
}

/// A header alone, with other flags, number and timestamp.
fn bare(source: u16, flags: Flags, token: u64) -> Vec<u8> {
    let header = Header {
        source: Port(source),
        destination: PORT,
        seq: TpduSeq((token >> 32) as u32),
        timestamp: (token & 0xFFFF_FFFF) as u32,
        mode: Mode::Reliable,
        ecn: EcnField::NONE,
        flags,
    };
    let outgoing = crate::wire::aerotp::Outgoing {
        header,
        crc: false,
        fec_words: crate::units::FecStrength::NONE,
        block: None,
        body: &[],
    };
    let mut out = Vec::new();
    crate::wire::aerotp::encode(&outgoing, &mut out);
    out
}

#[test]
fn a_forged_datagram_draws_one_answer_no_larger_than_itself_and_leaves_nothing() {
    for opens in [
        bare(50_000, Flags::ASYN, 0),
        opening(50_000, b"a file, it says"),
        opening(50_000, &[0; 1_400]),
    ] {
        let mut listener = listener();
        let mut now = Instant::START;
        give(&mut listener, now, CLIENT, &opens);
        let mut drawn = sent(&mut listener, now);
        for _ in 0..600 {
            now += Duration::from_millis(100);
            listener.handle_deadline(now);
            drawn.append(&mut sent(&mut listener, now));
        }
        assert_eq!(drawn.len(), 1);
        assert!(drawn[0].1.len() <= opens.len(), "{} octets", opens.len());
        assert_eq!(events(&mut listener), []);
        assert_eq!(listener.connection_count(), 0);
        assert_eq!(listener.next_deadline(), None, "nothing waits for it");
    }
}

#[test]
fn who_is_at_a_port_without_a_listener_gets_no_more_octets_than_it_sent() {
    let mut listener = listener();
    let now = Instant::START;
    let mut elsewhere = bare(50_000, Flags::ASYN, 0);
    let mut header = parse(&elsewhere).expect("it is whole").header;
    header.destination = Port(8);
    elsewhere.clear();
    let outgoing = crate::wire::aerotp::Outgoing {
        header,
        crc: false,
        fec_words: crate::units::FecStrength::NONE,
        block: None,
        body: &[],
    };
    crate::wire::aerotp::encode(&outgoing, &mut elsewhere);
    give(&mut listener, now, CLIENT, &elsewhere);
    assert_eq!(sent(&mut listener, now), [], "an RST would be longer");
}

/// The caller's first flight, the challenge, its answer: the times at which octets were read.
#[test]
fn a_first_flight_arrives_a_round_trip_later_and_need_not_be_sent_again() {
    let (mut caller, id) = caller();
    let mut listener = listener();
    let octets = vec![5; 20_000];
    let mut now = Instant::START;
    assert_eq!(caller.write(now, id, &octets), Ok(octets.len()));
    let mut under_way: Vec<(Instant, bool, Vec<u8>)> = Vec::new();
    let mut first_read = None;
    let mut read = 0;
    let mut lane = None;
    while read < octets.len() {
        assert!(
            now < Instant::START + Duration::from_secs(2),
            "{read} octets"
        );
        caller.handle_deadline(now);
        listener.handle_deadline(now);
        let (due, later): (Vec<_>, _) = under_way.drain(..).partition(|(at, ..)| *at <= now);
        under_way = later;
        for (_, to_listener, datagram) in due {
            let end = if to_listener {
                &mut listener
            } else {
                &mut caller
            };
            give(end, now, CLIENT, &datagram);
        }
        for event in events(&mut listener) {
            if let Event::Incoming { id, .. } = event {
                assert_eq!(lane.replace(id), None, "once");
            }
        }
        while let Some(chunk) = lane.and_then(|lane| listener.read(now, lane)) {
            first_read.get_or_insert(now);
            read += chunk.octets.len();
        }
        events(&mut caller);
        for (_, datagram) in sent(&mut caller, now) {
            under_way.push((now + ONE_WAY, true, datagram));
        }
        for (_, datagram) in sent(&mut listener, now) {
            under_way.push((now + ONE_WAY, false, datagram));
        }
        now += Duration::from_millis(1);
    }
    assert_eq!(first_read, Some(Instant::START + ONE_WAY * 3));
    let counters = caller.counters(id).expect("it is open");
    let again = counters.sent_bytes[crate::machine::TransmitKind::Retransmission as usize];
    assert_eq!(again, 0, "all that waited was taken");
    assert_eq!(listener.endpoint_counters().strangers, 0);
}

#[test]
fn a_flood_of_forged_sources_keeps_nobody_out() {
    let mut listener = listener();
    let now = Instant::START;
    let (mut caller, id) = caller();
    caller.write(now, id, b"hello").expect("it is open");
    let flight = sent(&mut caller, now);
    give(&mut listener, now, CLIENT, &flight[0].1);
    let question = sent(&mut listener, now);
    let forged = opening(50_000, &[0; 1_400]);
    for path in 1..10_000 {
        let at = now + Duration::from_micros(10) * path;
        give(&mut listener, at, PathId(path), &forged);
        assert_eq!(sent(&mut listener, at).len(), 1);
        let room = &listener.validation.as_ref().expect("it asks").waiting;
        assert!(room.bytes <= WAITING_BYTES_MAX && room.visitors.len() == room.order.len());
    }
    let later = now + Duration::from_millis(100);
    give(&mut caller, later, CLIENT, &question[0].1);
    for (_, answer) in sent(&mut caller, later) {
        give(&mut listener, later, CLIENT, &answer);
    }
    assert_eq!(listener.paths_in_use(later), Some(vec![CLIENT]));
    assert_eq!(
        events(&mut listener),
        [],
        "the flood drove out what it sent"
    );
    give(&mut listener, later, CLIENT, &flight[0].1);
    let first = events(&mut listener).into_iter().next();
    assert!(matches!(first, Some(Event::Incoming { .. })), "{first:?}");
}

#[test]
fn a_token_is_of_one_address_and_of_its_time() {
    let good_after = |source: &[u8], later: Duration| {
        let mut listener = listener();
        let now = Instant::START;
        let opens = opening(50_000, b"x");
        let datagram = Datagram {
            path: CLIENT,
            octets: &opens,
            ecn: Ecn::NotCapable,
        };
        listener.handle_datagram_from(now, datagram, b"its address");
        let question = sent(&mut listener, now).remove(0).1;
        let token = token_of(&parse(&question).expect("it is whole").header);
        let octets = &bare(50_000, Flags::RESPONSE, token);
        let (path, ecn) = (PathId(9), Ecn::NotCapable);
        listener.handle_datagram_from(now + later, Datagram { path, octets, ecn }, source);
        listener.paths_in_use(now + later) == Some(vec![path])
    };
    // The path table may have forgotten the path in between: the address counts.
    assert!(good_after(b"its address", Duration::ZERO));
    assert!(!good_after(b"another one", Duration::ZERO));
    assert!(good_after(
        b"its address",
        (TOKEN_PERIOD * 2).saturating_sub(Duration::from_nanos(1))
    ));
    assert!(!good_after(b"its address", TOKEN_PERIOD * 2));
}

#[test]
fn an_address_has_to_be_shown_again_some_time_after_its_last_connection() {
    let mut listener = listener();
    let (mut caller, id) = caller();
    let mut now = Instant::START;
    caller.write(now, id, b"hello").expect("it is open");
    for _ in 0..4 {
        for (_, datagram) in sent(&mut caller, now) {
            give(&mut listener, now, CLIENT, &datagram);
        }
        for (_, datagram) in sent(&mut listener, now) {
            give(&mut caller, now, CLIENT, &datagram);
        }
    }
    assert_eq!(listener.connection_count(), 1);
    caller.abort(now, id);
    for (_, datagram) in sent(&mut caller, now) {
        give(&mut listener, now, CLIENT, &datagram);
    }
    let closed = events(&mut listener).pop();
    let reset = CloseReason::Reset;
    assert!(
        matches!(closed, Some(Event::Closed { why, .. }) if why == reset),
        "{closed:?}"
    );
    let opens = |listener: &mut AerotpEndpoint, now, source| {
        give(listener, now, CLIENT, &opening(source, b"x"));
        listener.connection_count()
    };
    now += SHOWN_FOR.saturating_sub(Duration::from_nanos(1));
    let mut copy = listener;
    assert_eq!(opens(&mut copy, now, 50_001), 1);
    let lane = copy.connections.keys().next().copied().expect("one");
    copy.abort(now, lane);
    sent(&mut copy, now);
    assert_eq!(opens(&mut copy, now + SHOWN_FOR, 50_002), 0, "asked first");
}

#[test]
fn datagrams_without_a_connection_are_taken_of_known_addresses_only() {
    let mut listener = listener();
    let header = Header {
        source: Port(1),
        destination: PORT,
        seq: TpduSeq(0),
        timestamp: 0,
        mode: Mode::Datagram,
        ecn: EcnField::NONE,
        flags: Flags::NONE,
    };
    let outgoing = crate::wire::aerotp::Outgoing {
        header,
        crc: true,
        fec_words: crate::units::FecStrength::NONE,
        block: None,
        body: b"x",
    };
    let mut octets = Vec::new();
    crate::wire::aerotp::encode(&outgoing, &mut octets);
    give(&mut listener, Instant::START, CLIENT, &octets);
    assert_eq!(events(&mut listener), []);
    let source = CLIENT.0.to_be_bytes();
    listener.on_shown(Instant::START, CLIENT, &source);
    give(&mut listener, Instant::START, CLIENT, &octets);
    assert_eq!(events(&mut listener).len(), 1);
}

/// Gives the listener a datagram that arrives by `path` from the address `source`.
fn give_from(listener: &mut AerotpEndpoint, now: Instant, path: u32, source: &[u8], octets: &[u8]) {
    let (path, ecn) = (PathId(path), Ecn::NotCapable);
    listener.handle_datagram_from(now, Datagram { path, octets, ecn }, source);
}

/// Shows the address `source`, whose two datagrams come by two paths.
fn show(listener: &mut AerotpEndpoint, now: Instant, [first, second]: [u32; 2], source: &[u8]) {
    give_from(listener, now, first, source, &opening(50_000, b"x"));
    let question = sent(listener, now).remove(0).1;
    let token = token_of(&parse(&question).expect("it is whole").header);
    let answer = bare(50_000, Flags::RESPONSE, token);
    give_from(listener, now, second, source, &answer);
}

#[test]
fn what_waited_is_taken_though_the_answer_comes_by_another_path() {
    let mut listener = listener();
    let now = Instant::START;
    show(&mut listener, now, [1, 2], b"its address");
    let incoming = events(&mut listener).into_iter().next();
    let path = PathId(2);
    assert!(
        matches!(incoming, Some(Event::Incoming { path: of, .. }) if of == path),
        "{incoming:?}"
    );
    assert_eq!(listener.paths_in_use(now), Some(vec![path]));
    let room = &listener.validation.as_ref().expect("it asks").waiting;
    assert_eq!(
        (room.bytes, room.visitors.len(), room.order.len()),
        (0, 0, 0)
    );
}

#[test]
fn paths_are_in_use_while_they_have_connections_and_their_addresses_count_as_shown() {
    let mut listener = listener();
    let now = Instant::START;
    for source in [1_u8, 2] {
        let path = u32::from(source);
        show(&mut listener, now, [path, path], &[source]);
    }
    let lanes: Vec<ConnectionId> = listener.connections.keys().copied().collect();
    listener.abort(now, lanes[1]);
    sent(&mut listener, now);
    let soon = now + SHOWN_FOR.saturating_sub(Duration::from_nanos(1));
    assert_eq!(
        listener.paths_in_use(soon),
        Some(vec![PathId(1), PathId(2)])
    );
    let late = now + SHOWN_FOR;
    assert_eq!(listener.paths_in_use(late), Some(vec![PathId(1)]));
    // A datagram from the same address by another path: that path is in use from then on.
    give_from(&mut listener, soon, 9, &[2], &opening(50_001, b"x"));
    assert_eq!(
        listener.paths_in_use(soon),
        Some(vec![PathId(1), PathId(9)])
    );
}

#[test]
fn who_asks_again_a_while_after_the_last_challenge_is_challenged_again() {
    let mut listener = listener();
    let mut asked = |millis: u64| {
        let now = Instant::START + Duration::from_millis(millis);
        give(&mut listener, now, CLIENT, &opening(50_000, b"x"));
        sent(&mut listener, now).len()
    };
    let flight: usize = (0..9).map(|_| asked(0)).sum();
    assert_eq!(flight, 4, "the first four");
    assert_eq!(asked(199), 0);
    assert_eq!(asked(200), 1, "all challenges, or the answers, were lost");
    assert_eq!((asked(201), asked(399)), (0, 0));
    assert_eq!(asked(400), 1);
}
