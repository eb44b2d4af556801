//! The exchange between an emulator and the one who starts it.

use fulmar_proto::units::Instant;

/// The next wish of the one who started the emulator.
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
