//! A number that only an end that is alive can answer.

/// A number that only an end that hears it can answer: proof that the life which answers is the
/// present one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Challenge(pub u32);

impl Challenge {
    /// The challenge that nobody answers.
    pub const NONE: Self = Self(0);

    /// The next challenge, never [`Challenge::NONE`], in steps that `seed` gives.
    #[must_use]
    pub const fn after(self, seed: u32) -> Self {
        let next = self.0.wrapping_add(seed | 1);
        Self(if next == 0 { 1 } else { next })
    }

    /// The octets on the wire.
    pub const fn to_octets(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }

    /// The challenge in these octets.
    pub const fn from_octets(octets: [u8; 4]) -> Self {
        Self(u32::from_be_bytes(octets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn challenges_do_not_repeat_and_none_is_not_among_them() {
        for seed in [0, 1, 2, u32::MAX] {
            let mut seen = BTreeSet::new();
            let mut challenge = Challenge::NONE;
            for _ in 0..10_000 {
                challenge = challenge.after(seed);
                assert!(challenge != Challenge::NONE && seen.insert(challenge.0));
            }
        }
    }
}
