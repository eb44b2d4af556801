//! The settings of LL-HARQ.

use crate::units::{PacketErrorRate, Probability};

/// The settings of one hop's LL-HARQ, the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HarqConfig {
    /// Units that a long packet is cut into, 1 to [`HarqConfig::FRAGMENTS_MAX`].
    pub fragments: u8,
    /// A block may need a second round with this probability.
    pub failure: Probability,
    /// A block's second round may fail with this probability.
    pub repair_failure: Probability,
    /// The units over which the loss estimate forgets.
    pub memory: u32,
    /// Blocks under way at once, 1 to [`HarqConfig::WINDOW_MAX`].
    pub window: u16,
}

impl HarqConfig {
    /// With as much parity again and a second round, a block still fits the code's 256 units.
    pub const FRAGMENTS_MAX: u8 = 64;
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
}

impl Default for HarqConfig {
    /// Five units, 1 % and 3 % for the rounds, a memory of 1000 units (docs/models/link.md has the
    /// grid they were taken from).
    fn default() -> Self {
        Self {
            fragments: 5,
            failure: Probability::new(0.01).unwrap_or_default(),
            repair_failure: Probability::new(0.03).unwrap_or_default(),
            memory: 1_000,
            window: Self::WINDOW_MAX,
        }
    }
}
