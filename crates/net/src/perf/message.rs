//! The messages: test, number, the time from which the delay counts, and padding up to the length.

use fulmar_proto::units::Instant;

/// The head of a message.
pub(super) const HEAD_BYTES: usize = 20;

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The test's number.
    pub(super) id: u32,
    /// The message's number, from 0, without a gap.
    pub(super) sequence: u64,
    /// The time from which its delay counts, by the sender's clock: when it was due, or was sent where messages have no rate.
    pub(super) sent: Instant,
}

impl Head {
    /// Writes the message over the first octets of `out`, which is as long as a message at least.
    pub(super) fn write(self, out: &mut [u8]) {
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&self.id.to_be_bytes());
        head[4..12].copy_from_slice(&self.sequence.to_be_bytes());
        head[12..].copy_from_slice(&self.sent.as_nanos().to_be_bytes());
        if let Some(place) = out.first_chunk_mut::<HEAD_BYTES>() {
            *place = head;
        }
    }

    /// Reads the head of a message; `None` if there are too few octets.
    pub(super) fn read(octets: &[u8]) -> Option<Self> {
        let (id, rest) = octets.split_first_chunk::<4>()?;
        let (sequence, rest) = rest.split_first_chunk::<8>()?;
        let sent = rest.first_chunk::<8>()?;
        Some(Self {
            id: u32::from_be_bytes(*id),
            sequence: u64::from_be_bytes(*sequence),
            sent: Instant::from_nanos(u64::from_be_bytes(*sent)),
        })
    }
}

/// A cutter of a stream into messages of one length.
#[derive(Debug)]
pub(super) struct Cutter {
    message_bytes: usize,
    head: Vec<u8>,
    /// Octets of the current message that came.
    seen: usize,
}

impl Cutter {
    /// A cutter for messages of `message_bytes`, which is [`HEAD_BYTES`] at least.
    pub(super) fn new(message_bytes: usize) -> Self {
        Self {
            message_bytes: message_bytes.max(HEAD_BYTES),
            head: Vec::with_capacity(HEAD_BYTES),
            seen: 0,
        }
    }

    /// The head of the next message that ends within `octets`, which is shortened by what was read.
    pub(super) fn next(&mut self, octets: &mut &[u8]) -> Option<Head> {
        let wanted = self.message_bytes - self.seen;
        let (piece, rest) = octets.split_at(wanted.min(octets.len()));
        *octets = rest;
        let of_head = (HEAD_BYTES - self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..of_head]);
        self.seen += piece.len();
        if self.seen < self.message_bytes {
            return None;
        }
        let head = Head::read(&self.head);
        self.head.clear();
        self.seen = 0;
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_however_the_stream_is_cut() {
        let heads: Vec<Head> = (0..5)
            .map(|sequence| Head {
                id: 9,
                sequence,
                sent: Instant::from_nanos(sequence << 40),
            })
            .collect();
        for length in [HEAD_BYTES, HEAD_BYTES + 1, 100] {
            let mut stream = vec![0xAA; 5 * length];
            for (head, place) in heads.iter().zip(stream.chunks_mut(length)) {
                head.write(place);
            }
            for size in 1..=stream.len() {
                let mut cutter = Cutter::new(length);
                let mut found = Vec::new();
                for mut piece in stream.chunks(size) {
                    while !piece.is_empty() {
                        found.extend(cutter.next(&mut piece));
                    }
                }
                assert_eq!(found, heads, "messages of {length} in pieces of {size}");
            }
        }
    }
}
