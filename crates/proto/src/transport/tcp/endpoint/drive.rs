//! The endpoint as a machine.

use super::{Key, TcpEndpoint, TcpState, addresses_to};
use crate::machine::{Datagram, Deadline, Ecn, Kind, Machine, PathId, Priority, Transmit};
use crate::transport::tcp::connection::{Connection, Reply};
use crate::transport::tcp::event::{TcpConnectionId, TcpEvent};
use crate::units::Instant;
use crate::wire::tcp::{TcpFlags, TcpHeader, TcpReject, TcpSegment, TcpSeq};

impl Machine for TcpEndpoint {
    type Event = TcpEvent;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let addresses = addresses_to(&self.addresses, self.config.local, datagram.path).reversed();
        let segment = match TcpHeader::parse(&addresses, datagram.octets) {
            Ok(segment) => segment,
            Err(TcpReject::Checksum) => {
                self.counters.checksum += 1;
                return;
            }
            Err(_) => {
                self.counters.malformed += 1;
                return;
            }
        };
        let key = Key {
            path: datagram.path,
            local: segment.header.destination,
            remote: segment.header.source,
        };
        let known = self.keys.get(&key).copied();
        if let Some(id) = known.filter(|&id| !self.makes_way(id, &segment)) {
            let reply = self.with(id, |connection| {
                connection.on_segment(now, &segment, datagram.ecn)
            });
            if reply == Some(Reply::Reset) {
                self.reset_stranger(datagram.path, &segment);
            }
            return;
        }
        self.on_unknown(now, key, &segment);
    }

    fn handle_deadline(&mut self, now: Instant) {
        // Each due connection once; handling it moves its deadline on.
        let due: Vec<TcpConnectionId> = self
            .deadlines
            .iter()
            .take_while(|(at, _)| *at <= now)
            .map(|(_, id)| *id)
            .collect();
        for id in due {
            self.with(id, |connection| connection.handle_deadline(now));
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((path, octets)) = self.resets.pop_front() {
            out.extend_from_slice(&octets);
            return Some(transmit(path, octets.len(), Kind::Control, Ecn::NotCapable));
        }
        while let Some(&id) = self.ready.front() {
            if let Some(connection) = self.connections.get_mut(&id) {
                let path = connection.key.path;
                let addresses = addresses_to(&self.addresses, self.config.local, path);
                if let Some(departure) = connection.poll_transmit(now, &addresses, out) {
                    return Some(transmit(path, departure.len, departure.kind, departure.ecn));
                }
                connection.is_ready = false;
                self.settle(id);
            }
            self.ready.pop_front();
        }
        None
    }

    fn poll_event(&mut self) -> Option<TcpEvent> {
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let (_, id) = self.deadlines.first()?;
        self.connections.get(id)?.next_deadline()
    }
}

impl TcpEndpoint {
    /// A connection in TIME-WAIT makes way for a SYN beyond it (RFC 6191; RFC 9293, section
    /// 3.10.7.4), if someone listens.
    fn makes_way(&mut self, id: TcpConnectionId, segment: &TcpSegment<'_>) -> bool {
        let header = &segment.header;
        let is_new = header.flags.has(TcpFlags::SYN) && !header.flags.has(TcpFlags::ACK);
        if !is_new || !self.listeners.contains_key(&header.destination) {
            return false;
        }
        let gone = self.connections.get(&id).is_some_and(|connection| {
            connection.state() == TcpState::TimeWait && connection.is_beyond(header.seq)
        });
        if gone {
            self.with(id, Connection::make_way);
        }
        gone
    }

    fn on_unknown(&mut self, now: Instant, key: Key, segment: &TcpSegment<'_>) {
        let header = &segment.header;
        if header.flags.has(TcpFlags::RST) {
            return;
        }
        let config = self.listeners.get(&key.local).copied();
        let opens = header.flags.has(TcpFlags::SYN) && !header.flags.has(TcpFlags::ACK);
        let Some(config) = config.filter(|_| opens) else {
            self.reset_stranger(key.path, segment);
            return;
        };
        if self.connections.len() >= self.config.connections_max {
            self.counters.refused += 1;
            return;
        }
        let id = self.add(key, &config);
        self.with(id, |connection| connection.accept(now, header));
    }

    /// RFC 9293, section 3.10.7.1: the answer to a segment without a connection.
    fn reset_stranger(&mut self, path: PathId, segment: &TcpSegment<'_>) {
        let header = &segment.header;
        let mut reset = TcpHeader {
            source: header.destination,
            destination: header.source,
            flags: TcpFlags::RST,
            ..TcpHeader::default()
        };
        if header.flags.has(TcpFlags::ACK) {
            reset.seq = header.ack;
        } else {
            let len = u32::try_from(segment.sequence_len()).unwrap_or(0);
            reset.seq = TcpSeq(0);
            reset.ack = header.seq.plus(len);
            reset.flags = TcpFlags::RST | TcpFlags::ACK;
        }
        self.counters.strangers += 1;
        let mut octets = Vec::new();
        reset.write(
            &addresses_to(&self.addresses, self.config.local, path),
            &[],
            &mut octets,
        );
        self.queue_reset(path, octets);
    }
}

fn transmit(path: PathId, len: usize, kind: Kind, ecn: Ecn) -> Transmit {
    Transmit {
        path,
        len,
        kind,
        priority: Priority::default(),
        ecn,
    }
}
