//! The further paths between two gateways, beside the one on which their session began.
//!
//! A session tells a splicer of each path when it is first heard, when it is doubted or down, and when the peer has forgotten it.
//! Here these words come at random times, at either end by itself, rightly or not.

use super::medium::Draw;
use fulmar_channel::Channel;
use fulmar_proto::machine::{PathFacts, PathId};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, Duration};

/// The further paths of a link, at most.
pub(super) const LANES_MAX: u64 = 3;
/// The bits of a path's number that tell the lane lie above those that tell the link.
const LANE_SHIFT: u32 = 28;

/// A further path.
#[derive(Debug)]
pub(super) struct Lane {
    /// The channels from side 0 and from side 1.
    pub(super) ways: [Channel; 2],
    pub(super) facts: PathFacts,
    /// Whether the splicer at side 0 sends there, and that at side 1.
    pub(super) is_bonded: [bool; 2],
}

impl Lane {
    /// A further path with faults of its own.
    pub(super) fn drawn(rng: &Rng) -> Self {
        let mut facts = rng.child("facts");
        let mut draw = Draw { rng: &mut facts };
        let rate = Bitrate::from_bits_per_second(draw.between(200_000, 50_000_000));
        let cost = draw.one_of(&[0, 0, 0, 1]);
        let ways = draw.link(rate, &rng.child("channels"));
        let facts = PathFacts {
            round_trip: Duration::from_millis(draw.between(1, 600)),
            home_round_trip: None,
            rate: Some(rate),
            cost,
        };
        Self {
            ways,
            facts,
            is_bonded: [false; 2],
        }
    }
}

/// The number by which a gateway knows the path in a lane, whose home has this one. Lane 0 is the home.
pub(super) fn in_lane(home: PathId, lane: usize) -> PathId {
    let lane = u32::try_from(lane).expect("a handful");
    PathId(home.0 | lane << LANE_SHIFT)
}

/// The home of a path, and its lane.
pub(super) fn lane_of(path: PathId) -> (PathId, usize) {
    let lane = usize::try_from(path.0 >> LANE_SHIFT).expect("a handful");
    (PathId(path.0 & ((1 << LANE_SHIFT) - 1)), lane)
}
