//! How flows ended that an opener may still ask for.
//!
//! The last word of an acceptor may be lost with the connection that carried it. The opener then
//! asks again, and hears it from here.

use super::address::FlowId;
use super::codes::{RefuseCode, ResetCode};
use crate::machine::PathId;
use std::collections::{BTreeMap, VecDeque};

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Finished,
    Refused(RefuseCode),
    Reset(ResetCode),
}

/// Flows remembered; beyond, the oldest is forgotten.
const GRAVES_MAX: usize = 16_384;

#[derive(Debug, Default)]
pub(super) struct Graves {
    outcomes: BTreeMap<FlowId, (PathId, Outcome)>,
    order: VecDeque<FlowId>,
}

impl Graves {
    pub(super) fn bury(&mut self, flow: FlowId, peer: PathId, outcome: Outcome) {
        if self.order.len() == GRAVES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.outcomes.remove(&oldest);
        }
        if self.outcomes.insert(flow, (peer, outcome)).is_none() {
            self.order.push_back(flow);
        }
    }

    /// What `peer` may hear of `flow`.
    pub(super) fn outcome(&self, flow: FlowId, peer: PathId) -> Option<Outcome> {
        let (owner, outcome) = self.outcomes.get(&flow)?;
        (*owner == peer).then_some(*outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(i: usize) -> FlowId {
        FlowId(u128::try_from(i).expect("small").to_be_bytes())
    }

    #[test]
    fn the_oldest_is_forgotten_first_and_strangers_hear_nothing() {
        let mut graves = Graves::default();
        for i in 0..=GRAVES_MAX {
            graves.bury(name(i), PathId(1), Outcome::Finished);
        }
        assert_eq!(graves.outcome(name(0), PathId(1)), None);
        assert_eq!(graves.outcome(name(1), PathId(1)), Some(Outcome::Finished));
        assert_eq!(graves.outcome(name(1), PathId(2)), None);
        assert_eq!(graves.outcomes.len(), graves.order.len());
    }
}
