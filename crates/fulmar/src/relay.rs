//! The application on the machine: carries out orders, and tells lines what becomes of their connections.

use crate::board::{
    BACKLOG_MAX, Board, LINE_BYTES_MAX, Line, LineFailure, LineId, Order, Post, Shared,
};
use crate::config::Config;
use crate::epochs::Epochs;
use crate::limits::LineLimits;
use crate::peers::Peers;
use crate::pumping;
use fulmar_net::session::{PeerIndex, SESSION_OVERHEAD, Session};
use fulmar_proto::machine::PathId;
use fulmar_proto::transport::aerotp::{
    AckPolicy, AerotpEndpoint, CloseReason, ConfigError, ConnectionConfig, ConnectionId, Event,
};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_proto::wire::Port;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

mod turns;

const STREAMS: Port = Port(7);
const MESSAGES: Port = Port(8);
/// The first of a gateway's service ports.
const GATEWAY: Port = Port(7_070);
/// Sizes that fit the smallest packet with the salt of early data, until the session has found out more.
const FIRST_PACKET: ByteCount = ByteCount(1280 - 32);
/// IPv6 and UDP headers.
const IP_UDP_OVERHEAD: ByteCount = ByteCount(48);
pub(crate) const LOWER_OVERHEAD: ByteCount = ByteCount(IP_UDP_OVERHEAD.0 + SESSION_OVERHEAD.0);
/// Octets of messages that the transport has taken and not sent, at most: no deadline drops them any more.
pub(crate) const UNSENT_MESSAGES: usize = 2_400;
/// The time that an endpoint which was dropped waits for what is still to be confirmed.
const LINGER: Duration = Duration::from_secs(3);
/// Octets of a stream that are not confirmed, at most: they take memory as they come.
const SEND_BUFFER: usize = 32 << 20;
/// The time that a dropped stream's peer has to finish its direction.
const HALF_OPEN_MAX: Duration = Duration::from_secs(60);

pub(crate) type Link = Session<AerotpEndpoint>;

/// The settings of a connection.
pub(crate) fn connection(config: &Config, messages: bool) -> ConnectionConfig {
    ConnectionConfig {
        mode: config.mode,
        tpdu_bytes_max: FIRST_PACKET.saturating_sub(LOWER_OVERHEAD).as_usize(),
        // The session's tag notices every damage.
        payload_crc: false,
        window_tpdus: 32_768,
        send_buffer_bytes: SEND_BUFFER,
        ack: AckPolicy {
            every: 32,
            ..AckPolicy::default()
        },
        unsent_bytes_max: if messages {
            UNSENT_MESSAGES
        } else {
            LINE_BYTES_MAX
        },
        give_up_after: config.give_up_after,
        // It was checked.
        thin: Some(config.thin().unwrap_or_default()),
        ..ConnectionConfig::default()
    }
}

/// Takes whatever peers open from now on; [`Relay`] turns away what nobody listens for. A port that opened only with
/// the program's `listen` would turn away what arrived in the moment before.
pub(crate) fn open_ports(machine: &mut AerotpEndpoint, config: &Config) -> Result<(), ConfigError> {
    machine.listen(STREAMS, connection(config, false))?;
    machine.listen(MESSAGES, connection(config, true))
}

/// The driver's side of the board.
#[derive(Debug)]
pub(crate) struct Relay {
    shared: Arc<Shared>,
    config: Config,
    lines: BTreeMap<ConnectionId, LineId>,
    /// When lines are given up, unless their peer answers, or finishes.
    limits: LineLimits,
    /// When messages that wait end, so that a line has room again for one that it had to refuse.
    room: LineLimits,
    /// Lines whose octets the program is slow to read.
    behind: BTreeSet<LineId>,
    peers: Peers,
    epochs: Epochs,
    /// Addresses to which there is no path yet, each with what waits for it.
    wanted: VecDeque<(SocketAddr, LineId, PeerIndex, u8)>,
    leave_by: Option<Instant>,
    has_left: bool,
}

impl Relay {
    pub(crate) const fn new(shared: Arc<Shared>, config: Config, peers: Peers) -> Self {
        Self {
            shared,
            config,
            lines: BTreeMap::new(),
            limits: LineLimits::new(),
            room: LineLimits::new(),
            behind: BTreeSet::new(),
            peers,
            epochs: Epochs::new(),
            wanted: VecDeque::new(),
            leave_by: None,
            has_left: false,
        }
    }

    fn carry_out(&mut self, now: Instant, link: &mut Link, board: &mut Board, order: &Order) {
        let Order {
            line,
            peer,
            remote,
            priority,
        } = *order;
        if let Some(index) = self.peers.index_for(link, peer) {
            self.limits.start(line, now + self.config.connect_timeout);
            self.wanted.push_back((remote, line, index, priority));
        } else {
            let text = "256 peers are known, which is the limit";
            let failure = LineFailure::new(ErrorKind::QuotaExceeded, text);
            self.give_up(now, link, board, line, &failure);
        }
    }

    /// Moves what can be moved between a line and its connection, and ends the line if that follows.
    fn pump(&mut self, now: Instant, link: &mut Link, board: &mut Board, id: LineId) {
        let Some(line) = board.lines.get(&id) else {
            return;
        };
        if let Some(failure) = line.failure.clone() {
            self.give_up(now, link, board, id, &failure);
            return;
        }
        if let Some(at) = line.post.as_ref().and_then(|post| post.outbox.room_at()) {
            self.room.start(id, at);
        }
        let Some(connection) = line.connection else {
            // A line that was let go before it had a connection is opened all the same if there is something to send.
            if line.abandoned && line.has_nothing_to_send() {
                self.wanted.retain(|(_, wanted, _, _)| *wanted != id);
                self.limits.stop(id);
                board.lines.remove(&id);
            }
            return;
        };
        let moved = pumping::receive(&self.peers, now, (link, board), (id, connection));
        if let Err(failure) = moved {
            self.give_up(now, link, board, id, &failure);
            return;
        }
        if board.lines.get(&id).is_some_and(|line| line.more_to_read) {
            self.behind.insert(id);
        } else {
            self.behind.remove(&id);
        }
        pumping::send(now, link, board, (id, connection));
        self.settle(now, link, board, id);
    }

    /// Sees to a line that may need a limit no more, or one from here on, or that nobody wants.
    fn settle(&mut self, now: Instant, link: &mut Link, board: &mut Board, id: LineId) {
        let Some(line) = board.lines.get(&id) else {
            return;
        };
        if line.connected && !line.is_unsorted() && !line.abandoned {
            self.limits.stop(id);
        }
        if !line.abandoned || !line.all_sent {
            return;
        }
        if line.unwanted {
            let text = "the program let go of octets that it had not read";
            let failure = LineFailure::new(ErrorKind::ConnectionAborted, text);
            self.give_up(now, link, board, id, &failure);
        } else {
            self.limits.start(id, now + HALF_OPEN_MAX);
        }
    }

    fn on_incoming(
        &mut self,
        now: Instant,
        link: &mut Link,
        board: &mut Board,
        arrival: (ConnectionId, PathId, Port),
    ) {
        let (id, path, port) = arrival;
        let is_stream = port == STREAMS;
        let waiting = if is_stream {
            board.streams_to_accept.len()
        } else {
            board.groups_to_accept.len()
        };
        let peer = self.peers.key_of(PeerIndex(path.0));
        // A further priority of messages that were accepted needs no listener.
        let expected = board.listening || !is_stream && board.has_group_of(peer.as_ref());
        if !expected || waiting >= BACKLOG_MAX {
            link.inner_mut().abort(now, id);
            return;
        }
        let post = (!is_stream).then(Post::default);
        let mut line = Line::new(peer, post);
        line.connection = Some(id);
        let line = board.add_line(line);
        self.lines.insert(id, line);
        if is_stream {
            board.streams_to_accept.push_back(line);
            board.accepting.tell();
        } else {
            // Until its preamble has come.
            self.limits.start(line, now + self.config.connect_timeout);
        }
    }

    fn on_event(&mut self, now: Instant, link: &mut Link, board: &mut Board, event: &Event) {
        let event_of = |id: &ConnectionId| self.lines.get(id).copied();
        match *event {
            Event::Incoming {
                id, path, local, ..
            } => {
                self.on_incoming(now, link, board, (id, path, local));
            }
            Event::Connected(id) => {
                if let Some(line) = event_of(&id) {
                    if let Ok(line) = board.line(line) {
                        line.connected = true;
                    }
                    if !board.lines.get(&line).is_some_and(Line::is_unsorted) {
                        self.limits.stop(line);
                    }
                    self.pump(now, link, board, line);
                }
            }
            Event::Readable(id) | Event::Writable(id) => {
                if let Some(line) = event_of(&id) {
                    self.pump(now, link, board, line);
                }
            }
            Event::PeerFinished(id) => {
                if let Some(id) = event_of(&id)
                    && let Some(line) = board.lines.get_mut(&id)
                {
                    line.peer_finished = true;
                    board.tell(id);
                    board.forget_if_done(id);
                }
            }
            Event::AllSent(id) => {
                if let Some(id) = event_of(&id)
                    && let Some(line) = board.lines.get_mut(&id)
                {
                    line.all_sent = true;
                    board.tell(id);
                    board.forget_if_done(id);
                    self.settle(now, link, board, id);
                }
            }
            Event::Closed { id, why } => self.on_closed(now, link, board, (id, why)),
            Event::Datagram { .. } => {}
        }
    }

    fn on_closed(
        &mut self,
        now: Instant,
        link: &mut Link,
        board: &mut Board,
        (connection, why): (ConnectionId, CloseReason),
    ) {
        let Some(id) = self.lines.remove(&connection) else {
            return;
        };
        self.limits.stop(id);
        let failure = match why {
            CloseReason::Finished => {
                if let Some(line) = board.lines.get_mut(&id) {
                    (line.all_sent, line.peer_finished) = (true, true);
                }
                board.tell(id);
                board.forget_if_done(id);
                return;
            }
            CloseReason::Aborted => {
                LineFailure::new(ErrorKind::ConnectionAborted, "the stream was given up")
            }
            CloseReason::Reset => LineFailure::new(
                ErrorKind::ConnectionReset,
                "the peer ended the stream: it dropped it, has restarted, or does not listen",
            ),
            CloseReason::Disagreed => LineFailure::new(
                ErrorKind::InvalidData,
                "the peer took a message back, which this end would have read in its turn",
            ),
            CloseReason::PeerVanished => LineFailure::new(
                ErrorKind::TimedOut,
                format!("the peer was silent for {:?}", self.config.give_up_after),
            ),
        };
        self.give_up(now, link, board, id, &failure);
    }

    /// Ends the lines with a peer whose connections `ends` names.
    fn fail_peer(
        &mut self,
        now: Instant,
        link: &mut Link,
        board: &mut Board,
        (peer, failure): (PeerIndex, &LineFailure),
        ends: impl Fn(ConnectionId) -> bool,
    ) {
        let key = self.peers.key_of(peer);
        let theirs = board.lines.iter().filter(|(_, line)| line.peer == key);
        let theirs = theirs.filter(|(_, line)| line.connection.is_some_and(&ends));
        let theirs: Vec<LineId> = theirs.map(|(id, _)| *id).collect();
        // What the peer was told has arrived stays readable.
        for id in &theirs {
            pumping::receive_rest(&self.peers, now, (link, board), *id);
        }
        for id in theirs {
            self.give_up(now, link, board, id, failure);
        }
    }

    /// Ends a line and, as messages hold together, the other lines of its group.
    fn give_up(
        &mut self,
        now: Instant,
        link: &mut Link,
        board: &mut Board,
        id: LineId,
        failure: &LineFailure,
    ) {
        let others = board.siblings(id);
        for id in core::iter::once(id).chain(others) {
            self.limits.stop(id);
            self.wanted.retain(|(_, line, _, _)| *line != id);
            let connection = board.lines.get(&id).and_then(|line| line.connection);
            board.fail(id, failure.clone());
            if let Some(connection) = connection {
                self.lines.remove(&connection);
                link.inner_mut().abort(now, connection);
            }
        }
    }

    /// Ends what has lasted too long.
    fn expire(&mut self, now: Instant, link: &mut Link, board: &mut Board) {
        for id in self.limits.take_due(now) {
            let peer = board
                .lines
                .get(&id)
                .map(|line| self.peers.index_of(line.peer));
            let trouble = peer.flatten().and_then(|peer| self.peers.trouble(peer));
            let waited = self.config.connect_timeout;
            let failure = trouble.map_or_else(
                || {
                    LineFailure::new(
                        ErrorKind::TimedOut,
                        format!("the peer did not answer for {waited:?}"),
                    )
                },
                |trouble| LineFailure::new(ErrorKind::ConnectionRefused, trouble.to_owned()),
            );
            self.give_up(now, link, board, id, &failure);
        }
        for id in self.room.take_due(now) {
            let line = board.lines.get_mut(&id);
            if let Some(post) = line.and_then(|line| line.post.as_mut()) {
                post.outbox.make_room(now);
                board.tell(id);
            }
        }
        let patience = self.config.give_up_after;
        for peer in self.peers.down_for(now, patience) {
            let text = format!("nothing was heard of the peer for {patience:?}");
            let failure = LineFailure::new(ErrorKind::TimedOut, text);
            self.fail_peer(now, link, board, (peer, &failure), |_| true);
        }
    }

    /// Takes the rest of the streams of which everything is here, which no pause of the reader may lose.
    fn take_whole(&mut self, now: Instant, link: &mut Link, board: &mut Board) {
        let is_whole = |id: &LineId| {
            let connection = board.lines.get(id).and_then(|line| line.connection);
            connection.is_none_or(|connection| link.inner().is_complete(connection) != Some(false))
        };
        let (whole, behind) = (self.behind.iter().copied()).partition(is_whole);
        self.behind = behind;
        for id in whole {
            pumping::receive_rest(&self.peers, now, (link, board), id);
        }
    }

    fn may_leave(&mut self, now: Instant, board: &Board) -> bool {
        let leave_by = *self.leave_by.get_or_insert(now + LINGER);
        let is_open = |line: &Line| line.failure.is_none() && !line.all_sent;
        leave_by <= now || (!board.lines.values().any(is_open) && self.lines.is_empty())
    }
}
