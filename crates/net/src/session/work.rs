//! The price of what arrives, in operations that can be counted.
//!
//! A stranger's datagram may cost what `docs/threat-model.md` says, and `session_work` holds the code to it.
//! Processor time differs from machine to machine and from hour to hour; these numbers do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Operations of a session since its start, over all that arrived and left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Multiplications on Curve25519: a public key out of a secret one, or a secret that is shared.
    pub key_operations: u64,
    /// BLAKE3 hashes of checks and cookies, and keys of early data derived with it.
    pub hashes: u64,
    /// Tags verified, of sealed datagrams, early data and cookies, genuine or not.
    pub openings: u64,
    /// Datagrams that parity was to correct.
    pub decodes: u64,
    /// Datagrams queued for ends that nobody vouches for: responses, cookies, notices, versions.
    pub answers: u64,
}

impl Work {
    /// Each kind of operation by its name in reports.
    pub const fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("key_operation", self.key_operations),
            ("hash", self.hashes),
            ("opening", self.openings),
            ("decode", self.decodes),
            ("answer", self.answers),
        ]
    }
}

/// The counter of operations with keys where they are made, inside the handshakes of `snow`.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyMeter(Arc<AtomicU64>);

impl KeyMeter {
    pub(super) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counted(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
