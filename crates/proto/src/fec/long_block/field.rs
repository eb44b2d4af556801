//! GF(2^16) with the polynomial x^16 + x^12 + x^3 + x + 1, by logarithms to the base x.

use std::sync::OnceLock;

/// The polynomial without x^16.
const POLYNOMIAL: u16 = 0x100B;
/// The order of the multiplicative group; logarithms are numbers modulo this.
pub(super) const ORDER: u32 = 65_535;

struct Tables {
    log: Vec<u16>,
    /// Twice over, so that a sum of two logarithms needs no reduction.
    exp: Vec<u16>,
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut log = vec![0; 1 << 16];
        let mut exp = vec![0; 2 * ORDER as usize];
        let mut power = 1_u16;
        for exponent in 0..u16::MAX {
            let at = usize::from(exponent);
            exp[at] = power;
            exp[at + ORDER as usize] = power;
            log[usize::from(power)] = exponent;
            let carry = power >> 15;
            power = (power << 1) ^ (carry * POLYNOMIAL);
        }
        Tables { log, exp }
    })
}

/// The logarithm of a value; 0 for zero, which has none.
pub(super) fn log(value: u16) -> u16 {
    tables().log[usize::from(value)]
}

/// The value of a logarithm below [`ORDER`].
pub(super) fn exp(log: u16) -> u16 {
    tables().exp[usize::from(log)]
}

pub(super) fn product(a: u16, b: u16) -> u16 {
    if a == 0 || b == 0 {
        return 0;
    }
    let tables = tables();
    let sum = usize::from(tables.log[usize::from(a)]) + usize::from(tables.log[usize::from(b)]);
    tables.exp[sum]
}

/// The inverse of a value that is not zero.
pub(super) fn inverse(value: u16) -> u16 {
    tables().exp[ORDER as usize - usize::from(log(value))]
}

/// Multiplication of many words by one factor.
pub(super) struct Factor {
    low: [u16; 256],
    high: [u16; 256],
}

impl Factor {
    pub(super) fn new(factor: u16) -> Self {
        let mut by = Self {
            low: [0; 256],
            high: [0; 256],
        };
        for bit in 0..8 {
            let (of_low, of_high) = (product(factor, 1 << bit), product(factor, 256 << bit));
            for below in 0..1 << bit {
                let at = below | 1 << bit;
                by.low[at] = by.low[below] ^ of_low;
                by.high[at] = by.high[below] ^ of_high;
            }
        }
        by
    }

    fn times(&self, word: u16) -> u16 {
        let [high, low] = word.to_be_bytes();
        self.low[usize::from(low)] ^ self.high[usize::from(high)]
    }

    /// Multiplies a row.
    pub(super) fn scale(&self, row: &mut [u16]) {
        for word in row {
            *word = self.times(*word);
        }
    }

    /// Adds a multiple of `added` to `row`.
    pub(super) fn add_to(&self, row: &mut [u16], added: &[u16]) {
        for (word, &other) in row.iter_mut().zip(added) {
            *word ^= self.times(other);
        }
    }
}

/// Adds `added` to `row`.
pub(super) fn add(row: &mut [u16], added: &[u16]) {
    for (word, &other) in row.iter_mut().zip(added) {
        *word ^= other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication as polynomials are multiplied by hand.
    fn by_hand(a: u16, b: u16) -> u16 {
        let mut sum = 0_u32;
        for bit in 0..16 {
            if b >> bit & 1 == 1 {
                sum ^= u32::from(a) << bit;
            }
        }
        for bit in (16..32).rev() {
            if sum >> bit & 1 == 1 {
                sum ^= (1 << 16 | u32::from(POLYNOMIAL)) << (bit - 16);
            }
        }
        u16::try_from(sum).expect("it was reduced")
    }

    #[test]
    fn products_are_those_of_polynomials() {
        let mut rng = crate::Rng::from_seed(41);
        for _ in 0..2_000 {
            let drawn = rng.next_u64().to_be_bytes();
            let a = u16::from_be_bytes([drawn[0], drawn[1]]);
            let b = u16::from_be_bytes([drawn[2], drawn[3]]);
            assert_eq!(product(a, b), by_hand(a, b), "{a} {b}");
            assert_eq!(Factor::new(a).times(b), by_hand(a, b), "{a} {b}");
            if a != 0 {
                assert_eq!(product(a, inverse(a)), 1, "{a}");
            }
        }
    }

    #[test]
    fn powers_of_x_are_all_values_but_zero() {
        let mut seen = vec![false; 1 << 16];
        for exponent in 0..65_535 {
            seen[usize::from(exp(exponent))] = true;
        }
        assert_eq!(seen.iter().filter(|&&seen| seen).count(), 65_535);
        assert!(!seen[0]);
    }
}
