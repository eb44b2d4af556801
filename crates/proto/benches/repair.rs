//! The cost of choosing the repair of one thin flow with a deadline, on one core, by loss and by the time between messages.
//!
//! `cargo bench -p fulmar-proto --bench repair`

use core::hint::black_box;
use criterion::{Criterion, criterion_group, criterion_main};
use fulmar_proto::repair::{
    Deliver, DeliveryGoal, DeliveryOrder, FlowShape, LossPattern, RepairPlan,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::Duration;
use fulmar_proto::wire::TpduSeq;

/// Loss of so many of a hundred, each by itself.
fn loss(percent: u64) -> LossPattern {
    let mut pattern = LossPattern::default();
    let mut rng = Rng::from_seed(percent);
    for n in 0..4_000 {
        pattern.note(TpduSeq(n), rng.below(100) < percent);
    }
    pattern
}

fn choice(criterion: &mut Criterion) {
    for (order, deliver) in [
        (DeliveryOrder::Kept, Deliver::All),
        (DeliveryOrder::Any, Deliver::ByDeadline),
    ] {
        for deadline in [60, 150] {
            let goal = DeliveryGoal {
                deadline: Duration::from_millis(deadline),
                missed_millionths: DeliveryGoal::usual_miss(deliver),
                deliver,
                order,
            };
            for gap in [1, 5, 20] {
                let shape = FlowShape {
                    gap: Duration::from_millis(gap),
                    one_way: Duration::from_millis(21),
                    round: Duration::from_millis(48),
                };
                for percent in [1, 10, 30, 50] {
                    let pattern = loss(percent);
                    let name =
                        format!("{order:?} order, {deadline} ms, every {gap} ms, {percent} % lost");
                    criterion.bench_function(&name, |bencher| {
                        bencher.iter(|| {
                            let seen = (black_box(&pattern), &shape);
                            RepairPlan::choose(black_box(&goal), 90, seen, RepairPlan::PLAIN)
                        });
                    });
                }
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300));
    targets = choice
}
criterion_main!(benches);
