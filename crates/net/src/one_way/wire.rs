//! The octets of one-way datagrams, inside and outside the seal. `docs/protocol/one-way.md` has them field by field.

use super::layout::FileLayout;
use fulmar_proto::units::{Duration, Probability};
use std::fmt;

/// Octets of the header, which is not encrypted: form, sender, start, counter.
pub(super) const HEADER_BYTES: usize = 15;
/// Octets of the tag that proves a datagram.
pub(super) const TAG_BYTES: usize = 16;
/// Octets before a symbol: file, block, unit.
const SYMBOL_ID_BYTES: usize = 8;
/// Octets that a datagram has beside its symbol.
pub const ONE_WAY_OVERHEAD: usize = HEADER_BYTES + TAG_BYTES + SYMBOL_ID_BYTES;

/// The version of the announcement.
const VERSION: u8 = 1;
/// The flag of the last announcements of a sender.
const LAST: u8 = 1;
/// The flag of an announcement that invites requests.
const ASKS: u8 = 2;
/// The longest name, in octets.
const NAME_BYTES_MAX: usize = 255;
const MILLION: f64 = 1e6;
const BILLION: f64 = 1e9;

/// The content of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Symbol,
    Announcement,
    Request,
}

impl Form {
    pub(super) const fn octet(self) -> u8 {
        match self {
            Self::Symbol => 0x71,
            Self::Announcement => 0x72,
            Self::Request => 0x73,
        }
    }

    pub(super) const fn of(octet: u8) -> Option<Self> {
        match octet {
            0x71 => Some(Self::Symbol),
            0x72 => Some(Self::Announcement),
            0x73 => Some(Self::Request),
            _ => None,
        }
    }
}

/// The short name of a file on the wire: a part of a hash over all that the announcement says of the file itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTag(pub u32);

impl fmt::Display for FileTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// A symbol and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol<'a> {
    pub(super) file: FileTag,
    pub(super) block: u16,
    pub(super) unit: u16,
    pub(super) octets: &'a [u8],
}

impl<'a> Symbol<'a> {
    pub(super) fn read(content: &'a [u8]) -> Option<Self> {
        let (file, rest) = content.split_first_chunk()?;
        let (block, rest) = rest.split_first_chunk()?;
        let (unit, octets) = rest.split_first_chunk()?;
        Some(Self {
            file: FileTag(u32::from_be_bytes(*file)),
            block: u16::from_be_bytes(*block),
            unit: u16::from_be_bytes(*unit),
            octets,
        })
    }

    /// Appends the place alone; the octets follow.
    pub(super) fn write_id(file: FileTag, block: u16, unit: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&file.0.to_be_bytes());
        out.extend_from_slice(&block.to_be_bytes());
        out.extend_from_slice(&unit.to_be_bytes());
    }
}

/// The promise that a sender makes to each receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneWayPromise {
    /// The loss up to which the promise holds; 0 if none was named.
    pub loss: Probability,
    /// The probability that a receiver misses the file at that loss; 0 if none was named.
    pub residual: Probability,
    /// The symbols of one round.
    pub units: u64,
}

/// A sender's invitation to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Its number within the start.
    pub number: u16,
    /// The time over which receivers spread their requests, in milliseconds.
    pub spread_ms: u16,
}

impl Invitation {
    pub(super) fn spread(self) -> Duration {
        Duration::from_millis(self.spread_ms.into())
    }
}

/// Facts about a file, told again and again while its symbols are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Announcement {
    /// The file's name.
    pub name: String,
    /// Its octets.
    pub size: u64,
    /// Its BLAKE3 digest.
    pub digest: [u8; 32],
    /// Octets of a symbol.
    pub symbol_bytes: u16,
    /// The sender's promise.
    pub promise: OneWayPromise,
    /// Whether the sender is done.
    pub is_last: bool,
    /// The invitation to ask for what is missing, over a thin way back.
    pub asks: Option<Invitation>,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share times a billion at most"
)]
fn parts(share: Probability, of: f64) -> u32 {
    (share.value() * of + 0.5) as u32
}

fn share(parts: u32, of: f64) -> Option<Probability> {
    Probability::new(f64::from(parts) / of)
}

impl Announcement {
    /// The file's short name.
    pub fn tag(&self) -> FileTag {
        let mut hasher = blake3::Hasher::new_derive_key("fulmar 2026-11-27 one-way file");
        hasher.update(&self.size.to_be_bytes());
        hasher.update(&self.symbol_bytes.to_be_bytes());
        hasher.update(&self.digest);
        hasher.update(self.name.as_bytes());
        let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
        FileTag(u32::from_be_bytes([a, b, c, d]))
    }

    /// Whether both announce the same file in the same symbols.
    pub fn is_of_same_file(&self, other: &Self) -> bool {
        self.digest == other.digest
            && self.size == other.size
            && self.symbol_bytes == other.symbol_bytes
            && self.name == other.name
    }

    /// The layout of its symbols; `None`: it has none, which [`Announcement::read`] refuses.
    pub fn layout(&self) -> Option<FileLayout> {
        FileLayout::new(self.size, self.symbol_bytes).ok()
    }

    /// Appends its octets. A name is cut at 255 octets; callers check names.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let name = self.name.as_bytes();
        let name = &name[..name.len().min(NAME_BYTES_MAX)];
        let last = if self.is_last { LAST } else { 0 };
        let asks = if self.asks.is_some() { ASKS } else { 0 };
        out.extend_from_slice(&[VERSION, last | asks]);
        out.extend_from_slice(&self.size.to_be_bytes());
        out.extend_from_slice(&self.digest);
        out.extend_from_slice(&self.symbol_bytes.to_be_bytes());
        out.extend_from_slice(&parts(self.promise.loss, MILLION).to_be_bytes());
        out.extend_from_slice(&parts(self.promise.residual, BILLION).to_be_bytes());
        out.extend_from_slice(&self.promise.units.to_be_bytes());
        if let Some(Invitation { number, spread_ms }) = self.asks {
            out.extend_from_slice(&number.to_be_bytes());
            out.extend_from_slice(&spread_ms.to_be_bytes());
        }
        // It was cut to that.
        out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(name);
    }

    /// The announcement in `content`, with nothing behind it; `None` for any other octets.
    pub(super) fn read(content: &[u8]) -> Option<Self> {
        let (&[version, flags], rest) = content.split_first_chunk()?;
        let (size, rest) = rest.split_first_chunk()?;
        let (digest, rest) = rest.split_first_chunk()?;
        let (symbol_bytes, rest) = rest.split_first_chunk()?;
        let (loss, rest) = rest.split_first_chunk()?;
        let (residual, rest) = rest.split_first_chunk()?;
        let (units, rest) = rest.split_first_chunk()?;
        let (asks, rest) = if flags & ASKS == 0 {
            (None, rest)
        } else {
            let (number, rest) = rest.split_first_chunk()?;
            let (spread_ms, rest) = rest.split_first_chunk()?;
            let invitation = Invitation {
                number: u16::from_be_bytes(*number),
                spread_ms: u16::from_be_bytes(*spread_ms),
            };
            (Some(invitation), rest)
        };
        let (&name_bytes, name) = rest.split_first()?;
        if version != VERSION || name.len() != usize::from(name_bytes) {
            return None;
        }
        let announcement = Self {
            name: core::str::from_utf8(name).ok()?.to_owned(),
            size: u64::from_be_bytes(*size),
            digest: *digest,
            symbol_bytes: u16::from_be_bytes(*symbol_bytes),
            promise: OneWayPromise {
                loss: share(u32::from_be_bytes(*loss), MILLION)?,
                residual: share(u32::from_be_bytes(*residual), BILLION)?,
                units: u64::from_be_bytes(*units),
            },
            is_last: flags & LAST != 0,
            asks,
        };
        announcement.layout().map(|_| announcement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn announcement() -> Announcement {
        Announcement {
            name: "größe.bin".to_owned(),
            size: 10_000_000,
            digest: [7; 32],
            symbol_bytes: 1_432,
            promise: OneWayPromise {
                loss: Probability::new(0.2).expect("a share"),
                residual: Probability::new(1e-6).expect("a share"),
                units: 8_960,
            },
            is_last: true,
            asks: Some(Invitation {
                number: 3,
                spread_ms: 500,
            }),
        }
    }

    #[test]
    fn an_announcement_comes_back_from_its_octets_and_from_no_others() {
        let announcement = announcement();
        let mut octets = Vec::new();
        announcement.write(&mut octets);
        assert_eq!(Announcement::read(&octets), Some(announcement.clone()));
        for cut in 0..octets.len() {
            assert_eq!(Announcement::read(&octets[..cut]), None, "{cut}");
        }
        octets.push(0);
        assert_eq!(Announcement::read(&octets), None, "one more");
        for (fault, wrong) in [
            (0, 9),    // another version
            (43, 1),   // symbols of odd length
            (44, 255), // a loss above one
        ] {
            let mut octets = Vec::new();
            announcement.write(&mut octets);
            octets[fault] = wrong;
            assert_eq!(Announcement::read(&octets), None, "octet {fault}");
        }
    }

    #[test]
    fn another_file_has_another_tag_and_the_promise_is_no_part_of_it() {
        let one = announcement();
        let mut same = one.clone();
        same.is_last = false;
        same.asks = None;
        same.promise.units = 1;
        assert_eq!(same.tag(), one.tag());
        let others: [fn(&mut Announcement); 4] = [
            |a| a.name.push('x'),
            |a| a.size += 1,
            |a| a.digest[31] ^= 1,
            |a| a.symbol_bytes -= 2,
        ];
        for change in others {
            let mut other = one.clone();
            change(&mut other);
            assert_ne!(other.tag(), one.tag());
            assert!(!other.is_of_same_file(&one));
        }
    }

    #[test]
    fn a_symbol_has_its_place_before_it() {
        let mut octets = Vec::new();
        Symbol::write_id(FileTag(0x0102_0304), 5, 0x0607, &mut octets);
        assert_eq!(octets, [1, 2, 3, 4, 0, 5, 6, 7]);
        octets.push(9);
        let symbol = Symbol::read(&octets).expect("it is one");
        assert_eq!(
            (symbol.file, symbol.block, symbol.unit),
            (FileTag(0x0102_0304), 5, 0x0607)
        );
        assert_eq!(symbol.octets, [9]);
        assert_eq!(Symbol::read(&octets[..7]), None);
        assert_eq!(ONE_WAY_OVERHEAD, 39);
    }
}
