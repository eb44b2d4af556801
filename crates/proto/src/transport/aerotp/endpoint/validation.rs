//! Address validation: whoever opens a connection first shows that it receives at its address.
//!
//! A stranger's TPDU is answered by a CHALLENGE, which is not larger than the TPDU. It carries a token
//! that is made from the stranger's address and a secret, so only a host that receives it can send it
//! back. Until then nothing of the stranger reaches a connection, and nothing more is sent to it.
//!
//! # Promises
//! - The proof needs no memory: any number of strangers cannot keep a genuine peer from showing its
//!   address. The driver need not still know the path by which the peer first came, because memory is
//!   kept by address.
//! - Datagrams of strangers are kept within [`WAITING_BYTES_MAX`], so that a peer that shows its
//!   address a round trip later need not repeat its first flight. The oldest give way.
//!
//! # Sources
//! RFC 9000, section 8.1 (address validation, Retry tokens); RFC 4987, section 3.6 (SYN cookies).

use super::{AerotpEndpoint, Orphan};
use crate::machine::{Datagram, Ecn, PathId};
use crate::units::{Duration, Instant};
use crate::wire::Mode;
use crate::wire::TpduSeq;
use crate::wire::aerotp::{BodyCheck, EcnField, Flags, Header, Reject, Tpdu, TpduKind, parse};
use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

/// The period of tokens: a token is good in the period in which it was made and in the next one.
const TOKEN_PERIOD: Duration = Duration::from_secs(8);
/// The time for which an address counts as shown after its last connection.
const SHOWN_FOR: Duration = Duration::from_secs(10);
/// Addresses shown at once, at most.
const SHOWN_MAX: usize = 512;
/// Octets kept of all strangers together.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// Octets kept of one stranger.
const WAITING_BYTES_EACH_MAX: usize = 2 << 20;
/// The memory of a waiting datagram besides its octets.
const ENTRY_BYTES: usize = 64;
/// The memory of a stranger besides its datagrams: its address twice, its figures, a list with room for
/// four.
const VISITOR_BYTES: usize = 352;
/// The time after which a stranger's attempt counts as failed, and its datagrams are dropped.
const WAITING_MAX: Duration = Duration::from_secs(3);
/// The first TPDUs of a stranger that are all answered, since any may be lost. Of later ones that follow closely, one
/// in so many is answered.
const ALL_CHALLENGED: u32 = 4;
const CHALLENGED_EVERY: u32 = 16;
/// One that comes so long after the last challenge is answered, too: it asks again, since the challenges or the answers
/// to them were lost.
const CHALLENGED_AGAIN: Duration = Duration::from_millis(200);

/// The secret of the tokens: 256 bits that nobody else can know, for the time of one run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AddressKey([u8; 32]);

impl AddressKey {
    /// A key from octets of the system's entropy.
    pub const fn new(octets: [u8; 32]) -> Self {
        Self(octets)
    }
}

impl fmt::Debug for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressKey(secret)")
    }
}

/// The octets of an address, or of the number of a path where addresses are not known.
type Source = Box<[u8]>;

/// One stranger, and the datagrams that it sent.
#[derive(Debug)]
struct Visitor {
    since: Instant,
    /// The stranger's place in the order of arrival.
    place: u64,
    arrived: u32,
    challenged_at: Instant,
    /// Whether it was challenged again after a while, so that nobody knows which challenge it answers.
    is_slow: bool,
    bytes: usize,
    datagrams: Vec<(Vec<u8>, Ecn)>,
}

/// The datagrams that strangers sent, kept until the strangers have answered the challenge.
#[derive(Debug, Default)]
struct WaitingRoom {
    visitors: BTreeMap<Source, Visitor>,
    order: BTreeMap<u64, Source>,
    next_place: u64,
    bytes: usize,
}

impl WaitingRoom {
    fn remove(&mut self, source: &[u8]) -> Option<Visitor> {
        let visitor = self.visitors.remove(source)?;
        self.bytes -= visitor.bytes;
        self.order.remove(&visitor.place);
        Some(visitor)
    }

    fn remove_first(&mut self) {
        if let Some((_, source)) = self.order.pop_first()
            && let Some(visitor) = self.visitors.remove(&source)
        {
            self.bytes -= visitor.bytes;
        }
    }

    fn first(&self) -> Option<(&Source, &Visitor)> {
        let (_, source) = self.order.first_key_value()?;
        self.visitors.get_key_value(source)
    }

    /// Drops datagrams that waited for too long, and the oldest of other strangers until `bytes`
    /// fit. Returns whether they do.
    fn make_room(&mut self, now: Instant, source: &[u8], bytes: usize) -> bool {
        while let Some((oldest, visitor)) = self.first() {
            let is_old = now.saturating_since(visitor.since) >= WAITING_MAX;
            let is_in_the_way = self.bytes + bytes > WAITING_BYTES_MAX && **oldest != *source;
            if !is_old && !is_in_the_way {
                break;
            }
            self.remove_first();
        }
        self.bytes + bytes <= WAITING_BYTES_MAX
    }

    /// Keeps a datagram if there is room. Returns whether it is to be answered.
    fn keep(&mut self, now: Instant, source: &[u8], datagram: Datagram<'_>) -> bool {
        let taken = datagram.octets.len() + ENTRY_BYTES;
        let has_room = self.make_room(now, source, VISITOR_BYTES + taken);
        if !self.visitors.contains_key(source) {
            let place = self.next_place;
            self.next_place += 1;
            self.bytes += VISITOR_BYTES;
            self.order.insert(place, source.into());
            let visitor = Visitor {
                since: now,
                place,
                arrived: 0,
                challenged_at: now,
                is_slow: false,
                bytes: VISITOR_BYTES,
                datagrams: Vec::new(),
            };
            self.visitors.insert(source.into(), visitor);
        }
        let Some(visitor) = self.visitors.get_mut(source) else {
            return false;
        };
        visitor.arrived = visitor.arrived.saturating_add(1);
        if has_room && visitor.bytes + taken <= WAITING_BYTES_EACH_MAX {
            visitor.bytes += taken;
            self.bytes += taken;
            let octets = datagram.octets.to_vec();
            visitor.datagrams.push((octets, datagram.ecn));
        }
        let asks_again = now.saturating_since(visitor.challenged_at) >= CHALLENGED_AGAIN;
        visitor.is_slow |= asks_again;
        let is_answered = visitor.arrived <= ALL_CHALLENGED
            || visitor.arrived.is_multiple_of(CHALLENGED_EVERY)
            || asks_again;
        if is_answered {
            visitor.challenged_at = now;
        }
        is_answered
    }
}

/// An address that was shown.
#[derive(Debug)]
struct Shown {
    /// The path by which its last datagram came.
    path: PathId,
    /// The time of its last use.
    at: Instant,
    /// The time that it took to show it: a round trip.
    took: Option<Duration>,
}

impl Shown {
    fn is_recent(&self, now: Instant) -> bool {
        now.saturating_since(self.at) < SHOWN_FOR
    }
}

/// The addresses that were shown, and the strangers that have not shown theirs yet.
#[derive(Debug)]
pub(super) struct Validation {
    key: AddressKey,
    shown: BTreeMap<Source, Shown>,
    waiting: WaitingRoom,
}

impl Validation {
    pub(super) fn new(key: AddressKey) -> Self {
        Self {
            key,
            shown: BTreeMap::new(),
            waiting: WaitingRoom::default(),
        }
    }

    fn token(&self, source: &[u8], period: u64) -> u64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.key.0);
        hasher.update(&period.to_be_bytes());
        hasher.update(source);
        let digest = hasher.finalize();
        digest
            .as_bytes()
            .first_chunk()
            .map_or(0, |token| u64::from_be_bytes(*token))
    }

    fn is_good(&self, now: Instant, source: &[u8], token: u64) -> bool {
        let period = period(now);
        let good = |period| self.token(source, period) == token;
        good(period) || period.checked_sub(1).is_some_and(good)
    }
}

const fn period(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000_000 / TOKEN_PERIOD.as_secs()
}

fn token_of(header: &Header) -> u64 {
    u64::from(header.seq.0) << 32 | u64::from(header.timestamp)
}

impl AerotpEndpoint {
    /// Takes a datagram that came from the address with the octets `source`. Where addresses have to be shown
    /// ([`EndpointConfig::address_key`](crate::transport::aerotp::EndpointConfig::address_key)), the proof is bound to
    /// these octets. Without them it is bound to the path.
    pub fn handle_datagram_from(&mut self, now: Instant, datagram: Datagram<'_>, source: &[u8]) {
        self.now = now;
        if self.is_shown(now, datagram.path, source) {
            self.receive(now, datagram);
        } else {
            self.receive_of_stranger(now, datagram, source);
        }
    }

    /// The paths whose addresses are in use, where addresses have to be shown. A driver that has to forget
    /// some paths keeps these.
    pub fn paths_in_use(&self, now: Instant) -> Option<Vec<PathId>> {
        let validation = self.validation.as_ref()?;
        let shown = validation.shown.values();
        let shown = shown.filter(|shown| shown.is_recent(now));
        let connected = self.paths.iter().filter(|(_, path)| path.connections > 0);
        let all: BTreeSet<PathId> = shown
            .map(|shown| shown.path)
            .chain(connected.map(|(path, _)| *path))
            .collect();
        Some(all.into_iter().collect())
    }

    fn is_shown(&mut self, now: Instant, path: PathId, source: &[u8]) -> bool {
        let Some(validation) = &mut self.validation else {
            return true;
        };
        if let Some(shown) = validation.shown.get_mut(source)
            && shown.is_recent(now)
        {
            shown.path = path;
            return true;
        }
        // Connections of our own making are to addresses that we chose.
        self.connections_on(path).next().is_some()
    }

    /// The round trip that it took whoever is at `path` to show its address.
    pub(super) fn shown_in(&self, path: PathId) -> Option<Duration> {
        let mut shown = self.validation.as_ref()?.shown.values();
        shown.find(|shown| shown.path == path)?.took
    }

    /// Notes that the last connection of a path may have gone.
    pub(super) fn on_path_used(&mut self, now: Instant, path: PathId) {
        if let Some(validation) = &mut self.validation
            && let Some(shown) = validation.shown.values_mut().find(|s| s.path == path)
        {
            shown.at = now;
        }
    }

    fn receive_of_stranger(&mut self, now: Instant, datagram: Datagram<'_>, source: &[u8]) {
        // The parity is not decoded: a stranger does not get that work done.
        let tpdu = match parse(datagram.octets) {
            Ok(tpdu) => tpdu,
            Err(reject) => {
                self.counters.rejected += 1;
                self.counters.rejected_header_check += u64::from(reject == Reject::HeaderCheck);
                return;
            }
        };
        let header = &tpdu.header;
        match tpdu.kind() {
            TpduKind::Response => {
                let validation = self.validation.as_ref();
                if validation.is_some_and(|known| known.is_good(now, source, token_of(header))) {
                    self.on_shown(now, datagram.path, source);
                } else {
                    self.counters.strangers += 1;
                }
            }
            TpduKind::Asyn | TpduKind::Data { .. } | TpduKind::Repair | TpduKind::Afin
                if header.mode != Mode::Datagram && tpdu.check != BodyCheck::Damaged =>
            {
                if self.listeners.contains_key(&header.destination.0) {
                    self.challenge(now, datagram, &tpdu, source);
                } else {
                    self.counters.strangers += 1;
                    self.reset(datagram.path, &tpdu, false);
                }
            }
            _ => self.counters.strangers += 1,
        }
    }

    fn challenge(&mut self, now: Instant, datagram: Datagram<'_>, tpdu: &Tpdu<'_>, source: &[u8]) {
        let Some(validation) = &mut self.validation else {
            return;
        };
        if !validation.waiting.keep(now, source, datagram) {
            return;
        }
        let token = validation.token(source, period(now));
        self.counters.challenged += 1;
        let header = Header {
            source: tpdu.header.destination,
            destination: tpdu.header.source,
            seq: TpduSeq((token >> 32) as u32),
            timestamp: (token & 0xFFFF_FFFF) as u32,
            mode: tpdu.header.mode,
            ecn: EcnField::NONE,
            flags: Flags::CHALLENGE,
        };
        self.push_orphan(datagram.path, Orphan::Bare(header));
    }

    /// Takes the datagrams of the peer at `path`, which has shown its address.
    fn on_shown(&mut self, now: Instant, path: PathId, source: &[u8]) {
        let Some(validation) = &self.validation else {
            return;
        };
        if validation.shown.len() >= SHOWN_MAX
            && !validation.shown.contains_key(source)
            && !self.forget_a_shown()
        {
            self.counters.refused += 1;
            return;
        }
        let Some(validation) = &mut self.validation else {
            return;
        };
        let visitor = validation.waiting.remove(source);
        let prompt = visitor.as_ref().filter(|visitor| !visitor.is_slow);
        let took = prompt.map(|visitor| now.saturating_since(visitor.since));
        let shown = Shown {
            path,
            at: now,
            took,
        };
        validation.shown.insert(source.into(), shown);
        let is_recent = |visitor: &Visitor| now.saturating_since(visitor.since) < WAITING_MAX;
        for (octets, ecn) in visitor
            .filter(is_recent)
            .into_iter()
            .flat_map(|v| v.datagrams)
        {
            let octets = octets.as_slice();
            self.receive(now, Datagram { path, octets, ecn });
        }
    }

    /// Forgets the address that was not used for longest. Returns whether there was one.
    fn forget_a_shown(&mut self) -> bool {
        let Some(validation) = &self.validation else {
            return false;
        };
        let is_idle = |shown: &Shown| self.connections_on(shown.path).next().is_none();
        let idle = validation.shown.iter().filter(|(_, shown)| is_idle(shown));
        let oldest = idle.min_by_key(|(_, shown)| shown.at);
        let Some(source) = oldest.map(|(source, _)| source.clone()) else {
            return false;
        };
        let validation = self.validation.as_mut();
        validation.is_some_and(|validation| validation.shown.remove(&source).is_some())
    }

    /// Answers a peer that wants to know whether we receive at our address.
    pub(super) fn answer_challenge(&mut self, path: PathId, asks: &Header) {
        let header = Header {
            source: asks.destination,
            destination: asks.source,
            ecn: EcnField::NONE,
            flags: Flags::RESPONSE,
            ..*asks
        };
        self.push_orphan(path, Orphan::Bare(header));
    }
}

#[cfg(test)]
mod tests;
