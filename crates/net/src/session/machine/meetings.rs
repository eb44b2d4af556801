//! Meetings of two peers through a hub: the questions to the hub, its answers, and what it carries between the two.
//!
//! A way through a hub is an outer path of the session's own ([`PathId::inside`]): datagrams for it leave inside what goes to the hub, and
//! what the hub carries here comes in on it. It is a further path to the peer that costs something, so that data leaves on it while
//! the peer is not reached directly.

use super::Session;
use super::arrivals::{DatagramArrival, Origin, SOURCE_BYTES};
use crate::session::asking::{Asking, Heeded, NotIntroduced};
use crate::session::config::PeerIndex;
use crate::session::dialect::Wire;
use crate::session::event::SessionEvent;
use crate::session::fragments::cut;
use crate::session::further_path::PathTerms;
use crate::session::introductions::{Introduce, introduces};
use crate::session::peer::{Peer, public_key};
use crate::session::peer_status::Reach;
use crate::session::wire::{
    FRAGMENT_BYTES, MESSAGE_TYPE_BYTES, Meet, Message, Met, RELAYED_BYTES, Relayed, RelayedWay,
    RemoteNumber,
};
use fulmar_proto::liveness::Wants;
use fulmar_proto::machine::{Carried, Datagram, Deadline, Ecn, PathId};
use fulmar_proto::units::Instant;

/// The cost of the way through a hub: the address of the peer costs nothing.
const RELAY_COST: u8 = 1;
/// Datagrams that a hub has carried here and that wait within one arrival.
const CARRIED_MAX: usize = 16;

/// The number by which this end, as a hub, knows a peer.
fn number_of(peer: PeerIndex) -> RemoteNumber {
    RemoteNumber(u16::try_from(peer.0).unwrap_or(u16::MAX))
}

/// The path that stands for the way to a peer through its hub.
fn way_through_hub(peer: PeerIndex) -> PathId {
    PathId::inside(number_of(peer).0)
}

/// The source of what a hub carried here: nobody's address, since that of the hub says nothing of the peer, and another for each peer,
/// so that none takes what the others may have.
fn source_inside(path: PathId) -> [u8; SOURCE_BYTES] {
    let mut source = [0; SOURCE_BYTES];
    let [_, _, high, low] = path.split_checksum().1.0.to_be_bytes();
    // No host has an address that begins so.
    source[..3].copy_from_slice(&[0xFF, high, low]);
    source
}

impl<M: Carried> Session<M> {
    /// Meets `peer`, whose public key is known, through `hub`, a peer that introduces the two; no longer without a hub. What another hub
    /// did before ends: its way to the peer, and calls where it told that the peer is. Drain afterwards.
    pub fn meet(&mut self, peer: PeerIndex, hub: Option<PeerIndex>) {
        self.whereabouts.forget();
        let now = self.now;
        let Some(state) = self.peer_mut(peer) else {
            return;
        };
        if state.asking.as_ref().map(|asking| asking.hub) == hub {
            return;
        }
        let was_asking = state.asking.is_some();
        state.forget_hub();
        state.asking = hub.map(|hub| Box::new(Asking::new(hub)));
        if let Some(index) = usize::try_from(peer.0).ok().filter(|_| was_asking) {
            self.leave_hub(now, index);
        }
    }

    /// Calls `peer` on the path to the address that its hub told ([`SessionEvent::Introduced`]), unless it is not asked for any more.
    /// Drain afterwards.
    ///
    /// # Errors
    /// The other peer that is at that path: nobody else is called there, and nothing is changed.
    pub fn set_told_address(&mut self, peer: PeerIndex, path: PathId) -> Result<(), PeerIndex> {
        let now = self.now;
        let is_owner = |other: &&Peer| other.index != peer && other.owns(now, path);
        if let Some(other) = self.peers.iter().find(is_owner) {
            return Err(other.index);
        }
        self.whereabouts.forget();
        let state = self.peer_mut(peer);
        if let Some(state) = state.filter(|state| state.asking.is_some()) {
            state.call_at_told(now, path);
        }
        Ok(())
    }

    /// Takes the way through a hub to a peer away: the hub carries nothing there any more.
    fn leave_hub(&mut self, now: Instant, index: usize) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let through = way_through_hub(state.index);
        if state.path == Some(through) {
            state.path = None;
            state.path_proven = false;
        }
        self.remove_path(now, (index, through));
    }

    /// Whether what comes on `path` may be from the peer at `index`: a way through a hub is that of one peer alone.
    pub(super) fn may_be_from(&self, index: usize, path: PathId) -> bool {
        let own = |state: &Peer| way_through_hub(state.index) == path.split_checksum().1;
        !path.is_inside() || self.peers.get(index).is_some_and(own)
    }

    /// Whether a datagram for the peer at `index` would leave on `path`: its hub, if that is the way, takes it now.
    pub(super) fn may_leave(&self, now: Instant, index: usize, path: PathId) -> bool {
        let state = self.peers.get(index);
        !path.is_inside() || state.is_some_and(|state| self.way_by_hub(now, state).is_some())
    }

    /// The hub of a peer and the peer's number there, if the hub carries datagrams to it now.
    fn way_by_hub(&self, now: Instant, state: &Peer) -> Option<(PeerIndex, RemoteNumber)> {
        let asking = state.asking.as_ref()?;
        let number = asking.relayed_as()?;
        let hub = self.peer(asking.hub).filter(|hub| hub.is_open(now))?;
        Some((hub.index, number))
    }

    /// Helps `peer`, as a hub, to meet others that may be helped, too.
    pub fn introduce(&mut self, peer: PeerIndex, help: Introduce) {
        if let Some(state) = self.peer_mut(peer) {
            state.introduced.help = help;
        }
    }

    /// The way by which a peer is reached that a hub introduces; `None` while it is not, and for other peers.
    pub fn reach(&self, peer: PeerIndex) -> Option<Reach> {
        self.peer(peer)?.reach(self.now)
    }

    /// The time of the next question to the hub of a peer, while the hub is there.
    pub(super) fn next_question(&self, state: &Peer) -> Option<Deadline> {
        let asking = state.asking.as_ref()?;
        let hub = self.peer(asking.hub)?;
        let why = "question to a hub";
        let at = asking.ask_at();
        hub.is_open(self.now).then_some(Deadline { at, why })
    }

    /// Asks the hub of a peer, if that is due, and tells the application how the peer is reached.
    pub(super) fn run_meeting(&mut self, now: Instant, index: usize) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let reach = state.reach(now);
        let peer = state.index;
        let Some(asking) = &mut state.asking else {
            return;
        };
        asking.see_direct(reach == Some(Reach::Direct));
        if reach.is_some() && state.reach_said != reach {
            state.reach_said = reach;
            if let Some(reach) = reach {
                let event = SessionEvent::Reached { peer, reach };
                self.events.push_back(event);
            }
        }
        self.ask_hub(now, index);
    }

    fn ask_hub(&mut self, now: Instant, index: usize) {
        let Some(state) = self.peers.get(index) else {
            return;
        };
        // The hub's file may have either key of a peer that changes its own.
        let keys = [public_key(&state.config.security), state.also];
        let keys = keys.into_iter().flatten();
        let (peer, hub) = (state.index, state.asking.as_ref().map(|asking| asking.hub));
        let hub_state = hub.and_then(|hub| self.peer(hub));
        let Some(state) = hub_state.filter(|hub| hub.is_open(now)) else {
            return;
        };
        let (hub, boot) = (state.index, state.boot);
        let is_able = introduces(&state.capabilities) && state.wire == Wire::Two;
        let Some(asking) = self.asking_mut(index) else {
            return;
        };
        asking.see_hub(boot);
        if asking.ask_at() > now {
            return;
        }
        let count = keys.clone().count();
        asking.on_asked(now, count);
        if !is_able {
            self.not_introduced(now, peer, NotIntroduced::Unable);
        } else if count == 0 {
            self.not_introduced(now, peer, NotIntroduced::Nameless);
        } else {
            for remote in keys {
                self.tell(now, hub, Message::Meet(Meet { remote }));
            }
        }
    }

    fn asking_mut(&mut self, index: usize) -> Option<&mut Asking> {
        self.peers.get_mut(index)?.asking.as_deref_mut()
    }

    fn not_introduced(&mut self, now: Instant, peer: PeerIndex, why: NotIntroduced) {
        let asking = self
            .peer_mut(peer)
            .and_then(|state| state.asking.as_deref_mut());
        if let Some(asking) = asking
            && asking.on_refused(why)
        {
            let hub = asking.hub;
            self.events
                .push_back(SessionEvent::NotIntroduced { peer, hub, why });
        }
        if let Ok(index) = usize::try_from(peer.0) {
            self.leave_hub(now, index);
        }
    }

    /// Sends a word about meetings. It wants no answer of the link: the question is repeated.
    fn tell(&mut self, now: Instant, to: PeerIndex, word: Message<'_>) {
        if let Ok(index) = usize::try_from(to.0) {
            self.send_message(now, index, word, Wants::Nothing);
        }
    }

    /// Takes the wish of a peer to meet another. Both are told where the other is once both wish it.
    pub(super) fn take_wish(&mut self, now: Instant, index: usize, meet: Meet) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let asker = state.index;
        if !state.introduced.may_ask(now) {
            return;
        }
        let may = |state: &&Peer| state.index != asker && state.introduced.is_introduced();
        let mut peers = self.peers.iter().filter(may);
        let wanted = peers.find(|state| state.is_known_by(meet.remote));
        let is_introduced = self
            .peers
            .get(index)
            .is_some_and(|state| state.introduced.is_introduced());
        let Some(wanted) = wanted.filter(|_| is_introduced).map(|state| state.index) else {
            let met = Met {
                remote: meet.remote,
                is_introduced: false,
                is_relayed: false,
                is_there: false,
                number: RemoteNumber(0),
                address: None,
            };
            self.tell(now, asker, Message::Met(met));
            return;
        };
        self.wishes.note(now, asker, wanted);
        let is_mutual = self.wishes.has(now, wanted, asker);
        if let Some(met) = self.word_about(now, (wanted, asker), is_mutual) {
            let remote = meet.remote;
            self.tell(now, asker, Message::Met(Met { remote, ..met }));
        }
        if is_mutual && let Some(met) = self.word_about(now, (asker, wanted), is_mutual) {
            self.tell(now, wanted, Message::Met(met));
        }
    }

    /// The word about a peer for another one. Its address is told if both wish to meet, and only while it is still there: further paths
    /// lead to no port that the other could call.
    fn word_about(
        &self,
        now: Instant,
        (about, to): (PeerIndex, PeerIndex),
        is_mutual: bool,
    ) -> Option<Met> {
        let (about, to) = (self.peer(about)?, self.peer(to)?);
        let is_there = is_mutual && about.is_open(now);
        let is_home_up = is_there && !about.liveness.is_down();
        Some(Met {
            remote: about
                .key_in_use
                .or_else(|| public_key(&about.config.security))?,
            is_introduced: true,
            is_relayed: about.introduced.is_relayed() && to.introduced.is_relayed(),
            is_there,
            number: number_of(about.index),
            address: about.source.filter(|_| is_home_up),
        })
    }

    /// Takes the word of a hub about a peer.
    pub(super) fn take_met(&mut self, now: Instant, index: usize, met: &Met) {
        let is_it = |state: &&mut Peer| {
            let asking = state.asking.as_ref();
            asking.is_some_and(|asking| usize::try_from(asking.hub.0) == Ok(index))
                && state.is_known_by(met.remote)
        };
        let Some(state) = self.peers.iter_mut().find(is_it) else {
            return;
        };
        let peer = state.index;
        let Some(asking) = &mut state.asking else {
            return;
        };
        if !met.is_introduced {
            if asking.on_key_refused() {
                self.not_introduced(now, peer, NotIntroduced::Refused);
            }
            return;
        }
        let heeded = asking.on_met(now, met);
        let through = way_through_hub(peer);
        if !met.is_relayed {
            if let Ok(index) = usize::try_from(peer.0) {
                self.leave_hub(now, index);
            }
        } else if !state.further.has(through) {
            let terms = PathTerms {
                rate: None,
                cost: RELAY_COST,
            };
            self.add_path(now, (peer, through), terms);
        }
        if let Some(Heeded { address, is_news }) = heeded {
            let event = SessionEvent::Introduced {
                peer,
                address,
                is_news,
            };
            self.events.push_back(event);
        }
    }

    /// Sends a datagram for a peer through its hub. `false`: the hub does not carry it, or the peer is not there.
    pub(super) fn send_through(&mut self, now: Instant, path: PathId, octets: &[u8]) -> bool {
        let is_it = |state: &&Peer| way_through_hub(state.index) == path.split_checksum().1;
        let state = self.peers.iter().find(is_it);
        let way = state.and_then(|state| self.way_by_hub(now, state));
        way.is_some_and(|(hub, number)| {
            let way = RelayedWay::To(number);
            self.relay(now, hub, Relayed { way, octets })
        })
    }

    /// Takes a datagram that goes through a hub: as the hub, or as the end that it is for.
    pub(super) fn take_relayed(
        &mut self,
        now: Instant,
        (index, origin): (usize, Origin<'_>),
        relayed: Relayed<'_>,
    ) {
        // What came through a hub itself goes no further.
        if origin.path.is_inside() {
            return;
        }
        match relayed.way {
            RelayedWay::To(number) => {
                let is_carried = self.carry_on(now, index, number, relayed.octets);
                let count = if is_carried {
                    &mut self.counters.relayed
                } else {
                    &mut self.counters.unrelayed
                };
                *count += 1;
            }
            RelayedWay::From(number) => {
                let is_it = |state: &&Peer| {
                    let asking = state.asking.as_ref();
                    asking.is_some_and(|asking| {
                        usize::try_from(asking.hub.0) == Ok(index) && asking.is_number(number)
                    })
                };
                let peer = self.peers.iter().find(is_it).map(|state| state.index);
                if let Some(peer) = peer.filter(|_| self.carried.len() < CARRIED_MAX) {
                    let octets = relayed.octets.to_vec();
                    self.carried.push_back((way_through_hub(peer), octets));
                }
            }
        }
    }

    /// Carries a datagram on from the peer at `index` to that of a number. `false`: it may not be, or cannot.
    fn carry_on(
        &mut self,
        now: Instant,
        index: usize,
        number: RemoteNumber,
        octets: &[u8],
    ) -> bool {
        let to = PeerIndex(u32::from(number.0));
        let Some(from) = self.peers.get(index).map(|state| state.index) else {
            return false;
        };
        let is_mutual = self.wishes.has(now, from, to) && self.wishes.has(now, to, from);
        let receiver = self.peer(to).filter(|state| state.is_open(now));
        let Some(receiver) = receiver.filter(|_| is_mutual) else {
            return false;
        };
        // What leaves is charged: the headers of a small datagram are more than itself.
        let leaves = self.octets_of_relayed(receiver, octets.len());
        let may_leave = |state: &Peer| state.introduced.may_relay(now);
        if !self.peers.get(index).is_some_and(may_leave) {
            return false;
        }
        // Whoever may send no more takes nothing of what others may send there.
        let may_come = self.peer_mut(to).is_some_and(|state| {
            let link = state.config.mtu.rate;
            state.introduced.receives(now, leaves, link)
        });
        let sender = self.peers.get_mut(index).filter(|_| may_come);
        if !sender.is_some_and(|state| state.introduced.relays(now, leaves)) {
            return false;
        }
        let way = RelayedWay::From(number_of(from));
        self.relay(now, to, Relayed { way, octets })
    }

    /// The content that a datagram to a peer has room for, and the octets of a piece of what does not fit.
    fn rooms_to(&self, state: &Peer) -> (usize, usize) {
        let room = self.sizes_of(state).payload.as_usize();
        let around = MESSAGE_TYPE_BYTES + FRAGMENT_BYTES;
        (room, room.saturating_sub(around))
    }

    /// Octets of the packets in which so many are carried on to a peer, headers included.
    fn octets_of_relayed(&self, state: &Peer, octets: usize) -> usize {
        let whole = RELAYED_BYTES + octets;
        let (room, piece_room) = self.rooms_to(state);
        if whole <= room {
            return state.octets_of_own(whole).as_usize();
        }
        let pieces = whole.div_ceil(piece_room.max(1)).max(2);
        let piece = MESSAGE_TYPE_BYTES + FRAGMENT_BYTES + whole / pieces;
        pieces * state.octets_of_own(piece).as_usize()
    }

    /// Seals a datagram that goes through a hub, whole or in pieces, for the next on its way.
    fn relay(&mut self, now: Instant, to: PeerIndex, relayed: Relayed<'_>) -> bool {
        let Some(state) = self.peer(to).filter(|state| state.is_open(now)) else {
            return false;
        };
        let (room, piece_room) = self.rooms_to(state);
        let Ok(index) = usize::try_from(to.0) else {
            return false;
        };
        let whole = relayed.octets.len() + RELAYED_BYTES;
        if whole <= room {
            return self.send_relayed(now, index, Message::Relayed(relayed), whole);
        }
        let mut content = Vec::with_capacity(whole);
        Message::Relayed(relayed).write(&mut content);
        let Some(state) = self.peers.get_mut(index) else {
            return false;
        };
        state.fragment_id = state.fragment_id.wrapping_add(1);
        // Nothing is cut where there would be too many pieces.
        let mut pieces = cut(state.fragment_id, &content, piece_room).peekable();
        pieces.peek().is_some()
            && pieces.all(|piece| {
                let octets = MESSAGE_TYPE_BYTES + FRAGMENT_BYTES + piece.octets.len();
                self.send_relayed(now, index, Message::Fragment(piece), octets)
            })
    }

    fn send_relayed(
        &mut self,
        now: Instant,
        index: usize,
        message: Message<'_>,
        content: usize,
    ) -> bool {
        // A way inside a way would have no end.
        let is_outside = |(path, _): &(PathId, _)| !path.is_inside();
        if !self.own_way(index).as_ref().is_some_and(is_outside)
            || !self.send_message(now, index, message, Wants::Answer)
        {
            return false;
        }
        if let Some(state) = self.peers.get_mut(index) {
            state.reports.on_sent(now);
            let octets = state.octets_of_own(content);
            self.note_sent_beside(now, index, octets);
        }
        true
    }

    /// Takes the datagrams that a hub carried here in `arrival`.
    pub(super) fn take_carried(&mut self, now: Instant, arrival: DatagramArrival<'_>) {
        while let Some((path, octets)) = self.carried.pop_front() {
            let datagram = Datagram {
                path,
                octets: &octets,
                ecn: Ecn::NotCapable,
            };
            let source = &source_inside(path);
            let carried = DatagramArrival {
                datagram,
                source,
                ..arrival
            };
            self.take_arrival(now, carried);
        }
    }
}

#[cfg(test)]
mod tests;
