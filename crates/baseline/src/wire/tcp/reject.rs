//! The reasons why a segment is dropped.

/// The reason why a segment is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum TcpReject {
    /// The segment is shorter than its header.
    #[error("shorter than its TCP header says")]
    Truncated,
    /// The data offset is below the fixed header's length.
    #[error("impossible TCP data offset")]
    DataOffset,
    /// The checksum does not match: header, payload or addresses are damaged.
    #[error("TCP checksum failed")]
    Checksum,
    /// An option's length leads outside of the header.
    #[error("impossible length of a TCP option")]
    Option,
}

impl TcpReject {
    /// The name of this reason's counter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::DataOffset => "data_offset",
            Self::Checksum => "checksum",
            Self::Option => "option",
        }
    }
}
