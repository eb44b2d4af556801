//! The classes of frames in reports.

/// The class of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameClass {
    /// A packet or a part of one for the first time.
    Data,
    /// A packet or a part of one again.
    Again,
    /// Parity.
    Parity,
    /// Acknowledgements and other control frames of the layer.
    Control,
}

impl FrameClass {
    /// All classes, in report order.
    pub const ALL: [Self; 4] = [Self::Data, Self::Again, Self::Parity, Self::Control];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Again => "again",
            Self::Parity => "parity",
            Self::Control => "control",
        }
    }
}
