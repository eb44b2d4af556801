//! Damaged datagrams, which parity outside the seal mends before anybody vouches for them.
//!
//! # Promises
//! - Nothing is mended before its header is read, and content only for keys that are there and a counter not seen.
//! - For datagrams that lead to nothing, corrections are counted against the address that they came from.
//! - The tag has the last word: what was mended wrongly is dropped.

use super::Session;
use super::arrivals::Origin;
use super::departures::{CHECKSUM_PROBE, UNCHECKED_PROBE};
use crate::session::checksum_choice::{ChecksumChoice, ChecksumDecision, ChecksumReason};
use crate::session::config::PeerIndex;
use crate::session::correction::{Damage, STRANGERS};
use crate::session::counters::DropReason;
use crate::session::damage_reports::{Beyond, tells};
use crate::session::dialect::{DataParity, Wire};
use crate::session::event::SessionEvent;
use crate::session::later_repair::DamagedCopy;
use crate::session::path_slot::PathSlot;
use crate::session::peer::Challenge;
use crate::session::protection::Armour;
use crate::session::seal::Told;
use crate::session::sizes::NetworkHeaders;
use crate::session::unchecked::{HANDSHAKE_WORDS, mends};
use crate::session::wire::{
    ARMOURED_HEADER_BYTES, Armoured, Capability, DamageReport, DataHeader, Header, Message,
    PROBE_BYTES, Probe,
};
use fulmar_proto::fec::packet::Uncorrectable;
use fulmar_proto::liveness::Wants;
use fulmar_proto::machine::{Carried, PathId};
use fulmar_proto::units::{Duration, FecStrength, Instant};

/// The time between two questions to addresses where a peer may be.
const CHALLENGE_PAUSE: Duration = Duration::from_millis(250);

impl<M: Carried> Session<M> {
    /// Armours data for `peer` once it says that it mends such data. `None`: data is plain, unless
    /// [`SessionConfig::fec_words`](crate::session::SessionConfig::fec_words) says otherwise.
    pub fn set_armour(&mut self, peer: PeerIndex, armour: Option<Armour>) {
        let Some(state) = self.peer_mut(peer) else {
            return;
        };
        state.protection.set_armour(armour);
        let words = state.protection.words_of_calls();
        // A call under way has other parity, and is begun anew.
        state.pending.take_if(|pending| pending.parity != words);
        let (announced, said) = (state.announced, state.capabilities.clone());
        let Ok(index) = usize::try_from(peer.0) else {
            return;
        };
        if self.agree_on_parity(index, &said) && announced {
            self.say_sizes(index);
        }
        self.agree_on_claims(index);
    }

    /// Whether the peer claims what we send: it tells of damage, and we armour, or may. What leaves is kept in mind for that.
    pub(super) fn is_claimed(&self, index: usize) -> bool {
        let state = self.peers.get(index);
        state.is_some_and(|state| state.damage.is_agreed() && state.protection.may_armour())
    }

    /// Tells the inner machine of another answer to [`Session::is_claimed`].
    pub(super) fn agree_on_claims(&mut self, index: usize) {
        let is_claimed = self.is_claimed(index);
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        if let Some(ways) = state.path_acks.name_damaged(is_claimed) {
            let path = state.index.inner_path();
            self.inner.number_path(self.now, path, ways);
        }
    }

    /// Sends data to `peer` by UDP with its checksum, or armoured and without it, as serves better. The armour is that of
    /// [`Session::set_armour`].
    pub fn choose_checksum(&mut self, peer: PeerIndex) {
        if let Some(state) = self.peer_mut(peer) {
            state.checksum = Some(Box::new(ChecksumChoice::new()));
            state.protection.hold(true);
        }
    }

    /// Begins to choose between UDP with its checksum and without it to a peer that is there now, or somewhere else.
    pub(super) fn begin_checksum_choice(
        &mut self,
        now: Instant,
        index: usize,
        said: &[Capability],
    ) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let may = state.wire == Wire::Two && mends(said) && tells(said);
        if let Some(choice) = &mut state.checksum {
            choice.begin(now, may);
            state.protection.hold(true);
            if !may {
                self.events.push_back(SessionEvent::CarrierChosen {
                    peer: state.index,
                    is_unchecked: false,
                    why: ChecksumReason::NotAgreed,
                });
            }
        }
    }

    /// Lets data leave as was decided.
    pub(super) fn take_decision(&mut self, index: usize, decision: Option<ChecksumDecision>) {
        let (Some(state), Some(decision)) = (self.peers.get_mut(index), decision) else {
            return;
        };
        let ChecksumDecision { is_unchecked, why } = decision;
        state.protection.hold(!is_unchecked);
        let (peer, said) = (state.index, state.capabilities.clone());
        if self.agree_on_parity(index, &said) {
            self.say_parity(index);
        }
        if let Some(why) = why {
            self.events.push_back(SessionEvent::CarrierChosen {
                peer,
                is_unchecked,
                why,
            });
        }
    }

    /// Asks whether datagrams without checksum are carried, and gives up what came to nothing, if that is due.
    pub(super) fn try_unchecked(&mut self, now: Instant, index: usize) {
        let Some(state) = self.peers.get_mut(index).filter(|peer| peer.is_open(now)) else {
            return;
        };
        let round_trip = state.liveness.rtt().unwrap_or_default();
        let (Some(choice), Some(path)) = (&mut state.checksum, state.path) else {
            return;
        };
        let decision = choice.due(now, round_trip);
        let asks = choice.ask(now, round_trip);
        self.take_decision(index, decision);
        let Some(state) = self.peers.get_mut(index).filter(|_| asks) else {
            return;
        };
        let small = state.octets_of_own(PROBE_BYTES);
        let full = state.mtu.packet();
        let mut probe = |id| {
            Message::Probe(Probe {
                id: CHECKSUM_PROBE | id | state.next_probe(),
                sent_micros: now.as_wrapping_micros(),
                cost: 0,
            })
        };
        let (checked, unchecked) = (probe(0), probe(UNCHECKED_PROBE));
        // The loss of a question about the checksum must not raise doubts about the link.
        let wants = Wants::Nothing;
        let way = (index, path, PathSlot::FIRST);
        self.send_message_in(now, way, checked, wants, DataParity::NONE);
        // Protected and as long as data would be: some paths drop long ones alone.
        let parity = DataParity {
            is_armoured: true,
            words: HANDSHAKE_WORDS,
        };
        let path = path.without_checksum();
        self.send_padded(now, (index, path), unchecked, full, parity);
        self.note_sent_beside(now, index, small + full);
    }

    /// Words of parity behind full datagrams to `peer` now.
    pub fn parity_to(&self, peer: PeerIndex) -> FecStrength {
        let state = self.peer(peer);
        state.map_or(FecStrength::NONE, |state| state.protection.parity().words)
    }

    /// Whether data to `peer` is armoured now.
    pub fn armours(&self, peer: PeerIndex) -> bool {
        let state = self.peer(peer);
        state.is_some_and(|state| state.protection.parity().is_armoured)
    }

    /// The outer path to `peer`.
    pub fn path_to(&self, peer: PeerIndex) -> Option<PathId> {
        self.peer(peer)?.path
    }

    /// Whether armoured data with any number of words is mended here.
    fn mends(&self) -> bool {
        !self.config.fec_words.is_none() || mends(&self.config.capabilities)
    }

    /// Words behind a handshake's messages that are mended here.
    fn parity_of_handshakes(&self) -> FecStrength {
        match self.config.fec_words {
            FecStrength::NONE if self.mends() => HANDSHAKE_WORDS,
            words => words,
        }
    }

    /// Words behind our initiations to a peer.
    pub(super) fn parity_of_calls(&self, peer: usize) -> FecStrength {
        let state = self.peers.get(peer);
        state.map_or(FecStrength::NONE, |state| state.protection.words_of_calls())
    }

    /// Words behind the answer to an initiation that has so many: an answer is never larger than its question.
    pub(super) fn parity_of_answer(&self, asked: FecStrength) -> FecStrength {
        if asked == self.parity_of_handshakes() {
            asked
        } else {
            self.config.fec_words
        }
    }

    /// Takes the parity behind data to a peer that follows from the wire and from what the peer said. Returns whether it is
    /// another one; then other sizes hold.
    pub(super) fn agree_on_parity(&mut self, index: usize, said: &[Capability]) -> bool {
        self.agree_on_later_repair(index, said);
        let Some(state) = self.peers.get_mut(index) else {
            return false;
        };
        let layout = state.protected_layout();
        let was_armoured = state.protection.parity().is_armoured;
        let is_other = (state.protection).agree(state.wire, mends(said), layout);
        if state.protection.parity().is_armoured != was_armoured {
            let path = state.index.inner_path();
            self.inner.on_other_link(self.now, path);
        }
        is_other
    }

    /// Undoes damage by parity in a datagram that is covered by it as a whole, if this end has it on, and tries again.
    /// `None`: the damage was beyond correction, or too many corrections were in vain.
    pub(super) fn take_corrected(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        damage: Damage,
        octets: &[u8],
    ) -> Option<Result<(), DropReason>> {
        let words = self.parity_of_handshakes();
        if words.is_none() {
            return None;
        }
        if !self.may_correct(now, origin.path, damage) {
            return None;
        }
        let mut copy = octets.to_vec();
        let corrected = self.code.correct(&mut copy, words).ok()?;
        let header = Header::parse(&copy)
            .ok()
            .filter(|header| header.fec == words)?;
        let origin = Origin {
            place: Some(PathSlot::FIRST),
            is_mended: true,
            ..origin
        };
        let verdict = self.take(now, origin, header, &copy);
        if verdict.is_ok() {
            self.counters.corrected_symbols += u64::from(corrected.symbols);
        }
        Some(verdict)
    }

    /// Whether parity may be worth a try for a datagram that says so many words: those that handshakes are mended by here,
    /// since anybody can write others into a header.
    pub(super) fn is_worth_correcting(&self, words: FecStrength) -> bool {
        words == self.parity_of_handshakes()
    }

    /// Whether a datagram from `path` is to be corrected; it counts as such then.
    fn may_correct(&mut self, now: Instant, path: PathId, damage: Damage) -> bool {
        let may = self.has_credit(now, path, damage);
        self.work.decodes += u64::from(may);
        may
    }

    /// Whether one more datagram that nobody vouches for yet is worth an effort; it is taken off the account of its
    /// sender's address.
    fn has_credit(&mut self, now: Instant, path: PathId, damage: Damage) -> bool {
        let from = self.peer_at(now, path);
        let has = match from.and_then(|peer| self.peers.get_mut(peer)) {
            Some(peer) => peer.corrections.take(now, damage),
            None => self.corrections.take(now, STRANGERS),
        };
        self.counters.uncorrected += u64::from(!has);
        has
    }

    /// Takes an armoured datagram whose header is sound by now; so many octets of it were wrong.
    pub(super) fn take_armoured(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        (armoured, symbols): (Armoured, u32),
        octets: &[u8],
    ) -> Result<(), DropReason> {
        let Armoured { header, words } = armoured;
        let origin = Origin {
            place: Some(PathSlot::FIRST),
            is_armoured: true,
            ..origin
        };
        let whole = octets.get(ARMOURED_HEADER_BYTES..);
        let whole = whole.ok_or(DropReason::Truncated)?;
        let end = whole.len().checked_sub(words.parity_bytes());
        let end = end.ok_or(DropReason::Truncated)?;
        let (receiver, told) = (header.receiver, Told::Whole(header.number));
        let peer = self.indices.get(&receiver);
        let index = peer.map_or(usize::MAX, |peer| peer.0 as usize);
        let taken = match self.take_sealed(now, origin, receiver, told, &whole[..end]) {
            Ok(()) => {
                self.note_genuine(now, index, header, (end, symbols));
                Ok(())
            }
            Err(DropReason::Forged) if self.mends() => {
                self.take_damaged(now, origin, (index, armoured, symbols), whole)
            }
            Err(reason @ (DropReason::NoSession | DropReason::Expired)) => {
                self.tell_lost(now, origin.path, receiver, header.seen(), octets.len());
                Err(reason)
            }
            taken => taken,
        };
        self.send_damage_report(now, index);
        taken
    }

    /// Notes an armoured datagram that was genuine, with so many octets behind its header, of which, and of its header's, so
    /// many were wrong.
    fn note_genuine(
        &mut self,
        now: Instant,
        index: usize,
        header: DataHeader,
        (octets, symbols): (usize, u32),
    ) {
        self.counters.corrected_symbols += u64::from(symbols);
        if let Some(state) = self.peers.get_mut(index) {
            let name = (header.receiver, header.number.counter);
            let octets = ARMOURED_HEADER_BYTES + octets;
            state.damage.on_genuine(now, name, octets, symbols);
        }
    }

    /// Mends an armoured datagram whose tag is wrong, and takes it. What is beyond repair is claimed, if it came from where
    /// the peer is. `whole` are the octets behind its header.
    fn take_damaged(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        (index, armoured, symbols): (usize, Armoured, u32),
        whole: &[u8],
    ) -> Result<(), DropReason> {
        let Armoured { header, words } = armoured;
        if !self.has_credit(now, origin.path, Damage::Content) {
            return Err(DropReason::Forged);
        }
        let (receiver, told) = (header.receiver, Told::Whole(header.number));
        let beyond = if words.is_none() {
            Beyond::all(whole.len(), words)
        } else {
            self.work.decodes += 1;
            let mut copy = whole.to_vec();
            match self.code.correct(&mut copy, words) {
                Ok(corrected) => {
                    let end = whole.len() - words.parity_bytes();
                    let taken = self.take_sealed(now, origin, receiver, told, &copy[..end]);
                    if taken.is_ok() {
                        let symbols = symbols + corrected.symbols;
                        self.note_genuine(now, index, header, (whole.len(), symbols));
                    }
                    if taken != Err(DropReason::Forged) {
                        return taken;
                    }
                    Beyond::all(whole.len(), words)
                }
                Err(Uncorrectable::TooManyErrors {
                    codewords,
                    symbols: corrected,
                }) => Beyond::codewords(whole.len(), words, codewords, symbols + corrected),
                Err(Uncorrectable::TooShort { .. }) => return Err(DropReason::Forged),
            }
        };
        if self.peer_at(now, origin.path) != Some(index) {
            return Err(DropReason::Forged);
        }
        // Nobody vouches for the place, and a claim names none: one of another place would be of some other datagram.
        if header.number.slot != PathSlot::FIRST {
            return Err(DropReason::Forged);
        }
        let (state, counter) = (self.peers.get_mut(index), header.number.counter);
        if let (Some(state), Ok(counter)) = (state, u32::try_from(counter)) {
            let name = (receiver, header.number.counter);
            state.damage.on_beyond_repair(now, name, beyond);
            let round_trip = state.liveness.rtt().unwrap_or_default();
            let copy = DamagedCopy {
                keys: receiver,
                counter,
                words,
                region: whole.to_vec(),
                further: Vec::new(),
                presumed: beyond.presumed(),
                at: now,
            };
            state.later.keep_damaged(now, round_trip, copy);
        }
        Err(DropReason::Damaged)
    }

    /// Takes a peer's word on what became of our armoured datagrams.
    pub(super) fn take_damage_report(
        &mut self,
        now: Instant,
        index: usize,
        report: &DamageReport<'_>,
    ) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        if !state.damage.concerns(report) {
            return;
        }
        let round_trip = state.liveness.rtt().unwrap_or_default();
        let kept_share = state.later.kept_share(now, round_trip);
        state.protection.set_kept_share(kept_share);
        // Totals of a report that was overtaken are old; its claims are as good as ever.
        let word = state.damage.read(report);
        if word.is_some_and(|word| state.protection.on_word(now, word, round_trip)) {
            self.say_parity(index);
        }
        self.see_told_damage(now, index);
        self.answer_claims(now, index, report);
    }

    fn see_told_damage(&mut self, now: Instant, index: usize) {
        let decision = self.peers.get_mut(index).and_then(|state| {
            let told = state.damage.outward();
            state.checksum.as_mut()?.on_told(now, told)
        });
        self.take_decision(index, decision);
    }

    /// Takes what may be an armoured datagram with a damaged header: from where a peer is that speaks wire 2, and for keys
    /// that are there with it. `None`: it is something else, or too many corrections were in vain.
    pub(super) fn take_mended(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        octets: &[u8],
    ) -> Option<Result<(), DropReason>> {
        if !self.mends() {
            return None;
        }
        let from = self.peer_at(now, origin.path)?;
        let peer = self.peers.get(from).filter(|peer| peer.wire == Wire::Two)?;
        let peer = peer.index;
        if !self.may_correct(now, origin.path, Damage::Header) {
            return None;
        }
        let (armoured, symbols) = Armoured::correct(octets, &mut self.code)?;
        if self.indices.get(&armoured.header.receiver) != Some(&peer) {
            return None;
        }
        Some(self.take_armoured(now, origin, (armoured, symbols), octets))
    }

    /// Asks at the address that a genuine datagram seems to come from whether the peer is there. Where damage arrives, one
    /// source port in sixty is wrong at a bit error rate of 1e-3.
    pub(super) fn ask_at(&mut self, now: Instant, origin: Origin<'_>, index: usize) {
        let headers = NetworkHeaders::of_source(origin.source);
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let is_soon = |asked: &Challenge| now.saturating_since(asked.asked_at) < CHALLENGE_PAUSE;
        if state.challenge.as_ref().is_some_and(is_soon) {
            return;
        }
        let id = state.next_probe();
        state.challenge = Some(Challenge {
            id,
            path: origin.path,
            headers,
            asked_at: now,
        });
        let probe = Probe {
            id,
            sent_micros: now.as_wrapping_micros(),
            cost: 0,
        };
        // A question to nobody must not raise doubts about the link.
        let probe = Message::Probe(probe);
        self.send_message_to(now, index, origin.path, probe, Wants::Nothing);
    }

    /// Follows a peer to the address where it answered the question with this number.
    pub(super) fn follow(&mut self, now: Instant, index: usize, id: u32) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let answered = state.challenge.take_if(|asked| asked.id == id);
        let Some(Challenge { path, headers, .. }) = answered else {
            return;
        };
        state.path_proven = true;
        let has_other_headers = core::mem::replace(&mut state.headers, headers) != headers;
        if has_other_headers && state.announced {
            self.say_sizes(index);
        }
        self.move_to(now, index, path);
    }

    /// Sends what goes to a peer to `path` from now on.
    pub(super) fn move_to(&mut self, now: Instant, index: usize, path: PathId) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        if state.path != Some(path) {
            let peer = state.index;
            // Where nobody knew it to be before, it is found, and has not moved.
            let is_move = state.path.replace(path).is_some();
            state.mtu.on_new_path(now);
            self.inner.on_other_link(now, peer.inner_path());
            if is_move {
                self.counters.moves += 1;
                self.events.push_back(SessionEvent::Moved { peer, path });
            }
            let said = state.capabilities.clone();
            self.begin_checksum_choice(now, index, &said);
            if self.agree_on_parity(index, &said) {
                self.say_parity(index);
            }
        }
    }
}
