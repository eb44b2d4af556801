//! The key of a connection.

use crate::machine::PathId;
use crate::wire::Port;
use crate::wire::aerotp::short::{Name, Named};

/// The key by which a TPDU of two ends finds its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) path: PathId,
    pub(super) local: u16,
    pub(super) remote: u16,
}

impl Key {
    /// The name of the connection in frames of this end, which opened it or not; `None` if it has none.
    pub(super) fn named(self, sender_opened: bool) -> Option<Named> {
        let (local, remote) = (Port(self.local), Port(self.remote));
        let name = if sender_opened {
            Name::of(local, remote)
        } else {
            Name::of(remote, local)
        };
        name.map(|name| Named {
            name,
            sender_opened,
        })
    }

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
