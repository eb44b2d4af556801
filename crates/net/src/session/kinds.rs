//! The kinds of security that an end is called with, or takes.

use super::config::Security;
use core::fmt;

const NAMES: [(u8, &str); 3] = [(1, "noise"), (2, "preset"), (4, "none")];

/// A set of kinds of [`Security`]: one bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecurityKinds(u8);

impl SecurityKinds {
    /// Static keys.
    pub const NOISE: Self = Self(1);
    /// A preset key alone.
    pub const PRESET: Self = Self(2);
    /// No protection.
    pub const NONE: Self = Self(4);

    /// The kind of `security`.
    pub const fn of(security: &Security) -> Self {
        match security {
            Security::Noise { .. } => Self::NOISE,
            Security::Preset { .. } => Self::PRESET,
            Security::None { .. } => Self::NONE,
            Security::Nobody => Self(0),
        }
    }

    /// The kinds of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `kinds` are in it.
    pub const fn contains(self, kinds: Self) -> bool {
        self.0 & kinds.0 == kinds.0
    }

    /// The set of these bits of the wire; bits without a meaning are left out.
    pub(super) const fn from_bits(bits: u8) -> Self {
        Self(bits & 7)
    }

    pub(super) const fn bits(self) -> u8 {
        self.0
    }
}

impl fmt::Display for SecurityKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut joint = "";
        for (_, name) in NAMES.iter().filter(|(bit, _)| self.0 & bit != 0) {
            write!(f, "{joint}`{name}`")?;
            joint = " or ";
        }
        if joint.is_empty() {
            f.write_str("nothing")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_named_and_unknown_bits_are_left_out() {
        let both = SecurityKinds::NOISE.and(SecurityKinds::NONE);
        assert_eq!(both.to_string(), "`noise` or `none`");
        assert_eq!(SecurityKinds::from_bits(0xF8).to_string(), "nothing");
        assert_eq!(SecurityKinds::from_bits(both.bits()), both);
        assert!(both.contains(SecurityKinds::NONE));
        assert!(!both.contains(SecurityKinds::PRESET));
    }
}
