//! The notice of an end to a stranger about a datagram that it cannot take: a hint for the other end's log,
//! smaller than the datagram, and proof of nothing.
//!
//! ```text
//!  header: type 6, receiver's index of the datagram's sender | what 8 | kinds 8 | 0
//!  then the proof that the datagram was seen: its first check (16), its counter's low half (4), or, of data in
//!  wire 2, its first octet and its counter (4)
//! ```

use super::super::kinds::SecurityKinds;

const WRONG_KEY: u8 = 1;
const UNKNOWN_CALLER: u8 = 2;
const OTHER_SECURITY: u8 = 3;
const SUPERSEDED: u8 = 4;
const NO_SESSION: u8 = 5;

/// The fault, as far as the end knows that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Notice {
    /// The initiation's first check was made with a key that is not ours.
    WrongKey,
    /// The initiation's static key is none of our peers'.
    UnknownCaller,
    /// We have no peer of this kind of security, but peers of these kinds.
    OtherSecurity(SecurityKinds),
    /// The initiation's epoch is below one that was confirmed: the key is in use by a later start.
    Superseded,
    /// Data for keys that we do not have.
    NoSession,
}

impl Notice {
    /// The last word of the header.
    pub(in crate::session) const fn to_word(self) -> u32 {
        let (what, kinds) = match self {
            Self::WrongKey => (WRONG_KEY, 0),
            Self::UnknownCaller => (UNKNOWN_CALLER, 0),
            Self::OtherSecurity(kinds) => (OTHER_SECURITY, kinds.bits()),
            Self::Superseded => (SUPERSEDED, 0),
            Self::NoSession => (NO_SESSION, 0),
        };
        u32::from_be_bytes([what, kinds, 0, 0])
    }

    /// `None`: a notice of a later version of this format.
    pub(in crate::session) const fn of_word(word: u32) -> Option<Self> {
        let [what, kinds, _, _] = word.to_be_bytes();
        Some(match what {
            WRONG_KEY => Self::WrongKey,
            UNKNOWN_CALLER => Self::UnknownCaller,
            OTHER_SECURITY => Self::OtherSecurity(SecurityKinds::from_bits(kinds)),
            SUPERSEDED => Self::Superseded,
            NO_SESSION => Self::NoSession,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_read_as_it_was_written() {
        let kinds = SecurityKinds::NOISE.and(SecurityKinds::PRESET);
        for (notice, word) in [
            (Notice::WrongKey, 0x0100_0000),
            (Notice::UnknownCaller, 0x0200_0000),
            (Notice::OtherSecurity(kinds), 0x0303_0000),
            (Notice::Superseded, 0x0400_0000),
            (Notice::NoSession, 0x0500_0000),
        ] {
            assert_eq!(notice.to_word(), word);
            assert_eq!(Notice::of_word(word | 0xFFFF), Some(notice));
        }
        assert_eq!(Notice::of_word(0), None);
        assert_eq!(Notice::of_word(0x0600_0000), None);
    }
}
