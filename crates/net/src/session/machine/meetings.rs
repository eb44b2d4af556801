//! Meetings of two peers through a hub: the questions to the hub, its answers, and what it carries between the two.
//!
//! A way through a hub is an outer path of the session's own ([`PathId::inside`]): datagrams for it leave inside what goes to the hub, and
//! what the hub carries here comes in on it. It is a further path to the peer that costs something, so that data leaves on it while
//! the peer is not reached directly.

use super::Session;
use super::arrivals::{DatagramArrival, Origin, SOURCE_BYTES};
use crate::session::asking::{Asking, NotIntroduced};
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

impl<M: Carried> Session<M> {
    /// Meets `peer`, whose public key is known, through `hub`, a peer that introduces the two; no longer without a hub. Drain afterwards.
    pub fn meet(&mut self, peer: PeerIndex, hub: Option<PeerIndex>) {
        if let Some(state) = self.peer_mut(peer) {
            state.asking = hub.map(|hub| Box::new(Asking::new(hub)));
        }
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
        let remote = public_key(&state.config.security);
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
        asking.on_asked(now);
        match remote.filter(|_| is_able) {
            Some(remote) => {
                let meet = Message::Meet(Meet { remote });
                self.tell(now, hub, meet);
            }
            None => self.not_introduced(peer, NotIntroduced::Unable),
        }
    }

    fn asking_mut(&mut self, index: usize) -> Option<&mut Asking> {
        self.peers.get_mut(index)?.asking.as_deref_mut()
    }

    fn not_introduced(&mut self, peer: PeerIndex, why: NotIntroduced) {
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

    /// The word about a peer for another one. Its address is told if both wish to meet.
    fn word_about(
        &self,
        now: Instant,
        (about, to): (PeerIndex, PeerIndex),
        is_mutual: bool,
    ) -> Option<Met> {
        let (about, to) = (self.peer(about)?, self.peer(to)?);
        let is_there = is_mutual && about.is_open(now);
        Some(Met {
            remote: about
                .key_in_use
                .or_else(|| public_key(&about.config.security))?,
            is_introduced: true,
            is_relayed: about.introduced.is_relayed() && to.introduced.is_relayed(),
            number: number_of(about.index),
            address: about.source.filter(|_| is_there),
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
        if !met.is_introduced {
            self.not_introduced(peer, NotIntroduced::Refused);
            return;
        }
        let address = (state.asking.as_mut()).and_then(|asking| asking.on_met(now, met));
        let through = way_through_hub(peer);
        if met.is_relayed && !state.further.has(through) {
            let terms = PathTerms {
                rate: None,
                cost: RELAY_COST,
            };
            self.add_path(now, (peer, through), terms);
        }
        if let Some(address) = address {
            let event = SessionEvent::Introduced { peer, address };
            self.events.push_back(event);
        }
    }

    /// Sends a datagram for a peer through its hub, if the hub carries it and the peer is there.
    pub(super) fn send_through(&mut self, now: Instant, path: PathId, octets: &[u8]) {
        let is_it = |state: &&Peer| way_through_hub(state.index) == path.split_checksum().1;
        let state = self.peers.iter().find(is_it);
        let asking = state.and_then(|state| state.asking.as_ref());
        let way = asking.and_then(|asking| Some((asking.hub, asking.relayed_as()?)));
        if let Some((hub, number)) = way {
            let way = RelayedWay::To(number);
            self.relay(now, hub, Relayed { way, octets });
        }
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
        let may_come = self
            .peer(to)
            .is_some_and(|state| state.introduced.is_relayed() && state.is_open(now));
        let is_mutual = self.wishes.has(now, from, to) && self.wishes.has(now, to, from);
        if !may_come || !is_mutual {
            return false;
        }
        // What leaves is charged: the headers of a small datagram are more than itself.
        let leaves = self
            .peer(to)
            .map(|state| state.octets_of_own(RELAYED_BYTES + octets.len()).as_usize());
        let state = self.peers.get_mut(index).zip(leaves);
        if !state.is_some_and(|(state, leaves)| state.introduced.may_relay(now, leaves)) {
            return false;
        }
        let way = RelayedWay::From(number_of(from));
        self.relay(now, to, Relayed { way, octets })
    }

    /// Seals a datagram that goes through a hub, whole or in pieces, for the next on its way.
    fn relay(&mut self, now: Instant, to: PeerIndex, relayed: Relayed<'_>) -> bool {
        let Some(state) = self.peer(to).filter(|state| state.is_open(now)) else {
            return false;
        };
        let room = self.sizes_of(state).payload.as_usize();
        let pieces_room = room.saturating_sub(MESSAGE_TYPE_BYTES + FRAGMENT_BYTES);
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
        let mut pieces = cut(state.fragment_id, &content, pieces_room);
        pieces.all(|piece| {
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
            // Nobody's address: that of the hub says nothing of the peer.
            let source = &[0; SOURCE_BYTES];
            let carried = DatagramArrival {
                datagram,
                source,
                ..arrival
            };
            self.take_arrival(now, carried);
        }
    }
}
