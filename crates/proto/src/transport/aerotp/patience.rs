//! How long modes that may lose data wait for a hole before they pass over it.
//!
//! A hole may still be filled by repair symbols, which follow the close of its block. How long that
//! takes depends on the peer's blocks and rate, which only the peer knows, so it is learned from the
//! repair TPDUs. The bound is the configuration's [`HoleWaits::parity`].

use super::config::{ConnectionConfig, HoleWaits};
use super::modes::{ModeRules, Nacks};
use crate::units::{Duration, Instant};

/// With blocks of our own, the peer's are taken to be alike: its repair symbols follow the close of
/// the block.
const BLOCK_SLACK: Duration = Duration::from_millis(100);
/// So many TPDUs without one repair symbol show that the peer sends no blocks: two of the largest.
const TPDUS_WITHOUT_PARITY: u32 = 512;
/// A block that took less time than the longest before it takes this share off what is expected.
const SHORTENING: u32 = 128;

/// What is known of the peer's parity across TPDUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parity {
    Unknown,
    Absent,
    /// From a block's first source to its last repair symbol, the longest lately.
    Seen(Duration),
}

#[derive(Debug)]
pub(super) struct Patience {
    waits: HoleWaits,
    /// Patience with a TPDU of which nothing was seen, as the own blocks suggest.
    lost: Duration,
    nacks: Nacks,
    blocks: bool,
    parity: Parity,
    end_known_at: Option<Instant>,
}

impl Patience {
    pub(super) fn new(config: &ConnectionConfig, rules: ModeRules) -> Self {
        let waits = config.hole_waits;
        let own = config.block.filter(|_| rules.blocks);
        let own = own.map(|plan| plan.close_after() * 2 + BLOCK_SLACK);
        Self {
            waits,
            lost: waits.lost.max(own.unwrap_or_default()),
            nacks: rules.nacks,
            blocks: rules.blocks,
            parity: if rules.blocks {
                Parity::Unknown
            } else {
                Parity::Absent
            },
            end_known_at: None,
        }
    }

    /// So many TPDUs were counted since the connection began.
    pub(super) const fn note_progress(&mut self, tpdus: u32) {
        if matches!(self.parity, Parity::Unknown) && tpdus >= TPDUS_WITHOUT_PARITY {
            self.parity = Parity::Absent;
        }
    }

    /// A repair symbol came `span` after the first source of its block.
    pub(super) fn note_repair(&mut self, span: Duration) {
        let expected = match self.parity {
            Parity::Seen(longest) if longest > span => {
                longest.saturating_sub(longest.saturating_sub(span) / SHORTENING)
            }
            _ => span,
        };
        self.parity = Parity::Seen(expected);
    }

    /// The peer has sent everything, parity included.
    pub(super) fn note_end(&mut self, now: Instant) {
        self.end_known_at.get_or_insert(now);
    }

    /// When to pass over a hole noticed at `since`.
    pub(super) fn ends_at(&self, since: Instant, damaged: bool) -> Instant {
        match (damaged, self.nacks) {
            (true, Nacks::Damaged | Nacks::DamagedAndHoles) => return since + self.waits.requested,
            (true, Nacks::None) if !self.blocks => return since,
            _ => {}
        }
        let parity = match self.parity {
            Parity::Unknown => self.waits.parity,
            Parity::Absent => Duration::ZERO,
            // Twice: the first source seen need not be the first sent, nor the last symbol the last.
            Parity::Seen(span) => (span * 2 + self.waits.lost).min(self.waits.parity),
        };
        let at = since + self.lost.max(parity);
        let after_end = |end: Instant| end.max(since) + self.waits.lost;
        self.end_known_at.map_or(at, |end| at.min(after_end(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::aerotp::Mode;

    const MS: Duration = Duration::from_millis(1);

    fn listener(mode: Mode) -> Patience {
        let config = ConnectionConfig {
            mode,
            ..ConnectionConfig::default()
        };
        Patience::new(&config, ModeRules::of(mode))
    }

    fn waits(patience: &Patience) -> Duration {
        let since = Instant::START + Duration::from_secs(10);
        patience.ends_at(since, false).saturating_since(since)
    }

    #[test]
    fn until_it_is_known_whether_the_peer_sends_parity_a_hole_waits_for_it() {
        let mut patience = listener(Mode::QuasiReliable);
        assert_eq!(waits(&patience), Duration::from_secs(1));
        patience.note_progress(TPDUS_WITHOUT_PARITY - 1);
        assert_eq!(waits(&patience), Duration::from_secs(1));
        patience.note_progress(TPDUS_WITHOUT_PARITY);
        assert_eq!(waits(&patience), 20 * MS, "the peer sends none");
        patience.note_repair(50 * MS);
        assert_eq!(waits(&patience), 120 * MS, "it does after all");
    }

    #[test]
    fn patience_follows_the_longest_block_and_stays_within_its_bound() {
        let mut patience = listener(Mode::QuasiReliable);
        patience.note_repair(115 * MS);
        patience.note_repair(80 * MS);
        let slow = waits(&patience);
        assert!(slow > 240 * MS && slow <= 250 * MS, "{slow:?}");
        for _ in 0..1000 {
            patience.note_repair(10 * MS);
        }
        assert!(waits(&patience) < 45 * MS, "the link became faster");
        patience.note_repair(Duration::from_secs(1000));
        assert_eq!(waits(&patience), Duration::from_secs(1));
    }

    #[test]
    fn modes_without_blocks_wait_for_reordering_only() {
        assert_eq!(waits(&listener(Mode::Unreliable)), 20 * MS);
        assert_eq!(waits(&listener(Mode::HybridNack)), 20 * MS);
    }

    #[test]
    fn once_the_peer_has_sent_everything_only_reordering_is_waited_for() {
        let mut patience = listener(Mode::QuasiReliable);
        let since = Instant::START + Duration::from_secs(10);
        patience.note_end(since + 30 * MS);
        assert_eq!(patience.ends_at(since, false), since + 50 * MS);
        let later = since + 100 * MS;
        assert_eq!(patience.ends_at(later, false), later + 20 * MS);
    }
}
