//! Octets between a line and its connection.

use crate::board::{Board, Failure, LINE_BYTES_MAX, LineId};
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
) -> Result<(), Failure> {
    let Some(line) = board.lines.get_mut(&id) else {
        return Ok(());
    };
    if line.post.is_some() {
        return sorting::receive(peers, now, (link, board), (id, from));
    }
    line.more_to_read = false;
    let mut came = false;
    loop {
        if line.came.len() >= LINE_BYTES_MAX {
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
    Ok(())
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
