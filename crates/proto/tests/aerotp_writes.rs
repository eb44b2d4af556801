//! The octets that an application may have waiting in a connection, and the connection's treatment.

use fulmar_proto::machine::{Machine, PathId, Priority, TransmitKind};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, EndpointConfig, Event, Share, Treatment,
};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::aerotp::FecStrength;
use fulmar_proto::wire::{Mode, Port};

const PATH: PathId = PathId(1);

fn endpoint() -> AerotpEndpoint {
    AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(1))
}

fn config(unsent_bytes_max: usize) -> ConnectionConfig {
    ConnectionConfig {
        unsent_bytes_max,
        ..ConnectionConfig::default()
    }
}

/// Sends for `span`. Returns the number of source TPDUs that left.
fn send(endpoint: &mut AerotpEndpoint, span: Duration) -> usize {
    let now = Instant::START + span;
    let mut out = Vec::new();
    let mut sources = 0;
    let mut clock = Instant::START;
    while clock <= now {
        while let Some(transmit) = endpoint.poll_transmit(clock, &mut out) {
            sources += usize::from(transmit.kind == TransmitKind::Source);
        }
        clock += Duration::from_millis(1);
    }
    sources
}

#[test]
fn a_write_takes_no_more_than_may_be_unsent_and_tells_when_half_of_it_left() {
    let mut endpoint = endpoint();
    let id = endpoint
        .connect(Instant::START, PATH, Port(1), config(20_000))
        .expect("room for one");
    let written = endpoint.write(Instant::START, id, &vec![7; 100_000]);
    assert_eq!(written, Ok(20_000));
    assert_eq!(endpoint.write_room(id), Some(0));
    assert_eq!(endpoint.write(Instant::START, id, &[7; 100]), Ok(0));
    assert!(send(&mut endpoint, Duration::from_millis(30)) >= 7);
    let events: Vec<Event> = core::iter::from_fn(|| endpoint.poll_event()).collect();
    assert!(events.contains(&Event::Writable(id)), "{events:?}");
    assert!(endpoint.write_room(id) >= Some(10_000));
}

#[test]
fn one_message_may_be_longer_than_what_may_be_unsent_but_only_one_waits() {
    let mut endpoint = endpoint();
    let messages = ConnectionConfig {
        mode: Mode::Unreliable,
        ..config(1_000)
    };
    let id = endpoint
        .connect(Instant::START, PATH, Port(1), messages)
        .expect("room for one");
    let now = Instant::START;
    assert_eq!(endpoint.write_message(now, id, &[7; 1_200]), Ok(true));
    assert_eq!(endpoint.write_message(now, id, &[7; 1_200]), Ok(false));
    send(&mut endpoint, Duration::from_millis(10));
    let later = now + Duration::from_millis(10);
    assert_eq!(endpoint.write_message(later, id, &[7; 1_200]), Ok(true));
}

#[test]
fn a_refused_message_is_asked_for_again_when_it_fits_and_not_before() {
    let mut endpoint = endpoint();
    let messages = ConnectionConfig {
        mode: Mode::Unreliable,
        ..config(2_000)
    };
    let now = Instant::START;
    let id = endpoint
        .connect(now, PATH, Port(1), messages)
        .expect("room for one");
    assert_eq!(endpoint.write_message(now, id, &[7; 900]), Ok(true));
    assert_eq!(endpoint.write_message(now, id, &[7; 1_200]), Ok(false));
    let early: Vec<Event> = core::iter::from_fn(|| endpoint.poll_event()).collect();
    assert!(
        !early.contains(&Event::Writable(id)),
        "1,100 octets of room"
    );
    send(&mut endpoint, Duration::from_millis(10));
    let later = now + Duration::from_millis(10);
    let mut events = core::iter::from_fn(|| endpoint.poll_event());
    assert!(events.any(|event| event == Event::Writable(id)));
    assert_eq!(endpoint.write_message(later, id, &[7; 1_200]), Ok(true));
}

#[test]
fn a_connection_is_treated_otherwise_only_before_its_first_write() {
    let mut endpoint = endpoint();
    let id = endpoint
        .connect(Instant::START, PATH, Port(1), config(20_000))
        .expect("room for one");
    let plain = endpoint.payload_bytes(id).expect("it is there");
    let coded = Treatment {
        share: Share::default(),
        priority: Priority(3),
        fec_words: FecStrength::from_words(24).expect("a strength"),
        block: None,
        unsent_bytes_max: 20_000,
    };
    assert_eq!(endpoint.treat(Instant::START, id, coded), Ok(true));
    let fewer = endpoint.payload_bytes(id).expect("it is there");
    assert!(fewer + 96 <= plain, "{fewer} of {plain}");
    assert_eq!(endpoint.write(Instant::START, id, &[7; 100]), Ok(100));
    assert_eq!(endpoint.treat(Instant::START, id, coded), Ok(false));
    let mut out = Vec::new();
    let sent = endpoint.poll_transmit(Instant::START, &mut out);
    assert_eq!(sent.map(|t| t.priority), Some(Priority(3)));
}
