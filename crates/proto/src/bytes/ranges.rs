//! Runs of stream positions.

use core::ops::Range;

/// Disjoint runs that do not touch, in ascending order.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    runs: Vec<Range<u64>>,
}

impl RangeSet {
    /// The number of runs.
    pub const fn len(&self) -> usize {
        self.runs.len()
    }

    /// The runs in ascending order.
    pub fn runs(&self) -> core::slice::Iter<'_, Range<u64>> {
        self.runs.iter()
    }

    /// Octets of memory allocated, used or not.
    pub const fn memory_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Range<u64>>()
    }

    /// Whether there are no runs.
    pub const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs that touch `range`, as a span of indices.
    fn touching(&self, range: &Range<u64>) -> Range<usize> {
        let first = self.runs.partition_point(|run| run.end < range.start);
        let last = self.runs.partition_point(|run| run.start <= range.end);
        first..last.max(first)
    }

    /// Adds `range` and returns the run it has become part of.
    pub fn insert(&mut self, range: Range<u64>) -> Range<u64> {
        let touching = self.touching(&range);
        let joined = self
            .runs
            .get(touching.clone())
            .unwrap_or_default()
            .iter()
            .fold(range, |joined, run| {
                joined.start.min(run.start)..joined.end.max(run.end)
            });
        self.runs.splice(touching, [joined.clone()]);
        joined
    }

    /// The parts of `range` that are in no run.
    pub fn missing(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        let mut at = range.start;
        for run in self.runs.get(self.touching(range)).unwrap_or_default() {
            if run.start > at {
                parts.push(at..run.start.min(range.end));
            }
            at = at.max(run.end);
        }
        if at < range.end {
            parts.push(at..range.end);
        }
        parts
    }

    /// Removes and returns the run that begins at or before `position`, if one does.
    pub fn take_at(&mut self, position: u64) -> Option<Range<u64>> {
        let first = self.runs.first()?;
        (first.start <= position).then(|| self.runs.remove(0))
    }

    /// The run that holds `position`.
    pub fn run_at(&self, position: u64) -> Option<&Range<u64>> {
        let index = self.runs.partition_point(|run| run.end <= position);
        self.runs.get(index).filter(|run| run.start <= position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_what_a_naive_set_of_positions_has(
            inserts in proptest::collection::vec((0_u64..60, 1_u64..9), 0..30),
            probe in (0_u64..60, 1_u64..20),
        ) {
            let (mut set, mut naive) = (RangeSet::default(), [false; 100]);
            for (start, len) in inserts {
                let run = set.insert(start..start + len);
                prop_assert!(run.start <= start && run.end >= start + len);
                for position in start..start + len {
                    naive[usize::try_from(position).unwrap()] = true;
                }
            }
            for (position, &held) in (0..).zip(&naive) {
                prop_assert_eq!(set.run_at(position).is_some(), held);
            }
            let touching = set.runs.windows(2).any(|pair| pair[0].end >= pair[1].start);
            prop_assert!(!touching);
            let range = probe.0..probe.0 + probe.1;
            let missing: Vec<u64> = set.missing(&range).into_iter().flatten().collect();
            let expected: Vec<u64> = range
                .filter(|&p| !naive[usize::try_from(p).unwrap()])
                .collect();
            prop_assert_eq!(missing, expected);
        }
    }
}
