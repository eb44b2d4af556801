//! The loop between the sockets and the two directions.

use super::config::{EmulatorConfig, LinkChange};
use super::direction::{Arrival, Direction};
use super::error::EmulatorError;
use super::flows::{FlowId, Flows};
use super::in_flight::InFlight;
use super::report::{EmulatorReport, SCHEMA};
use super::tap::{EmulatorTap, Passing, Way};
use super::watch::Watch;
use crate::clock::Clock;
use crate::udp::{Batch, Path, PortConfig, UdpPort};
use crate::wait::{Interest, Ready, WakeUp, wait};
use fulmar_capture::{Comment, Dissector, PacketEnds};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::Instant;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

/// Batches read from one socket before held packets get their turn again.
const BATCHES_PER_TURN: usize = 2;

/// A running link.
#[derive(Debug)]
pub struct Emulator {
    clock: Clock,
    seed: u64,
    target: SocketAddr,
    listener: UdpPort,
    flows: Flows,
    up: Direction,
    down: Direction,
    in_flight: InFlight<(FlowId, Way)>,
    unsent_packets: u64,
    tap: Option<EmulatorTap>,
}

impl Emulator {
    /// Binds the listening address; clients may send from here on.
    ///
    /// # Errors
    /// [`EmulatorError::Link`] for a value out of range, [`EmulatorError::Listen`] for an address
    /// that cannot be bound.
    pub fn bind(clock: Clock, config: EmulatorConfig) -> Result<Self, EmulatorError> {
        let rng = Rng::from_seed(config.seed).child("emulator");
        let direction =
            |name, link| Direction::named(name, link, config.overhead, config.damage, &rng);
        let up = direction("up", config.up)?
            .dropping_above(config.largest)
            .changing(
                "up",
                LinkChange::of_way(&config.changes, |change| &change.up),
                &rng,
            )?;
        let down = direction("down", config.down)?
            .dropping_above(config.largest)
            .changing(
                "down",
                LinkChange::of_way(&config.changes, |change| &change.down),
                &rng,
            )?;
        let listener = UdpPort::bind(config.listen, PortConfig::default()).map_err(|source| {
            EmulatorError::Listen {
                address: config.listen,
                source,
            }
        })?;
        Ok(Self {
            clock,
            seed: config.seed,
            target: config.to,
            listener,
            flows: Flows::new(config.to, config.flows_max, config.idle_after),
            up,
            down,
            in_flight: InFlight::new(config.held_max),
            unsent_packets: 0,
            tap: None,
        })
    }

    /// Captures from here on.
    pub fn set_tap(&mut self, tap: EmulatorTap) {
        self.up.keep_comments();
        self.down.keep_comments();
        self.tap = Some(tap);
    }

    /// The tap, with its counters, if there is a capture.
    pub const fn tap(&self) -> Option<&EmulatorTap> {
        self.tap.as_ref()
    }

    /// The address where clients send to.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.listener.local()
    }

    /// Relays until `watch` says [`Watch::Stop`]. It is asked at once, whenever the waker is called,
    /// and at the instants it names.
    ///
    /// # Errors
    /// [`EmulatorError::Relay`]; [`EmulatorError::Trace`] if a trace is used up.
    pub fn run(
        &mut self,
        wake_up: &WakeUp,
        watch: &mut dyn FnMut(Instant, EmulatorReport) -> Watch,
    ) -> Result<(), EmulatorError> {
        let mut next_watch = watch(self.clock.now(), self.report());
        let mut ready = Vec::new();
        let mut batch = Batch::default();
        while next_watch != Watch::Stop {
            self.pass_on_due();
            let flows = self.sleep(wake_up, next_watch, &mut ready)?;
            // First in, first out: due packets leave before new ones are read.
            self.pass_on_due();
            let woken = ready.get(1).is_some_and(|came| came.readable);
            if woken {
                wake_up.clear();
            }
            self.receive(&mut batch, &ready, &flows)
                .map_err(EmulatorError::Relay)?;
            self.up.check_trace("up")?;
            self.down.check_trace("down")?;
            let now = self.clock.now();
            if woken || next_watch.at().is_some_and(|at| at <= now) {
                next_watch = watch(now, self.report());
            }
        }
        Ok(())
    }

    /// The report so far.
    pub fn report(&self) -> EmulatorReport {
        EmulatorReport {
            schema: SCHEMA,
            t_s: self.clock.now().as_secs_f64(),
            seed: self.seed,
            up: self.up.report(),
            down: self.down.report(),
            flows: self.flows.report(),
            unsent_packets: self.unsent_packets,
            target_refused: self.flows.target_refused(),
            punctuality: self.in_flight.punctuality(),
        }
    }

    /// Sleeps until a packet is due, a socket is readable or the watcher wants to look. Returns the
    /// flows in the order of the sockets from the third on: listener, waker, flows.
    fn sleep(
        &self,
        wake_up: &WakeUp,
        next_watch: Watch,
        ready: &mut Vec<Ready>,
    ) -> Result<Vec<FlowId>, EmulatorError> {
        let deadline = self
            .in_flight
            .due()
            .into_iter()
            .chain(next_watch.at())
            .min();
        let mut ids = Vec::new();
        let mut sources = vec![
            (self.listener.as_fd(), Interest::Readable),
            (wake_up.as_fd(), Interest::Readable),
        ];
        for (id, flow) in self.flows.iter() {
            ids.push(id);
            sources.push((flow.port.as_fd(), Interest::Readable));
        }
        let timeout = deadline.map(|at| at.saturating_since(self.clock.now()));
        wait(&sources, timeout, ready).map_err(EmulatorError::Relay)?;
        Ok(ids)
    }

    /// Reads the datagrams that came, some at a time, and puts them on the link.
    fn receive(&mut self, batch: &mut Batch, ready: &[Ready], flows: &[FlowId]) -> io::Result<()> {
        let is_readable = |index: usize| ready.get(index).is_some_and(|came| came.readable);
        for _ in 0..BATCHES_PER_TURN {
            if !is_readable(0) || !self.listener.receive(batch)? {
                break;
            }
            let now = self.clock.now();
            for train in batch.trains() {
                let client = Path::udp(train.from, train.to);
                for octets in train.datagrams() {
                    let passing = Passing {
                        at: now,
                        way: Way::Up,
                        dissector: Dissector::Datagram,
                        ends: Some(PacketEnds::Sockets {
                            from: client.remote,
                            to: self.target,
                        }),
                        octets,
                    };
                    if let Some(flow) = self.flows.heard(now, client) {
                        let arrivals = self.up.admit(now, octets, train.ecn);
                        let overflow = self.in_flight.hold((flow, Way::Up), arrivals);
                        if let Some(tap) = &self.tap {
                            tap.entered(&passing, (&mut self.up, overflow));
                        }
                    } else if let Some(tap) = &self.tap {
                        tap.enters(&passing, &Comment::NONE.dropped("refused"));
                    }
                }
            }
        }
        for (index, &id) in flows
            .iter()
            .enumerate()
            .filter(|&(index, _)| is_readable(index + 2))
        {
            debug_assert!(index + 2 < ready.len(), "one answer for each source");
            for _ in 0..BATCHES_PER_TURN {
                let Some(flow) = self.flows.get_mut(id) else {
                    break;
                };
                if !flow.port.receive(batch)? {
                    break;
                }
                let now = self.clock.now();
                let (from, to) = (self.target, flow.client.remote);
                let trains = batch.trains();
                let datagrams = trains.flat_map(|train| {
                    let datagrams = train.datagrams();
                    datagrams.map(move |octets| (octets, train.ecn))
                });
                for (octets, ecn) in datagrams {
                    let arrivals = self.down.admit(now, octets, ecn);
                    let overflow = self.in_flight.hold((id, Way::Down), arrivals);
                    if let Some(tap) = &self.tap {
                        let passing = Passing {
                            at: now,
                            way: Way::Down,
                            dissector: Dissector::Datagram,
                            ends: Some(PacketEnds::Sockets { from, to }),
                            octets,
                        };
                        tap.entered(&passing, (&mut self.down, overflow));
                    }
                }
            }
        }
        Ok(())
    }

    fn pass_on_due(&mut self) {
        let mut touched = Vec::new();
        while let Some(((flow, way), arrival)) = self.in_flight.take(self.clock.now()) {
            let passed_on = self.pass_on(flow, way, &arrival);
            self.show_leaving(flow, way, &arrival, passed_on);
            if passed_on && touched.last() != Some(&(flow, way)) {
                touched.push((flow, way));
            }
        }
        for (flow, way) in touched {
            match (way, self.flows.get_mut(flow)) {
                (Way::Up, Some(flow)) => flow.port.flush(),
                _ => self.listener.flush(),
            }
        }
    }

    fn show_leaving(&mut self, flow: FlowId, way: Way, arrival: &Arrival, passed_on: bool) {
        let Some(tap) = &self.tap else {
            return;
        };
        // A client that is gone is an unknown sender or receiver.
        let client = self.flows.get_mut(flow).map(|flow| flow.client.remote);
        let client = client.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into());
        let ends = Some(match way {
            Way::Up => PacketEnds::Sockets {
                from: client,
                to: self.target,
            },
            Way::Down => PacketEnds::Sockets {
                from: self.target,
                to: client,
            },
        });
        let passing = Passing {
            at: self.clock.now(),
            way,
            dissector: Dissector::Datagram,
            ends,
            octets: &arrival.octets,
        };
        tap.leaves(&passing, passed_on);
    }

    /// Queues an arrival on its socket; returns whether it could.
    fn pass_on(&mut self, flow: FlowId, way: Way, arrival: &Arrival) -> bool {
        let Some(flow) = self.flows.get_mut(flow) else {
            self.unsent_packets += 1;
            return false;
        };
        let (port, path) = match way {
            Way::Up => {
                let Some(remote) = flow.port.peer() else {
                    self.unsent_packets += 1;
                    return false;
                };
                (&mut flow.port, Path::udp(remote, None))
            }
            Way::Down => (&mut self.listener, flow.client),
        };
        if !port.can_send() {
            port.flush();
        }
        if !port.can_send() {
            self.unsent_packets += 1;
            return false;
        }
        port.buffer().extend_from_slice(&arrival.octets);
        port.send(&path, arrival.octets.len(), arrival.ecn);
        true
    }
}
