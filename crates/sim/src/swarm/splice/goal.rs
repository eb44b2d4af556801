//! Goals of gateways' flows.

use super::medium::Draw;
use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::FlowClass;
use fulmar_proto::transport::aerotp::ThinRepair;
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Mode;

/// The class with a goal, as a gateway's class with `mode = "auto"` has it.
pub(super) fn drawn(rng: &mut Rng, class: FlowClass) -> FlowClass {
    let mut draw = Draw { rng };
    let deadline = Duration::from_millis(draw.one_of(&[5, 20, 60, 150, 400, 2_000]));
    let overhead_percent = draw.one_of(&[0, 20, 90, 100]);
    let missed_millionths = draw.one_of(&[0, 700, 10_000, 200_000]);
    let (deliver, order) = draw.one_of(&[
        (Deliver::ByDeadline, DeliveryOrder::Any),
        (Deliver::ByDeadline, DeliveryOrder::Any),
        (Deliver::All, DeliveryOrder::Kept),
    ]);
    let repair = |deliver, order| {
        let goal = DeliveryGoal {
            deadline,
            missed_millionths,
            deliver,
            order,
        };
        ThinRepair::at_most(overhead_percent).with_goal(goal).ok()
    };
    FlowClass {
        mode: Mode::HybridNackMack,
        deadline: (deliver == Deliver::ByDeadline).then_some(deadline),
        thin: repair(Deliver::All, DeliveryOrder::Kept),
        thin_messages: repair(deliver, order),
        ..class
    }
}

/// The least time for which a receiver remembers how soon a message can come.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The promise that nothing is read late, where late messages are given up: none comes later than its deadline and the way of the
/// slowest datagram. A receiver knows how late a message is from those before it, so the promise holds while one of the last
/// minute came at once. The first messages of a flow can come late: nothing is taken back before the far side has answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    deadline: Duration,
    /// The way of the slowest datagram.
    way: Duration,
    /// The last time at which a message came at once.
    prompt_at: Option<Instant>,
    /// Messages of which the receiver could know how late they are.
    judged: u64,
}

impl Due {
    pub(super) fn of(class: &FlowClass, way: Duration) -> Option<Self> {
        let goal = class.thin_messages?.goal()?;
        goal.takes_back().then_some(Self {
            deadline: goal.deadline,
            way,
            prompt_at: None,
            judged: 0,
        })
    }

    /// Messages that would have broken the promise if they had come late enough.
    pub(super) const fn judged(&self) -> u64 {
        self.judged
    }

    /// Whether the next message, which came at `now` and is as old as `age`, breaks the promise.
    pub(super) fn is_missed(&mut self, now: Instant, age: Duration) -> bool {
        let knows = self
            .prompt_at
            .is_some_and(|at| now.saturating_since(at) < REMEMBERED);
        if age <= self.way {
            self.prompt_at = Some(now);
        }
        self.judged += u64::from(knows);
        knows && age > self.deadline + self.way
    }
}
