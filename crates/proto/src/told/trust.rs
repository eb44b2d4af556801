//! The trust in a link's words: what is told wrong is noticed, and not believed for a while.

use super::facts::ToldFacts;
use crate::units::{Duration, Instant};

/// The time after "down" in which what was under way may still arrive.
const STILL_ARRIVES: Duration = Duration::from_secs(2);
/// The silence beside "up" that shows it to be wrong.
const SILENT_FOR: Duration = Duration::from_secs(5);
/// The time for which a link is not believed, at first; it doubles each time, up to the most.
const DOUBTED_FOR: Duration = Duration::from_secs(30);
const DOUBTED_MOST: Duration = Duration::from_secs(3_600);
/// The time without a fault after which the next one counts as the first.
const FORGIVEN_AFTER: Duration = Duration::from_secs(3_600);

/// A way in which a link's words are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldFault {
    /// The path delivers much less than the rate that is told.
    LessDelivered,
    /// Data arrive from the peer while the link is told to be down.
    DataWhileDown,
    /// Nothing comes back while the link is told to be up.
    SilentWhileUp,
}

impl ToldFault {
    /// Its word in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LessDelivered => "less_delivered",
            Self::DataWhileDown => "data_while_down",
            Self::SilentWhileUp => "silent_while_up",
        }
    }

    /// The fault in words.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::LessDelivered => "the path delivers much less than the rate that the link tells",
            Self::DataWhileDown => "data arrive, while the link tells that it is down",
            Self::SilentWhileUp => "nothing comes back, while the link tells that it is up",
        }
    }
}

/// The path that a link serves, as a session sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkEvidence {
    /// The time at which something genuine last came from the peer on the path.
    pub last_heard: Option<Instant>,
    /// The time since when the session itself holds the path for down, for want of answers.
    pub silent_since: Option<Instant>,
    /// Whether the path was found to carry much less than it may, for long.
    pub carries_less: bool,
}

/// Times that are told, and compared with what is seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stated {
    pub(super) facts: ToldFacts,
    /// The time since when the link has been told to be up, or to be down.
    pub(super) since: Instant,
}

impl Stated {
    /// The fault that evidence shows since the link has been believed.
    pub(super) fn fault(
        &self,
        now: Instant,
        believed_since: Instant,
        seen: &LinkEvidence,
    ) -> Option<ToldFault> {
        let is_down = self.facts.is_up == Some(false);
        let since = self.since.max(believed_since);
        let heard = |at: Instant| at > since + STILL_ARRIVES;
        if is_down {
            return seen
                .last_heard
                .is_some_and(heard)
                .then_some(ToldFault::DataWhileDown);
        }
        let is_long = |silent: Instant| now.saturating_since(silent.max(since)) >= SILENT_FOR;
        if self.facts.is_up == Some(true) && seen.silent_since.is_some_and(is_long) {
            return Some(ToldFault::SilentWhileUp);
        }
        let is_less = self.facts.rate.is_some() && seen.carries_less;
        is_less.then_some(ToldFault::LessDelivered)
    }
}

/// The faults so far, and the one for which the link is not believed now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkTrust {
    fault: Option<ToldFault>,
    until: Instant,
    /// Faults in a row, for the length of the next doubt, and in all.
    in_a_row: u32,
    count: u64,
}

impl LinkTrust {
    /// The fault for which the link is not believed at `now`.
    pub(super) fn fault(&self, now: Instant) -> Option<ToldFault> {
        self.fault.filter(|_| now < self.until)
    }

    /// The time at which it is believed again.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        self.fault(now).map(|_| self.until)
    }

    /// The time since when it has been believed. What came while it was not convicts it of nothing again.
    pub(super) const fn since(&self) -> Instant {
        self.until
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn doubt(&mut self, now: Instant, fault: ToldFault) {
        if now.saturating_since(self.until) > FORGIVEN_AFTER {
            self.in_a_row = 0;
        }
        let doubled = DOUBTED_FOR * (1 << self.in_a_row.min(7));
        self.fault = Some(fault);
        self.until = now + doubled.min(DOUBTED_MOST);
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.count += 1;
    }
}
