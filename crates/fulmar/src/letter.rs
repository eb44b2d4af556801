//! Messages as octets of a stream: length, time of sending, lifetime, content.
//!
//! All numbers are big-endian. A line of messages begins with [`Preamble`].

use crate::lateness::Lateness;
use fulmar_proto::units::{Duration, Instant};
use std::collections::VecDeque;

/// Octets of one message at most.
pub(crate) const MESSAGE_BYTES_MAX: usize = 65_536;
/// Octets of messages that wait to be sent, at most.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Octets that a waiting message is counted for beside its own, so that empty ones are bounded too.
const LETTER_COST: usize = 64;
const HEAD_BYTES: usize = 12;
/// In place of a length: no message follows. The number of lines to which that applies comes next.
const END: u32 = u32::MAX;
pub(crate) const PREAMBLE_BYTES: usize = 9;
/// The longest life of a message. Stamps count microseconds modulo 2^32: 71 minutes.
pub(crate) const LIFETIME_MAX: Duration = Duration::from_secs(1_800);

/// The beginning of a line: to which [`Messages`](crate::Messages) it belongs, and its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preamble {
    pub(crate) id: u64,
    pub(crate) priority: u8,
}

impl Preamble {
    pub(crate) fn octets(self) -> [u8; PREAMBLE_BYTES] {
        let mut octets = [self.priority; PREAMBLE_BYTES];
        octets[..8].copy_from_slice(&self.id.to_be_bytes());
        octets
    }

    fn read(octets: [u8; PREAMBLE_BYTES]) -> Self {
        let [i0, i1, i2, i3, i4, i5, i6, i7, priority] = octets;
        let id = u64::from_be_bytes([i0, i1, i2, i3, i4, i5, i6, i7]);
        Self { id, priority }
    }
}

#[derive(Debug)]
struct Letter {
    sent: Instant,
    lifetime: Duration,
    octets: Vec<u8>,
}

/// Messages of one priority that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    letters: VecDeque<Letter>,
    bytes: usize,
    /// A message was refused for lack of room.
    refused: bool,
    /// Messages dropped because their time was over before they could leave.
    pub(crate) expired: u64,
    /// The number of lines that end with this one, to be said behind the last message.
    pub(crate) last_word: Option<u32>,
}

impl Outbox {
    /// Takes a message; `false` if too much waits.
    pub(crate) fn push(&mut self, now: Instant, octets: &[u8], lifetime: Duration) -> bool {
        if self.bytes + octets.len() > WAITING_BYTES_MAX {
            self.drop_expired(now);
        }
        if self.bytes + octets.len() > WAITING_BYTES_MAX {
            self.refused = true;
            return false;
        }
        self.bytes += octets.len() + LETTER_COST;
        self.letters.push_back(Letter {
            sent: now,
            lifetime,
            octets: octets.to_vec(),
        });
        true
    }

    fn drop_expired(&mut self, now: Instant) {
        let before = self.letters.len();
        (self.letters).retain(|letter| now.saturating_since(letter.sent) < letter.lifetime);
        self.expired += (before - self.letters.len()) as u64;
        let bytes = self.letters.iter().map(|l| l.octets.len() + LETTER_COST);
        self.bytes = bytes.sum();
    }

    /// When the first of the messages that wait ends, if one was refused since [`Outbox::make_room`].
    pub(crate) fn room_at(&self) -> Option<Instant> {
        let ends = || self.letters.iter().map(|l| l.sent + l.lifetime).min();
        self.refused.then(ends).flatten()
    }

    /// Drops the messages that are worth nothing any more, so that what was refused may be tried again.
    pub(crate) fn make_room(&mut self, now: Instant) {
        self.drop_expired(now);
        self.refused = false;
    }

    /// Appends the next message that is worth sending to `out`. `false`: there is none.
    pub(crate) fn write_next(&mut self, now: Instant, out: &mut VecDeque<u8>) -> bool {
        while let Some(letter) = self.letters.pop_front() {
            self.bytes -= letter.octets.len() + LETTER_COST;
            if now.saturating_since(letter.sent) >= letter.lifetime {
                self.expired += 1;
                continue;
            }
            let len = u32::try_from(letter.octets.len()).unwrap_or(u32::MAX);
            let lifetime = u32::try_from(letter.lifetime.as_micros()).unwrap_or(u32::MAX);
            for number in [len, letter.sent.as_wrapping_micros(), lifetime] {
                out.extend(number.to_be_bytes());
            }
            out.extend(letter.octets);
            return true;
        }
        let Some(lines) = self.last_word.take() else {
            return false;
        };
        for number in [END, lines, 0] {
            out.extend(number.to_be_bytes());
        }
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.letters.is_empty() && self.last_word.is_none()
    }
}

/// The part of a line that was read.
#[derive(Debug)]
pub(crate) enum LetterPiece {
    Preamble(Preamble),
    /// A message, and when it is worth nothing any more, had it taken no time on the quickest way.
    Message(Vec<u8>, Instant),
    /// The end of that many lines, this one included.
    End(u32),
}

/// The error about octets that are no messages.
#[derive(Debug)]
pub(crate) struct MalformedLetter;

/// Cuts a line into messages.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pending: Vec<u8>,
    begun: bool,
    lateness: Lateness,
}

impl Reader {
    /// A reader of a line that this end opened, in which no preamble comes back.
    pub(crate) fn of_answers() -> Self {
        Self {
            begun: true,
            ..Self::default()
        }
    }

    /// The next piece that ends within `octets`, which is shortened by what was read.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        octets: &mut &[u8],
    ) -> Result<Option<LetterPiece>, MalformedLetter> {
        if !self.begun {
            if !self.fill(PREAMBLE_BYTES, octets) {
                return Ok(None);
            }
            let first = self.pending.first_chunk().copied().ok_or(MalformedLetter)?;
            self.begun = true;
            self.pending.clear();
            return Ok(Some(LetterPiece::Preamble(Preamble::read(first))));
        }
        if !self.fill(HEAD_BYTES, octets) {
            return Ok(None);
        }
        let [len, stamp, lifetime] = self.head().ok_or(MalformedLetter)?;
        if len == END {
            self.pending.clear();
            return Ok(Some(LetterPiece::End(stamp)));
        }
        let len = usize::try_from(len).map_err(|_| MalformedLetter)?;
        if len > MESSAGE_BYTES_MAX {
            return Err(MalformedLetter);
        }
        if !self.fill(HEAD_BYTES + len, octets) {
            return Ok(None);
        }
        let content = self.pending.split_off(HEAD_BYTES);
        self.pending.clear();
        let late = self.lateness.of(now, stamp);
        let left = Duration::from_micros(lifetime.into()).saturating_sub(late);
        Ok(Some(LetterPiece::Message(content, now + left)))
    }

    fn head(&self) -> Option<[u32; 3]> {
        let octets: &[u8; HEAD_BYTES] = self.pending.first_chunk()?;
        let [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3] = *octets;
        let number = u32::from_be_bytes;
        Some([
            number([a0, a1, a2, a3]),
            number([b0, b1, b2, b3]),
            number([c0, c1, c2, c3]),
        ])
    }

    /// Whether `wanted` octets are there, now that as many as are missing were taken from `octets`.
    fn fill(&mut self, wanted: usize, octets: &mut &[u8]) -> bool {
        let missing = wanted.saturating_sub(self.pending.len());
        let (taken, rest) = octets.split_at(missing.min(octets.len()));
        self.pending.extend_from_slice(taken);
        *octets = rest;
        self.pending.len() >= wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    fn line(letters: &[(u64, &[u8], Duration)], leaves: u64) -> Vec<u8> {
        let preamble = Preamble { id: 7, priority: 3 };
        let mut out: VecDeque<u8> = preamble.octets().into_iter().collect();
        let mut outbox = Outbox::default();
        for (sent, octets, lifetime) in letters {
            assert!(outbox.push(at(*sent), octets, *lifetime));
        }
        while outbox.write_next(at(leaves), &mut out) {}
        out.into()
    }

    #[test]
    fn a_line_is_read_back_however_it_is_cut() {
        let octets = line(
            &[(0, b"one", SECOND), (1, b"", SECOND), (2, b"three", SECOND)],
            2,
        );
        for cut in 1..octets.len() {
            let mut reader = Reader::default();
            let mut read = Vec::new();
            for mut part in octets.chunks(cut) {
                while let Some(piece) = reader.next(at(10), &mut part).unwrap() {
                    match piece {
                        LetterPiece::Preamble(preamble) => assert_eq!(preamble.id, 7),
                        LetterPiece::Message(content, _) => read.push(content),
                        LetterPiece::End(_) => panic!("no end was written"),
                    }
                }
            }
            assert_eq!(read, [&b"one"[..], b"", b"three"]);
        }
    }

    #[test]
    fn what_waited_longer_than_its_life_does_not_leave() {
        let octets = line(&[(0, b"old", SECOND), (500, b"new", SECOND)], 1_000);
        assert_eq!(octets.len(), PREAMBLE_BYTES + HEAD_BYTES + 3);
        assert!(octets.ends_with(b"new"));
    }

    #[test]
    fn what_was_long_on_its_way_is_late_whatever_the_clocks_say() {
        let mut reader = Reader::default();
        let far = 7_000_000;
        let octets = line(&[(0, b"fast", SECOND), (100, b"slow", SECOND)], 100);
        let (first, second) = octets.split_at(octets.len() - HEAD_BYTES - 4);
        let mut ends = |millis, mut octets: &[u8]| {
            let mut last = None;
            while let Ok(Some(piece)) = reader.next(at(far + millis), &mut octets) {
                last = Some(piece);
            }
            last.expect("a whole piece")
        };
        assert!(
            matches!(ends(0, first), LetterPiece::Message(_, until) if until == at(far + 1_000))
        );
        // It took 300 ms longer than the first, and has 700 ms left.
        let second = ends(400, second);
        assert!(
            matches!(second, LetterPiece::Message(_, until) if until == at(far + 1_100)),
            "{second:?}"
        );
    }

    #[test]
    fn an_impossible_length_is_malformed() {
        let mut octets = line(&[(0, b"x", SECOND)], 0);
        octets[PREAMBLE_BYTES] = 0xFF;
        let mut reader = Reader::default();
        let mut rest = &octets[..];
        assert!(
            reader
                .next(at(0), &mut rest)
                .is_ok_and(|piece| piece.is_some())
        );
        assert!(reader.next(at(0), &mut rest).is_err());
    }

    #[test]
    fn waiting_messages_are_bounded_and_expired_ones_make_room() {
        let mut outbox = Outbox::default();
        let message = vec![0; MESSAGE_BYTES_MAX];
        let taken = (0..100).filter(|_| outbox.push(at(0), &message, SECOND));
        assert_eq!(taken.count(), 15);
        assert!(outbox.push(at(1_000), &message, SECOND));
        assert_eq!(outbox.expired, 15);
    }
}
