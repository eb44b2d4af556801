//! The settings of LL-HARQ.

use fulmar_proto::fec::block::SPAN_MAX;
use fulmar_proto::units::{PacketErrorRate, Probability};

/// The settings of one hop's LL-HARQ, the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HarqConfig {
    /// The number of parts that a long packet is cut into, 1 to [`HarqConfig::FRAGMENTS_MAX`].
    pub fragments: u8,
    /// Whether that number follows the hop: packets stay whole while nothing is lost, and are cut into more parts the more
    /// bits are inverted.
    pub adaptive: bool,
    /// Units of a block's first round, parity included. A block takes no packet that would make them
    /// more. It has at least one packet, and at most [`HarqConfig::FRAGMENTS_MAX`] parts.
    pub units: u8,
    /// The share of blocks that is to need a second round.
    pub failure: Probability,
    /// The share of second rounds that is to fail.
    pub repair_failure: Probability,
    /// The number of units over which the loss estimate forgets.
    pub memory: u32,
    /// Blocks under way at once, 1 to [`HarqConfig::WINDOW_MAX`].
    pub window: u16,
}

impl HarqConfig {
    /// The most parts of a block: those that its parity can span.
    pub const FRAGMENTS_MAX: u8 = SPAN_MAX;
    /// The most units of a block's first round: its parts and its parity.
    pub const UNITS_MAX: u8 = 192;
    /// The most blocks that one feedback reports on.
    pub const WINDOW_MAX: u16 = 256;

    /// The estimate up to which no parity is sent, 0.1 %: the slides provision no FEC when there is
    /// no loss.
    pub(super) fn floor() -> PacketErrorRate {
        PacketErrorRate::new(0.001).unwrap_or_default()
    }

    /// The window in effect.
    pub(super) fn effective_window(&self) -> u16 {
        self.window.clamp(1, Self::WINDOW_MAX)
    }

    /// The number of parts in effect.
    pub(super) fn effective_fragments(&self) -> u8 {
        self.fragments.clamp(1, Self::FRAGMENTS_MAX)
    }
}

impl Default for HarqConfig {
    /// Packets in two parts, blocks of 64 units; 15 % and 1 % for the rounds; a memory of 1000
    /// units. docs/models/link.md has the grid that they were chosen from.
    fn default() -> Self {
        Self {
            fragments: 2,
            adaptive: false,
            units: 64,
            failure: Probability::new(0.15).unwrap_or_default(),
            repair_failure: Probability::new(0.01).unwrap_or_default(),
            memory: 1_000,
            window: Self::WINDOW_MAX,
        }
    }
}
