//! The rate that is found on links of many kinds.

use super::*;

#[test]
fn the_link_s_rate_is_found_and_kept() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(500), spacing, delay);
    let found = pipe.rate() / 10e6;
    assert!((0.85..1.1).contains(&found), "{found}");
    for second in 1..20 {
        pipe.run(at(1_000 * second), spacing, delay);
        let found = pipe.rate() / 10e6;
        assert!((0.93..1.1).contains(&found), "{found} at {second} s");
        let queueing = pipe.controller.belief().queueing;
        assert!(
            queueing < Duration::from_millis(6),
            "{queueing:?} at {second} s"
        );
    }
}

#[test]
fn a_rate_that_is_too_low_by_less_than_a_trial_adds_does_not_stay_so() {
    let (spacing, delay) = (Duration::from_micros(2_400), Duration::from_millis(20));
    let link = 5e6;
    for sharing in [RateSharing::Own, RateSharing::Fair] {
        for low in [0.97, 0.98, 0.99] {
            let mut pipe = Pipe::new(RateConfig {
                sharing,
                ..RateConfig::default()
            });
            pipe.run(at(3_000), spacing, delay);
            // As a datagram that was lost on the way out of a queue leaves it. Each trial ends with a queue all the same.
            pipe.controller.capacity = low * link / 8.0;
            pipe.run(at(6_000), spacing, delay);
            let share = pipe.rate() / link;
            assert!(share > 0.995, "{sharing:?}, {low}: {share}");
        }
    }
}

#[test]
fn a_link_that_delivers_by_the_clock_is_found_all_the_same() {
    // Frames of five round trips are too long: there it finds a tenth.
    for (frame, least) in [(20, 0.85), (50, 0.85), (100, 0.7)] {
        let mut pipe = Pipe::new(RateConfig::default());
        pipe.frame = Some(Duration::from_millis(frame));
        let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
        pipe.run(at(20_000), spacing, delay);
        let before = pipe.octets;
        pipe.run(at(30_000), spacing, delay);
        let sent = (pipe.octets - before) as f64 * 8.0 / 10.0 / 10e6;
        assert!(
            (least..1.1).contains(&sent),
            "{sent} of the link, frames of {frame} ms"
        );
    }
}

#[test]
fn clocks_that_run_at_different_rates_are_no_queue() {
    let delay = Duration::from_millis(40);
    let spacing = Duration::from_micros(120);
    for sharing in [RateSharing::Own, RateSharing::Fair, RateSharing::Background] {
        // Where reports are late at random it takes seconds to tell a clock from a queue, which may be that of others.
        let late = match sharing {
            RateSharing::Fair => 0.75,
            RateSharing::Own | RateSharing::Background => 0.95,
        };
        for (ppm, jitter, least) in [
            (-100.0, 0, 0.97),
            (50.0, 0, 0.97),
            (0.0, 3, 0.97),
            (100.0, 3, late),
        ] {
            let mut pipe = Pipe::new(RateConfig {
                sharing,
                ..RateConfig::default()
            });
            (pipe.clock, pipe.jitter_back_millis) = (1.0 + ppm * 1e-6, jitter);
            pipe.run(at(40_000), spacing, delay);
            let before = pipe.octets;
            pipe.run(at(42_000), spacing, delay);
            let sent = (pipe.octets - before) as f64 * 8.0 / 2.0 / 100e6;
            assert!(
                (least..1.05).contains(&sent),
                "{sharing:?}, {ppm} ppm, jitter {jitter} ms: {sent}"
            );
        }
    }
}

#[test]
fn no_estimate_is_so_low_that_a_full_datagram_takes_more_than_a_second() {
    let delay = Duration::from_millis(40);
    let mut pipe = Pipe::new(RateConfig::default());
    pipe.run(at(120_000), Duration::from_secs(3), delay);
    assert!(pipe.rate() >= 12_000.0, "{}", pipe.rate());
    let told = Bitrate::from_bits_per_second(8_000);
    let mut pipe = Pipe::new(RateConfig {
        bound: Some(told),
        ..RateConfig::default()
    });
    pipe.run(at(120_000), Duration::from_secs(3), delay);
    assert!(pipe.rate() <= 8_000.0, "{}", pipe.rate());
}

#[test]
fn a_small_part_of_what_the_train_showed_is_doubted_unless_a_loss_or_others_explain_it() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(2_000), spacing, delay);
    assert!(!pipe.controller.belief().doubted, "all of it");
    pipe.controller.capacity /= 20.0;
    pipe.controller.cause = RateCause::Free;
    assert!(pipe.controller.belief().doubted);
    pipe.controller.cause = RateCause::Queue;
    assert!(!pipe.controller.belief().doubted, "a queue explains it");
    pipe.controller.not_carried(pipe.now);
    pipe.controller.cause = RateCause::Free;
    pipe.controller.queue_shows = true;
    assert!(!pipe.controller.belief().doubted, "a loss explains it");
    pipe.controller.is_cut = false;
    assert!(pipe.controller.belief().doubted);
    pipe.controller.share_hidden(pipe.now);
    pipe.controller.cause = RateCause::Free;
    assert!(!pipe.controller.belief().doubted, "others explain it");
}
