//! An amount that parties share, so that no party can keep another out.
//!
//! Each entitled party has a *reserve* that nobody else can take. The rest is common and goes to whoever comes first.
//! Half of the amount is reserved, in equal parts. A party may therefore take the common half and its own reserve,
//! and the whole amount if it is the only party.
//!
//! # Promises
//! - An entitled party that holds less than its reserve finds room for the rest of it, whatever the others do. Where some
//!   took without asking for room, it finds what they left of the amount.
//! - All parties together never hold more than the amount, except for what was taken without asking
//!   for room.

use std::collections::BTreeMap;

/// The divisor of the amount that gives the sum of all reserves.
const RESERVED_PART: usize = 2;

/// The amount that one party holds, and its reserve.
#[derive(Clone, Copy, Debug, Default)]
struct Holding {
    held: usize,
    reserve: usize,
}

impl Holding {
    /// The part of the reserve that is not used.
    const fn unused(self) -> usize {
        self.reserve.saturating_sub(self.held)
    }
}

/// An amount, and the part of it that each party holds.
#[derive(Clone, Debug)]
pub struct Shares<K> {
    amount: usize,
    used: usize,
    /// The sum of the unused parts of all reserves.
    unused: usize,
    holdings: BTreeMap<K, Holding>,
}

impl<K: Ord + Copy> Shares<K> {
    /// Shares of `amount` in which no party has a reserve yet.
    pub const fn new(amount: usize) -> Self {
        Self {
            amount,
            used: 0,
            unused: 0,
            holdings: BTreeMap::new(),
        }
    }

    /// Entitles these parties, and no others, to a reserve. Amounts that are held stay held.
    pub fn entitle(&mut self, parties: impl IntoIterator<Item = K>) {
        for holding in self.holdings.values_mut() {
            holding.reserve = 0;
        }
        let parties: std::collections::BTreeSet<K> = parties.into_iter().collect();
        let reserve = self.amount / RESERVED_PART / parties.len().max(1);
        for party in parties {
            self.holdings.entry(party).or_default().reserve = reserve;
        }
        self.holdings
            .retain(|_, holding| holding.held > 0 || holding.reserve > 0);
        self.unused = self.holdings.values().map(|h| h.unused()).sum();
    }

    /// The amount that `party` may still take.
    pub fn room(&self, party: K) -> usize {
        let own = self.holding(party).unused();
        let left = self.amount.saturating_sub(self.used);
        let common = left.saturating_sub(self.unused - own);
        // What others took without asking comes out of the common part first, and out of no reserve while any is left.
        common.max(own.min(left))
    }

    /// The amount that `party` holds.
    pub fn held(&self, party: K) -> usize {
        self.holding(party).held
    }

    /// The amount that all parties hold together.
    pub const fn used(&self) -> usize {
        self.used
    }

    /// Adds `amount` to the part of `party`, whether there is room or not.
    pub fn take(&mut self, party: K, amount: usize) {
        self.set(party, self.held(party).saturating_add(amount));
    }

    /// Takes `amount` from the part of `party`.
    pub fn give_back(&mut self, party: K, amount: usize) {
        self.set(party, self.held(party).saturating_sub(amount));
    }

    fn holding(&self, party: K) -> Holding {
        self.holdings.get(&party).copied().unwrap_or_default()
    }

    fn set(&mut self, party: K, held: usize) {
        let old = self.holding(party);
        let new = Holding { held, ..old };
        self.used = (self.used - old.held).saturating_add(held);
        self.unused = self.unused - old.unused() + new.unused();
        if new.held == 0 && new.reserve == 0 {
            self.holdings.remove(&party);
        } else {
            self.holdings.insert(party, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn a_party_alone_may_have_everything_and_two_leave_each_other_a_quarter() {
        let mut shares = Shares::new(100);
        shares.entitle([1]);
        assert_eq!(shares.room(1), 100);
        shares.entitle([1, 2]);
        assert_eq!(shares.room(1), 75);
        shares.take(1, 75);
        assert_eq!((shares.room(1), shares.room(2)), (0, 25));
        assert_eq!(shares.room(3), 0, "who is not entitled has the common part");
    }

    #[test]
    fn what_is_held_stays_held_when_others_are_entitled() {
        let mut shares = Shares::new(100);
        shares.entitle([1, 2]);
        shares.take(1, 75);
        shares.entitle([2, 3]);
        assert_eq!(shares.used(), 75);
        assert_eq!(shares.room(1), 0);
        // The reserves of both are 50 together, and only 25 are left of them, for who comes first.
        assert_eq!((shares.room(2), shares.room(3)), (25, 25));
        shares.give_back(1, 75);
        assert_eq!((shares.room(2), shares.room(3)), (75, 75));
        assert_eq!(shares.holdings.len(), 2);
    }

    #[test]
    fn no_sequence_of_takings_keeps_a_party_from_its_reserve() {
        let mut rng = Rng::from_seed(17);
        for _ in 0..200 {
            let parties = 1 + rng.below(9);
            let amount = usize::try_from(1 + rng.below(300)).unwrap();
            let mut shares = Shares::new(amount);
            shares.entitle(0..parties);
            let reserve = amount / 2 / usize::try_from(parties).unwrap();
            for _ in 0..500 {
                let party = rng.below(parties);
                let room = shares.room(party);
                if rng.chance(0.7) {
                    let taken = rng.below(room as u64 + 1);
                    shares.take(party, usize::try_from(taken).unwrap());
                } else {
                    let given = rng.below(shares.held(party) as u64 + 1);
                    shares.give_back(party, usize::try_from(given).unwrap());
                }
                assert!(shares.used() <= amount);
                for other in 0..parties {
                    let missing = reserve.saturating_sub(shares.held(other));
                    assert!(shares.room(other) >= missing, "party {other}");
                }
            }
            for party in 0..parties {
                shares.give_back(party, usize::MAX);
            }
            assert_eq!(shares.used(), 0);
            let all = amount - reserve * usize::try_from(parties - 1).unwrap();
            assert_eq!(shares.room(0), all);
        }
    }
}
