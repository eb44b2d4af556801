//! Series of good and bad intervals: their shares, their lengths, and the losses of packets in
//! them.

use crate::statistics::{assert_cells, assert_share, assert_within, runs};
use crate::{MILLISECOND, channel, is_lost, losses, run, with_loss};
use fulmar_channel::{LossModel, Series};
use fulmar_proto::units::{Bitrate, Duration, Instant};

#[test]
fn lengths_are_uniform_between_their_bounds() {
    let lost = losses("good 40ms..80ms bad 10ms..30ms", 31, 3_000_000);
    let (bad, good) = runs(&lost);
    for (what, lengths, min, max) in [("bad", bad, 10, 30), ("good", good, 40, 80)] {
        // A probe every millisecond: a length of x ms shows as its floor or ceiling, with the
        // fraction as odds, so whole numbers strictly inside are equally likely and the two bounds
        // half as likely.
        let mut cells = vec![0; max - min + 1];
        for &length in &lengths {
            cells[usize::try_from(length).unwrap() - min] += 1;
        }
        let one = 1.0 / (max - min) as f64;
        let mut law = vec![one; cells.len()];
        law[0] = one / 2.0;
        law[max - min] = one / 2.0;
        assert_cells(&format!("{what} lengths in ms"), &cells, &law);
    }
}

#[test]
fn the_share_of_loss_is_that_of_bad_time_from_the_first_packet_on() {
    let text = "good 40ms..80ms bad 10ms..30ms";
    let first = (0..20_000).filter(|&seed| losses(text, seed, 1)[0]).count();
    assert_share("first packet", first as u64, 20_000, 0.25);
    // Every seed's 50 s hold about 625 cycles. A renewal-reward share has the variance
    // (g^2 Var B + b^2 Var G) / (c^3 t), with c the mean cycle and t the time observed.
    let (good, bad, var_good, var_bad) = (60.0, 20.0, 1600.0 / 12.0, 400.0 / 12.0);
    let cycle: f64 = good + bad;
    let time = 20.0 * 50_000.0;
    let variance = (good * good * var_bad + bad * bad * var_good) / (cycle.powi(3) * time);
    let lost: usize = (0..20)
        .map(|seed| {
            losses(text, seed, 50_000)
                .iter()
                .filter(|&&lost| lost)
                .count()
        })
        .sum();
    assert_within("share", lost as f64 / time, 0.25, variance);
}

#[test]
fn a_packet_that_touches_a_bad_interval_is_lost() {
    // 1500 octets at 120 kbit take 100 ms. Back to back, a packet is spared only if it lies wholly
    // in a gap: of every cycle of 1 s + 50 ms, bad time and airtime are taken.
    let mut config = with_loss("good 1s bad 50ms");
    config.rate = Some(Bitrate::from_bits_per_second(120_000));
    let n = 40_000;
    let lost = run(&mut channel(config, 32), n, 100 * MILLISECOND);
    let lost = lost.iter().filter(|verdict| is_lost(verdict)).count() as f64;
    // The cycle drifts by half an airtime against the packets: 150 ms in 1050 ms on average over
    // phases; the phases of 21 packets over 2 cycles repeat exactly.
    let expected = n as f64 * 150.0 / 1050.0;
    assert!(
        (lost - expected).abs() <= n as f64 / 21.0 + 2.0,
        "{lost}, {expected}"
    );
}

#[test]
fn the_slacp_series_lose_what_the_specification_computes_from_the_papers_bounds() {
    // (airtime + mean burst) / (mean gap + mean burst), with the gaps and bursts of the table of
    // Kojo et al. and 90.6 ms of airtime (1450 B at 128 kbit), in per cent.
    for (name, percent) in [
        ("low", 0.75),
        ("medium", 2.85),
        ("high", 4.69),
        ("vhigh", 5.59),
        ("huge-literal", 5.3),
        ("huge-calibrated", 14.0),
    ] {
        let Series { good, bad } = Series::slacp(name).unwrap();
        let mut config = with_loss(&format!("slacp {name}"));
        config.rate = Some(Bitrate::from_bits_per_second(1500 * 8 * 10_000 / 906));
        let n = 2_000_000;
        let mut channel = channel(config, 33);
        let lost = run(&mut channel, n, Duration::from_micros(90_600));
        let lost = lost.iter().filter(|verdict| is_lost(verdict)).count() as f64 / n as f64;
        // Where gaps may be shorter than the airtime, packets meet two bursts and fewer are lost
        // than the sum: for a gap uniform in 0 to G that is a share of about t^2 / 2G a cycle.
        let (airtime, cycle) = (0.0906, good.mean().as_secs_f64() + bad.mean().as_secs_f64());
        let overlap = if good.min.is_zero() {
            airtime * airtime / 2.0 / good.max.as_secs_f64() / cycle
        } else {
            0.0
        };
        let expected = (airtime + bad.mean().as_secs_f64()) / cycle - overlap;
        // A burst costs 1.7 to 4.3 packets, 2 to 10 where it lasts 100 to 830 ms: the count varies
        // as that of n x loss / 4 (10) bursts would.
        let packets = if bad.max.as_millis() > 300 { 10.0 } else { 4.0 };
        let variance = expected * packets / n as f64;
        assert_within(&format!("slacp {name}"), lost, expected, variance);
        // The figures above are rounded to two digits.
        assert!(
            (expected * 100.0 - percent).abs() < 0.06,
            "{name}: {expected}"
        );
    }
}

#[test]
fn after_an_hour_of_silence_a_packet_is_lost_as_often_as_any_other() {
    let config = with_loss("good 60ms..120ms bad 10ms");
    let hour = Duration::from_secs(3600);
    let lost = (0..20_000)
        .filter(|&seed| is_lost(&run(&mut channel(config.clone(), seed), 2, hour)[1]))
        .count() as u64;
    assert_share("after an hour", lost, 20_000, 0.1);
}

#[test]
fn equal_seeds_have_equal_series_whatever_packets_they_meet() {
    let dense = losses("good 40ms..80ms bad 10ms..30ms", 34, 12_000);
    let mut sparse = channel(with_loss("good 40ms..80ms bad 10ms..30ms"), 34);
    let sparse = run(&mut sparse, 120, 100 * MILLISECOND);
    assert!(
        dense
            .iter()
            .step_by(100)
            .copied()
            .eq(sparse.iter().map(is_lost))
    );
    let stated = "good 1s bad 1s".parse::<LossModel>().unwrap().mean_loss();
    assert!((stated.value() - 0.5).abs() < 1e-12);
    assert_eq!(
        Instant::START.as_nanos(),
        0,
        "intervals count from the start of the run"
    );
}
