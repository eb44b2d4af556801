//! A client's promises towards servers that lie.

use super::*;
use crate::perf::test::RATE_ABOVE_ZERO;
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::EndpointConfig;
use fulmar_proto::wire::Mode;

const NOW: Instant = Instant::START;

/// A client in the midst of a test of two streams.
fn running(direction: TestDirection) -> (Client<()>, AerotpEndpoint) {
    let mut machine = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(1));
    let plan = ClientPlan {
        test: Test {
            streams: 2,
            interval: Some(Duration::from_secs(1)),
            ..Test::new(1, Mode::Reliable, direction)
        },
        connection: ConnectionConfig::default(),
        connect_timeout: Duration::from_secs(10),
        sounding_every: None,
    };
    let mut client = Client::new(plan, PathId(1), Stop::default(), ());
    client.begin(NOW, &mut machine).expect("room");
    let echo = Record::Echo {
        sent: 0,
        came: 0,
        answered: 0,
    };
    let answers = std::iter::once(Record::Accept { token: 5 })
        .chain(std::iter::repeat_n(echo, 10))
        .chain([Record::Go]);
    for record in answers {
        client
            .on_record(NOW, &mut machine, record)
            .expect("its turn");
    }
    (client, machine)
}

fn result(stream: Option<u8>) -> Record {
    let measured = Measured::default();
    Record::Result { stream, measured }
}

fn end(stream: u8) -> Record {
    let sent = Sent::default();
    Record::End { stream, sent }
}

fn interval(streams: usize) -> Record {
    Record::Interval(Interval {
        from: Duration::ZERO,
        until: Duration::from_secs(1),
        messages: vec![1; streams],
    })
}

#[test]
fn a_server_that_counts_other_streams_is_not_believed() {
    let finished = |client: &mut Client<()>| client.sent = Some(vec![Sent::default(); 2]);
    for (direction, records, told) in [
        (
            TestDirection::Up,
            vec![interval(3)],
            "3 streams in a test of 2",
        ),
        (
            TestDirection::Up,
            vec![interval(1)],
            "1 streams in a test of 2",
        ),
        (
            TestDirection::Up,
            vec![interval(0)],
            "0 streams in a test of 2",
        ),
        (
            TestDirection::Up,
            vec![result(Some(2))],
            "stream 3 in a test of 2",
        ),
        (
            TestDirection::Up,
            vec![result(Some(1)), result(Some(1))],
            "RESULT out of turn",
        ),
        (
            TestDirection::Up,
            vec![result(None), result(None)],
            "RESULT out of turn",
        ),
        (TestDirection::Up, vec![end(0)], "END out of turn"),
        (TestDirection::Down, vec![end(2)], "stream 3 in a test of 2"),
        (TestDirection::Down, vec![end(1), end(1)], "END out of turn"),
        (
            TestDirection::Down,
            vec![interval(2)],
            "INTERVAL out of turn",
        ),
    ] {
        let (mut client, mut machine) = running(direction);
        if direction == TestDirection::Up {
            finished(&mut client);
        }
        let (last, sound) = records.split_last().expect("some");
        for record in sound {
            client
                .on_record(NOW, &mut machine, record.clone())
                .expect("the first is sound");
        }
        let outcome = client.on_record(NOW, &mut machine, last.clone());
        let error = outcome.expect_err(told);
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[test]
fn results_before_the_end_of_the_messages_are_out_of_turn() {
    let (mut client, mut machine) = running(TestDirection::Up);
    let early = client.on_record(NOW, &mut machine, result(None));
    assert!(
        matches!(early, Err(PerfError::Sequence("RESULT"))),
        "{early:?}"
    );
}

#[test]
fn a_server_that_drops_the_first_word_is_taken_for_one_of_another_version() {
    let (mut client, mut machine) = running(TestDirection::Up);
    client.heard = false;
    client.phase = Phase::Asking;
    client.on_closed(NOW, &mut machine, CloseReason::Reset);
    let error = client.take_outcome().expect("it ended").unwrap_err();
    assert!(error.to_string().contains("another version"), "{error}");
    // Later on it was stopped.
    let (mut client, mut machine) = running(TestDirection::Up);
    client.heard = true;
    client.on_closed(NOW, &mut machine, CloseReason::Reset);
    let error = client.take_outcome().expect("it ended").unwrap_err();
    assert!(matches!(error, PerfError::Ended), "{error}");
}

#[test]
fn a_server_of_a_release_that_finds_no_rate_is_answered_with_what_to_do() {
    for (link_bps, said) in [(0, "--rate"), (5_000_000, RATE_ABOVE_ZERO)] {
        let (mut client, mut machine) = running(TestDirection::Up);
        client.plan.test.link_bps = link_bps;
        let text = RATE_ABOVE_ZERO.to_owned();
        let refusal = client.on_record(NOW, &mut machine, Record::Refuse { text });
        let error = refusal.expect_err("it refuses").to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn each_result_renews_the_patience_with_the_next() {
    let (mut client, mut machine) = running(TestDirection::Up);
    client.sent = Some(vec![Sent::default(); 2]);
    client.flows = Flows::default();
    client.settle(NOW);
    let patience = client.plan.connection.give_up_after;
    let mut now = NOW;
    for stream in [Some(0), Some(1)] {
        now += patience * 2 / 3;
        let step = client.step(now, &mut machine);
        assert!(step.is_ok(), "{stream:?}: {step:?}");
        client
            .on_record(now, &mut machine, result(stream))
            .expect("its turn");
        let deadline = client.next_deadline().expect("its patience");
        assert_eq!(deadline.at, now + patience);
    }
    let late = client.step(now + patience, &mut machine);
    assert!(matches!(late, Err(PerfError::Vanished(_))), "{late:?}");
}
