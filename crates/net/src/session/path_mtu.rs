//! How large a datagram may be.

use super::config::MtuConfig;
use fulmar_proto::units::ByteCount;

pub(super) struct PathMtu {
    datagram: ByteCount,
}

impl PathMtu {
    pub(super) const fn new(config: MtuConfig) -> Self {
        Self {
            datagram: config.start,
        }
    }

    /// UDP payload octets that are known to arrive.
    pub(super) const fn datagram(&self) -> ByteCount {
        self.datagram
    }
}
