//! The times at which lines are given up.

use crate::board::LineId;
use fulmar_proto::units::Instant;
use std::collections::BTreeMap;

/// One time for each line that has a limit.
#[derive(Debug)]
pub(crate) struct LineLimits(BTreeMap<LineId, Instant>);

impl LineLimits {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Gives a line up at `at`, or at the time that it has.
    pub(crate) fn start(&mut self, line: LineId, at: Instant) {
        self.0.entry(line).or_insert(at);
    }

    pub(crate) fn stop(&mut self, line: LineId) {
        self.0.remove(&line);
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }

    /// Takes the lines whose time has come.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<LineId> {
        let due = self.0.iter().filter(|(_, at)| **at <= now);
        let due: Vec<LineId> = due.map(|(line, _)| *line).collect();
        self.0.retain(|_, at| *at > now);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::units::Duration;

    #[test]
    fn a_line_keeps_its_first_limit_and_is_due_once() {
        let at = |seconds| Instant::START + Duration::from_secs(seconds);
        let mut limits = LineLimits::new();
        limits.start(1, at(2));
        limits.start(1, at(9));
        limits.start(2, at(3));
        limits.start(3, at(1));
        limits.stop(3);
        assert_eq!(limits.next(), Some(at(2)));
        assert_eq!(limits.take_due(at(2)), [1]);
        assert!(limits.take_due(at(2)).is_empty());
        assert_eq!(limits.next(), Some(at(3)));
    }
}
