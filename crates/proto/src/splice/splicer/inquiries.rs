//! Questions to a peer about which of our flows it still has.
//!
//! A flow knows why it is in doubt (`flow/doubt.rs`). This module asks about all flows of a peer
//! together, on a connection of its own. It waits first, since the peer may come by itself, and asks
//! again, ever more seldom, as long as there is doubt. The answer names the flows that the peer does
//! not have, and each of them ends here.

use super::super::address::FlowId;
use super::super::codes::ResetCode;
use super::super::flow::connect;
use super::super::records::{QUESTIONS_MAX, Question, RecordPiece, RecordReader, SpliceRecord};
use super::Splicer;
use crate::machine::{Deadline, PathId};
use crate::transport::aerotp::{ConnectionConfig, ConnectionId};
use crate::units::{Duration, Instant};
use crate::wire::Mode;
use std::collections::{BTreeMap, BTreeSet};

/// The number of times that the pause between two questions doubles.
const PAUSE_DOUBLINGS_MAX: u32 = 4;
/// The least time between two answers to messages of flows that nobody knows.
const DISOWN_EVERY: Duration = Duration::from_millis(50);

/// The inquiry to one peer.
#[derive(Debug, Default)]
struct Inquiry {
    /// The time of the next question, if there is doubt.
    due: Option<Instant>,
    /// Questions asked since there was last nothing to ask.
    asked_times: u32,
    /// The connection of a question under way, and the octets that came on it.
    connection: Option<ConnectionId>,
    reader: RecordReader,
    asked: Vec<FlowId>,
    /// The last flow asked about, if one question could not hold them all: the flows behind it are
    /// still to be asked about.
    behind: Option<FlowId>,
    /// Whether the last question was answered, so that the next one of the same round need not
    /// wait.
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
    /// Asks about a flow of `peer` that is in doubt, `after` now, unless it is being asked about or
    /// will be.
    pub(super) fn want(&mut self, now: Instant, peer: PathId, after: Duration) {
        let inquiry = self.peers.entry(peer).or_default();
        if inquiry.connection.is_none() && inquiry.due.is_none() {
            self.set_due(peer, Some(now + after));
        }
    }

    /// Begins again after a restart of the peer or the link's return: a question under way is void.
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
    /// Handles the return of a peer: an opener without a connection comes by itself, and the other
    /// flows are in doubt.
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
        // Each peer has one turn: its next question may be due now, too.
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
        // The return of the link begins the inquiry anew.
        if self.shared.endpoint.is_held(peer) {
            return;
        }
        let behind = self.inquiries.peers.get(&peer).and_then(|i| i.behind);
        let questions = self.questions(peer, behind);
        let Some(inquiry) = self.inquiries.peers.get_mut(&peer) else {
            return;
        };
        if questions.is_empty() {
            // The round is over. Flows that the peer has may still be in doubt.
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
        SpliceRecord::Ask(questions).encode(&mut octets);
        // A fresh connection has room for the question.
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
        // A question that could not be asked, or was not answered, is due again later.
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
            Ok(RecordPiece::Wait) => return,
            Ok(RecordPiece::Record(SpliceRecord::Gone(gone))) => gone.into_iter().collect(),
            // The peer cannot be asked: the next question is due later.
            Ok(RecordPiece::Record(_)) | Err(_) => {
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

    /// Answers a peer that asks which of its flows are known here.
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
        self.say_and_close(now, id, true, &SpliceRecord::Gone(gone));
    }

    /// In datagram mode: tells the sender of a message that its flow is not known here. Records
    /// that themselves say that the flow is over are not answered, or two gateways that forgot it
    /// would answer each other for ever.
    pub(super) fn disown(&mut self, now: Instant, peer: PathId, flow: FlowId, records: &[u8]) {
        let mut rest = records;
        let carries = matches!(SpliceRecord::take(&mut rest), Ok(SpliceRecord::Message(_)));
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
        SpliceRecord::Flow(flow).encode(&mut octets);
        SpliceRecord::Reset(ResetCode::PeerLost).encode(&mut octets);
        let _ = self.shared.endpoint.write_message(now, place, &octets);
        self.shared.endpoint.close(now, place);
    }
}
