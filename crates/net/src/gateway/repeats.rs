//! Keeps a log line that repeats from filling the log.

use fulmar_proto::units::{Duration, Instant};
use std::collections::BTreeMap;

/// The time in which a kind of line is written once.
const PAUSE: Duration = Duration::from_secs(10);

/// Lines that repeat each other: of one event, for one reason, about one peer by its place in the configuration.
type Kind = (&'static str, &'static str, Option<usize>);

/// The time at which each kind of line was last written, and how often it was left out since. The code bounds the events and
/// reasons, the configuration the peers.
#[derive(Debug, Default)]
pub(super) struct Repeats(BTreeMap<Kind, (Instant, u64)>);

impl Repeats {
    /// Allows a line of this kind now, with the number that were left out since the last; `None` forbids it.
    pub(super) fn may(&mut self, now: Instant, kind: &'static str) -> Option<u64> {
        self.may_say(now, (kind, "", None))
    }

    /// Allows a line of a kind about a peer, which hides none about another.
    pub(super) fn may_about(
        &mut self,
        now: Instant,
        kind: &'static str,
        peer: Option<usize>,
    ) -> Option<u64> {
        self.may_say(now, (kind, "", peer))
    }

    /// Allows a line of a kind that has several reasons, none of which hides another.
    pub(super) fn may_for(
        &mut self,
        now: Instant,
        kind: &'static str,
        reason: &'static str,
    ) -> Option<u64> {
        self.may_say(now, (kind, reason, None))
    }

    fn may_say(&mut self, now: Instant, kind: Kind) -> Option<u64> {
        match self.0.get_mut(&kind) {
            Some((last, skipped)) if now.saturating_since(*last) < PAUSE => {
                *skipped += 1;
                None
            }
            other => {
                let skipped = other.map_or(0, |(_, skipped)| *skipped);
                self.0.insert(kind, (now, 0));
                Some(skipped)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_let_through_once_in_a_while_with_the_number_left_out() {
        let mut repeats = Repeats::default();
        let at = |seconds| Instant::START + Duration::from_secs(seconds);
        assert_eq!(repeats.may(at(0), "a"), Some(0));
        assert_eq!(repeats.may(at(1), "a"), None);
        assert_eq!(repeats.may(at(1), "b"), Some(0), "another kind");
        assert_eq!(repeats.may(at(9), "a"), None);
        assert_eq!(repeats.may(at(10), "a"), Some(2));
        assert_eq!(repeats.may(at(20), "a"), Some(0));
        assert_eq!(repeats.may_for(at(20), "a", "why"), Some(0));
        assert_eq!(repeats.may_for(at(21), "a", "why"), None);
        assert_eq!(repeats.may_for(at(21), "a", "another"), Some(0));
        assert_eq!(repeats.may_about(at(21), "b", Some(0)), Some(0));
        assert_eq!(repeats.may_about(at(22), "b", Some(0)), None);
        assert_eq!(repeats.may_about(at(22), "b", Some(1)), Some(0), "a peer");
    }
}
