//! A server's promises towards clients that lie, flood or fall silent.

use super::*;
use crate::perf::PERF_DATA_PORT;
use crate::perf::message::Head;
use crate::perf::test::TestDirection;
use fulmar_proto::machine::{Datagram, Ecn, Machine};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{EndpointConfig, RateSource};
use fulmar_proto::wire::Mode;

const NOW: Instant = Instant::START;

/// A server in conversation with a client that has said nothing yet.
fn conversation() -> (PerfServer<()>, AerotpEndpoint, ConnectionId) {
    let mut machine = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(1));
    let plan = ServerPlan {
        connection: ConnectionConfig {
            // Less than the answers that would wait: the rest must not wait elsewhere.
            send_buffer_bytes: 4_096,
            ..ConnectionConfig::default()
        },
        rate_max: Bitrate::from_bits_per_second(10_000_000),
        sharing: None,
        once: false,
    };
    let mut server =
        PerfServer::new(plan, &mut machine, Stop::default(), ()).expect("sound settings");
    let control = control_config(ConnectionConfig::default());
    let path = PathId(1);
    let id = machine
        .connect(NOW, path, PERF_PORT, control)
        .expect("room");
    let event = Event::Incoming {
        id,
        path,
        local: PERF_PORT,
        mode: Mode::Reliable,
    };
    server.deliver(NOW, &mut machine, event);
    (server, machine, id)
}

fn said(server: &mut PerfServer<()>, control: ConnectionId) -> Vec<Record> {
    let outbox = std::mem::take(&mut server.conversations.get_mut(&control).expect("it").outbox);
    let (mut octets, mut records, mut all) = (outbox.as_slice(), Records::default(), Vec::new());
    while let Some(record) = records.next(&mut octets).expect("ours") {
        all.push(record);
    }
    all
}

#[test]
fn who_does_not_know_the_number_is_told_nothing_and_sent_nothing() {
    let (mut server, mut machine, id) = conversation();
    let test = Test::new(1, Mode::Unreliable, TestDirection::Down);
    let hello = Record::Hello(test);
    server
        .on_record(NOW, &mut machine, id, hello)
        .expect("a sound test");
    let accept = said(&mut server, id);
    let &[Record::Accept { token }] = accept.as_slice() else {
        panic!("{accept:?}")
    };
    let wrong = token ^ 1;
    for forged in [
        Record::Probe {
            token: wrong,
            sent: 0,
        },
        Record::Begin {
            token: wrong,
            ahead: 0,
        },
    ] {
        assert!(server.on_record(NOW, &mut machine, id, forged).is_err());
        assert!(server.running.is_none());
        assert_eq!(said(&mut server, id), []);
    }
    let right = Record::Begin { token, ahead: 0 };
    server
        .on_record(NOW, &mut machine, id, right)
        .expect("the number");
    assert!(server.running.is_some());
}

#[test]
fn a_client_that_was_refused_is_not_answered_again() {
    let (mut server, mut machine, id) = conversation();
    let mut test = Test::new(1, Mode::Unreliable, TestDirection::Down);
    test.message_bytes = 9_000;
    let hello = Record::Hello(test);
    server
        .on_record(NOW, &mut machine, id, hello.clone())
        .expect("an answer");
    let told = said(&mut server, id);
    assert!(
        matches!(told.as_slice(), [Record::Refuse { .. }]),
        "{told:?}"
    );
    assert!(server.on_record(NOW, &mut machine, id, hello).is_err());
}

#[test]
fn parity_that_fills_the_servers_packets_is_refused_by_the_servers_option() {
    let (mut server, mut machine, id) = conversation();
    server.plan.connection.tpdu_bytes_max = 100;
    let test = Test {
        fec_words: 24,
        ..Test::new(1, Mode::Reliable, TestDirection::Up)
    };
    server
        .on_record(NOW, &mut machine, id, Record::Hello(test))
        .expect("an answer");
    let text = "the server's --mtu leaves 0 of 100 octets for payload beside 24 FEC words; it must leave 1 to 65000";
    let text = text.to_owned();
    assert_eq!(said(&mut server, id), [Record::Refuse { text }]);
}

#[test]
fn the_rate_that_a_test_wants_goes_with_the_test() {
    let config = EndpointConfig {
        rate: RateSource::Found {
            bound: None,
            first: None,
            sharing: RateSharing::Fair,
        },
        ..EndpointConfig::default()
    };
    let (mut server, _, _) = conversation();
    let mut machine = AerotpEndpoint::new(config, Rng::from_seed(1));
    for path in (1..=3).map(PathId) {
        let control = control_config(ConnectionConfig::default());
        let control = machine
            .connect(NOW, path, PERF_PORT, control)
            .expect("room");
        let test = Test::new(1, Mode::Reliable, TestDirection::Down);
        assert!(test.link_rate().is_some());
        server
            .start(NOW, &mut machine, (control, path), &test, 0)
            .expect("room");
        assert!(!machine.finds_rate(path), "{path:?}: it was told");
        if path == PathId(2) {
            // Its client left without a word: the next test takes its place.
            continue;
        }
        server.end_test(NOW, &mut machine, control, PerfError::Ended);
        for path in (1..=path.0).map(PathId) {
            assert!(machine.finds_rate(path), "{path:?}: as before any test");
        }
    }
}

#[test]
fn a_silent_client_is_forgotten() {
    let (mut server, mut machine, _) = conversation();
    let deadline = server.next_deadline().expect("its introduction");
    assert_eq!(deadline.at, NOW + INTRODUCTION_MAX);
    server.work(deadline.at, &mut machine);
    assert!(server.conversations.is_empty());
}

/// Hands over all that `from` wants to send now; none of it arrives without `to`.
fn carry(now: Instant, from: &mut AerotpEndpoint, mut to: Option<&mut AerotpEndpoint>) {
    let mut octets = Vec::new();
    while from.poll_transmit(now, &mut octets).is_some() {
        if let Some(to) = &mut to {
            let path = PathId(1);
            let octets = octets.as_slice();
            let ecn = Ecn::default();
            to.handle_datagram(now, Datagram { path, octets, ecn });
        }
        octets.clear();
    }
}

fn serve(now: Instant, server: &mut PerfServer<()>, machine: &mut AerotpEndpoint) {
    while let Some(event) = machine.poll_event() {
        server.deliver(now, machine, event);
    }
    while server.work(now, machine) == Step::Again {}
}

/// A client that asked for `test` and hears nothing of the server, with the number that it was not told.
fn deaf_client(
    test: Test,
    server: &mut PerfServer<()>,
    machine: &mut AerotpEndpoint,
) -> (AerotpEndpoint, ConnectionId, u64) {
    let rate = Bitrate::from_bits_per_second(u64::from(u32::MAX));
    let config = EndpointConfig {
        rate: RateSource::Told(rate),
        burst: Duration::from_secs(1),
        ..EndpointConfig::default()
    };
    let mut client = AerotpEndpoint::new(config, Rng::from_seed(2));
    let control = control_config(ConnectionConfig::default());
    let id = client
        .connect(NOW, PathId(1), PERF_PORT, control)
        .expect("room");
    let mut octets = Vec::new();
    Record::Hello(test).encode(&mut octets);
    client.write(NOW, id, &octets).expect("open");
    carry(NOW, &mut client, Some(&mut *machine));
    serve(NOW, server, machine);
    let answered = server.conversations.values().find(|one| one.test.is_some());
    let token = answered.expect("its test").token;
    (client, id, token)
}

#[test]
fn who_asks_without_end_and_confirms_nothing_is_not_read_without_end() {
    let (mut server, mut machine, _) = conversation();
    let test = Test::new(1, Mode::Unreliable, TestDirection::Up);
    let (mut client, id, token) = deaf_client(test, &mut server, &mut machine);
    let mut octets = Vec::new();
    for sent in 0..100 {
        Record::Probe { token, sent }.encode(&mut octets);
    }
    let mut asked = 0;
    for _ in 0..2_000 {
        asked += client.write(NOW, id, &octets).expect("open");
        carry(NOW, &mut client, Some(&mut machine));
        serve(NOW, &mut server, &mut machine);
        // Acknowledgements of reading go back; the server's records do not.
        carry(NOW, &mut machine, None);
    }
    let waiting = server.conversations.values().map(|one| one.outbox.len());
    let most = waiting.max().unwrap_or_default();
    // One payload of questions is read at once, and answers are twice as long.
    assert!(most <= OUTBOX_BYTES_MAX + 2 * 1_500, "{most} for {asked}");
    assert!(asked > 100_000, "{asked}: too few to tell");
}

#[test]
fn who_sends_on_and_does_not_listen_is_not_told_intervals_without_end() {
    const SPAN: Duration = Duration::from_millis(100);
    let (mut server, mut machine, _) = conversation();
    let test = Test {
        interval: Some(SPAN),
        ..Test::new(1, Mode::Unreliable, TestDirection::Up)
    };
    let mut message = vec![0; test.message_bytes as usize];
    let (mut client, id, token) = deaf_client(test, &mut server, &mut machine);
    let mut octets = Vec::new();
    Record::Begin { token, ahead: 0 }.encode(&mut octets);
    client.write(NOW, id, &octets).expect("open");
    carry(NOW, &mut client, Some(&mut machine));
    serve(NOW, &mut server, &mut machine);
    let control = server.running.as_ref().expect("it began").control;
    let config = ConnectionConfig {
        mode: Mode::Unreliable,
        ..ConnectionConfig::default()
    };
    let lane = client
        .connect(NOW, PathId(1), PERF_DATA_PORT, config)
        .expect("room");
    let (mut now, mut most) = (NOW, 0);
    for sequence in 0..2_000 {
        now += SPAN;
        let head = Head {
            id: 1,
            sequence,
            sent: now,
        };
        head.write(&mut message);
        let written = client.write_message(now, lane, &message);
        assert_eq!(written, Ok(true));
        carry(now, &mut client, Some(&mut machine));
        serve(now, &mut server, &mut machine);
        carry(now, &mut machine, None);
        most = most.max(server.conversations[&control].outbox.len());
        let deadline = server.next_deadline().expect("patience");
        assert!(deadline.at > now, "it would not sleep for {}", deadline.why);
    }
    assert!(most > OUTBOX_BYTES_MAX, "{most}: too few to tell");
    assert!(most <= OUTBOX_BYTES_MAX + 50, "{most}");
    // Once it listens, one interval covers all that were not told.
    let conversation = server.conversations.get_mut(&control).expect("it");
    conversation.outbox.clear();
    server.advance(now, &mut machine);
    let untold = said(&mut server, control);
    let [Record::Interval(rest)] = untold.as_slice() else {
        panic!("{untold:?}")
    };
    assert_eq!(rest.until, 1_999 * SPAN);
    let spans = rest.until.saturating_sub(rest.from).as_millis() / SPAN.as_millis();
    assert!(spans > 1_000, "{spans}");
    assert!(
        u128::from(rest.total()).abs_diff(spans) <= 1,
        "{rest:?}: one message came in each"
    );
}

#[test]
fn a_question_of_another_version_is_answered_with_both_versions() {
    // The whole HELLO of version 1, and the beginning of one that we cannot know.
    let first: &[u8] = b"\x00\x15\x00\x01\xa1\x86\x95\xbb\x08\x04\x00\xe8\x07\x00\xc0\x96\xb1\x02\x00\x0a\x00\x00\x00";
    let later: &[u8] = b"\x00\x04\x00\x09\xff\xff";
    for (hello, version) in [(first, "version 1,"), (later, "version 9,")] {
        let (mut server, mut machine, id) = conversation();
        server
            .take(NOW, &mut machine, id, hello)
            .expect("an answer");
        let told = said(&mut server, id);
        let [Record::Refuse { text }] = told.as_slice() else {
            panic!("{told:?}")
        };
        assert!(
            text.contains(version) && text.contains("version 2"),
            "{text}"
        );
        // The conversation closes, and is not answered twice.
        assert!(server.take(NOW, &mut machine, id, hello).is_err());
    }
}

/// A server whose client was told to begin a test of `streams` from there to here.
fn running(streams: u8) -> (PerfServer<()>, AerotpEndpoint, ConnectionId) {
    let (mut server, mut machine, id) = conversation();
    let test = Test {
        streams,
        ..Test::new(1, Mode::Reliable, TestDirection::Up)
    };
    let hello = Record::Hello(test);
    server
        .on_record(NOW, &mut machine, id, hello)
        .expect("a sound test");
    let accept = said(&mut server, id);
    let &[Record::Accept { token }] = accept.as_slice() else {
        panic!("{accept:?}")
    };
    let begin = Record::Begin { token, ahead: 0 };
    server
        .on_record(NOW, &mut machine, id, begin)
        .expect("the number");
    assert_eq!(said(&mut server, id), [Record::Go]);
    (server, machine, id)
}

#[test]
fn a_number_of_streams_out_of_range_is_refused_before_anything_is_held() {
    for streams in [0, 129, 255] {
        let (mut server, mut machine, id) = conversation();
        let held = (machine.connection_count(), machine.memory_bytes());
        let test = Test {
            streams,
            ..Test::new(1, Mode::Reliable, TestDirection::Down)
        };
        server
            .on_record(NOW, &mut machine, id, Record::Hello(test))
            .expect("an answer");
        let told = said(&mut server, id);
        let [Record::Refuse { text }] = told.as_slice() else {
            panic!("{streams}: {told:?}")
        };
        assert!(text.contains("1 to 128"), "{text}");
        assert_eq!((machine.connection_count(), machine.memory_bytes()), held);
        assert!(server.running.is_none());
    }
}

#[test]
fn what_is_said_of_a_stream_that_is_none_ends_the_test() {
    let end = |stream| {
        let sent = crate::perf::Sent::default();
        Record::End { stream, sent }
    };
    for (ends, told) in [
        (vec![end(2)], "stream 3 in a test of 2"),
        (vec![end(255)], "stream 256 in a test of 2"),
        (vec![end(0), end(0)], "END out of turn"),
    ] {
        let (mut server, mut machine, id) = running(2);
        let mut octets = Vec::new();
        for record in ends {
            record.encode(&mut octets);
        }
        let error = server.take(NOW, &mut machine, id, &octets).unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[test]
fn a_test_without_messages_ends_with_results_of_nothing() {
    let (mut server, mut machine, id) = running(3);
    let mut octets = Vec::new();
    for stream in 0..3 {
        let sent = crate::perf::Sent::default();
        Record::End { stream, sent }.encode(&mut octets);
    }
    server.take(NOW, &mut machine, id, &octets).expect("sound");
    serve(NOW, &mut server, &mut machine);
    assert_eq!(said(&mut server, id), [], "messages may still come");
    let deadline = server.next_deadline().expect("the last messages");
    server.advance(deadline.at, &mut machine);
    let measured = crate::perf::Measured::default();
    let results = [Some(0), Some(1), Some(2), None];
    let results = results.map(|stream| Record::Result { stream, measured });
    assert_eq!(said(&mut server, id), results);
}

#[test]
fn one_host_with_many_conversations_neither_ends_anothers_nor_keeps_it_out() {
    let (mut server, mut machine, _) = conversation();
    let mut next = 0;
    let mut comes = |server: &mut PerfServer<()>, machine: &mut AerotpEndpoint, path: PathId| {
        let control = control_config(ConnectionConfig::default());
        let id = machine
            .connect(NOW, path, PERF_PORT, control)
            .expect("room");
        let (local, mode) = (PERF_PORT, Mode::Reliable);
        let address = if path == PathId(2) {
            // Other ports of one host.
            next += 1;
            format!("192.0.2.1:{next}")
        } else {
            format!("198.51.100.{}:1", path.0)
        };
        let address = address.parse().expect("an address");
        // Not a TPDU: it tells the address only.
        let (octets, ecn) = (&[0; 4][..], Ecn::default());
        let origin = DatagramOrigin {
            from: address,
            at: NOW,
        };
        server.arrived(NOW, machine, Datagram { path, octets, ecn }, origin);
        let event = Event::Incoming {
            id,
            path,
            local,
            mode,
        };
        server.deliver(NOW, machine, event);
        id
    };
    let patient = comes(&mut server, &mut machine, PathId(3));
    for _ in 0..1_000 {
        comes(&mut server, &mut machine, PathId(2));
    }
    assert!(server.conversations.contains_key(&patient));
    assert!(server.conversations.len() < CONVERSATIONS_MAX);
    let newcomer = comes(&mut server, &mut machine, PathId(4));
    for _ in 0..1_000 {
        comes(&mut server, &mut machine, PathId(2));
    }
    assert!(server.conversations.contains_key(&newcomer));
}
