//! Whole transports of one's own: when they are called, what they may do, and that they hold no run for ever.

use core::time::Duration;
use fulmar_sim::own::{
    Instant, OwnTransport, Rng, TransmitKind, TransportEnd, TransportSetup, TransportTurn,
};
use fulmar_sim::scenario::{Document, points_with};
use fulmar_sim::{Experiment, ExperimentProgress, OwnParts, RunRecord, WorldOptions};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const SCENARIO: &str = "[run]\nduration = \"60s\"\n[hop]\nrate = \"8mbit\"\ndelay = \"20ms\"\n\
    [flow]\ntransport = \"own\"\ntraffic = \"bulk\"\nbytes = \"147500B\"\n";
const PATIENCE: Duration = Duration::from_millis(200);

/// One packet at a time, each until it is answered.
#[derive(Debug)]
struct StopAndWait {
    sends: bool,
    most: usize,
    number: u8,
    waiting: Option<(Vec<u8>, Instant)>,
}

impl StopAndWait {
    fn new(setup: &TransportSetup, _: &Rng) -> Self {
        assert_eq!(setup.rate.as_bits_per_second(), 8_000_000);
        Self {
            sends: setup.sends,
            most: usize::try_from(setup.packet_max.0).expect("short") - 1,
            number: 0,
            waiting: None,
        }
    }
}

impl TransportEnd for StopAndWait {
    fn room(&self) -> usize {
        if self.waiting.is_none() { self.most } else { 0 }
    }

    fn write(&mut self, now: Instant, octets: &[u8], turn: &mut TransportTurn) {
        assert!(self.sends && octets.len() <= self.most);
        let packet = [&[self.number], octets].concat();
        turn.send(TransmitKind::Source, packet.clone());
        self.waiting = Some((packet, now + PATIENCE));
    }

    fn finish(&mut self, _: Instant, _: &mut TransportTurn) {
        assert!(self.sends);
    }

    fn receive(&mut self, _: Instant, packet: &[u8], turn: &mut TransportTurn) {
        let is_next = packet[0] == self.number;
        self.number ^= u8::from(is_next);
        if self.sends {
            if is_next {
                self.waiting = None;
            }
            return;
        }
        if is_next {
            turn.deliver(packet[1..].to_vec());
        }
        turn.send(TransmitKind::Control, vec![packet[0]]);
    }

    fn wake(&mut self, now: Instant, turn: &mut TransportTurn) {
        if let Some((packet, at)) = &mut self.waiting {
            turn.send(TransmitKind::Retransmission, packet.clone());
            *at = now + PATIENCE;
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.waiting.as_ref().map(|(_, at)| *at)
    }
}

/// Always wants to be woken at once, and sends what is too long.
#[derive(Debug)]
struct Restless(usize);

impl TransportEnd for Restless {
    fn room(&self) -> usize {
        0
    }

    fn write(&mut self, _: Instant, _: &[u8], _: &mut TransportTurn) {}

    fn finish(&mut self, _: Instant, _: &mut TransportTurn) {}

    fn receive(&mut self, _: Instant, _: &[u8], _: &mut TransportTurn) {}

    fn wake(&mut self, _: Instant, turn: &mut TransportTurn) {
        turn.send(TransmitKind::Source, vec![0; self.0 + 1]);
    }

    fn next_wake(&self) -> Option<Instant> {
        Some(Instant::START)
    }
}

fn run(transport: OwnTransport, set: &str) -> RunRecord {
    let mut document = Document::parse("own.toml", SCENARIO).expect("TOML");
    document.set(set).expect("a value");
    let own = OwnParts {
        transports: vec![transport],
        ..OwnParts::default()
    };
    let experiment = Experiment {
        scenario: "own.toml".to_owned(),
        points: points_with(&document, &own).expect("a sound scenario"),
        options: WorldOptions::default(),
    };
    let results = experiment.run(1, &ExperimentProgress::default());
    results.expect("one thread").remove(0).runs.remove(0)
}

fn stop_and_wait() -> OwnTransport {
    OwnTransport::new("own", StopAndWait::new)
}

#[test]
fn a_transport_takes_the_time_that_reckoning_says() {
    let record = run(stop_and_wait(), "hop.loss=0%");
    assert_eq!(record.error, None);
    let metrics = &record.metrics;
    assert_eq!(metrics.flow.delivered_bytes, 147_500);
    assert_eq!(metrics.wire_bytes.source, 100 * 1_500);
    assert_eq!(metrics.wire_bytes.control, 100 * 25);
    // 100 packets of 1500 octets, 1.5 ms and 20 ms each, and the answers to 99 of them, 25 us and 20 ms.
    let elapsed = metrics.flow.last_delivery_s.expect("it ends");
    let expected = 100.0 * 0.021_5 + 99.0 * 0.020_025;
    assert!((elapsed - expected).abs() < 1e-9, "{elapsed}");
}

#[test]
fn a_lost_packet_or_answer_is_met_by_a_wake() {
    let record = run(stop_and_wait(), "hop.loss=10%");
    assert_eq!(record.metrics.flow.delivered_bytes, 147_500);
    let again = record.metrics.wire_bytes.retransmission / 1_500;
    // A round fails in 19 cases of 100: 23 more are expected, 4 standard errors are 21.
    assert!((3..=45).contains(&again), "{again}");
}

#[test]
fn an_end_that_is_never_at_rest_holds_no_time_still_and_sends_nothing_too_long() {
    let make = |setup: &TransportSetup, _: &Rng| {
        Restless(usize::try_from(setup.packet_max.0).expect("short"))
    };
    let record = run(OwnTransport::new("own", make), "run.duration=5ms");
    assert_eq!(record.metrics.wire_packets, 0);
    assert_eq!(record.metrics.flow.delivered_bytes, 0);
}

/// Takes whatever there is, and sends it at once.
#[derive(Debug)]
struct Insatiable {
    most: usize,
    taken: Arc<Mutex<BTreeMap<Instant, usize>>>,
}

impl TransportEnd for Insatiable {
    fn room(&self) -> usize {
        usize::MAX
    }

    fn write(&mut self, now: Instant, octets: &[u8], turn: &mut TransportTurn) {
        *self.taken.lock().expect("sound").entry(now).or_default() += octets.len();
        for packet in octets.chunks(self.most) {
            turn.send(TransmitKind::Source, packet.to_vec());
        }
    }

    fn finish(&mut self, _: Instant, _: &mut TransportTurn) {}

    fn receive(&mut self, _: Instant, packet: &[u8], turn: &mut TransportTurn) {
        turn.deliver(packet.to_vec());
    }

    fn wake(&mut self, _: Instant, _: &mut TransportTurn) {}

    fn next_wake(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn an_end_with_endless_room_takes_a_little_at_a_time_until_it_has_all() {
    let taken = Arc::new(Mutex::new(BTreeMap::new()));
    let of_ends = Arc::clone(&taken);
    let make = move |setup: &TransportSetup, _: &Rng| Insatiable {
        most: usize::try_from(setup.packet_max.0).expect("short"),
        taken: Arc::clone(&of_ends),
    };
    let record = run(OwnTransport::new("own", make), "flow.bytes=20MB");
    assert_eq!(record.error, None);
    let taken = taken.lock().expect("sound");
    assert_eq!(taken.values().sum::<usize>(), 20_000_000);
    let most = taken.values().copied().max().expect("writes");
    assert!(most <= 1024 * 1024 + 64 * 1024, "{most} at one time");
}

#[test]
fn a_transport_of_ones_own_may_not_have_the_name_of_one_of_ours() {
    let mut document = Document::parse("own.toml", SCENARIO).expect("TOML");
    document.set("flow.transport=udp").expect("a value");
    let own = OwnParts {
        transports: vec![OwnTransport::new("udp", StopAndWait::new)],
        ..OwnParts::default()
    };
    let refused = points_with(&document, &own)
        .expect_err("refused")
        .to_string();
    let expected = "`flow.transport`: `udp` is a transport of Fulmar's; give yours another name";
    assert!(refused.contains(expected), "{refused}");
}
