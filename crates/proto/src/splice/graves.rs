//! Outcomes of ended flows that an opener may still ask for.
//!
//! The last word of an acceptor may be lost with the connection that carried it. The opener then
//! asks again, and gets the outcome from here.
//!
//! The number of outcomes is bounded. Outcomes that the opener has heard are dropped first, whichever peer
//! they belong to: nobody asks for them. Then the peer with the most loses one, so that a peer displaces
//! nobody else's share. A peer that lost an unheard outcome is remembered, too: for a while, a flow that it
//! asks for again may have been carried already, and nothing says whether it was.

use super::address::FlowId;
use super::codes::{RefuseCode, ResetCode};
use crate::machine::PathId;
use crate::units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// The outcome of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Finished,
    Refused(RefuseCode),
    Reset(ResetCode),
}

#[derive(Debug)]
pub(super) struct Graves {
    /// Outcomes of all peers together, at most; beyond that one is forgotten for each new one.
    max: usize,
    /// The time for which an opener may ask.
    asked_within: Duration,
    count: usize,
    peers: BTreeMap<PathId, Ends>,
}

/// The outcomes of one peer's flows; the queues hold their names, the oldest first.
#[derive(Debug, Default)]
struct Ends {
    outcomes: BTreeMap<FlowId, Outcome>,
    heard: VecDeque<FlowId>,
    unheard: VecDeque<FlowId>,
    /// The time until which a forgotten, unheard outcome may be asked for.
    forgotten_until: Option<Instant>,
}

impl Graves {
    pub(super) const fn new(max: usize, asked_within: Duration) -> Self {
        Self {
            max,
            asked_within,
            count: 0,
            peers: BTreeMap::new(),
        }
    }

    /// Remembers the outcome of `flow`, and whether the opener knows it.
    pub(super) fn bury(
        &mut self,
        now: Instant,
        flow: FlowId,
        peer: PathId,
        outcome: Outcome,
        is_heard: bool,
    ) {
        let ends = self.peers.entry(peer).or_default();
        if ends.outcomes.insert(flow, outcome).is_some() {
            return;
        }
        if is_heard {
            ends.heard.push_back(flow);
        } else {
            ends.unheard.push_back(flow);
        }
        self.count += 1;
        if self.count > self.max {
            self.forget_one(now);
        }
    }

    fn forget_one(&mut self, now: Instant) {
        let heard = self.peers.values_mut().max_by_key(|ends| ends.heard.len());
        if let Some(ends) = heard
            && let Some(oldest) = ends.heard.pop_front()
        {
            ends.outcomes.remove(&oldest);
            self.count -= 1;
            return;
        }
        let most = self
            .peers
            .values_mut()
            .max_by_key(|ends| ends.unheard.len());
        if let Some(ends) = most
            && let Some(oldest) = ends.unheard.pop_front()
        {
            ends.outcomes.remove(&oldest);
            ends.forgotten_until = Some(now + self.asked_within);
            self.count -= 1;
        }
    }

    /// The outcome of `flow` that `peer` may hear.
    pub(super) fn outcome(&self, flow: FlowId, peer: PathId) -> Option<Outcome> {
        self.peers.get(&peer)?.outcomes.get(&flow).copied()
    }

    /// Whether a flow of `peer` may have ended here, unheard, and have been forgotten since.
    pub(super) fn has_forgotten(&self, now: Instant, peer: PathId) -> bool {
        let until = self.peers.get(&peer).and_then(|ends| ends.forgotten_until);
        until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PathId = PathId(1);
    const B: PathId = PathId(2);
    const ASKED_WITHIN: Duration = Duration::from_secs(60);
    const NOW: Instant = Instant::START;

    fn name(i: usize) -> FlowId {
        FlowId(u128::try_from(i).expect("small").to_be_bytes())
    }

    fn known(graves: &Graves, peer: PathId, of: core::ops::Range<usize>) -> Vec<usize> {
        of.filter(|i| graves.outcome(name(*i), peer).is_some())
            .collect()
    }

    #[test]
    fn the_peer_with_the_most_forgets_its_oldest_and_strangers_hear_nothing() {
        let mut graves = Graves::new(10, ASKED_WITHIN);
        for i in 0..4 {
            graves.bury(NOW, name(i), B, Outcome::Finished, false);
        }
        for i in 10..40 {
            graves.bury(NOW, name(i), A, Outcome::Finished, false);
        }
        assert_eq!(known(&graves, B, 0..40), [0, 1, 2, 3]);
        assert_eq!(known(&graves, A, 0..40), [34, 35, 36, 37, 38, 39]);
        assert!(graves.has_forgotten(NOW, A) && !graves.has_forgotten(NOW, B));
        assert!(!graves.has_forgotten(NOW + ASKED_WITHIN, A));
        // A peer that comes late gets its share from the one that has more.
        for i in 4..6 {
            graves.bury(NOW, name(i), B, Outcome::Finished, false);
        }
        assert_eq!(known(&graves, B, 0..40).len(), 5);
        assert_eq!(known(&graves, A, 0..40).len(), 5);
    }

    #[test]
    fn what_was_heard_gives_way_first_and_is_no_loss() {
        let mut graves = Graves::new(10, ASKED_WITHIN);
        graves.bury(NOW, name(0), A, Outcome::Finished, false);
        for i in 1..100 {
            graves.bury(NOW, name(i), A, Outcome::Finished, true);
        }
        assert_eq!(known(&graves, A, 0..3), [0]);
        for i in 100..109 {
            graves.bury(NOW, name(i), B, Outcome::Finished, false);
        }
        assert_eq!(known(&graves, A, 0..100), [0]);
        assert!(!graves.has_forgotten(NOW, A) && !graves.has_forgotten(NOW, B));
        graves.bury(NOW, name(109), B, Outcome::Finished, false);
        assert!(graves.has_forgotten(NOW, B) && !graves.has_forgotten(NOW, A));
        let counted = graves.peers.values().map(|ends| ends.outcomes.len());
        assert_eq!(counted.sum::<usize>(), graves.count);
    }
}
