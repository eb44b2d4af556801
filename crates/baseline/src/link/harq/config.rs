//! The settings of LL-HARQ.

use fulmar_proto::fec::block::SPAN_MAX;
use fulmar_proto::units::{PacketErrorRate, Probability};

/// The settings of one hop's LL-HARQ, the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HarqConfig {
    /// Parts that a long packet is cut into, 1 to [`HarqConfig::FRAGMENTS_MAX`].
    pub fragments: u8,
    /// Units of a block's first round, parity included: it takes no packet with which there would be
    /// more. One packet it has at the least, and [`HarqConfig::FRAGMENTS_MAX`] parts at the most.
    pub units: u8,
    /// This share of the blocks is to need its second round.
    pub failure: Probability,
    /// This share of the second rounds is to fail.
    pub repair_failure: Probability,
    /// The units over which the loss estimate forgets.
    pub memory: u32,
    /// Blocks under way at once, 1 to [`HarqConfig::WINDOW_MAX`].
    pub window: u16,
}

impl HarqConfig {
    /// The parts of a block at the most: those that its parity can span.
    pub const FRAGMENTS_MAX: u8 = SPAN_MAX;
    /// The units of a block's first round at the most: its parts, and what parity there is.
    pub const UNITS_MAX: u8 = 192;
    /// The most blocks that one feedback speaks of.
    pub const WINDOW_MAX: u16 = 256;

    /// No parity while the estimate is at or below this: spec/protocols.md 2.3's 0.1 %.
    pub(super) fn floor() -> PacketErrorRate {
        PacketErrorRate::new(0.001).unwrap_or_default()
    }

    /// The window that counts.
    pub(super) fn effective_window(&self) -> u16 {
        self.window.clamp(1, Self::WINDOW_MAX)
    }

    /// The parts that count.
    pub(super) fn effective_fragments(&self) -> u8 {
        self.fragments.clamp(1, Self::FRAGMENTS_MAX)
    }
}

impl Default for HarqConfig {
    /// Packets in two parts, blocks of 64 units; 15 % and 1 % for the rounds; a memory of 1000 units
    /// (docs/models/link.md has the grid they were taken from).
    fn default() -> Self {
        Self {
            fragments: 2,
            units: 64,
            failure: Probability::new(0.15).unwrap_or_default(),
            repair_failure: Probability::new(0.01).unwrap_or_default(),
            memory: 1_000,
            window: Self::WINDOW_MAX,
        }
    }
}
