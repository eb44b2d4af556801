//! Leaving datagrams: own ones first, then those of the inner machine for peers that can be reached.

use super::{OUTBOX_MAX, Session};
use crate::session::config::PeerIndex;
use crate::session::dialect::{DataForm, DataParity, Wire};
use crate::session::early::EarlyKey;
use crate::session::fragments::cut;
use crate::session::later_repair::SealedName;
use crate::session::path_slot::PathSlot;
use crate::session::seal::Keypair;
use crate::session::wire::{
    ARMOURED_HEADER_BYTES, Armoured, DataHeader, DatagramType, FRAGMENT_BYTES, Header,
    MESSAGE_TYPE_BYTES, Message, Probe,
};
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::liveness::Wants;
use fulmar_proto::machine::{Carried, PathId, Sealed, SealedContent, Transmit, TransmitKind};
use fulmar_proto::units::{ByteCount, FecStrength, Instant};
use std::iter::repeat_n;

/// The bit in a probe's number by which it tries a size and is no question about the link.
pub(super) const SIZE_PROBE: u32 = 1 << 31;
/// The bit by which it tries a carrier, and the one beside it by which it left without checksum.
pub(super) const CHECKSUM_PROBE: u32 = 1 << 30;
pub(super) const UNCHECKED_PROBE: u32 = 1 << 29;

/// The octets by which a full packet of data may be shorter than the longest one: headers differ in length.
const NEARLY_FULL: usize = 32;

/// Appends room for the header of a datagram in `wire`, and returns the place where the datagram begins. Its content
/// is written behind the header, and sealed in its place.
fn begin(out: &mut Vec<u8>, wire: Wire, parity: DataParity) -> usize {
    let start = out.len();
    out.resize(start + wire.header_bytes(parity), 0);
    start
}

/// Appends room for what is before the inner machine's octets in a datagram in `form`.
fn begin_inner(out: &mut Vec<u8>, form: DataForm) -> usize {
    let start = out.len();
    // In wire 1 the last of it is the type of a TPDU, which is 0.
    out.resize(start + form.wire.before(form.parity), 0);
    start
}

/// Moves the octets that follow [`begin_inner`] in one form to where they are in another.
fn begin_again(out: &mut Vec<u8>, start: usize, forms: [DataForm; 2]) {
    let [room, other] = forms.map(|form| form.wire.before(form.parity));
    if room != other {
        out.splice(start..start + room, repeat_n(0, other));
    }
}

/// Makes the octets since [`begin`] a whole sealed datagram in the wire of `keys`, after `tap` has seen them. `None`,
/// and nothing of them is left, when the keys are used up or the content is too long.
fn seal(
    keys: &mut Keypair,
    code: &mut PacketCode,
    (place, parity): (PathSlot, DataParity),
    start: usize,
    out: &mut Vec<u8>,
    tap: impl FnOnce(&[u8]),
) -> Option<usize> {
    let DataParity {
        is_armoured,
        words: fec,
    } = parity;
    let content = start + keys.wire.header_bytes(parity);
    let Some(number) = keys.next_number(place) else {
        out.truncate(start);
        return None;
    };
    tap(&out[content..]);
    let receiver = keys.remote;
    let header = &mut out[start..content];
    match keys.wire {
        Wire::One => {
            let [_, _, _, _, low @ ..] = number.counter.to_be_bytes();
            let one = Header {
                kind: DatagramType::Data,
                fec,
                receiver,
                low: u32::from_be_bytes(low),
            };
            header.copy_from_slice(&one.to_octets());
        }
        Wire::Two if !is_armoured => {
            header.copy_from_slice(&DataHeader { receiver, number }.to_octets());
        }
        // Written at last, with the help of the room behind the datagram.
        Wire::Two => {}
    }
    if !keys.seal(number, content, out) {
        out.truncate(start);
        return None;
    }
    match keys.wire {
        Wire::One => code.append_parity(out, start, fec),
        Wire::Two if !is_armoured => {}
        Wire::Two => {
            code.append_parity(out, content, fec);
            let header = DataHeader { receiver, number };
            let words = fec;
            Armoured { header, words }.write(code, start, out);
        }
    }
    Some(out.len() - start)
}

/// Appends a whole datagram of early data.
fn seal_early(
    key: &mut EarlyKey,
    id: u32,
    code: &mut PacketCode,
    fec: FecStrength,
    plain: &[u8],
    out: &mut Vec<u8>,
) -> Option<usize> {
    let start = out.len();
    let counter = key.next_counter()?;
    let header = Header {
        kind: DatagramType::Early,
        fec,
        receiver: id,
        low: counter,
    };
    out.extend_from_slice(&header.to_octets());
    out.extend_from_slice(key.salt.octets());
    if !key.seal(counter, plain, out) {
        out.truncate(start);
        return None;
    }
    code.append_parity(out, start, fec);
    Some(out.len() - start)
}

impl<M: Carried> Session<M> {
    pub(super) fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        // Once for all datagrams that leave at one time; timers that become due meanwhile have deadlines of their own.
        if self.timers_ran < Some(now) {
            self.run_timers(now);
        }
        loop {
            if let Some((transmit, octets)) = self.outbox.pop_front() {
                if transmit.path.is_inside() {
                    if !self.send_through(now, transmit.path, &octets) {
                        self.counters.unrelayed += 1;
                    }
                    continue;
                }
                out.extend_from_slice(&octets);
                return Some(transmit);
            }
            if !self.is_any_open(now) {
                return None;
            }
            let start = begin_inner(out, self.likely_form);
            let Some(inner) = self.inner.poll_transmit(now, out) else {
                out.truncate(start);
                return None;
            };
            let (peer, place) = PeerIndex::of_inner(inner.path);
            let peer = usize::try_from(peer.0).unwrap_or(usize::MAX);
            let Some(sealed) = self.seal_for(now, (peer, place), inner, start, out) else {
                out.truncate(start);
                self.counters.unsent += 1;
                continue;
            };
            if sealed.path.is_inside() {
                let octets = out.split_off(start);
                if self.send_through(now, sealed.path, &octets) {
                    self.counters.sent += 1;
                } else {
                    self.counters.unrelayed += 1;
                }
                continue;
            }
            self.counters.sent += 1;
            return Some(sealed);
        }
    }

    /// Seals the octets since [`begin_inner`] for a peer, if it can be reached.
    fn seal_for(
        &mut self,
        now: Instant,
        (peer, place): (usize, PathSlot),
        inner: Transmit,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let room = self.sizes_of(self.peers.get(peer)?).payload.as_usize();
        let tap = |plain: &[u8]| {
            if let Some(tap) = &self.tap {
                tap.sealed(now, (peer, place), plain);
            }
        };
        let state = self.peers.get_mut(peer)?;
        let form = state.form_in(place);
        if form != self.likely_form {
            // Where peers have different forms; one form needs no move.
            begin_again(out, start, [self.likely_form, form]);
            self.likely_form = form;
        }
        let DataForm { wire, parity } = form;
        let content = start + wire.header_bytes(parity);
        let path = state.outer_path(place)?;
        let path = state.way(path, parity.is_armoured);
        if state.is_early(now) {
            let (key, id) = (state.early.as_mut()?, state.early_id?);
            self.scratch.clear();
            self.scratch.extend_from_slice(&out[content..]);
            out.truncate(start);
            let len = seal_early(key, id, &mut self.code, parity.words, &self.scratch, out)?;
            tap(&self.scratch);
            self.counters.sent_early += 1;
            return Some(Transmit { path, len, ..inner });
        }
        if !state.is_open(now) {
            return None;
        }
        let fitting = (out.len() - content, room + wire.lead_bytes());
        let Some(parity) = state.parity_for(place, fitting) else {
            self.scratch.clear();
            self.scratch.extend_from_slice(&out[content..]);
            out.truncate(start);
            return self.seal_pieces(now, (peer, place), Transmit { path, ..inner }, room, out);
        };
        if inner.kind != TransmitKind::Control && fitting.0 + NEARLY_FULL >= fitting.1 {
            state.mtu.on_full(now);
        }
        let keys = state.keys.current(now)?;
        let len = seal(keys, &mut self.code, (place, parity), start, out, tap)?;
        let wire = state.headers.0 + ByteCount::from_usize(len);
        let further = state.further.get_mut(place);
        let (acks, liveness) = further.map_or((&mut state.path_acks, &mut state.liveness), |one| {
            (&mut one.acks, &mut one.liveness)
        });
        let number = acks.on_sealed(keys);
        liveness.on_sent(now, Wants::Answer);
        if let (true, Some(number), true) = (
            parity.is_armoured && state.later.is_agreed(),
            number,
            inner.kind != TransmitKind::Control,
        ) && let Some(counter) = keys.newest_sent(PathSlot::FIRST)
        {
            let name = SealedName {
                keys: keys.local,
                number,
            };
            let region = &out[start + ARMOURED_HEADER_BYTES..];
            (state.later).keep_sealed(now, name, (counter, parity.words), region);
        }
        state.reports.on_sent(now);
        if place == PathSlot::FIRST {
            state.mtu.on_sent(now, wire);
            state.note_carrier(now, (len, parity.is_armoured), inner.kind);
        }
        if let Some(number) = number {
            let inside = state.index.inner_path_in(place);
            let content = if inner.kind == TransmitKind::Control {
                SealedContent::Answers
            } else {
                SealedContent::Data
            };
            let sealed = Sealed { number, content };
            self.inner.on_sealed(now, inside, sealed, wire);
        }
        Some(Transmit { path, len, ..inner })
    }

    /// Seals the content of `scratch`, which was made for a larger path, in pieces: the first now, the
    /// others right behind it.
    fn seal_pieces(
        &mut self,
        now: Instant,
        (peer, place): (usize, PathSlot),
        whole: Transmit,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let tap = |plain: &[u8]| {
            if let Some(tap) = &self.tap {
                tap.sealed(now, (peer, place), plain);
            }
        };
        let state = self.peers.get_mut(peer)?;
        state.fragment_id = state.fragment_id.wrapping_add(1);
        state.mtu.on_full(now);
        let headers = state.headers.0.as_usize();
        let fec = state.form_in(place).parity;
        let keys = state.keys.current(now)?;
        let wire = keys.wire;
        let octets = self.scratch.get(wire.lead_bytes()..)?;
        // A fragment's type is in place of the lead, where there is one.
        let fields = MESSAGE_TYPE_BYTES + FRAGMENT_BYTES - wire.lead_bytes();
        let room = room.saturating_sub(fields);
        let mut choice = state.checksum.as_mut().filter(|_| fec.is_armoured);
        let mut first = None;
        let mut more = 0_usize;
        let mut numbers = Vec::new();
        for piece in cut(state.fragment_id, octets, room) {
            let mut further = Vec::new();
            let is_first = first.is_none();
            let sealed = if is_first { &mut *out } else { &mut further };
            let start = begin(sealed, wire, fec);
            Message::Fragment(piece).write(sealed);
            let len = seal(keys, &mut self.code, (place, fec), start, sealed, tap)?;
            let other = state.further.get_mut(place);
            let acks = other.map_or(&mut state.path_acks, |other| &mut other.acks);
            let number = acks.on_sealed(keys);
            numbers.push((number, len + headers));
            state.reports.on_sent(now);
            if let Some(choice) = &mut choice {
                choice.on_sent(now, len);
            }
            let transmit = Transmit { len, ..whole };
            if is_first {
                first = Some(transmit);
                more = fields;
            } else {
                self.outbox.push_back((transmit, further));
                more += len + headers - piece.octets.len();
            }
        }
        let further = state.further.get_mut(place);
        let liveness = further.map_or(&mut state.liveness, |further| &mut further.liveness);
        liveness.on_sent(now, Wants::Answer);
        let inside = state.index.inner_path_in(place);
        for (number, wire) in numbers {
            if let Some(number) = number {
                let wire = ByteCount::from_usize(wire);
                let content = SealedContent::Data;
                let sealed = Sealed { number, content };
                self.inner.on_sealed(now, inside, sealed, wire);
            }
        }
        self.counters.fragmented += u64::from(first.is_some());
        self.note_sent_beside(now, peer, ByteCount::from_usize(more));
        first
    }

    /// Seals and queues a message of the session's own. `false`: there are no keys.
    pub(super) fn send_message(
        &mut self,
        now: Instant,
        peer: usize,
        message: Message<'_>,
        wants: Wants,
    ) -> bool {
        match self.own_way(peer) {
            None => false,
            Some((path, PathSlot::FIRST)) => self.send_message_to(now, peer, path, message, wants),
            Some((_, place)) => self.send_in(now, (peer, place), message, wants),
        }
    }

    pub(super) fn send_message_to(
        &mut self,
        now: Instant,
        peer: usize,
        path: PathId,
        message: Message<'_>,
        wants: Wants,
    ) -> bool {
        let state = self.peers.get(peer);
        let form = state.and_then(|state| Some((state.keys.wire()?, &state.protection)));
        let Some((wire, protection)) = form else {
            return false;
        };
        let parity = protection.parity();
        let mut octets = Vec::new();
        let start = begin(&mut octets, wire, parity);
        message.write(&mut octets);
        let content = octets.len() - start - wire.header_bytes(parity);
        let parity = protection.parity_of_short(content);
        let path = state.map_or(path, |state| state.way(path, parity.is_armoured));
        let way = (peer, path, PathSlot::FIRST);
        self.send_own(now, way, (parity, start, octets), Some(wants))
    }

    /// Seals and queues a message in a form of its own.
    pub(super) fn send_message_in(
        &mut self,
        now: Instant,
        way: (usize, PathId, PathSlot),
        message: Message<'_>,
        wants: Wants,
        parity: DataParity,
    ) -> bool {
        let Some(wire) = self.peers.get(way.0).and_then(|state| state.keys.wire()) else {
            return false;
        };
        let mut octets = Vec::new();
        let start = begin(&mut octets, wire, parity);
        message.write(&mut octets);
        self.send_own(now, way, (parity, start, octets), Some(wants))
    }

    /// Seals and queues a message in a packet of a size of its own. Its loss raises no doubts about the link.
    pub(super) fn send_padded(
        &mut self,
        now: Instant,
        (peer, path): (usize, PathId),
        message: Message<'_>,
        packet: ByteCount,
        parity: DataParity,
    ) -> bool {
        let state = self.peers.get(peer);
        let form = state.and_then(|state| Some((state.keys.wire()?, state.headers.0)));
        let Some((wire, headers)) = form else {
            return false;
        };
        let mut octets = Vec::new();
        let start = begin(&mut octets, wire, parity);
        message.write(&mut octets);
        let around = headers + wire.around(parity);
        let whole = wire.before(parity) + packet.saturating_sub(around).as_usize();
        octets.resize(whole.max(octets.len()), 0);
        let way = (peer, path, PathSlot::FIRST);
        self.send_own(now, way, (parity, start, octets), None)
    }

    /// Seals and queues the octets since [`begin`]. What may be too long to arrive is no sign of life: it wants nothing.
    fn send_own(
        &mut self,
        now: Instant,
        (peer, path, place): (usize, PathId, PathSlot),
        (parity, start, mut octets): (DataParity, usize, Vec<u8>),
        wants: Option<Wants>,
    ) -> bool {
        let Some(state) = self.peers.get_mut(peer) else {
            return false;
        };
        let Some(keys) = state.keys.current(now) else {
            return false;
        };
        // A datagram that does not fit into the queue is not captured as leaving.
        let tap = self.tap.as_ref().filter(|_| self.outbox.len() < OUTBOX_MAX);
        let seen = |plain: &[u8]| {
            if let Some(tap) = tap {
                tap.sealed(now, (peer, place), plain);
            }
        };
        let sealed = seal(
            keys,
            &mut self.code,
            (place, parity),
            start,
            &mut octets,
            seen,
        );
        let Some(len) = sealed else {
            return false;
        };
        let further = state.further.get_mut(place);
        let (acks, liveness) = further.map_or((&mut state.path_acks, &mut state.liveness), |one| {
            (&mut one.acks, &mut one.liveness)
        });
        if let Some(wants) = wants {
            liveness.on_sent(now, wants);
        }
        if let Some(number) = acks.on_sealed(keys) {
            let wire = state.headers.0 + ByteCount::from_usize(len);
            let inside = state.index.inner_path_in(place);
            let content = SealedContent::Own;
            let sealed = Sealed { number, content };
            self.inner.on_sealed(now, inside, sealed, wire);
        }
        self.queue(path, octets)
    }

    /// Asks `peer` for a sign of life.
    pub(super) fn send_probe(&mut self, now: Instant, peer: usize) {
        let Some(state) = self.peers.get_mut(peer) else {
            return;
        };
        let probe = Probe {
            id: state.next_probe(),
            sent_micros: now.as_wrapping_micros(),
            cost: 0,
        };
        let path = if state.liveness.is_down() {
            state.give_up_told();
            state.next_candidate()
        } else {
            state.path
        };
        if let Some((asking, path)) = state.asking.as_mut().zip(path) {
            asking.on_called(path);
        }
        // A path that drops what has no checksum is not down.
        let is_checked = state.checksum.is_some() && probe.id % 2 == 1;
        let (probe, wants) = (Message::Probe(probe), Wants::Answer);
        match path {
            Some(path) if is_checked => {
                let way = (peer, path, PathSlot::FIRST);
                self.send_message_in(now, way, probe, wants, DataParity::NONE);
            }
            Some(path) => {
                self.send_message_to(now, peer, path, probe, wants);
            }
            None => {}
        }
    }
}
