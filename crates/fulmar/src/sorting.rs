//! Messages that come, sorted by whom they are for.

use crate::board::{BACKLOG_MAX, Board, Group, LineFailure, LineId};
use crate::letter::LetterPiece;
use crate::messages::PRIORITIES_MAX;
use crate::peers::Peers;
use crate::relay::{Link, UNSENT_MESSAGES};
use fulmar_proto::machine::Priority;
use fulmar_proto::transport::aerotp::{ConnectionId, Share, Treatment};
use fulmar_proto::units::{FecStrength, Instant};
use std::io::ErrorKind;

/// Takes what came on a line of messages, until its group is full.
pub(crate) fn receive(
    peers: &Peers,
    now: Instant,
    (link, board): (&mut Link, &mut Board),
    (id, from): (LineId, ConnectionId),
    is_full: impl Fn(&Group) -> bool,
) -> Result<(), LineFailure> {
    let group = board
        .lines
        .get(&id)
        .and_then(|line| line.post.as_ref()?.group);
    if let Some(group) = group.and_then(|group| board.groups.get_mut(&group)) {
        measure(peers, link, group);
    }
    loop {
        let Some(post) = board.lines.get(&id).and_then(|line| line.post.as_ref()) else {
            return Ok(());
        };
        let group = post.group.and_then(|group| board.groups.get(&group));
        if group.is_some_and(&is_full) {
            return Ok(());
        }
        let Some(chunk) = link.inner_mut().read(now, from) else {
            return Ok(());
        };
        let mut octets = &chunk.octets[..];
        loop {
            let Some(line) = board.lines.get_mut(&id) else {
                return Ok(());
            };
            let Some(post) = line.post.as_mut() else {
                return Ok(());
            };
            let fits = match post.reader.next(now, &mut octets) {
                Ok(None) => break,
                Ok(Some(LetterPiece::Preamble(preamble))) => {
                    let treatment = Treatment {
                        priority: Priority(preamble.priority),
                        share: Share::default(),
                        fec_words: FecStrength::NONE,
                        block: None,
                        unsent_bytes_max: UNSENT_MESSAGES,
                    };
                    let treated = link.inner_mut().treat(now, from, treatment);
                    treated.is_ok() && join(board, id, preamble.id, preamble.priority)
                }
                Ok(Some(LetterPiece::Message(message, until))) => {
                    let group = post.group.and_then(|group| board.groups.get_mut(&group));
                    match group {
                        Some(group) => group.push(message, until),
                        None => line.unwanted = true,
                    }
                    true
                }
                Ok(Some(LetterPiece::End(lines))) => {
                    post.ended = true;
                    let group = post.group.and_then(|group| board.groups.get_mut(&group));
                    if let Some(group) = group {
                        group.ends = Some(lines);
                        group.signal.tell();
                    }
                    true
                }
                Err(_) => false,
            };
            if !fits {
                let text = "the peer sent what are no messages, more than fit, or some for a handle that was dropped";
                return Err(LineFailure::new(ErrorKind::InvalidData, text));
            }
        }
        link.inner_mut().recycle(from, chunk.octets);
    }
}

/// Takes note of the shortest round trip to a group's peer.
pub(crate) fn measure(peers: &Peers, link: &Link, group: &mut Group) {
    let index = peers.index_of(group.peer);
    let measured = index.and_then(|index| link.status(index)?.rtt);
    let one_way = measured.map(|round_trip| round_trip / 2);
    group.one_way = match (group.one_way, one_way) {
        (Some(least), Some(one_way)) => Some(least.min(one_way)),
        (least, one_way) => least.or(one_way),
    };
}

/// Puts a line that the peer opened into the group that its preamble names, made if need be.
fn join(board: &mut Board, line: LineId, id: u64, priority: u8) -> bool {
    let peer = board.lines.get(&line).and_then(|line| line.peer);
    let of_peer = |group: &Group| group.id == id && group.peer == peer;
    let known = board.groups.iter().find(|(_, group)| of_peer(group));
    let group = match known.map(|(key, _)| *key) {
        Some(group) => group,
        None if !board.listening || board.dismissed.contains(&(peer, id)) => return false,
        None if board.groups_to_accept.len() >= BACKLOG_MAX => return false,
        None => {
            let group = Group {
                peer,
                id,
                ..Group::default()
            };
            let group = board.add_group(group);
            board.groups_to_accept.push_back(group);
            board.accepting.tell();
            group
        }
    };
    let Some(state) = board.groups.get_mut(&group) else {
        return false;
    };
    if state.lines.len() >= PRIORITIES_MAX || state.lines.contains_key(&priority) {
        return false;
    }
    state.lines.insert(priority, line);
    let finished = state.finished;
    let Some(line) = board.lines.get_mut(&line) else {
        return false;
    };
    line.finishing |= finished;
    line.post.get_or_insert_default().group = Some(group);
    true
}
