//! Adaptive granulation: the length of units and blocks in a window.
//!
//! A window has at least G units, so that even a small window has data to protect and parity to
//! protect it with: when the window shrinks, so do its units. A block is as large as a window:
//! larger blocks would wait longer for their parity than for feedback.

use super::config::LtTcpConfig;
use super::redundancy::{proactive, reactive};

/// The shape of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Octets of the stream.
    pub(super) length: u32,
    /// Source units.
    pub(super) k: u8,
    /// Source units and PFEC.
    pub(super) n: u8,
}

/// The unit length and the number of units for a window.
pub(super) fn grain(config: &LtTcpConfig, window: u64) -> (u32, u32) {
    let (min, max) = (u64::from(config.unit_min), u64::from(config.unit_max()));
    let least = u32::from(config.granularity);
    let unit = (window / u64::from(least)).clamp(min, max);
    let units = u32::try_from(window / unit).unwrap_or(u32::MAX);
    // A unit is at most as long as a segment.
    let unit = u32::try_from(unit).unwrap_or(u32::from(u16::MAX));
    (unit, units.clamp(least, u32::from(config.units_max)))
}

/// The shape of the next block: `available` octets may leave, and `loss` is expected.
pub(super) fn shape(config: &LtTcpConfig, window: u64, available: u64, loss: f64) -> Shape {
    let (unit, units) = grain(config, window);
    let protects = loss >= config.fec.floor.value() && !config.fec.proactive.is_zero();
    let chance = config.fec.proactive.value();
    let parity = if protects {
        proactive(units, loss, chance)
    } else {
        0
    };
    let sources = units - parity;
    let written = available.div_ceil(u64::from(unit));
    let k = written.min(u64::from(sources));
    let length = available.min(k * u64::from(unit));
    // Both are at most `units_max`.
    let k = u32::try_from(k).unwrap_or(sources);
    let parity = if k < sources && protects {
        (reactive(k, loss, chance) - k).min(units)
    } else {
        parity
    };
    let narrow = |count: u32| u8::try_from(count).unwrap_or(u8::MAX);
    Shape {
        length: u32::try_from(length).unwrap_or(u32::MAX),
        k: narrow(k),
        n: narrow(k + parity),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::units::Probability;

    /// The defaults, but with a probability of 97 % that a block needs no feedback.
    fn config() -> LtTcpConfig {
        let mut config = LtTcpConfig::default();
        config.fec.proactive = Probability::new(0.97).unwrap();
        config
    }

    #[test]
    fn units_shrink_with_the_window_and_blocks_grow_with_it() {
        let config = config();
        assert_eq!(grain(&config, 4_380), (438, 10));
        assert_eq!(grain(&config, 100), (200, 10), "never below the minimum");
        assert_eq!(grain(&config, 14_460), (1_446, 10));
        assert_eq!(grain(&config, 28_920), (1_446, 20));
        assert_eq!(grain(&config, 1 << 40), (1_446, 128));
    }

    #[test]
    fn a_block_has_no_parity_without_loss_and_a_share_of_its_units_with_it() {
        let config = config();
        let clean = shape(&config, 28_920, 1 << 20, 0.0);
        assert_eq!((clean.length, clean.k, clean.n), (28_920, 20, 20));
        // 0.9991^20 = 0.982 and 0.9989^20 = 0.978: only the floor tells these two apart.
        let mut sure = config;
        sure.fec.proactive = Probability::new(0.99).unwrap();
        assert_eq!(shape(&sure, 28_920, 1 << 20, 0.000_9), clean);
        assert!(shape(&sure, 28_920, 1 << 20, 0.001_1).k < clean.k);
        let lossy = shape(&config, 28_920, 1 << 20, 0.1);
        // P(Bin(20, 0.1) <= 4) = 0.957, <= 5: 0.989.
        assert_eq!((lossy.k, lossy.n), (15, 20));
    }

    #[test]
    fn a_short_block_is_protected_no_less() {
        let config = config();
        let short = shape(&config, 28_920, 100, 0.1);
        // One of two arrives with a probability of 0.99.
        assert_eq!((short.length, short.k, short.n), (100, 1, 2));
        let two = shape(&config, 28_920, 1_447, 0.0);
        assert_eq!((two.length, two.k, two.n), (1_447, 2, 2));
    }
}
