//! The limit on how much parity is put to work for datagrams that nobody vouches for.
//!
//! Parity lies outside the encryption, so a datagram must be corrected before it can be judged, and whoever
//! sends damaged ones makes us work. What a peer's address sends is corrected in vain for a few times as
//! often as something genuine comes from that peer; for the rest of the world there is one small budget.

use super::sources::{Bucket, Rate};
use fulmar_proto::units::Instant;

/// Corrections in vain for each genuine datagram. A link where more of them are is of no use anyway.
const IN_VAIN: u32 = 4;
/// Corrections that a peer can save, at most.
const SAVED_MAX: u32 = 1_024;
/// Corrections a second, and at once, for a peer that has nothing saved: its handshakes may be damaged.
const STEADY: Rate = Rate::per_second(10, 10);
/// For all strangers together.
pub(super) const STRANGERS: Rate = Rate::per_second(50, 50);

/// Where a datagram is damaged, as far as its checks tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// The header does not check: anybody can send such a thing.
    Header,
    /// It names keys or a handshake, and does not verify: whoever sends that on purpose sees the path.
    Content,
}

#[derive(Clone, Copy)]
struct Credit {
    saved: u32,
    steady: Bucket,
}

impl Credit {
    const NONE: Self = Self {
        saved: 0,
        steady: Bucket::FULL,
    };

    fn take(&mut self, now: Instant) -> bool {
        if let Some(left) = self.saved.checked_sub(1) {
            self.saved = left;
            return true;
        }
        self.steady.take(now, STEADY)
    }

    fn earn(&mut self) {
        self.saved = self.saved.saturating_add(IN_VAIN).min(SAVED_MAX);
    }
}

/// The corrections that may be made for the address where a peer is. One account for each kind of damage, so that
/// the blind cannot use up what is there for those that see the path.
pub(super) struct Corrections {
    header: Credit,
    content: Credit,
}

impl Corrections {
    pub(super) const fn new() -> Self {
        Self {
            header: Credit::NONE,
            content: Credit::NONE,
        }
    }

    /// Something genuine came from the peer.
    pub(super) fn earn(&mut self) {
        self.header.earn();
        self.content.earn();
    }

    /// Whether one more datagram from there is corrected.
    pub(super) fn take(&mut self, now: Instant, damage: Damage) -> bool {
        match damage {
            Damage::Header => self.header.take(now),
            Damage::Content => self.content.take(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::units::Duration;

    fn taken(corrections: &mut Corrections, now: Instant, damage: Damage, asked: usize) -> usize {
        (0..asked).filter(|_| corrections.take(now, damage)).count()
    }

    #[test]
    fn a_few_are_corrected_for_each_genuine_one_and_some_for_none() {
        let mut corrections = Corrections::new();
        let now = Instant::START;
        assert_eq!(taken(&mut corrections, now, Damage::Content, 1_000), 10);
        for _ in 0..7 {
            corrections.earn();
        }
        assert_eq!(taken(&mut corrections, now, Damage::Content, 1_000), 28);
        let later = now + Duration::from_millis(300);
        assert_eq!(taken(&mut corrections, later, Damage::Content, 1_000), 3);
    }

    #[test]
    fn what_is_saved_is_bounded_and_either_damage_has_its_own() {
        let mut corrections = Corrections::new();
        for _ in 0..100_000 {
            corrections.earn();
        }
        let now = Instant::START;
        let all = SAVED_MAX as usize + 10;
        assert_eq!(taken(&mut corrections, now, Damage::Header, 100_000), all);
        assert_eq!(taken(&mut corrections, now, Damage::Content, 100_000), all);
    }
}
