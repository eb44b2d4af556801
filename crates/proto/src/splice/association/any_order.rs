//! Messages in any order: those that are late are given up, and nobody waits for what is behind them.
//!
//! The opener says its goal behind its opening, and sends whole records in each TPDU. An acceptor that follows the goal
//! reads them as they come from then on, and says the goal back before anything else. From there the opener does the
//! same. An acceptor that does not know the goal ignores it, and both read a stream, which whole records are, too.
//!
//! Until both have said the goal, the opener takes nothing back. It passes over what the acceptor takes back, since the
//! acceptor cannot know when it was heard.

use super::super::shared::Shared;
use super::{Association, Phase, Way};
use crate::splice::records::RecordReader;
use crate::splice::restored::Role;
use crate::transport::aerotp::{AckScheme, ConnectionId, ModeRules, ThinRepair};
use crate::units::{Duration, Instant};

/// The part of a round trip by which a message takes longer than half of it: answers are shorter.
const ANSWERS_SHORTER: u32 = 32;

/// The messages that a connection has given up so far: its own before they left, and the far side's on their way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GivenUp {
    of: Option<ConnectionId>,
    unsent: u64,
    withdrawn: u64,
}

impl Association {
    /// Whether the flow's goal is worth nothing in order, and its mode can follow it.
    pub(super) fn is_in_any_order(&self) -> bool {
        let rules = ModeRules::of(self.class.mode);
        let goal = self.class.thin_messages.and_then(|thin| thin.goal());
        let can = rules.complete && rules.acks == AckScheme::Aggregated;
        can && goal.is_some_and(|goal| goal.takes_back())
    }

    /// The goal that an opening says, if there is one.
    pub(super) fn goal_to_say(&self) -> Option<ThinRepair> {
        let thin = self.class.thin_messages?;
        let can = ModeRules::of(self.class.mode).acks == AckScheme::Aggregated;
        let said = if self.is_in_any_order() {
            Some(thin)
        } else {
            self.class.thin_messages_in_order(None)
        };
        said.filter(|_| can)
    }

    /// Opener: lets the acceptor take back what it sends, on a new connection.
    pub(super) fn ask_for_any_order(&self, now: Instant, shared: &mut Shared) {
        if let Way::AnyOrder { id, .. } = self.way {
            shared.endpoint.do_without_withdrawn(now, id);
        }
    }

    /// Reads as it comes, and takes back what is late, from now on.
    pub(super) fn begin_any_order(&mut self, now: Instant, shared: &mut Shared) {
        if let (&Way::AnyOrder { id, .. }, Some(thin)) = (&self.way, self.class.thin_messages) {
            shared.endpoint.read_in_any_order(now, id);
            shared.endpoint.allow_thin(now, id, thin);
            self.owes_goal = self.role == Role::Acceptor;
        }
    }

    /// Takes the goal that the far side says.
    pub(super) fn on_goal(&mut self, now: Instant, shared: &mut Shared, thin: ThinRepair) {
        if self.role == Role::Opener {
            let follows = thin.goal().is_some_and(|goal| goal.takes_back());
            if follows && self.is_in_any_order() {
                self.begin_any_order(now, shared);
            }
            return;
        }
        self.class.thin_messages = Some(thin);
        let Some(id) = self.connection() else { return };
        // What was written as a stream cannot be told from whole records.
        let is_fresh = self.phase == Phase::Requested && matches!(self.way, Way::Stream(_));
        if is_fresh && self.is_in_any_order() {
            let reader = RecordReader::default();
            self.way = Way::AnyOrder { id, reader };
            self.begin_any_order(now, shared);
        } else if let (Way::Stream(_), Some(thin)) =
            (&self.way, self.class.thin_messages_in_order(None))
        {
            shared.endpoint.allow_thin(now, id, thin);
        }
    }

    /// The age beyond which a message is late. Where late ones are given up the way counts, of which half the shortest
    /// round trip is known.
    pub(super) fn late_after(&self, shared: &Shared) -> Option<Duration> {
        let deadline = self.class.deadline?;
        let Way::AnyOrder { id, .. } = self.way else {
            return Some(deadline);
        };
        // An end that mostly receives may get the first answer to something of its own late.
        let told = || shared.least_round_trips.get(&self.peer).copied();
        let seen = shared.endpoint.rtt_min(id);
        let round_trip = seen.or_else(told).unwrap_or_default();
        let way = round_trip / 2 + round_trip / ANSWERS_SHORTER;
        Some(deadline.saturating_sub(way))
    }

    /// Counts messages that were given up since the last call: where they were last.
    pub(super) fn count_given_up(&mut self, shared: &mut Shared) {
        let Way::AnyOrder { id, .. } = self.way else {
            return;
        };
        let Some(counters) = shared.endpoint.counters(id) else {
            return;
        };
        let now = GivenUp {
            of: Some(id),
            unsent: counters.late_unsent,
            withdrawn: counters.late_withdrawn,
        };
        let before = core::mem::replace(&mut self.given_up, now);
        let before = if before.of == now.of {
            before
        } else {
            GivenUp::default()
        };
        if (now.unsent, now.withdrawn) != (before.unsent, before.withdrawn) {
            let class = shared.class(self.class.id);
            class.late_unsent += now.unsent - before.unsent;
            class.late_given_up += now.withdrawn - before.withdrawn;
        }
    }
}
