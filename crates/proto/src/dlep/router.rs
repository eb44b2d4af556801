//! A router's session with one modem.
//!
//! ```text
//! discover --offer--> connect --> initialize --response--> in session --termination, silence, fault--> discover
//! ```

use super::destinations::{Destinations, DlepLink};
use super::wire::{
    DLEP_PORT, DataItem, DlepWriter, MacAddress, first_message, item, message, read_items,
    read_signal, signal, status,
};
use crate::machine::Deadline;
use crate::told::{LinkNews, VALID_FOR};
use crate::units::{Duration, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The time between two discoveries, and after a session that ended.
const DISCOVER_EVERY: Duration = Duration::from_secs(5);
/// The time that a connection, and the answer to what begins or ends a session, may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// The time between our heartbeats, as the modem is told.
const HEARTBEAT_MILLIS: u32 = 2_000;
/// The least time between heartbeats of the modem, whatever it says: below, silence would be a matter of chance. There is no
/// greatest one: whether the modem's machine is there at all, the connection knows by our own heartbeats.
const HEARTBEAT_LEAST: Duration = Duration::from_millis(500);
/// The heartbeats of the modem that may be missing (RFC 8175, section 7.3.1: two intervals).
const HEARTBEATS_MISSED: u32 = 2;
/// The octets of one message, at most, header and all.
const MESSAGE_BYTES_MAX: usize = 4 + 65_535;
/// Actions that wait for the driver, at most; a modem that asks for more without reading is left.
const ACTIONS_MAX: usize = 256;
/// The most actions that one message brings: an answer, and the end.
const ACTIONS_PER_MESSAGE: usize = 2;
/// The description of this end, behind the flags of its item.
const PEER_TYPE: &[u8] = b"\0fulmar";

/// The settings of a router's side.
#[derive(Clone, Copy, Debug, Default)]
pub struct DlepConfig {
    /// The destination whose link counts; without one the only one that is up.
    pub destination: Option<MacAddress>,
}

/// The work of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DlepAction {
    /// Send this datagram to the group on the device.
    Discover(Vec<u8>),
    /// Open a TCP connection there.
    Connect(SocketAddr),
    /// Write these octets.
    Send(Vec<u8>),
    /// Close the connection once what was written has left.
    Close,
}

/// Counters of a router's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DlepCounters {
    /// Messages and signals that were used.
    pub messages: u64,
    /// Those that could not be read, or had no place.
    pub wrong: u64,
    /// Sessions that began.
    pub sessions: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Discover,
    /// A connection is being made.
    Connect,
    /// The session's first message was sent.
    Initialize,
    InSession,
    /// The end was told, and is not answered yet.
    Terminate,
}

/// The router's side of DLEP towards one modem.
#[derive(Clone, Debug)]
pub struct DlepRouter {
    config: DlepConfig,
    stage: Stage,
    /// The time of the next discovery, or the end of patience.
    at: Instant,
    heartbeat_at: Instant,
    heard_at: Instant,
    /// The time between heartbeats of the modem.
    their_every: Duration,
    received: Vec<u8>,
    destinations: Destinations,
    actions: VecDeque<DlepAction>,
    counters: DlepCounters,
    /// Whether the link may be another since [`DlepRouter::poll_news`].
    is_news: bool,
    /// The last word of a session that was ended here for a fault, and the time until which it holds. A wrong message takes
    /// nothing back.
    kept: Option<(LinkNews, Instant)>,
    unanswered: u32,
}

impl DlepRouter {
    /// A router that looks for its modem at once.
    pub fn new(config: DlepConfig) -> Self {
        Self {
            config,
            stage: Stage::Discover,
            at: Instant::START,
            heartbeat_at: Instant::START,
            heard_at: Instant::START,
            their_every: HEARTBEAT_LEAST,
            received: Vec::new(),
            destinations: Destinations::default(),
            actions: VecDeque::new(),
            counters: DlepCounters::default(),
            is_news: false,
            kept: None,
            unanswered: 0,
        }
    }

    /// The next thing for the driver to do.
    pub fn poll_action(&mut self) -> Option<DlepAction> {
        self.actions.pop_front()
    }

    /// The link as it is told now, if that has changed: `None` within if the modem or the destination is gone.
    pub fn poll_news(&mut self) -> Option<Option<LinkNews>> {
        core::mem::take(&mut self.is_news).then(|| self.news())
    }

    fn news(&self) -> Option<LinkNews> {
        if let Some((kept, _)) = self.kept {
            return Some(kept);
        }
        if self.stage != Stage::InSession {
            return None;
        }
        match (self.link(), self.config.destination) {
            (Some(link), _) => Some(link.news()),
            // The modem is there and says that it does not reach it.
            (None, Some(_)) => Some(down()),
            (None, None) if self.destinations.len() == 0 => Some(down()),
            (None, None) => None,
        }
    }

    /// The link to the destination that counts.
    pub fn link(&self) -> Option<&DlepLink> {
        self.destinations.link(self.config.destination)
    }

    /// Whether several destinations are up, and nobody said which of them counts.
    pub fn is_ambiguous(&self) -> bool {
        self.config.destination.is_none() && self.destinations.len() > 1
    }

    /// The destinations that are up.
    pub fn destinations(&self) -> impl Iterator<Item = MacAddress> {
        self.destinations.addresses()
    }

    /// Discoveries since the last session.
    pub const fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// The counters.
    pub const fn counters(&self) -> DlepCounters {
        self.counters
    }

    /// Whether there is a session.
    pub fn is_in_session(&self) -> bool {
        self.stage == Stage::InSession
    }

    /// The next time at which something is due.
    pub fn next_deadline(&self) -> Option<Deadline> {
        let deadline = |at, why| Some(Deadline { at, why });
        let own = match self.stage {
            Stage::Discover => deadline(self.at, "discovery of a modem"),
            Stage::Connect | Stage::Initialize | Stage::Terminate => {
                deadline(self.at, "answer of a modem")
            }
            Stage::InSession => Deadline::earlier(
                deadline(self.heartbeat_at, "heartbeat to a modem"),
                deadline(self.silent_at(), "silence of a modem"),
            ),
        };
        let kept = self.kept.map(|(_, until)| Deadline {
            at: until,
            why: "the age of a modem's last word",
        });
        Deadline::earlier(own, kept)
    }

    fn silent_at(&self) -> Instant {
        self.heard_at + self.their_every * HEARTBEATS_MISSED
    }

    /// Does what is due.
    pub fn handle_deadline(&mut self, now: Instant) {
        if self.kept.is_some_and(|(_, until)| until <= now) {
            self.forget_kept();
        }
        match self.stage {
            Stage::Discover if self.at <= now => {
                self.at = now + DISCOVER_EVERY;
                self.unanswered = self.unanswered.saturating_add(1);
                let signal = DlepWriter::signal(signal::PEER_DISCOVERY);
                let signal = signal.item(item::PEER_TYPE, PEER_TYPE).finish();
                self.act(DlepAction::Discover(signal));
            }
            Stage::Connect | Stage::Initialize | Stage::Terminate if self.at <= now => {
                self.leave(now);
            }
            Stage::InSession if self.silent_at() <= now => {
                self.forget_kept();
                self.terminate(now, status::TIMED_OUT);
            }
            Stage::InSession if self.heartbeat_at <= now => {
                self.heartbeat_at = now + Duration::from_millis(u64::from(HEARTBEAT_MILLIS));
                self.send(DlepWriter::message(message::HEARTBEAT));
            }
            _ => {}
        }
    }

    /// Takes a datagram that came from `from`.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, octets: &[u8]) {
        let read = read_signal(octets);
        let Ok((signal::PEER_OFFER, items)) = read else {
            self.counters.wrong += 1;
            return;
        };
        if self.stage != Stage::Discover {
            return;
        }
        let points: Vec<(SocketAddr, bool)> = items.iter().filter_map(connection_point).collect();
        // TLS is not spoken here. A point elsewhere would let anybody on the device's network lead this end anywhere.
        let is_of_sender = |at: &SocketAddr| at.ip() == from.ip();
        let clear = points.iter().filter(|(_, is_tls)| !is_tls);
        let found = clear.map(|(at, _)| *at).find(is_of_sender);
        // Without a point the modem listens where the offer came from.
        let usual = points
            .is_empty()
            .then(|| SocketAddr::new(from.ip(), DLEP_PORT));
        let Some(to) = found.or(usual) else {
            self.counters.wrong += 1;
            return;
        };
        self.counters.messages += 1;
        self.stage = Stage::Connect;
        self.at = now + ANSWER_WITHIN;
        self.act(DlepAction::Connect(to));
    }

    /// The connection is there.
    pub fn handle_connected(&mut self, now: Instant) {
        if self.stage != Stage::Connect {
            return;
        }
        self.stage = Stage::Initialize;
        self.at = now + ANSWER_WITHIN;
        self.heard_at = now;
        let begin = DlepWriter::message(message::SESSION_INITIALIZATION)
            .item(item::HEARTBEAT_INTERVAL, &HEARTBEAT_MILLIS.to_be_bytes())
            .item(item::PEER_TYPE, PEER_TYPE);
        self.send(begin);
    }

    /// The connection is gone, or was refused.
    pub fn handle_closed(&mut self, now: Instant) {
        if self.stage == Stage::InSession {
            self.forget_kept();
        }
        if self.stage != Stage::Discover {
            self.leave(now);
        }
    }

    /// Takes octets of the connection.
    pub fn handle_octets(&mut self, now: Instant, octets: &[u8]) {
        // Taken in pieces, so that no more than a message waits, whatever comes at once.
        for piece in octets.chunks(MESSAGE_BYTES_MAX) {
            self.received.extend_from_slice(piece);
            self.take_messages(now);
            if self.is_full() {
                self.actions.clear();
                self.counters.wrong += 1;
                self.keep(now);
                self.leave(now);
                return;
            }
        }
    }

    fn take_messages(&mut self, now: Instant) {
        let mut received = core::mem::take(&mut self.received);
        let mut used = 0;
        while let Some((kind, items, len)) = received.get(used..).and_then(first_message) {
            if matches!(self.stage, Stage::Discover | Stage::Connect) || self.is_full() {
                // What comes behind the end is of nobody.
                return;
            }
            self.heard_at = now;
            match read_items(items) {
                Ok(items) => self.take_message(now, kind, &items),
                Err(_) => self.refuse(now, status::INVALID_DATA),
            }
            used += len;
        }
        if !matches!(self.stage, Stage::Discover | Stage::Connect) {
            received.drain(..used);
            self.received = received;
        }
    }

    fn take_message(&mut self, now: Instant, kind: u16, items: &[DataItem]) {
        let mac = items.iter().find_map(|item| match item {
            DataItem::Mac(mac) => Some(*mac),
            _ => None,
        });
        match (self.stage, kind) {
            (Stage::Terminate, message::SESSION_TERMINATION_RESPONSE) => {
                self.counters.messages += 1;
                self.leave(now);
            }
            // Whatever was under way when the end was told.
            (Stage::Terminate, _) => {}
            (Stage::Initialize | Stage::InSession, message::SESSION_TERMINATION) => {
                self.counters.messages += 1;
                self.send(DlepWriter::message(message::SESSION_TERMINATION_RESPONSE));
                self.forget_kept();
                self.leave(now);
            }
            (Stage::Initialize, message::SESSION_INITIALIZATION_RESPONSE) => {
                self.initialized(now, items);
            }
            (Stage::InSession, message::HEARTBEAT) => self.counters.messages += 1,
            (Stage::InSession, message::SESSION_UPDATE) => {
                self.used();
                self.destinations.update_all(items);
                let answer = DlepWriter::message(message::SESSION_UPDATE_RESPONSE);
                self.send(answer.status(status::SUCCESS));
            }
            (Stage::InSession, message::DESTINATION_UP) => self.with(now, mac, |own, mac| {
                let has_room = own.destinations.up(mac, items);
                let code = if has_room {
                    status::SUCCESS
                } else {
                    status::REQUEST_DENIED
                };
                own.answer(message::DESTINATION_UP_RESPONSE, mac, code);
            }),
            (Stage::InSession, message::DESTINATION_DOWN) => self.with(now, mac, |own, mac| {
                let is_known = own.destinations.down(mac);
                let code = if is_known {
                    status::SUCCESS
                } else {
                    status::INVALID_DESTINATION
                };
                own.answer(message::DESTINATION_DOWN_RESPONSE, mac, code);
                own.counters.wrong += u64::from(!is_known);
            }),
            (Stage::InSession, message::DESTINATION_UPDATE) => self.with(now, mac, |own, mac| {
                // One that was refused may go on telling.
                let is_known = own.destinations.update(mac, items);
                own.counters.wrong += u64::from(!is_known);
            }),
            (_, 1..=message::HEARTBEAT) => self.refuse(now, status::UNEXPECTED_MESSAGE),
            _ => self.refuse(now, status::UNKNOWN_MESSAGE),
        }
    }

    /// Does this with the destination that a message must name.
    fn with(
        &mut self,
        now: Instant,
        mac: Option<MacAddress>,
        work: impl FnOnce(&mut Self, MacAddress),
    ) {
        match mac {
            Some(mac) => {
                self.forget_kept();
                self.used();
                work(self, mac);
            }
            None => self.refuse(now, status::INVALID_DATA),
        }
    }

    const fn used(&mut self) {
        self.counters.messages += 1;
        self.is_news |= self.kept.is_none();
    }

    fn answer(&mut self, kind: u16, mac: MacAddress, code: u8) {
        let answer = DlepWriter::message(kind).item(item::MAC_ADDRESS, mac.octets());
        self.send(answer.status(code));
    }

    fn initialized(&mut self, now: Instant, items: &[DataItem]) {
        let code = items.iter().find_map(|item| match item {
            DataItem::Status(code) => Some(*code),
            _ => None,
        });
        let every = items.iter().find_map(|item| match item {
            DataItem::HeartbeatInterval(millis) => Some(Duration::from_millis(u64::from(*millis))),
            _ => None,
        });
        // An answer without a status is success (RFC 8175, section 12.6 names it mandatory; some modems leave it out).
        let (Some(every), status::SUCCESS) = (every, code.unwrap_or(status::SUCCESS)) else {
            self.refuse(now, status::INVALID_DATA);
            return;
        };
        self.stage = Stage::InSession;
        self.their_every = every.max(HEARTBEAT_LEAST);
        self.heartbeat_at = now + Duration::from_millis(u64::from(HEARTBEAT_MILLIS));
        self.counters.sessions += 1;
        self.unanswered = 0;
        self.used();
        self.destinations.clear();
        self.destinations.update_all(items);
    }

    /// Counts a message that breaks the protocol, and tells the modem the end (RFC 8175, section 7.4). The word before it holds
    /// for a while, so that the modem can be met again before anything of it is forgotten.
    fn refuse(&mut self, now: Instant, code: u8) {
        self.counters.wrong += 1;
        self.keep(now);
        self.terminate(now, code);
    }

    /// Keeps what the modem tells, if it is in session and nothing of an earlier one is kept.
    fn keep(&mut self, now: Instant) {
        if self.kept.is_none() {
            self.kept = self.news().map(|news| (news, now + VALID_FOR));
        }
    }

    /// Lets what the session tells now count, in place of an earlier one's last word.
    fn forget_kept(&mut self) {
        self.is_news |= self.kept.take().is_some();
    }

    /// Tells the modem the end, with a reason, and waits for its answer.
    fn terminate(&mut self, now: Instant, code: u8) {
        if !matches!(self.stage, Stage::Initialize | Stage::InSession) {
            return;
        }
        self.send(DlepWriter::message(message::SESSION_TERMINATION).status(code));
        self.stage = Stage::Terminate;
        self.at = now + ANSWER_WITHIN;
        self.forget();
    }

    /// Closes the connection and looks for the modem again, after a while.
    fn leave(&mut self, now: Instant) {
        self.act(DlepAction::Close);
        self.stage = Stage::Discover;
        self.at = now + DISCOVER_EVERY;
        self.received = Vec::new();
        self.forget();
    }

    fn forget(&mut self) {
        self.destinations.clear();
        self.is_news |= self.kept.is_none();
    }

    fn send(&mut self, message: DlepWriter) {
        self.act(DlepAction::Send(message.finish()));
    }

    /// Whether what one more message asks for might find no room.
    fn is_full(&self) -> bool {
        self.actions.len() + ACTIONS_PER_MESSAGE > ACTIONS_MAX
    }

    fn act(&mut self, action: DlepAction) {
        if self.actions.len() < ACTIONS_MAX {
            self.actions.push_back(action);
        }
    }
}

fn down() -> LinkNews {
    LinkNews {
        is_up: Some(false),
        ..LinkNews::default()
    }
}

fn connection_point(item: &DataItem) -> Option<(SocketAddr, bool)> {
    match *item {
        DataItem::ConnectionPoint {
            address,
            port,
            is_tls,
        } => Some((SocketAddr::new(address, port.unwrap_or(DLEP_PORT)), is_tls)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
