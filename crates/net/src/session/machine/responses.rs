//! Handshakes that a peer begins: judged as cheaply as possible, then answered.

use super::Session;
use super::arrivals::Origin;
use crate::session::counters::DropReason;
use crate::session::dialect::Wire;
use crate::session::event::{HandshakeRefusal, Mismatch, SessionEvent};
use crate::session::further_paths::have_several;
use crate::session::guard::{Admission, Call, GuardKeys, MAC_BYTES, Mac};
use crate::session::handshake::{IK_INITIATION_BYTES, Responder, kind_of_initiation};
use crate::session::key_question::QUESTION_EPOCH;
use crate::session::keys::SecretKey;
use crate::session::kinds::SecurityKinds;
use crate::session::peer::{Answered, MISMATCH_PAUSE, OFFER_PATIENCE, Offer};
use crate::session::seal::Keypair;
use crate::session::wire::{DatagramType, HEADER_BYTES, Header, Notice};
use fulmar_proto::machine::{Carried, PathId};
use fulmar_proto::units::{Duration, FecStrength, Instant};

/// The repetitions of our own initiation up to which one of the peer is left unanswered, if our key is the larger
/// one. After more, ours may not get through.
const OWN_TRIES_FIRST: u32 = 4;
/// The wrong first checks in a row before that is worth an event: the link may damage one.
const WRONG_MACS_COUNT: u32 = 3;
/// The responses that led to nothing, and the time, before that is worth an event.
const UNCONFIRMED_COUNT: u32 = 5;
const UNCONFIRMED_FOR: Duration = Duration::from_secs(10);

/// An initiation taken apart.
struct Parts<'a> {
    body: &'a [u8],
    /// The octets that the first check covers: header and body.
    covered: &'a [u8],
    first: &'a Mac,
    second: &'a Mac,
}

/// The owner of the key that the first check of an initiation was made with.
#[derive(Clone, Copy)]
enum Addressee {
    /// Our public key.
    Us,
    /// A former public key of ours that is still taken.
    UsAsBefore,
    /// The key that we share with this peer.
    SharedWith(usize),
}

/// An initiation of a known peer.
struct Opening {
    path: PathId,
    /// Whether it came damaged.
    is_mended: bool,
    /// The peer's session index.
    remote: u32,
    /// The parity behind the answer.
    parity: FecStrength,
    peer: usize,
    first: Mac,
    responder: Responder,
}

impl<'a> Parts<'a> {
    /// Takes apart a datagram that has no parity any more.
    fn of(octets: &'a [u8]) -> Option<Self> {
        let (proven, second) = octets.split_last_chunk::<MAC_BYTES>()?;
        let (covered, first) = proven.split_last_chunk::<MAC_BYTES>()?;
        Some(Self {
            body: covered.get(HEADER_BYTES..)?,
            covered,
            first,
            second,
        })
    }

    /// The kind of security, by the length of the initiation.
    const fn kind(&self) -> Option<SecurityKinds> {
        kind_of_initiation(self.body.len())
    }
}

impl<M: Carried> Session<M> {
    /// Takes an initiation, without its parity, which is judged as cheaply as possible, step by step. Until it is
    /// admitted, no step takes an operation with keys.
    pub(super) fn take_initiation(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        header: Header,
        octets: &[u8],
    ) -> Result<(), DropReason> {
        let parts = Parts::of(octets).ok_or(DropReason::Truncated)?;
        let here = self.peer_at(now, origin.path);
        let addressed = self.addressee(now, here, &parts);
        let addressed = addressed.ok_or(DropReason::WrongMac)?;
        self.wrong_macs = 0;
        let call = Call {
            source: origin.source,
            is_known: here.is_some(),
            first: parts.first,
            proof: parts.second,
        };
        match self.guard.admit(now, &mut self.work, call) {
            Admission::Granted => {}
            Admission::Refused => return Err(DropReason::Flood),
            Admission::Prove(cookie) => {
                let parity = self.parity_of_answer(header.fec);
                let to = (origin.path, header.low);
                self.send_cookie(to, parity, addressed, &cookie, parts.first);
                return Err(DropReason::CookieAsked);
            }
        }
        let repeated = |answered: &Answered| answered.first == *parts.first;
        let known = self
            .peers
            .iter()
            .position(|peer| peer.answered.as_ref().is_some_and(repeated))
            .filter(|peer| self.may_be_from(*peer, origin.path));
        if let Some(peer) = known {
            self.send_response(now, peer, origin.path, origin.is_mended);
            return Ok(());
        }
        let means = self.means();
        let (responder, peer) = match addressed {
            Addressee::Us | Addressee::UsAsBefore => {
                let identity = match addressed {
                    Addressee::UsAsBefore => self.former_identity.as_ref(),
                    _ => self.config.identity.as_ref(),
                };
                let identity = identity.ok_or(DropReason::Unknown)?;
                let read = Responder::read_noise(identity, header.low, parts.body, means);
                let read = read.ok_or(DropReason::Forged)?;
                let key = read.key;
                let mut peers = self.peers.iter();
                let peer = peers.position(|peer| key.is_some_and(|key| peer.is_known_by(key)));
                let Some(peer) = peer else {
                    let notice = Notice::UnknownCaller;
                    self.tell_refusal(now, origin.path, header.low, parts.first, notice);
                    if let Some(key) = key {
                        let reason = HandshakeRefusal::UnknownPeer(key);
                        self.refuse(now, origin.path, None, reason);
                    }
                    return Err(DropReason::UnknownPeer);
                };
                (read, peer)
            }
            Addressee::SharedWith(peer) => {
                let state = self.peers.get(peer).ok_or(DropReason::UnknownPeer)?;
                let security = &state.config.security;
                let read = Responder::read_known(security, header.low, parts.body, means);
                (read.ok_or(DropReason::Forged)?, peer)
            }
        };
        if !self.may_be_from(peer, origin.path) {
            return Err(DropReason::UnknownPeer);
        }
        let opening = Opening {
            path: origin.path,
            is_mended: origin.is_mended,
            remote: header.low,
            parity: self.parity_of_answer(header.fec),
            peer,
            first: *parts.first,
            responder,
        };
        self.answer(now, opening)
    }

    /// The owner of the key that the first check was made with. This takes one hash. Where several peers have preset
    /// keys or labels, it takes one for each of them; all further ones together have a rate. The peer at `here` comes
    /// first.
    fn addressee(
        &mut self,
        now: Instant,
        here: Option<usize>,
        parts: &Parts<'_>,
    ) -> Option<Addressee> {
        let work = &mut self.work;
        if parts.body.len() == IK_INITIATION_BYTES {
            let own = self.own_guard_keys.as_ref()?;
            if own.verifies(work, parts.covered, parts.first) {
                return Some(Addressee::Us);
            }
            // While two keys of our own are taken, a wrong one costs two hashes.
            let former = self.former_guard_keys.as_ref()?;
            let verifies = former.verifies(work, parts.covered, parts.first);
            return verifies.then_some(Addressee::UsAsBefore);
        }
        let called = parts.kind()?;
        let mut tried: Option<&GuardKeys> = None;
        let order = here.into_iter().chain(0..self.peers.len());
        for index in order {
            let peer = self.peers.get(index)?;
            if SecurityKinds::of(&peer.config.security) != called {
                continue;
            }
            // Peers that share a preset key are one addressee.
            if tried.is_some_and(|keys| keys.is(&peer.guard_keys)) {
                continue;
            }
            if tried.is_some() && !self.guard.may_try_further(now) {
                return None;
            }
            if peer.guard_keys.verifies(work, parts.covered, parts.first) {
                return Some(Addressee::SharedWith(index));
            }
            tried = Some(&peer.guard_keys);
        }
        None
    }

    /// Handles an initiation that is not for us: both ends are told, the caller by a notice, a few times a second.
    pub(super) fn on_wrong_key(&mut self, now: Instant, path: PathId, octets: &[u8]) {
        self.wrong_macs = self.wrong_macs.saturating_add(1);
        if !self.guard.may_refuse(now) {
            return;
        }
        let header = Header::parse(octets).ok();
        let parts = header.and_then(|header| {
            let end = octets.len().checked_sub(header.fec.parity_bytes())?;
            Some((header.low, Parts::of(octets.get(..end)?)?))
        });
        let Some((caller, parts)) = parts else {
            return;
        };
        let Some(theirs) = parts.kind() else {
            return;
        };
        let ours = self.kinds_taken();
        let own = self.config.identity.as_ref().map(SecretKey::public);
        let (notice, reason) = if !ours.contains(theirs) {
            let notice = Notice::OtherSecurity(ours);
            (
                notice,
                HandshakeRefusal::Mismatch(Mismatch::Security { ours, theirs }),
            )
        } else if let Some(own) = own.filter(|_| theirs == SecurityKinds::NOISE) {
            (Notice::WrongKey, HandshakeRefusal::WrongPublicKey(own))
        } else if theirs == SecurityKinds::PRESET {
            (
                Notice::WrongKey,
                HandshakeRefusal::Mismatch(Mismatch::PresetKey),
            )
        } else {
            (
                Notice::WrongKey,
                HandshakeRefusal::Mismatch(Mismatch::Label),
            )
        };
        self.send_notice(path, caller, notice, parts.first);
        if self.wrong_macs >= WRONG_MACS_COUNT {
            self.wrong_macs = 0;
            self.refuse(now, path, None, reason);
        }
    }

    fn send_cookie(
        &mut self,
        (path, receiver): (PathId, u32),
        parity: FecStrength,
        addressed: Addressee,
        cookie: &Mac,
        first: &Mac,
    ) {
        let nonce = self.guard.nonce();
        let keys = match addressed {
            Addressee::Us => self.own_guard_keys.as_ref(),
            Addressee::UsAsBefore => self.former_guard_keys.as_ref(),
            Addressee::SharedWith(peer) => self.peers.get(peer).map(|peer| &peer.guard_keys),
        };
        let Some(body) = keys.and_then(|keys| keys.wrap(cookie, first, nonce)) else {
            return;
        };
        let header = Header {
            kind: DatagramType::Cookie,
            fec: parity,
            receiver,
            low: 0,
        };
        let mut octets = [&header.to_octets()[..], &body].concat();
        self.code.append_parity(&mut octets, 0, parity);
        if self.answer_stranger(path, octets) {
            self.counters.cookies_sent += 1;
        }
    }

    /// Whether a genuine initiation is to be answered: it must be new, and must not compete with one of ours.
    fn judge(&mut self, now: Instant, opening: &Opening) -> Result<(), DropReason> {
        let (path, peer, theirs) = (opening.path, opening.peer, &opening.responder.hello);
        let own_boot = self.boot;
        let state = self.peers.get_mut(peer).ok_or(DropReason::UnknownPeer)?;
        if theirs.boot == own_boot || theirs.epoch <= state.epoch_seen {
            let index = state.index;
            if theirs.boot == own_boot {
                self.refuse(now, path, Some(index), HandshakeRefusal::Reflected);
                return Err(DropReason::OldEpoch);
            }
            if theirs.epoch != QUESTION_EPOCH {
                self.refuse(now, path, Some(index), HandshakeRefusal::OldEpoch);
            }
            self.tell_refusal(
                now,
                path,
                opening.remote,
                &opening.first,
                Notice::Superseded,
            );
            return Err(DropReason::OldEpoch);
        }
        let stays = |offer: &Offer| !offer.yields_to(now, theirs.epoch);
        if state.offer.as_ref().is_some_and(stays) {
            return Err(DropReason::OldEpoch);
        }
        let own_key = self.config.identity.as_ref().map(SecretKey::public);
        let we_win = match (opening.responder.key, own_key) {
            // If the peer has two keys, the one that it calls with counts.
            (Some(peer), Some(own)) => own > peer,
            _ => own_boot > theirs.boot,
        };
        if let Some(pending) = &state.pending {
            if we_win && pending.tries <= OWN_TRIES_FIRST {
                return Err(DropReason::Simultaneous);
            }
            if !we_win {
                state.pending = None;
            }
        }
        Ok(())
    }

    /// Answers a genuine initiation of a peer that we know.
    fn answer(&mut self, now: Instant, opening: Opening) -> Result<(), DropReason> {
        self.judge(now, &opening)?;
        let Opening {
            path,
            is_mended,
            remote,
            parity,
            peer,
            first,
            responder,
        } = opening;
        let ours = self.say_hello(0, peer);
        let (theirs, key) = (responder.hello.clone(), responder.key);
        let disagreement = ours.disagreement(&theirs);
        let index = self.peers.get(peer).map(|state| state.index);
        let local = self.new_index(index.ok_or(DropReason::UnknownPeer)?);
        let state = self.peers.get_mut(peer).ok_or(DropReason::UnknownPeer)?;
        let answer = responder.answer(&state.config.security, &ours);
        let (body, agreed) = answer.ok_or(DropReason::Forged)?;
        let header = Header {
            kind: DatagramType::Response,
            fec: parity,
            receiver: remote,
            low: local,
        };
        let mut response = [&header.to_octets()[..], &body].concat();
        self.code.append_parity(&mut response, 0, parity);
        let before = state.answered.take();
        state.answered = Some(Answered {
            first,
            response,
            since: before.as_ref().map_or(now, |answered| answered.since),
            count: before.map_or(0, |answered| answered.count),
        });
        if let Some(disagreement) = disagreement {
            self.send_response(now, peer, path, is_mended);
            self.mismatch(now, peer, disagreement);
            return Err(DropReason::Mismatch);
        }
        let is_in_two = Wire::of(&ours, &theirs) == Wire::Two;
        let has_paths = is_in_two && have_several(&ours.capabilities, &theirs.capabilities);
        let keys = Keypair::new(agreed, local, remote, now, false);
        state.keys.offer(keys);
        // The peer has begun a handshake, so we need not begin one meanwhile. A recorded initiation can have
        // this effect once at most.
        if theirs.epoch > state.epoch_offered {
            state.epoch_offered = theirs.epoch;
            state.not_before = state.not_before.max(now + OFFER_PATIENCE);
        }
        state.offer = Some(Offer {
            path,
            boot: theirs.boot,
            epoch: theirs.epoch,
            capabilities: theirs.capabilities,
            has_paths,
            since: now,
            key,
        });
        // A peer that can be reached stays where it is until its next sealed datagram, and one that calls by a further path has its home
        // elsewhere.
        if !state.is_open(now) && !state.is_beside(path) {
            state.path = Some(path);
            state.path_proven = false;
        }
        self.send_response(now, peer, path, is_mended);
        Ok(())
    }

    pub(super) fn mismatch(
        &mut self,
        now: Instant,
        peer: usize,
        disagreement: (String, String, String),
    ) {
        let Some(state) = self.peers.get_mut(peer) else {
            return;
        };
        let first = state.not_before <= now;
        state.pending = None;
        state.not_before = now + MISMATCH_PAUSE;
        let peer = state.index;
        let (what, ours, theirs) = disagreement;
        if first {
            self.events.push_back(SessionEvent::Mismatch {
                peer,
                what,
                ours,
                theirs,
            });
        }
    }

    /// Sends the response to an initiation again. Where that came damaged, and so without checksum, one with a checksum might
    /// not arrive.
    fn send_response(&mut self, now: Instant, peer: usize, path: PathId, is_mended: bool) {
        let Some(state) = self.peers.get_mut(peer) else {
            return;
        };
        let Some(answered) = state.answered.as_mut() else {
            return;
        };
        answered.count = answered.count.saturating_add(1);
        let unconfirmed = answered.count >= UNCONFIRMED_COUNT
            && now.saturating_since(answered.since) >= UNCONFIRMED_FOR;
        let response = answered.response.clone();
        let (peer, kind) = (state.index, SecurityKinds::of(&state.config.security));
        let back = state.way(path, is_mended);
        if self.answer_stranger(back, response) {
            self.counters.responses_sent += 1;
        }
        if unconfirmed {
            self.refuse(now, path, Some(peer), HandshakeRefusal::Unconfirmed(kind));
        }
    }
}
