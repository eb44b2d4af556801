//! The sender's machine: announcements and units, paced at the told rate.

use super::layout::FileLayout;
use super::promise::units_to_send;
use super::request::{Needs, Request, join};
use super::schedule::{BlockSends, Schedule, units_used};
use super::seal::{OneWayCounters, OneWayOpener, OneWaySeal, StreamId};
use super::symbols::SymbolSource;
use super::wire::{Announcement, FileTag, Form, Invitation, Symbol};
use crate::udp::BURST_TIME;
use fulmar_proto::machine::{
    Datagram, Deadline, Ecn, Machine, PathId, Priority, Transmit, TransmitKind,
};
use fulmar_proto::transport::parts::Pacer;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant, Probability};
use std::collections::VecDeque;
use std::io;

/// Symbols between two announcements: .2 % of the octets.
const ANNOUNCED_EVERY: u64 = 64;
/// The pause between the last announcements, so that one burst does not take all of them.
const LAST_EVERY: Duration = Duration::from_millis(100);
/// The probability that what is sent on request does not suffice: whoever still lacks something asks again.
const MEND_RESIDUAL: f64 = 0.05;

/// A thin way back, which all receivers share.
#[derive(Debug)]
pub struct ThinReturn {
    /// Opens requests.
    pub opener: OneWayOpener,
    /// The start that requests must name.
    pub stream: StreamId,
    /// The time over which receivers spread their requests.
    pub spread_ms: u16,
    /// The time that a request may take to come here.
    pub patience: Duration,
    /// The loss that is reckoned with on the way to the receivers.
    pub loss: Probability,
    /// The invitations that nobody answers, one after the other, before all receivers are held to have the file.
    pub silent_max: u32,
}

/// The work of a sender.
#[derive(Debug)]
pub struct OneWayPlan {
    /// Facts about the file.
    pub announcement: Announcement,
    /// The units of each block in each round.
    pub sends: Vec<BlockSends>,
    /// The rounds; `None`: for ever.
    pub rounds: Option<u32>,
    /// The announcements at the start of each round, and at the end.
    pub announcements: u32,
    /// The path to the receivers.
    pub path: PathId,
    /// The rate, all headers included.
    pub rate: Bitrate,
    /// Octets of the headers below each datagram.
    pub lower_overhead: ByteCount,
    /// The way back, if there is one.
    pub returns: Option<ThinReturn>,
}

/// An event for the sender's application.
#[derive(Debug)]
pub enum OneWaySendEvent {
    /// The counters are used up: [`OneWaySender::grant`] is due.
    NeedsCounters,
    /// A unit could not be read, and nothing more is sent.
    Failed(io::Error),
    /// All was sent.
    Finished,
}

/// The octets and datagrams sent so far, headers below included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OneWaySent {
    /// Datagrams.
    pub datagrams: u64,
    /// Octets of all datagrams.
    pub octets: ByteCount,
    /// Datagrams with sources.
    pub sources: u64,
    /// Datagrams with repair symbols.
    pub repairs: u64,
    /// Announcements.
    pub announcements: u64,
    /// Rounds that are over.
    pub rounds: u32,
    /// Datagrams that came from somewhere. Without a way back none of them is looked at.
    pub heard: u64,
    /// Requests that answered the last invitation.
    pub requests: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// So many announcements are due before the round's units.
    Opening(u32),
    Units,
    /// An invitation is due.
    Inviting,
    /// Requests are collected until this time.
    Collecting(Instant),
    /// So many last announcements are due, the next one at this time.
    Closing(u32, Instant),
    Over,
}

/// The machine that sends one file.
pub struct OneWaySender {
    plan: OneWayPlan,
    layout: FileLayout,
    tag: FileTag,
    seal: OneWaySeal,
    symbols: Box<dyn SymbolSource>,
    schedule: Schedule,
    pacer: Pacer,
    phase: Phase,
    /// A unit that is to be sent once there are counters.
    next: Option<(u16, u32)>,
    until_announcement: u64,
    wants_counters: bool,
    events: VecDeque<OneWaySendEvent>,
    /// The time of an event that came without a datagram, so that it is fetched.
    told_at: Option<Instant>,
    sent: OneWaySent,
    /// Requests that answered the last invitation, joined.
    wanted: Needs,
    invitation: u16,
    /// Invitations that nobody answered, one after the other.
    silent: u32,
}

impl core::fmt::Debug for OneWaySender {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "OneWaySender({}, {:?})", self.tag, self.phase)
    }
}

impl OneWaySender {
    /// A sender of the file that the plan announces, whose layout is `layout` and whose units are in `symbols`.
    pub fn new(
        plan: OneWayPlan,
        layout: FileLayout,
        seal: OneWaySeal,
        symbols: Box<dyn SymbolSource>,
    ) -> Self {
        let mut sender = Self {
            layout,
            tag: plan.announcement.tag(),
            seal,
            symbols,
            schedule: Schedule::new(&layout, &plan.sends),
            pacer: Pacer::new(plan.rate, BURST_TIME, plan.lower_overhead),
            phase: Phase::Opening(plan.announcements),
            next: None,
            until_announcement: ANNOUNCED_EVERY,
            wants_counters: false,
            events: VecDeque::new(),
            told_at: None,
            sent: OneWaySent::default(),
            wanted: Needs::new(),
            invitation: 0,
            silent: 0,
            plan,
        };
        sender.ask_for_counters();
        sender
    }

    fn ask_for_counters(&mut self) {
        if self.seal.left() == 0 && !self.wants_counters {
            self.wants_counters = true;
            self.events.push_back(OneWaySendEvent::NeedsCounters);
        }
    }

    /// Takes counters, after [`OneWaySendEvent::NeedsCounters`].
    pub fn grant(&mut self, counters: OneWayCounters) {
        self.seal.grant(counters);
        self.wants_counters = false;
    }

    /// Ends the rounds: the last announcements follow.
    pub fn close(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::Closing(..) | Phase::Over) {
            self.close_at(now);
        }
    }

    /// The count so far.
    pub const fn sent(&self) -> OneWaySent {
        self.sent
    }

    /// The units of one round.
    pub fn units(&self) -> u64 {
        self.schedule.units()
    }

    fn close_at(&mut self, now: Instant) {
        self.next = None;
        self.phase = Phase::Closing(self.plan.announcements.max(1), now);
    }

    /// The next step of a round; ends the rounds after the last.
    fn find_next(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Collecting(until) if until <= now) {
            self.take_requests(now);
        }
        while self.phase == Phase::Units && self.next.is_none() {
            self.next = self.schedule.next();
            if self.next.is_none() {
                self.sent.rounds = self.schedule.rounds();
                let is_over = self
                    .plan
                    .rounds
                    .is_some_and(|rounds| self.schedule.rounds() >= rounds);
                let is_over = is_over || self.schedule.units() == 0;
                if is_over && self.plan.returns.is_some() {
                    self.phase = Phase::Inviting;
                } else if is_over {
                    self.close_at(now);
                } else {
                    self.phase = Phase::Opening(self.plan.announcements);
                }
            }
        }
    }

    /// Sends what the requests ask for, invites again, or ends where nobody has asked for long.
    fn take_requests(&mut self, now: Instant) {
        let wanted = core::mem::take(&mut self.wanted);
        let Some(returns) = &self.plan.returns else {
            return;
        };
        if wanted.is_empty() {
            self.silent += 1;
            if self.silent >= returns.silent_max {
                self.close_at(now);
            } else {
                self.phase = Phase::Inviting;
            }
            return;
        }
        self.silent = 0;
        let residual = Probability::new(MEND_RESIDUAL).unwrap_or(Probability::ZERO);
        let ends = self.schedule.ends();
        let sends = self.layout.numbers().zip(ends).map(|(block, first)| {
            let missing = wanted.get(&block).copied().unwrap_or(0);
            let used = units_used(&self.layout, block);
            let units = units_to_send(missing.into(), returns.loss, residual, used);
            BlockSends {
                first,
                units: units.unwrap_or(used),
            }
        });
        let sends: Vec<BlockSends> = sends.collect();
        self.schedule = Schedule::new(&self.layout, &sends);
        self.plan.rounds = Some(1);
        self.phase = Phase::Units;
    }

    /// A request, if it answers the last invitation.
    fn take_request(&mut self, datagram: &[u8]) -> Option<()> {
        let returns = self.plan.returns.as_mut()?;
        let mut content = Vec::new();
        let opened = returns.opener.open(datagram, &mut content).ok()?;
        let request = Request::read(&content).filter(|_| opened.form == Form::Request)?;
        let answers = (request.file, request.stream, request.number);
        let is_due = matches!(self.phase, Phase::Collecting(_));
        if is_due && answers == (self.tag, returns.stream, self.invitation) {
            join(&mut self.wanted, &request.needs);
            self.sent.requests += 1;
        }
        Some(())
    }

    fn invite(&mut self, now: Instant, out: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let Some(returns) = &self.plan.returns else {
            return Ok(None);
        };
        let number = self.invitation.wrapping_add(1);
        let invitation = Invitation {
            number,
            spread_ms: returns.spread_ms,
        };
        let until = now + invitation.spread() + returns.patience;
        self.plan.announcement.asks = Some(invitation);
        let written = self.announce(false, out);
        self.plan.announcement.asks = None;
        if matches!(written, Ok(Some(_))) {
            self.invitation = number;
            self.phase = Phase::Collecting(until);
        }
        written
    }

    fn fail(&mut self, now: Instant, error: io::Error) {
        self.phase = Phase::Over;
        self.events.push_back(OneWaySendEvent::Failed(error));
        self.told_at = Some(now);
    }

    fn announce(&mut self, is_last: bool, out: &mut Vec<u8>) -> io::Result<Option<usize>> {
        self.plan.announcement.is_last = is_last;
        let announcement = &self.plan.announcement;
        self.seal.seal(Form::Announcement, out, |out| {
            announcement.write(out);
            Ok(())
        })
    }

    fn send_unit(
        &mut self,
        (block, unit): (u16, u32),
        out: &mut Vec<u8>,
    ) -> io::Result<Option<usize>> {
        // A block has 65,536 units at most.
        let number = u16::try_from(unit).unwrap_or(u16::MAX);
        let (tag, symbols) = (self.tag, &mut self.symbols);
        self.seal.seal(Form::Symbol, out, |out| {
            Symbol::write_id(tag, block, number, out);
            symbols.append(block, unit, out)
        })
    }

    /// Writes the datagram that is due, and the kind of it; nothing: no counter is left.
    fn write(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> io::Result<Option<(usize, TransmitKind)>> {
        let announced = |len: Option<usize>| len.map(|len| (len, TransmitKind::Control));
        match self.phase {
            Phase::Opening(left) => {
                let written = self.announce(false, out)?;
                if written.is_some() {
                    self.until_announcement = ANNOUNCED_EVERY;
                    self.phase = match left.saturating_sub(1) {
                        0 => Phase::Units,
                        left => Phase::Opening(left),
                    };
                }
                Ok(announced(written))
            }
            Phase::Units if self.until_announcement == 0 => {
                let written = self.announce(false, out)?;
                if written.is_some() {
                    self.until_announcement = ANNOUNCED_EVERY;
                }
                Ok(announced(written))
            }
            Phase::Units => {
                let Some((block, unit)) = self.next else {
                    return Ok(None);
                };
                let written = self.send_unit((block, unit), out)?;
                let sources = self
                    .layout
                    .block(block)
                    .map_or(0, |block| u32::from(block.sources()));
                let kind = if unit < sources {
                    TransmitKind::Source
                } else {
                    TransmitKind::Repair
                };
                if written.is_some() {
                    self.next = None;
                    self.until_announcement -= 1;
                }
                Ok(written.map(|len| (len, kind)))
            }
            Phase::Closing(left, at) => {
                let written = self.announce(true, out)?;
                if written.is_some() {
                    self.phase = match left.saturating_sub(1) {
                        0 => Phase::Over,
                        left => Phase::Closing(left, at.max(now) + LAST_EVERY),
                    };
                }
                Ok(announced(written))
            }
            Phase::Inviting => Ok(announced(self.invite(now, out)?)),
            Phase::Collecting(_) | Phase::Over => Ok(None),
        }
    }

    fn count(&mut self, len: usize, kind: TransmitKind) {
        self.sent.datagrams += 1;
        self.sent.octets += self.pacer.wire_bytes(len);
        match kind {
            TransmitKind::Source => self.sent.sources += 1,
            TransmitKind::Repair => self.sent.repairs += 1,
            TransmitKind::Retransmission | TransmitKind::Control => self.sent.announcements += 1,
        }
    }

    /// The time from which on something may be sent; `None`: there is nothing, or there are no counters for it.
    fn due_at(&self) -> Option<Instant> {
        match self.phase {
            _ if self.told_at.is_some() => self.told_at,
            _ if self.wants_counters => None,
            Phase::Opening(_) | Phase::Units | Phase::Inviting => Some(self.pacer.next_at()),
            Phase::Collecting(until) => Some(until),
            Phase::Closing(_, at) => Some(at.max(self.pacer.next_at())),
            Phase::Over => None,
        }
    }
}

impl Machine for OneWaySender {
    type Event = OneWaySendEvent;

    fn handle_datagram(&mut self, _now: Instant, datagram: Datagram<'_>) {
        self.sent.heard += 1;
        let _ = self.take_request(datagram.octets);
    }

    fn handle_deadline(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.find_next(now);
        if self.phase == Phase::Over || self.wants_counters {
            return None;
        }
        let waits = |at| at > now;
        if matches!(self.phase, Phase::Closing(_, at) | Phase::Collecting(at) if waits(at)) {
            self.pacer.on_idle();
            return None;
        }
        if !self.pacer.allows(now) {
            self.pacer.on_refused();
            return None;
        }
        match self.write(now, out) {
            Ok(Some((len, kind))) => {
                self.pacer.on_sent(now, len);
                self.count(len, kind);
                if self.phase == Phase::Over {
                    self.events.push_back(OneWaySendEvent::Finished);
                } else {
                    self.ask_for_counters();
                }
                Some(Transmit {
                    path: self.plan.path,
                    len,
                    kind,
                    priority: Priority::default(),
                    ecn: Ecn::NotCapable,
                })
            }
            // The counters that were granted lie beyond the wire's 48 bits.
            Ok(None) => {
                self.fail(now, io::Error::other("no counters are left"));
                None
            }
            Err(error) => {
                self.fail(now, error);
                None
            }
        }
    }

    fn poll_event(&mut self) -> Option<OneWaySendEvent> {
        self.told_at = None;
        self.events.pop_front()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        self.due_at().map(|at| Deadline {
            at,
            why: "the pacer of a one-way sender",
        })
    }
}
