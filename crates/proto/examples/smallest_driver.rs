//! The smallest driver: two ends of AeroTP in one process, and a link that loses every third datagram.
//!
//! The whole contract is here: feed a machine one thing, drain it completely, wait for the deadline that it names.
//! A real driver has a socket where [`Wire`] has a queue, and sleeps where [`transfer`] moves its clock on.

use fulmar_proto::{
    AerotpEndpoint, ConnectionConfig, Datagram, Duration, Ecn, EndpointConfig, Event, Instant,
    Machine, MachineDriver, PathId, Port, Rng, Transmit, drain,
};
use std::collections::VecDeque;

const ONE_WAY: Duration = Duration::from_millis(10);

/// The driver of one end: what leaves it, and what its application has read.
#[derive(Default)]
struct Wire {
    buffer: Vec<u8>,
    sent: usize,
    in_flight: VecDeque<(Instant, Vec<u8>)>,
    read: Vec<u8>,
    is_over: bool,
}

impl MachineDriver<AerotpEndpoint> for Wire {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn send(&mut self, now: Instant, _: Transmit) {
        let octets = std::mem::take(&mut self.buffer);
        self.sent += 1;
        if !self.sent.is_multiple_of(3) {
            self.in_flight.push_back((now + ONE_WAY, octets));
        }
    }

    fn deliver(&mut self, now: Instant, end: &mut AerotpEndpoint, event: Event) {
        match event {
            Event::Readable(id) => {
                while let Some(chunk) = end.read(now, id) {
                    self.read.extend(chunk.octets);
                }
            }
            Event::PeerFinished(id) => end.close(now, id),
            Event::Closed { .. } => self.is_over = true,
            _ => {}
        }
    }
}

/// Carries `octets` from one end to the other; returns what arrived, and when both ends had finished.
pub(crate) fn transfer(octets: &[u8]) -> (Vec<u8>, Instant) {
    let end = |seed| AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(seed));
    let (mut ends, mut wires) = ([end(1), end(2)], [Wire::default(), Wire::default()]);
    let (mut now, config) = (Instant::START, ConnectionConfig::default());
    ends[1].listen(Port(7), config).expect("the defaults work");
    let id = ends[0].connect(now, PathId(0), Port(7), config);
    let id = id.expect("there is room");
    let taken = ends[0].write(now, id, octets);
    assert_eq!(taken, Ok(octets.len()), "more than fits at once");
    ends[0].close(now, id);
    while !wires.iter().all(|wire| wire.is_over) {
        for n in [0, 1] {
            // One thing at a time, and a complete drain behind it.
            let arrived = wires[1 - n].in_flight.front();
            if arrived.is_some_and(|(at, _)| *at <= now) {
                let (_, octets) = wires[1 - n].in_flight.pop_front().expect("it is there");
                ends[n].handle_datagram(
                    now,
                    Datagram {
                        path: PathId(0),
                        octets: &octets,
                        ecn: Ecn::NotCapable,
                    },
                );
            } else if ends[n].next_deadline().is_some_and(|next| next.at <= now) {
                ends[n].handle_deadline(now);
            }
            drain(&mut ends[n], now, &mut wires[n]);
        }
        let arrivals = wires.iter().filter_map(|wire| wire.in_flight.front());
        let deadlines = ends.iter().filter_map(Machine::next_deadline);
        let times = (arrivals.map(|(at, _)| *at)).chain(deadlines.map(|next| next.at));
        now = times.min().expect("an end waits for something").max(now);
    }
    let [_, receiver] = wires;
    (receiver.read, now)
}

fn main() {
    let (arrived, at) = transfer(&vec![7; 100_000]);
    println!(
        "{} octets arrived; both ends had finished after {at}",
        arrived.len()
    );
}
