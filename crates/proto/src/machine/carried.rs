//! The contract between a session and the machine that it carries.

use super::{Machine, PathId};
use crate::units::{ByteCount, Instant};

/// The sizes that the layers below give a path's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSizes {
    /// The longest packet of the machine that arrives in one piece, header and parity included, in octets.
    pub tpdu_bytes_max: usize,
    /// Octets that the layers below add to each, network and carrier headers included.
    pub lower_overhead: ByteCount,
}

/// A machine that a session carries: what the session learns of a path, the machine is told, and nobody in between
/// need pass it on.
///
/// The session calls these right after its application heard of the event that says the same, and before any other.
pub trait Carried: Machine {
    /// The remote at the end of `path` cannot be reached (`held`), or can again. While a path is held, nothing new is
    /// sent there and no timer that counts silence runs.
    fn hold(&mut self, now: Instant, path: PathId, held: bool);

    /// Packets of these sizes reach the remote at the end of `path` from now on.
    ///
    /// # Errors
    /// The reason, in words, if something the machine has at hand does not fit: it goes in pieces.
    fn set_path_sizes(
        &mut self,
        now: Instant,
        path: PathId,
        sizes: PathSizes,
    ) -> Result<(), String>;

    /// The session sent `wire` octets of its own on `path`, headers included: they count towards the path's rate.
    fn on_sent_below(&mut self, now: Instant, path: PathId, wire: ByteCount);

    /// The remote at the end of `path` has lost its state. Nothing of its new start has been handed over yet.
    fn peer_restarted(&mut self, now: Instant, path: PathId);
}
