//! The treatment of a flow: the opener's rules choose it, and the opening tells the acceptor.

use crate::fec::block::BlockPlan;
use crate::machine::Priority;
use crate::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use crate::transport::aerotp::{ConfigError, Share, ThinRepair};
use crate::units::{ByteCount, Duration};
use crate::wire::Mode;
use crate::wire::aerotp::FecStrength;

/// The shortest part of a deadline that one of several hops is given.
const PART_MIN: Duration = Duration::from_millis(1);
/// The least part of what may be missed that one of several hops is given, of a million: the unit in which goals are kept.
const MISSED_MIN: u32 = 10;

/// The class that a flow is counted under, 0 ..= 255; a configuration gives it a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u8);

/// A flow's treatment in both directions. It travels with the flow's opening, so that the acceptor
/// needs no settings of its own for the way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowClass {
    /// The AeroTP mode. A stream needs one that delivers everything.
    pub mode: Mode,
    /// Precedence over other flows.
    pub priority: Priority,
    /// The number of the class.
    pub id: ClassId,
    /// The class's share of the rate among classes of the same priority.
    pub weight: u8,
    /// Datagrams: the greatest age of a message, from its acceptance to its delivery.
    pub deadline: Option<Duration>,
    /// Parity inside each TPDU.
    pub fec_words: FecStrength,
    /// Parity across TPDUs, in modes that allow it.
    pub block: Option<BlockPlan>,
    /// Streams: the repair of what leaves as it is written, if it is another than the gateway's.
    pub thin: Option<ThinRepair>,
    /// Datagrams: the same.
    pub thin_messages: Option<ThinRepair>,
    /// Streams: octets accepted from one side's client that the other side's host has not
    /// acknowledged yet, at most; 4 MiB and more are up to twelve times as many where the path's rate and round trip take
    /// so many. Datagrams: octets that wait to be sent, at most.
    pub window: ByteCount,
    /// Streams: whether the flow outlives its AeroTP connection. The driver then keeps every octet
    /// past the last [`Delivered`](super::FlowEvent::Delivered).
    pub resume: bool,
    /// Streams with `resume`: whether the flow also outlives its opener's gateway. If not, the acceptor
    /// ends it as soon as it knows that the opener's gateway has restarted.
    pub durable: bool,
}

/// A window of so many octets or more grows where a link takes more, to so many times as many at most.
const GROWS_FROM: u64 = 4 << 20;
const GROWS_BY: u64 = 12;

impl FlowClass {
    /// The most that [`FlowClass::window`] grows to, on a path that takes more in flight.
    pub(super) const fn window_most(&self) -> u64 {
        let window = self.window.0;
        if window >= GROWS_FROM {
            window.saturating_mul(GROWS_BY)
        } else {
            window
        }
    }

    /// Refuses a goal that no peer takes.
    ///
    /// # Errors
    /// [`ConfigError`] names it.
    pub(super) fn checked(&self) -> Result<(), ConfigError> {
        let mut goals = [self.thin, self.thin_messages].into_iter().flatten();
        goals.try_for_each(|thin| thin.checked_for_peer())
    }

    /// The repair of a connection that carries a stream, which is worth nothing with holes; `general` is the gateway's.
    pub(super) fn thin_stream(&self, general: Option<ThinRepair>) -> Option<ThinRepair> {
        self.thin.or(general).map(in_order)
    }

    /// The repair of a connection that carries messages as a stream.
    pub(super) fn thin_messages_in_order(&self, general: Option<ThinRepair>) -> Option<ThinRepair> {
        self.thin_messages.or(general).map(in_order)
    }

    /// The time that a message has from its writing to its reading, if it has a limit.
    pub fn message_deadline(&self) -> Option<Duration> {
        let goals = [self.thin_messages, self.thin].into_iter().flatten();
        let mut goals = goals.filter_map(|thin| thin.goal());
        self.deadline.or_else(|| Some(goals.next()?.deadline))
    }

    /// The class of one of `hops` hops that a message crosses one after the other within `total`: each hop has an equal part.
    /// Returns what is left for the others, too. A class without deadlines stays as it is.
    #[must_use]
    pub fn for_one_hop(self, total: Option<Duration>, hops: u32) -> (Self, Option<Duration>) {
        let Some(total) = total.filter(|_| hops > 1 || self.message_deadline().is_some()) else {
            return (self, None);
        };
        // A peer may say that nothing is left: a deadline of nothing would drop each message before it could leave.
        let part = (total / hops.max(1)).max(PART_MIN);
        let shorter = |thin: ThinRepair| {
            let goal = thin.goal().map(|goal| DeliveryGoal {
                deadline: part,
                ..goal
            });
            // A part too short to be a goal leaves the whole one.
            goal.and_then(|goal| thin.with_goal(goal).ok())
                .unwrap_or(thin)
        };
        let one = Self {
            deadline: self.deadline.map(|_| part),
            thin: self.thin.map(shorter),
            thin_messages: self.thin_messages.map(shorter),
            ..self
        };
        (one, (hops > 1).then(|| total.saturating_sub(part)))
    }

    /// The class of one of `hops` hops, where each may miss an equal part of what all of them may miss together.
    #[must_use]
    pub fn with_misses_shared(self, hops: u32) -> Self {
        let stricter = |thin: ThinRepair| {
            let goal = thin.goal().map(|goal| {
                let part = goal.missed_millionths / hops.max(1);
                let least = goal.missed_millionths.min(MISSED_MIN);
                DeliveryGoal {
                    missed_millionths: part.max(least),
                    ..goal
                }
            });
            // A goal that was sound stays so.
            goal.and_then(|goal| thin.with_goal(goal).ok())
                .unwrap_or(thin)
        };
        Self {
            thin: self.thin.map(stricter),
            thin_messages: self.thin_messages.map(stricter),
            ..self
        }
    }

    /// The connection's share, as the scheduler sees it.
    pub(super) const fn share(&self) -> Share {
        Share {
            class: self.id.0,
            weight: self.weight,
        }
    }
}

/// The same repair for a stream, of which all is delivered.
fn in_order(thin: ThinRepair) -> ThinRepair {
    let goal = thin.goal().map(|goal| DeliveryGoal {
        deliver: Deliver::All,
        order: DeliveryOrder::Kept,
        ..goal
    });
    // Figures that were sound stay so.
    let same = goal.and_then(|goal| thin.with_goal(goal).ok());
    same.unwrap_or(thin)
}

impl Default for FlowClass {
    fn default() -> Self {
        Self {
            mode: Mode::NearReliable,
            priority: Priority(0),
            id: ClassId(0),
            weight: 1,
            deadline: None,
            fec_words: FecStrength::NONE,
            block: None,
            thin: None,
            thin_messages: None,
            window: ByteCount(1 << 20),
            resume: false,
            durable: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_shared_out_among_the_hops_and_nothing_of_it_is_lost() {
        let class = FlowClass {
            deadline: Some(Duration::from_millis(300)),
            ..FlowClass::default()
        };
        let (first, left) = class.for_one_hop(class.message_deadline(), 3);
        assert_eq!(first.deadline, Some(Duration::from_millis(100)));
        assert_eq!(left, Some(Duration::from_millis(200)));
        let (second, left) = first.for_one_hop(left, 2);
        assert_eq!(second.deadline, Some(Duration::from_millis(100)));
        let (third, left) = second.for_one_hop(left, 1);
        assert_eq!(
            (third.deadline, left),
            (Some(Duration::from_millis(100)), None)
        );
        // A hop whose gateway says that next to nothing is left still has a moment.
        let (late, _) = class.for_one_hop(Some(Duration::from_micros(1)), 7);
        assert_eq!(late.deadline, Some(PART_MIN));
        let plain = FlowClass::default();
        assert_eq!(
            plain.for_one_hop(plain.message_deadline(), 3),
            (plain, None)
        );
    }

    #[test]
    fn a_goal_s_deadline_is_shared_out_too() {
        let goal = DeliveryGoal {
            deadline: Duration::from_millis(200),
            missed_millionths: 1_000,
            deliver: Deliver::ByDeadline,
            order: DeliveryOrder::Any,
        };
        let thin = ThinRepair::at_most(40).with_goal(goal).expect("in range");
        let class = FlowClass {
            thin_messages: Some(thin),
            ..FlowClass::default()
        };
        let (one, left) = class.for_one_hop(class.message_deadline(), 2);
        let part = one.thin_messages.and_then(|thin| thin.goal());
        assert_eq!(
            part.map(|goal| goal.deadline),
            Some(Duration::from_millis(100))
        );
        assert_eq!(left, Some(Duration::from_millis(100)));
    }

    #[test]
    fn what_may_be_missed_is_shared_out_among_the_hops() {
        let with = |missed_millionths| {
            let goal = DeliveryGoal {
                deadline: Duration::from_millis(200),
                missed_millionths,
                deliver: Deliver::ByDeadline,
                order: DeliveryOrder::Any,
            };
            let thin = ThinRepair::at_most(40).with_goal(goal).expect("in range");
            FlowClass {
                thin: Some(thin),
                thin_messages: Some(thin),
                ..FlowClass::default()
            }
        };
        let missed = |class: FlowClass| {
            let missed = |thin: Option<ThinRepair>| thin?.goal().map(|goal| goal.missed_millionths);
            assert_eq!(missed(class.thin), missed(class.thin_messages));
            missed(class.thin).expect("a goal")
        };
        for (all, hops, part) in [
            (900, 3, 300),
            (900, 1, 900),
            (900, 0, 900),
            (10, 3, 10),
            (0, 3, 0),
        ] {
            assert_eq!(
                missed(with(all).with_misses_shared(hops)),
                part,
                "{all} over {hops}"
            );
        }
        assert_eq!(
            FlowClass::default().with_misses_shared(3),
            FlowClass::default()
        );
    }
}
