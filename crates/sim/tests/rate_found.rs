//! The controller of `fulmar_proto::rate` over one bottleneck: which share of it each sender gets.
//!
//! Method: `fulmar_sim::bottleneck`, datagrams of 1500 octets, receivers that report every 10 ms, and
//! reports that are lost as data are. Shares are of (1 - loss) × rate × time, the start included.

mod again;

use fulmar_channel::{
    Aqm, ChannelConfig, LossModel, LossState, OnOff, Policer, QueueLimit, RedConfig, Sojourn,
    TwoState,
};
use fulmar_proto::rate::{RateConfig, RateSharing};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant, PacketErrorRate};
use fulmar_sim::bottleneck::{
    BottleneckPlan, LinkRange, SenderOutcome, SenderPlan, SenderStart, random_link, run, steadiness,
};

/// The phases over which shares are averaged that depend on how the senders' stops fall.
const PHASES: u32 = 10;
const MBIT: u64 = 1_000_000;

fn at(seconds: f64) -> Instant {
    Instant::START + Duration::from_secs_f64(seconds)
}

fn sharing(sharing: RateSharing) -> SenderPlan {
    // A bound far above every link keeps a mistake from taking hours.
    SenderPlan::Found(RateConfig {
        bound: Some(Bitrate::from_bits_per_second(1_000 * MBIT)),
        sharing,
        ..RateConfig::default()
    })
}

fn found() -> SenderPlan {
    sharing(RateSharing::Fair)
}

fn link(rate: u64, delay_ms: u64, packets: u32, loss: &str) -> BottleneckPlan {
    let loss: LossModel = loss.parse().expect("a loss");
    let out = ChannelConfig {
        rate: Some(Bitrate::from_bits_per_second(rate)),
        delay: Duration::from_millis(delay_ms),
        queue: QueueLimit::packets(packets),
        loss: loss.clone(),
        ..ChannelConfig::default()
    };
    let back = ChannelConfig {
        delay: out.delay,
        loss,
        ..ChannelConfig::default()
    };
    BottleneckPlan {
        out: vec![(Instant::START, out)],
        back,
        policer: None,
        marks: false,
        clock_gain: 0.0,
    }
}

fn share_of(plan: &BottleneckPlan, senders: &[SenderPlan], seconds: u32) -> Vec<SenderOutcome> {
    share_in_phase(plan, senders, seconds, 0)
}

/// Senders that begin 2 s apart, and a little more that differs with `phase`, as the draws do.
fn share_in_phase(
    plan: &BottleneckPlan,
    senders: &[SenderPlan],
    seconds: u32,
    phase: u32,
) -> Vec<SenderOutcome> {
    let apart = 2.0 + 0.137 * f64::from(phase);
    let start = |(index, plan): (u32, &SenderPlan)| SenderStart {
        plan: *plan,
        at: at(apart * f64::from(index)),
    };
    let starts: Vec<SenderStart> = (0..).zip(senders).map(start).collect();
    let end = at(f64::from(seconds));
    run(plan, &starts, end, &Rng::from_seed(1 + u64::from(phase))).expect("a sound link")
}

/// One sender alone: its share of `ideal` bits a second, and of what it sent the share dropped.
fn alone(name: &str, plan: &BottleneckPlan, seconds: u32, ideal: f64) -> (f64, f64, Duration) {
    let outcomes = share_of(plan, &[found()], seconds);
    let outcome = &outcomes[0];
    let share = outcome.arrived as f64 * 8.0 / f64::from(seconds) / ideal;
    let dropped = outcome.dropped as f64 / outcome.sent as f64;
    let queue = outcome.queue_mean;
    println!("{name}: {share:.3}, dropped {dropped:.4}, queue {queue:?}");
    (share, dropped, queue)
}

#[test]
fn loss_at_random_never_lowers_the_rate() {
    for (loss, least) in [(0.0, 0.99), (5.0, 0.98), (20.0, 0.97), (50.0, 0.94)] {
        let plan = link(10 * MBIT, 5, 100, &format!("{loss}%"));
        let ideal = 10e6 * (1.0 - loss / 100.0);
        let (share, dropped, queue) = alone(&format!("{loss} %"), &plan, 20, ideal);
        assert!(share > least, "{loss}: {share}");
        assert!(dropped < 0.02, "{loss}: {dropped}");
        assert!(queue < Duration::from_millis(5), "{loss}: {queue:?}");
    }
}

#[test]
fn a_long_way_and_a_fast_one_are_filled() {
    for (rate, delay, seconds) in [(10, 300, 60), (100, 50, 20)] {
        for loss in [0.0, 5.0] {
            let plan = link(rate * MBIT, delay, 100, &format!("{loss}%"));
            let ideal = (rate * MBIT) as f64 * (1.0 - loss / 100.0);
            let name = format!("{rate} mbit, {delay} ms, {loss} %");
            let (share, _, queue) = alone(&name, &plan, seconds, ideal);
            assert!(share > 0.93, "{name}: {share}");
            assert!(queue < Duration::from_millis(5), "{name}: {queue:?}");
        }
    }
}

#[test]
fn a_receiver_s_clock_that_is_quicker_or_slower_costs_nothing() {
    for way in [RateSharing::Own, RateSharing::Fair, RateSharing::Background] {
        for gain in [-1e-4, 5e-5, 1e-4] {
            let mut plan = link(100 * MBIT, 20, 300, "1%");
            plan.clock_gain = gain;
            let outcomes = share_of(&plan, &[sharing(way)], 30);
            let share = outcomes[0].arrived as f64 * 8.0 / 30.0 / 99e6;
            println!("{way:?}, {gain}: {share:.3}");
            assert!(share > 0.95, "{way:?}, {gain}: {share}");
        }
    }
}

#[test]
fn losses_that_come_and_go_are_not_the_rate() {
    let mut plan = link(10 * MBIT, 5, 100, "0%");
    plan.out[0].1.loss = LossModel::OnOff(OnOff {
        mean_loss: PacketErrorRate::new(0.5).expect("a share"),
        period: Duration::from_millis(100),
        sojourn: Sojourn::Fixed,
    });
    let (share, _, _) = alone("25 and 75 % by turns of 100 ms", &plan, 30, 5e6);
    assert!(share > 0.95, "{share}");
    let state = |loss, seconds| LossState {
        loss: PacketErrorRate::new(loss).expect("a share"),
        mean: Duration::from_secs(seconds),
    };
    plan.out[0].1.loss = LossModel::TwoState(TwoState {
        off: state(0.0, 3),
        on: state(1.0, 2),
        sojourn: Sojourn::Fixed,
    });
    let (share, _, _) = alone("down for 2 s of 5", &plan, 30, 6e6);
    assert!(share > 0.95, "{share}");
}

/// The mean share of `ideal` over eight seeds, of what was sent the share dropped, and the most that was sent in the
/// second half, as a multiple of `rate`.
fn eight(name: &str, plan: &BottleneckPlan, seconds: u32, rate: f64, carried: f64) -> [f64; 3] {
    let mut means = [0.0, 0.0, 0.0_f64];
    for phase in 0..8 {
        let outcome = share_in_phase(plan, &[found()], seconds, phase).remove(0);
        let arrived = outcome.arrived as f64 * 8.0 / f64::from(seconds);
        means[0] += arrived / (rate * carried) / 8.0;
        means[1] += outcome.dropped as f64 / outcome.sent as f64 / 8.0;
        let half = outcome.sent_tenths.len() / 2;
        let late: u64 = outcome.sent_tenths[half..].iter().sum();
        let late = late as f64 * 8.0 / (f64::from(seconds) / 2.0) / rate;
        means[2] = means[2].max(late);
    }
    let [share, dropped, late] = means;
    println!("{name}: {share:.3}, dropped {dropped:.4}, at most {late:.2} x the link late");
    means
}

fn policed(policer: Policer, loss: &str) -> BottleneckPlan {
    let mut plan = link(1_000 * MBIT, 20, 100, loss);
    plan.policer = Some(policer);
    plan
}

#[test]
fn short_queues_and_policers_are_not_run_over() {
    // At 50 % loss more than the 3 % of issue 19 is dropped at 100 mbit and by policers (docs/models/found-rate.md).
    for (rate, loss, most) in [
        (10, 0, 0.03),
        (10, 10, 0.03),
        (10, 50, 0.03),
        (100, 0, 0.03),
        (100, 10, 0.03),
        (100, 50, 0.08),
    ] {
        let plan = link(rate * MBIT, 20, 3, &format!("{loss}%"));
        let name = format!("3 packets, {rate} mbit, {loss} %");
        let carried = 1.0 - f64::from(loss) / 100.0;
        let [share, dropped, late] = eight(&name, &plan, 30, (rate * MBIT) as f64, carried);
        assert!(share > 0.94, "{name}: {share}");
        assert!(dropped < most, "{name}: {dropped}");
        assert!(late < 1.25, "{name}: {late}");
    }
    for (loss, most) in [(0, 0.03), (10, 0.04), (50, 0.1)] {
        let policer = Policer {
            rate: Bitrate::from_bits_per_second(10 * MBIT),
            burst: ByteCount(15_000),
        };
        let plan = policed(policer, &format!("{loss}%"));
        let carried = 1.0 - f64::from(loss) / 100.0;
        let [share, dropped, late] = eight(&format!("policer, {loss} %"), &plan, 30, 10e6, carried);
        assert!(share > 0.92, "{loss}: {share}");
        assert!(dropped < most, "{loss}: {dropped}");
        assert!(late < 1.25, "{loss}: {late}");
    }
}

#[test]
fn a_policer_on_a_short_way_drops_little_of_the_search() {
    // The first round is sent at five times the policer's rate: a round trip of 10 ms has room for no slower one.
    for (loss, most) in [(0, 0.03), (10, 0.045)] {
        let policer = Policer {
            rate: Bitrate::from_bits_per_second(10 * MBIT),
            burst: ByteCount(15_000),
        };
        let mut plan = link(1_000 * MBIT, 5, 100, &format!("{loss}%"));
        plan.policer = Some(policer);
        let carried = 1.0 - f64::from(loss) / 100.0;
        let name = format!("policer, 5 ms, {loss} %");
        let [share, dropped, late] = eight(&name, &plan, 20, 10e6, carried);
        assert!(share > 0.93, "{name}: {share}");
        assert!(dropped < most, "{name}: {dropped}");
        assert!(late < 1.25, "{name}: {late}");
    }
}

/// Means of eight runs over 10 mbit with a queue of three packets, with small datagrams beside as gateways send them: the share
/// of the link that arrives, and what our own doing drops.
fn beside_small(own: RateSharing, delay: u64, loss: u32) -> [f64; 2] {
    let small = |octets, micros| SenderPlan::Small {
        octets: ByteCount(octets),
        every: Duration::from_micros(micros),
    };
    // Answers, pings, and packets that are short to learn whether length matters.
    let senders = [
        sharing(own),
        small(66, 14_300),
        small(84, 50_000),
        small(375, 10_300),
    ];
    let plan = link(10 * MBIT, delay, 3, &format!("{loss}%"));
    let carried = 1.0 - f64::from(loss) / 100.0;
    let (mut share, mut dropped) = (0.0, 0.0);
    // Without losses nothing is drawn: what differs is when the small ones begin.
    for phase in 0..8_u32 {
        let start = |(index, plan): (u32, &SenderPlan)| SenderStart {
            plan: *plan,
            at: at(f64::from(index) * (0.1 + 0.000_37 * f64::from(phase))),
        };
        let starts: Vec<SenderStart> = (0..).zip(&senders).map(start).collect();
        let rng = Rng::from_seed(1 + u64::from(phase));
        let outcomes = run(&plan, &starts, at(20.0), &rng).expect("a sound link");
        share += outcomes[0].arrived as f64 * 8.0 / 20.0 / (10e6 * carried) / 8.0;
        dropped += outcomes[0].dropped as f64 / outcomes[0].sent as f64 / 8.0;
    }
    println!("{own:?}, {delay} ms, {loss} %: {share:.3}, dropped {dropped:.4}");
    [share, dropped]
}

#[test]
fn a_short_queue_that_small_datagrams_shorten_is_not_overfilled() {
    for (delay, loss, most) in [(5, 0, 0.015), (20, 0, 0.02), (5, 10, 0.05)] {
        let [share, dropped] = beside_small(RateSharing::Own, delay, loss);
        // Small ones take 4.5 % of the link.
        assert!(share > 0.93, "{delay} ms, {loss} %: {share}");
        assert!(dropped < most, "{delay} ms, {loss} %: {dropped}");
    }
}

#[test]
fn what_a_short_queue_drops_at_times_is_not_taken_for_loss_of_the_medium() {
    for (loss, most) in [(0, 0.035), (10, 0.085)] {
        for delay in [5, 20] {
            let [share, dropped] = beside_small(RateSharing::Fair, delay, loss);
            assert!(share > 0.93, "{delay} ms, {loss} %: {share}");
            assert!(dropped < most, "{delay} ms, {loss} %: {dropped}");
        }
    }
}

#[test]
fn whoever_began_a_thousandfold_too_fast_comes_down() {
    // A policer lets the first train through at 1 gbit, and has no queue that could tell.
    for rate in [400_000, MBIT, 4 * MBIT] {
        for loss in [0, 20, 45] {
            let policer = Policer {
                rate: Bitrate::from_bits_per_second(rate),
                burst: ByteCount(15_000),
            };
            let plan = policed(policer, &format!("{loss}%"));
            let carried = 1.0 - f64::from(loss) / 100.0;
            let name = format!("policer of {rate} bit/s, {loss} %");
            let [share, _, late] = eight(&name, &plan, 60, rate as f64, carried);
            assert!(share > 0.8, "{name}: {share}");
            assert!(late < 1.75, "{name}: {late}");
        }
    }
}

#[test]
fn a_slow_link_with_a_short_queue_gets_no_more_than_it_carries() {
    // Three packets in the queue are all that such a link and its way hold.
    // Nothing is drawn, so one run of each is all there is.
    for (rate, dropped_max) in [
        (101_000, 0.06),
        (109_000, 0.055),
        (200_000, 0.03),
        (400_000, 0.013),
    ] {
        let plan = link(rate, 2, 3, "0%");
        let outcome = share_of(&plan, &[found()], 60).remove(0);
        let late: u64 = outcome.sent_tenths[200..].iter().sum();
        let late = late as f64 * 8.0 / 40.0 / rate as f64;
        let dropped = outcome.dropped as f64 / outcome.sent as f64;
        let steady = steadiness(&plan, Duration::from_secs(60), &outcome.sent_tenths);
        println!("{rate} bit/s: {late:.3} x after 20 s, dropped {dropped:.4}, {steady:?}");
        assert!(late < 1.0, "{rate}: {late}");
        assert!(dropped < dropped_max, "{rate}: {dropped}");
        assert!(steady.above <= 1.0, "{rate}: {steady:?}");
    }
}

#[test]
fn a_link_that_changes_is_followed_within_seconds() {
    for (before, after) in [(20 * MBIT, 3 * MBIT), (3 * MBIT, 20 * MBIT)] {
        let mut plan = link(before, 20, 100, "0%");
        let changed = ChannelConfig {
            rate: Some(Bitrate::from_bits_per_second(after)),
            ..plan.out[0].1.clone()
        };
        plan.out.push((at(10.0), changed));
        let outcome = share_of(&plan, &[found()], 20).remove(0);
        // 3 s and ten round trips of 40 ms.
        let from = 134;
        let arrived: u64 = outcome.tenths[from..].iter().sum();
        let share = arrived as f64 * 80.0 / (outcome.tenths.len() - from) as f64 / after as f64;
        println!("{before} to {after}: {share:.3}");
        assert!(share > 0.95, "{before} to {after}: {share}");
        let above = outcome.sent_tenths[134..]
            .iter()
            .filter(|sent| **sent as f64 * 80.0 > 1.25 * after as f64);
        assert_eq!(above.count(), 0, "{before} to {after}");
    }
}

#[test]
fn a_handover_to_a_longer_way_and_back_costs_a_moment() {
    let mut plan = link(10 * MBIT, 20, 100, "0%");
    for turn in 0..5 {
        let delay = Duration::from_millis(if turn % 2 == 0 { 300 } else { 20 });
        let config = ChannelConfig {
            delay,
            ..plan.out[0].1.clone()
        };
        plan.out.push((at(5.0 + 5.0 * f64::from(turn)), config));
    }
    for (mode, least) in [(RateSharing::Own, 0.93), (RateSharing::Fair, 0.8)] {
        let outcome = share_of(&plan, &[sharing(mode)], 30).remove(0);
        let share = outcome.arrived as f64 * 8.0 / 30.0 / 10e6;
        println!("20 and 300 ms by turns of 5 s, {mode:?}: {share:.3}");
        assert!(share > least, "{mode:?}: {share}");
    }
}

/// The octets that arrived after the first `seconds`, as a share of `rate` by the senders' number.
fn fair_shares(outcomes: &[SenderOutcome], seconds: usize, end: usize, rate: f64) -> Vec<f64> {
    let share = |outcome: &SenderOutcome| {
        let arrived: u64 = outcome.tenths.iter().skip(10 * seconds).sum();
        arrived as f64 * 8.0 / (end - seconds) as f64 / rate * outcomes.len() as f64
    };
    outcomes.iter().map(share).collect()
}

#[test]
fn several_of_ours_share_evenly() {
    // The mean of Jain's index over ten phases. Eight of ours with losses fall short of issue 19 (docs/models/found-rate.md).
    for (count, packets, loss, least) in [
        (2, 67, "0%", 0.98),
        (2, 67, "2%", 0.98),
        (8, 33, "0%", 0.98),
        (8, 67, "0%", 0.98),
        (8, 67, "2%", 0.9),
    ] {
        let plan = link(20 * MBIT, 20, packets, loss);
        let jains: Vec<f64> = (0..10)
            .map(|phase| {
                let outcomes = share_in_phase(&plan, &vec![found(); count], 60, phase);
                let shares = fair_shares(&outcomes, 36, 60, 20e6);
                let sum: f64 = shares.iter().sum();
                let squares: f64 = shares.iter().map(|share| share * share).sum();
                assert!(sum / count as f64 > 0.9, "{count}: {sum}");
                sum * sum / (count as f64 * squares)
            })
            .collect();
        let mean = jains.iter().sum::<f64>() / jains.len() as f64;
        println!("{count} of ours, {packets} packets, {loss}: Jain's index {mean:.3}, {jains:.2?}");
        assert!(mean > least, "{count}, {loss}: {mean}");
    }
}

#[test]
fn beside_cubic_both_get_their_share() {
    // Buffers of half a bandwidth-delay product, of one, and of four.
    for (packets, least) in [(33, 0.25), (67, 0.5), (268, 0.5)] {
        for others in [1, 4] {
            let plan = link(20 * MBIT, 20, packets, "0%");
            let mut senders = vec![found()];
            senders.resize(1 + others, SenderPlan::Cubic);
            let outcomes = share_of(&plan, &senders, 60);
            let shares = fair_shares(&outcomes, 10, 60, 20e6);
            println!("{packets} packets, ours and {others} CUBIC: {shares:.2?}");
            assert!((least..1.5).contains(&shares[0]), "{packets}: {shares:?}");
            let theirs: f64 = shares[1..].iter().sum::<f64>() / others as f64;
            assert!((0.5..1.5).contains(&theirs), "{packets}: {shares:?}");
        }
    }
}

#[test]
fn whoever_comes_last_to_a_full_queue_gets_a_share_as_well() {
    for packets in [67, 268] {
        let plan = link(20 * MBIT, 20, packets, "0%");
        let mut senders = vec![SenderPlan::Cubic; 4];
        senders.push(found());
        let outcomes = share_of(&plan, &senders, 60);
        let shares = fair_shares(&outcomes, 10, 60, 20e6);
        println!("{packets} packets, ours after 4 CUBIC: {shares:.2?}");
        assert!((0.5..1.7).contains(&shares[4]), "{packets}: {shares:?}");
    }
}

#[test]
fn beside_bbr_both_get_their_share_of_a_long_queue() {
    let plan = link(20 * MBIT, 20, 268, "0%");
    for senders in [[found(), SenderPlan::Bbr], [SenderPlan::Bbr, found()]] {
        let outcomes = share_of(&plan, &senders, 60);
        let shares = fair_shares(&outcomes, 10, 60, 20e6);
        println!("268 packets, {senders:?}: {shares:.2?}");
        let fair = |share: &f64| (0.5..1.5).contains(share);
        assert!(shares.iter().all(fair), "{shares:?}");
    }
}

#[test]
fn beside_bbr_that_comes_later_a_part_of_a_shorter_queue_is_held() {
    // BBR makes way for nobody in queues of one bandwidth-delay product and half of one: .18 and .19 of a fair share are ours
    // where nothing is held. Its second stop tells. Issue 19 asks a half of one product, a quarter of half of one.
    for (packets, ours) in [(33, 0.25), (67, 0.5)] {
        let plan = link(20 * MBIT, 20, packets, "0%");
        // A single run has from 0.35 to 0.7, as the stops fall.
        let each: Vec<Vec<f64>> = (0..PHASES)
            .map(|phase| {
                let outcomes = share_in_phase(&plan, &[found(), SenderPlan::Bbr], 60, phase);
                fair_shares(&outcomes, 10, 60, 20e6)
            })
            .collect();
        let mean =
            |at: usize| each.iter().map(|shares| shares[at]).sum::<f64>() / each.len() as f64;
        println!(
            "{packets} packets, ours and BBR: {:.2} {:.2} of {each:.2?}",
            mean(0),
            mean(1)
        );
        assert!(mean(0) > ours, "{packets}: {each:?}");
        assert!(each.iter().all(|shares| shares[0] > 0.25), "{each:?}");
        assert!(mean(1) > 0.5, "{packets}: {each:?}");
    }
}

#[test]
fn several_of_ours_that_hold_a_part_beside_bbr_drop_little_and_leave_it_some() {
    let plan = link(20 * MBIT, 20, 67, "0%");
    let senders = [found(), found(), found(), SenderPlan::Bbr];
    let outcomes = share_of(&plan, &senders, 60);
    let shares = fair_shares(&outcomes, 30, 60, 20e6);
    let sent: u64 = outcomes.iter().map(|outcome| outcome.sent).sum();
    let dropped: u64 = outcomes.iter().map(|outcome| outcome.dropped).sum();
    let dropped = dropped as f64 / sent as f64;
    println!("three of ours and BBR: {shares:.2?}, dropped {dropped:.3}");
    assert!(shares.iter().all(|share| *share > 0.25), "{shares:?}");
    assert!(dropped < 0.12, "{dropped}");
}

#[test]
fn bbr_alone_keeps_little_in_the_queue_where_losses_keep_it_in_recovery() {
    // The kernel's has .94 of such a link and 4.2 ms (docs/measurements/found-rate.md).
    for (loss, most) in [("0%", 5.0), ("2%", 4.2)] {
        let plan = link(20 * MBIT, 20, 67, loss);
        let outcome = share_of(&plan, &[SenderPlan::Bbr], 60).remove(0);
        let share = outcome.arrived as f64 * 8.0 / 60.0 / 20e6;
        let queue = outcome.queue_mean.as_secs_f64() * 1e3;
        println!("BBR alone, {loss}: {share:.3}, queue {queue:.1} ms");
        assert!(share > 0.9, "{loss}: {share}");
        assert!(queue < most, "{loss}: {queue} ms");
    }
}

#[test]
fn bbr_fills_a_lossy_link_alone_up_to_a_loss_that_no_recovery_keeps_up_with_and_shares_with_its_like()
 {
    // The kernel's has .973 of what such a link carries at 10 % and .029 at 30 % (docs/measurements/found-rate.md).
    let alone = |loss: &str, carried: f64| {
        let plan = link(10 * MBIT, 5, 100, loss);
        let outcomes = share_of(&plan, &[SenderPlan::Bbr], 30);
        fair_shares(&outcomes, 5, 30, 10e6 * carried)[0]
    };
    let (some, much) = (alone("10%", 0.9), alone("30%", 0.7));
    let plan = link(20 * MBIT, 20, 67, "0%");
    let both = share_of(&plan, &[SenderPlan::Bbr; 2], 60);
    let shares = fair_shares(&both, 10, 60, 20e6);
    println!("BBR with 10 % lost {some:.3}, with 30 % {much:.3}, two of it {shares:.2?}");
    assert!(some > 0.9, "{some}");
    assert!(much < 0.3, "{much}");
    assert!(
        shares.iter().all(|share| (0.7..1.3).contains(share)),
        "{shares:?}"
    );
}

#[test]
fn in_the_background_others_keep_what_they_have_alone_and_the_rest_is_used() {
    let background = sharing(RateSharing::Background);
    for packets in [33, 67, 268] {
        let plan = link(20 * MBIT, 20, packets, "0%");
        let alone = share_of(&plan, &[SenderPlan::Cubic], 60);
        let alone = fair_shares(&alone, 10, 60, 20e6)[0];
        let both = share_of(&plan, &[background, SenderPlan::Cubic], 60);
        let beside = fair_shares(&both, 10, 60, 20e6)[1] / 2.0;
        println!("{packets} packets, CUBIC alone {alone:.3}, with ours behind it {beside:.3}");
        assert!(beside > 0.9 * alone, "{packets}: {beside}, alone {alone}");
    }
    let outcome = share_of(&link(20 * MBIT, 20, 67, "0%"), &[background], 30);
    let ours = fair_shares(&outcome, 5, 30, 20e6)[0];
    assert!(ours > 0.95, "{ours}");
}

#[test]
fn queues_that_signal_early_are_filled_shared_and_kept_short() {
    for law in [Aqm::CoDel, Aqm::Red(RedConfig::between(20, 60))] {
        for marks in [true, false] {
            let mut plan = link(20 * MBIT, 20, 268, "0%");
            plan.out[0].1.aqm = Some(law);
            plan.marks = marks;
            let outcomes = share_of(&plan, &[found()], 30);
            let (ours, queue) = (
                fair_shares(&outcomes, 5, 30, 20e6)[0],
                outcomes[0].queue_mean,
            );
            assert!(ours > 0.95, "{law:?}: {ours}");
            assert!(queue < Duration::from_millis(5), "{law:?}: {queue:?}");
            let outcomes = share_of(&plan, &[found(), SenderPlan::Cubic], 60);
            let shares = fair_shares(&outcomes, 10, 60, 20e6);
            println!(
                "{law:?}, marks {marks}: alone {ours:.3} {queue:?}, beside CUBIC {shares:.2?}"
            );
            let least = if law == Aqm::CoDel { 0.5 } else { 0.25 };
            assert!(
                shares.iter().all(|share| *share > least),
                "{law:?}: {shares:?}"
            );
        }
    }
}

#[test]
fn who_takes_the_link_for_its_own_yields_to_others_and_builds_no_queue() {
    let plan = link(20 * MBIT, 20, 268, "0%");
    let outcomes = share_of(&plan, &[sharing(RateSharing::Own), SenderPlan::Cubic], 60);
    let shares = fair_shares(&outcomes, 10, 60, 20e6);
    println!("own and CUBIC: {shares:.2?}");
    assert!(shares[1] > 1.5, "{shares:?}");
}

#[test]
fn with_random_loss_cubic_keeps_what_it_has_alone() {
    let plan = link(20 * MBIT, 20, 67, "2%");
    let alone = share_of(&plan, &[SenderPlan::Cubic], 60);
    let alone = fair_shares(&alone, 10, 60, 20e6)[0];
    let both = share_of(&plan, &[found(), SenderPlan::Cubic], 60);
    let shares = fair_shares(&both, 10, 60, 20e6);
    let beside = shares[1] / 2.0;
    println!(
        "CUBIC alone {alone:.3}, beside ours {beside:.3}, ours {:.3}",
        shares[0] / 2.0
    );
    assert!(beside > 0.8 * alone, "{beside}, alone {alone}");
    assert!(shares.iter().sum::<f64>() / 2.0 > 0.9, "{shares:?}");
}

#[test]
fn links_drawn_at_random_are_filled() {
    let range = LinkRange {
        rate_max: Bitrate::from_bits_per_second(20 * MBIT),
    };
    let mut shares: Vec<(f64, u64)> = (0..300)
        .map(|seed| {
            let rng = Rng::from_seed(seed);
            let (plan, lasts) = random_link(range, &rng);
            let start = SenderStart {
                plan: found(),
                at: Instant::START,
            };
            let end = Instant::START + lasts;
            let outcome = run(&plan, &[start], end, &rng.child("run")).expect("a sound link");
            let rates = plan.out.iter().filter_map(|(_, config)| config.rate);
            let rate: u64 = rates.map(Bitrate::as_bits_per_second).sum();
            let first = &plan.out[0].1;
            let carried = 1.0 - first.loss.mean_loss().value();
            let seconds = lasts.saturating_sub(first.delay).as_secs_f64();
            let ideal = rate as f64 / plan.out.len() as f64 * carried * seconds;
            (outcome[0].arrived as f64 * 8.0 / ideal, seed)
        })
        .collect();
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (median, low) = (shares[150].0, shares[15].0);
    println!(
        "median {median:.3}, 5th percentile {low:.3}, worst {:.3?}",
        &shares[..10]
    );
    assert!(median > 0.96, "{median}");
    assert!(low > 0.82, "{low}");
}
