//! The plan of a flow with a goal, and a flow that is thin no more.

use super::*;
use crate::repair::{Deliver, DeliveryOrder};
use crate::transport::aerotp::{ConnectionConfig, ModeRules};
use crate::transport::parts::RtoLimits;

/// The plan of a flow that loses one message in five, once all of the others came so long after they were written.
fn plan_after(age: Duration) -> RepairPlan {
    let goal = DeliveryGoal {
        deadline: Duration::from_millis(90),
        missed_millionths: 10_000,
        deliver: Deliver::All,
        order: DeliveryOrder::Kept,
    };
    let allowed = ThinRepair::at_most(90).with_goal(goal).expect("sound");
    let mut thin = Thin::new(allowed);
    let mut rtt = RttEstimator::new(RtoLimits::default());
    rtt.on_sample(Duration::from_millis(42));
    let mut now = Instant::START;
    for n in 0..500 {
        now += Duration::from_millis(20);
        thin.on_first_sent((now, TpduSeq(n)), (1_200, Some(Duration::ZERO)));
        let lost = n % 5 == 0;
        let settled = Settled {
            seq: TpduSeq(n),
            attempts: 1 + u16::from(lost),
            len: 1_200,
            took: age,
            age,
            late: LateRepetition::Never,
            first: if lost {
                FirstFate::Lost
            } else {
                FirstFate::Arrived
            },
        };
        thin.on_settled(now + age, settled, rtt.min());
    }
    thin.replan(now, &rtt, Duration::from_millis(48));
    thin.plan
}

#[test]
fn a_flow_that_missed_more_than_it_may_has_a_plan_that_misses_less() {
    let [in_time, late] = [42, 142].map(|age| plan_after(Duration::from_millis(age)));
    assert_ne!(in_time, late);
    let sent = |plan: RepairPlan| (plan.ahead_quarters, plan.times);
    assert!(sent(late) > sent(in_time), "{in_time:?} {late:?}");
}

#[test]
fn a_flow_that_became_bulk_waits_for_no_symbol() {
    let config = ConnectionConfig {
        thin: Some(ThinRepair::default()),
        ..ConnectionConfig::default()
    };
    let mut sender = Sender::new(&config, ModeRules::of(config.mode), 1_000);
    sender.board.wait_for_symbols(SYMBOL_WAIT);
    assert_eq!(sender.write(Instant::START, &[0; 5_000]), 5_000);
    assert!(sender.next_unit(Instant::START, &mut Vec::new()).is_some());
    assert_eq!(sender.board.symbol_wait(), Duration::ZERO);
}
