//! The transfer modes: their codes on the wire and their names in text.

use core::fmt;
use core::str::FromStr;

/// The repair that a connection has: acknowledgements, parity, both or none. [`Mode::Reliable`] delivers everything
/// in order by retransmission, and is where to begin.
///
/// Five modes are the multi-mode paper's (Section III-D), two the hybrid-ARQ paper's
/// (Section III). The codes are ours, because the papers print none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// No connection and no assurance: carries UDP.
    Datagram,
    /// A connection with sequence numbers, and no more assurance than the link gives.
    Unreliable,
    /// Forward error correction alone, no acknowledgements.
    QuasiReliable,
    /// Custody: selective negative acknowledgements and a few positive ones.
    NearReliable,
    /// Selective-repeat ARQ with multiple acknowledgements, end to end.
    Reliable,
    /// FEC, and negative acknowledgements for what FEC could not correct.
    HybridNack,
    /// FEC with negative and positive acknowledgements, so that losses are repaired too.
    HybridNackMack,
}

impl Mode {
    /// All modes, in the order of their codes.
    pub const ALL: [Self; 7] = [
        Self::Datagram,
        Self::Unreliable,
        Self::QuasiReliable,
        Self::NearReliable,
        Self::Reliable,
        Self::HybridNack,
        Self::HybridNackMack,
    ];

    /// The four-bit code on the wire, 0 to 6.
    pub const fn code(self) -> u8 {
        match self {
            Self::Datagram => 0,
            Self::Unreliable => 1,
            Self::QuasiReliable => 2,
            Self::NearReliable => 3,
            Self::Reliable => 4,
            Self::HybridNack => 5,
            Self::HybridNackMack => 6,
        }
    }

    /// The mode with this code; `None` for the reserved ones, 7 and above.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Datagram,
            1 => Self::Unreliable,
            2 => Self::QuasiReliable,
            3 => Self::NearReliable,
            4 => Self::Reliable,
            5 => Self::HybridNack,
            6 => Self::HybridNackMack,
            _ => return None,
        })
    }

    /// The name in scenarios, options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Datagram => "datagram",
            Self::Unreliable => "unreliable",
            Self::QuasiReliable => "quasi-reliable",
            Self::NearReliable => "near-reliable",
            Self::Reliable => "reliable",
            Self::HybridNack => "nack",
            Self::HybridNackMack => "nack-mack",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error about a text that names no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown mode `{0}`; one of datagram, unreliable, quasi-reliable, near-reliable, reliable, \
     nack, nack-mack"
)]
pub struct UnknownMode(pub String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_comes_back_from_its_code_and_its_name() {
        for (code, mode) in (0..).zip(Mode::ALL) {
            assert_eq!(mode.code(), code);
            assert_eq!(Mode::from_code(code), Some(mode));
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!((7..=255).all(|code| Mode::from_code(code).is_none()));
    }

    #[test]
    fn an_unknown_name_is_answered_with_all_the_known_ones() {
        let told = "turbo".parse::<Mode>().unwrap_err().to_string();
        assert!(told.contains("`turbo`"), "{told}");
        for mode in Mode::ALL {
            assert!(told.contains(mode.name()), "{told}");
        }
    }
}
