//! Packet loss: its share, and the bursts it comes in.

use crate::statistics::{assert_geometric_runs, assert_share, assert_within, runs};
use crate::{MILLISECOND, channel, is_lost, losses, run, with_loss};
use fulmar_channel::LossModel;
use fulmar_proto::units::Duration;

fn count(lost: &[bool]) -> u64 {
    lost.iter().filter(|&&lost| lost).count() as u64
}

#[test]
fn bernoulli_loses_its_share() {
    for (text, p) in [("0.1%", 0.001), ("2%", 0.02), ("30%", 0.3), ("0.9", 0.9)] {
        let lost = losses(text, 21, 300_000);
        assert_share(text, count(&lost), 300_000, p);
    }
    assert_eq!(count(&losses("0", 21, 10_000)), 0);
    assert_eq!(count(&losses("100%", 21, 10_000)), 10_000);
}

#[test]
fn bernoulli_losses_and_gaps_between_them_are_independent_runs() {
    let (lost, kept) = runs(&losses("30%", 22, 300_000));
    assert_geometric_runs("lost in a row", &lost, 0.7);
    assert_geometric_runs("kept in a row", &kept, 0.3);
}

#[test]
fn what_a_lower_bernoulli_rate_loses_a_higher_one_loses_too() {
    let low = losses("5%", 23, 20_000);
    let high = losses("20%", 23, 20_000);
    assert!(low.iter().zip(&high).all(|(&low, &high)| high || !low));
}

#[test]
fn bursts_have_the_asked_mean_loss_and_mean_length() {
    for (text, loss, burst) in [
        ("2% burst 4", 0.02, 4.0),
        ("10% burst 4", 0.1, 4.0),
        ("30% burst 20", 0.3, 20.0),
        ("50% burst 1.25", 0.5, 1.25),
    ] {
        let n = 1_000_000;
        let lost = losses(text, 24, n);
        let to_good = 1.0 / burst;
        let to_bad = to_good * loss / (1.0 - loss);
        // A two-state chain: correlation (1 - to_good - to_bad)^k at distance k, so the variance
        // of the count is that of independent packets times (1 + c) / (1 - c).
        let c: f64 = 1.0 - to_good - to_bad;
        let variance = n as f64 * loss * (1.0 - loss) * (1.0 + c) / (1.0 - c);
        assert_within(text, count(&lost) as f64, n as f64 * loss, variance);
        let (bursts, gaps) = runs(&lost);
        // A geometric length that ends with probability r has variance (1 - r) / r^2.
        let mean = bursts.iter().sum::<u64>() as f64 / bursts.len() as f64;
        let variance = (1.0 - to_good) / to_good.powi(2) / bursts.len() as f64;
        assert_within(&format!("{text}: mean burst"), mean, burst, variance);
        assert_geometric_runs(&format!("{text}: bursts"), &bursts, to_good);
        assert_geometric_runs(&format!("{text}: gaps"), &gaps, to_bad);
    }
}

#[test]
fn states_by_packet_have_their_losses_lengths_and_shares() {
    let n = 2_000_000;
    // Equal seeds have equal states, so certain loss in the bad state alone shows which state it
    // is.
    let bad = losses("gilbert-elliott 0% 40 100% 10", 28, n);
    let lost = losses("gilbert-elliott 2% 40 60% 10", 28, n);
    let (bursts, gaps) = runs(&bad);
    assert_geometric_runs("bad states", &bursts, 0.1);
    assert_geometric_runs("good states", &gaps, 0.025);
    // A chain with correlation 1 - 1/10 - 1/40 from packet to packet.
    let c: f64 = 0.875;
    let variance = n as f64 * 0.2 * 0.8 * (1.0 + c) / (1.0 - c);
    assert_within("bad packets", count(&bad) as f64, n as f64 * 0.2, variance);
    for (state, p) in [(true, 0.6), (false, 0.02)] {
        let inside = bad.iter().zip(&lost).filter(|&(&bad, _)| bad == state);
        let hits = inside.clone().filter(|&(_, &lost)| lost).count() as u64;
        assert_share("loss in a state", hits, inside.count() as u64, p);
    }
}

#[test]
fn the_first_packet_is_lost_as_often_as_any_other() {
    for (text, mean) in [
        ("10% burst 8", 0.1),
        ("gilbert-elliott 5% 90 55% 10", 0.1),
        ("on-off 10% period 50ms", 0.1),
        ("two-state 0% 90ms 100% 10ms", 0.1),
        ("two-state 0% 90ms 100% 10ms exponential", 0.1),
    ] {
        let lost = (0..20_000).map(|seed| count(&losses(text, seed, 1))).sum();
        assert_share(text, lost, 20_000, mean);
    }
}

#[test]
fn after_an_hour_of_silence_a_packet_is_lost_as_often_as_any_other() {
    // 36,000 mean cycles: more than are followed state by state.
    let config = with_loss("two-state 0% 90ms 100% 10ms exponential");
    let hour = Duration::from_secs(3600);
    let lost = (0..20_000)
        .filter(|&seed| is_lost(&run(&mut channel(config.clone(), seed), 2, hour)[1]))
        .count() as u64;
    assert_share("after an hour", lost, 20_000, 0.1);
}

#[test]
fn on_off_loses_half_as_much_again_when_on_and_half_when_off() {
    for form in ["", " exponential"] {
        // Equal seeds have equal states, so certain loss in ON alone shows which state it is.
        let n = 500_000;
        let on = losses(&format!("two-state 0% 50ms 100% 50ms{form}"), 25, n);
        let lost = losses(&format!("on-off 30% period 50ms{form}"), 25, n);
        let in_state = |state: bool| {
            let inside = on.iter().zip(&lost).filter(|&(&on, _)| on == state);
            let lost = inside.clone().filter(|&(_, &lost)| lost).count() as u64;
            (lost, inside.count() as u64)
        };
        let (lost_on, n_on) = in_state(true);
        let (lost_off, n_off) = in_state(false);
        assert_share("in ON", lost_on, n_on, 0.45);
        assert_share("in OFF", lost_off, n_off, 0.15);
        if form.is_empty() {
            // 5000 whole cycles of 100 packets: exactly half of them in each state.
            assert_eq!(n_on, n_off);
        }
    }
}

#[test]
fn exponential_states_occupy_their_shares_of_time() {
    let n = 2_000_000;
    let on = count(&losses("two-state 0% 30ms 100% 20ms exponential", 26, n));
    // Probed every millisecond: a chain with correlation exp(-(1/30 + 1/20)) from probe to probe.
    let c = f64::exp(-(1.0 / 30.0 + 1.0 / 20.0));
    let variance = n as f64 * 0.4 * 0.6 * (1.0 + c) / (1.0 - c);
    assert_within("share of ON", on as f64, n as f64 * 0.4, variance);
}

#[test]
fn states_last_their_time_whether_packets_flow_or_not() {
    let dense = losses("two-state 0% 7ms 100% 5ms", 27, 12_000);
    let sparse: Vec<bool> = run(
        &mut channel(with_loss("two-state 0% 7ms 100% 5ms"), 27),
        120,
        100 * MILLISECOND,
    )
    .iter()
    .map(is_lost)
    .collect();
    assert!(dense.iter().step_by(100).eq(&sparse));
    let (on, off) = runs(&dense);
    assert!(on.iter().all(|&ms| ms == 5), "{on:?}");
    assert!(off.iter().all(|&ms| ms == 7), "{off:?}");
}

#[test]
fn the_stated_mean_is_the_mean() {
    for (text, mean) in [
        ("none", 0.0),
        ("2%", 0.02),
        ("2% burst 4", 0.02),
        ("on-off 30% period 50ms", 0.3),
        ("two-state 5% 30ms 50% 20ms", 0.23),
        ("gilbert-elliott 5% 30 50% 20", 0.23),
        ("good 1s..3s bad 500ms", 0.2),
    ] {
        let stated = text.parse::<LossModel>().unwrap().mean_loss().value();
        assert!((stated - mean).abs() < 1e-12, "{text}: {stated}");
    }
}
