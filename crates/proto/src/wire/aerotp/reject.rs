//! The reasons why octets are not a usable TPDU.

use super::short::Name;

/// The reason a TPDU is dropped. A machine counts it under [`Reject::name`]. No peer is told,
/// because an unusable TPDU has no trustworthy sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Reject {
    /// The octets are shorter than header, descriptors, CRC-32 and parity together.
    #[error("shorter than its header says")]
    Truncated,
    /// The HEC does not match: nothing in the header can be trusted.
    #[error("header check failed")]
    HeaderCheck,
    /// The mode code is one of 7 to 15.
    #[error("reserved mode {0}")]
    ReservedMode(u8),
    /// The flags contradict each other or the mode.
    #[error("contradictory flags")]
    Flags,
    /// The FEC descriptor names an unknown code, no words or too many, or sets reserved bits; or
    /// FEC comes without CRC-32.
    #[error("unusable FEC descriptor")]
    FecDescriptor,
    /// The block descriptor sets reserved bits.
    #[error("unusable block descriptor")]
    BlockDescriptor,
    /// The body's length does not fit the kind of TPDU.
    #[error("body length does not fit the kind of TPDU")]
    BodyLength,
    /// The body of an acknowledgement is damaged: it could acknowledge TPDUs that never arrived.
    #[error("payload check of an acknowledgement failed")]
    BodyCheck,
    /// In the short form: there is no connection of this name.
    #[error("no connection has the name {0}")]
    UnknownName(Name),
    /// In the short form: a list of numbers is cut off, or goes further than numbers can be told apart.
    #[error("unusable ranges of numbers")]
    Ranges,
    /// In the short form: a frame of this type is not for the transport, or not known.
    #[error("no TPDU is in a frame of type {0:#04x}")]
    FrameType(u8),
}

impl Reject {
    /// Every counter's name, in report order.
    pub const NAMES: [&'static str; 11] = [
        "truncated",
        "header_check",
        "reserved_mode",
        "flags",
        "fec_descriptor",
        "block_descriptor",
        "body_length",
        "body_check",
        "unknown_name",
        "ranges",
        "frame_type",
    ];

    /// The place of this reason in [`Reject::NAMES`], for an array of counters.
    pub const fn index(self) -> usize {
        match self {
            Self::Truncated => 0,
            Self::HeaderCheck => 1,
            Self::ReservedMode(_) => 2,
            Self::Flags => 3,
            Self::FecDescriptor => 4,
            Self::BlockDescriptor => 5,
            Self::BodyLength => 6,
            Self::BodyCheck => 7,
            Self::UnknownName(_) => 8,
            Self::Ranges => 9,
            Self::FrameType(_) => 10,
        }
    }

    /// The name of this reason's counter.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }
}
