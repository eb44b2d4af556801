//! Records that are sent: the opening, the answer, messages, and the last word.

use super::super::address::{FlowKind, Host};
use super::super::datagrams::cost;
use super::super::records::{Accepted, HEADER_BYTES, MESSAGE_HEADER_BYTES, Open, SpliceRecord};
use super::super::restored::Role;
use super::super::shared::Shared;
use super::{Association, LastWord, OPEN_EVERY, Phase, Way};
use crate::transport::aerotp::ConnectionId;
use crate::units::Instant;
use crate::wire::Mode;
use core::net::SocketAddr;

/// Octets of a tunnel's flow that wait while the link is down, unless one packet has more: a few packets, and 16 MiB in all
/// buckets of a class.
const TUNNEL_HELD_BYTES: usize = 16 << 10;
/// Octets that a message's part takes besides its own.
const PART_OVERHEAD: usize = HEADER_BYTES + MESSAGE_HEADER_BYTES;
/// Octets of a FLOW record.
const FLOW_BYTES: usize = HEADER_BYTES + 16;
/// Octets of a message that one record of a stream can carry.
const WHOLE_MESSAGE_MAX: usize = super::super::records::BODY_BYTES_MAX - MESSAGE_HEADER_BYTES;

impl Association {
    pub(in super::super) fn accept_datagram(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        message: &[u8],
    ) -> bool {
        let interval = self.queue_interval(shared);
        let max = self.waiting_max(shared, message);
        let counters = shared.class(self.class.id);
        if let Some(interval) = interval {
            self.outbox.drop_stale(now, interval, counters);
        }
        let taken = self.outbox.push(now, message, max, counters);
        self.note_activity(now);
        self.feed(now, shared);
        taken
    }

    /// The octets of this flow that may wait together with this message: no more than all flows leave free, so that a flow has the
    /// less the more the others have, and what is free is never gone (Choudhury and Hahne, as for credit). Those that have the
    /// most give way first. What a tunnel's hosts go on sending while the link is down is worth
    /// little once it is up again, and there may be as many flows as buckets.
    fn waiting_max(&self, shared: &Shared, message: &[u8]) -> usize {
        let free = (shared.config.waiting_memory.0).saturating_sub(shared.counters.waiting_bytes);
        let free = usize::try_from(free).unwrap_or(usize::MAX);
        let window = self.class.window.as_usize().min(free.max(cost(message)));
        let is_tunnel = matches!(self.destination.host, Host::Tunnel(_));
        if is_tunnel && shared.endpoint.is_held(self.peer) {
            window.min(TUNNEL_HELD_BYTES.max(cost(message)))
        } else {
            window
        }
    }

    fn open_record(&self) -> SpliceRecord<'static> {
        let window = u32::try_from(self.class.window.0).unwrap_or(u32::MAX);
        SpliceRecord::Open(Box::new(Open {
            flow: self.id,
            attempt: self.attempt,
            kind: FlowKind::Datagrams,
            resume: false,
            durable: false,
            again: None,
            refresh: self.answered,
            farewell: false,
            priority: self.class.priority,
            class: self.class.id,
            weight: self.class.weight,
            fec_words: self.class.fec_words,
            block: self.class.block,
            deadline: self.class.deadline,
            window,
            presumed: 0,
            received: 0,
            limit: 0,
            kept_from: 0,
            destination: self.destination.clone(),
        }))
    }

    fn accepted_record(bound: SocketAddr) -> SpliceRecord<'static> {
        SpliceRecord::Accepted(Accepted {
            received: 0,
            limit: 0,
            bound,
        })
    }

    /// Adds the opening, and the goal if there is one.
    fn write_opening(&self, out: &mut Vec<u8>) {
        self.open_record().encode(out);
        if let Some(thin) = self.goal_to_say() {
            SpliceRecord::Goal(thin).encode(out);
        }
    }

    /// Sends the opening first, where nothing that is sent is lost.
    pub(super) fn say_open(&mut self, now: Instant, shared: &mut Shared) {
        let (open, goal) = (self.open_record(), self.goal_to_say());
        let said = match &mut self.way {
            Way::Stream(link) => {
                link.send(now, &mut shared.endpoint, &open);
                if let Some(thin) = goal {
                    link.send(now, &mut shared.endpoint, &SpliceRecord::Goal(thin));
                }
                true
            }
            Way::AnyOrder { id, .. } => {
                let id = *id;
                let mut tpdu = Vec::new();
                self.write_opening(&mut tpdu);
                write(now, shared, id, &tpdu)
            }
            Way::Away | Way::Messages(_) => false,
        };
        if said {
            self.opened_at = Some(now);
        }
    }

    /// Sends as much as it can.
    pub(in super::super) fn feed(&mut self, now: Instant, shared: &mut Shared) {
        match self.way {
            Way::Away => {}
            Way::Stream(_) => self.feed_stream(now, shared),
            Way::Messages(id) | Way::AnyOrder { id, .. } => self.feed_messages(now, shared, id),
        }
    }

    fn feed_stream(&mut self, now: Instant, shared: &mut Shared) {
        let answer = self.take_answer();
        let deadline = self.class.deadline;
        let interval = self.queue_interval(shared);
        let counters = shared.counters.classes.entry(self.class.id).or_default();
        let Way::Stream(link) = &mut self.way else {
            return;
        };
        if let Some(bound) = answer {
            let record = Self::accepted_record(bound);
            link.send(now, &mut shared.endpoint, &record);
        }
        link.flush(now, &mut shared.endpoint);
        while link.is_clear() {
            self.outbox
                .drop_hopeless(now, deadline, WHOLE_MESSAGE_MAX, counters);
            if let Some(interval) = interval {
                self.outbox
                    .keep_short(now, &mut self.codel, interval, counters);
            }
            // A message of a stream has one part.
            let Some(message) = self.outbox.next(WHOLE_MESSAGE_MAX) else {
                break;
            };
            link.send(now, &mut shared.endpoint, &SpliceRecord::Message(message));
            self.outbox.sent(WHOLE_MESSAGE_MAX);
        }
        if let Phase::Parting(word) = self.phase
            && self.outbox.is_empty()
        {
            link.send(now, &mut shared.endpoint, &word.record());
            link.close(now, &mut shared.endpoint);
            if link.is_flushed() {
                self.gone = true;
            }
        }
    }

    fn take_answer(&mut self) -> Option<SocketAddr> {
        let answers = self.role == Role::Acceptor && self.phase == Phase::Open;
        let bound = self.bound.filter(|_| answers && self.owes_answer)?;
        self.owes_answer = false;
        Some(bound)
    }

    /// Puts the flow's name before the first record of the next TPDU.
    fn name_flow(&self, out: &mut Vec<u8>) {
        if self.class.mode == Mode::Datagram {
            SpliceRecord::Flow(self.id).encode(out);
        }
    }

    fn wants_open(&self, now: Instant) -> bool {
        let old = |at: Instant| now.saturating_since(at) >= OPEN_EVERY;
        let again = match self.way {
            // It is not lost.
            Way::AnyOrder { .. } => self.opened_at.is_none(),
            _ => !self.answered || self.opened_at.is_none_or(old),
        };
        self.role == Role::Opener && again
    }

    fn feed_messages(&mut self, now: Instant, shared: &mut Shared, id: ConnectionId) {
        let payload = shared.endpoint.payload_bytes(id).unwrap_or(0);
        let named = if self.class.mode == Mode::Datagram {
            FLOW_BYTES
        } else {
            0
        };
        let part_bytes = payload.saturating_sub(PART_OVERHEAD + named);
        if part_bytes == 0 {
            self.outbox.clear();
        }
        if let Some(bound) = self.take_answer() {
            let mut tpdu = Vec::new();
            self.name_flow(&mut tpdu);
            if let Some(thin) = self.class.thin_messages.filter(|_| self.owes_goal) {
                SpliceRecord::Goal(thin).encode(&mut tpdu);
            }
            Self::accepted_record(bound).encode(&mut tpdu);
            self.owes_answer = !write(now, shared, id, &tpdu);
            self.owes_goal &= self.owes_answer;
        }
        let deadline = self.late_after(shared);
        loop {
            let counters = shared.counters.classes.entry(self.class.id).or_default();
            self.outbox
                .drop_hopeless(now, deadline, part_bytes, counters);
            let since = self.outbox.first_taken_at().unwrap_or(now);
            let Some(part) = self.outbox.next(part_bytes) else {
                break;
            };
            let mut message = Vec::new();
            SpliceRecord::Message(part).encode(&mut message);
            let mut tpdu = Vec::new();
            let opens = self.wants_open(now);
            if opens {
                self.write_opening(&mut tpdu);
            } else {
                self.name_flow(&mut tpdu);
            }
            // An opening too long to share a TPDU has one of its own, before it.
            let shares = tpdu.len() + message.len() <= payload;
            if shares {
                tpdu.extend_from_slice(&message);
            }
            if !write_since(now, shared, (id, since), &tpdu) {
                break;
            }
            if opens {
                self.opened_at = Some(now);
            }
            if shares {
                self.outbox.sent(part_bytes);
            } else if !self.send_behind_opening(now, shared, (id, since), &message) {
                break;
            } else {
                self.outbox.sent(part_bytes);
            }
        }
        if let Phase::Parting(word) = self.phase
            && self.outbox.is_empty()
        {
            let mut tpdu = Vec::new();
            self.name_flow(&mut tpdu);
            word.record().encode(&mut tpdu);
            // A word would overtake messages that are being repaired; the end of the connection does not.
            let is_end = word == LastWord::End && matches!(self.way, Way::AnyOrder { .. });
            if is_end || write(now, shared, id, &tpdu) {
                shared.endpoint.close(now, id);
                self.gone = true;
            }
        }
    }

    fn send_behind_opening(
        &self,
        now: Instant,
        shared: &mut Shared,
        to: (ConnectionId, Instant),
        message: &[u8],
    ) -> bool {
        let mut tpdu = Vec::new();
        self.name_flow(&mut tpdu);
        tpdu.extend_from_slice(message);
        write_since(now, shared, to, &tpdu)
    }
}

/// Whether AeroTP took the TPDU. A TPDU that it can never take counts as taken, and lost. It is no message: it is never late.
fn write(now: Instant, shared: &mut Shared, id: ConnectionId, tpdu: &[u8]) -> bool {
    write_since(now, shared, (id, Instant::FAR_FUTURE), tpdu)
}

/// Does the same with a message that has waited since then.
fn write_since(
    now: Instant,
    shared: &mut Shared,
    (id, since): (ConnectionId, Instant),
    tpdu: &[u8],
) -> bool {
    let written = shared.endpoint.write_message_since(now, id, tpdu, since);
    written.unwrap_or(true)
}

impl LastWord {
    const fn record(self) -> SpliceRecord<'static> {
        match self {
            Self::End => SpliceRecord::End { total: 0 },
            Self::Refused(code) => SpliceRecord::Refused(code),
            Self::Reset(code) => SpliceRecord::Reset(code),
        }
    }
}
