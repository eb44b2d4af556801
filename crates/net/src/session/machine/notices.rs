//! Notices, which are hints without proof: the reason why a call is refused, or that keys are gone.
//!
//! Nobody vouches for a notice. The end that gets one logs it, or begins a handshake a little sooner than
//! it would have; it ends nothing and forgets nothing for it. A notice is heeded only if it shows that its
//! sender saw the datagram that it answers.

use super::Session;
use super::arrivals::Origin;
use crate::session::config::Security;
use crate::session::counters::DropReason;
use crate::session::dialect::Wire;
use crate::session::event::{Hint, Mismatch, SessionEvent};
use crate::session::guard::{MAC_BYTES, Mac};
use crate::session::keys::SecretKey;
use crate::session::kinds::SecurityKinds;
use crate::session::seal::Told;
use crate::session::wire::{DataHeader, DatagramType, HEADER_BYTES, Header, Notice};
use fulmar_proto::machine::{Carried, PathId};
use fulmar_proto::units::{FecStrength, Instant};

/// The refusals of one initiation before they are worth an event: the link may damage one.
const REFUSALS_COUNT: u32 = 3;
/// Octets that show that data was seen.
const SEEN_BYTES: usize = 4;

impl<M: Carried> Session<M> {
    /// Tells the sender of an initiation the reason why it gets no answer.
    pub(super) fn tell_refusal(
        &mut self,
        now: Instant,
        path: PathId,
        caller: u32,
        first: &Mac,
        notice: Notice,
    ) {
        if self.guard.may_refuse(now) {
            self.send_notice(path, caller, notice, first);
        }
    }

    /// Tells the sender of data under keys that we do not have that it talks to nobody.
    /// `seen` is what shows that it was seen, `len` the length of the datagram: the notice is not larger.
    pub(super) fn tell_lost(
        &mut self,
        now: Instant,
        path: PathId,
        receiver: u32,
        seen: [u8; SEEN_BYTES],
        len: usize,
    ) {
        if len >= HEADER_BYTES + SEEN_BYTES && self.guard.may_deny(now) {
            self.send_notice(path, receiver, Notice::NoSession, &seen);
        }
    }

    pub(super) fn send_notice(&mut self, path: PathId, receiver: u32, notice: Notice, seen: &[u8]) {
        // Without parity, so that the notice is smaller than the datagram that it answers.
        let header = Header {
            kind: DatagramType::Notice,
            fec: FecStrength::NONE,
            receiver,
            low: notice.to_word(),
        };
        if self.answer_stranger(path, [&header.to_octets()[..], seen].concat()) {
            self.counters.notices_sent += 1;
        }
    }

    /// The kinds of security by which peers are recognised here.
    pub(super) fn kinds_taken(&self) -> SecurityKinds {
        let kinds = self.peers.iter();
        let kinds = kinds.map(|peer| SecurityKinds::of(&peer.config.security));
        kinds.fold(SecurityKinds::default(), SecurityKinds::and)
    }

    pub(super) fn take_notice(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        header: Header,
        seen: &[u8],
    ) -> Result<(), DropReason> {
        match Notice::of_word(header.low).ok_or(DropReason::Unknown)? {
            Notice::NoSession => self.on_lost(now, origin.path, header.receiver, seen),
            notice => self.on_refusal(now, origin.path, header.receiver, seen, notice),
        }
    }

    /// Handles a word from the peer's address that it has no keys. If the peer has restarted, a handshake
    /// finds out; if not, the keys are replaced a little early.
    fn on_lost(
        &mut self,
        now: Instant,
        path: PathId,
        remote: u32,
        seen: &[u8],
    ) -> Result<(), DropReason> {
        let seen: [u8; SEEN_BYTES] = seen.try_into().map_err(|_| DropReason::Truncated)?;
        let peer = self.peer_at(now, path).ok_or(DropReason::NoSession)?;
        let state = self.peers.get_mut(peer).ok_or(DropReason::NoSession)?;
        let told = match state.wire {
            Wire::One => Some(Told::Low(u32::from_be_bytes(seen))),
            Wire::Two => DataHeader::number_of(seen).map(Told::Whole),
        };
        let was_sent = told.is_some_and(|told| state.keys.has_sent(now, remote, told));
        let is_there = state.path == Some(path) || state.further.place_of(path).is_some();
        if !is_there || !was_sent {
            return Err(DropReason::NoSession);
        }
        state.doubt.raise(now);
        Ok(())
    }

    /// Handles a word, from somebody who saw our initiation, that it is refused.
    fn on_refusal(
        &mut self,
        now: Instant,
        path: PathId,
        index: u32,
        seen: &[u8],
        notice: Notice,
    ) -> Result<(), DropReason> {
        let seen: &[u8; MAC_BYTES] = seen.try_into().map_err(|_| DropReason::Truncated)?;
        let peer = self.pending_of(index, path).ok_or(DropReason::NoSession)?;
        let state = self.peers.get_mut(peer).ok_or(DropReason::NoSession)?;
        let pending = state.pending.as_mut().ok_or(DropReason::NoSession)?;
        if pending.first != *seen {
            return Err(DropReason::Forged);
        }
        pending.refusals = pending.refusals.saturating_add(1);
        if pending.refusals < REFUSALS_COUNT {
            return Ok(());
        }
        let ours = SecurityKinds::of(&state.config.security);
        let hint = match (notice, &state.config.security) {
            (Notice::WrongKey, Security::Noise { peer, .. }) => Hint::WrongPublicKey(*peer),
            (Notice::WrongKey, Security::Preset { .. }) => Hint::Mismatch(Mismatch::PresetKey),
            (Notice::WrongKey, Security::None { .. }) => Hint::Mismatch(Mismatch::Label),
            (Notice::WrongKey, Security::Nobody) => return Err(DropReason::NoSession),
            (Notice::OtherSecurity(theirs), _) => {
                Hint::Mismatch(Mismatch::Security { ours, theirs })
            }
            (Notice::Superseded, _) => Hint::Superseded,
            (Notice::UnknownCaller | Notice::NoSession, _) => {
                let own = self.config.identity.as_ref().map(SecretKey::public);
                Hint::UnknownCaller(own.ok_or(DropReason::Unknown)?)
            }
        };
        // One line is enough: this one tells more than that nothing is heard.
        state.said_no_answer = true;
        if state.complaints.may(now, hint.kind()) {
            let peer = state.index;
            self.events
                .push_back(SessionEvent::TurnedAway { peer, path, hint });
        }
        Ok(())
    }
}
