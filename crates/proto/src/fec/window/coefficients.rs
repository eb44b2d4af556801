//! The coefficients of a repair symbol, out of its key (RFC 8681, section 3.6; RFC 8682).

/// The share of a repair symbol's coefficients that are not zero: (threshold + 1) of 16.
///
/// Thin symbols cost less to make and to solve; below full, a symbol says nothing about some of its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Density(u8);

impl Density {
    /// The density at which no coefficient is zero.
    pub const FULL: Self = Self(15);

    /// The density of a threshold of 0 to 15; `None` above.
    pub const fn new(threshold: u8) -> Option<Self> {
        if threshold <= 15 {
            Some(Self(threshold))
        } else {
            None
        }
    }

    /// The threshold, 0 to 15.
    pub const fn threshold(self) -> u8 {
        self.0
    }
}

/// Replaces `out` by the first `count` coefficients of `key`.
pub(super) fn draw(key: u16, density: Density, count: usize, out: &mut Vec<u8>) {
    let mut generator = TinyMt32::new(u32::from(key));
    out.clear();
    out.extend((0..count).map(|_| {
        if density == Density::FULL || generator.below_16() <= density.0 {
            generator.factor()
        } else {
            0
        }
    }));
}

/// The generator `TinyMT32` with the parameters of RFC 8682.
struct TinyMt32([u32; 4]);

impl TinyMt32 {
    const MATRIX_1: u32 = 0x8F70_11EE;
    const MATRIX_2: u32 = 0xFC78_FF1F;
    const TEMPER: u32 = 0x3793_FDFF;

    fn new(seed: u32) -> Self {
        let mut state = [seed, Self::MATRIX_1, Self::MATRIX_2, Self::TEMPER];
        for step in 1u32..8 {
            // Both indices are below 4.
            let before = state[(step as usize + 3) % 4];
            let mixed = 1_812_433_253u32.wrapping_mul(before ^ (before >> 30));
            state[step as usize % 4] ^= step.wrapping_add(mixed);
        }
        let mut generator = Self(state);
        for _ in 0..8 {
            generator.step();
        }
        generator
    }

    fn step(&mut self) {
        let [s0, s1, s2, s3] = self.0;
        let mut x = (s0 & 0x7FFF_FFFF) ^ s1 ^ s2;
        x ^= x << 1;
        let y = s3 ^ (s3 >> 1) ^ x;
        let odd = 0u32.wrapping_sub(y & 1);
        self.0 = [
            s1,
            s2 ^ (odd & Self::MATRIX_1),
            x ^ (y << 10) ^ (odd & Self::MATRIX_2),
            y,
        ];
    }

    fn next(&mut self) -> u32 {
        self.step();
        let [s0, _, s2, s3] = self.0;
        let sum = s0.wrapping_add(s2 >> 8);
        let odd = 0u32.wrapping_sub(sum & 1);
        s3 ^ sum ^ (odd & Self::TEMPER)
    }

    fn octet(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn below_16(&mut self) -> u8 {
        self.octet() & 0xF
    }

    /// An element that is not zero.
    fn factor(&mut self) -> u8 {
        loop {
            match self.octet() {
                0 => {}
                factor => return factor,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_sequence_of_rfc_8682() {
        let mut generator = TinyMt32::new(1);
        let drawn: Vec<u32> = (0..10).map(|_| generator.next()).collect();
        let expected = [
            2_545_341_989,
            981_918_433,
            3_715_302_833,
            2_387_538_352,
            3_591_001_365,
            3_820_442_102,
            2_114_400_566,
            2_196_103_051,
            2_783_359_912,
            764_534_509,
        ];
        assert_eq!(drawn, expected);
    }

    #[test]
    fn the_density_says_how_many_coefficients_are_not_zero() {
        let mut drawn = Vec::new();
        for threshold in 0..=15 {
            let mut set = 0;
            for key in 0..64 {
                draw(key, Density::new(threshold).unwrap(), 256, &mut drawn);
                set += drawn.iter().filter(|&&c| c != 0).count();
            }
            let share = set as f64 / (64.0 * 256.0);
            let expected = f64::from(threshold + 1) / 16.0;
            assert!((share - expected).abs() < 0.02, "{threshold}: {share}");
        }
        assert_eq!(Density::new(16), None);
    }
}
