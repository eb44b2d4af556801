//! The mode table: every difference between the modes is a column here.

use crate::wire::Mode;

/// The rule by which the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckScheme {
    /// It never acknowledges.
    None,
    /// It acknowledges rarely and relies on requests for missing TPDUs (near-reliable: "a limited
    /// number of positive ACKs").
    Sparse,
    /// It acknowledges every n TPDUs, as configured.
    Aggregated,
}

/// The TPDUs that the receiver asks for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nacks {
    /// None.
    None,
    /// TPDUs that arrived but could not be corrected (hybrid modes).
    Damaged,
    /// Damaged TPDUs, and holes in the sequence (SNACK).
    DamagedAndHoles,
}

/// One row of the mode table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of a table")]
pub struct ModeRules {
    /// Whether there is a connection, with set-up, close and order.
    pub connection: bool,
    /// The rule for positive acknowledgements.
    pub acks: AckScheme,
    /// The rule for negative acknowledgements.
    pub nacks: Nacks,
    /// Whether the receiver waits until each hole is filled, so that nothing is ever missing.
    pub complete: bool,
    /// Whether parity across TPDUs may be sent.
    pub blocks: bool,
    /// Whether a gateway may acknowledge on the destination's behalf.
    pub custody: bool,
}

impl ModeRules {
    /// The row of `mode`.
    ///
    /// The first five rows follow the multi-mode paper, Section III-D; the last two follow the
    /// hybrid-ARQ paper, Sections III-C and III-D.
    pub const fn of(mode: Mode) -> Self {
        let plain = Self {
            connection: true,
            acks: AckScheme::None,
            nacks: Nacks::None,
            complete: false,
            blocks: false,
            custody: false,
        };
        match mode {
            Mode::Datagram => Self {
                connection: false,
                ..plain
            },
            Mode::Unreliable => plain,
            Mode::QuasiReliable => Self {
                blocks: true,
                ..plain
            },
            Mode::NearReliable => Self {
                acks: AckScheme::Sparse,
                nacks: Nacks::DamagedAndHoles,
                complete: true,
                custody: true,
                ..plain
            },
            Mode::Reliable => Self {
                acks: AckScheme::Aggregated,
                complete: true,
                ..plain
            },
            Mode::HybridNack => Self {
                nacks: Nacks::Damaged,
                ..plain
            },
            Mode::HybridNackMack => Self {
                acks: AckScheme::Aggregated,
                nacks: Nacks::Damaged,
                complete: true,
                ..plain
            },
        }
    }

    /// Whether the sender keeps TPDUs for retransmission.
    pub fn retransmits(self) -> bool {
        self.acks != AckScheme::None || self.nacks != Nacks::None
    }

    /// Whether the receiver confirms what has arrived, so that the sender knows when it is done.
    pub fn confirms(self) -> bool {
        self.acks != AckScheme::None
    }
}
