//! One flow at one gateway: its phase, its connection over AeroTP, and the effect of both on its octets.
//!
//! # Phases and their exits
//! | phase | left by | at the latest after |
//! |---|---|---|
//! | opening (opener) | ACCEPTED, REFUSED, RESET, a lost connection | patience with the link + `answer_within` |
//! | requested (acceptor) | the driver's answer, RESET, a lost connection | `answer_within` |
//! | open | both directions complete, RESET, a lost connection | idle for `stream_idle_max` or `datagram_idle_max` |
//! | away (no connection) | a new connection | `resume_within` |
//! | ending | the connection's orderly end | patience with the link |
//!
//! Half-closing is no phase of its own: each direction of an open stream has its own end.

mod attach;
mod doubt;
mod driver;
mod ending;
mod records;
mod timers;

pub(super) use attach::connect;

use super::address::{Destination, FlowId};
use super::class::FlowClass;
use super::codes::{RefuseCode, ResetCode};
use super::event::FlowEvent;
use super::graves::Outcome;
use super::link::Link;
use super::records::{Delivered, Hearer, SpliceRecord};
use super::restored::Role;
use super::shared::Shared;
use super::stream::Stream;
use crate::machine::{Deadline, PathId};
use crate::timer::TimerTable;
use crate::transport::aerotp::ConnectionId;
use crate::units::{Duration, Instant};
use core::net::SocketAddr;
use timers::FlowTimer;

/// The octets that the far side is promised for each that arrived, where the window may grow.
const GROWS_WITH_ARRIVED: u64 = 8;
/// The part of the first promise that is much behind a loss.
const MUCH_AHEAD_PART: u64 = 16;
/// The least time to a report that follows another for what arrived behind a loss.
const REPORT_AGAIN_MIN: Duration = Duration::from_millis(1);

/// The phase of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Opener: the flow is asked for, and not answered.
    Opening,
    /// Acceptor: the driver has to answer.
    Requested,
    /// Octets are carried.
    Open,
    /// The driver has heard, or said, the last word; the far side may still have to hear it.
    Ending(Outcome),
}

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each one bit of the state"
)]
pub(super) struct Flow {
    id: FlowId,
    peer: PathId,
    role: Role,
    destination: Destination,
    class: FlowClass,
    /// The number of the opening with which the present connection began.
    attempt: u64,
    /// Opener: the acceptor's start that may have heard an earlier opening; `None` if there was no
    /// earlier one.
    hearer: Option<Hearer>,
    /// Opener: the connection of an opening that was not seen to leave, if no earlier opening has left.
    not_left: Option<ConnectionId>,
    /// Opener: the acceptor's version takes no field on who may have heard an opening.
    far_is_older: bool,
    phase: Phase,
    link: Option<Link>,
    stream: Stream,
    bound: Option<SocketAddr>,
    /// The far side said the last word, or has confirmed ours.
    end_is_heard: bool,
    /// The local connection is gone, and octets that come for it reach nobody.
    stopped: bool,
    /// The far side's local connection is gone.
    far_stopped: bool,
    /// The driver was told, or could see, that there is no capacity.
    blocked: bool,
    /// The far side may have forgotten the flow while the link was down, and was not heard since.
    doubted: bool,
    /// `Resume` events that the driver has not fetched: until then it would continue at the wrong
    /// place.
    resumes_untold: u32,
    reconnects: u32,
    /// Opener: the pause before the next connection is over.
    reconnect_due: bool,
    last_active: Instant,
    timers: TimerTable<FlowTimer>,
    gone: bool,
}

impl Flow {
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

    pub(super) fn connection(&self) -> Option<ConnectionId> {
        self.link.as_ref().map(|link| link.id)
    }

    /// Whether the driver still knows the flow.
    pub(super) const fn is_alive(&self) -> bool {
        !matches!(self.phase, Phase::Ending(_))
    }

    /// Whether the splicer may forget the flow.
    pub(super) const fn is_gone(&self) -> bool {
        self.gone
    }

    /// The answer to a later question about this flow.
    pub(super) const fn outcome(&self) -> Option<Outcome> {
        match self.phase {
            Phase::Ending(outcome) if self.class.resume => Some(outcome),
            _ => None,
        }
    }

    /// Whether the far side knows that the flow ended.
    pub(super) const fn end_is_heard(&self) -> bool {
        self.end_is_heard
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        self.timers.next_deadline()
    }

    fn send(&mut self, now: Instant, shared: &mut Shared, record: &SpliceRecord<'_>) {
        if let Some(link) = &mut self.link {
            link.send(now, &mut shared.endpoint, record);
        }
    }

    /// Reports the octets that the local host has, and gives credit.
    fn report(&mut self, now: Instant, shared: &mut Shared) {
        self.timers.stop(FlowTimer::Report);
        let window = self.promised(shared);
        let (offset, limit) = self.stream.incoming.credit.grant(&mut shared.pool, window);
        self.send(
            now,
            shared,
            &SpliceRecord::Delivered(Delivered { offset, limit }),
        );
    }

    /// Continues now that AeroTP has room again.
    pub(super) fn on_room(&mut self, now: Instant, shared: &mut Shared) {
        if let Some(link) = &mut self.link {
            link.flush(now, &mut shared.endpoint);
        }
    }

    /// The octets beyond those delivered that the far side is promised: the window, and [`GROWS_WITH_ARRIVED`] for each that arrived
    /// before where it may grow. A flow that carries much soon has a window for any link, and a short one takes no memory.
    fn promised(&self, shared: &Shared) -> u64 {
        let delivered = self.stream.incoming.credit.delivered();
        let arrived = delivered.saturating_add(self.ahead(shared));
        let window = self.class.window.0;
        let promised = window.saturating_add(arrived.saturating_mul(GROWS_WITH_ARRIVED));
        promised.min(self.class.window_most())
    }

    /// The octets that arrived behind a loss and cannot be delivered yet.
    fn ahead(&self, shared: &Shared) -> u64 {
        let link = self.link.as_ref();
        let ahead = link.and_then(|link| shared.endpoint.ahead_bytes(link.id));
        ahead.unwrap_or_default() as u64
    }

    /// Reports when it is time. Once much has arrived behind a loss, the promise may be used up before the loss is mended, which
    /// takes a round trip: then another report follows soon, for as long as each can promise more.
    fn report_in_time(&mut self, now: Instant, shared: &mut Shared) {
        let before = self.stream.incoming.credit.limit();
        self.report_if_possible(now, shared);
        let grew = self.stream.incoming.credit.limit() > before;
        if grew && self.ahead(shared) >= self.class.window.0 / MUCH_AHEAD_PART {
            let at = now + shared.config.report_after.max(REPORT_AGAIN_MIN);
            self.timers.set_if_idle(FlowTimer::Report, at);
        }
    }

    fn say_end(&mut self, now: Instant, shared: &mut Shared) {
        if let Some(total) = self.stream.out.take_end() {
            self.send(now, shared, &SpliceRecord::End { total });
        }
    }

    fn say_stop(&mut self, now: Instant, shared: &mut Shared) {
        if self.stopped {
            self.send(now, shared, &SpliceRecord::Stop);
        }
    }

    fn note_activity(&mut self, now: Instant, shared: &Shared) {
        self.last_active = now;
        self.timers
            .set_if_idle(FlowTimer::Idle, now + shared.config.stream_idle_max);
    }

    /// Brings the flow as a whole up to date after an input. Called after each.
    pub(super) fn settle(&mut self, now: Instant, shared: &mut Shared) {
        if !self.is_alive() {
            return;
        }
        if self.stopped && self.far_stopped {
            // Nobody is left at either side to deliver octets to.
            self.fail(now, shared, ResetCode::Reset);
            return;
        }
        if self.stream.incoming.take_end() {
            shared.tell(FlowEvent::PeerFinished(self.id));
        }
        let room = self.capacity(shared) > 0;
        if room && core::mem::replace(&mut self.blocked, false) {
            shared.tell(FlowEvent::Writable(self.id));
        }
        self.blocked |= !room;
        if self.phase == Phase::Open && self.stream.is_complete() {
            shared.class(self.class.id).flows_finished += 1;
            self.end(now, shared, Outcome::Finished);
            shared.tell(FlowEvent::Closed(self.id));
        }
    }

    /// Whether nobody will ask for the flow again once its opener's gateway has restarted.
    pub(super) fn dies_with_peer(&self) -> bool {
        self.is_alive() && self.role == Role::Acceptor && self.class.resume && !self.class.durable
    }

    /// Ends the flow, because the far side is gone for good.
    pub(super) fn lose(&mut self, now: Instant, shared: &mut Shared) {
        self.drop_link(now, shared);
        self.fail(now, shared, ResetCode::PeerLost);
    }

    /// Refuses the flow, or cuts it off, from this side without being told to.
    fn fail(&mut self, now: Instant, shared: &mut Shared, code: ResetCode) {
        if !self.is_alive() {
            return;
        }
        shared.count_local_reset(self.class.id, code);
        self.end(now, shared, Outcome::Reset(code));
        shared.tell(FlowEvent::Reset {
            flow: self.id,
            code,
        });
    }

    fn fail_opening(&mut self, now: Instant, shared: &mut Shared, code: RefuseCode) {
        shared.count_refusal(self.class.id, code);
        self.end(now, shared, Outcome::Reset(ResetCode::PeerLost));
        shared.tell(FlowEvent::Refused {
            flow: self.id,
            code,
        });
    }
}
