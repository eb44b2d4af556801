//! A small file that tests announce.

use super::wire::{Announcement, OneWayPromise};
use fulmar_proto::units::Probability;

/// The octets of the file.
pub(super) const OCTETS: &[u8; 10] = b"0123456789";

/// An announcement of it in five symbols, with no promise.
pub(super) fn announcement() -> Announcement {
    Announcement {
        name: "file".to_owned(),
        size: OCTETS.len() as u64,
        digest: *blake3::hash(OCTETS).as_bytes(),
        symbol_bytes: 2,
        promise: OneWayPromise {
            loss: Probability::ZERO,
            residual: Probability::ZERO,
            units: 0,
        },
        is_last: false,
        asks: None,
    }
}
