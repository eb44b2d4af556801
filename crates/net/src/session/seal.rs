//! Sealing and opening of datagrams under the keys of one handshake.

use super::cipher::{Cipher, FORGED_MAX, blocks_of};
use super::replay::ReplayWindow;
use fulmar_proto::units::Instant;

/// The counter at which sealing stops, far below the end of nonces (2^64 - 1 is Noise's own).
const COUNTER_MAX: u64 = u64::MAX - (1 << 16);
/// The datagrams that may be under way, and as many again: 1 gbit of full datagrams for 12 s.
const LATELY: u32 = 1 << 20;

/// The reason why a sealed datagram does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sealed {
    Replayed,
    Forged,
}

/// The keys of one handshake, with the counters of their use.
pub(super) struct Keypair {
    /// Our index, which the peer puts into its datagrams.
    pub(super) local: u32,
    /// The peer's index, which we put into our datagrams.
    pub(super) remote: u32,
    cipher: Cipher,
    /// Datagrams sealed, which is the next counter: it only rises, and is forgotten with the keys.
    sealed: u64,
    /// Datagrams that may be sealed.
    sealed_max: u64,
    /// Blocks of the cipher that they took.
    blocks: u64,
    /// Datagrams that did not open.
    forged: u64,
    window: ReplayWindow,
    /// The time at which they were made.
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
            sealed_max: COUNTER_MAX,
            blocks: 0,
            forged: 0,
            window: ReplayWindow::default(),
            made,
            initiated,
            confirmed: false,
        }
    }

    /// Seals no more than `datagrams` in all.
    pub(super) fn stop_after(&mut self, datagrams: u64) {
        self.sealed_max = datagrams.min(COUNTER_MAX);
    }

    /// Whether nothing more may be sealed.
    pub(super) fn is_spent(&self) -> bool {
        self.sealed >= self.sealed_max || self.blocks >= self.cipher.bounds().blocks_max
    }

    /// Whether so much was sealed that other keys are due.
    pub(super) fn is_worn(&self) -> bool {
        self.is_spent() || self.blocks >= self.cipher.bounds().renew_blocks
    }

    /// The counter of the next datagram; `None` when the keys are used up.
    pub(super) fn next_counter(&mut self) -> Option<u64> {
        let counter = self.sealed;
        if self.is_spent() {
            return None;
        }
        self.sealed += 1;
        Some(counter)
    }

    /// Whether the counter of a datagram that was sent lately ends in `low`.
    pub(super) fn has_sent(&self, low: u32) -> bool {
        let newest = self.sealed.checked_sub(1);
        newest.is_some_and(|newest| {
            // Only the low half is compared.
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
    pub(super) fn renew_datagrams(&self) -> u64 {
        self.cipher.bounds().renew_datagrams
    }

    /// Seals the octets from `start` on, in their place, under `counter` of [`Keypair::next_counter`].
    /// `false`: they are too many, or the keys are used up.
    pub(super) fn seal(&mut self, counter: u64, start: usize, out: &mut Vec<u8>) -> bool {
        let blocks = self.blocks.saturating_add(blocks_of(out.len() - start));
        if blocks > self.cipher.bounds().blocks_max {
            self.blocks = self.cipher.bounds().blocks_max;
            return false;
        }
        self.blocks = blocks;
        self.cipher.seal(counter, start, out)
    }

    /// Opens octets that were sealed under the counter whose low half is `low`. Tells whether it is the
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
        if self.forged >= FORGED_MAX {
            return Err(Sealed::Forged);
        }
        if !self.cipher.open(counter, sealed, out) {
            self.forged += 1;
            return Err(Sealed::Forged);
        }
        let newest = self.window.is_newest(counter);
        self.window.mark(counter);
        Ok(newest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cipher::Suite;
    use super::*;

    /// The two ends of one handshake.
    fn ends(suite: Suite) -> [Keypair; 2] {
        let key = [[1; 32], [2; 32]];
        let cipher = |ours: &[u8; 32], theirs: &[u8; 32]| Cipher::aead(suite, ours, theirs);
        [cipher(&key[0], &key[1]), cipher(&key[1], &key[0])].map(|cipher| {
            let cipher = cipher.expect("keys of the right length");
            Keypair::new(cipher, 1, 2, Instant::START, true)
        })
    }

    /// Seals `len` octets, if that may be.
    fn sealed(keys: &mut Keypair, len: usize) -> Option<Vec<u8>> {
        let counter = keys.next_counter()?;
        let mut octets = vec![7; len];
        keys.seal(counter, 0, &mut octets).then_some(octets)
    }

    #[test]
    fn aes_seals_up_to_its_bound_and_not_one_block_more() {
        let [mut here, mut there] = ends(Suite::Aes256Gcm);
        let max = 1 << 35;
        assert!(sealed(&mut here, 32).is_some());
        assert_eq!(here.blocks, 3, "two of content, one of the tag");
        // Near the bound, which would take days to reach by sealing.
        here.blocks = max - 2 * blocks_of(32);
        assert!(here.is_worn() && !here.is_spent());
        let last = [sealed(&mut here, 32), sealed(&mut here, 32)];
        let last = last.map(|octets| octets.expect("within the bound"));
        assert_eq!(here.blocks, max, "at the bound");
        for _ in 0..3 {
            assert_eq!(sealed(&mut here, 0), None, "past the bound");
        }
        assert!(here.is_spent());
        // What was sealed before opens, and what the peer seals, too.
        let mut out = Vec::new();
        for (counter, octets) in (1..).zip(&last) {
            assert_eq!(there.open(counter, octets, &mut out), Ok(true));
        }
        let answer = sealed(&mut there, 32).expect("the peer has sealed little");
        assert_eq!(here.open(0, &answer, &mut out), Ok(true));
    }

    #[test]
    fn a_datagram_that_crosses_the_bound_is_not_sealed() {
        let [mut here, _] = ends(Suite::Aes256Gcm);
        here.blocks = (1 << 35) - blocks_of(32);
        assert_eq!(sealed(&mut here, 33), None);
        assert!(here.is_spent(), "its counter is gone, so the keys are, too");
        let [mut chacha, _] = ends(Suite::ChaCha20Poly1305);
        chacha.blocks = 1 << 40;
        assert!(sealed(&mut chacha, 33).is_some());
    }

    #[test]
    fn after_too_many_forgeries_nothing_opens_any_more() {
        for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
            let [mut here, mut there] = ends(suite);
            let genuine = [sealed(&mut here, 8), sealed(&mut here, 8)];
            let genuine = genuine.map(|octets| octets.expect("keys are fresh"));
            let mut out = Vec::new();
            there.forged = FORGED_MAX - 1;
            assert_eq!(there.open(0, &genuine[0], &mut out), Ok(true));
            assert_eq!(there.open(1, &[0; 24], &mut out), Err(Sealed::Forged));
            assert_eq!(there.open(1, &genuine[1], &mut out), Err(Sealed::Forged));
        }
    }
}
