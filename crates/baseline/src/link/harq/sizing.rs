//! The sizes of blocks, by what is known of the loss.

use super::HarqConfig;
use super::margin::units_for;
use fulmar_proto::fec::block::ROWS_MAX;
use fulmar_proto::units::PacketErrorRate;

/// The most rows of a first round: a third of the code's rows stay for the second.
pub(super) const FIRST_ROWS_MAX: u8 = ROWS_MAX / 3 * 2;

/// The estimates that both rounds are sized by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizing {
    pub(super) loss: PacketErrorRate,
    pub(super) margin: f64,
    pub(super) answer_margin: f64,
}

impl Sizing {
    /// Rows of parity for a first round of `sources`.
    pub(super) fn rows(self, sources: u8) -> u8 {
        let units = units_for(u32::from(sources), self.loss, self.margin);
        let rows = units - u32::from(sources);
        u8::try_from(rows).unwrap_or(u8::MAX).min(FIRST_ROWS_MAX)
    }

    /// The sources of a block that has no more than so many units, parity included. They make whole
    /// packets of `parts`, and at least one.
    pub(super) fn sources(self, units: u8, parts: u8) -> u8 {
        let step = usize::from(parts.max(1));
        let fits = |&sources: &u8| sources.saturating_add(self.rows(sources)) <= units;
        let counts = (parts..=HarqConfig::FRAGMENTS_MAX).step_by(step);
        counts.take_while(fits).last().unwrap_or(parts)
    }

    /// The number of units that answer a need.
    pub(super) fn answer(self, need: u8) -> u8 {
        let units = units_for(u32::from(need), self.loss, self.answer_margin);
        u8::try_from(units).unwrap_or(u8::MAX)
    }
}
