//! The words of the two ends of a file transfer to each other, and their octets.
//!
//! A conversation is a stream of records in each direction:
//!
//! ```text
//!  0        1                 5
//! +--------+-----------------+------------------+
//! |  type  | length (32 bit) |  body (length)   |     all numbers big-endian
//! +--------+-----------------+------------------+
//!
//!  sender    HELLO(mode, id, size, seekable, name) DATA(offset, octets)* END(size, digest)
//!  receiver        OFFER(offset, digest of the octets before it)            DONE(...)
//! ```
//!
//! The sender does not wait for the OFFER, but until then it writes no further ahead than the
//! transport sends, since written octets cannot be taken back. If the OFFER is of more than was written, and
//! its digest is that of the sender's own first octets, DATA continues there; if the digest differs,
//! START(0) begins again. Either side may end everything with REFUSE. When a second sender introduces a
//! file of the same name, the receiver sends PING to the first, to know whether it is still there.
//! A sender that ends before its file does resets its connection and, since a reset may be lost, says
//! LEAVE(id) on a connection of its own.
//!
//! In modes that may lose data the same records travel on a reliable connection of their own, and
//! the data in messages that carry their place: id (32 bit), offset (64 bit), octets.
//!
//! # Promises
//! - Only short records are buffered: DATA is handed on as it comes.
//! - Whatever the octets are, decoding ends in records or in one [`BadRecord`], never in a panic.

use fulmar_proto::wire::Mode;

/// The version in HELLO.
const VERSION: u8 = 1;
/// Type and length.
const HEAD_BYTES: usize = 5;
/// The longest body that is not DATA: a REFUSE with its text, a HELLO with its name.
const BODY_BYTES_MAX: usize = 1_024;
/// The offset in front of DATA's octets.
const DATA_HEAD_BYTES: usize = 8;
/// Octets in one DATA record, at most.
pub(super) const DATA_BYTES_MAX: usize = 32_768;
/// The longest name of a file that Linux, macOS and Windows agree on.
pub(super) const NAME_BYTES_MAX: usize = 255;
/// Id and offset in front of a message's octets.
pub(super) const MESSAGE_HEAD_BYTES: usize = 12;

/// A BLAKE3 digest.
pub(super) type Digest = [u8; 32];

/// Why one side refuses to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferRefusal {
    /// There is a file of that name, and it may not be replaced.
    Exists,
    /// The name cannot be a file's name here.
    Name,
    /// The file cannot be written or read.
    Storage,
    /// The other side broke the protocol.
    Protocol,
    /// Another sender is sending a file of that name.
    Busy,
    /// The receiver was told to stop.
    Stopped,
}

impl TransferRefusal {
    const ALL: [Self; 6] = [
        Self::Exists,
        Self::Name,
        Self::Storage,
        Self::Protocol,
        Self::Busy,
        Self::Stopped,
    ];

    fn code(self) -> u8 {
        match self {
            Self::Exists => 1,
            Self::Name => 2,
            Self::Storage => 3,
            Self::Protocol => 4,
            Self::Busy => 5,
            Self::Stopped => 6,
        }
    }
}

/// Everything but DATA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The sender introduces a file.
    Hello {
        mode: Mode,
        id: u64,
        /// `None` for a pipe.
        size: Option<u64>,
        /// Whether the sender can continue at another place than the start.
        seekable: bool,
        name: String,
    },
    /// The receiver has the first `offset` octets, with this digest.
    Offer { offset: u64, digest: Digest },
    /// DATA continues at `offset`; the receiver forgets what it has beyond.
    Start { offset: u64 },
    /// All has been sent.
    End { size: u64, digest: Digest },
    /// The receiver's verdict.
    Done {
        delivered: u64,
        missing: u64,
        intact: bool,
    },
    /// One side gives up.
    Refuse {
        reason: TransferRefusal,
        text: String,
    },
    /// The sender of the transfer `id` has ended it. The only record of its connection.
    Leave { id: u64 },
    /// A record without content: its confirmation shows that the peer is there.
    Ping,
}

/// The octets are not a conversation of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRecord {
    /// The type is unknown.
    #[error("a record of unknown type {0}")]
    Type(u8),
    /// The length does not fit the type.
    #[error("a record of type {kind} with a body of {length} octets")]
    Length {
        /// The type.
        kind: u8,
        /// The length.
        length: u32,
    },
    /// A field holds a value without meaning.
    #[error("a record of type {0} with a field out of range")]
    Field(u8),
    /// The other side speaks a later version.
    #[error("version {0} of the file protocol; this is version 1")]
    Version(u8),
}

const HELLO: u8 = 1;
const OFFER: u8 = 2;
const START: u8 = 3;
const DATA: u8 = 4;
const END: u8 = 5;
const DONE: u8 = 6;
const REFUSE: u8 = 7;
const PING: u8 = 8;
const LEAVE: u8 = 9;

/// HELLO's flags.
const SEEKABLE: u8 = 1;
const SIZED: u8 = 2;

fn head(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    let length = u32::try_from(length).expect("bodies are short");
    out.extend_from_slice(&length.to_be_bytes());
}

/// Cuts `text` to at most `bytes_max` octets, between characters.
fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl Record {
    /// Appends the record's octets.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        let kind = match self {
            Self::Hello {
                mode,
                id,
                size,
                seekable,
                name,
            } => {
                let flags =
                    if *seekable { SEEKABLE } else { 0 } | if size.is_some() { SIZED } else { 0 };
                body.extend_from_slice(&[VERSION, mode.code(), flags]);
                body.extend_from_slice(&id.to_be_bytes());
                body.extend_from_slice(&size.unwrap_or(0).to_be_bytes());
                body.extend_from_slice(cut(name, NAME_BYTES_MAX).as_bytes());
                HELLO
            }
            Self::Offer { offset, digest } => {
                body.extend_from_slice(&offset.to_be_bytes());
                body.extend_from_slice(digest);
                OFFER
            }
            Self::Start { offset } => {
                body.extend_from_slice(&offset.to_be_bytes());
                START
            }
            Self::End { size, digest } => {
                body.extend_from_slice(&size.to_be_bytes());
                body.extend_from_slice(digest);
                END
            }
            Self::Done {
                delivered,
                missing,
                intact,
            } => {
                body.extend_from_slice(&delivered.to_be_bytes());
                body.extend_from_slice(&missing.to_be_bytes());
                body.push(u8::from(*intact));
                DONE
            }
            Self::Refuse { reason, text } => {
                body.push(reason.code());
                body.extend_from_slice(cut(text, BODY_BYTES_MAX - 1).as_bytes());
                REFUSE
            }
            Self::Leave { id } => {
                body.extend_from_slice(&id.to_be_bytes());
                LEAVE
            }
            Self::Ping => PING,
        };
        head(kind, body.len(), out);
        out.extend_from_slice(&body);
    }

    fn decode(kind: u8, body: &[u8]) -> Result<Self, BadRecord> {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let mut fields = Fields {
            kind,
            length,
            rest: body,
        };
        let record = match kind {
            HELLO => {
                let [version] = fields.take::<1>()?;
                if version != VERSION {
                    return Err(BadRecord::Version(version));
                }
                let [mode, flags] = fields.take::<2>()?;
                let id = fields.number()?;
                let size = fields.number()?;
                Self::Hello {
                    mode: Mode::from_code(mode).ok_or(BadRecord::Field(kind))?,
                    id,
                    size: (flags & SIZED != 0).then_some(size),
                    seekable: flags & SEEKABLE != 0,
                    name: fields.text(NAME_BYTES_MAX)?,
                }
            }
            OFFER => Self::Offer {
                offset: fields.number()?,
                digest: fields.take()?,
            },
            START => Self::Start {
                offset: fields.number()?,
            },
            END => Self::End {
                size: fields.number()?,
                digest: fields.take()?,
            },
            DONE => Self::Done {
                delivered: fields.number()?,
                missing: fields.number()?,
                intact: fields.take::<1>()? == [1],
            },
            REFUSE => {
                let [code] = fields.take::<1>()?;
                let reason = TransferRefusal::ALL
                    .into_iter()
                    .find(|reason| reason.code() == code);
                Self::Refuse {
                    reason: reason.ok_or(BadRecord::Field(kind))?,
                    text: fields.text(BODY_BYTES_MAX)?,
                }
            }
            LEAVE => Self::Leave {
                id: fields.number()?,
            },
            PING => Self::Ping,
            _ => return Err(BadRecord::Type(kind)),
        };
        if fields.rest.is_empty() {
            Ok(record)
        } else {
            Err(BadRecord::Length { kind, length })
        }
    }
}

/// Appends the head of a DATA record whose `len` octets follow.
pub(super) fn encode_data_head(offset: u64, len: usize, out: &mut Vec<u8>) {
    head(DATA, DATA_HEAD_BYTES + len, out);
    out.extend_from_slice(&offset.to_be_bytes());
}

/// Appends the head of a message whose octets follow.
pub(super) fn encode_message_head(id: u64, offset: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&message_id(id).to_be_bytes());
    out.extend_from_slice(&offset.to_be_bytes());
}

/// The part of a transfer's id that messages carry.
pub(super) fn message_id(id: u64) -> u32 {
    (id & 0xFFFF_FFFF) as u32
}

/// Id, offset and octets of a message; `None` if it is too short to have them.
pub(super) fn decode_message(message: &[u8]) -> Option<(u32, u64, &[u8])> {
    let (id, rest) = message.split_first_chunk::<4>()?;
    let (offset, octets) = rest.split_first_chunk::<8>()?;
    Some((u32::from_be_bytes(*id), u64::from_be_bytes(*offset), octets))
}

struct Fields<'a> {
    kind: u8,
    length: u32,
    rest: &'a [u8],
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadRecord> {
        let (field, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(BadRecord::Length {
                kind: self.kind,
                length: self.length,
            })?;
        self.rest = rest;
        Ok(*field)
    }

    fn number(&mut self) -> Result<u64, BadRecord> {
        self.take().map(u64::from_be_bytes)
    }

    fn text(&mut self, bytes_max: usize) -> Result<String, BadRecord> {
        let octets = std::mem::take(&mut self.rest);
        match std::str::from_utf8(octets) {
            Ok(text) if octets.len() <= bytes_max => Ok(text.to_owned()),
            _ => Err(BadRecord::Field(self.kind)),
        }
    }
}

/// Something that the peer said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Record(Record),
    /// A piece of a DATA record and its place in the file.
    Data {
        offset: u64,
        octets: &'a [u8],
    },
}

/// A reader that takes a stream of records apart, however it is cut.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// The head, and the body of anything but DATA.
    held: Vec<u8>,
    /// The rest of the current DATA record: its place and length.
    data: Option<(u64, usize)>,
}

impl Records {
    /// Takes one item from the front of `octets`; `None` when it needs more of them.
    ///
    /// # Errors
    /// [`BadRecord`]; the stream makes no sense from here on.
    pub(super) fn next<'a>(
        &mut self,
        octets: &mut &'a [u8],
    ) -> Result<Option<Item<'a>>, BadRecord> {
        loop {
            if let Some((offset, left)) = self.data {
                let (piece, rest) = octets.split_at(left.min(octets.len()));
                *octets = rest;
                let further = offset.saturating_add(piece.len() as u64);
                self.data = (left > piece.len()).then_some((further, left - piece.len()));
                return Ok((!piece.is_empty()).then_some(Item::Data {
                    offset,
                    octets: piece,
                }));
            }
            if !self.fill(octets, HEAD_BYTES) {
                return Ok(None);
            }
            let (kind, length) = self.head();
            let too_long = BadRecord::Length { kind, length };
            let length = usize::try_from(length).map_err(|_| too_long)?;
            if kind == DATA {
                if !(DATA_HEAD_BYTES + 1..=DATA_HEAD_BYTES + DATA_BYTES_MAX).contains(&length) {
                    return Err(too_long);
                }
                if !self.fill(octets, HEAD_BYTES + DATA_HEAD_BYTES) {
                    return Ok(None);
                }
                let offset = self
                    .held
                    .last_chunk()
                    .map_or(0, |field| u64::from_be_bytes(*field));
                self.held.clear();
                self.data = Some((offset, length - DATA_HEAD_BYTES));
                continue;
            }
            if length > BODY_BYTES_MAX {
                return Err(too_long);
            }
            if !self.fill(octets, HEAD_BYTES + length) {
                return Ok(None);
            }
            let record = Record::decode(kind, self.held.get(HEAD_BYTES..).unwrap_or_default());
            self.held.clear();
            return record.map(|record| Some(Item::Record(record)));
        }
    }

    /// Moves octets over until `wanted` are held; returns whether they are.
    fn fill(&mut self, octets: &mut &[u8], wanted: usize) -> bool {
        let missing = wanted.saturating_sub(self.held.len());
        let (taken, rest) = octets.split_at(missing.min(octets.len()));
        self.held.extend_from_slice(taken);
        *octets = rest;
        self.held.len() >= wanted
    }

    fn head(&self) -> (u8, u32) {
        match self.held.first_chunk::<HEAD_BYTES>() {
            Some(&[kind, a, b, c, d]) => (kind, u32::from_be_bytes([a, b, c, d])),
            None => (0, 0),
        }
    }
}

/// Writes a conversation again as far as it parses, with consecutive octets in DATA records as long as they may be,
/// and returns the error in the rest. It is read in pieces of the lengths in `cuts`, the last piece in one.
/// For fuzzing.
pub fn rewrite_conversation(
    octets: &[u8],
    cuts: impl IntoIterator<Item = usize>,
) -> (Vec<u8>, Option<BadRecord>) {
    let mut records = Records::default();
    let mut data = DataRun::default();
    let mut out = Vec::new();
    let mut cuts = cuts.into_iter();
    let mut rest = octets;
    while !rest.is_empty() {
        let cut = cuts.next().unwrap_or(rest.len()).clamp(1, rest.len());
        let (mut part, after) = rest.split_at(cut);
        rest = after;
        loop {
            match records.next(&mut part) {
                Ok(None) => break,
                Ok(Some(Item::Data { offset, octets })) => data.add(offset, octets, &mut out),
                Ok(Some(Item::Record(record))) => {
                    data.write(&mut out);
                    record.encode(&mut out);
                }
                Err(error) => {
                    data.write(&mut out);
                    return (out, Some(error));
                }
            }
        }
    }
    data.write(&mut out);
    (out, None)
}

/// Octets that follow each other.
#[derive(Debug, Default)]
struct DataRun {
    offset: u64,
    octets: Vec<u8>,
}

impl DataRun {
    fn add(&mut self, mut offset: u64, mut octets: &[u8], out: &mut Vec<u8>) {
        while !octets.is_empty() {
            let end = self.offset.saturating_add(self.octets.len() as u64);
            if self.octets.is_empty() || end != offset || self.octets.len() == DATA_BYTES_MAX {
                self.write(out);
                self.offset = offset;
            }
            let room = DATA_BYTES_MAX - self.octets.len();
            let (taken, left) = octets.split_at(room.min(octets.len()));
            self.octets.extend_from_slice(taken);
            offset = offset.saturating_add(taken.len() as u64);
            octets = left;
        }
    }

    fn write(&mut self, out: &mut Vec<u8>) {
        if !self.octets.is_empty() {
            encode_data_head(self.offset, self.octets.len(), out);
            out.append(&mut self.octets);
        }
    }
}

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
