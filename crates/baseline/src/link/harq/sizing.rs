//! The sizes of blocks, by what is known of the loss.

use super::HarqConfig;
use super::margin::units_for;
use fulmar_proto::fec::block::ROWS_MAX;
use fulmar_proto::units::PacketErrorRate;

/// The most rows of a first round: a third of the code's rows stay for the second.
pub(super) const FIRST_ROWS_MAX: u8 = ROWS_MAX / 3 * 2;

/// The least share of units that is reckoned with to arrive.
const SHARE_MIN: f64 = 0.02;
/// The most parts that are chosen: four packets fill a block then.
const PARTS_MAX: u8 = 16;

/// The estimates that both rounds are sized by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizing {
    pub(super) loss: PacketErrorRate,
    pub(super) margin: f64,
    pub(super) answer_margin: f64,
    /// The part of the loss that arrived damaged.
    pub(super) damage: f64,
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

    /// The number of parts for packets of so many octets, where units of `unit` octets had the loss that is known: the one that takes
    /// the fewest octets of the link, but not below `least` once something is lost. Octets of a unit around its part are `around`.
    ///
    /// A loss without damage strikes a unit however long it is. A unit's damage is that of its bits.
    pub(super) fn parts(self, packet: usize, (unit, around): (f64, usize), least: u8) -> u8 {
        if self.loss <= HarqConfig::floor() {
            return 1;
        }
        let erased = (self.loss.value() - self.damage).max(0.0);
        let reached = (1.0 - erased).max(SHARE_MIN);
        let intact = (1.0 - self.damage / reached).clamp(SHARE_MIN, 1.0);
        let octets_for = |parts: u8| {
            let own = (packet.div_ceil(usize::from(parts)) + around) as f64;
            let arrives = reached * intact.powf(own / unit.max(1.0));
            own * f64::from(parts) / arrives.max(SHARE_MIN)
        };
        let counts = least..=HarqConfig::FRAGMENTS_MAX.min(PARTS_MAX).max(least);
        let best = counts.min_by(|a, b| octets_for(*a).total_cmp(&octets_for(*b)));
        best.unwrap_or(least)
    }

    /// The number of units that answer a need.
    pub(super) fn answer(self, need: u8) -> u8 {
        let units = units_for(u32::from(need), self.loss, self.answer_margin);
        u8::try_from(units).unwrap_or(u8::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AROUND: usize = 11;

    fn parts(loss: f64, damage: f64, unit: f64) -> u8 {
        let sizing = Sizing {
            loss: PacketErrorRate::new(loss).unwrap(),
            damage,
            ..Sizing::default()
        };
        sizing.parts(1_044, (unit, AROUND), 2)
    }

    #[test]
    fn packets_stay_whole_while_nothing_is_lost_and_a_loss_without_damage_leaves_the_set_number() {
        assert_eq!(parts(0.0, 0.0, 1_055.0), 1);
        assert_eq!(parts(0.001, 0.001, 1_055.0), 1, "the floor");
        for loss in [0.01, 0.3, 0.9] {
            assert_eq!(parts(loss, 0.0, 533.0), 2, "{loss}");
        }
    }

    /// The best length of a unit, by equation 11 of the optical paper with headers of 11 octets: 371, 118 and 68 octets of a part at
    /// 1e-5, 1e-4 and 3e-4, so 3, 9 and 15 of 1044.
    #[test]
    fn damage_asks_for_the_parts_that_its_bits_need_whatever_length_it_was_measured_with() {
        for (rate, expected) in [(1e-5, 3), (1e-4, 9), (3e-4, 15)] {
            for unit in [1_055.0, 300.0, 80.0] {
                let damage = 1.0 - (1.0_f64 - rate).powf(8.0 * unit);
                let chosen = parts(damage, damage, unit);
                assert!(chosen.abs_diff(expected) <= 1, "{rate} {unit}: {chosen}");
                // What is lost beside it changes nothing.
                let lost = 0.2 + 0.8 * damage;
                let beside = parts(lost, 0.8 * damage, unit);
                assert_eq!(beside, chosen, "{rate} {unit}");
            }
        }
    }
}
