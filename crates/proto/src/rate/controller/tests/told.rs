//! Bounds and rates that somebody tells.

use super::*;

#[test]
fn a_bound_is_never_passed_and_is_named_as_the_reason() {
    let bound = Bitrate::from_bits_per_second(4_000_000);
    let mut pipe = Pipe::new(RateConfig {
        bound: Some(bound),
        ..RateConfig::default()
    });
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(1), spacing, delay);
    let trained = pipe.next;
    while pipe.now < at(5_000) {
        let later = pipe.now + Duration::from_millis(100);
        pipe.run(later, spacing, delay);
        assert!(pipe.controller.pacing(pipe.now) <= bound);
    }
    let sent = (pipe.next - trained) as f64 * 12_000.0 / 5.0;
    assert!((3.8e6..4.1e6).contains(&sent), "{sent}");
    assert_eq!(pipe.controller.belief().cause, RateCause::Bound);
}

#[test]
fn a_bound_that_is_lowered_below_the_rate_is_the_reason_at_once() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(3_000), spacing, delay);
    let found = pipe.controller.belief();
    assert!(found.rate > Bitrate::from_bits_per_second(8_000_000));
    let wider = Bitrate::from_bits_per_second(50_000_000);
    pipe.controller.set_bound(Some(wider));
    assert_eq!(pipe.controller.belief().cause, found.cause);
    let bound = Bitrate::from_bits_per_second(2_000_000);
    pipe.controller.set_bound(Some(bound));
    let lowered = pipe.controller.belief();
    assert_eq!((lowered.cause, lowered.rate), (RateCause::Bound, bound));
    assert_eq!(lowered.link, found.link, "what the link showed is kept");
}

#[test]
fn a_thousand_told_rates_without_a_datagram_leave_one_stretch_to_judge() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_millis(12), Duration::from_millis(20));
    pipe.run(at(5_000), spacing, delay);
    let before = pipe.controller.epochs.len();
    for word in 0..1_000_u64 {
        let told = Bitrate::from_bits_per_second(2_000_000 + word * 1_000);
        pipe.controller.try_told(pipe.now, told);
    }
    assert!(pipe.controller.epochs.len() <= before + 1);
}
