//! Relayed datagrams: as the hub, as the end that sends it, and as the end that it is for.

use super::Session;
use super::arrivals::{DatagramArrival, Origin, SOURCE_BYTES};
use super::meetings::{number_of, way_through_hub};
use crate::session::config::PeerIndex;
use crate::session::fragments::cut;
use crate::session::peer::Peer;
use crate::session::wire::{
    FRAGMENT_BYTES, MESSAGE_TYPE_BYTES, Message, RELAYED_BYTES, Relayed, RelayedWay, RemoteNumber,
};
use fulmar_proto::liveness::Wants;
use fulmar_proto::machine::{Carried, Datagram, Ecn, PathId};
use fulmar_proto::units::Instant;

/// Datagrams that a hub has carried here and that wait within one arrival.
const CARRIED_MAX: usize = 16;

/// The source of what a hub carried here: nobody's address, since that of the hub says nothing of the peer, and another for each peer,
/// so that none takes what the others may have.
pub(super) fn source_inside(path: PathId) -> [u8; SOURCE_BYTES] {
    let mut source = [0; SOURCE_BYTES];
    let [_, _, high, low] = path.split_checksum().1.0.to_be_bytes();
    // No host has an address that begins so.
    source[..3].copy_from_slice(&[0xFF, high, low]);
    source
}

impl<M: Carried> Session<M> {
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
    pub(super) fn carry_on(
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
