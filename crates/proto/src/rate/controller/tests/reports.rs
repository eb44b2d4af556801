//! Reports that say less than they seem to, or nothing true.

use super::*;

#[test]
fn what_carries_no_octets_says_nothing_of_the_share_that_arrives() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(500), spacing, delay);
    // As behind a search that has just ended: no stretch was counted yet.
    let rate = pipe.rate();
    (pipe.controller.share_octets, pipe.controller.window) = (0.0, None);
    (pipe.controller.found_more, pipe.controller.epochs[0].kind) = (0, EpochKind::Cruise);
    for report in 0..40 {
        pipe.now += Duration::from_millis(10);
        pipe.controller.on_number(pipe.now, pipe.next);
        let newest = pipe.next;
        let arrived_at = pipe.now.saturating_since(Instant::START) + delay / 2;
        pipe.next += 1;
        let report = ArrivalReport {
            newest,
            arrived_at: arrived_at + Duration::from_micros(report),
            hold: Duration::ZERO,
            octets: ByteCount(pipe.octets),
            marked: 0,
        };
        pipe.controller.on_report(pipe.now + delay, &report);
    }
    assert!(!pipe.controller.share.is_nan(), "an unknown share");
    pipe.run(pipe.now + Duration::from_secs(2), spacing, delay);
    assert!(pipe.rate() > 0.9 * rate, "{} {rate}", pipe.rate());
}

#[test]
fn what_is_told_of_twice_arrived_once() {
    let mut pipe = Pipe::new(RateConfig::default());
    pipe.told = 2;
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(5_000), spacing, delay);
    let last = pipe.controller.last.expect("reports came");
    let ahead = last.arrived.saturating_sub(last.sent.octets);
    assert!(ahead <= 2 * PACKET.0, "{ahead} octets more than were sent");
}

#[test]
fn a_number_that_nobody_tells_of_at_once_has_its_own_time() {
    let mut pipe = Pipe::new(RateConfig::default());
    let (spacing, delay) = (Duration::from_micros(1_200), Duration::from_millis(40));
    pipe.run(at(500), spacing, delay);
    let before = pipe.controller.belief().queueing;
    // It leaves right behind a datagram, long before the next one.
    let number = pipe.next;
    pipe.controller.on_number(pipe.now, number);
    pipe.controller
        .on_sent(pipe.now + delay, number + 1, PACKET, ENDLESS);
    let report = ArrivalReport {
        newest: number,
        arrived_at: pipe.free_at.max(pipe.now).saturating_since(Instant::START) + delay / 2,
        hold: Duration::ZERO,
        octets: ByteCount(pipe.octets),
        marked: 0,
    };
    pipe.controller.on_report(pipe.now + delay, &report);
    let after = pipe.controller.belief().queueing;
    assert!(after <= before + Duration::from_millis(4), "{after:?}");
    pipe.next += 2;
    pipe.now += delay;
    pipe.octets += PACKET.0;
    pipe.run(at(800), spacing, delay);
    let queueing = pipe.controller.belief().queueing;
    assert!(queueing < Duration::from_millis(6), "{queueing:?}");
}

#[test]
fn what_is_old_or_was_never_sent_is_not_believed() {
    let mut pipe = Pipe::new(RateConfig::default());
    pipe.run(
        at(2_000),
        Duration::from_micros(1_200),
        Duration::from_millis(40),
    );
    let before = pipe.controller.belief();
    let wild = ArrivalReport {
        newest: pipe.next + 1_000,
        arrived_at: Duration::ZERO,
        hold: Duration::from_secs(1),
        octets: ByteCount(u64::MAX),
        marked: 0,
    };
    pipe.controller.on_report(at(2_000), &wild);
    pipe.controller
        .on_report(at(2_000), &ArrivalReport { newest: 0, ..wild });
    assert_eq!(pipe.controller.belief(), before);
}

#[test]
fn nonsense_breaks_nothing() {
    for seed in 0..40 {
        let mut rng = Rng::from_seed(seed);
        let bound = Bitrate::from_bits_per_second(50_000_000);
        let mut controller = RateController::new(RateConfig {
            bound: Some(bound),
            ..RateConfig::default()
        });
        let (mut now, mut next) = (Instant::START, 0);
        for _ in 0..5_000 {
            now += Duration::from_micros(rng.below(20_000));
            match rng.below(4) {
                0 => controller.handle_deadline(now),
                1 => {
                    let report = ArrivalReport {
                        newest: rng.below(next + 2),
                        arrived_at: Duration::from_micros(rng.below(1 << 34)),
                        hold: Duration::from_micros(rng.below(1 << 20)),
                        octets: ByteCount(rng.next_u64() >> rng.below(64)),
                        marked: 0,
                    };
                    controller.on_report(now, &report);
                }
                _ => {
                    next += 1 + rng.below(3);
                    let waiting = if rng.chance(0.9) { 1_000_000 } else { 0 };
                    let octets = ByteCount(rng.below(9_000));
                    controller.on_sent(now, next, octets, ByteCount(waiting));
                }
            }
            assert!(controller.pacing(now) <= bound);
            assert!(controller.in_flight_max().0 > 0);
            assert!(
                controller
                    .next_deadline()
                    .is_none_or(|deadline| deadline.why == "no report")
            );
        }
    }
}
