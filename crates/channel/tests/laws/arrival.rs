//! Delay, jitter, reordering and duplication.

use crate::statistics::{assert_cells, assert_share};
use crate::{PACKET, channel, delivery, run};
use fulmar_channel::{ChannelConfig, Delivery};
use fulmar_proto::units::{Duration, Instant};

const GAP: Duration = Duration::from_micros(100);
const DELAY: Duration = Duration::from_millis(10);

fn config() -> ChannelConfig {
    ChannelConfig {
        delay: DELAY,
        ..ChannelConfig::default()
    }
}

/// Arrivals with the instant each packet was handed over.
fn arrivals(config: ChannelConfig, seed: u64, count: u64) -> Vec<(Instant, Delivery)> {
    let verdicts = run(&mut channel(config, seed), count, GAP);
    let mut sent = Instant::START;
    verdicts
        .into_iter()
        .map(|verdict| {
            let pair = (sent, delivery(&verdict).unwrap().clone());
            sent += GAP;
            pair
        })
        .collect()
}

#[test]
fn without_jitter_the_delay_is_the_same_for_every_packet() {
    let mut config = config();
    config.rate = Some("5mbit".parse().unwrap());
    let mut channel = channel(config, 41);
    let mut now = Instant::START;
    for index in 0..1000_u32 {
        let verdict = channel.admit(now, PACKET);
        // 2.4 ms on the link and 10 ms of propagation.
        assert_eq!(
            delivery(&verdict).unwrap().at,
            now + Duration::from_micros(12_400)
        );
        now += Duration::from_micros(2400) + Duration::from_nanos(u64::from(index));
    }
}

#[test]
fn free_jitter_is_uniform_up_and_down() {
    let mut config = config();
    config.jitter = Some("2ms reordering".parse().unwrap());
    let mut observed = [0; 50];
    for (sent, delivery) in arrivals(config, 42, 200_000) {
        let late = delivery
            .at
            .saturating_since(sent + DELAY - Duration::from_millis(2));
        // 4 ms in 50 cells of 80 us; the very last nanosecond belongs to the last cell.
        let cell = (late.as_nanos() / 80_000).min(49);
        observed[usize::try_from(cell).unwrap()] += 1;
        assert!(late <= Duration::from_millis(4));
    }
    assert_cells("jitter", &observed, &[0.02; 50]);
}

#[test]
fn kept_order_is_kept_and_only_ever_delays() {
    let mut free = config();
    free.jitter = Some("2ms reordering".parse().unwrap());
    let mut kept = config();
    kept.jitter = Some("2ms".parse().unwrap());
    let (free, kept) = (arrivals(free, 43, 20_000), arrivals(kept, 43, 20_000));
    assert!(!free.is_sorted_by_key(|(_, delivery)| delivery.at));
    // The latest so far of the free arrivals: equal seeds draw equal jitter.
    let mut latest = Instant::START;
    for ((_, free), (_, kept)) in free.iter().zip(&kept) {
        latest = latest.max(free.at);
        assert_eq!(kept.at, latest);
    }
}

#[test]
fn the_asked_share_is_held_back_by_the_asked_time_and_overtaken() {
    let mut config = config();
    config.reorder = Some("2% by 250us".parse().unwrap());
    let n = 200_000;
    let mut channel = channel(config.clone(), 44);
    run(&mut channel, n, GAP);
    let held = channel.counters().reordered_packets;
    assert_share("held back", held, n, 0.02);

    let arrivals = arrivals(config, 44, n);
    let late: Vec<bool> = arrivals
        .iter()
        .map(|(sent, delivery)| {
            let delay = delivery.at.saturating_since(*sent);
            assert!(delay == DELAY || delay == DELAY + Duration::from_micros(250));
            delay > DELAY
        })
        .collect();
    assert_eq!(late.iter().filter(|&&late| late).count() as u64, held);
    // 250 us are two and a half gaps: the next two packets overtake unless they are held back too.
    let overtaken = arrivals
        .windows(2)
        .filter(|pair| pair[1].1.at < pair[0].1.at)
        .count();
    let alone = late.windows(2).filter(|pair| pair[0] && !pair[1]).count();
    assert_eq!(overtaken, alone);
}

#[test]
fn the_asked_share_arrives_twice_with_bit_errors_of_its_own() {
    let mut config = config();
    config.duplicate = "5%".parse().unwrap();
    config.bits = "2e-5".parse().unwrap();
    let n = 200_000;
    let arrivals = arrivals(config, 45, n);
    let copies: Vec<_> = arrivals
        .iter()
        .filter_map(|(_, delivery)| Some((delivery, delivery.duplicate.as_ref()?)))
        .collect();
    let count = copies.len() as u64;
    assert_share("copies", count, n, 0.05);
    let hit = 1.0 - (1.0 - 2e-5_f64).powi(12_000);
    let damaged = |yes: bool| if yes { hit } else { 1.0 - hit };
    for (first, second) in [(true, true), (true, false), (false, true)] {
        let both = copies
            .iter()
            .filter(|(original, (_, flips))| {
                original.flips.is_empty() != first && flips.is_empty() != second
            })
            .count() as u64;
        let expected = damaged(first) * damaged(second);
        assert_share(&format!("damaged {first} {second}"), both, count, expected);
    }
    assert!(copies.iter().all(|(original, (at, _))| *at == original.at));
}

#[test]
fn a_copy_has_its_own_jitter() {
    let mut config = config();
    config.duplicate = "100%".parse().unwrap();
    config.jitter = Some("1ms reordering".parse().unwrap());
    let n = 50_000;
    let earlier = arrivals(config, 46, n)
        .iter()
        .filter(|(_, delivery)| delivery.duplicate.as_ref().unwrap().0 < delivery.at)
        .count() as u64;
    // Two independent equal laws on 2,000,001 nanoseconds: ties are 5e-7 and do not show.
    assert_share("copy first", earlier, n, 0.5);
}

#[test]
fn lost_packets_have_no_copies_and_others_have_them_as_often_as_ever() {
    let mut config = config();
    config.duplicate = "40%".parse().unwrap();
    config.loss = "30%".parse().unwrap();
    let mut channel = channel(config, 47);
    let verdicts = run(&mut channel, 50_000, GAP);
    let arriving = verdicts.iter().filter_map(delivery).count() as u64;
    assert_share("arriving", arriving, 50_000, 0.7);
    let twice = verdicts
        .iter()
        .filter_map(delivery)
        .filter(|delivery| delivery.duplicate.is_some())
        .count() as u64;
    assert_share("twice", twice, arriving, 0.4);
    assert_eq!(channel.counters().duplicated_packets, twice);
    assert_eq!(channel.counters().delivered_packets, arriving);
}
