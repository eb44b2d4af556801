//! This end's knowledge of its connections, which frames leave out.

use super::super::header::{EcnField, Flags, Header};
use super::super::reject::Reject;
use super::content::Frame;
use super::name::Named;
use crate::wire::{Mode, Port, TpduSeq};

/// The things that this end knows of a connection, and its frames do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// This end's port.
    pub local: Port,
    /// The peer's port.
    pub remote: Port,
    /// The connection's mode.
    pub mode: Mode,
    /// The number of the next TPDU that this end expects of the peer.
    pub next_expected: TpduSeq,
    /// The first number of this end that the peer has not settled.
    pub first_unsettled: TpduSeq,
}

impl Ends {
    /// The header of a TPDU that the peer sent.
    pub(super) const fn header(&self, seq: TpduSeq, timestamp: u32, flags: Flags) -> Header {
        Header {
            source: self.remote,
            destination: self.local,
            seq,
            timestamp,
            mode: self.mode,
            ecn: EcnField::NONE,
            flags,
        }
    }
}

/// The connections with one peer, as far as frames need them.
pub trait Known {
    /// The connection that a frame of the peer names.
    fn ends(&self, named: Named) -> Option<Ends>;

    /// The next number expected of the peer's end of the connection between these ports, as its frames give them; the
    /// first number of a connection if there is none.
    fn next_expected(&self, source: Port, destination: Port) -> TpduSeq;
}

/// Looking up the names in frames.
pub(super) trait Lookup: Known {
    /// The connection that `frame` names.
    fn ends_of(&self, frame: &Frame<'_>) -> Result<Ends, Reject> {
        let named = frame.named().ok_or(Reject::Truncated)?;
        self.ends(named).ok_or(Reject::UnknownName(named.name))
    }
}

impl<K: Known> Lookup for K {}
