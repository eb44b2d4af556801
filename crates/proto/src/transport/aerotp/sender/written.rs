//! The times at which octets were written that have not left yet: a deadline counts from there.

use crate::units::Instant;
use std::collections::VecDeque;

/// Writes that are told apart, at most.
const WRITES_MAX: usize = 1_024;

/// The writes that have not left, oldest first.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The stream position after each, and its time.
    writes: VecDeque<(u64, Instant)>,
}

impl Written {
    /// Notes a write that ended at this position. Too many are taken for one, as old as the first of them.
    pub(super) fn note(&mut self, now: Instant, end: u64) {
        let joins = self.writes.len() >= WRITES_MAX;
        match self.writes.back_mut() {
            Some((last, at)) if joins || *at == now => *last = end,
            _ => self.writes.push_back((end, now)),
        }
    }

    /// The time at which the octet at `position` was written, if that is known.
    pub(super) fn at(&self, position: u64) -> Option<Instant> {
        let holds = |(end, _): &&(u64, Instant)| position < *end;
        self.writes.iter().find(holds).map(|(_, at)| *at)
    }

    /// Forgets what lies before `position`.
    pub(super) fn forget_before(&mut self, position: u64) {
        while self.writes.front().is_some_and(|(end, _)| *end <= position) {
            self.writes.pop_front();
        }
    }

    /// Frees memory that the remembered writes do not need.
    pub(super) fn give_back(&mut self) {
        self.writes.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Duration;

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    #[test]
    fn each_octet_has_the_time_of_its_write_until_it_has_left() {
        let mut written = Written::default();
        written.note(at(1), 100);
        written.note(at(2), 150);
        written.note(at(2), 200);
        assert_eq!(
            [0, 99, 100, 199].map(|place| written.at(place)),
            [1, 1, 2, 2].map(|ms| Some(at(ms)))
        );
        assert_eq!(written.at(200), None);
        written.forget_before(100);
        assert_eq!((written.at(0), written.writes.len()), (Some(at(2)), 1));
        written.forget_before(200);
        assert_eq!(written.at(199), None);
    }

    #[test]
    fn writes_without_end_take_a_bounded_place_and_are_never_taken_for_younger() {
        let mut written = Written::default();
        for write in 0..5_000 {
            written.note(at(write), write + 1);
        }
        assert_eq!(written.writes.len(), WRITES_MAX);
        for place in 0..5_000 {
            assert!(written.at(place).is_some_and(|since| since <= at(place)));
        }
    }
}
