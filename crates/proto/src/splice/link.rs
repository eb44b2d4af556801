//! A flow's connection over AeroTP while it has one: records in and out.

use super::records::{BODY_BYTES_MAX, RecordReader, SpliceRecord, data_header};
use crate::transport::aerotp::{AerotpEndpoint, ConnectionId};
use crate::units::Instant;

/// One connection that carries a flow's records as a stream.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: ConnectionId,
    pub(super) reader: RecordReader,
    /// Records that the connection had no room for: the rest of one with data, and control records.
    pending: Vec<u8>,
    /// Whether all of the flow's octets are written, so that only control records may follow.
    ended: bool,
    closing: bool,
}

impl Link {
    pub(super) fn new(id: ConnectionId) -> Self {
        Self {
            id,
            reader: RecordReader::default(),
            pending: Vec::new(),
            ended: false,
            closing: false,
        }
    }

    /// Whether a record with data may be written.
    pub(super) fn is_clear(&self) -> bool {
        self.pending.is_empty() && !self.closing
    }

    /// Whether everything was handed to AeroTP.
    pub(super) fn is_flushed(&self) -> bool {
        self.pending.is_empty()
    }

    /// Sends a record, behind those that wait.
    pub(super) fn send(
        &mut self,
        now: Instant,
        endpoint: &mut AerotpEndpoint,
        record: &SpliceRecord<'_>,
    ) {
        if self.closing {
            return;
        }
        self.ended |= matches!(record, SpliceRecord::End { .. });
        if let SpliceRecord::Data(octets) = record
            && self.pending.is_empty()
        {
            self.write_data(now, endpoint, octets);
        } else {
            record.encode(&mut self.pending);
            self.flush(now, endpoint);
        }
    }

    /// Sends a record with data. The connection has room for most of it: only the rest is copied.
    fn write_data(&mut self, now: Instant, endpoint: &mut AerotpEndpoint, octets: &[u8]) {
        let octets = &octets[..octets.len().min(BODY_BYTES_MAX)];
        for part in [&data_header(octets.len()), octets] {
            let taken = if self.pending.is_empty() {
                endpoint.write(now, self.id, part).unwrap_or(0)
            } else {
                0
            };
            self.pending.extend_from_slice(&part[taken..]);
        }
    }

    /// Hands waiting octets to AeroTP, as far as there is room; AeroTP tells when there is more.
    pub(super) fn flush(&mut self, now: Instant, endpoint: &mut AerotpEndpoint) {
        if !self.pending.is_empty() {
            // A connection that takes no more octets says so with an event of its own.
            let taken = endpoint.write(now, self.id, &self.pending).unwrap_or(0);
            self.pending.drain(..taken);
        }
        if !self.pending.is_empty() {
            return;
        }
        if self.closing {
            endpoint.close(now, self.id);
        } else if self.ended {
            endpoint.pause(now, self.id);
        }
    }

    /// Closes the connection behind the octets that wait.
    pub(super) fn close(&mut self, now: Instant, endpoint: &mut AerotpEndpoint) {
        self.closing = true;
        self.flush(now, endpoint);
    }

    /// Closes the connection; octets that wait are of no use to anybody.
    pub(super) fn close_at_once(&mut self, now: Instant, endpoint: &mut AerotpEndpoint) {
        self.pending.clear();
        self.close(now, endpoint);
    }
}
