//! The one place where a session takes what a link tells of itself.

use super::Session;
use crate::session::config::PeerIndex;
use crate::session::event::{PathChange, SessionEvent};
use crate::session::path_slot::PathSlot;
use fulmar_proto::liveness::ToldChange;
use fulmar_proto::machine::{Carried, PathId};
use fulmar_proto::told::ToldFacts;
use fulmar_proto::units::{Duration, Instant};

/// A path as its session saw it, to hold a link's words against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSeen {
    /// The path by which the machine inside knows it.
    pub inner: PathId,
    /// The time at which something genuine last came by it.
    pub last_heard: Option<Instant>,
    /// The time since when it is held for down without anybody having told so.
    pub silent_since: Option<Instant>,
}

impl<M: Carried> Session<M> {
    /// Takes what the link below a path to `peer` tells of itself now, in place of all before: below the outer path `path`, or
    /// below the first one. A link that is down is not sent to and not called; one that is up again carries data at once, at the
    /// rate that it had. Returns whether there is such a path now. Drain afterwards.
    pub fn take_told(
        &mut self,
        now: Instant,
        (peer, path): (PeerIndex, Option<PathId>),
        told: ToldFacts,
    ) -> bool {
        let Some((index, place)) = self.told_place(peer, path) else {
            return false;
        };
        let Some(state) = self.peers.get_mut(index) else {
            return false;
        };
        let was_open = state.is_open(now);
        // Nothing is known inside of a peer that has not come, or has gone.
        let is_known = state.announced;
        let several = !state.further.is_empty();
        let further = state.further.get_mut(place);
        let is_used = is_known && further.as_ref().is_none_or(|further| further.is_bonded);
        let liveness = further.map_or(&mut state.liveness, |further| &mut further.liveness);
        let was_doubted = liveness.is_doubted();
        let change = liveness.on_told(now, told.is_up);
        if was_doubted && !liveness.is_doubted() {
            self.doubt_path(now, (index, place), false);
        }
        match change {
            ToldChange::Down if is_used && several => {
                let change = (PathChange::Down(Duration::ZERO), Duration::ZERO);
                self.leave_path(now, (index, place), change);
            }
            ToldChange::Down if is_used => {
                self.counters.outages += 1;
                let silent_for = Duration::ZERO;
                self.events
                    .push_back(SessionEvent::LinkDown { peer, silent_for });
            }
            ToldChange::Up(outage) if is_used => {
                self.end_outage(now, (index, place), (outage, was_open));
            }
            ToldChange::Up(_) | ToldChange::Down | ToldChange::Nothing => {}
        }
        self.take_told_damage(now, (index, place), told);
        true
    }

    /// Lets parity follow the wrong bits that are told where damage is let in, and lengths where it is dropped.
    fn take_told_damage(
        &mut self,
        now: Instant,
        (index, place): (usize, PathSlot),
        mut told: ToldFacts,
    ) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let inside = state.index.inner_path_in(place);
        if place == PathSlot::FIRST && state.protection.parity().is_armoured {
            let bits = told.bit_errors.take();
            let round_trip = state.liveness.rtt().unwrap_or_default();
            if state.protection.on_told(now, bits, round_trip) {
                self.say_parity(index);
            }
        }
        self.inner.take_told(now, inside, told);
    }

    /// A path to `peer` as it was seen, named as for [`Session::take_told`].
    pub fn path_seen(&self, peer: PeerIndex, path: Option<PathId>) -> Option<PathSeen> {
        let (index, place) = self.told_place(peer, path)?;
        let state = self.peers.get(index)?;
        let further = state.further.get(place);
        let liveness = further.map_or(&state.liveness, |further| &further.liveness);
        Some(PathSeen {
            inner: peer.inner_path_in(place),
            last_heard: liveness.last_heard(),
            silent_since: liveness.silent_since(),
        })
    }

    fn told_place(&self, peer: PeerIndex, path: Option<PathId>) -> Option<(usize, PathSlot)> {
        let index = usize::try_from(peer.0).ok()?;
        let state = self.peers.get(index)?;
        let place = match path {
            None => PathSlot::FIRST,
            Some(path) => state.further.place_of(path)?,
        };
        Some((index, place))
    }
}
