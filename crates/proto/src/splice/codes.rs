//! Reasons why a flow was not opened, or was cut off: codes on the wire, names in logs.

/// The reason why a flow was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefuseCode {
    /// The destination refused the connection.
    Refused,
    /// There is no way to the destination.
    Unreachable,
    /// The destination did not answer in time.
    Timeout,
    /// The acceptor's configuration does not allow this destination.
    NotAllowed,
    /// The destination's name does not resolve.
    NameUnknown,
    /// The acceptor has as many flows as it may, or has promised as much memory as it may.
    TooMany,
    /// The acceptor does not know, or no longer knows, the flow that is to be resumed.
    Forgotten,
    /// The opening makes no sense to the acceptor.
    Invalid,
    /// The acceptor cannot write the flow to its disk, and so sends the destination nothing.
    NotKept,
}

impl RefuseCode {
    /// All codes, in the order of their numbers on the wire, which start at 1.
    pub const ALL: [Self; 9] = [
        Self::Refused,
        Self::Unreachable,
        Self::Timeout,
        Self::NotAllowed,
        Self::NameUnknown,
        Self::TooMany,
        Self::Forgotten,
        Self::Invalid,
        Self::NotKept,
    ];

    /// The number on the wire.
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The code with this number. Unknown ones are [`RefuseCode::Refused`]: a newer peer's reason
    /// is still a refusal.
    pub fn from_number(number: u8) -> Self {
        let index = usize::from(number).checked_sub(1);
        index
            .and_then(|index| Self::ALL.get(index).copied())
            .unwrap_or(Self::Refused)
    }

    /// The name in logs, metrics and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::NotAllowed => "not_allowed",
            Self::NameUnknown => "name_unknown",
            Self::TooMany => "too_many",
            Self::Forgotten => "forgotten",
            Self::Invalid => "invalid",
            Self::NotKept => "not_kept",
        }
    }
}

/// The reason why a flow was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResetCode {
    /// The local connection was reset.
    Reset,
    /// The local connection timed out.
    Timeout,
    /// The gateway was told to end the flow.
    Shutdown,
    /// A record broke the protocol.
    Protocol,
    /// The far side sent more octets than it was allowed.
    Credit,
    /// The flow carried nothing for longer than allowed.
    Idle,
    /// The peer is gone, or has restarted and no longer knows the flow.
    PeerLost,
    /// The flow's octets are no longer complete at a gateway that had taken custody.
    CustodyLost,
}

impl ResetCode {
    /// All codes, in the order of their numbers on the wire, which start at 1.
    pub const ALL: [Self; 8] = [
        Self::Reset,
        Self::Timeout,
        Self::Shutdown,
        Self::Protocol,
        Self::Credit,
        Self::Idle,
        Self::PeerLost,
        Self::CustodyLost,
    ];

    /// The number on the wire.
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The code with this number. Unknown ones are [`ResetCode::Reset`].
    pub fn from_number(number: u8) -> Self {
        let index = usize::from(number).checked_sub(1);
        index
            .and_then(|index| Self::ALL.get(index).copied())
            .unwrap_or(Self::Reset)
    }

    /// The name in logs, metrics and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Shutdown => "shutdown",
            Self::Protocol => "protocol",
            Self::Credit => "credit",
            Self::Idle => "idle",
            Self::PeerLost => "peer_lost",
            Self::CustodyLost => "custody_lost",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_start_at_one_and_come_back_and_unknown_ones_are_the_general_case() {
        for (i, code) in RefuseCode::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(code.number()), i + 1);
            assert_eq!(RefuseCode::from_number(code.number()), code);
        }
        for (i, code) in ResetCode::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(code.number()), i + 1);
            assert_eq!(ResetCode::from_number(code.number()), code);
        }
        for unknown in [0, 10, 255] {
            assert_eq!(RefuseCode::from_number(unknown), RefuseCode::Refused);
            assert_eq!(ResetCode::from_number(unknown), ResetCode::Reset);
        }
    }
}
