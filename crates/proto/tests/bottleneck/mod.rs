//! Two endpoints and a link between them: a transmitter with a rate and a queue, then delay, jitter
//! and loss. There may be any number of connections, told apart by their ids at the sending end.

pub(crate) mod bulk;

use super::FORM;
use super::sight::{hand_over, tpdu};
use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId, Priority, TransmitKind};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, ConnectionId, EndpointConfig, Event, RateSource,
};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use fulmar_proto::wire::Port;
use std::collections::{BTreeMap, VecDeque};

pub(crate) const PORT: Port = Port(4000);
const PATH: PathId = PathId(0);

/// The forward direction; the other direction loses alike and has no limit of rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Medium {
    pub(crate) rate: Bitrate,
    pub(crate) queue_packets: usize,
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
    pub(crate) loss: f64,
    /// While set, nothing gets through.
    pub(crate) down: bool,
}

/// A TPDU that left the sending end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) port: u16,
    pub(crate) kind: TransmitKind,
    pub(crate) priority: Priority,
    pub(crate) octets: usize,
    /// The time for which it waited for the transmitter.
    pub(crate) queued: Duration,
}

pub(crate) struct Bottleneck {
    pub(crate) now: Instant,
    pub(crate) medium: Medium,
    pub(crate) sent: Vec<Sent>,
    pub(crate) received: BTreeMap<ConnectionId, u64>,
    pub(crate) events: Vec<Event>,
    ends: [AerotpEndpoint; 2],
    rng: Rng,
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    flown: u64,
    /// The time at which each packet in the queue leaves it.
    departures: VecDeque<Instant>,
}

impl Bottleneck {
    pub(crate) fn new(declared: Bitrate, medium: Medium) -> Self {
        Self::with_rate(RateSource::Told(declared), medium)
    }

    pub(crate) fn with_rate(rate: RateSource, medium: Medium) -> Self {
        let config = EndpointConfig {
            rate,
            lower_overhead: ByteCount(20),
            ..EndpointConfig::default()
        };
        let mut ends = [1, 2].map(|seed| AerotpEndpoint::new(config, Rng::from_seed(seed)));
        for end in &mut ends {
            end.speak(Instant::START, PATH, FORM);
        }
        let listens = ends[1].listen(PORT, ConnectionConfig::default());
        listens.expect("a sound configuration");
        Self {
            now: Instant::START,
            medium,
            sent: Vec::new(),
            received: BTreeMap::new(),
            events: Vec::new(),
            ends,
            rng: Rng::from_seed(7).child("medium"),
            flying: BTreeMap::new(),
            flown: 0,
            departures: VecDeque::new(),
        }
    }

    pub(crate) fn connect(&mut self, config: ConnectionConfig) -> ConnectionId {
        let id = self.ends[0].connect(self.now, PATH, PORT, config);
        let id = id.expect("room");
        self.settle(0);
        id
    }

    pub(crate) fn write(&mut self, id: ConnectionId, octets: usize) -> usize {
        let written = self.ends[0].write(self.now, id, &vec![7; octets]);
        self.settle(0);
        written.expect("open")
    }

    pub(crate) fn close(&mut self, id: ConnectionId) {
        self.ends[0].close(self.now, id);
        self.settle(0);
    }

    /// Lets a test call the sending end's interface.
    pub(crate) fn sender<T>(&mut self, call: impl FnOnce(&mut AerotpEndpoint, Instant) -> T) -> T {
        let result = call(&mut self.ends[0], self.now);
        self.settle(0);
        result
    }

    pub(crate) fn end(&self, side: usize) -> &AerotpEndpoint {
        &self.ends[side]
    }

    fn settle(&mut self, side: usize) {
        loop {
            if let Some(event) = self.ends[side].poll_event() {
                self.on_event(side, &event);
                continue;
            }
            let mut octets = Vec::new();
            let Some(transmit) = self.ends[side].poll_transmit(self.now, &mut octets) else {
                break;
            };
            let queued = self.carry(side, octets.clone());
            if side == 0 {
                self.sent.push(Sent {
                    at: self.now,
                    port: tpdu(&octets).expect("our own").header.source.0,
                    kind: transmit.kind,
                    priority: transmit.priority,
                    octets: octets.len(),
                    queued,
                });
            }
        }
    }

    fn on_event(&mut self, side: usize, event: &Event) {
        match *event {
            Event::Readable(id) => {
                while let Some(chunk) = self.ends[side].read(self.now, id) {
                    *self.received.entry(id).or_default() += chunk.octets.len() as u64;
                    self.ends[side].recycle(id, chunk.octets);
                }
            }
            Event::PeerFinished(id) => self.ends[side].close(self.now, id),
            _ => {}
        }
        if side == 0 {
            self.events.push(event.clone());
        }
    }

    fn carry(&mut self, side: usize, octets: Vec<u8>) -> Duration {
        let mut leaves = self.now;
        let mut queued = Duration::ZERO;
        if side == 0 {
            while self.departures.front().is_some_and(|at| *at <= self.now) {
                self.departures.pop_front();
            }
            if self.departures.len() > self.medium.queue_packets {
                return Duration::MAX;
            }
            let free_at = self.departures.back().copied().unwrap_or(self.now);
            queued = free_at.saturating_since(self.now);
            let wire = ByteCount::from_usize(octets.len() + 20);
            leaves = free_at + self.medium.rate.time_to_send(wire);
            self.departures.push_back(leaves);
        }
        if self.medium.down || self.rng.chance(self.medium.loss) {
            return queued;
        }
        let spread = u64::try_from(self.medium.jitter.as_nanos()).expect("short");
        let jitter = if spread == 0 {
            0
        } else {
            self.rng.below(spread)
        };
        self.flown += 1;
        let at = leaves + self.medium.delay + Duration::from_nanos(jitter);
        self.flying.insert((at, self.flown), (1 - side, octets));
        queued
    }

    /// Runs until `until`.
    pub(crate) fn run_until(&mut self, until: Instant) {
        loop {
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let timer = [0, 1]
                .into_iter()
                .filter_map(|side| Some((self.ends[side].next_deadline()?.at, side)))
                .min();
            match (arrival, timer) {
                (Some(at), timer) if timer.is_none_or(|(t, _)| at <= t) && at <= until => {
                    self.now = at;
                    let (_, (side, octets)) = self.flying.pop_first().expect("looked at");
                    let datagram = Datagram {
                        path: PATH,
                        octets: &octets,
                        ecn: Ecn::Capable,
                    };
                    hand_over(&mut self.ends[side], at, datagram);
                    self.settle(side);
                }
                (_, Some((at, side))) if at <= until => {
                    self.now = self.now.max(at);
                    self.ends[side].handle_deadline(self.now);
                    self.settle(side);
                }
                _ => {
                    self.now = self.now.max(until);
                    return;
                }
            }
        }
    }

    pub(crate) fn run(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    pub(crate) fn received_bytes(&self) -> u64 {
        self.received.values().sum()
    }
}
