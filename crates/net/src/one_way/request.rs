//! Requests of receivers that share a thin way back.
//!
//! After a round the sender invites requests. Each receiver that lacks something waits for a time that it draws, and stays silent
//! if it has heard a request for at least as much of every block. A request says how many units of each block are missing and not which:
//! any do, so one repair symbol mends different losses. The idea is NORM's (RFC 5740, section 5.3).

use super::seal::StreamId;
use super::wire::{Announcement, FileTag, Form, Symbol};
use fulmar_proto::machine::PathId;
use fulmar_proto::units::Instant;
use std::collections::BTreeMap;

/// The blocks that one request names at most.
const BLOCKS_MAX: usize = 256;

/// The units that a receiver lacks of each block.
pub(super) type Needs = BTreeMap<u16, u16>;

/// Raises `needs` to what `others` lack.
pub(super) fn join(needs: &mut Needs, others: &Needs) {
    for (&block, &missing) in others {
        let known = needs.entry(block).or_default();
        *known = (*known).max(missing);
    }
}

/// Whether whoever sends for `heard` sends enough for `needs`, of which a request has the first blocks only.
pub(super) fn covers(heard: &Needs, needs: &Needs) -> bool {
    let is_covered = |(block, missing)| heard.get(block).is_some_and(|heard| heard >= missing);
    needs.iter().take(BLOCKS_MAX).all(is_covered)
}

/// A receiver's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) file: FileTag,
    /// The start and the number of the invitation that it answers: an old request counts for nothing.
    pub(super) stream: StreamId,
    pub(super) number: u16,
    pub(super) needs: Needs,
}

impl Request {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.file.0.to_be_bytes());
        out.extend_from_slice(&self.stream.sender.to_be_bytes());
        out.extend_from_slice(&self.stream.start.to_be_bytes());
        out.extend_from_slice(&self.number.to_be_bytes());
        for (block, missing) in self.needs.iter().take(BLOCKS_MAX) {
            out.extend_from_slice(&block.to_be_bytes());
            out.extend_from_slice(&missing.to_be_bytes());
        }
    }

    pub(super) fn read(content: &[u8]) -> Option<Self> {
        let (file, rest) = content.split_first_chunk()?;
        let (sender, rest) = rest.split_first_chunk()?;
        let (start, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (pairs, over) = rest.as_chunks::<4>();
        if !over.is_empty() || pairs.is_empty() || pairs.len() > BLOCKS_MAX {
            return None;
        }
        let needs = pairs
            .iter()
            .map(|&[a, b, c, d]| (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])));
        let needs: Needs = needs.collect();
        if needs.values().any(|&missing| missing == 0) {
            return None;
        }
        Some(Self {
            file: FileTag(u32::from_be_bytes(*file)),
            stream: StreamId {
                sender: u32::from_be_bytes(*sender),
                start: u32::from_be_bytes(*start),
            },
            number: u16::from_be_bytes(*number),
            needs,
        })
    }
}

/// A receiver's part in one invitation.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) stream: StreamId,
    /// The path on which the invitation came: its sender waits there.
    pub(super) path: PathId,
    pub(super) number: u16,
    /// The time of the request; `None`: it was made, or others made it.
    pub(super) at: Option<Instant>,
    /// Requests of others, joined.
    pub(super) heard: Needs,
}

/// The content of a datagram of `form`, read and written again; `None` if it is none. For tests of the formats.
pub fn rewrite_content(form: u8, content: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match Form::of(form)? {
        Form::Symbol => {
            let symbol = Symbol::read(content)?;
            Symbol::write_id(symbol.file, symbol.block, symbol.unit, &mut out);
            out.extend_from_slice(symbol.octets);
        }
        Form::Announcement => Announcement::read(content)?.write(&mut out),
        Form::Request => Request::read(content)?.write(&mut out),
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(pairs: &[(u16, u16)]) -> Needs {
        pairs.iter().copied().collect()
    }

    #[test]
    fn a_request_comes_back_from_its_octets_and_from_no_others() {
        let request = Request {
            file: FileTag(9),
            stream: StreamId {
                sender: 1,
                start: 2,
            },
            number: 3,
            needs: needs(&[(0, 7), (5, 16_384)]),
        };
        let mut octets = Vec::new();
        request.write(&mut octets);
        assert_eq!(Request::read(&octets), Some(request));
        let mut nothing = octets.clone();
        let end = nothing.len();
        nothing[end - 2..].fill(0);
        assert_eq!(Request::read(&nothing), None, "it asks for nothing");
        for cut in 0..octets.len() {
            let read = Request::read(&octets[..cut]);
            assert_eq!(read.is_some(), cut == octets.len() - 4, "{cut}");
        }
    }

    #[test]
    fn needs_are_covered_by_as_much_of_every_block() {
        let mut heard = needs(&[(0, 5)]);
        assert!(covers(&heard, &needs(&[(0, 5)])) && covers(&heard, &needs(&[])));
        assert!(!covers(&heard, &needs(&[(0, 6)])) && !covers(&heard, &needs(&[(1, 1)])));
        join(&mut heard, &needs(&[(0, 3), (1, 2)]));
        assert_eq!(heard, needs(&[(0, 5), (1, 2)]));
        // A request has no room for more blocks than this.
        let many: Needs = (0..300).map(|block| (block, 1)).collect();
        let told: Needs = (0..256).map(|block| (block, 1)).collect();
        assert!(covers(&told, &many));
    }
}
