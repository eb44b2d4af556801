//! Handshakes that we begin: the first message, its repetitions, and the answers to it.

use super::Session;
use super::arrivals::Origin;
use crate::session::config::EarlyData;
use crate::session::counters::DropReason;
use crate::session::early::{EarlyKey, Salt};
use crate::session::event::{HandshakeRefusal, SessionEvent};
use crate::session::guard::{NO_PROOF, second};
use crate::session::handshake::Initiator;
use crate::session::kinds::SecurityKinds;
use crate::session::peer::{MISMATCH_PAUSE, NO_ANSWER_AFTER, Pending, public_key};
use crate::session::seal::Keypair;
use crate::session::sources::Rate;
use crate::session::wire::{DatagramType, Header};
use fulmar_proto::liveness::Wants;
use fulmar_proto::machine::{Carried, PathId};
use fulmar_proto::units::Instant;

/// The responses of one peer that are read, those from its addresses and those from elsewhere each. A response takes
/// operations with keys, and whoever saw the initiation can send any number.
const ANSWER_RATE: Rate = Rate::per_second(20, 20);
const ANSWER_RATE_ELSEWHERE: Rate = Rate::per_second(2, 4);
/// The responses that do not verify before that is worth an event: the link may damage one.
const FORGED_COUNT: u32 = 3;

impl<M: Carried> Session<M> {
    /// The peer with which a handshake of ours under `index` is pending, if its answer may come on `path`.
    pub(super) fn pending_of(&self, index: u32, path: PathId) -> Option<usize> {
        let peer = usize::try_from(self.indices.get(&index)?.0).ok()?;
        let pending = self.peers.get(peer)?.pending.as_ref()?;
        (pending.index == index && self.may_be_from(peer, path)).then_some(peer)
    }

    /// Begins a handshake, or repeats its first message.
    pub(super) fn initiate(&mut self, now: Instant, peer: usize) {
        let Some(state) = self.peers.get_mut(peer) else {
            return;
        };
        state.trying_since.get_or_insert(now);
        let of_two = state.also.is_some();
        let is_stale = |pending: &Pending| pending.is_stale(now, of_two);
        if state.pending.as_ref().is_some_and(is_stale) {
            state.pending = None;
            state.take_other_key();
        }
        if state.pending.is_none() && !self.begin(now, peer) {
            return;
        }
        self.complain_of_silence(now, peer);
        let jitter = self.entropy.below(1_024);
        let Some(state) = self.peers.get_mut(peer) else {
            return;
        };
        let rtt = state.liveness.rtt();
        state.give_up_told();
        let path = state.next_call(now);
        if let Some((asking, path)) = state.asking.as_mut().zip(path) {
            asking.on_called(path);
        }
        let cookie = path.and_then(|path| state.cookie_for(now, path));
        state.called_at = Some(now);
        let (Some(pending), Some(path)) = (state.pending.as_mut(), path) else {
            // It waits for a call of the peer, which a handshake of ours would refuse.
            state.pending = None;
            return;
        };
        pending.schedule(now, rtt, jitter);
        // Where damage is common, few of those with a checksum arrive.
        let path = if state.checksum.is_some() && pending.tries.is_multiple_of(2) {
            path.without_checksum()
        } else {
            path
        };
        let parity = pending.parity;
        let mut octets = pending.message.clone();
        let proof = cookie.map_or(NO_PROOF, |cookie| {
            second(&mut self.work, &cookie, &pending.first)
        });
        octets.extend_from_slice(&proof);
        self.code.append_parity(&mut octets, 0, parity);
        if self.may_leave(now, peer, path) {
            self.counters.initiations_sent += 1;
            self.queue(path, octets);
        }
    }

    /// Makes a fresh first message.
    fn begin(&mut self, now: Instant, peer: usize) -> bool {
        let Some(index) = self.peers.get(peer).map(|state| state.index) else {
            return false;
        };
        let index = self.new_index(index);
        self.handshakes_begun += 1;
        let epoch = self.config.boot_epoch.saturating_add(self.handshakes_begun);
        let hello = self.say_hello(epoch, peer);
        let means = self.means();
        let parity = self.parity_of_calls(peer);
        let Some(state) = self.peers.get_mut(peer) else {
            return false;
        };
        if let (Some(root), EarlyData::Send) = (&state.early_root, self.config.early_data) {
            let salt = Salt::new(epoch, self.entropy.array());
            state.early = Some(EarlyKey::new(root, salt));
        }
        state.doubt.settle();
        let identity = self.config.identity.as_ref();
        let security = &state.config.security;
        let begun = Initiator::begin(security, identity, index, &hello, means);
        let Some((initiator, body)) = begun else {
            // The curve refuses the key, which is not worth more than a retry now and then.
            state.pending = None;
            state.not_before = now + MISMATCH_PAUSE;
            return false;
        };
        let header = Header {
            kind: DatagramType::Initiation,
            fec: parity,
            receiver: 0,
            low: index,
        };
        let mut message = [&header.to_octets()[..], &body].concat();
        let first = state.guard_keys.first(&mut self.work, &message);
        message.extend_from_slice(&first);
        state.pending = Some(Pending {
            index,
            initiator,
            message,
            parity,
            first,
            began: now,
            tries: 0,
            forged: 0,
            refusals: 0,
            next_at: now,
            hastened: None,
        });
        true
    }

    fn complain_of_silence(&mut self, now: Instant, peer: usize) {
        let Some(state) = self.peers.get_mut(peer) else {
            return;
        };
        let waited = now.saturating_since(state.trying_since.unwrap_or(now));
        if waited >= NO_ANSWER_AFTER && !state.said_no_answer && !state.keys.is_usable(now) {
            state.said_no_answer = true;
            let peer = state.index;
            self.events
                .push_back(SessionEvent::NoAnswer { peer, waited });
        }
    }

    pub(super) fn take_response(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        header: Header,
        body: &[u8],
    ) -> Result<(), DropReason> {
        let path = origin.path;
        let peer = self
            .pending_of(header.receiver, path)
            .ok_or(DropReason::NoSession)?;
        let state = self.peers.get_mut(peer).ok_or(DropReason::NoSession)?;
        let index = state.index;
        let answers = if state.may_be_at(path) {
            (&mut state.answers_expected, ANSWER_RATE)
        } else {
            (&mut state.answers_from_elsewhere, ANSWER_RATE_ELSEWHERE)
        };
        if !answers.0.take(now, answers.1) {
            return Err(DropReason::Flood);
        }
        let pending = state.pending.as_mut().ok_or(DropReason::NoSession)?;
        let Some((theirs, agreed)) = pending.initiator.finish(body) else {
            pending.forged = pending.forged.saturating_add(1);
            if pending.forged >= FORGED_COUNT {
                state.said_no_answer = true;
                let kind = SecurityKinds::of(&state.config.security);
                self.refuse(
                    now,
                    path,
                    Some(index),
                    HandshakeRefusal::ResponseForged(kind),
                );
            }
            return Err(DropReason::Forged);
        };
        let was_repeated = pending.tries > 1;
        let took = now.saturating_since(pending.began);
        state.set_up_in = (!was_repeated).then_some(took);
        let open = state.is_open(now);
        let tried_for = now.saturating_since(state.trying_since.unwrap_or(now));
        state.pending = None;
        if theirs.boot == self.boot {
            return Err(DropReason::OldEpoch);
        }
        if let Some(disagreement) = self.hello(0, peer).disagreement(&theirs) {
            self.mismatch(now, peer, disagreement);
            return Err(DropReason::Mismatch);
        }
        let state = self.peers.get_mut(peer).ok_or(DropReason::NoSession)?;
        let keys = Keypair::new(agreed, header.receiver, header.low, now, true);
        state.keys.install(now, keys);
        state.use_key(public_key(&state.config.security));
        if let Some(answered) = state.answered.as_mut() {
            answered.settle(now);
        }
        // Where damage arrives, a source that we did not call may be a damaged one.
        let is_called =
            !state.protection.is_wanted() || state.path.is_none() || state.may_be_at(path);
        let is_home = !open && is_called;
        if is_home && !state.further.has(path) {
            state.path = Some(path);
            self.see_headers(peer, origin.source);
        }
        self.announce(now, peer, theirs.boot, theirs.capabilities);
        let state = self.peers.get_mut(peer).ok_or(DropReason::NoSession)?;
        let place = state.further.place_of(path);
        if place.is_none() && is_home {
            // One that the user named for a further path, to a peer that knows of one path only.
            state.path = Some(path);
            self.see_headers(peer, origin.source);
        }
        if place.is_some() && !open {
            self.begin_beside_home(now, (peer, path), tried_for);
        }
        self.on_heard(now, (peer, place.unwrap_or_default()), Wants::Nothing);
        // The peer waits for a datagram under the new keys before it uses them.
        self.send_probe(now, peer);
        if let Some(state) = self.peers.get_mut(peer) {
            state.further.try_again(now, path);
        }
        Ok(())
    }

    pub(super) fn take_cookie(
        &mut self,
        now: Instant,
        path: PathId,
        header: Header,
        body: &[u8],
    ) -> Result<(), DropReason> {
        let peer = self
            .pending_of(header.receiver, path)
            .ok_or(DropReason::NoSession)?;
        let state = self.peers.get_mut(peer).ok_or(DropReason::NoSession)?;
        let pending = state.pending.as_ref().ok_or(DropReason::NoSession)?;
        let cookie = state
            .guard_keys
            .unwrap(&mut self.work, body, &pending.first);
        let cookie = cookie.ok_or(DropReason::Forged)?;
        // One repetition at once for a new cookie; a repeated one waits for its turn. Whoever saw the
        // initiation and knows the peer's public key can make any number of new ones.
        if state.take_cookie(now, path, cookie)
            && let Some(pending) = state.pending.as_mut()
        {
            pending.hasten(now);
        }
        Ok(())
    }
}
