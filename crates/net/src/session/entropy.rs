//! Unpredictable octets for keys, ephemeral secrets and session indices.
//!
//! The generator is seeded once, by the kernel or by a test, so that a session neither fails nor blocks later,
//! and a test repeats. Every draw replaces the seed by octets that nobody sees ("fast key erasure",
//! Bernstein 2017): whoever reads the memory later learns nothing about earlier draws.

use rustix::rand::{GetRandomFlags, getrandom};
use std::io;
use zeroize::Zeroize;

const CONTEXT: &str = "fulmar 2026-11-21 session entropy";
const STIR_CONTEXT: &str = "fulmar 2026-11-22 session entropy stirred";

/// A cryptographic generator: BLAKE3 in its key derivation mode, expanded as far as needed.
pub struct Entropy {
    key: [u8; 32],
    /// Whether the kernel is asked again from time to time.
    is_stirred: bool,
}

impl Entropy {
    /// A generator seeded by the kernel.
    ///
    /// # Errors
    /// The kernel has no entropy source (it predates `getrandom`).
    pub fn from_system() -> io::Result<Self> {
        let mut key = [0; 32];
        // Requests of up to 256 octets are never cut short (getrandom(2)).
        getrandom(&mut key, GetRandomFlags::empty())?;
        Ok(Self {
            key,
            is_stirred: true,
        })
    }

    /// A generator that gives the same octets for the same seed, for tests.
    pub const fn from_seed(seed: [u8; 32]) -> Self {
        Self {
            key: seed,
            is_stirred: false,
        }
    }

    /// Fills `octets`.
    pub fn fill(&mut self, octets: &mut [u8]) {
        let mut stream = blake3::Hasher::new_derive_key(CONTEXT)
            .update(&self.key)
            .finalize_xof();
        stream.fill(&mut self.key);
        stream.fill(octets);
    }

    /// An array of fresh octets.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut octets = [0; N];
        self.fill(&mut octets);
        octets
    }

    /// A generator for one consumer, such as a handshake, with fresh octets of the kernel. Without them a virtual
    /// machine that is started twice from one image of its memory would draw the same.
    pub(super) fn child(&mut self) -> Self {
        self.stir();
        Self {
            key: self.array(),
            is_stirred: self.is_stirred,
        }
    }

    fn stir(&mut self) {
        let mut fresh = [0; 32];
        // Where the kernel refuses, the seed still serves.
        if self.is_stirred && getrandom(&mut fresh, GetRandomFlags::empty()).is_ok() {
            let mut hasher = blake3::Hasher::new_derive_key(STIR_CONTEXT);
            hasher.update(&self.key).update(&fresh);
            self.key = *hasher.finalize().as_bytes();
        }
        fresh.zeroize();
    }

    /// Uniform in 0..`bound`, with a bias below `bound` / 2^64; 0 when `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let drawn = u64::from_le_bytes(self.array());
        let scaled = (u128::from(drawn) * u128::from(bound)) >> 64;
        u64::try_from(scaled).unwrap_or(0)
    }
}

impl core::fmt::Debug for Entropy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Entropy(..)")
    }
}

impl Drop for Entropy {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_octets_and_no_draw_repeats_another() {
        let mut one = Entropy::from_seed([7; 32]);
        let mut two = Entropy::from_seed([7; 32]);
        let first: [u8; 16] = one.array();
        assert_eq!(two.array(), first);
        assert_ne!(one.array(), first);
        assert_ne!(one.child().array(), two.array::<16>());
    }

    /// A virtual machine whose memory was saved once and is started twice has such twins.
    #[test]
    fn twins_draw_differently_once_the_kernel_was_asked_again() {
        let mut one = Entropy::from_system().unwrap();
        let mut twin = Entropy {
            key: one.key,
            is_stirred: true,
        };
        assert_eq!(one.array::<16>(), twin.array(), "twins they are");
        assert_ne!(one.child().array::<16>(), twin.child().array());
        assert_ne!(one.array::<16>(), twin.array());
    }

    #[test]
    fn the_kernel_seeds_no_two_generators_alike() {
        let mut one = Entropy::from_system().unwrap();
        let mut two = Entropy::from_system().unwrap();
        assert_ne!(one.array::<16>(), two.array());
    }
}
