//! The settings of a controller, and the way it has with others.

use crate::units::{Bitrate, ByteCount};

/// The settings of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateConfig {
    /// The most that may be sent, if anybody said so; at least 4 kbit.
    pub bound: Option<Bitrate>,
    /// The octets of a full datagram, headers of the layers below included.
    pub packet: ByteCount,
    /// Whose the link is.
    pub sharing: RateSharing,
    /// The rate that was found on this path before, if it may still hold: the search begins with it.
    pub first: Option<Bitrate>,
}

/// The way with others' senders in the same queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateSharing {
    /// The link is ours. Whoever else keeps a queue gets most of it: none is built.
    Own,
    /// Others get their share, and leave us ours.
    #[default]
    Fair,
    /// Others come first: a queue that is not ours makes way for it, and what is left is used.
    Background,
}

impl Default for RateConfig {
    fn default() -> Self {
        Self {
            bound: None,
            packet: ByteCount(1500),
            sharing: RateSharing::default(),
            first: None,
        }
    }
}
