//! One datagram flow at one gateway: a UDP association carried over AeroTP.
//!
//! In modes that deliver everything its records are a stream, like those of a TCP flow. In the
//! other modes each TPDU has whole records, any TPDU may be lost, and no record may depend on an
//! earlier one. So the opener repeats its opening until it is answered, and once a second from then
//! on: an acceptor that has restarted learns of the flow again. In datagram mode there is no
//! connection either, and each TPDU names its flow.
//!
//! The flow ends when the driver ends it, when the far side does, or when it carried nothing for
//! `datagram_idle_max`. Losing the last word to the link does no harm, because the other side is
//! then idle and ends by itself.

mod any_order;
mod doubt;
mod ending;
mod intake;
mod sending;

use super::address::{Destination, FlowId, Host};
use super::class::FlowClass;
use super::codes::{RefuseCode, ResetCode};
use super::datagrams::{Inbox, Outbox};
use super::event::{FlowEvent, OpenError};
use super::flow::connect;
use super::link::Link;
use super::records::{Open, RecordReader};
use super::restored::Role;
use super::shared::Shared;
use crate::machine::{Deadline, PathId};
use crate::timer::{TimerKind, TimerTable};
use crate::transport::aerotp::{ConnectionConfig, ConnectionId, ModeRules, Treatment};
use crate::tunnel::Codel;
use crate::units::{ByteCount, Duration, Instant};
use crate::wire::Mode;
use any_order::GivenUp;
use core::net::SocketAddr;

/// The time between repetitions of an opening that was answered.
const OPEN_EVERY: Duration = Duration::from_secs(1);

/// The round trips inside a tunnel for which a queue of its packets may stand. A sender that backs off by three tenths
/// (CUBIC) keeps the link busy meanwhile if the queue, a quarter of this, holds most of a round trip (ADR 0036).
const ROUND_TRIPS: u32 = 3;
/// The least interval: that of RFC 8289, section 4.2, twice, since what repair adds to round trips varies by as much.
const INTERVAL_MIN: Duration = Duration::from_millis(200);
/// The greatest one on links of a short round trip, and the multiple of the link's round trip that repair makes of one inside, at
/// most: what an outage added to round trips is no reason for a long queue.
const INTERVAL_MAX: Duration = Duration::from_secs(1);
const REPAIRED_ROUND_TRIPS: u32 = 2;

/// The interval where packets are there, in order, after `there`, and the shortest round trip of the link is `least`.
fn interval_of(there: Duration, least: Duration) -> Duration {
    // Packets wait for each other on the way back as they do on the way there.
    let inside = (there * 2).saturating_sub(least);
    let most = INTERVAL_MAX.max(least * REPAIRED_ROUND_TRIPS * ROUND_TRIPS);
    (inside * ROUND_TRIPS).clamp(INTERVAL_MIN, most)
}

/// The time that answers to a tunnel's packets wait for more. Packets inside come in both directions, TCP's with an answer of
/// their own for every second one, and each answer to these takes from the rate of what they answer (ADR 0036).
const TUNNEL_ANSWER_WAIT: Duration = Duration::from_millis(10);

/// The way that records travel.
#[derive(Debug)]
enum Way {
    /// No connection at present.
    Away,
    /// A stream over a connection.
    Stream(Link),
    /// Whole records in each TPDU of a connection that repairs what it loses. They come in any order once both sides
    /// said their goal; until then the reader takes them for a stream.
    AnyOrder {
        id: ConnectionId,
        reader: RecordReader,
    },
    /// Whole records in each TPDU of this connection, or of this place to send from.
    Messages(ConnectionId),
}

/// The phase of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Opening,
    Requested,
    Open,
    /// The driver no longer knows it; the far side is to be told.
    Parting(LastWord),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastWord {
    End,
    Refused(RefuseCode),
    Reset(ResetCode),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum AssociationTimer {
    Answer,
    Idle,
    Parts,
    Reconnect,
}

impl TimerKind for AssociationTimer {
    const COUNT: usize = 4;
    fn index(self) -> usize {
        self as usize
    }
    fn why(self) -> &'static str {
        match self {
            Self::Answer => "datagram flow not answered",
            Self::Idle => "datagram flow idle",
            Self::Parts => "parts of a message missing",
            Self::Reconnect => "datagram flow connects again",
        }
    }
}

/// A datagram flow.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each one bit of the state"
)]
pub(super) struct Association {
    id: FlowId,
    peer: PathId,
    role: Role,
    destination: Destination,
    class: FlowClass,
    attempt: u64,
    phase: Phase,
    way: Way,
    bound: Option<SocketAddr>,
    /// Opener: the acceptor was heard since the present connection began.
    answered: bool,
    opened_at: Option<Instant>,
    /// Acceptor: an opening arrived that is to be answered.
    owes_answer: bool,
    /// Acceptor: the opener asked for any order, and is to hear that it has it.
    owes_goal: bool,
    /// The messages that the present connection gave up, as far as they are counted.
    given_up: GivenUp,
    outbox: Outbox,
    /// Octets of the outbox that are counted among those of all flows.
    counted_bytes: usize,
    /// The rule for the queue of a tunnel's packets.
    codel: Codel,
    inbox: Inbox,
    last_active: Instant,
    /// The far side may have forgotten the flow while the link was down, and was not heard since.
    doubted: bool,
    reconnect_due: bool,
    timers: TimerTable<AssociationTimer>,
    gone: bool,
}

/// TPDUs of a flow that may wait in AeroTP, where no deadline drops them.
const UNSENT_TPDUS: usize = 2;

fn unsent_max(shared: &Shared) -> usize {
    shared.config.connection.tpdu_bytes_max * UNSENT_TPDUS
}

impl Association {
    pub(super) fn opener(
        now: Instant,
        shared: &Shared,
        id: FlowId,
        peer: PathId,
        destination: Destination,
        class: FlowClass,
    ) -> Self {
        let mut association = Self {
            id,
            peer,
            role: Role::Opener,
            destination,
            class,
            attempt: 0,
            phase: Phase::Opening,
            way: Way::Away,
            bound: None,
            answered: false,
            opened_at: None,
            owes_answer: false,
            owes_goal: false,
            given_up: GivenUp::default(),
            outbox: Outbox::default(),
            counted_bytes: 0,
            codel: Codel::default(),
            inbox: Inbox::default(),
            last_active: now,
            doubted: false,
            reconnect_due: false,
            timers: TimerTable::default(),
            gone: false,
        };
        association.timers.set(
            AssociationTimer::Idle,
            now + shared.config.datagram_idle_max,
        );
        association
    }

    pub(super) fn requested(
        now: Instant,
        shared: &Shared,
        peer: PathId,
        mode: Mode,
        open: &Open,
    ) -> Self {
        let class = FlowClass {
            mode,
            priority: open.priority,
            id: open.class,
            weight: open.weight,
            deadline: open.deadline,
            fec_words: open.fec_words,
            block: open.block,
            thin: None,
            thin_messages: None,
            window: ByteCount(u64::from(open.window)),
            resume: false,
            durable: false,
        };
        let destination = open.destination.clone();
        let mut association = Self::opener(now, shared, open.flow, peer, destination, class);
        association.role = Role::Acceptor;
        association.phase = Phase::Requested;
        association.attempt = open.attempt;
        association
            .timers
            .set(AssociationTimer::Answer, now + shared.config.answer_within);
        association
    }

    pub(super) const fn id(&self) -> FlowId {
        self.id
    }

    pub(super) const fn peer(&self) -> PathId {
        self.peer
    }

    pub(super) const fn role(&self) -> Role {
        self.role
    }

    pub(super) const fn attempt(&self) -> u64 {
        self.attempt
    }

    pub(super) const fn class(&self) -> &FlowClass {
        &self.class
    }

    pub(super) const fn connection(&self) -> Option<ConnectionId> {
        match &self.way {
            Way::Away => None,
            Way::Stream(link) => Some(link.id),
            Way::Messages(id) | Way::AnyOrder { id, .. } => Some(*id),
        }
    }

    pub(super) const fn is_alive(&self) -> bool {
        !matches!(self.phase, Phase::Parting(_)) && !self.gone
    }

    pub(super) const fn is_gone(&self) -> bool {
        self.gone
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        self.timers.next_deadline()
    }

    fn way(&self, id: ConnectionId) -> Way {
        if self.is_in_any_order() {
            let reader = RecordReader::default();
            Way::AnyOrder { id, reader }
        } else if ModeRules::of(self.class.mode).complete {
            Way::Stream(Link::new(id))
        } else {
            Way::Messages(id)
        }
    }

    fn connection_config(&self, shared: &Shared) -> ConnectionConfig {
        let mut ack = shared.config.connection.ack;
        if let Host::Tunnel(_) = self.destination.host {
            ack.flush = ack.flush.max(TUNNEL_ANSWER_WAIT);
        }
        ConnectionConfig {
            mode: self.class.mode,
            priority: self.class.priority,
            ack,
            share: self.class.share(),
            fec_words: self.class.fec_words,
            block: self.class.block,
            unsent_bytes_max: unsent_max(shared),
            thin: self
                .class
                .thin_messages_in_order(shared.config.connection.thin),
            ..shared.config.connection
        }
    }

    /// Opener: opens a connection, or in datagram mode a place to send from.
    pub(super) fn connect(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        attempt: u64,
    ) -> Result<(), OpenError> {
        let config = self.connection_config(shared);
        let id = connect(now, shared, self.peer, config)?;
        self.attempt = attempt;
        self.answered = false;
        self.opened_at = None;
        self.way = self.way(id);
        self.outbox.begin_again();
        self.ask_for_any_order(now, shared);
        self.say_open(now, shared);
        self.feed(now, shared);
        Ok(())
    }

    /// Acceptor: attaches the flow to connection `id`, on which the opener came; without one, in
    /// datagram mode.
    pub(super) fn attach(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        id: Option<ConnectionId>,
        open: &Open,
    ) {
        if let Some(old) = self.connection().filter(|_| id.is_some()) {
            shared.endpoint.abort(now, old);
            self.way = Way::Away;
        }
        self.attempt = open.attempt;
        let id = match id {
            Some(id) => {
                let treatment = Treatment {
                    priority: self.class.priority,
                    share: self.class.share(),
                    fec_words: self.class.fec_words,
                    block: self.class.block,
                    unsent_bytes_max: unsent_max(shared),
                };
                let treated = shared.endpoint.treat(now, id, treatment);
                treated.ok().map(|_| id)
            }
            None => self.connection().or_else(|| {
                let config = self.connection_config(shared);
                connect(now, shared, self.peer, config).ok()
            }),
        };
        let Some(id) = id else {
            self.fail(now, shared, ResetCode::Protocol);
            return;
        };
        self.way = self.way(id);
        self.outbox.begin_again();
        self.owes_answer |= !open.refresh;
        self.begin_any_order(now, shared);
        self.feed(now, shared);
    }

    /// Handles that the far side's numbers and stamps come from another process from now on.
    pub(super) fn on_far_restarted(&mut self, shared: &mut Shared) {
        let counters = shared.counters.classes.entry(self.class.id).or_default();
        self.inbox.begin_again(&mut shared.pool, counters);
    }

    /// Adds the inbox's news to the next report to the peer.
    fn tell_received(&mut self, shared: &mut Shared) {
        let news = self.inbox.take_news();
        shared.reports.on_received(self.peer, self.class.id, news);
    }

    /// Whether it is time for an opener to connect again; `true` is returned once.
    pub(super) fn take_reconnect(&mut self) -> bool {
        let away = matches!(self.way, Way::Away);
        core::mem::take(&mut self.reconnect_due) && away && self.is_alive()
    }

    pub(super) fn pause(&mut self, now: Instant, shared: &Shared) {
        let at = now + shared.config.reconnect_pause;
        self.timers.set(AssociationTimer::Reconnect, at);
    }

    /// The interval of the rule for the queue, where there is one: three round trips inside the tunnel.
    fn queue_interval(&self, shared: &Shared) -> Option<Duration> {
        let Host::Tunnel(_) = self.destination.host else {
            return None;
        };
        let id = self.connection();
        let there = id.and_then(|id| shared.endpoint.in_order_after(id));
        let least = id.and_then(|id| shared.endpoint.rtt_min(id));
        Some(interval_of(
            there.unwrap_or_default(),
            least.unwrap_or_default(),
        ))
    }

    fn note_activity(&mut self, now: Instant) {
        self.last_active = now;
    }

    fn parts_wait(&self, shared: &Shared) -> Duration {
        self.class.deadline.unwrap_or(shared.config.reassembly_wait)
    }

    pub(super) fn handle_deadline(&mut self, now: Instant, shared: &mut Shared) {
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                AssociationTimer::Answer => {
                    let code = ResetCode::Timeout;
                    self.refuse(now, shared, RefuseCode::Timeout);
                    shared.tell(FlowEvent::Reset {
                        flow: self.id,
                        code,
                    });
                }
                AssociationTimer::Idle => self.on_idle(now, shared),
                AssociationTimer::Parts => {
                    let wait = self.parts_wait(shared);
                    let counters = shared.counters.classes.entry(self.class.id).or_default();
                    self.inbox.expire(now, wait, &mut shared.pool, counters);
                    self.tell_received(shared);
                }
                AssociationTimer::Reconnect => self.reconnect_due = true,
            }
        }
    }

    fn on_idle(&mut self, now: Instant, shared: &mut Shared) {
        let at = self.last_active + shared.config.datagram_idle_max;
        if matches!(self.phase, Phase::Parting(_)) {
            self.leave(now, shared);
        } else if at > now {
            self.timers.set(AssociationTimer::Idle, at);
        } else {
            shared.class(self.class.id).flows_finished += 1;
            shared.tell(FlowEvent::Closed(self.id));
            self.part(now, shared, LastWord::End);
        }
    }

    /// Counts the outbox among those of all flows; that of a flow that is gone holds nothing.
    fn count_waiting(&mut self, shared: &mut Shared) {
        let now = if self.gone {
            0
        } else {
            self.outbox.held_bytes()
        };
        let before = core::mem::replace(&mut self.counted_bytes, now);
        let waiting = &mut shared.counters.waiting_bytes;
        *waiting = (*waiting + now as u64).saturating_sub(before as u64);
    }

    /// Brings the state up to date after an input. Called after each.
    pub(super) fn settle(&mut self, shared: &mut Shared) {
        self.count_given_up(shared);
        self.count_waiting(shared);
        if self.is_alive() {
            match self.inbox.expires_at(self.parts_wait(shared)) {
                Some(at) => self.timers.set(AssociationTimer::Parts, at),
                None => self.timers.stop(AssociationTimer::Parts),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_tunnel_s_queue_follows_a_long_link_and_no_outage() {
        let millis = Duration::from_millis;
        assert_eq!(interval_of(Duration::ZERO, Duration::ZERO), INTERVAL_MIN);
        assert_eq!(interval_of(millis(125), millis(40)), millis(630));
        assert_eq!(interval_of(millis(700), millis(600)), millis(2_400));
        assert_eq!(interval_of(millis(9_000), millis(40)), INTERVAL_MAX);
        assert_eq!(interval_of(millis(9_000), millis(600)), millis(3_600));
    }
}
