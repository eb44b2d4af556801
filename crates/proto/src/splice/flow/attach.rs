//! The connections of a flow: opened, accepted, lost and replaced.

use super::super::address::{Destination, FlowId, FlowKind};
use super::super::class::FlowClass;
use super::super::codes::{RefuseCode, ResetCode};
use super::super::credit::FLOOR_BYTES;
use super::super::event::{FlowEvent, OpenError};
use super::super::graves::Outcome;
use super::super::link::Link;
use super::super::records::{Accepted, Hearer, Open, SpliceRecord};
use super::super::restored::{Restored, Role};
use super::super::shared::Shared;
use super::super::stream::{Incoming, Outgoing, Stream};
use super::timers::FlowTimer;
use super::{Flow, Phase};
use crate::machine::PathId;
use crate::timer::TimerTable;
use crate::transport::aerotp::{
    AckScheme, CloseReason, ConnectError, ConnectionConfig, ConnectionId, ModeRules, Treatment,
};
use crate::units::Instant;
use crate::wire::{Mode, Port};

/// Room beside the window, for headers and for records that are not data.
const BUFFER_BESIDE_WINDOW: usize = 64 << 10;
/// The divisor of the memory that gives the first octets of a flow. With it all flows' first octets
/// together stay within the part that an acceptor with equal settings keeps for them, even if none
/// is read: the sum over n flows of 1/n grows as slowly as the logarithm of their number.
const PRESUMED_SHARE: u64 = 32;
/// The number of times that the pause between two tries to connect doubles.
const PAUSE_DOUBLINGS_MAX: u32 = 5;

impl Flow {
    /// A flow that a client here asks for.
    pub(in super::super) fn opener(
        now: Instant,
        shared: &Shared,
        flow: FlowId,
        peer: PathId,
        destination: Destination,
        class: FlowClass,
    ) -> Self {
        let asked = Restored {
            flow,
            peer,
            role: Role::Opener,
            destination,
            class,
            bound: None,
            received: 0,
            kept_from: 0,
            accepted: 0,
        };
        let mut flow = Self::restored(now, asked);
        flow.hearer = None;
        let config = &shared.config;
        let patience = config.connection.give_up_after + config.answer_within;
        flow.timers.set(FlowTimer::Answer, now + patience);
        flow
    }

    /// A flow that a peer asks for.
    pub(in super::super) fn requested(
        now: Instant,
        shared: &mut Shared,
        peer: PathId,
        mode: Mode,
        open: &Open,
    ) -> Result<Self, RefuseCode> {
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
            window: crate::units::ByteCount(u64::from(open.window)),
            resume: open.resume,
            durable: open.durable,
        };
        let restored = Restored {
            flow: open.flow,
            peer,
            role: Role::Acceptor,
            destination: open.destination.clone(),
            class,
            bound: None,
            received: 0,
            kept_from: 0,
            accepted: 0,
        };
        let mut flow = Self::restored(now, restored);
        let presumed = u64::from(open.presumed);
        if !flow
            .stream
            .incoming
            .credit
            .presume(&mut shared.pool, presumed)
        {
            return Err(RefuseCode::TooMany);
        }
        flow.timers
            .set(FlowTimer::Answer, now + shared.config.answer_within);
        Ok(flow)
    }

    /// A flow as its driver kept it, without a connection.
    pub(in super::super) fn restored(now: Instant, restored: Restored) -> Self {
        let Restored {
            flow,
            peer,
            role,
            destination,
            class,
            bound,
            received,
            kept_from,
            accepted,
        } = restored;
        let phase = match (role, bound) {
            (_, Some(_)) => Phase::Open,
            (Role::Opener, None) => Phase::Opening,
            (Role::Acceptor, None) => Phase::Requested,
        };
        Self {
            id: flow,
            peer,
            role,
            destination,
            class,
            attempt: 0,
            hearer: Some(Hearer::Unknown),
            not_left: None,
            far_is_older: false,
            phase,
            link: None,
            stream: Stream {
                out: Outgoing::new(kept_from, accepted, kept_from),
                incoming: Incoming::new(received),
            },
            bound,
            end_is_heard: false,
            stopped: false,
            far_stopped: false,
            blocked: true,
            doubted: false,
            resumes_untold: 0,
            reconnects: 0,
            reconnect_due: false,
            last_active: now,
            timers: TimerTable::default(),
            gone: false,
        }
    }

    fn connection_config(&self, shared: &Shared) -> ConnectionConfig {
        let base = shared.config.connection;
        let window = usize::try_from(self.class.window_most()).unwrap_or(usize::MAX);
        ConnectionConfig {
            mode: self.class.mode,
            priority: self.class.priority,
            share: self.class.share(),
            fec_words: self.class.fec_words,
            block: self.class.block,
            send_buffer_bytes: window
                .saturating_add(BUFFER_BESIDE_WINDOW)
                .min(base.send_buffer_bytes),
            unsent_bytes_max: shared.config.unsent_max.as_usize(),
            thin: self.class.thin_stream(base.thin),
            ..base
        }
    }

    /// Opener: begins a connection with the opening. `presumed` octets may follow it at once, if it
    /// is the first.
    pub(in super::super) fn connect(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        attempt: u64,
        presumed: u64,
    ) -> Result<(), OpenError> {
        let config = self.connection_config(shared);
        let id = connect(now, shared, self.peer, config)?;
        self.attempt = attempt;
        self.note_opening_left(shared);
        let again = self.hearer_to_say();
        if again.is_none() || self.not_left.is_some() {
            self.not_left = Some(id);
        }
        self.hearer.get_or_insert(Hearer::Present);
        let window = self.promised(shared);
        let incoming = &mut self.stream.incoming;
        let limit = if matches!(self.phase, Phase::Ending(_)) {
            incoming.credit.limit()
        } else {
            incoming.credit.offer(&mut shared.pool, window)
        };
        if again.is_none() {
            self.stream.out = Outgoing::new(0, 0, presumed);
            self.stream.out.set_ready(true);
        }
        let presumed = if again.is_some() { 0 } else { presumed };
        let open = Open {
            flow: self.id,
            attempt,
            kind: FlowKind::Stream,
            resume: self.class.resume,
            durable: self.class.durable,
            again,
            refresh: false,
            farewell: matches!(self.phase, Phase::Ending(_)),
            priority: self.class.priority,
            class: self.class.id,
            weight: self.class.weight,
            fec_words: self.class.fec_words,
            block: self.class.block,
            deadline: self.class.deadline,
            window: u32::try_from(window).unwrap_or(u32::MAX),
            presumed: u32::try_from(presumed).unwrap_or(u32::MAX),
            received: self.stream.incoming.received(),
            limit,
            kept_from: self.stream.out.delivered(),
            destination: self.destination.clone(),
        };
        self.link = Some(Link::new(id));
        self.doubted = false;
        self.send(now, shared, &SpliceRecord::Open(Box::new(open)));
        let follows_goals = ModeRules::of(self.class.mode).acks == AckScheme::Aggregated;
        let goal = self.class.thin.and_then(|_| self.class.thin_stream(None));
        if let Some(thin) = goal.filter(|_| follows_goals) {
            self.send(now, shared, &SpliceRecord::Goal(thin));
        }
        if let Phase::Ending(outcome) = self.phase {
            self.say_last_word(now, shared, outcome);
        }
        Ok(())
    }

    /// The next opening's field on who may have heard the openings before.
    pub(super) fn hearer_to_say(&self) -> Option<Hearer> {
        self.hearer.map(|hearer| match self.phase {
            _ if self.far_is_older => Hearer::Present,
            Phase::Open => Hearer::Answered,
            _ => hearer,
        })
    }

    /// Notes whether an opening has left by now: before that nobody has heard one, whoever
    /// restarts.
    fn note_opening_left(&mut self, shared: &Shared) {
        let has_left = |id| {
            let counters = shared.endpoint.counters(id);
            counters.is_none_or(|counters| counters.sent_tpdus.iter().any(|sent| *sent > 0))
        };
        self.not_left.take_if(|id| has_left(*id));
    }

    /// Handles a restart of the acceptor: an opening that left may have been heard by an earlier
    /// start.
    pub(in super::super) fn note_far_restart(&mut self, shared: &Shared) {
        // The acceptor may be of a later version now.
        self.far_is_older = false;
        self.note_opening_left(shared);
        if self.not_left.is_none() && self.hearer.is_some() {
            self.hearer = Some(Hearer::Earlier);
        }
    }

    /// The number of octets that an opener may send before it is answered: the more flows, the
    /// fewer octets.
    pub(in super::super) fn presumption(&self, shared: &Shared) -> u64 {
        let flows = shared.counters.flows_now.max(1);
        let share = shared.config.receive_memory.0 / (PRESUMED_SHARE * flows);
        let most = shared.config.first_credit.0.min(self.class.window.0);
        share.clamp(FLOOR_BYTES.min(most), most)
    }

    /// Acceptor: attaches the flow to connection `id`, on which the opener came with `open`. That
    /// opening is newer than the one before.
    pub(in super::super) fn attach(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        id: ConnectionId,
        open: &Open,
    ) {
        self.drop_link(now, shared);
        let treatment = Treatment {
            priority: self.class.priority,
            share: self.class.share(),
            fec_words: self.class.fec_words,
            block: self.class.block,
            unsent_bytes_max: shared.config.unsent_max.as_usize(),
        };
        let treated = shared.endpoint.treat(now, id, treatment);
        self.follow_goal(now, shared, id);
        self.attempt = open.attempt;
        self.link = Some(Link::new(id));
        self.doubted = false;
        self.timers.stop(FlowTimer::Away);
        self.stream.out.set_ready(false);
        // An opener that was never answered sends from the start, at once. The acceptor may have
        // heard it before its restart.
        let first = if open.again.is_some() {
            self.stream.incoming.received()
        } else {
            0
        };
        self.stream.incoming.begin_at(first);
        match (self.phase, treated) {
            (Phase::Ending(outcome), _) => {
                self.say_last_word(now, shared, outcome);
                return;
            }
            (_, Err(_)) => {
                self.fail(now, shared, ResetCode::Protocol);
                return;
            }
            _ => {}
        }
        if self.stream.out.go_on(open.received, open.limit).is_err() {
            self.fail(now, shared, ResetCode::CustodyLost);
            return;
        }
        self.stream.out.set_ready(false);
        if self.phase == Phase::Open {
            self.answer(now, shared);
            shared.class(self.class.id).resumed += 1;
            self.tell_resume(now, shared);
        }
    }

    /// Repairs the way back as the opener asked for.
    pub(super) fn follow_goal(&self, now: Instant, shared: &mut Shared, id: ConnectionId) {
        if let Some(thin) = self.class.thin_stream(None) {
            shared.endpoint.allow_thin(now, id, thin);
        }
    }

    fn tell_resume(&mut self, now: Instant, shared: &mut Shared) {
        self.note_activity(now, shared);
        // The last report may have been lost with the connection that carried it.
        self.report(now, shared);
        self.resumes_untold += 1;
        shared.tell(FlowEvent::Resume {
            flow: self.id,
            from: self.stream.out.accepted(),
        });
        self.say_end(now, shared);
        self.say_stop(now, shared);
    }

    /// Acceptor: sends ACCEPTED on the present connection.
    pub(super) fn answer(&mut self, now: Instant, shared: &mut Shared) {
        let Some(bound) = self.bound else { return };
        let window = self.promised(shared);
        let incoming = &mut self.stream.incoming;
        let limit = incoming.credit.offer(&mut shared.pool, window);
        let accepted = Accepted {
            received: self.stream.incoming.received(),
            limit,
            bound,
        };
        if self.link.is_some() {
            self.send(now, shared, &SpliceRecord::Accepted(accepted));
            self.stream.out.set_ready(true);
        }
    }

    /// Opener: notes that the acceptor is connected.
    pub(super) fn on_accepted(&mut self, now: Instant, shared: &mut Shared, accepted: &Accepted) {
        self.timers.stop(FlowTimer::Away);
        self.reconnects = 0;
        let out = &mut self.stream.out;
        let resumes = !out.is_ready();
        let agreed = if resumes {
            out.go_on(accepted.received, accepted.limit)
        } else {
            out.on_delivered(0, accepted.limit).map(|_| ())
        };
        if agreed.is_err() {
            self.fail(now, shared, ResetCode::CustodyLost);
            return;
        }
        if self.phase == Phase::Opening {
            self.phase = Phase::Open;
            self.bound = Some(accepted.bound);
            self.timers.stop(FlowTimer::Answer);
            shared.tell(FlowEvent::Connected {
                flow: self.id,
                bound: accepted.bound,
            });
        }
        self.note_activity(now, shared);
        if resumes {
            shared.class(self.class.id).resumed += 1;
            self.tell_resume(now, shared);
        }
    }

    /// Releases the present connection, for which the far side has, or will have, no use.
    pub(in super::super) fn drop_link(&mut self, now: Instant, shared: &mut Shared) {
        if let Some(link) = self.link.take() {
            shared.endpoint.abort(now, link.id);
        }
    }

    /// Handles the end of the connection.
    pub(in super::super) fn on_connection_closed(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        why: CloseReason,
    ) {
        self.link = None;
        match self.phase {
            Phase::Ending(_) => self.on_ending_closed(now, shared, why),
            _ if self.class.resume => self.go_away(now, shared),
            Phase::Opening => {
                self.fail_opening(now, shared, RefuseCode::Unreachable);
            }
            Phase::Requested | Phase::Open => self.fail(now, shared, ResetCode::PeerLost),
        }
    }

    /// Leaves the flow without a connection for now.
    pub(in super::super) fn go_away(&mut self, now: Instant, shared: &mut Shared) {
        self.stream.out.set_ready(false);
        self.timers
            .set_if_idle(FlowTimer::Away, now + shared.config.resume_within);
        self.timers.stop(FlowTimer::Report);
        if self.role == Role::Opener {
            self.pause(now, shared);
        }
    }

    /// Opener: waits before the next try to connect.
    pub(in super::super) fn pause(&mut self, now: Instant, shared: &Shared) {
        let doublings = self.reconnects.min(PAUSE_DOUBLINGS_MAX);
        self.reconnects = self.reconnects.saturating_add(1);
        let pause = shared.config.reconnect_pause * (1 << doublings);
        self.timers.set(FlowTimer::Reconnect, now + pause);
    }

    /// Whether it is time for an opener to connect again; `true` is returned once.
    pub(in super::super) fn take_reconnect(&mut self) -> bool {
        let due = self.reconnect_due && self.link.is_none() && !self.gone;
        self.reconnect_due = false;
        due
    }

    /// Tells the flow's outcome on a new connection.
    pub(super) fn say_last_word(&mut self, now: Instant, shared: &mut Shared, outcome: Outcome) {
        let record = match outcome {
            Outcome::Finished if self.role == Role::Acceptor => SpliceRecord::Finished,
            Outcome::Finished => {
                let total = self.stream.out.accepted();
                self.send(now, shared, &SpliceRecord::End { total });
                let offset = self.stream.incoming.credit.delivered();
                let limit = self.stream.incoming.credit.limit();
                SpliceRecord::Delivered(super::Delivered { offset, limit })
            }
            Outcome::Refused(code) => SpliceRecord::Refused(code),
            Outcome::Reset(code) => SpliceRecord::Reset(code),
        };
        self.send(now, shared, &record);
        if let Some(link) = &mut self.link {
            link.close(now, &mut shared.endpoint);
        }
    }
}

/// Connects to one of the peer's ports, or to the next one if the pairs of ports are used up.
pub(in super::super) fn connect(
    now: Instant,
    shared: &mut Shared,
    peer: PathId,
    config: ConnectionConfig,
) -> Result<ConnectionId, OpenError> {
    for i in 0..shared.config.ports {
        let port = Port(shared.config.port.0.saturating_add(i));
        match shared.endpoint.connect(now, peer, port, config) {
            Ok(id) => return Ok(id),
            Err(ConnectError::TooMany(_)) => {}
            Err(ConnectError::TooMuchHeld(_)) => break,
            Err(ConnectError::Config(error)) => return Err(error.into()),
        }
    }
    Err(OpenError::TooMany)
}
