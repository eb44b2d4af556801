//! The bounds and indexes of an endpoint.

mod unsent;

use super::*;
use crate::machine::{Carried, Machine};
use crate::transport::aerotp::{AckPolicy, RateSource};
use crate::transport::parts::RtoLimits;
use crate::units::{Bitrate, ByteCount};

#[test]
fn a_time_that_is_named_in_vain_keeps_no_other_connection_waiting() {
    let mut endpoint = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(1));
    let now = Instant::START;
    let config = ConnectionConfig::default();
    let mut connect = || endpoint.connect(now, PathId(0), Port(1), config);
    let (first, second) = (connect().expect("room"), connect().expect("room"));
    endpoint.deadlines.insert((now, first));
    let later = endpoint.connections[&second]
        .deadline
        .expect("patience with the peer")
        .at;
    endpoint.handle_deadline(later);
    let after = endpoint.connections[&second].deadline;
    assert!(after.is_none_or(|deadline| deadline.at > later));
}

#[test]
fn a_peers_restart_ends_the_connections_that_were_named_or_else_all() {
    let mut endpoint = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(1));
    let (now, path, config) = (Instant::START, PathId(0), ConnectionConfig::default());
    let mut connect = || endpoint.connect(now, path, Port(1), config).expect("room");
    let (old, early) = (connect(), connect());
    endpoint.end_with_restart(path, BTreeSet::from([old]));
    endpoint.peer_restarted(now, path);
    let left: Vec<ConnectionId> = endpoint.connections.keys().copied().collect();
    assert_eq!(left, [early]);
    endpoint.peer_restarted(now, path);
    assert!(endpoint.connections.is_empty());
}

#[test]
fn data_held_by_all_connections_together_bounds_how_many_open() {
    let memory_max = ByteCount(10_000);
    let settings = EndpointConfig {
        memory_max,
        ..EndpointConfig::default()
    };
    let mut endpoint = AerotpEndpoint::new(settings, Rng::from_seed(1));
    let now = Instant::START;
    let config = ConnectionConfig::default();
    let mut connect = |octets: usize| {
        let id = endpoint.connect(now, PathId(0), Port(1), config)?;
        let written = endpoint.write(now, id, &vec![0; octets]);
        assert_eq!(written, Ok(octets));
        Ok::<_, ConnectError>(id)
    };
    let ids = [connect(4_999), connect(4_999), connect(5_000)].map(|id| id.expect("room"));
    let refused = Err(ConnectError::TooMuchHeld(memory_max));
    assert_eq!(connect(1), refused);
    for id in ids {
        endpoint.abort(now, id);
        let mut out = Vec::new();
        while endpoint.poll_transmit(now, &mut out).is_some() {}
    }
    assert_eq!(endpoint.memory_bytes, 0);
    assert!(endpoint.connect(now, PathId(0), Port(1), config).is_ok());
}

#[test]
fn connections_that_wait_on_one_path_leave_the_others_their_reserve() {
    let settings = EndpointConfig {
        connections_max: 40,
        memory_max: ByteCount(100_000),
        ..EndpointConfig::default()
    };
    let now = Instant::START;
    let config = ConnectionConfig::default();
    // Without data the connections run out first, with data the memory.
    for (octets, alone) in [(0, 30), (4_999, 16)] {
        let mut endpoint = AerotpEndpoint::new(settings, Rng::from_seed(1));
        endpoint.share_among([PathId(0), PathId(1)]);
        let mut open = |path: u32| {
            let id = endpoint.connect(now, PathId(path), Port(1), config)?;
            endpoint
                .write(now, id, &vec![0; octets])
                .expect("it is open");
            Ok::<_, ConnectError>(id)
        };
        let mut greedy = Vec::new();
        while let Ok(id) = open(0) {
            greedy.push(id);
        }
        assert_eq!(greedy.len(), alone);
        let modest = (0..).map_while(|_| open(1).ok()).count();
        assert!(modest >= 5, "{modest}");
        for id in greedy {
            endpoint.abort(now, id);
        }
        while endpoint.poll_transmit(now, &mut Vec::new()).is_some() {}
        assert!(endpoint.connect(now, PathId(1), Port(1), config).is_ok());
    }
}

#[test]
fn a_path_is_released_after_its_last_connection_once_its_budget_is_even() {
    let mut endpoint = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(1));
    let config = ConnectionConfig::default();
    let mut now = Instant::START;
    for (path, left) in [(0, vec![0]), (1, vec![1])] {
        let id = endpoint.connect(now, PathId(path), Port(1), config);
        endpoint.abort(now, id.expect("room"));
        let mut out = Vec::new();
        while endpoint.poll_transmit(now, &mut out).is_some() {}
        // The reset is counted on the path by which it left.
        let left: Vec<PathId> = left.into_iter().map(PathId).collect();
        assert_eq!(endpoint.paths.keys().copied().collect::<Vec<_>>(), left);
        now += Duration::from_secs(1);
    }
}

#[test]
fn a_connection_that_begins_on_a_known_path_asks_again_within_a_few_round_trips() {
    let asks_again_after = |known: Option<Duration>| {
        let mut endpoint = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(1));
        let now = Instant::START + Duration::from_secs(1);
        if let Some(rtt) = known {
            endpoint.expect_round_trip(PathId(0), rtt);
        }
        let id = endpoint.connect(now, PathId(0), Port(1), ConnectionConfig::default());
        let written = endpoint.write(now, id.expect("room"), b"first octets");
        assert_eq!(written, Ok(12));
        let mut out = Vec::new();
        while endpoint.poll_transmit(now, &mut out).is_some() {}
        let deadline = endpoint.next_deadline().expect("an answer is awaited");
        deadline.at.saturating_since(now)
    };
    let flush = AckPolicy::default().flush * 4;
    let limits = RtoLimits::default();
    let cases = [
        (None, limits.initial),
        (Some(10), Duration::from_millis(30)),
        (Some(600), limits.initial),
        (Some(2_000), Duration::from_secs(2) + limits.margin),
    ];
    for (known, expected) in cases {
        let after = asks_again_after(known.map(Duration::from_millis));
        assert_eq!(after, expected + flush, "{known:?}");
    }
}

/// Connects and aborts. Returns the notes of the connection, and the number of missed ones.
fn notes_of_a_short_life(trace_records: usize) -> (Vec<Note>, u64) {
    let settings = EndpointConfig {
        trace_records,
        ..EndpointConfig::default()
    };
    let mut endpoint = AerotpEndpoint::new(settings, Rng::from_seed(1));
    let now = Instant::START;
    let share = crate::transport::aerotp::Share {
        class: 3,
        ..Default::default()
    };
    let config = ConnectionConfig {
        share,
        ..ConnectionConfig::default()
    };
    let id = endpoint.connect(now, PathId(7), Port(1), config);
    let id = id.expect("room");
    endpoint.write(now, id, &[0; 10]).expect("it is open");
    let mut out = Vec::new();
    while endpoint.poll_transmit(now, &mut out).is_some() {}
    endpoint.label(id, 9);
    endpoint.abort(now, id);
    while endpoint.poll_transmit(now, &mut out).is_some() {}
    assert_eq!(endpoint.connection_count(), 0, "it is forgotten");
    let notes = core::iter::from_fn(|| endpoint.take_note()).collect();
    (notes, endpoint.take_missed_notes())
}

#[test]
fn notes_outlive_their_connection_and_say_whose_they_are() {
    let (notes, missed) = notes_of_a_short_life(100);
    assert_eq!(missed, 0);
    for note in &notes {
        assert_eq!((note.path, note.class), (PathId(7), 3));
    }
    let is_sent =
        |note: &Note| matches!(note.record, crate::trace::TraceRecord::Sent { len: 10, .. });
    assert_eq!(notes.iter().filter(|note| is_sent(note)).count(), 1);
    let last = notes.last().map(|note| (note.record, note.label));
    let closed = crate::trace::TraceRecord::State { to: "CLOSED" };
    assert_eq!(last, Some((closed, Some(9))));
    // The notes are bounded, with a count of those that did not fit. Nothing is noted where nobody
    // asked.
    let (kept, missed) = notes_of_a_short_life(1);
    assert_eq!((kept.len(), missed), (1, notes.len() as u64 - 1));
    assert_eq!(notes_of_a_short_life(0), (Vec::new(), 0));
}

/// The times, in milliseconds, at which an endpoint that nobody answers sends something, up to `until`; the numbers of
/// what it sends; and its counters then.
fn sent_in_vain(
    endpoint: &mut AerotpEndpoint,
    id: ConnectionId,
    until: u64,
) -> (Vec<(u64, TpduSeq)>, Counters) {
    let mut sent = Vec::new();
    for millis in 0..=until {
        let now = Instant::START + Duration::from_millis(millis);
        endpoint.handle_deadline(now);
        let mut out = Vec::new();
        while endpoint.poll_transmit(now, &mut out).is_some() {
            let octets = core::mem::take(&mut out);
            let seq = crate::wire::aerotp::parse(&octets)
                .expect("it is whole")
                .header
                .seq;
            sent.push((millis, seq));
        }
    }
    (sent, *endpoint.counters(id).expect("it is open"))
}

#[test]
fn who_asks_early_repeats_one_tpdu_after_the_other_and_holds_nothing_for_lost() {
    let rate = Bitrate::from_bits_per_second(1_000_000_000);
    let config = ConnectionConfig {
        rto: RtoLimits::asking_early(rate, ByteCount(1_500)),
        ..ConnectionConfig::default()
    };
    let flight = |known: Option<Duration>, config: ConnectionConfig| {
        let settings = EndpointConfig {
            rate: RateSource::Told(rate),
            ..EndpointConfig::default()
        };
        let mut endpoint = AerotpEndpoint::new(settings, Rng::from_seed(1));
        if let Some(rtt) = known {
            endpoint.expect_round_trip(PathId(0), rtt);
        }
        let id = endpoint.connect(Instant::START, PathId(0), Port(1), config);
        let id = id.expect("room");
        let written = endpoint.write(Instant::START, id, &[7; 4_000]);
        assert_eq!(written, Ok(4_000));
        sent_in_vain(&mut endpoint, id, 1_000)
    };
    let (sent, counters) = flight(None, config);
    let first = sent.iter().filter(|(at, _)| *at < 250).count();
    assert_eq!(first, 3, "the flight: {sent:?}");
    let probes: Vec<(u64, u32)> = sent[first..].iter().map(|(at, seq)| (*at, seq.0)).collect();
    assert_eq!(probes, [(250, 0), (500, 1), (750, 2), (1_000, 0)]);
    assert_eq!(counters.held_lost_timeout, 0);
    assert_eq!(counters.stalls, 0);
    // Where nobody wants that, or the round trip is known to be longer, nothing is sent before the timeout.
    let (sent, _) = flight(None, ConnectionConfig::default());
    assert_eq!(sent.len(), first, "{sent:?}");
    let (sent, _) = flight(Some(Duration::from_millis(600)), config);
    assert_eq!(sent.len(), first, "{sent:?}");
}
