//! Octets between a line and its connection.

use crate::board::{Board, Group, LINE_BYTES_MAX, LineFailure, LineId, UNREAD_BYTES_MAX};
use crate::peers::Peers;
use crate::relay::Link;
use crate::sorting;
use fulmar_proto::transport::aerotp::ConnectionId;
use fulmar_proto::units::Instant;

/// Takes what came, as far as there is room for it.
pub(crate) fn receive(
    peers: &Peers,
    now: Instant,
    (link, board): (&mut Link, &mut Board),
    (id, from): (LineId, ConnectionId),
) -> Result<(), LineFailure> {
    let is_post = board.lines.get(&id).is_some_and(|line| line.post.is_some());
    if is_post {
        return sorting::receive(peers, now, (link, board), (id, from), Group::is_full);
    }
    receive_stream(now, (link, board), (id, from), LINE_BYTES_MAX);
    Ok(())
}

/// Takes all that the machine still has for a line, and the peer's end if nothing before it is missing: the sender
/// knows that it has arrived. The machine's window bounds it for a line, and [`UNREAD_BYTES_MAX`] for all.
pub(crate) fn receive_rest(
    peers: &Peers,
    now: Instant,
    (link, board): (&mut Link, &mut Board),
    id: LineId,
) {
    let Some(line) = board.lines.get(&id).filter(|line| line.is_alive()) else {
        return;
    };
    let (Some(from), is_post) = (line.connection, line.post.is_some()) else {
        return;
    };
    let in_streams: usize = board.lines.values().map(|line| line.came.len()).sum();
    let in_messages: usize = board.groups.values().map(|group| group.inbox_bytes).sum();
    let room = UNREAD_BYTES_MAX.saturating_sub(in_streams + in_messages);
    if is_post {
        let full_at = board.group_of(id).map_or(0, |group| group.inbox_bytes) + room;
        let is_full = |group: &Group| group.inbox_bytes >= full_at;
        // What is no message ends the line, which is about to end.
        let taken = sorting::receive(peers, now, (link, board), (id, from), is_full);
        drop(taken);
    } else {
        let full_at = board.lines.get(&id).map_or(0, |line| line.came.len()) + room;
        receive_stream(now, (link, board), (id, from), full_at);
    }
    let is_whole = link.inner().is_complete(from) == Some(true);
    if let Some(line) = board.lines.get_mut(&id)
        && is_whole
        && !is_post
        && !line.more_to_read
    {
        line.peer_finished = true;
        board.tell(id);
        board.forget_if_done(id);
    }
}

fn receive_stream(
    now: Instant,
    (link, board): (&mut Link, &mut Board),
    (id, from): (LineId, ConnectionId),
    full_at: usize,
) {
    let Some(line) = board.lines.get_mut(&id) else {
        return;
    };
    line.more_to_read = false;
    let mut came = false;
    loop {
        if line.came.len() >= full_at {
            line.more_to_read = true;
            break;
        }
        let Some(chunk) = link.inner_mut().read(now, from) else {
            break;
        };
        if line.abandoned {
            line.unwanted |= !chunk.octets.is_empty();
        } else {
            line.came.extend(&chunk.octets);
            came = true;
        }
        link.inner_mut().recycle(from, chunk.octets);
    }
    if came {
        line.signal.tell();
    }
}

/// Hands over what is to be sent, as far as the machine has room for it, and the end behind it.
pub(crate) fn send(
    now: Instant,
    link: &mut Link,
    board: &mut Board,
    (id, to): (LineId, ConnectionId),
) {
    let Some(line) = board.lines.get_mut(&id) else {
        return;
    };
    let inner = link.inner_mut();
    let mut wrote = false;
    loop {
        if line.out.is_empty()
            && !(line.post.as_mut()).is_some_and(|post| post.outbox.write_next(now, &mut line.out))
        {
            break;
        }
        let octets = line.out.as_slices().0;
        // A connection that is over takes nothing, and its end is told as an event.
        let taken = inner.write(now, to, octets).unwrap_or(0);
        let whole = taken == octets.len();
        line.out.drain(..taken);
        wrote |= taken > 0;
        if !whole {
            break;
        }
    }
    let is_empty = line.has_nothing_to_send();
    if is_empty && line.finishing && !line.closed {
        line.closed = true;
        inner.close(now, to);
    } else if is_empty && wrote {
        // The last octets for now are repeated where the loss makes that worth while.
        inner.pause(now, to);
    }
    if wrote {
        board.tell(id);
    }
}
