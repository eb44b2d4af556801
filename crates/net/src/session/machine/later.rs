//! Damaged datagrams that are kept, and mended by further parity.

use super::Session;
use super::arrivals::Origin;
use crate::session::cipher::Number;
use crate::session::counters::DropReason;
use crate::session::later_repair::{DamagedCopy, SealedName, mend_later};
use crate::session::path_slot::PathSlot;
use crate::session::seal::Told;
use crate::session::wire::{
    ARMOURED_HEADER_BYTES, Capability, DamageReport, FurtherParity, MESSAGE_TYPE_BYTES, Message,
};
use fulmar_proto::fec::packet::{PacketCode, Uncorrectable};
use fulmar_proto::machine::Carried;
use fulmar_proto::units::Instant;

/// Octets of the frame's fields before its parts.
const PLACE_BYTES: usize = 1;

impl<M: Carried> Session<M> {
    /// Takes whether this end and a peer that said this mend later what is beyond repair.
    pub(super) fn agree_on_later_repair(&mut self, index: usize, said: &[Capability]) {
        let is_agreed = mend_later(&self.config.capabilities, said);
        if let Some(state) = self.peers.get_mut(index) {
            state.later.agree(is_agreed);
            state.protection.mend_later(is_agreed);
        }
    }

    /// Answers the claims of a report: by further parity where that is cheaper, else the inner machine sends the contents again.
    pub(super) fn answer_claims(&mut self, now: Instant, index: usize, report: &DamageReport<'_>) {
        let Some(state) = self.peers.get(index) else {
            return;
        };
        let room = self.sizes_of(state).payload.as_usize();
        let room = room.saturating_sub(MESSAGE_TYPE_BYTES + PLACE_BYTES);
        let path = state.index.inner_path();
        let rate = report.word.recent.rate();
        let round_trip = state.liveness.rtt().unwrap_or_default();
        let mut parts = Vec::new();
        let mut part = Vec::new();
        for counter in report.counters() {
            let Some(state) = self.peers.get_mut(index) else {
                return;
            };
            let Some(number) = state.path_acks.number_of(counter) else {
                continue;
            };
            // A part names its datagram by a counter under the keys that it leaves under.
            let keys = state.keys.current(now).map(|keys| keys.local);
            let name = keys.map(|keys| SealedName { keys, number });
            part.clear();
            let has_room = state.later.has_room_there(now, round_trip);
            let name = name.filter(|_| has_room);
            if name.is_some_and(|name| state.later.write_further(now, name, rate, &mut part)) {
                self.inner.on_mending(now, path, number);
                if parts.len() + part.len() > room {
                    self.send_further(now, index, &parts);
                    parts.clear();
                }
                parts.extend_from_slice(&part);
            } else {
                self.inner.on_damaged(now, path, number);
            }
        }
        self.send_further(now, index, &parts);
    }

    fn send_further(&mut self, now: Instant, index: usize, parts: &[u8]) {
        if !parts.is_empty() {
            let slot = PathSlot::FIRST;
            let word = Message::FurtherParity(FurtherParity { slot, parts });
            self.send_word(now, index, word, PLACE_BYTES + parts.len());
        }
    }

    /// Takes further parity for datagrams that came damaged.
    pub(super) fn take_further(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        index: usize,
        further: FurtherParity<'_>,
    ) {
        let keys = origin.keys.filter(|_| further.slot == PathSlot::FIRST);
        let Some(keys) = keys else {
            return;
        };
        for part in further.parts() {
            let state = self.peers.get_mut(index);
            if let Some(copy) = state.and_then(|state| state.later.take_damaged(keys, &part)) {
                self.mend_copy(now, origin, index, copy);
            }
        }
    }

    /// Mends a datagram that was kept, and takes it. What is still beyond repair is claimed again.
    fn mend_copy(&mut self, now: Instant, origin: Origin<'_>, index: usize, mut copy: DamagedCopy) {
        self.work.decodes += 1;
        let mut region = copy.region.clone();
        let seen = match PacketCode::correct_with_further(&mut region, copy.words, &copy.further) {
            Ok(corrected) => {
                let number = Number {
                    slot: PathSlot::FIRST,
                    counter: u64::from(copy.counter),
                };
                let origin = Origin {
                    place: Some(PathSlot::FIRST),
                    octets: ARMOURED_HEADER_BYTES + region.len(),
                    at: now,
                    is_armoured: true,
                    is_mended: true,
                    is_kept: true,
                    ..origin
                };
                let end = region.len().saturating_sub(copy.words.parity_bytes());
                let told = Told::Whole(number);
                match self.take_sealed(now, origin, copy.keys, told, &region[..end]) {
                    Err(DropReason::Forged) => 0,
                    Err(DropReason::Replayed | DropReason::NoSession | DropReason::Expired) => {
                        return;
                    }
                    _ => {
                        self.note_mended_later(now, index, &copy, corrected.symbols);
                        return;
                    }
                }
            }
            Err(Uncorrectable::TooManyErrors { codewords, symbols }) => {
                let each = PacketCode::step_bytes(region.len()).max(1);
                let parity = (copy.words.parity_bytes() + copy.further.len()) / each;
                let least = u32::try_from(parity / 2 + 1).unwrap_or(u32::MAX);
                codewords.saturating_mul(least).saturating_add(symbols)
            }
            Err(Uncorrectable::TooShort { .. }) => return,
        };
        if let Some(state) = self.peers.get_mut(index) {
            let name = (copy.keys, copy.counter);
            let more = seen.saturating_sub(copy.presumed);
            copy.presumed += more;
            state.damage.claim_again(now, name, more);
            let round_trip = state.liveness.rtt().unwrap_or_default();
            state.later.keep_damaged(now, round_trip, copy);
        }
    }

    fn note_mended_later(&mut self, now: Instant, index: usize, copy: &DamagedCopy, symbols: u32) {
        self.counters.corrected_symbols += u64::from(symbols);
        if let Some(state) = self.peers.get_mut(index) {
            state.later.on_mended();
            let more = symbols.saturating_sub(copy.presumed);
            state.damage.on_mended_later(now, symbols, more);
        }
    }
}
