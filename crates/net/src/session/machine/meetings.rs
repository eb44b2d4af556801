//! Meetings of two peers through a hub: the questions to the hub, and its answers. What it carries between the two is in `relaying`.
//!
//! A way through a hub is an outer path of the session's own ([`PathId::inside`]): datagrams for it leave inside what goes to the hub, and
//! what the hub carries here comes in on it. It is a further path to the peer that costs something, so that data leaves on it while
//! the peer is not reached directly.

use super::Session;
use crate::session::asking::{Asking, Heeded, NotIntroduced};
use crate::session::config::PeerIndex;
use crate::session::dialect::Wire;
use crate::session::event::{PathChange, SessionEvent};
use crate::session::further_path::PathTerms;
use crate::session::introductions::{Introduce, introduces};
use crate::session::path_slot::PathSlot;
use crate::session::peer::{Peer, public_key};
use crate::session::peer_status::Reach;
use crate::session::wire::{Meet, Message, Met, RemoteNumber};
use fulmar_proto::liveness::Wants;
use fulmar_proto::machine::{Carried, Deadline, PathId};
use fulmar_proto::units::{Duration, Instant};

/// The cost of the way through a hub: the address of the peer costs nothing.
const RELAY_COST: u8 = 1;

/// The number by which this end, as a hub, knows a peer.
pub(super) fn number_of(peer: PeerIndex) -> RemoteNumber {
    RemoteNumber(u16::try_from(peer.0).unwrap_or(u16::MAX))
}

/// The path that stands for the way to a peer through its hub.
pub(super) fn way_through_hub(peer: PeerIndex) -> PathId {
    PathId::inside(number_of(peer).0)
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
        let (peer, through) = (state.index, way_through_hub(state.index));
        if state.path.is_none_or(|path| path == through) {
            // With a peer that knows of one path only, it may be that one.
            state.path = None;
            state.path_proven = false;
            if state.liveness.fall_unheard(now) && state.keys.is_usable(now) {
                let silent_for = Duration::ZERO;
                if state.further.is_empty() {
                    self.counters.outages += 1;
                    self.events
                        .push_back(SessionEvent::LinkDown { peer, silent_for });
                } else {
                    let change = (PathChange::Down(silent_for), silent_for);
                    self.leave_path(now, (index, PathSlot::FIRST), change);
                }
            }
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
    pub(super) fn way_by_hub(
        &self,
        now: Instant,
        state: &Peer,
    ) -> Option<(PeerIndex, RemoteNumber)> {
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
}

#[cfg(test)]
mod tests;
