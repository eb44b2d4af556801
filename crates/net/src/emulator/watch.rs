//! What the one who starts an emulator exchanges with it.

use fulmar_proto::units::Instant;

/// What the one who started the emulator wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Ask again at this instant, or when the waker is called.
    At(Instant),
    /// Ask again when the waker is called.
    WhenWoken,
    /// End.
    Stop,
}

impl Watch {
    pub(super) const fn at(self) -> Option<Instant> {
        match self {
            Self::At(at) => Some(at),
            Self::WhenWoken | Self::Stop => None,
        }
    }
}
