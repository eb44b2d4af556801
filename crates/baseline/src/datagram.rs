//! A stand-in for UDP: each datagram arrives, or does not.
//!
//! It is the baseline of every comparison. A datagram gets a real UDP header with its checksum and
//! leaves at once, or at a configured rate. At the far end every datagram whose checksum holds is
//! delivered, in the order and number in which the path delivers them. There is no connection, no
//! acknowledgement and no state except the queue before the pacer. A datagram may be sent several
//! times over, one copy behind the other: the plainest forward error correction, which costs its
//! share of the rate whether anything is lost or not.
//!
//! # Promises
//! - The queue is bounded; a datagram that does not fit is refused, and [`DatagramEvent::Writable`]
//!   follows.
//! - A datagram is delivered only if its checksum holds. The Internet checksum has 16 bits and
//!   overlooks some damage: two inverted bits in the same column cancel in one case of two. A wrong
//!   octet may then be delivered (Stone, Partridge, SIGCOMM 2000, measured it in the wild).
//!
//! # Sources
//! RFC 768. Copies: Epple, "Performance optimization of free-space optical communication
//! protocols", section 3.1.

use crate::wire::udp::{Between, UDP_HEADER_BYTES, UdpHeader, UdpReject};
use core::num::NonZeroU8;
use fulmar_proto::machine::{
    Datagram, Deadline, Ecn, Machine, PathId, Priority, Transmit, TransmitKind,
};
use fulmar_proto::units::{Bitrate, ByteCount, Instant};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::NodeAddress;
use std::collections::VecDeque;

/// The settings of the endpoint: its knowledge of the path, and its bounds.
#[derive(Clone, Copy, Debug)]
pub struct DatagramConfig {
    /// The address of this node. A remote node's address is the number of its [`PathId`].
    pub local: NodeAddress,
    /// The rate at which octets leave, lower headers included; with `None` they leave at once.
    pub rate: Option<Bitrate>,
    /// Headers below UDP's, for the rate.
    pub lower_overhead: ByteCount,
    /// Payload octets of one datagram at most.
    pub payload_max: ByteCount,
    /// Payload octets that may wait for the pacer.
    pub queue_max: ByteCount,
}

/// The counters of one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounters {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams delivered.
    pub delivered: u64,
    /// Datagrams dropped because the checksum does not match.
    pub checksum: u64,
    /// Datagrams dropped because their length is impossible.
    pub length: u64,
}

/// An event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatagramEvent {
    /// A datagram arrived.
    Received {
        /// The path it comes from.
        path: PathId,
        /// The sender's port.
        source: Port,
        /// The local port.
        local: Port,
        /// Its payload. Give the buffer back with [`DatagramEndpoint::recycle`].
        octets: Vec<u8>,
    },
    /// There is room again after a refused datagram.
    Writable,
}

/// The reason why a datagram was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramSendError {
    /// The queue is full; [`DatagramEvent::Writable`] will follow.
    #[error("the queue before the pacer is full")]
    QueueFull,
    /// The datagram is too long.
    #[error("{len} octets exceed the {max} of a datagram")]
    TooLong {
        /// The datagram's length.
        len: usize,
        /// The longest length.
        max: usize,
    },
}

/// The way of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The remote node.
    pub path: PathId,
    /// The local port.
    pub source: Port,
    /// The remote port.
    pub destination: Port,
}

/// A datagram that waits for the pacer.
#[derive(Debug)]
struct Waiting {
    route: Route,
    payload: Vec<u8>,
    /// Copies that are still to be sent.
    copies: NonZeroU8,
    /// Whether a copy was sent before.
    is_repeated: bool,
}

/// One node's UDP.
#[derive(Debug)]
pub struct DatagramEndpoint {
    config: DatagramConfig,
    queue: VecDeque<Waiting>,
    queued: ByteCount,
    refused: bool,
    send_at: Instant,
    now: Instant,
    events: VecDeque<DatagramEvent>,
    spare: Vec<Vec<u8>>,
    counters: DatagramCounters,
}

/// Buffers kept for reuse; further ones are freed.
const SPARE_MAX: usize = 64;

impl DatagramEndpoint {
    /// An endpoint with nothing to do.
    pub fn new(config: DatagramConfig) -> Self {
        Self {
            config,
            queue: VecDeque::new(),
            queued: ByteCount::ZERO,
            refused: false,
            send_at: Instant::START,
            now: Instant::START,
            events: VecDeque::new(),
            spare: Vec::new(),
            counters: DatagramCounters::default(),
        }
    }

    /// Queues one datagram.
    ///
    /// # Errors
    /// The datagram is too long, or the queue is full.
    pub fn send(&mut self, route: Route, payload: &[u8]) -> Result<(), DatagramSendError> {
        self.send_copies(route, payload, NonZeroU8::MIN)
    }

    /// Queues one datagram to be sent so many times, one behind the other. It takes the room of one.
    ///
    /// # Errors
    /// The datagram is too long, or the queue is full.
    pub fn send_copies(
        &mut self,
        route: Route,
        payload: &[u8],
        copies: NonZeroU8,
    ) -> Result<(), DatagramSendError> {
        let max = self.config.payload_max.as_usize();
        if payload.len() > max {
            let len = payload.len();
            return Err(DatagramSendError::TooLong { len, max });
        }
        let after = self.queued + ByteCount::of(payload);
        if after > self.config.queue_max && !self.queue.is_empty() {
            self.refused = true;
            return Err(DatagramSendError::QueueFull);
        }
        self.queued = after;
        let mut octets = self.spare.pop().unwrap_or_default();
        octets.extend_from_slice(payload);
        self.queue.push_back(Waiting {
            route,
            payload: octets,
            copies,
            is_repeated: false,
        });
        Ok(())
    }

    /// Takes back the buffer of a delivered datagram.
    pub fn recycle(&mut self, mut octets: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            octets.clear();
            self.spare.push(octets);
        }
    }

    /// Whether everything was sent.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// The counters.
    pub const fn counters(&self) -> &DatagramCounters {
        &self.counters
    }
}

impl Machine for DatagramEndpoint {
    type Event = DatagramEvent;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.now = now;
        let between = Between {
            source: NodeAddress(datagram.path.0),
            destination: self.config.local,
        };
        match UdpHeader::parse(between, datagram.octets) {
            Ok(udp) => {
                self.counters.delivered += 1;
                let mut octets = self.spare.pop().unwrap_or_default();
                octets.extend_from_slice(udp.payload);
                self.events.push_back(DatagramEvent::Received {
                    path: datagram.path,
                    source: udp.header.source,
                    local: udp.header.destination,
                    octets,
                });
            }
            Err(UdpReject::Checksum) => self.counters.checksum += 1,
            Err(_) => self.counters.length += 1,
        }
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.now = now;
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.now = now;
        if self.config.rate.is_some() && now < self.send_at {
            return None;
        }
        let front = self.queue.front_mut()?;
        let (route, is_repeated) = (front.route, front.is_repeated);
        let is_last = if let Some(left) = NonZeroU8::new(front.copies.get() - 1) {
            front.copies = left;
            front.is_repeated = true;
            false
        } else {
            true
        };
        let header = UdpHeader {
            source: route.source,
            destination: route.destination,
        };
        let between = Between {
            source: self.config.local,
            destination: NodeAddress(route.path.0),
        };
        let header = header
            .to_octets(between, &front.payload)
            .expect("payload_max keeps a datagram below 65,536 octets");
        out.extend_from_slice(&header);
        out.extend_from_slice(&front.payload);
        let len = UDP_HEADER_BYTES + front.payload.len();
        if is_last && let Some(sent) = self.queue.pop_front() {
            self.queued = self.queued.saturating_sub(ByteCount::of(&sent.payload));
            self.recycle(sent.payload);
            if core::mem::take(&mut self.refused) {
                self.events.push_back(DatagramEvent::Writable);
            }
        }
        if let Some(rate) = self.config.rate {
            let on_link = ByteCount::from_usize(len) + self.config.lower_overhead;
            self.send_at = self.send_at.max(now) + rate.time_to_send(on_link);
        }
        self.counters.sent += 1;
        Some(Transmit {
            path: route.path,
            len,
            kind: if is_repeated {
                TransmitKind::Retransmission
            } else {
                TransmitKind::Source
            },
            priority: Priority::default(),
            ecn: Ecn::NotCapable,
        })
    }

    fn poll_event(&mut self) -> Option<DatagramEvent> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        (!self.queue.is_empty()).then_some(Deadline {
            at: self.send_at.max(self.now),
            why: "pace",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use fulmar_proto::machine::Strict;

    const ROUTE: Route = Route {
        path: PathId(2),
        source: Port(1000),
        destination: Port(2000),
    };

    fn endpoint(local: u32, rate: Option<u64>) -> Strict<DatagramEndpoint> {
        Strict::new(DatagramEndpoint::new(DatagramConfig {
            local: NodeAddress(local),
            rate: rate.map(Bitrate::from_bits_per_second),
            lower_overhead: ByteCount(20),
            payload_max: ByteCount(1472),
            queue_max: ByteCount(3000),
        }))
    }

    fn sent(endpoint: &mut Strict<DatagramEndpoint>, now: Instant) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| {
            let mut octets = Vec::new();
            endpoint.poll_transmit(now, &mut octets).map(|_| octets)
        })
        .collect()
    }

    #[test]
    fn a_datagram_arrives_with_its_ports_and_a_damaged_one_does_not() {
        let (mut a, mut b) = (endpoint(1, None), endpoint(2, None));
        a.app().send(ROUTE, b"hello").unwrap();
        let octets = sent(&mut a, Instant::START).remove(0);
        for damage in [false, true] {
            let mut octets = octets.clone();
            octets[9] ^= u8::from(damage);
            let datagram = Datagram {
                path: PathId(1),
                octets: &octets,
                ecn: Ecn::NotCapable,
            };
            b.handle_datagram(Instant::START, datagram);
            let event = b.poll_event();
            while b.poll_event().is_some() {}
            assert_eq!(sent(&mut b, Instant::START).len(), 0);
            if damage {
                assert_eq!(event, None);
            } else {
                assert_eq!(
                    event,
                    Some(DatagramEvent::Received {
                        path: PathId(1),
                        source: Port(1000),
                        local: Port(2000),
                        octets: b"hello".to_vec(),
                    })
                );
            }
        }
        assert_eq!(b.inner().counters().checksum, 1);
    }

    #[test]
    fn copies_follow_their_datagram_and_each_takes_its_time() {
        let mut a = endpoint(1, Some(12_000_000));
        let three = NonZeroU8::new(3).unwrap();
        a.app().send_copies(ROUTE, &[7; 1472], three).unwrap();
        a.app().send(ROUTE, &[9; 1472]).unwrap();
        let mut now = Instant::START;
        let mut seen = Vec::new();
        for _ in 0..4 {
            let mut octets = Vec::new();
            let transmit = a.poll_transmit(now, &mut octets).unwrap();
            assert!(a.poll_transmit(now, &mut Vec::new()).is_none());
            assert_eq!(a.poll_event(), None);
            seen.push((octets[UDP_HEADER_BYTES], transmit.kind));
            now += Duration::from_millis(1);
            a.handle_deadline(now);
        }
        let again = TransmitKind::Retransmission;
        let expected = [
            (7, TransmitKind::Source),
            (7, again),
            (7, again),
            (9, TransmitKind::Source),
        ];
        assert_eq!(seen, expected);
        assert!(a.inner().is_idle());
        assert_eq!(a.inner().counters().sent, 4);
    }

    #[test]
    fn a_rate_spaces_datagrams_by_their_time_on_the_link() {
        let mut a = endpoint(1, Some(12_000_000));
        for _ in 0..2 {
            a.app().send(ROUTE, &[0; 1472]).unwrap();
        }
        assert_eq!(
            a.app().send(ROUTE, &[0; 1472]),
            Err(DatagramSendError::QueueFull)
        );
        assert_eq!(sent(&mut a, Instant::START).len(), 1);
        assert_eq!(a.poll_event(), Some(DatagramEvent::Writable));
        assert_eq!(a.poll_event(), None);
        assert_eq!(sent(&mut a, Instant::START).len(), 0);
        // 1500 octets at 12 Mbit/s take one millisecond.
        let due = Instant::START + Duration::from_millis(1);
        assert_eq!(a.next_deadline().map(|d| d.at), Some(due));
        a.handle_deadline(due);
        assert_eq!(sent(&mut a, due).len(), 1);
    }

    #[test]
    fn a_datagram_too_long_for_the_path_is_refused() {
        let mut a = endpoint(1, None);
        assert!(matches!(
            a.app().send(ROUTE, &[0; 1473]),
            Err(DatagramSendError::TooLong { .. })
        ));
    }
}
