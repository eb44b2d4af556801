//! Whoever opens a connection first shows that it receives at the address that it gives.
//!
//! A stranger's TPDU draws a CHALLENGE, which is not larger than it, with a token that is made from its
//! address and a secret; only who receives it can send it back. Until then nothing of the stranger
//! reaches a connection, and nothing is sent to it on our own account.
//!
//! # Promises
//! - The proof needs no memory: strangers without number cannot keep a genuine peer from showing its
//!   address.
//! - What strangers sent is kept within [`WAITING_BYTES_MAX`], so that the first flight of a peer that
//!   shows its address a round trip later need not be sent again. The oldest gives way.
//!
//! # Sources
//! RFC 9000, section 8.1 (address validation, Retry tokens); RFC 4987, section 3.6 (SYN cookies).

use super::{Endpoint, Orphan};
use crate::machine::{Datagram, Ecn, PathId};
use crate::units::{Duration, Instant};
use crate::wire::TpduSeq;
use crate::wire::aerotp::{
    BodyCheck, EcnField, Flags, Header, Mode, Reject, Tpdu, TpduKind, parse,
};
use core::fmt;
use std::collections::{BTreeMap, VecDeque};

/// A token is good in the period in which it was made and in the next.
const TOKEN_PERIOD: Duration = Duration::from_secs(8);
/// The time for which an address counts as shown after its last connection.
const SHOWN_FOR: Duration = Duration::from_secs(10);
/// Addresses shown at once, at most.
const SHOWN_MAX: usize = 512;
/// Octets kept of strangers, all together.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// The same of one of them.
const VISITOR_BYTES_MAX: usize = 2 << 20;
/// Beside its octets, what a datagram that waits takes.
const ENTRY_BYTES: usize = 64;
/// Strangers of whom something is kept.
const VISITORS_MAX: usize = 1_024;
/// The time after which a stranger's attempt counts as failed, and its datagrams are dropped.
const WAITING_MAX: Duration = Duration::from_secs(3);
/// The first TPDUs of a stranger are all answered, for any may be lost; of later ones, every so many.
const ALL_CHALLENGED: u32 = 4;
const CHALLENGED_EVERY: u32 = 16;

/// The secret of the tokens: 256 bits that nobody else can know, for the time of one run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AddressKey([u8; 32]);

impl AddressKey {
    /// From the system's entropy.
    pub const fn new(octets: [u8; 32]) -> Self {
        Self(octets)
    }
}

impl fmt::Debug for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressKey(secret)")
    }
}

/// One stranger, and what it sent.
#[derive(Debug)]
struct Visitor {
    since: Instant,
    arrived: u32,
    bytes: usize,
    datagrams: Vec<(Vec<u8>, Ecn)>,
}

/// The datagrams that strangers sent, while the strangers are asked.
#[derive(Debug, Default)]
struct WaitingRoom {
    visitors: BTreeMap<PathId, Visitor>,
    order: VecDeque<PathId>,
    bytes: usize,
}

impl WaitingRoom {
    fn remove(&mut self, path: PathId) -> Option<Visitor> {
        let visitor = self.visitors.remove(&path)?;
        self.bytes -= visitor.bytes;
        self.order.retain(|other| *other != path);
        Some(visitor)
    }

    /// Keeps a datagram if there is room; which of its sender's it is, from 1 on.
    fn keep(&mut self, now: Instant, datagram: Datagram<'_>) -> u32 {
        let path = datagram.path;
        let is_old = |visitor: &Visitor| now.saturating_since(visitor.since) >= WAITING_MAX;
        while let Some(oldest) = self.order.front().copied()
            && self.visitors.get(&oldest).is_none_or(is_old)
        {
            self.order.pop_front();
            self.remove(oldest);
        }
        let taken = datagram.octets.len() + ENTRY_BYTES;
        let is_new = !self.visitors.contains_key(&path);
        let others = |room: &Self| {
            let oldest = room.order.front().copied();
            oldest.filter(|oldest| *oldest != path)
        };
        while (is_new && self.visitors.len() >= VISITORS_MAX)
            || self.bytes + taken > WAITING_BYTES_MAX
        {
            let Some(oldest) = others(self) else {
                break;
            };
            self.remove(oldest);
        }
        if is_new {
            self.order.push_back(path);
        }
        let has_room = self.bytes + taken <= WAITING_BYTES_MAX;
        let visitor = self.visitors.entry(path).or_insert(Visitor {
            since: now,
            arrived: 0,
            bytes: 0,
            datagrams: Vec::new(),
        });
        visitor.arrived = visitor.arrived.saturating_add(1);
        if has_room && visitor.bytes + taken <= VISITOR_BYTES_MAX {
            visitor.bytes += taken;
            self.bytes += taken;
            let octets = datagram.octets.to_vec();
            visitor.datagrams.push((octets, datagram.ecn));
        }
        visitor.arrived
    }
}

/// Who has shown its address, and who has not yet.
#[derive(Debug)]
pub(super) struct Validation {
    key: AddressKey,
    /// When the address was last of use.
    shown: BTreeMap<PathId, Instant>,
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

impl Endpoint {
    /// A datagram arrived, and `source` are the octets of the address that it came from: where
    /// addresses have to be shown ([`EndpointConfig::address_key`](crate::transport::aerotp::EndpointConfig::address_key)),
    /// the proof is bound to them. Without them it is bound to the path.
    pub fn handle_datagram_from(&mut self, now: Instant, datagram: Datagram<'_>, source: &[u8]) {
        self.now = now;
        if self.is_shown(now, datagram.path) {
            self.receive(now, datagram);
        } else {
            self.receive_of_stranger(now, datagram, source);
        }
    }

    /// The paths whose addresses are of use: a driver that has to forget some should keep them.
    pub fn paths_shown(&self) -> Option<Vec<PathId>> {
        let validation = self.validation.as_ref()?;
        Some(validation.shown.keys().copied().collect())
    }

    fn is_shown(&self, now: Instant, path: PathId) -> bool {
        let Some(validation) = &self.validation else {
            return true;
        };
        let since = validation.shown.get(&path);
        let is_recent = since.is_some_and(|at| now.saturating_since(*at) < SHOWN_FOR);
        // Connections of our own making are to addresses that we chose.
        is_recent || self.connections_on(path).next().is_some()
    }

    /// The last connection of a path may have gone.
    pub(super) fn on_path_used(&mut self, now: Instant, path: PathId) {
        if let Some(validation) = &mut self.validation
            && let Some(at) = validation.shown.get_mut(&path)
        {
            *at = now;
        }
    }

    fn receive_of_stranger(&mut self, now: Instant, datagram: Datagram<'_>, source: &[u8]) {
        // Its parity is not decoded: what a stranger asks for, it does not get.
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
                    self.on_shown(now, datagram.path);
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
                    self.reset(datagram.path, &tpdu);
                }
            }
            _ => self.counters.strangers += 1,
        }
    }

    fn challenge(&mut self, now: Instant, datagram: Datagram<'_>, tpdu: &Tpdu<'_>, source: &[u8]) {
        let Some(validation) = &mut self.validation else {
            return;
        };
        let nth = validation.waiting.keep(now, datagram);
        if nth > ALL_CHALLENGED && !nth.is_multiple_of(CHALLENGED_EVERY) {
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

    /// The peer at `path` has shown its address: what it sent is taken.
    fn on_shown(&mut self, now: Instant, path: PathId) {
        let Some(validation) = &self.validation else {
            return;
        };
        if validation.shown.len() >= SHOWN_MAX && !self.forget_a_shown() {
            self.counters.refused += 1;
            return;
        }
        let Some(validation) = &mut self.validation else {
            return;
        };
        validation.shown.insert(path, now);
        let visitor = validation.waiting.remove(path);
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

    /// Forgets the address that has been of no use for longest; whether there is one.
    fn forget_a_shown(&mut self) -> bool {
        let Some(validation) = &self.validation else {
            return false;
        };
        let shown = validation.shown.iter();
        let idle = shown.filter(|(path, _)| self.connections_on(**path).next().is_none());
        let Some(path) = idle.min_by_key(|(_, at)| **at).map(|(path, _)| *path) else {
            return false;
        };
        let validation = self.validation.as_mut();
        validation.is_some_and(|validation| validation.shown.remove(&path).is_some())
    }

    /// The peer of a connection of ours wants to know whether we receive here.
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
