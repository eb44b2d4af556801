//! The wait for a hole in modes that may lose data, before the receiver passes over it.
//!
//! A hole may still be filled by repair symbols, which follow the close of its block. The time until
//! then depends on the peer's blocks and rate. Only the peer knows these, so the time is learned
//! from the repair TPDUs. The bound is the configuration's [`HoleWaits::parity`].

use super::config::{ConnectionConfig, HoleWaits};
use super::modes::{ModeRules, Nacks};
use crate::units::{Duration, Instant};
use core::num::NonZeroU8;

/// The time that repair symbols may come after the close of their block. An end with blocks of its
/// own assumes that the peer's are alike.
const BLOCK_SLACK: Duration = Duration::from_millis(100);
/// The number of TPDUs without one repair symbol that shows that the peer sends no blocks: two of
/// the largest blocks.
const TPDUS_WITHOUT_PARITY: u32 = 512;
/// The divisor of the difference to a shorter block, which lowers the expectation by that part.
const SHORTENING: u32 = 128;

/// The knowledge of the peer's parity across TPDUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parity {
    Unknown,
    Absent,
    /// The longest time lately from a block's first source to its last repair symbol.
    Seen(Duration),
}

/// The first TPDU that is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    /// The time at which it was noticed.
    pub(super) since: Instant,
    /// Whether it arrived, but damaged.
    pub(super) damaged: bool,
    /// Whether no later TPDU was seen.
    pub(super) is_newest: bool,
}

#[derive(Debug)]
pub(super) struct Patience {
    waits: HoleWaits,
    /// The wait for a TPDU that never arrived, as this end's own blocks suggest.
    lost: Duration,
    nacks: Nacks,
    blocks: bool,
    /// Whether copies may follow a TPDU that arrived damaged.
    expects_copies: bool,
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
            expects_copies: config.copies > NonZeroU8::MIN,
            parity: if rules.blocks {
                Parity::Unknown
            } else {
                Parity::Absent
            },
            end_known_at: None,
        }
    }

    /// Notes that so many TPDUs were counted since the connection began.
    pub(super) const fn note_progress(&mut self, tpdus: u32) {
        if matches!(self.parity, Parity::Unknown) && tpdus >= TPDUS_WITHOUT_PARITY {
            self.parity = Parity::Absent;
        }
    }

    /// Notes that a repair symbol came `span` after the first source of its block.
    pub(super) fn note_repair(&mut self, span: Duration) {
        let expected = match self.parity {
            Parity::Seen(longest) if longest > span => {
                longest.saturating_sub(longest.saturating_sub(span) / SHORTENING)
            }
            _ => span,
        };
        self.parity = Parity::Seen(expected);
    }

    /// Notes that the peer has sent everything, parity included.
    pub(super) fn note_end(&mut self, now: Instant) {
        self.end_known_at.get_or_insert(now);
    }

    /// The time at which to pass over `hole`.
    pub(super) fn ends_at(&self, hole: Hole) -> Instant {
        let Hole { since, damaged, .. } = hole;
        let after_end = |end: Instant| end.max(since) + self.waits.lost;
        match (damaged, self.nacks) {
            (true, Nacks::Damaged | Nacks::DamagedAndHoles) => return since + self.waits.requested,
            // The link's rate decides when the copies come; a later TPDU shows that they have passed.
            (true, Nacks::None) if self.expects_copies && hole.is_newest => {
                let at = since + self.waits.requested;
                return self.end_known_at.map_or(at, |end| at.min(after_end(end)));
            }
            (true, Nacks::None) if !self.blocks => return since,
            _ => {}
        }
        let parity = match self.parity {
            Parity::Unknown => self.waits.parity,
            Parity::Absent => Duration::ZERO,
            // The time is doubled: the first source seen need not be the first sent, nor the last
            // symbol the last.
            Parity::Seen(span) => (span * 2 + self.waits.lost).min(self.waits.parity),
        };
        let at = since + self.lost.max(parity);
        self.end_known_at.map_or(at, |end| at.min(after_end(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Mode;

    const MS: Duration = Duration::from_millis(1);

    fn lost(since: Instant) -> Hole {
        Hole {
            since,
            damaged: false,
            is_newest: false,
        }
    }

    fn listener(mode: Mode) -> Patience {
        let config = ConnectionConfig {
            mode,
            ..ConnectionConfig::default()
        };
        Patience::new(&config, ModeRules::of(mode))
    }

    fn waits(patience: &Patience) -> Duration {
        let since = Instant::START + Duration::from_secs(10);
        patience.ends_at(lost(since)).saturating_since(since)
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
        assert_eq!(patience.ends_at(lost(since)), since + 50 * MS);
        let later = since + 100 * MS;
        assert_eq!(patience.ends_at(lost(later)), later + 20 * MS);
    }
    #[test]
    fn a_damaged_tpdu_is_waited_for_while_its_copies_may_come() {
        let since = Instant::START + MS;
        let damaged = |is_newest| Hole {
            since,
            damaged: true,
            is_newest,
        };
        for (mode, copies, newest, overtaken) in [
            (Mode::Unreliable, 1, Duration::ZERO, Duration::ZERO),
            (Mode::Unreliable, 2, 2_000 * MS, Duration::ZERO),
            (Mode::HybridNack, 2, 2_000 * MS, 2_000 * MS),
        ] {
            let config = ConnectionConfig {
                mode,
                copies: NonZeroU8::new(copies).expect("not zero"),
                ..ConnectionConfig::default()
            };
            let mut patience = Patience::new(&config, ModeRules::of(mode));
            assert_eq!(patience.ends_at(damaged(true)), since + newest, "{mode}");
            assert_eq!(
                patience.ends_at(damaged(false)),
                since + overtaken,
                "{mode}"
            );
            patience.note_end(since + 5 * MS);
            if mode == Mode::Unreliable && copies == 2 {
                assert_eq!(patience.ends_at(damaged(true)), since + 25 * MS);
            }
        }
    }
}
