//! Randomness with names: one seed, and a stream of its own for every consumer.
//!
//! A consumer asks its parent for `child("hop-0/forward/loss")`. The child depends on the seed and
//! the name alone, so a new consumer changes nobody else's numbers.

use rand_core::{Infallible, SeedableRng, TryRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A named stream of random numbers: xoshiro256++, the same on every platform.
#[derive(Clone, Debug)]
pub struct Rng {
    key: u64,
    stream: Xoshiro256PlusPlus,
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): every input bit affects every
/// output bit.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Rng {
    /// The root stream of a run.
    pub fn from_seed(seed: u64) -> Self {
        Self {
            key: seed,
            stream: Xoshiro256PlusPlus::seed_from_u64(mix(seed)),
        }
    }

    /// The stream `name` below this one. Drawing from one does not change the other.
    pub fn child(&self, name: &str) -> Self {
        let mut key = mix(self.key ^ 0x9E37_79B9_7F4A_7C15);
        for &octet in name.as_bytes() {
            key = mix(key.wrapping_mul(0x0100_0000_01B3) ^ u64::from(octet));
        }
        Self::from_seed(key)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let Ok(bits) = self.stream.try_next_u64();
        bits
    }

    /// A uniform number in [0, 1) with 53 bits.
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Draws `true` with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit_f64() < p
    }

    /// A uniform number in 0..`bound`; 0 when `bound` is 0. The bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Fills `octets` with random bits.
    pub fn fill(&mut self, octets: &mut [u8]) {
        let Ok(()) = self.stream.try_fill_bytes(octets);
    }
}

impl TryRng for Rng {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.stream.try_next_u32()
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.stream.try_next_u64()
    }
    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Infallible> {
        self.stream.try_fill_bytes(octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_consumer_moves_nobody_elses_numbers() {
        let root = Rng::from_seed(7);
        let mut before = root.child("loss");
        let first = before.next_u64();
        let mut newcomer = root.child("jitter");
        newcomer.next_u64();
        assert_eq!(root.child("loss").next_u64(), first);
        assert_ne!(newcomer.next_u64(), before.next_u64());
    }

    #[test]
    fn streams_are_pinned_so_that_published_results_stay_reproducible() {
        let mut stream = Rng::from_seed(1).child("a").child("b");
        let drawn = [stream.next_u64(), stream.next_u64()];
        assert_eq!(
            drawn,
            [9_007_545_325_424_742_841, 1_216_190_422_352_826_197]
        );
    }

    #[test]
    fn unit_draws_have_the_uniform_mean() {
        let mut stream = Rng::from_seed(3);
        let n = 100_000;
        let mean = (0..n).map(|_| stream.unit_f64()).sum::<f64>() / f64::from(n);
        // Standard error 0.00091; four of them.
        assert!((mean - 0.5).abs() < 0.0037, "{mean}");
        assert!((0..1000).all(|_| stream.below(6) < 6));
    }
}
