//! Octets from the source to the machine: as records in a stream, or as messages that carry their place.

use super::super::FILE_PORT;
use super::super::record::{
    DATA_BYTES_MAX, MESSAGE_HEAD_BYTES, Record, encode_data_head, encode_message_head,
};
use super::super::report::SendError;
use super::super::source::Filled;
use super::{Lane, Phase, SendObserver, Sender};
use crate::udp::Step;
use fulmar_proto::transport::aerotp::AerotpEndpoint;
use fulmar_proto::units::Instant;

/// DATA records written before the machine is drained again.
const RECORDS_PER_TURN: usize = 8;
/// Messages written before the machine is drained again.
const MESSAGES_PER_TURN: usize = 64;
/// The octets that may wait in the machine to be sent before the OFFER: written octets cannot be taken back
/// when the OFFER says that the receiver has them.
const AHEAD_BYTES_MAX: u64 = 8_192;
/// Octets in one DATA record before the OFFER.
const DATA_BYTES_AHEAD: usize = 4_096;

impl<O: SendObserver> Sender<O> {
    /// Moves octets from the source towards the machine.
    pub(super) fn talk(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
    ) -> Result<Step, SendError> {
        if self.is_lossy() {
            self.talk_in_messages(now, machine)
        } else {
            self.talk_in_records(now, machine)
        }
    }

    fn talk_in_records(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
    ) -> Result<Step, SendError> {
        let mut wrote = false;
        for _ in 0..RECORDS_PER_TURN {
            if !self.write_outbox(now, machine) {
                return Ok(Step::Wait);
            }
            if self.is_ahead(machine) {
                // What waits has a deadline, which brings the next turn; what was just written may not.
                return Ok(if wrote { Step::Again } else { Step::Wait });
            }
            wrote = true;
            if self.source_ended {
                if !self.offered {
                    return Ok(Step::Wait);
                }
                self.say_end()?;
                self.write_outbox(now, machine);
                return Ok(Step::Again);
            }
            let offset = self.source.position();
            self.message.clear();
            let record_bytes = if self.offered {
                DATA_BYTES_MAX
            } else {
                DATA_BYTES_AHEAD
            };
            match self
                .source
                .fill(&mut self.message, record_bytes)
                .map_err(SendError::Read)?
            {
                Filled::Later => return Ok(Step::Wait),
                Filled::End => self.source_ended = true,
                Filled::Octets(len) => {
                    encode_data_head(offset, len, &mut self.outbox);
                    self.outbox_data = Some((self.outbox.len(), offset));
                    self.outbox.append(&mut self.message);
                }
            }
        }
        Ok(Step::Again)
    }

    /// Whether enough waits to be sent, as long as the OFFER may still say where to continue.
    fn is_ahead(&self, machine: &AerotpEndpoint) -> bool {
        let waiting = self.control.and_then(|id| machine.unsent_bytes(id));
        !self.offered && waiting.unwrap_or_default() >= AHEAD_BYTES_MAX
    }

    fn say_end(&mut self) -> Result<(), SendError> {
        if self.source.has_changed().map_err(SendError::Read)? {
            return Err(SendError::Changed);
        }
        let (size, digest) = (self.source.position(), self.source.digest());
        self.say(&Record::End { size, digest });
        self.phase = Phase::AwaitingVerdict;
        Ok(())
    }

    fn talk_in_messages(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
    ) -> Result<Step, SendError> {
        if !self.write_outbox(now, machine) || !self.offered {
            return Ok(Step::Wait);
        }
        let lane = match self.lane {
            Some(lane) => lane,
            None => Lane::Open(machine.connect(now, self.path, FILE_PORT, self.plan.connection)?),
        };
        self.lane = Some(lane);
        let data = match lane {
            Lane::Open(data) => data,
            Lane::Closing(_) => return Ok(Step::Wait),
            Lane::Empty => {
                self.say_end()?;
                self.write_outbox(now, machine);
                return Ok(Step::Again);
            }
        };
        let payload_max = machine.payload_bytes(data).unwrap_or_default();
        for _ in 0..MESSAGES_PER_TURN {
            if self.message.is_empty() {
                let offset = self.source.position();
                encode_message_head(self.plan.id, offset, &mut self.message);
                let room = payload_max.saturating_sub(MESSAGE_HEAD_BYTES).max(1);
                match self
                    .source
                    .fill(&mut self.message, room)
                    .map_err(SendError::Read)?
                {
                    Filled::Octets(_) => {}
                    filled => {
                        self.message.clear();
                        if filled == Filled::Later {
                            return Ok(Step::Wait);
                        }
                        self.source_ended = true;
                        machine.close(now, data);
                        self.lane = Some(Lane::Closing(data));
                        return Ok(Step::Again);
                    }
                }
            }
            let written = machine.write_message(now, data, &self.message);
            let end = self.source.position();
            let len = self.message.len().saturating_sub(MESSAGE_HEAD_BYTES) as u64;
            match written {
                Ok(true) => {
                    self.written += self.message.len() as u64;
                    self.message.clear();
                    self.submitted(now, end.saturating_sub(len)..end);
                }
                Ok(false) => return Ok(Step::Wait),
                // The connection's Closed event tells; the receiver counts octets that are lost here as missing.
                Err(_) => {
                    self.lane = Some(Lane::Empty);
                    return Ok(Step::Again);
                }
            }
        }
        Ok(Step::Again)
    }
}
