//! The words that a session says of the paths of a link, at one of its sides.

use super::super::lanes::in_lane;
use super::Star;
use fulmar_proto::machine::{Carried, PathId};

impl Star {
    /// The number of paths of a link.
    pub(in super::super) fn lane_count(&self, link: usize) -> usize {
        1 + self.links[link].lanes.len()
    }

    /// The gateway at a side of a link, and the path by which it knows this lane, if it has it.
    pub(super) fn lane_at(
        &self,
        (link, side): (usize, usize),
        lane: usize,
    ) -> Option<(usize, PathId)> {
        let gateway = Self::gateway_of(link, side);
        let home = Self::path(gateway, Self::gateway_of(link, 1 - side));
        let further = lane
            .checked_sub(1)
            .map(|place| &self.links[link].lanes[place]);
        let is_there = further.is_none_or(|further| further.is_bonded[side]);
        is_there.then(|| (gateway, in_lane(home, lane)))
    }

    /// Tells a side of a link that a further path is there, or no longer.
    pub(in super::super) fn toggle_lane(&mut self, (link, side): (usize, usize), lane: usize) {
        let gateway = Self::gateway_of(link, side);
        let home = Self::path(gateway, Self::gateway_of(link, 1 - side));
        let Some(further) = lane
            .checked_sub(1)
            .and_then(|place| self.links[link].lanes.get_mut(place))
        else {
            return;
        };
        let is_bonded = !further.is_bonded[side];
        further.is_bonded[side] = is_bonded;
        let (facts, path) = (further.facts, in_lane(home, lane));
        if is_bonded {
            self.bonds += 1;
            self.call(gateway, |splicer, now| {
                assert!(Carried::bond(splicer, now, home, path, facts));
            });
        } else {
            self.held.remove(&(gateway, path));
            self.doubted.remove(&(gateway, path));
            self.call(gateway, |splicer, now| Carried::part(splicer, now, path));
        }
    }

    /// Holds one of the paths of a link for down at a side, or no longer.
    pub(in super::super) fn toggle_hold_of(&mut self, at: (usize, usize), lane: usize) {
        if let Some((gateway, path)) = self.lane_at(at, lane) {
            self.toggle_hold(gateway, path);
        }
    }

    /// Doubts one of the paths of a link at a side, or no longer.
    pub(in super::super) fn toggle_doubt_of(&mut self, at: (usize, usize), lane: usize) {
        if let Some((gateway, path)) = self.lane_at(at, lane) {
            self.toggle_doubt(gateway, path);
        }
    }

    pub(super) fn toggle_doubt(&mut self, gateway: usize, path: PathId) {
        let is_doubted = self.doubted.insert((gateway, path));
        if !is_doubted {
            self.doubted.remove(&(gateway, path));
        }
        self.call(gateway, |splicer, now| {
            Carried::doubt(splicer, now, path, is_doubted);
        });
    }

    /// The further paths that a side of a link has, which it has no more from now on.
    pub(super) fn take_lanes(&mut self, (link, side): (usize, usize)) -> Vec<PathId> {
        let lanes = 1..self.lane_count(link);
        let there: Vec<_> = lanes
            .filter_map(|lane| self.lane_at((link, side), lane))
            .collect();
        for at in &there {
            self.held.remove(at);
            self.doubted.remove(at);
        }
        for lane in &mut self.links[link].lanes {
            lane.is_bonded[side] = false;
        }
        there.into_iter().map(|(_, path)| path).collect()
    }
}
