//! Records that arrive, in a stream or in a TPDU.

use super::super::codes::{RefuseCode, ResetCode};
use super::super::event::FlowEvent;
use super::super::records::{Accepted, RecordPiece, RecordReader, SpliceRecord};
use super::super::restored::Role;
use super::super::shared::Shared;
use super::{Association, Phase, Way};
use crate::units::Instant;
use crate::wire::Mode;

/// The error about a record that does not belong where it arrived.
struct Misplaced;

impl Association {
    /// Takes a payload of the flow's connection, or of datagram mode.
    pub(in super::super) fn on_octets(&mut self, now: Instant, shared: &mut Shared, octets: &[u8]) {
        self.doubted = false;
        if let Some(reader) = self.reader_mut() {
            let mut reader = core::mem::take(reader);
            let connection = self.connection();
            let mut input = octets;
            while self.is_alive() {
                match reader.next(&mut input) {
                    Ok(RecordPiece::Wait) => break,
                    Ok(RecordPiece::Record(record)) => {
                        if self.on_record(now, shared, &record).is_err() {
                            self.on_malformed(now, shared);
                        }
                    }
                    Err(_) => self.on_malformed(now, shared),
                }
            }
            if self.connection() == connection
                && let Some(kept) = self.reader_mut()
            {
                *kept = reader;
            }
        } else {
            let mut rest = octets;
            while !rest.is_empty() && self.is_alive() {
                let record = SpliceRecord::take(&mut rest).map_err(|_| Misplaced);
                let used = record.and_then(|record| self.on_record(now, shared, &record));
                if used.is_err() {
                    self.on_malformed(now, shared);
                }
            }
        }
    }

    const fn reader_mut(&mut self) -> Option<&mut RecordReader> {
        match &mut self.way {
            Way::Stream(link) => Some(&mut link.reader),
            Way::AnyOrder { reader, .. } => Some(reader),
            Way::Away | Way::Messages(_) => None,
        }
    }

    fn on_malformed(&mut self, now: Instant, shared: &mut Shared) {
        shared.counters.malformed += 1;
        self.fail(now, shared, ResetCode::Protocol);
    }

    fn on_record(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        record: &SpliceRecord<'_>,
    ) -> Result<(), Misplaced> {
        if self.role == Role::Opener {
            self.answered = true;
        }
        match (record, self.role) {
            // The opening is repeated with the flow's messages; the splicer has compared it.
            (SpliceRecord::Open(open), Role::Acceptor) if open.flow == self.id => {
                self.owes_answer |= !open.refresh;
                self.feed(now, shared);
            }
            (SpliceRecord::Flow(flow), _) if *flow == self.id => {}
            (SpliceRecord::Accepted(accepted), Role::Opener) => self.on_accepted(shared, accepted),
            (SpliceRecord::Message(message), _) => {
                self.note_activity(now);
                let deadline = self.late_after(shared);
                if let Way::AnyOrder { id, .. } = self.way
                    && let Some(sent) = shared.endpoint.newest_stamp(id)
                {
                    self.inbox.note_transmission(sent);
                }
                let counters = shared.counters.classes.entry(self.class.id).or_default();
                let pool = &mut shared.pool;
                let is_first = self
                    .inbox
                    .on_message(now, message, deadline, pool, counters);
                self.tell_received(shared);
                if is_first {
                    shared.tell(FlowEvent::Readable(self.id));
                }
            }
            (SpliceRecord::End { .. }, _) => self.on_end(now, shared),
            (SpliceRecord::Refused(code), Role::Opener) => self.on_refused(now, shared, *code),
            // The far side has restarted and does not know the flow of a message: the next message
            // asks again.
            (SpliceRecord::Reset(ResetCode::PeerLost), Role::Opener)
                if self.class.mode == Mode::Datagram =>
            {
                self.answered = false;
            }
            (SpliceRecord::Reset(code), _) => self.on_reset(now, shared, *code),
            (SpliceRecord::Goal(thin), _) => self.on_goal(now, shared, *thin),
            (SpliceRecord::Ignored, _) => {}
            _ => return Err(Misplaced),
        }
        Ok(())
    }

    fn on_accepted(&mut self, shared: &mut Shared, accepted: &Accepted) {
        if self.phase == Phase::Opening {
            self.phase = Phase::Open;
            self.bound = Some(accepted.bound);
            shared.tell(FlowEvent::Connected {
                flow: self.id,
                bound: accepted.bound,
            });
        }
    }

    fn on_refused(&mut self, now: Instant, shared: &mut Shared, code: RefuseCode) {
        shared.count_refusal(self.class.id, code);
        let flow = self.id;
        shared.tell(if self.phase == Phase::Opening {
            FlowEvent::Refused { flow, code }
        } else {
            let code = ResetCode::PeerLost;
            FlowEvent::Reset { flow, code }
        });
        self.leave(now, shared);
    }
}
