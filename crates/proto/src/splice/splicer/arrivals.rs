//! The endpoint's events: the flows they belong to, and the first record of a new connection.

use super::super::address::FlowKind;
use super::super::any_flow::AnyFlow;
use super::super::association::Association;
use super::super::codes::RefuseCode;
use super::super::event::FlowEvent;
use super::super::flow::Flow;
use super::super::graves::Outcome;
use super::super::records::{Hearer, Open, RecordPiece, RecordReader, SpliceRecord};
use super::{Role, Splicer};
use crate::machine::{Machine, PathId};
use crate::transport::aerotp::{ConnectionId, Event, ModeRules};
use crate::units::Instant;
use crate::wire::Mode;

/// Connections without a flow that are kept; beyond that number the oldest is aborted.
const ORPHANS_MAX: usize = 1_024;

/// A connection that a peer opened and that has not said yet which flow it carries, or that was
/// told that it carries none.
#[derive(Debug)]
pub(super) struct Orphan {
    peer: PathId,
    mode: Mode,
    reader: RecordReader,
    refused: bool,
}

impl Orphan {
    /// Notes that the connection was answered; nothing more is read from it.
    pub(super) const fn answer(&mut self) {
        self.refused = true;
    }
}

impl Splicer {
    /// Takes the endpoint's events. Returns whether there were any.
    pub(super) fn pump(&mut self, now: Instant) -> bool {
        let mut news = false;
        while let Some(event) = self.shared.endpoint.poll_event() {
            news = true;
            self.on_event(now, &event);
        }
        news
    }

    fn on_event(&mut self, now: Instant, event: &Event) {
        match *event {
            Event::Incoming { id, path, mode, .. } => self.add_orphan(now, id, path, mode),
            Event::Readable(id) => self.on_readable(now, id),
            Event::Writable(id) => self.with_owner(now, id, AnyFlow::on_room),
            Event::PeerFinished(id) => {
                if self.by_connection.contains_key(&id) {
                    self.with_owner(now, id, AnyFlow::on_peer_finished);
                } else {
                    self.shared.endpoint.close(now, id);
                }
            }
            Event::Closed { id, why } => {
                self.orphans.remove(&id);
                self.on_inquiry_closed(now, id);
                self.with_owner(now, id, |flow, now, shared| {
                    flow.on_connection_closed(now, shared, why);
                });
            }
            Event::Datagram {
                path, ref octets, ..
            } => self.on_datagram(now, path, octets),
            // A confirmed opening is not a heard one: a peer that has restarted confirms what it
            // cannot read.
            Event::Connected(_) | Event::AllSent(_) => {}
        }
    }

    fn with_owner(
        &mut self,
        now: Instant,
        id: ConnectionId,
        call: impl FnOnce(&mut AnyFlow, Instant, &mut super::Shared),
    ) {
        if let Some(flow) = self.by_connection.get(&id).copied() {
            self.with(now, flow, call);
        }
    }

    fn add_orphan(&mut self, now: Instant, id: ConnectionId, peer: PathId, mode: Mode) {
        if self.orphans.len() >= ORPHANS_MAX
            && let Some((oldest, _)) = self.orphans.pop_first()
        {
            self.shared.counters.orphans += 1;
            self.shared.endpoint.abort(now, oldest);
        }
        let orphan = Orphan {
            peer,
            mode,
            reader: RecordReader::default(),
            refused: false,
        };
        self.orphans.insert(id, orphan);
    }

    fn on_readable(&mut self, now: Instant, id: ConnectionId) {
        while let Some(chunk) = self.shared.endpoint.read(now, id) {
            if self.by_connection.contains_key(&id) {
                self.with_owner(now, id, |flow, now, shared| {
                    flow.on_octets(now, shared, &chunk.octets);
                });
            } else if self.inquiries.has(id) {
                self.on_inquiry_octets(now, id, &chunk.octets);
            } else {
                self.on_orphan_octets(now, id, &chunk.octets);
            }
            self.shared.endpoint.recycle(id, chunk.octets);
        }
    }

    fn on_orphan_octets(&mut self, now: Instant, id: ConnectionId, octets: &[u8]) {
        let Some(orphan) = self.orphans.get_mut(&id).filter(|orphan| !orphan.refused) else {
            return;
        };
        let (peer, mode) = (orphan.peer, orphan.mode);
        let mut input = octets;
        let whole_records = !ModeRules::of(mode).complete;
        let record = if whole_records {
            SpliceRecord::take(&mut input)
        } else {
            match orphan.reader.next(&mut input) {
                Ok(RecordPiece::Wait) => return,
                Ok(RecordPiece::Record(record)) => Ok(record),
                Err(malformed) => Err(malformed),
            }
        };
        match record {
            Ok(SpliceRecord::Open(open)) => match self.on_open(now, Some(id), peer, mode, &open) {
                Ok(()) => {
                    self.orphans.remove(&id);
                    self.with_owner(now, id, |flow, now, shared| {
                        flow.on_octets(now, shared, input);
                    });
                }
                Err(answer) => self.turn_away(now, id, answer),
            },
            Ok(SpliceRecord::Ask(questions)) if !whole_records => {
                self.on_ask(now, id, peer, &questions);
            }
            // The opening was lost; it will be repeated.
            Ok(_) if whole_records => self.shared.counters.orphans += 1,
            Ok(_) | Err(_) => {
                self.shared.counters.malformed += 1;
                self.turn_away(now, id, Outcome::Refused(RefuseCode::Invalid));
            }
        }
    }

    /// Answers a connection that gets no flow, and closes it.
    fn turn_away(&mut self, now: Instant, id: ConnectionId, answer: Outcome) {
        self.shared.counters.orphans += 1;
        let Some(orphan) = self.orphans.get_mut(&id) else {
            return;
        };
        orphan.refused = true;
        let stream = ModeRules::of(orphan.mode).complete;
        let record = match answer {
            Outcome::Finished => SpliceRecord::Finished,
            Outcome::Refused(code) => SpliceRecord::Refused(code),
            Outcome::Reset(code) => SpliceRecord::Reset(code),
        };
        self.say_and_close(now, id, stream, &record);
    }

    /// Says one record on a connection that carries no flow, and closes it.
    pub(super) fn say_and_close(
        &mut self,
        now: Instant,
        id: ConnectionId,
        stream: bool,
        record: &SpliceRecord<'_>,
    ) {
        let mut octets = Vec::new();
        record.encode(&mut octets);
        let endpoint = &mut self.shared.endpoint;
        // A fresh connection has room; one that is over already needs no answer.
        let written = if stream {
            endpoint.write(now, id, &octets).is_ok()
        } else {
            endpoint.write_message(now, id, &octets).is_ok()
        };
        if written {
            endpoint.close(now, id);
        }
    }

    /// Handles a peer's opening of a flow, new or resumed.
    fn on_open(
        &mut self,
        now: Instant,
        id: Option<ConnectionId>,
        peer: PathId,
        mode: Mode,
        open: &Open,
    ) -> Result<(), Outcome> {
        let invalid = Err(Outcome::Refused(RefuseCode::Invalid));
        if !super::suits(open.kind, mode) {
            return invalid;
        }
        self.note_incarnation(now, peer, open.attempt);
        if let Some(slot) = self.flows.get(&open.flow) {
            let flow = &slot.flow;
            if flow.peer() != peer || flow.role() != Role::Acceptor || flow.kind() != open.kind {
                return invalid;
            }
            if open.attempt <= flow.attempt() {
                return Err(Outcome::Refused(RefuseCode::Forgotten));
            }
            self.with(now, open.flow, |flow, now, shared| {
                flow.attach(now, shared, id, open);
            });
            return Ok(());
        }
        if let Some(outcome) = self.graves.outcome(open.flow, peer) {
            return Err(outcome);
        }
        if open.farewell {
            return Err(Outcome::Finished);
        }
        let answered = open.again == Some(Hearer::Answered);
        // The flow may be one of those whose outcomes were forgotten.
        let was_maybe_here = open.kind == FlowKind::Stream && self.graves.has_forgotten(now, peer);
        let was_here = open.kept_from > 0 || open.received > 0 || was_maybe_here;
        if answered || open.again.is_some() && was_here {
            return Err(Outcome::Refused(RefuseCode::Forgotten));
        }
        if self.is_full() {
            return Err(Outcome::Refused(RefuseCode::TooMany));
        }
        let shared = &mut self.shared;
        let requested = match open.kind {
            FlowKind::Stream => Flow::requested(now, shared, peer, mode, open)
                .map(|flow| AnyFlow::Stream(Box::new(flow))),
            FlowKind::Datagrams => {
                let flow = Association::requested(now, shared, peer, mode, open);
                Ok(AnyFlow::Datagrams(Box::new(flow)))
            }
        };
        let flow = requested.map_err(Outcome::Refused)?;
        self.shared.tell(FlowEvent::Requested {
            flow: open.flow,
            peer,
            kind: open.kind,
            destination: open.destination.clone(),
            class: *flow.class(),
            earlier: matches!(open.again, Some(Hearer::Earlier | Hearer::Unknown)),
        });
        self.add(now, flow);
        self.with(now, open.flow, |flow, now, shared| {
            flow.attach(now, shared, id, open);
        });
        Ok(())
    }

    /// Takes a datagram without a connection: it names its flow, or opens it.
    fn on_datagram(&mut self, now: Instant, peer: PathId, octets: &[u8]) {
        let mut rest = octets;
        let flow = match SpliceRecord::take(&mut rest) {
            Ok(SpliceRecord::Flow(flow)) => flow,
            Ok(SpliceRecord::Open(open)) => {
                let newer = |slot: &super::Slot| slot.flow.attempt() < open.attempt;
                let opens = self.flows.get(&open.flow).is_none_or(newer);
                if opens
                    && self
                        .on_open(now, None, peer, Mode::Datagram, &open)
                        .is_err()
                {
                    self.shared.counters.orphans += 1;
                    return;
                }
                open.flow
            }
            _ => {
                self.shared.counters.malformed += 1;
                return;
            }
        };
        let mine = |flow: &AnyFlow| flow.peer() == peer && flow.class().mode == Mode::Datagram;
        if self.flows.get(&flow).is_some_and(|slot| mine(&slot.flow)) {
            self.with(now, flow, |flow, now, shared| {
                flow.on_octets(now, shared, octets);
            });
        } else {
            self.shared.counters.orphans += 1;
            self.disown(now, peer, flow, rest);
        }
    }
}
