//! Bit errors: their number, their places, and the gaps between them.

use crate::statistics::{assert_cells, assert_geometric_runs, assert_share, assert_within};
use crate::{PACKET, channel, delivery, run};
use fulmar_channel::{BitErrors, ChannelConfig, apply_flips};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, Instant};

const BITS: u64 = 12_000;

fn with_bits(bits: &str) -> ChannelConfig {
    ChannelConfig {
        bits: bits.parse().unwrap(),
        ..ChannelConfig::default()
    }
}

/// The inverted bits of each of `packets` packets of 1500 octets.
fn flips(bits: &str, seed: u64, packets: u64) -> Vec<Vec<u32>> {
    run(&mut channel(with_bits(bits), seed), packets, Duration::ZERO)
        .iter()
        .map(|verdict| delivery(verdict).unwrap().flips.as_slice().to_vec())
        .collect()
}

#[test]
fn the_number_of_inverted_bits_is_binomial() {
    for (text, rate) in [
        ("1e-6", 1e-6),
        ("1e-5", 1e-5),
        ("1e-4", 1e-4),
        ("1e-2", 1e-2),
    ] {
        let packets = 100_000;
        let flips: u64 = flips(text, 31, packets)
            .iter()
            .map(|f| f.len() as u64)
            .sum();
        assert_share(text, flips, packets * BITS, rate);
    }
}

#[test]
fn the_number_in_one_packet_is_binomial_too() {
    // 1.2 a packet on average: 0, 1, .., 5 and more.
    let mut observed = [0; 7];
    for packet in flips("1e-4", 32, 200_000) {
        observed[packet.len().min(6)] += 1;
    }
    let mut probabilities = vec![(1.0 - 1e-4_f64).powi(12_000)];
    for k in 1..6 {
        // C(n, k) b^k (1 - b)^(n - k) from the term before it.
        let odds = 1e-4 / (1.0 - 1e-4);
        let before = probabilities[k - 1];
        probabilities.push(before * (BITS as f64 - k as f64 + 1.0) / k as f64 * odds);
    }
    probabilities.push(1.0 - probabilities.iter().sum::<f64>());
    assert_cells("flips in a packet", &observed, &probabilities);
}

#[test]
fn every_position_is_equally_likely() {
    for (text, packets) in [("1e-5", 500_000), ("1e-3", 20_000)] {
        let mut observed = [0; 120];
        for position in flips(text, 33, packets).concat() {
            observed[position as usize / 100] += 1;
        }
        assert_cells(text, &observed, &[1.0 / 120.0; 120]);
    }
}

#[test]
fn positions_ascend_and_stay_within_the_packet() {
    for text in ["1e-3", "0.5", "0.5 per octet"] {
        for packet in flips(text, 34, 200) {
            assert!(packet.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(packet.iter().all(|&bit| u64::from(bit) < BITS));
        }
    }
}

/// Reference: the packet error rate 1 - (1 - BER)^bits for 1500 octets, in per cent, and 3.1 % for
/// an acknowledgement of 40 octets at 1e-4. They are rounded to 0.05 %.
#[test]
fn packets_are_hit_as_often_as_the_bit_error_rate_says() {
    for (text, octets, per_cent) in [
        ("1e-6", 1500, 1.2),
        ("1e-5", 1500, 11.3),
        ("2.5e-5", 1500, 25.9),
        ("3.5e-5", 1500, 34.3),
        ("1e-4", 1500, 69.9),
        ("1e-4", 40, 3.1),
    ] {
        let len = ByteCount(octets);
        let model: BitErrors = text.parse().unwrap();
        let stated = model.packet_error_rate(len).value();
        assert!(
            (stated * 100.0 - per_cent).abs() <= 0.05,
            "{text}, {octets}: {stated}"
        );
        let packets = 200_000;
        let mut channel = channel(with_bits(text), 35);
        for _ in 0..packets {
            channel.admit(Instant::START, len);
        }
        let hit = channel.counters().damaged_packets;
        assert_share(&format!("{text}, {octets} octets"), hit, packets, stated);
    }
}

/// A change to other bit errors counts from the next packet on; one that names the same errors moves no draw.
#[test]
fn bit_errors_change_on_the_way_and_stay_as_they_are_where_the_change_is_of_something_else() {
    let len = ByteCount(1500);
    let mut changed = channel(with_bits("1e-6"), 37);
    let mut stays = channel(with_bits("1e-6"), 37);
    let mut plain = channel(with_bits("1e-6"), 37);
    let rng = Rng::from_seed(38);
    changed.change(&with_bits("received -46dBm"), &rng).unwrap();
    stays.change(&with_bits("1e-6"), &rng).unwrap();
    let packets = 200_000;
    for _ in 0..packets {
        changed.admit(Instant::START, len);
        let verdicts = [&mut stays, &mut plain].map(|one| one.admit(Instant::START, len));
        assert_eq!(verdicts[0], verdicts[1], "the same draws");
    }
    let power: BitErrors = "received -46dBm".parse().unwrap();
    let stated = power.packet_error_rate(len).value();
    assert!(stated > 0.5, "far from what it was: {stated}");
    assert_share(
        "-46 dBm",
        changed.counters().damaged_packets,
        packets,
        stated,
    );
}

#[test]
fn gaps_run_on_across_packets_and_are_geometric() {
    let rate = 0.05;
    let mut positions = flips("0.05", 36, 1000)
        .into_iter()
        .zip(0..)
        .flat_map(|(packet, index)| {
            packet
                .into_iter()
                .map(move |bit| index * BITS + u64::from(bit))
        });
    let mut before = positions.next().unwrap();
    let gaps: Vec<u64> = positions
        .map(|position| position - std::mem::replace(&mut before, position))
        .collect();
    assert_geometric_runs("from one flip to the next", &gaps, rate);
}

#[test]
fn neighbouring_packets_are_hit_independently() {
    let hit: Vec<bool> = flips("5e-5", 37, 200_000)
        .iter()
        .map(|f| !f.is_empty())
        .collect();
    let p = 1.0 - (1.0 - 5e-5_f64).powi(12_000);
    // Disjoint pairs are independent trials.
    let both = hit
        .chunks_exact(2)
        .filter(|pair| pair[0] && pair[1])
        .count() as u64;
    assert_share("two in a row", both, 100_000, p * p);
}

#[test]
fn an_octet_that_is_hit_has_one_inverted_bit_any_of_the_eight() {
    let packets = 20_000;
    let hit = flips("1e-2 per octet", 38, packets);
    let octets: u64 = hit.iter().map(|packet| packet.len() as u64).sum();
    assert_share("octets hit", octets, packets * PACKET.0, 1e-2);
    for packet in &hit {
        assert!(packet.windows(2).all(|pair| pair[0] / 8 < pair[1] / 8));
    }
    let mut observed = [0; 8];
    for bit in hit.concat() {
        observed[bit as usize % 8] += 1;
    }
    assert_cells("bit in the octet", &observed, &[0.125; 8]);
}

#[test]
fn flips_change_exactly_that_many_bits_of_real_octets() {
    let mut channel = channel(with_bits("1e-3"), 39);
    let mut sent = vec![0; PACKET.as_usize()];
    let mut fill = Rng::from_seed(39).child("payload");
    let mut changed = 0;
    for _ in 0..1000 {
        fill.fill(&mut sent);
        let verdict = channel.admit(Instant::START, PACKET);
        let mut received = sent.clone();
        let damage = apply_flips(
            &mut received,
            &delivery(&verdict).unwrap().flips,
            ByteCount(0),
        );
        let differing = sent
            .iter()
            .zip(&received)
            .map(|(a, b)| (a ^ b).count_ones() as usize);
        let differing: usize = differing.sum();
        assert_eq!(differing, damage.upper_bits);
        changed += differing as u64;
    }
    assert_eq!(changed, channel.counters().flipped_bits);
    // 12 a packet: the loop above did see damage.
    assert_within("bits changed", changed as f64, 12_000.0, 12_000.0);
}

#[test]
fn the_stated_packet_error_rate_combines_loss_and_bit_errors() {
    let mut config = with_bits("2e-5");
    config.loss = "10% burst 1.5".parse().unwrap();
    let stated = config.packet_error_rate(PACKET).value();
    assert!((stated - (1.0 - 0.9 * (1.0 - 2e-5_f64).powi(12_000))).abs() < 1e-12);
}
