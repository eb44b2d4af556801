//! The octets of a file that are here, when they come in any order and some never do.
//!
//! # Promises
//! Memory is bounded by [`RANGES_MAX`] ranges. An arrival that would need one more is refused, and
//! its octets count as missing.

use std::collections::BTreeMap;
use std::ops::Range;

/// The most ranges kept, of 16 octets each. A file of 1 GB that loses every tenth message has 70,000.
const RANGES_MAX: usize = 1 << 20;

/// A set of octet positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Start to end, disjoint and not touching.
    ranges: BTreeMap<u64, u64>,
    covered: u64,
}

impl Coverage {
    /// Adds `range` and returns the number of its octets that are new. `None` if there is no room for it.
    pub fn add(&mut self, range: Range<u64>) -> Option<u64> {
        let Range { mut start, mut end } = range;
        if start >= end {
            return Some(0);
        }
        if self.ranges.len() >= RANGES_MAX {
            return None;
        }
        let mut known = 0;
        // The neighbours from right to left: all that start at or before the end, and touch.
        while let Some((&other_start, &other_end)) = self.ranges.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            self.ranges.remove(&other_start);
            known += other_end - other_start;
            start = start.min(other_start);
            end = end.max(other_end);
        }
        self.ranges.insert(start, end);
        let added = (end - start) - known;
        self.covered += added;
        Some(added)
    }

    /// The octets covered.
    pub const fn covered(&self) -> u64 {
        self.covered
    }

    /// The ranges that are there, in order.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|(&start, &end)| start..end)
    }

    /// The holes below `size`, in order.
    pub fn missing(&self, size: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let ends = std::iter::once(0).chain(self.ranges.values().copied());
        let starts = self.ranges.keys().copied().chain(std::iter::once(u64::MAX));
        ends.zip(starts).filter_map(move |(start, end)| {
            let end = end.min(size);
            (start < end).then_some(start..end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holes(coverage: &Coverage, size: u64) -> Vec<Range<u64>> {
        coverage.missing(size).collect()
    }

    #[test]
    fn holes_are_what_was_not_added() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.missing(10).next(), Some(0..10));
        assert_eq!(coverage.add(2..4), Some(2));
        assert_eq!(coverage.add(4..6), Some(2));
        assert_eq!(coverage.add(3..5), Some(0));
        assert_eq!(holes(&coverage, 10), [0..2, 6..10]);
        assert_eq!(coverage.add(0..20), Some(16));
        assert!(holes(&coverage, 10).is_empty());
        assert_eq!(coverage.covered(), 20);
    }

    proptest! {
        /// The reference is one flag for each octet.
        #[test]
        fn it_agrees_with_a_flag_for_each_octet(
            adds in proptest::collection::vec((0_usize..60, 0_usize..20), 0..40),
        ) {
            let mut coverage = Coverage::default();
            let mut flags = [false; 80];
            for (start, len) in adds {
                let slots = start..start + len;
                let new = flags[slots.clone()].iter().filter(|&&set| !set).count();
                flags[slots].fill(true);
                prop_assert_eq!(coverage.add(start as u64..(start + len) as u64), Some(new as u64));
            }
            prop_assert_eq!(coverage.covered(), flags.iter().filter(|&&set| set).count() as u64);
            let missing: Vec<u64> = coverage.missing(80).flatten().collect();
            let wanted: Vec<u64> = (0..80_u64).zip(flags).filter(|(_, set)| !set).map(|(i, _)| i).collect();
            prop_assert_eq!(missing, wanted);
        }
    }
}
