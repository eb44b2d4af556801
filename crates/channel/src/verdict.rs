//! What became of a packet.

use crate::flips::Flips;
use fulmar_proto::units::Instant;

/// What a channel does with one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It arrives, perhaps damaged.
    Deliver(Delivery),
    /// It never arrives.
    Drop(DropReason),
    /// It stands in a terminal's buffer: [`crate::Channel::poll_departure`] will say what becomes
    /// of it. Only with [`crate::Dama`].
    Waits,
}

/// An arrival at the far end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When the last octet is there. Later packets may have smaller values if the configuration
    /// reorders.
    pub at: Instant,
    /// The inverted bits, positions in 0..8 × length; usually empty.
    pub flips: Flips,
    /// The queue was above the ECN threshold. The driver marks the packet if it is ECN-capable.
    pub marked: bool,
    /// A second arrival of the same packet, with bit errors of its own.
    pub duplicate: Option<(Instant, Flips)>,
}

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The queue had no room. The packet never occupied the link.
    Queue,
    /// The link was out during at least a part of the transmission.
    Outage,
    /// The loss model took it in flight.
    Loss,
}

impl DropReason {
    /// Every reason, in the order of the reports.
    pub const ALL: [Self; 3] = [Self::Queue, Self::Outage, Self::Loss];

    /// The word in reports and result files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Outage => "outage",
            Self::Loss => "loss",
        }
    }
}
