//! The path on which a TPDU leaves, as far as a sender needs to know it.

use crate::units::Duration;

/// The path on which the next TPDU leaves.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct PathTaken {
    /// Its place among those to the peer.
    pub(in super::super) place: u8,
    pub(in super::super) round_trip: Duration,
    /// Whether the peer has several.
    pub(in super::super) is_one_of_several: bool,
    /// Whether another one is up that is no slower than a repetition on this one.
    pub(in super::super) has_other: bool,
    /// Whether what a thin flow repeats left before on a path that may be down.
    pub(in super::super) repeats_doubted: bool,
}

impl PathTaken {
    /// The only path.
    pub(in super::super) const ONLY: Self = Self {
        place: 0,
        round_trip: Duration::ZERO,
        is_one_of_several: false,
        has_other: false,
        repeats_doubted: false,
    };
}
