//! The endpoint as a machine.

use super::{LtTcpEndpoint, StreamKey};
use crate::stream::{SegmentReply, StreamConnection};
use crate::tcp::TcpEvent;
use crate::wire::lt_tcp::{Extension, LtReject, LtSegment};
use crate::wire::tcp::{AddressPair, TcpFlags, TcpHeader, TcpReject};
use fulmar_proto::machine::{Datagram, Deadline, Machine, PathId, Transmit};
use fulmar_proto::units::Instant;
use fulmar_proto::wire::network::NodeAddress;

impl Machine for LtTcpEndpoint {
    type Event = TcpEvent;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let addresses = self.addresses_to(datagram.path).reversed();
        let segment = match LtSegment::parse(&addresses, datagram.octets) {
            Ok(segment) => segment,
            Err(LtReject::Tcp(TcpReject::Checksum)) => {
                self.table.ledger.checksum += 1;
                return;
            }
            Err(_) => {
                self.table.ledger.malformed += 1;
                return;
            }
        };
        let header = segment.header;
        let key = StreamKey {
            path: datagram.path,
            local: header.destination,
            remote: header.source,
        };
        let Some(id) = self.table.find(key) else {
            self.on_unknown(key, &segment);
            return;
        };
        let reply = self.table.with(id, |connection| {
            connection.on_segment(now, segment, datagram.ecn)
        });
        if reply == Some(SegmentReply::Reset) {
            self.reset_stranger(datagram.path, &header, 0);
        }
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.table.handle_deadline(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let local = self.config.local;
        self.table.poll_transmit(now, out, |connection, out| {
            let path = connection.states().key().path;
            let addresses = AddressPair::nodes(local, NodeAddress(path.0));
            connection.poll_transmit(now, &addresses, out)
        })
    }

    fn poll_event(&mut self) -> Option<TcpEvent> {
        self.table.poll_event()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.table.next_deadline()
    }
}

impl LtTcpEndpoint {
    fn on_unknown(&mut self, key: StreamKey, segment: &LtSegment<'_>) {
        let header = &segment.header;
        if header.flags.has(TcpFlags::RST) {
            return;
        }
        let config = self.table.listener(key.local);
        let opens = header.flags.has(TcpFlags::SYN) && !header.flags.has(TcpFlags::ACK);
        let Some(config) = config.filter(|_| opens) else {
            let octets = match &segment.extension {
                Extension::Unit(_, octets) => octets.len(),
                Extension::None | Extension::Feedback(_) => 0,
            };
            self.reset_stranger(key.path, header, octets);
            return;
        };
        if self.table.is_full() {
            self.table.ledger.refused += 1;
            return;
        }
        let id = self.add(key, &config);
        self.table.with(id, |connection| connection.accept(header));
    }

    /// Answers a segment without a connection (RFC 9293, section 3.10.7.1).
    fn reset_stranger(&mut self, path: PathId, header: &TcpHeader, octets: usize) {
        self.table.ledger.strangers += 1;
        let flag = |bit| u32::from(header.flags.has(bit));
        let len = u32::try_from(octets).unwrap_or(0);
        let len = len + flag(TcpFlags::SYN) + flag(TcpFlags::FIN);
        let addresses = self.addresses_to(path);
        self.table.reset_stranger(path, header, len, &addresses);
    }
}
