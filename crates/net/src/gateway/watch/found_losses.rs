//! The losses by cause of each peer as they were found last. To find them takes a millisecond or so, so that is done only
//! when somebody wants to know and something became known since.

use super::losses::LossFigures;
use crate::gateway::Link;
use crate::gateway::peers::index_of;
use crate::session::DamageCounts;
use fulmar_proto::damage::LossByCause;
use fulmar_proto::machine::PathId;
use fulmar_proto::transport::aerotp::SettledCounts;
use fulmar_proto::units::{Duration, Instant};
use std::collections::BTreeMap;

/// The time between two words to a peer of the losses on the way to it.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// The causes found for a peer, and the number of outcomes that it was found from.
#[derive(Clone, Copy, Debug)]
struct Found {
    outcomes: u64,
    losses: Option<LossByCause>,
}

impl Found {
    /// The causes known of so many outcomes: those found before, if the outcomes are the same ones.
    fn of(before: Option<Self>, outcomes: u64, find: impl FnOnce() -> Option<LossByCause>) -> Self {
        before
            .filter(|before| before.outcomes == outcomes)
            .unwrap_or_else(|| Self {
                outcomes,
                losses: find(),
            })
    }
}

/// The causes found for each path to a peer, by the path inside; that of a peer with a single one is its home.
#[derive(Debug, Default)]
pub(in crate::gateway) struct FoundLosses {
    found: BTreeMap<PathId, Found>,
    /// The time at which each peer was told last.
    told_at: BTreeMap<usize, Instant>,
}

impl FoundLosses {
    /// Finds the losses of so many peers.
    pub(super) fn find(&mut self, link: &Link, peers: usize) {
        (0..peers).for_each(|index| self.find_of(link, index));
    }

    fn find_of(&mut self, link: &Link, index: usize) {
        let endpoint = link.inner().endpoint();
        for path in paths_to(link, index) {
            let before = self.found.get(&path).copied();
            let found = Found::of(before, endpoint.path_outcomes(path), || {
                endpoint.path_losses(path)
            });
            self.found.insert(path, found);
        }
    }

    /// Tells a peer of the losses on the way to it, if that was done long ago.
    pub(super) fn tell(&mut self, now: Instant, link: &mut Link, index: usize) {
        if self
            .told_at
            .get(&index)
            .is_some_and(|at| now < *at + TELL_EVERY)
        {
            return;
        }
        self.told_at.insert(index, now);
        self.find_of(link, index);
        if let Some(losses) = self.of(link, index) {
            let path = index_of(index).inner_path();
            link.inner_mut().tell_losses(path, losses.to_tell());
        }
    }

    /// The losses on one of several paths to a peer as they were found last. Damage is told of the first alone.
    pub(super) fn of_path(&self, link: &Link, index: usize, path: PathId) -> Option<LossFigures> {
        let losses = self.found.get(&path).and_then(|found| found.losses);
        if path == index_of(index).inner_path() {
            with_damage(link, index, losses)
        } else {
            LossFigures::of(losses, None, 0.0)
        }
    }

    /// The losses on the way to a peer as they were found last, on all paths to it, with the damage that it told of.
    pub(super) fn of(&self, link: &Link, index: usize) -> Option<LossFigures> {
        let found = paths_to(link, index).filter_map(|path| self.found.get(&path)?.losses);
        with_damage(link, index, LossByCause::together(found))
    }

    /// The losses on the way to a peer as they were found last, and on each path where there are several.
    pub(super) fn to_trace(&self, link: &Link, index: usize) -> Vec<(Option<u8>, LossFigures)> {
        let together = self.of(link, index).map(|of| (None, of));
        let paths = link.path_statuses(index_of(index)).into_iter();
        let each = paths.filter_map(|path| {
            let of = self.of_path(link, index, path.inner)?;
            Some((Some(path.place), of))
        });
        together.into_iter().chain(each).collect()
    }
}

/// The losses on the way to a peer, with the damage that it told of.
fn with_damage(link: &Link, index: usize, losses: Option<LossByCause>) -> Option<LossFigures> {
    let state = link.status(index_of(index));
    let settled = link
        .inner()
        .endpoint()
        .path_settled(index_of(index).inner_path());
    let told = state.as_ref().and_then(|state| state.damage);
    let told = told.map(|damage| mended_later(damage.outward, settled));
    let largest = state.map_or(0, |state| state.sizes.datagram.0);
    let octets = (settled.wire.0.checked_div(settled.datagrams)).unwrap_or(largest);
    LossFigures::of(
        losses,
        told,
        told.map_or(0.0, |told| hit_in_front(told, octets)),
    )
}

/// The paths to a peer, inside.
fn paths_to(link: &Link, index: usize) -> impl Iterator<Item = PathId> {
    let peer = index_of(index);
    let further = link.path_statuses(peer).into_iter().skip(1);
    core::iter::once(peer.inner_path()).chain(further.map(|path| path.inner))
}

/// The damage that the peer told of, less what was mended by parity that was sent later: that is no loss.
fn mended_later(told: DamageCounts, settled: SettledCounts) -> DamageCounts {
    let mended = settled.mended_later.min(told.beyond_repair);
    DamageCounts {
        beyond_repair: told.beyond_repair - mended,
        mended: told.mended + mended,
        ..told
    }
}

/// The bits in front of an armoured datagram that must be right: of UDP without a checksum the destination's port, the length, and the
/// checksum's zeros. Other carriers have 64.
const FRONT_BITS: f64 = 48.0;

/// The datagrams of so many octets that wrong bits in front of them should have cost, beside so many wrong ones in the others.
fn hit_in_front(told: DamageCounts, octets: u64) -> f64 {
    told.corrected_symbols as f64 * FRONT_BITS / (8 * octets.max(1)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::damage::{CauseShare, LossCause};

    fn losses(lost: f64) -> LossByCause {
        let share = |cause| CauseShare {
            cause,
            share: 0.2,
            low: 0.0,
            high: 1.0,
        };
        LossByCause {
            sent: 100.0,
            lost,
            shares: LossCause::ALL.map(share),
        }
    }

    #[test]
    fn what_parity_mends_later_is_no_loss() {
        let told = DamageCounts {
            whole: 900,
            mended: 40,
            beyond_repair: 60,
            corrected_symbols: 100,
        };
        let of = |later| {
            let settled = SettledCounts {
                mended_later: later,
                ..SettledCounts::default()
            };
            let counts = mended_later(told, settled);
            (counts.mended, counts.beyond_repair)
        };
        assert_eq!(of(50), (90, 10));
        assert_eq!(
            of(61),
            (100, 0),
            "the peer's word of the last ones is under way"
        );
    }

    #[test]
    fn losses_are_found_again_once_more_is_known() {
        let first = Found::of(None, 3, || Some(losses(1.0)));
        let again = Found::of(Some(first), 3, || unreachable!("nothing is new"));
        assert_eq!(again.losses, Some(losses(1.0)));
        let more = Found::of(Some(again), 4, || Some(losses(2.0)));
        assert_eq!((more.outcomes, more.losses), (4, Some(losses(2.0))));
    }
}
