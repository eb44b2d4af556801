//! The mode table: every difference between the modes is a column here.

use crate::wire::Mode;

/// When the receiver acknowledges what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Never.
    None,
    /// Rarely: requests for what is missing carry the load (near-reliable: "a limited number of
    /// positive ACKs").
    Sparse,
    /// Every n TPDUs, as configured.
    Aggregated,
}

/// What the receiver asks for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nacks {
    /// Nothing.
    None,
    /// TPDUs that arrived but could not be corrected (hybrid modes).
    Damaged,
    /// Those, and holes in the sequence (SNACK).
    DamagedAndHoles,
}

/// One row of the mode table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of a table")]
pub struct ModeRules {
    /// Whether there is a connection at all: set-up, close, order.
    pub connection: bool,
    /// Positive acknowledgements.
    pub acks: Acks,
    /// Negative acknowledgements.
    pub nacks: Nacks,
    /// Whether a hole is waited for until it is filled, so that nothing is ever missing.
    pub complete: bool,
    /// Whether parity across TPDUs may be sent.
    pub blocks: bool,
    /// Whether a gateway may acknowledge on the destination's behalf.
    pub custody: bool,
}

impl ModeRules {
    /// The row of `mode`.
    ///
    /// Multi-mode paper, Section III-D, for the first five; hybrid-ARQ paper, Sections III-C and
    /// III-D, for the last two.
    pub const fn of(mode: Mode) -> Self {
        let plain = Self {
            connection: true,
            acks: Acks::None,
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
                acks: Acks::Sparse,
                nacks: Nacks::DamagedAndHoles,
                complete: true,
                custody: true,
                ..plain
            },
            Mode::Reliable => Self {
                acks: Acks::Aggregated,
                complete: true,
                ..plain
            },
            Mode::HybridNack => Self {
                nacks: Nacks::Damaged,
                ..plain
            },
            Mode::HybridNackMack => Self {
                acks: Acks::Aggregated,
                nacks: Nacks::Damaged,
                complete: true,
                ..plain
            },
        }
    }

    /// Whether the sender keeps TPDUs to send them again.
    pub fn retransmits(self) -> bool {
        self.acks != Acks::None || self.nacks != Nacks::None
    }

    /// Whether the receiver confirms what it has, so that the sender can know when it is done.
    pub fn confirms(self) -> bool {
        self.acks != Acks::None
    }
}
