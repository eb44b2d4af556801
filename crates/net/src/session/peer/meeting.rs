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
        if self.path == Some(path) && !self.path_proven {
            self.path = None;
        }
    }

    /// Takes the path to the address that a hub told.
    pub(in super::super) fn take_told(&mut self, now: Instant, path: PathId) {
        if !self.path_proven {
            self.path = Some(path);
        }
        self.config.endpoints = vec![path];
        if let Some(asking) = &mut self.asking {
            asking.on_path(path);
        }
        // The other end hears of us in the same moment.
        self.liveness.try_again();
        self.calls.call_next(path);
        if let Some(pending) = &mut self.pending {
            pending.hasten(now);
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
