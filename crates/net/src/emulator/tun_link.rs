//! The loop between two TUN or TAP devices and the two directions.

use super::config::{LinkChange, TunLinkConfig};
use super::direction::{Direction, FRAME_HEADER_BYTES};
use super::error::EmulatorError;
use super::in_flight::InFlight;
use super::report::{TAP_SCHEMA, TUN_SCHEMA, TunReport};
use super::tap::{EmulatorTap, Passing, Way};
use super::watch::Watch;
use crate::clock::Clock;
use crate::tun::{DeviceLayer, TunPort};
use crate::wait::{Interest, Ready, WakeUp, wait};
use fulmar_capture::Dissector;
use fulmar_proto::machine::Ecn;
use fulmar_proto::rng::Rng;
use fulmar_proto::tunnel::{ecn_of, mark_arrived};
use fulmar_proto::units::Instant;
use std::io;
use std::os::fd::AsFd;

/// Packets read from one device before held ones get their turn again: 0.2 ms of work.
const PACKETS_PER_TURN: usize = 32;
/// The longest IP packet, with an Ethernet header.
const PACKET_OCTETS_MAX: usize = 65_535 + FRAME_HEADER_BYTES;
/// The place of a frame's type, and the types of IPv4 and IPv6.
const FRAME_TYPE: core::ops::Range<usize> = 12..FRAME_HEADER_BYTES;
const TYPES_OF_IP: [[u8; 2]; 2] = [[0x08, 0x00], [0x86, 0xDD]];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    A,
    B,
}

/// The place of the IP packet in a packet of a device of this layer; behind it where there is none.
fn place_of_ip(layer: DeviceLayer, packet: &[u8]) -> usize {
    match layer {
        DeviceLayer::Ip => 0,
        DeviceLayer::Ethernet => {
            let is_of = |kind: &[u8; 2]| packet.get(FRAME_TYPE) == Some(kind);
            if TYPES_OF_IP.iter().any(is_of) {
                FRAME_HEADER_BYTES
            } else {
                packet.len()
            }
        }
    }
}

const fn dissector_of(layer: DeviceLayer) -> Dissector {
    match layer {
        DeviceLayer::Ip => Dissector::Ip,
        DeviceLayer::Ethernet => Dissector::Ethernet,
    }
}

/// A running link between two TUN or TAP devices.
#[derive(Debug)]
pub struct TunLink {
    clock: Clock,
    seed: u64,
    layer: DeviceLayer,
    a: TunPort,
    b: TunPort,
    up: Direction,
    down: Direction,
    /// The packets in flight, by the end at which they arrive.
    in_flight: InFlight<End>,
    unsent_packets: u64,
    tap: Option<EmulatorTap>,
    buffer: Vec<u8>,
}

impl TunLink {
    /// Makes both ends; programs may send from here on.
    ///
    /// # Errors
    /// [`EmulatorError::Link`] for a value out of range, [`EmulatorError::Tun`] for devices,
    /// namespaces and addresses that cannot be had; nothing is left behind.
    pub fn open(clock: Clock, config: TunLinkConfig) -> Result<Self, EmulatorError> {
        let rng = Rng::from_seed(config.seed).child("emulator");
        let direction = |name, link| {
            Direction::named(name, link, config.overhead, config.damage, &rng).map(|direction| {
                match config.layer {
                    DeviceLayer::Ip => direction.of_ip_packets(),
                    DeviceLayer::Ethernet => direction.of_ethernet_frames(),
                }
            })
        };
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
        Ok(Self {
            clock,
            seed: config.seed,
            layer: config.layer,
            a: TunPort::open_layer(&config.a, config.layer, config.mtu)?,
            b: TunPort::open_layer(&config.b, config.layer, config.mtu)?,
            up,
            down,
            in_flight: InFlight::new(config.held_max),
            unsent_packets: 0,
            tap: None,
            buffer: vec![0; PACKET_OCTETS_MAX],
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

    /// The two ends.
    pub const fn ends(&self) -> [&TunPort; 2] {
        [&self.a, &self.b]
    }

    /// Carries packets until `watch` says [`Watch::Stop`]. It is asked at once, whenever the waker is
    /// called, and at the instants it names.
    ///
    /// # Errors
    /// [`EmulatorError::Relay`]: a device is gone, or the kernel refuses to wait;
    /// [`EmulatorError::Trace`]: a trace is used up.
    pub fn run(
        &mut self,
        wake_up: &WakeUp,
        watch: &mut dyn FnMut(Instant, TunReport) -> Watch,
    ) -> Result<(), EmulatorError> {
        let mut next_watch = watch(self.clock.now(), self.report());
        let mut ready = Vec::new();
        while next_watch != Watch::Stop {
            self.pass_on_due();
            let deadline = self
                .in_flight
                .due()
                .into_iter()
                .chain(next_watch.at())
                .min();
            let timeout = deadline.map(|at| at.saturating_since(self.clock.now()));
            let sources = [
                (self.a.as_fd(), Interest::Readable),
                (self.b.as_fd(), Interest::Readable),
                (wake_up.as_fd(), Interest::Readable),
            ];
            wait(&sources, timeout, &mut ready).map_err(EmulatorError::Relay)?;
            let readable =
                |index: usize| ready.get(index).is_some_and(|came: &Ready| came.readable);
            // First in, first out: due packets leave before new ones are read.
            self.pass_on_due();
            for end in [End::A, End::B] {
                if readable(end as usize) {
                    self.receive(end).map_err(EmulatorError::Relay)?;
                }
            }
            self.up.check_trace("up")?;
            self.down.check_trace("down")?;
            let woken = readable(2);
            if woken {
                wake_up.clear();
            }
            let now = self.clock.now();
            if woken || next_watch.at().is_some_and(|at| at <= now) {
                next_watch = watch(now, self.report());
            }
        }
        Ok(())
    }

    /// The report so far.
    pub fn report(&self) -> TunReport {
        let unread = |port: &TunPort| port.unread();
        TunReport {
            schema: match self.layer {
                DeviceLayer::Ip => TUN_SCHEMA,
                DeviceLayer::Ethernet => TAP_SCHEMA,
            },
            t_s: self.clock.now().as_secs_f64(),
            seed: self.seed,
            up: self.up.report(),
            down: self.down.report(),
            unread_packets: unread(&self.a).zip(unread(&self.b)).map(|(a, b)| a + b),
            unsent_packets: self.unsent_packets,
            punctuality: self.in_flight.punctuality(),
        }
    }

    /// Reads packets that the host at `end` sent, some at a time, and puts them on the link.
    fn receive(&mut self, end: End) -> io::Result<()> {
        let (port, direction, to, way) = match end {
            End::A => (&self.a, &mut self.up, End::B, Way::Up),
            End::B => (&self.b, &mut self.down, End::A, Way::Down),
        };
        for _ in 0..PACKETS_PER_TURN {
            let Some(len) = port.receive(&mut self.buffer)? else {
                break;
            };
            let packet = self.buffer.get(..len).unwrap_or_default();
            let (_, of_ip) = packet.split_at(place_of_ip(self.layer, packet));
            let sent = ecn_of(of_ip);
            let now = self.clock.now();
            let mut arrivals = direction.admit(now, packet, sent);
            for arrival in [&mut arrivals.first, &mut arrivals.copy]
                .into_iter()
                .flatten()
            {
                if sent == Ecn::Capable && arrival.ecn == Ecn::Congested {
                    let place = packet.len() - of_ip.len();
                    let arrived = arrival.octets.get_mut(place..);
                    mark_arrived(of_ip, arrived.unwrap_or_default());
                }
            }
            let overflow = self.in_flight.hold(to, arrivals);
            if let Some(tap) = &self.tap {
                let passing = Passing {
                    at: now,
                    way,
                    dissector: dissector_of(self.layer),
                    ends: None,
                    octets: packet,
                };
                tap.entered(&passing, (direction, overflow));
            }
        }
        Ok(())
    }

    fn pass_on_due(&mut self) {
        while let Some((to, arrival)) = self.in_flight.take(self.clock.now()) {
            let (port, way) = match to {
                End::A => (&self.a, Way::Down),
                End::B => (&self.b, Way::Up),
            };
            let is_sent = port.send(&arrival.octets);
            self.unsent_packets += u64::from(!is_sent);
            if let Some(tap) = &self.tap {
                let passing = Passing {
                    at: self.clock.now(),
                    way,
                    dissector: dissector_of(self.layer),
                    ends: None,
                    octets: &arrival.octets,
                };
                tap.leaves(&passing, is_sent);
            }
        }
    }
}
