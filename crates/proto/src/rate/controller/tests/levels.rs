//! Losses that follow the rate.

use super::*;

#[test]
fn a_step_that_loses_what_it_adds_is_taken_back_to_the_level_before() {
    let mut controller = RateController::new(RateConfig::default());
    controller.capacity = 1e6;
    controller.weigh_level(at(1_000), &second_of(1_000_000, 500_000));
    controller.leave_level();
    // Half more is sent, and as much arrives as before.
    controller.capacity = 1.5e6;
    let mut second = 2;
    while controller.cause != RateCause::Cut && second < 8 {
        controller.weigh_level(at(1_000 * second), &second_of(1_500_000, 500_000));
        second += 1;
    }
    assert!(
        (controller.capacity / 1e6 - 1.0).abs() < 0.02,
        "{}",
        controller.capacity
    );
    assert_eq!(controller.cause, RateCause::Cut);
    // The same with half more arriving stays.
    controller.leave_level();
    controller.capacity = 1.5e6;
    for second in 8..14 {
        controller.weigh_level(at(1_000 * second), &second_of(1_500_000, 750_000));
    }
    assert!((controller.capacity / 1.5e6 - 1.0).abs() < 1e-9);
}
