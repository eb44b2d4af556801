//! Messages with deadlines and priorities.

use crate::board::{Board, Group, GroupId, Line, Order, Patience, Post, Shared, preamble};
use crate::letter::{LIFETIME_MAX, MESSAGE_BYTES_MAX, Reader};
use crate::signal::Signal;
use fulmar_net::session::PublicKey;
use fulmar_proto::machine::Priority;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Priorities of one [`Messages`] at most.
pub(crate) const PRIORITIES_MAX: usize = 8;

/// The messages of one [`Messages`] that were not delivered because their time was over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired {
    /// Those of this end that never left.
    pub here: u64,
    /// Those of the peer that came, or were about to be received, too late.
    pub arrived_late: u64,
}

/// Whole messages both ways, to and from one peer, each of which is worth something for a limited time only.
///
/// A message is delivered once and whole, or not at all; never when its time is over. Those of one priority arrive in
/// the order in which they were sent; those of a higher priority overtake the others. A message that is lost is sent
/// again as long as those behind it are wanted, and holds up those of its own priority meanwhile.
///
/// Time counts from [`Messages::send`] to [`Messages::receive`]. The clocks of the two ends need not agree: the way
/// there is taken to last half of the shortest round trip, and what a message took longer than the quickest counts in
/// full.
#[derive(Debug)]
pub struct Messages {
    pub(crate) shared: Arc<Shared>,
    group: GroupId,
    pub(crate) signal: Signal,
    peer: Option<PublicKey>,
    nonblocking: AtomicBool,
}

impl Messages {
    pub(crate) fn new(shared: Arc<Shared>, board: &Board, id: GroupId, nonblocking: bool) -> Self {
        let group = board.groups.get(&id);
        Self {
            signal: group.map_or_else(Signal::default, |group| group.signal.clone()),
            peer: group.and_then(|group| group.peer),
            shared,
            group: id,
            nonblocking: AtomicBool::new(nonblocking),
        }
    }

    /// The peer's key; `None` where both ends have one key, or none.
    pub const fn peer(&self) -> Option<PublicKey> {
        self.peer
    }

    /// Sends a message of 65,536 octets at most, to be received within `deadline` from now (half an hour at most).
    /// Higher priorities go first; one end uses eight of them at most. The end that accepted answers with
    /// priorities that it has heard from the other, and otherwise with the next lower.
    ///
    /// Waits while a mebibyte of messages of this priority has not left yet.
    ///
    /// # Errors
    /// `TimedOut` if it could not even be queued before its deadline, `InvalidInput` beyond the limits above,
    /// and those of a [`Stream`](crate::Stream).
    pub fn send(&self, octets: &[u8], deadline: Duration, priority: Priority) -> io::Result<()> {
        check(octets, deadline)?;
        let patience = if self.nonblocking.load(Ordering::Relaxed) {
            Patience::None
        } else {
            Patience::For(deadline)
        };
        let began = self.shared.clock.now();
        self.shared.wait(&self.signal, patience, |board| {
            let now = self.shared.clock.now();
            let left = deadline.saturating_sub(now.saturating_since(began));
            self.try_send(board, octets, left, priority.0).transpose()
        })
    }

    pub(crate) fn try_send(
        &self,
        board: &mut Board,
        octets: &[u8],
        left: Duration,
        priority: u8,
    ) -> io::Result<Option<()>> {
        if let Some(over) = &board.over {
            return Err(over.error());
        }
        let group = board
            .groups
            .get(&self.group)
            .ok_or(ErrorKind::NotConnected)?;
        let known = group.lines.get(&priority).copied();
        let id = match known {
            Some(line) => line,
            None if group.remote.is_none() => {
                let mut lower = group.lines.range(..priority).rev();
                let next = lower.next().or_else(|| group.lines.iter().next());
                *next.ok_or(ErrorKind::NotConnected)?.1
            }
            None if group.lines.len() < PRIORITIES_MAX => {
                let (shared, group) = (&self.shared, self.group);
                open_line(shared, board, group, priority).ok_or(ErrorKind::NotConnected)?
            }
            None => {
                let text = "a Messages has eight priorities at most";
                return Err(io::Error::new(ErrorKind::InvalidInput, text));
            }
        };
        let line = board.line(id)?;
        if let Some(failure) = &line.failure {
            return Err(failure.error());
        }
        if line.finishing {
            let text = "the messages were finished";
            return Err(io::Error::new(ErrorKind::BrokenPipe, text));
        }
        let now = self.shared.clock.now();
        let outbox = &mut line.post.get_or_insert_default().outbox;
        let taken = outbox.push(now, octets, left);
        self.shared.touch(board, id);
        Ok(taken.then_some(()))
    }

    /// Waits for the next message; `None` when the peer sends no more. With a timeout it waits for so long at most.
    ///
    /// # Errors
    /// `TimedOut` after the timeout, and those of a [`Stream`](crate::Stream).
    pub fn receive(&self, timeout: Option<Duration>) -> io::Result<Option<Vec<u8>>> {
        let patience = match (self.nonblocking.load(Ordering::Relaxed), timeout) {
            (true, _) => Patience::None,
            (false, Some(span)) => Patience::For(span),
            (false, None) => Patience::Endless,
        };
        self.shared
            .wait(&self.signal, patience, |board| self.try_receive(board))
    }

    /// The next message, or the end of them; `None` while there is neither.
    pub(crate) fn try_receive(&self, board: &mut Board) -> Option<io::Result<Option<Vec<u8>>>> {
        let Board { groups, lines, .. } = board;
        let Some(group) = groups.get_mut(&self.group) else {
            return Some(Err(ErrorKind::NotConnected.into()));
        };
        let was_full = group.is_full();
        let message = group.pop(self.shared.clock.now());
        let ids: Vec<u64> = group.lines.values().copied().collect();
        let is_full = group.is_full();
        let all = || ids.iter().filter_map(|id| lines.get(id));
        let has_ended = |line: &&Line| line.post.as_ref().is_some_and(|post| post.ended);
        let finished = all().filter(has_ended).count();
        let ends = group.ends.and_then(|ends| usize::try_from(ends).ok());
        let has_ended = ends.is_some_and(|ends| finished >= ends);
        let failure = all().find_map(|line| line.failure.clone());
        if was_full && !is_full {
            for id in ids {
                self.shared.touch(board, id);
            }
        }
        match (message, failure) {
            (Some(message), _) => Some(Ok(Some(message))),
            (None, _) if has_ended => Some(Ok(None)),
            (None, Some(failure)) => Some(Err(failure.error())),
            (None, None) => board.over.as_ref().map(|over| Err(over.error())),
        }
    }

    /// Sends no more, and waits until each message is confirmed by the peer's end or its time was over before it
    /// left.
    ///
    /// # Errors
    /// Those of [`Stream::finish`](crate::Stream::finish).
    pub fn finish(&self) -> io::Result<()> {
        self.close(&mut self.shared.lock());
        let patience = if self.nonblocking.load(Ordering::Relaxed) {
            Patience::None
        } else {
            Patience::Endless
        };
        self.shared
            .wait(&self.signal, patience, |board| self.try_finish(board))
    }

    pub(crate) fn try_finish(&self, board: &mut Board) -> Option<io::Result<()>> {
        let group = board.groups.get(&self.group)?;
        let lines = group.lines.values().filter_map(|id| board.lines.get(id));
        let mut unfinished = lines.filter(|line| !line.all_sent);
        match unfinished.next() {
            Some(line) => line.failure.as_ref().map(|failure| Err(failure.error())),
            None => Some(Ok(())),
        }
    }

    /// The messages that were not delivered because their time was over.
    pub fn expired(&self) -> Expired {
        let board = self.shared.lock();
        let group = board.groups.get(&self.group);
        let posts = group.into_iter().flat_map(|group| group.lines.values());
        let posts = posts.filter_map(|id| board.lines.get(id)?.post.as_ref());
        Expired {
            here: posts.map(|post| post.outbox.expired).sum(),
            arrived_late: group.map_or(0, |group| group.late),
        }
    }

    /// Whether calls that would have to wait fail with `WouldBlock` instead, as for
    /// [`Stream::set_nonblocking`](crate::Stream::set_nonblocking).
    pub fn set_nonblocking(&self, nonblocking: bool) {
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
    }

    pub(crate) fn close(&self, board: &mut Board) -> Vec<u64> {
        let group = board.groups.get_mut(&self.group);
        let ids = group.map(|group| {
            group.finished = true;
            group.lines.values().copied().collect()
        });
        let ids: Vec<u64> = ids.unwrap_or_default();
        for id in &ids {
            if let Ok(line) = board.line(*id)
                && !line.finishing
            {
                line.finishing = true;
                let post = line.post.get_or_insert_default();
                post.outbox.last_word = u32::try_from(ids.len()).ok();
            }
            self.shared.touch(board, *id);
        }
        ids
    }
}

/// Whether a message is within the limits.
pub(crate) fn check(octets: &[u8], deadline: Duration) -> io::Result<()> {
    let text = if octets.len() > MESSAGE_BYTES_MAX {
        "a message has 65536 octets at most; use a stream for more"
    } else if deadline > LIFETIME_MAX {
        "a message's deadline is half an hour ahead at most"
    } else {
        return Ok(());
    };
    Err(io::Error::new(ErrorKind::InvalidInput, text))
}

/// Opens a group's line of a priority.
pub(crate) fn open_line(
    shared: &Shared,
    board: &mut Board,
    id: GroupId,
    priority: u8,
) -> Option<u64> {
    let group: &Group = board.groups.get(&id)?;
    let (peer, remote) = (group.peer, group.remote?);
    let post = Post {
        group: Some(id),
        reader: Reader::of_answers(),
        ..Post::default()
    };
    let mut line = Line::new(peer, Some(post));
    line.out = preamble(group, priority);
    let line = board.add_line(line);
    if let Some(group) = board.groups.get_mut(&id) {
        group.lines.insert(priority, line);
    }
    board.orders.push_back(Order {
        line,
        peer,
        remote,
        priority,
    });
    shared.touch(board, line);
    Some(line)
}

impl Drop for Messages {
    fn drop(&mut self) {
        let mut board = self.shared.lock();
        for id in self.close(&mut board) {
            if let Ok(line) = board.line(id) {
                line.abandoned = true;
            }
            board.forget_if_done(id);
        }
        board.dismiss(self.group);
    }
}
