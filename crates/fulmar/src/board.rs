//! The state that the program's handles and the driver share under one lock. A handle holds it for the length of a copy,
//! the driver while it takes an event, or moves what there is of all lines that were touched.
//!
//! A *line* is one connection as the program sees it: octets to send, octets that came, and its fate. The program
//! touches lines and calls the driver, which moves octets between them and the machine.

use crate::letter::{Outbox, Preamble, Reader};
use crate::signal::Signal;
#[cfg(feature = "tokio")]
use crate::signal::{Bell, Ring, TaskSeat};
use fulmar_net::clock::Clock;
use fulmar_net::session::PublicKey;
use fulmar_net::wait::Waker;
use fulmar_proto::transport::aerotp::ConnectionId;
use fulmar_proto::units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Octets of a line that wait for the driver, at most, each way.
pub(crate) const LINE_BYTES_MAX: usize = 256 << 10;
/// Octets of all lines together up to which one whose peer leaves may keep more than that.
pub(crate) const UNREAD_BYTES_MAX: usize = 256 << 20;
/// Octets of messages that wait for the program, at most, for each [`Messages`](crate::Messages).
const INBOX_BYTES_MAX: usize = 1 << 20;
/// A waiting message is counted for so many octets more.
const MESSAGE_COST: usize = 64;
/// Streams, and likewise [`Messages`](crate::Messages), that wait to be accepted, at most.
pub(crate) const BACKLOG_MAX: usize = 128;

/// Groups that were let go and are remembered, so that no late line of theirs is taken for a new group.
const DISMISSED_MAX: usize = 1_024;

pub(crate) type LineId = u64;
pub(crate) type GroupId = u64;

/// The reason why a line is over, as often as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct LineFailure {
    pub(crate) kind: ErrorKind,
    pub(crate) text: String,
}

impl LineFailure {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { kind, text }
    }

    pub(crate) fn error(&self) -> io::Error {
        io::Error::new(self.kind, self.text.clone())
    }
}

/// The part of a line that carries messages.
#[derive(Debug, Default)]
pub(crate) struct Post {
    /// `None` until the preamble of a line that the peer opened was read.
    pub(crate) group: Option<GroupId>,
    pub(crate) outbox: Outbox,
    pub(crate) reader: Reader,
    /// The peer has said that no message follows on this line.
    pub(crate) ended: bool,
}

/// One connection, as the program sees it.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts of a connection's life"
)]
pub(crate) struct Line {
    pub(crate) peer: Option<PublicKey>,
    pub(crate) connection: Option<ConnectionId>,
    /// The peer has answered.
    pub(crate) connected: bool,
    pub(crate) signal: Signal,
    /// Octets for the peer that the machine has not taken yet.
    pub(crate) out: VecDeque<u8>,
    /// Octets that the program has not read yet.
    pub(crate) came: VecDeque<u8>,
    /// The machine has octets that did not fit.
    pub(crate) more_to_read: bool,
    /// The program will write no more.
    pub(crate) finishing: bool,
    pub(crate) closed: bool,
    /// The peer has confirmed everything.
    pub(crate) all_sent: bool,
    pub(crate) peer_finished: bool,
    /// The program has let go of it.
    pub(crate) abandoned: bool,
    /// Something came that the program will never read.
    pub(crate) unwanted: bool,
    pub(crate) failure: Option<LineFailure>,
    pub(crate) post: Option<Post>,
    /// It leads to a gateway, and carries a flow of it.
    pub(crate) to_gateway: bool,
}

impl Line {
    pub(crate) fn new(peer: Option<PublicKey>, post: Option<Post>) -> Self {
        Self {
            peer,
            connection: None,
            connected: false,
            signal: Signal::default(),
            out: VecDeque::new(),
            came: VecDeque::new(),
            more_to_read: false,
            finishing: false,
            closed: false,
            all_sent: false,
            peer_finished: false,
            abandoned: false,
            unwanted: false,
            failure: None,
            post,
            to_gateway: false,
        }
    }

    pub(crate) fn has_nothing_to_send(&self) -> bool {
        self.out.is_empty() && self.post.as_ref().is_none_or(|post| post.outbox.is_empty())
    }

    /// Whether it carries messages and has not said for whom.
    pub(crate) fn is_unsorted(&self) -> bool {
        self.post.as_ref().is_some_and(|post| post.group.is_none())
    }

    /// Lets go of it with what it may have brought, so that the peer learns of it.
    pub(crate) fn refuse(&mut self) {
        self.abandoned = true;
        let text = "nobody accepted the stream";
        let failure = LineFailure::new(ErrorKind::ConnectionAborted, text);
        self.failure.get_or_insert(failure);
    }

    /// Whether something still has to be done for it.
    pub(crate) const fn is_alive(&self) -> bool {
        self.failure.is_none() && !(self.all_sent && self.peer_finished)
    }
}

/// One [`Messages`](crate::Messages): a line for each priority.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) peer: Option<PublicKey>,
    /// The peer's address if this end opened it.
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) id: u64,
    pub(crate) lines: BTreeMap<u8, LineId>,
    pub(crate) inbox: VecDeque<(Vec<u8>, Instant)>,
    pub(crate) inbox_bytes: usize,
    pub(crate) late: u64,
    /// Half of the shortest round trip to the peer so far.
    pub(crate) one_way: Option<Duration>,
    /// This end sends no more.
    pub(crate) finished: bool,
    /// The number of lines that the peer has ended, as it said with the end of one.
    pub(crate) ends: Option<u32>,
    pub(crate) signal: Signal,
}

impl Group {
    pub(crate) fn is_full(&self) -> bool {
        self.inbox_bytes >= INBOX_BYTES_MAX
    }

    pub(crate) fn push(&mut self, message: Vec<u8>, until: Instant) {
        self.inbox_bytes += message.len() + MESSAGE_COST;
        self.inbox.push_back((message, until));
        self.signal.tell();
    }

    /// The next message whose time is not over.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Vec<u8>> {
        while let Some((message, until)) = self.inbox.pop_front() {
            self.inbox_bytes -= message.len() + MESSAGE_COST;
            if now + self.one_way.unwrap_or_default() < until {
                return Some(message);
            }
            self.late += 1;
        }
        None
    }
}

/// A connection that the driver is asked to open.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) line: LineId,
    pub(crate) peer: Option<PublicKey>,
    pub(crate) remote: SocketAddr,
    pub(crate) priority: u8,
}

/// Everything that is shared.
#[derive(Debug, Default)]
pub(crate) struct Board {
    pub(crate) lines: BTreeMap<LineId, Line>,
    pub(crate) groups: BTreeMap<GroupId, Group>,
    next_id: u64,
    pub(crate) orders: VecDeque<Order>,
    /// Lines that the program has touched.
    pub(crate) touched: BTreeSet<LineId>,
    pub(crate) streams_to_accept: VecDeque<LineId>,
    pub(crate) groups_to_accept: VecDeque<GroupId>,
    /// The peers' groups that were let go, the latest last.
    pub(crate) dismissed: VecDeque<(Option<PublicKey>, u64)>,
    pub(crate) listening: bool,
    pub(crate) accepting: Signal,
    pub(crate) epoch_seen: u64,
    /// The endpoint was dropped.
    pub(crate) leaving: bool,
    /// The driver runs no more.
    pub(crate) over: Option<LineFailure>,
    /// The driver was called and has not come yet.
    pub(crate) called: bool,
}

impl Board {
    pub(crate) fn add_line(&mut self, line: Line) -> LineId {
        self.next_id += 1;
        self.lines.insert(self.next_id, line);
        self.next_id
    }

    pub(crate) fn add_group(&mut self, group: Group) -> GroupId {
        self.next_id += 1;
        self.groups.insert(self.next_id, group);
        self.next_id
    }

    /// Whether messages of this peer were accepted, or wait for it.
    pub(crate) fn has_group_of(&self, peer: Option<&PublicKey>) -> bool {
        let of_peer = |group: &Group| group.remote.is_none() && group.peer.as_ref() == peer;
        self.groups.values().any(of_peer)
    }

    /// Lets go of a group; its lines go on by themselves.
    pub(crate) fn dismiss(&mut self, id: GroupId) -> Option<Group> {
        let group = self.groups.remove(&id)?;
        if group.remote.is_none() {
            if self.dismissed.len() >= DISMISSED_MAX {
                self.dismissed.pop_front();
            }
            self.dismissed.push_back((group.peer, group.id));
        }
        Some(group)
    }

    /// The other lines of a line's group for which something still has to be done.
    pub(crate) fn siblings(&self, id: LineId) -> Vec<LineId> {
        let post = self.lines.get(&id).and_then(|line| line.post.as_ref());
        let group = post.and_then(|post| self.groups.get(&post.group?));
        let all = group.into_iter().flat_map(|group| group.lines.values());
        let alive = |other: &LineId| self.lines.get(other).is_some_and(Line::is_alive);
        all.copied()
            .filter(|other| *other != id)
            .filter(alive)
            .collect()
    }

    /// Ends a line, and tells whoever waits.
    pub(crate) fn fail(&mut self, id: LineId, failure: LineFailure) {
        let Some(line) = self.lines.get_mut(&id) else {
            return;
        };
        line.out = VecDeque::new();
        line.failure.get_or_insert(failure);
        self.tell(id);
        self.forget_if_done(id);
    }

    /// Tells whoever waits for a line, or for the messages that it carries.
    pub(crate) fn tell(&self, id: LineId) {
        let Some(line) = self.lines.get(&id) else {
            return;
        };
        line.signal.tell();
        let group = line.post.as_ref().and_then(|post| post.group);
        if let Some(group) = group.and_then(|group| self.groups.get(&group)) {
            group.signal.tell();
        }
    }

    pub(crate) fn group_of(&self, id: LineId) -> Option<&Group> {
        let post = self.lines.get(&id)?.post.as_ref()?;
        self.groups.get(&post.group?)
    }

    /// Forgets a line that nobody holds and that is over. No handle ever holds one that has not said for whom it is.
    pub(crate) fn forget_if_done(&mut self, id: LineId) {
        let is_loose = |line: &Line| line.abandoned || line.is_unsorted();
        if (self.lines.get(&id)).is_some_and(|line| is_loose(line) && !line.is_alive()) {
            self.lines.remove(&id);
        }
    }

    /// Ends everything: the driver runs no more.
    pub(crate) fn end(&mut self, failure: &LineFailure) {
        self.over.get_or_insert_with(|| failure.clone());
        let ids: Vec<LineId> = self.lines.keys().copied().collect();
        for id in ids {
            if self.lines.get(&id).is_some_and(Line::is_alive) {
                self.fail(id, failure.clone());
            }
        }
        for group in self.groups.values() {
            group.signal.tell();
        }
        self.accepting.tell();
    }

    /// The line of `id`, or why there is none.
    pub(crate) fn line(&mut self, id: LineId) -> io::Result<&mut Line> {
        let gone = || io::Error::new(ErrorKind::NotConnected, "the stream is gone");
        self.lines.get_mut(&id).ok_or_else(gone)
    }
}

/// The time that a call waits for its result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    None,
    For(Duration),
    Endless,
}

/// The board while it is locked. Tasks are woken after it was unlocked: its parts are dropped in this order.
pub(crate) struct Locked<'b> {
    board: MutexGuard<'b, Board>,
    #[cfg(feature = "tokio")]
    _ring: Ring<'b>,
}

impl Deref for Locked<'_> {
    type Target = Board;

    fn deref(&self) -> &Board {
        &self.board
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Board {
        &mut self.board
    }
}

/// The board, its lock, and the way to wake the driver.
#[derive(Debug)]
pub(crate) struct Shared {
    board: Mutex<Board>,
    #[cfg(feature = "tokio")]
    bell: Bell,
    waker: Waker,
    pub(crate) clock: Clock,
}

impl Shared {
    pub(crate) fn new(waker: Waker, clock: Clock) -> Self {
        let board = Mutex::default();
        Self {
            board,
            #[cfg(feature = "tokio")]
            bell: Bell::default(),
            waker,
            clock,
        }
    }

    /// Nothing panics while it has the lock, but in a test's thread that did there is still something to see.
    pub(crate) fn lock(&self) -> Locked<'_> {
        Locked {
            board: self.board.lock().unwrap_or_else(PoisonError::into_inner),
            #[cfg(feature = "tokio")]
            _ring: Ring(&self.bell),
        }
    }

    /// Calls the driver, once until it comes.
    pub(crate) fn call(&self, board: &mut Board) {
        if !board.called {
            // A driver that is gone hears nothing, and has left its word on the board.
            board.called = self.waker.wake().is_ok();
        }
    }

    /// Calls the driver to a line.
    pub(crate) fn touch(&self, board: &mut Board, line: LineId) {
        board.touched.insert(line);
        self.call(board);
    }

    /// Asks `ready` for an answer, and has the task asked again with the seat's signal if there is none.
    #[cfg(feature = "tokio")]
    pub(crate) fn poll<T>(
        &self,
        task: &std::task::Context<'_>,
        seat: &TaskSeat,
        ready: impl FnOnce(&mut Board) -> Option<io::Result<T>>,
    ) -> std::task::Poll<io::Result<T>> {
        let mut board = self.lock();
        if let Some(answer) = ready(&mut board) {
            return std::task::Poll::Ready(answer);
        }
        let former = seat.wait(task.waker(), &self.bell);
        drop(board);
        drop(former);
        std::task::Poll::Pending
    }

    /// Waits until `ready` has an answer. Every blocking call goes through here.
    pub(crate) fn wait<T>(
        &self,
        signal: &Signal,
        patience: Patience,
        mut ready: impl FnMut(&mut Board) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        let began = self.clock.now();
        let mut locked = self.lock();
        loop {
            if let Some(answer) = ready(&mut locked) {
                return answer;
            }
            locked.board = match patience {
                Patience::None => return Err(ErrorKind::WouldBlock.into()),
                Patience::Endless => {
                    let woken = signal.threads().wait(locked.board);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
                Patience::For(span) => {
                    let left = span.saturating_sub(self.clock.now().saturating_since(began));
                    if left.is_zero() {
                        let text = format!("nothing happened for {span:?}");
                        return Err(io::Error::new(ErrorKind::TimedOut, text));
                    }
                    let woken = signal.threads().wait_timeout(locked.board, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

/// The preamble of a group's line.
pub(crate) fn preamble(group: &Group, priority: u8) -> VecDeque<u8> {
    let id = group.id;
    Preamble { id, priority }.octets().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_ends_without_a_word_for_whom_it_is_leaves_nothing() {
        let mut board = Board::default();
        let group = board.add_group(Group::default());
        let post = |group| {
            Some(Post {
                group,
                ..Post::default()
            })
        };
        let held = board.add_line(Line::new(None, post(Some(group))));
        for n in 0..1_000 {
            let id = board.add_line(Line::new(None, post(None)));
            if n % 2 == 0 {
                board.fail(
                    id,
                    LineFailure::new(ErrorKind::TimedOut, "no preamble came"),
                );
            } else if let Some(line) = board.lines.get_mut(&id) {
                (line.all_sent, line.peer_finished) = (true, true);
                board.forget_if_done(id);
            }
        }
        // A handle has the other, and is told why it is over.
        board.fail(
            held,
            LineFailure::new(ErrorKind::TimedOut, "nobody answered"),
        );
        assert!(board.lines.keys().eq([&held]));
    }

    #[test]
    fn messages_whose_time_is_over_are_counted_and_make_room() {
        let at = |millis| Instant::START + Duration::from_millis(millis);
        let mut group = Group {
            one_way: Some(Duration::from_millis(10)),
            ..Group::default()
        };
        for (content, until) in [(1, 100), (2, 111), (3, 500)] {
            group.push(vec![content; INBOX_BYTES_MAX / 2], at(until));
        }
        assert!(group.is_full());
        // The way there took 10 ms of a life that ends at 111 ms.
        assert_eq!(group.pop(at(101)).map(|message| message[0]), Some(3));
        assert_eq!((group.late, group.inbox_bytes), (2, 0));
        assert_eq!(group.pop(at(101)), None);
    }
}
