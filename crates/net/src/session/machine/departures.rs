//! Leaving datagrams: own ones first, then those of the inner machine for peers that can be reached.

use super::{OUTBOX_MAX, Session};
use crate::session::early::EarlyKey;
use crate::session::event::SessionEvent;
use crate::session::fragments::cut;
use crate::session::liveness::{Due, Wants};
use crate::session::seal::Keypair;
use crate::session::sizes::SESSION_OVERHEAD;
use crate::session::wire::{
    DatagramType, FRAGMENT_BYTES, HEADER_BYTES, Header, MESSAGE_TYPE_BYTES, Message, Probe,
};
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::machine::{Carried, Deadline, PathId, Transmit};
use fulmar_proto::units::{ByteCount, FecStrength, Instant};

/// The bit in a probe's number by which it tries a size and is no question about the link.
pub(super) const SIZE_PROBE: u32 = 1 << 31;

/// Appends room for a datagram's header, and returns the place where the datagram begins. Its content
/// is written behind the header, and sealed in its place.
fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.resize(start + HEADER_BYTES, 0);
    start
}

/// Makes the octets since [`begin`] a whole sealed datagram, after `tap` has seen them. `None`,
/// and nothing of them is left, when the keys are used up or the content is too long.
fn seal(
    keys: &mut Keypair,
    code: &mut PacketCode,
    fec: FecStrength,
    start: usize,
    out: &mut Vec<u8>,
    tap: impl FnOnce(&[u8]),
) -> Option<usize> {
    let content = start + HEADER_BYTES;
    let Some(counter) = keys.next_counter() else {
        out.truncate(start);
        return None;
    };
    let [_, _, _, _, low @ ..] = counter.to_be_bytes();
    let header = Header {
        kind: DatagramType::Data,
        fec,
        receiver: keys.remote,
        low: u32::from_be_bytes(low),
    };
    tap(&out[content..]);
    out[start..content].copy_from_slice(&header.to_octets());
    if !keys.seal(counter, content, out) {
        out.truncate(start);
        return None;
    }
    code.append_parity(out, start, fec);
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
        if let Some((transmit, octets)) = self.outbox.pop_front() {
            out.extend_from_slice(&octets);
            return Some(transmit);
        }
        while self.is_any_open(now) {
            let start = begin(out);
            Message::Tpdu(&[]).write(out);
            let Some(inner) = self.inner.poll_transmit(now, out) else {
                out.truncate(start);
                return None;
            };
            let peer = usize::try_from(inner.path.0).unwrap_or(usize::MAX);
            let Some(sealed) = self.seal_for(now, peer, inner, start, out) else {
                out.truncate(start);
                self.counters.unsent += 1;
                continue;
            };
            self.counters.sent += 1;
            return Some(sealed);
        }
        None
    }

    /// Seals the octets since [`begin`] for a peer, if it can be reached.
    fn seal_for(
        &mut self,
        now: Instant,
        peer: usize,
        inner: Transmit,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let room = self.sizes_of(self.peers.get(peer)?).payload.as_usize();
        let tap = |plain: &[u8]| {
            if let Some(tap) = &self.tap {
                tap.sealed(now, peer, plain);
            }
        };
        let content = start + HEADER_BYTES;
        let state = self.peers.get_mut(peer)?;
        let (path, fec) = (state.path?, self.config.fec_words);
        if state.is_early(now) {
            let (key, id) = (state.early.as_mut()?, state.early_id?);
            self.scratch.clear();
            self.scratch.extend_from_slice(&out[content..]);
            out.truncate(start);
            let len = seal_early(key, id, &mut self.code, fec, &self.scratch, out)?;
            tap(&self.scratch);
            self.counters.sent_early += 1;
            return Some(Transmit { path, len, ..inner });
        }
        if !state.is_open(now) {
            return None;
        }
        if out.len() - content > room + MESSAGE_TYPE_BYTES {
            self.scratch.clear();
            self.scratch.extend_from_slice(&out[content..]);
            out.truncate(start);
            return self.seal_pieces(now, peer, Transmit { path, ..inner }, room, out);
        }
        let keys = state.keys.current(now)?;
        let len = seal(keys, &mut self.code, fec, start, out, tap)?;
        state.reports.on_sent(now);
        state.liveness.on_sent(now, Wants::Answer);
        state
            .mtu
            .on_sent(state.headers.0 + ByteCount::from_usize(len));
        Some(Transmit { path, len, ..inner })
    }

    /// Seals the content of `scratch`, which was made for a larger path, in pieces: the first now, the
    /// others right behind it.
    fn seal_pieces(
        &mut self,
        now: Instant,
        peer: usize,
        whole: Transmit,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let tap = |plain: &[u8]| {
            if let Some(tap) = &self.tap {
                tap.sealed(now, peer, plain);
            }
        };
        let state = self.peers.get_mut(peer)?;
        state.fragment_id = state.fragment_id.wrapping_add(1);
        let headers = state.headers.0.as_usize();
        let keys = state.keys.current(now)?;
        let octets = self.scratch.get(MESSAGE_TYPE_BYTES..)?;
        let room = room.saturating_sub(FRAGMENT_BYTES);
        let mut first = None;
        let mut more = 0_usize;
        for piece in cut(state.fragment_id, octets, room) {
            let fec = self.config.fec_words;
            if first.is_none() {
                let start = begin(out);
                Message::Fragment(piece).write(out);
                let len = seal(keys, &mut self.code, fec, start, out, tap)?;
                state.reports.on_sent(now);
                first = Some(Transmit { len, ..whole });
                more = FRAGMENT_BYTES;
            } else {
                let mut sealed = Vec::new();
                let start = begin(&mut sealed);
                Message::Fragment(piece).write(&mut sealed);
                let len = seal(keys, &mut self.code, fec, start, &mut sealed, tap)?;
                state.reports.on_sent(now);
                self.outbox.push_back((Transmit { len, ..whole }, sealed));
                more += len + headers - piece.octets.len();
            }
        }
        state.liveness.on_sent(now, Wants::Answer);
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
        let path = self.peers.get(peer).and_then(|state| state.path);
        path.is_some_and(|path| self.send_message_to(now, peer, path, message, wants))
    }

    pub(super) fn send_message_to(
        &mut self,
        now: Instant,
        peer: usize,
        path: PathId,
        message: Message<'_>,
        wants: Wants,
    ) -> bool {
        let mut octets = Vec::new();
        let start = begin(&mut octets);
        message.write(&mut octets);
        self.send_own(now, peer, path, (start, octets), wants)
    }

    /// Seals and queues the octets since [`begin`].
    fn send_own(
        &mut self,
        now: Instant,
        peer: usize,
        path: PathId,
        (start, mut octets): (usize, Vec<u8>),
        wants: Wants,
    ) -> bool {
        let fec = self.config.fec_words;
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
                tap.sealed(now, peer, plain);
            }
        };
        if seal(keys, &mut self.code, fec, start, &mut octets, seen).is_none() {
            return false;
        }
        state.liveness.on_sent(now, wants);
        self.queue(path, octets)
    }

    /// Asks `peer` for a sign of life.
    pub(super) fn send_probe(&mut self, now: Instant, peer: usize) {
        let Some(state) = self.peers.get_mut(peer) else {
            return;
        };
        state.probes = state.probes.wrapping_add(1) & !SIZE_PROBE;
        let probe = Probe {
            id: state.probes,
            sent_micros: now.as_wrapping_micros(),
        };
        let path = if state.liveness.is_down() {
            state.next_candidate()
        } else {
            state.path
        };
        if let Some(path) = path {
            self.send_message_to(now, peer, path, Message::Probe(probe), Wants::Answer);
        }
    }

    /// Runs the timers that are due at `now` for every peer.
    pub(super) fn run_timers(&mut self, now: Instant) {
        self.timers_ran = Some(now);
        for index in 0..self.peers.len() {
            self.run_timers_of(now, index);
        }
    }

    fn run_timers_of(&mut self, now: Instant, index: usize) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        if state.keys.expires_at().is_some_and(|at| at <= now) {
            state.keys.clear();
            state.announced = false;
        }
        if state.wants_initiation(now) {
            self.initiate(now, index);
        }
        while let Some(state) = self.peers.get_mut(index) {
            if !state.keys.is_usable(now) {
                return;
            }
            match state.liveness.due(now) {
                None => break,
                Some(Due::Heartbeat) => {
                    if self.send_message(now, index, Message::Heartbeat, Wants::Nothing)
                        && let Some(state) = self.peers.get_mut(index)
                    {
                        state.reports.on_sent(now);
                    }
                }
                Some(Due::Probe) => {
                    state.mtu.on_silence(now);
                    self.send_probe(now, index);
                }
                Some(Due::Down(silent_for)) => {
                    let peer = state.index;
                    self.counters.outages += 1;
                    self.events
                        .push_back(SessionEvent::LinkDown { peer, silent_for });
                }
            }
        }
        self.try_size(now, index);
        let open = self.peers.get_mut(index).filter(|peer| peer.is_open(now));
        if let Some(state) = open
            && state.reports.take_due(now)
        {
            let due = SessionEvent::ReportDue(state.index);
            self.events.push_back(due);
        }
    }

    /// Tries a size of packets, if that is due.
    fn try_size(&mut self, now: Instant, index: usize) {
        let Some(state) = self.peers.get_mut(index).filter(|peer| peer.is_open(now)) else {
            return;
        };
        let rtt = state.liveness.rtt();
        let (Some(path), Some(due)) = (state.path, state.mtu.due(now, rtt)) else {
            return;
        };
        let parity = ByteCount::from_usize(self.config.fec_words.parity_bytes());
        let around = state.headers.0 + SESSION_OVERHEAD + parity;
        let known = due.known.map(|known| (due.id.wrapping_add(1), known));
        for (id, packet) in [(due.id, due.packet)].into_iter().chain(known) {
            let mut octets = Vec::new();
            let start = begin(&mut octets);
            let probe = Probe {
                id: SIZE_PROBE | id,
                sent_micros: now.as_wrapping_micros(),
            };
            Message::Probe(probe).write(&mut octets);
            let plain = packet.saturating_sub(around).as_usize() + MESSAGE_TYPE_BYTES;
            octets.resize((HEADER_BYTES + plain).max(octets.len()), 0);
            // A lost probe of a size must not raise doubts about the link.
            self.send_own(now, index, path, (start, octets), Wants::Nothing);
        }
        let octets = due.packet + due.known.unwrap_or(ByteCount::ZERO);
        self.note_sent_beside(now, index, octets);
    }

    /// Counts towards a peer's rate the octets that left without the inner machine.
    fn note_sent_beside(&mut self, now: Instant, index: usize, octets: ByteCount) {
        if let Some(peer) = self.peers.get(index).map(|state| state.index) {
            self.inner.on_sent_below(now, peer.inner_path(), octets);
        }
    }

    /// Tells the application the sizes of what goes to a peer.
    pub(super) fn say_sizes(&mut self, index: usize) {
        if let Some(state) = self.peers.get(index) {
            let (peer, sizes) = (state.index, self.sizes_of(state));
            self.events
                .push_back(SessionEvent::MtuChanged { peer, sizes });
        }
    }

    /// Gives the inner machine its deadline. While nothing can be sent, its wish to send would be a
    /// deadline that never moves, so it is woken at the pace of probes.
    pub(super) fn wake_inner(&mut self, now: Instant) {
        if self
            .inner_deadline()
            .is_some_and(|deadline| deadline.at <= now)
        {
            self.inner_woken = now;
            self.inner.handle_deadline(now);
        }
    }

    pub(super) fn inner_deadline(&self) -> Option<Deadline> {
        let deadline = self.inner.next_deadline()?;
        if self.is_any_open(self.now) {
            return Some(deadline);
        }
        let next = self.inner_woken + self.config.liveness.probe_interval;
        Some(Deadline {
            at: deadline.at.max(next),
            why: deadline.why,
        })
    }
}
