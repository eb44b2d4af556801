//! The limit on corrections by parity of datagrams that nobody vouches for.
//!
//! Parity lies outside the encryption, so a datagram must be corrected before it can be judged, and whoever
//! sends damaged ones makes us work. Each genuine datagram of a peer pays for a few corrections in vain of
//! datagrams from its address. For the rest of the world there is one small budget.

use super::sources::{Bucket, Rate};
use fulmar_proto::units::Instant;

/// The corrections in vain for each genuine datagram. A link that needs more is of no use anyway.
const IN_VAIN: u32 = 4;
/// The most corrections that a peer can save.
const SAVED_MAX: u32 = 1_024;
/// Corrections a second, and at once, for a peer that has nothing saved: its handshakes may be damaged.
const STEADY: Rate = Rate::per_second(10, 10);
/// The corrections for all strangers together.
pub(super) const STRANGERS: Rate = Rate::per_second(50, 50);

/// The damaged part of a datagram, as far as its checks tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// The header does not check: anybody can send such a thing.
    Header,
    /// The datagram names keys or a handshake, and does not verify: whoever sends that on purpose sees the path.
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

/// The corrections that may be made for the address where a peer is. Each kind of damage has an account of its own, so
/// that senders who do not see the path cannot use up the account for content.
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

    /// Adds the corrections that a genuine datagram of the peer pays for.
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
