//! Asking a peer which of our flows it still has.
//!
//! A flow knows why it is in doubt (`flow/doubt.rs`). This module asks: about all flows of
//! a peer together, on a connection of its own, after the peer had time to come by itself, and
//! again, ever more seldom, as long as there is doubt. The answer names those that the peer does not
//! have, and each of them ends here.

use super::super::address::FlowId;
use super::super::codes::ResetCode;
use super::super::flow::connect;
use super::super::records::{Piece, QUESTIONS_MAX, Question, Record, RecordReader};
use super::Splicer;
use crate::machine::{Deadline, PathId};
use crate::transport::aerotp::{ConnectionConfig, ConnectionId};
use crate::units::{Duration, Instant};
use crate::wire::Mode;
use std::collections::{BTreeMap, BTreeSet};

/// The pause between two questions doubles so often.
const PAUSE_DOUBLINGS_MAX: u32 = 4;
/// Messages of flows that nobody knows are answered no more often than this.
const DISOWN_EVERY: Duration = Duration::from_millis(50);

/// The inquiry to one peer.
#[derive(Debug, Default)]
struct Inquiry {
    /// When to ask next, if there is doubt.
    due: Option<Instant>,
    /// Questions since there was none to ask.
    asked_times: u32,
    /// The connection of a question under way, and what came on it.
    connection: Option<ConnectionId>,
    reader: RecordReader,
    asked: Vec<FlowId>,
    /// More flows than one question holds: those behind this one are still to be asked about.
    behind: Option<FlowId>,
    /// The last question was answered, and the next of the same round need not wait.
    goes_on: bool,
}

/// All peers' inquiries.
#[derive(Debug, Default)]
pub(super) struct Inquiries {
    peers: BTreeMap<PathId, Inquiry>,
    connections: BTreeMap<ConnectionId, PathId>,
    due: BTreeSet<(Instant, PathId)>,
    disowned_at: Option<Instant>,
}

impl Inquiries {
    /// A flow of `peer` is in doubt: asks about it `after` now, unless it is being asked or will be.
    pub(super) fn want(&mut self, now: Instant, peer: PathId, after: Duration) {
        let inquiry = self.peers.entry(peer).or_default();
        if inquiry.connection.is_none() && inquiry.due.is_none() {
            self.set_due(peer, Some(now + after));
        }
    }

    /// Another start of the peer's, or a link that is up again: what was under way is over.
    pub(super) fn begin_again(&mut self, peer: PathId) {
        self.set_due(peer, None);
        if let Some(old) = self.peers.remove(&peer)
            && let Some(connection) = old.connection
        {
            self.connections.remove(&connection);
        }
    }

    pub(super) fn has(&self, connection: ConnectionId) -> bool {
        self.connections.contains_key(&connection)
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let (at, _) = self.due.first()?;
        Some(Deadline {
            at: *at,
            why: "flows in doubt",
        })
    }

    fn set_due(&mut self, peer: PathId, due: Option<Instant>) {
        let Some(inquiry) = self.peers.get_mut(&peer) else {
            return;
        };
        if let Some(old) = core::mem::replace(&mut inquiry.due, due) {
            self.due.remove(&(old, peer));
        }
        if let Some(new) = due {
            self.due.insert((new, peer));
        }
    }
}

impl Splicer {
    /// A peer is in reach again: who has lost a connection comes, and the others are in doubt.
    pub(super) fn on_link_up(&mut self, now: Instant, peer: PathId) {
        let of_peer = self.flows.iter().filter(|(_, s)| s.flow.peer() == peer);
        let flows: Vec<FlowId> = of_peer.map(|(id, _)| *id).collect();
        self.inquiries.begin_again(peer);
        for id in flows {
            self.with(now, id, |flow, _, _| flow.on_link_up());
        }
    }

    pub(super) fn is_in_doubt(&self, peer: PathId) -> bool {
        let mut questions = self.flows.values().filter(|s| s.flow.peer() == peer);
        questions.any(|slot| slot.flow.question().is_some())
    }

    pub(super) fn ask_those_due(&mut self, now: Instant) {
        // Each peer once: what one is asked next may be due now, too.
        let due = self.inquiries.due.range(..=(now, PathId(u32::MAX)));
        let peers: Vec<PathId> = due.map(|(_, peer)| *peer).collect();
        for peer in peers {
            self.inquiries.set_due(peer, None);
            self.ask(now, peer);
        }
    }

    /// The next flows of `peer` that are in doubt, in the order of their names.
    fn questions(&self, peer: PathId, after: Option<FlowId>) -> Vec<Question> {
        let behind = |id: &FlowId| after.is_none_or(|after| *id > after);
        let flows = self.flows.iter().filter(|(id, _)| behind(id));
        let of_peer = flows.filter(|(_, slot)| slot.flow.peer() == peer);
        let questions = of_peer.filter_map(|(_, slot)| slot.flow.question());
        questions.take(QUESTIONS_MAX).collect()
    }

    fn ask(&mut self, now: Instant, peer: PathId) {
        // Whoever says that the link is up again begins anew.
        if self.shared.endpoint.is_held(peer) {
            return;
        }
        let behind = self.inquiries.peers.get(&peer).and_then(|i| i.behind);
        let questions = self.questions(peer, behind);
        let Some(inquiry) = self.inquiries.peers.get_mut(&peer) else {
            return;
        };
        if questions.is_empty() {
            // The round is over. Flows that the peer has may be in doubt all the same.
            inquiry.behind = None;
            return self.ask_later(now, peer);
        }
        if behind.is_none() {
            inquiry.asked_times = inquiry.asked_times.saturating_add(1);
        }
        inquiry.asked = questions.iter().map(|question| question.flow).collect();
        inquiry.reader = RecordReader::default();
        let config = ConnectionConfig {
            mode: Mode::Reliable,
            ..self.shared.config.connection
        };
        let Ok(id) = connect(now, &mut self.shared, peer, config) else {
            return self.ask_later(now, peer);
        };
        let mut octets = Vec::new();
        Record::Ask(questions).encode(&mut octets);
        // A fresh connection has room for it.
        let _ = self.shared.endpoint.write(now, id, &octets);
        self.shared.endpoint.pause(now, id);
        if let Some(inquiry) = self.inquiries.peers.get_mut(&peer) {
            inquiry.connection = Some(id);
            self.inquiries.connections.insert(id, peer);
        }
    }

    fn ask_later(&mut self, now: Instant, peer: PathId) {
        let in_doubt = self.is_in_doubt(peer);
        let Some(inquiry) = self.inquiries.peers.get_mut(&peer) else {
            return;
        };
        if !in_doubt {
            inquiry.asked_times = 0;
            inquiry.behind = None;
            inquiry.goes_on = false;
            return;
        }
        // A question that could not be asked, or was not answered, is due again, and not at once.
        let doublings = inquiry.asked_times.min(PAUSE_DOUBLINGS_MAX);
        let pause = if core::mem::take(&mut inquiry.goes_on) {
            Duration::ZERO
        } else {
            self.shared.config.ask_after * (1 << doublings)
        };
        self.inquiries.set_due(peer, Some(now + pause));
    }

    pub(super) fn on_inquiry_octets(&mut self, now: Instant, id: ConnectionId, octets: &[u8]) {
        let inquiries = &mut self.inquiries;
        let Some(peer) = inquiries.connections.get(&id).copied() else {
            return;
        };
        let Some(inquiry) = inquiries.peers.get_mut(&peer) else {
            return;
        };
        let mut input = octets;
        let gone: BTreeSet<FlowId> = match inquiry.reader.next(&mut input) {
            Ok(Piece::Wait) => return,
            Ok(Piece::Record(Record::Gone(gone))) => gone.into_iter().collect(),
            // A peer that cannot be asked: the next question is due later.
            Ok(Piece::Record(_)) | Err(_) => {
                self.shared.endpoint.close(now, id);
                return;
            }
        };
        let asked = core::mem::take(&mut inquiry.asked);
        inquiry.goes_on = asked.len() == QUESTIONS_MAX;
        inquiry.behind = asked.last().copied().filter(|_| inquiry.goes_on);
        self.shared.endpoint.close(now, id);
        for flow in asked {
            let of_peer = |slot: &super::Slot| slot.flow.peer() == peer;
            if self.flows.get(&flow).is_some_and(of_peer) {
                self.with(now, flow, |flow, now, shared| {
                    if gone.contains(&flow.id()) {
                        flow.on_gone(now, shared);
                    } else {
                        flow.on_known();
                    }
                });
            }
        }
    }

    pub(super) fn on_inquiry_closed(&mut self, now: Instant, id: ConnectionId) {
        if let Some(peer) = self.inquiries.connections.remove(&id) {
            if let Some(inquiry) = self.inquiries.peers.get_mut(&peer) {
                inquiry.connection = None;
            }
            self.ask_later(now, peer);
        }
    }

    /// A peer asks which of its flows are known here.
    pub(super) fn on_ask(
        &mut self,
        now: Instant,
        id: ConnectionId,
        peer: PathId,
        questions: &[Question],
    ) {
        if let Some(orphan) = self.orphans.get_mut(&id) {
            orphan.answer();
        }
        let mut gone = Vec::new();
        for question in questions {
            let is_known = |slot: &super::Slot| slot.flow.peer() == peer;
            if self.flows.get(&question.flow).is_some_and(is_known) {
                self.with(now, question.flow, |flow, now, shared| {
                    flow.on_asked(now, shared, question.attempt);
                });
            } else {
                gone.push(question.flow);
            }
        }
        self.say_and_close(now, id, true, &Record::Gone(gone));
    }

    /// In datagram mode: tells the sender of a message that its flow is not known here. What says
    /// itself that the flow is over is not answered, or two who forgot would never end.
    pub(super) fn disown(&mut self, now: Instant, peer: PathId, flow: FlowId, records: &[u8]) {
        let mut rest = records;
        let carries = matches!(Record::take(&mut rest), Ok(Record::Message(_)));
        let at = self.inquiries.disowned_at;
        if !carries || at.is_some_and(|at| now.saturating_since(at) < DISOWN_EVERY) {
            return;
        }
        let config = ConnectionConfig {
            mode: Mode::Datagram,
            ..self.shared.config.connection
        };
        let Ok(place) = connect(now, &mut self.shared, peer, config) else {
            return;
        };
        self.inquiries.disowned_at = Some(now);
        let mut octets = Vec::new();
        Record::Flow(flow).encode(&mut octets);
        Record::Reset(ResetCode::PeerLost).encode(&mut octets);
        let _ = self.shared.endpoint.write_message(now, place, &octets);
        self.shared.endpoint.close(now, place);
    }
}
