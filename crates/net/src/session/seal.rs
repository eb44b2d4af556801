//! Sealing and opening of datagrams under the keys of one handshake.

use super::cipher::Cipher;
use super::replay::ReplayWindow;
use fulmar_proto::units::Instant;

/// Sealing stops here, far below where nonces end (2^64 - 1 is Noise's own).
const COUNTER_MAX: u64 = u64::MAX - (1 << 16);
/// What may be under way, and as much again: 1 gbit of full datagrams for 12 s.
const LATELY: u32 = 1 << 20;

/// Why a sealed datagram does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sealed {
    Replayed,
    Forged,
}

/// The keys of one handshake, with what was counted under them.
pub(super) struct Keypair {
    /// Our index, which the peer puts into its datagrams.
    pub(super) local: u32,
    /// The peer's, which we put into ours.
    pub(super) remote: u32,
    cipher: Cipher,
    /// Datagrams sealed, and so the next counter: it only ever rises, and dies with the keys.
    sealed: u64,
    window: ReplayWindow,
    /// Since when they exist.
    pub(super) made: Instant,
    /// Whether we began the handshake.
    pub(super) initiated: bool,
    /// Whether the peer is known to have them.
    pub(super) confirmed: bool,
}

impl Keypair {
    pub(super) fn new(
        cipher: Cipher,
        local: u32,
        remote: u32,
        made: Instant,
        initiated: bool,
    ) -> Self {
        Self {
            local,
            remote,
            cipher,
            sealed: 0,
            window: ReplayWindow::default(),
            made,
            initiated,
            confirmed: false,
        }
    }

    /// The counter of the next datagram; `None` when the keys are used up.
    pub(super) fn next_counter(&mut self) -> Option<u64> {
        let counter = self.sealed;
        if counter >= COUNTER_MAX {
            return None;
        }
        self.sealed += 1;
        Some(counter)
    }

    /// Whether the counter of a datagram that was sent lately ends in `low`.
    pub(super) fn has_sent(&self, low: u32) -> bool {
        let newest = self.sealed.checked_sub(1);
        newest.is_some_and(|newest| {
            // The low half is meant.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the header has the low half"
            )]
            let back = (newest as u32).wrapping_sub(low);
            u64::from(back) <= newest && back < LATELY
        })
    }

    /// Datagrams that went either way, whichever is more.
    pub(super) fn used(&self) -> u64 {
        self.sealed.max(self.window.newest())
    }

    /// Datagrams one way after which other keys are due, whatever the policy says.
    pub(super) fn datagrams_max(&self) -> u64 {
        self.cipher.datagrams_max()
    }

    /// Seals what begins at `start`, in its place, under `counter` of [`Keypair::next_counter`].
    /// `false`: it is too long.
    pub(super) fn seal(&self, counter: u64, start: usize, out: &mut Vec<u8>) -> bool {
        self.cipher.seal(counter, start, out)
    }

    /// Opens what was sealed under the counter whose low half is `low`. Says whether it is the
    /// newest so far.
    pub(super) fn open(
        &mut self,
        low: u32,
        sealed: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Sealed> {
        let counter = self.window.widen(low);
        if !self.window.is_new(counter) {
            return Err(Sealed::Replayed);
        }
        if !self.cipher.open(counter, sealed, out) {
            return Err(Sealed::Forged);
        }
        let newest = self.window.is_newest(counter);
        self.window.mark(counter);
        Ok(newest)
    }
}
