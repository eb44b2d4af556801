//! The endpoint as a machine.

use super::{StreamKey, TcpEndpoint, TcpState, addresses_to};
use crate::stream::{SegmentReply, StreamConnection};
use crate::tcp::connection::TcpConnection;
use crate::tcp::event::{TcpConnectionId, TcpEvent};
use crate::wire::tcp::{TcpFlags, TcpHeader, TcpReject, TcpSegment};
use fulmar_proto::machine::{Datagram, Deadline, Machine, PathId, Transmit};
use fulmar_proto::units::Instant;

impl Machine for TcpEndpoint {
    type Event = TcpEvent;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let addresses = self.addresses_to(datagram.path).reversed();
        let segment = match TcpHeader::parse(&addresses, datagram.octets) {
            Ok(segment) => segment,
            Err(TcpReject::Checksum) => {
                self.table.ledger.counters.checksum += 1;
                return;
            }
            Err(_) => {
                self.table.ledger.counters.malformed += 1;
                return;
            }
        };
        let key = StreamKey {
            path: datagram.path,
            local: segment.header.destination,
            remote: segment.header.source,
        };
        let known = self.table.find(key);
        if let Some(id) = known.filter(|&id| !self.makes_way(id, &segment)) {
            let reply = self.table.with(id, |connection| {
                connection.on_segment(now, &segment, datagram.ecn)
            });
            if reply == Some(SegmentReply::Reset) {
                self.reset_stranger(datagram.path, &segment);
            }
            return;
        }
        self.on_unknown(now, key, &segment);
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.table.handle_deadline(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let (known, local) = (&self.addresses, self.config.local);
        self.table.poll_transmit(now, out, |connection, out| {
            let path = connection.states().key().path;
            connection.poll_transmit(now, &addresses_to(known, local, path), out)
        })
    }

    fn poll_event(&mut self) -> Option<TcpEvent> {
        self.table.poll_event()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.table.next_deadline()
    }
}

impl TcpEndpoint {
    /// Makes a connection in TIME-WAIT give way to a SYN beyond it (RFC 6191; RFC 9293, section
    /// 3.10.7.4), if someone listens.
    fn makes_way(&mut self, id: TcpConnectionId, segment: &TcpSegment<'_>) -> bool {
        let header = &segment.header;
        let is_new = header.flags.has(TcpFlags::SYN) && !header.flags.has(TcpFlags::ACK);
        if !is_new || self.table.listener(header.destination).is_none() {
            return false;
        }
        let gone = self.table.get(id).is_some_and(|connection| {
            connection.states().state() == TcpState::TimeWait && connection.is_beyond(header.seq)
        });
        if gone {
            self.table.with(id, TcpConnection::make_way);
        }
        gone
    }

    fn on_unknown(&mut self, now: Instant, key: StreamKey, segment: &TcpSegment<'_>) {
        let header = &segment.header;
        if header.flags.has(TcpFlags::RST) {
            return;
        }
        let config = self.table.listener(key.local);
        let opens = header.flags.has(TcpFlags::SYN) && !header.flags.has(TcpFlags::ACK);
        let Some(config) = config.filter(|_| opens) else {
            self.reset_stranger(key.path, segment);
            return;
        };
        if self.table.is_full() {
            self.table.ledger.counters.refused += 1;
            return;
        }
        let id = self.add(key, &config);
        self.table
            .with(id, |connection| connection.accept(now, header));
    }

    /// Answers a segment without a connection (RFC 9293, section 3.10.7.1).
    fn reset_stranger(&mut self, path: PathId, segment: &TcpSegment<'_>) {
        self.table.ledger.counters.strangers += 1;
        let len = u32::try_from(segment.sequence_len()).unwrap_or(0);
        let addresses = self.addresses_to(path);
        self.table
            .reset_stranger(path, &segment.header, len, &addresses);
    }
}
