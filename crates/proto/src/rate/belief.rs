//! The belief of a controller about its path.

use crate::units::{Bitrate, Duration};

/// The reason of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateCause {
    /// The rate is being searched for.
    Searching,
    /// More builds a queue.
    Queue,
    /// More is lost, without a queue.
    Cut,
    /// More was not tried, or arrives.
    Free,
    /// The bound is in use.
    Bound,
    /// Others keep the queue full, and this is our share.
    Shared,
}

impl RateCause {
    /// The reason's word in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Searching => "searching",
            Self::Queue => "queue",
            Self::Cut => "cut",
            Self::Free => "free",
            Self::Bound => "bound",
            Self::Shared => "shared",
        }
    }
}

/// A controller's belief about its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateBelief {
    /// The rate that the link carries.
    pub rate: Bitrate,
    /// Why it is not more.
    pub cause: RateCause,
    /// The delay in queues.
    pub queueing: Duration,
    /// The share that is lost for reasons that have nothing to do with the rate.
    pub lost: f64,
    /// The link's rate by the spacing in which the first train arrived, if that showed.
    pub link: Option<Bitrate>,
    /// Whether others are in the queue, so that this is a share of what the link carries.
    pub beside_others: bool,
    /// Whether the rate is a small part of what a train showed, and neither a queue nor a loss says why: it is no figure of
    /// the link.
    pub doubted: bool,
}
