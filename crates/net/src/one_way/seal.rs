//! The seal of one-way datagrams: a key for each start of each sender, and a counter as the nonce.
//!
//! The key is derived from the preset key, the sender's number and a number drawn at the start. So a counter that comes back, because
//! a state file was restored from a copy, still meets another key, except once in 2^32 starts.

use super::wire::{Form, HEADER_BYTES, TAG_BYTES};
use crate::session::{PresetKey, derive_key};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use std::collections::VecDeque;
use std::ops::Range;
use zeroize::Zeroizing;

const CONTEXT: &str = "fulmar 2026-11-27 one-way datagrams";
/// Counters on the wire have 48 bits.
pub(super) const COUNTERS_END: u64 = 1 << 48;
/// The preset key, the sender's number and the start's.
const MATERIAL_BYTES: usize = 40;
/// The keys that are kept, so that they need not be derived again.
const KEYS_KEPT: usize = 64;

/// One start of one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    /// The sender's number, drawn when its state was made.
    pub sender: u32,
    /// The number drawn at the start.
    pub start: u32,
}

fn key_of(preset: &PresetKey, stream: StreamId) -> Option<LessSafeKey> {
    // With room for all of it: octets that grow elsewhere would leave the key behind.
    let mut material = Zeroizing::new(Vec::with_capacity(MATERIAL_BYTES));
    material.extend_from_slice(&preset.octets()[..]);
    material.extend_from_slice(&stream.sender.to_be_bytes());
    material.extend_from_slice(&stream.start.to_be_bytes());
    let key = Zeroizing::new(derive_key(CONTEXT, &material));
    let unbound = UnboundKey::new(&CHACHA20_POLY1305, key.as_slice()).ok()?;
    Some(LessSafeKey::new(unbound))
}

fn nonce(counter: u64) -> Nonce {
    let mut octets = [0; 12];
    octets[4..].copy_from_slice(&counter.to_be_bytes());
    Nonce::assume_unique_for_key(octets)
}

/// Counters that were reserved on the disk, and that nobody else will use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneWayCounters(pub(super) Range<u64>);

/// Seals the datagrams of one start.
pub struct OneWaySeal {
    key: LessSafeKey,
    stream: StreamId,
    left: Range<u64>,
}

impl core::fmt::Debug for OneWaySeal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "OneWaySeal({:?}, {:?})", self.stream, self.left)
    }
}

impl OneWaySeal {
    /// A seal without counters. `None` cannot happen: the key has ring's length.
    pub fn new(preset: &PresetKey, stream: StreamId) -> Option<Self> {
        Some(Self {
            key: key_of(preset, stream)?,
            stream,
            left: 0..0,
        })
    }

    /// Takes counters. What was left of earlier ones is never used.
    pub fn grant(&mut self, counters: OneWayCounters) {
        self.left = counters.0;
    }

    /// The number of datagrams for which there are counters.
    pub fn left(&self) -> u64 {
        self.left.end.saturating_sub(self.left.start)
    }

    /// Appends a datagram to `out`, whose content `write` appends. Returns its length; `None`, with `out` as before: no counter is left,
    /// or `write` failed.
    pub(super) fn seal<E>(
        &mut self,
        form: Form,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        let Some(counter) = self.left.next().filter(|&counter| counter < COUNTERS_END) else {
            return Ok(None);
        };
        let start = out.len();
        out.push(form.octet());
        out.extend_from_slice(&self.stream.sender.to_be_bytes());
        out.extend_from_slice(&self.stream.start.to_be_bytes());
        out.extend_from_slice(&counter.to_be_bytes()[2..]);
        if let Err(error) = write(out) {
            out.truncate(start);
            return Err(error);
        }
        let (header, content) = out[start..].split_at_mut(HEADER_BYTES);
        let sealed =
            self.key
                .seal_in_place_separate_tag(nonce(counter), Aad::from(&*header), content);
        let Ok(tag) = sealed else {
            out.truncate(start);
            return Ok(None);
        };
        out.extend_from_slice(tag.as_ref());
        Ok(Some(out.len() - start))
    }
}

/// The reason why a datagram was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OneWayRefusal {
    /// It is too short, or of no form that is known.
    Form,
    /// It is not sealed under our key, or was damaged.
    Seal,
    /// Its counter was heard before, or is too old to tell.
    Repeated,
    /// It is genuine, and its content makes no sense here.
    Content,
    /// As many files are being put together as can be received at once.
    Full,
}

/// A datagram that was proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) form: Form,
    pub(super) stream: StreamId,
    pub(super) counter: u64,
}

/// Opens the datagrams of all who have the key.
pub struct OneWayOpener {
    preset: PresetKey,
    /// Keys of streams that were proved, the oldest first.
    known: VecDeque<(StreamId, LessSafeKey)>,
}

impl core::fmt::Debug for OneWayOpener {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("OneWayOpener(..)")
    }
}

/// The header of a datagram that may be one.
fn header(datagram: &[u8]) -> Option<Opened> {
    let (&form, rest) = datagram.split_first()?;
    let (sender, rest) = rest.split_first_chunk()?;
    let (start, rest) = rest.split_first_chunk()?;
    let (counter, sealed) = rest.split_first_chunk::<6>()?;
    let mut wide = [0; 8];
    wide[2..].copy_from_slice(counter);
    let opened = Opened {
        form: Form::of(form)?,
        stream: StreamId {
            sender: u32::from_be_bytes(*sender),
            start: u32::from_be_bytes(*start),
        },
        counter: u64::from_be_bytes(wide),
    };
    (sealed.len() >= TAG_BYTES).then_some(opened)
}

impl OneWayOpener {
    /// An opener for `preset`.
    pub const fn new(preset: PresetKey) -> Self {
        Self {
            preset,
            known: VecDeque::new(),
        }
    }

    /// Replaces `content` by that of a datagram. On an error it means nothing.
    pub(super) fn open(
        &mut self,
        datagram: &[u8],
        content: &mut Vec<u8>,
    ) -> Result<Opened, OneWayRefusal> {
        let opened = header(datagram).ok_or(OneWayRefusal::Form)?;
        let (header, sealed) = datagram.split_at(HEADER_BYTES);
        content.clear();
        content.extend_from_slice(sealed);
        let known = self
            .known
            .iter()
            .find(|(stream, _)| *stream == opened.stream);
        let fresh = match known {
            Some(_) => None,
            None => Some(key_of(&self.preset, opened.stream).ok_or(OneWayRefusal::Seal)?),
        };
        let key = known
            .map(|(_, key)| key)
            .or(fresh.as_ref())
            .ok_or(OneWayRefusal::Seal)?;
        let plain = key
            .open_in_place(nonce(opened.counter), Aad::from(header), content)
            .map_err(|_| OneWayRefusal::Seal)?
            .len();
        content.truncate(plain);
        // Only who has the key gets a place.
        if let Some(key) = fresh {
            if self.known.len() >= KEYS_KEPT {
                self.known.pop_front();
            }
            self.known.push_back((opened.stream, key));
        }
        Ok(opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Entropy;

    fn preset(seed: u8) -> PresetKey {
        PresetKey::generate(&mut Entropy::from_seed([seed; 32]))
    }

    const STREAM: StreamId = StreamId {
        sender: 3,
        start: 9,
    };

    fn sealed(
        preset: &PresetKey,
        stream: StreamId,
        counters: Range<u64>,
        content: &[u8],
    ) -> Vec<u8> {
        let mut seal = OneWaySeal::new(preset, stream).expect("a key");
        seal.grant(OneWayCounters(counters));
        let mut out = Vec::new();
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(content);
            Ok::<(), ()>(())
        };
        let len = seal.seal(Form::Symbol, &mut out, write).expect("it writes");
        assert_eq!(len, Some(out.len()));
        out
    }

    #[test]
    fn what_is_sealed_is_opened_whole_and_by_the_key_only() {
        let datagram = sealed(&preset(1), STREAM, 7..8, b"content");
        assert_eq!(datagram.len(), HEADER_BYTES + 7 + TAG_BYTES);
        let mut opener = OneWayOpener::new(preset(1));
        let mut content = Vec::new();
        let opened = opener.open(&datagram, &mut content).expect("it is genuine");
        assert_eq!(
            (opened.form, opened.stream, opened.counter),
            (Form::Symbol, STREAM, 7)
        );
        assert_eq!(content, b"content");
        for octet in 0..datagram.len() {
            let mut damaged = datagram.clone();
            damaged[octet] ^= 1;
            assert!(
                opener.open(&damaged, &mut content).is_err(),
                "octet {octet}"
            );
            assert!(
                opener.open(&datagram[..octet], &mut content).is_err(),
                "cut at {octet}"
            );
        }
        let mut other = OneWayOpener::new(preset(2));
        assert_eq!(
            other.open(&datagram, &mut content),
            Err(OneWayRefusal::Seal)
        );
    }

    #[test]
    fn each_start_has_a_key_of_its_own() {
        let later = StreamId {
            sender: 3,
            start: 10,
        };
        let elsewhere = StreamId {
            sender: 4,
            start: 9,
        };
        let one = sealed(&preset(1), STREAM, 7..8, b"content");
        for stream in [later, elsewhere] {
            let other = sealed(&preset(1), stream, 7..8, b"content");
            assert_ne!(one[HEADER_BYTES..], other[HEADER_BYTES..], "{stream:?}");
        }
    }

    #[test]
    fn without_counters_nothing_is_sealed() {
        let mut seal = OneWaySeal::new(&preset(1), STREAM).expect("a key");
        let nothing = |_: &mut Vec<u8>| Ok::<(), ()>(());
        let mut out = Vec::new();
        assert_eq!(seal.seal(Form::Symbol, &mut out, nothing), Ok(None));
        seal.grant(OneWayCounters(COUNTERS_END - 1..COUNTERS_END + 9));
        assert!(matches!(
            seal.seal(Form::Symbol, &mut out, nothing),
            Ok(Some(_))
        ));
        let len = out.len();
        assert_eq!(
            seal.seal(Form::Symbol, &mut out, nothing),
            Ok(None),
            "48 bits are used up"
        );
        assert_eq!(out.len(), len);
    }

    #[test]
    fn strangers_take_no_place_among_the_keys_that_are_kept() {
        let mut opener = OneWayOpener::new(preset(1));
        let mut content = Vec::new();
        for sender in 0..200 {
            let stream = StreamId { sender, start: 1 };
            let forged = sealed(&preset(2), stream, 0..1, b"x");
            assert!(opener.open(&forged, &mut content).is_err());
            assert!(opener.known.is_empty());
        }
        for sender in 0..200 {
            let stream = StreamId { sender, start: 1 };
            let genuine = sealed(&preset(1), stream, 0..1, b"x");
            assert!(opener.open(&genuine, &mut content).is_ok());
            assert!(opener.known.len() <= KEYS_KEPT);
        }
    }
}
