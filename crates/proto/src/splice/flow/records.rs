//! Records that arrive for a flow.

use super::super::codes::{RefuseCode, ResetCode};
use super::super::event::FlowEvent;
use super::super::graves::Outcome;
use super::super::records::{Hearer, RecordPiece, SpliceRecord};
use super::super::restored::Role;
use super::super::shared::Shared;
use super::super::stream::Unexpected;
use super::{Flow, Phase};
use crate::units::Instant;

/// The error about a record that does not belong where it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Misplaced(ResetCode);

impl From<Unexpected> for Misplaced {
    fn from(unexpected: Unexpected) -> Self {
        Self(match unexpected {
            Unexpected::Credit => ResetCode::Credit,
            Unexpected::End => ResetCode::Protocol,
        })
    }
}

const MISPLACED: Misplaced = Misplaced(ResetCode::Protocol);

impl Flow {
    /// Takes octets of the connection's stream.
    pub(in super::super) fn on_octets(&mut self, now: Instant, shared: &mut Shared, octets: &[u8]) {
        let Some(link) = &mut self.link else { return };
        self.doubted = false;
        let id = link.id;
        let mut reader = core::mem::take(&mut link.reader);
        let mut input = octets;
        while self.is_alive() {
            match reader.next(&mut input) {
                Ok(RecordPiece::Wait) => break,
                Ok(RecordPiece::Record(record)) => {
                    if let Err(Misplaced(code)) = self.on_record(now, shared, &record) {
                        shared.counters.malformed += 1;
                        self.fail(now, shared, code);
                    }
                }
                Err(_) => {
                    shared.counters.malformed += 1;
                    self.fail(now, shared, ResetCode::Protocol);
                }
            }
        }
        if let Some(link) = self.link.as_mut().filter(|link| link.id == id) {
            link.reader = reader;
        }
    }

    fn on_record(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        record: &SpliceRecord<'_>,
    ) -> Result<(), Misplaced> {
        match (record, self.role) {
            (SpliceRecord::Data(octets), _) if self.may_receive() => {
                if self.stream.incoming.on_data(&mut shared.spare, octets)? {
                    shared.tell(FlowEvent::Readable(self.id));
                }
                self.note_activity(now, shared);
            }
            (SpliceRecord::End { total }, _) if self.may_receive() => {
                self.stream.incoming.on_end(*total)?;
            }
            (SpliceRecord::Delivered(delivered), _) if self.phase != Phase::Requested => {
                let out = &mut self.stream.out;
                let before = out.delivered();
                let news = out.on_delivered(delivered.offset, delivered.limit);
                if news.map_err(|_| MISPLACED)? {
                    let offset = self.stream.out.delivered();
                    shared.class(self.class.id).octets_delivered += offset - before;
                    shared.tell(FlowEvent::Delivered {
                        flow: self.id,
                        offset,
                    });
                    self.note_activity(now, shared);
                }
            }
            (SpliceRecord::Accepted(accepted), Role::Opener) => {
                self.on_accepted(now, shared, accepted);
            }
            (SpliceRecord::Refused(code), Role::Opener) => self.on_refused(now, shared, *code),
            (SpliceRecord::Finished, Role::Opener) if self.class.resume => {
                shared.class(self.class.id).flows_finished += 1;
                self.end_silently(now, shared, Outcome::Finished);
                shared.tell(FlowEvent::Closed(self.id));
            }
            (SpliceRecord::Stop, _) => {
                if !core::mem::replace(&mut self.far_stopped, true) {
                    shared.tell(FlowEvent::Stopped(self.id));
                }
            }
            (SpliceRecord::Reset(code), _) => self.on_reset(now, shared, *code),
            (SpliceRecord::Goal(thin), Role::Acceptor) => {
                self.class.thin = Some(*thin);
                if let Some(id) = self.connection() {
                    self.follow_goal(now, shared, id);
                }
            }
            (SpliceRecord::Goal(_) | SpliceRecord::Ignored, _) => {}
            _ => return Err(MISPLACED),
        }
        Ok(())
    }

    /// Whether the flow may receive: an opener receives nothing before it was answered.
    fn may_receive(&self) -> bool {
        match self.phase {
            Phase::Requested | Phase::Open => true,
            Phase::Opening | Phase::Ending(_) => false,
        }
    }

    fn on_refused(&mut self, now: Instant, shared: &mut Shared, code: RefuseCode) {
        let said_hearer = !matches!(self.hearer_to_say(), None | Some(Hearer::Present));
        if code == RefuseCode::Invalid && self.class.resume && said_hearer {
            // Version 2 cannot read the field on who may have heard a flow. If it was something else that it
            // could not read, it refuses again.
            self.far_is_older = true;
            self.drop_link(now, shared);
            self.go_away(now, shared);
        } else if self.phase == Phase::Opening {
            shared.count_refusal(self.class.id, code);
            self.end_silently(now, shared, Outcome::Refused(code));
            shared.tell(FlowEvent::Refused {
                flow: self.id,
                code,
            });
        } else {
            self.on_reset(now, shared, ResetCode::PeerLost);
        }
    }
}
