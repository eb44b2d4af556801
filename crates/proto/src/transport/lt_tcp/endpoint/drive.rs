//! The endpoint as a machine.

use super::{Key, LtTcpEndpoint};
use crate::machine::{Datagram, Deadline, Ecn, Kind, Machine, PathId, Priority, Transmit};
use crate::transport::lt_tcp::connection::Reply;
use crate::transport::tcp::{TcpConnectionId, TcpEvent};
use crate::units::Instant;
use crate::wire::lt_tcp::{Extension, LtReject, LtSegment};
use crate::wire::tcp::{TcpFlags, TcpHeader, TcpReject, TcpSeq};

impl Machine for LtTcpEndpoint {
    type Event = TcpEvent;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let addresses = self.addresses_to(datagram.path).reversed();
        let segment = match LtSegment::parse(&addresses, datagram.octets) {
            Ok(segment) => segment,
            Err(LtReject::Tcp(TcpReject::Checksum)) => {
                self.counters.checksum += 1;
                return;
            }
            Err(_) => {
                self.counters.malformed += 1;
                return;
            }
        };
        let header = segment.header;
        let key = Key {
            path: datagram.path,
            local: header.destination,
            remote: header.source,
        };
        let Some(id) = self.keys.get(&key).copied() else {
            self.on_unknown(key, &segment);
            return;
        };
        let reply = self.with(id, |connection| {
            connection.on_segment(now, segment, datagram.ecn)
        });
        if reply == Some(Reply::Reset) {
            self.reset_stranger(datagram.path, &header, 0);
        }
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
        // A driver that wakes late may bring something else first.
        if self.deadlines.first().is_some_and(|(at, _)| *at <= now) {
            self.handle_deadline(now);
        }
        if let Some((path, octets)) = self.resets.pop_front() {
            out.extend_from_slice(&octets);
            return Some(transmit(path, octets.len(), Kind::Control, Ecn::NotCapable));
        }
        while let Some(&id) = self.ready.front() {
            if let Some(path) = self.connections.get(&id).map(|c| c.key.path) {
                let addresses = self.addresses_to(path);
                let departure = self
                    .connections
                    .get_mut(&id)
                    .and_then(|c| c.poll_transmit(now, &addresses, out));
                if let Some(departure) = departure {
                    return Some(transmit(path, departure.len, departure.kind, departure.ecn));
                }
                self.settle(id);
            }
            self.ready.pop_front();
            self.is_ready.remove(&id);
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

impl LtTcpEndpoint {
    fn on_unknown(&mut self, key: Key, segment: &LtSegment<'_>) {
        let header = &segment.header;
        if header.flags.has(TcpFlags::RST) {
            return;
        }
        let config = self.listeners.get(&key.local).copied();
        let opens = header.flags.has(TcpFlags::SYN) && !header.flags.has(TcpFlags::ACK);
        let Some(config) = config.filter(|_| opens) else {
            let octets = match &segment.extension {
                Extension::Unit(_, octets) => octets.len(),
                Extension::None | Extension::Feedback(_) => 0,
            };
            self.reset_stranger(key.path, header, octets);
            return;
        };
        if self.connections.len() >= self.config.connections_max {
            self.counters.refused += 1;
            return;
        }
        let id = self.add(key, &config);
        self.with(id, |connection| connection.accept(header));
    }

    /// RFC 9293, section 3.10.7.1: the answer to a segment without a connection.
    fn reset_stranger(&mut self, path: PathId, header: &TcpHeader, octets: usize) {
        let mut reset = TcpHeader {
            source: header.destination,
            destination: header.source,
            flags: TcpFlags::RST,
            ..TcpHeader::default()
        };
        if header.flags.has(TcpFlags::ACK) {
            reset.seq = header.ack;
        } else {
            let flag = |bit| u32::from(header.flags.has(bit));
            let len = u32::try_from(octets).unwrap_or(0);
            let len = len + flag(TcpFlags::SYN) + flag(TcpFlags::FIN);
            reset.seq = TcpSeq(0);
            reset.ack = header.seq.plus(len);
            reset.flags = TcpFlags::RST | TcpFlags::ACK;
        }
        self.counters.strangers += 1;
        let mut octets = Vec::new();
        reset.write(&self.addresses_to(path), &[], &mut octets);
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
