//! The key of a connection.

use crate::machine::PathId;

/// The key by which a TPDU of two ends finds its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) path: PathId,
    pub(super) local: u16,
    pub(super) remote: u16,
}

impl Key {
    /// The connections of a local port with the peer at `path`.
    pub(super) fn all_of_port(path: PathId, local: u16) -> core::ops::RangeInclusive<Self> {
        let of = |remote| Self {
            path,
            local,
            remote,
        };
        of(0)..=of(u16::MAX)
    }
}
