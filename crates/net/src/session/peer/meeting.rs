//! A peer that is met through a hub: the address that the hub told, and the way by which the peer is reached.

use super::Peer;
use crate::session::peer_status::Reach;
use fulmar_proto::machine::PathId;
use fulmar_proto::units::Instant;

impl Peer {
    /// Whether `path` leads to an address that a hub told, and from which nothing of the peer has come.
    pub(in super::super) fn is_unproven(&self, path: PathId) -> bool {
        let asking = self.asking.as_ref();
        asking.is_some_and(|asking| asking.is_unproven(path))
    }

    /// Forgets the address that a hub told if it did not answer so many calls.
    pub(in super::super) fn give_up_told(&mut self) {
        let asking = self.asking.as_mut();
        let Some(path) = asking.and_then(|asking| asking.take_given_up()) else {
            return;
        };
        self.config.endpoints.retain(|one| *one != path);
        self.calls.forget_next(path);
        if self.path == Some(path) && !self.path_proven {
            self.path = None;
        }
    }

    /// Notes that it is at `path`, also if a hub told of that.
    pub(in super::super) fn on_proven(&mut self, path: PathId) {
        if let Some(asking) = &mut self.asking {
            asking.on_proven(path);
            self.calls.forget_next(path);
        }
    }

    /// Asks no hub for it any more, and forgets where the hub told that it is, unless it was heard from there.
    pub(in super::super) fn forget_hub(&mut self) {
        if self.asking.take().is_none() {
            return;
        }
        self.calls.forget_all_next();
        // A peer that is met through a hub has no others.
        self.config.endpoints.clear();
        self.path = self.path.filter(|_| self.path_proven);
        self.path_proven = self.path.is_some();
        self.reach_said = None;
    }

    /// Whether `path` is its own, so that nobody else's address leads there: its user named it, or it is there while there is a session.
    pub(in super::super) fn owns(&self, now: Instant, path: PathId) -> bool {
        let endpoints = &self.config.endpoints;
        let is_named = self.asking.is_none() && endpoints.contains(&path);
        let is_there = self.keys.is_usable(now) && self.path == Some(path);
        is_named || is_there || self.is_unproven(path) || self.further.has(path)
    }

    /// Calls it at the address that a hub told, to which `path` leads.
    pub(in super::super) fn call_at_told(&mut self, now: Instant, path: PathId) {
        if !self.path_proven {
            self.path = Some(path);
        }
        self.config.endpoints = vec![path];
        if let Some(asking) = &mut self.asking {
            asking.on_path(path);
        }
        // The other end hears of us in the same moment.
        self.liveness.try_again();
        if let Some(pending) = &mut self.pending {
            pending.hasten(now);
            self.calls.call_next(path);
        } else if !self.keys.is_usable(now) {
            self.calls.call_next(path);
        }
    }

    /// The way by which it is reached, where a hub introduced it.
    pub(in super::super) fn reach(&self, now: Instant) -> Option<Reach> {
        let hub = self.asking.as_ref()?.hub;
        if !self.is_open(now) {
            return None;
        }
        let is_home_up = !self.liveness.is_down();
        let home = self.path.filter(|_| is_home_up);
        let quickest = || self.further.get(self.further.quickest()?);
        let path = home.or_else(|| Some(quickest()?.path))?;
        Some(if path.is_inside() {
            Reach::Through(hub)
        } else {
            Reach::Direct
        })
    }
}
