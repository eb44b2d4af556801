//! The goal of a flow.

use super::Odds;
use crate::units::Duration;

/// Whether messages are worth anything after their deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deliver {
    /// All of them arrive, late ones too.
    #[default]
    All,
    /// Those that can no longer come in time are given up.
    ByDeadline,
}

/// The order in which messages are handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliveryOrder {
    /// As they were written: one that is missing keeps the later ones waiting.
    #[default]
    Kept,
    /// As they come.
    Any,
}

/// The goal of a flow with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryGoal {
    /// The time from a message's writing to its reading, the way there included.
    pub deadline: Duration,
    /// Messages of a million that may take longer.
    pub missed_millionths: u32,
    /// Whether late messages are worth anything.
    pub deliver: Deliver,
    /// The order that counts.
    pub order: DeliveryOrder,
}

impl DeliveryGoal {
    /// The share of messages that may miss the deadline where nothing else is said: one in a hundred of a stream, seven
    /// in ten thousand where late messages are worth nothing.
    pub const fn usual_miss(deliver: Deliver) -> u32 {
        match deliver {
            Deliver::All => 10_000,
            Deliver::ByDeadline => 700,
        }
    }

    /// Whether messages that are too late are taken back: nobody waits for them.
    pub fn takes_back(&self) -> bool {
        self.deliver == Deliver::ByDeadline && self.order == DeliveryOrder::Any
    }

    /// The share of messages that may miss the deadline.
    pub const fn missed(&self) -> Odds {
        Odds::of(self.missed_millionths as u64, 1_000_000)
    }
}
