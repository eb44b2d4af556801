//! The fate of a packet.

use crate::flips::Flips;
use fulmar_proto::units::Instant;

/// The fate of one packet on a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelVerdict {
    /// The packet arrives, perhaps damaged.
    Deliver(Delivery),
    /// The packet never arrives.
    Drop(ChannelDropReason),
    /// The packet stands in a terminal's buffer, and [`crate::Channel::poll_departure`] will give
    /// its fate. Only with [`crate::Dama`].
    Waits,
}

/// An arrival at the far end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The arrival of the last octet. Later packets may arrive earlier if the configuration
    /// reorders.
    pub at: Instant,
    /// The inverted bits, positions in 0..8 × length; usually empty.
    pub flips: Flips,
    /// Whether the queue was above the ECN threshold, or signals early. The driver marks the packet if it is
    /// ECN-capable.
    pub marked: bool,
    /// A second arrival of the same packet, with bit errors of its own.
    pub duplicate: Option<(Instant, Flips)>,
}

/// The reason why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ChannelDropReason {
    /// The queue had no room. The packet never occupied the link.
    Queue,
    /// The policer had too few tokens. The packet never occupied the link.
    Policer,
    /// The queue signalled congestion before it was full, and the packet cannot be marked. It never occupied the link.
    Early,
    /// The link was out during at least a part of the transmission.
    Outage,
    /// The loss model dropped the packet in flight.
    Loss,
}

impl ChannelDropReason {
    /// Every reason, in the order of the reports.
    pub const ALL: [Self; 5] = [
        Self::Queue,
        Self::Policer,
        Self::Early,
        Self::Outage,
        Self::Loss,
    ];

    /// Whether the packet never occupied the link.
    pub const fn is_before_the_link(self) -> bool {
        matches!(self, Self::Queue | Self::Policer | Self::Early)
    }

    /// The word in reports and result files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Policer => "policer",
            Self::Early => "early",
            Self::Outage => "outage",
            Self::Loss => "loss",
        }
    }
}
