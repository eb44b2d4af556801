//! Fading: its effect on packets on the link, both ways and in every run, and the rates at which it is
//! refused.

use super::fading::fading;
use super::statistics::{assert_share, assert_within};
use super::{PACKET, channel};
use fulmar_channel::fading::{Fading, PowerTrace};
use fulmar_channel::{ChannelConfig, ChannelDropReason, ChannelVerdict, QueueLimit};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{BitErrorRate, Bitrate, ByteCount, Duration, Instant, OpticalPower};
use std::sync::Arc;

fn on_link(fading: Fading) -> ChannelConfig {
    ChannelConfig {
        rate: Some(Bitrate::from_bits_per_second(622_000_000)),
        queue: QueueLimit::UNLIMITED,
        fading: Some(fading),
        ..ChannelConfig::default()
    }
}

/// The effect on a packet is the integral over its transmission: with the power known, so is the
/// expected number of hit packets and of inverted bits for every packet.
#[test]
fn packets_are_hit_by_the_power_during_their_transmission() {
    let text = "gamma-gamma 0.6 time 1ms ber 1e-4 over 1s seed 9";
    let medium: Vec<f64> = fading(text)
        .fades(&Rng::from_seed(0))
        .unwrap()
        .take(10_000)
        .map(|fade| fade.bit_errors.value())
        .collect();
    // 77,750 octets at 622 Mbit/s are 1 ms and forty samples of 25 us; 1500 octets are 19.3 us.
    for (len, spacing_micros) in [(ByteCount(77_750), 25.0), (PACKET, 25.0)] {
        let mut channel = channel(on_link(fading(text)), 1);
        let bits = len.bits() as f64;
        let airtime = bits / 622.0;
        let (mut bit_mean, mut bit_variance, mut hit_mean, mut hit_variance) = (0.0, 0.0, 0.0, 0.0);
        let (mut start, mut first) = (0.0, 0);
        while start < 225_000.0 {
            let ChannelVerdict::Deliver(_) = channel.admit(Instant::START, len) else {
                panic!("nothing is dark here");
            };
            let mut intact = 0.0;
            for (index, &rate) in medium.iter().enumerate().skip(first) {
                let begin = (index as f64 * spacing_micros).max(start);
                let end = ((index + 1) as f64 * spacing_micros).min(start + airtime);
                if begin >= start + airtime {
                    break;
                }
                first = index;
                if end <= begin {
                    continue;
                }
                let bits = (end - begin) * 622.0;
                bit_mean += bits * rate;
                bit_variance += bits * rate * (1.0 - rate);
                intact += bits * (-rate).ln_1p();
            }
            start += airtime;
            let hit = -intact.exp_m1();
            hit_mean += hit;
            hit_variance += hit * (1.0 - hit);
        }
        let counters = channel.counters();
        let (flips, hits) = (counters.flipped_bits, counters.damaged_packets);
        // A bit on the edge of two samples belongs to the one in which it begins: half a bit of
        // each edge, one way or the other, which the rounding of 622 bits a microsecond is, too.
        assert_within(
            &format!("inverted bits, {len}"),
            flips as f64,
            bit_mean,
            bit_variance,
        );
        assert_within(
            &format!("hit packets, {len}"),
            hits as f64,
            hit_mean,
            hit_variance,
        );
    }
}

#[test]
fn constant_power_is_the_channel_of_independent_errors() {
    let mut trace = PowerTrace::new(Duration::from_millis(1));
    trace.push(OpticalPower::from_watts(1.0).unwrap()).unwrap();
    let fading = fading("trace constant loop ber 1e-5")
        .with_trace(Arc::new(trace))
        .unwrap();
    let mut channel = channel(on_link(fading), 3);
    let packets = 100_000;
    for _ in 0..packets {
        channel.admit(Instant::START, PACKET);
    }
    let rate = BitErrorRate::new(1e-5).unwrap();
    let hit = rate.packet_error_rate(PACKET.bits()).value();
    let counters = channel.counters();
    assert_share(
        "constant power: hit packets",
        counters.damaged_packets,
        packets,
        hit,
    );
    let bits = packets * PACKET.bits();
    assert_share(
        "constant power: inverted bits",
        counters.flipped_bits,
        bits,
        1e-5,
    );
}

#[test]
fn darkness_takes_whole_packets_for_its_share_of_the_time() {
    let text = "log-normal 0.01 time 1ms ber 1e-9 blocked 2ms..6ms every 10ms..22ms";
    let mut channel = channel(on_link(fading(text)), 3);
    let packets = 2_000_000_u64;
    let mut lost = Vec::new();
    for _ in 0..packets {
        lost.push(
            channel.admit(Instant::START, PACKET)
                == ChannelVerdict::Drop(ChannelDropReason::Outage),
        );
    }
    // 38.6 s hold 1,930 cycles of 20 ms. A packet is lost if any part of it is dark.
    let share = lost.iter().filter(|&&lost| lost).count() as f64 / packets as f64;
    let airtime = PACKET.bits() as f64 / 622e6;
    let cycles = packets as f64 * airtime / 0.020;
    let expected = (0.004 + airtime) / 0.020;
    // A cycle's dark time varies by 4 ms uniformly, its bright time by 12 ms: the share of a
    // renewal process has the variance of (dark - share x cycle) over cycles x mean^2.
    let (dark, bright) = (4e-3_f64.powi(2) / 12.0, 12e-3_f64.powi(2) / 12.0);
    let each = dark * (1.0 - expected).powi(2) + bright * expected.powi(2);
    assert_within(
        "dark share",
        share,
        expected,
        each / cycles / 0.020_f64.powi(2),
    );
}

#[test]
fn a_pass_shortens_the_delay_as_the_satellite_comes_nearer() {
    let fading = fading("log-normal 0.02 time 2ms ber 1e-12 pass 610km from 2500km");
    let pass = fading.model().pass.unwrap();
    let mut channel = channel(on_link(fading), 3);
    for second in 0..100 {
        let now = Instant::START + Duration::from_secs(second);
        let ChannelVerdict::Deliver(delivery) = channel.admit(now, PACKET) else {
            panic!("there is light at {now}");
        };
        let sent = now + Duration::from_nanos(PACKET.bits() * 1_000 / 622);
        let delay = delivery.at.as_secs_f64() - sent.as_secs_f64();
        let light = pass.distance(sent).unwrap().metres() / 299_792_458.0;
        // Nanoseconds are rounded up to three times.
        assert!(
            (delay - light).abs() < 3e-9,
            "{second}: {delay} for {light}"
        );
    }
}

#[test]
fn directions_with_a_seed_of_their_own_meet_the_same_course_and_other_errors() {
    let text = "gamma-gamma 0.6 time 1ms ber 1e-3 over 1s blocked 5ms every 50ms seed 4";
    let verdicts = |text: &str, seed: u64| -> Vec<(bool, usize)> {
        let mut channel = channel(on_link(fading(text)), seed);
        (0..20_000)
            .map(|_| match channel.admit(Instant::START, PACKET) {
                ChannelVerdict::Deliver(delivery) => (false, delivery.flips.len()),
                _ => (true, 0),
            })
            .collect()
    };
    let (one, two) = (verdicts(text, 1), verdicts(text, 2));
    let dark = |verdicts: &[(bool, usize)]| verdicts.iter().map(|v| v.0).collect::<Vec<_>>();
    assert!(one == verdicts(text, 1), "one seed, one result");
    assert!(dark(&one) == dark(&two), "the same obstructions");
    assert!(one != two, "other errors");
    let unseeded = text.replace(" seed 4", "");
    let others = dark(&verdicts(&unseeded, 1)) != dark(&verdicts(&unseeded, 2));
    assert!(others, "without a seed of its own, the run's decides");
}

#[test]
fn a_course_of_the_run_is_the_same_both_ways_and_another_in_another_run() {
    let fading: Fading = "testbed seed run over 1s".parse().expect("sound");
    let course = |fading: &Fading, direction: u64| -> Vec<f64> {
        let fades = fading.fades(&Rng::from_seed(direction)).expect("no trace");
        fades
            .take(100)
            .map(|fade| fade.bit_errors.value())
            .collect()
    };
    let (first, second) = (fading.clone().in_run(1), fading.clone().in_run(2));
    assert_eq!(course(&first, 7), course(&first, 8));
    assert_ne!(course(&first, 7), course(&second, 7));
    assert_ne!(course(&fading, 7), course(&fading, 8));
}

/// The refusal of a link of so many bits a second with this fading, if it is refused.
fn refusal(fading: Fading, bits_per_second: u64) -> Option<String> {
    let config = ChannelConfig {
        rate: Some(Bitrate::from_bits_per_second(bits_per_second)),
        ..on_link(fading)
    };
    config.validate().err().map(|error| error.to_string())
}

/// Each packet takes a step for each sample of power during which it is on the link: samples a nanosecond
/// apart would be 10^9 of them for a packet of a second.
#[test]
fn power_that_changes_more_than_sixteen_times_a_bit_is_refused_with_the_bound() {
    let every = |spacing: u64| {
        let mut trace = PowerTrace::new(Duration::from_nanos(spacing));
        for _ in 0..2 {
            trace.push(OpticalPower::from_watts(1.0).unwrap()).unwrap();
        }
        let fading = fading("trace fast.csv loop ber 1e-6");
        fading.with_trace(Arc::new(trace)).unwrap()
    };
    // A bit of 1 Mbit/s lasts 1000 ns.
    assert_eq!(refusal(every(63), 1_000_000), None);
    let told = refusal(every(62), 1_000_000).expect("it is refused");
    assert!(
        told.contains("fading.spacing is 62ns") && told.contains("at least 63ns"),
        "{told}"
    );
    assert!(
        told.contains("16 samples of power to a bit of 1Mbit/s"),
        "{told}"
    );
    assert_eq!(refusal(every(1), 622_000_000), None);
    assert!(refusal(every(1), 1).is_some());
    // Samples of processes are 100 us apart at most.
    assert_eq!(refusal(fading("testbed over 1s"), 1_000), None);
    let told = refusal(fading("testbed over 1s"), 600).expect("it is refused");
    assert!(
        told.contains("fading.time is 4ms") && told.contains("at least 625bit"),
        "{told}"
    );
    let told = refusal(fading("log-normal 0.1 time 1us"), 1_000_000).expect("it is refused");
    assert!(told.contains("at least 2.5Mbit/s"), "{told}");
}
